/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/threads/threads.h"

#include "analysis/path_samples.h"
#include "analysis/sections.h"
#include "analysis/what_if.h"
#include "base/file.h"
#include "base/parse.h"
#include "base/pattern.h"
#include "cli/commands.h"
#include "cli/losses.h"
#include "cli/selected.h"
#include "cli/threads/deadlocks_vm.h"
#include "timeline/idle.h"
#include "timeline/index.h"
#include "timeline/load.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define OPTION(field) offsetof(struct thread_options, field)

/* clang-format off */
#define JSON   {"--json", 0, ARG_FLAG, OPTION(json), NULL, "print JSON"}
#define THREAD {"--thread", 0, ARG_LIST, OPTION(thread), "PATTERN", "only threads whose name matches (* and ?, or a part of it)"}
#define CLASS  {"--class", 0, ARG_TEXT, OPTION(class_name), "PATTERN", "only waits for objects of a class that matches"}, \
               {"--lock", 0, ARG_TEXT, OPTION(lock), "PATTERN", "the same"}
#define FROM   {"--from", 0, ARG_DURATION, OPTION(from_ns), "TIME", "only from this time on, counted from the start: 1.5s, 2m"}, \
               {"--to", 0, ARG_DURATION, OPTION(to_ns), "TIME", "only up to this time"}
#define MIN_   {"--min", 0, ARG_DURATION, OPTION(min_ns), "TIME", "only waits that are longer"}
#define END    {"--end", 0, ARG_TEXT, OPTION(end_thread), "PATTERN", "the path to the last moment of this thread"}
#define IDLE   {"--idle", 0, ARG_FLAG, OPTION(idle), NULL, "also what waits for something to do: idle pool threads, timers"}
#define REQUESTS ONLY_REQUESTS_ARGS(struct thread_options, requests)
#define LIMIT(what) {"--limit", 'n', ARG_NUMBER, OPTION(limit), "N", what}
/* clang-format on */

static const struct arg table_args[] = {
    JSON, THREAD, CLASS, FROM, MIN_, REQUESTS, IDLE, LIMIT("rows of a table (20)"), {0}};
static const struct arg timeline_args[] = {
    JSON, THREAD, CLASS, FROM, MIN_, REQUESTS, LIMIT("events to print (all); JSON has all of them"),
    {0}};
static const struct arg path_args[] = {JSON, THREAD, END, FROM, IDLE, LIMIT("rows of a table (20)"),
                                       {0}};
static const struct arg what_if_args[] = {
    JSON,
    {"--lock", 0, ARG_TEXT, OPTION(lock), "PATTERN", "the locks whose sections change"},
    {"--method", 0, ARG_LIST, OPTION(method), "PATTERN", "the methods that change"},
    {"--factor", 0, ARG_TEXT, OPTION(factor), "F",
     "how much is left, 0.5 is half; without it 0.75, 0.5 and 0"},
    THREAD,
    END,
    FROM,
    LIMIT("rows of a table (20)"),
    {0},
};
static const struct arg deadlock_args[] = {JSON, {0}};

#define SETS(verb)                                                           \
    static const struct arg_set verb##_set = {"What is shown", verb##_args}; \
    static const struct arg_set *const verb##_sets[] = {&verb##_set, NULL};
SETS(table)
SETS(timeline)
SETS(path)
SETS(what_if)
SETS(deadlock)
#undef SETS

static struct str name_of_thread(const void *context, size_t i)
{
    const char *name = tl_thread_name(context, (uint32_t)i);
    return (struct str){name, strlen(name)};
}

static struct str class_of_object(const void *context, size_t i)
{
    const char *name = tl_object_class(context, (uint32_t)i);
    return (struct str){name, strlen(name)};
}

