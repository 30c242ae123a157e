/* SPDX-License-Identifier: Apache-2.0 */
/* What the command `vm` shows: the VM's activity in groups, as text and as JSON. */
#pragma once

#include "base/json.h"
#include "profile/vm_activity.h"

/* Sums over the events with the same name and, of collections, the same cause. */
struct vm_group {
    uint32_t name, cause; /* for vm_activity_text */
    uint64_t n, total_ns, sync_ns, longest_ns, longest_sync_ns, freed;
    uint64_t with_heap; /* the number of collections for which the freed bytes are known */
    bool concurrent;    /* phases that run concurrently with the program */
};

struct vm_groups {
    struct vm_group *data;
    size_t len, cap;
};

struct vm_view {
    const char *path;
    struct vm_activity v;
    size_t limit;
    bool filtered;                /* by time, so the VM's own totals do not apply */
    uint64_t window_ns;           /* the length of the chosen interval */
    struct vm_groups operations;  /* safepoints by operation; longest sum first, like all groups */
    struct vm_groups collections; /* by collector and cause */
    struct vm_groups pauses;      /* by name */
    struct vm_groups phases;      /* by name */
    struct vm_groups methods;     /* compilations by method; the most often compiled first */
    VEC(uint32_t) longest;        /* safepoints, the longest first */
    VEC(uint32_t) late;           /* safepoints that were slow to reach, the slowest first */
    struct vm_totals totals;      /* of safepoints */
    uint64_t pause_ns, pause_longest_ns;
    uint64_t allocated; /* bytes between collections that report the use of the heap */
    /* why `allocated` and the freed bytes may be wrong; NULL: they are right */
    const char *heap_note;
    char rounding[256]; /* heap_note, if it has a figure */
};

/* Computes everything else from `v`. Returns 0 or -ENOMEM. */
int vm_view_fill(struct vm_view *w) must_check;
void vm_view_release(struct vm_view *w);
void vm_view_json(const struct vm_view *w, struct json *j);
void vm_view_text(const struct vm_view *w);

/* Returns false when the recording does not say how long threads stood at safepoints. */
static inline bool vm_stops_known(const struct vm_view *w)
{
    return w->v.has_totals || w->v.safepoint_ends || !w->v.safepoints.len;
}

/* Returns by how much a count has grown between its first and its last reading. */
static inline uint64_t vm_grown(const struct vm_figure *f)
{
    return f->n > 1 ? f->last - MIN(f->first, f->last) : 0;
}

/*
 * Returns the number of compilations; the recording may contain more single ones than the VM's
 * counter shows.
 */
static inline uint64_t vm_compiled(const struct vm_view *w)
{
    return MAX(vm_grown(&w->v.figures[VM_COMPILATIONS]), (uint64_t)w->v.compilations.len);
}

/*
 * Returns the time in ns from a figure's first reading to its last one, for which its count is
 * known.
 */
static inline uint64_t vm_counted_ns(const struct vm_figure *f)
{
    return f->n > 1 ? (uint64_t)MAX(f->last_ns - f->first_ns, INT64_C(0)) : 0;
}

/* Returns the frame in which the last thread to reach the safepoint ran; NULL if unknown. */
static inline const struct vm_frame *vm_late_frame(const struct vm_view *w,
                                                   const struct vm_safepoint *s)
{
    return s->late_n ? &w->v.frames.data[s->late_first] : NULL;
}

/*
 * Show the parts about compilers, process and container; called by vm_view_json and vm_view_text.
 */
void vm_view_process_json(const struct vm_view *w, struct json *j);
void vm_view_process_text(const struct vm_view *w);
/* Writes a key and its text; null for VM_NONE. */
void vm_key_text(const struct vm_view *w, struct json *j, const char *key, uint32_t text);
/* Converts a time into ns since the recording's start; 0 for times before it. */
uint64_t vm_since_start(const struct vm_view *w, int64_t ns);
