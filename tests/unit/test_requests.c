/* SPDX-License-Identifier: Apache-2.0 */
/* Requests of recordings that are made here, and how their latencies are divided. */
#include "tests.h"

#include "analysis/request_confirmed.h"
#include "analysis/request_groups.h"
#include "base/clock.h"
#include "base/latency.h"
#include "jfr/writer.h"
#include "timeline/load.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#define MS NS_PER_MS

static const struct jfr_type types[] = {
    {.name = "jvmscope.ThreadAnalysis",
     .kind = JFR_EVENT,
     .fields = JFR_FIELDS({"contanalysis", "", "boolean"})},
    {.name = "jvmscope.Unpark",
     .kind = JFR_EVENT,
     .has = JFR_DURATION | JFR_HAS_THREAD,
     .fields = JFR_FIELDS({"target", "", "long"})},
    {.name = "jvmscope.Preempted",
     .kind = JFR_EVENT,
     .has = JFR_DURATION | JFR_HAS_THREAD,
     .fields = JFR_FIELDS({"time", "", "long", JFR_NANOS})},
    {.name = "jvmscope.Request",
     .kind = JFR_EVENT,
     .has = JFR_DURATION | JFR_HAS_THREAD,
     .fields = JFR_FIELDS({"id", "", "long"}, {"name", "", "java.lang.String", JFR_CONTEXTUAL},
                          {"status", "", "int"}, {"kept", "", "java.lang.String"},
                          {"oneOf", "", "long"})},
    {.name = "jvmscope.RequestWork",
     .kind = JFR_EVENT,
     .has = JFR_DURATION | JFR_HAS_THREAD,
     .fields =
         JFR_FIELDS({"request", "", "long"}, {"queued", "", "long", JFR_NANOS},
                    {"submitter", "", "java.lang.Thread"}, {"handOver", "", "java.lang.String"})},
    {.name = "jvmscope.RequestTotals",
     .kind = JFR_EVENT,
     .fields = JFR_FIELDS({"name", "", "java.lang.String"}, {"count", "", "long"},
                          {"errors", "", "long"}, {"totalTime", "", "long", JFR_NANOS},
                          {"maxTime", "", "long", JFR_NANOS}, {"buckets", "", "java.lang.String"})},
    {.name = "jvmscope.Budget",
     .kind = JFR_EVENT,
     .fields = JFR_FIELDS({"what", "", "java.lang.String"}, {"oneOf", "", "int"})},
    {.name = "jvmscope.Counted",
     .kind = JFR_EVENT,
     .fields = JFR_FIELDS({"capture", "", "java.lang.String"})},
    {.name = "com.shop.Order",
     .label = "Order",
     .kind = JFR_EVENT,
     .has = JFR_DURATION | JFR_HAS_THREAD,
     .fields =
         JFR_FIELDS({"weight", "", "long"}, {"route", "", "java.lang.String", JFR_CONTEXTUAL})},
    {.name = "profiler.Span",
     .kind = JFR_EVENT,
     .has = JFR_DURATION | JFR_HAS_THREAD,
     .fields = JFR_FIELDS({"tag", "", "java.lang.String"})},
};

enum { ANALYSIS, UNPARK, PREEMPTED, REQUEST, WORK, TOTALS, BUDGET, COUNTED, ORDER, SPAN, TYPES };

enum { HTTP = 1, POOL, COMPACTOR };

static struct jfr_writer *writer;
static uint32_t ids[TYPES];
static uint64_t store, future, t0;
static char file[] = "test-requests-XXXXXX";

/* Method 1 to 3 are C.m1 and so on. */
static int name_method(void *context, uint64_t method, uint32_t type, struct jfr_method *ret)
{
    static char name[32];
    snprintf(name, sizeof(name), "m%llu", (unsigned long long)method);
    *ret = (struct jfr_method){.class.name = "C", .name = name, .descriptor = "()V"};
    return 0;
}

static struct jfr_event event;
static const char *kept;                  /* why the next requests are in the recording */
static int64_t one_of;                    /* and from how many they were chosen */
static const char *work_way = "executor"; /* how the next works reached their threads */

static void begin(uint32_t type, double ms)
{
    assert_true(jfr_begin(writer, type, 0, &event));
    jfr_put_time(&event, t0 + (uint64_t)(ms * (double)MS));
}

static void put_ms(double ms)
{
    jfr_put_long(&event, (int64_t)(ms * (double)MS));
}

static uint64_t trace(uint64_t method)
{
    struct jfr_frame frame = {.method = method, .bci = -1, .type = JFR_FRAME_JIT};
    return method ? jfr_trace(writer, &frame, 1, false) : 0;
}

/* The beginning of what has a duration, a thread and a stack. */
static void begin_wait(uint32_t type, uint64_t thread, double ms, double length, uint64_t method)
{
    uint64_t stack = trace(method);
    begin(type, ms);
    put_ms(length);
    jfr_put_long(&event, (int64_t)thread);
    jfr_put_long(&event, (int64_t)stack);
}

static void put_enter(uint64_t thread, double ms, double length, uint64_t owner)
{
    begin_wait(JFR_JAVA_MONITOR_ENTER, thread, ms, length, 1);
    jfr_put_long(&event, (int64_t)store);
    jfr_put_long(&event, (int64_t)owner);
    jfr_put_long(&event, 77);
    jfr_commit(&event);
}

static void put_sleep(uint64_t thread, double ms, double length, uint64_t method)
{
    begin_wait(JFR_THREAD_SLEEP, thread, ms, length, method);
    jfr_put_long(&event, (int64_t)length);
    jfr_commit(&event);
}

static void put_park(uint64_t thread, double ms, double length)
{
    begin_wait(JFR_THREAD_PARK, thread, ms, length, 1);
    jfr_put_long(&event, (int64_t)future);
    jfr_put_long(&event, INT64_MIN);
    jfr_put_long(&event, INT64_MIN);
    jfr_put_long(&event, 99);
    jfr_commit(&event);
}

static void put_unpark(uint64_t thread, double ms, uint64_t target)
{
    begin(ids[UNPARK], ms);
    put_ms(0);
    jfr_put_long(&event, (int64_t)thread);
    jfr_put_long(&event, (int64_t)target);
    jfr_commit(&event);
}

static void put_sample(uint64_t thread, double ms, uint64_t method)
{
    uint64_t stack = trace(method);
    begin(JFR_EXECUTION_SAMPLE, ms);
    jfr_put_long(&event, (int64_t)thread);
    jfr_put_long(&event, (int64_t)stack);
    jfr_put_long(&event, JFR_STATE_RUNNABLE);
    jfr_commit(&event);
}

static void put_budget(const char *what, double ms, int kept_of)
{
    begin(ids[BUDGET], ms);
    jfr_put_string(&event, what);
    jfr_put_int(&event, kept_of);
    jfr_commit(&event);
}

