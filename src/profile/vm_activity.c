/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/vm_activity_private.h"

#include "profile/frame_role.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The cause is determined for safepoints that took at least this long to reach. */
#define LATE_NS INT64_C(2000000)
/* This many frames of the late thread's stack are kept. */
#define LATE_FRAMES 64

const char *vm_activity_text(const struct vm_activity *v, uint32_t text)
{
    return text == VM_NONE ? "" : strpool_get(&v->strings, text).data;
}

/* ---- merging events ---- */

static int by_start_safepoint(const void *a, const void *b)
{
    const struct vm_safepoint *x = a, *y = b;
    return (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
}

static int by_start_pause(const void *a, const void *b)
{
    const struct vm_pause *x = a, *y = b;
    return (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
}

static int by_start_collection(const void *a, const void *b)
{
    const struct vm_collection *x = a, *y = b;
    return (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
}

static int by_count(const void *a, const void *b)
{
    const struct vm_deoptimization *x = a, *y = b;
    return x->discarded != y->discarded ? x->discarded - y->discarded
           : x->count != y->count       ? (x->count < y->count) - (x->count > y->count)
                                        : (x->first_ns > y->first_ns) - (x->first_ns < y->first_ns);
}

static int by_ns(const void *a, const void *b)
{
    const struct activity_totals *x = a, *y = b;
    return (x->ns > y->ns) - (x->ns < y->ns);
}

static int by_reading_ns(const void *a, const void *b)
{
    const struct vm_reading *x = a, *y = b;
    return (x->ns > y->ns) - (x->ns < y->ns);
}

#define SORT(list, by)                                                  \
    do {                                                                \
        if ((list).len)                                                 \
            qsort((list).data, (list).len, sizeof((list).data[0]), by); \
    } while (0)

static void add_readings(struct activity_reading *r)
{
    struct vm_activity *v = r->out;
    for (size_t i = 0; i < v->readings.len; i++) {
        const struct vm_reading *s = &v->readings.data[i];
        struct vm_figure *f = &v->figures[s->kind];
        struct vm_throttle t = {f->last_ns, s->ns, s->value - f->last};
        if (s->kind == VM_THROTTLED_TIME && f->n && s->value > f->last &&
            vec_push(&v->throttles, t) < 0)
            r->error = -ENOMEM;
        vm_activity_add_figure(f, s->ns, s->value);
    }
}

/*
 * The VM counts a safepoint a moment before or after the time that its event has, so an event this
 * close to a reading may be on either side of it.
 */
#define READING_SLACK_NS INT64_C(10000000)

/*
 * Computes the totals from the VM's own count between the first and the last reading. A recording
 * that was extracted from a longer one begins before the first reading and ends after the last one,
 * and has events in these times. If no event is missing between the readings, the sum of all events
 * is exact, and the count is not needed.
 */
static void add_totals(struct activity_reading *r)
{
    struct vm_activity *v = r->out;
    const struct activity_totals *a = &r->totals.data[0], *b = &r->totals.data[r->totals.len - 1];
    struct vm_totals all = {0}, counted = {b->t.count - a->t.count, b->t.time_ns - a->t.time_ns,
                                           b->t.sync_ns - a->t.sync_ns};
    uint64_t between = 0;
    for (size_t i = 0; i < v->safepoints.len; i++) {
        const struct vm_safepoint *s = &v->safepoints.data[i];
        int64_t end_ns = s->start_ns + (int64_t)s->total_ns;
        bool outside = end_ns <= a->ns || end_ns > b->ns;
        between += end_ns > a->ns - READING_SLACK_NS && s->start_ns <= b->ns + READING_SLACK_NS;
        all =
            (struct vm_totals){all.count + 1, all.time_ns + s->total_ns, all.sync_ns + s->sync_ns};
        if (outside)
            counted = (struct vm_totals){counted.count + 1, counted.time_ns + s->total_ns,
                                         counted.sync_ns + s->sync_ns};
    }
    v->has_totals = true;
    v->totals = v->safepoint_ends && between >= b->t.count - a->t.count ? all : counted;
}

static void put_together(struct activity_reading *r)
{
    struct vm_activity *v = r->out;
    /* Events in the file are not in chronological order. */
    SORT(v->readings, by_reading_ns);
    add_readings(r);
    for (size_t i = 0; i < v->safepoints.len; i++) {
        struct vm_safepoint *s = &v->safepoints.data[i];
        const struct activity_part *p = vm_activity_part(r, &r->safepoints, s->id);
        s->total_ns = s->sync_ns;
        if (p && p->has_end)
            s->total_ns = MAX(s->sync_ns, vm_activity_length(p->end_ns - s->start_ns));
        v->safepoint_ends |= p && p->has_end;
        s->operation = p ? p->operation : VM_NONE;
    }
    for (size_t i = 0; i < v->collections.len; i++) {
        struct vm_collection *c = &v->collections.data[i];
        const struct activity_part *p = vm_activity_part(r, &r->collections, c->id);
        c->has_heap = p && p->has_before && p->has_after;
        c->no_before = p && !p->has_before && p->has_after;
        if (c->has_heap || c->no_before) {
            c->before = p->before;
            c->ours = p->no_address;
            c->after = p->after;
            c->capacity = p->capacity;
        }
    }
    SORT(v->safepoints, by_start_safepoint);
    SORT(v->pauses, by_start_pause);
    SORT(v->collections, by_start_collection);
    vm_activity_sort_pools(v);
    SORT(v->deoptimizations, by_count);
    SORT(r->totals, by_ns);
    if (r->totals.len && !r->filter->from_ns && !r->filter->to_ns)
        add_totals(r);
}

/* ---- which thread was late ---- */

/* Returns the safepoint for which threads were being stopped at a time, if that took long. */
static struct vm_safepoint *on_the_way(struct vm_activity *v, int64_t ns)
{
    size_t low = 0, high = v->safepoints.len;
    while (low < high) {
        size_t mid = (low + high) / 2;
        if (v->safepoints.data[mid].start_ns <= ns)
            low = mid + 1;
        else
            high = mid;
    }
    struct vm_safepoint *s = low ? &v->safepoints.data[low - 1] : NULL;
    return s && (int64_t)s->sync_ns >= LATE_NS && ns < s->start_ns + (int64_t)s->sync_ns ? s : NULL;
}

static bool any_late(const struct vm_activity *v)
{
    for (size_t i = 0; i < v->safepoints.len; i++)
        if ((int64_t)v->safepoints.data[i].sync_ns >= LATE_NS)
            return true;
    return false;
}

/*
 * Finds the threads for which others waited. All threads but the late ones stop at once, so the
 * thread that was seen running last before the safepoint was reached is the one.
 */
static void find_late(struct activity_reading *r, struct recording *recording)
{
    static const struct rec_select samples[] = {
        {"jdk.ExecutionSample", 0}, {"jdk.CPUTimeSample", 0}, {0}};
    struct rec_event e;
    recording_rewind(recording);
    if (recording_select(recording, samples) < 0)
        return;
    _cleanup_free_ int64_t *seen = calloc(r->out->safepoints.len + 1, sizeof(*seen));
    while (seen && r->error == 0 && recording_next(recording, &e) > 0) {
        struct vm_safepoint *s = on_the_way(r->out, e.start_ns);
        int64_t *last = s ? &seen[s - r->out->safepoints.data] : NULL;
        if (!s || e.start_ns < *last)
            continue;
        const struct rec_stack *stack = rec_stack(&e.object, "stackTrace");
        const struct rec_thread *t = rec_thread(&e.object, "sampledThread");
        if (!t)
            t = rec_thread(&e.object, "eventThread");
        uint32_t ours = stack ? frame_role_probe_frames(stack) : 0;
        if (!t || !stack || stack->n <= ours)
            continue;
        *last = e.start_ns;
        s->late_thread = vm_activity_keep_text(r, t->name);
        s->late_first = (uint32_t)r->out->frames.len;
        s->late_n = 0;
        for (uint32_t i = ours; i < stack->n && s->late_n < LATE_FRAMES; i++) {
            if (frame_role_is_of_agent(stack->frames[i].method))
                continue;
            s->late_n++;
            if (vec_push(&r->out->frames,
                         ((struct vm_frame){vm_activity_keep_text(r, stack->frames[i].method->full),
                                            (uint32_t)MAX(stack->frames[i].line, 0)})) < 0)
                r->error = -ENOMEM;
        }
    }
}

int vm_activity_load(struct vm_activity *ret, const char *path,
                     const struct vm_activity_filter *filter, struct buf *why)
{
    _cleanup_(recording_closep) struct recording *recording = NULL;
    struct vm_activity out = {0};
    struct activity_reading r = {.out = &out, .filter = filter};
    const char *reason = NULL;
    struct rec_info info;
    int error = recording_open(&recording, path, &reason);
    if (error < 0) {
        buf_printf(why, "%s", reason ? reason : strerror(-error));
        return error;
    }
    recording_info(recording, &info);
    out.start_ns = info.start_ns;
    r.part = info.part_of_time;
    error = recording_each(recording, activity_events, vm_activity_visit, &r);
    recording_info(recording, &info);
    out.end_ns = info.end_ns;
    out.cut_at = info.truncated ? info.at : 0;
    if (error == 0) {
        put_together(&r);
        if (any_late(&out))
            find_late(&r, recording);
        error = r.error;
    }
    map_release(&r.safepoints);
    map_release(&r.collections);
    map_release(&r.deoptimizations);
    vec_release(&r.parts);
    vec_release(&r.totals);
    if (error < 0) {
        buf_printf(why, "%s", strerror(-error));
        vm_activity_release(&out);
        return error;
    }
    *ret = out;
    return 0;
}

bool vm_activity_any(const struct vm_activity *v)
{
    bool any = v->safepoints.len || v->pauses.len || v->collections.len || v->has_totals ||
               v->compilations.len || v->deoptimizations.len || v->pools.len || v->loaders.len;
    for (int i = 0; i < VM_FIGURES; i++)
        any = any || v->figures[i].n;
    return any;
}

void vm_activity_release(struct vm_activity *v)
{
    vec_release(&v->safepoints);
    vec_release(&v->pauses);
    vec_release(&v->phases);
    vec_release(&v->frames);
    vec_release(&v->pools);
    vec_release(&v->loaders);
    vec_release(&v->collections);
    vec_release(&v->compilations);
    vec_release(&v->deoptimizations);
    vec_release(&v->throttles);
    vec_release(&v->readings);
    strpool_release(&v->strings);
    *v = (struct vm_activity){0};
}