static int select_all(struct thread_view *v)
{
    const struct timeline *t = v->t;
    const char *class_name = v->options->lock ? v->options->lock : v->options->class_name;
    v->threads = calloc(t->n_threads + 1, 1);
    v->objects = class_name ? calloc(t->n_objects + 1, 1) : NULL;
    if (!v->threads || (class_name && !v->objects))
        return complain_errno(v->path, "cannot read", -ENOMEM);
    for (size_t i = 0; i < t->n_threads; i++) {
        const char *name = tl_thread_name(t, (uint32_t)i);
        v->threads[i] = pattern_match(v->options->thread, name, strlen(name));
        if (v->options->end_thread && pattern_match(v->options->end_thread, name, strlen(name)))
            v->range.end_thread = (uint32_t)i;
    }
    for (size_t i = 0; v->objects && i < t->n_objects; i++) {
        const char *name = tl_object_class(t, (uint32_t)i);
        v->objects[i] = pattern_match(class_name, name, strlen(name));
    }
    if (v->options->end_thread && v->range.end_thread == TL_NONE)
        return complain(v->path, "no thread has this name", v->options->end_thread);
    if (selected_by_time(v->path, v->options->from_ns, v->options->to_ns, t->end_ns) ||
        selected_by_name(v->path, "no thread's name matches", v->options->thread, name_of_thread, t,
                         t->n_threads))
        return 1;
    return selected_by_name(v->path, "no lock's class matches", class_name, class_of_object, t,
                            t->n_objects);
}

/* Loads only the index, whose tables are checked. The verb checks the nodes that it uses. */
static struct timeline *load_unchecked(const char *path, const struct path_options *range,
                                       thread_looks *looks)
{
    _cleanup_(timeline_freep) struct timeline *t = NULL;
    if (timeline_load_unchecked(&t, path) < 0 || !looks(t, range) || timeline_check_tables(t) < 0)
        return NULL;
    return TAKE(t);
}

int thread_view_open(struct thread_view *ret, const struct thread_options *o, const char *path,
                     thread_looks *looks)
{
    _cleanup_(buf_release) struct buf why = BUF(4096);
    struct thread_view v = {.options = o, .path = path, .range = PATH_OPTIONS};
    v.range.from = o->from_ns;
    v.range.to = o->to_ns;
    v.t = looks && !o->end_thread && !o->thread ? load_unchecked(path, &v.range, looks) : NULL;
    v.unchecked = v.t != NULL;
    int r = v.t ? 0 : timeline_load(&v.t, path, &why);
    if (r < 0)
        return why.len ? complain(path, "cannot read", buf_str(&why))
                       : complain_errno(path, "cannot read", r);
    if (!v.t->n_nodes) /* perhaps because it was cut */
        losses_tell_known(path, true);
    int status = v.t->n_nodes
                     ? select_all(&v)
                     : complain(path, "holds nothing about threads", "record with --threads");
    if (status)
        thread_view_release(&v);
    else
        *ret = v;
    return status;
}

void thread_view_release(struct thread_view *v)
{
    timeline_free(v->t);
    free(v->threads);
    free(v->objects);
}

void json_frames(struct json *j, const struct timeline *t, uint32_t stack)
{
    json_some_frames(j, t, stack == TL_NONE ? 0 : t->stacks[stack].first,
                     stack == TL_NONE ? 0 : t->stacks[stack].len);
}

void json_some_frames(struct json *j, const struct timeline *t, uint32_t first, uint32_t n)
{
    json_begin_array(j);
    for (uint32_t k = 0; k < n; k++) {
        const struct tl_frame *f = &t->frames[first + k];
        char text[1200];
        if (f->line)
            snprintf(text, sizeof(text), "%s:%u", tl_string(t, f->method), f->line);
        else
            snprintf(text, sizeof(text), "%s", tl_string(t, f->method));
        json_string(j, text);
    }
    json_end_array(j);
}

void json_thread(struct json *j, const struct timeline *t, uint32_t thread)
{
    json_string(j, thread == TL_NONE ? NULL : tl_thread_name(t, thread));
}

static int print(struct buf *b)
{
    int r = buf_error(b);
    if (r == 0)
        r = write_all(STDOUT_FILENO, b->data, b->len);
    b->len = 0;
    return r;
}

int json_print(struct buf *b)
{
    buf_u8(b, '\n');
    int r = print(b);
    return r < 0 ? complain_errno(NULL, "cannot write", r) : 0;
}

int json_print_part(struct buf *b)
{
    return b->len < 1 << 20 ? 0 : print(b);
}

/* ---- critical-path ---- */

