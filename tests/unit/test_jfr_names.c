/* SPDX-License-Identifier: Apache-2.0 */
/* How long the names of a ring are kept: as long as a chunk needs them. */
#include "tests.h"

#include "base/clock.h"
#include "jfr/pool.h"
#include "jfr/reader.h"
#include "jfr/ring_read.h"
#include "jfr/writer.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct jfr_type row = {"jvmscope.test.Churn",
                                    "Churn",
                                    "Test",
                                    NULL,
                                    JFR_EVENT,
                                    JFR_HAS_THREAD | JFR_HAS_STACK,
                                    JFR_FIELDS({"number", "Number", "long"},
                                               {"class", "Class", "java.lang.Class"},
                                               {"text", "Text", "java.lang.String"})};

static char path[64], part_path[64];
static struct jfr_writer *w;
static uint32_t type;

/*
 * The names of number n. The number is padded to 200 characters, so that the memory of names that
 * are kept is visible.
 */
static void name_of(char kind, int64_t n, char ret[256])
{
    snprintf(ret, 256, "%c%0200lld", kind, (long long)n);
}

static int name_method(void *context, uint64_t method, uint32_t frame_type, struct jfr_method *ret)
{
    static char name[256], class[256];
    static const struct jfr_line lines[2] = {{0, 7}, {5, 8}};
    name_of('m', (int64_t)method, name);
    name_of('c', (int64_t)method, class);
    *ret = (struct jfr_method){
        .class = {.name = class}, .name = name, .descriptor = "()V", .lines = lines, .n_lines = 2};
    return 0;
}

static int set_up(void **state)
{
    struct jfr_writer_options options = {.resolver = {NULL, name_method, NULL},
                                         .trace_bytes = 1 << 20,
                                         .ring_bytes = 8 << 20,
                                         .keep_ns = 3600 * NS_PER_SECOND};
    snprintf(path, sizeof(path), "test_jfr_names.%d.ring", (int)getpid());
    snprintf(part_path, sizeof(part_path), "test_jfr_names.%d.jfr", (int)getpid());
    w = NULL;
    int r = jfr_writer_open(&w, path, &options);
    return r ? r : jfr_declare(w, &row, 1, &type);
}

static int tear_down(void **state)
{
    jfr_writer_free(w);
    unlink(path);
    unlink(part_path);
    return 0;
}

static void put(int64_t number, uint64_t thread, uint64_t class, uint64_t text)
{
    struct jfr_event e;
    struct jfr_frame frames[] = {{(uint64_t)number, 6, JFR_FRAME_JIT}, {1, 0, JFR_FRAME_JIT}};
    uint64_t trace = jfr_trace(w, frames, 2, false);
    assert_true(trace != 0);
    assert_true(jfr_begin(w, type, 200, &e));
    jfr_put_time(&e, now_ns());
    jfr_put_long(&e, (int64_t)thread);
    jfr_put_long(&e, (int64_t)trace);
    jfr_put_long(&e, number);
    jfr_put_long(&e, (int64_t) class);
    jfr_put_string_id(&e, text);
    jfr_commit(&e);
}

/* Writes an event whose thread, class and method are new and never occur again. */
static void churn(int64_t n, uint64_t text)
{
    char name[256];
    uint64_t thread = 1000 + (uint64_t)n;
    name_of('t', n, name);
    assert_int_equal(jfr_define_thread(w, thread,
                                       &(struct jfr_thread){.os_name = name,
                                                            .java_name = name,
                                                            .java_id = thread,
                                                            .os_id = thread}),
                     0);
    name_of('k', n, name);
    put(n, thread, jfr_define_class(w, &(struct jfr_class){.name = name}), text);
    jfr_forget_thread(w, thread);
}

static uint64_t name_bytes(void)
{
    struct jfr_ring_state state;
    assert_true(jfr_writer_ring(w, &state));
    assert_true(state.names > 0);
    return state.name_bytes;
}

static void assert_name(char kind, int64_t number, const char *found)
{
    char name[256];
    name_of(kind, number, name);
    assert_non_null(found);
    assert_string_equal(found, name);
}

