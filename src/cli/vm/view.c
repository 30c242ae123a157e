/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/vm/vm.h"

#include "base/hash.h"
#include "base/map.h"
#include "base/parse.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Safepoints that took at least this long to reach are listed. */
#define LATE_NS UINT64_C(2000000)

static struct vm_group *group_of(struct map *m, struct vm_groups *g, uint32_t name, uint32_t cause)
{
    const uint32_t key[] = {name, cause};
    bool added = false;
    uint64_t *at = map_at(m, hash_bytes(key, sizeof(key)), g->len, &added);
    if (!at || (added && vec_push(g, ((struct vm_group){.name = name, .cause = cause})) < 0))
        return NULL;
    return &g->data[*at];
}

static void add(struct vm_group *g, uint64_t total, uint64_t sync)
{
    g->n++;
    g->total_ns += total;
    g->sync_ns += sync;
    g->longest_ns = MAX(g->longest_ns, total);
    g->longest_sync_ns = MAX(g->longest_sync_ns, sync);
}

static int by_time(const void *a, const void *b)
{
    const struct vm_group *x = a, *y = b;
    return x->total_ns != y->total_ns ? (x->total_ns < y->total_ns) - (x->total_ns > y->total_ns)
                                      : (x->n < y->n) - (x->n > y->n);
}

static int by_number(const void *a, const void *b)
{
    const struct vm_group *x = a, *y = b;
    return x->n != y->n ? (x->n < y->n) - (x->n > y->n) : by_time(a, b);
}

static void sort_groups(struct vm_groups *g, int (*by)(const void *, const void *))
{
    if (g->len)
        qsort(g->data, g->len, sizeof(g->data[0]), by);
}

static int group_safepoints(struct vm_view *w)
{
    _cleanup_(map_release) struct map m = {0};
    for (size_t i = 0; i < w->v.safepoints.len; i++) {
        const struct vm_safepoint *s = &w->v.safepoints.data[i];
        struct vm_group *g = group_of(&m, &w->operations, s->operation, VM_NONE);
        if (!g)
            return -ENOMEM;
        add(g, s->total_ns, s->sync_ns);
        w->totals.count++;
        w->totals.time_ns += s->total_ns;
        w->totals.sync_ns += s->sync_ns;
    }
    if (w->v.has_totals)
        w->totals = w->v.totals;
    sort_groups(&w->operations, by_time);
    return 0;
}

/* Where the VM writes no log, our recorder has pauses from JVM TI, which have this name. */
static bool without_log(const struct vm_activity *v)
{
    for (size_t i = 0; i < v->pauses.len; i++)
        if (strcmp(vm_activity_text(v, v->pauses.data[i].name), "GC Pause") == 0)
            return true;
    return false;
}

/*
 * Explains why the use of the heap before and after a collection does not show what was freed and
 * allocated. JDK 8's counters are read before a collection: those of G1 are current then, those of
 * the other collectors are as of the VM's last update, every 50 ms.
 */
static const char *heap_note(const struct vm_activity *v)
{
    bool counters = without_log(v);
    for (size_t i = 0; i < v->collections.len; i++)
        if (v->collections.data[i].no_before)
            return "freed and allocated leave out collections for which the VM's log does not show "
                   "the heap before them";
    for (size_t i = 0; i < v->collections.len; i++) {
        const struct vm_collection *c = &v->collections.data[i];
        const char *name = vm_activity_text(v, c->name);
        if (c->has_heap && strncmp(name, "Shenandoah", 10) == 0)
            return "freed and allocated leave out what was allocated during the collections, which "
                   "run concurrently with the program";
        if (c->has_heap && name[0] == 'Z')
            return "freed and allocated leave out what was allocated during the collections, which "
                   "run concurrently with the program; ZGC counts whole pages";
        if (c->has_heap && c->ours && counters && strncmp(name, "G1", 2) != 0)
            return "freed and allocated are lower bounds: the size of the heap before a collection "
                   "is up to 50 ms old";
    }
    return NULL;
}

/*
 * Reports how inexact the figures may be that add up the whole megabytes of the VM's log, or on JDK
 * 8 the whole regions of G1's counters, if that is more than a tenth of them.
 */
static void note_rounding(struct vm_view *w)
{
    enum { UNIT = 1 << 20, PART = 10 };

    const bool counters = without_log(&w->v);
    uint64_t n = 0, freed = 0;
    char error[24];
    for (size_t i = 0; i < w->v.collections.len; i++) {
        const struct vm_collection *c = &w->v.collections.data[i];
        if (!c->has_heap)
            continue;
        if (!c->ours || (!counters && (c->before % UNIT || c->after % UNIT)))
            return;
        n++;
        freed += c->before - MIN(c->after, c->before);
    }
    if (w->heap_note || MAX(freed, w->allocated) >= n * UNIT * PART)
        return;
    if (counters)
        snprintf(w->rounding, sizeof(w->rounding),
                 "freed and allocated are lower bounds: G1's counters count whole regions");
    else
        snprintf(w->rounding, sizeof(w->rounding),
                 "freed and allocated come from the VM's log, which counts whole megabytes: each "
                 "collection may add up to 1 MiB too much or too little, together up to %s",
                 format_size(error, n * UNIT));
    w->heap_note = w->rounding;
}