static void path_json(struct thread_view *v, const struct critical_path *p,
                      const struct path_shares *locks, const struct path_samples *samples)
{
    const struct timeline *t = v->t;
    _cleanup_free_ uint8_t *kinds = frame_roles(t);
    _cleanup_(buf_release) struct buf b = BUF(SIZE_MAX / 2);
    struct json j = {.out = &b};
    json_begin_object(&j);
    json_key_u64(&j, "makespan_ns", p->makespan);
    json_key_u64(&j, "length_ns", p->length);
    json_key(&j, "segments");
    json_begin_array(&j);
    for (size_t i = 0; i < p->segments.len; i++) {
        const struct path_segment *s = &p->segments.data[i];
        const struct tl_context *c = s->node == TL_NONE ? NULL : tl_context_of(t, s->node);
        json_begin_object(&j);
        json_key(&j, "thread");
        json_thread(&j, t, s->thread);
        json_key_string(&j, "state", path_state_name(s->state));
        json_key_u64(&j, "start_ns", s->start);
        json_key_u64(&j, "ns", s->end - s->start);
        json_key(&j, "waker");
        json_thread(&j, t, s->waker);
        json_key_string(&j, "object", c ? tl_object_class(t, c->object) : NULL);
        json_key_bool(&j, "inferred", s->inferred);
        json_key_string(&j, "edge", s->edge == TL_NO_EDGE ? NULL : tl_edge_name(s->edge));
        json_key(&j, "frames");
        struct path_frames frames = kinds ? path_frames(t, kinds, s) : (struct path_frames){0, 0};
        json_some_frames(&j, t, frames.first, frames.n);
        json_key_string(&j, "sampled_in", samples->top[i]);
        json_key_bool(&j, "idle", samples->idle[i]);
        json_end_object(&j);
    }
    json_end_array(&j);
    json_key(&j, "locks");
    json_begin_array(&j);
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
    json_key(&j, "methods");
    json_begin_array(&j);
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
    json_key(&j, "edges");
    json_begin_object(&j);
    for (int e = TL_BY_START; e < TL_EDGES; e++) {
        json_key(&j, tl_edge_name(e));
        json_u64(&j, p->edges[e]);
    }
    json_end_object(&j);
    json_key_u64(&j, "inferred_edges", p->inferred);
    json_key_u64(&j, "origin_ns", t->origin_ns);
    losses_json_of_file(v->path, losses_of_threads, t->lost_any, &j);
    json_end_object(&j);
    (void)json_print(&b);
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
    for (size_t i = 0; i < samples->rows.len && shown < limit; i++) {
        const struct ran_method *row = &samples->rows.data[i];
        if (!path_method_tells(row))
            continue;
        if (shown++ == 0)
            printf("\n   of path        time        self  method\n");
        printf(" %7.2f %%  %10s  %10s  %s\n", share(row->total_ns, p->length),
               format_duration(total, row->total_ns),
               row->self_ns ? format_duration(self, row->self_ns) : "-", row->name);
    }
    if (samples->samples)
        printf(" %" PRIu64 " CPU samples tell what ran in %.0f %% of the running time\n",
               samples->samples, share(samples->known_ns, samples->run_ns));
    else if (samples->run_ns)
        printf(" a run counts for the methods on the stack before and after it: %s\n",
               samples->too_large ? "CPU samples of a recording above 1 GiB are not read"
               : samples->there   ? "no CPU sample is on the path"
                                  : "record with --cpu as well to see what it did");
}