static void put_request(int64_t id, const char *name, uint64_t thread, double ms, double length,
                        int status)
{
    begin(ids[REQUEST], ms);
    put_ms(length);
    jfr_put_long(&event, (int64_t)thread);
    jfr_put_long(&event, id);
    jfr_put_string(&event, name);
    jfr_put_int(&event, status);
    jfr_put_string(&event, kept);
    jfr_put_long(&event, one_of);
    jfr_commit(&event);
}

static void put_work(int64_t request, uint64_t thread, double ms, double length, double queued,
                     uint64_t submitter)
{
    begin(ids[WORK], ms);
    put_ms(length);
    jfr_put_long(&event, (int64_t)thread);
    jfr_put_long(&event, request);
    put_ms(queued);
    jfr_put_long(&event, (int64_t)submitter);
    jfr_put_string(&event, work_way);
    jfr_commit(&event);
}

/* A request of one thread. */
static void put_simple(int64_t id, const char *name, double ms, double length)
{
    put_request(id, name, HTTP, ms, length, 200);
    put_work(id, HTTP, ms, length, 0, 0);
}

static void open_file(bool ours)
{
    static const char *const names[] = {NULL, "http-1", "pool-1", "compactor"};
    unlink(file); /* of an earlier call within the same test */
    memcpy(file + sizeof(file) - 7, "XXXXXX", 6);
    int fd = mkstemp(file);
    assert_true(fd >= 0);
    close(fd);
    struct jfr_writer_options options = {.resolver.method = name_method, .slots = 1};
    assert_int_equal(jfr_writer_open(&writer, file, &options), 0);
    assert_int_equal(jfr_declare(writer, types, TYPES, ids), 0);
    store = jfr_define_class(writer, &(struct jfr_class){.name = "Store"});
    future =
        jfr_define_class(writer, &(struct jfr_class){.name = "java/util/concurrent/FutureTask"});
    for (uint64_t i = HTTP; i <= COMPACTOR; i++)
        assert_int_equal(
            jfr_define_thread(writer, i,
                              &(struct jfr_thread){.java_name = names[i], .java_id = 10 + i}),
            0);
    t0 = now_ns();
    kept = "all";
    one_of = 1;
    if (!ours)
        return;
    begin(ids[ANALYSIS], 0);
    jfr_put_byte(&event, 1);
    jfr_commit(&event);
}

struct read {
    struct requests r;
    struct timeline *t;
    struct request_ledger *l;
    struct request_parts p;
};

static void read_file(struct read *f, const struct request_filter *filter)
{
    struct buf why = BUF(256);
    if (writer)
        assert_int_equal(jfr_writer_close(writer), 0);
    jfr_writer_free(writer);
    writer = NULL;
    *f = (struct read){0};
    assert_int_equal(requests_load(&f->r, file, filter, &why), 0);
    assert_int_equal(timeline_read(&f->t, file, SIZE_MAX, NULL, &why), 0);
    assert_int_equal(request_ledger_new(&f->l, &f->r, f->t), 0);
    buf_release(&why);
}

static void done(struct read *f)
{
    request_parts_release(&f->p);
    request_ledger_free(f->l);
    timeline_free(f->t);
    requests_release(&f->r);
}

/* Divides a request and checks that its parts are adjacent and add up to its latency. */
static void divide(struct read *f, uint64_t id)
{
    const struct request *q = requests_find(&f->r, id);
    assert_non_null(q);
    assert_int_equal(request_parts(f->l, q, &f->p), 0);
    uint64_t sum = 0;
    for (size_t i = 0; i < f->p.rows.len; i++) {
        const struct request_part *part = &f->p.rows.data[i];
        assert_true(part->start < part->end);
        if (i > 0)
            assert_int_equal(part->start, part[-1].end);
        sum += part->end - part->start;
    }
    assert_int_equal(sum, q->end_ns - q->start_ns);
}

static void takes(const struct read *f, enum request_cause cause, double ms)
{
    assert_int_equal(f->p.ns[cause], (uint64_t)(ms * (double)MS));
}

static void a_monitor_is_reported_with_its_owner(void **state)
{
    struct read f;
    open_file(true);
    put_sleep(COMPACTOR, 0.5, 120, 2);
    put_enter(HTTP, 1, 118, COMPACTOR);
    put_simple(1, "GET /lock", 0, 120);
    read_file(&f, &(struct request_filter){0});
    divide(&f, 1);
    takes(&f, CAUSE_CPU, 2);
    takes(&f, CAUSE_LOCK, 118);
    const struct request_part *lock = &f.p.rows.data[1];
    assert_string_equal(lock->object, "Store");
    struct thread_activities activities = {0};
    assert_int_equal(request_part_culprits(f.l, lock, &activities), 0);
    assert_int_equal(activities.rows.len, 1);
    assert_int_equal(activities.rows.data[0].ns, 118 * MS);
    assert_int_equal(activities.rows.data[0].kind, CAUSE_SLEEP);
    assert_string_equal(tl_thread_name(f.t, activities.rows.data[0].thread), "compactor");
    assert_string_equal(frames_ref_program(f.l, &activities.rows.data[0].frames), "C.m2");
    vec_release(&activities.rows);
    done(&f);
}

/*
 * The request's thread waits for a task of the request: the task's time counts, its time in the
 * queue, and the time until the thread ran again.
 */
static void a_task_that_was_waited_for_counts_with_its_queue(void **state)
{
    struct read f;
    open_file(true);
    put_park(HTTP, 5, 90);
    put_sleep(POOL, 40, 40, 3);
    put_unpark(POOL, 90, 10 + HTTP);
    put_request(1, "GET /task", HTTP, 0, 100, 200);
    put_work(1, HTTP, 0, 100, 0, 0);
    put_work(1, POOL, 35, 56, 30, HTTP);
    read_file(&f, &(struct request_filter){0});
    divide(&f, 1);
    takes(&f, CAUSE_CPU, 5 + 5 + 10 + 5);
    takes(&f, CAUSE_QUEUE, 30);
    takes(&f, CAUSE_SLEEP, 40);
    takes(&f, CAUSE_RUNNABLE, 5);
    takes(&f, CAUSE_PARK, 0);
    struct request_cpu cpu;
    assert_int_equal(request_cpu(f.l, requests_find(&f.r, 1), &cpu), 0);
    assert_int_equal(cpu.ns, (5 + 5 + 5 + 11) * MS);
    done(&f);
}

/*
 * A hundred requests of 20 ms, in which the thread seems to run all the time. Its CPU time is what
 * samples of its CPU clock show, as far as the difference is no chance, with the error of these
 * samples. What a thread does after the end of a request does not count.
 */
