/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Values in records of the probe (ring.h), and their JSON. For readers of drain.h, inside `record`.
 */
#pragma once

#include "agent/capture/trace/objects.h"
#include "base/json.h"

#include <stdbool.h>
#include <stdint.h>

/* A parsed value of a record. */
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
    const struct shown_class *shown; /* NULL: nothing else is known of such objects */
    /* Elements, keys and values, or fields: n_parts values, in pairs for a map. */
    const uint8_t *parts, *parts_end;
    uint32_t n_parts;
    bool is_map;
};

/* Reads the value of a type at *at and advances *at past it. False when the record ends before. */
bool value_take(const uint8_t **at, const uint8_t *end, char type, struct value *ret);
bool value_is_string(const struct value *v);
/* Returns whether it is an exception with a message, whose characters are those of the value. */
bool value_is_message(const struct value *v);
/* Returns whether `length` is that of a string, an array, a collection or a map. */
bool value_has_length(const struct value *v);
/*
 * Writes a value as JSON. A box is the value in it. Longs beyond 2^53, NaN and infinities are
 * {"number": TEXT}, objects other than strings {"object": TEXT} with the text of value_text.
 */
void value_json(struct json *j, const struct value *v);
/*
 * Appends a value as text for people: "java.util.ArrayList(2)@1f{1, \"a\"}", "int[3]@1f{1, 2, 3}",
 * "shop.Color.RED". A string has quotes only inside an object.
 */
void value_text(struct buf *b, const struct value *v);
/*
 * Returns what a condition compares: the value in a box, an Optional (null if empty) or a reference
 * such as AtomicReference, or the value itself.
 */
struct value value_held(const struct value *v);
/* Reads the parts of an object that is not an array. Returns how many there are. */
unsigned value_parts(const struct value *v, struct value ret[SHOWN_FIELDS_MAX]);
/* Reads the elements of a part that is an int[]: at most `max`. Returns how many. */
unsigned value_ints(const struct value *v, uint32_t *ret, unsigned max);
/* Returns whether `shown->put` writes the value as text. */
bool value_known(const struct value *v);
/* Appends the name of a class, given its number: "java.lang.String" or "int[]". */
void trace_put_class(struct buf *b, uint32_t number);
/* Appends characters as modified UTF-8, which the JSON writer understands. */
void trace_put_utf16(struct buf *b, const uint16_t *chars, uint32_t n);
/* Appends the characters of a text value, followed by "... (LENGTH)" when they are incomplete. */
void trace_put_text(struct buf *b, const struct value *v);
/* Appends a value inside an object as text, with quotes around strings and characters. */
void trace_put_part(struct buf *b, const struct value *v);
/*
 * Fields with their names, elements, or keys with their values; "..." stands for what was left out.
 */
void trace_put_parts(struct buf *b, const struct value *v);
