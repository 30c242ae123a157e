/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Objects as a person reads them: a string's characters, a boxed number, a thread's name, a
 * collection's size.
 */
#pragma once

#include "cli/heap/page.h"
#include "heap/heap.h"

const char *heap_class_name(const struct heap *h, uint64_t i);
/*
 * An object's value into b; false when its class says nothing about it. depth: of values within
 * values.
 */
bool heap_value(const struct heap *h, uint64_t i, struct buf *b, int depth);
/* The characters of a java.lang.String as UTF-8, at most `limit` bytes. False when it is none. */
bool heap_string(const struct heap *h, uint64_t i, struct buf *b, size_t limit);
/* The same as the next cell of a table; null when there is none. */
void heap_page_value(struct page *p, const struct heap *h, uint64_t i);
/* "Class @ 0x..." and the value behind it. */
void heap_describe(const struct heap *h, uint64_t i, struct buf *b);
/* "Class" and the value behind it. */
void heap_describe_short(const struct heap *h, uint64_t i, struct buf *b);
/* The object of an address or of "root" (then n). 0, or the exit status after a complaint. */
int heap_object_named(const struct heap *h, const char *text, uint64_t *ret);

/*
 * A field of an instance: raw bits of the first of its fields with this name (any when class is
 * NULL).
 */
bool heap_get(const struct heap *h, uint64_t i, const char *field, uint64_t *ret);
/* The object a field refers to. */
bool heap_get_object(const struct heap *h, uint64_t i, const char *field, uint64_t *ret);
/* The size of a collection or map of the JDK. */
bool heap_collection_size(const struct heap *h, uint64_t i, uint64_t *ret);
/* The field, element or static through which `from` refers to `to`, into b. */
void heap_link_name(const struct heap *h, uint64_t from, uint64_t to, struct buf *b);
