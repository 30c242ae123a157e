/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/vm/vm.h"

#include "base/parse.h"

#include <inttypes.h>

static const char *shown(const struct vm_view *w, uint32_t text)
{
    return text == VM_NONE ? "-" : vm_activity_text(&w->v, text);
}

static double percent(uint64_t part, uint64_t whole)
{
    return whole ? 100 * (double)part / (double)whole : 0;
}

static double seconds_at(const struct vm_view *w, int64_t ns)
{
    return (double)(ns - w->v.start_ns) / 1e9;
}

/*
 * Formats the time for which threads stood still, or "-" where the recording has only the time to
 * reach the safepoint.
 */
static const char *stopped_time(const struct vm_view *w, char text[24], uint64_t ns)
{
    return vm_stops_known(w) ? format_duration(text, ns) : "-";
}

/* Other recorders leave out safepoints that were reached quickly, and when safepoints ended. */
static void incomplete_safepoints(const struct vm_view *w)
{
    char least[24], sync[24];
    if (w->totals.count)
        printf(" %" PRIu64 " safepoint%s took %s until all threads had stopped", w->totals.count,
               w->totals.count == 1 ? "" : "s", format_duration(sync, w->totals.sync_ns));
    else
        printf(" no safepoint is recorded");
    if (w->v.safepoint_least_ns)
        printf("; those that took less than %s are not in this recording",
               format_duration(least, w->v.safepoint_least_ns));
    printf("%s\n", w->totals.count ? "; how long the threads were then stopped is not known" : "");
}

static void summary(const struct vm_view *w)
{
    char time[24], sync[24], pause[24], longest[24], length[24];
    printf("%s: %s\n", w->path, format_duration(length, w->window_ns));
    if (w->totals.count ? !vm_stops_known(w) : w->v.safepoint_least_ns && !w->v.has_totals)
        incomplete_safepoints(w);
    else if (w->totals.count)
        printf(" %" PRIu64 " safepoint%s stopped all threads for %s (%.2f %% of the time), %s of "
               "it to reach them\n",
               w->totals.count, w->totals.count == 1 ? "" : "s",
               format_duration(time, w->totals.time_ns), percent(w->totals.time_ns, w->window_ns),
               format_duration(sync, w->totals.sync_ns));
    if (w->v.pauses.len) {
        char of[48];
        size_t n = w->v.collections.len;
        snprintf(of, sizeof(of), "%zu collection%s", n, n == 1 ? "" : "s");
        /* Without --events, pauses are known but not the collections that they belong to. */
        printf(" %s paused the program %zu time%s for %s (%.2f %%), at most %s\n",
               n ? of : "collections", w->v.pauses.len, w->v.pauses.len == 1 ? "" : "s",
               format_duration(pause, w->pause_ns), percent(w->pause_ns, w->window_ns),
               format_duration(longest, w->pause_longest_ns));
    }
    if (w->totals.count > w->v.safepoints.len)
        printf(" %" PRIu64 " of the safepoints are known by their number and total time only\n",
               w->totals.count - w->v.safepoints.len);
}

static void collections_text(const struct vm_view *w)
{
    if (!w->collections.len)
        return;
    printf("\nCollections\n%8s %10s %10s %10s %10s  %-20s %s\n", "count", "paused", "mean",
           "longest", "freed", "collector", "cause");
    for (size_t i = 0; i < MIN(w->collections.len, w->limit); i++) {
        const struct vm_group *g = &w->collections.data[i];
        char total[24], mean[24], longest[24], freed[24];
        printf("%8" PRIu64 " %10s %10s %10s %10s  %-20s %s\n", g->n,
               format_duration(total, g->total_ns), format_duration(mean, g->total_ns / g->n),
               format_duration(longest, g->longest_ns),
               g->with_heap ? format_size(freed, g->freed) : "-", shown(w, g->name),
               shown(w, g->cause));
    }
    print_left_out(w->collections.len, w->limit, "causes");
    char text[24];
    double seconds = (double)w->window_ns / 1e9;
    if (w->allocated && seconds > 0)
        printf(" between them %s were allocated, %s per second\n", format_size(text, w->allocated),
               format_size((char[24]){0}, (uint64_t)((double)w->allocated / seconds)));
    if (w->heap_note)
        printf(" %s\n", w->heap_note);
    const struct vm_figure *old = &w->v.figures[VM_OLD_GENERATION];
    if (old->n > 1 && seconds > 0)
        printf(" the old generation grew by %s (promoted and allocated there), %s per second\n",
               format_size(text, old->grown),
               format_size((char[24]){0}, (uint64_t)((double)old->grown / seconds)));
}

