/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Since when a thread exists and which thread started it, from recordings and from events in order.
 */
#include "tests.h"

#include "analysis/monitor_stats.h"
#include "analysis/path_samples.h"
#include "base/clock.h"
#include "base/hash.h"
#include "jfr/time_part.h"
#include "jfr/writer.h"
#include "timeline/builder.h"
#include "timeline/load.h"

#include <errno.h>
#include <unistd.h>

static const struct jfr_type thread_object = {
    .name = "jvmscope.ThreadObject",
    .kind = JFR_EVENT,
    .has = JFR_HAS_THREAD,
    .fields =
        JFR_FIELDS({"address", "", "long", JFR_ADDRESS}, {"threadClass", "", "java.lang.Class"})};

static struct jfr_writer *writer;
static uint32_t thread_object_type;
static uint64_t class;

static int no_method(void *context, uint64_t method, uint32_t type, struct jfr_method *ret)
{
    return -ENOENT;
}

static void put_thread(bool start, uint64_t id, uint64_t time)
{
    struct jfr_event e;
    assert_true(jfr_begin(writer, start ? (uint32_t)JFR_THREAD_START : thread_object_type, 0, &e));
    jfr_put_time(&e, time);
    jfr_put_long(&e, (int64_t)id);
    jfr_put_long(&e, start ? 0 : (int64_t)id);
    jfr_put_long(&e, (int64_t)(start ? id : class));
    if (start)
        jfr_put_long(&e, 0);
    jfr_commit(&e);
}

static uint64_t start_of(const struct timeline *t, const char *name)
{
    uint32_t i = 0;
    while (i < t->n_threads && strcmp(tl_thread_name(t, i), name) != 0)
        i++;
    assert_true(i < t->n_threads);
    return t->threads[i].start_ns;
}

static int name_method(void *context, uint64_t method, uint32_t type, struct jfr_method *ret)
{
    static char name[32];
    snprintf(name, sizeof(name), "m%llu", (unsigned long long)method);
    *ret = (struct jfr_method){.class.name = "C", .name = name, .descriptor = "()V"};
    return 0;
}

enum { STACKS = 4000, DEPTHS = 9, METHODS = 200 };

static uint32_t depth_of(unsigned i)
{
    return 3 + (uint32_t)(hash_u64(i) % (DEPTHS - 2));
}

/*
 * Returns the method of frame k of stack i; the second and third frames distinguish it from all
 * others.
 */
static uint64_t method_at(unsigned i, unsigned k)
{
    return 1 + (k == 1 ? i : k == 2 ? i / METHODS : hash_u64(i * DEPTHS + k)) % METHODS;
}

static void put_park(unsigned i, uint64_t time, uint64_t ns)
{
    struct jfr_frame frames[DEPTHS];
    struct jfr_event e;
    uint32_t n = depth_of(i);
    for (unsigned k = 0; k < n; k++)
        frames[k] = (struct jfr_frame){.method = method_at(i, k), .type = JFR_FRAME_JIT};
    uint64_t trace = jfr_trace(writer, frames, n, false);
    assert_true(jfr_begin(writer, JFR_THREAD_PARK, 0, &e));
    jfr_put_time(&e, time);
    jfr_put_long(&e, (int64_t)ns);
    jfr_put_long(&e, 1);
    jfr_put_long(&e, (int64_t)trace);
    jfr_put_long(&e, (int64_t) class);
    jfr_put_long(&e, INT64_MIN);
    jfr_put_long(&e, INT64_MIN);
    jfr_put_long(&e, 1);
    jfr_commit(&e);
}

static void check_stack(const struct timeline *t, const struct tl_stack *s, unsigned i)
{
    char name[32];
    assert_int_equal(s->len, depth_of(i));
    for (unsigned k = 0; k < s->len; k++) {
        snprintf(name, sizeof(name), "C.m%llu", (unsigned long long)method_at(i, k));
        assert_string_equal(tl_string(t, t->frames[s->first + k].method), name);
    }
}

