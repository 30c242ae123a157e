/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Objects in readable form: a string's characters, a boxed number, a thread's name, a collection's
 * size.
 */
#pragma once

#include "answers/answer.h"
#include "answers/heap/fields.h"
#include "heap/heap.h"

struct heap_call;

/*
 * Appends an object's value to b; returns false when nothing is known for its class. depth: the
 * nesting depth of values that is shown.
 */
bool heap_value(const struct heap *h, uint64_t i, struct buf *b, int depth);
/* Adds the value as the next cell of a table; null when there is none. */
void heap_answer_value(struct answer *a, const struct heap *h, uint64_t i);
/* Appends "Class @ 0x..." and the value. */
void heap_describe(const struct heap *h, uint64_t i, struct buf *b);
/* Appends "Class" and the value. */
void heap_describe_short(const struct heap *h, uint64_t i, struct buf *b);
/*
 * Finds the object that `text` names by its address; for "root" *ret is the virtual root, number
 * heap.n. Returns 0, or the exit status after answer_refuse.
 */
int heap_object_named(const struct heap_call *c, const char *text, uint64_t *ret);
/* Appends the name of the field, element or static through which `from` refers to `to`. */
void heap_link_name(const struct heap *h, uint64_t from, uint64_t to, struct buf *b);
