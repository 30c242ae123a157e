/* SPDX-License-Identifier: Apache-2.0 */
#include "tests.h"

#include "base/file.h"
#include "jfr/internal.h"
#include "jfr/losses.h"
#include "jfr/reader.h"
#include "jfr/writer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static char path[64];
static struct jfr_writer *w;
static struct waker waker;

static const struct jfr_type rows[] = {
    {"jvmscope.test.Kind", NULL, NULL, NULL, JFR_POOL, 0,
     JFR_FIELDS({"text", "Text", "java.lang.String"})},
    {"jvmscope.test.Place", NULL, NULL, NULL, JFR_STRUCT, 0,
     JFR_FIELDS({"x", "X", "int"}, {"kind", "Kind", "jvmscope.test.Kind"})},
    {"jvmscope.test.Everything", "Everything", "Test", "All kinds of fields", JFR_EVENT,
     JFR_DURATION | JFR_HAS_THREAD | JFR_HAS_STACK,
     JFR_FIELDS({"flag", "Flag", "boolean"}, {"small", "Small", "byte"},
                {"letter", "Letter", "char"}, {"half", "Half", "short"}, {"whole", "Whole", "int"},
                {"wide", "Wide", "long"}, {"real", "Real", "float"}, {"fine", "Fine", "double"},
                {"text", "Text", "java.lang.String"}, {"shared", "Shared", "java.lang.String"},
                {"kind", "Kind", "jvmscope.test.Kind"}, {"place", "Place", "jvmscope.test.Place"},
                {"type", "Type", "java.lang.Class"}, {"span", "Span", "long", JFR_MILLIS},
                {"moment", "Moment", "long", JFR_TICKS_STAMP})},
};

static uint32_t ids[3];

static int name_method(void *context, uint64_t method, uint32_t type, struct jfr_method *ret)
{
    static const struct jfr_line lines[] = {{0, 100}, {4, 101}, {9, 105}};
    if (method == 666)
        return -ENOENT;
    *ret = (struct jfr_method){.class = {.name = method == 1 ? "a/b/C" : "[[La/b/C;",
                                         .package = "a/b",
                                         .module = "m",
                                         .loader = "app"},
                               .name = method == 1 ? "one" : "two",
                               .descriptor = "()V",
                               .lines = lines,
                               .n_lines = 3};
    return 0;
}

static int name_thread(void *context, uint64_t id, struct jfr_thread *ret)
{
    *ret = (struct jfr_thread){.os_name = "found", .os_id = id};
    return id == 78 ? 0 : -ESRCH;
}

static int open_with(uint64_t trace_bytes)
{
    snprintf(path, sizeof(path), "test_jfr.%d.jfr", (int)getpid());
    struct jfr_writer_options options = {.resolver = {NULL, name_method, name_thread},
                                         .slots = 4,
                                         .trace_bytes = trace_bytes,
                                         .waker = &waker};
    assert_int_equal(jfr_writer_open(&w, path, &options), 0);
    assert_int_equal(jfr_declare(w, rows, 3, ids), 0);
    return 0;
}

static int open_writer(void **state)
{
    return open_with(1 << 20);
}

static int open_writer_for_many_stacks(void **state)
{
    return open_with(4 << 20);
}

static int close_writer(void **state)
{
    jfr_writer_free(w);
    unlink(path);
    return 0;
}

static struct recording *reopen(void)
{
    struct recording *r = NULL;
    const char *why;
    assert_int_equal(jfr_writer_close(w), 0);
    assert_int_equal(recording_open(&r, path, &why), 0);
    return r;
}

static void lost(const char *reason, int64_t start, int64_t amount)
{
    struct jfr_event e;
    assert_true(jfr_begin(w, JFR_LOST, 0, &e));
    jfr_put_time(&e, (uint64_t)start);
    jfr_put_long(&e, 0);
    jfr_put_string(&e, "test");
    jfr_put_string(&e, "things");
    jfr_put_string(&e, reason);
    jfr_put_long(&e, amount);
    jfr_put_long(&e, -1);
    jfr_put_string(&e, "");
    jfr_commit(&e);
}

