/* SPDX-License-Identifier: Apache-2.0 */
/* threads summary and threads monitors: the tables of "Monitor statistics" in doc/threads.md. */
#include "analysis/monitor_stats.h"
#include "base/parse.h"
#include "cli/losses.h"
#include "cli/threads/gains.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { GAIN_ROWS = 5, HIDES_VIRTUAL_OWNERS = 24 /* the VM, from this version on */ };

static struct stats_filter filter_of(const struct thread_view *v, uint64_t over_ns)
{
    return (struct stats_filter){.threads = v->threads,
                                 .objects = v->objects,
                                 .times = v->options->times,
                                 .from = v->options->from_ns,
                                 .to = v->options->to_ns,
                                 .min_ns = v->options->min_ns,
                                 .over_ns = over_ns,
                                 .idle = v->options->idle};
}

static int stats_of(struct thread_view *v, bool only_threads, struct monitor_stats *ret)
{
    struct stats_filter f = filter_of(v, 1000000);
    f.only_threads = only_threads;
    int r = monitor_stats(v->t, &f, ret);
    if (r < 0)
        return complain_errno(v->path, "cannot analyse", r);
    if (!f.min_ns || ret->waits)
        return 0;
    monitor_stats_release(ret);
    return thread_view_no_wait(v);
}

/* Prints what the tables leave out. */
static void print_idle(const struct thread_view *v, const struct monitor_stats *s)
{
    char d[24];
    if (s->idle && !v->options->idle)
        printf(" %s of threads with nothing to do (%s in all) %s\n", COUNT_TEXT(s->idle, "waits"),
               format_duration(d, s->idle_ns),
               s->idle == 1 ? "is left out; --idle shows it" : "are left out; --idle shows them");
}

/* Returns whether what is shown is a part of a recording's time. */
static bool is_part(const struct thread_view *v)
{
    return v->options->from_ns || v->options->to_ns || v->t->part_of_time;
}

/* Prints which of the blocks `report` does not count. */
static void print_back(const struct monitor_stats *s)
{
    char d[24];
    if (s->back)
        printf(" of the blocks, %" PRIu64 " %s to get a lock back after Object.wait (%s in all); "
               "`report --metric locks` has the others\n",
               s->back, s->back == 1 ? "was" : "were", format_duration(d, s->back_ns));
}

/* Where the selected part ends. */
static uint64_t end_of(const struct thread_view *v)
{
    return v->options->to_ns ? MIN(v->options->to_ns, v->t->end_ns) : v->t->end_ns;
}

/* How long the selected part is. */
static uint64_t span_of(const struct thread_view *v)
{
    uint64_t to = end_of(v);
    return to > v->options->from_ns ? to - v->options->from_ns : 0;
}

/* Returns whether a thread has events and existed in the selected part. */
static bool was_alive(const struct thread_view *v, size_t thread)
{
    const struct tl_thread *t = &v->t->threads[thread];
    return t->first != TL_NONE && !(t->flags & TL_THREAD_LEFT_OUT) &&
           t->end_ns >= v->options->from_ns && t->start_ns <= end_of(v);
}

static uint64_t threads_in_part(const struct thread_view *v)
{
    bool whole =
        !v->options->from_ns && end_of(v) == v->t->end_ns && !v->t->part_of_time && !v->t->part_of;
    uint64_t n = 0;
    for (size_t i = 0; i < v->t->n_threads; i++)
        n += v->threads[i] && (whole || was_alive(v, i));
    return n;
}

