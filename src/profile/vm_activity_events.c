/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/vm_activity_private.h"

#include "base/buf.h"
#include "base/generated_name.h"
#include "base/hash.h"
#include "jfr/reader_setting.h"
#include "profile/frame_role.h"

#include <errno.h>
#include <string.h>

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
    SETTING,
};

const struct rec_select activity_events[] = {
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
    {"jdk.ActiveSetting", SETTING},
    {0},
};

/* The sources of figures. An event that lacks a field has no such figure. */
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

static uint32_t text_field(struct activity_reading *r, const char *field)
{
    return vm_activity_keep_text(r, rec_string(&r->e->object, field, NULL));
}

static bool in_window(const struct vm_activity *v, const struct vm_activity_filter *f, int64_t ns)
{
    int64_t since = ns - v->start_ns;
    return (!f->from_ns || since >= (int64_t)f->from_ns) &&
           (!f->to_ns || since < (int64_t)f->to_ns);
}

static bool wanted(const struct activity_reading *r)
{
    if (r->part && r->e->start_ns < r->out->start_ns)
        return false;
    return in_window(r->out, r->filter, r->e->start_ns);
}

static struct activity_part *part_of(struct activity_reading *r, struct map *m, uint64_t id)
{
    bool added = false;
    uint64_t *at = map_at(m, id, r->parts.len + 1, &added);
    if (!at || (added && vec_push(&r->parts, ((struct activity_part){.operation = VM_NONE})) < 0)) {
        r->error = -ENOMEM;
        return NULL;
    }
    return &r->parts.data[*at - 1];
}

static uint64_t id_field(const struct activity_reading *r, const char *field)
{
    return (uint64_t)rec_long(&r->e->object, field, 0);
}

static void on_begin(struct activity_reading *r)
{
    struct vm_safepoint s = {.id = id_field(r, "safepointId"),
                             .start_ns = r->e->start_ns,
                             .sync_ns = vm_activity_length(r->e->duration_ns),
                             .operation = VM_NONE,
                             .late_thread = VM_NONE};
    if (wanted(r) && vec_push(&r->out->safepoints, s) < 0)
        r->error = -ENOMEM;
}

static void on_end(struct activity_reading *r)
{
    struct activity_part *p = part_of(r, &r->safepoints, id_field(r, "safepointId"));
    if (!p)
        return;
    p->end_ns = MAX(p->end_ns, r->e->start_ns + (int64_t)vm_activity_length(r->e->duration_ns));
    p->has_end = true;
}

static void on_operation(struct activity_reading *r)
{
    struct activity_part *p = rec_long(&r->e->object, "safepoint", 0)
                                  ? part_of(r, &r->safepoints, id_field(r, "safepointId"))
                                  : NULL;
    if (!p)
        return;
    /* recordings of the JDK's recorder may lack the end */
    p->operation = text_field(r, "operation");
    p->end_ns = MAX(p->end_ns, r->e->start_ns + (int64_t)vm_activity_length(r->e->duration_ns));
    p->has_end = true;
}

static void on_totals(struct activity_reading *r)
{
    const struct rec_object *o = &r->e->object;
    struct activity_totals t = {r->e->start_ns,
                                {(uint64_t)rec_long(o, "count", 0),
                                 vm_activity_length(rec_ns(o, "time", 0)),
                                 vm_activity_length(rec_ns(o, "syncTime", 0))}};
    if (vec_push(&r->totals, t) < 0)
        r->error = -ENOMEM;
}

static void on_collection(struct activity_reading *r)
{
    const struct rec_object *o = &r->e->object;
    struct vm_collection c = {.id = (uint32_t)id_field(r, "gcId"),
                              .start_ns = r->e->start_ns,
                              .duration_ns = vm_activity_length(r->e->duration_ns),
                              .pauses_ns = vm_activity_length(rec_ns(o, "sumOfPauses", 0)),
                              .longest_ns = vm_activity_length(rec_ns(o, "longestPause", 0)),
                              .name = text_field(r, "name"),
                              .cause = text_field(r, "cause")};
    if (wanted(r) && vec_push(&r->out->collections, c) < 0)
        r->error = -ENOMEM;
}

static void on_pause(struct activity_reading *r)
{
    struct vm_pause p = {r->e->start_ns, vm_activity_length(r->e->duration_ns),
                         text_field(r, "name"), (uint32_t)id_field(r, "gcId"), false};
    if (wanted(r) && vec_push(&r->out->pauses, p) < 0)
        r->error = -ENOMEM;
}

static void on_phase(struct activity_reading *r, bool concurrent)
{
    struct vm_pause p = {r->e->start_ns, vm_activity_length(r->e->duration_ns),
                         text_field(r, "name"), (uint32_t)id_field(r, "gcId"), concurrent};
    if (wanted(r) && vec_push(&r->out->phases, p) < 0)
        r->error = -ENOMEM;
}

static void added(struct activity_reading *r, int error)
{
    if (error < 0)
        r->error = error;
}

static void on_heap(struct activity_reading *r)
{
    const struct rec_object *o = &r->e->object;
    struct activity_part *p = part_of(r, &r->collections, id_field(r, "gcId"));
    const char *when = rec_string(o, "when", "");
    if (!p)
        return;
    uint64_t used = (uint64_t)MAX(rec_long(o, "heapUsed", 0), 0);
    p->capacity = (uint64_t)MAX(rec_long(o, "heapSpace.committedSize", 0), 0);
    if (strncmp(when, "Before", 6) == 0) {
        p->before = used;
        p->has_before = true;
        p->no_address = rec_long(o, "heapSpace.start", 1) == 0;
    } else {
        p->after = used;
        p->has_after = true;
    }
}

