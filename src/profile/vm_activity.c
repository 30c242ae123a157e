/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/vm_activity.h"

#include "base/hash.h"
#include "base/map.h"
#include "jfr/reader.h"
#include "profile/frame_role.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A way to a safepoint that is at least as long is asked for its cause. */
#define LATE_NS INT64_C(2000000)
/* Of the late thread's stack so many frames are kept. */
#define LATE_FRAMES 64
/* A damaged recording may contain any number. */
#define LONGEST_NS (INT64_C(1) << 60)

enum tag {
    BEGIN,
    END,
    OPERATION,
    TOTALS,
    COLLECTION,
    PAUSE,
    HEAP,
    COMPILATION,
    COMPILED,
    FAILURE,
    DEOPTIMIZATION,
    TRAP,
    DISCARDED,
    FIGURES,
    THROTTLING,
    CONTAINER,
    PHASE,
    CONCURRENT_PHASE,
    POOL,
    METASPACE,
    LOADER,
};

static const struct rec_select selected[] = {
    {"jdk.SafepointBegin", BEGIN},
    {"jdk.SafepointEnd", END},
    {"jdk.ExecuteVMOperation", OPERATION},
    {"jvmscope.SafepointTotals", TOTALS},
    {"jdk.GarbageCollection", COLLECTION},
    {"jdk.GCPhasePause", PAUSE},
    {"jdk.GCHeapSummary", HEAP},
    {"jdk.Compilation", COMPILATION},
    {"jvmscope.Compiled", COMPILED},
    {"jdk.Deoptimization", DEOPTIMIZATION},
    {"jvmscope.UncommonTrap", TRAP},
    {"jvmscope.CodeDiscarded", DISCARDED},
    {"jdk.CPULoad", FIGURES},
    {"jdk.ResidentSetSize", FIGURES},
    {"jdk.JavaThreadStatistics", FIGURES},
    {"jdk.ClassLoadingStatistics", FIGURES},
    {"jdk.CompilerStatistics", FIGURES},
    {"jdk.ContainerMemoryUsage", FIGURES},
    {"jvmscope.ProcessFigures", FIGURES},
    {"jdk.ContainerCPUThrottling", THROTTLING},
    {"jdk.ContainerConfiguration", CONTAINER},
    {"jdk.GCPhasePauseLevel1", PHASE},
    {"jdk.GCPhaseConcurrent", CONCURRENT_PHASE},
    {"jvmscope.MemoryPool", POOL},
    {"jdk.CodeCacheStatistics", POOL},
    {"jdk.MetaspaceSummary", METASPACE},
    {"jvmscope.ClassLoading", LOADER},
    {"jdk.ClassLoad", LOADER},
    {"jdk.ClassUnload", LOADER},
    {0},
};

/* Where figures come from. A field that an event lacks is no figure. */
static const struct {
    const char *type, *field;
    enum vm_figure_kind kind;
    bool share; /* a float from 0 to 1 */
    bool time;
} figure_fields[] = {
    {"jdk.CPULoad", "jvmUser", VM_CPU_USER, .share = true},
    {"jdk.CPULoad", "jvmSystem", VM_CPU_SYSTEM, .share = true},
    {"jdk.CPULoad", "machineTotal", VM_CPU_MACHINE, .share = true},
    {"jdk.ResidentSetSize", "size", VM_RSS},
    {"jdk.JavaThreadStatistics", "activeCount", VM_THREADS},
    {"jdk.JavaThreadStatistics", "accumulatedCount", VM_THREADS_STARTED},
    {"jdk.ClassLoadingStatistics", "loadedClassCount", VM_CLASSES_LOADED},
    {"jdk.ClassLoadingStatistics", "unloadedClassCount", VM_CLASSES_UNLOADED},
    {"jdk.CompilerStatistics", "compileCount", VM_COMPILATIONS},
    {"jdk.CompilerStatistics", "totalTimeSpent", VM_COMPILE_TIME, .time = true},
    {"jdk.CompilerStatistics", "bailoutCount", VM_BAILOUTS},
    {"jdk.CompilerStatistics", "invalidatedCount", VM_INVALIDATED},
    {"jdk.CompilerStatistics", "nmethodsSize", VM_CODE_BYTES},
    {"jdk.ContainerMemoryUsage", "memoryFailCount", VM_MEMORY_FAILURES},
    {"jdk.ContainerMemoryUsage", "memoryUsage", VM_MEMORY},
    {"jvmscope.ProcessFigures", "openFiles", VM_FILES},
    {"jvmscope.ProcessFigures", "openFilesLimit", VM_FILES_LIMIT},
    {"jvmscope.ProcessFigures", "stolenTime", VM_STEAL_TIME, .time = true},
    {"jvmscope.ProcessFigures", "cpuPressure", VM_PRESSURE_CPU, .time = true},
    {"jvmscope.ProcessFigures", "memoryPressure", VM_PRESSURE_MEMORY, .time = true},
    {"jvmscope.ProcessFigures", "ioPressure", VM_PRESSURE_IO, .time = true},
    {"jvmscope.ProcessFigures", "oldGeneration", VM_OLD_GENERATION},
};

