/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the commands on a running VM share: the VM by its number, a message to its agent, fetching
 * what it wrote.
 */
#pragma once

#include "cli/commands.h"
#include "proto/agent.h"

/* The VM of a process id given as text. 0, or the exit status after a complaint. */
int target_look(struct vm *ret, const char *pid);
/* The same of a VM that will be asked for something: one that attach would end is refused. */
int target_open(struct vm *ret, const char *pid);
/*
 * Sends a message (see agent_message) and prints the agent's messages. 0, or the exit status after
 * a complaint that names the VM.
 */
int target_message(const struct vm *vm, const char *what, const char *options, bool load,
                   struct buf *answer);
/* The same without printing the agent's messages. */
int target_ask(const struct vm *vm, const char *what, const char *options, bool load,
               struct buf *answer);
#define ENDED_MEANWHILE "the VM ended while its recording was being stopped"

/*
 * The same for what a VM is asked last: should it have ended before it could answer, which ends its
 * recording too, then *ret_ended is set and that is no error. ret_ended may be NULL.
 */
int target_ask_last(const struct vm *vm, const char *what, const char *options, bool load,
                    struct buf *answer, bool *ret_ended);
/*
 * Sends a message, as target_message does, and prints the JSON that the answer holds: as it is, or
 * as tables.
 */
int target_show(const struct vm *vm, const char *what, const char *options, bool load,
                bool as_json);
/* Prints those of the agent's messages that no answer has told yet, on standard error. */
void target_print_messages(const struct buf *answer);
/*
 * Whether the path leads to the open file: what is written there needs no copy, and must not be
 * overwritten by one.
 */
bool target_is_file(int fd, const char *path);
/*
 * Writes the recording that the VM wrote at `path`, open as fd (target_open_written), as `to`,
 * converted when the extensions differ. It is taken away from there when a command chose its name
 * (`own`), not when the user did. 0, or the exit status after a complaint that says where the
 * recording still is.
 */
int target_fetch(const struct vm *vm, const char *path, int fd, const char *to, bool own);
/*
 * What the VM wrote at `path`, opened safely (proto/vm_files.h). *ret_fd, -1 after a complaint; 0
 * or the exit status.
 */
int target_open_written(const struct vm *vm, const char *path, int *ret_fd);
/*
 * True when the VM itself can make a file of this absolute name: it sees the same folder, and its
 * user may write there.
 */
bool target_can_write(const struct vm *vm, const char *path);
/*
 * A name of the VM's for a recording that is fetched later, which target_chose knows again. path
 * has PATH_MAX bytes.
 */
void target_choose(const struct vm *vm, const char *extension, char *path);
bool target_chose(const char *path);
/*
 * Copies from a descriptor's beginning into a file for its owner alone, which appears whole or not
 * at all.
 */
int target_copy(int from, const char *to);
#define AS_THE_VM_SEES_IT " (as the VM sees it)"

/* AS_THE_VM_SEES_IT when this absolute path of the VM's leads us elsewhere; else "". */
const char *target_seen(const struct vm *vm, const char *path);
