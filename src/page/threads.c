/* SPDX-License-Identifier: Apache-2.0 */
#include "page/threads.h"

#include "base/hash.h"
#include "base/json.h"
#include "page/page.h"
#include "page/pyramid.h"
#include "page/timeline.h"
#include "timeline/index.h"
#include "timeline/load.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void page_threads_init(struct page_threads *s)
{
    *s = (struct page_threads){0};
    pthread_mutex_init(&s->opening, NULL);
}

/* There is no path where nothing ends. */
static void *find_path(void *arg)
{
    struct page_threads *s = arg;
    if (critical_path(s->t, &PATH_OPTIONS, &s->path) < 0)
        s->path = (struct critical_path){0};
    return NULL;
}

static void forget(struct page_threads *s)
{
    timeline_view_free(s->view);
    s->view = NULL;
    timeline_free(s->t);
    s->t = NULL;
    if (!s->path_in_view)
        critical_path_release(&s->path);
    s->path = (struct critical_path){0};
    s->path_in_view = false;
    path_samples_release(&s->ran);
    s->ran = (struct path_samples){0};
}

/*
 * Returns what a view's file must match besides its timeline: the way in which paths are found may
 * change with each version.
 */
static uint64_t key_of(const struct page_threads *s)
{
    uint64_t identity = timeline_identity(s->t);
    return identity ? hash_u64(identity ^ hash_bytes(JVMSCOPE_VERSION, strlen(JVMSCOPE_VERSION)))
                    : 0;
}

/* Maps a view that was made before, without reading it. */
static int find_view(struct page_threads *s, const char *file, const char *kept)
{
    const void *rest = NULL;
    size_t len = 0;
    int r = timeline_load_unchecked(&s->t, file);
    if (r == 0)
        r = timeline_view_map(&s->view, s->t, kept, key_of(s), &rest, &len);
    if (r < 0) {
        forget(s);
        return r;
    }
    s->path.segments.data = (void *)rest;
    s->path.segments.len = len / sizeof(*s->path.segments.data);
    s->path_in_view = true;
    return 0;
}

/* Finds the path while the view is made, because both only read the timeline. */
static int make_view(struct page_threads *s, const char *file, const char *kept)
{
    pthread_t finder;
    _cleanup_(buf_release) struct buf why = BUF(4096);
    if (timeline_load(&s->t, file, &why) < 0)
        return -ENOENT;
    bool shown = page_has_threads(s->t),
         concurrent = shown && pthread_create(&finder, NULL, find_path, s) == 0;
    int r = shown ? timeline_view_new(&s->view, s->t) : -ENOENT;
    if (concurrent)
        (void)pthread_join(finder, NULL);
    else if (r == 0)
        (void)find_path(s);
    uint64_t key = r == 0 ? key_of(s) : 0;
    size_t bytes = s->path.segments.len * sizeof(*s->path.segments.data);
    if (key)
        /* it is only a cache, so this may fail */
        (void)!timeline_view_save(s->view, kept, key, s->path.segments.data, bytes);
    return r;
}

static void open_file(struct page_threads *s, const char *file)
{
    _cleanup_(buf_release) struct buf kept = BUF(8192);
    s->file = file;
    buf_printf(&kept, "%s.view", file);
    if (buf_error(&kept) == 0 && find_view(s, file, buf_str(&kept)) == 0)
        return;
    s->checked = true;
    if (make_view(s, file, buf_str(&kept)) < 0)
        forget(s);
}

/* Loads once. Returns false when the lock cannot be had. */
static bool open_once(struct page_threads *s, const char *file, int (*lock)(pthread_mutex_t *))
{
    if (s->opened)
        return true;
    if (lock(&s->opening) != 0)
        return false;
    if (!s->opened)
        open_file(s, file);
    s->opened = true;
    pthread_mutex_unlock(&s->opening);
    return true;
}

/* Checks the whole timeline, once. Returns false when its file is damaged. */
static bool check_once(struct page_threads *s)
{
    if (!s->checked) {
        pthread_mutex_lock(&s->opening);
        if (!s->checked && s->t && timeline_check(s->t) == 0)
            s->checked = true;
        pthread_mutex_unlock(&s->opening);
    }
    return s->checked;
}

struct timeline *page_threads_open(struct page_threads *s, const char *file)
{
    return open_once(s, file, pthread_mutex_lock) && check_once(s) ? s->t : NULL;
}

void page_threads_release(struct page_threads *s)
{
    forget(s);
    pthread_mutex_destroy(&s->opening);
}

static int answer_range(struct page_threads *s, const struct server_request *q,
                        struct server_reply *reply)
{
    enum { MOST = 4096 };

