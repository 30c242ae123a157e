/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/macro.h"

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

/* The bytes of a file, mapped for reading. A zeroed struct is empty and valid. */
struct file_map {
    const uint8_t *data; /* NULL when the file is empty */
    size_t len;
};

/*
 * Maps a regular file. Returns 0 or a negative errno: -EISDIR for a folder, -ENXIO for what has no
 * length, such as a pipe.
 */
int file_map_open(struct file_map *ret, const char *path) must_check;
/* Returns in words why file_map_open failed. */
const char *file_map_why(int error);
/* Maps a file like file_map_open, given its descriptor, which remains the caller's. */
int file_map_fd(struct file_map *ret, int fd) must_check;
void file_map_release(struct file_map *m);

/*
 * Reads everything from a descriptor. *ret is allocated by malloc and followed by a NUL; the caller
 * frees it. Returns 0 or a negative errno: -EFBIG when the contents are more than limit bytes.
 */
int file_read_all(int fd, size_t limit, uint8_t **ret, size_t *ret_len) must_check;
/* Reads a file like file_read_all, given its path; also reads files in /proc. */
int file_read_path(const char *path, size_t limit, uint8_t **ret, size_t *ret_len) must_check;
/*
 * file_limit_begin makes a write beyond RLIMIT_FSIZE fail with EFBIG instead of killing the
 * process. file_limit_end restores SIGXFSZ's action and is called before another program is
 * executed.
 */
void file_limit_begin(void);
void file_limit_end(void);
/*
 * Makes the process exit with a one-line message and status 1, instead of dying from SIGBUS, when a
 * mapped file shrinks while it is read or when its disk is full.
 */
void file_fault_begin(void);
/*
 * Returns whether a path is taken by something that must not be replaced: anything but an empty
 * file, a file that begins with these bytes (at most 64), as every file of that kind does, or one
 * that may not be read, which is taken for another user's of that kind.
 */
bool file_is_foreign(const char *path, const void *start, size_t len);
/*
 * Returns whether a regular file that can be read holds something that begins neither with these
 * bytes (at most 64) nor with zeros, as the file of a recorder does that was killed at its start.
 */
bool file_holds_other(const char *path, const void *start, size_t len);
/* Returns the last component of a path, within it. */
const char *file_base(const char *path);
/*
 * Returns whether a name consists of `end`, such as ".jfr", in small or capital letters, and of
 * something before that.
 */
bool file_name_ends_in(const char *name, const char *end);
/*
 * Takes the next path from a list of paths that are separated by commas, and moves *rest behind it.
 * The longest part of the list that exists is one path, so the name of a file may have a comma.
 * Returns false at the end of the list. A path that is too long becomes an empty one.
 */
bool file_list_next(const char **rest, char path[PATH_MAX]);
/* Writes all bytes, retrying after EINTR and short writes. Returns 0 or a negative errno. */
int file_write_all(int fd, const void *bytes, size_t len) must_check;

/*
 * Opens a path the way a process whose root folder is `root` (a descriptor) would: neither symbolic
 * links nor ".." lead out of it. Adds O_CLOEXEC. O_NOFOLLOW applies to the last component only, as
 * in open(). Before Linux 5.6, and where a container forbids openat2, no component may be a link or
 * "..". Returns a descriptor or a negative errno.
 */
int file_open_in_root(int root, const char *path, int flags, mode_t mode) must_check;
/* Does what file_open_in_root does on Linux before 5.6; public for tests. */
int file_open_in_root_by_steps(int root, const char *path, int flags, mode_t mode) must_check;

/*
 * An output file that appears complete or not at all. Until it is committed the file has no name,
 * or a temporary name next to its final one. out_file_release removes a file that was not
 * committed. The path "-" means standard output.
 */
struct out_file {
    int fd;
    /*
     * Both are NULL for standard output and for what cannot be replaced, such as pipes and devices.
     */
    char *path, *temporary;
    int error; /* the first failure of out_file_write; commit returns it too */
};

#define OUT_FILE ((struct out_file){.fd = -1})

/*
 * Creates a file that only its owner can read if that is true of the file `like` (a path, or NULL):
 * what is derived from a recording must be as private as the recording. Returns 0 or a negative
 * errno, like the two functions below.
 */
int out_file_open_like(struct out_file *ret, const char *path, const char *like) must_check;
/* Creates a file that only its owner can read. */
int out_file_open_private(struct out_file *ret, const char *path) must_check;
/* Creates a file with the usual permissions. */
int out_file_open(struct out_file *ret, const char *path) must_check;
/* Writes all bytes. Returns 0 or the first failure of this file. */
int out_file_write(struct out_file *f, const void *bytes, size_t len);
/*
 * Returns a stdio stream that writes to the file, or NULL when out of memory. The caller closes it
 * before the commit and need not check the results of stdio functions, because commit returns the
 * first failure with its errno. f must not move while the stream is open.
 */
FILE *out_file_stream(struct out_file *f) must_check;
/*
 * Gives the file its name, replacing another file of that name, and closes it. Returns 0 or the
 * first failure of this file.
 */
int out_file_commit(struct out_file *f) must_check;
void out_file_release(struct out_file *f);
