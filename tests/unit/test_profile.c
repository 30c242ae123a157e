/* SPDX-License-Identifier: Apache-2.0 */
#include "tests.h"

#include "base/pattern.h"
#include "export/cut_times.h"
#include "profile/profile.h"
#include "profile/vm_time.h"

enum { METHODS = 12, DEPTH = 9, SAMPLES = 20000, THREADS = 3 };

static uint32_t method(struct profile *p, const char *class_name, const char *name)
{
    int64_t c = profile_class_name(p, class_name, strlen(class_name)),
            m = profile_string(p, name, strlen(name));
    int64_t n = profile_method(p, (uint32_t)c, (uint32_t)m, 0, 0);
    assert_true(n >= 0);
    return (uint32_t)n;
}

static uint32_t stack(struct profile *p, const uint32_t *frames, int depth)
{
    uint32_t node = 0;
    for (int i = 0; i < depth; i++) {
        int64_t n = profile_node(p, node, frames[i]);
        assert_true(n > node);
        node = (uint32_t)n;
    }
    return node;
}

static struct profile_rank rank_of(const struct profile *p, const struct profile_rank *ranks,
                                   size_t n, const char *label)
{
    for (size_t i = 0; i < n; i++) {
        if (strcmp(profile_text(p, ranks[i].label).data, label) == 0)
            return ranks[i];
    }
    return (struct profile_rank){0};
}

/* The result of straightforward counting over the samples. */
struct truth {
    uint64_t self[METHODS], total[METHODS], sum;
};

static void agree(const struct profile *p, const struct profile_filter *filter,
                  const struct truth *truth)
{
    struct profile_view v;
    assert_int_equal(profile_view_init(&v, p, PROFILE_CPU, filter), 0);
    assert_int_equal(v.weight, truth->sum);
    struct profile_rank *ranks;
    size_t n;
    assert_int_equal(profile_rank(&v, &ranks, &n), 0);
    for (int m = 0; m < METHODS; m++) {
        char label[16];
        snprintf(label, sizeof(label), "p.C%d.m", m);
        struct profile_rank r = rank_of(p, ranks, n, label);
        assert_int_equal(r.self, truth->self[m]);
        assert_int_equal(r.total, truth->total[m]);
    }
    for (size_t i = 1; i < n; i++)
        assert_true(ranks[i - 1].self >= ranks[i].self);
    for (int inverted = 0; inverted < 2; inverted++) {
        struct profile_tree t;
        assert_int_equal(profile_tree_init(&t, &v, inverted), 0);
        uint64_t self = 0, top[METHODS] = {0};
        for (size_t i = 0; i < t.nodes.len; i++) {
            uint64_t children = 0, last = UINT64_MAX;
            for (uint32_t c = t.nodes.data[i].first_child; c; c = t.nodes.data[c].next_sibling) {
                assert_int_equal(t.nodes.data[c].parent, i);
                assert_true(t.nodes.data[c].total <= last);
                last = t.nodes.data[c].total;
                children += last;
            }
            assert_int_equal(children + t.nodes.data[i].self, t.nodes.data[i].total);
            self += t.nodes.data[i].self;
        }
        assert_int_equal(self, truth->sum);
        for (uint32_t c = t.nodes.data[0].first_child; c; c = t.nodes.data[c].next_sibling)
            top[atoi(profile_text(p, t.nodes.data[c].label).data + 3)] += t.nodes.data[c].total;
        if (inverted)
            assert_memory_equal(top, truth->self, sizeof(top)); /* every running method is a root */
        profile_tree_release(&t);
    }
    free(ranks);
    profile_view_release(&v);
}

