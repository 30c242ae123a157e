/* SPDX-License-Identifier: Apache-2.0 */
#include "fleet/metrics.h"

#include "base/clock.h"
#include "base/map.h"
#include "base/vec.h"
#include "fleet/figures.h"
#include "fleet/store.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Figures have buckets of a minute. A VM that was silent for longer than this counts as gone. */
enum { STEP_S = 60, MINUTES = METRICS_SPAN_S / STEP_S + 2 };

struct reading_sum {
    uint64_t count, total, most;
};

struct vm_now {
    const struct store_series *series;
    int64_t newest_s;
    struct reading_sum of[MINUTES][FLEET_FIGURES];
};

struct collecting {
    VEC(struct vm_now *) vms;
    struct map vm_of; /* series -> number in vms + 1; 0: beyond the limit */
    int64_t from_s;
    uint64_t others;
};

static bool is_same(const struct store_series *a, const struct store_series *b)
{
    return strcmp(a->service, b->service) == 0 && strcmp(a->version, b->version) == 0 &&
           strcmp(a->instance, b->instance) == 0;
}

/*
 * Returns the number of a series' VM. Series that differ only in other labels would have the same
 * name in the output, so they count as one VM.
 */
static int64_t add_vm(struct collecting *c, const struct store_series *s)
{
    for (size_t i = 0; i < c->vms.len; i++)
        if (is_same(c->vms.data[i]->series, s))
            return (int64_t)i + 1;
    if (c->vms.len == METRICS_VMS_MAX) {
        c->others++;
        return 0;
    }
    struct vm_now *vm = calloc(1, sizeof(*vm));
    if (!vm || vec_push(&c->vms, vm) < 0) {
        free(vm);
        return -ENOMEM;
    }
    vm->series = s;
    return (int64_t)c->vms.len;
}

static int on_figure(void *context, const struct store_latency *l)
{
    struct collecting *c = context;
    int figure = 0;
    bool added = false;
    int64_t minute = (l->start_s - c->from_s) / STEP_S;
    while (figure < FLEET_FIGURES && strcmp(fleet_figures[figure].name, l->request) != 0)
        figure++;
    if (figure == FLEET_FIGURES || l->start_s < c->from_s || minute >= MINUTES)
        return 0; /* from a later version, or from a clock that is fast */
    uint64_t *at = map_at(&c->vm_of, l->series->id, 0, &added);
    int64_t number = !at ? -ENOMEM : added ? add_vm(c, l->series) : (int64_t)*at;
    if (number <= 0)
        return (int)number;
    *at = (uint64_t)number;
    struct vm_now *vm = c->vms.data[number - 1];
    struct reading_sum *sum = &vm->of[minute][figure];
    sum->count += l->count;
    sum->total += l->total_ns;
    sum->most = MAX(sum->most, l->max_ns);
    vm->newest_s = MAX(vm->newest_s, c->from_s + minute * STEP_S);
    return 0;
}

static int by_name(const void *left, const void *right)
{
    const struct store_series *a = (*(struct vm_now *const *)left)->series,
                              *b = (*(struct vm_now *const *)right)->series;
    int c = strcmp(a->service, b->service);
    c = c ? c : strcmp(a->version, b->version);
    return c ? c : strcmp(a->instance, b->instance);
}

/* ---- the text */

/* How a gauge is computed from a figure's sums. */
enum gauge_of { MEAN_OF_LATEST, NUMBER_OF_MINUTE, SECONDS_OF_MINUTE, MOST_OF_MINUTE, CORES };

static const struct gauge {
    const char *name, *help;
    enum fleet_figure figure;
    enum gauge_of of;
} gauges[] = {
    {"heap_used_bytes", "Heap in use after collections, mean of the latest minute that had one",
     FIGURE_HEAP, MEAN_OF_LATEST},
    {"resident_bytes", "Resident memory of the process, mean of the latest minute", FIGURE_RSS,
     MEAN_OF_LATEST},
    {"container_memory_bytes", "Memory of the container, mean of the latest minute", FIGURE_MEMORY,
     MEAN_OF_LATEST},
    {"threads", "Threads, mean of the latest minute", FIGURE_THREADS, MEAN_OF_LATEST},
    {"cpu_cores", "Processors that were busy, mean of the latest whole minute", FIGURE_CPU, CORES},
    {"collections", "Collections that ended in the latest whole minute", FIGURE_COLLECTIONS,
     NUMBER_OF_MINUTE},
    {"pauses", "Pauses for collections in the latest whole minute", FIGURE_PAUSES,
     NUMBER_OF_MINUTE},
    {"pause_seconds", "Time in pauses for collections in the latest whole minute", FIGURE_PAUSES,
     SECONDS_OF_MINUTE},
    {"longest_pause_seconds", "The longest pause for a collection in the latest whole minute",
     FIGURE_PAUSES, MOST_OF_MINUTE},
    {"safepoint_seconds", "Time for which all threads were stopped in the latest whole minute",
     FIGURE_SAFEPOINTS, SECONDS_OF_MINUTE},
    {"throttled_seconds",
     "Time for which the CPU limit of the container stopped threads in the latest whole minute",
     FIGURE_THROTTLED, SECONDS_OF_MINUTE},
};

