/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An HTTP server on loopback for one reader. Every path begins with a random token, and requests
 * that a page of another origin could cause (another Host, an Origin, a cross-site fetch) are
 * refused. Several threads answer, so that a slow answer does not delay others.
 */
#pragma once

#include "base/buf.h"

#include <stdint.h>

struct server;

struct server_request {
    /* the part after the token: "0/", "0/what-if" */
    const char *path;
    /* of the query; NULL when absent */
    const char *(*argument)(const void *request, const char *key);
    const void *request;
};

/* Returns a number of the query, or `otherwise` if it is missing or not a number. */
uint64_t server_number(const struct server_request *q, const char *key, uint64_t otherwise);

struct server_reply {
    struct buf body;
    const char *type;     /* "text/html; charset=utf-8" */
    const char *location; /* not NULL: redirects to this path after the token */
    const char *policy;   /* Content-Security-Policy; NULL: the page contains its own */
};

struct server_options {
    const char *address; /* "127.0.0.1"; another address only when the user asked for it */
    uint16_t port;       /* 0: any */
    /*
     * Returns the HTTP status and fills in the reply, whose body the server releases. May be called
     * by several threads at once. When another thread is busy with something it needs, it returns
     * SERVER_LATER and leaves the reply empty; it is then called again.
     */
    int (*answer)(void *context, const struct server_request *request, struct server_reply *ret);
    void *context;
};

/*
 * A connection shows the token with its first request. Until then it has SERVER_UNAUTHENTICATED_S
 * seconds, and at most SERVER_UNAUTHENTICATED such connections may exist: one more ends the oldest
 * of them, so that holding connections open does not prevent others from connecting.
 */
enum { SERVER_CONNECTIONS = 512, SERVER_UNAUTHENTICATED = 256, SERVER_UNAUTHENTICATED_S = 5 };

enum { SERVER_LATER = -1, SERVER_THREADS = 4, SERVER_TIMEOUT_S = 20, SERVER_TOKEN = 32 };

/*
 * Starts listening in a thread of its own. url (size bytes) receives the address to open, with the
 * token. Returns 0, -EINVAL if options->address is not one of IPv4, or another negative errno.
 */
int server_start(struct server **ret, const struct server_options *options, char *url,
                 size_t size) must_check;
void server_stop(struct server *s);
