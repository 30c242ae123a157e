/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Builds the timelines of each recording and of parts of it twice: from all of their events, and
 * while the recording is read, as for large ones. Prints how many nodes they have, or where they
 * differ and then exits with 1.
 */
#include "timeline/load.h"

#include <stdio.h>
#include <string.h>

enum { PARTS = 3 };

static bool same_thread(const struct timeline *a, uint32_t x, const struct timeline *b, uint32_t y)
{
    if (x == TL_NONE || y == TL_NONE)
        return x == y;
    const struct tl_thread *p = &a->threads[x], *q = &b->threads[y];
    return p->id == q->id && p->flags == q->flags && p->nodes == q->nodes &&
           p->start_ns == q->start_ns && p->end_ns == q->end_ns &&
           strcmp(tl_string(a, p->name), tl_string(b, q->name)) == 0 &&
           strcmp(tl_string(a, p->group), tl_string(b, q->group)) == 0 &&
           strcmp(tl_string(a, p->parent_group), tl_string(b, q->parent_group)) == 0;
}

static bool same_object(const struct timeline *a, uint32_t x, const struct timeline *b, uint32_t y)
{
    if (x == TL_NONE || y == TL_NONE)
        return x == y;
    const struct tl_object *p = &a->objects[x], *q = &b->objects[y];
    return p->id == q->id && p->flags == q->flags &&
           strcmp(tl_string(a, p->class), tl_string(b, q->class)) == 0 &&
           same_thread(a, p->thread, b, q->thread);
}

static bool same_stack(const struct timeline *a, uint32_t x, const struct timeline *b, uint32_t y)
{
    if (x == TL_NONE || y == TL_NONE)
        return x == y;
    bool same = a->stacks[x].len == b->stacks[y].len;
    for (uint32_t i = 0; same && i < a->stacks[x].len; i++) {
        const struct tl_frame *p = &a->frames[a->stacks[x].first + i],
                              *q = &b->frames[b->stacks[y].first + i];
        same = p->line == q->line && strcmp(tl_string(a, p->method), tl_string(b, q->method)) == 0;
    }
    return same;
}

static bool same_node(const struct timeline *a, const struct timeline *b, uint32_t i)
{
    const struct tl_node p = tl_node(a, i), q = tl_node(b, i);
    const struct tl_context *x = tl_context_of(a, i), *y = tl_context_of(b, i);
    return p.time == q.time && p.kind == q.kind && p.edge == q.edge && p.flags == q.flags &&
           p.prev == q.prev && p.waker == q.waker && same_thread(a, p.thread, b, q.thread) &&
           same_object(a, x->object, b, y->object) && same_stack(a, x->stack, b, y->stack) &&
           same_thread(a, x->other, b, y->other) && x->timeout_ms == y->timeout_ms;
}

static bool same(const struct timeline *a, const struct timeline *b, const char *path)
{
    size_t i = 0;
    bool whole = a->n_nodes == b->n_nodes && a->origin_ns == b->origin_ns &&
                 a->end_ns == b->end_ns && a->lost == b->lost && a->unbound == b->unbound &&
                 a->instrumented == b->instrumented && a->deadlocks == b->deadlocks &&
                 a->n_threads == b->n_threads && a->n_objects == b->n_objects &&
                 a->n_stacks == b->n_stacks && a->n_pauses == b->n_pauses &&
                 a->n_delays == b->n_delays;
    while (whole && i < a->n_nodes && same_node(a, b, (uint32_t)i))
        i++;
    if (!whole || i < a->n_nodes)
        printf("%s: differ at node %zu of %zu and %zu\n", path, i, a->n_nodes, b->n_nodes);
    return whole && i == a->n_nodes;
}

/* Returns the number of nodes of the whole recording, or -1; *ret_ns is how long it is. */
static int64_t whole(const char *path, uint64_t *ret_ns, struct buf *why)
{
    _cleanup_(timeline_freep) struct timeline *a = NULL, *b = NULL;
    if (timeline_read(&a, path, SIZE_MAX, NULL, why) < 0 ||
        timeline_read(&b, path, 0, NULL, why) < 0 || !same(a, b, path))
        return -1;
    *ret_ns = a->end_ns;
    return (int64_t)a->n_nodes;
}

/* Returns the number of nodes of a part of it, or -1. */
static int64_t part(const char *path, uint64_t from_ns, uint64_t to_ns, struct buf *why)
{
    _cleanup_(timeline_freep) struct timeline *a = NULL, *b = NULL;
    uint64_t length, again;
    if (timeline_read_part(&a, path, SIZE_MAX, from_ns, to_ns, &length, why) < 0 ||
        timeline_read_part(&b, path, 0, from_ns, to_ns, &again, why) < 0)
        return -1;
    bool is_same = same(a, b, path) && length == again;
    if (!is_same)
        printf("from %llu to %llu ns: ends after %llu and %llu ns of %llu and %llu\n",
               (unsigned long long)from_ns, (unsigned long long)to_ns,
               (unsigned long long)a->end_ns, (unsigned long long)b->end_ns,
               (unsigned long long)length, (unsigned long long)again);
    return is_same ? (int64_t)a->n_nodes : -1;
}

int main(int argc, char **argv)
{
    int bad = 0;
    size_t nodes = 0;
    for (int i = 1; i < argc; i++) {
        _cleanup_(buf_release) struct buf why = BUF(4096);
        uint64_t ns = 0;
        int64_t n[PARTS + 1] = {whole(argv[i], &ns, &why)};
        n[1] = part(argv[i], 0, ns / 3, &why);
        n[2] = part(argv[i], ns / 3, ns / 2, &why);
        n[3] = part(argv[i], ns / 2, 0, &why);
        for (int k = 0; k <= PARTS; k++) {
            bad |= n[k] < 0;
            nodes += n[k] < 0 ? 0 : (size_t)n[k];
        }
        if (buf_str(&why)[0])
            printf("%s: %s\n", argv[i], buf_str(&why));
    }
    printf("%zu nodes\n", nodes);
    return bad;
}