static void cpu_time_is_that_of_the_threads_clock(void **state)
{
    static const struct {
        double every_ms, cpu_ms, error_ms;
        bool set;
        int one_of; /* one sample in this many was kept, and is there as often */
    } cases[] = {{10, 20, 2.94, true, 1}, {11, 18.84, 3.45, true, 1}, {20, 10, 2.11, true, 1},
                 {5, 20, 1.41, true, 1},  {20, 20, 0, false, 1},      {200, 8, 6.11, true, 8}};

    for (size_t k = 0; k < ARRAY_SIZE(cases); k++) {
        struct read f;
        open_file(true);
        if (cases[k].set) {
            begin(JFR_ACTIVE_SETTING, 0);
            for (int field = 0; field < 3; field++) /* duration, thread, stack */
                jfr_put_long(&event, 0);
            jfr_put_long(&event, JFR_EXECUTION_SAMPLE);
            jfr_put_string(&event, "interval");
            jfr_put_string(&event, "10.0 ms");
            jfr_commit(&event);
        }
        put_sleep(HTTP, 0, 1, 1);
        for (int i = 0; i < 100; i++) {
            put_request(1 + i, "GET /", HTTP, 10 + 20 * i, 20, 200);
            put_work(1 + i, HTTP, 10 + 20 * i, i == 99 ? 500 : 20, 0, 0);
        }
        if (cases[k].one_of > 1)
            put_budget("CPU samples", 0.5, cases[k].one_of);
        for (double at = 13; at < 2010; at += cases[k].every_ms)
            for (int copy = 0; copy < cases[k].one_of; copy++)
                put_sample(HTTP, at, 1);
        put_sleep(HTTP, 2600, 1, 1);
        read_file(&f, &(struct request_filter){0});
        struct name_sums *sums;
        assert_int_equal(request_sums(f.l, &f.r, &sums), 0);
        assert_int_equal(sums[0].requests, 100);
        double cpu_ms = sums[0].cpu_ns / 100 / MS, error_ms = sums[0].cpu_error_ns / MS;
        assert_true(cpu_ms > cases[k].cpu_ms - 0.01 && cpu_ms < cases[k].cpu_ms + 0.01);
        assert_true(error_ms > cases[k].error_ms - 0.03 && error_ms < cases[k].error_ms + 0.03);
        /* One thread works for each request: the cause's error reaches to what is confirmed. */
        double own_ms = sums[0].ns[CAUSE_CPU] / 100 / MS,
               own_error_ms = sums[0].error_ns[CAUSE_CPU] / MS;
        assert_true(fabs(own_ms - 20) < 0.01);
        assert_true(fabs(own_error_ms - (20 - cpu_ms) - error_ms) < 0.01);
        double causes_ns = 0;
        for (int c = 0; c < REQUEST_CAUSES; c++)
            causes_ns += sums[0].ns[c];
        assert_true(fabs(causes_ns - sums[0].latency_ns) < 0.001 * MS);
        struct request_group g;
        struct group_options half = {.share = 0.5};
        assert_int_equal(request_group(f.l, &f.r, f.t, 0, &half, &g), 0);
        for (size_t i = 0; i < g.causes.len; i++) {
            const struct group_cause *c = &g.causes.data[i];
            assert_int_equal(c->cause, CAUSE_CPU);
            assert_true(fabs(c->slow_ns / MS - 20) < 0.5);
            assert_true(c->slow_error_ns / MS > 20 - cases[k].cpu_ms - 0.01);
            /* samples that lack nothing do not speak against the cause */
            assert_true(cases[k].cpu_ms < 20 || c->doubt_ns == 0);
        }
        request_group_release(&g);
        free(sums);
        done(&f);
    }
}

/*
 * 100 requests of 20 ms, of which 12 ms are a park, on a thread without samples. While short waits
 * are left out, the other 8 ms may be waits of any kind, and that is in the errors.
 */
static void short_waits_that_are_left_out_are_in_the_errors(void **state)
{
    static const struct {
        const char *what;
        double from_ms, to_ms, error_ms;
    } cases[] = {{"short waits", 5, 5000, 8},    {"times of short parks", 5, 5000, 8},
                 {"short waits", 1010, 5000, 4}, {"short waits", 5, 1009, 4},
                 {"short waits", 5, 6, 0},       {"wake-ups", 5, 5000, 0}};

    for (size_t k = 0; k < ARRAY_SIZE(cases); k++) {
        struct read f;
        struct name_sums *sums;
        open_file(true);
        put_sleep(HTTP, 0, 1, 1);
        for (int i = 0; i < 100; i++) {
            put_simple(1 + i, "GET /", 10 + 20 * i, 20);
            put_park(HTTP, 15 + 20 * i, 12);
        }
        put_sleep(HTTP, 2600, 1, 1);
        put_budget(cases[k].what, cases[k].to_ms, 1); /* events need not be in order */
        put_budget(cases[k].what, cases[k].from_ms, 4);
        read_file(&f, &(struct request_filter){0});
        assert_int_equal(request_sums(f.l, &f.r, &sums), 0);

        static const enum request_cause shown[] = {CAUSE_CPU, CAUSE_PARK, CAUSE_LOCK, CAUSE_IO};

        for (size_t c = 0; c < ARRAY_SIZE(shown); c++)
            assert_true(fabs(sums[0].error_ns[shown[c]] / MS - cases[k].error_ms) <
                        (cases[k].error_ms == 4 ? 0.1 : 0.01));
        assert_true(sums[0].error_ns[CAUSE_SLEEP] == 0);
        assert_true(fabs(sums[0].ns[CAUSE_PARK] / 100 / MS - 12) < 0.01);
        free(sums);
        done(&f);
    }
}

/*
 * Ten requests of 20 ms, of which 12 ms are a park, among ninety of 4 ms. While short waits are
 * left out, whatever else they took may be waits: that is in the errors of the slow and of the
 * typical ones and of the differences.
 */
static void slow_requests_have_the_errors_of_short_waits(void **state)
{
    for (int reduced = 0; reduced < 2; reduced++) {
        struct read f;
        struct request_group g;
        double error = reduced ? sqrt(8 * 8 + 4 * 4) : 0;
        open_file(true);
        put_sleep(HTTP, 0, 1, 1);
        for (int i = 0; i < 100; i++) {
            put_simple(1 + i, "GET /", 10 + 20 * i, i % 10 ? 4 : 20);
            if (i % 10 == 0)
                put_park(HTTP, 15 + 20 * i, 12);
        }
        put_sleep(HTTP, 2600, 1, 1);
        put_budget("short waits", 5, reduced ? 4 : 1);
        read_file(&f, &(struct request_filter){0});
        assert_int_equal(
            request_group(f.l, &f.r, f.t, 0, &(struct group_options){.share = 0.1}, &g), 0);
        assert_true(g.slow.len == 10 && g.typical.len > 0);
        assert_true(fabs(g.slow_hidden_ns / MS - 8 * reduced) < 0.01);
        assert_true(fabs(g.typical_hidden_ns / MS - 4 * reduced) < 0.01);
        assert_int_equal(g.causes.len, 2);
        assert_int_equal(g.causes.data[0].cause, CAUSE_PARK);
        for (size_t i = 0; i < g.causes.len; i++) {
            const struct group_cause *c = &g.causes.data[i];
            bool cpu = c->cause == CAUSE_CPU;
            assert_true(fabs(c->slow_ns / MS - (cpu ? 8 : 12)) < 0.01);
            assert_true(fabs(c->slow_error_ns / MS - 8 * reduced) < 0.01);
            assert_true(fabs(c->typical_error_ns / MS - 4 * reduced) < 0.01);
            assert_true(fabs(c->share - (cpu ? 0.25 : 0.75)) < 0.001);
            assert_true(fabs(c->share_error - error / 16) < 0.001);
            /* the parks differ by 12 ms, and the CPU time by 4 ms */
            assert_true(c->uncertain == (cpu && reduced) && c->hidden == c->uncertain);
        }
        request_group_release(&g);
        done(&f);
    }
}

