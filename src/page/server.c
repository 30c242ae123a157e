/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The page's server, without its sockets (serve/server.h). Each file is read at the first request
 * for it.
 */
#include "page/server.h"

#include "analysis/unknown_owners.h"
#include "analysis/what_if.h"
#include "answers/calls.h"
#include "answers/heap/ask.h"
#include "answers/heap/heap.h"
#include "base/json.h"
#include "page/cache.h"
#include "page/members.h"
#include "page/page.h"
#include "page/threads.h"
#include "profile/load.h"
#include "profile/vm_time.h"

#include <endian.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static const char html[] = "text/html; charset=utf-8", json_type[] = "application/json";

/*
 * The data that are computed from a file at the first request for it, while that request holds a
 * lock.
 */
struct served_file {
    pthread_mutex_t making, asking;
    /*
     * in the format that web/src/data.ts reads: the length of the JSON in four bytes, the JSON,
     * binary data
     */
    struct buf page;
    struct page_threads threads;
    struct heap *heap; /* for questions about a dump, one at a time */
};

struct page_server {
    char **paths;
    size_t count;
    const char *sources;
    uint64_t query_limit; /* nanoseconds */
    struct served_file *files;
    bool *dumps; /* by file, see struct page_site */
};

static int not_found(struct server_reply *reply, const char *text)
{
    buf_printf(&reply->body, "%s\n", text);
    return 404;
}

/* Reads a file for its page's data. On failure, out contains a message instead. */
static int read_data(struct page_server *s, size_t i, const struct page_site *site, struct buf *out)
{
    _cleanup_(buf_release) struct buf why = BUF(4096), json = BUF(UINT32_MAX),
                                      blob = BUF(SIZE_MAX / 4), members = BUF(SIZE_MAX / 4);
    _cleanup_(profile_freep) struct profile *p = NULL;
    _cleanup_(request_fields_release) struct request_fields fields = {0};
    const char *path = s->paths[i];
    int r = profile_load(&p, path, page_detail(path), NULL, &why, NULL, NULL);
    if (r == 0)
        r = vm_time_samples(p);
    if (r < 0) {
        buf_printf(out, "%s: cannot read: %s\n", path, why.len ? buf_str(&why) : strerror(-r));
        return r;
    }
    const char *warning = why.len ? buf_str(&why) : NULL;
    enum profile_metric metric = PROFILE_CPU;
    for (int m = PROFILE_METRICS; m-- > 0;) {
        if (p->series[m].samples.len)
            metric = (enum profile_metric)m;
    }
    r = page_members(&members, path, p, s->sources, true, &fields);
    if (r < 0)
        return r;
    const struct page_source source = {
        .path = path,
        .profile = p,
        .metric = metric,
        .site = site,
        .blob = &blob,
        .members = &members,
        .fields = &fields,
        .warning = warning,
        .timeline = p->only_samples ? NULL : page_threads_open(&s->files[i].threads, path)};
    r = page_of_recording(&source, &json);
    if (r < 0)
        return r;
    uint32_t len = htole32((uint32_t)json.len);
    buf_bytes(out, &len, sizeof(len));
    buf_bytes(out, json.data, json.len);
    buf_bytes(out, blob.data, blob.len);
    return buf_error(&blob) ? buf_error(&blob) : buf_error(out);
}

/*
 * Computes the data of a file's page, or finds them kept next to the file. On failure the page
 * contains a message instead.
 */
static int make_page(struct page_server *s, size_t i, struct buf *out)
{
    struct page_site site = {(const char *const *)s->paths, s->count, i, s->dumps};
    uint64_t key = page_cache_key(s->paths[i], &site, s->sources);
    int r = page_cache_get(s->paths[i], key, out);
    if (r == 0)
        return 0;
    buf_clear(out);
    r = read_data(s, i, &site, out);
    if (r == 0)
        page_cache_put(s->paths[i], key, out);
    return r;
}

/* The page without data. It requests the data afterwards. */
static int answer_shell(struct server_reply *reply)
{
    buf_string(&reply->body, page_head);
    buf_string(&reply->body, page_tail);
    reply->type = html;
    return 200;
}

/*
 * Sends the JSON of a page, or the weights of its profile, which the views of threads, calls,
 * coverage and heaps do not need.
 */
