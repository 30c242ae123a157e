/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory from which a VM's structures are read: this process, a libjvm that was loaded but not
 * started, a core file, or an image made by a test. The code in this room dereferences no address
 * of the VM itself, except those of libjvm's own tables.
 */
#pragma once

#include "base/macro.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hotspot_image {
    void *context;
    /* Finds the address of a symbol that libjvm exports. Returns 0 or -ENOENT. */
    int (*symbol)(void *context, const char *name, uint64_t *ret_address);
    /*
     * Copies len bytes from an address. Returns 0 or -EFAULT, after which the contents of `bytes`
     * are undefined.
     */
    int (*read)(void *context, uint64_t address, void *bytes, size_t len);
    /*
     * The image is this process: what libjvm itself contains, such as its tables and their texts,
     * is used where it is, which takes a tenth of the time of reading copies.
     */
    bool in_place;
};

/*
 * Returns the libjvm of a dlopen handle in this process. Reads are guarded if memory_guard_init was
 * called earlier, otherwise plain.
 */
struct hotspot_image hotspot_image_of_library(void *handle);

/* Read one value. Return 0 or -EFAULT. */
int image_u64(const struct hotspot_image *image, uint64_t address, uint64_t *ret) must_check;
int image_u32(const struct hotspot_image *image, uint64_t address, uint32_t *ret) must_check;
/*
 * Reads a NUL-terminated string of at most size - 1 characters. Returns 0, -EFAULT or
 * -ENAMETOOLONG. A NULL address gives "".
 */
int image_string(const struct hotspot_image *image, uint64_t address, char *ret,
                 size_t size) must_check;
/*
 * Returns a NUL-terminated text of libjvm: the original, or a copy in copy[size] if the image is
 * not in place. Returns NULL where image_string fails.
 */
const char *image_text(const struct hotspot_image *image, uint64_t address, char *copy,
                       size_t size);
