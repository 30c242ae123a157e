/* SPDX-License-Identifier: Apache-2.0 */
/* Weights that are tallied by the ids of a chunk add up to the same sums as the samples. */
#include "tests.h"

#include "profile/load_tally.h"

enum { ID = 7, OTHER = 9, NODE = 3 };

static void add(struct tally *t, struct sums *s, uint32_t id, uint64_t weight)
{
    const struct profile_sample sample = {.weight = weight, .node = NODE + id};
    const struct sum_thread thread = {.counts = true};
    if (tally_add(t, id, weight))
        return;
    assert_int_equal(sums_add(s, &sample, &thread, &(struct profile_spread){1, 1}), 0);
    assert_int_equal(tally_know(t, id, NODE + id), 0);
}

static uint64_t weight_of(struct sums *s, uint32_t row)
{
    assert_int_equal(sums_settle(s), 0);
    assert_true(row < s->rows.rows.len);
    return s->rows.rows.data[row].weight;
}

static void weights_add_up(void **state)
{
    const struct sum_options how = {.detail = LOAD_SUMS};
    struct sums s = {.how = &how};
    struct tally t = {0};
    for (uint64_t chunk = 1; chunk <= 2; chunk++) {
        assert_int_equal(tally_begin(&t, &s, NULL, NULL), 0);
        assert_false(tally_add(&t, ID, 1)); /* ids of another chunk are not known */
        for (uint64_t i = 1; i <= 10; i++) {
            add(&t, &s, ID, i);
            add(&t, &s, OTHER, 0);
        }
        assert_int_equal(tally_end(&t, &s), 0);
        assert_int_equal(weight_of(&s, 0), chunk * 55);
        assert_int_equal(weight_of(&s, 1), 0);
    }
    tally_release(&t);
    sums_release(&s);
}

/* The sum of all weights is modulo 2^64, whichever of them are tallied. */
static void large_weights_wrap(void **state)
{
    const struct sum_options how = {.detail = LOAD_SUMS};
    struct sums s = {.how = &how};
    struct tally t = {0};
    add(&t, &s, ID, 5);
    add(&t, &s, ID, UINT64_MAX);
    add(&t, &s, ID, UINT64_MAX - 1);
    add(&t, &s, ID, 1);
    assert_int_equal(tally_end(&t, &s), 0);
    assert_int_equal(weight_of(&s, 0), 5 - 1 - 2 + 1);
    tally_release(&t);
    sums_release(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(weights_add_up),
                                       cmocka_unit_test(large_weights_wrap)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