static void pauses_text(const struct vm_view *w)
{
    if (w->pauses.len < 2)
        return;
    printf("\nPauses\n%8s %10s %10s %10s  %s\n", "count", "total", "mean", "longest", "pause");
    for (size_t i = 0; i < MIN(w->pauses.len, w->limit); i++) {
        const struct vm_group *g = &w->pauses.data[i];
        char total[24], mean[24], longest[24];
        printf("%8" PRIu64 " %10s %10s %10s  %s\n", g->n, format_duration(total, g->total_ns),
               format_duration(mean, g->total_ns / g->n), format_duration(longest, g->longest_ns),
               shown(w, g->name));
    }
    print_left_out(w->pauses.len, w->limit, "pauses");
}

static void phases_text(const struct vm_view *w)
{
    if (!w->phases.len)
        return;
    printf("\nPhases of collections\n%8s %10s %10s %10s  %s\n", "count", "total", "mean", "longest",
           "phase");
    for (size_t i = 0; i < MIN(w->phases.len, w->limit); i++) {
        const struct vm_group *g = &w->phases.data[i];
        char total[24], mean[24], longest[24];
        printf("%8" PRIu64 " %10s %10s %10s  %s%s\n", g->n, format_duration(total, g->total_ns),
               format_duration(mean, g->total_ns / g->n), format_duration(longest, g->longest_ns),
               shown(w, g->name), g->concurrent ? " (concurrent)" : "");
    }
    print_left_out(w->phases.len, w->limit, "phases");
}

static void operations_text(const struct vm_view *w)
{
    if (!w->operations.len)
        return;
    printf("\nSafepoints\n%8s %10s %10s %10s %13s  %s\n", "count", "stopped", "to reach", "longest",
           "longest reach", "operation");
    for (size_t i = 0; i < MIN(w->operations.len, w->limit); i++) {
        const struct vm_group *g = &w->operations.data[i];
        char total[24], sync[24], longest[24], way[24];
        printf("%8" PRIu64 " %10s %10s %10s %13s  %s\n", g->n, stopped_time(w, total, g->total_ns),
               format_duration(sync, g->sync_ns), stopped_time(w, longest, g->longest_ns),
               format_duration(way, g->longest_sync_ns), shown(w, g->name));
    }
    print_left_out(w->operations.len, w->limit, "operations");
}

static void longest_text(const struct vm_view *w)
{
    if (!w->longest.len)
        return;
    printf("\nThe longest stops\n%10s %10s %10s  %s\n", "at", "stopped", "to reach", "operation");
    for (size_t i = 0; i < MIN(w->longest.len, w->limit); i++) {
        const struct vm_safepoint *s = &w->v.safepoints.data[w->longest.data[i]];
        char total[24], sync[24];
        printf("%8.3f s %10s %10s  %s\n", seconds_at(w, s->start_ns),
               stopped_time(w, total, s->total_ns), format_duration(sync, s->sync_ns),
               shown(w, s->operation));
    }
    print_left_out(w->longest.len, w->limit, "stops");
}

static void put_frame(const struct vm_view *w, const struct vm_frame *f)
{
    if (f->line)
        printf("%s:%" PRIu32 "\n", shown(w, f->method), f->line);
    else
        printf("%s\n", shown(w, f->method));
}

/* A few callers are enough to see where the call came from; --json has all of them. */
static void late_stack(const struct vm_view *w, const struct vm_safepoint *s)
{
    enum { CALLERS = 3 };

    const struct vm_frame *f = vm_late_frame(w, s);
    if (!f) {
        printf("-\n");
        return;
    }
    put_frame(w, f);
    for (uint32_t i = 1; i < MIN(s->late_n, (uint32_t)CALLERS + 1); i++) {
        printf("%68s by ", "");
        put_frame(w, f + i);
    }
}

static void late_text(const struct vm_view *w)
{
    if (!w->late.len)
        return;
    printf("\nLong times to safepoint: all other threads waited for the one that was late\n"
           "%10s %10s  %-24s %-20s %s\n",
           "at", "to reach", "operation", "late thread", "in");
    for (size_t i = 0; i < MIN(w->late.len, w->limit); i++) {
        const struct vm_safepoint *s = &w->v.safepoints.data[w->late.data[i]];
        char sync[24];
        printf("%8.3f s %10s  %-24s %-20s ", seconds_at(w, s->start_ns),
               format_duration(sync, s->sync_ns), shown(w, s->operation), shown(w, s->late_thread));
        late_stack(w, s);
    }
    print_left_out(w->late.len, w->limit, "safepoints");
}

void vm_view_text(const struct vm_view *w)
{
    summary(w);
    collections_text(w);
    pauses_text(w);
    phases_text(w);
    operations_text(w);
    longest_text(w);
    late_text(w);
    vm_view_process_text(w);
}
