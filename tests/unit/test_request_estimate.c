/* SPDX-License-Identifier: Apache-2.0 */
/* The errors of estimates are those that repeated samples of a known population have. */
#include "tests.h"

#include "analysis/request_estimate.h"

#include <math.h>
#include <stdlib.h>

static uint64_t state = 88172645463325252;

/* From 0 to less than 1 (xorshift). */
static double chance(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (double)(state >> 11) / 9007199254740992.0;
}

struct one {
    uint32_t stratum;
    double weight, value;
};

struct taken {
    VEC(struct one) list;
};

static void estimate_of(const struct taken *of, double *ret_mean, double *ret_error,
                        uint32_t *ret_n)
{
    struct estimate_sample s = {0};
    struct estimate e = {0};
    for (size_t i = 0; i < of->list.len; i++)
        assert_int_equal(estimate_sample_add(&s, of->list.data[i].stratum, of->list.data[i].weight),
                         0);
    for (size_t i = 0; i < of->list.len; i++)
        estimate_sample_spread(&s, of->list.data[i].stratum, of->list.data[i].weight);
    for (size_t i = 0; i < of->list.len; i++) {
        const struct one *o = &of->list.data[i];
        assert_int_equal(estimate_add(&e, &s, o->stratum, o->weight, o->value), 0);
    }
    *ret_mean = estimate_mean(&e, &s);
    *ret_error = estimate_error(&e, &s);
    *ret_n = e.n;
    estimate_sample_release(&s);
    estimate_release(&e);
}

static void take(struct taken *to, uint32_t stratum, double weight, double value)
{
    assert_int_equal(vec_push(&to->list, ((struct one){stratum, weight, value})), 0);
}

static void what_is_all_known_has_no_error(void **unused)
{
    struct taken all = {0};
    double mean, error;
    uint32_t n;
    for (int i = 0; i < 100; i++)
        take(&all, (uint32_t)i % 3, 1, i % 10 ? 0 : 1000 * i);
    estimate_of(&all, &mean, &error, &n);
    assert_true(fabs(mean - 4500) < 1e-6);
    assert_true(error == 0);
    assert_int_equal(n, 9);
    assert_false(estimate_is_uncertain(mean, error, n));
    assert_false(estimate_is_uncertain(mean, error, 1));
    vec_release(&all.list);
}

/* If one request stands for nearly all, this does not hide that nothing is known of the others. */
static void what_one_request_shows_is_uncertain(void **unused)
{
    for (int alone = 0; alone < 2; alone++) {
        struct taken some = {0};
        double mean, error;
        uint32_t n;
        take(&some, 0, 1200, 5000);
        for (int i = 0; i < 29; i++)
            take(&some, alone ? 1 : 0, 1, 0);
        estimate_of(&some, &mean, &error, &n);
        assert_true(mean > 4800 && error > mean);
        assert_true(estimate_is_uncertain(mean, error, n));
        vec_release(&some.list);
    }
    assert_true(estimate_is_uncertain(100, 1, 4));
    assert_false(estimate_is_uncertain(100, 99, 5));
    assert_true(estimate_is_uncertain(-100, 100, 5));
}

/*
 * Requests of two latencies: all are kept while the rate is low, and one in 20 while it is high.
 * Some of them have a cause, with different times. The weights of each latency are scaled to the
 * exact number of its requests, as requests_order.c does.
 */
static void nineteen_of_twenty_means_are_within_their_errors(void **unused)
{
    enum { TIMES = 1000, PARTS = 4 };

    static const struct {
        uint32_t stratum, n, one_of;
        double often, least, most;
    } parts[PARTS] = {{0, 200, 1, 0.9, 100, 200},
                      {0, 4000, 20, 0.2, 100, 300},
                      {1, 100, 1, 0.5, 2000, 4000},
                      {1, 1000, 20, 0.4, 1000, 4000}};

    double within = 0, squares = 0, errors = 0;
    for (int time = 0; time < TIMES; time++) {
        struct taken some = {0};
        double sum = 0, all[2] = {0}, weights[2] = {0}, mean, error;
        uint32_t n;
        for (int p = 0; p < PARTS; p++) {
            for (uint32_t i = 0; i < parts[p].n; i++) {
                double value = chance() < parts[p].often
                                   ? parts[p].least + (parts[p].most - parts[p].least) * chance()
                                   : 0;
                sum += value;
                all[parts[p].stratum]++;
                if (chance() * parts[p].one_of < 1) {
                    take(&some, parts[p].stratum, parts[p].one_of, value);
                    weights[parts[p].stratum] += parts[p].one_of;
                }
            }
        }
        for (size_t i = 0; i < some.list.len; i++) {
            uint32_t of = some.list.data[i].stratum;
            some.list.data[i].weight *= all[of] / weights[of];
        }
        estimate_of(&some, &mean, &error, &n);
        double off = mean - sum / (all[0] + all[1]);
        within += fabs(off) <= error;
        squares += off * off;
        errors += error;
        vec_release(&some.list);
    }
    double true_error = 1.96 * sqrt(squares / TIMES);
    print_message("within their errors: %.3f; error %.2f of %.2f\n", within / TIMES, errors / TIMES,
                  true_error);
    assert_true(within / TIMES >= 0.92 && within / TIMES <= 0.98);
    assert_true(fabs(errors / TIMES / true_error - 1) < 0.15);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_all_known_has_no_error),
        cmocka_unit_test(what_one_request_shows_is_uncertain),
        cmocka_unit_test(nineteen_of_twenty_means_are_within_their_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
