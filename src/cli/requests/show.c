/* SPDX-License-Identifier: Apache-2.0 */
/* requests show: one request from its beginning to its end. */
#include "cli/requests/requests.h"

#include "base/parse.h"
#include "cli/losses.h"
#include "cli/threads/threads.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { BAR = 40, ROWS = 60 };

/* Draws an interval of time in a bar: "   ====   ". */
static void draw(char bar[BAR + 1], char with, const struct request *q, int64_t start, int64_t end)
{
    double whole = (double)MAX(q->end_ns - q->start_ns, INT64_C(1));
    double from = (double)(start - q->start_ns) / whole * BAR,
           to = (double)(end - q->start_ns) / whole * BAR;
    int first = (int)MIN(MAX(from, 0.0), BAR - 1.0), last = (int)MIN(MAX(to, 0.0), (double)BAR);
    memset(bar, ' ', BAR);
    memset(bar + first, with, (size_t)MAX(last - first, 1));
    bar[BAR] = 0;
}

/* Describes a part and its cause, treating it as a group that consists of this request alone. */
static int explain(struct request_view *v, const struct request_part *p, struct buf *text,
                   struct group_cause *ret)
{
    struct thread_activities others = {0};
    struct group_cause c = {
        .cause = p->cause, .object = p->object, .slow_ns = (double)(p->end - p->start)};
    int e = request_part_own(v, p, &c.own);
    e = e ? e : request_part_culprits(v->l, p, &others);
    const struct thread_activity *most = NULL;
    for (size_t i = 0; e == 0 && i < others.rows.len; i++)
        most = !most || others.rows.data[i].ns > most->ns ? &others.rows.data[i] : most;
    if (most)
        c.culprit = (struct group_culprit){.thread = tl_thread_name(v->t, most->thread),
                                           .threads = 1,
                                           .method = frames_ref_program(v->l, &most->frames),
                                           .frames = most->frames,
                                           .kind = most->kind,
                                           .ns = (double)most->ns};
    vec_release(&others.rows);
    if (e == 0 && text) {
        request_put_cause(text, &c);
        request_put_culprit(text, &c);
    }
    *ret = c;
    return e;
}

static const char *thread_name(const struct request_view *v, uint32_t thread)
{
    return thread == TL_NONE ? "" : tl_thread_name(v->t, thread);
}

static int print_parts(struct request_view *v, const struct request *q,
                       const struct request_parts *p)
{
    size_t limit = v->options->limit ? v->options->limit : ROWS;
    size_t shown = 0;
    size_t left = 0;
    /* When not all parts fit, shows those that took longest. */
    uint64_t least = 0;
    for (uint64_t ns = 1; p->rows.len > limit; ns *= 2) {
        size_t n = 0;
        for (size_t i = 0; i < p->rows.len; i++)
            n += p->rows.data[i].end - p->rows.data[i].start >= ns;
        least = ns;
        if (n <= limit)
            break;
    }
    printf("\n  %10s %10s  %-*s  %-20s %s\n", "at", "time", BAR, "", "thread", "cause");
    for (size_t i = 0; i < p->rows.len; i++) {
        const struct request_part *part = &p->rows.data[i];
        int64_t start = (int64_t)(part->start + v->t->origin_ns),
                end = (int64_t)(part->end + v->t->origin_ns);
        if (part->end - part->start < least || shown >= limit) {
            left++;
            continue;
        }
        char bar[BAR + 1], at[24], time[24];
        _cleanup_(buf_release) struct buf text = BUF(1 << 16);
        struct group_cause c;
        int e = explain(v, part, &text, &c);
        if (e < 0)
            return e;
        draw(bar, part->cause == CAUSE_CPU ? '#' : '-', q, start, end);
        printf("  %10s %10s  %s  %-20.20s %s\n",
               format_duration(at, (uint64_t)(start - q->start_ns)),
               format_duration(time, part->end - part->start), bar, thread_name(v, part->thread),
               buf_str(&text));
        shown++;
    }
    if (left)
        printf("  ... and %s (--limit)\n", COUNT_TEXT(left, "shorter parts"));
    return 0;
}