/* Parts of a safepoint or collection that events of their own report, by its number. */
struct part {
    int64_t end_ns;
    uint32_t operation;
    bool has_end;
    uint64_t before, after, capacity;
    bool has_before, has_after;
};

struct reading {
    struct vm_activity *out;
    const struct vm_activity_filter *filter;
    const struct rec_event *e;
    struct map safepoints, collections; /* id to the place in parts + 1 */
    VEC(struct part) parts;
    struct map deoptimizations; /* hash of method, reason and place to the place in the list + 1 */
    VEC(struct totals_at {
        int64_t ns;
        struct vm_totals t;
    })
    totals;
    /* Figures in the file's order, which is not that of time. */
    VEC(struct sample {
        int64_t ns;
        uint64_t value;
        enum vm_figure_kind kind;
    })
    samples;
    int error;
};

const char *vm_text(const struct vm_activity *v, uint32_t text)
{
    return text == VM_NONE ? "" : strpool_get(&v->strings, text).data;
}

static uint32_t text_of(struct reading *r, const char *s)
{
    int64_t n = s && *s ? strpool_add(&r->out->strings, s, strlen(s)) : VM_NONE;
    if (n < 0)
        r->error = (int)n;
    return n < 0 ? VM_NONE : (uint32_t)n;
}

static uint32_t text_field(struct reading *r, const char *field)
{
    return text_of(r, rec_string(&r->e->object, field, NULL));
}

static uint64_t length(int64_t ns)
{
    return (uint64_t)MIN(MAX(ns, INT64_C(0)), LONGEST_NS);
}

static bool in_window(const struct vm_activity *v, const struct vm_activity_filter *f, int64_t ns)
{
    int64_t since = ns - v->start_ns;
    return (!f->from_ns || since >= (int64_t)f->from_ns) &&
           (!f->to_ns || since < (int64_t)f->to_ns);
}

static bool wanted(const struct reading *r)
{
    return in_window(r->out, r->filter, r->e->start_ns);
}

static struct part *part_of(struct reading *r, struct map *m, uint64_t id)
{
    bool added = false;
    uint64_t *at = map_at(m, id, r->parts.len + 1, &added);
    if (!at || (added && vec_push(&r->parts, ((struct part){.operation = VM_NONE})) < 0)) {
        r->error = -ENOMEM;
        return NULL;
    }
    return &r->parts.data[*at - 1];
}

static const struct part *find_part(const struct reading *r, const struct map *m, uint64_t id)
{
    const uint64_t *at = map_get(m, id);
    return at ? &r->parts.data[*at - 1] : NULL;
}

static uint64_t id_field(const struct reading *r, const char *field)
{
    return (uint64_t)rec_long(&r->e->object, field, 0);
}

static void on_begin(struct reading *r)
{
    struct vm_safepoint s = {.id = id_field(r, "safepointId"),
                             .start_ns = r->e->start_ns,
                             .sync_ns = length(r->e->duration_ns),
                             .operation = VM_NONE,
                             .late_thread = VM_NONE};
    if (wanted(r) && vec_push(&r->out->safepoints, s) < 0)
        r->error = -ENOMEM;
}

static void on_end(struct reading *r)
{
    struct part *p = part_of(r, &r->safepoints, id_field(r, "safepointId"));
    if (!p)
        return;
    p->end_ns = MAX(p->end_ns, r->e->start_ns + (int64_t)length(r->e->duration_ns));
    p->has_end = true;
}

static void on_operation(struct reading *r)
{
    struct part *p = rec_long(&r->e->object, "safepoint", 0)
                         ? part_of(r, &r->safepoints, id_field(r, "safepointId"))
                         : NULL;
    if (!p)
        return;
    /* JFR's recordings may lack the end. */
    p->operation = text_field(r, "operation");
    p->end_ns = MAX(p->end_ns, r->e->start_ns + (int64_t)length(r->e->duration_ns));
    p->has_end = true;
}