/*
 * A run of 1.5 ms, which is too short to be examined, and one of 8.5 ms, in which a delay of less
 * than 200 us is left out. Other recorders examine no run.
 */
static void cpu_that_was_not_examined_is_stated(void **state)
{
    for (int ours = 0; ours < 2; ours++) {
        struct read f;
        open_file(ours);
        put_sleep(HTTP, 0, 10, 1);
        put_sleep(HTTP, 11.5, 10, 1);
        put_sleep(HTTP, 30, 1, 1);
        put_sample(HTTP, 10.5, 1);
        put_sample(HTTP, 25, 1);
        put_simple(1, "GET /", 10, 20);
        read_file(&f, &(struct request_filter){0});
        divide(&f, 1);
        takes(&f, CAUSE_CPU, 10);
        assert_int_equal(request_unexamined_ns(f.l, &f.p), ours ? 17 * MS / 10 : 10 * MS);
        done(&f);
    }
}

/*
 * What a server does after its handler is attributed by means of the thread that ends the
 * request.
 */
static void the_end_of_an_answer_is_of_the_thread_that_ends_it(void **state)
{
    struct read f;
    open_file(true);
    put_sleep(HTTP, 2, 3, 3);
    put_sleep(HTTP, 12, 5, 3);
    put_request(1, "GET /late", HTTP, 0, 20, 200);
    put_work(1, HTTP, 0, 10, 0, 0);
    read_file(&f, &(struct request_filter){0});
    divide(&f, 1);
    takes(&f, CAUSE_SLEEP, 3 + 5);
    takes(&f, CAUSE_CPU, 2 + 5 + 2 + 3);
    takes(&f, CAUSE_UNKNOWN, 0);
    done(&f);
}

/* A future wakes its waiter when the work that completes it is over. */
static void a_task_may_wake_who_waits_for_it_when_it_is_over(void **state)
{
    struct read f;
    open_file(true);
    put_sleep(POOL, 1, 1, 3);
    put_park(HTTP, 5, 50);
    put_unpark(POOL, 53, 10 + HTTP);
    put_request(1, "GET /future", HTTP, 0, 60, 200);
    put_work(1, HTTP, 0, 60, 0, 0);
    put_work(1, POOL, 10, 42, 5, HTTP);
    read_file(&f, &(struct request_filter){0});
    divide(&f, 1);
    takes(&f, CAUSE_PARK, 0);
    takes(&f, CAUSE_RUNNABLE, 2);
    takes(&f, CAUSE_QUEUE, 5);
    takes(&f, CAUSE_CPU, 43 + 5 + 5);
    done(&f);
}

/*
 * An asynchronous request: its first thread leaves, a task ends it, and nothing works for it in
 * between.
 */
static void what_nobody_worked_for_is_unknown(void **state)
{
    struct read f;
    open_file(true);
    put_sleep(POOL, 200, 1, 3);
    put_request(1, "GET /async", HTTP, 0, 100, 200);
    put_work(1, HTTP, 0, 10, 0, 0);
    put_work(1, POOL, 60, 40, 20, HTTP);
    read_file(&f, &(struct request_filter){0});
    divide(&f, 1);
    takes(&f, CAUSE_UNKNOWN, 30 + 10); /* nothing is known of http-1, which never waited */
    takes(&f, CAUSE_QUEUE, 20);
    takes(&f, CAUSE_CPU, 40);
    done(&f);
}

static void put_operation(const char *operation, double ms, double way, double length)
{
    uint64_t name = jfr_define_name(writer, JFR_POOL_VM_OPERATION, operation);
    begin(JFR_SAFEPOINT_BEGIN, ms);
    put_ms(way);
    jfr_put_long(&event, 0);
    jfr_put_long(&event, (int64_t)ms);
    jfr_put_int(&event, 3);
    jfr_put_int(&event, 0);
    jfr_commit(&event);
    begin(JFR_EXECUTE_VM_OPERATION, ms + way);
    put_ms(length);
    jfr_put_long(&event, 0);
    jfr_put_long(&event, (int64_t)name);
    jfr_put_byte(&event, 1);
    jfr_put_byte(&event, 0);
    jfr_put_long(&event, 0);
    jfr_put_long(&event, (int64_t)ms);
    jfr_commit(&event);
}

/*
 * No thread answers in time: the task that should do so is in a queue until after the end of the
 * request, behind a task that sleeps.
 */
static void a_task_that_came_too_late_was_waited_for_in_its_queue(void **state)
{
    struct read f;
    open_file(true);
    put_sleep(POOL, 1, 149, 3);
    put_sleep(HTTP, 101, 2, 2);
    put_request(1, "GET /timeout", HTTP, 0, 105, 503);
    put_work(1, HTTP, 0, 10, 0, 0);
    put_work(1, HTTP, 100, 5, 0, 0);
    put_work(1, POOL, 150, 1, 145, HTTP);
    read_file(&f, &(struct request_filter){0});
    divide(&f, 1);
    takes(&f, CAUSE_UNKNOWN, 0);
    takes(&f, CAUSE_SLEEP, 2);
    takes(&f, CAUSE_QUEUE, 90);
    struct thread_activities activities = {0};
    const struct request_part *queue = &f.p.rows.data[1];
    assert_int_equal(queue->cause, CAUSE_QUEUE);
    assert_int_equal(request_part_culprits(f.l, queue, &activities), 0);
    assert_int_equal(activities.rows.len, 1);
    assert_int_equal(activities.rows.data[0].kind, CAUSE_SLEEP);
    assert_string_equal(tl_thread_name(f.t, activities.rows.data[0].thread), "pool-1");
    vec_release(&activities.rows);
    done(&f);
}

