/* SPDX-License-Identifier: Apache-2.0 */
/* Times from readings of simulated threads, and their 95 % intervals, compared with the truth. */
#include "agent/capture/times/readings.h"
#include "profile/call_interval.h"
#include "tests.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MS   1000000.0
#define TICK (4 * MS)

enum { METHODS = 4, RUNS = 400 };

/* A kind of threads: each calls method `early` until `turn`, then `late`. */
struct kind {
    int threads;
    double ns, turn; /* each uses between half and one and a half times as much CPU time as ns */
    int early, late;
    double run; /* the mean length of its runs, between which it waits; 0: it never waits */
};

struct outcome {
    double truth[METHODS], found[METHODS]; /* sums over all runs */
    int within[METHODS], stated[METHODS];  /* runs whose interval has the truth; with an interval */
};

static double uniform(void)
{
    return ((double)rand() + 0.5) / ((double)RAND_MAX + 1);
}

/*
 * Lives through a thread and adds what it does to the truth. Returns its CPU time at the end. A
 * tick reads the clock if the timer is due, which it is at the start and each millisecond from then
 * on.
 */
static uint64_t live(struct times_account *a, struct times_clock *c, const struct kind *k,
                     struct times_reading *readings, double *truth)
{
    double ns = k->ns * (0.5 + uniform()), turn = k->turn * ns / k->ns, begun = 5 * MS;
    times_clock_begin(c, (uint64_t)begun, 3);
    double due = 0;
    uint64_t switches = 3;
    for (double from = 0, to; from < ns; from = to, switches++) {
        to = k->run > 0 ? MIN(from - log(uniform()) * k->run, ns) : ns;
        for (double at = from + uniform() * TICK; at < to; at += TICK)
            if (at >= due) {
                times_clock_read(c, &readings[at < turn ? k->early : k->late],
                                 (uint64_t)(begun + at), switches);
                due = (floor(at / MS) + 1) * MS;
            }
    }
    truth[k->early] += turn;
    truth[k->late] += ns - turn;
    return (uint64_t)(begun + ns);
}

static struct call_sum sum_of(const struct times_reading *r)
{
    return (struct call_sum){.readings = r->samples,
                             .read_ns = (double)(r->cpu_ns + r->granted_ns),
                             .squares = (double)(r->squares + r->granted_squares) * 1e6};
}

/* Simulates a program, and checks that all its CPU time is somewhere. */
static void run(const struct kind *kinds, int n, struct outcome *o)
{
    struct times_account a = {0};
    struct times_reading readings[METHODS] = {0};
    double truth[METHODS] = {0}, all = 0, found = 0;
    times_account_begin(&a, (uint64_t)TICK);
    for (int k = 0; k < n; k++)
        for (int i = 0; i < kinds[k].threads; i++) {
            struct times_clock c;
            uint64_t end = live(&a, &c, &kinds[k], readings, truth);
            assert_int_equal(times_account_end(&a, &c, end, true), 0);
        }
    double unread = (double)times_account_settle(&a, 0, 0);
    for (int m = 0; m < METHODS; m++) {
        struct call_sum s = sum_of(&readings[m]);
        struct call_interval in = call_interval(&s, unread);
        all += truth[m];
        found += s.read_ns;
        o->truth[m] += truth[m];
        o->found[m] += s.read_ns;
        if (s.readings < 10)
            continue;
        assert_true(in.raw_low <= s.read_ns && s.read_ns <= in.raw_high);
        o->stated[m]++;
        o->within[m] += in.raw_low <= truth[m] && truth[m] <= in.raw_high;
    }
    /* A nanosecond is rounded off at each beginning and end. */
    assert_float_equal(found + unread, all, 10000);
    times_account_begin(&a, 0);
}

/* Runs programs of these threads, and checks the mean of each time and the stated intervals. */
static void check(const struct kind *kinds, int n, double bias)
{
    struct outcome o = {0};
    for (int i = 0; i < RUNS; i++)
        run(kinds, n, &o);
    for (int m = 0; m < METHODS; m++) {
        if (!o.truth[m])
            continue;
        assert_true(fabs(o.found[m] / o.truth[m] - 1) < bias);
        assert_true(o.stated[m] > RUNS / 2);
        assert_true(o.within[m] >= 0.93 * o.stated[m]);
    }
}

static void short_threads_have_their_time(void **state)
{
    const struct kind kinds[] = {{1500, 1.5 * MS, 0.3 * MS, 0, 1, 0}};
    check(kinds, 1, 0.02);
}

