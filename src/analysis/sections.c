/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/sections.h"

#include "analysis/hold_block.h"
#include "base/file.h"
#include "timeline/index.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { PARTS = 63 };

/* Returns how much of a hold no waiter proves, in units of 1/PARTS of its length, rounded up. */
static uint64_t uncertain_parts(uint64_t unsure_us, uint64_t length)
{
    uint64_t uncertain = MIN(unsure_us * 1000, length);
    return length ? (uncertain * PARTS + length - 1) / length : 0;
}

/* The inverse of uncertain_parts, in ns. */
static uint64_t part_of(uint64_t length, uint64_t parts)
{
    return parts == PARTS ? length : length / PARTS * parts;
}

static uint64_t add_up(uint64_t sum, uint64_t ns)
{
    return sum + MIN(ns, UINT64_MAX - sum);
}

/*
 * Returns how uncertain a hold is: twice how much longer it may be, in us, or twice its uncertain
 * parts plus 1.
 */
static uint64_t unsure_of(const struct hold_piece *piece, size_t i, uint64_t length)
{
    uint64_t unsure_us = piece->side[i], end = piece->end[i];
    if (piece->flags[i] & HOLD_END_INFERRED)
        return (hold_latest(piece->start[i], end, unsure_us) - end + 999) / 1000 << 1;
    return uncertain_parts(unsure_us, length) << 1 | 1;
}

/* The inverse of unsure_of: by how much the hold can be longer, and shorter, in ns. */
static void unsure_read(uint64_t unsure, uint64_t length, uint64_t *ret_more, uint64_t *ret_less)
{
    uint64_t us = unsure >> 1;
    uint64_t parts = unsure & 1 ? MIN(us, (uint64_t)PARTS) : PARTS;
    *ret_less = part_of(length, parts);
    *ret_more = unsure & 1 ? 0 : us < UINT64_MAX / 1000 ? us * 1000 : UINT64_MAX;
}

/*
 * Writes a chunk of holds and returns the number of bytes. Adds to `unsure`, which has an element
 * per object and may be NULL.
 */
static size_t put_chunk(const struct hold_piece *piece, uint8_t *to, struct tl_unsure *unsure)
{
    struct hold_values v;
    uint64_t before = piece->start[0];
    v.start = v.latest = before;
    v.n = piece->n;
    for (size_t i = 0; i < piece->n; i++) {
        const uint64_t start = piece->start[i], end = piece->end[i];
        /* no section remains if the release lies before an inferred acquisition */
        uint64_t length = end > start ? end - start : 0;
        uint64_t more;
        uint64_t less;
        v.of[HOLD_AT][i] = start - before;
        before = start;
        v.of[HOLD_LENGTH][i] = length;
        v.of[HOLD_OBJECT][i] = piece->object[i];
        v.of[HOLD_UNSURE][i] = unsure_of(piece, i, length);
        unsure_read(v.of[HOLD_UNSURE][i], length, &more, &less);
        v.latest = MAX(v.latest, start + length + more);
        if (unsure) {
            struct tl_unsure *sum = &unsure[piece->object[i]];
            sum->less_ns = add_up(sum->less_ns, less);
            sum->more_ns = add_up(sum->more_ns, more);
        }
    }
    return hold_block_put(&v, HOLD_SHORT_COLUMNS, to);
}

/*
 * Passes all holds in a compact form to a function, in pieces and thread by thread. `unsure`,
 * unless it is NULL, gets the sums of what is uncertain, by object.
 */
static int put_all(const struct timeline *t, const struct holds *h, struct tl_unsure *unsure,
                   int (*put)(void *arg, uint32_t thread, const uint8_t *bytes, size_t n),
                   void *arg)
{
    struct hold_piece piece;
    uint8_t some[HOLD_BLOCK_BYTES];
    int r = 0;
    for (uint32_t thread = 0; r == 0 && thread < t->n_threads; thread++) {
        for (size_t i = 0, n = hold_count(h, thread); r == 0 && i << HOLD_CHUNK_BITS < n; i++) {
            holds_read(h, thread, i, HOLD_UNSURE_US, &piece);
            r = put(arg, thread, some, put_chunk(&piece, some, unsure));
        }
    }
    return r;
}

static int count_bytes(void *arg, uint32_t thread, const uint8_t *bytes, size_t n)
{
    uint64_t *first = arg;
    first[thread + 1] += n;
    return 0;
}

