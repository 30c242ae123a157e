/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the structures of a VM are read from: this process, a libjvm that was loaded but not
 * started, a core file, a synthetic image of a test. Readers of this room never dereference an
 * address of the VM themselves.
 */
#pragma once

#include "base/macro.h"

#include <stddef.h>
#include <stdint.h>

struct hotspot_image {
    void *context;
    /* Address of an exported symbol of libjvm; 0 or -ENOENT. */
    int (*symbol)(void *context, const char *name, uint64_t *ret_address);
    /* Copies len bytes from address; 0 or -EFAULT, which leaves what is in bytes undefined. */
    int (*read)(void *context, uint64_t address, void *bytes, size_t len);
};

/*
 * The libjvm of a dlopen handle, in this process. Reads are guarded when memory_guard_init was
 * called, plain before.
 */
struct hotspot_image hotspot_image_of_library(void *handle);

/* Reads of one value; 0 or -EFAULT. */
int image_u64(const struct hotspot_image *image, uint64_t address, uint64_t *ret) must_check;
int image_u32(const struct hotspot_image *image, uint64_t address, uint32_t *ret) must_check;
/*
 * A NUL-terminated string of at most size - 1 characters into ret; -EFAULT, -ENAMETOOLONG. A NULL
 * address is "".
 */
int image_string(const struct hotspot_image *image, uint64_t address, char *ret,
                 size_t size) must_check;
