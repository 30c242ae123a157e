/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Our agent in a running VM: where its library lies, putting it there, and the messages of proto/control.h.
 *
 * A VM under another root does not see our library: it gets a copy in its /tmp (or /var/tmp, /dev/shm) that is removed once
 * it is loaded. The copy's name carries a number made of its contents: a VM keeps a library that it has loaded once under the
 * same name, so an upgraded build must not have the name of the one before.
 */
#pragma once

#include "proto/attach.h"

/* The library beside the running command (or where it is installed), into path. 0 or -ENOENT. */
int agent_find_library(char *path, size_t size) must_check;

/*
 * Sends `options` (which begin with control=) to the agent in the VM. With `load`, our library is loaded when the VM has none
 * of this build; without, a VM that has no agent is -ESRCH. *answer is the agent's text. 0 when it answers `ok`; negative
 * errno with a sentence in `why` otherwise, the agent's own error among them.
 */
int agent_message(const struct vm *vm, const char *options, bool load, struct buf *answer, struct buf *why) must_check;

/* The value of a line `KEY VALUE` of an answer, malloc'ed; NULL when there is none. `nth` counts lines of the key from 0. */
char *agent_answer_value(const char *answer, const char *key, unsigned nth);
