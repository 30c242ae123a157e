/* SPDX-License-Identifier: Apache-2.0 */
#include "fleet/block.h"

#include "base/cursor.h"
#include "base/latency.h"

#include <endian.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

/* The first byte: a bit for each column that exists, and HASHES. */
enum { HAS_WEIGHTS = 1, HAS_REQUESTS = 2, HAS_TRACES = 4, HASHES = 8, KNOWN_FLAGS = 15 };

static int compare(const void *left, const void *right)
{
    const struct fleet_entry *a = left, *b = right;
    if (a->stack != b->stack)
        return a->stack < b->stack ? -1 : 1;
    if (a->request != b->request)
        return a->request < b->request ? -1 : 1;
    return (a->trace > b->trace) - (a->trace < b->trace);
}

void fleet_entries_settle(struct fleet_entries *e)
{
    size_t kept = 0;
    vec_sort(&e->list, compare);
    for (size_t i = 0; i < e->list.len; i++) {
        const struct fleet_entry *at = &e->list.data[i];
        if (kept && compare(&e->list.data[kept - 1], at) == 0) {
            e->list.data[kept - 1].count += at->count;
            e->list.data[kept - 1].weight += at->weight;
        } else {
            e->list.data[kept++] = *at;
        }
    }
    e->list.len = kept;
}

void fleet_entries_release(struct fleet_entries *e)
{
    vec_release(&e->list);
}

/* Returns the weight of one sample if it is the same for all samples, otherwise 0. */
static uint64_t common_weight(const struct fleet_entries *e)
{
    const struct fleet_entry *first = e->list.data;
    uint64_t unit = first->count ? first->weight / first->count : 0;
    for (size_t i = 0; i < e->list.len; i++)
        if (!unit || first[i].count > UINT64_MAX / unit || first[i].count * unit != first[i].weight)
            return 0;
    return unit;
}

static void put_hash(struct buf *to, uint64_t hash)
{
    hash = htole64(hash);
    buf_bytes(to, &hash, sizeof(hash));
}

static void write_block(const struct fleet_entries *e, uint8_t flags, struct buf *to)
{
    size_t n = e->list.len;
    uint64_t unit = n ? common_weight(e) : 1;
    flags |= unit ? 0 : HAS_WEIGHTS;
    for (size_t i = 0; i < n; i++) {
        flags |= e->list.data[i].request ? HAS_REQUESTS : 0;
        flags |= e->list.data[i].trace ? HAS_TRACES : 0;
    }
    buf_u8(to, flags);
    buf_varint(to, n);
    if (unit)
        buf_varint(to, unit);
    uint64_t before = 0;
    for (size_t i = 0; i < n; i++) {
        if (flags & HASHES)
            put_hash(to, e->list.data[i].stack);
        else
            buf_varint(to, e->list.data[i].stack - before);
        before = e->list.data[i].stack;
    }
    for (size_t i = 0; i < n; i++)
        buf_varint(to, e->list.data[i].count);
    for (size_t i = 0; !unit && i < n; i++)
        buf_varint(to, e->list.data[i].weight);
    for (size_t i = 0; flags & HAS_REQUESTS && i < n; i++) {
        if (flags & HASHES)
            put_hash(to, e->list.data[i].request);
        else
            buf_varint(to, e->list.data[i].request);
    }
    for (size_t i = 0; flags & HAS_TRACES && i < n; i++)
        buf_varint(to, e->list.data[i].trace);
}

void fleet_block_write(const struct fleet_entries *e, struct buf *to)
{
    write_block(e, 0, to);
}

void fleet_block_write_hashes(const struct fleet_entries *e, struct buf *to)
{
    write_block(e, HASHES, to);
}

