/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/unknown_owners.h"

#include "base/map.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct finding {
    const struct timeline *t;
    uint64_t from, to;
    struct map index; /* by class: its row */
    struct unknown_table table;
};

/*
 * Returns whether a class that threads park for is a lock. Those whose owner a release shows are
 * known by TL_OBJECT_LOCK; others, such as ReentrantReadWriteLock, by their package.
 */
static bool is_lock(const struct timeline *t, uint32_t object)
{
    const char *class = tl_object_class(t, object);
    return t->objects[object].flags & TL_OBJECT_LOCK ||
           (strncmp(class, "java.util.concurrent.locks.", 27) == 0 &&
            !strstr(class, "ConditionObject"));
}

/* Returns whether the owner of what a thread waited for is known; end: what ended the wait. */
static bool is_known(const struct timeline *t, const struct tl_node *wait, enum tl_edge end)
{
    const struct tl_context *c = &t->contexts[wait->context];
    uint32_t flags = t->objects[c->object].flags;
    return c->other != TL_NONE || flags & TL_OBJECT_EXACT ||
           (flags & TL_OBJECT_LOCK && end == TL_BY_UNPARK);
}

/* Counts a wait for a lock that lasts until a time. */
static int count(struct finding *f, const struct tl_node *wait, uint64_t until, enum tl_edge end)
{
    uint32_t object = f->t->contexts[wait->context].object;
    if (object == TL_NONE || until < f->from || wait->time > f->to)
        return 0;
    bool added;
    uint32_t class = f->t->objects[object].class;
    uint64_t *slot = map_at(&f->index, class, f->table.rows.len, &added);
    int r = slot ? 0 : -ENOMEM;
    if (slot && added)
        r = vec_push(&f->table.rows, ((struct unknown_owners){.class = class}));
    if (r < 0)
        return r;
    struct unknown_owners *row = &f->table.rows.data[*slot];
    bool known = is_known(f->t, wait, end);
    row->lock |= wait->kind == TL_WAIT_LOCK || is_lock(f->t, object);
    row->waits++;
    row->unknown += !known;
    row->ns += known ? 0 : until - MIN(wait->time, until);
    return 0;
}

static int by_time(const void *a, const void *b)
{
    const struct unknown_owners *x = a, *y = b;
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

int unknown_owners_find(const struct timeline *t, uint64_t from, uint64_t to,
                        struct unknown_table *ret)
{
    struct finding f = {.t = t, .from = from, .to = to ? to : UINT64_MAX};
    struct tl_reader nodes = {.t = t};
    /* per thread: the node of the wait for a lock in which it is; its time is 0 and its kind
     * TL_RUN if it is in none */
    struct tl_node *waits = calloc(t->n_threads + 1, sizeof(*waits));
    int r = waits ? 0 : -ENOMEM;
    for (size_t i = 0; r == 0 && i < t->n_nodes; i++) {
        const struct tl_node *n = tl_read(&nodes, (uint32_t)i);
        if (!tl_is_state(n->kind))
            continue;
        struct tl_node *wait = &waits[n->thread];
        if (wait->kind != TL_RUN)
            r = count(&f, wait, n->time, n->edge);
        *wait = n->kind == TL_WAIT_LOCK || n->kind == TL_PARK ? *n : (struct tl_node){0};
    }
    for (size_t i = 0; r == 0 && i < t->n_threads; i++)
        if (waits[i].kind != TL_RUN)
            r = count(&f, &waits[i], t->end_ns, TL_NO_EDGE);
    free(waits);
    map_release(&f.index);
    settle(&f.table);
    if (r < 0)
        vec_release(&f.table.rows);
    else
        *ret = f.table;
    return r;
}

const struct unknown_owners *unknown_owners_of(const struct unknown_table *u, uint32_t class)
{
    for (size_t i = 0; i < u->rows.len; i++)
        if (u->rows.data[i].class == class)
            return &u->rows.data[i];
    return NULL;
}
