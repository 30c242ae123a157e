/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps uploads in files until the collector has accepted them: NUMBER.jfr and NUMBER.query, of
 * which the second is written last and removed first, so that an upload exists completely or not at
 * all.
 */
#pragma once

#include "base/macro.h"
#include "base/vec.h"

#include <stdbool.h>
#include <stdint.h>

struct spool {
    char folder[512];
    uint64_t limit;   /* bytes */
    uint64_t next;    /* the number of the next upload */
    uint64_t dropped; /* uploads that were removed to stay within the limit */
    int lock_fd, running_fd;
};

/*
 * Makes the folder if it is missing; only its owner can read it. Waits for commands of an earlier
 * process that still write to it. limit: the bytes that uploads may take. Returns 0 or a negative
 * errno: -EAGAIN when another process uses the folder, -EPERM when another user owns it or may
 * write to it. The caller calls spool_close in any case.
 */
int spool_open(struct spool *s, const char *folder, uint64_t limit) must_check;
void spool_close(struct spool *s);
/*
 * Stores the name of the body's file, which must be written before spool_commit. path has 600
 * bytes.
 */
void spool_body(const struct spool *s, uint64_t number, char *path);
/*
 * Adds the upload whose body has been written, with the query of its URL. Removes the oldest
 * uploads beyond the limit. Returns 0 or a negative errno.
 */
int spool_commit(struct spool *s, const char *query) must_check;

/* The numbers of the uploads in a spool, the oldest first. The caller releases the list. */
struct spool_list {
    VEC(uint64_t) numbers;
};

/* Returns 0 or a negative errno. */
int spool_list(const struct spool *s, struct spool_list *ret) must_check;
/* Reads the query of an upload, which the caller frees. Returns 0 or a negative errno. */
int spool_query(const struct spool *s, uint64_t number, char **ret) must_check;
void spool_remove(const struct spool *s, uint64_t number);
