/* SPDX-License-Identifier: Apache-2.0 */
/* serve: recordings and heap dumps in a browser. Each file is read when it is first looked at. */
#include "serve/server.h"

#include "analysis/what_if.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/pattern.h"
#include "cli/builtin.h"
#include "cli/heap/ask.h"
#include "cli/heap/heap.h"
#include "cli/page_more.h"
#include "cli/reading.h"
#include "cli/serve_cache.h"
#include "cli/serve_threads.h"
#include "cli/trace.h"
#include "export/page.h"
#include "model/load.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

struct serve {
    const char *listen, *sources;
    uint64_t port, query_limit;
};

static const struct arg serve_args[] = {
    {"--listen", 0, ARG_TEXT, offsetof(struct serve, listen), "ADDRESS",
     "listen there instead of on 127.0.0.1: others can then see the files"},
    {"--port", 'p', ARG_NUMBER, offsetof(struct serve, port), "PORT", "listen on this port instead of a free one"},
    {"--query-limit", 0, ARG_DURATION, offsetof(struct serve, query_limit), "TIME",
     "how long a query of a heap dump may take (10s)"},
    {"--sources", 's', ARG_TEXT, offsetof(struct serve, sources), "DIR", "where source files are, to show coverage in them"},
    {0},
};

static const struct arg_set serve_set = {"Where", serve_args};
const struct arg_set *const serve_sets[] = {&serve_set, NULL};

static const char html[] = "text/html; charset=utf-8", json_type[] = "application/json";

struct site {
    char **files;
    size_t count;
    const char *sources;
    uint64_t query_limit; /* nanoseconds */
    struct buf *pages;    /* by file, made when it is first asked for */
    struct served_threads *threads;
    struct heap **heaps; /* the same, for questions to a dump */
};

static int not_found(struct server_reply *reply, const char *text)
{
    buf_printf(&reply->body, "%s\n", text);
    return 404;
}

/* Reads a file for its page's data; on failure a sentence is in out instead. */
static int read_data(struct site *s, size_t i, const struct page_site *site, struct buf *data, struct buf *out)
{
    _cleanup_(buf_release) struct buf why = BUF(4096);
    _cleanup_(profile_freep) struct profile *p = NULL;
    const char *path = s->files[i];
    int r = profile_load(&p, path, &why, NULL, NULL);
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
    struct export_source source = {.path = path,
                                   .profile = p,
                                   .metric = metric,
                                   .site = site,
                                   .sources = s->sources,
                                   .more = page_more,
                                   .warning = warning,
                                   .timeline = served_threads_open(&s->threads[i], path)};
    return page_of_recording(&source, data);
}

/* Makes the page of a file, or its data alone; on failure a sentence instead. */
static int make_page(struct site *s, size_t i, bool alone, struct buf *out)
{
    _cleanup_(buf_release) struct buf data = BUF(SIZE_MAX / 2);
    struct page_site site = {(const char *const *)s->files, s->count, i};
    uint64_t key = serve_cache_key(s->files[i], &site, s->sources);
    int r = serve_cache_get(s->files[i], key, &data);
    if (r < 0) {
        buf_clear(&data);
        r = read_data(s, i, &site, &data, out);
        if (r == 0)
            serve_cache_put(s->files[i], key, &data);
    }
    if (r == 0 && alone)
        buf_bytes(out, data.data, data.len);
    if (r < 0 || alone)
        return r < 0 ? r : buf_error(out);
    char *text = NULL;
    size_t len = 0;
    FILE *memory = open_memstream(&text, &len);
    if (!memory)
        return -ENOMEM;
    page_write(memory, &data);
    r = fclose(memory) == 0 ? 0 : -ENOMEM;
    if (r == 0)
        buf_bytes(out, text, len);
    free(text);
    return r < 0 ? r : buf_error(out);
}

static bool is_of_class(const struct timeline *t, uint32_t object, void *pattern)
{
    const char *name = tl_object_class(t, object);
    return name && pattern_match(pattern, name, strlen(name));
}

/* What the program would take if the sections of a class's locks took `factor` of their time. */
static int answer_what_if(struct site *s, size_t i, const struct server_request *q, struct server_reply *reply)
{
    const char *class = q->argument(q->request, "class"), *factor = q->argument(q->request, "factor");
    char *end = NULL;
    struct what_if w = {.lock = is_of_class, .lock_arg = (void *)class, .factor = factor ? strtod(factor, &end) : -1};
    if (!class || !factor || end == factor || *end || !(w.factor >= 0 && w.factor <= 100)) {
        buf_string(&reply->body, "class and factor (0 to 100) are missing\n");
        return 400;
    }
    const struct timeline *t = served_threads_open(&s->threads[i], s->files[i]);
    if (!t)
        return not_found(reply, "no timeline in this recording");
    struct what_if_answer a;
    if (what_if(t, &PATH_OPTIONS, &w, &a) < 0)
        return not_found(reply, "nothing to replay in this recording");
    struct json j = {&reply->body, false};
    json_object(&j);
    json_key(&j, "before_ns");
    json_u64(&j, a.before);
    json_key(&j, "kept_ns");
    json_u64(&j, a.kept);
    json_key(&j, "arbitrated_ns");
    json_u64(&j, a.arbitrated);
    json_object_end(&j);
    reply->type = json_type;
    return 200;
}

