/* SPDX-License-Identifier: Apache-2.0 */
/* What the files requests*.c share. */
#pragma once

#include "profile/requests.h"

#define ORDER(a, b) ((a) < (b) ? -1 : (a) > (b))

/*
 * Defines the order of a type by thread and then by the time in one of its members. first_NAME
 * returns the index of the first element of a sorted array that is not before a thread and a time,
 * or n; compare_NAME is for vec_sort.
 */
#define ORDERED_BY_THREAD(name, type, time)                                                \
    static inline size_t first_##name(const type *list, size_t n, uint64_t of, int64_t at) \
    {                                                                                      \
        size_t low = 0, high = n;                                                          \
        while (low < high) {                                                               \
            size_t mid = low + (high - low) / 2;                                           \
            const type *x = &list[mid];                                                    \
            if (x->thread < of || (x->thread == of && x->time < at))                       \
                low = mid + 1;                                                             \
            else                                                                           \
                high = mid;                                                                \
        }                                                                                  \
        return low;                                                                        \
    }                                                                                      \
    static inline int compare_##name(const void *a, const void *b)                         \
    {                                                                                      \
        const type *x = a, *y = b;                                                         \
        int by = ORDER(x->thread, y->thread);                                              \
        return by ? by : ORDER(x->time, y->time);                                          \
    }

ORDERED_BY_THREAD(sample, struct request_sample, time_ns)
ORDERED_BY_THREAD(context, struct request_context, time_ns)
ORDERED_BY_THREAD(allocation, struct request_allocation, time_ns)
ORDERED_BY_THREAD(span, struct request_span, start_ns)

/* ---- requests_order.c ---- */

/* Sorts what was read, and assigns works and children to their requests. Returns 0 or -ENOMEM. */
int requests_order(struct requests *r) must_check;

/* ---- requests_find.c ---- */

/* Compares two struct request_thread by id, for vec_sort and bsearch. */
int requests_threads_by_id(const void *a, const void *b);
