/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/sections.h"

#include "base/pages.h"
#include "model/timeline_index.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

static uint64_t *firsts(const struct timeline *t, const struct holds *h)
{
    uint64_t *first = malloc((t->n_threads + 1) * sizeof(*first));
    for (size_t i = 0; first && i <= t->n_threads; i++)
        first[i] = h->first[i];
    return first;
}

static int shorten(const struct timeline *t, const struct holds *h, struct tl_hold **ret,
                   uint64_t **ret_first)
{
    size_t n_holds = h->first[t->n_threads];
    struct tl_hold *to = malloc((n_holds + 1) * sizeof(*to)), *next = to;
    uint64_t *first = firsts(t, h);
    if (!to || !first) {
        free(to);
        free(first);
        return -ENOMEM;
    }
    huge_pages(to, n_holds * sizeof(*to));
    for (uint32_t thread = 0; thread < t->n_threads; thread++) {
        for (size_t i = 0, n = hold_count(h, thread), some; i < n; i += some) {
            some = MIN(n - i, (size_t)HOLD_CHUNK);
            memcpy(next, hold_of(h, thread, i), some * sizeof(*next));
            next += some;
        }
    }
    *ret = to;
    *ret_first = first;
    return 0;
}

static int find(const struct timeline *t, holds_want *want, void *arg, struct tl_hold **ret,
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
    struct tl_hold *holds;
    uint64_t *first;
    if (t->holds && t->hold_first) {
        *ret = (struct hold_list){t->holds, t->hold_first, false};
        return 0;
    }
    int r = find(t, want, arg, &holds, &first);
    if (r == 0)
        *ret = (struct hold_list){holds, first, true};
    return r;
}

void hold_list_release(struct hold_list *l)
{
    if (l->own) {
        free((void *)(uintptr_t)l->holds);
        free((void *)(uintptr_t)l->first);
    }
    *l = (struct hold_list){0};
}

struct putting {
    const struct timeline *t;
    const struct holds *h;
};

static int write_pieces(int fd, struct iovec *piece, int n)
{
    while (n > 0) {
        ssize_t done = writev(fd, piece, n);
        if (done < 0 && errno != EINTR)
            return -errno;
        size_t left = done < 0 ? 0 : (size_t)done;
        for (; n > 0 && left >= piece->iov_len; piece++, n--)
            left -= piece->iov_len;
        if (n > 0 && left)
            *piece = (struct iovec){(uint8_t *)piece->iov_base + left, piece->iov_len - left};
    }
    return 0;
}

/* Writes all holds from where they lie in memory. */
static int put_holds(int fd, void *arg)
{
    enum { SOME = 512 };

    const struct putting *p = arg;
    struct iovec some[SOME];
    int n = 0, r = 0;
    for (uint32_t thread = 0; r == 0 && thread < p->t->n_threads; thread++) {
        for (size_t i = 0, count = hold_count(p->h, thread); r == 0 && i < count; i += HOLD_CHUNK) {
            some[n].iov_base = hold_of(p->h, thread, i);
            some[n++].iov_len = MIN(count - i, (size_t)HOLD_CHUNK) * sizeof(struct tl_hold);
            if (n < SOME)
                continue;
            r = write_pieces(fd, some, n);
            n = 0;
        }
    }
    return r == 0 ? write_pieces(fd, some, n) : r;
}

/* Keeps the holds in memory when there is no room in the file. */
static int keep_in_memory(struct timeline *t, const struct holds *h)
{
    struct tl_hold *holds;
    uint64_t *first;
    int r = shorten(t, h, &holds, &first);
    if (r < 0)
        return r;
    timeline_keep(t, TL_KEEP_holds, holds, h->first[t->n_threads]);
    timeline_keep(t, TL_KEEP_hold_first, first, t->n_threads + 1);
    return 0;
}

static int keep(struct timeline *t, struct holds *h)
{
    struct putting p = {t, h};
    holds_shorten(h);
    if (timeline_keep_put(t, TL_KEEP_holds, h->first[t->n_threads], put_holds, &p) < 0)
        return keep_in_memory(t, h);
    uint64_t *first = firsts(t, h);
    if (first)
        timeline_keep(t, TL_KEEP_hold_first, first, t->n_threads + 1);
    return first ? 0 : -ENOMEM;
}

int hold_list_keep(struct timeline *t, struct holds *h)
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

int sections_init(struct sections *ret, const struct timeline *t, const struct hold_list *l,
                  const uint8_t *wanted)
{
    struct sections s = {
        .t = t, .list = l, .wanted = wanted, .lanes = calloc(t->n_threads + 1, sizeof(*s.lanes))};
    if (!s.lanes)
        return -ENOMEM;
    for (size_t i = 0; i < t->n_threads; i++) {
        s.lanes[i].at = l->first[i];
        s.lanes[i].to = l->first[i + 1];
        s.lanes[i].next = l->first[i] < l->first[i + 1] ? l->holds[l->first[i]].start : UINT64_MAX;
    }
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

/* Drops the holds that are over at a time. */
static void prune(struct section_lane *lane, uint64_t time)
{
    size_t kept = 0;
    for (size_t i = 0; i < lane->open.len; i++)
        if (lane->open.data[i].end > time)
            lane->open.data[kept++] = lane->open.data[i];
    lane->open.len = kept;
}

/*
 * Adds the holds that begin before one time and extend beyond another. Their objects come from an
 * index, which may be wrong.
 */
static void take_in(struct sections *s, struct section_lane *lane, uint64_t start, uint64_t end)
{
    enum { AHEAD = 8 };

    while (lane->next < end) {
        const struct tl_hold *h = &s->list->holds[lane->at++];
        uint32_t object = tl_hold_object(h);
        lane->next = lane->at < lane->to ? h[1].start : UINT64_MAX;
        __builtin_prefetch(h + AHEAD);
        if (h->end <= start || object >= s->t->n_objects || !s->wanted[object])
            continue;
        if (lane->open.len == lane->open.cap)
            prune(lane, start);
        if (vec_push(&lane->open, ((struct section_span){h->start, h->end})) < 0)
            s->failed = true;
    }
}

uint64_t sections_inside(struct sections *s, uint32_t thread, uint64_t start, uint64_t end)
{
    struct section_lane *lane = &s->lanes[thread];
    if (lane->next < end)
        take_in(s, lane, start, end);
    /*
     * Sections of one thread nest or follow each other. Going backward, each section adds what
     * later ones have not covered yet.
     */
    uint64_t sum = 0, covered = end;
    for (size_t i = lane->open.len; i-- > 0 && covered > start;) {
        const struct section_span *one = &lane->open.data[i];
        uint64_t from = MAX(one->start, start), to = MIN(one->end, covered);
        if (to > from) {
            sum += to - from;
            covered = from;
        }
    }
    return sum;
}
