/* SPDX-License-Identifier: Apache-2.0 */
/* Other commands of this program, as `host` runs them. */
#pragma once

#include "base/buf.h"

#include <stdbool.h>

/*
 * Runs this program with other arguments, terminated by NULL, and waits. `out` receives what it
 * prints, with what it prints on standard error if with_messages is set; otherwise that is dropped,
 * as a note within an answer would spoil it. Returns its exit status, or -1.
 */
int self_run(const char *const *arguments, struct buf *out, bool with_messages);
/*
 * Returns the reason that a command which failed has given: its last line that is neither a note
 * nor the hint at --help, without the program's name. Its progress may precede it.
 */
const char *self_reason(struct buf *messages);