static void json_threads(struct thread_view *v, struct json *j, const struct monitor_stats *s)
{
    json_begin_array(j);
    for (size_t i = 0; i < s->threads.len; i++) {
        const struct thread_stats *row = &s->threads.data[i];
        const struct tl_thread *t = &v->t->threads[i];
        if (!v->threads[i] || !was_alive(v, i))
            continue;
        json_begin_object(j);
        json_key_u64(j, "id", t->id);
        json_key_string(j, "name", tl_string(v->t, t->name));
        json_key_string(j, "group", t->group == TL_NONE ? NULL : tl_string(v->t, t->group));
        json_key(j, "parent");
        threads_json_thread(j, v->t, t->parent);
        json_key_bool(j, "virtual", t->flags & TL_THREAD_VIRTUAL);
        json_key_bool(j, "daemon", t->flags & TL_THREAD_DAEMON);
        json_key_bool(j, "system", t->flags & TL_THREAD_SYSTEM);
        json_key_u64(j, "start_ns", t->start_ns);
        json_key_u64(j, "end_ns", t->end_ns);
        json_key_u64(j, "blocked", row->blocked);
        json_key_u64(j, "blocked_ns", row->blocked_ns);
        json_key_u64(j, "waited", row->waited);
        json_key_u64(j, "waited_ns", row->waited_ns);
        json_key_u64(j, "idle", row->idle);
        json_key_u64(j, "idle_ns", row->idle_ns);
        json_key_u64(j, "io", row->io);
        json_key_u64(j, "io_ns", row->io_ns);
        json_key_u64(j, "ready", row->ready);
        json_key_u64(j, "ready_ns", row->ready_ns);
        json_end_object(j);
    }
    json_end_array(j);
}

static bool any_virtual(const struct timeline *t)
{
    for (size_t i = 0; i < t->n_threads; i++)
        if (t->threads[i].flags & TL_THREAD_VIRTUAL)
            return true;
    return false;
}

/*
 * Prints why owners are unknown, as far as the recording shows it: when it begins, the VM is asked
 * about waits, and later it reports them.
 */
static void print_owners_unknown(const struct thread_view *v, const struct monitor_stats *s)
{
    if (!s->owner_unknown)
        return;
    printf("waits for monitors whose owner is unknown: %" PRIu64, s->owner_unknown);
    if (s->owner_unknown_at_start == s->owner_unknown)
        printf("; %s in progress when the recording began",
               s->owner_unknown == 1 ? "it was" : "all were");
    else if (s->owner_unknown_at_start)
        printf("; %" PRIu64 " of them %s in progress when the recording began",
               s->owner_unknown_at_start, s->owner_unknown_at_start == 1 ? "was" : "were");
    if (s->owner_unknown_at_start < s->owner_unknown && any_virtual(v->t) &&
        v->t->vm_version >= HIDES_VIRTUAL_OWNERS)
        printf("; from JDK 24 on the VM does not always report an owner that is a virtual thread");
    putchar('\n');
}

static uint64_t began_before(const struct thread_view *v, const struct monitor_stats *s)
{
    return v->options->from_ns ? s->began_before : v->t->began_before;
}

static int summary_json(struct thread_view *v, const struct monitor_stats *s)
{
    _cleanup_(buf_release) struct buf b = BUF(SIZE_MAX / 2);
    struct json j = {.out = &b};
    json_begin_object(&j);
    json_key_u64(&j, "origin_ns", v->t->origin_ns);
    json_key_u64(&j, "end_ns", v->t->end_ns);
    json_key_u64(&j, "span_ns", span_of(v));
    json_key_u64(&j, "events", thread_view_events(v, s));
    losses_json_of_file(v->path, losses_of_threads, v->t->lost_any || v->t->cut_at, &j);
    json_key(&j, "contanalysis");
    if (v->t->instrumented == TL_NONE)
        json_null(&j);
    else
        json_bool(&j, v->t->instrumented);
    threads_json_part(&j, v->t);
    json_key_u64(&j, "waits_over_1ms", s->intervals);
    json_key_u64(&j, "with_cause", s->caused);
    json_key_u64(&j, "inferred", s->inferred);
    json_key_u64(&j, "began_before", began_before(v, s));
    json_key_u64(&j, "owner_unknown", s->owner_unknown);
    json_key_u64(&j, "owner_unknown_virtual", s->owner_unknown_virtual);
    json_key_u64(&j, "owner_unknown_at_start", s->owner_unknown_at_start);
    json_key_u64(&j, "idle", s->idle);
    json_key_u64(&j, "idle_ns", s->idle_ns);
    json_key_u64(&j, "back", s->back);
    json_key_u64(&j, "back_ns", s->back_ns);
    json_key_u64(&j, "shorter", s->shorter);
    json_key_u64(&j, "deadlocks", v->t->deadlocks);
    json_key(&j, "threads");
    json_threads(v, &j, s);
    json_end_object(&j);
    return threads_json_print(&b);
}

/*
 * Orders by how long a thread was blocked, then by how long it waited, then by how long it waited
 * for I/O; equal ones keep the table's order.
 */