/* A thread waits for a task until it gives up, cancels the task, and continues. */
static void a_task_that_was_cancelled_was_waited_for_in_its_queue(void **state)
{
    struct read f;
    open_file(true);
    put_park(HTTP, 10, 50);
    put_park(HTTP, 70, 20);
    put_request(1, "GET /cancelled", HTTP, 0, 100, 503);
    put_work(1, HTTP, 0, 100, 0, 0);
    work_way = "cancelled";
    put_work(1, HTTP, 61, 0, 52, HTTP);
    work_way = "executor";
    read_file(&f, &(struct request_filter){0});
    divide(&f, 1);
    takes(&f, CAUSE_QUEUE, 50);
    takes(&f, CAUSE_PARK, 20); /* after it had given up */
    takes(&f, CAUSE_CPU, 30);
    struct thread_activities activities = {0};
    for (size_t i = 0; i < f.p.rows.len; i++)
        if (f.p.rows.data[i].cause == CAUSE_QUEUE)
            assert_int_equal(request_part_culprits(f.l, &f.p.rows.data[i], &activities), 0);
    assert_int_equal(activities.rows.len, 0); /* the thread of the pool is unknown */
    struct request_cpu cpu;
    assert_int_equal(request_cpu(f.l, requests_find(&f.r, 1), &cpu), 0);
    assert_int_equal(cpu.ns, 30 * MS);
    done(&f);
}

/* The same when the request's thread has left, and another one cancels the task and answers. */
static void a_task_that_another_thread_cancelled_was_waited_for_too(void **state)
{
    struct read f;
    open_file(true);
    put_sleep(POOL, 80, 5, 3);
    put_request(1, "GET /cancelled", HTTP, 0, 90, 503);
    put_work(1, HTTP, 0, 10, 0, 0);
    work_way = "cancelled";
    put_work(1, POOL, 79, 0, 74, HTTP);
    work_way = "async";
    put_work(1, POOL, 79, 11, 0, 0);
    work_way = "executor";
    read_file(&f, &(struct request_filter){0});
    divide(&f, 1);
    takes(&f, CAUSE_QUEUE, 79 - 10);
    takes(&f, CAUSE_UNKNOWN, 10); /* nothing is known of http-1, which never waited */
    takes(&f, CAUSE_SLEEP, 5);
    done(&f);
}

static void a_run_is_divided_at_pauses_and_delays(void **state)
{
    struct read f;
    open_file(true);
    put_sleep(HTTP, 0.1, 0.1, 3);
    begin(JFR_GC_PHASE_PAUSE, 10);
    put_ms(15);
    jfr_put_long(&event, HTTP);
    jfr_put_long(&event, 1);
    jfr_put_string(&event, "GC Pause");
    jfr_commit(&event);
    begin(ids[PREEMPTED], 40);
    put_ms(20);
    jfr_put_long(&event, HTTP);
    put_ms(8);
    jfr_commit(&event);
    /* The time to a safepoint and its operation; a collection's operation is already its pause. */
    put_operation("ThreadDump", 62, 3, 4);
    put_operation("G1CollectForAllocation", 10, 0, 15);
    put_simple(1, "GET /gc", 1, 79);
    read_file(&f, &(struct request_filter){0});
    divide(&f, 1);
    takes(&f, CAUSE_GC, 15);
    takes(&f, CAUSE_RUNNABLE, 8);
    takes(&f, CAUSE_SAFEPOINT, 3 + 4);
    takes(&f, CAUSE_CPU, 79 - 15 - 8 - 7);
    bool named = false;
    for (size_t i = 0; i < f.p.rows.len; i++) {
        const struct request_part *part = &f.p.rows.data[i];
        named = named || (part->object && strcmp(part->object, "ThreadDump") == 0 &&
                          part->cause == CAUSE_SAFEPOINT);
    }
    assert_true(named);
    done(&f);
}

/*
 * The VM stops a thread during its request, and there is no sample of the request, but one of what
 * the thread does afterwards. That is not where it was stopped.
 */
static void what_follows_a_request_is_no_place_of_it(void **state)
{
    struct read f;
    for (int inside = 0; inside < 2; inside++) {
        open_file(true);
        put_sleep(HTTP, 0.1, 0.1, 3);
        put_operation("ThreadDump", 30, 40, 1);
        if (inside)
            put_sample(HTTP, 25, 1);
        put_sample(HTTP, 85, 2);
        put_simple(1, "GET /stopped", 20, 60);
        read_file(&f, &(struct request_filter){0});
        divide(&f, 1);
        takes(&f, CAUSE_SAFEPOINT, 40 + 1);
        takes(&f, CAUSE_CPU, 60 - 41);
        for (size_t i = 0; i < f.p.rows.len; i++) {
            struct thread_activities activities = {0};
            assert_int_equal(request_part_stacks(f.l, &f.p.rows.data[i], &activities), 0);
            assert_int_equal(activities.rows.len, 1);
            const struct frames_ref *frames = &activities.rows.data[0].frames;
            assert_int_equal(frames->n, inside);
            if (inside)
                assert_string_equal(frames_ref_method(f.l, frames, 0, NULL), "C.m1");
            vec_release(&activities.rows);
        }
        done(&f);
    }
}

/*
 * A thread holds a lock for which a request waits. What it does after the release is not what it
 * held the lock for: samples in the section show that, or the place where the thread itself had
 * waited for the lock, or nothing does.
 */
static void what_follows_a_section_is_no_place_of_it(void **state)
{
    enum { NOTHING, SAMPLE, WAIT, CASES };

    struct read f;
    for (int known = NOTHING; known < CASES; known++) {
        open_file(true);
        put_sleep(POOL, 0.1, 1, 3);
        if (known == WAIT)
            put_enter(POOL, 2, 3, COMPACTOR);
        if (known == SAMPLE)
            put_sample(POOL, 30, 1);
        put_sleep(HTTP, 0.1, 0.1, 3);
        put_enter(HTTP, 10, 50, POOL);
        put_sample(POOL, 65, 2);
        put_sleep(POOL, 70, 5, 3);
        put_simple(1, "GET /locked", 5, 60);
        read_file(&f, &(struct request_filter){0});
        divide(&f, 1);
        takes(&f, CAUSE_LOCK, 50);
        for (size_t i = 0; i < f.p.rows.len; i++) {
            struct thread_activities activities = {0};
            const struct request_part *p = &f.p.rows.data[i];
            assert_int_equal(request_part_culprits(f.l, p, &activities), 0);
            assert_int_equal(activities.rows.len, p->cause == CAUSE_LOCK);
            if (activities.rows.len) {
                const struct frames_ref *frames = &activities.rows.data[0].frames;
                assert_string_equal(tl_thread_name(f.t, activities.rows.data[0].thread), "pool-1");
                assert_int_equal(frames->n, known != NOTHING);
                if (frames->n)
                    assert_string_equal(frames_ref_method(f.l, frames, 0, NULL), "C.m1");
            }
            vec_release(&activities.rows);
        }
        done(&f);
    }
}

/*
 * A thread served ten requests in one run, and had no processor for 40 ms: where one of them took
 * as much longer than the others, it lost all of this, and otherwise they lost equal shares.
 */
