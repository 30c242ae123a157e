/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/unknown_owners.h"

#include "base/map.h"
#include "timeline/index.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct finding {
    const struct timeline *t;
    uint64_t from, to;
    struct map index; /* by class: its row */
    uint32_t *row_of; /* by object: 1 + the row of its class; 0: not looked up yet */
    struct unknown_table table;
};

/*
 * Returns whether a class that threads park for is a lock. If a release shows an owner, the object
 * has TL_OBJECT_LOCK; other locks, such as ReentrantReadWriteLock, are recognized by their package.
 */
static bool is_lock(const struct timeline *t, uint32_t object)
{
    const char *class = tl_object_class(t, object);
    return t->objects[object].flags & TL_OBJECT_LOCK ||
           (strncmp(class, "java.util.concurrent.locks.", 27) == 0 &&
            !strstr(class, "ConditionObject"));
}

/*
 * Returns whether the owner of what a thread waited for is known. `end` says what ended the wait.
 */
static bool is_known(const struct timeline *t, const struct tl_context *c, enum tl_edge end)
{
    uint32_t flags = t->objects[c->object].flags;
    return c->other != TL_NONE || flags & TL_OBJECT_EXACT ||
           (flags & TL_OBJECT_LOCK && end == TL_BY_UNPARK);
}

/* Finds the row of an object's class, or makes it. */
static int find_row(struct finding *f, uint32_t object)
{
    bool added;
    uint32_t class = f->t->objects[object].class;
    uint64_t *slot = map_at(&f->index, class, f->table.rows.len, &added);
    int r = slot ? 0 : -ENOMEM;
    if (slot && added)
        r = vec_push(&f->table.rows, ((struct tl_unowned){.class = class}));
    if (r < 0)
        return r;
    f->table.rows.data[*slot].lock |= is_lock(f->t, object);
    f->row_of[object] = (uint32_t)*slot + 1;
    return 0;
}

/* The lock that a thread waits for. */
struct waiting {
    uint64_t since;
    uint32_t context;
    enum tl_kind kind; /* TL_RUN if it waits for none */
};

/* Counts a wait that ended at a time. */
static inline __attribute__((always_inline)) int
count(struct finding *f, const struct waiting *wait, uint64_t until, enum tl_edge end)
{
    const struct tl_context *c = &f->t->contexts[wait->context];
    if (c->object == TL_NONE || (until <= f->from && wait->since < f->from) || wait->since >= f->to)
        return 0;
    int r = f->row_of[c->object] ? 0 : find_row(f, c->object);
    if (r < 0)
        return r;
    struct tl_unowned *row = &f->table.rows.data[f->row_of[c->object] - 1];
    bool known = is_known(f->t, c, end);
    row->lock |= wait->kind == TL_WAIT_LOCK;
    row->waits++;
    row->unknown += !known;
    uint64_t since = MAX(wait->since, f->from), to = MIN(until, f->to);
    row->ns += known || since > to ? 0 : to - since;
    return 0;
}

static int by_time(const void *a, const void *b)
{
    const struct tl_unowned *x = a, *y = b;
    return x->ns != y->ns ? (x->ns < y->ns) - (x->ns > y->ns)
                          : (x->class > y->class) - (x->class < y->class);
}

static void settle(struct unknown_table *u)
{
    size_t n = 0;
    for (size_t i = 0; i < u->rows.len; i++)
        if (u->rows.data[i].unknown)
            u->rows.data[n++] = u->rows.data[i];
    u->rows.len = n;
    if (n)
        qsort(u->rows.data, n, sizeof(*u->rows.data), by_time);
}

static int read_nodes(struct finding *f, struct waiting *waits)
{
    const struct timeline *t = f->t;
    struct tl_reader nodes = {.t = t};
    int r = 0;
    for (size_t i = 0; r == 0 && i < t->n_nodes; i++) {
        const struct tl_node *n = tl_read(&nodes, (uint32_t)i);
        if (!tl_is_state(n->kind))
            continue;
        struct waiting *wait = &waits[n->thread];
        if (wait->kind != TL_RUN)
            r = count(f, wait, n->time, n->edge);
        if (n->kind == TL_WAIT_LOCK || n->kind == TL_PARK)
            *wait = (struct waiting){n->time, n->context, n->kind};
        else
            wait->kind = TL_RUN;
    }
    for (size_t i = 0; r == 0 && i < t->n_threads; i++)
        if (waits[i].kind != TL_RUN)
            r = count(f, &waits[i], t->end_ns, TL_NO_EDGE);
    return r;
}

static int copy_kept(const struct timeline *t, struct unknown_table *ret)
{
    struct unknown_table table = {0};
    int r = vec_extend(&table.rows, t->n_unowned);
    if (r < 0)
        return r;
    if (t->n_unowned)
        memcpy(table.rows.data, t->unowned, t->n_unowned * sizeof(*t->unowned));
    *ret = table;
    return 0;
}

int unknown_owners_find(struct timeline *t, uint64_t from, uint64_t to, struct unknown_table *ret)
{
    struct finding f = {.t = t, .from = from, .to = to ? to : UINT64_MAX};
    if (t->unowned && !from && !to)
        return copy_kept(t, ret);
    struct waiting *waits = calloc(t->n_threads + 1, sizeof(*waits));
    f.row_of = calloc(t->n_objects + 1, sizeof(*f.row_of));
    int r = waits && f.row_of ? read_nodes(&f, waits) : -ENOMEM;
    free(waits);
    free(f.row_of);
    map_release(&f.index);
    if (r < 0) {
        vec_release(&f.table.rows);
        return r;
    }
    settle(&f.table);
    if (!from && !to)
        timeline_keep_copy(t, TL_KEEP_unowned, f.table.rows.data, f.table.rows.len,
                           sizeof(*f.table.rows.data));
    *ret = f.table;
    return 0;
}

const struct tl_unowned *unknown_owners_of(const struct unknown_table *u, uint32_t class)
{
    for (size_t i = 0; i < u->rows.len; i++)
        if (u->rows.data[i].class == class)
            return &u->rows.data[i];
    return NULL;
}

bool unknown_owners_matter(const struct timeline *t, uint64_t ns)
{
    return ns && ns >= t->end_ns / 1000;
}