static bool has(const struct vm_now *vm, int64_t minute)
{
    for (int k = 0; k < FLEET_FIGURES; k++)
        if (vm->of[minute][k].count)
            return true;
    return false;
}

/*
 * Returns the minute that a gauge describes, or -1. If the VM sends a figure at all, the figure
 * counts as 0 in a minute that has only other figures.
 */
static int64_t minute_of(const struct collecting *c, const struct vm_now *vm, const struct gauge *g)
{
    int64_t newest = (vm->newest_s - c->from_s) / STEP_S, at = -1;
    bool sent = false;
    for (int64_t i = newest; i >= 0; i--) {
        bool wanted =
            g->of == MEAN_OF_LATEST ? vm->of[i][g->figure].count > 0 : i < newest && has(vm, i);
        at = at < 0 && wanted ? i : at;
        sent = sent || vm->of[i][g->figure].count;
    }
    return sent ? at : -1;
}

static double value_of(const struct reading_sum *s, enum gauge_of of)
{
    switch (of) {
    case MEAN_OF_LATEST:
        return (double)s->total / (double)MAX(s->count, UINT64_C(1));
    case NUMBER_OF_MINUTE:
        return (double)s->count;
    case SECONDS_OF_MINUTE:
        return (double)s->total / 1e9;
    case MOST_OF_MINUTE:
        return (double)s->most / 1e9;
    default:
        return (double)s->total / 1e9 / STEP_S;
    }
}

static void put_label(struct buf *out, const char *name, const char *value)
{
    buf_printf(out, "%s=\"", name);
    for (const char *c = value; *c; c++) {
        if (*c == '\\' || *c == '"')
            buf_u8(out, '\\');
        if (*c == '\n')
            buf_string(out, "\\n");
        else
            buf_u8(out, (uint8_t)*c);
    }
    buf_u8(out, '"');
}

static void put_head(struct buf *out, const char *name, const char *help)
{
    buf_printf(out, "# HELP jvmscope_vm_%s %s.\n# TYPE jvmscope_vm_%s gauge\n", name, help, name);
}

static void put_gauge(const struct collecting *c, const struct gauge *g, struct buf *out)
{
    bool first = true;
    for (size_t i = 0; i < c->vms.len; i++) {
        const struct vm_now *vm = c->vms.data[i];
        int64_t minute = minute_of(c, vm, g);
        if (minute < 0)
            continue;
        if (first)
            put_head(out, g->name, g->help);
        first = false;
        buf_printf(out, "jvmscope_vm_%s{", g->name);
        put_label(out, "service", vm->series->service);
        put_label(out, ",version", vm->series->version);
        put_label(out, ",instance", vm->series->instance);
        buf_printf(out, "} %.15g\n", value_of(&vm->of[minute][g->figure], g->of));
    }
}

int fleet_metrics(struct store *s, const char *tenant, int64_t now_s, struct buf *out,
                  struct buf *why)
{
    struct collecting c = {.from_s = fleet_floor(now_s - METRICS_SPAN_S, STEP_S)};
    struct fleet_choice choice = {.tenant = tenant,
                                  .from_s = c.from_s,
                                  .names = FLEET_FIGURE,
                                  .step_s = store_resolution_s[0]};
    struct store_read *r = NULL;
    int e = store_begin(s, &choice, &r, why);
    if (e == 0)
        e = store_each_latency(s, r, on_figure, &c);
    vec_sort(&c.vms, by_name);
    for (size_t i = 0; e == 0 && i < ARRAY_SIZE(gauges); i++)
        put_gauge(&c, &gauges[i], out);
    if (e == 0) {
        put_head(out, "not_shown", "VMs beyond the number that this page shows");
        buf_printf(out, "jvmscope_vm_not_shown %llu\n", (unsigned long long)c.others);
    }
    store_end(s, r);
    for (size_t i = 0; i < c.vms.len; i++)
        free(c.vms.data[i]);
    vec_release(&c.vms);
    map_release(&c.vm_of);
    return e;
}