/* Returns how many open files have no name any more. */
static unsigned open_without_name(void)
{
    unsigned n = 0;
    for (int fd = 0; fd < 64; fd++) {
        char link[64], target[256];
        snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
        ssize_t len = readlink(link, target, sizeof(target) - 1);
        target[MAX(len, 0)] = 0;
        n += strstr(target, " (deleted)") != NULL;
    }
    return n;
}

static void a_large_file_is_removed_in_the_first_round(void **state)
{
    char large[80];
    struct jfr_writer *second;
    snprintf(large, sizeof(large), "%s.large", path);
    FILE *f = fopen(large, "w");
    assert_non_null(f);
    assert_int_equal(ftruncate(fileno(f), 20 << 20), 0);
    fclose(f);
    struct jfr_writer_options options = {.slots = 4, .trace_bytes = 1 << 20, .waker = &waker};
    assert_int_equal(jfr_writer_open(&second, large, &options), 0);
    assert_int_equal(open_without_name(), 1);
    assert_int_equal(jfr_writer_work(second), 0);
    assert_int_equal(open_without_name(), 0);
    jfr_writer_free(second);
    unlink(large);
}

/* Only the pages of the blocks that are ready, and of a ring's head, are in memory. */
static void an_empty_ring_is_not_read_ahead(void **state)
{
    enum { RING = 64 << 20, HEAD = 64 << 10 };

    char name[80];
    struct jfr_writer *ring;
    snprintf(name, sizeof(name), "%s.ring", path);
    struct jfr_writer_options options = {.slots = 4,
                                         .trace_bytes = 1 << 20,
                                         .waker = &waker,
                                         .ring_bytes = RING,
                                         .begins_small = true};
    assert_int_equal(jfr_writer_open(&ring, name, &options), 0);
    assert_int_equal(jfr_writer_work(ring), 0);
    size_t page = (size_t)sysconf(_SC_PAGESIZE), present = 0;
    uint8_t *map = mmap(NULL, RING, PROT_READ, MAP_SHARED, ring->fd, 0),
            *pages = malloc(RING / page);
    assert_true(map != MAP_FAILED && pages);
    assert_int_equal(mincore(map, RING, pages), 0);
    for (size_t i = 0; i < RING / page; i++)
        present += pages[i] & 1;
    assert_in_range(present * page, 1, ring->chunk.region->ready * JFR_BLOCK + HEAD);
    free(pages);
    munmap(map, RING);
    jfr_writer_free(ring);
    unlink(name);
}