static int by_waits(const void *a, const void *b)
{
    const struct thread_stats *x = a, *y = b;
    if (x->blocked_ns != y->blocked_ns)
        return x->blocked_ns < y->blocked_ns ? 1 : -1;
    if (x->waited_ns != y->waited_ns)
        return x->waited_ns < y->waited_ns ? 1 : -1;
    if (x->io_ns != y->io_ns)
        return x->io_ns < y->io_ns ? 1 : -1;
    return (x->thread > y->thread) - (x->thread < y->thread);
}

static bool has_waits(const struct thread_stats *row)
{
    return row->blocked || row->waited || row->io || row->ready;
}

/*
 * True for threads that had nothing to do, and for the VM's own threads that nothing delayed: a
 * reader does not look for these.
 */
static bool is_idle(const struct thread_view *v, const struct thread_stats *row)
{
    bool system = v->t->threads[row->thread].flags & TL_THREAD_SYSTEM;
    return !has_waits(row) && (row->idle || system);
}

static void print_threads(struct thread_view *v, struct monitor_stats *s, size_t limit)
{
    char d[24], e[24], f[24];
    size_t shown = 0, left = 0, idle = 0, without = 0;
    bool ready = false, io = false;
    for (size_t i = 0; i < s->threads.len; i++) {
        const struct thread_stats *row = &s->threads.data[i];
        ready |= v->threads[row->thread] && row->ready;
        io |= v->threads[row->thread] && row->io;
    }
    if (s->threads.len)
        qsort(s->threads.data, s->threads.len, sizeof(*s->threads.data), by_waits);
    printf("\n blocked        time    waited        time%s%s  thread\n",
           io ? "       I/O        time" : "", ready ? "     ready        time" : "");
    for (size_t i = 0; i < s->threads.len; i++) {
        const struct thread_stats *row = &s->threads.data[i];
        if (!v->threads[row->thread] || !was_alive(v, row->thread))
            continue;
        bool hidden = !v->options->idle && is_idle(v, row);
        bool none = !hidden && v->options->min_ns && !has_waits(row);
        idle += hidden;
        without += none;
        left += !hidden && !none && shown == limit;
        if (hidden || none || shown == limit)
            continue;
        printf(" %7" PRIu64 "  %10s  %8" PRIu64 "  %10s", row->blocked,
               format_duration(d, row->blocked_ns), row->waited,
               format_duration(e, row->waited_ns));
        if (io)
            printf("  %8" PRIu64 "  %10s", row->io, format_duration(f, row->io_ns));
        if (ready)
            printf("  %8" PRIu64 "  %10s", row->ready, format_duration(f, row->ready_ns));
        printf("  %s\n", tl_thread_name(v->t, row->thread));
        shown++;
    }
    print_left_out(left, 0, "threads");
    if (io)
        puts(" I/O: waits for sockets and files");
    if (ready)
        puts(" ready: virtual threads that waited for nothing but a carrier to run on");
    if (idle)
        printf(" %zu idle thread%s\n", idle,
               idle == 1 ? " is not shown; --idle shows it" : "s are not shown; --idle shows them");
    if (without)
        printf(" %zu thread%s without such a wait %s not shown\n", without, without == 1 ? "" : "s",
               without == 1 ? "is" : "are");
    print_back(s);
    print_idle(v, s);
    thread_view_print_shorter(v, s->shorter);
}

/* Prints for how many of the waits that take long it is known who or what ended them. */
static void print_causes(const struct thread_view *v, const struct monitor_stats *s)
{
    const struct thread_options *o = v->options;
    bool part = o->thread || o->class_name || o->from_ns || o->to_ns || o->min_ns || o->times;
    if (!s->intervals) {
        puts(part ? "no wait that is selected, of 1 ms or more, has ended"
                  : "no wait of 1 ms or more has ended");
        return;
    }
    printf("%s of 1 ms or more; it is known what ended ", COUNT_TEXT(s->intervals, "waits"));
    if (s->caused == s->intervals)
        printf("all of them");
    else
        printf("%" PRIu64 " of them", s->caused);
    if (s->inferred)
        printf(", by inference for %" PRIu64, s->inferred);
    putchar('\n');
}

