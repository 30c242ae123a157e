/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Access to a VM's file system from outside. The VM's user can change names in it at any moment,
 * plant links, and answer with any path. Therefore every file is opened here: with the rights of
 * the VM's user, relative to the VM's root folder, which no link can leave, and never through a
 * link in the last component. Contents are read from the descriptor that was checked.
 */
#pragma once

#include "base/buf.h"
#include "proto/vm.h"

#include <sys/stat.h>

/*
 * Switches to the VM's user, group and supplementary groups until vm_user_leave(), if this process
 * is root and the VM is not. Must not be used by several threads at once. Returns 0 or a negative
 * errno.
 */
int vm_user_enter(const struct vm *vm) must_check;
/* The message when vm_user_enter, or a function that uses it to open files, returns -EPERM. */
#define VM_USER_REFUSED "cannot act as its user: CAP_SETUID and CAP_SETGID are missing"
void vm_user_leave(void);

/*
 * Opens a path of the VM with the rights of its user, within its root folder. flags, to which
 * O_CLOEXEC is added, and mode: as for open(2). Returns a descriptor or a negative errno.
 */
int vm_file_open(const struct vm *vm, const char *path, int flags, mode_t mode) must_check;
/*
 * Opens a folder of the VM as a starting point (O_PATH). Returns a descriptor or a negative errno.
 */
int vm_open_folder(const struct vm *vm, const char *path) must_check;
/*
 * Opens a path of the VM with the rights of this process (O_PATH), only to compare it and never to
 * read it. Returns a descriptor or a negative errno.
 */
int vm_locate(const struct vm *vm, const char *path) must_check;

/*
 * Opens for reading the file that the VM was asked to write at `path`, which must be a regular file
 * of the VM's user. Returns a descriptor, or a negative errno with a sentence in `why`: -EPERM for
 * a file of another kind or user.
 */
int vm_open_written(const struct vm *vm, const char *path, struct buf *why) must_check;
/* Returns whether the file begins like a recording (.jfr) or like HPROF output. */
bool vm_file_is_output(int fd);

/* Removes a file of the VM with the rights of its user. Returns 0 or a negative errno. */
int vm_unlink(const struct vm *vm, const char *path);
/*
 * Returns whether `path`, which is absolute, names the same file or folder for the VM as for this
 * process.
 */
bool vm_sees(const struct vm *vm, const char *path);
