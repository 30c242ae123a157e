/* SPDX-License-Identifier: Apache-2.0 */
/* jvmscope threads critical-path */
#include "analysis/path_samples.h"
#include "base/parse.h"
#include "cli/losses.h"
#include "cli/threads/threads.h"
#include "timeline/idle.h"

#include <errno.h>
#include <inttypes.h>

static void json_unknown(struct json *j, const struct timeline *t, const struct unknown_table *u)
{
    json_key_array(j, "owners_unknown");
    for (size_t i = 0; i < u->rows.len; i++) {
        if (!u->rows.data[i].lock)
            continue;
        json_begin_object(j);
        json_key_string(j, "class", tl_string(t, u->rows.data[i].class));
        json_key_u64(j, "waits", u->rows.data[i].waits);
        threads_json_unknown_owners(j, &u->rows.data[i]);
        json_end_object(j);
    }
    json_end_array(j);
}

static void path_json(struct thread_view *v, const struct critical_path *p,
                      const struct path_shares *locks, const struct path_samples *samples,
                      const struct unknown_table *unknown)
{
    const struct timeline *t = v->t;
    _cleanup_free_ uint8_t *kinds = idle_frame_roles(t);
    _cleanup_(buf_release) struct buf b = BUF(SIZE_MAX / 2);
    struct json j = {.out = &b};
    json_begin_object(&j);
    json_key_u64(&j, "makespan_ns", p->makespan);
    json_key_u64(&j, "length_ns", p->length);
    json_key_string(&j, "end_thread", thread_view_end(v));
    json_key_array(&j, "segments");
    for (size_t i = 0; i < p->segments.len; i++) {
        const struct path_segment *s = &p->segments.data[i];
        json_begin_object(&j);
        json_key(&j, "thread");
        threads_json_thread(&j, t, s->thread);
        json_key_string(&j, "state", path_state_name(s->state));
        json_key_u64(&j, "start_ns", v->base_ns + s->start);
        json_key_u64(&j, "ns", s->end - s->start);
        json_key(&j, "waker");
        threads_json_thread(&j, t, s->waker);
        json_key_string(&j, "object", s->object == TL_NONE ? NULL : tl_object_class(t, s->object));
        json_key_bool(&j, "inferred", s->inferred);
        json_key_string(&j, "edge", s->edge == TL_NO_EDGE ? NULL : tl_edge_name(s->edge));
        json_key(&j, "frames");
        struct path_frames frames = kinds ? path_frames(t, kinds, s) : (struct path_frames){0, 0};
        threads_json_some_frames(&j, t, frames.first, frames.n);
        json_key_string(&j, "sampled_in", samples->top[i]);
        json_key_bool(&j, "idle", samples->idle[i]);
        json_end_object(&j);
    }
    json_end_array(&j);
    json_key_array(&j, "locks");
    for (size_t i = 0; i < locks->rows.len; i++) {
        const struct tl_share *row = &locks->rows.data[i];
        json_begin_object(&j);
        json_key_string(&j, "class", tl_string(t, row->class));
        json_key_u64(&j, "ns", row->ns);
        json_key_double(&j, "share", (double)row->ns / (double)p->length);
        json_key_u64(&j, "sections_on_path", row->holds_on_path);
        json_key_u64(&j, "sections", row->holds);
        json_key_u64(&j, "contended_on_path", row->contended);
        json_key_bool(&j, "inferred", row->inferred);
        json_key_bool(&j, "exact", row->exact);
        json_end_object(&j);
    }
    json_end_array(&j);
    json_unknown(&j, t, unknown);
    json_key_array(&j, "methods");
    for (size_t i = 0; i < samples->rows.len; i++) {
        json_begin_object(&j);
        json_key_string(&j, "method", samples->rows.data[i].name);
        json_key_u64(&j, "self_ns", samples->rows.data[i].self_ns);
        json_key_u64(&j, "total_ns", samples->rows.data[i].total_ns);
        json_end_object(&j);
    }
    json_end_array(&j);
    json_key_u64(&j, "idle_ns", samples->idle_ns);
    json_key_u64(&j, "samples", samples->samples);
    json_key_u64(&j, "run_ns", samples->run_ns);
    json_key_u64(&j, "sampled_run_ns", samples->known_ns);
    json_key_object(&j, "edges");
    for (int e = TL_BY_START; e < TL_EDGES; e++) {
        json_key_u64(&j, tl_edge_name(e), p->edges[e]);
    }
    json_end_object(&j);
    json_key_u64(&j, "inferred_edges", p->inferred);
    json_key_u64(&j, "origin_ns", t->origin_ns - v->base_ns);
    losses_json_of_file(v->path, losses_of_threads, t->lost_any || t->cut_at, &j);
    json_end_object(&j);
    (void)threads_json_print(&b);
}

static double share(uint64_t part, uint64_t whole)
{
    return whole ? 100.0 * (double)part / (double)whole : 0;
}

