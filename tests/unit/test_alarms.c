/* SPDX-License-Identifier: Apache-2.0 */
/* Stops of the VM that are reported more than once, and the triggers' rounds between the reports.
 */
#include "tests.h"

#include "agent/capture/alarms/alarms.h"
#include "base/buf.h"
#include "base/clock.h"

#include <stdlib.h>

enum { START_MS = 1000 };

static struct trigger *trigger_on(const char *condition)
{
    struct buf why = BUF(1024);
    struct trigger *t = calloc(1, sizeof(*t));
    assert_non_null(t);
    assert_int_equal(trigger_condition_parse(&t->condition, condition, &why), 0);
    buf_release(&why);
    atomic_store(&t->active, true);
    assert_null(trigger_put(0, t));
    return t;
}

static void forget(struct trigger *t)
{
    free(t->condition);
    free(t);
}

/* Returns what a round takes, in ms. */
static uint64_t round_of(struct trigger *t)
{
    return alarm_take_longest(&t->condition->tests[0], &t->tests[0]) / NS_PER_MS;
}

static void counters(uint64_t from_ms, uint64_t to_ms, uint64_t ms)
{
    alarm_stop(MEASURE_SAFEPOINT, from_ms * NS_PER_MS, to_ms * NS_PER_MS, ms * NS_PER_MS);
}

static void line(uint64_t from_ms, uint64_t ms)
{
    alarm_safepoint("G1Collect", from_ms * NS_PER_MS, ms * NS_PER_MS);
}

/*
 * The counters lack the time to reach a safepoint, and have only the mean of several. The record of
 * the VM's activity has the whole stop, and may come a round later.
 */
static void a_stop_that_first_seemed_short_still_counts(void **state)
{
    struct trigger *t = trigger_on("safepoint > 100ms");
    counters(START_MS - 100, START_MS + 310, 5);
    assert_int_equal(round_of(t), 5);
    line(START_MS, 305);
    assert_int_equal(round_of(t), 305);
    assert_int_equal(round_of(t), 0);
    triggers_clear(forget);
}

static void a_stop_that_a_round_has_acted_on_counts_once(void **state)
{
    struct trigger *t = trigger_on("safepoint > 100ms");
    counters(START_MS - 100, START_MS + 310, 300);
    assert_int_equal(round_of(t), 300);
    line(START_MS, 305);
    assert_int_equal(round_of(t), 0);
    line(START_MS + 400, 120);
    assert_int_equal(round_of(t), 120);
    triggers_clear(forget);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stop_that_first_seemed_short_still_counts),
        cmocka_unit_test(a_stop_that_a_round_has_acted_on_counts_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