/* Thousands of stacks with similar ids, depths and top methods must not be confused. */
static void each_wait_has_its_own_stack(void **state)
{
    char name[] = "test-threads-load-XXXXXX";
    int fd = mkstemp(name);
    assert_true(fd >= 0);
    close(fd);
    struct jfr_writer_options options = {.resolver.method = name_method, .slots = 1};
    assert_int_equal(jfr_writer_open(&writer, name, &options), 0);
    class = jfr_define_class(writer, &(struct jfr_class){.name = "java/lang/Object"});
    assert_int_equal(
        jfr_define_thread(writer, 1, &(struct jfr_thread){.java_name = "main", .java_id = 1}), 0);
    uint64_t now = now_ns();
    for (unsigned i = 0; i < STACKS; i++)
        put_park(i, now + 2 * i * NS_PER_MS, NS_PER_MS);
    assert_int_equal(jfr_writer_close(writer), 0);
    jfr_writer_free(writer);
    struct timeline *t;
    struct buf why = BUF(256);
    unsigned parks = 0;
    assert_int_equal(timeline_read(&t, name, SIZE_MAX, NULL, &why), 0);
    for (uint32_t i = 0; i < t->n_nodes; i++)
        if (tl_node(t, i).kind == TL_PARK)
            check_stack(t, &t->stacks[tl_context_of(t, i)->stack], parks++);
    assert_int_equal(parks, STACKS);
    timeline_free(t);
    buf_release(&why);
    unlink(name);
}

/*
 * A file has the events of each processor together, so the last events of a thread that has moved
 * to another processor may be read first.
 */
static void a_thread_is_there_since_its_first_event_wherever_that_is_read(void **state)
{
    char name[] = "test-threads-load-XXXXXX";
    int fd = mkstemp(name);
    assert_true(fd >= 0);
    close(fd);
    struct jfr_writer_options options = {.resolver.method = no_method, .slots = 1};
    assert_int_equal(jfr_writer_open(&writer, name, &options), 0);
    assert_int_equal(jfr_declare(writer, &thread_object, 1, &thread_object_type), 0);
    class = jfr_define_class(writer, &(struct jfr_class){.name = "java/lang/Thread"});
    assert_int_equal(
        jfr_define_thread(writer, 1, &(struct jfr_thread){.java_name = "main", .java_id = 1}), 0);
    assert_int_equal(
        jfr_define_thread(writer, 2, &(struct jfr_thread){.java_name = "later", .java_id = 2}), 0);
    uint64_t now = now_ns();
    put_thread(true, 1, now + 5 * NS_PER_MS); /* the VM reports main when VMInit is over */
    put_thread(false, 1, now);
    put_thread(false, 2, now + 7 * NS_PER_MS + 3);
    put_thread(true, 2, now + 7 * NS_PER_MS);
    assert_int_equal(jfr_writer_close(writer), 0);
    jfr_writer_free(writer);
    for (int streamed = 0; streamed < 2; streamed++) {
        struct timeline *t;
        struct buf why = BUF(256);
        assert_int_equal(timeline_read(&t, name, streamed ? 0 : SIZE_MAX, NULL, &why), 0);
        assert_int_equal(start_of(t, "later"), start_of(t, "main") + 7 * NS_PER_MS);
        timeline_free(t);
        buf_release(&why);
    }
    unlink(name);
}

static void put_end(uint64_t id, uint64_t time)
{
    struct jfr_event e;
    assert_true(jfr_begin(writer, JFR_THREAD_END, 0, &e));
    jfr_put_time(&e, time);
    jfr_put_long(&e, (int64_t)id);
    jfr_put_long(&e, (int64_t)id);
    jfr_commit(&e);
}