static void every_kind_of_field_comes_back(void **state)
{
    struct jfr_frame frames[] = {{1, 0, 1}, {2, 8, 2}, {666, -1, 4}, {1, 2000, 3}};
    uint64_t trace = jfr_trace(w, frames, 4, true), now = now_ns();
    assert_int_not_equal(trace, 0);
    assert_int_equal(jfr_trace(w, frames, 4, true), trace);
    assert_int_not_equal(jfr_trace(w, frames, 3, true), trace);
    assert_int_not_equal(jfr_trace(w, frames, 4, false), trace);
    uint64_t kind = jfr_define_name(w, ids[0], "kind \xc3\xa4");
    uint64_t shared = jfr_define_string(w, "shared");
    uint64_t class = jfr_define_class(w, &(struct jfr_class){.name = "x/Y", .hidden = true});
    assert_int_equal(jfr_define_class(w, &(struct jfr_class){.name = "x/Y", .hidden = true}),
                     class);
    jfr_define_thread(w, 77, &(struct jfr_thread){"os", 5, "java \xe2\x82\xac", 9, "group", true});
    struct jfr_event e;
    assert_true(jfr_begin(w, ids[2], 0, &e));
    jfr_put_time(&e, now);
    jfr_put_long(&e, 1500);
    jfr_put_long(&e, 77);
    jfr_put_long(&e, (int64_t)trace);
    jfr_put_byte(&e, 1);
    jfr_put_byte(&e, 0x80);
    jfr_put_long(&e, 0xfffe);
    jfr_put_long(&e, (int64_t)(uint16_t)-2);
    jfr_put_int(&e, INT32_MIN);
    jfr_put_long(&e, INT64_MIN);
    jfr_put_float(&e, 1.5f);
    jfr_put_double(&e, -1e300);
    jfr_put_string(&e, "");
    jfr_put_string_id(&e, shared);
    jfr_put_long(&e, (int64_t)kind);
    jfr_put_int(&e, -7);
    jfr_put_long(&e, (int64_t)kind);
    jfr_put_long(&e, (int64_t) class);
    jfr_put_long(&e, 3);
    jfr_put_time(&e, now + 5);
    jfr_commit(&e);
    struct recording *r = reopen();
    static const struct rec_select wanted[] = {{"jvmscope.test.Everything", 0}, {0}};
    assert_int_equal(recording_select(r, wanted), 0);
    struct rec_event v;
    assert_int_equal(recording_next(r, &v), 1);
    const struct rec_object *o = &v.object;
    assert_string_equal(o->type->name, "jvmscope.test.Everything");
    assert_int_equal(v.duration_ns, 1500);
    assert_int_equal(rec_long(o, "flag", -1), 1);
    assert_int_equal(rec_long(o, "small", -1), -128);
    assert_int_equal(rec_long(o, "letter", -1), 0xfffe);
    assert_int_equal(rec_long(o, "half", -1), -2);
    assert_int_equal(rec_long(o, "whole", -1), INT32_MIN);
    assert_true(rec_long(o, "wide", -1) == INT64_MIN);
    assert_true(rec_real(o, "real", 0) == 1.5);
    assert_true(rec_real(o, "fine", 0) == -1e300);
    assert_string_equal(rec_string(o, "text", "?"), "");
    assert_string_equal(rec_string(o, "shared", "?"), "shared");
    assert_string_equal(rec_string(o, "kind", "?"), "kind \xc3\xa4");
    assert_int_equal(rec_long(o, "place.x", 0), -7);
    assert_string_equal(rec_string(o, "place.kind.text", "?"), "kind \xc3\xa4");
    assert_string_equal(rec_string(o, "nothing", "?"), "?");
    assert_int_equal(rec_ns(o, "span", 0), 3000000);
    assert_true(rec_ns(o, "moment", 0) == v.start_ns + 5);
    assert_string_equal(rec_class(o, "type")->name, "x.Y");
    assert_true(rec_class(o, "type")->hidden);
    assert_null(rec_class(o, "text"));
    const struct rec_thread *t = rec_thread(o, "eventThread");
    assert_string_equal(t->name, "java \xe2\x82\xac");
    assert_string_equal(t->group, "group");
    assert_int_equal(t->java_id, 9);
    assert_true(t->is_virtual);
    const struct rec_stack *s = rec_stack(o, "stackTrace");
    assert_int_equal(s->n, 4);
    assert_true(s->truncated);
    assert_string_equal(s->frames[0].method->full, "a.b.C.one");
    assert_string_equal(s->frames[1].method->class->name, "a.b.C[][]");
    assert_string_equal(s->frames[0].method->class->module, "m");
    assert_string_equal(s->frames[1].type, "JIT compiled");
    assert_int_equal(s->frames[0].line, 100);
    assert_int_equal(s->frames[1].line, 101);
    assert_int_equal(s->frames[2].line, -1);
    assert_int_equal(s->frames[3].line, 105);
    assert_string_equal(s->frames[2].method->name, "unresolved_0x29a");
    assert_ptr_equal(s->frames[0].method, s->frames[3].method);
    assert_ptr_equal(s, rec_stack(o, "stackTrace"));
    recording_close(r);
}

