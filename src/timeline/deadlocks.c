/* SPDX-License-Identifier: Apache-2.0 */
/* Finds cycles of threads that wait for each other when the recording ends. */
#include "timeline/private.h"

#include <errno.h>
#include <string.h>

static void shift(uint32_t *node, uint32_t from, uint32_t by)
{
    if (*node != TL_NONE && *node >= from)
        *node += by;
}

/* Returns the number of a node after n nodes were inserted at a place. */
static struct tl_node shifted(struct tl_node node, uint32_t place, uint32_t n)
{
    shift(&node.prev, place, n);
    shift(&node.waker, place, n);
    return node;
}

/*
 * Moves the last n nodes, which were just added, after the last wait of their threads, because a
 * cycle exists from the moment when its last thread waits. The numbers of all nodes after that
 * place change. Returns 0 or -ENOMEM.
 */
static int move_back(struct timeline_builder *b, uint32_t n)
{
    uint32_t all = (uint32_t)b->n_nodes, place = 0;
    struct tl_node *moved = calloc(n, sizeof(*moved));
    if (!moved)
        return -ENOMEM;
    for (uint32_t i = 0; i < n; i++) {
        moved[i] = timeline_node(b, all - n + i);
        place = MAX(place, moved[i].prev + 1);
    }
    uint64_t formed = timeline_node(b, place - 1).time;
    for (uint32_t i = 0; i < place; i++) {
        const struct tl_node now = shifted(timeline_node(b, i), place, n);
        if (now.waker != timeline_node(b, i).waker)
            timeline_node_edit(b, i)->waker = now.waker;
    }
    for (size_t i = 0; i < b->threads.len; i++) {
        if (b->threads.data[i].last != TL_NONE && b->threads.data[i].last >= all - n)
            b->threads.data[i].last = place + (b->threads.data[i].last - (all - n));
        else
            shift(&b->threads.data[i].last, place, n);
        shift(&b->threads.data[i].first, place, n);
    }
    /*
     * each node is changed when it is moved, because the node before it must always have a smaller
     * number
     */
    for (uint32_t i = all; i-- > place + n;) {
        const struct tl_node one = shifted(timeline_node(b, i - n), place, n);
        *timeline_node_edit(b, i) = one;
    }
    for (uint32_t i = 0; i < n; i++) {
        moved[i].time = formed;
        *timeline_node_edit(b, place + i) = moved[i];
    }
    free(moved);
    return b->error;
}

/*
 * In a cycle each thread waits for a lock whose owner waits for a lock, and so on. The owners are
 * those recorded last; a cycle that did not really exist would have dissolved before the end. A
 * thread that waits for a monitor whose owner is unknown may be in a cycle that is not found.
 */
int timeline_find_deadlocks(struct timeline_builder *b, uint32_t *ret_cycles, uint32_t *ret_unknown)
{
    size_t n = b->threads.len;
    uint32_t *next = calloc(n + 1, sizeof(*next)), *seen = calloc(n + 1, sizeof(*seen));
    int r = next && seen ? 0 : -ENOMEM;
    for (size_t i = 0; r == 0 && i < n; i++) {
        const struct activity *d = &b->activity.data[i];
        next[i] = TL_NONE;
        uint8_t state = d->depth ? d->states[d->depth - 1].kind : TL_RUN;
        if (state != TL_WAIT_LOCK && state != TL_PARK)
            continue;
        struct tl_context c = b->contexts.data[d->states[d->depth - 1].context];
        const struct monitor *m = timeline_monitor_of(b, c.object);
        bool known = m && m->owner != TL_NONE && (state == TL_WAIT_LOCK || m->owner_exact);
        next[i] = known ? m->owner : c.other;
        *ret_unknown += state == TL_WAIT_LOCK && next[i] == TL_NONE;
    }
    for (size_t i = 0; r == 0 && i < n; i++) {
        uint32_t t = (uint32_t)i;
        while (t != TL_NONE && seen[t] == 0) {
            seen[t] = (uint32_t)i + 1;
            t = next[t];
        }
        if (t == TL_NONE || seen[t] != (uint32_t)i + 1 || next[t] == t)
            continue;
        ++*ret_cycles;
        uint32_t first = t, added = 0;
        do {
            const struct activity *d = &b->activity.data[t];
            struct tl_context c = b->contexts.data[d->states[d->depth - 1].context];
            int64_t node = timeline_node_with(b, t, TL_DEADLOCK, c.object, c.stack, next[t]);
            r = node < 0 ? (int)node : 0;
            t = next[t];
            added++;
        } while (r == 0 && t != first);
        if (r == 0)
            r = move_back(b, added);
    }
    free(next);
    free(seen);
    return r;
}