/* ---- compilers ---- */

static const char *method_name(struct activity_reading *r)
{
    const struct rec_method *m = rec_method(&r->e->object, "method");
    return m ? m->full : rec_string(&r->e->object, "method", NULL);
}

/* Returns the method without the address or number of a class that the VM generated. */
static uint32_t method_text(struct activity_reading *r)
{
    const char *name = method_name(r);
    const char *dot = name ? strrchr(name, '.') : NULL;
    if (!dot)
        return vm_activity_keep_text(r, name);
    _cleanup_(buf_release) struct buf text = BUF(1 << 16);
    buf_bytes(&text, name, (size_t)(dot - name));
    if (!buf_error(&text))
        text.len = generated_name_normalize((char *)text.data, text.len);
    buf_string(&text, dot);
    if (buf_error(&text)) {
        r->error = buf_error(&text);
        return vm_activity_keep_text(r, name);
    }
    return vm_activity_keep_text(r, buf_str(&text));
}

/* Returns whether the event is about a method that the agent injected, which no view shows. */
static bool is_agents(struct activity_reading *r)
{
    const char *name = method_name(r);
    return name && generated_name_is_agents(name, strlen(name));
}

static void on_compilation(struct activity_reading *r)
{
    const struct rec_object *o = &r->e->object;
    struct vm_compilation c = {.start_ns = r->e->start_ns,
                               .duration_ns = vm_activity_length(r->e->duration_ns),
                               .method = method_text(r),
                               .level = (uint32_t)rec_long(o, "compileLevel", 0),
                               .osr = rec_long(o, "isOsr", 0) != 0,
                               .failed = rec_long(o, "succeded", 1) == 0};
    if (wanted(r) && !is_agents(r) && vec_push(&r->out->compilations, c) < 0)
        r->error = -ENOMEM;
}

static void on_deoptimization(struct activity_reading *r, bool discarded)
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
    if (!wanted(r) || is_agents(r))
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
    struct vm_deoptimization *existing = &r->out->deoptimizations.data[*at - 1];
    existing->count += d.count;
    existing->first_ns = MIN(existing->first_ns, d.first_ns);
    existing->last_ns = MAX(existing->last_ns, d.last_ns);
}

/* ---- figures ---- */

static void put_reading(struct activity_reading *r, enum vm_figure_kind kind, int64_t v)
{
    struct vm_reading reading = {r->e->start_ns, (uint64_t)v, kind};
    if (v >= 0 && vec_push(&r->out->readings, reading) < 0)
        r->error = -ENOMEM;
}

/* Reads the figures of an event. */
static void on_figures(struct activity_reading *r)
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
        put_reading(r, figure_fields[i].kind, n);
    }
}

static void on_throttling(struct activity_reading *r)
{
    const struct rec_object *o = &r->e->object;
    if (!wanted(r))
        return;
    put_reading(r, VM_THROTTLED_TIME, rec_ns(o, "cpuThrottledTime", -1));
    put_reading(r, VM_SLICES, rec_long(o, "cpuElapsedSlices", -1));
    put_reading(r, VM_THROTTLED_SLICES, rec_long(o, "cpuThrottledSlices", -1));
}

static void on_container(struct activity_reading *r)
{
    const struct rec_object *o = &r->e->object;
    int64_t memory = rec_long(o, "memoryLimit", -1), quota = rec_ns(o, "cpuQuota", -1),
            period = rec_ns(o, "cpuSlicePeriod", -1);
    r->out->memory_limit = memory > 0 ? (uint64_t)memory : 0;
    r->out->cpu_quota_us = quota > 0 ? (uint64_t)quota / 1000 : 0;
    r->out->cpu_period_us = period > 0 ? (uint64_t)period / 1000 : 0;
}

/* Reads thresholds: the VM's recorder leaves out events that are shorter. */
static void on_setting(struct activity_reading *r)
{
    uint64_t ns;
    if (strcmp(rec_string(&r->e->object, "name", ""), "threshold") == 0 &&
        rec_setting_is_of(r->e, "jdk.SafepointBegin") && rec_setting_duration(r->e, &ns) == 0)
        r->out->safepoint_least_ns = ns;
}

static void on_event(struct activity_reading *r)
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
    case SETTING:
        on_setting(r);
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
        added(r, wanted(r) ? vm_activity_add_pool(r->out, r->e) : 0);
        break;
    case METASPACE:
        added(r, wanted(r) ? vm_activity_add_metaspace(r->out, r->e) : 0);
        break;
    case LOADER:
        added(r, wanted(r) ? vm_activity_add_loader(r->out, r->e) : 0);
        break;
    case FAILURE:
        break;
    }
}

uint32_t vm_activity_keep_text(struct activity_reading *r, const char *s)
{
    int64_t n = s && *s ? strpool_add(&r->out->strings, s, strlen(s)) : VM_NONE;
    if (n < 0)
        r->error = (int)n;
    return n < 0 ? VM_NONE : (uint32_t)n;
}

uint64_t vm_activity_length(int64_t ns)
{
    return (uint64_t)MIN(MAX(ns, INT64_C(0)), LONGEST_NS);
}

const struct activity_part *vm_activity_part(const struct activity_reading *r, const struct map *m,
                                             uint64_t id)
{
    const uint64_t *at = map_get(m, id);
    return at ? &r->parts.data[*at - 1] : NULL;
}

void vm_activity_add_figure(struct vm_figure *f, int64_t ns, uint64_t v)
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

int vm_activity_visit(void *context, const struct rec_event *e)
{
    struct activity_reading *r = context;
    r->e = e;
    on_event(r);
    return r->error;
}