static int answer_data(struct page_server *s, size_t i, bool weights, struct server_reply *reply)
{
    struct served_file *f = &s->files[i];
    uint32_t json = 0;
    if (pthread_mutex_trylock(&f->making) != 0)
        return SERVER_LATER;
    int r = f->page.len ? 0 : make_page(s, i, &f->page);
    if (r == 0 && f->page.len >= sizeof(json))
        memcpy(&json, f->page.data, sizeof(json));
    size_t to = MIN(sizeof(json) + le32toh(json), f->page.len), from = MIN(sizeof(json), to);
    if (r < 0)
        buf_bytes(&reply->body, f->page.data, f->page.len); /* the message */
    else if (weights)
        buf_bytes(&reply->body, f->page.data + to, f->page.len - to);
    else
        buf_bytes(&reply->body, f->page.data + from, to - from);
    reply->type = r < 0 ? NULL : weights ? "application/octet-stream" : json_type;
    if (r < 0)
        buf_clear(&f->page);
    pthread_mutex_unlock(&f->making);
    return r == 0 ? 200 : 500;
}

static bool is_of_class(const struct timeline *t, uint32_t object, void *class)
{
    const char *name = tl_object_class(t, object);
    return name && strcmp(class, name) == 0;
}

static bool is_class(const void *wanted, const char *class)
{
    return strcmp(wanted, class) == 0;
}

/*
 * Writes how many waits for objects of a class have an unknown owner, and how long these took.
 * Returns 0 or -ENOMEM.
 */
static int put_unknown_owners(struct json *j, struct timeline *t, const char *name)
{
    struct unknown_table unknown;
    uint64_t waits = 0, ns = 0;
    int r = unknown_owners_find(t, 0, 0, &unknown);
    if (r < 0)
        return r;
    for (size_t i = 0; i < unknown.rows.len; i++) {
        const char *class = tl_string(t, unknown.rows.data[i].class);
        if (strcmp(class, name) != 0)
            continue;
        waits += unknown.rows.data[i].unknown;
        ns += unknown.rows.data[i].ns;
    }
    vec_release(&unknown.rows);
    json_key_u64(j, "owner_unknown", waits);
    json_key_u64(j, "owner_unknown_ns", ns);
    json_key_bool(j, "owner_matters", unknown_owners_matter(t, ns));
    return 0;
}

/*
 * Answers how long the program would take if sections of locks of a class took `factor` of their
 * time.
 */
static int answer_what_if(struct page_server *s, size_t i, const struct server_request *q,
                          struct server_reply *reply)
{
    const char *class = q->argument(q->request, "class"),
               *factor = q->argument(q->request, "factor");
    char *end = NULL;
    struct what_if w = {.lock = is_of_class,
                        .lock_arg = (void *)class,
                        .factor = factor ? strtod(factor, &end) : -1,
                        .bounds = true};
    if (!class || !factor || end == factor || *end || !(w.factor >= 0 && w.factor <= 100)) {
        buf_string(&reply->body, "class and factor (0 to 100) are missing\n");
        return 400;
    }
    struct timeline *t = page_threads_open(&s->files[i].threads, s->paths[i]);
    if (!t)
        return not_found(reply, "no timeline in this recording");
    struct what_if_answer a;
    bool inferred = false;
    if (what_if(t, &PATH_OPTIONS, &w, &a) < 0 ||
        path_share_inferred(t, &PATH_OPTIONS, is_class, class, &inferred) < 0)
        return not_found(reply, "nothing to replay in this recording");
    struct json j = {&reply->body, false};
    json_begin_object(&j);
    json_key_u64(&j, "before_ns", a.before);
    json_key_u64(&j, "after_ns", a.answer);
    json_key_u64(&j, "after_low_ns", a.low);
    json_key_u64(&j, "after_high_ns", a.high);
    json_key_u64(&j, "possible_low_ns", a.least);
    json_key_u64(&j, "possible_high_ns", a.most);
    json_key_bool(&j, "on_path", what_if_on_path(w.factor, &a));
    json_key_bool(&j, "inferred", inferred || a.ends_inferred);
    json_key_bool(&j, "ends_inferred", a.ends_inferred);
    json_key_bool(&j, "order_decided_anew", a.decided_anew);
    if (put_unknown_owners(&j, t, class) < 0) {
        buf_clear(&reply->body);
        return 500;
    }
    json_end_object(&j);
    reply->type = json_type;
    return 200;
}

/*
 * Answers with recorded calls of a thread or a method, or with long ones, when there are more than
 * one page contains.
 */
static int answer_calls(struct page_server *s, size_t i, const struct server_request *q,
                        struct server_reply *reply)
{
    const struct call_filter o = {
        .thread_name = q->argument(q->request, "thread"),
        .typed_name = q->argument(q->request, "name"),
        .min = server_number(q, "min", 0),
        .threw = server_number(q, "threw", 0) != 0,
        .limit = MIN(server_number(q, "limit", PAGE_CALLS), (uint64_t)PAGE_CALLS)};
    struct json j = {&reply->body, false};
    int r = calls_page_json(s->paths[i], &o, &j);
    if (r < 0) {
        buf_clear(&reply->body);
        return not_found(reply, "no calls in this recording");
    }
    reply->type = json_type;
    return 200;
}