static void ranks_agree_with_a_plain_count(void **state)
{
    struct profile *p = profile_new();
    struct truth all = {0}, one_thread = {0}, one_class = {0}, window = {0};
    uint32_t methods[METHODS];
    srandom(3);
    for (int m = 0; m < METHODS; m++) {
        char name[16];
        snprintf(name, sizeof(name), "p/C%d", m);
        methods[m] = method(p, name, "m");
    }
    for (int t = 0; t < THREADS; t++) {
        char name[16];
        int len = snprintf(name, sizeof(name), "worker-%d", t);
        assert_int_equal(profile_thread(p, 100 + (uint64_t)t, name, (size_t)len), t);
    }
    for (int s = 0; s < SAMPLES; s++) {
        int depth = 1 + (int)(random() % DEPTH), of[DEPTH];
        uint32_t frames[DEPTH];
        bool seen[METHODS] = {0};
        for (int d = 0; d < depth; d++) {
            of[d] = (int)(random() % METHODS);
            frames[d] =
                (uint32_t)profile_frame(p, methods[of[d]], 1 + (int)(random() % 3), FRAME_COMPILED);
            seen[of[d]] = true;
        }
        struct profile_sample sample = {.time_ns = (uint64_t)s,
                                        .weight = 1 + (uint64_t)random() % 3,
                                        .node = stack(p, frames, depth),
                                        .thread = (uint32_t)random() % THREADS};
        assert_int_equal(profile_sample(p, PROFILE_CPU, sample), 0);
        struct truth *into[] = {&all, sample.thread == 1 ? &one_thread : NULL,
                                seen[7] ? &one_class : NULL, s >= 500 && s < 700 ? &window : NULL};
        for (size_t i = 0; i < ARRAY_SIZE(into); i++) {
            if (!into[i])
                continue;
            into[i]->sum += sample.weight;
            into[i]->self[of[depth - 1]] += sample.weight;
            for (int m = 0; m < METHODS; m++)
                into[i]->total[m] += seen[m] ? sample.weight : 0;
        }
    }
    agree(p, NULL, &all);
    agree(p, &(struct profile_filter){.thread = "*-1"}, &one_thread);
    agree(p, &(struct profile_filter){.class_name = "p.C7"}, &one_class);
    agree(p, &(struct profile_filter){.from_ns = 500, .to_ns = 700}, &window);
    struct profile_view v;
    assert_int_equal(profile_view_init(&v, p, PROFILE_WALL, NULL), -ENODATA);
    profile_free(p);
}

static void marks_are_counted_and_not_ranked(void **state)
{
    struct profile *p = profile_new();
    uint32_t lost = (uint32_t)profile_mark(p, "[not walkable]"),
             cut = (uint32_t)profile_mark(p, "[truncated]");
    uint32_t run = (uint32_t)profile_frame(p, method(p, "A", "run"), 0, FRAME_JAVA);
    struct profile_sample samples[] = {
        {.weight = 1, .node = 0},
        {.weight = 2, .node = stack(p, (uint32_t[]){lost}, 1)},
        {.weight = 4, .node = stack(p, (uint32_t[]){cut, run, run}, 3)},
        {.weight = 8, .node = stack(p, (uint32_t[]){run}, 1)},
        {.weight = 16, .node = stack(p, (uint32_t[]){run, lost}, 2)},
    };
    assert_int_equal(profile_thread(p, 0, "t", 1), 0);
    for (size_t i = 0; i < ARRAY_SIZE(samples); i++)
        assert_int_equal(profile_sample(p, PROFILE_CPU, samples[i]), 0);
    struct profile_view v;
    assert_int_equal(profile_view_init(&v, p, PROFILE_CPU, NULL), 0);
    assert_int_equal(v.weight, 31);
    assert_int_equal(v.unattributed, 1 + 2 + 16);
    assert_int_equal(v.truncated, 4);
    struct profile_rank *ranks;
    size_t n;
    assert_int_equal(profile_rank(&v, &ranks, &n), 0);
    assert_int_equal(n, 1);
    assert_int_equal(ranks[0].self, 12);
    assert_int_equal(ranks[0].total, 28); /* recursion counts once */
    free(ranks);
    profile_view_release(&v);
    profile_free(p);
}

