/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/deadlock.h"

#include "analysis/graph.h"

#include <errno.h>
#include <stdlib.h>

static int cycle_from(const struct timeline *t, const uint32_t *nodes, uint32_t thread,
                      uint8_t *seen, struct deadlock *d)
{
    int r = 0;
    while (r == 0 && thread != TL_NONE && nodes[thread] != TL_NONE && !seen[thread]) {
        seen[thread] = 1;
        uint32_t n = nodes[thread];
        uint32_t since = graph_wait_start(t, n);
        d->formed_ns = MAX(d->formed_ns, (uint64_t)tl_node(t, since).time);
        r = vec_push(&d->waits, n);
        thread = tl_context_of(t, n)->other;
    }
    return r;
}

int deadlocks_find(const struct timeline *t, struct deadlocks *ret)
{
    struct deadlocks found = {0};
    uint32_t *nodes = malloc((t->n_threads + 1) * sizeof(*nodes));
    uint8_t *seen = calloc(t->n_threads + 1, 1);
    int r = nodes && seen ? 0 : -ENOMEM;
    for (size_t i = 0; r == 0 && i < t->n_threads; i++) {
        uint32_t last = t->threads[i].last;
        nodes[i] = last != TL_NONE && tl_node(t, last).kind == TL_DEADLOCK ? last : TL_NONE;
    }
    for (size_t i = 0; r == 0 && i < t->n_threads; i++) {
        if (nodes[i] == TL_NONE || seen[i])
            continue;
        struct deadlock d = {0};
        r = cycle_from(t, nodes, (uint32_t)i, seen, &d);
        if (r == 0)
            r = vec_push(&found.list, d);
        if (r < 0)
            vec_release(&d.waits);
    }
    free(nodes);
    free(seen);
    if (r < 0)
        deadlocks_release(&found);
    else
        *ret = found;
    return r;
}

void deadlocks_release(struct deadlocks *d)
{
    for (size_t i = 0; i < d->list.len; i++)
        vec_release(&d->list.data[i].waits);
    vec_release(&d->list);
}

uint64_t deadlocks_waiting_for_locks(const struct timeline *t)
{
    uint64_t n = 0;
    for (size_t i = 0; i < t->n_threads; i++) {
        uint32_t last = t->threads[i].last;
        if (last == TL_NONE || tl_node(t, last).kind != TL_PARK)
            continue;
        uint32_t object = tl_context_of(t, last)->object;
        n += object != TL_NONE && t->objects[object].flags & TL_OBJECT_LOCK;
    }
    return n;
}
