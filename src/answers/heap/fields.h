/* SPDX-License-Identifier: Apache-2.0 */
/* What the fields of an object hold, and the characters of a string. */
#pragma once

#include "base/buf.h"
#include "heap/heap.h"

/* Returns the name of the class of object i; "<GC roots>" if i is the number of objects. */
const char *heap_class_name(const struct heap *h, uint64_t i);
/*
 * Stores a field of instance i: the raw bits of the first field with this name, whichever class
 * declares it. Returns false when there is no such field.
 */
bool heap_get(const struct heap *h, uint64_t i, const char *field, uint64_t *ret);
/*
 * Stores the object to which a field refers. Returns false when there is no such field or it refers
 * to no object of the heap.
 */
bool heap_get_object(const struct heap *h, uint64_t i, const char *field, uint64_t *ret);
/* Appends a character as UTF-8; half of a surrogate pair as U+FFFD. */
void heap_put_character(struct buf *b, uint32_t c);
/*
 * Appends characters as UTF-8, at most `limit` bytes. The array holds chars of two bytes, or bytes
 * in Latin-1 (in UTF-16 when `wide`).
 */
void heap_put_characters(const struct hprof_item *array, uint64_t count, bool wide, struct buf *b,
                         size_t limit);
/*
 * Puts what was appended since b->len was `from` into quotation marks, and escapes quotation marks,
 * backslashes and control characters in it. cut: the text continues, which three dots say.
 */
void heap_quote(struct buf *b, size_t from, bool cut);
/*
 * Appends the characters of a java.lang.String as UTF-8, at most `limit` bytes. Returns false for
 * other objects.
 */
bool heap_string(const struct heap *h, uint64_t i, struct buf *b, size_t limit);