    const char *text = q->argument(q->request, "threads");
    struct view_range r = {
        .from = server_number(q, "from", 0),
        .to = server_number(q, "to", s->t->end_ns),
        .width = (uint32_t)MIN(server_number(q, "width", 1000), (uint64_t)VIEW_WIDTH_MAX)};
    uint32_t *threads = malloc(MOST * sizeof(*threads));
    for (char *end; threads && text && *text >= '0' && *text <= '9' && r.n_threads < MOST;
         text = *end == ',' ? end + 1 : end) {
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

/* Writes a number, -1 for none. */
static void put_number(struct json *j, const char *key, uint32_t v)
{
    json_key_i64(j, key, v == TL_NONE ? -1 : (int64_t)v);
}

/* Writes which thread caused a state, and what that thread did then. */
static void put_cause(struct json *j, const struct timeline *t, const char *key, uint32_t node)
{
    json_key(j, key);
    if (!timeline_node_holds(t, node) || !tl_is_state((enum tl_kind)tl_node(t, node).kind) ||
        tl_node(t, node).edge == TL_NO_EDGE) {
        json_null(j);
        return;
    }
    uint32_t waker = tl_node(t, node).waker;
    json_begin_object(j);
    json_key_u64(j, "edge", tl_node(t, node).edge);
    json_key_bool(j, "inferred", tl_node(t, node).flags & TL_INFERRED);
    waker = timeline_node_holds(t, waker) ? waker : TL_NONE;
    put_number(j, "node", waker);
    if (waker != TL_NONE) {
        json_key_u64(j, "thread", tl_node(t, waker).thread);
        page_frames_json(j, t, tl_context_of(t, waker)->stack);
    }
    json_end_object(j);
}

static void put_woken(struct json *j, const struct page_threads *s, uint32_t node)
{
    uint32_t woken[1000];
    size_t n = timeline_view_woken(s->view, node, woken, ARRAY_SIZE(woken));
    json_key_array(j, "woken");
    for (size_t i = 0; i < n; i++) {
        json_begin_object(j);
        json_key_u64(j, "node", woken[i]);
        json_key_u64(j, "thread", tl_node(s->t, woken[i]).thread);
        json_key_u64(j, "time", tl_node(s->t, woken[i]).time);
        json_end_object(j);
    }
    json_end_array(j);
}

/* Returns the segment of the path on the node's thread between two times, or -1. */
static int64_t segment_of(const struct critical_path *p, uint32_t thread, uint64_t from,
                          uint64_t to)
{
    for (size_t i = critical_path_after(p, 0, from);
         i < p->segments.len && p->segments.data[i].start < MAX(to, from + 1); i++) {
        if (p->segments.data[i].thread == thread)
            return (int64_t)i;
    }
    return -1;
}

static int answer_node(const struct page_threads *s, uint32_t node, struct server_reply *reply)
{
    const struct timeline *t = s->t;
    if (!timeline_node_holds(t, node))
        return 404;
    const struct tl_node n = tl_node(t, node);
    const struct tl_context *c = tl_context_of(t, node);
    struct json j = {&reply->body, false};
    uint32_t before, after;
    uint64_t end;
    timeline_view_around(s->view, node, &before, &after, &end);
    json_begin_object(&j);
    json_key_u64(&j, "node", node);
    json_key_u64(&j, "thread", n.thread);
    json_key_u64(&j, "kind", n.kind);
    json_key_u64(&j, "start", n.time);
    json_key_u64(&j, "end", end);
    json_key_string(&j, "lock", c->object == TL_NONE ? NULL : tl_object_class(t, c->object));
    put_number(&j, "other", c->other);
    json_key_u64(&j, "timeout_ms", c->timeout_ms);
    put_number(&j, "before", before);
    put_number(&j, "after", after);
    page_frames_json(&j, t, tl_context_of(t, node)->stack);
    put_cause(&j, t, "cause", node);
    put_cause(&j, t, "ended", tl_is_state((enum tl_kind)n.kind) ? after : TL_NONE);
    json_key_i64(&j, "segment", segment_of(&s->path, n.thread, n.time, end));
    if (!tl_is_state((enum tl_kind)n.kind))
        put_woken(&j, s, node);
    json_end_object(&j);
    reply->type = "application/json";
    return 200;
}

/* Returns what ran on the path, or NULL when that is unknown. */
static const struct path_samples *ran_once(struct page_threads *s)
{
    pthread_mutex_lock(&s->opening);
    if (!s->sampled && path_samples(s->t, s->file, false, &s->path, &s->ran) < 0)
        s->ran = (struct path_samples){0};
    s->sampled = true;
    pthread_mutex_unlock(&s->opening);
    return s->ran.top ? &s->ran : NULL;
}

static int answer_segment(struct page_threads *s, const struct server_request *q,
                          struct server_reply *reply)
{
    uint64_t i = server_number(q, "i", UINT64_MAX);
    if (i >= s->path.segments.len)
        return 404;
    const struct path_segment *p = &s->path.segments.data[i];
    const struct path_samples *ran = ran_once(s);
    struct json j = {&reply->body, false};
    json_begin_object(&j);
    json_key_u64(&j, "index", i);
    json_key_u64(&j, "start", p->start);
    json_key_u64(&j, "end", p->end);
    json_key_u64(&j, "thread", p->thread);
    put_number(&j, "node",
               p->node != TL_NONE ? p->node : timeline_view_at(s->view, p->thread, p->start));
    json_key_string(&j, "state", path_state_text((enum path_state)p->state));
    json_key_u64(&j, "edge", p->edge);
    json_key_bool(&j, "inferred", p->inferred);
    json_key_bool(&j, "idle", ran && ran->idle[i]);
    json_key_string(&j, "ran", ran ? ran->top[i] : NULL);
    json_end_object(&j);
    reply->type = "application/json";
    return 200;
}

/* Answers with the monitor statistics of some threads, or of all when none is named. */
static int answer_monitors(struct page_threads *s, const struct server_request *q,
                           struct server_reply *reply)
{
    uint8_t *chosen = calloc(s->t->n_threads + 1, 1);
    const char *text = q->argument(q->request, "threads");
    for (char *end; chosen && text && *text >= '0' && *text <= '9';
         text = *end == ',' ? end + 1 : end) {
        uint64_t thread = strtoull(text, &end, 10);
        if (thread < s->t->n_threads)
            chosen[thread] = 1;
    }
    struct json j = {&reply->body, false};
    bool all = !q->argument(q->request, "threads"), idle = q->argument(q->request, "idle") != NULL;
    int r = chosen ? page_statistics_json(&j, s->t, all ? NULL : chosen, idle) : -ENOMEM;
    free(chosen);
    reply->type = "application/json";
    return r == 0 ? 200 : 500;
}

/* When a page is opened: loads the parts that have an index while the page reads its data. */
static int answer_ready(struct page_threads *s, const char *file, struct server_reply *reply)
{
    _cleanup_(buf_release) struct buf index = BUF(8192);
    buf_printf(&index, "%s.timeline", file);
    if (!buf_error(&index) && access(buf_str(&index), R_OK) == 0 &&
        !open_once(s, file, pthread_mutex_trylock))
        return SERVER_LATER;
    buf_string(&reply->body, "ready\n");
    return 200;
}

static int answer_at(struct page_threads *s, const struct server_request *q,
                     struct server_reply *reply)
{
    uint64_t thread = server_number(q, "thread", UINT64_MAX);
    if (thread >= s->t->n_threads)
        return 404;
    uint32_t node = timeline_view_at(s->view, (uint32_t)thread, server_number(q, "time", 0));
    if (node != TL_NONE)
        return answer_node(s, node, reply);
    /*
     * Before the first event of a thread nothing is known of it; browsers report 404 as an error.
     */
    buf_string(&reply->body, "null");
    reply->type = "application/json";
    return 200;
}

static int answer_node_of(struct page_threads *s, const struct server_request *q,
                          struct server_reply *reply)
{
    return answer_node(s, (uint32_t)MIN(server_number(q, "i", TL_NONE), (uint64_t)TL_NONE), reply);
}

static const struct question {
    const char *name;
    int (*answer)(struct page_threads *s, const struct server_request *q,
                  struct server_reply *reply);
    bool of_all; /* it reads the whole timeline, not only the part that it shows */
} questions[] = {
    {"range", answer_range, false},  {"monitors", answer_monitors, true},
    {"node", answer_node_of, false}, {"segment", answer_segment, true},
    {"at", answer_at, false},
};

int page_threads_answer(struct page_threads *s, const char *file, const char *what,
                        const struct server_request *q, struct server_reply *reply)
{
    if (strcmp(what, "ready") == 0)
        return answer_ready(s, file, reply);
    const struct question *found = NULL;
    for (size_t i = 0; i < ARRAY_SIZE(questions); i++)
        found = strcmp(what, questions[i].name) == 0 ? &questions[i] : found;
    if (!found)
        return -ENOENT;
    if (!open_once(s, file, pthread_mutex_trylock))
        return SERVER_LATER;
    if (s->t && found->of_all && !check_once(s)) {
        buf_printf(&reply->body, "%s.timeline is damaged: remove it\n", file);
        return 500;
    }
    int status = s->t ? found->answer(s, q, reply) : 404;
    if (status == 404)
        buf_string(&reply->body, "nothing there\n");
    return status;
}
