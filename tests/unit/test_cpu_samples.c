/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recordings of JDK 25 in which both of the VM's samplers ran: each reader counts the samples by
 * CPU clocks alone, in whichever order the file has them and whatever a filter selects.
 */
#include "tests.h"

#include "analysis/path_samples.h"
#include "analysis/request_groups.h"
#include "base/clock.h"
#include "jfr/writer.h"
#include "profile/load.h"
#include "timeline/load.h"

#include <stdlib.h>
#include <unistd.h>

enum { CPU_TIME, ORDER, TYPES };

static const struct jfr_type types[TYPES] = {
    [CPU_TIME] = {.name = "jdk.CPUTimeSample",
                  .kind = JFR_EVENT,
                  .fields = JFR_FIELDS(
                      {"stackTrace", "", "jdk.types.StackTrace"},
                      {"eventThread", "", "java.lang.Thread"}, {"failed", "", "boolean"},
                      {"samplingPeriod", "", "long", JFR_NANOS}, {"biased", "", "boolean"})},
    [ORDER] = {.name = "com.shop.Order",
               .kind = JFR_EVENT,
               .has = JFR_DURATION | JFR_HAS_THREAD,
               .fields = JFR_FIELDS({"route", "", "java.lang.String", JFR_CONTEXTUAL})},
};

static struct made {
    struct jfr_writer *w;
    uint32_t ids[TYPES];
    uint64_t t0, trace, object;
    char name[32];
} made;

static int name_method(void *context, uint64_t method, uint32_t type, struct jfr_method *ret)
{
    *ret = (struct jfr_method){.class.name = "C", .name = "run", .descriptor = "()V"};
    return 0;
}

static void put_execution(double ms)
{
    struct jfr_event e;
    assert_true(jfr_begin(made.w, JFR_EXECUTION_SAMPLE, 0, &e));
    jfr_put_time(&e, made.t0 + (uint64_t)(ms * NS_PER_MS));
    jfr_put_long(&e, 1);
    jfr_put_long(&e, (int64_t)made.trace);
    jfr_put_long(&e, 0);
    jfr_commit(&e);
}

static void put_cpu_time(double ms)
{
    struct jfr_event e;
    assert_true(jfr_begin(made.w, made.ids[CPU_TIME], 0, &e));
    jfr_put_time(&e, made.t0 + (uint64_t)(ms * NS_PER_MS));
    jfr_put_long(&e, (int64_t)made.trace);
    jfr_put_long(&e, 1);
    jfr_put_byte(&e, 0);
    jfr_put_long(&e, 20 * NS_PER_MS);
    jfr_put_byte(&e, 0);
    jfr_commit(&e);
}

static void put_park(double ms)
{
    struct jfr_event e;
    assert_true(jfr_begin(made.w, JFR_THREAD_PARK, 0, &e));
    jfr_put_time(&e, made.t0 + (uint64_t)(ms * NS_PER_MS));
    jfr_put_long(&e, NS_PER_MS);
    jfr_put_long(&e, 1);
    jfr_put_long(&e, (int64_t)made.trace);
    jfr_put_long(&e, (int64_t)made.object);
    jfr_put_long(&e, INT64_MIN);
    jfr_put_long(&e, INT64_MIN);
    jfr_put_long(&e, 1);
    jfr_commit(&e);
}

static void put_order(double ms, double length)
{
    struct jfr_event e;
    assert_true(jfr_begin(made.w, made.ids[ORDER], 0, &e));
    jfr_put_time(&e, made.t0 + (uint64_t)(ms * NS_PER_MS));
    jfr_put_long(&e, (int64_t)(length * NS_PER_MS));
    jfr_put_long(&e, 1);
    jfr_put_string(&e, "/order");
    jfr_commit(&e);
}

/*
 * A request of 2 s. By its samples it ran for 1 s: 50 samples of 20 ms. An execution sample is
 * taken every 10 ms, also where the thread did not run.
 */
enum { TIMED = 50, ORDER_MS = 2000 };

static void put_executions(void)
{
    for (int i = 0; i < ORDER_MS / 10; i++)
        put_execution(5 + 10 * i);
}

