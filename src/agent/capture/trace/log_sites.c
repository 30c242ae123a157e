/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/capture/trace/log_sites.h"

#include "base/arena.h"
#include "base/dotted.h"
#include "base/hash.h"
#include "base/map.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct arena arena;
static struct log_site sites[SITES_MAX];
static _Atomic unsigned count;
static struct map index_of; /* hash of kind, place, text and pc -> number */

static char *keep(const char *s)
{
    size_t n = s ? strlen(s) + 1 : 0;
    char *copy = n ? arena_alloc(&arena, n) : NULL;
    return copy ? memcpy(copy, s, n) : NULL;
}

void log_site_place(char *to, size_t size, struct str class_name, struct str method, unsigned line)
{
    char number[16] = "";
    if (line)
        snprintf(number, sizeof(number), ":%u", line);
    snprintf(to, size, "%.*s.%.*s%s", (int)class_name.len, class_name.data, (int)method.len,
             method.data, number);
    dotted_in_place(to, class_name.len < size ? class_name.len : size);
}

int log_site_add(const struct log_site *s, uint32_t pc)
{
    uint64_t key = hash_bytes(s->place, strlen(s->place)) ^
                   hash_bytes(s->text, strlen(s->text)) * 31 ^
                   hash_bytes(s->types, strlen(s->types)) * 7 ^
                   ((uint64_t)pc << 8 | s->kind) * UINT64_C(0x9e3779b97f4a7c15);
    int r;
    pthread_mutex_lock(&lock);
    unsigned n = count;
    bool added = false;
    uint64_t *at =
        n < SITES_MAX || map_get(&index_of, key) ? map_at(&index_of, key, n, &added) : NULL;
    r = at ? (int)*at : n == SITES_MAX ? -ENOBUFS : -ENOMEM;
    if (at && added) {
        sites[n] =
            (struct log_site){s->kind,        keep(s->place), keep(s->text),      keep(s->types),
                              keep(s->owner), keep(s->name),  keep(s->descriptor)};
        bool whole = sites[n].place && sites[n].text && sites[n].types &&
                     (!s->owner || sites[n].owner) && (!s->name || sites[n].name) &&
                     (!s->descriptor || sites[n].descriptor);
        if (whole) {
            count = n + 1;
        } else {
            map_remove(&index_of, key);
            r = -ENOMEM;
        }
    }
    pthread_mutex_unlock(&lock);
    return r;
}

const struct log_site *log_site_at(unsigned number)
{
    return number < count ? &sites[number] : NULL;
}
