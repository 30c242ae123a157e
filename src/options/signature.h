/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parameters of methods: in patterns, as Java source writes them, and as descriptors.
 *
 * A pattern gives them as types, "(int,String[])", in which a class may be written without its
 * package and outer class, a star stands for any characters and ".." for any parameters, or as a
 * descriptor with the result, "(I[Ljava/lang/String;)V". option_list_normalize brings patterns into
 * this form.
 */
#pragma once

#include "base/buf.h"
#include "base/strpool.h"

#include <stdbool.h>

/* Returns what is wrong with the parameters of a pattern, or NULL. */
const char *signature_fault(const char *text, size_t len);

/* Returns whether the parameters of a pattern are those of a method with this descriptor. */
bool signature_matches(const char *text, size_t len, struct str descriptor);

/*
 * Returns whether the name of a class, written as among parameters, stands for the class of a
 * descriptor.
 */
bool signature_is_type(const char *written, size_t len, struct str descriptor);

/*
 * Appends the type at p of a descriptor that ends at `end`, as Java writes types. Returns what
 * follows the type in the descriptor, or NULL, with nothing appended, when no type begins at p.
 */
const char *signature_put_type(struct buf *b, const char *p, const char *end);
/*
 * Appends "(int, java.lang.String[])" for a descriptor, or the descriptor itself if it is
 * malformed.
 */
void signature_put_parameters(struct buf *b, const char *descriptor);

/*
 * Appends a method as it is written in source code: "int add(byte[], java.lang.String)" for "add"
 * and "([BLjava/lang/String;)I"; for a field's descriptor its type precedes the name. A malformed
 * descriptor is appended unchanged. name is "" to omit it.
 */
void signature_put(struct buf *b, const char *name, const char *descriptor);
