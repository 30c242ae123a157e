/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a process does that was forked and executes no other program. Makes system calls only, so
 * that it can be used after vfork and in a child of a process with threads.
 */
#pragma once

#include <stddef.h>
#include <sys/types.h>

/*
 * Closes all descriptors from 3 on, except for those in `keep`, which are in ascending order. A
 * child that keeps what it inherited also keeps its parent's port, and the reading end of its own
 * pipe, so that it never learns that nobody reads.
 */
void forked_close_others(const int *keep, size_t n);

/*
 * Makes the kernel kill this process when the thread that forked it ends, for whatever reason.
 * parent: the process id of the parent, from before the fork. Exits if the parent has ended
 * already.
 */
void forked_end_with(pid_t parent);
