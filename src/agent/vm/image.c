/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/vm/image.h"

#include "agent/vm/vm.h"
#include "hotspot/memory.h"

#include <errno.h>

static int find_symbol(void *context, const char *name, uint64_t *ret)
{
    *ret = (uint64_t)(uintptr_t)vm_libjvm_function(name);
    return *ret ? 0 : -ENOENT;
}

static int read_memory(void *context, uint64_t address, void *bytes, size_t len)
{
    return memory_read(&process_memory, address, bytes, len) ? 0 : -EFAULT;
}

const struct hotspot_image vm_image = {
    .symbol = find_symbol, .read = read_memory, .in_place = true};