static void path_text(struct thread_view *v, const struct critical_path *p,
                      const struct path_shares *locks, const struct path_samples *samples,
                      size_t limit)
{
    const struct timeline *t = v->t;
    _cleanup_free_ uint8_t *kinds = frame_roles(t);
    char d[24];
    printf("%s: critical path of %s, %s, %u inferred\n\n", v->path, format_duration(d, p->length),
           COUNT_TEXT(p->segments.len, "segments"), p->inferred);
    uint64_t states[PATH_STATES];
    path_busy_states(p, samples, states);
    for (int s = 0; s < PATH_STATES; s++)
        if (states[s])
            printf(" %6.2f %%  %10s  %s\n", share(states[s], p->length),
                   format_duration(d, states[s]), path_state_name(s));
    if (samples->idle_ns)
        printf(" %6.2f %%  %10s  idle: its thread had nothing to do (--idle tells where)\n",
               share(samples->idle_ns, p->length), format_duration(d, samples->idle_ns));
    if (locks->rows.len)
        printf("\n   of path        time  sections  lock\n");
    for (size_t i = 0; i < MIN(locks->rows.len, limit); i++) {
        const struct tl_share *row = &locks->rows.data[i];
        printf(" %7.2f %%  %10s  %8" PRIu64 "  %s%s\n", share(row->ns, p->length),
               format_duration(d, row->ns), row->holds_on_path, tl_string(t, row->class),
               row->inferred ? " (inferred)"
               : row->exact  ? " (exact)"
                             : "");
    }
    path_method_rows(p, samples, limit);
    printf("\n       start        time  state      thread, and what woke it\n");
    size_t shown = 0, left = 0;
    for (size_t i = 0; i < p->segments.len; i++) {
        left += !samples->idle[i];
        if (samples->idle[i] || shown++ >= limit)
            continue;
        const struct path_segment *s = &p->segments.data[i];
        const struct tl_context *c = s->node == TL_NONE ? NULL : tl_context_of(t, s->node);
        char at[24];
        printf(" %11s  %10s  %-9s  %s", format_duration(at, s->start),
               format_duration(d, s->end - s->start), path_state_name(s->state),
               tl_thread_name(t, s->thread));
        if (s->waker != TL_NONE)
            printf(" <- %s of %s%s", tl_edge_name(s->edge), tl_thread_name(t, s->waker),
                   s->inferred ? " (inferred)" : "");
        if (c && c->object != TL_NONE)
            printf(", %s", tl_object_class(t, c->object));
        struct path_frames frames = kinds ? path_frames(t, kinds, s) : (struct path_frames){0, 0};
        if (samples->top[i])
            printf("  in %s", samples->top[i]);
        else if (frames.n)
            printf("  %s %s", s->state == PATH_RUN ? "within" : "at",
                   tl_string(t, t->frames[frames.first].method));
        putchar('\n');
    }
    if (left > limit)
        printf(" ... and %s more (--limit)\n", COUNT_TEXT(left - limit, "segments"));
}

static size_t row_limit(const struct thread_options *o)
{
    return o->limit ? o->limit : 20;
}

/* Explains why there is no path, and therefore nothing to replay. */
static int no_path(const struct thread_view *v, const char *what, int r)
{
    return r == -ENOENT ? complain(v->path, what, "nothing lies between --from and --to")
                        : complain_errno(v->path, what, r);
}

/*
 * The path of a thread leads to its last moment. Of several threads the one that ends last is
 * taken.
 */
static void select_end(struct thread_view *v)
{
    for (size_t i = 0; i < v->t->n_threads; i++) {
        uint32_t end = v->range.end_thread;
        bool later = end == TL_NONE || v->t->threads[i].end_ns >= v->t->threads[end].end_ns;
        if (v->threads[i] && v->t->threads[i].first != TL_NONE && later)
            v->range.end_thread = (uint32_t)i;
    }
}

/* -EPROTO from an unchecked timeline is not reported yet. */
static int threads_path(struct thread_view *v)
{
    struct critical_path p = {0};
    if (v->options->thread && !v->options->end_thread)
        select_end(v);
    struct path_shares locks = {0};
    struct path_methods methods = {0};
    struct path_samples samples = {0};
    int r = critical_path_and_shares(v->t, &v->range, &p, &locks, &methods);
    if (r == 0)
        r = path_samples(v->t, v->path, v->options->idle, &p, &samples);
    if (r == -EPROTO && v->unchecked)
        return r;
    if (r < 0)
        return no_path(v, "no critical path", r);
    if (v->options->json)
        path_json(v, &p, &locks, &samples);
    else
        path_text(v, &p, &locks, &samples, row_limit(v->options));
    path_samples_release(&samples);
    vec_release(&methods.rows);
    vec_release(&locks.rows);
    critical_path_release(&p);
    return 0;
}

/* ---- what-if ---- */

static bool lock_selected(const struct timeline *t, uint32_t object, void *arg)
{
    const struct thread_view *v = arg;
    return v->objects[object];
}

static bool method_selected(const struct timeline *t, uint32_t method, void *arg)
{
    const struct thread_view *v = arg;
    const char *name = tl_string(t, method);
    return pattern_match(v->options->method, name, strlen(name));
}

static struct str method_of_frame(const void *context, size_t i)
{
    const struct timeline *t = context;
    const char *name = tl_string(t, t->frames[i].method);
    return (struct str){name, strlen(name)};
}