/* Turns the number of bytes of each thread into the position at which its holds begin. */
static void sum_firsts(const struct timeline *t, uint64_t *first)
{
    for (size_t i = 0; i < t->n_threads; i++)
        first[i + 1] += first[i];
}

/*
 * Returns the position at which the holds of each thread begin, followed by the end of the last
 * ones; NULL when out of memory.
 */
static uint64_t *firsts(const struct timeline *t, const struct holds *h)
{
    uint64_t *first = calloc(t->n_threads + 1, sizeof(*first));
    if (!first)
        return NULL;
    (void)put_all(t, h, NULL, count_bytes, first);
    sum_firsts(t, first);
    return first;
}

static int add_bytes(void *arg, uint32_t thread, const uint8_t *bytes, size_t n)
{
    uint8_t **to = arg;
    memcpy(*to, bytes, n);
    *to += n;
    return 0;
}

static int shorten(const struct timeline *t, const struct holds *h, uint8_t **ret,
                   uint64_t **ret_first)
{
    uint64_t *first = firsts(t, h);
    uint8_t *bytes = first ? malloc(first[t->n_threads] + 1) : NULL;
    uint8_t *to = bytes;
    if (!bytes) {
        free(first);
        return -ENOMEM;
    }
    (void)put_all(t, h, NULL, add_bytes, &to);
    *ret = bytes;
    *ret_first = first;
    return 0;
}

static int find(const struct timeline *t, holds_want *want, void *arg, uint8_t **ret,
                uint64_t **ret_first)
{
    struct holds h;
    int r = holds_collect(t, want, arg, &h);
    if (r < 0)
        return r;
    r = shorten(t, &h, ret, ret_first);
    holds_release(&h);
    return r;
}

int hold_list_init(struct hold_list *ret, const struct timeline *t, holds_want *want, void *arg)
{
    uint8_t *bytes;
    uint64_t *first;
    if (t->holds && t->hold_first) {
        *ret = (struct hold_list){t->holds, t->hold_first, false};
        return 0;
    }
    int r = find(t, want, arg, &bytes, &first);
    if (r == 0)
        *ret = (struct hold_list){bytes, first, true};
    return r;
}

void hold_list_release(struct hold_list *l)
{
    if (l->own) {
        free((void *)(uintptr_t)l->bytes);
        free((void *)(uintptr_t)l->first);
    }
    *l = (struct hold_list){0};
}

struct putting {
    const struct timeline *t;
    const struct holds *h;
    int fd;
    uint64_t *first; /* per thread: how many bytes the thread before it has */
    struct tl_unsure *unsure;
    VEC(uint8_t) bytes; /* holds are collected here until there are many */
};

static int flush(struct putting *p)
{
    int r = file_write_all(p->fd, p->bytes.data, p->bytes.len);
    vec_clear(&p->bytes);
    return r;
}

static int write_bytes(void *arg, uint32_t thread, const uint8_t *bytes, size_t n)
{
    enum { WRITE_BYTES = 1 << 20 };

    struct putting *p = arg;
    int r = vec_extend(&p->bytes, n);
    if (r < 0)
        return r;
    memcpy(vec_end(&p->bytes) - n, bytes, n);
    p->first[thread + 1] += n;
    return p->bytes.len >= WRITE_BYTES ? flush(p) : 0;
}

static int64_t put_holds(int fd, void *arg)
{
    struct putting *p = arg;
    p->fd = fd;
    int r = put_all(p->t, p->h, p->unsure, write_bytes, p);
    if (r == 0)
        r = flush(p);
    vec_release(&p->bytes);
    sum_firsts(p->t, p->first);
    return r < 0 ? r : (int64_t)p->first[p->t->n_threads];
}

/* Keeps the holds in memory when there is no room in the file. */
static int keep_in_memory(struct timeline *t, const struct holds *h)
{
    uint8_t *bytes;
    uint64_t *first;
    int r = shorten(t, h, &bytes, &first);
    if (r < 0)
        return r;
    timeline_keep(t, TL_KEEP_holds, bytes, first[t->n_threads]);
    timeline_keep(t, TL_KEEP_hold_first, first, t->n_threads + 1);
    return 0;
}

