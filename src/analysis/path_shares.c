/* SPDX-License-Identifier: Apache-2.0 */
/* How much of the path's time lies inside the critical sections of locks. */
#include "analysis/critical_path.h"
#include "analysis/sections.h"
#include "analysis/unknown_owners.h"
#include "base/map.h"
#include "timeline/index.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static int by_share(const void *a, const void *b, void *t)
{
    const struct tl_share *x = a, *y = b;
    return x->ns != y->ns ? (x->ns < y->ns) - (x->ns > y->ns)
                          : strcmp(tl_string(t, x->class), tl_string(t, y->class));
}

/* Makes a row for each class; row_of maps an object to its row + 1. */
static int share_rows(const struct timeline *t, const struct holds *h, struct path_shares *rows,
                      uint32_t *row_of)
{
    struct map index = {0};
    int r = 0;
    for (uint32_t object = 0; r == 0 && object < t->n_objects; object++) {
        uint32_t class = t->objects[object].class;
        bool added;
        if (!h->of_object[object])
            continue;
        uint64_t *slot = map_at(&index, class, rows->rows.len, &added);
        r = slot ? 0 : -ENOMEM;
        if (slot && added)
            r = vec_push(&rows->rows, ((struct tl_share){.class = class, .object = object}));
        if (r < 0 || *slot >= rows->rows.len)
            break;
        row_of[object] = (uint32_t)*slot + 1;
        rows->rows.data[*slot].holds += h->of_object[object];
    }
    map_release(&index);
    return r;
}

/* A chunk of holds that was read, and of each the latest end among it and the holds before it. */
struct read_chunk {
    struct hold_piece piece;
    uint64_t reach[HOLD_CHUNK];
    uint32_t thread;
    size_t number; /* SIZE_MAX: none was read yet */
};

enum { READ_CHUNKS = 1 << 10 };

struct sharing {
    const struct timeline *t;
    const struct holds *holds;
    struct path_shares rows;
    uint32_t *row_of; /* per object: its row + 1 */
    /*
     * per row: the time up to which it has been counted, so that two locks of a class held at once
     * count once
     */
    uint64_t *shared_to;
    size_t *near;            /* per thread: its first hold that has not been reached yet */
    struct read_chunk *read; /* READ_CHUNKS elements, a cache indexed by thread and number */
    uint64_t *reach;         /* per chunk that was reached: the latest end among those before it */
    uint8_t *on_path;        /* per hold */
};

static void read_chunk(struct sharing *c, struct read_chunk *k, uint32_t thread, size_t number)
{
    uint64_t *reach = &c->reach[c->holds->chunk_first[thread] + number], latest = *reach;
    holds_read(c->holds, thread, number, HOLD_WAKE_NS, &k->piece);
    for (size_t n = 0; n < k->piece.n; n++)
        k->reach[n] = latest = MAX(latest, k->piece.end[n]);
    if ((number + 1) << HOLD_CHUNK_BITS < hold_count(c->holds, thread))
        reach[1] = latest;
    k->thread = thread;
    k->number = number;
}

/* Returns the chunk of a thread's i-th hold, which has been reached. */
static inline const struct read_chunk *chunk_of(struct sharing *c, uint32_t thread, size_t i)
{
    size_t number = i >> HOLD_CHUNK_BITS;
    struct read_chunk *k = &c->read[(thread * 61 + number) % READ_CHUNKS];
    if (unlikely(k->number != number || k->thread != thread))
        read_chunk(c, k, thread, number);
    return k;
}

/* The wake-up of a hand-over belongs to the section to which it leads. */
static uint64_t wake_up(const struct sharing *c, const struct hold_piece *piece, uint32_t thread,
                        size_t i)
{
    uint64_t start = piece->start[i % HOLD_CHUNK], wake_ns = piece->side[i % HOLD_CHUNK];
    if (likely(wake_ns < UINT32_MAX))
        return start - wake_ns;
    const uint64_t *at = map_get(&c->holds->long_wakes, hold_number(thread, i));
    return at ? *at : start;
}

/*
 * Returns the first of the holds before `low` that may reach into a segment. A long hold may lie
 * before many that are already over.
 */