static void answer_json(const struct thread_view *v, struct json *j, const char *lock,
                        double factor, const struct what_if_answer *a)
{
    json_begin_object(j);
    if (lock)
        json_key_string(j, "lock", lock);
    json_key_double(j, "factor", factor);
    json_key_u64(j, "before_ns", a->before);
    json_key_u64(j, "after_ns", a->answer);
    json_key_u64(j, "after_low_ns", a->low);
    json_key_u64(j, "after_high_ns", a->high);
    json_key_u64(j, "spread_ns", a->spread);
    json_key_u64(j, "order_kept_ns", a->kept);
    json_key_u64(j, "order_arbitrated_ns", a->arbitrated);
    json_key_bool(j, "order_decided_anew", a->decided_anew);
    json_key_u64(j, "scaled_ns", a->scaled_ns);
    json_key_u64(j, "path_bound_ns", a->upper_bound);
    losses_json_of_file(v->path, losses_of_threads, v->t->lost_any, j);
    json_end_object(j);
}

static bool lock_of_class(const struct timeline *t, uint32_t object, void *arg)
{
    return t->objects[object].class == *(const uint32_t *)arg;
}

/* Reads --factor. Returns 0, or 2 after a complaint. */
static int read_factor(const struct thread_options *o, double *ret)
{
    char *end;
    double factor = o->factor ? strtod(o->factor, &end) : 0;
    if (!o->factor)
        return 0;
    if (end == o->factor || *end || !(factor >= 0 && factor <= 1000)) {
        complain("threads what-if", "--factor takes a number from 0 to 1000", o->factor);
        return 2;
    }
    *ret = factor;
    return 0;
}

/*
 * Without a lock or a method: answers for the locks that take most of the path, each at half its
 * time or at --factor.
 */
static int what_if_of_locks(struct thread_view *v, double factor)
{
    enum { LOCKS = 5 };

    struct critical_path p = {0};
    struct path_shares shares = {0};
    char before[24], after[24];
    _cleanup_(buf_release) struct buf b = BUF(1 << 20);
    struct json j = {.out = &b};
    size_t shown = 0;
    json_begin_array(&j);
    int r = critical_path(v->t, &v->range, &p);
    if (r == 0)
        r = path_shares_of(v->t, &v->range, &p, &shares);
    for (size_t i = 0; r == 0 && i < shares.rows.len && shown < LOCKS; i++) {
        uint32_t class = shares.rows.data[i].class;
        struct what_if w = {.lock = lock_of_class, .lock_arg = &class, .factor = factor};
        struct what_if_answer a = {0};
        if (!shares.rows.data[i].ns)
            continue;
        r = what_if(v->t, &v->range, &w, &a);
        if (r < 0)
            break;
        answer_json(v, &j, tl_string(v->t, class), factor, &a);
        if (shown++ == 0 && !v->options->json)
            printf("%s with each lock at %.3g of its time (--lock PATTERN or --method PATTERN for "
                   "others)\n",
                   format_duration(before, a.before), factor);
        if (!v->options->json)
            printf(" %10s  %s\n", format_duration(after, a.answer), tl_string(v->t, class));
    }
    json_end_array(&j);
    vec_release(&shares.rows);
    critical_path_release(&p);
    if (r == -EPROTO && v->unchecked)
        return r;
    if (r < 0)
        return no_path(v, "cannot replay", r);
    if (!shown && !v->options->json)
        puts("no lock is on the critical path: --method PATTERN tells of methods");
    return v->options->json ? json_print(&b) : 0;
}

