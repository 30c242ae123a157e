/* SPDX-License-Identifier: Apache-2.0 */
/* The code of a logpoint: it loads the values that the text names and writes a record. */
#pragma once

#include "agent/instrument/instrument.h"
#include "options/log_spec.h"

/*
 * Types of a site's values besides those of descriptors: the thread's name, which is not in the
 * record; the length of an object; a field at the end of a path (paths.h), and the length of its
 * value.
 */
enum { TYPE_THREAD = 't', TYPE_LENGTH = 'n', TYPE_PATH = 'p', TYPE_PATH_LENGTH = 'q' };

/*
 * A site's text: literals are copied, and a value becomes its name between the bytes 1 and 2, which
 * literals cannot contain.
 */
enum { VALUE_BEGINS = 1, VALUE_ENDS };

enum { LOG_TEXT_MAX = 8 << 10 };

/*
 * Inserts the logpoint before the instruction at pc. Returns 1, or a negative errno. A value that
 * cannot be loaded there stays in the text as it was written, and log_report() says why.
 */
int log_insert(const struct instrument_class *c, struct edit *e, const struct log_spec *spec,
               uint32_t pc) must_check;
/*
 * Removes ".length" from the end of a path, or "length" if that is the whole path. Returns whether
 * the path ended with it.
 */
bool log_take_length(char *path);