static uint64_t number_of(const struct server_request *q, const char *key, uint64_t otherwise)
{
    const char *text = q->argument(q->request, key);
    return text && *text >= '0' && *text <= '9' ? strtoull(text, NULL, 10) : otherwise;
}

/* Calls that were recorded, of a thread or a method, or those that took long: when there are more than one page takes. */
static int answer_calls(struct site *s, size_t i, const struct server_request *q, struct server_reply *reply)
{
    const struct trace_options o = {.thread = q->argument(q->request, "thread"),
                                    .method = q->argument(q->request, "method"),
                                    .min = number_of(q, "min", 0),
                                    .limit = MIN(number_of(q, "limit", PAGE_CALLS), (uint64_t)PAGE_CALLS)};
    struct json j = {&reply->body, false};
    int r = trace_page_json(s->files[i], &o, &j);
    if (r < 0) {
        buf_clear(&reply->body);
        return not_found(reply, "no calls in this recording");
    }
    reply->type = json_type;
    return 200;
}

/* A verb of `jvmscope heap`, with the options that its page knows. */
static int answer_heap(struct site *s, size_t i, const char *verb, const struct server_request *q, struct server_reply *reply)
{
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
                                   .limit = number_of(q, "limit", 2000)};
    const struct heap_settings settings = {.which = -1};
    if (!s->heaps[i] && heap_open(&s->heaps[i], s->files[i], &settings) < 0)
        return not_found(reply, "no heap dump in this file");
    int r = heap_ask(s->heaps[i], verb, &o, q->argument(q->request, "operand"), &reply->body);
    if (r == -ENOENT)
        return not_found(reply, "no such question");
    reply->type = r == 0 ? json_type : NULL;
    return r == 0 ? 200 : r == -EINVAL ? 400 : 500;
}

static int answer(void *context, const struct server_request *q, struct server_reply *reply)
{
    struct site *s = context;
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
    if (strcmp(rest, "/data") == 0) {
        reply->type = json_type;
        return make_page(s, i, true, &reply->body) < 0 ? 500 : 200;
    }
    if (rest[1] && served_threads_open(&s->threads[i], s->files[i])) {
        int status = served_threads_answer(&s->threads[i], rest + 1, q, reply);
        if (status > 0)
            return status;
    }
    if (rest[1])
        return not_found(reply, "no such view");
    if (!s->pages[i].len && make_page(s, i, false, &s->pages[i]) < 0) {
        buf_bytes(&reply->body, s->pages[i].data, s->pages[i].len);
        buf_clear(&s->pages[i]);
        return 500;
    }
    buf_bytes(&reply->body, s->pages[i].data, s->pages[i].len);
    reply->type = html;
    return 200;
}

/* Serves until a signal ends it. */
static int serve(struct site *site, const struct serve *o)
{
    char url[512];
    struct server *server;
    struct server_options options = {o->listen ? o->listen : "127.0.0.1", (uint16_t)o->port, answer, site};
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    sigprocmask(SIG_BLOCK, &signals, NULL);
    int r = server_start(&server, &options, url, sizeof(url)), number;
    if (r < 0)
        return complain_errno(options.address, "cannot listen", r);
    if (o->listen && strncmp(o->listen, "127.", 4) != 0)
        complain("note", "other machines can reach this address, unencrypted; its token is all that protects the files", NULL);
    printf("%s\n", url);
    fflush(stdout);
    sigwait(&signals, &number);
    server_stop(server);
    return 0;
}

int cmd_serve(const struct command *self, int argc, char **argv)
{
    struct serve options = {0};
    struct operands operands;
    int status;
    if (!args_parse(self, (void *[]){&options}, argc, argv, &operands, &status))
        return status;
    if (options.port > 65535) {
        complain(self->name, "--port", "a port is at most 65535");
        return 2;
    }
    for (int i = 0; i < operands.count; i++) {
        if (access(operands.list[i], R_OK) < 0)
            return complain_errno(operands.list[i], "cannot read", -errno);
    }
    if (!page_head[0])
        return complain(self->name, "this build has no page",
                        "npm or its packages were not to be had when it was made (see to npm and build again)");
    struct site site = {operands.list,
                        (size_t)operands.count,
                        options.sources,
                        options.query_limit ? options.query_limit : 10 * NS_PER_SECOND,
                        calloc((size_t)operands.count, sizeof(struct buf)),
                        calloc((size_t)operands.count, sizeof(struct served_threads)),
                        calloc((size_t)operands.count, sizeof(struct heap *))};
    for (size_t i = 0; site.pages && i < site.count; i++)
        site.pages[i] = BUF(SIZE_MAX / 2);
    status =
        site.pages && site.threads && site.heaps ? serve(&site, &options) : complain_errno(self->name, "cannot start", -ENOMEM);
    for (size_t i = 0; i < site.count; i++) {
        if (site.pages)
            buf_release(&site.pages[i]);
        if (site.threads)
            served_threads_release(&site.threads[i]);
        if (site.heaps)
            heap_free(site.heaps[i]);
    }
    free(site.heaps);
    free(site.pages);
    free(site.threads);
    return status;
}
