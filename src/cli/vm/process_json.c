/* SPDX-License-Identifier: Apache-2.0 */
/* Compilers, the process and its container, as JSON. */
#include "cli/vm/vm.h"

static void compilations_json(const struct vm_view *w, struct json *j)
{
    const struct vm_figure *f = w->v.figures;
    json_key_object(j, "compilations");
    json_key_u64(j, "count", vm_compiled(w));
    json_key_u64(j, "time_ns", vm_grown(&f[VM_COMPILE_TIME]));
    json_key_u64(j, "bailouts", vm_grown(&f[VM_BAILOUTS]));
    json_key_u64(j, "invalidated", vm_grown(&f[VM_INVALIDATED]));
    json_key_u64(j, "code_bytes", vm_grown(&f[VM_CODE_BYTES]));
    json_key_u64(j, "counted_ns", vm_counted_ns(&f[VM_COMPILATIONS]));
    json_key_u64(j, "each_known", w->v.compilations.len);
    json_key_array(j, "methods");
    for (size_t i = 0; i < MIN(w->methods.len, w->limit); i++) {
        json_begin_object(j);
        vm_key_text(w, j, "method", w->methods.data[i].name);
        json_key_u64(j, "count", w->methods.data[i].n);
        json_key_u64(j, "time_ns", w->methods.data[i].total_ns);
        json_end_object(j);
    }
    json_end_array(j);
    json_end_object(j);
    json_key_array(j, "deoptimizations");
    for (size_t i = 0; i < w->v.deoptimizations.len; i++) {
        const struct vm_deoptimization *d = &w->v.deoptimizations.data[i];
        json_begin_object(j);
        vm_key_text(w, j, "method", d->method);
        vm_key_text(w, j, "reason", d->reason);
        vm_key_text(w, j, "action", d->action);
        json_key_bool(j, "discarded", d->discarded);
        json_key_i64(j, "line", d->line);
        json_key_i64(j, "bci", d->bci);
        json_key_u64(j, "count", d->count);
        json_key_u64(j, "first_ns", vm_since_start(w, d->first_ns));
        json_key_u64(j, "last_ns", vm_since_start(w, d->last_ns));
        json_end_object(j);
    }
    json_end_array(j);
}

static void loaders_json(const struct vm_view *w, struct json *j)
{
    json_key_array(j, "class_loaders");
    for (size_t i = 0; i < w->v.loaders.len; i++) {
        const struct vm_loader *l = &w->v.loaders.data[i];
        json_begin_object(j);
        vm_key_text(w, j, "class", l->name);
        json_key_u64(j, "loaded", l->loaded);
        json_key_u64(j, "unloaded", l->unloaded);
        json_end_object(j);
    }
    json_end_array(j);
}

static void pools_json(const struct vm_view *w, struct json *j)
{
    json_key_array(j, "memory");
    for (size_t i = 0; i < w->v.pools.len; i++) {
        const struct vm_pool *p = &w->v.pools.data[i];
        json_begin_object(j);
        vm_key_text(w, j, "pool", p->name);
        json_key_u64(j, "first_bytes", p->used_first);
        json_key_u64(j, "used_bytes", p->used);
        json_key_u64(j, "most_bytes", p->used_most);
        json_key_u64(j, "committed_bytes", p->committed);
        json_key_u64(j, "limit_bytes", p->max);
        json_end_object(j);
    }
    json_end_array(j);
}

static const struct {
    const char *name;
    enum vm_figure_kind kind;
    /* a count since the start of the VM or container, of which only the growth is shown */
    bool counted;
    double scale; /* 0: an integer */
} rows[] = {
    {"cpu_user", VM_CPU_USER, false, 1e-6},
    {"cpu_system", VM_CPU_SYSTEM, false, 1e-6},
    {"cpu_machine", VM_CPU_MACHINE, false, 1e-6},
    {"rss_bytes", VM_RSS, false, 0},
    {"threads", VM_THREADS, false, 0},
    {"threads_started", VM_THREADS_STARTED, true, 0},
    {"classes_loaded", VM_CLASSES_LOADED, true, 0},
    {"classes_unloaded", VM_CLASSES_UNLOADED, true, 0},
    {"open_files", VM_FILES, false, 0},
    {"open_files_limit", VM_FILES_LIMIT, false, 0},
    {"stolen_ns", VM_STEAL_TIME, true, 0},
    {"cpu_pressure_ns", VM_PRESSURE_CPU, true, 0},
    {"memory_pressure_ns", VM_PRESSURE_MEMORY, true, 0},
    {"io_pressure_ns", VM_PRESSURE_IO, true, 0},
    {"old_generation_bytes", VM_OLD_GENERATION, false, 0},
};

static void put(struct json *j, const char *key, double v, double scale)
{
    json_key(j, key);
    if (scale > 0)
        json_double(j, v * scale);
    else
        json_u64(j, (uint64_t)v);
}

static void process_json(const struct vm_view *w, struct json *j)
{
    json_key_object(j, "process");
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        const struct vm_figure *f = &w->v.figures[rows[i].kind];
        if (!f->n)
            continue;
        json_key_object(j, rows[i].name);
        put(j, "last", (double)f->last, rows[i].scale);
        if (rows[i].counted) {
            json_key_u64(j, "grown", vm_grown(f));
            json_key_u64(j, "counted_ns", vm_counted_ns(f));
        } else {
            put(j, "least", (double)f->low, rows[i].scale);
            put(j, "most", (double)f->high, rows[i].scale);
            put(j, "mean", f->sum / (double)f->n, rows[i].scale);
        }
        json_end_object(j);
    }
    json_end_object(j);
}

static void container_json(const struct vm_view *w, struct json *j)
{
    const struct vm_figure *f = w->v.figures;
    json_key_object(j, "container");
    json_key_u64(j, "memory_limit_bytes", w->v.memory_limit);
    json_key_u64(j, "memory_most_bytes", f[VM_MEMORY].high);
    json_key_u64(j, "memory_limit_hits", vm_grown(&f[VM_MEMORY_FAILURES]));
    json_key_u64(j, "cpu_quota_us", w->v.cpu_quota_us);
    json_key_u64(j, "cpu_period_us", w->v.cpu_period_us);
    json_key_u64(j, "slices", vm_grown(&f[VM_SLICES]));
    json_key_u64(j, "throttled_slices", vm_grown(&f[VM_THROTTLED_SLICES]));
    json_key_u64(j, "throttled_ns", vm_grown(&f[VM_THROTTLED_TIME]));
    json_key_array(j, "throttled");
    for (size_t i = 0; i < w->v.throttles.len; i++) {
        const struct vm_throttle *t = &w->v.throttles.data[i];
        json_begin_object(j);
        json_key_u64(j, "from_ns", vm_since_start(w, t->from_ns));
        json_key_u64(j, "to_ns", vm_since_start(w, t->to_ns));
        json_key_u64(j, "throttled_ns", t->throttled_ns);
        json_end_object(j);
    }
    json_end_array(j);
    json_end_object(j);
}

void vm_view_process_json(const struct vm_view *w, struct json *j)
{
    compilations_json(w, j);
    loaders_json(w, j);
    pools_json(w, j);
    process_json(w, j);
    container_json(w, j);
}
