/* SPDX-License-Identifier: Apache-2.0 */
#include "hotspot/image.h"

#include "hotspot/memory.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>

static int library_symbol(void *context, const char *name, uint64_t *ret_address)
{
    void *symbol = dlsym(context, name);
    if (!symbol)
        return -ENOENT;
    *ret_address = (uintptr_t)symbol;
    return 0;
}

static int library_read(void *context, uint64_t address, void *bytes, size_t len)
{
    return memory_read(&process_memory, address, bytes, len) ? 0 : -EFAULT;
}

struct hotspot_image hotspot_image_of_library(void *handle)
{
    return (struct hotspot_image){
        .context = handle, .symbol = library_symbol, .read = library_read, .in_place = true};
}

int image_u64(const struct hotspot_image *image, uint64_t address, uint64_t *ret)
{
    uint64_t v;
    int r = image->read(image->context, address, &v, sizeof(v));
    if (r == 0)
        *ret = v;
    return r;
}

int image_u32(const struct hotspot_image *image, uint64_t address, uint32_t *ret)
{
    uint32_t v;
    int r = image->read(image->context, address, &v, sizeof(v));
    if (r == 0)
        *ret = v;
    return r;
}

int image_string(const struct hotspot_image *image, uint64_t address, char *ret, size_t size)
{
    if (!address) {
        ret[0] = 0;
        return 0;
    }
    for (size_t i = 0, n; i < size; i += n) {
        /*
         * Reads up to the next aligned word, so that no read extends into a page where the string
         * does not.
         */
        n = MIN(size - i, 8 - ((address + i) & 7));
        int r = image->read(image->context, address + i, ret + i, n);
        if (r < 0 && n > 1)
            r = image->read(image->context, address + i, ret + i, n = 1);
        if (r < 0)
            return r;
        if (memchr(ret + i, 0, n))
            return 0;
    }
    return -ENAMETOOLONG;
}

const char *image_text(const struct hotspot_image *image, uint64_t address, char *copy, size_t size)
{
    if (image->in_place)
        return address ? (const char *)(uintptr_t)address : "";
    return image_string(image, address, copy, size) == 0 ? copy : NULL;
}
