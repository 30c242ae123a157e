/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An HTTP client: libcurl, which is loaded when it is first needed, so that the command starts
 * without it. Several threads may use it at once.
 */
#pragma once

#include "base/buf.h"

struct http_part {
    const char *name, *file_name, *type; /* file_name and type may be NULL */
    const void *data;
    size_t len;
};

struct http_request {
    const char *url;            /* http or https */
    const char *const *headers; /* "Name: value", the last one NULL; NULL: none */
    const char *type;           /* Content-Type of the body */
    const void *body;           /* NULL: a GET */
    size_t len;
    unsigned connect_ms, total_ms; /* of one try; 0: 10 s and 60 s */
    /*
     * How often it is tried again when the server cannot be reached or answers 429, 502, 503 or
     * 504: after 1 s, 2 s, 4 s ... or after the time in the server's Retry-After, at most 30 s each
     * time.
     */
    unsigned retries;
    size_t answer_max; /* bytes of the answer that are kept; 0: 64 KiB */
};

struct http_answer {
    int status;              /* 200 ... */
    struct buf body;         /* its beginning */
    uint64_t retry_after_ms; /* 0: the server did not say */
};

/*
 * Sends a request and waits for the answer. Returns 0 when an answer arrived, whatever its status,
 * or a negative errno with the reason in why: -EIO, -ETIMEDOUT, -EINVAL for an invalid URL,
 * -ENOTSUP as http_available does, -ENOMEM. The caller releases ret->body in any case.
 */
int http_send(const struct http_request *r, struct http_answer *ret, struct buf *why) must_check;

/*
 * Returns 0 if requests can be sent, or -ENOTSUP with the reason in why: libcurl is not installed,
 * or the command is linked statically and can load no library.
 */
int http_available(struct buf *why) must_check;

/*
 * Appends a body of type multipart/form-data, and its Content-Type to `type`. Returns 0 or a
 * negative errno.
 */
int http_multipart(const struct http_part *parts, size_t n, struct buf *type,
                   struct buf *body) must_check;

/* Returns the standard's words for a status, such as "Too Many Requests", or "". */
const char *http_reason(int status);
