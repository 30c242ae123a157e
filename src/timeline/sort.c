/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sorts events by time: distributes them over buckets of equal spans in one pass, then sorts each
 * bucket, which fits into the cache, by merging.
 */
#include "timeline/sort.h"

#include "timeline/builder.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { DIGIT_BITS = 12, BUCKET_EVENTS = 4096, BUCKETS_MAX = 1 << 16, SHORT = 24 };

static void insertion_sort(struct tl_event *e, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        struct tl_event one = e[i];
        size_t k = i;
        for (; k > 0 && e[k - 1].time > one.time; k--)
            e[k] = e[k - 1];
        e[k] = one;
    }
}

/* Sorts events stably; room must hold n events. */
static void merge_sort(struct tl_event *e, size_t n, struct tl_event *room)
{
    if (n <= SHORT) {
        insertion_sort(e, n);
        return;
    }
    size_t half = n / 2;
    merge_sort(e, half, room);
    merge_sort(e + half, n - half, room);
    if (e[half - 1].time <= e[half].time)
        return;
    memcpy(room, e, half * sizeof(*e));
    size_t i = 0, k = half, to = 0;
    while (i < half && k < n)
        e[to++] = e[k].time < room[i].time ? e[k++] : room[i++];
    while (i < half)
        e[to++] = room[i++];
}

int tl_events_sort(struct tl_event *events, size_t n)
{
    uint64_t low = UINT64_MAX, high = 0;
    bool sorted = true;
    for (size_t i = 0; i < n; i++) {
        low = MIN(low, events[i].time);
        high = MAX(high, events[i].time);
        sorted &= i == 0 || events[i - 1].time <= events[i].time;
    }
    if (sorted)
        return 0;
    size_t buckets = MIN(n / BUCKET_EVENTS + 1, (size_t)BUCKETS_MAX);
    uint64_t span = (high - low) / buckets + 1;
    size_t *first = calloc(buckets + 1, sizeof(*first));
    struct tl_event *copy = calloc(n, sizeof(*copy));
    if (!first || !copy) {
        free(first);
        free(copy);
        return -ENOMEM;
    }
    for (size_t i = 0; i < n; i++)
        first[(events[i].time - low) / span + 1]++;
    for (size_t i = 0; i < buckets; i++)
        first[i + 1] += first[i];
    for (size_t i = 0; i < n; i++)
        copy[first[(events[i].time - low) / span]++] = events[i];
    /* first[i] is now where bucket i ends. */
    for (size_t i = 0, begin = 0; i < buckets; begin = first[i++]) {
        merge_sort(copy + begin, first[i] - begin, events + begin);
        memcpy(events + begin, copy + begin, (first[i] - begin) * sizeof(*copy));
    }
    free(first);
    free(copy);
    return 0;
}

/* One pass of a radix sort, by the digit from bit `shift` on. */
static void keys_pass(const uint64_t *from, uint64_t *to, size_t n, unsigned shift, unsigned bits)
{
    uint32_t at[1 << DIGIT_BITS] = {0}, mask = (1u << bits) - 1, sum = 0;
    for (size_t i = 0; i < n; i++)
        at[from[i] >> shift & mask]++;
    for (uint32_t i = 0; i <= mask; i++) {
        uint32_t count = at[i];
        at[i] = sum;
        sum += count;
    }
    for (size_t i = 0; i < n; i++)
        to[at[from[i] >> shift & mask]++] = from[i];
}

void tl_keys_sort(uint64_t *keys, uint64_t *room, size_t n, uint32_t highest)
{
    unsigned bits = highest ? 32 - (unsigned)__builtin_clz(highest) : 0;
    unsigned digits = (bits + DIGIT_BITS - 1) / DIGIT_BITS;
    unsigned width = digits ? (bits + digits - 1) / digits : 0;
    for (unsigned d = 0; d < digits; d++) {
        uint64_t *from = d % 2 ? room : keys;
        uint64_t *to = d % 2 ? keys : room;
        keys_pass(from, to, n, TL_KEY_NUMBER_BITS + d * width, width);
    }
    if (digits % 2)
        memcpy(keys, room, n * sizeof(*keys));
}
