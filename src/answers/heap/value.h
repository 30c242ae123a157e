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
 * Appends an object's value to b. depth: how many values it is nested in; 0 for the value that is
 * shown. Returns false when nothing is known for its class, or it is nested too deeply; b may have
 * grown then.
 */
bool heap_value(const struct heap *h, uint64_t i, struct buf *b, int depth);
/* Adds the value of object i as the next cell of a table; null when heap_value knows none. */
void heap_answer_value(struct answer *a, const struct heap *h, uint64_t i);
/* Appends "Class @ 0x..." and the value of object i, if it has one. */
void heap_describe(const struct heap *h, uint64_t i, struct buf *b);
/* Appends "Class" and the value of object i, if it has one. */
void heap_describe_short(const struct heap *h, uint64_t i, struct buf *b);
/*
 * Finds the object that `text` names by its address; for "root" *ret is the virtual root, number
 * heap.n. Returns 0, or the exit status after answer_refuse.
 */
int heap_object_named(const struct heap_call *c, const char *text, uint64_t *ret);
/* Appends the name of the field, element or static through which `from` refers to `to`. */
void heap_link_name(const struct heap *h, uint64_t from, uint64_t to, struct buf *b);