static const struct tl_thread *named(const struct timeline *t, const char *name)
{
    for (uint32_t i = 0; i < t->n_threads; i++)
        if (strcmp(tl_thread_name(t, i), name) == 0)
            return &t->threads[i];
    return NULL;
}

/*
 * However large the recording is, a part of it ends where it was asked to end, and a thread that
 * was over before it is none of its threads.
 */
static void a_part_of_a_large_recording_ends_where_it_ends(void **state)
{
    /* A MiB, so that the file has several parts. */
    enum { PARKS = 40000, PARK_US = 10 };

    char name[] = "test-threads-load-XXXXXX";
    int fd = mkstemp(name);
    assert_true(fd >= 0);
    close(fd);
    struct jfr_writer_options options = {.resolver.method = name_method, .slots = 1};
    assert_int_equal(jfr_writer_open(&writer, name, &options), 0);
    assert_int_equal(jfr_declare(writer, &thread_object, 1, &thread_object_type), 0);
    class = jfr_define_class(writer, &(struct jfr_class){.name = "java/lang/Object"});
    static const char *const names[] = {"main", "over"};
    for (uint64_t i = 0; i < ARRAY_SIZE(names); i++)
        assert_int_equal(
            jfr_define_thread(writer, i + 1,
                              &(struct jfr_thread){.java_name = names[i], .java_id = i + 1}),
            0);
    uint64_t now = now_ns();
    put_thread(false, 1, now);
    put_thread(false, 2, now);
    put_end(2, now + 10 * NS_PER_MS);
    for (unsigned i = 0; i < PARKS; i++) {
        put_park(i % STACKS, now + i * PARK_US * 1000, PARK_US * 500);
        if (i % 1000 == 0)
            assert_int_equal(jfr_writer_work(writer), 0);
    }
    usleep(PARKS * PARK_US + 50000); /* the recording lasts that long */
    assert_int_equal(jfr_writer_close(writer), 0);
    jfr_writer_free(writer);
    for (int streamed = 0; streamed < 2; streamed++) {
        struct timeline *t;
        struct buf why = BUF(256);
        uint64_t whole;
        assert_int_equal(timeline_read_part(&t, name, streamed ? 0 : SIZE_MAX, 50 * NS_PER_MS,
                                            100 * NS_PER_MS, &whole, &why),
                         0);
        assert_int_equal(t->end_ns, 50 * NS_PER_MS);
        assert_int_equal(named(t, "main")->end_ns, 50 * NS_PER_MS);
        assert_null(named(t, "over"));
        assert_true(whole > 400 * NS_PER_MS);
        timeline_free(t);
        buf_release(&why);
    }
    unlink(name);
}

static void put_sleep(uint64_t time, uint64_t ns, uint64_t timeout_ns)
{
    struct jfr_event e;
    assert_true(jfr_begin(writer, JFR_THREAD_SLEEP, 0, &e));
    jfr_put_time(&e, time);
    jfr_put_long(&e, (int64_t)ns);
    jfr_put_long(&e, 1);
    jfr_put_long(&e, 0);
    jfr_put_long(&e, (int64_t)(timeout_ns / NS_PER_MS));
    jfr_commit(&e);
}

/*
 * Plain JFR measures with a counter whose frequency the VM estimates, so a long sleep that ran out
 * may seem shorter than its timeout by more than a millisecond.
 */
