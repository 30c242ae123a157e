/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What both servers do with connections. Those that have not shown the token yet, or whose request
 * is not complete, are listed, newest first. Beyond a limit the oldest one is closed, so that idle
 * connections do not prevent new ones. Everything here is used by the daemon's thread only.
 */
#pragma once

#include "base/buf.h"

#include <microhttpd.h>

enum { CONNECTION_MEMORY = 32768 }; /* bytes that the head of a request may take */

struct connection {
    struct connection *older, *newer;
    int fd;
    bool is_listed;
    bool malformed;          /* the requested address contains a NUL */
    const char *address_end; /* where the address in the request line ends as a C string */
};

struct connection_list {
    struct connection *newest;
    int n, most;
    unsigned timeout_s; /* of a new connection; 0: that of the daemon */
};

/* Removes a connection from the list if it is in it. */
void connection_remove(struct connection_list *list, struct connection *g);
/*
 * Adds a connection to the list as the newest one, unless it is in it already. Beyond list->most,
 * removes the oldest one and shuts it down.
 */
void connection_add(struct connection_list *list, struct connection *g);

/* Is the callback for connections that begin and end; `list` receives those that begin. */
void connection_notice(void *list, struct MHD_Connection *c, void **socket_context,
                       enum MHD_ConnectionNotificationCode what);
/*
 * Returns the record of a connection, or NULL if memory was exhausted when it began; its requests
 * are then refused.
 */
struct connection *connection_of(struct MHD_Connection *c);

/*
 * Callbacks of MHD_OPTION_UNESCAPE_CALLBACK and MHD_OPTION_URI_LOG_CALLBACK, without a context.
 * They note a NUL in the requested address, which would cut off what follows it.
 */
size_t connection_unescape(void *none, struct MHD_Connection *c, char *text);
void *connection_address(void *none, const char *address, struct MHD_Connection *c);
/*
 * Returns whether the address of the request that is being handled contains a NUL; version is the
 * one that the handler was called with.
 */
bool connection_has_nul(const struct connection *g, const char *version);

/*
 * Returns true, with a sentence in *ret, if the query has too many parameters or one of them more
 * than once, of which a reader would see one only. lists: those that may be repeated, ended by
 * NULL.
 */
bool connection_repeats(struct MHD_Connection *c, const char *const *lists, struct buf *ret);

/*
 * Answers with a body, which is taken over, and with headers, of which the last is {NULL}; those
 * without a value are left out.
 */
enum MHD_Result connection_respond(struct MHD_Connection *c, int status, struct buf *body,
                                   const char *const headers[][2]);

/* What a server listens to, and who handles its requests. */
struct connection_daemon {
    const struct sockaddr *address; /* with the port */
    MHD_AccessHandlerCallback handle;
    MHD_RequestCompletedCallback completed;
    void *context; /* of both */
    struct connection_list *list;
    unsigned connections, timeout_s; /* at most, and of each */
};

/*
 * Starts a daemon with a thread of its own. *ret_port is the port on which it listens. Returns 0 or
 * a negative errno.
 */
int connection_listen(struct MHD_Daemon **ret, const struct connection_daemon *o,
                      uint16_t *ret_port) must_check;