int fleet_block_read(struct fleet_entries *to, const void *bytes, size_t len)
{
    struct cursor c = cursor_of(bytes, len);
    size_t start = to->list.len;
    uint8_t flags = cursor_u8(&c);
    uint64_t n = cursor_varint(&c);
    uint64_t unit = flags & HAS_WEIGHTS ? 0 : cursor_varint(&c);
    uint64_t before = 0;
    bool hashes = flags & HASHES;
    if (c.failed || flags & ~KNOWN_FLAGS || n > cursor_left(&c))
        return -EBADMSG;
    int r = vec_extend(&to->list, n);
    if (r < 0)
        return r;
    struct fleet_entry *e = vec_at(&to->list, start);
    for (size_t i = 0; i < n; i++)
        e[i].stack = before = hashes ? cursor_le64(&c) : before + cursor_varint(&c);
    for (size_t i = 0; i < n; i++)
        e[i].count = cursor_varint(&c);
    for (size_t i = 0; i < n; i++)
        e[i].weight = unit ? e[i].count * unit : cursor_varint(&c);
    for (size_t i = 0; flags & HAS_REQUESTS && i < n; i++)
        e[i].request = hashes ? cursor_le64(&c) : cursor_varint(&c);
    for (size_t i = 0; flags & HAS_TRACES && i < n; i++)
        e[i].trace = cursor_varint(&c);
    if (c.failed || cursor_left(&c)) {
        to->list.len = start;
        return -EBADMSG;
    }
    return 0;
}

int fleet_count_compare(const void *left, const void *right)
{
    const struct fleet_count *a = left, *b = right;
    return (a->bucket > b->bucket) - (a->bucket < b->bucket);
}

int fleet_counts_add(struct fleet_counts *to, const struct fleet_count *counts, size_t n)
{
    size_t before = to->list.len, kept = 0;
    int r = vec_extend(&to->list, n);
    if (r < 0)
        return r;
    if (n)
        memcpy(to->list.data + before, counts, n * sizeof(*counts));
    vec_sort(&to->list, fleet_count_compare);
    for (size_t i = 0; i < to->list.len; i++) {
        const struct fleet_count *at = &to->list.data[i];
        if (kept && to->list.data[kept - 1].bucket == at->bucket)
            to->list.data[kept - 1].count += at->count;
        else
            to->list.data[kept++] = *at;
    }
    to->list.len = kept;
    return 0;
}

int fleet_counts_add_latency(struct fleet_counts *to, const struct batch *b,
                             const struct fleet_latency *l)
{
    return l->buckets ? fleet_counts_add(to, b->counts.data + l->first, l->buckets) : 0;
}

void fleet_counts_write(const struct fleet_counts *c, struct buf *to)
{
    uint32_t before = 0;
    for (size_t i = 0; i < c->list.len; i++) {
        buf_varint(to, c->list.data[i].bucket - before);
        buf_varint(to, c->list.data[i].count);
        before = c->list.data[i].bucket;
    }
}

int fleet_counts_read(struct fleet_counts *to, const void *bytes, size_t len)
{
    struct cursor c = cursor_of(bytes, len);
    VEC(struct fleet_count) list = {0};
    uint64_t bucket = 0;
    int r = 0;
    while (r == 0 && cursor_left(&c) && !c.failed) {
        bucket += cursor_varint(&c);
        uint64_t count = cursor_varint(&c);
        r = c.failed || bucket >= LATENCY_BUCKETS
                ? -EBADMSG
                : vec_push(&list, ((struct fleet_count){(uint32_t)bucket, count}));
    }
    if (r == 0)
        r = fleet_counts_add(to, list.data, list.len);
    vec_release(&list);
    return r;
}

uint64_t fleet_counts_quantile(const struct fleet_counts *c, double share, uint64_t max_ns)
{
    uint64_t all = 0, seen = 0;
    for (size_t i = 0; i < c->list.len; i++)
        all += c->list.data[i].count;
    double exact = share * (double)all;
    uint64_t rank = (uint64_t)exact;
    rank = MIN(MAX(rank + ((double)rank < exact - 1e-9), UINT64_C(1)), all);
    for (size_t i = 0; i < c->list.len; i++) {
        uint32_t bucket = c->list.data[i].bucket;
        seen += c->list.data[i].count;
        if (seen >= rank)
            return MIN(latency_of_bucket(bucket), max_ns ? max_ns : UINT64_MAX);
    }
    return 0;
}
