/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes JSON as a stream into a buf. The writer takes care of commas and quoting; the caller must
 * nest begin and end correctly. Strings may hold any bytes: what is not UTF-8 becomes U+FFFD.
 * Integers beyond 2^53 are written exactly.
 */
#pragma once

#include "base/buf.h"

struct json {
    struct buf *out;
    bool comma; /* the next value needs a comma before it */
};

void json_begin_object(struct json *j);
void json_end_object(struct json *j);
void json_begin_array(struct json *j);
void json_end_array(struct json *j);
void json_key(struct json *j, const char *key);
void json_string(struct json *j, const char *s); /* NULL is written as null */
void json_string_n(struct json *j, const char *s, size_t len);
void json_u64(struct json *j, uint64_t v);
void json_i64(struct json *j, int64_t v);
void json_double(struct json *j, double v); /* NaN and infinities are written as null */
void json_bool(struct json *j, bool v);
void json_null(struct json *j);
/* Writes a value that is already JSON. */
void json_raw(struct json *j, const char *value, size_t len);
/* Write a key and its value. */
void json_key_u64(struct json *j, const char *key, uint64_t v);
void json_key_i64(struct json *j, const char *key, int64_t v);
void json_key_double(struct json *j, const char *key, double v);
void json_key_bool(struct json *j, const char *key, bool v);
void json_key_string(struct json *j, const char *key, const char *s);
void json_key_string_n(struct json *j, const char *key, const char *s, size_t len);
/* Write a key and begin its value. */
void json_key_object(struct json *j, const char *key);
void json_key_array(struct json *j, const char *key);

/*
 * Appends len bytes as valid UTF-8. Understands the JVM's modified UTF-8. A lone surrogate, and
 * every other byte that is part of no character, becomes U+FFFD.
 */
void json_put_utf8(struct buf *b, const char *s, size_t len);
