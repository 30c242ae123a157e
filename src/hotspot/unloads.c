/* SPDX-License-Identifier: Apache-2.0 */
#include "hotspot/unloads.h"

#include "hotspot/hsperf.h"

enum { PROLOGUE_USED = 8, USED_MAX = 16 << 20 };

void unloads_find(struct unloads *ret, const struct hotspot_layout *l, const struct memory *m)
{
    static const char *const names[] = {"java.cls.unloadedClasses",
                                        "java.cls.sharedUnloadedClasses"};
    struct unloads u;
    uint64_t start;
    uint32_t used;
    *ret = (struct unloads){0};
    if (!l->perf_start || m->read || !load_u64(m, l->perf_start, &start) ||
        !load_u32(m, start + PROLOGUE_USED, &used) || used > USED_MAX)
        return;
    for (unsigned i = 0; i < ARRAY_SIZE(names); i++)
        u.counters[i] = (uint64_t)(uintptr_t)hsperf_number_at((const uint8_t *)(uintptr_t)start,
                                                              used, names[i]);
    if (u.counters[0] && u.counters[1])
        *ret = u;
}

at_each_sample uint32_t unloads_epoch(const struct unloads *u, const struct memory *m)
{
    uint64_t classes, shared;
    if (!u->counters[0] || !load_u64(m, u->counters[0], &classes) ||
        !load_u64(m, u->counters[1], &shared))
        return 0;
    /* Never 0; it repeats only after two thousand million classes. */
    return (uint32_t)(classes + shared) | UINT32_C(1) << 31;
}
