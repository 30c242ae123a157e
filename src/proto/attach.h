/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client of HotSpot's attach protocol. A file .attach_pidN and SIGQUIT wake the VM's attach
 * listener, which then listens on the socket /tmp/.java_pidN. A request consists of the version "1"
 * and four NUL-terminated strings; the answer is a number, a newline and text. Each side checks
 * that the other has the same user; root takes on the VM's user while that is checked.
 */
#pragma once

#include "base/clock.h"
#include "proto/vm.h"

enum { ATTACH_ARGS = 3, ATTACH_ARG_MAX = 1024, ATTACH_ANSWER_MAX = 64 << 20 };

/*
 * Time limits for an answer: to a question, to a request that makes the VM work, such as the start
 * of a recording, and to a heap dump.
 */
#define ATTACH_QUESTION_NS (UINT64_C(60) * NS_PER_SECOND)
#define ATTACH_WORK_NS     (UINT64_C(600) * NS_PER_SECOND)
#define ATTACH_DUMP_NS     (UINT64_C(7200) * NS_PER_SECOND)

/* The message when the command has no right to send the VM the signal that wakes its listener. */
#define VM_NOT_SIGNALLED "it may not be signalled: CAP_KILL is missing"

/* Called about ten times a second while waiting for the answer. */
struct attach_waiting {
    void (*poll)(void *context);
    void *context;
};

/*
 * How long a caller has waited for a VM. stopped_ns: the time since which the VM has been stopped;
 * 0: it is not stopped
 */
struct attach_wait {
    uint64_t start_ns, limit_ns, stopped_ns;
};

/*
 * Returns 0 if the caller is to continue waiting, or a negative errno with a sentence in `why` if
 * the limit has passed or the VM has been stopped for a while.
 */
int attach_wait_on(const struct vm *vm, struct attach_wait *w, struct buf *why) must_check;

/*
 * Checks whether the VM's listener can be reached: it has made its socket in /tmp, or the VM's user
 * can make in /tmp the file that wakes it, and the VM its socket. Creates nothing. Returns 0 or a
 * negative errno with a sentence in `why`.
 */
int attach_check_tmp(const struct vm *vm, struct buf *why) must_check;

/*
 * Sends a command ("load", "jcmd", "properties" ...) with up to three arguments (NULL is empty) and
 * reads the answer to its end, for at most limit_ns. `waiting` may be NULL. Returns 0 with the VM's
 * number in *ret_status and the text in `answer`, or a negative errno with one sentence in `why`:
 * -EOPNOTSUPP (attach is disabled), -EACCES, -EROFS (the VM's /tmp is read-only), -EAGAIN (the
 * process is stopped), -ETIMEDOUT, -ESRCH (the VM has ended), -E2BIG (an argument is longer than
 * 1,024 bytes) ...
 */
int attach_command(const struct vm *vm, const char *command, const char *const args[ATTACH_ARGS],
                   uint64_t limit_ns, const struct attach_waiting *waiting, struct buf *answer,
                   int *ret_status, struct buf *why) must_check;
