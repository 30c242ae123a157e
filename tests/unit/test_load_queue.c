/* SPDX-License-Identifier: Apache-2.0 */
/* Samples that a thread of its own merges give the same rows as those that are merged at once. */
#include "tests.h"

#include "profile/load_queue.h"

enum { NODES = 5, THREADS = 3, STEP_NS = 10, CELL_NS = 4096, HALF = 2 };

static struct profile_sample sample_of(size_t i)
{
    return (struct profile_sample){.time_ns = i * STEP_NS,
                                   .weight = 1 + i % 7,
                                   .thread = (uint32_t)(i % THREADS),
                                   .node = (uint32_t)(i * i % NODES)};
}

/* Adds n samples, every second one to either sums, and compares both with those added directly. */
static void check(enum load_detail detail, size_t n)
{
    const struct sum_options how = {.detail = detail,
                                    .cell_ns = detail == LOAD_CELLS ? CELL_NS : 0};
    const struct profile_spread spread = {1, 1};
    struct sums queued[HALF] = {{.how = &how}, {.how = &how, .estimated = true}};
    struct sums direct[HALF] = {{.how = &how}, {.how = &how, .estimated = true}};
    struct load_queue q = {0};
    for (size_t i = 0; i < n; i++) {
        const struct profile_sample s = sample_of(i);
        struct sum_thread t = {.counts = s.thread > 0, .stand_in = 1};
        assert_int_equal(load_queue_add(&q, &queued[i % HALF], &s, &t, &spread), 0);
        assert_int_equal(sums_add(&direct[i % HALF], &s, &t, &spread), 0);
    }
    assert_int_equal(load_queue_end(&q), 0);
    assert_int_equal(load_queue_end(&q), 0);
    uint64_t weight = 0, expected = 0;
    for (size_t i = 0; i < n; i++)
        expected += sample_of(i).thread > 0 ? sample_of(i).weight : 0;
    for (int k = 0; k < HALF; k++) {
        struct profile_series a = {0}, b = {0};
        assert_int_equal(sums_move(&queued[k], &a), 0);
        assert_int_equal(sums_move(&direct[k], &b), 0);
        assert_int_equal(a.samples.len, b.samples.len);
        assert_int_equal(a.merged.len, b.merged.len);
        if (b.samples.len)
            assert_memory_equal(a.samples.data, b.samples.data,
                                b.samples.len * sizeof(*b.samples.data));
        if (b.merged.len)
            assert_memory_equal(a.merged.data, b.merged.data,
                                b.merged.len * sizeof(*b.merged.data));
        for (size_t i = 0; n > 2 * HALF && i < a.samples.len; i++)
            weight += a.samples.data[i].weight;
        vec_release(&a.samples);
        vec_release(&a.merged);
        vec_release(&a.spread);
        vec_release(&b.samples);
        vec_release(&b.merged);
        vec_release(&b.spread);
        sums_release(&queued[k]);
        sums_release(&direct[k]);
    }
    if (n > 2 * HALF)
        assert_int_equal(weight, expected);
}

static void rows_are_the_same(void **state)
{
    static const size_t numbers[] = {0,
                                     1,
                                     QUEUE_BATCH - 1,
                                     QUEUE_BATCH,
                                     2 * QUEUE_BATCH,
                                     2 * QUEUE_BATCH + 1,
                                     20 * QUEUE_BATCH + 7};
    for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) {
        check(LOAD_THREADS, numbers[i]);
        check(LOAD_CELLS, numbers[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(rows_are_the_same)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