int threads_summary(struct thread_view *v)
{
    struct monitor_stats s;
    int status = stats_of(v, true, &s);
    if (status)
        return status;
    char d[24], whole[24];
    if (v->options->json) {
        status = summary_json(v, &s);
    } else {
        uint64_t span = span_of(v);
        bool part = span < v->t->end_ns;
        printf("%s: %s%s%s, %s of %s", v->path, format_duration(d, span), part ? " of " : "",
               part ? format_duration(whole, v->t->end_ns) : "",
               COUNT_TEXT(thread_view_events(v, &s), "events"),
               COUNT_TEXT(threads_in_part(v), "threads"));
        _cleanup_(losses_release) struct losses l = {0};
        losses_read_file(&l, v->path, v->t->lost_any);
        uint64_t lost = losses_sum(&l, losses_of_threads); /* other captures have their own lines */
        if (lost)
            printf(", %" PRIu64 " lost", lost);
        puts(v->t->instrumented == TL_NONE ? "; without jvmscope's own capture of threads" : "");
        print_causes(v, &s);
        uint64_t before = began_before(v, &s);
        if (before)
            printf("%s began before the %s: counted from its start on\n",
                   COUNT_TEXT(before, "waits"), is_part(v) ? "part" : "recording");
        print_owners_unknown(v, &s);
        if (v->t->deadlocks)
            printf("DEADLOCKS: %u (jvmscope threads deadlocks)\n", v->t->deadlocks);
        print_threads(v, &s, thread_view_limit(v));
    }
    monitor_stats_release(&s);
    return status;
}

/* ---- monitors ---- */

/* Writes what is known only of whole waits: null if there are none. */
static void json_of_whole(struct json *j, const char *key, const struct wait_times *w, uint64_t ns)
{
    json_key(j, key);
    if (w->count && w->count == w->cut)
        json_null(j);
    else
        json_u64(j, ns);
}

static void json_times(struct json *j, const char *key, const struct wait_times *w)
{
    json_key_object(j, key);
    json_key_u64(j, "count", w->count);
    json_key_u64(j, "cut", w->cut);
    json_key_u64(j, "total_ns", w->total_ns);
    json_of_whole(j, "min_ns", w, w->min_ns);
    json_key_u64(j, "max_ns", w->max_ns);
    json_of_whole(j, "avg_ns", w, w->avg_ns);
    json_of_whole(j, "p50_ns", w, w->p50_ns);
    json_of_whole(j, "p90_ns", w, w->p90_ns);
    json_of_whole(j, "p99_ns", w, w->p99_ns);
    json_key_u64(j, "inferred", w->inferred);
    json_key_u64(j, "unknown", w->unknown);
    json_end_object(j);
}

static void json_sites(struct thread_view *v, struct json *j, const struct monitor_stats *s,
                       bool block)
{
    json_begin_array(j);
    for (size_t i = 0; i < s->sites.len; i++) {
        const struct site_stats *row = &s->sites.data[i];
        if (row->block != block)
            continue;
        json_begin_object(j);
        json_key_string(j, "class", row->class == TL_NONE ? NULL : tl_string(v->t, row->class));
        json_key_string(j, "method", row->method == TL_NONE ? NULL : tl_string(v->t, row->method));
        json_key_u64(j, "line", row->line);
        json_key_bool(j, "idle", row->idle);
        json_times(j, "times", &row->times);
        json_key_u64(j, "objects", row->objects);
        json_key_u64(j, "threads", row->threads);
        json_key(j, "frames");
        threads_json_frames(j, v->t, row->stack);
        json_end_object(j);
    }
    json_end_array(j);
}

static void json_holds(struct thread_view *v, struct json *j, const struct hold_table *holds)
{
    json_begin_array(j);
    for (size_t i = 0; i < holds->rows.len; i++) {
        const struct hold_stats *row = &holds->rows.data[i];
        json_begin_object(j);
        json_key_string(j, "class", tl_string(v->t, row->class));
        json_key_string(j, "method", row->method == TL_NONE ? NULL : tl_string(v->t, row->method));
        json_key_u64(j, "count", row->count);
        json_key_u64(j, "total_ns", row->total_ns);
        json_key_u64(j, "min_ns", row->min_ns);
        json_key_u64(j, "max_ns", row->max_ns);
        json_key_u64(j, "objects", row->objects);
        json_key_u64(j, "threads", row->threads);
        json_end_object(j);
    }
    json_end_array(j);
}

