/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/instrument/stops.h"

#include "agent/vm.h"
#include "hotspot/hsperf.h"
#include "hotspot/memory.h"
#include "hotspot/tables.h"

#include <errno.h>
#include <string.h>

enum { PROLOGUE_USED = 8, USED_MAX = 16 << 20 };

static int find_symbol(void *context, const char *name, uint64_t *ret)
{
    *ret = (uint64_t)(uintptr_t)vm_libjvm_function(name);
    return *ret ? 0 : -ENOENT;
}

static int read_memory(void *context, uint64_t address, void *bytes, size_t len)
{
    return memory_read(&process_memory, address, bytes, len) ? 0 : -EFAULT;
}

static const struct hotspot_image image = {.symbol = find_symbol, .read = read_memory};

/* The symbol with the address of the VM's counters. */
static int match(void *context, const struct table_entry *e)
{
    bool is = e->kind == TABLE_STATIC && strcmp(e->type, "PerfMemory") == 0 &&
              strcmp(e->name, "_start") == 0;
    if (is)
        *(uint64_t *)context = (uint64_t)e->value;
    return is;
}

static const uint64_t *find_counter(void)
{
    uint64_t at = 0, start = 0;
    uint32_t used = 0;
    int64_t frequency = 0;
    if (hotspot_tables_visit(&image, match, &at) != 1 || image_u64(&image, at, &start) < 0 ||
        !start || image_u32(&image, start + PROLOGUE_USED, &used) < 0 || used > USED_MAX)
        return NULL;
    const uint8_t *counters = (const uint8_t *)(uintptr_t)start;
    if (hsperf_number(counters, used, "sun.os.hrt.frequency", &frequency) < 0 ||
        frequency != 1000000000)
        return NULL;
    return (const uint64_t *)(const void *)hsperf_number_at(counters, used, "sun.rt.safepointTime");
}

bool stops_so_far(uint64_t *ret_ns)
{
    static const uint64_t *counter;
    static bool looked;
    if (!looked)
        counter = find_counter();
    looked = true;
    if (counter)
        *ret_ns = __atomic_load_n(counter, __ATOMIC_RELAXED);
    return counter != NULL;
}
