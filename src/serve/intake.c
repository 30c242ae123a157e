/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/intake.h"

#include "base/file.h"
#include "serve/connection.h"
#include "serve/pool.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <microhttpd.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

/* DISCARDED_MAX: how much of a body beyond the limit is read, as a multiple of the limit. */
enum { PATH_MAX_LEN = 512, DISCARDED_MAX = 4 };

struct intake {
    struct intake_options options;
    struct MHD_Daemon *daemon;
    struct pool *pool;
    /* Connections whose request is not complete, newest first. Used by the daemon's thread only. */
    struct connection_list unfinished;
};

/*
 * A request: its body arrives, then the request is suspended while a thread of the pool answers it.
 */
struct upload {
    struct pool_job job;
    struct MHD_Connection *connection;
    struct intake_request request;
    struct intake_reply reply;
    char path[PATH_MAX_LEN];
    uint64_t discarded; /* bytes beyond the limit */
    int status;         /* 0: not answered yet */
    int error;          /* negative errno: the body could not be stored */
};

int intake_reply_line(struct intake_reply *reply, int status, const char *format, ...)
{
    va_list args;
    buf_clear(&reply->body);
    va_start(args, format);
    buf_vprintf(&reply->body, format, args);
    va_end(args);
    buf_u8(&reply->body, '\n');
    return status;
}

const char *intake_header(const struct intake_request *r, const char *name)
{
    return MHD_lookup_connection_value((struct MHD_Connection *)r->connection, MHD_HEADER_KIND,
                                       name);
}

const char *intake_argument(const struct intake_request *r, const char *key)
{
    return MHD_lookup_connection_value((struct MHD_Connection *)r->connection,
                                       MHD_GET_ARGUMENT_KIND, key);
}

struct visiting {
    int (*visit)(void *context, const char *key, const char *value);
    void *context;
    int result;
};

static enum MHD_Result visit_argument(void *context, enum MHD_ValueKind kind, const char *key,
                                      const char *value)
{
    struct visiting *v = context;
    (void)kind;
    v->result = v->visit(v->context, key, value ? value : "");
    return v->result == 0 ? MHD_YES : MHD_NO;
}

int intake_each_argument(const struct intake_request *r,
                         int (*visit)(void *context, const char *key, const char *value),
                         void *context)
{
    struct visiting v = {visit, context, 0};
    MHD_get_connection_values((struct MHD_Connection *)r->connection, MHD_GET_ARGUMENT_KIND,
                              visit_argument, &v);
    return v.result;
}

bool intake_repeats(const struct intake_request *r, const char *const *lists, struct buf *ret)
{
    return connection_repeats((struct MHD_Connection *)r->connection, lists, ret);
}

/* Takes over the reply's body. */
static enum MHD_Result respond(struct MHD_Connection *c, int status, struct intake_reply *reply)
{
    char retry_after[16];
    snprintf(retry_after, sizeof(retry_after), "%u", reply->retry_after_s);
    return connection_respond(
        c, status, &reply->body,
        (const char *const[][2]){
            {MHD_HTTP_HEADER_CONTENT_TYPE, reply->type ? reply->type : "text/plain; charset=utf-8"},
            {"Content-Security-Policy", reply->policy ? reply->policy : "default-src 'none'"},
            {MHD_HTTP_HEADER_RETRY_AFTER, reply->retry_after_s ? retry_after : NULL},
            {MHD_HTTP_HEADER_WWW_AUTHENTICATE,
             reply->ask_password ? "Basic realm=\"jvmscope\"" : NULL},
            {NULL}});
}

static enum MHD_Result refuse(struct MHD_Connection *c, int status, const char *text)
{
    struct intake_reply reply = {.body = BUF(1 << 10)};
    buf_printf(&reply.body, "%s\n", text);
    return respond(c, status, &reply);
}

static bool answer(void *context, struct pool_job *job)
{
    struct intake *in = context;
    struct upload *u = (struct upload *)job;
    u->status = in->options.answer(in->options.context, &u->request, &u->reply);
    MHD_resume_connection(u->connection);
    return true;
}

