/* SPDX-License-Identifier: Apache-2.0 */
/* The table of the contexts of virtual threads, compared with a plain array. */
#include "agent/capture/times/tree.h"
#include "tests.h"

#include <stdlib.h>
#include <string.h>

enum { THREADS = 3000, STEPS = 200000 };

static struct times_tree tree;
static struct times_context *contexts; /* of no meaning: only their addresses are kept */

/* Finds an entry as the probe does. Returns the number of places that it looks at. */
static int find(uint64_t thread, struct times_context **ret)
{
    uint64_t at = thread * UINT64_C(0x9e3779b97f4a7c15) >> (64 - TIMES_VIRTUAL_BITS);
    int probes = 0;
    *ret = NULL;
    for (; probes < TIMES_PROBES; probes++, at = (at + 1) % TIMES_VIRTUALS) {
        uint64_t present = atomic_load(&tree.virtuals[at].thread);
        if (present == thread)
            *ret = atomic_load(&tree.virtuals[at].context);
        if (!present || *ret)
            break;
    }
    return probes + 1;
}

/*
 * Returns the i-th id of those whose entries all begin within a few places before the end of the
 * table.
 */
static uint64_t crowded(int i)
{
    const uint64_t inverse = UINT64_C(0xf1de83e19937733d); /* of the factor of the hash */
    uint64_t place = TIMES_VIRTUALS - 1 - (uint64_t)(i % 4);
    return (place << (64 - TIMES_VIRTUAL_BITS) | (uint64_t)(i + 1)) * inverse;
}

static void check_all(const uint64_t *ids, struct times_context *const *has, int n)
{
    struct times_context *found;
    for (int i = 0; i < n; i++) {
        find(ids[i], &found);
        assert_ptr_equal(found, has[i]);
    }
}

/* Adds and removes in random order, at most `most` of n threads at once. */
static void exercise(const uint64_t *ids, int n, int most, int steps)
{
    struct times_context **has = calloc((size_t)n, sizeof(struct times_context *)), *found;
    int present = 0;
    assert_non_null(has);
    for (int step = 0; step < steps; step++) {
        int i = rand() % n;
        struct times_context *c = &contexts[rand() % THREADS];
        if (!has[i] && present < most) {
            assert_true(times_virtual_add(&tree, ids[i], c));
            has[i] = c;
            present++;
        } else if (has[i] && rand() % 4 == 0) {
            assert_true(times_virtual_add(&tree, ids[i], c)); /* in place of the other one */
            has[i] = c;
        } else if (has[i]) {
            assert_false(times_virtual_remove(&tree, ids[i], has[i] + 1));
            assert_true(times_virtual_remove(&tree, ids[i], has[i]));
            has[i] = NULL;
            present--;
        } else {
            assert_false(times_virtual_remove(&tree, ids[i], c));
        }
        find(ids[i], &found);
        assert_ptr_equal(found, has[i]);
    }
    check_all(ids, has, n);
    for (int i = 0; i < n; i++)
        assert_int_equal(!!has[i] && times_virtual_remove(&tree, ids[i], has[i]), !!has[i]);
    free(has);
    for (size_t i = 0; i < TIMES_VIRTUALS; i++)
        assert_int_equal(atomic_load(&tree.virtuals[i].thread), 0); /* all places are free again */
}

static void virtual_threads_have_the_contexts_they_were_given(void **state)
{
    static uint64_t ids[THREADS];
    for (int i = 0; i < THREADS; i++)
        ids[i] = 30 + (uint64_t)i; /* one after the other, as the VM gives them */
    exercise(ids, THREADS, THREADS, STEPS);
}

static void places_around_the_end_of_the_table_are_used(void **state)
{
    uint64_t ids[40];
    for (int i = 0; i < 40; i++)
        ids[i] = crowded(i);
    exercise(ids, 40, 40, STEPS);
}

static void a_thread_without_room_is_refused(void **state)
{
    uint64_t ids[TIMES_PROBES + 8];
    int added = 0;
    for (int i = 0; i < TIMES_PROBES + 8; i++) {
        ids[i] = crowded(4 * i); /* all begin at the same place */
        added += times_virtual_add(&tree, ids[i], contexts);
    }
    assert_int_equal(added, TIMES_PROBES);
    for (int i = 0; i < TIMES_PROBES; i++)
        assert_true(times_virtual_remove(&tree, ids[i], contexts));
    struct times_context *found;
    assert_int_equal(find(ids[0], &found), 1);
}

static int begin(void **state)
{
    srand(1);
    contexts = calloc(THREADS + 1, sizeof(*contexts));
    return contexts ? times_begin(&tree, 1 << 20, false) : -1;
}

static int end(void **state)
{
    times_end(&tree);
    free(contexts);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(virtual_threads_have_the_contexts_they_were_given),
        cmocka_unit_test(places_around_the_end_of_the_table_are_used),
        cmocka_unit_test(a_thread_without_room_is_refused),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