static int group_collections(struct vm_view *w)
{
    _cleanup_(map_release) struct map m = {0}, p = {0};
    uint64_t after = 0;
    bool known = false;
    for (size_t i = 0; i < w->v.collections.len; i++) {
        const struct vm_collection *c = &w->v.collections.data[i];
        struct vm_group *g = group_of(&m, &w->collections, c->name, c->cause);
        if (!g)
            return -ENOMEM;
        g->n++;
        g->total_ns += c->pauses_ns;
        g->longest_ns = MAX(g->longest_ns, c->longest_ns);
        if (!c->has_heap) {
            after = c->no_before ? c->after : after;
            known = known || c->no_before;
            continue;
        }
        g->with_heap++;
        g->freed += c->before - MIN(c->after, c->before);
        if (known)
            w->allocated += c->before - MIN(after, c->before);
        after = c->after;
        known = true;
    }
    for (size_t i = 0; i < w->v.pauses.len; i++) {
        const struct vm_pause *q = &w->v.pauses.data[i];
        struct vm_group *g = group_of(&p, &w->pauses, q->name, VM_NONE);
        if (!g)
            return -ENOMEM;
        add(g, q->duration_ns, 0);
        w->pause_ns += q->duration_ns;
        w->pause_longest_ns = MAX(w->pause_longest_ns, q->duration_ns);
    }
    w->heap_note = heap_note(&w->v);
    note_rounding(w);
    sort_groups(&w->collections, by_time);
    sort_groups(&w->pauses, by_time);
    return 0;
}

static int group_phases(struct vm_view *w)
{
    _cleanup_(map_release) struct map m = {0};
    for (size_t i = 0; i < w->v.phases.len; i++) {
        const struct vm_pause *q = &w->v.phases.data[i];
        struct vm_group *g = group_of(&m, &w->phases, q->name, VM_NONE);
        if (!g)
            return -ENOMEM;
        add(g, q->duration_ns, 0);
        g->concurrent = q->concurrent;
    }
    sort_groups(&w->phases, by_time);
    return 0;
}

static int group_compilations(struct vm_view *w)
{
    _cleanup_(map_release) struct map m = {0};
    for (size_t i = 0; i < w->v.compilations.len; i++) {
        const struct vm_compilation *c = &w->v.compilations.data[i];
        struct vm_group *g = group_of(&m, &w->methods, c->method, VM_NONE);
        if (!g)
            return -ENOMEM;
        add(g, c->duration_ns, 0);
    }
    sort_groups(&w->methods, by_number);
    return 0;
}

static const struct vm_safepoint *sorted_safepoints;

static int by_length(const void *a, const void *b)
{
    const struct vm_safepoint *x = &sorted_safepoints[*(const uint32_t *)a],
                              *y = &sorted_safepoints[*(const uint32_t *)b];
    return (x->total_ns < y->total_ns) - (x->total_ns > y->total_ns);
}

static int by_way(const void *a, const void *b)
{
    const struct vm_safepoint *x = &sorted_safepoints[*(const uint32_t *)a],
                              *y = &sorted_safepoints[*(const uint32_t *)b];
    return (x->sync_ns < y->sync_ns) - (x->sync_ns > y->sync_ns);
}

static int rank_safepoints(struct vm_view *w)
{
    for (uint32_t i = 0; i < w->v.safepoints.len; i++)
        if (vec_push(&w->longest, i) < 0 ||
            (w->v.safepoints.data[i].sync_ns >= LATE_NS && vec_push(&w->late, i) < 0))
            return -ENOMEM;
    sorted_safepoints = w->v.safepoints.data;
    if (w->longest.len)
        qsort(w->longest.data, w->longest.len, sizeof(uint32_t), by_length);
    if (w->late.len)
        qsort(w->late.data, w->late.len, sizeof(uint32_t), by_way);
    return 0;
}

int vm_view_fill(struct vm_view *w)
{
    int r = group_safepoints(w);
    if (r == 0)
        r = group_collections(w);
    if (r == 0)
        r = group_phases(w);
    if (r == 0)
        r = group_compilations(w);
    if (r == 0)
        r = rank_safepoints(w);
    return r;
}

void vm_view_release(struct vm_view *w)
{
    vec_release(&w->operations);
    vec_release(&w->collections);
    vec_release(&w->pauses);
    vec_release(&w->phases);
    vec_release(&w->methods);
    vec_release(&w->longest);
    vec_release(&w->late);
    vm_activity_release(&w->v);
}