static void path_method_rows(const struct critical_path *p, const struct path_samples *samples,
                             size_t limit)
{
    char total[24], self[24];
    size_t shown = 0;
    for (size_t i = 0; i < samples->rows.len; i++) {
        const struct ran_method *row = &samples->rows.data[i];
        if (!path_method_is_informative(row) || shown++ >= limit)
            continue;
        if (shown == 1)
            printf("\n   of path        time        self  method\n");
        printf(" %7.2f %%  %10s  %10s  %s\n", share(row->total_ns, p->length),
               format_duration(total, row->total_ns),
               row->self_ns ? format_duration(self, row->self_ns) : "-", row->name);
    }
    print_left_out(shown, limit, "methods");
    if (samples->samples)
        printf(" what ran in %.0f %% of the running time is known from %s\n",
               share(samples->known_ns, samples->run_ns),
               COUNT_TEXT(samples->samples, "CPU samples"));
    else if (samples->run_ns)
        printf(" time on a processor counts for the methods that were on the stack both before and "
               "after it: %s\n",
               samples->too_large ? "CPU samples of a recording above 1 GiB are not read"
               : samples->exists  ? "no CPU sample is on the path"
                                  : "record with --cpu as well to see what it did");
}

/* How wide the column of states is for the segments that are shown. */
static int segment_state_width(const struct critical_path *p, const struct path_samples *samples,
                               size_t limit)
{
    int width = 9;
    size_t shown = 0;
    for (size_t i = 0; i < p->segments.len && shown < limit; i++) {
        if (samples->idle[i])
            continue;
        width = text_wider(width, path_state_text(p->segments.data[i].state), 40);
        shown++;
    }
    return width;
}

static void path_text(struct thread_view *v, const struct critical_path *p,
                      const struct path_shares *locks, const struct path_samples *samples,
                      const struct unknown_table *unknown, size_t limit)
{
    const struct timeline *t = v->t;
    _cleanup_free_ uint8_t *kinds = idle_frame_roles(t);
    char d[24];
    const char *end = thread_view_end(v);
    printf("%s: critical path of %s%s%s, %s", v->path, format_duration(d, p->length),
           end ? " up to the end of " : "", end ? end : "",
           COUNT_TEXT(p->segments.len, "segments"));
    if (p->inferred)
        printf(", %u of them inferred", p->inferred);
    printf("\n\n");
    uint64_t states[PATH_STATES];
    path_busy_states(p, samples, states);
    for (int s = 0; s < PATH_STATES; s++)
        if (states[s])
            printf(" %6.2f %%  %10s  %s\n", share(states[s], p->length),
                   format_duration(d, states[s]), path_state_text(s));
    if (samples->idle_ns)
        printf(" %6.2f %%  %10s  idle: the thread had nothing to do (--idle shows where)\n",
               share(samples->idle_ns, p->length), format_duration(d, samples->idle_ns));
    thread_view_print_unended(v, p);
    size_t held = 0;
    for (size_t i = 0; i < locks->rows.len; i++) {
        const struct tl_share *row = &locks->rows.data[i];
        if ((!row->ns && !row->holds_on_path) || held++ >= limit)
            continue;
        if (held == 1)
            printf("\n   of path        time  sections  lock that was held\n");
        printf(" %7.2f %%  %10s  %8" PRIu64 "  %s%s\n", share(row->ns, p->length),
               format_duration(d, row->ns), row->holds_on_path, tl_string(t, row->class),
               row->inferred ? " (inferred)"
               : row->exact  ? " (exact)"
                             : "");
    }
    print_left_out(held, limit, "locks");
    thread_view_print_unknown(v, unknown);
    path_method_rows(p, samples, limit);
    int wide = segment_state_width(p, samples, limit);
    printf("\n   START (s)        time  %-*s  thread, and what woke it\n", wide, "state");
    size_t shown = 0, left = 0;
    for (size_t i = 0; i < p->segments.len; i++) {
        left += !samples->idle[i];
        if (samples->idle[i] || shown++ >= limit)
            continue;
        const struct path_segment *s = &p->segments.data[i];
        printf(" %12.6f  %10s  %-*s  %s", (double)(v->base_ns + s->start) / 1e9,
               format_duration(d, s->end - s->start), wide, path_state_text(s->state),
               tl_thread_name(t, s->thread));
        if (s->waker != TL_NONE)
            printf(" <- %s of %s%s", tl_edge_name(s->edge), tl_thread_name(t, s->waker),
                   s->inferred ? " (inferred)" : "");
        if (s->object != TL_NONE)
            printf(", %s", tl_object_class(t, s->object));
        struct path_frames frames = kinds ? path_frames(t, kinds, s) : (struct path_frames){0, 0};
        if (samples->top[i])
            printf("  in %s", samples->top[i]);
        else if (frames.n)
            printf("  %s %s", s->state == PATH_RUN ? "within" : "at",
                   tl_string(t, t->frames[frames.first].method));
        putchar('\n');
    }
    print_left_out(left, limit, "segments");
}

int threads_path(struct thread_view *v)
{
    struct critical_path p = {0};
    if (v->options->thread)
        thread_view_select_end(v);
    struct path_shares locks = {0};
    struct path_samples samples = {0};
    struct unknown_table unknown = {0};
    int r = critical_path_and_shares(v->t, &v->range, &p, &locks, &unknown);
    if (r == 0)
        r = path_samples(v->t, v->path, v->options->idle, &p, &samples);
    if (r == -EPROTO && v->unchecked)
        return r;
    if (r < 0)
        return thread_view_no_path(v, "no critical path", r);
    if (v->options->json)
        path_json(v, &p, &locks, &samples, &unknown);
    else
        path_text(v, &p, &locks, &samples, &unknown, thread_view_limit(v));
    vec_release(&unknown.rows);
    path_samples_release(&samples);
    vec_release(&locks.rows);
    critical_path_release(&p);
    return 0;
}
