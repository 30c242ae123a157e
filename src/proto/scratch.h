/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Temporary files that a command places in one of the VM's folders: an answer, a copy of the agent,
 * a heap dump or a recording that is being fetched. They belong to the VM's user and their names
 * begin with ".jvmscope-". A command keeps its files locked (flock), so that the next command of
 * that user can recognize and remove what a killed command left behind.
 */
#pragma once

#include "proto/vm_files.h"

#define SCRATCH_PREFIX ".jvmscope-"

/*
 * What a recording takes: below the first it holds nothing of use, and the second is enough for
 * minutes of samples. What a heap dump takes at least, for the objects of the JDK.
 */
#define RECORDING_LEAST (UINT64_C(1) << 20)
#define RECORDING_ROOM  (UINT64_C(16) << 20)
#define DUMP_LEAST      (UINT64_C(4) << 20)

struct scratch {
    const struct vm *vm;
    int folder, fd; /* a folder of the VM; the locked file, open for reading and writing */
    char path[64];  /* the VM's name for the file, without a comma */
    char *name;     /* the last component of path */
};

#define SCRATCH ((struct scratch){.folder = -1, .fd = -1})

/*
 * Creates an empty file in the first of the VM's folders /tmp, /var/tmp and /dev/shm that accepts
 * one and has room for a short answer. Before that it removes what killed commands and VMs of that
 * user left in the folder: such files, .attach_pid files, and sockets on which nobody listens.
 * Returns 0 or a negative errno with a sentence in `why`.
 */
int scratch_make(struct scratch *ret, const struct vm *vm, struct buf *why) must_check;
/*
 * Creates a file like scratch_make, but in a folder that has `room` bytes left, so that what is
 * written next to the file fits; where none has, in the one with the most room. /dev/shm is memory
 * and counts as 64 MiB at most.
 */
int scratch_make_roomy(struct scratch *ret, const struct vm *vm, uint64_t room,
                       struct buf *why) must_check;
/*
 * Returns the number of bytes that are left in the file's folder; UINT64_MAX if that is not known.
 */
uint64_t scratch_room(const struct scratch *s);
/* Removes the file. Files that a command or the VM wrote next to it remain. */
void scratch_release(struct scratch *s);

/*
 * Stores in path (size bytes) the VM's name for a file next to the scratch file that others create:
 * the scratch file's path followed by `extension`.
 */
void scratch_sibling(const struct scratch *s, const char *extension, char *path, size_t size);
/*
 * Removes the file that scratch_sibling named, even when the VM has ended and its mounts are gone.
 */
void scratch_remove_sibling(const struct scratch *s, const char *path);
/* Returns whether the file of a descriptor is what is searched for. */
typedef bool scratch_wanted(const struct vm *vm, int fd);
/*
 * Finds a recording that a killed command left unfetched, which later commands keep for a day, and
 * that is `wanted`. Stores the VM's name for it in path (size bytes). Returns whether there is one.
 */
bool scratch_find_recording(const struct vm *vm, scratch_wanted *wanted, char *path, size_t size);
/*
 * Returns whether a path has the form of those that scratch_sibling stores, for this or another
 * command.
 */
bool scratch_is_sibling(const char *path);

/*
 * Creates a file `name` with this content, which can be loaded as a library, in the first of the
 * VM's folders that allows it, and keeps it locked until *ret_fd is closed. path (size bytes)
 * receives the VM's name for the file. Returns 0 or a negative errno with a sentence in `why`.
 */
int scratch_library(const struct vm *vm, const char *name, const void *data, size_t len, char *path,
                    size_t size, int *ret_fd, struct buf *why) must_check;
