/* SPDX-License-Identifier: Apache-2.0 */
#include "unwind/modules.h"

#include "base/macro.h"

#include <link.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static const struct modules *current;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* What the loader lists, as far as there is room. The paths follow each other in `text`. */
struct collection {
    struct module *list;
    char *text;
    size_t n, n_room, text_n, text_room;
    unsigned long long adds, subs; /* of the loader */
    bool counted;
};

/* The loader's counts of loads and unloads when the last table was made. */
static unsigned long long last_adds, last_subs;

static void note_path(struct collection *c, struct module *m, const char *path)
{
    size_t n = strlen(path) + 1;
    if (m && c->text_n + n <= c->text_room)
        m->path = memcpy(c->text + c->text_n, path, n);
    c->text_n += n;
}

/*
 * Called with a lock of the loader held, for which a thread that is allocating memory may be
 * waiting. It must therefore not allocate.
 */
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
    struct module *to = c->n < c->n_room ? &c->list[c->n] : NULL;
    c->n++;
    if (to)
        *to = m;
    note_path(c, to, info->dlpi_name ? info->dlpi_name : "");
    return 0;
}

/*
 * Collects what is loaded, and repeats this until there is room for everything. Returns false if
 * nothing is new, or if memory is exhausted.
 */
static bool collect_all(struct collection *c)
{
    enum { SPARE = 8, SPARE_TEXT = 4096 }; /* for libraries that are loaded meanwhile */

    *c = (struct collection){0};
    for (;;) {
        c->n = c->text_n = 0;
        if (dl_iterate_phdr(collect, c) != 0)
            return false;
        if (c->n <= c->n_room && c->text_n <= c->text_room)
            return true;
        free(c->list);
        free(c->text);
        c->n_room = c->n + SPARE;
        c->text_room = c->text_n + SPARE_TEXT;
        c->list = malloc(c->n_room * sizeof(*c->list));
        c->text = malloc(c->text_room);
        if (!c->list || !c->text)
            return false;
    }
}

static int by_address(const void *a, const void *b)
{
    const struct module *x = a, *y = b;
    return (x->begin > y->begin) - (x->begin < y->begin);
}

/* Each path is stored once, however many tables contain it. Returns false when out of memory. */
static bool keep_paths(struct modules *m, const struct modules *old)
{
    for (uint32_t i = 0; i < m->count; i++) {
        const char *path = NULL;
        for (uint32_t k = 0; old && k < old->count && !path; k++)
            path =
                strcmp(m->modules[i].path, old->modules[k].path) == 0 ? old->modules[k].path : NULL;
        m->modules[i].path = path ? path : strdup(m->modules[i].path);
        if (!m->modules[i].path)
            return false;
    }
    return true;
}

/* Makes a table of what was collected. Returns NULL if memory is exhausted. */
static struct modules *table_of(const struct collection *c, const struct modules *old)
{
    struct modules *m = malloc(sizeof(*m) + c->n * sizeof(m->modules[0]));
    if (!m)
        return NULL;
    m->count = (uint32_t)c->n;
    m->generation = old ? old->generation + 1 : 1;
    if (c->n) {
        memcpy(m->modules, c->list, c->n * sizeof(m->modules[0]));
        qsort(m->modules, c->n, sizeof(struct module), by_address);
    }
    if (keep_paths(m, old))
        return m;
    free(m);
    return NULL;
}

const struct modules *modules_refresh(void)
{
    struct collection c;
    pthread_mutex_lock(&lock);
    const struct modules *m = collect_all(&c) ? table_of(&c, current) : NULL;
    if (m) {
        last_adds = c.counted ? c.adds : last_adds;
        last_subs = c.counted ? c.subs : last_subs;
        __atomic_store_n(&current, m, __ATOMIC_RELEASE);
    }
    const struct modules *result = current;
    free(c.list);
    free(c.text);
    pthread_mutex_unlock(&lock);
    return result;
}

at_each_sample const struct modules *modules_current(void)
{
    return __atomic_load_n(&current, __ATOMIC_ACQUIRE);
}

at_each_sample const struct module *module_find(const struct modules *m, uint64_t address)
{
    uint32_t low = 0;
    uint32_t high = m ? m->count : 0;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (m->modules[middle].end <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return m && low < m->count && m->modules[low].begin <= address ? &m->modules[low] : NULL;
}