static void a_delay_belongs_to_the_requests_that_took_longer(void **state)
{
    for (int even = 0; even < 2; even++) {
        open_file(true);
        double at = 10;
        for (int i = 0; i < 10; i++) {
            double length = even ? 7 : i == 4 ? 43 : 3;
            put_simple(i + 1, "GET /", at, length);
            at += length;
        }
        begin(ids[PREEMPTED], 10);
        put_ms(70);
        jfr_put_long(&event, HTTP);
        put_ms(40);
        jfr_commit(&event);
        put_sleep(HTTP, 80, 5, 1);
        struct read f;
        read_file(&f, &(struct request_filter){0});
        for (uint64_t id = 1; id <= 10; id++) {
            double lost = even ? 4 : id == 5 ? 40 : 0;
            divide(&f, id);
            takes(&f, CAUSE_RUNNABLE, lost);
            takes(&f, CAUSE_CPU, 3);
        }
        done(&f);
    }
}

/*
 * Other recorders leave out short waits, so without a sample it is not known that the thread ran.
 */
static void spans_and_contextual_events_are_requests(void **state)
{
    struct read f;
    open_file(false);
    put_sleep(HTTP, 10, 20, 3);
    put_sample(HTTP, 5, 1);
    begin(ids[SPAN], 0);
    put_ms(40);
    jfr_put_long(&event, HTTP);
    jfr_put_string(&event, "checkout");
    jfr_commit(&event);
    begin(ids[ORDER], 100);
    put_ms(10);
    jfr_put_long(&event, HTTP);
    jfr_put_long(&event, 5);
    jfr_put_string(&event, "/order/{id}");
    jfr_commit(&event);
    read_file(&f, &(struct request_filter){0});
    assert_int_equal(f.r.list.len, 2);
    assert_string_equal(request_name_of(&f.r, &f.r.list.data[0]), "checkout");
    assert_string_equal(request_name_of(&f.r, &f.r.list.data[1]), "/order/{id}");
    divide(&f, f.r.list.data[0].id);
    takes(&f, CAUSE_CPU, 10);
    takes(&f, CAUSE_SLEEP, 20);
    takes(&f, CAUSE_UNKNOWN, 10);
    done(&f);
}

/* 300 requests of 1 ms, and three that wait for a monitor as well. */
static void put_mixed(void)
{
    for (int i = 0; i < 300; i++)
        put_simple(1 + i, "GET /lock", i, 1);
    for (int i = 0; i < 3; i++) {
        put_sleep(COMPACTOR, 1000 + 200 * i, 101, 2);
        put_enter(HTTP, 1000.5 + 200 * i, 100, COMPACTOR);
        put_simple(1000 + i, "GET /lock", 1000 + 200 * i, 101);
    }
    put_request(2000, "GET /other", HTTP, 2000, 5, 500);
}

static void the_slow_ones_are_distinguished_from_the_typical_ones(void **state)
{
    struct read f;
    struct request_group g;
    open_file(true);
    put_mixed();
    read_file(&f, &(struct request_filter){0});
    assert_int_equal(f.r.names.len, 2);
    const struct request_name *n = &f.r.names.data[0];
    assert_string_equal(requests_text(&f.r, n->name), "GET /lock");
    assert_int_equal(n->all, 303);
    assert_int_equal(n->errors, 0);
    assert_int_equal(f.r.names.data[1].errors, 1);
    assert_int_equal(request_quantile(&f.r, n, 0.5), MS);
    assert_int_equal(request_quantile(&f.r, n, 0.99), MS);
    assert_int_equal(request_quantile(&f.r, n, 0.999), 101 * MS);
    assert_int_equal(request_group(f.l, &f.r, f.t, 0, &(struct group_options){.share = 0.009}, &g),
                     0);
    assert_int_equal(g.slow.len, 3);
    assert_int_equal(g.limit_ns, 101 * MS);
    assert_true(g.typical.len >= 150);
    const struct group_cause *c = &g.causes.data[0];
    assert_int_equal(c->cause, CAUSE_LOCK);
    assert_string_equal(c->object, "Store");
    assert_true(c->slow_ns == 100e6 && c->typical_ns == 0 && c->share > 0.999);
    assert_int_equal(c->largest, 3);
    assert_string_equal(c->culprit.thread, "compactor");
    assert_string_equal(c->culprit.method, "C.m2");
    assert_int_equal(c->culprit.kind, CAUSE_SLEEP);
    assert_true(c->culprit.ns == 100e6);
    assert_string_equal(c->own.method, "C.m1");
    request_group_release(&g);
    assert_int_equal(
        request_group(f.l, &f.r, f.t, 0, &(struct group_options){.over_ns = 101 * MS}, &g),
        -ENOENT);
    done(&f);
    read_file(&f, &(struct request_filter){.name = "*other"});
    assert_int_equal(f.r.list.len, 1);
    assert_int_equal(f.r.names.len, 1);
    done(&f);
    read_file(&f, &(struct request_filter){.thread = "nobody"});
    assert_int_equal(f.r.list.len, 0);
    done(&f);
}

/* If the recording has exact figures, these count, however few requests it kept. */
static void exact_totals_count(void **state)
{
    struct read f;
    char buckets[128];
    open_file(true);
    put_mixed();
    for (int i = 0; i < 2; i++) {
        snprintf(buckets, sizeof(buckets), "%u:%d %u:%d", latency_bucket(2 * MS), 9900 + i,
                 latency_bucket(200 * MS), 100);
        begin(ids[TOTALS], 100 + i);
        jfr_put_string(&event, "GET /lock");
        jfr_put_long(&event, 10000 + i);
        jfr_put_long(&event, 7);
        put_ms(39802);
        put_ms(201);
        jfr_put_string(&event, buckets);
        jfr_commit(&event);
    }
    read_file(&f, &(struct request_filter){0});
    const struct request_name *n = &f.r.names.data[0];
    assert_true(n->exact);
    assert_int_equal(n->all, 10001);
    assert_int_equal(n->errors, 7);
    uint64_t p50 = request_quantile(&f.r, n, 0.5), p999 = request_quantile(&f.r, n, 0.999);
    assert_in_range(p50, 2 * MS * 98 / 100, 2 * MS * 102 / 100);
    assert_in_range(p999, 200 * MS * 98 / 100, 200 * MS * 102 / 100);
    /* The filter counts from the recording's start, which is earlier than the first request. */
    uint64_t first_ns = (uint64_t)(f.r.list.data[0].start_ns - f.r.start_ns);
    done(&f);
    read_file(&f, &(struct request_filter){.to_ns = first_ns + 50 * MS});
    assert_false(f.r.names.data[0].exact);
    assert_in_range(f.r.names.data[0].all, 1, 100);
    done(&f);
}