/* Answers a verb of `jvmscope heap`, with the options that its page uses. */
static int answer_heap(struct page_server *s, size_t i, const char *verb,
                       const struct server_request *q, struct server_reply *reply)
{
    /* The page sums up the classes, so it needs all of them. */
    uint64_t limit = strcmp(verb, "histogram") == 0 ? UINT64_MAX : 2000;
    const struct heap_options o = {.json = true,
                                   .retained = true,
                                   .children = q->argument(q->request, "children"),
                                   .class = q->argument(q->request, "class"),
                                   .object = q->argument(q->request, "object"),
                                   .package = q->argument(q->request, "package"),
                                   .loader = q->argument(q->request, "loader"),
                                   .exclude = q->argument(q->request, "exclude"),
                                   .sort = q->argument(q->request, "sort"),
                                   .sql = q->argument(q->request, "sql"),
                                   .patience = s->query_limit,
                                   .limit = server_number(q, "limit", limit)};
    const struct heap_settings settings = {.which = -1};
    struct served_file *f = &s->files[i];
    if (pthread_mutex_trylock(&f->asking) != 0)
        return SERVER_LATER;
    int opened = f->heap ? 0 : heap_open(&f->heap, s->paths[i], &settings);
    int r = opened < 0 ? opened
                       : heap_ask_json(f->heap, verb, &o, q->argument(q->request, "operand"),
                                       &reply->body);
    pthread_mutex_unlock(&f->asking);
    if (opened < 0)
        return not_found(reply, "no heap dump in this file");
    if (r == -ENOENT)
        return not_found(reply, "no such query");
    /* A browser prints an error for each reply that is not a success, and what a person typed is
     * none. */
    if (r == -EINVAL) {
        _cleanup_(buf_release) struct buf why = BUF(1 << 20);
        struct json j = {&reply->body, false};
        buf_bytes(&why, reply->body.data, reply->body.len);
        buf_clear(&reply->body);
        json_begin_object(&j);
        json_key_string(&j, "refused", buf_str(&why));
        json_end_object(&j);
        r = 0;
    }
    reply->type = r == 0 ? json_type : NULL;
    return r == 0 ? 200 : 500;
}

int page_server_answer(void *context, const struct server_request *q, struct server_reply *reply)
{
    struct page_server *s = context;
    if (!*q->path) {
        reply->location = "0/";
        return 302;
    }
    char *rest;
    size_t i = strtoul(q->path, &rest, 10);
    if (q->path[0] < '0' || q->path[0] > '9' || i >= s->count || *rest != '/')
        return not_found(reply, "no such file");
    if (strcmp(rest, "/what-if") == 0)
        return answer_what_if(s, i, q, reply);
    if (strncmp(rest, "/heap/", 6) == 0)
        return answer_heap(s, i, rest + 6, q, reply);
    if (strcmp(rest, "/calls") == 0)
        return answer_calls(s, i, q, reply);
    if (!rest[1])
        return answer_shell(reply);
    if (strcmp(rest, "/data") == 0 || strcmp(rest, "/weights") == 0)
        return answer_data(s, i, rest[1] == 'w', reply);
    struct page_threads *threads = &s->files[i].threads;
    int status = page_threads_answer(threads, s->paths[i], rest + 1, q, reply);
    return status == -ENOENT ? not_found(reply, "no such view") : status;
}

int page_server_new(struct page_server **ret, char **paths, size_t count, const char *sources,
                    uint64_t query_limit_ns)
{
    struct page_server *s = calloc(1, sizeof(*s));
    struct served_file *files = calloc(count, sizeof(*files));
    bool *dumps = calloc(count, sizeof(*dumps));
    if (!s || !files || !dumps) {
        free(s);
        free(files);
        free(dumps);
        return -ENOMEM;
    }
    *s = (struct page_server){paths, count, sources, query_limit_ns, files, dumps};
    for (size_t i = 0; i < count; i++) {
        dumps[i] = heap_is_all_of(paths[i]);
        files[i].page = BUF(SIZE_MAX / 2);
        pthread_mutex_init(&files[i].making, NULL);
        pthread_mutex_init(&files[i].asking, NULL);
        page_threads_init(&files[i].threads);
    }
    *ret = s;
    return 0;
}

void page_server_free(struct page_server *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->count; i++) {
        struct served_file *f = &s->files[i];
        buf_release(&f->page);
        page_threads_release(&f->threads);
        heap_free(f->heap);
        pthread_mutex_destroy(&f->asking);
        pthread_mutex_destroy(&f->making);
    }
    free(s->files);
    free(s->dumps);
    free(s);
}