static int monitors_json(struct thread_view *v, const struct monitor_stats *s,
                         const struct gains *g)
{
    _cleanup_(buf_release) struct buf b = BUF(SIZE_MAX / 2);
    struct json j = {.out = &b};
    json_begin_object(&j);
    json_key(&j, "threads");
    json_threads(v, &j, s);
    json_key_array(&j, "classes");
    for (size_t i = 0; i < s->classes.len; i++) {
        const struct class_stats *row = &s->classes.data[i];
        json_begin_object(&j);
        json_key_string(&j, "class", tl_string(v->t, row->class));
        json_times(&j, "blocks", &row->block);
        json_times(&j, "waits", &row->wait);
        json_key_u64(&j, "objects", row->objects);
        json_key_u64(&j, "threads", row->threads);
        const struct tl_share *share = gains_share(g, v, row->class);
        uint64_t ns = share ? share->ns : 0;
        if (v->t->part_of) {
            json_key(&j, "path_ns");
            json_null(&j);
            json_key(&j, "path_share");
            json_null(&j);
        } else {
            json_key_u64(&j, "path_ns", ns);
            json_key_double(&j, "path_share",
                            g->path.length ? (double)ns / (double)g->path.length : 0);
        }
        json_key_object(&j, "gain_ns");

        static const struct {
            const char *name;
            double factor;
        } steps[] = {{"25", 0.75}, {"50", 0.5}, {"100", 0}};

        bool inferred = false;
        for (size_t k = 0; k < ARRAY_SIZE(steps) && i < GAIN_ROWS && ns; k++)
            json_key_u64(&j, steps[k].name, gains_if(g, share, steps[k].factor, &inferred));
        json_end_object(&j);
        json_key_bool(&j, "gain_inferred", inferred);
        threads_json_unknown_owners(&j, gains_unknown(g, v, row->class));
        json_end_object(&j);
    }
    json_end_array(&j);
    json_key(&j, "blocks");
    json_sites(v, &j, s, true);
    json_key(&j, "waits");
    json_sites(v, &j, s, false);
    json_key_u64(&j, "back", s->back);
    json_key_u64(&j, "back_ns", s->back_ns);
    json_key_u64(&j, "shorter", s->shorter);
    threads_json_part(&j, v->t);
    json_key(&j, "holds");
    json_holds(v, &j, &g->holds);
    losses_json_of_file(v->path, losses_of_threads, v->t->lost_any || v->t->cut_at, &j);
    json_end_object(&j);
    return threads_json_print(&b);
}

static const char *of_whole(char text[24], const struct wait_times *w, uint64_t ns)
{
    return w->count == w->cut ? "-" : format_duration(text, ns);
}

static void print_sites(struct thread_view *v, const struct monitor_stats *s, bool block,
                        size_t limit)
{
    char total[24], least[24], most[24], average[24], late[24];
    size_t shown = 0;
    uint64_t cut = 0;
    printf("\n%s by calling method\n   count       total       least        most     average       "
           "  p99  objects  threads  "
           "method, class\n",
           block ? "Blocks" : "Waits");
    for (size_t i = 0; i < s->sites.len; i++) {
        const struct site_stats *row = &s->sites.data[i];
        if (row->block != block || shown++ >= limit)
            continue;
        const struct wait_times *w = &row->times;
        cut += w->cut;
        printf(" %7" PRIu64 "  %10s  %10s  %10s  %10s  %10s  %7u  %7u  %s, %s\n", w->count,
               format_duration(total, w->total_ns), of_whole(least, w, w->min_ns),
               format_duration(most, w->max_ns), of_whole(average, w, w->avg_ns),
               of_whole(late, w, w->p99_ns), row->objects, row->threads,
               row->method == TL_NONE ? "?" : tl_string(v->t, row->method),
               row->class == TL_NONE ? "-" : tl_string(v->t, row->class));
    }
    if (!shown)
        puts("  (none)");
    print_left_out(shown, limit, "rows");
    if (cut)
        printf(" of these, %" PRIu64
               " %s in progress when the %s began or ended: %s in count, total "
               "and most only\n",
               cut, cut == 1 ? "was" : "were", is_part(v) ? "part" : "recording",
               cut == 1 ? "it is" : "they are");
}