/*
 * The recording has half of the requests of 1 ms, but only one in 90 of those of 3 ms. The means
 * are those of all requests nevertheless. Requests that were kept for their latency count where the
 * sample has too few.
 */
static void each_request_counts_for_those_of_its_latency(void **state)
{
    static const struct {
        int ms, n, all;
        const char *kept;
    } kinds[] = {{1, 500, 1000, "all"},
                 {3, 100, 9000, "sample"},
                 {50, 20, 40, "slow"},
                 {50, 2, 0, "sample"},
                 {900, 3, 3, "slow"}};
    struct read f;
    struct buf buckets = BUF(256);
    double ms = 0, ends = 0;
    int64_t id = 0, all = 0;
    open_file(true);
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        kept = kinds[i].kept;
        for (int k = 0; k < kinds[i].n; k++, ends += kinds[i].ms)
            put_simple(++id, "GET /rates", ends, kinds[i].ms);
        all += kinds[i].all;
        ms += kinds[i].ms * kinds[i].all;
        if (kinds[i].all)
            buf_printf(&buckets, "%s%u:%d", i ? " " : "",
                       latency_bucket((uint64_t)kinds[i].ms * MS), kinds[i].all);
    }
    begin(ids[TOTALS], ends);
    jfr_put_string(&event, "GET /rates");
    jfr_put_long(&event, all);
    jfr_put_long(&event, 0);
    put_ms(ms);
    put_ms(900);
    jfr_put_string(&event, buf_str(&buckets));
    jfr_commit(&event);
    read_file(&f, &(struct request_filter){0});
    struct name_sums *sums = NULL;
    assert_int_equal(request_sums(f.l, &f.r, &sums), 0);
    assert_int_equal(sums[0].requests, id);
    assert_true(fabs(sums[0].weight - (double)all) < 0.01);
    assert_true(fabs(sums[0].latency_ns / (ms * (double)MS) - 1) < 1e-6);
    struct request_group g;
    assert_int_equal(request_group(f.l, &f.r, f.t, 0, &(struct group_options){.share = 0.5}, &g),
                     0);
    assert_false(g.equal);
    double slow_ms = (9000 * 3 + 40 * 50 + 3 * 900) / 9043.0;
    assert_true(fabs(g.slow_mean_ns / (slow_ms * (double)MS) - 1) < 1e-6);
    request_group_release(&g);
    free(sums);
    buf_release(&buckets);
    done(&f);
}

/*
 * First few requests came, and the details of all were kept; later those of one in 20 with about
 * this latency. However many the latter are by chance, they stand for the later requests and the
 * former for themselves.
 */
static void a_request_counts_for_those_that_it_was_chosen_from(void **state)
{
    for (int chosen = 40; chosen <= 60; chosen += 10) {
        struct read f;
        char buckets[64];
        double few = 0, many = 0;
        open_file(true);
        for (int i = 0; i < 400 + chosen; i++) {
            one_of = i < 400 ? 1 : 20;
            put_simple(i + 1, "GET /phases", i * 2, 2);
        }
        snprintf(buckets, sizeof(buckets), "%u:1400", latency_bucket(2 * MS));
        begin(ids[TOTALS], 1000);
        jfr_put_string(&event, "GET /phases");
        jfr_put_long(&event, 1400);
        jfr_put_long(&event, 0);
        put_ms(2800);
        put_ms(2);
        jfr_put_string(&event, buckets);
        jfr_commit(&event);
        read_file(&f, &(struct request_filter){0});
        for (size_t i = 0; i < f.r.list.len; i++)
            *(f.r.list.data[i].id <= 400 ? &few : &many) += (double)f.r.list.data[i].weight;
        assert_true(fabs(few - 400) < 0.01);
        assert_true(fabs(many - 1000) < 0.01);
        done(&f);
    }
}

/*
 * The slow requests sleep, as the 99 that were kept show. One more waited for a monitor, and stands
 * for so many requests that its estimate alone would put the monitor first.
 */
static void a_cause_that_one_request_shows_does_not_come_first(void **state)
{
    struct read f;
    struct request_group g;
    char buckets[128];
    open_file(true);
    kept = "sample";
    for (int i = 0; i < 200; i++) {
        one_of = 100;
        put_simple(1 + i, "GET /rare", i, 1);
    }
    for (int i = 0; i < 100; i++) {
        bool rare = i == 50;
        one_of = rare ? 1700 : 40;
        if (rare) {
            put_sleep(COMPACTOR, 1000 + 4 * i, 4, 2);
            put_enter(HTTP, 1000.1 + 4 * i, 2.9, COMPACTOR);
        } else {
            put_sleep(HTTP, 1000.5 + 4 * i, 1, 3);
        }
        put_simple(1000 + i, "GET /rare", 1000 + 4 * i, 3);
    }
    snprintf(buckets, sizeof(buckets), "%u:20000 %u:9000", latency_bucket(MS),
             latency_bucket(3 * MS));
    begin(ids[TOTALS], 1500);
    jfr_put_string(&event, "GET /rare");
    jfr_put_long(&event, 29000);
    jfr_put_long(&event, 0);
    put_ms(47000);
    put_ms(3);
    jfr_put_string(&event, buckets);
    jfr_commit(&event);
    read_file(&f, &(struct request_filter){0});
    assert_int_equal(request_group(f.l, &f.r, f.t, 0, &(struct group_options){.share = 0.3}, &g),
                     0);
    assert_int_equal(g.slow.len, 100);
    const struct group_cause *first = &g.causes.data[0], *lock = NULL;
    for (size_t i = 0; i < g.causes.len; i++)
        lock = g.causes.data[i].cause == CAUSE_LOCK ? &g.causes.data[i] : lock;
    assert_int_equal(first->cause, CAUSE_SLEEP);
    assert_false(first->uncertain);
    assert_int_equal(first->slow_requests, 99);
    assert_true(first->share - first->share_error > 0);
    assert_non_null(lock);
    assert_true(lock->uncertain && lock->share > first->share && lock->share_error > lock->share);
    assert_int_equal(lock->slow_requests, 1);
    request_group_release(&g);
    struct name_sums *sums = NULL;
    assert_int_equal(request_sums(f.l, &f.r, &sums), 0);
    assert_int_equal(sums[0].with[CAUSE_LOCK], 1);
    assert_true(sums[0].error_ns[CAUSE_LOCK] * sums[0].weight > sums[0].ns[CAUSE_LOCK]);
    assert_true(sums[0].error_ns[CAUSE_SLEEP] * sums[0].weight < sums[0].ns[CAUSE_SLEEP] * 2);
    free(sums);
    done(&f);
}

/*
 * Totals that a killed program saved before its last requests ended are lower than the number of
 * requests in the recording.
 */