static void threads_are_renamed_found_and_forgotten(void **state)
{
    static const uint64_t who[] = {77, 78, 79, 77};
    for (int i = 0; i < 4; i++) {
        if (i % 3 == 0)
            jfr_define_thread(w, 77,
                              &(struct jfr_thread){"os", 5, i ? "new" : "old", 9, NULL, false});
        struct jfr_event e;
        assert_true(jfr_begin(w, JFR_THREAD_END, 0, &e));
        jfr_put_time(&e, now_ns());
        jfr_put_long(&e, (int64_t)who[i]);
        jfr_put_long(&e, (int64_t)who[i]);
        jfr_commit(&e);
        if (i == 0) {
            assert_int_equal(jfr_writer_rotate(w), 0);
            jfr_forget_thread(w, 77);
        }
    }
    assert_int_equal(jfr_writer_rotate(w), 0);
    struct recording *r = reopen();
    struct rec_event v;
    static const char *const names[] = {"old", "found", "thread 79", "new"};
    uint32_t first = 0;
    for (int i = 0; i < 4; i++) {
        do /* what could not be named is reported as lost */
            assert_int_equal(recording_next(r, &v), 1);
        while (strcmp(v.object.type->name, "jdk.ThreadEnd") != 0);
        const struct rec_thread *t = rec_thread(&v.object, "thread");
        assert_string_equal(t->name, names[i]);
        if (i == 0)
            first = t->number;
        assert_int_equal(t->number == first, i % 3 == 0);
    }
    struct rec_info info;
    recording_info(r, &info);
    assert_int_equal(info.chunks, 3);
    recording_close(r);
}

static void order_of_time_crosses_chunks(void **state)
{
    int64_t now = (int64_t)now_ns();
    static const int order[] = {3, 1, 4, 0, 2};
    for (int i = 0; i < 5; i++) {
        lost("x", now + order[i] * 1000, order[i]);
        if (i == 2)
            assert_int_equal(jfr_writer_rotate(w), 0);
    }
    struct recording *r = reopen();
    static const struct rec_select wanted[] = {{"jvmscope.Lost", 7}, {0}};
    assert_int_equal(recording_select(r, wanted), 0);
    struct rec_mark *marks;
    size_t n;
    assert_int_equal(recording_by_time(r, &marks, &n), 0);
    assert_int_equal(n, 5);
    for (int i = 0; i < 5; i++) {
        struct rec_event v;
        assert_int_equal(recording_at(r, marks[i].offset, &v), 0);
        assert_int_equal(rec_long(&v.object, "amount", -1), i);
        assert_int_equal(v.tag, 7);
        assert_true(v.start_ns == marks[i].start_ns);
    }
    free(marks);
    recording_close(r);
}

static void what_does_not_fit_is_counted(void **state)
{
    struct jfr_event e;
    char text[9000];
    memset(text, 'x', sizeof(text));
    assert_true(jfr_begin(w, JFR_LOST, 10, &e));
    jfr_put_time(&e, now_ns());
    jfr_put_string_n(&e, text, sizeof(text));
    jfr_commit(&e);
    assert_true(jfr_begin(w, JFR_LOST, sizeof(text) + 80, &e));
    jfr_put_time(&e, now_ns());
    jfr_put_long(&e, 0);
    jfr_put_string(&e, "test");
    jfr_put_string(&e, "things");
    jfr_put_string_n(&e, text, sizeof(text));
    jfr_put_long(&e, 1);
    jfr_put_long(&e, 1);
    jfr_put_string(&e, "");
    jfr_commit(&e);
    assert_true(jfr_begin(w, JFR_LOST, 0, &e));
    jfr_put_time(&e, now_ns());
    jfr_commit(&e); /* without the other fields */
    struct jfr_event taken[4];
    for (int i = 0; i < 4; i++)
        assert_true(jfr_begin(w, JFR_LOST, 0, &taken[i]));
    assert_false(jfr_begin(w, JFR_LOST, 0, &e));
    for (int i = 0; i < 4; i++)
        jfr_abort(&taken[i]);
    static struct jfr_frame frames[70000]; /* larger than the table's memory */
    assert_int_not_equal(jfr_trace(w, frames, 70000, false), 0);
    struct recording *r = reopen();
    assert_false(jfr_begin(w, JFR_LOST, 0, &e));
    struct jfr_counters n;
    jfr_writer_counters(w, &n);
    assert_int_equal(n.lost_size, 1);
    assert_int_equal(n.lost_shape, 1);
    assert_int_equal(n.lost_busy, 1);
    assert_int_equal(n.lost_closed, 1);
    assert_int_equal(n.lost_traces, 0);
    assert_int_equal(n.shortened_traces, 1);
    struct rec_event v;
    int reported = 0, big = 0;
    while (recording_next(r, &v) > 0) {
        big += strlen(rec_string(&v.object, "reason", "")) == sizeof(text);
        reported += rec_long(&v.object, "total", 0) == 1 &&
                    strncmp(rec_string(&v.object, "reason", ""), "x", 1) != 0;
    }
    assert_int_equal(big, 1);
    assert_int_equal(reported, 4);
    recording_close(r);
}

