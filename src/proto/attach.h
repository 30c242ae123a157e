/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HotSpot's attach protocol, from outside any VM: a file .attach_pidN and SIGQUIT wake the VM's attach listener, which then
 * listens on the socket /tmp/.java_pidN. A request is the version "1" and four strings, each ended by NUL; the answer a
 * number, a newline and text. Both sides require the same user; root takes the VM's user for as long as that is checked.
 */
#pragma once

#include "proto/vm.h"

enum { ATTACH_ARGS = 3, ATTACH_ARG_MAX = 1024, ATTACH_ANSWER_MAX = 64 << 20 };

/*
 * Sends a command ("load", "jcmd", "properties" ...) with up to three arguments (NULL is empty) and reads the answer to its
 * end. 0: *ret_status is the VM's number, the text is in `answer`. Negative errno with one sentence in `why`:
 * -EOPNOTSUPP (attach is disabled), -EACCES, -EROFS (the VM's /tmp cannot be written), -ETIMEDOUT, -ESRCH (the VM ended),
 * -E2BIG (an argument over 1,024 bytes) ...
 */
int attach_command(const struct vm *vm, const char *command, const char *const args[ATTACH_ARGS], struct buf *answer,
                   int *ret_status, struct buf *why) must_check;

/*
 * Takes the VM's user and group for file access, when we are root and it is not, until attach_as_self(). Single-threaded.
 * 0 or negative errno.
 */
int attach_as_vm(const struct vm *vm) must_check;
void attach_as_self(void);