static void on_totals(struct reading *r)
{
    const struct rec_object *o = &r->e->object;
    struct totals_at t = {r->e->start_ns,
                          {(uint64_t)rec_long(o, "count", 0), length(rec_ns(o, "time", 0)),
                           length(rec_ns(o, "syncTime", 0))}};
    if (vec_push(&r->totals, t) < 0)
        r->error = -ENOMEM;
}

static void on_collection(struct reading *r)
{
    const struct rec_object *o = &r->e->object;
    struct vm_collection c = {.id = (uint32_t)id_field(r, "gcId"),
                              .start_ns = r->e->start_ns,
                              .duration_ns = length(r->e->duration_ns),
                              .pauses_ns = length(rec_ns(o, "sumOfPauses", 0)),
                              .longest_ns = length(rec_ns(o, "longestPause", 0)),
                              .name = text_field(r, "name"),
                              .cause = text_field(r, "cause")};
    if (wanted(r) && vec_push(&r->out->collections, c) < 0)
        r->error = -ENOMEM;
}

static void on_pause(struct reading *r)
{
    struct vm_pause p = {r->e->start_ns, length(r->e->duration_ns), text_field(r, "name"),
                         (uint32_t)id_field(r, "gcId"), false};
    if (wanted(r) && vec_push(&r->out->pauses, p) < 0)
        r->error = -ENOMEM;
}

static void on_phase(struct reading *r, bool concurrent)
{
    struct vm_pause p = {r->e->start_ns, length(r->e->duration_ns), text_field(r, "name"),
                         (uint32_t)id_field(r, "gcId"), concurrent};
    if (wanted(r) && vec_push(&r->out->phases, p) < 0)
        r->error = -ENOMEM;
}

static void added(struct reading *r, int error)
{
    if (error < 0)
        r->error = error;
}

static void on_heap(struct reading *r)
{
    const struct rec_object *o = &r->e->object;
    struct part *p = part_of(r, &r->collections, id_field(r, "gcId"));
    const char *when = rec_string(o, "when", "");
    if (!p)
        return;
    uint64_t used = (uint64_t)MAX(rec_long(o, "heapUsed", 0), 0);
    p->capacity = (uint64_t)MAX(rec_long(o, "heapSpace.committedSize", 0), 0);
    if (strncmp(when, "Before", 6) == 0) {
        p->before = used;
        p->has_before = true;
    } else {
        p->after = used;
        p->has_after = true;
    }
}

/* ---- compilers ---- */

static uint32_t method_text(struct reading *r)
{
    const struct rec_method *m = rec_method(&r->e->object, "method");
    return text_of(r, m ? m->full : rec_string(&r->e->object, "method", NULL));
}

static void on_compilation(struct reading *r)
{
    const struct rec_object *o = &r->e->object;
    struct vm_compilation c = {.start_ns = r->e->start_ns,
                               .duration_ns = length(r->e->duration_ns),
                               .method = method_text(r),
                               .level = (uint32_t)rec_long(o, "compileLevel", 0),
                               .osr = rec_long(o, "isOsr", 0) != 0,
                               .failed = rec_long(o, "succeded", 1) == 0};
    if (wanted(r) && vec_push(&r->out->compilations, c) < 0)
        r->error = -ENOMEM;
}

static void on_deoptimization(struct reading *r, bool discarded)
{
    const struct rec_object *o = &r->e->object;
    struct vm_deoptimization d = {.method = method_text(r),
                                  .reason = text_field(r, "reason"),
                                  .action = text_field(r, "action"),
                                  .line = (int32_t)rec_long(o, "lineNumber", -1),
                                  .bci = (int32_t)rec_long(o, "bci", -1),
                                  .count = (uint64_t)MAX(rec_long(o, "count", 1), 1),
                                  .first_ns = r->e->start_ns,
                                  .last_ns = r->e->start_ns,
                                  .discarded = discarded};
    if (!wanted(r))
        return;
    const uint32_t key[] = {d.method, d.reason, (uint32_t)d.bci, discarded};
    bool added = false;
    uint64_t *at = map_at(&r->deoptimizations, hash_bytes(key, sizeof(key)),
                          r->out->deoptimizations.len + 1, &added);
    if (!at || (added && vec_push(&r->out->deoptimizations, d) < 0)) {
        r->error = -ENOMEM;
        return;
    }
    if (added)
        return;
    struct vm_deoptimization *there = &r->out->deoptimizations.data[*at - 1];
    there->count += d.count;
    there->first_ns = MIN(there->first_ns, d.first_ns);
    there->last_ns = MAX(there->last_ns, d.last_ns);
}

