/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the JSON of the Connect protocol, which is protobuf's mapping to JSON. */
#pragma once

#include "base/buf.h"
#include "base/strpool.h"

#include <json-c/json.h>

/*
 * Parses an object, which is nested no deeper than 32 levels. Returns 0, -EPROTO or -ENOMEM. The
 * caller releases it by json_object_put().
 */
int connect_parse(const void *data, size_t len, json_object **ret) must_check;
/*
 * Returns the member called `name`, or else the one called `other`, which may be NULL. The member
 * still belongs to the object. Returns NULL if the object has neither.
 */
json_object *connect_member(json_object *o, const char *name, const char *other);
/* Returns the text of a JSON string, which still belongs to it; an empty one for anything else. */
struct str connect_text(json_object *o);
/* Returns the length of an array; 0 for anything else. */
size_t connect_length(json_object *o);
/* Returns an int64, which may be given as a text; 0 for anything else. */
int64_t connect_integer(json_object *o);
/*
 * Appends the bytes that base64 stands for. Returns 0, -EPROTO for other characters, or an error of
 * the buffer.
 */
int connect_base64(struct str text, struct buf *to) must_check;
