/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/server.h"

#include "base/hex.h"
#include "serve/connection.h"
#include "serve/pool.h"

#include <arpa/inet.h>
#include <errno.h>
#include <microhttpd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>

enum { HOST_MAX = 300 };

struct server {
    struct server_options options;
    struct MHD_Daemon *daemon;
    struct pool *pool;
    char token[SERVER_TOKEN + 1];
    char hosts[2][HOST_MAX];                /* the allowed values of the Host header */
    struct connection_list unauthenticated; /* requests that have not presented the token */
};

uint64_t server_number(const struct server_request *q, const char *key, uint64_t otherwise)
{
    const char *text = q->argument(q->request, key);
    return text && *text >= '0' && *text <= '9' ? strtoull(text, NULL, 10) : otherwise;
}

static void welcome(struct server *s, struct MHD_Connection *c, struct connection *g)
{
    if (!g->is_listed)
        return;
    connection_remove(&s->unauthenticated, g);
    MHD_set_connection_option(c, MHD_CONNECTION_OPTION_TIMEOUT, (unsigned)SERVER_TIMEOUT_S);
}

static const char *header(struct MHD_Connection *c, const char *name)
{
    return MHD_lookup_connection_value(c, MHD_HEADER_KIND, name);
}

static const char *argument(const void *request, const char *key)
{
    return MHD_lookup_connection_value((struct MHD_Connection *)request, MHD_GET_ARGUMENT_KIND,
                                       key);
}

/*
 * Returns whether the Host header is a name of this server. It is another one if another site has
 * pointed its name at this address (DNS rebinding).
 */
static bool host_is_ours(const struct server *s, struct MHD_Connection *c)
{
    const char *host = header(c, MHD_HTTP_HEADER_HOST);
    for (size_t i = 0; host && i < ARRAY_SIZE(s->hosts); i++) {
        if (strcasecmp(host, s->hosts[i]) == 0)
            return true;
    }
    return false;
}

static enum MHD_Result count_host(void *context, enum MHD_ValueKind kind, const char *key,
                                  const char *value)
{
    (void)kind, (void)value;
    *(unsigned *)context += strcasecmp(key, MHD_HTTP_HEADER_HOST) == 0;
    return MHD_YES;
}

/* With two Host headers, a proxy may have used the other one. */
static bool has_one_host(struct MHD_Connection *c)
{
    unsigned n = 0;
    MHD_get_connection_values(c, MHD_HEADER_KIND, count_host, &n);
    return n == 1;
}

static bool is_same_site(const struct server *s, struct MHD_Connection *c)
{
    const char *origin = header(c, "Origin"), *site = header(c, "Sec-Fetch-Site");
    if (origin &&
        (strncmp(origin, "http://", 7) != 0 ||
         (strcasecmp(origin + 7, s->hosts[0]) != 0 && strcasecmp(origin + 7, s->hosts[1]) != 0)))
        return false;
    return !site || strcmp(site, "same-origin") == 0 || strcmp(site, "none") == 0;
}

/*
 * Returns what follows "/TOKEN/", or NULL. The time that this takes does not reveal how much of the
 * token was right.
 */
static const char *after_token(const struct server *s, const char *url)
{
    if (url[0] != '/' || strlen(url) < SERVER_TOKEN + 2 || url[SERVER_TOKEN + 1] != '/')
        return NULL;
    unsigned char differs = 0;
    for (int i = 0; i < SERVER_TOKEN; i++)
        differs |= (unsigned char)(url[1 + i] ^ s->token[i]);
    return differs ? NULL : url + SERVER_TOKEN + 2;
}

/* Takes over the reply's body. */
static enum MHD_Result respond(struct MHD_Connection *c, int status, struct server_reply *reply)
{
    return connection_respond(
        c, status, &reply->body,
        (const char *const[][2]){
            {"Cross-Origin-Opener-Policy", "same-origin"},
            {MHD_HTTP_HEADER_CONTENT_TYPE, reply->type ? reply->type : "text/plain; charset=utf-8"},
            {"Content-Security-Policy", reply->policy},
            {MHD_HTTP_HEADER_LOCATION, reply->location},
            {NULL}});
}

static enum MHD_Result refuse(struct MHD_Connection *c, int status, const char *text)
{
    struct server_reply reply = {.body = BUF(1 << 10)};
    buf_printf(&reply.body, "%s\n", text);
    return respond(c, status, &reply);
}

/* The answer that a thread of the pool makes while the connection is suspended. */
struct request {
    struct pool_job job;
    struct MHD_Connection *connection;
    const char *path;
    int status; /* 0: the server stopped before the request was answered */
    struct server_reply reply;
};

static bool answer(void *context, struct pool_job *job)
{
    struct server *s = context;
    struct request *r = (struct request *)job;
    struct server_request q = {r->path, argument, r->connection};
    int status = s->options.answer(s->options.context, &q, &r->reply);
    if (status == SERVER_LATER)
        return false;
    r->status = status;
    MHD_resume_connection(r->connection);
    return true;
}

