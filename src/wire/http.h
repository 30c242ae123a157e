/* SPDX-License-Identifier: Apache-2.0 */
/* An HTTP client (libcurl). A program may use one from several threads, each its own. */
#pragma once

#include "base/buf.h"
#include "base/vec.h"

struct http_part {
    const char *name, *file_name, *type; /* file_name and type may be NULL */
    const void *data;
    size_t len;
};

struct http_request {
    const char *url;
    const char *const *headers; /* "Name: value", the last one NULL; NULL: none */
    const char *type;           /* Content-Type of the body */
    const void *body;           /* NULL with parts, or for a GET */
    size_t len;
    const struct http_part *parts; /* a multipart/form-data body */
    size_t parts_len;
    unsigned connect_ms, total_ms; /* 0: 10 s and 60 s */
    /*
     * How often it is tried again when the server cannot be reached or answers 429, 502, 503 or
     * 504: after 1 s, 2 s, 4 s ... at most 30 s, or when the server asks for it by Retry-After.
     * Waiting adds up to 2 minutes at most.
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
 * Sends a request and waits for the answer. Returns 0 when there was one, whatever its status, or
 * with the reason in why: -EIO, -ETIMEDOUT, -EINVAL for a URL that is none, -ENOTSUP when this
 * build cannot (a static one has no libcurl), -ENOMEM. The caller releases ret->body in any case.
 */
int http_send(const struct http_request *r, struct http_answer *ret, struct buf *why) must_check;
