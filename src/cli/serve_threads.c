/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/serve_threads.h"

#include "base/json.h"
#include "export/page.h"
#include "export/page_pyramid.h"
#include "export/page_timeline.h"
#include "model/timeline_load.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct timeline *served_threads_open(struct served_threads *s, const char *file)
{
    if (s->looked)
        return s->t;
    _cleanup_(buf_release) struct buf why = BUF(4096);
    s->looked = true;
    if (timeline_load(&s->t, file, &why) < 0)
        return s->t = NULL;
    if (!page_has_threads(s->t) || timeline_view_new(&s->view, s->t) < 0) {
        timeline_free(s->t);
        return s->t = NULL;
    }
    /* Where nothing ends there is no path. */
    if (critical_path(s->t, &PATH_OPTIONS, &s->path) < 0)
        s->path = (struct critical_path){0};
    return s->t;
}

void served_threads_release(struct served_threads *s)
{
    timeline_view_free(s->view);
    timeline_free(s->t);
    critical_path_release(&s->path);
}

static uint64_t number(const struct server_request *q, const char *key, uint64_t otherwise)
{
    const char *text = q->argument(q->request, key);
    return text && *text >= '0' && *text <= '9' ? strtoull(text, NULL, 10) : otherwise;
}

static int answer_range(const struct served_threads *s, const struct server_request *q, struct server_reply *reply)
{
    enum { MOST = 4096 };

    const char *text = q->argument(q->request, "threads");
    struct view_range r = {.from = number(q, "from", 0),
                           .to = number(q, "to", s->t->end_ns),
                           .width = (uint32_t)MIN(number(q, "width", 1000), (uint64_t)VIEW_WIDTH_MAX)};
    uint32_t *threads = malloc(MOST * sizeof(*threads));
    for (char *end; threads && text && *text >= '0' && *text <= '9' && r.n_threads < MOST; text = *end == ',' ? end + 1 : end) {
        uint64_t thread = strtoull(text, &end, 10);
        if (thread < s->t->n_threads)
            threads[r.n_threads++] = (uint32_t)thread;
    }
    r.threads = threads;
    int e = threads ? 0 : -ENOMEM;
    if (!r.width || r.to <= r.from || r.to >> 48) {
        free(threads);
        buf_string(&reply->body, "from, to and width (1 to 16384) do not make a range\n");
        return 400;
    }
    if (e == 0)
        e = timeline_view_rows(s->view, &r, &reply->body);
    if (e == 0)
        e = timeline_view_arrows(s->view, &r, &reply->body);
    page_path_picture(&s->path, &r, &reply->body);
    free(threads);
    reply->type = "application/octet-stream";
    return e == 0 ? 200 : 500;
}

static void put_u64(struct json *j, const char *key, uint64_t v)
{
    json_key(j, key);
    json_u64(j, v);
}

/* A number, -1 for none. */
static void put_number(struct json *j, const char *key, uint32_t v)
{
    json_key(j, key);
    json_i64(j, v == TL_NONE ? -1 : (int64_t)v);
}

static void put_frames(struct json *j, const struct timeline *t, const char *key, uint32_t node)
{
    uint32_t stack = tl_context_of(t, node)->stack;
    json_key(j, key);
    json_array(j);
    for (uint32_t k = 0; stack != TL_NONE && k < t->stacks[stack].len; k++) {
        const struct tl_frame *f = &t->frames[t->stacks[stack].first + k];
        json_object(j);
        json_key(j, "method");
        json_string(j, tl_string(t, f->method));
        put_u64(j, "line", f->line);
        json_object_end(j);
    }
    json_array_end(j);
}

/* Who caused a state, and what that thread did then. */
static void put_cause(struct json *j, const struct timeline *t, const char *key, uint32_t node)
{
    json_key(j, key);
    if (node == TL_NONE || !tl_is_state((enum tl_kind)t->nodes[node].kind) || t->nodes[node].edge == TL_NO_EDGE) {
        json_null(j);
        return;
    }
    uint32_t waker = t->nodes[node].waker;
    json_object(j);
    put_u64(j, "edge", t->nodes[node].edge);
    json_key(j, "inferred");
    json_bool(j, t->nodes[node].flags & TL_INFERRED);
    put_number(j, "node", waker);
    if (waker != TL_NONE) {
        put_u64(j, "thread", t->nodes[waker].thread);
        put_frames(j, t, "frames", waker);
    }
    json_object_end(j);
}

static void put_woken(struct json *j, const struct served_threads *s, uint32_t node)
{
    uint32_t woken[1000];
    size_t n = timeline_view_woken(s->view, node, woken, ARRAY_SIZE(woken));
    json_key(j, "woken");
    json_array(j);
    for (size_t i = 0; i < n; i++) {
        json_object(j);
        put_u64(j, "node", woken[i]);
        put_u64(j, "thread", s->t->nodes[woken[i]].thread);
        put_u64(j, "time", s->t->nodes[woken[i]].time);
        json_object_end(j);
    }
    json_array_end(j);
}

