/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/macro.h"

#include <stdint.h>
#include <sys/types.h>

/* A file's bytes, mapped for reading. Zeroed is empty and valid. */
struct file_map {
    const uint8_t *data; /* NULL when the file is empty */
    size_t len;
};

/* Maps a regular file; negative errno (-EISDIR for a folder, -ENXIO for what has no length, such as a pipe). */
int file_map_open(struct file_map *ret, const char *path) must_check;
/* The same of a descriptor, which stays the caller's. */
int file_map_fd(struct file_map *ret, int fd) must_check;
void file_map_release(struct file_map *m);

/* Reads all of a descriptor, at most limit bytes (-EFBIG beyond); *ret is malloc'ed with a NUL behind, the caller frees. */
int read_all(int fd, size_t limit, uint8_t **ret, size_t *ret_len) must_check;
/* The same of a file by name; /proc files too. */
int read_file(const char *path, size_t limit, uint8_t **ret, size_t *ret_len) must_check;
/* Writes all bytes, through EINTR and short writes; 0 or negative errno. */
int write_all(int fd, const void *bytes, size_t len) must_check;

/*
 * A file that appears whole or not at all: written under a temporary name beside its own, then renamed by commit. A file
 * that is not committed is removed by release. "-" is standard output.
 */
struct out_file {
    int fd;
    char *path, *temporary; /* temporary is NULL for standard output and for what cannot be renamed onto (pipes, devices) */
};

#define OUT_FILE ((struct out_file){.fd = -1})

int out_file_open(struct out_file *ret, const char *path) must_check;
int out_file_commit(struct out_file *f) must_check;
void out_file_release(struct out_file *f);
