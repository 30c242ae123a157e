/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waits for monitors. One that has ended is one event with a duration. One that goes on is reported
 * by jvmscope.Waiting, perhaps several times, always with its beginning; its own event follows when
 * it ends. A thread waits for one monitor at a time, so only its last wait can be in progress when
 * the recording ends. Events are not in the order of time.
 */
#include "profile/load_jfr.h"

#include <errno.h>
#include <string.h>

/* Returns false for a wait that was over before the part that the file is. */
static bool clip_wait(const struct reading *r, int64_t *start_ns, uint64_t *weight)
{
    int64_t start = *start_ns, end = start + (int64_t)MIN(*weight, (uint64_t)INT64_MAX / 4);
    int64_t from = r->start_ns + (int64_t)MIN(r->how.from_ns, (uint64_t)INT64_MAX / 4);
    int64_t to = r->ceiling_ns;
    if (r->how.to_ns)
        to = MIN(to, r->start_ns + (int64_t)MIN(r->how.to_ns, (uint64_t)INT64_MAX / 4));
    if (end <= from || start >= to)
        return end >= r->start_ns || r->ceiling_ns == INT64_MAX;
    *start_ns = MAX(start, from);
    *weight = (uint64_t)(MIN(end, to) - *start_ns);
    return true;
}

/* Returns what is known of a thread's waits; NULL when there is no memory. */
static struct load_wait *wait_of(struct reading *r, int64_t thread)
{
    size_t n = (size_t)thread + 1;
    if (thread < 0 || (n > r->waits.len && vec_extend(&r->waits, n - r->waits.len) < 0))
        return NULL;
    return &r->waits.data[thread];
}

int load_wait_ended(struct reading *r, int64_t thread, int64_t *start_ns, uint64_t *weight)
{
    struct load_wait *w = wait_of(r, thread);
    if (!w)
        return -ENOMEM;
    w->ended_ns = MAX(w->ended_ns, *start_ns);
    r->waits_end_ns =
        MAX(r->waits_end_ns, *start_ns + (int64_t)MIN(*weight, (uint64_t)INT64_MAX / 4));
    return clip_wait(r, start_ns, weight);
}

/*
 * Returns whether a thread that waits at a node gets its monitor back after Object.wait. No event
 * says when it has it, and such waits are not in the metric.
 */
static bool gets_it_back(const struct reading *r, uint32_t node)
{
    const struct profile_frame *f = profile_node_frame(r->p, node);
    if (node == 0 || f->kind == FRAME_MARK)
        return false;
    struct str label = profile_text(r->p, r->p->methods.data[f->method].label);
    return str_is(label, "java.lang.Object.wait") || str_is(label, "java.lang.Object.wait0");
}

int load_wait_in_progress(struct reading *r, const struct rec_row *row)
{
    struct rec_event e;
    rec_row_event(row, &e);
    if (strcmp(rec_string(&e.object, "kind", ""), "monitor") != 0)
        return 0;
    int64_t node = load_node_of_row(r, row), thread = load_thread_of_row(r, row);
    if (node < 0 || thread < 0)
        return -ENOMEM;
    struct load_wait *w = wait_of(r, thread);
    if (!w)
        return -ENOMEM;
    if (e.start_ns > w->start_ns && !gets_it_back(r, (uint32_t)node)) {
        w->start_ns = e.start_ns;
        w->node = (uint32_t)node;
    }
    return 0;
}

int load_open_waits(struct reading *r, int64_t end_ns)
{
    int64_t end = MIN(MAX(end_ns, r->waits_end_ns), r->ceiling_ns);
    int e = 0;
    for (size_t i = 0; e >= 0 && i < r->waits.len; i++) {
        const struct load_wait *w = &r->waits.data[i];
        int64_t start_ns = w->start_ns;
        if (start_ns <= w->ended_ns || start_ns >= end)
            continue;
        uint64_t weight = (uint64_t)(end - start_ns);
        if (clip_wait(r, &start_ns, &weight))
            e = load_sample(r, LOCKS, start_ns, w->node, (int64_t)i, weight);
    }
    return e;
}