/* The segment of the path that lies on the node's thread between two times; -1 for none. */
static int64_t segment_of(const struct critical_path *p, uint32_t thread, uint64_t from, uint64_t to)
{
    for (size_t i = critical_path_behind(p, from); i < p->segments.len && p->segments.data[i].start < MAX(to, from + 1); i++) {
        if (p->segments.data[i].thread == thread)
            return (int64_t)i;
    }
    return -1;
}

static int answer_node(const struct served_threads *s, uint32_t node, struct server_reply *reply)
{
    const struct timeline *t = s->t;
    if (node >= t->n_nodes)
        return 404;
    const struct tl_node *n = &t->nodes[node];
    const struct tl_context *c = tl_context_of(t, node);
    struct json j = {&reply->body, false};
    uint32_t before, after;
    uint64_t end;
    timeline_view_around(s->view, node, &before, &after, &end);
    json_object(&j);
    put_u64(&j, "node", node);
    put_u64(&j, "thread", n->thread);
    put_u64(&j, "kind", n->kind);
    put_u64(&j, "start", n->time);
    put_u64(&j, "end", end);
    json_key(&j, "lock");
    json_string(&j, c->object == TL_NONE ? NULL : tl_object_class(t, c->object));
    put_number(&j, "other", c->other);
    put_u64(&j, "timeout_ms", c->timeout_ms);
    put_number(&j, "before", before);
    put_number(&j, "after", after);
    put_frames(&j, t, "frames", node);
    put_cause(&j, t, "cause", node);
    put_cause(&j, t, "ended", tl_is_state((enum tl_kind)n->kind) ? after : TL_NONE);
    json_key(&j, "segment");
    json_i64(&j, segment_of(&s->path, n->thread, n->time, end));
    if (!tl_is_state((enum tl_kind)n->kind))
        put_woken(&j, s, node);
    json_object_end(&j);
    reply->type = "application/json";
    return 200;
}

static int answer_segment(const struct served_threads *s, uint64_t i, struct server_reply *reply)
{
    if (i >= s->path.segments.len)
        return 404;
    const struct path_segment *p = &s->path.segments.data[i];
    struct json j = {&reply->body, false};
    json_object(&j);
    put_u64(&j, "index", i);
    put_u64(&j, "start", p->start);
    put_u64(&j, "end", p->end);
    put_u64(&j, "thread", p->thread);
    put_number(&j, "node", p->node != TL_NONE ? p->node : timeline_view_at(s->view, p->thread, p->start));
    json_key(&j, "state");
    json_string(&j, path_state_name((enum path_state)p->state));
    put_u64(&j, "edge", p->edge);
    json_key(&j, "inferred");
    json_bool(&j, p->inferred);
    json_object_end(&j);
    reply->type = "application/json";
    return 200;
}

/* The tables of monitor statistics for some threads, for all when none is named. */
static int answer_monitors(const struct served_threads *s, const struct server_request *q, struct server_reply *reply)
{
    uint8_t *chosen = calloc(s->t->n_threads + 1, 1);
    const char *text = q->argument(q->request, "threads");
    for (char *end; chosen && text && *text >= '0' && *text <= '9'; text = *end == ',' ? end + 1 : end) {
        uint64_t thread = strtoull(text, &end, 10);
        if (thread < s->t->n_threads)
            chosen[thread] = 1;
    }
    struct json j = {&reply->body, false};
    bool all = !q->argument(q->request, "threads");
    int r = chosen ? page_statistics_json(&j, s->t, all ? NULL : chosen) : -ENOMEM;
    free(chosen);
    reply->type = "application/json";
    return r == 0 ? 200 : 500;
}

int served_threads_answer(struct served_threads *s, const char *what, const struct server_request *q,
                          struct server_reply *reply)
{
    int status;
    if (strcmp(what, "range") == 0)
        return answer_range(s, q, reply);
    if (strcmp(what, "monitors") == 0)
        return answer_monitors(s, q, reply);
    if (strcmp(what, "node") == 0)
        status = answer_node(s, (uint32_t)MIN(number(q, "i", TL_NONE), (uint64_t)TL_NONE), reply);
    else if (strcmp(what, "segment") == 0)
        status = answer_segment(s, number(q, "i", UINT64_MAX), reply);
    else if (strcmp(what, "at") == 0 && number(q, "thread", UINT64_MAX) < s->t->n_threads)
        status = answer_node(s, timeline_view_at(s->view, (uint32_t)number(q, "thread", 0), number(q, "time", 0)), reply);
    else
        return -ENOENT;
    if (status == 404)
        buf_string(&reply->body, "nothing there\n");
    return status;
}