static void a_long_sleep_of_plain_jfr_that_ran_out_is_not_interrupted(void **state)
{
    static const struct {
        uint64_t ns, timeout_ns;
        enum tl_edge edge;
    } sleeps[] = {{60 * NS_PER_SECOND - 30 * NS_PER_MS, 60 * NS_PER_SECOND, TL_BY_TIMER},
                  {60 * NS_PER_SECOND - 90 * NS_PER_MS, 60 * NS_PER_SECOND, TL_BY_INTERRUPT},
                  {10 * NS_PER_MS - NS_PER_MS / 2, 10 * NS_PER_MS, TL_BY_TIMER},
                  {8 * NS_PER_MS, 10 * NS_PER_MS, TL_BY_INTERRUPT},
                  {NS_PER_MS / 4, NS_PER_MS, TL_BY_TIMER}};

    char name[] = "test-threads-load-XXXXXX";
    int fd = mkstemp(name);
    assert_true(fd >= 0);
    close(fd);
    struct jfr_writer_options options = {.resolver.method = no_method, .slots = 1};
    assert_int_equal(jfr_writer_open(&writer, name, &options), 0);
    assert_int_equal(
        jfr_define_thread(writer, 1, &(struct jfr_thread){.java_name = "main", .java_id = 1}), 0);
    uint64_t now = now_ns();
    for (size_t i = 0; i < ARRAY_SIZE(sleeps); i++) {
        put_sleep(now, sleeps[i].ns, sleeps[i].timeout_ns);
        now += sleeps[i].ns + NS_PER_MS;
    }
    assert_int_equal(jfr_writer_close(writer), 0);
    jfr_writer_free(writer);
    struct timeline *t;
    struct buf why = BUF(256);
    size_t ends = 0;
    assert_int_equal(timeline_read(&t, name, SIZE_MAX, NULL, &why), 0);
    for (uint32_t i = 0; i < t->n_nodes; i++)
        if (tl_node(t, i).kind == TL_RUN && tl_node(t, i).edge != TL_NO_EDGE)
            assert_int_equal(tl_node(t, i).edge, sleeps[ends++].edge);
    assert_int_equal(ends, ARRAY_SIZE(sleeps));
    timeline_free(t);
    buf_release(&why);
    unlink(name);
}

/*
 * Methods 1 and 2 belong to a class of the agent, 20 to its library, and the others to the program.
 */
static int name_method_or_probe(void *context, uint64_t method, uint32_t type,
                                struct jfr_method *ret)
{
    int r = name_method(context, method, type, ret);
    if (method <= 2)
        ret->class.name = "java/lang/JvmscopeContents";
    if (method == 20)
        ret->class.name = "libhprof.so";
    return r;
}

static void put_sample_of(uint64_t time, uint64_t trace)
{
    struct jfr_event e;
    assert_true(jfr_begin(writer, JFR_EXECUTION_SAMPLE, 0, &e));
    jfr_put_time(&e, time);
    jfr_put_long(&e, 1);
    jfr_put_long(&e, (int64_t)trace);
    jfr_put_long(&e, 0);
    jfr_commit(&e);
}

/*
 * Adds a sample at a time: n_frames methods of the agent, followed by `program` methods of the
 * program.
 */
static void put_sample(uint64_t time, uint32_t agents, uint32_t program)
{
    struct jfr_frame frames[4];
    for (uint32_t k = 0; k < agents + program; k++)
        frames[k] =
            (struct jfr_frame){.method = k < agents ? 1 + k : 10 + k, .type = JFR_FRAME_JIT};
    put_sample_of(time, jfr_trace(writer, frames, agents + program, false));
}

