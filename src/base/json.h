/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes JSON as a stream into a buf. Commas and quoting are the writer's business; nesting is the caller's and must match.
 * Strings are any bytes: what is not UTF-8 becomes U+FFFD. Numbers beyond 2^53 are written as they are.
 */
#pragma once

#include "base/buf.h"

struct json {
    struct buf *out;
    bool comma; /* the next value needs one before it */
};

void json_object(struct json *j);
void json_object_end(struct json *j);
void json_array(struct json *j);
void json_array_end(struct json *j);
void json_key(struct json *j, const char *key);
void json_string(struct json *j, const char *s); /* NULL is null */
void json_string_n(struct json *j, const char *s, size_t len);
void json_u64(struct json *j, uint64_t v);
void json_i64(struct json *j, int64_t v);
void json_double(struct json *j, double v); /* NaN and infinities are null */
void json_bool(struct json *j, bool v);
void json_null(struct json *j);
/* A key and its value. */
void json_key_u64(struct json *j, const char *key, uint64_t v);
void json_key_string(struct json *j, const char *key, const char *s);

/* Appends len bytes as UTF-8 that is valid: every byte that is not becomes U+FFFD. Modified UTF-8 of the JVM is understood. */
void buf_utf8(struct buf *b, const char *s, size_t len);
