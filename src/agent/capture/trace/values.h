/* SPDX-License-Identifier: Apache-2.0 */
/* Values in records of the probe (ring.h), and as JSON. For readers of hub.h, inside `record`. */
#pragma once

#include "agent/capture/trace/objects.h"
#include "base/json.h"

#include <stdbool.h>
#include <stdint.h>

/* A value of a record taken apart. */
struct value {
    char type; /* of the descriptor; L for references */

    union {
        int64_t number;
        double real;
    };
    uint32_t hash, class;
    int64_t length; /* of a string or an array */
    const uint16_t *chars;
    uint32_t n_chars;
    const struct shown_class *shown; /* NULL: nothing more; else text of toString() in chars, or fields */
    const uint8_t *fields, *fields_end;
    unsigned n_fields;
};

/* Reads the value at *at of a type and passes it. False when the record ends before. */
bool value_take(const uint8_t **at, const uint8_t *end, char type, struct value *ret);
bool value_is_string(const struct value *v);
/* JSON of a value: longs beyond 2^53 and NaN are strings, objects "Class@hash". */
void value_json(struct json *j, const struct value *v);
/* The same as text for people, strings without quotes. */
void value_text(struct buf *b, const struct value *v);
/* "java.lang.String" or "int[]" of a class number into b. */
void put_class(struct buf *b, uint32_t number);
/* Modified UTF-8, which the JSON writer understands. */
void put_utf16(struct buf *b, const uint16_t *chars, uint32_t n);