static void names_are_external(void **state)
{
    struct profile *p = profile_new();
    static const char *const names[][2] = {
        {"java/util/Map$Entry", "java.util.Map$Entry"},
        {"a/B$$Lambda/0x0000abc", "a.B$$Lambda"},
        {"Main", "Main"},
        {"a\0b/c", "a"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        int64_t n = profile_class_name(p, names[i][0], i == 3 ? 5 : strlen(names[i][0]));
        assert_string_equal(profile_text(p, (uint32_t)n).data, names[i][1]);
        assert_int_equal(profile_text(p, (uint32_t)n).len, i == 3 ? 5 : strlen(names[i][1]));
    }
    char long_name[1000];
    memset(long_name, '/', sizeof(long_name));
    int64_t n = profile_class_name(p, long_name, sizeof(long_name));
    assert_int_equal(profile_text(p, (uint32_t)n).data[999], '.');
    uint32_t a = method(p, "a/B", "x");
    assert_int_equal(method(p, "a/B", "x"), a);
    assert_int_not_equal(method(p, "a/B", "y"), a);
    assert_string_equal(profile_text(p, p->methods.data[a].label).data, "a.B.x");
    profile_free(p);
}

static void patterns_match(void **state)
{
    static const struct {
        const char *pattern, *text;
        bool matches;
    } rows[] = {
        {NULL, "x", true},
        {"", "x", true},
        {"b", "abc", true},
        {"d", "abc", false},
        {"a*", "abc", true},
        {"*c", "abc", true},
        {"*b", "abc", false},
        {"a?c", "abc", true},
        {"a?", "abc", false},
        {"*", "", true},
        {"?", "", false},
        {"**a**b*", "xaxxbx", true},
        {"*aab", "aaaaaab", true},
        {"*[", "a[", true},
        {"=abc", "abc", true},
        {"=ab", "abc", false},
        {"=bc", "abc", false},
        {"=a*", "abc", false},
        {"=a*", "a*", true},
        {"=", "", true},
        {"=", "a", false},
        {"a=b", "xa=by", true},
        {"=worker-1,=worker-2", "worker-2", true},
        {"=worker-1, =worker-2", "worker-2", true},
        {"=worker-1,=worker-2", "worker-10", false},
        {"=a,b", "a,b", true},
        {"java.*.Map", "java.util.Map", true},
        {"w?rk", "w\xc3\xb6rk", true},
        {"w??rk", "w\xc3\xb6rk", false},
        {"*?", "\xf0\x9f\x98\x80", true},
        {"?", "\xf0\x9f\x98\x80", true},
        {"??", "\xc3\xb6", false},
        {"w?rk", "w\xffrk", true},
        {"*a*a*a*a*a*a*a*a*b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", false},
    };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        assert_int_equal(pattern_match(rows[i].pattern, rows[i].text, strlen(rows[i].text)),
                         rows[i].matches);
}

/*
 * A part of a recording has as much of each reading of CPU time as a view of the same part, also
 * where the process used no time between two readings.
 */
static void a_part_has_the_cpu_time_of_its_view(void **state)
{
    static const uint64_t process_ns[] = {40, 0, 60, 0, 0, 70, 50};
    static const struct profile_filter parts[] = {{.from_ns = 250},
                                                  {.from_ns = 100, .to_ns = 280},
                                                  {.from_ns = 550, .to_ns = 650},
                                                  {.to_ns = 580}};

    for (size_t k = 0; k < ARRAY_SIZE(parts); k++) {
        struct profile *p = profile_new();
        struct cut_times cut = {0};
        for (size_t i = 0; i < ARRAY_SIZE(process_ns); i++) {
            uint64_t at = 100 * (i + 1);
            assert_int_equal(profile_cpu_time(p, at, VM_TIME_PROCESS, "", (int64_t)process_ns[i]),
                             0);
            assert_int_equal(vec_push(&cut.list, ((struct cut_time){.offset = i,
                                                                    .time_ns = (int64_t)at,
                                                                    .cpu_ns = process_ns[i],
                                                                    .last = true})),
                             0);
        }
        struct vm_time sum;
        assert_int_equal(vm_time_sum(&sum, p, &parts[k]), 0);
        cut_times_settle(&cut, &parts[k]);
        uint64_t in_part = 0;
        for (size_t i = 0; i < cut.list.len; i++)
            in_part += cut.list.data[i].part_ns;
        assert_true(sum.process_ns > 0);
        assert_int_equal(in_part, sum.process_ns);
        vm_time_release(&sum);
        cut_times_release(&cut);
        profile_free(p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_agree_with_a_plain_count),
        cmocka_unit_test(marks_are_counted_and_not_ranked),
        cmocka_unit_test(names_are_external),
        cmocka_unit_test(patterns_match),
        cmocka_unit_test(a_part_has_the_cpu_time_of_its_view),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