static size_t first_reaching(struct sharing *c, size_t low, const struct path_segment *s)
{
    /* how many finished holds are examined at most */
    enum { STEPS_BACK = 64 };

    size_t first = low;
    unsigned over = 0;
    for (size_t i = low; i-- > 0;) {
        const struct read_chunk *k = chunk_of(c, s->thread, i);
        if (k->reach[i % HOLD_CHUNK] <= s->start || over == STEPS_BACK)
            break;
        if (k->piece.end[i % HOLD_CHUNK] > s->start)
            first = i;
        else
            over++;
    }
    return first;
}

/* Adds the part of a segment that lies in its thread's i-th hold to the lock's share. */
static void share_hold(struct sharing *c, const struct path_segment *s, size_t i)
{
    const struct hold_piece *piece = &chunk_of(c, s->thread, i)->piece;
    uint64_t start = MAX(s->start, wake_up(c, piece, s->thread, i)),
             end = MIN(s->end, piece->end[i % HOLD_CHUNK]), flags = piece->flags[i % HOLD_CHUNK];
    if (end <= start || c->rows.rows.len == 0)
        return;
    uint32_t of = c->row_of[piece->object[i % HOLD_CHUNK]] - 1;
    struct tl_share *row = &c->rows.rows.data[of];
    start = MAX(start, c->shared_to[of]);
    if (end > start) {
        row->ns += end - start;
        c->shared_to[of] = end;
    }
    row->inferred |= (flags & HOLD_INFERRED) != 0;
    row->exact |= (flags & HOLD_EXACT) != 0;
    uint8_t *on_path = &c->on_path[c->holds->first[s->thread] + i];
    if (!*on_path) {
        row->holds_on_path++;
        row->contended += (flags & HOLD_WOKEN) != 0;
        *on_path = 1;
    }
}

static void share_segment(struct sharing *c, const struct path_segment *s)
{
    size_t low = c->near[s->thread], end = hold_count(c->holds, s->thread);
    for (bool reached = true; reached && low < end; low += reached) {
        const struct read_chunk *k = chunk_of(c, s->thread, low);
        reached = wake_up(c, &k->piece, s->thread, low) < s->end;
    }
    c->near[s->thread] = low;
    for (size_t i = first_reaching(c, low, s); i < low; i++)
        share_hold(c, s, i);
}

int path_lock_shares(const struct timeline *t, const struct critical_path *p, const struct holds *h,
                     struct path_shares *ret)
{
    struct sharing c = {.t = t, .holds = h, .row_of = calloc(t->n_objects + 1, sizeof(*c.row_of))};
    c.on_path = calloc(h->first[t->n_threads] + 1, 1);
    c.reach = calloc(h->chunk_first[t->n_threads] + 1, sizeof(*c.reach));
    c.near = calloc(t->n_threads + 1, sizeof(*c.near));
    c.read = malloc(READ_CHUNKS * sizeof(*c.read));
    bool room = c.on_path && c.reach && c.row_of && c.near && c.read;
    int r = room ? share_rows(t, h, &c.rows, c.row_of) : -ENOMEM;
    for (size_t i = 0; c.read && i < READ_CHUNKS; i++)
        c.read[i].number = SIZE_MAX;
    if (r == 0 && !(c.shared_to = calloc(c.rows.rows.len + 1, sizeof(*c.shared_to))))
        r = -ENOMEM;
    for (size_t i = 0; r == 0 && i < p->segments.len; i++)
        share_segment(&c, &p->segments.data[i]);
    free(c.near);
    free(c.read);
    free(c.reach);
    free(c.shared_to);
    free(c.on_path);
    free(c.row_of);
    if (r < 0) {
        vec_release(&c.rows.rows);
        return r;
    }
    if (c.rows.rows.len)
        qsort_r(c.rows.rows.data, c.rows.rows.len, sizeof(*c.rows.rows.data), by_share, (void *)t);
    *ret = c.rows;
    return 0;
}

static int known(const struct timeline *t, struct path_shares *ret)
{
    struct path_shares rows = {0};
    int r = vec_extend(&rows.rows, t->n_shares);
    if (r == 0 && t->n_shares)
        memcpy(rows.rows.data, t->shares, t->n_shares * sizeof(*t->shares));
    if (r == 0)
        *ret = rows;
    return r;
}

