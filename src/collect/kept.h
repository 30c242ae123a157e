/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recordings that a collector keeps, because slow requests point to them. They are files of one
 * folder, named by tenant and upload; when they exceed a size together, the oldest are removed.
 */
#pragma once

#include "base/macro.h"
#include "fleet/hash.h"

#include <pthread.h>
#include <stdint.h>

struct kept_uploads {
    const char *folder; /* NULL: nothing is kept */
    uint64_t size_max;  /* bytes */
    uint64_t size;      /* of all files; guarded by lock, as is the folder */
    pthread_mutex_t lock;
};

/* The number of an upload in hexadecimal digits. */
enum { KEPT_ID_LEN = 2 * FLEET_HASH_BYTES };

void kept_id(const struct fleet_hash *upload, char ret[KEPT_ID_LEN + 1]);

/*
 * Makes the folder if it is missing, and removes the oldest files beyond size_max. Does nothing if
 * the folder is NULL. Returns 0 or a negative errno.
 */
int kept_open(struct kept_uploads *k) must_check;
/*
 * Keeps a copy of the file at path, without its compression, as the recording of an upload. Removes
 * the oldest recordings to make room. Returns 0, or a negative errno: -EFBIG for a file that is
 * larger than the limit for all recordings.
 */
int kept_put(struct kept_uploads *k, const char *tenant, const struct fleet_hash *upload,
             const char *path) must_check;
/*
 * Opens the recording of an upload; id is checked and may be any text. Returns a descriptor or a
 * negative errno: -ENOENT when none is kept.
 */
int kept_get(const struct kept_uploads *k, const char *tenant, const char *id) must_check;