static void print_works(const struct request_view *v, const struct request *q)
{
    char bar[BAR + 1], at[24], time[24], queued[24];
    const size_t limit = v->options->limit ? v->options->limit : ROWS;
    const uint32_t works = q->works > 1 ? q->works : 0;
    if (works)
        puts("\n  threads that worked for it");
    for (uint32_t i = 0; i < MIN((size_t)works, limit); i++) {
        const struct request_work *w = &v->r.works.data[q->first_work + i];
        draw(bar, '=', q, w->start_ns, w->end_ns);
        printf("  %10s %10s  %s  %-20.20s %s",
               format_duration(at, (uint64_t)MAX(w->start_ns - q->start_ns, INT64_C(0))),
               format_duration(time, (uint64_t)(w->end_ns - w->start_ns)), bar,
               requests_thread(&v->r, w->thread), requests_text(&v->r, w->hand_over));
        if (w->queued_ns)
            printf(", %s in the queue", format_duration(queued, (uint64_t)w->queued_ns));
        if (w->submitter && w->submitter != w->thread)
            printf(", from thread %s", requests_thread(&v->r, w->submitter));
        putchar('\n');
    }
    if (works > limit)
        printf("  ... and %s (--limit)\n", COUNT_TEXT(works - limit, "more pieces of work"));
    if (q->children)
        puts("\n  calls");
    for (uint32_t i = 0; i < MIN((size_t)q->children, limit); i++) {
        const struct request_child *c = &v->r.children.data[q->first_child + i];
        draw(bar, '=', q, c->start_ns, c->end_ns);
        printf("  %10s %10s  %s  %-20.20s %s %s",
               format_duration(at, (uint64_t)MAX(c->start_ns - q->start_ns, INT64_C(0))),
               format_duration(time, (uint64_t)(c->end_ns - c->start_ns)), bar,
               requests_thread(&v->r, c->thread), requests_text(&v->r, c->kind),
               requests_text(&v->r, c->name));
        if (c->peer != REQUEST_NONE)
            printf(" at %s", requests_text(&v->r, c->peer));
        if (c->rows >= 0)
            printf(", %s", COUNT_TEXT((uint64_t)c->rows, "rows"));
        if (c->exception != REQUEST_NONE)
            printf(", %s", requests_text(&v->r, c->exception));
        if (c->span != REQUEST_NONE)
            printf(", span %s", requests_text(&v->r, c->span));
        putchar('\n');
    }
    if (q->children > limit)
        printf("  ... and %s (--limit)\n", COUNT_TEXT(q->children - limit, "more calls"));
}

static void print_head(const struct request_view *v, const struct request *q)
{
    char time[24], at[24];
    printf("request %" PRIu64 ": %s, %s, at %s of %s\n", q->id, request_name_of(&v->r, q),
           format_duration(time, (uint64_t)(q->end_ns - q->start_ns)),
           format_duration(at, (uint64_t)MAX(q->start_ns - v->r.start_ns, INT64_C(0))), v->path);
    if (q->status)
        printf("  status %" PRId32 "\n", q->status);
    if (q->exception != REQUEST_NONE)
        printf("  exception %s\n", requests_text(&v->r, q->exception));
    if (q->bytes >= 0)
        printf("  %s\n", COUNT_TEXT((uint64_t)q->bytes, "bytes"));
    if (q->trace != REQUEST_NONE)
        printf("  trace %s, span %s\n", requests_text(&v->r, q->trace),
               requests_text(&v->r, q->span));
    if (q->parent)
        printf("  within request %" PRIu64 "\n", q->parent);
}

/*
 * Returns how much of the CPU time can be waits that were left out. CPU samples cannot confirm the
 * time of a single request.
 */
static uint64_t hidden_ns(const struct request_view *v, const struct request_parts *p,
                          const struct request *q)
{
    return requests_lack_waits(&v->r, q->start_ns, q->end_ns) ? p->ns[CAUSE_CPU] : 0;
}

static void print_sums(const struct request_view *v, const struct request_parts *p,
                       const struct request *q)
{
    char time[24];
    double whole = (double)MAX(q->end_ns - q->start_ns, INT64_C(1));
    putchar('\n');
    for (int k = 0; k < REQUEST_CAUSES; k++)
        if (p->ns[k])
            printf("  %6.2f %%  %10s  %s\n", 100 * (double)p->ns[k] / whole,
                   format_duration(time, p->ns[k]), request_cause_text((enum request_cause)k));
    uint64_t unexamined_ns = request_unexamined_ns(v->l, p);
    if (unexamined_ns && request_cpu_note(v))
        printf("  CPU: %s\n", request_cpu_note(v));
    else if (unexamined_ns)
        printf("  CPU: for up to %s of this the thread may have had no processor: a run of less "
               "than 2 ms is not examined\n",
               format_duration(time, unexamined_ns));
    if (hidden_ns(v, p, q))
        printf(
            "  CPU: of this, up to %s can be waits of less than 1 ms, which were left out to stay "
            "within the budget\n",
            format_duration(time, hidden_ns(v, p, q)));
}

static void text_key(struct json *j, const struct request_view *v, const char *key, uint32_t text)
{
    json_key_string(j, key, text == REQUEST_NONE ? NULL : requests_text(&v->r, text));
}

static void key_i64(struct json *j, const char *key, int64_t n)
{
    json_key_i64(j, key, n);
}