static bool is_whole(const struct path_options *o)
{
    return o->from == 0 && o->to == 0 && o->end_thread == TL_NONE;
}

bool path_shares_known(const struct timeline *t, const struct path_options *o)
{
    return is_whole(o) && t->shares;
}

/* What another thread computes, for large timelines: the holds, and then the shares from them. */
struct sharer {
    const struct timeline *t;
    struct holds holds;
    const struct critical_path *path;
    struct path_shares shares;
    int result;
    bool threaded;
    pthread_t thread;
};

static void *collect_all(void *arg)
{
    struct sharer *s = arg;
    s->result = holds_collect(s->t, NULL, NULL, &s->holds);
    return NULL;
}

static void *share_all(void *arg)
{
    struct sharer *s = arg;
    s->result = path_lock_shares(s->t, s->path, &s->holds, &s->shares);
    return NULL;
}

static void sharer_begin(struct sharer *s, void *(*work)(void *))
{
    enum { CONCURRENT_NODES = 1 << 18 };

    s->threaded =
        s->t->n_nodes >= CONCURRENT_NODES && pthread_create(&s->thread, NULL, work, s) == 0;
    if (!s->threaded)
        work(s);
}

static int sharer_end(struct sharer *s)
{
    if (s->threaded)
        (void)pthread_join(s->thread, NULL);
    return s->result;
}

/* Computes the shares from the holds while the timeline is given these to keep. */
static int shares_of(struct timeline *t, struct sharer *s, const struct path_options *o,
                     const struct critical_path *p, struct path_shares *ret)
{
    s->path = p;
    sharer_begin(s, share_all);
    int kept = hold_list_keep(t, &s->holds), r = sharer_end(s);
    struct path_shares shares = s->shares;
    r = r < 0 ? r : kept;
    if (r == 0 && is_whole(o))
        timeline_keep_copy(t, TL_KEEP_shares, shares.rows.data, shares.rows.len,
                           sizeof(*shares.rows.data));
    if (r == 0)
        *ret = shares;
    else
        vec_release(&shares.rows);
    return r;
}

int path_shares_of(struct timeline *t, const struct path_options *o, const struct critical_path *p,
                   struct path_shares *ret)
{
    struct sharer s = {.t = t};
    if (path_shares_known(t, o))
        return known(t, ret);
    int r = holds_collect(t, NULL, NULL, &s.holds);
    if (r < 0)
        return r;
    r = shares_of(t, &s, o, p, ret);
    holds_release(&s.holds);
    return r;
}

int critical_path_and_shares(struct timeline *t, const struct path_options *o,
                             struct critical_path *ret, struct path_shares *ret_shares,
                             struct unknown_table *ret_unknown)
{
    struct sharer s = {.t = t};
    struct critical_path p = {0};
    struct unknown_table unknown = {0};
    bool new = !path_shares_known(t, o);
    if (new)
        sharer_begin(&s, collect_all);
    int r = critical_path(t, o, &p);
    if (r == 0)
        r = unknown_owners_find(t, o->from, o->to, &unknown);
    int collected = new ? sharer_end(&s) : 0;
    if (r == 0)
        r = collected;
    if (r == 0)
        r = new ? shares_of(t, &s, o, &p, ret_shares) : known(t, ret_shares);
    holds_release(&s.holds);
    if (r < 0) {
        critical_path_release(&p);
        vec_release(&unknown.rows);
    } else {
        *ret = p;
        *ret_unknown = unknown;
    }
    return r;
}

int path_share_inferred(struct timeline *t, const struct path_options *o,
                        bool (*of)(const void *context, const char *class), const void *context,
                        bool *ret)
{
    struct critical_path p = {0};
    struct path_shares shares = {0};
    bool inferred = false;
    int r = path_shares_known(t, o) ? 0 : critical_path(t, o, &p);
    if (r == 0)
        r = path_shares_of(t, o, &p, &shares);
    for (size_t i = 0; r == 0 && i < shares.rows.len && !inferred; i++)
        inferred = shares.rows.data[i].ns && shares.rows.data[i].inferred &&
                   of(context, tl_string(t, shares.rows.data[i].class));
    vec_release(&shares.rows);
    critical_path_release(&p);
    if (r == 0)
        *ret = inferred;
    return r;
}
