/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/capture/vm/vm.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/*
 * A program may create a loader class for each loader. Loader classes beyond this number are
 * counted together.
 */
enum { LOADERS = 512, BOOTSTRAP = 0, OTHERS = LOADERS - 1 };

static struct {
    pthread_mutex_t lock; /* held while a loader class is added */
    _Atomic uint32_t n;

    struct loaders {
        char *class_name;
        _Atomic uint64_t loaded, unloaded;
    } of[LOADERS];
} all = {.lock = PTHREAD_MUTEX_INITIALIZER, .n = 1};

static uint32_t find(const char *class_name, uint32_t n)
{
    uint32_t i = 1;
    while (i < n && strcmp(all.of[i].class_name, class_name) != 0)
        i++;
    return i;
}

uint32_t loaders_number(const char *class_name)
{
    if (!class_name)
        return BOOTSTRAP;
    uint32_t n = all.n, i = find(class_name, n);
    if (i < n)
        return i;
    pthread_mutex_lock(&all.lock);
    n = all.n;
    i = find(class_name, n);
    if (i == n && n < OTHERS && (all.of[n].class_name = strdup(class_name)))
        all.n = n + 1;
    else if (i == n)
        i = OTHERS;
    pthread_mutex_unlock(&all.lock);
    return i;
}

void loaders_loaded(uint32_t number)
{
    all.of[number].loaded++;
}

void loaders_unloaded(uint32_t number)
{
    all.of[number].unloaded++;
}

void loaders_reset(void)
{
    for (int i = 0; i < LOADERS; i++)
        all.of[i].loaded = all.of[i].unloaded = 0;
}

static const char *name_of(uint32_t number)
{
    return number == BOOTSTRAP ? "bootstrap"
           : number == OTHERS  ? "[other loaders]"
                               : all.of[number].class_name;
}

void loaders_flush(uint64_t now)
{
    struct jfr_event e;
    for (uint32_t i = 0; i < LOADERS; i = i + 1 == all.n ? OTHERS : i + 1) {
        struct loaders *l = &all.of[i];
        if (!l->loaded && !l->unloaded)
            continue;
        const char *name = name_of(i);
        if (!jfr_begin(vm_activity.jfr, vm_activity.loading_type, strlen(name) + 64, &e))
            continue;
        jfr_put_time(&e, now);
        jfr_put_string(&e, name);
        jfr_put_long(&e, (int64_t)atomic_exchange(&l->loaded, 0));
        jfr_put_long(&e, (int64_t)atomic_exchange(&l->unloaded, 0));
        jfr_commit(&e);
    }
}
