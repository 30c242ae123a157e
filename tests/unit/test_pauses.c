/* SPDX-License-Identifier: Apache-2.0 */
#include "tests.h"

#include "agent/instrument/pauses.h"
#include "base/clock.h"

/* Returns the pauses of a round that changes classes in batches of 128, each with such a stop. */
static uint64_t round_of(struct pauses *p, unsigned classes, uint64_t stop_ns)
{
    uint64_t budget = pauses_of_round(p, classes), whole = budget, all = 0;
    for (uint64_t batches = (classes + 127) / 128; batches > 1; batches--)
        all += pauses_next(&budget, stop_ns, stop_ns, batches - 1);
    p->used_ns += whole - budget;
    return all;
}

/* The user waits for the pauses of all captures together, however many there are. */
static void rounds_share_their_pauses(void **state)
{
    const uint64_t stops[] = {10 * NS_PER_MS, 40 * NS_PER_MS, 300 * NS_PER_MS};
    for (size_t i = 0; i < ARRAY_SIZE(stops); i++)
        for (unsigned rounds = 1; rounds <= 6; rounds++) {
            struct pauses p = {.rounds = rounds};
            uint64_t all = 0;
            for (unsigned k = 0; k < rounds; k++)
                all += round_of(&p, 700, stops[i]);
            assert_true(all <= 700 * 30 * NS_PER_MS);
        }
}

/* More rounds than were expected get what is left, and no pause is less than twice its stop. */
static void a_pause_is_at_least_twice_its_stop(void **state)
{
    struct pauses p = {.rounds = 1};
    assert_true(round_of(&p, 700, 40 * NS_PER_MS) > 15 * NS_PER_SECOND);
    assert_true(round_of(&p, 700, 40 * NS_PER_MS) < 7 * NS_PER_SECOND);
    uint64_t none = 0;
    assert_int_equal(pauses_next(&none, 10 * NS_PER_MS, 10 * NS_PER_MS, 1), 20 * NS_PER_MS);
    assert_int_equal(pauses_next(&none, 300 * NS_PER_MS, 300 * NS_PER_MS, 1), 80 * NS_PER_MS);
}

/* One of a hundred requests may wait for more than 4 ms: those of 6 ms in 1.2 s. */
static void a_round_has_the_pauses_that_requests_need(void **state)
{
    uint64_t budget = pauses_of_round(&(struct pauses){.rounds = 1}, 10000);
    assert_int_equal(budget, 60 * NS_PER_SECOND);
    assert_int_equal(pauses_next(&budget, 10 * NS_PER_MS, 10 * NS_PER_MS, 10), 1200 * NS_PER_MS);
    assert_int_equal(budget, 60 * NS_PER_SECOND - 1200 * NS_PER_MS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rounds_share_their_pauses),
        cmocka_unit_test(a_pause_is_at_least_twice_its_stop),
        cmocka_unit_test(a_round_has_the_pauses_that_requests_need),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