/*
 * Every event counts for the method that it happened in, even if there is no memory for its stack:
 * the innermost frames are kept, and this is counted.
 */
static void write_stacks(int n_events, int depth)
{
    enum { DEPTH = 100, PLACES = 300 };

    for (int i = 0; i < n_events; i++) {
        struct jfr_frame frames[DEPTH];
        struct jfr_event e;
        for (int k = 0; k < depth; k++)
            frames[k] = (struct jfr_frame){
                .method = 1, .bci = k ? i * depth + k : i % PLACES, .type = JFR_FRAME_JIT};
        uint64_t id = jfr_trace_growing(w, frames, (uint32_t)depth, false);
        assert_int_not_equal(id, 0);
        assert_int_equal(jfr_trace_growing(w, frames, (uint32_t)depth, false), id);
        assert_true(jfr_begin_growing(w, JFR_EXECUTION_SAMPLE, 0, &e));
        jfr_put_time(&e, now_ns());
        jfr_put_long(&e, 78);
        jfr_put_long(&e, (int64_t)id);
        jfr_put_long(&e, 0);
        jfr_commit(&e);
    }
    struct recording *r = reopen();
    struct jfr_counters n;
    jfr_writer_counters(w, &n);
    struct rec_event v;
    int of[DEPTH + 1] = {0}, at_place[PLACES] = {0}, events = 0;
    int64_t reported = 0;
    while (recording_next(r, &v) > 0) {
        const struct rec_stack *s = rec_stack(&v.object, "stackTrace");
        reported += strcmp(rec_string(&v.object, "what", ""), "callers of events") == 0
                        ? rec_long(&v.object, "amount", 0)
                        : 0;
        if (!s)
            continue;
        assert_in_range(s->n, 1, depth);
        assert_int_equal(s->truncated, s->n < (uint32_t)depth);
        assert_in_range(s->frames[0].bci, 0, PLACES - 1);
        at_place[s->frames[0].bci]++; /* threads that move to another processor change the order */
        events++;
        of[s->n]++;
    }
    assert_int_equal(events, n_events);
    for (int i = 0; i < PLACES; i++)
        assert_int_equal(at_place[i], n_events / PLACES);
    assert_true(of[depth] > 500 && of[8] > 100 && of[1] > 100);
    assert_int_equal(of[depth] + of[8] + of[1], n_events);
    assert_int_equal(n.lost_traces, 0);
    assert_int_equal(n.shortened_traces, 2 * (of[8] + of[1]));
    assert_int_equal(reported, n.shortened_traces);
    recording_close(r);
}

static void stacks_without_memory_keep_their_innermost_frames(void **state)
{
    write_stacks(12000, 100);
}

/* There are more stacks than the table has slots, although there is memory for more. */
static void stacks_without_a_slot_keep_their_innermost_frames(void **state)
{
    write_stacks(24000, 9);
}