static int keep(struct timeline *t, const struct holds *h)
{
    struct putting p = {.t = t,
                        .h = h,
                        .first = calloc(t->n_threads + 1, sizeof(*p.first)),
                        .unsure = calloc(t->n_objects + 1, sizeof(*p.unsure))};
    int r = p.first && p.unsure ? 0 : -ENOMEM;
    if (r == 0 && timeline_keep_put(t, TL_KEEP_holds, put_holds, &p) == 0) {
        timeline_keep(t, TL_KEEP_hold_first, TAKE(p.first), t->n_threads + 1);
        timeline_keep(t, TL_KEEP_unsure, TAKE(p.unsure), t->n_objects);
    } else if (r == 0) {
        r = keep_in_memory(t, h);
    }
    free(p.first);
    free(p.unsure);
    return r;
}

int hold_list_keep(struct timeline *t, const struct holds *h)
{
    if (!t->index || (t->holds && t->hold_first))
        return 0;
    if (h)
        return keep(t, h);
    struct holds own;
    int r = holds_collect(t, NULL, NULL, &own);
    if (r < 0)
        return r;
    r = keep(t, &own);
    holds_release(&own);
    return r;
}

/*
 * Reads the thread's next hold. Where the index is damaged there is none. Skips chunks all of whose
 * holds have ended by the time `over`.
 */
static void next_hold(struct section_lane *lane, uint64_t over)
{
    struct hold_bits *b = &lane->chunk;
    while (lane->at >= b->block.n) {
        lane->at = 0;
        if (!hold_block_next(&lane->later, b)) {
            b->block = (struct hold_block){.latest = UINT64_MAX};
            lane->next.start = UINT64_MAX;
            return;
        }
        if (b->block.latest <= over)
            lane->at = b->block.n;
    }
    size_t i = lane->at++;
    uint64_t more, before = i ? lane->next.start : b->block.start;
    lane->next.start = before + hold_block_get(b, HOLD_AT, i);
    lane->next.length = hold_block_get(b, HOLD_LENGTH, i);
    lane->next.object = hold_block_get(b, HOLD_OBJECT, i);
    unsure_read(hold_block_get(b, HOLD_UNSURE, i), lane->next.length, &more, &lane->next.uncertain);
    lane->next.most = lane->next.length + MIN(more, UINT64_MAX - lane->next.length);
}

static void lane_begin(struct section_lane *lane, const struct hold_list *l, size_t thread)
{
    lane->later = cursor_of(l->bytes + l->first[thread], l->first[thread + 1] - l->first[thread]);
    next_hold(lane, 0);
}

void hold_list_unsure(const struct hold_list *l, const struct timeline *t, const uint8_t *wanted,
                      uint64_t *ret_less, uint64_t *ret_more)
{
    *ret_less = *ret_more = 0;
    if (t->unsure && t->n_unsure == t->n_objects && l->bytes == t->holds) {
        for (size_t i = 0; i < t->n_objects; i++) {
            *ret_less = add_up(*ret_less, wanted[i] ? t->unsure[i].less_ns : 0);
            *ret_more = add_up(*ret_more, wanted[i] ? t->unsure[i].more_ns : 0);
        }
        return;
    }
    for (size_t i = 0; i < t->n_threads; i++) {
        struct section_lane lane = {0};
        for (lane_begin(&lane, l, i); lane.next.start != UINT64_MAX; next_hold(&lane, 0)) {
            const struct section_hold *h = &lane.next;
            if (h->object >= t->n_objects || !wanted[h->object])
                continue;
            *ret_less = add_up(*ret_less, h->uncertain);
            *ret_more = add_up(*ret_more, h->most - h->length);
        }
    }
}

int sections_init(struct sections *ret, const struct timeline *t, const struct hold_list *l,
                  const uint8_t *wanted)
{
    struct sections s = {
        .t = t, .list = l, .wanted = wanted, .lanes = calloc(t->n_threads + 1, sizeof(*s.lanes))};
    if (!s.lanes)
        return -ENOMEM;
    for (size_t i = 0; i < t->n_threads; i++)
        lane_begin(&s.lanes[i], l, i);
    *ret = s;
    return 0;
}

void sections_release(struct sections *s)
{
    for (size_t i = 0; s->lanes && i < s->t->n_threads; i++)
        vec_release(&s->lanes[i].open);
    free(s->lanes);
    *s = (struct sections){0};
}