static int threads_what_if(struct thread_view *v)
{
    const struct thread_options *o = v->options;
    double factors[3] = {0.75, 0.5, 0};
    size_t n = o->factor ? 1 : 3;
    int status = read_factor(o, &factors[0]);
    if (status)
        return status;
    if (o->lock && o->method) {
        complain("threads what-if", "--lock or --method, not both", NULL);
        return 2;
    }
    if (!o->lock && !o->method)
        return what_if_of_locks(v, o->factor ? factors[0] : 0.5);
    /* For a misspelt name the answer would be that it gains nothing. */
    if (selected_by_name(v->path, "no method matches", o->method, method_of_frame, v->t,
                         v->t->n_frames))
        return 1;
    struct what_if w = {.lock = o->lock ? lock_selected : NULL,
                        .lock_arg = v,
                        .method = o->method ? method_selected : NULL,
                        .method_arg = v};
    _cleanup_(buf_release) struct buf b = BUF(1 << 20);
    struct json j = {.out = &b};
    json_begin_array(&j);
    int r = hold_list_keep(v->t, NULL);
    for (size_t i = 0; r == 0 && i < n; i++) {
        struct what_if_answer a = {0};
        char before[24], after[24], low[24], high[24];
        w.factor = factors[i];
        r = what_if(v->t, &v->range, &w, &a);
        if (r < 0)
            break;
        answer_json(v, &j, NULL, factors[i], &a);
        if (!o->json)
            printf(
                "%s at %.3g of its time: %s becomes %s, as far as one recording tells %s to %s%s\n",
                o->lock ? o->lock : o->method, factors[i], format_duration(before, a.before),
                format_duration(after, a.answer), format_duration(low, a.low),
                format_duration(high, a.high),
                a.decided_anew
                    ? ""
                    : ", locks in the order recorded (too many events to decide it anew)");
    }
    json_end_array(&j);
    if (r == -EPROTO && v->unchecked)
        return r;
    if (r < 0)
        return no_path(v, "cannot replay", r);
    return o->json ? json_print(&b) : 0;
}

/* ---- the verbs ---- */

static bool what_if_looks(const struct timeline *t, const struct path_options *range)
{
    return what_if_checks(t);
}

static int show_file(const char *path, const struct thread_options *options,
                     int (*show)(struct thread_view *), thread_looks *looks)
{
    struct thread_view v;
    int status = -EPROTO;
    uint64_t cut_at = 0;
    bool lost = false;
    /* If an index turns out to be damaged, all of it is checked, and it is made again. */
    for (; status == -EPROTO; looks = NULL) {
        if ((status = thread_view_open(&v, options, path, looks)))
            return status;
        status = show(&v);
        cut_at = v.t->cut_at;
        lost = v.t->lost_any;
        thread_view_release(&v);
    }
    char where[64];
    snprintf(where, sizeof(where), "cut or damaged at byte %" PRIu64, cut_at);
    if (status == 0)
        losses_tell_read(path, lost, cut_at ? where : NULL);
    else if (cut_at)
        complain(path, "read as far as possible", where);
    return status;
}

static int run_verb(const struct command *self, int argc, char **argv,
                    int (*show)(struct thread_view *), thread_looks *looks)
{
    struct thread_options options = {0};
    struct operands operands;
    int status;
    if (!args_parse(self, (void *[]){&options}, argc, argv, &operands, &status))
        return status;
    _cleanup_(request_times_release) struct request_times times = {0};
    status = 0;
    if (only_requests_given(&options.requests)) {
        status = only_requests_times(&options.requests, operands.list[0], &times);
        /* cppcheck-suppress autoVariables ; it is used only until this returns */
        options.times = &times;
    }
    return status ? status : show_file(operands.list[0], &options, show, looks);
}

#define VERB(verb, show, looks)                                              \
    static int cmd_##verb(const struct command *self, int argc, char **argv) \
    {                                                                        \
        return run_verb(self, argc, argv, show, looks);                      \
    }
VERB(summary, threads_summary, NULL)
VERB(monitors, threads_monitors, NULL)
VERB(timeline, threads_timeline, NULL)
VERB(path, threads_path, path_shares_known)
VERB(what_if, threads_what_if, what_if_looks)
#undef VERB

/* Answers for a recording or for a running VM. */
static int cmd_deadlocks(const struct command *self, int argc, char **argv)
{
    struct thread_options options = {0};
    struct operands operands;
    int status;
    if (!args_parse(self, (void *[]){&options}, argc, argv, &operands, &status))
        return status;
    const char *operand = operands.list[0];
    bool is_pid = operand[strspn(operand, "0123456789")] == 0 && access(operand, F_OK) != 0;
    return is_pid ? deadlocks_of_vm(operand, options.json)
                  : show_file(operand, &options, threads_deadlocks, NULL);
}

#define ROW(word, options, function, line, more, example) \
    ROW_OF("FILE", word, options, function, line, more, example)
#define ROW_OF(what, word, options, function, line, more, example)                     \
    &(const struct command)                                                            \
    {                                                                                  \
        .name = "threads " word, .run = function, .operands = what, .min_operands = 1, \
        .max_operands = 1, .summary = line, .description = more, .examples = example,  \
        .sets = options                                                                \
    }