/* Only texts need room of their own, wherever in a block an event begins. */
static void numbers_always_fit(void **state)
{
    struct jfr_event e;
    char text[64];
    memset(text, 'x', sizeof(text));
    for (size_t i = 0; i < 5000; i++) {
        size_t len = 1 + i % sizeof(text);
        assert_true(jfr_begin_growing(w, JFR_LOST, 5 + len, &e));
        jfr_put_time(&e, now_ns());
        jfr_put_long(&e, INT64_MIN);
        jfr_put_string_id(&e, 0);
        jfr_put_string_id(&e, 0);
        jfr_put_string_n(&e, text, len);
        jfr_put_long(&e, INT64_MIN);
        jfr_put_long(&e, INT64_MIN);
        jfr_put_string(&e, "");
        jfr_commit(&e);
    }
    struct jfr_counters n;
    jfr_writer_counters(w, &n);
    assert_int_equal(n.lost_size, 0);
}

/* A worker that sleeps until it is woken must be in time, however fast the file grows. */
static void the_worker_is_woken_before_there_is_no_room(void **state)
{
    struct jfr_counters n;
    char text[900];
    int rounds = 0;
    memset(text, 'x', sizeof(text));
    for (int i = 0; i < 40000; i++) {
        struct jfr_event e;
        if (waker_wait(&waker, 0)) {
            assert_int_equal(jfr_writer_work(w), 0);
            rounds++;
        }
        assert_true(jfr_begin(w, JFR_LOST, sizeof(text) + 80, &e));
        jfr_put_time(&e, now_ns());
        jfr_put_long(&e, 0);
        jfr_put_string(&e, "test");
        jfr_put_string(&e, "things");
        jfr_put_string_n(&e, text, sizeof(text));
        jfr_put_long(&e, 1);
        jfr_put_long(&e, 1);
        jfr_put_string(&e, "");
        jfr_commit(&e);
    }
    jfr_writer_counters(w, &n);
    assert_int_equal(n.lost_room, 0);
    assert_in_range(rounds, 1, 100);
}

static const struct jfr_type bad[] = {
    {"a.A", NULL, NULL, NULL, JFR_EVENT, 0, JFR_FIELDS({"x", "X", "no.such.Type"})},
    {"a.B", NULL, NULL, NULL, JFR_EVENT, 0, JFR_FIELDS({"x", "X", "int", .array = true})},
    {"jdk.ThreadEnd", NULL, NULL, NULL, JFR_EVENT},
};

static void rows_are_checked(void **state)
{
    uint32_t id = 0;
    assert_int_equal(jfr_declare(w, &bad[0], 1, &id), -EINVAL);
    assert_int_equal(jfr_declare(w, &bad[1], 1, &id), -EINVAL);
    assert_int_equal(jfr_declare(w, &bad[2], 1, &id), 0);
    assert_int_equal(id, JFR_THREAD_END);
    assert_int_equal(jfr_define_name(w, JFR_POOL_THREAD_STATE, "mine"), 0);
    lost("fine", 0, 1);
    recording_close(reopen());
}

/* How often a file contains a name. */
static size_t names_written(const char *file, const char *name)
{
    uint8_t *bytes;
    size_t len, found = 0;
    assert_int_equal(file_read_path(file, 64 << 20, &bytes, &len), 0);
    const uint8_t *at = bytes;
    for (; (at = memmem(at, (size_t)(bytes + len - at), name, strlen(name))); at++)
        found++;
    free(bytes);
    return found;
}

static size_t metadata_written(void)
{
    recording_close(reopen());
    return names_written(path, "jvmscope.test.Everything");
}

/* Captures declare their types again whenever they write; the metadata is written once. */
static void known_types_are_declared_for_nothing(void **state)
{
    uint32_t again[3];
    for (int i = 0; i < 100; i++)
        assert_int_equal(jfr_declare(w, rows, 3, again), 0);
    assert_memory_equal(again, ids, sizeof(ids));
    assert_int_equal(metadata_written(), 1);
}

enum { MORE = 60 };

static struct jfr_type more[MORE];

