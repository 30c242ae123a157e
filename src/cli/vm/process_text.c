/* SPDX-License-Identifier: Apache-2.0 */
/* Compilers, the process and its container, as text. */
#include "cli/vm/vm.h"

#include "base/parse.h"

#include <inttypes.h>

/* A time that is not counted and that is shorter than this is not mentioned. */
#define SAID_NS UINT64_C(250000000)

static const char *shown(const struct vm_view *w, uint32_t text)
{
    return text == VM_NONE ? "-" : vm_activity_text(&w->v, text);
}

/*
 * Counts are read once per second, so the count of an interval lacks what came before the first
 * reading in it and after the last one.
 */
static void counted_text(const struct vm_view *w, const struct vm_figure *f)
{
    uint64_t counted = vm_counted_ns(f);
    char part[24], all[24];
    if (f->n && counted + SAID_NS < w->window_ns)
        printf(" counted from the first reading to the last, over %s of the %s\n",
               format_duration(part, counted), format_duration(all, w->window_ns));
}

static void methods_text(const struct vm_view *w)
{
    size_t repeated = 0;
    while (repeated < w->methods.len && w->methods.data[repeated].n > 2)
        repeated++;
    if (!repeated)
        return;
    printf("%8s %10s  %s\n", "compiled", "time", "method compiled more than twice");
    for (size_t i = 0; i < MIN(repeated, w->limit); i++) {
        const struct vm_group *g = &w->methods.data[i];
        char time[24] = "-";
        if (g->total_ns)
            format_duration(time, g->total_ns);
        printf("%8" PRIu64 " %10s  %s\n", g->n, time, shown(w, g->name));
    }
    print_left_out(repeated, w->limit, "methods");
}

static void compilers_text(const struct vm_view *w)
{
    const struct vm_figure *n = &w->v.figures[VM_COMPILATIONS],
                           *time = &w->v.figures[VM_COMPILE_TIME],
                           *invalid = &w->v.figures[VM_INVALIDATED],
                           *size = &w->v.figures[VM_CODE_BYTES];
    if (!w->v.compilations.len && !vm_grown(n))
        return;
    printf("\nCompilations\n");
    if (vm_grown(n)) {
        char spent[24], bytes[24];
        printf(" %" PRIu64
               " compilations took %s of the compilers' time and made %s of code; %" PRIu64
               " were invalidated\n",
               vm_compiled(w), format_duration(spent, vm_grown(time)),
               format_size(bytes, vm_grown(size)), vm_grown(invalid));
        counted_text(w, n);
    } else {
        printf(" %zu compilations\n", w->v.compilations.len);
    }
    methods_text(w);
}

static void deoptimizations_text(const struct vm_view *w)
{
    size_t n = w->v.deoptimizations.len;
    if (!n)
        return;
    printf("\nDeoptimizations\n%8s  %-34s %-18s %s\n", "count", "reason", "action", "method");
    for (size_t i = 0; i < MIN(n, w->limit); i++) {
        const struct vm_deoptimization *d = &w->v.deoptimizations.data[i];
        printf("%8" PRIu64 "  %-34s %-18s %s", d->count,
               d->reason != VM_NONE ? vm_activity_text(&w->v, d->reason) : "-",
               d->discarded ? "code discarded" : shown(w, d->action), shown(w, d->method));
        if (d->line > 0)
            printf(":%" PRId32 "\n", d->line);
        else if (d->bci >= 0)
            printf(" @ %" PRId32 "\n", d->bci);
        else
            printf("\n");
    }
    print_left_out(n, w->limit, "rows");
}

static void loaders_text(const struct vm_view *w)
{
    if (!w->v.loaders.len)
        return;
    printf("\nClass loading\n%10s %10s  %s\n", "loaded", "unloaded", "by loaders of class");
    for (size_t i = 0; i < MIN(w->v.loaders.len, w->limit); i++) {
        const struct vm_loader *l = &w->v.loaders.data[i];
        printf("%10" PRIu64 " %10" PRIu64 "  %s\n", l->loaded, l->unloaded, shown(w, l->name));
    }
    print_left_out(w->v.loaders.len, w->limit, "loaders");
}

static void pools_text(const struct vm_view *w)
{
    if (!w->v.pools.len)
        return;
    printf("\nMemory of the VM\n %-34s %11s %11s %11s %11s %11s\n", "", "at first", "at the end",
           "most", "committed", "limit");
    for (size_t i = 0; i < w->v.pools.len; i++) {
        const struct vm_pool *p = &w->v.pools.data[i];
        char first[24], last[24], most[24], committed[24] = "-", max[24] = "-";
        if (p->committed)
            format_size(committed, p->committed);
        if (p->max)
            format_size(max, p->max);
        printf(" %-34s %11s %11s %11s %11s %11s\n", shown(w, p->name),
               format_size(first, p->used_first), format_size(last, p->used),
               format_size(most, p->used_most), committed, max);
    }
}

static void count_row(const char *name, const struct vm_figure *f)
{
    if (f->n)
        printf(" %-22s %12" PRIu64 " %12" PRIu64 " %12" PRIu64 " %12.0f\n", name, f->last, f->low,
               f->high, f->sum / (double)f->n);
}