/* Drops the holds that are over at a time even under the assumption of their latest end. */
static void prune(struct section_lane *lane, uint64_t time)
{
    struct section_span *open = lane->open.data;
    size_t kept = 0;
    for (size_t i = 0; i < lane->open.len; i++) {
        bool keep = open[i].end[HOLD_ENDS_LATE] > time; /* unpredictable, so there is no branch */
        open[kept] = open[i];
        kept += keep;
    }
    lane->open.len = kept;
}

/*
 * Adds the holds that begin before one time and extend beyond another. Their objects come from an
 * index, which may be wrong, so they are checked.
 */
static void take_in(struct sections *s, struct section_lane *lane, uint64_t start, uint64_t end)
{
    prune(lane, start);
    while (lane->next.start < end) {
        const struct section_hold h = lane->next;
        if (lane->chunk.block.latest <= start)
            lane->at = lane->chunk.block.n;
        next_hold(lane, start);
        if (h.object >= s->t->n_objects || !s->wanted[h.object])
            continue;
        uint64_t end_likely = h.start + MIN(h.length, UINT64_MAX - h.start),
                 end_late = h.start + MIN(h.most, UINT64_MAX - h.start);
        if (end_late > start &&
            vec_push(&lane->open, ((struct section_span){.start = h.start,
                                                         .uncertain = h.uncertain,
                                                         .end = {[HOLD_ENDS_LIKELY] = end_likely,
                                                                 [HOLD_ENDS_AT_ONCE] = end_likely,
                                                                 [HOLD_ENDS_LATE] = end_late}})) <
                0)
            s->failed = true;
    }
}

/*
 * Sections of one thread nest or follow each other. The loop goes backward, and each section adds
 * the time that later ones have not covered yet.
 */
static void parts(const struct section_lane *lane, uint64_t start, uint64_t end,
                  enum hold_ends ends, void (*take)(void *arg, uint64_t from, uint64_t to),
                  void *arg)
{
    uint64_t covered = end;
    for (size_t i = lane->open.len; i-- > 0 && covered > start;) {
        const struct section_span *one = &lane->open.data[i];
        uint64_t begin = ends == HOLD_ENDS_AT_ONCE ? one->start + one->uncertain : one->start;
        uint64_t from = MAX(begin, start), to = MIN(one->end[ends], covered);
        if (to > from) {
            take(arg, from, to);
            covered = from;
        }
    }
}

static void add_part(void *arg, uint64_t from, uint64_t to)
{
    *(uint64_t *)arg += to - from;
}

static uint64_t inside(const struct section_lane *lane, uint64_t start, uint64_t end,
                       enum hold_ends ends)
{
    uint64_t sum = 0;
    parts(lane, start, end, ends, add_part, &sum);
    return sum;
}

void sections_parts(struct sections *s, uint32_t thread, uint64_t start, uint64_t end,
                    enum hold_ends ends, void (*take)(void *arg, uint64_t from, uint64_t to),
                    void *arg)
{
    struct section_lane *lane = &s->lanes[thread];
    if (lane->next.start < end)
        take_in(s, lane, start, end);
    parts(lane, start, end, ends, take, arg);
}

uint64_t sections_inside(struct sections *s, uint32_t thread, uint64_t start, uint64_t end,
                         enum hold_ends ends)
{
    struct section_lane *lane = &s->lanes[thread];
    if (lane->next.start < end)
        take_in(s, lane, start, end);
    return inside(lane, start, end, ends);
}

void sections_inside_all(struct sections *s, uint32_t thread, uint64_t start, uint64_t end,
                         uint64_t ret[HOLD_ENDS])
{
    struct section_lane *lane = &s->lanes[thread];
    if (lane->next.start < end)
        take_in(s, lane, start, end);
    for (int e = 0; e < HOLD_ENDS; e++)
        ret[e] = 0;
    uint64_t covered[HOLD_ENDS] = {end, end, end};
    for (size_t i = lane->open.len; i-- > 0;) {
        const struct section_span *one = &lane->open.data[i];
        const uint64_t begins[HOLD_ENDS] = {[HOLD_ENDS_LIKELY] = one->start,
                                            [HOLD_ENDS_AT_ONCE] = one->start + one->uncertain,
                                            [HOLD_ENDS_LATE] = one->start};
#pragma GCC unroll 3
        for (int e = 0; e < HOLD_ENDS; e++) {
            uint64_t from = MAX(begins[e], start), to = MIN(one->end[e], covered[e]);
            ret[e] += to > from ? to - from : 0;
            covered[e] = to > from ? from : covered[e];
        }
    }
}