static int show_json(struct request_view *v, const struct request *q, const struct request_parts *p)
{
    _cleanup_(buf_release) struct buf b = BUF(SIZE_MAX / 2);
    struct json j = {.out = &b};
    json_begin_object(&j);
    json_key_u64(&j, "id", q->id);
    json_key_u64(&j, "parent", q->parent);
    json_key_string(&j, "name", request_name_of(&v->r, q));
    key_i64(&j, "status", q->status);
    text_key(&j, v, "exception", q->exception);
    key_i64(&j, "bytes", q->bytes);
    text_key(&j, v, "trace_id", q->trace);
    text_key(&j, v, "span_id", q->span);
    json_key_string(&j, "thread", requests_thread(&v->r, q->thread));
    key_i64(&j, "start_ns", q->start_ns - v->r.start_ns);
    json_key_u64(&j, "latency_ns", (uint64_t)(q->end_ns - q->start_ns));
    json_key_array(&j, "parts");
    for (size_t i = 0; i < p->rows.len; i++) {
        const struct request_part *part = &p->rows.data[i];
        struct group_cause c;
        int e = explain(v, part, NULL, &c);
        if (e < 0)
            return complain_errno(v->path, "cannot answer", e);
        json_begin_object(&j);
        key_i64(&j, "start_ns", (int64_t)(part->start + v->t->origin_ns) - q->start_ns);
        json_key_u64(&j, "ns", part->end - part->start);
        json_key_string(&j, "cause", request_cause_name(part->cause));
        json_key_string(&j, "thread",
                        part->thread == TL_NONE ? NULL : thread_name(v, part->thread));
        json_key_string(&j, "object", part->object);
        json_key(&j, "frames");
        request_frames_json(&j, v, &c.own.frames);
        json_key_string(&j, "culprit", c.culprit.thread);
        json_key(&j, "culprit_frames");
        request_frames_json(&j, v, &c.culprit.frames);
        json_end_object(&j);
    }
    json_end_array(&j);
    json_key_u64(&j, "cpu_unexamined_ns", request_unexamined_ns(v->l, p));
    json_key_u64(&j, "cpu_hidden_ns", hidden_ns(v, p, q));
    request_cpu_note_json(v, &j);
    json_key_array(&j, "works");
    for (uint32_t i = 0; i < q->works; i++) {
        const struct request_work *w = &v->r.works.data[q->first_work + i];
        json_begin_object(&j);
        json_key_string(&j, "thread", requests_thread(&v->r, w->thread));
        key_i64(&j, "start_ns", w->start_ns - q->start_ns);
        key_i64(&j, "ns", w->end_ns - w->start_ns);
        key_i64(&j, "queued_ns", w->queued_ns);
        json_key_string(&j, "submitter",
                        w->submitter ? requests_thread(&v->r, w->submitter) : NULL);
        text_key(&j, v, "hand_over", w->hand_over);
        json_end_object(&j);
    }
    json_end_array(&j);
    json_key_array(&j, "calls");
    for (uint32_t i = 0; i < q->children; i++) {
        const struct request_child *c = &v->r.children.data[q->first_child + i];
        json_begin_object(&j);
        text_key(&j, v, "kind", c->kind);
        text_key(&j, v, "name", c->name);
        text_key(&j, v, "peer", c->peer);
        json_key_string(&j, "thread", requests_thread(&v->r, c->thread));
        key_i64(&j, "start_ns", c->start_ns - q->start_ns);
        key_i64(&j, "ns", c->end_ns - c->start_ns);
        key_i64(&j, "rows", c->rows);
        text_key(&j, v, "exception", c->exception);
        text_key(&j, v, "trace_id", c->trace);
        text_key(&j, v, "span_id", c->span);
        json_end_object(&j);
    }
    json_end_array(&j);
    losses_json_of_file(v->path, losses_of_requests, true, &j);
    json_end_object(&j);
    return threads_json_print(&b);
}

int requests_show(struct request_view *v, const char *id)
{
    uint64_t number;
    if (parse_u64(id, 1, UINT64_MAX, &number) < 0) {
        complain("requests show", "not the number of a request", id);
        return 2;
    }
    const struct request *q = requests_find(&v->r, number);
    if (!q) {
        char what[96];
        snprintf(what, sizeof(what), "holds no details of a request with the number %" PRIu64,
                 number);
        return complain(v->path, what, "`jvmscope requests slow` lists the numbers of the slowest");
    }
    struct request_parts p = {0};
    int e = request_parts(v->l, q, &p), status = 0;
    if (e == 0 && v->options->json) {
        status = show_json(v, q, &p);
    } else if (e == 0) {
        print_head(v, q);
        print_sums(v, &p, q);
        e = print_parts(v, q, &p);
        print_works(v, q);
    }
    request_parts_release(&p);
    return e < 0 ? complain_errno(v->path, "cannot answer", e) : status;
}
