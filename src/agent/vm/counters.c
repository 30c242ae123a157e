/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/vm/counters.h"

#include "agent/vm/image.h"
#include "agent/vm/vm.h"
#include "hotspot/hsperf.h"
#include "hotspot/tables.h"

#include <stdlib.h>
#include <string.h>

enum { PROLOGUE_USED = 8, USED_MAX = 16 << 20 };

/* Finds the symbol that has the address of the VM's counters. */
static int match(void *context, const struct table_entry *e)
{
    bool is = e->kind == TABLE_STATIC && strcmp(e->type, "PerfMemory") == 0 &&
              strcmp(e->name, "_start") == 0;
    if (is)
        *(uint64_t *)context = (uint64_t)e->value;
    return is;
}

/*
 * Returns the counters and how many bytes of them are in use now; the VM adds more while it runs.
 */
static const uint8_t *all(size_t *ret_len)
{
    static uint64_t at;
    uint64_t start = 0;
    uint32_t used = 0;
    if ((!at && hotspot_tables_visit(&vm_image, match, &at) != 1) ||
        image_u64(&vm_image, at, &start) < 0 || !start ||
        image_u32(&vm_image, start + PROLOGUE_USED, &used) < 0 || used > USED_MAX)
        return NULL;
    *ret_len = used;
    return (const uint8_t *)(uintptr_t)start;
}

const int64_t *counter_number(const char *name)
{
    size_t len;
    const uint8_t *counters = all(&len);
    return counters ? (const int64_t *)(const void *)hsperf_number_at(counters, len, name) : NULL;
}

bool counter_text(const char *name, char *ret, size_t size)
{
    size_t len;
    const uint8_t *counters = all(&len);
    char *text = counters ? hsperf_string(counters, len, name) : NULL;
    ret[0] = 0;
    if (text)
        strncat(ret, text, size - 1);
    free(text);
    return text != NULL;
}

bool counters_count_ns(void)
{
    const int64_t *frequency = counter_number("sun.os.hrt.frequency");
    return !frequency || counter_value(frequency) == 1000000000;
}
