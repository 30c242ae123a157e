/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HTTP on loopback for one reader: every path begins with a random token, and requests that a page
 * of another origin could cause (another Host, an Origin, a cross-site fetch) are refused. A few
 * threads answer: a slow answer does not hold up others.
 */
#pragma once

#include "base/buf.h"

#include <stdint.h>

struct server;

struct server_request {
    /* behind the token: "0/", "0/what-if" */
    const char *path;
    /* of the query; NULL when absent */
    const char *(*argument)(const void *request, const char *key);
    const void *request;
};

struct server_reply {
    struct buf body;
    const char *type;     /* "text/html; charset=utf-8" */
    const char *location; /* not NULL: a redirection to this path behind the token */
    const char *policy;   /* Content-Security-Policy, NULL: the page brings its own */
};

struct server_options {
    const char *address; /* "127.0.0.1"; another one only when the user asked for it */
    uint16_t port;       /* 0: any */
    /*
     * Answers the HTTP status; fills the reply, whose body is released by the server. Called by
     * several threads at once. Where one of them is busy with what another needs, that answers
     * SERVER_LATER and leaves the reply empty: it is asked again.
     */
    int (*answer)(void *context, const struct server_request *request, struct server_reply *ret);
    void *context;
};

/*
 * A connection shows the token with its first request. Until then it has SERVER_UNPROVEN_S seconds,
 * and there are SERVER_UNPROVEN such at most: one more ends the oldest of them, so that whoever
 * holds connections open keeps nobody else out.
 */
enum { SERVER_CONNECTIONS = 512, SERVER_UNPROVEN = 256, SERVER_UNPROVEN_S = 5 };

enum { SERVER_LATER = -1, SERVER_THREADS = 4, SERVER_TIMEOUT_S = 20, SERVER_TOKEN = 32 };

/*
 * Starts to listen, in a thread of its own. 0 or negative errno; url (size bytes) is what the user
 * opens.
 */
int server_start(struct server **ret, const struct server_options *options, char *url,
                 size_t size) must_check;
void server_stop(struct server *s);
