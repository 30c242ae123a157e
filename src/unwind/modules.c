/* SPDX-License-Identifier: Apache-2.0 */
#include "unwind/modules.h"

#include "base/vec.h"

#include <link.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static const struct modules *current;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

struct collection {
    VEC(struct module) list;
    unsigned long long adds, subs; /* of the loader */
    bool counted, failed;
};

/* The loader's counts of loads and unloads when the last table was made. */
static unsigned long long last_adds, last_subs;

static int collect(struct dl_phdr_info *info, size_t size, void *context)
{
    struct collection *c = context;
    if (size >= offsetof(struct dl_phdr_info, dlpi_subs) + sizeof(info->dlpi_subs)) {
        c->counted = true;
        c->adds = info->dlpi_adds;
        c->subs = info->dlpi_subs;
        if (current && c->adds == last_adds && c->subs == last_subs)
            return 1;
    }
    struct module m = {.begin = UINT64_MAX, .base = info->dlpi_addr};
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        uint64_t address = info->dlpi_addr + p->p_vaddr;
        if (p->p_type == PT_LOAD) {
            m.begin = MIN(m.begin, address);
            m.end = MAX(m.end, address + p->p_memsz);
        } else if (p->p_type == PT_GNU_EH_FRAME) {
            m.eh_frame_hdr = address;
            m.eh_frame_size = p->p_memsz;
        }
    }
    if (m.begin >= m.end)
        return 0;
    m.path = strdup(info->dlpi_name ? info->dlpi_name : "");
    if (!m.path || vec_push(&c->list, m) < 0)
        c->failed = true;
    return c->failed;
}

static int by_address(const void *a, const void *b)
{
    const struct module *x = a, *y = b;
    return (x->begin > y->begin) - (x->begin < y->begin);
}

/* Each path is stored once, however many tables contain it. */
static void share_paths(struct collection *c, const struct modules *old)
{
    for (size_t i = 0; old && i < c->list.len; i++)
        for (uint32_t k = 0; k < old->count; k++)
            if (strcmp(c->list.data[i].path, old->modules[k].path) == 0) {
                free((char *)c->list.data[i].path);
                c->list.data[i].path = old->modules[k].path;
                break;
            }
}

const struct modules *modules_refresh(void)
{
    struct collection c = {0};
    pthread_mutex_lock(&lock);
    const struct modules *old = current, *result = old;
    int r = dl_iterate_phdr(collect, &c);
    if (r == 0 && !c.failed) {
        struct modules *m = malloc(sizeof(*m) + c.list.len * sizeof(m->modules[0]));
        if (m) {
            if (c.list.len)
                qsort(c.list.data, c.list.len, sizeof(struct module), by_address);
            share_paths(&c, old);
            m->count = (uint32_t)c.list.len;
            m->generation = old ? old->generation + 1 : 1;
            memcpy(m->modules, c.list.data, c.list.len * sizeof(m->modules[0]));
            last_adds = c.counted ? c.adds : last_adds;
            last_subs = c.counted ? c.subs : last_subs;
            __atomic_store_n(&current, m, __ATOMIC_RELEASE);
            result = m;
        }
    }
    vec_release(&c.list);
    pthread_mutex_unlock(&lock);
    return result;
}

at_each_sample const struct modules *modules_current(void)
{
    return __atomic_load_n(&current, __ATOMIC_ACQUIRE);
}

at_each_sample const struct module *module_find(const struct modules *m, uint64_t address)
{
    uint32_t low = 0, high = m ? m->count : 0;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (m->modules[middle].end <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return m && low < m->count && m->modules[low].begin <= address ? &m->modules[low] : NULL;
}
