/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/connection.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

void connection_remove(struct connection_list *list, struct connection *g)
{
    if (!g->is_listed)
        return;
    *(g->newer ? &g->newer->older : &list->newest) = g->older;
    if (g->older)
        g->older->newer = g->newer;
    g->newer = g->older = NULL;
    g->is_listed = false;
    list->n--;
}

void connection_add(struct connection_list *list, struct connection *g)
{
    if (g->is_listed)
        return;
    g->newer = NULL;
    g->older = list->newest;
    if (g->older)
        g->older->newer = g;
    list->newest = g;
    g->is_listed = true;
    if (++list->n <= list->most)
        return;
    struct connection *oldest = list->newest;
    while (oldest->older)
        oldest = oldest->older;
    connection_remove(list, oldest);
    shutdown(oldest->fd, SHUT_RDWR); /* the daemon notices the end and closes the connection */
}

void connection_notice(void *context, struct MHD_Connection *c, void **socket_context,
                       enum MHD_ConnectionNotificationCode what)
{
    struct connection_list *list = context;
    struct connection *g = *socket_context;
    if (what == MHD_CONNECTION_NOTIFY_CLOSED) {
        if (g)
            connection_remove(list, g);
        free(g);
        *socket_context = NULL;
        return;
    }
    g = calloc(1, sizeof(*g));
    if (!g)
        return;
    g->fd = MHD_get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
    *socket_context = g;
    if (list->timeout_s)
        MHD_set_connection_option(c, MHD_CONNECTION_OPTION_TIMEOUT, list->timeout_s);
    connection_add(list, g);
}

struct connection *connection_of(struct MHD_Connection *c)
{
    const union MHD_ConnectionInfo *i =
        MHD_get_connection_info(c, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return i ? i->socket_context : NULL;
}

size_t connection_unescape(void *none, struct MHD_Connection *c, char *text)
{
    (void)none;
    struct connection *g = connection_of(c);
    size_t len = MHD_http_unescape(text);
    if (g && strlen(text) != len)
        g->malformed = true;
    return len;
}

/* Receives the address before it is parsed. The return value becomes the request's state. */
void *connection_address(void *none, const char *address, struct MHD_Connection *c)
{
    (void)none;
    struct connection *g = connection_of(c);
    if (g) {
        g->malformed = false;
        g->address_end = address + strlen(address);
    }
    return NULL;
}

/*
 * The HTTP version follows the address in the same buffer; bytes between the two are what a NUL in
 * the address has cut off.
 */
bool connection_has_nul(const struct connection *g, const char *version)
{
    uintptr_t end = (uintptr_t)g->address_end, next = (uintptr_t)version;
    return g->malformed || (next > end + 1 && next - end < CONNECTION_MEMORY);
}

struct repeated {
    struct MHD_Connection *c;
    const char *const *lists;
    const char *key; /* the one that comes again */
    unsigned n;
};

/* Looking for repeated ones takes time that grows with the square of their number. */
enum { KEYS_MAX = 256 };

static enum MHD_Result count_key(void *context, enum MHD_ValueKind kind, const char *key,
                                 const char *value)
{
    struct repeated *r = context;
    (void)kind, (void)value;
    r->n += strcmp(r->key, key) == 0;
    return r->n < 2 ? MHD_YES : MHD_NO;
}

static enum MHD_Result see_key(void *context, enum MHD_ValueKind kind, const char *key,
                               const char *value)
{
    struct repeated *r = context, of = {.key = key};
    (void)value;
    for (size_t i = 0; r->lists[i]; i++)
        if (strcmp(r->lists[i], key) == 0)
            return MHD_YES;
    if (r->n++ == KEYS_MAX)
        return MHD_NO;
    MHD_get_connection_values(r->c, kind, count_key, &of);
    if (of.n < 2)
        return MHD_YES;
    r->key = key;
    return MHD_NO;
}

bool connection_repeats(struct MHD_Connection *c, const char *const *lists, struct buf *ret)
{
    struct repeated r = {.c = c, .lists = lists};
    MHD_get_connection_values(c, MHD_GET_ARGUMENT_KIND, see_key, &r);
    if (r.key)
        buf_printf(ret, "%.100s: given more than once", r.key);
    else if (r.n > KEYS_MAX)
        buf_printf(ret, "more than %d parameters", KEYS_MAX);
    return r.key || r.n > KEYS_MAX;
}

enum MHD_Result connection_respond(struct MHD_Connection *c, int status, struct buf *body,
                                   const char *const headers[][2])
{
    static const char *const always[][2] = {
        {"X-Content-Type-Options", "nosniff"},
        {"X-Frame-Options", "DENY"},
        {"Referrer-Policy", "no-referrer"},
        {"Cache-Control", "no-store"},
        {"Cross-Origin-Resource-Policy", "same-origin"},
        {NULL},
    };

    void *bytes = body->data;
    struct MHD_Response *r =
        MHD_create_response_from_buffer(body->len, bytes ? bytes : (void *)"",
                                        bytes ? MHD_RESPMEM_MUST_FREE : MHD_RESPMEM_PERSISTENT);
    *body = BUF(0);
    if (!r) {
        free(bytes);
        return MHD_NO;
    }
    for (size_t i = 0; always[i][0]; i++)
        MHD_add_response_header(r, always[i][0], always[i][1]);
    for (size_t i = 0; headers[i][0]; i++)
        if (headers[i][1])
            MHD_add_response_header(r, headers[i][0], headers[i][1]);
    enum MHD_Result result = MHD_queue_response(c, (unsigned)status, r);
    MHD_destroy_response(r);
    return result;
}

int connection_listen(struct MHD_Daemon **ret, const struct connection_daemon *o,
                      uint16_t *ret_port)
{
    unsigned flags = MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_POLL | MHD_ALLOW_SUSPEND_RESUME |
                     (o->address->sa_family == AF_INET6 ? MHD_USE_IPv6 : 0u);
    errno = 0;
    struct MHD_Daemon *daemon = MHD_start_daemon(
        flags, 0, NULL, NULL, o->handle, o->context, MHD_OPTION_NOTIFY_COMPLETED, o->completed,
        o->context, MHD_OPTION_NOTIFY_CONNECTION, connection_notice, o->list,
        MHD_OPTION_UNESCAPE_CALLBACK, connection_unescape, NULL, MHD_OPTION_URI_LOG_CALLBACK,
        connection_address, NULL, MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_SOCK_ADDR, o->address,
        MHD_OPTION_LISTEN_BACKLOG_SIZE, o->connections, MHD_OPTION_CONNECTION_LIMIT, o->connections,
        MHD_OPTION_CONNECTION_TIMEOUT, o->timeout_s, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
        (size_t)CONNECTION_MEMORY, MHD_OPTION_END);
    if (!daemon)
        return errno ? -errno : -EADDRINUSE;
    *ret_port = MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_BIND_PORT)->port;
    *ret = daemon;
    return 0;
}