static void size_row(const char *name, const struct vm_figure *f)
{
    char last[24], low[24], high[24], mean[24];
    if (f->n)
        printf(" %-22s %12s %12s %12s %12s\n", name, format_size(last, f->last),
               format_size(low, f->low), format_size(high, f->high),
               format_size(mean, (uint64_t)(f->sum / (double)f->n)));
}

static void share_row(const char *name, const struct vm_figure *f)
{
    if (f->n)
        printf(" %-22s %10.1f %% %10.1f %% %10.1f %% %10.1f %%\n", name, (double)f->last / 1e4,
               (double)f->low / 1e4, (double)f->high / 1e4, f->sum / (double)f->n / 1e4);
}

/*
 * The VM's counts cover the time from the first reading to the last one; the rows also include what
 * came before and after.
 */
static void loaders_sum_text(const struct vm_view *w)
{
    const struct vm_figure *f = w->v.figures;
    uint64_t loaded = 0, unloaded = 0;
    for (size_t i = 0; i < w->v.loaders.len; i++) {
        loaded += w->v.loaders.data[i].loaded;
        unloaded += w->v.loaders.data[i].unloaded;
    }
    if (w->v.loaders.len && (loaded != vm_grown(&f[VM_CLASSES_LOADED]) ||
                             unloaded != vm_grown(&f[VM_CLASSES_UNLOADED])))
        printf(" the rows by loader add up to %" PRIu64 " loaded and %" PRIu64 " unloaded\n",
               loaded, unloaded);
}

static void process_text(const struct vm_view *w)
{
    const struct vm_figure *f = w->v.figures;
    if (!f[VM_CPU_USER].n && !f[VM_RSS].n && !f[VM_THREADS].n)
        return;
    printf("\nProcess\n %-22s %12s %12s %12s %12s\n", "", "at the end", "least", "most", "mean");
    share_row("CPU, user", &f[VM_CPU_USER]);
    share_row("CPU, system", &f[VM_CPU_SYSTEM]);
    share_row("CPU of the machine", &f[VM_CPU_MACHINE]);
    size_row("resident memory", &f[VM_RSS]);
    count_row("threads", &f[VM_THREADS]);
    count_row("open files", &f[VM_FILES]);
    count_row("classes loaded", &f[VM_CLASSES_LOADED]);
    if (f[VM_CLASSES_LOADED].n) {
        printf(" loaded %s, unloaded %" PRIu64 ", started %s\n",
               COUNT_TEXT(vm_grown(&f[VM_CLASSES_LOADED]), "classes"),
               vm_grown(&f[VM_CLASSES_UNLOADED]),
               COUNT_TEXT(vm_grown(&f[VM_THREADS_STARTED]), "threads"));
        counted_text(w, &f[VM_CLASSES_LOADED]);
        loaders_sum_text(w);
    }
    if (f[VM_FILES_LIMIT].n)
        printf(" at most %" PRIu64 " files may be open\n", f[VM_FILES_LIMIT].last);
}

static void waited(const struct vm_view *w, const char *what, const struct vm_figure *f)
{
    char time[24];
    if (vm_grown(f))
        printf(" %s for %s (%.2f %% of the time)\n", what, format_duration(time, vm_grown(f)),
               w->window_ns ? 100 * (double)vm_grown(f) / (double)w->window_ns : 0.0);
}

static void container_text(const struct vm_view *w)
{
    const struct vm_figure *f = w->v.figures;
    char text[24], limit[24];
    if (w->v.memory_limit || w->v.cpu_quota_us)
        printf("\nContainer\n");
    if (w->v.cpu_quota_us && w->v.cpu_period_us)
        printf(" may use %.2f processors\n",
               (double)w->v.cpu_quota_us / (double)w->v.cpu_period_us);
    if (w->v.memory_limit)
        printf(" may use %s of memory, used %s at most; the limit was hit %s\n",
               format_size(limit, w->v.memory_limit), format_size(text, f[VM_MEMORY].high),
               COUNT_TEXT(vm_grown(&f[VM_MEMORY_FAILURES]), "times"));
    if (f[VM_THROTTLED_TIME].n)
        printf(" was out of CPU in %" PRIu64 " of %" PRIu64 " slices, for %s\n",
               vm_grown(&f[VM_THROTTLED_SLICES]), vm_grown(&f[VM_SLICES]),
               format_duration(text, vm_grown(&f[VM_THROTTLED_TIME])));
    if (vm_grown(&f[VM_STEAL_TIME]) || vm_grown(&f[VM_PRESSURE_CPU]) ||
        vm_grown(&f[VM_PRESSURE_MEMORY]) || vm_grown(&f[VM_PRESSURE_IO]))
        printf("\nResources\n");
    waited(w, "the hypervisor took the processors away", &f[VM_STEAL_TIME]);
    waited(w, "at least one task waited for a processor", &f[VM_PRESSURE_CPU]);
    waited(w, "at least one task waited for memory", &f[VM_PRESSURE_MEMORY]);
    waited(w, "at least one task waited for disks", &f[VM_PRESSURE_IO]);
}

void vm_view_process_text(const struct vm_view *w)
{
    compilers_text(w);
    deoptimizations_text(w);
    loaders_text(w);
    pools_text(w);
    process_text(w);
    container_text(w);
}