static int open_body(const struct intake *in)
{
    int fd = open(in->options.folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd >= 0)
        return fd;
    /* For a file system that does not support files without a name. */
    char name[PATH_MAX_LEN];
    snprintf(name, sizeof(name), "%s/.jvmscope-upload-XXXXXX", in->options.folder);
    fd = mkostemp(name, O_CLOEXEC);
    if (fd < 0)
        return -errno;
    unlink(name);
    return fd;
}

static bool has_body(const char *method)
{
    return strcmp(method, "POST") == 0 || strcmp(method, "PUT") == 0;
}

static enum MHD_Result refuse_size(struct intake *in, struct MHD_Connection *c)
{
    char text[128];
    snprintf(text, sizeof(text), "the body is too large: at most %llu bytes are accepted",
             (unsigned long long)in->options.body_max);
    return refuse(c, MHD_HTTP_CONTENT_TOO_LARGE, text);
}

/* Called when the headers have arrived. */
static enum MHD_Result on_headers(struct intake *in, struct MHD_Connection *c, const char *url,
                                  const char *method, const char *version, void **state)
{
    struct connection *g = connection_of(c);
    struct intake_reply reply = {.body = BUF(1 << 16)};
    struct intake_request request = {.method = method, .path = url, .body = -1, .connection = c};
    uint64_t length = 0;
    if (!g)
        return MHD_NO;
    connection_add(&in->unfinished, g);
    const char *declared = intake_header(&request, MHD_HTTP_HEADER_CONTENT_LENGTH);
    if (declared)
        length = strtoull(declared, NULL, 10);
    if (connection_has_nul(g, version))
        return refuse(c, MHD_HTTP_BAD_REQUEST, "a NUL in the address");
    if (strlen(url) >= PATH_MAX_LEN)
        return refuse(c, MHD_HTTP_URI_TOO_LONG, "the path is too long");
    if (!has_body(method) && strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0)
        return refuse(c, MHD_HTTP_METHOD_NOT_ALLOWED, "only GET, POST and PUT are supported");
    const void *admitted = NULL;
    int status = in->options.admit(in->options.context, &request, &reply, &admitted);
    if (status)
        return respond(c, status, &reply);
    buf_release(&reply.body);
    /*
     * A client that asks first (Expect) is refused at once. Others send the whole body before they
     * read an answer, so a body that is a little too large is read and thrown away.
     */
    bool expects_continue = intake_header(&request, MHD_HTTP_HEADER_EXPECT) != NULL;
    if (length > in->options.body_max * (expects_continue ? 1 : 1 + DISCARDED_MAX))
        return refuse_size(in, c);
    struct upload *u = calloc(1, sizeof(*u));
    if (!u)
        return MHD_NO;
    *u = (struct upload){.connection = c, .request = request, .reply = {.body = BUF(SIZE_MAX / 2)}};
    u->request.admitted = admitted;
    u->request.method = has_body(method) ? "POST" : "GET";
    snprintf(u->path, sizeof(u->path), "%s", url);
    u->request.path = u->path;
    *state = u;
    return MHD_YES;
}

static enum MHD_Result on_piece(struct intake *in, struct upload *u, const char *bytes, size_t *len)
{
    size_t n = *len;
    *len = 0;
    if (u->discarded || u->request.body_len + n > in->options.body_max) {
        u->discarded += n;
        /*
         * The answer can only be sent after the body. A client that does not stop sending is
         * disconnected.
         */
        return u->discarded > in->options.body_max * DISCARDED_MAX ? MHD_NO : MHD_YES;
    }
    if (u->request.body < 0 && u->error == 0) {
        u->request.body = open_body(in);
        u->error = MIN(u->request.body, 0);
    }
    if (u->error == 0)
        u->error = file_write_all(u->request.body, bytes, n);
    u->request.body_len += n;
    return MHD_YES;
}