static void make_more(void)
{
    static char names[MORE][32];
    for (int i = 0; i < MORE; i++) {
        snprintf(names[i], sizeof(names[i]), "jvmscope.test.More%d", i);
        more[i] = rows[2];
        more[i].name = names[i];
    }
}

static void types_that_are_held_are_described_once(void **state)
{
    uint32_t id;
    make_more();
    jfr_hold_types(w);
    for (int i = 0; i < 3; i++)
        assert_int_equal(jfr_declare(w, &more[i], 1, &id), 0);
    assert_int_equal(jfr_release_types(w), 0);
    assert_int_equal(metadata_written(), 2);
}

/*
 * The types that are declared before the release are in the first metadata, and there are no
 * others.
 */
static void a_recording_that_holds_types_is_described_when_they_are_released(void **state)
{
    struct jfr_writer *second;
    struct recording *r;
    const char *why = NULL;
    uint32_t id;
    char held[80];
    snprintf(held, sizeof(held), "%s.held", path);
    struct jfr_writer_options options = {
        .trace_bytes = 1 << 20, .waker = &waker, .begins_small = true, .holds_types = true};
    assert_int_equal(jfr_writer_open(&second, held, &options), 0);
    make_more();
    assert_int_equal(jfr_declare(second, rows, 3, ids), 0);
    assert_int_equal(jfr_declare(second, &more[0], 1, &id), 0);
    assert_int_equal(recording_open(&r, held, &why), -EBADMSG);
    assert_non_null(strstr(why, "description"));
    assert_int_equal(jfr_release_types(second), 0);
    assert_int_equal(recording_open(&r, held, &why), 0);
    recording_close(r);
    assert_int_equal(names_written(held, "jvmscope.test.More0"), 1);
    jfr_writer_free(second);
    unlink(held);
}

/* Each declaration writes all of the metadata, for which the few blocks do not suffice. */
static void a_recording_that_begins_small_grows_for_its_types(void **state)
{
    struct jfr_writer *second;
    uint32_t id;
    char small[80];
    snprintf(small, sizeof(small), "%s.small", path);
    struct jfr_writer_options options = {
        .slots = 1, .trace_bytes = 1 << 20, .waker = &waker, .begins_small = true};
    assert_int_equal(jfr_writer_open(&second, small, &options), 0);
    make_more();
    assert_int_equal(jfr_declare(second, rows, 3, ids), 0);
    for (int i = 0; i < MORE; i++)
        assert_int_equal(jfr_declare(second, &more[i], 1, &id), 0);
    assert_int_equal(jfr_writer_work(second), 0);
    jfr_writer_free(second);
    unlink(small);
}

static void a_recording_can_be_read_while_it_is_written(void **state)
{
    lost("early", (int64_t)now_ns(), 1);
    assert_int_equal(jfr_writer_flush(w), 0);
    struct recording *r;
    const char *why;
    struct rec_event v;
    assert_int_equal(recording_open(&r, path, &why), 0);
    lost("late", (int64_t)now_ns(), 2);
    assert_int_equal(recording_next(r, &v), 1);
    assert_int_equal(recording_next(r, &v), 1);
    assert_string_equal(rec_string(&v.object, "reason", ""), "late");
    assert_int_equal(recording_next(r, &v), 0);
    recording_close(r);
}

static void a_file_that_is_no_recording_is_reported(void **state)
{
    static const char head[68] = {'F', 'L', 'R', 0, 0, 2, 0, 1};
    struct recording *r;
    const char *why = NULL;
    assert_int_equal(recording_open_bytes(&r, "", 0, &why), -EBADMSG);
    assert_non_null(strstr(why, "empty"));
    assert_int_equal(recording_open_bytes(&r, "hello", 5, &why), -EBADMSG);
    assert_non_null(strstr(why, "not a flight recording"));
    assert_int_equal(recording_open_bytes(&r, head, sizeof(head), &why), -EBADMSG);
    assert_non_null(strstr(why, "description"));
    assert_int_equal(recording_open(&r, "/no/such/file", &why), -ENOENT);
    assert_non_null(why);
    lost("only", 0, 1);
    recording_close(reopen());
}