static const struct command *const threads_verbs[] = {
    ROW("summary", table_sets, cmd_summary, "threads, and what they waited for in all",
        "One row a thread, the most blocked first: how often and how long it was blocked and "
        "waited, and how many of the waits have a known cause. Threads that only waited for "
        "something to do (pools without a task, timers, selectors) and the VM's own are left "
        "out, and so are such waits of the others; how many they are and how long is said below, "
        "and --idle shows them.",
        "  jvmscope threads summary app.jfr\n"),
    ROW("monitors", table_sets, cmd_monitors,
        "monitor statistics: classes, then blocks and waits by calling method",
        "The tables of the thread profiler: for the threads selected the classes whose objects "
        "they waited for, then blocks and waits by calling method with total, least, most, "
        "average and percentiles, objects and threads; with each lock's share of the critical "
        "path, and what the program would gain.",
        "  jvmscope threads monitors --thread 'worker-*' app.jfr\n"),
    ROW("timeline", timeline_sets, cmd_timeline, "the events of the threads in order of time",
        "Every change of state and every interaction, with its attributes; with --min the waits "
        "that are as long, and their ends. With --json they have the names of the TRCThread "
        "model.",
        "  jvmscope threads timeline --from 1s --to 1.1s app.jfr\n"),
    ROW("critical-path", path_sets, cmd_path, "the chain of activities that the time depends on",
        "From the end of the program (or --to, or the end of a thread) backward: what each "
        "thread did is followed to who woke it. The lengths of the segments add up to the time "
        "from the beginning to the end. What no record explains is shown as unknown. What a "
        "thread did while it ran is told by CPU samples, where the recording has some (run "
        "--threads --cpu): a run's time is divided among its samples. Without them a run counts "
        "for the program's methods that were on the stack both before and after it. With "
        "--thread the path is the one that leads to the end of that thread. Beside a recording "
        "with more than two million changes of state stays an index (FILE.timeline, some 65 "
        "bytes an event): making that takes 25 bytes of memory an event and the pages of that "
        "file, a replay of such a recording (what-if) 32 MB and these pages.",
        "  jvmscope threads critical-path app.jfr\n  jvmscope threads critical-path --end 'main' "
        "--json app.jfr\n"),
    ROW("what-if", what_if_sets, cmd_what_if, "what the program would take if a section took less",
        "Replays the threads with the sections of a lock, or a method, scaled by a factor; "
        "without either, the locks that take most of the critical path, each at half of its "
        "time. Once in the order in which locks were taken, once with locks given to whom comes "
        "first, which is the answer, unless there are more than 20 million changes of state. A "
        "thread that comes to a lock when it is free does not wait and pays for no wake-up; one "
        "that comes to a lock recorded with --locks when another thread has it by now waits. The "
        "interval is where nine of ten runs of the changed program are expected: from the lower "
        "to the higher of the two, and beyond these as far as one run differs from another; not "
        "above what was recorded when a section gets shorter, and not below it when one gets "
        "longer. That is taken from how much runs and waits of the same kind on the critical "
        "path differ within this recording (pauses and times without a processor: in all of it), "
        "and from the quartiles of how long it took to hand locks over to threads that slept. "
        "How one start of the VM differs from the next, locks of which the recording knows "
        "nothing, and what threads take from each other that run beside each other only then "
        "(the replay gives each a processor), are not in it: of programs that are bound by two "
        "processors it had nine runs of ten (doc/measured/threads.md). With --json spread_ns is "
        "the standard deviation of one run. Record with --locks PATTERN for exact answers: the "
        "VM has no event for a thread that gets a monitor by spinning.",
        "  jvmscope threads what-if --lock 'com.acme.Cache' --factor 0.5 app.jfr\n"),
    ROW_OF("FILE|PID", "deadlocks", deadlock_sets, cmd_deadlocks,
           "threads that wait for each other",
           "Cycles of threads each of which waits for a lock that the next one owns: at the end "
           "of a recording, or now in a running VM (as far as the VM itself tells, which leaves "
           "virtual threads out; run --deadlocks tells of those too, when they form).",
           "  jvmscope threads deadlocks app.jfr\n  jvmscope threads deadlocks 4711\n"),
    NULL,
};

const struct command command_threads = {
    .name = "threads",
    .verbs = threads_verbs,
    .summary = "show who waits for whom: tables, timeline, critical path, what-if",
};
