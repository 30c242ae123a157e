/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds our agent's library, loads it into a running VM, and exchanges the messages of
 * options/control.h with it.
 *
 * A VM with another root folder cannot see our library. It gets a copy in its /tmp, /var/tmp or
 * /dev/shm, which is removed once it is loaded. The copy's name contains a hash of its contents: a
 * VM keeps using a library that it has loaded under the same name, so a new build needs a new name.
 */
#pragma once

#include "proto/attach.h"

/* What to say of a VM that loads no agent while it runs. */
#define AGENTS_REFUSED                                                                             \
    "it refuses agents (-XX:-EnableDynamicAgentLoading): start the program with jvmscope run or "  \
    "-agentpath, or without that flag; `jcmd PID JFR.start` and `JFR.dump` make a recording that " \
    "jvmscope reads"

/*
 * Stores the path of the library, which lies next to the running command or where it is installed.
 * Returns 0 or a negative errno: -ENOENT when there is none.
 */
int agent_find_library(char *path, size_t size) must_check;

/* Returns whether a mapped file of this base name is our library, also one lent to the VM. */
bool agent_is_library(const char *base_name);

/*
 * Sends `options` (which begin with control=) to the agent in the VM, of whatever build. With
 * `load`, our library is loaded if the VM has none; without, the call fails with -ESRCH if the VM
 * has no agent. *answer receives the agent's text. Returns 0 when the agent answers `ok`.
 * Otherwise, also when the agent reports an error, returns a negative errno with a sentence in
 * `why`.
 */
int agent_message(const struct vm *vm, const char *options, bool load, struct buf *answer,
                  struct buf *why) must_check;

/*
 * Checks whether the VM could load our library and reply: takes the steps that agent_message takes
 * before it contacts the VM, and undoes them. Returns 0 or a negative errno with a sentence in
 * `why`.
 */
int agent_placeable(const struct vm *vm, struct buf *why) must_check;

/*
 * Called with the number of classes done and their total while the VM's classes are being changed,
 * and with 0 of 0 when the answer has arrived. back: they are being changed back. May be NULL.
 */
extern void (*agent_progress)(unsigned done, unsigned of, bool back);

/*
 * Returns the value of the nth line `KEY VALUE` (counted from 0) of an answer, allocated by malloc,
 * or NULL when there is no such line.
 */
char *agent_answer_value(const char *answer, const char *key, unsigned nth);