/* Samples in the agent's own classes, with no method of the program, show no method. */
static void samples_of_the_agents_classes_alone_are_no_methods_of_the_path(void **state)
{
    char name[] = "test-threads-load-XXXXXX";
    int fd = mkstemp(name);
    assert_true(fd >= 0);
    close(fd);
    struct jfr_writer_options options = {.resolver.method = name_method_or_probe, .slots = 1};
    assert_int_equal(jfr_writer_open(&writer, name, &options), 0);
    class = jfr_define_class(writer, &(struct jfr_class){.name = "java/lang/Object"});
    assert_int_equal(
        jfr_define_thread(writer, 1, &(struct jfr_thread){.java_name = "main", .java_id = 1}), 0);
    uint64_t now = now_ns();
    put_park(0, now, NS_PER_MS);
    put_sample(now + 10 * NS_PER_MS, 2, 2);
    put_sample(now + 11 * NS_PER_MS, 1, 0);
    put_sample(now + 12 * NS_PER_MS, 2, 0);
    put_park(1, now + 20 * NS_PER_MS, NS_PER_MS);
    /* The last list of methods would be behind the others. */
    put_sample(now + 30 * NS_PER_MS, 1, 0);
    /*
     * The VM's event runs a function of the agent's library, which runs Java code again below it.
     */
    uint64_t through = jfr_trace(writer,
                                 (struct jfr_frame[]){{.method = 12, .type = JFR_FRAME_JIT},
                                                      {.method = 20, .type = JFR_FRAME_JIT},
                                                      {.method = 13, .type = JFR_FRAME_JIT}},
                                 3, false);
    put_sample_of(now + 13 * NS_PER_MS, through);
    put_park(2, now + 40 * NS_PER_MS, NS_PER_MS);
    assert_int_equal(jfr_writer_close(writer), 0);
    jfr_writer_free(writer);
    struct timeline *t;
    struct buf why = BUF(256);
    struct critical_path path = {0};
    struct path_samples found = {0};
    assert_int_equal(timeline_read(&t, name, SIZE_MAX, NULL, &why), 0);
    assert_int_equal(critical_path(t, &PATH_OPTIONS, &path), 0);
    assert_int_equal(path_samples(t, name, false, &path, &found), 0);
    assert_int_equal(found.samples, 2);
    for (size_t i = 0; i < path.segments.len; i++)
        assert_true(!found.sampled[i] || strcmp(found.top[i], "C.m12") == 0);
    for (size_t i = 0; i < found.rows.len; i++) {
        assert_null(strstr(found.rows.data[i].name, "Jvmscope"));
        assert_null(strstr(found.rows.data[i].name, "libhprof"));
    }
    path_samples_release(&found);
    critical_path_release(&path);
    timeline_free(t);
    buf_release(&why);
    unlink(name);
}

enum { FIRST, CARRIER, VIRTUAL, WAITER, QUEUED, THREADS };

static struct timeline_builder *threads_and_latch(uint32_t *ret_latch)
{
    struct timeline_builder *b;
    assert_int_equal(timeline_builder_new(&b), 0);
    for (uint64_t i = 0; i < THREADS; i++)
        assert_int_equal(timeline_thread(b, 1 + i), i);
    static const char latch[] = "java.util.concurrent.CountDownLatch$Sync";
    int64_t string = timeline_string(b, latch, sizeof(latch) - 1),
            object = timeline_object(b, 7, (uint32_t)string);
    assert_true(string >= 0 && object >= 0);
    *ret_latch = (uint32_t)object;
    return b;
}

static void put(struct timeline_builder *b, uint64_t time, enum tl_event_kind kind, uint32_t thread,
                uint32_t object, uint32_t other, uint8_t flags)
{
    struct tl_event e = {.time = time,
                         .thread = thread,
                         .kind = (uint8_t)kind,
                         .object = object,
                         .stack = TL_NONE,
                         .other = other};
    e.flags = flags;
    assert_int_equal(timeline_add(b, &e), 0);
}

/*
 * A carrier that nobody unparked, and on which no virtual thread ended, has no waker; in particular
 * not the first node.
 */