static void short_and_long_threads_are_compared_rightly(void **state)
{
    const struct kind kinds[] = {{500, 1.5 * MS, 0.5 * MS, 0, 1, 0},
                                 {5, 300 * MS, 100 * MS, 2, 3, 0},
                                 {100, 6 * MS, 2 * MS, 0, 3, 0}};
    check(kinds, 3, 0.02);
}

static void threads_that_run_in_bursts_have_their_time(void **state)
{
    const struct kind kinds[] = {{400, 1.5 * MS, 0.5 * MS, 0, 1, 0.2 * MS},
                                 {40, 100 * MS, 40 * MS, 2, 3, 0.2 * MS}};
    check(kinds, 2, 0.02);
}

static void threads_of_all_kinds_are_compared_rightly(void **state)
{
    const struct kind kinds[] = {{400, 1.5 * MS, 0.5 * MS, 0, 1, 0},
                                 {60, 20 * MS, 5 * MS, 1, 2, 2 * MS},
                                 {40, 10 * MS, 4 * MS, 3, 2, 0.5 * MS},
                                 {1, 500 * MS, 200 * MS, 2, 3, 0}};
    check(kinds, 4, 0.03);
}

/* Whatever the ticks find: the CPU time that has no reading is reported, and is no method's. */
static void time_without_a_reading_is_reported(void **state)
{
    struct times_account a = {0};
    struct times_reading reading = {0};
    struct times_clock c;
    times_account_begin(&a, (uint64_t)TICK);
    for (int i = 0; i < 100; i++) {
        times_clock_begin(&c, 7, 0);
        assert_int_equal(times_account_end(&a, &c, 7 + 1000000, true), 0);
    }
    assert_int_equal(times_account_settle(&a, 0, 0), 100000000);
    /* One reading must not stand for all of them, but for two ticks at most. */
    times_clock_begin(&c, 7, 0);
    times_clock_read(&c, &reading, 7 + 1000000, 0);
    assert_int_equal(times_account_end(&a, &c, 7 + 1000000, true), 0);
    assert_int_equal(times_account_settle(&a, 0, 0), 94000000);
    assert_int_equal(reading.cpu_ns + reading.granted_ns, 7000000);
    assert_int_equal(reading.squares + reading.granted_squares, 49000000);
    times_account_begin(&a, 0);
}

static void threads_without_a_timer_and_lost_readings_are_reported(void **state)
{
    struct times_account a = {0};
    struct times_reading reading = {0};
    struct times_clock c;
    times_account_begin(&a, (uint64_t)TICK);
    times_clock_begin(&c, 0, 0);
    assert_int_equal(times_account_end(&a, &c, 5000, false), 0);
    times_clock_begin(&c, 0, 0);
    times_clock_read(&c, NULL, 3000, 0);
    times_clock_read(&c, &reading, 4000, 0);
    assert_int_equal(times_account_end(&a, &c, 4000, true), 0);
    assert_int_equal(times_account_settle(&a, 0, 0), 8000);
    assert_int_equal(reading.cpu_ns + reading.granted_ns, 1000);
    times_account_begin(&a, 0);
}

/* A report while threads run: what they have used since their last readings counts as well. */
static void threads_that_go_on_are_settled_once(void **state)
{
    struct times_account a = {0};
    struct times_reading reading = {0};
    struct times_clock c;
    times_account_begin(&a, (uint64_t)TICK);
    times_clock_begin(&c, 0, 0);
    times_clock_read(&c, &reading, 1000000, 0);
    assert_int_equal(times_account_first(&a, &c), 0);
    assert_int_equal(times_account_settle(&a, times_clock_rest(&c, 3000000), 0), 0);
    assert_int_equal(reading.cpu_ns + reading.granted_ns, 3000000);
    assert_int_equal(times_account_first(&a, &c), 0);
    assert_int_equal(times_account_settle(&a, times_clock_rest(&c, 4000000), 0), 1000000);
    assert_int_equal(times_account_end(&a, &c, 4500000, true), 0);
    assert_int_equal(times_account_settle(&a, 0, 0), 1500000);
    assert_int_equal(reading.cpu_ns + reading.granted_ns, 3000000);
    times_account_begin(&a, 0);
}

static int seed(void **state)
{
    srand(1);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(short_threads_have_their_time),
        cmocka_unit_test(short_and_long_threads_are_compared_rightly),
        cmocka_unit_test(threads_that_run_in_bursts_have_their_time),
        cmocka_unit_test(threads_of_all_kinds_are_compared_rightly),
        cmocka_unit_test(time_without_a_reading_is_reported),
        cmocka_unit_test(threads_without_a_timer_and_lost_readings_are_reported),
        cmocka_unit_test(threads_that_go_on_are_settled_once),
    };
    return cmocka_run_group_tests(tests, seed, NULL);
}
