/* SPDX-License-Identifier: Apache-2.0 */
#include "export/thread_slices.h"

#include "timeline/load.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

int thread_slices_load(struct timeline **ret, const char *path, struct buf *why)
{
    int r = timeline_load(ret, path, why);
    if (r < 0 || (*ret)->n_nodes)
        return r;
    buf_string(why, "the recording holds nothing about threads: record with --threads");
    return -ENODATA;
}

int thread_slices(const struct timeline *t, const struct slice_visitor *v)
{
    uint32_t *open = malloc((t->n_threads + 1) * sizeof(*open));
    if (!open)
        return -ENOMEM;
    for (size_t i = 0; i < t->n_threads; i++)
        open[i] = TL_NONE;
    uint64_t arrows = 0;
    int r = 0;
    for (size_t i = 0; r == 0 && i < t->n_nodes; i++) {
        const struct tl_node n = tl_node(t, i);
        if (n.edge != TL_NO_EDGE && n.waker != TL_NONE && v->arrow)
            r = v->arrow(v->context, ++arrows, n.waker, (uint32_t)i);
        if (!tl_is_state(n.kind))
            continue;
        uint32_t before = open[n.thread];
        if (r == 0 && before != TL_NONE)
            r = v->slice(v->context, before, tl_node(t, before).time, n.time, (uint32_t)i);
        open[n.thread] = n.kind == TL_DEAD || n.kind == TL_UNKNOWN ? TL_NONE : (uint32_t)i;
    }
    for (size_t i = 0; r == 0 && i < t->n_threads; i++)
        if (open[i] != TL_NONE)
            r = v->slice(v->context, open[i], tl_node(t, open[i]).time, t->end_ns, TL_NONE);
    free(open);
    return r;
}

const char *thread_slice_name(const struct timeline *t, uint32_t state, char *text, size_t size)
{
    const struct tl_node n = tl_node(t, state);
    const char *class_name = tl_object_class(t, t->contexts[n.context].object);
    bool waits = class_name && n.kind != TL_RUN; /* the object of a running thread is its own */
    snprintf(text, size, "%s%s%s", tl_kind_text(n.kind), waits ? " " : "", waits ? class_name : "");
    return text;
}
