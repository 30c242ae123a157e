/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which requests a thread worked for at each moment: the stretches say the same as a search through
 * all works.
 */
#include "tests.h"

#include "analysis/request_fields.h"

#include <stdlib.h>

enum { END = 1000000, MS = 1000 };

/* Adds a request of a name, of one thread unless works follow. */
static void add_request(struct requests *r, uint32_t name, uint64_t thread, int64_t start,
                        int64_t end)
{
    struct request q = {.thread = thread,
                        .start_ns = start,
                        .end_ns = end,
                        .name = name,
                        .first_work = (uint32_t)r->works.len};
    assert_int_equal(vec_push(&r->list, q), 0);
}

static void add_work(struct requests *r, uint64_t thread, int64_t start, int64_t end)
{
    struct request_work w = {.thread = thread, .start_ns = start, .end_ns = end};
    assert_int_equal(vec_push(&r->works, w), 0);
    r->list.data[r->list.len - 1].works++;
}

static void release(struct requests *r)
{
    vec_release(&r->list);
    vec_release(&r->works);
}

static bool holds(const struct requests *r, const struct request *q, uint64_t thread, int64_t time)
{
    if (!q->works)
        return q->thread == thread && q->start_ns <= time && time < q->end_ns;
    for (uint32_t i = 0; i < q->works; i++) {
        const struct request_work *w = &r->works.data[q->first_work + i];
        if (w->thread == thread && w->start_ns <= time && time < w->end_ns)
            return true;
    }
    return false;
}

static bool has(const struct request_fields *f, uint32_t set, uint32_t name, uint32_t column,
                uint32_t row)
{
    const struct request_set *s = &f->sets.data[set];
    for (uint32_t i = 0; i < s->count; i++) {
        const struct request_field *m = &f->members.data[s->first + i];
        if (m->name == name && m->column == column && m->row == row)
            return true;
    }
    return false;
}

/* Compares each moment of each thread with a search through all requests. */
static void check(const struct requests *r, const struct request_fields *f, uint64_t threads)
{
    for (uint64_t thread = 0; thread <= threads; thread++)
        for (int64_t time = -1; time <= END + 1; time += 997) {
            uint32_t set = request_fields_at(f, thread, time), expected = 0;
            for (size_t i = 0; i < r->list.len; i++) {
                const struct request *q = &r->list.data[i];
                if (!holds(r, q, thread, time))
                    continue;
                expected++;
                assert_int_not_equal(set, REQUEST_NONE);
                assert_true(has(f, set, q->name, f->names_only ? 0 : request_column(r, q),
                                f->names_only ? 0 : request_row(q)));
            }
            if (!expected)
                assert_int_equal(set, REQUEST_NONE);
            else
                assert_in_range(f->sets.data[set].count, 1, expected);
        }
}

static void test_nested_and_handed_over(void **state)
{
    (void)state;
    struct requests r = {.end_ns = END};
    struct request_fields f;
    add_request(&r, 0, 1, 0, 500 * MS); /* works on two threads */
    add_work(&r, 1, 0, 300 * MS);
    add_work(&r, 2, 200 * MS, 500 * MS);
    add_request(&r, 1, 1, 100 * MS, 200 * MS);  /* within it */
    add_request(&r, 0, 3, 10 * MS, 10 * MS);    /* takes no time */
    add_request(&r, 2, 1, 300 * MS, 400 * MS);  /* follows without a gap */
    add_request(&r, 2, 1, 900 * MS, 2000 * MS); /* ends after the recording */
    assert_int_equal(request_fields_init(&f, &r), 0);
    assert_false(f.names_only);
    check(&r, &f, 3);
    assert_int_equal(f.sets.data[request_fields_at(&f, 1, 150 * MS)].count, 2);
    /* The same requests are the same set, before and after the one within. */
    assert_int_equal(request_fields_at(&f, 1, 50 * MS), request_fields_at(&f, 1, 250 * MS));
    assert_int_equal(request_fields_at(&f, 1, 50 * MS), request_fields_at(&f, 2, 450 * MS));
    assert_int_equal(request_fields_at(&f, 3, 10 * MS), REQUEST_NONE);
    request_fields_release(&f);
    release(&r);
}

static void test_any_works(void **state)
{
    (void)state;
    srand(7);
    for (int round = 0; round < 20; round++) {
        struct requests r = {.end_ns = END};
        struct request_fields f;
        for (int i = 0; i < 60; i++) {
            int64_t start = rand() % END, end = start + rand() % (END / 8);
            add_request(&r, (uint32_t)rand() % 4, (uint64_t)rand() % 4, start, end);
            for (int k = rand() % 4; k > 0; k--) {
                int64_t from = start + rand() % (end - start + 1);
                add_work(&r, (uint64_t)rand() % 4, from, from + rand() % (end - from + 1));
            }
        }
        assert_int_equal(request_fields_init(&f, &r), 0);
        check(&r, &f, 4);
        for (size_t i = 1; i < f.stretches.len; i++)
            assert_true(f.stretches.data[i - 1].thread < f.stretches.data[i].thread ||
                        f.stretches.data[i - 1].end_ns <= f.stretches.data[i].start_ns);
        request_fields_release(&f);
        release(&r);
    }
}

static void test_none_and_too_many(void **state)
{
    (void)state;
    struct requests r = {.end_ns = END};
    struct request_fields f;
    assert_int_equal(request_fields_init(&f, &r), 0);
    assert_int_equal(request_fields_at(&f, 1, 0), REQUEST_NONE);
    request_fields_release(&f);
    for (int i = 0; i < 2000; i++)
        add_request(&r, 0, 1, i, END);
    assert_int_equal(request_fields_init(&f, &r), -E2BIG);
    release(&r);
}

/* Sets of many requests at once, all different, are too many; their names are few. */
static void test_names_only(void **state)
{
    (void)state;
    struct requests r = {.end_ns = END};
    struct request_fields f;

    enum { MANY = 10000, EACH = END / MANY };

    for (int i = 0; i < MANY; i++) {
        int64_t start = i * EACH;
        add_request(&r, (uint32_t)(i % 700), 1, start, start + 800 * EACH + i % 13);
    }
    assert_int_equal(request_fields_init(&f, &r), 0);
    assert_true(f.names_only);
    for (size_t i = 0; i < f.members.len; i++)
        assert_int_equal(f.members.data[i].column + f.members.data[i].row, 0);
    request_fields_release(&f);
    release(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nested_and_handed_over),
        cmocka_unit_test(test_any_works),
        cmocka_unit_test(test_none_and_too_many),
        cmocka_unit_test(test_names_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
