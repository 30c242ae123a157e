/* SPDX-License-Identifier: Apache-2.0 */
/* What the commands on a running VM share: the VM by its number, a message to its agent, fetching what it wrote. */
#pragma once

#include "cli/commands.h"
#include "proto/agent.h"

/* The VM of a process id given as text. 0, or the exit status after a complaint. */
int target_open(struct vm *ret, const char *pid);
/* Sends a message (see agent_message). 0, or the exit status after a complaint that names the VM. */
int target_message(const struct vm *vm, const char *what, const char *options, bool load, struct buf *answer);
/* Sends a message, as target_message does, and prints the JSON that the answer holds: as it is, or as tables. */
int target_show(const struct vm *vm, const char *what, const char *options, bool load, bool as_json);
/* Prints the agent's messages to the user, on standard error. */
void target_print_messages(const struct buf *answer);
/*
 * Writes the recording that lies at `path` of the VM as `to`, converted when the extensions differ; `remove`: and takes it
 * away from there. fd, when not -1, is the file: the VM and its mounts may be gone. 0, or the exit status after a complaint.
 */
int target_fetch(const struct vm *vm, const char *path, int fd, const char *to, bool remove);
/* True when the VM itself can make a file of this name: same file system, and its user may write the folder. */
bool target_can_write(const struct vm *vm, const char *path);
/* Copies a file; the new one appears whole or not at all. 0, or the exit status after a complaint. */
int target_copy(const char *from, const char *to);