static void totals_older_than_the_requests_do_not_count(void **state)
{
    struct read f;
    char buckets[64];
    open_file(true);
    put_mixed();
    snprintf(buckets, sizeof(buckets), "%u:300", latency_bucket(MS));
    begin(ids[TOTALS], 100);
    jfr_put_string(&event, "GET /lock");
    jfr_put_long(&event, 300);
    jfr_put_long(&event, 0);
    put_ms(300);
    put_ms(1);
    jfr_put_string(&event, buckets);
    jfr_commit(&event);
    read_file(&f, &(struct request_filter){0});
    const struct request_name *n = &f.r.names.data[0];
    assert_false(n->exact);
    assert_int_equal(n->all, 303);
    assert_int_equal(n->count, 303);
    assert_int_equal(n->max_ns, 101 * MS);
    assert_int_equal(request_quantile(&f.r, n, 0.999), 101 * MS);
    done(&f);
}

/*
 * Counts are saved from time to time, so if the end of a recording is missing, they cover less time
 * than the rest of it.
 */
static void counts_are_of_the_time_until_they_were_saved(void **state)
{
    for (int ended = 0; ended < 2; ended++) {
        struct read f;
        open_file(true);
        put_mixed();
        for (int i = 1; i <= 2; i++) {
            begin(ids[COUNTED], 2 * i);
            jfr_put_string(&event, "requests");
            jfr_commit(&event);
            begin(ids[COUNTED], 2 * i + 1);
            jfr_put_string(&event, "alloc");
            jfr_commit(&event);
        }
        usleep(30000);
        struct jfr_writer *unended = ended ? NULL : writer;
        if (unended) {
            jfr_writer_flush(unended);
            writer = NULL;
        }
        read_file(&f, &(struct request_filter){0});
        int64_t left = f.r.end_ns - f.r.counted_ns;
        if (ended)
            assert_int_equal(left, 0);
        else
            assert_true(left >= 25 * (int64_t)MS);
        done(&f);
        if (unended) {
            assert_int_equal(jfr_writer_close(unended), 0);
            jfr_writer_free(unended);
        }
        unlink(file);
    }
}

/* Events that accompany every kind of count do not make a recording one of requests. */
static void counts_of_other_captures_are_no_requests(void **state)
{
    open_file(true);
    begin(ids[COUNTED], 2);
    jfr_put_string(&event, "times");
    jfr_commit(&event);
    assert_int_equal(jfr_writer_close(writer), 0);
    jfr_writer_free(writer);
    writer = NULL;
    assert_false(requests_any(file));
    assert_false(requests_any_or_contexts(file));
}

/*
 * The distribution of what is stated when threads that seemed to run for `seen` intervals between
 * samples had the CPU time of `used`, summed over the numbers of samples that can occur: the mean
 * lies within a quarter of the usual deviation from the truth (a third with three samples), the
 * truth within the error in 94 of 100 cases, no error is 0, and one sample more or less does not
 * make the result jump.
 */
static void cpu_time_is_stated_without_bias(void **state)
{
    static const double seen[] = {3, 20, 200, 2000}, used[] = {1, 0.97, 0.9, 0.8, 0.5};
    const double interval = 10 * MS;
    for (size_t i = 0; i < ARRAY_SIZE(seen); i++)
        for (size_t k = 0; k < ARRAY_SIZE(used); k++) {
            double all = seen[i] * interval, truth = seen[i] * used[k], usual = sqrt(seen[i]),
                   mean = 0, within = 0, last = -1;
            for (unsigned n = 0; n < 3 * seen[i] + 20; n++) {
                struct cpu_check check = {0};
                const struct request_cpu cpu = {
                    .ns = (uint64_t)all, .sampled_ns = (uint64_t)all, .samples = n};
                cpu_check_add(&check, &cpu, 1);
                struct cpu_excess excess = cpu_check_excess(&check, interval, 1);
                double chance = exp(n * log(truth) - truth - lgamma(n + 1.0));
                double value = (all - excess.ns) / interval, error = excess.error_ns / interval;
                mean += chance * value;
                within += fabs(value - truth) <= error + 1e-9 ? chance : 0;
                assert_true(error > 0 || value == 0);
                assert_true(last < 0 || fabs(value - last) < 3.01);
                last = value;
            }
            assert_true(fabs(mean - truth) < (seen[i] < 20 ? 0.35 : 0.25) * usual);
            assert_true(within > 0.94);
        }
}

static int remove_file(void **state)
{
    unlink(file);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(a_monitor_is_reported_with_its_owner, remove_file),
        cmocka_unit_test_teardown(a_task_that_was_waited_for_counts_with_its_queue, remove_file),
        cmocka_unit_test_teardown(the_end_of_an_answer_is_of_the_thread_that_ends_it, remove_file),
        cmocka_unit_test_teardown(a_task_may_wake_who_waits_for_it_when_it_is_over, remove_file),
        cmocka_unit_test_teardown(what_nobody_worked_for_is_unknown, remove_file),
        cmocka_unit_test_teardown(a_task_that_came_too_late_was_waited_for_in_its_queue,
                                  remove_file),
        cmocka_unit_test_teardown(a_task_that_was_cancelled_was_waited_for_in_its_queue,
                                  remove_file),
        cmocka_unit_test_teardown(a_task_that_another_thread_cancelled_was_waited_for_too,
                                  remove_file),
        cmocka_unit_test_teardown(cpu_time_is_that_of_the_threads_clock, remove_file),
        cmocka_unit_test(cpu_time_is_stated_without_bias),
        cmocka_unit_test_teardown(short_waits_that_are_left_out_are_in_the_errors, remove_file),
        cmocka_unit_test_teardown(slow_requests_have_the_errors_of_short_waits, remove_file),
        cmocka_unit_test_teardown(cpu_that_was_not_examined_is_stated, remove_file),
        cmocka_unit_test_teardown(a_run_is_divided_at_pauses_and_delays, remove_file),
        cmocka_unit_test_teardown(what_follows_a_request_is_no_place_of_it, remove_file),
        cmocka_unit_test_teardown(what_follows_a_section_is_no_place_of_it, remove_file),
        cmocka_unit_test_teardown(a_delay_belongs_to_the_requests_that_took_longer, remove_file),
        cmocka_unit_test_teardown(spans_and_contextual_events_are_requests, remove_file),
        cmocka_unit_test_teardown(the_slow_ones_are_distinguished_from_the_typical_ones,
                                  remove_file),
        cmocka_unit_test_teardown(exact_totals_count, remove_file),
        cmocka_unit_test_teardown(each_request_counts_for_those_of_its_latency, remove_file),
        cmocka_unit_test_teardown(a_request_counts_for_those_that_it_was_chosen_from, remove_file),
        cmocka_unit_test_teardown(a_cause_that_one_request_shows_does_not_come_first, remove_file),
        cmocka_unit_test_teardown(totals_older_than_the_requests_do_not_count, remove_file),
        cmocka_unit_test(counts_are_of_the_time_until_they_were_saved),
        cmocka_unit_test_teardown(counts_of_other_captures_are_no_requests, remove_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