static void print_holds(struct thread_view *v, const struct hold_table *holds, size_t limit)
{
    char total[24], least[24], most[24], average[24];
    if (holds->rows.len == 0)
        return;
    printf("\nHolds by method that took the lock, exact\n   count       total       least        "
           "most     average  objects  "
           "threads  method, class\n");
    for (size_t i = 0; i < MIN(holds->rows.len, limit); i++) {
        const struct hold_stats *row = &holds->rows.data[i];
        printf(" %7" PRIu64 "  %10s  %10s  %10s  %10s  %7u  %7u  %s, %s\n", row->count,
               format_duration(total, row->total_ns), format_duration(least, row->min_ns),
               format_duration(most, row->max_ns),
               format_duration(average, row->total_ns / row->count), row->objects, row->threads,
               row->method == TL_NONE ? "?" : tl_string(v->t, row->method),
               tl_string(v->t, row->class));
    }
    print_left_out(holds->rows.len, limit, "rows");
}

/* Prints of which classes in the table not all owners are known. */
static void print_unknown(const struct gains *g, const struct monitor_stats *s)
{
    struct unknown_table listed = {0};
    int r = 0;
    for (size_t i = 0; r == 0 && i < s->classes.len; i++) {
        const struct tl_unowned *row = unknown_owners_of(&g->unknown, s->classes.data[i].class);
        r = row ? vec_push(&listed.rows, *row) : 0;
    }
    thread_view_print_unknown(&g->view, &listed);
    vec_release(&listed.rows);
}

static void monitors_text(struct thread_view *v, const struct monitor_stats *s,
                          const struct gains *g, size_t limit)
{
    char blocked[24], waited[24], halved[24], of_path[24];
    bool any_unsure = false;
    printf("Classes\n  blocks        time     waits        time  of path  if halved  class\n");
    for (size_t i = 0; i < MIN(s->classes.len, limit); i++) {
        const struct class_stats *row = &s->classes.data[i];
        const struct tl_share *share = gains_share(g, v, row->class);
        uint64_t ns = share ? share->ns : 0;
        bool unsure = false;
        uint64_t less = ns && i < GAIN_ROWS ? gains_if(g, share, 0.5, &unsure) : 0;
        any_unsure |= unsure;
        const struct tl_unowned *unknown = gains_unknown(g, v, row->class);
        if (v->t->part_of)
            snprintf(of_path, sizeof(of_path), "-");
        else
            snprintf(of_path, sizeof(of_path), "%.1f %%",
                     g->path.length ? 100.0 * (double)ns / (double)g->path.length : 0.0);
        printf(" %7" PRIu64 "  %10s  %8" PRIu64 "  %10s  %7s  %9s  %s%s%s\n", row->block.count,
               format_duration(blocked, row->block.total_ns), row->wait.count,
               format_duration(waited, row->wait.total_ns), of_path,
               less ? format_duration(halved, less) : "-", tl_string(v->t, row->class),
               thread_view_is_unknown(&g->view, unknown) ? " (owner unknown)" : "",
               unsure ? " (inferred)" : "");
    }
    if (!s->classes.len)
        puts("  (none)");
    if (any_unsure)
        puts(" (inferred): if no thread waited for the release of a lock, its time is inferred "
             "(`threads what-if --lock` shows how much that matters, `run --locks` records it)");
    print_left_out(s->classes.len, limit, "classes");
    print_unknown(g, s);
    print_sites(v, s, true, limit);
    print_back(s);
    print_sites(v, s, false, limit);
    print_idle(v, s);
    thread_view_print_shorter(v, s->shorter);
    print_holds(v, &g->holds, limit);
}

int threads_monitors(struct thread_view *v)
{
    struct monitor_stats s;
    struct gains g = {0};
    int status = stats_of(v, false, &s);
    if (status)
        return status;
    const struct stats_filter held = filter_of(v, 0);
    (void)gains_of(v, &held,
                   &g); /* without an end there is no path, and a lock has no share of it */
    status = thread_view_unknown_owners(&g.view, &g.unknown);
    if (status == 0 && v->options->json)
        status = monitors_json(v, &s, &g);
    else if (status == 0)
        monitors_text(v, &s, &g, thread_view_limit(v));
    gains_release(&g);
    monitor_stats_release(&s);
    return status;
}
