/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gives our library to a VM that can load one from none of its folders, because every writable
 * folder is mounted with noexec, as in a container whose root is read-only. The library is in a
 * memory file of a process of ours, the lender, which runs as the VM's user, in the VM's pid and
 * user namespaces and without capabilities, so that the VM may open the file by
 * /proc/PID/fd/NUMBER.
 *
 * The C library identifies a library that it has loaded by the path with which it was loaded. The
 * path therefore stands in the memory file's name, by which later commands find it in the VM's
 * mappings. They can use the library even after the lender has ended.
 */
#pragma once

#include "base/buf.h"
#include "proto/vm.h"

struct lender {
    pid_t process;
    int end; /* the lender ends when this descriptor, or the process that has it, is closed */
};

#define LENDER ((struct lender){.process = -1, .end = -1})

/*
 * Starts a lender of these contents. path (size bytes) receives the VM's name for the library;
 * `hash` distinguishes builds. Returns 0, or a negative errno and appends the rest of a sentence to
 * `why`: -EPERM when CAP_SYS_ADMIN is missing, which is needed to enter the VM's namespaces.
 */
int lend_library(const struct vm *vm, uint64_t hash, const void *data, size_t len, char *path,
                 size_t size, struct lender *ret, struct buf *why) must_check;
void lender_release(struct lender *l);

/*
 * Stores in path (size bytes) the path of a library that was lent, given the last component of its
 * name in /proc/PID/maps. Returns false for other files.
 */
bool lend_path(const char *base_name, char *path, size_t size);