static void make(bool execution_first)
{
    struct jfr_writer_options options = {.resolver.method = name_method, .slots = 1};
    struct jfr_frame frame = {.method = 1, .type = JFR_FRAME_JIT};
    strcpy(made.name, "/tmp/test-cpu-samples-XXXXXX");
    int fd = mkstemp(made.name);
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(jfr_writer_open(&made.w, made.name, &options), 0);
    assert_int_equal(jfr_declare(made.w, types, TYPES, made.ids), 0);
    made.object = jfr_define_class(made.w, &(struct jfr_class){.name = "java/lang/Object"});
    assert_int_equal(
        jfr_define_thread(made.w, 1, &(struct jfr_thread){.java_name = "main", .java_id = 1}), 0);
    made.t0 = now_ns() + NS_PER_MS;
    made.trace = jfr_trace(made.w, &frame, 1, false);
    put_park(0);
    if (execution_first)
        put_executions();
    for (int i = 0; i < TIMED; i++)
        put_cpu_time(13 + 20 * i);
    if (!execution_first)
        put_executions();
    put_order(1, ORDER_MS - 1);
    put_park(ORDER_MS);
    assert_int_equal(jfr_writer_close(made.w), 0);
    jfr_writer_free(made.w);
}

static uint64_t samples_between(double from_ms, double to_ms, enum load_detail detail)
{
    struct buf why = BUF(1000);
    struct profile *p;
    struct profile_view view;
    struct profile_filter f = {.from_ns = (uint64_t)(from_ms * NS_PER_MS),
                               .to_ns = (uint64_t)(to_ms * NS_PER_MS)};
    assert_int_equal(profile_load(&p, made.name, detail, &f, &why, NULL, NULL), 0);
    assert_int_equal(profile_view_init(&view, p, PROFILE_CPU, &f), 0);
    uint64_t weight = view.weight;
    profile_view_release(&view);
    profile_free(p);
    buf_release(&why);
    return weight;
}

static void a_profile_has_the_samples_by_cpu_clocks(void **state)
{
    for (int first = 0; first < 2; first++) {
        make(first);
        assert_int_equal(samples_between(0, 0, LOAD_SAMPLES), TIMED);
        assert_int_equal(samples_between(0, 0, LOAD_SUMS), TIMED);
        assert_int_equal(samples_between(1200, 1900, LOAD_SAMPLES), 0);
        assert_int_equal(samples_between(1200, 1900, LOAD_SUMS), 0);
        unlink(made.name);
    }
}

static void the_cpu_time_of_a_request_is_that_of_its_cpu_clock(void **state)
{
    for (int first = 0; first < 2; first++) {
        struct buf why = BUF(1000);
        struct requests r;
        struct timeline *t;
        struct request_ledger *l;
        struct name_sums *sums;
        make(first);
        assert_int_equal(requests_load(&r, made.name, &(struct request_filter){0}, &why), 0);
        assert_int_equal(timeline_read(&t, made.name, SIZE_MAX, NULL, &why), 0);
        assert_int_equal(request_ledger_new(&l, &r, t), 0);
        assert_int_equal(r.samples.len, TIMED);
        assert_int_equal(request_sums(l, &r, &sums), 0);
        assert_true(sums[0].cpu_ns > 999.0 * NS_PER_MS && sums[0].cpu_ns < 1001.0 * NS_PER_MS);
        free(sums);
        request_ledger_free(l);
        timeline_free(t);
        requests_release(&r);
        buf_release(&why);
        unlink(made.name);
    }
}

static void the_critical_path_has_the_samples_by_cpu_clocks(void **state)
{
    for (int first = 0; first < 2; first++) {
        struct buf why = BUF(1000);
        struct timeline *t;
        struct critical_path path = {0};
        struct path_samples found = {0};
        make(first);
        assert_int_equal(timeline_read(&t, made.name, SIZE_MAX, NULL, &why), 0);
        assert_int_equal(critical_path(t, &PATH_OPTIONS, &path), 0);
        assert_int_equal(path_samples(t, made.name, false, &path, &found), 0);
        assert_int_equal(found.samples, TIMED);
        path_samples_release(&found);
        critical_path_release(&path);
        timeline_free(t);
        buf_release(&why);
        unlink(made.name);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_profile_has_the_samples_by_cpu_clocks),
        cmocka_unit_test(the_cpu_time_of_a_request_is_that_of_its_cpu_clock),
        cmocka_unit_test(the_critical_path_has_the_samples_by_cpu_clocks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