/* ---- figures ---- */

static void put_sample(struct reading *r, enum vm_figure_kind kind, int64_t v)
{
    struct sample s = {r->e->start_ns, (uint64_t)v, kind};
    if (v >= 0 && vec_push(&r->samples, s) < 0)
        r->error = -ENOMEM;
}

/* In order of time. */
static void add_figure(struct vm_figure *f, int64_t ns, uint64_t v)
{
    if (f->n == 0) {
        *f = (struct vm_figure){.first_ns = ns, .first = v, .low = v, .high = v};
    } else if (v > f->last) {
        f->grown += v - f->last;
    }
    f->n++;
    f->sum += (double)v;
    f->last = v;
    f->last_ns = ns;
    f->low = MIN(f->low, v);
    f->high = MAX(f->high, v);
}

static void on_figures(struct reading *r)
{
    const struct rec_object *o = &r->e->object;
    if (!wanted(r))
        return;
    for (size_t i = 0; i < ARRAY_SIZE(figure_fields); i++) {
        struct rec_value v;
        const char *field = figure_fields[i].field;
        if (strcmp(o->type->name, figure_fields[i].type) != 0 || rec_get(o, field, &v) < 0)
            continue;
        int64_t n = figure_fields[i].share  ? (int64_t)(rec_real(o, field, 0) * 1e6)
                    : figure_fields[i].time ? rec_ns(o, field, -1)
                                            : rec_long(o, field, -1);
        put_sample(r, figure_fields[i].kind, n);
    }
}

static void on_throttling(struct reading *r)
{
    const struct rec_object *o = &r->e->object;
    if (!wanted(r))
        return;
    put_sample(r, VM_THROTTLED_TIME, rec_ns(o, "cpuThrottledTime", -1));
    put_sample(r, VM_SLICES, rec_long(o, "cpuElapsedSlices", -1));
    put_sample(r, VM_THROTTLED_SLICES, rec_long(o, "cpuThrottledSlices", -1));
}

static void on_container(struct reading *r)
{
    const struct rec_object *o = &r->e->object;
    int64_t memory = rec_long(o, "memoryLimit", -1), quota = rec_ns(o, "cpuQuota", -1),
            period = rec_ns(o, "cpuSlicePeriod", -1);
    r->out->memory_limit = memory > 0 ? (uint64_t)memory : 0;
    r->out->cpu_quota_us = quota > 0 ? (uint64_t)quota / 1000 : 0;
    r->out->cpu_period_us = period > 0 ? (uint64_t)period / 1000 : 0;
}

static void on_event(struct reading *r)
{
    switch ((enum tag)r->e->tag) {
    case BEGIN:
        on_begin(r);
        break;
    case END:
        on_end(r);
        break;
    case OPERATION:
        on_operation(r);
        break;
    case TOTALS:
        on_totals(r);
        break;
    case COLLECTION:
        on_collection(r);
        break;
    case PAUSE:
        on_pause(r);
        break;
    case HEAP:
        on_heap(r);
        break;
    case COMPILATION:
    case COMPILED:
        on_compilation(r);
        break;
    case DEOPTIMIZATION:
    case TRAP:
        on_deoptimization(r, false);
        break;
    case DISCARDED:
        on_deoptimization(r, true);
        break;
    case FIGURES:
        on_figures(r);
        break;
    case THROTTLING:
        on_throttling(r);
        break;
    case CONTAINER:
        on_container(r);
        break;
    case PHASE:
        on_phase(r, false);
        break;
    case CONCURRENT_PHASE:
        on_phase(r, true);
        break;
    case POOL:
        added(r, wanted(r) ? vm_add_pool(r->out, r->e) : 0);
        break;
    case METASPACE:
        added(r, wanted(r) ? vm_add_metaspace(r->out, r->e) : 0);
        break;
    case LOADER:
        added(r, wanted(r) ? vm_add_loader(r->out, r->e) : 0);
        break;
    case FAILURE:
        break;
    }
}

/* ---- putting it together ---- */

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
    const struct totals_at *x = a, *y = b;
    return (x->ns > y->ns) - (x->ns < y->ns);
}

static int by_sample_ns(const void *a, const void *b)
{
    const struct sample *x = a, *y = b;
    return (x->ns > y->ns) - (x->ns < y->ns);
}