/* Checks that each event of a part has all its names. Returns the number of events. */
static size_t read_part(void)
{
    static const struct rec_select wanted[] = {{"jvmscope.test.Churn", 0}, {0}};
    _cleanup_(recording_closep) struct recording *r = NULL;
    struct jfr_ring_part part;
    const char *why = NULL;
    struct rec_event e;
    struct rec_info info;
    size_t n = 0;
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
    _cleanup_close_ int to = open(part_path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_int_equal(jfr_ring_take(fd, &(struct jfr_ring_cut){0}, to, &part, &why), 0);
    assert_int_equal(recording_open(&r, part_path, &why), 0);
    assert_int_equal(recording_select(r, wanted), 0);
    while (recording_next(r, &e) > 0) {
        int64_t number = rec_long(&e.object, "number", -1);
        const struct rec_stack *stack = rec_stack(&e.object, "stackTrace");
        const struct rec_thread *thread = rec_thread(&e.object, "eventThread");
        const struct rec_class *class = rec_class(&e.object, "class");
        assert_non_null(stack);
        assert_int_equal(stack->n, 2);
        assert_name('m', number, stack->frames[0].method->name);
        assert_name('c', number, stack->frames[0].method->class->name);
        assert_int_equal(stack->frames[0].line, 8);
        assert_name('m', 1, stack->frames[1].method->name);
        assert_non_null(thread);
        assert_name('t', number, thread->name);
        assert_non_null(class);
        assert_name('k', number, class->name);
        assert_string_equal(rec_string(&e.object, "text", ""), "stays");
        n++;
    }
    recording_info(r, &info);
    assert_int_equal(info.unresolved, 0);
    return n;
}

/* After hundreds of chunks with new names, memory is as after the first ones, and everything in the
 * ring has its name.
 */
static void new_names_for_ever(void **state)
{
    enum { CHUNKS = SANITIZED ? 100 : 400, IN_CHUNK = 200, WARM = 5 };

    struct jfr_counters counters;
    uint64_t text = jfr_define_string(w, "stays"), warm = 0;
    int64_t n = 2;
    for (int chunk = 0; chunk < CHUNKS; chunk++) {
        for (int i = 0; i < IN_CHUNK; i++, n++) {
            churn(n, text);
            if (i % 20)
                continue;
            assert_int_equal(jfr_writer_work(w), 0);
            if (jfr_traces_due(w))
                jfr_traces_kept(w);
        }
        assert_int_equal(jfr_writer_rotate(w), 0);
        warm = chunk == WARM ? name_bytes() : warm;
        if (chunk % 100 == 99)
            assert_in_range(read_part(), IN_CHUNK, 8 * IN_CHUNK * CHUNKS);
    }
    jfr_writer_counters(w, &counters);
    assert_int_equal(counters.lost_traces, 0);
    assert_int_equal(counters.unresolved, 0);
    /* Each event's names have a kilobyte, so one chunk's are more than what is allowed here. */
    assert_in_range(name_bytes(), 0, warm + warm / 10);
    assert_in_range(warm, IN_CHUNK * 1000, 4 * IN_CHUNK * 2000);
}

/*
 * A name that each chunk uses is kept. An id that is no longer used stands for nothing, never for
 * another name.
 */
static void an_old_id_leads_to_nothing(void **state)
{
    struct jfr_counters counters;
    char name[256], found[256];
    name_of('k', 1, name);
    uint64_t text = jfr_define_string(w, "stays"),
             used = jfr_define_class(w, &(struct jfr_class){.name = name}),
             unused = jfr_define_class(w, &(struct jfr_class){.name = "un/Used"}),
             stays = jfr_define_class(w, &(struct jfr_class){.name = "st/Ays"});
    jfr_class_stays(w, stays);
    assert_true(jfr_class_name(w, unused, found, sizeof(found)));
    assert_string_equal(found, "un/Used");
    for (int64_t n = 2; n < 10; n++) {
        put(1, 1, used, text);
        churn(n, text);
        assert_int_equal(jfr_writer_rotate(w), 0);
        assert_int_equal(jfr_define_class(w, &(struct jfr_class){.name = name}), used);
    }
    assert_false(jfr_class_name(w, unused, found, sizeof(found)));
    assert_true(jfr_class_name(w, stays, found, 4));
    assert_string_equal(found, "st/");
    uint64_t again = jfr_define_class(w, &(struct jfr_class){.name = "un/Used"});
    assert_true(again != 0 && again != unused);
    jfr_writer_counters(w, &counters);
    uint64_t before = counters.unresolved;
    put(1, 1, unused, text);
    assert_int_equal(jfr_writer_flush(w), 0);
    jfr_writer_counters(w, &counters);
    assert_int_equal(counters.unresolved, before + 1);
}

/*
 * A pool of a thousand entries, some of which each round uses, modelled by a table of when each was
 * last used.
 */
static void a_pool_keeps_what_was_used(void **state)
{
    enum { ENTRIES = 1000, ROUNDS = 300, KEEP = 3 };

    struct pool p = {0};
    uint32_t used[ENTRIES] = {0};
    uint64_t id[ENTRIES] = {0};
    unsigned seed = 7;
    for (uint32_t round = 1; round < ROUNDS; round++) {
        for (int i = 0; i < 60; i++) {
            uint64_t n = (unsigned)rand_r(&seed) % ENTRIES;
            struct pool_constant *c = pool_intern(&p, &n, sizeof(n), round);
            assert_non_null(c);
            bool there = used[n] && used[n] + KEEP > round - 1;
            assert_int_equal(c->id == id[n], there);
            assert_true(c == pool_get(&p, c->id) && memcmp(c->bytes, &n, sizeof(n)) == 0);
            id[n] = c->id;
            used[n] = round;
        }
        if (round >= KEEP)
            pool_drop(&p, round - KEEP + 1);
        for (uint64_t n = 0; n < ENTRIES; n++)
            assert_int_equal(pool_get(&p, id[n]) != NULL, used[n] && used[n] + KEEP > round);
    }
    assert_in_range(p.slots.len, 60, (KEEP + 1) * 60);
    pool_release(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(new_names_for_ever, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_old_id_leads_to_nothing, set_up, tear_down),
        cmocka_unit_test(a_pool_keeps_what_was_used),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