static void a_carrier_that_nobody_woke_has_no_waker(void **state)
{
    uint32_t latch;
    struct timeline *t;
    struct timeline_builder *b = threads_and_latch(&latch);
    put(b, 10, TLE_THREAD_START, FIRST, TL_NONE, TL_NONE, 0);
    put(b, 10, TLE_THREAD_START, WAITER, TL_NONE, TL_NONE, 0);
    put(b, 10, TLE_THREAD_START, CARRIER, TL_NONE, TL_NONE, 0);
    put(b, 10, TLE_PARK, WAITER, latch, TL_NONE, 0);
    put(b, 20, TLE_THREAD_START, VIRTUAL, TL_NONE, CARRIER, TLE_VIRTUAL);
    put(b, 30, TLE_UNPARK, CARRIER, TL_NONE, WAITER, 0);
    put(b, 40, TLE_PARKED, WAITER, latch, TL_NONE, 0);
    assert_int_equal(timeline_finish(b, 50, &t), 0);
    timeline_builder_free(b);
    const struct tl_node begins = tl_node(t, t->threads[VIRTUAL].first),
                         ongoing = tl_node(t, t->threads[WAITER].last);
    assert_int_equal(begins.edge, TL_NO_EDGE);
    assert_int_equal(begins.waker, TL_NONE);
    assert_int_equal(t->threads[VIRTUAL].parent, TL_NONE);
    assert_int_equal(ongoing.edge, TL_BY_UNPARK);
    assert_int_equal(tl_node(t, ongoing.waker).thread, CARRIER);
    timeline_free(t);
}

/*
 * A virtual thread that begins on a carrier immediately after the end of another one was in the
 * queue, so it begins because of that end, whatever kept the other one on the carrier. This does
 * not hold if it begins later, or if some thread has woken the carrier since.
 */
static void a_virtual_thread_in_the_queue_waits_for_the_carrier(void **state)
{
    static const uint64_t ends = 1000000, gaps[] = {1000, 5000000};
    for (size_t i = 0; i < ARRAY_SIZE(gaps); i++) {
        uint32_t latch;
        struct timeline *t;
        struct timeline_builder *b = threads_and_latch(&latch);
        put(b, 10, TLE_THREAD_START, FIRST, TL_NONE, TL_NONE, 0);
        put(b, 20, TLE_CALL_START, FIRST, TL_NONE, CARRIER, 0);
        put(b, 30, TLE_THREAD_START, CARRIER, TL_NONE, FIRST, 0);
        put(b, 40, TLE_THREAD_START, VIRTUAL, TL_NONE, CARRIER, TLE_VIRTUAL);
        put(b, 50, TLE_SLEEP, VIRTUAL, TL_NONE, TL_NONE, 0); /* pinned */
        put(b, ends - 10, TLE_SLEPT, VIRTUAL, TL_NONE, TL_NONE, 0);
        put(b, ends, TLE_THREAD_END, VIRTUAL, TL_NONE, CARRIER, 0);
        put(b, ends + gaps[i], TLE_THREAD_START, QUEUED, TL_NONE, CARRIER, TLE_VIRTUAL);
        assert_int_equal(timeline_finish(b, ends + gaps[i] + 10, &t), 0);
        timeline_builder_free(b);
        const struct tl_node begins = tl_node(t, t->threads[QUEUED].first);
        assert_int_equal(begins.edge, TL_BY_START);
        assert_true(begins.flags & TL_INFERRED);
        const struct tl_node by = tl_node(t, begins.waker);
        assert_int_equal(by.thread, i == 0 ? CARRIER : FIRST);
        assert_int_equal(by.kind, i == 0 ? TL_RUN : TL_STARTS);
        if (i == 0)
            assert_int_equal(tl_node(t, by.waker).thread, VIRTUAL);
        assert_int_equal(t->threads[QUEUED].parent, FIRST);
        timeline_free(t);
    }
}

