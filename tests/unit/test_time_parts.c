/* SPDX-License-Identifier: Apache-2.0 */
/* What the whole of a recording says of a part of its time is what that part says alone. */
#include "tests.h"

#include "analysis/critical_path.h"
#include "analysis/monitor_stats.h"
#include "timeline/builder.h"

#include <string.h>

enum { FIRST, SECOND, WAITER, OTHER_WAITER, THREADS };

static void put(struct timeline_builder *b, uint64_t time, enum tl_event_kind kind, uint32_t thread,
                uint32_t stack, uint32_t other)
{
    const struct tl_event e = {.time = time,
                               .thread = thread,
                               .kind = (uint8_t)kind,
                               .object = TL_NONE,
                               .stack = stack,
                               .other = other};
    assert_int_equal(timeline_add(b, &e), 0);
}

/* Returns a stack of Shop.await, called by a method. */
static uint32_t stack_below(struct timeline_builder *b, const char *caller)
{
    static const char top[] = "Shop.await";
    int64_t of_top = timeline_string(b, top, sizeof(top) - 1),
            of_caller = timeline_string(b, caller, strlen(caller));
    assert_true(of_top >= 0 && of_caller >= 0);
    const struct tl_frame frames[] = {{(uint32_t)of_top, 7}, {(uint32_t)of_caller, 9}};
    int64_t stack = timeline_stack(b, frames, 2);
    assert_true(stack >= 0);
    return (uint32_t)stack;
}

/*
 * Times are counted from the first event, at 10. Two threads park in one method, each called by
 * another one, when a part begins. One of them was unparked before, and is again in the part before
 * it runs.
 */
static struct timeline *two_parks(uint32_t *ret_stack)
{
    struct timeline_builder *b;
    struct timeline *t;
    assert_int_equal(timeline_builder_new(&b), 0);
    for (uint32_t i = 0; i < THREADS; i++) {
        assert_int_equal(timeline_thread(b, 1 + i), i);
        put(b, 10, TLE_THREAD_START, i, TL_NONE, TL_NONE);
    }
    *ret_stack = stack_below(b, "Shop.first");
    put(b, 20, TLE_PARK, WAITER, *ret_stack, TL_NONE);
    put(b, 20, TLE_PARK, OTHER_WAITER, stack_below(b, "Shop.second"), TL_NONE);
    put(b, 30, TLE_UNPARK, FIRST, TL_NONE, WAITER);
    put(b, 60, TLE_UNPARK, SECOND, TL_NONE, WAITER);
    put(b, 70, TLE_UNPARK, FIRST, TL_NONE, OTHER_WAITER);
    put(b, 80, TLE_PARKED, OTHER_WAITER, TL_NONE, TL_NONE);
    put(b, 90, TLE_PARKED, WAITER, TL_NONE, TL_NONE);
    assert_int_equal(timeline_finish(b, 100, &t), 0);
    timeline_builder_free(b);
    return t;
}

/* Who has the part alone knows the second call, and not the first one. */
static void a_call_before_a_part_gives_way_to_one_in_it(void **state)
{
    static const struct {
        uint64_t from;
        uint32_t caused, began_by;
    } parts[] = {{0, 2, FIRST}, {45, 2, SECOND}, {55, 1, WAITER}};

    uint32_t stack;
    struct timeline *t = two_parks(&stack);
    for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
        struct monitor_stats s;
        struct critical_path path;
        assert_int_equal(monitor_stats(t, &(struct stats_filter){.from = parts[i].from}, &s), 0);
        assert_int_equal(s.intervals, 2);
        assert_int_equal(s.caused, parts[i].caused);
        monitor_stats_release(&s);
        const struct path_options o = {.from = parts[i].from, .to = 85, .end_thread = WAITER};
        assert_int_equal(critical_path(t, &o, &path), 0);
        assert_true(path.segments.len > 0);
        assert_int_equal(path.segments.data[0].thread, parts[i].began_by);
        critical_path_release(&path);
    }
    timeline_free(t);
}

/* Not that of the wait which ends first: in the part alone, they may both go on. */
static void the_stack_of_a_row_is_that_of_the_first_thread_that_waits(void **state)
{
    uint32_t stack;
    struct timeline *t = two_parks(&stack);
    for (uint64_t to = 65; to <= 85; to += 10) {
        struct monitor_stats s;
        assert_int_equal(monitor_stats(t, &(struct stats_filter){.from = 45, .to = to}, &s), 0);
        assert_int_equal(s.sites.len, 1);
        assert_int_equal(s.sites.data[0].times.count, 2);
        assert_int_equal(s.sites.data[0].stack, stack);
        monitor_stats_release(&s);
    }
    timeline_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_call_before_a_part_gives_way_to_one_in_it),
        cmocka_unit_test(the_stack_of_a_row_is_that_of_the_first_thread_that_waits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