static enum MHD_Result on_complete(struct intake *in, struct upload *u)
{
    struct connection *g = connection_of(u->connection);
    if (g)
        connection_remove(&in->unfinished, g);
    if (u->discarded)
        return refuse_size(in, u->connection);
    if (u->error) {
        char text[128];
        struct intake_reply reply = {.body = BUF(1 << 10), .retry_after_s = 60};
        snprintf(text, sizeof(text), "the body cannot be kept: %s", strerror(-u->error));
        buf_printf(&reply.body, "%s\n", text);
        return respond(u->connection, MHD_HTTP_SERVICE_UNAVAILABLE, &reply);
    }
    MHD_suspend_connection(u->connection);
    if (!pool_add(in->pool, &u->job)) {
        u->status = -1;
        MHD_resume_connection(u->connection);
    }
    return MHD_YES;
}

static enum MHD_Result on_request(void *context, struct MHD_Connection *c, const char *url,
                                  const char *method, const char *version, const char *bytes,
                                  size_t *len, void **state)
{
    struct intake *in = context;
    struct upload *u = *state;
    if (!u)
        return on_headers(in, c, url, method, version, state);
    if (u->status < 0) {
        struct intake_reply reply = {.body = BUF(1 << 10), .retry_after_s = 10};
        buf_string(&reply.body, "the collector is stopping\n");
        return respond(c, MHD_HTTP_SERVICE_UNAVAILABLE, &reply);
    }
    if (u->status)
        return buf_error(&u->reply.body)
                   ? refuse(c, MHD_HTTP_INTERNAL_SERVER_ERROR, "out of memory")
                   : respond(c, u->status, &u->reply);
    return *len ? on_piece(in, u, bytes, len) : on_complete(in, u);
}

/* Called when a request ends, whether it was answered or broken off. */
static void on_completed(void *context, struct MHD_Connection *c, void **state,
                         enum MHD_RequestTerminationCode why)
{
    (void)context, (void)c, (void)why;
    struct upload *u = *state;
    if (u) {
        buf_release(&u->reply.body);
        close_descriptor(&u->request.body);
    }
    free(u);
    *state = NULL;
}

static void stop_pool(struct intake *in)
{
    struct pool_job *next, *job = in->pool ? pool_stop(in->pool) : NULL;
    for (; job; job = next) {
        struct upload *u = (struct upload *)job;
        next = job->next;
        u->status = -1;
        MHD_resume_connection(u->connection);
    }
}

static int read_address(const struct intake_options *o, struct sockaddr_storage *ret)
{
    struct sockaddr_in *four = (struct sockaddr_in *)ret;
    struct sockaddr_in6 *six = (struct sockaddr_in6 *)ret;
    memset(ret, 0, sizeof(*ret));
    if (inet_pton(AF_INET, o->address, &four->sin_addr) == 1) {
        four->sin_family = AF_INET;
        four->sin_port = htons(o->port);
        return 0;
    }
    if (inet_pton(AF_INET6, o->address, &six->sin6_addr) == 1) {
        six->sin6_family = AF_INET6;
        six->sin6_port = htons(o->port);
        return 0;
    }
    return -EINVAL;
}

int intake_start(struct intake **ret, const struct intake_options *options, uint16_t *ret_port)
{
    struct sockaddr_storage address;
    int r = read_address(options, &address);
    struct intake *in = r < 0 ? NULL : calloc(1, sizeof(*in));
    if (!in)
        return r < 0 ? r : -ENOMEM;
    in->options = *options;
    in->unfinished.most = INTAKE_UNFINISHED;
    r = pool_start(&in->pool, INTAKE_THREADS, answer, in);
    if (r == 0)
        r = connection_listen(&in->daemon,
                              &(struct connection_daemon){.address = (struct sockaddr *)&address,
                                                          .handle = on_request,
                                                          .completed = on_completed,
                                                          .context = in,
                                                          .list = &in->unfinished,
                                                          .connections = INTAKE_CONNECTIONS,
                                                          .timeout_s = INTAKE_TIMEOUT_S},
                              ret_port);
    if (r < 0) {
        intake_stop(in);
        return r;
    }
    *ret = in;
    return 0;
}

void intake_stop(struct intake *in)
{
    if (!in)
        return;
    stop_pool(in);
    if (in->daemon)
        MHD_stop_daemon(in->daemon);
    pool_free(in->pool);
    free(in);
}
