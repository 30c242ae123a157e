/* SPDX-License-Identifier: Apache-2.0 */
/* Bodies of type multipart/form-data (RFC 7578), as bytes in memory. */
#pragma once

#include "base/cursor.h"
#include "base/strpool.h"

struct multipart {
    struct cursor rest;
    char boundary[76]; /* with the dashes and line end before it */
    size_t boundary_len;
    unsigned parts; /* so far */
    bool failed;    /* the body is damaged or truncated */
};

struct multipart_part {
    struct str name, file_name, type; /* not terminated; empty if not given */
    const uint8_t *data;
    size_t len;
};

/*
 * Begins to read a body. content_type: the request's header. Returns false if that is not
 * multipart/form-data with a boundary. Sets m->failed if the body lacks the boundary.
 */
bool multipart_begin(struct multipart *m, const char *content_type, const void *body, size_t len);
/*
 * Stores the next part, whose texts and data lie in the body. Returns false at the end, or on
 * damage with m->failed.
 */
bool multipart_next(struct multipart *m, struct multipart_part *ret);