static enum MHD_Result respond_answered(struct server *s, struct request *r)
{
    char location[HOST_MAX];
    if (!r->status)
        return refuse(r->connection, MHD_HTTP_SERVICE_UNAVAILABLE, "the server is stopping");
    if (buf_error(&r->reply.body))
        return refuse(r->connection, MHD_HTTP_INTERNAL_SERVER_ERROR, "out of memory");
    if (r->reply.location) {
        snprintf(location, sizeof(location), "/%s/%s", s->token, r->reply.location);
        r->reply.location = location;
    }
    return respond(r->connection, r->status, &r->reply);
}

static enum MHD_Result on_request(void *context, struct MHD_Connection *c, const char *url,
                                  const char *method, const char *version, const char *upload,
                                  size_t *upload_len, void **state)
{
    struct server *s = context;
    (void)upload, (void)upload_len;
    if (*state)
        return respond_answered(s, *state);
    struct connection *g = connection_of(c);
    if (!g)
        return MHD_NO;
    bool malformed = connection_has_nul(g, version);
    if (malformed || !has_one_host(c))
        return refuse(c, MHD_HTTP_BAD_REQUEST,
                      malformed ? "a NUL in the address" : "not exactly one Host header");
    if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0)
        return refuse(c, MHD_HTTP_METHOD_NOT_ALLOWED, "only GET");
    if (!host_is_ours(s, c))
        return refuse(c, MHD_HTTP_FORBIDDEN, "not the name under which this server was started");
    const char *path = after_token(s, url);
    if (!path)
        return refuse(c, MHD_HTTP_FORBIDDEN,
                      "open the address that jvmscope serve printed, with its token");
    if (!is_same_site(s, c))
        return refuse(c, MHD_HTTP_FORBIDDEN, "the request comes from another site");
    _cleanup_(buf_release) struct buf why = BUF(1 << 10);
    if (connection_repeats(c, (const char *const[]){NULL}, &why))
        return refuse(c, MHD_HTTP_BAD_REQUEST, buf_str(&why));
    welcome(s, c, g);
    struct request *r = calloc(1, sizeof(*r));
    if (!r)
        return MHD_NO;
    *r = (struct request){.connection = c, .path = path, .reply = {.body = BUF(SIZE_MAX / 2)}};
    *state = r;
    MHD_suspend_connection(c);
    if (!pool_add(s->pool, &r->job))
        MHD_resume_connection(c);
    return MHD_YES;
}

/* Called when a request ends, whether it was answered or broken off. */
static void on_completed(void *context, struct MHD_Connection *c, void **state,
                         enum MHD_RequestTerminationCode why)
{
    (void)context, (void)c, (void)why;
    struct request *r = *state;
    if (r)
        buf_release(&r->reply.body);
    free(r);
    *state = NULL;
}

static int make_token(char token[SERVER_TOKEN + 1])
{
    unsigned char bytes[SERVER_TOKEN / 2];
    if (getrandom(bytes, sizeof(bytes), 0) != sizeof(bytes))
        return -errno;
    hex_write(bytes, sizeof(bytes), token);
    token[SERVER_TOKEN] = 0;
    return 0;
}

/* Answers the requests that no thread has taken. */
static void stop_pool(struct server *s)
{
    struct pool_job *next, *job = s->pool ? pool_stop(s->pool) : NULL;
    for (; job; job = next) {
        next = job->next;
        MHD_resume_connection(((struct request *)job)->connection);
    }
}

int server_start(struct server **ret, const struct server_options *options, char *url, size_t size)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(options->port)};
    if (inet_pton(AF_INET, options->address, &address.sin_addr) != 1)
        return -EINVAL;
    struct server *s = calloc(1, sizeof(*s));
    if (!s)
        return -ENOMEM;
    s->options = *options;
    s->unauthenticated = (struct connection_list){.most = SERVER_UNAUTHENTICATED,
                                                  .timeout_s = SERVER_UNAUTHENTICATED_S};
    int r = make_token(s->token);
    if (r == 0)
        r = pool_start(&s->pool, SERVER_THREADS, answer, s);
    uint16_t port;
    if (r == 0)
        r = connection_listen(&s->daemon,
                              &(struct connection_daemon){.address = (struct sockaddr *)&address,
                                                          .handle = on_request,
                                                          .completed = on_completed,
                                                          .context = s,
                                                          .list = &s->unauthenticated,
                                                          .connections = SERVER_CONNECTIONS,
                                                          .timeout_s = SERVER_TIMEOUT_S},
                              &port);
    if (r < 0) {
        server_stop(s);
        return r;
    }
    snprintf(s->hosts[0], HOST_MAX, "%s:%u", options->address, port);
    snprintf(s->hosts[1], HOST_MAX, "localhost:%u", port);
    snprintf(url, size, "http://%s/%s/", s->hosts[0], s->token);
    *ret = s;
    return 0;
}

void server_stop(struct server *s)
{
    if (!s)
        return;
    stop_pool(s);
    if (s->daemon)
        MHD_stop_daemon(s->daemon);
    pool_free(s->pool);
    free(s);
}