static void a_cut_recording_is_shorter_and_says_so(void **state)
{
    for (int i = 0; i < 300; i++)
        lost("event", (int64_t)now_ns(), i);
    recording_close(reopen());
    uint8_t *bytes;
    size_t len;
    assert_int_equal(file_read_path(path, 1 << 20, &bytes, &len), 0);
    int last = 300;
    /* Metadata and dictionary are in the first blocks, followed by the events. */
    for (size_t cut = len - 1; cut > len - 8192; cut -= 97) {
        struct recording *r;
        const char *why;
        assert_int_equal(recording_open_bytes(&r, bytes, cut, &why), 0);
        struct rec_event v;
        int n = 0;
        while (recording_next(r, &v) > 0)
            n++;
        struct rec_info info;
        recording_info(r, &info);
        assert_true(info.truncated);
        assert_non_null(info.why);
        assert_true(n <= last);
        last = n;
        recording_close(r);
    }
    assert_true(last < 300);
    free(bytes);
}

/*
 * A reason must be correct for one lost thing as well as for many: "1 call was lost: their buffer
 * was full" is wrong.
 */
static void reasons_are_right_for_one_thing(void **state)
{
    static const char *const plural[] = {" they ", " their ", " them", " themselves "};
    for (int i = 0; i < JFR_LOSSES; i++) {
        char reason[512];
        snprintf(reason, sizeof(reason), " %s ", jfr_loss_rows[i].reason);
        for (size_t k = 0; k < ARRAY_SIZE(plural); k++)
            if (strstr(reason, plural[k]))
                fail_msg("%s", reason);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reasons_are_right_for_one_thing),
        cmocka_unit_test_setup_teardown(every_kind_of_field_comes_back, open_writer, close_writer),
        cmocka_unit_test_setup_teardown(an_empty_ring_is_not_read_ahead, open_writer, close_writer),
        cmocka_unit_test_setup_teardown(a_large_file_is_removed_in_the_first_round, open_writer,
                                        close_writer),
        cmocka_unit_test_setup_teardown(threads_are_renamed_found_and_forgotten, open_writer,
                                        close_writer),
        cmocka_unit_test_setup_teardown(order_of_time_crosses_chunks, open_writer, close_writer),
        cmocka_unit_test_setup_teardown(what_does_not_fit_is_counted, open_writer, close_writer),
        cmocka_unit_test_setup_teardown(stacks_without_memory_keep_their_innermost_frames,
                                        open_writer, close_writer),
        cmocka_unit_test_setup_teardown(stacks_without_a_slot_keep_their_innermost_frames,
                                        open_writer_for_many_stacks, close_writer),
        cmocka_unit_test_setup_teardown(numbers_always_fit, open_writer, close_writer),
        cmocka_unit_test_setup_teardown(the_worker_is_woken_before_there_is_no_room, open_writer,
                                        close_writer),
        cmocka_unit_test_setup_teardown(rows_are_checked, open_writer, close_writer),
        cmocka_unit_test_setup_teardown(known_types_are_declared_for_nothing, open_writer,
                                        close_writer),
        cmocka_unit_test_setup_teardown(types_that_are_held_are_described_once, open_writer,
                                        close_writer),
        cmocka_unit_test_setup_teardown(
            a_recording_that_holds_types_is_described_when_they_are_released, open_writer,
            close_writer),
        cmocka_unit_test_setup_teardown(a_recording_that_begins_small_grows_for_its_types,
                                        open_writer, close_writer),
        cmocka_unit_test_setup_teardown(a_recording_can_be_read_while_it_is_written, open_writer,
                                        close_writer),
        cmocka_unit_test_setup_teardown(a_file_that_is_no_recording_is_reported, open_writer,
                                        close_writer),
        cmocka_unit_test_setup_teardown(a_cut_recording_is_shorter_and_says_so, open_writer,
                                        close_writer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