/* A wait that goes on when a part begins was not in progress when the recording began. */
static void a_wait_before_a_part_did_not_begin_before_the_recording(void **state)
{
    uint32_t latch;
    struct timeline *t;
    struct monitor_stats s;
    struct timeline_builder *b = threads_and_latch(&latch);
    put(b, 10, TLE_THREAD_START, FIRST, TL_NONE, TL_NONE, 0);
    put(b, 10, TLE_THREAD_START, WAITER, TL_NONE, TL_NONE, 0);
    put(b, 20, TLE_CONTENDED_ENTER, WAITER, latch, TL_NONE, 0);
    put(b, 90, TLE_CONTENDED_ENTERED, WAITER, latch, TL_NONE, 0);
    assert_int_equal(timeline_finish(b, 100, &t), 0);
    timeline_builder_free(b);
    assert_int_equal(monitor_stats(t, &(struct stats_filter){.from = 50}, &s), 0);
    assert_int_equal(s.owner_unknown, 1);
    assert_int_equal(s.owner_unknown_at_start, 0);
    monitor_stats_release(&s);
    timeline_free(t);
}

static const struct jfr_type waiting = {
    .name = "jvmscope.Waiting", .kind = JFR_EVENT, .has = JFR_HAS_THREAD};

/* Reading what came before a part keeps only the waits that were reported while they lasted. */
static void waits_before_a_part_that_nobody_asks_for_are_not_kept(void **state)
{
    enum { PARKS = 2000 };

    char name[] = "test-threads-load-XXXXXX";
    int fd = mkstemp(name);
    uint32_t type;
    assert_true(fd >= 0);
    close(fd);
    struct jfr_writer_options options = {.resolver.method = name_method, .slots = 1};
    assert_int_equal(jfr_writer_open(&writer, name, &options), 0);
    assert_int_equal(jfr_declare(writer, &waiting, 1, &type), 0);
    class = jfr_define_class(writer, &(struct jfr_class){.name = "java/lang/Object"});
    assert_int_equal(
        jfr_define_thread(writer, 1, &(struct jfr_thread){.java_name = "main", .java_id = 1}), 0);
    const uint64_t now = now_ns(), reported[] = {now + 4 * NS_PER_MS, now + 2 * PARKS * NS_PER_MS};
    for (unsigned i = 0; i < PARKS; i++)
        put_park(i, now + 2 * i * NS_PER_MS, NS_PER_MS);
    for (size_t i = 0; i < ARRAY_SIZE(reported); i++) {
        struct jfr_event e;
        assert_true(jfr_begin(writer, type, 0, &e));
        jfr_put_time(&e, reported[i]);
        jfr_put_long(&e, 1);
        jfr_commit(&e);
    }
    assert_int_equal(jfr_writer_close(writer), 0);
    jfr_writer_free(writer);
    static const struct rec_select waits[] = {{"jvmscope.Waiting", 0}, {0}};
    struct recording *recording;
    struct rec_info info;
    struct rec_event e;
    const char *why;
    assert_int_equal(recording_open(&recording, name, &why), 0);
    recording_info(recording, &info);
    struct time_part part = {.start_ns = info.start_ns, .from_ns = 10 * NS_PER_SECOND};
    assert_int_equal(time_part_read(&part, recording), 0);
    assert_int_equal(part.over.len, 2);
    assert_int_equal(recording_select(recording, waits), 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(recording_next(recording, &e), 1);
        assert_int_equal(time_part_is_over(&part, SCOPE_OPEN_WAIT, &e), i == 0);
    }
    time_part_release(&part);
    recording_close(recording);
    unlink(name);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_wait_before_a_part_did_not_begin_before_the_recording),
        cmocka_unit_test(waits_before_a_part_that_nobody_asks_for_are_not_kept),
        cmocka_unit_test(a_thread_is_there_since_its_first_event_wherever_that_is_read),
        cmocka_unit_test(a_part_of_a_large_recording_ends_where_it_ends),
        cmocka_unit_test(a_long_sleep_of_plain_jfr_that_ran_out_is_not_interrupted),
        cmocka_unit_test(each_wait_has_its_own_stack),
        cmocka_unit_test(samples_of_the_agents_classes_alone_are_no_methods_of_the_path),
        cmocka_unit_test(a_carrier_that_nobody_woke_has_no_waker),
        cmocka_unit_test(a_virtual_thread_in_the_queue_waits_for_the_carrier),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
