/* SPDX-License-Identifier: Apache-2.0 */
/* Holds that were recorded, beside what contention tells. */
#include "tests.h"

#include "analysis/monitor_stats.h"
#include "base/clock.h"
#include "model/timeline_builder.h"

static void put(struct timeline_builder *b, uint64_t ms, uint32_t thread, enum tl_event_kind kind, uint32_t owner)
{
    struct tl_event e = {
        .time = (1 + ms) * NS_PER_MS, .thread = thread, .kind = (uint8_t)kind, .object = 0, .stack = TL_NONE, .other = owner};
    assert_int_equal(timeline_add(b, &e), 0);
}

/* A hold that was recorded is that, though contention tells another beginning of it before. */
static void holds_that_were_recorded_are_exact(void **state)
{
    struct timeline_builder *b;
    struct timeline *t;
    struct holds h;
    struct hold_table table;
    assert_int_equal(timeline_builder_new(&b), 0);
    for (uint64_t thread = 0; thread < 2; thread++)
        assert_int_equal(timeline_thread(b, 10 + thread), thread);
    assert_int_equal(timeline_object(b, 77, (uint32_t)timeline_string(b, "Lock", 4)), 0);
    timeline_origin(b, NS_PER_MS, 0);
    put(b, 0, 1, TLE_CONTENDED_ENTER, 0); /* thread 0 has it, and has not said so yet */
    put(b, 1, 0, TLE_ACQUIRE, TL_NONE);
    put(b, 4, 0, TLE_RELEASE, TL_NONE);
    put(b, 4, 1, TLE_CONTENDED_ENTERED, TL_NONE);
    put(b, 4, 1, TLE_ACQUIRE, TL_NONE);
    put(b, 9, 1, TLE_RELEASE, TL_NONE);
    assert_int_equal(timeline_finish(b, 10 * NS_PER_MS, &t), 0);
    timeline_builder_free(b);
    assert_int_equal(holds_collect(t, NULL, NULL, &h), 0);
    assert_int_equal(h.list.len, 2);
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(h.list.data[i].flags, HOLD_EXACT);
    assert_int_equal(t->nodes[h.list.data[h.first[1]].acquire].kind, TL_RUN); /* where the wait for it ended */
    assert_int_equal(hold_stats(t, &h, &(struct stats_filter){0}, &table), 0);
    assert_int_equal(table.rows.len, 1);
    assert_int_equal(table.rows.data[0].count, 2);
    assert_int_equal(table.rows.data[0].total_ns, 8 * NS_PER_MS);
    assert_int_equal(table.rows.data[0].min_ns, 3 * NS_PER_MS);
    assert_int_equal(table.rows.data[0].max_ns, 5 * NS_PER_MS);
    assert_int_equal(table.rows.data[0].objects, 1);
    assert_int_equal(table.rows.data[0].threads, 2);
    vec_release(&table.rows);
    holds_release(&h);
    timeline_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(holds_that_were_recorded_are_exact),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
