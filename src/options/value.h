/* SPDX-License-Identifier: Apache-2.0 */
/* The value of one option, and what messages say about it. Inside options/. */
#pragma once

#include "options/options.h"

/* Appends an option as option_put does, with a part of its value. */
void option_put_part(struct buf *message, enum option which, const char *part, size_t len);
/*
 * Appends that an output's format, which is given by its letter and is that of .hprof, cannot hold
 * what this value of an option records.
 */
void option_put_refusal(struct buf *message, enum option which, const char *value,
                        const char *letter);
/*
 * Sets *v, which refers to text. Returns 0, or -EINVAL with a sentence in `message` about what is
 * wrong with the value.
 */
int option_value_set(struct option_value *v, enum option which, const char *text,
                     struct buf *message) must_check;
