/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An HTTP server for programs that send data. Bodies of any length up to a limit go to a file while
 * they arrive, and a fixed number of threads answer. Memory use does not depend on the clients:
 * each connection has a fixed amount, and when there are too many connections, the one that has
 * been unfinished for the longest time is ended.
 */
#pragma once

#include "base/buf.h"

#include <stdint.h>

struct intake;

struct intake_request {
    const char *method, *path;
    /* The body: a file without a name, or -1 when there is none. */
    int body;
    size_t body_len;
    /* for the functions below; and the result of `admit` */
    const void *connection;
    const void *admitted;
};

/*
 * Return a header of the request, and a decoded argument of its query, or NULL if it is missing.
 * The texts belong to the request.
 */
const char *intake_header(const struct intake_request *r, const char *name);
const char *intake_argument(const struct intake_request *r, const char *key);
/*
 * Calls visit for each argument of the query, in order, until a call returns a value other than 0.
 * Returns that value, or 0.
 */
int intake_each_argument(const struct intake_request *r,
                         int (*visit)(void *context, const char *key, const char *value),
                         void *context);

/*
 * Returns whether the query has a parameter more than once, or too many, as connection_repeats does
 * (connection.h).
 */
bool intake_repeats(const struct intake_request *r, const char *const *lists, struct buf *ret);

struct intake_reply {
    struct buf body;
    const char *type;       /* NULL: plain text */
    const char *policy;     /* Content-Security-Policy; NULL: everything is forbidden */
    unsigned retry_after_s; /* 0: none */
    bool ask_password;      /* 401: the browser asks its user for a password */
};

/* Replaces the body of the reply by a line of text. Returns `status`. */
int intake_reply_line(struct intake_reply *reply, int status, const char *format, ...)
    printf_like(3, 4);

struct intake_options {
    const char *address; /* of IPv4 or IPv6 */
    uint16_t port;       /* 0: any */
    uint64_t body_max;   /* bytes */
    /* the folder in which bodies are stored while they are processed */
    const char *folder;
    /*
     * Called by the server's own thread when the headers have arrived: 0 accepts the body, an HTTP
     * status refuses it. *ret_admitted becomes request.admitted.
     */
    int (*admit)(void *context, const struct intake_request *request, struct intake_reply *ret,
                 const void **ret_admitted);
    /* Returns the HTTP status. May be called by several threads at once. */
    int (*answer)(void *context, const struct intake_request *request, struct intake_reply *ret);
    void *context;
};

enum {
    INTAKE_CONNECTIONS = 512,
    INTAKE_UNFINISHED = 256,
    INTAKE_TIMEOUT_S = 30,
    INTAKE_THREADS = 32 /* most of them wait until an upload is stored */
};

/* Starts listening in threads of its own. Returns 0 or a negative errno; *ret_port is the port. */
int intake_start(struct intake **ret, const struct intake_options *options,
                 uint16_t *ret_port) must_check;
/* Finishes the requests in progress; the others get the answer that the client should try again. */
void intake_stop(struct intake *in);
