/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the commands for a running VM share: finding the VM by its process id, sending a message to
 * its agent, fetching what it wrote.
 */
#pragma once

#include "cli/commands.h"
#include "proto/agent.h"

/*
 * Finds the VM of a process id given as text. On success the caller releases *ret. Returns 0, or
 * the exit status after a complaint.
 */
int target_find(struct vm *ret, const char *pid);
/* Returns why a process may not be inspected, and what would permit it. */
const char *target_missing_right(void);
/* Prints a note if programs that are or may be VMs are not in the list, with what they need. */
void target_report_left_out(const struct vm_list *list);
/*
 * Finds a VM like target_find to send a request to it. Refuses a VM that an attach request would
 * kill.
 */
int target_open(struct vm *ret, const char *pid);
/*
 * Reads the arguments of a command whose first operand is a process id, with its options in
 * *options, and opens that VM with target_open. Returns false, with the exit status in *ret_status,
 * when the command ends here.
 */
bool target_begin(struct vm *ret, const struct command *self, void *options, int argc, char **argv,
                  struct operands *ret_operands, int *ret_status);
/*
 * Sends a message (see agent_message) and prints the messages in the answer. what: what fails if
 * the message does, for the complaint. load: whether to load the agent if the VM does not have it,
 * as in the functions below. Returns 0, or the exit status after a complaint that names
 * the VM.
 */
int target_message(const struct vm *vm, const char *what, const char *options, bool load,
                   struct buf *answer);
/* Sends a message like target_message, without printing the agent's messages. */
int target_query(const struct vm *vm, const char *what, const char *options, bool load,
                 struct buf *answer);
#define ENDED_MEANWHILE "the VM ended while its recording was being stopped"

/*
 * Sends a message like target_query, the last one to a VM. If the VM ended before it could answer,
 * which ends its recording too, sets *ret_ended and returns 0. ret_ended may be NULL; the end of
 * the VM is an error then.
 */
int target_ask_last(const struct vm *vm, const char *what, const char *options, bool load,
                    struct buf *answer, bool *ret_ended);
/*
 * Sends a message like target_message and prints the JSON in the answer, unchanged or as tables.
 * members: the only members of the JSON that the tables show, ended by NULL; NULL: all.
 */
int target_show(const struct vm *vm, const char *what, const char *options, bool load, bool as_json,
                const char *const members[]);
/*
 * Returns whether a note was printed that nothing matches the subject, a pattern or the place of a
 * logpoint, so far.
 */
bool target_has_reported(const char *subject);
/*
 * Returns whether a note about the subject (target_has_reported) was printed that ended with `why`.
 */
bool target_has_reported_why(const char *subject, const char *why);
/* Appends a text of the agent with options as target_report_note prints them. */
void target_put_text(struct buf *to, const char *text);
/*
 * Prints a note of the agent. Options that the user typed appear as the flags that were typed;
 * options that another one implied (--always) keep the agent's name.
 */
void target_report_note(const char *text);
/* Sets which options were typed, as bits by enum option (capture.given). */
void target_typed(uint64_t options);
/* Sets what a change of classes that takes long prints once below its progress; NULL: nothing. */
void target_advise(const char *sentence);
/* Prints on standard error those of the agent's messages that were not printed before. */
void target_print_messages(const struct buf *answer);
/*
 * Returns whether the path leads to the open file. If so, the file need not be copied to this path
 * and must not be overwritten by its copy.
 */
bool target_is_file(int fd, const char *path);
/*
 * Writes the recording that the VM wrote at `path`, open as fd (target_open_written), to `to`,
 * converted if that is not what the extension of `to` names. If a command chose the name `path`
 * (`own`), also fetches the recording's heap dumps and deletes the original. Returns 0, or the exit
 * status after a complaint that names the place where the recording still is.
 */
int target_fetch(const struct vm *vm, const char *path, int fd, const char *to, bool own);
/*
 * Opens the file that the VM wrote at `path` safely (proto/vm_files.h). *ret_fd is -1 after a
 * complaint. Returns 0 or the exit status.
 */
int target_open_written(const struct vm *vm, const char *path, int *ret_fd);
/*
 * Returns true when the VM itself can create a file of this absolute name: the folder is the same
 * for the VM as for this process, and the VM's user may write to it.
 */
bool target_can_write(const struct vm *vm, const char *path);
/*
 * Stores a name in the VM's file system for a recording that is fetched later; target_chose
 * recognizes it. path has PATH_MAX bytes.
 */
void target_choose(const struct vm *vm, const char *extension, char *path);
/* Returns whether a command chose the name, with target_choose or as scratch (proto/scratch.h). */
bool target_chose(const char *path);
/*
 * Names a recording of this VM that a killed command left in the VM's file system, and how to fetch
 * it.
 */
void target_report_left(const struct vm *vm);
/*
 * Copies the file of a descriptor from its beginning to a new file, which only its owner can read
 * and which appears complete or not at all. Returns 0, or the exit status after a complaint.
 */
int target_copy(int from, const char *to);
#define AS_THE_VM_SEES_IT " (as the VM sees it)"

/*
 * Returns AS_THE_VM_SEES_IT when this absolute path of the VM leads elsewhere for this process;
 * otherwise "".
 */
const char *target_seen(const struct vm *vm, const char *path);