#define SORT(list, by)                                                  \
    do {                                                                \
        if ((list).len)                                                 \
            qsort((list).data, (list).len, sizeof((list).data[0]), by); \
    } while (0)

static void add_samples(struct reading *r)
{
    struct vm_activity *v = r->out;
    for (size_t i = 0; i < r->samples.len; i++) {
        const struct sample *s = &r->samples.data[i];
        struct vm_figure *f = &v->figures[s->kind];
        struct vm_throttle t = {f->last_ns, s->ns, s->value - f->last};
        if (s->kind == VM_THROTTLED_TIME && f->n && s->value > f->last &&
            vec_push(&v->throttles, t) < 0)
            r->error = -ENOMEM;
        add_figure(f, s->ns, s->value);
    }
}

static void put_together(struct reading *r)
{
    struct vm_activity *v = r->out;
    SORT(r->samples, by_sample_ns);
    add_samples(r);
    for (size_t i = 0; i < v->safepoints.len; i++) {
        struct vm_safepoint *s = &v->safepoints.data[i];
        const struct part *p = find_part(r, &r->safepoints, s->id);
        s->total_ns = s->sync_ns;
        if (p && p->has_end)
            s->total_ns = MAX(s->sync_ns, length(p->end_ns - s->start_ns));
        s->operation = p ? p->operation : VM_NONE;
    }
    for (size_t i = 0; i < v->collections.len; i++) {
        struct vm_collection *c = &v->collections.data[i];
        const struct part *p = find_part(r, &r->collections, c->id);
        c->has_heap = p && p->has_before && p->has_after;
        if (c->has_heap) {
            c->before = p->before;
            c->after = p->after;
            c->capacity = p->capacity;
        }
    }
    SORT(v->safepoints, by_start_safepoint);
    SORT(v->pauses, by_start_pause);
    SORT(v->collections, by_start_collection);
    vm_sort_pools(v);
    SORT(v->deoptimizations, by_count);
    SORT(r->totals, by_ns);
    if (r->totals.len && !r->filter->from_ns && !r->filter->to_ns) {
        const struct vm_totals *a = &r->totals.data[0].t, *b = &r->totals.data[r->totals.len - 1].t;
        v->has_totals = true;
        v->totals = (struct vm_totals){b->count - a->count, b->time_ns - a->time_ns,
                                       b->sync_ns - a->sync_ns};
    }
}

/* ---- who was late ---- */

/* Returns the safepoint on whose way a time lies, if that is a long one. */
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
 * All threads but those that are late stop at once, so that the last one that was seen running on
 * the way to a safepoint is the one that the others waited for.
 */
static void find_late(struct reading *r, struct recording *recording)
{
    static const struct rec_select samples[] = {
        {"jdk.ExecutionSample", 0}, {"jdk.CPUTimeSample", 0}, {"jvmscope.LateThread", 1}, {0}};
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
        uint32_t ours = stack ? probe_frames(stack) : 0;
        if (!t || !stack || stack->n <= ours)
            continue;
        *last = e.start_ns;
        s->late_thread = text_of(r, t->name);
        s->late_first = (uint32_t)r->out->frames.len;
        s->late_n = 0;
        for (uint32_t i = ours; i < stack->n && s->late_n < LATE_FRAMES; i++, s->late_n++)
            if (vec_push(&r->out->frames,
                         ((struct vm_frame){text_of(r, stack->frames[i].method->full),
                                            (uint32_t)MAX(stack->frames[i].line, 0)})) < 0)
                r->error = -ENOMEM;
    }
}

static int visit(void *context, const struct rec_event *e)
{
    struct reading *r = context;
    r->e = e;
    on_event(r);
    return r->error;
}

int vm_activity_load(struct vm_activity *ret, const char *path,
                     const struct vm_activity_filter *filter, struct buf *why)
{
    _cleanup_(recording_closep) struct recording *recording = NULL;
    struct vm_activity out = {0};
    struct reading r = {.out = &out, .filter = filter};
    const char *reason = NULL;
    struct rec_info info;
    int error = recording_open(&recording, path, &reason);
    if (error < 0) {
        buf_printf(why, "%s", reason ? reason : strerror(-error));
        return error;
    }
    recording_info(recording, &info);
    out.start_ns = info.start_ns;
    error = recording_each(recording, selected, visit, &r);
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
    vec_release(&r.samples);
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
    strpool_release(&v->strings);
    *v = (struct vm_activity){0};
}
