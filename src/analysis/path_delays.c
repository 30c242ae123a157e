/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/critical_path.h"
#include "analysis/graph.h"

#include <string.h>

/* Cuts s at `at`: appends the first part to the path and leaves the rest in s. */
static int cut(struct critical_path *p, struct path_segment *s, uint64_t at)
{
    struct path_segment before = *s;
    if (at <= s->start)
        return 0;
    before.end = s->start = at;
    s->waker = s->object = TL_NONE;
    s->edge = TL_NO_EDGE;
    return vec_push(&p->segments, before);
}

/*
 * Splits off the part of the delay that the segment covers. Where in the segment the delay was is
 * unknown; it is put at the end.
 */
static int split(struct critical_path *p, struct path_segment *s, const struct tl_delay *d)
{
    uint64_t from = MAX(s->start, d->start_ns), to = MIN(s->end, d->end_ns);
    double part = (double)(to - from) / (double)(d->end_ns - d->start_ns);
    uint64_t ns = MIN((uint64_t)((double)d->ns * part), to - from);
    bool inferred = s->inferred;
    if (ns == 0)
        return 0;
    /* The time that the container's quota took comes last. */
    uint64_t throttled = MIN((uint64_t)(1000.0 * d->throttled_us * part), ns);
    int r = cut(p, s, to - ns);
    s->state = PATH_PREEMPTED;
    s->inferred = true;
    r = r ? r : cut(p, s, to - throttled);
    s->state = PATH_THROTTLED;
    r = r ? r : cut(p, s, to);
    s->state = PATH_RUN;
    s->inferred = inferred && s->edge != TL_NO_EDGE;
    return r;
}

int path_split_delays(const struct timeline *t, struct critical_path *p)
{
    if (t->n_delays == 0)
        return 0;
    __typeof__(p->segments) old = p->segments;
    memset(&p->segments, 0, sizeof(p->segments));
    int r = 0;
    for (size_t i = 0; r == 0 && i < old.len; i++) {
        struct path_segment s = old.data[i];
        size_t k = s.state == PATH_RUN ? graph_delay_after(t, s.thread, s.start) : t->n_delays;
        for (; r == 0 && k < t->n_delays && t->delays[k].thread == s.thread &&
               t->delays[k].start_ns < s.end;
             k++)
            r = split(p, &s, &t->delays[k]);
        if (r == 0 && s.end > s.start)
            r = vec_push(&p->segments, s);
    }
    vec_release(&old);
    return r;
}
