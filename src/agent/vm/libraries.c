/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/vm/libraries.h"

#include "base/macro.h"

#include <dlfcn.h>
#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* The paths of all libraries, each with its NUL, as far as there is room. */
struct paths {
    char *text;
    size_t room, needed;
};

/* Called with the loader's lock held: it may not even allocate memory. */
static int note_path(struct dl_phdr_info *info, size_t size, void *context)
{
    struct paths *p = context;
    const char *path = info->dlpi_name ? info->dlpi_name : "";
    size_t n = strlen(path) + 1;
    if (p->needed + n <= p->room)
        memcpy(p->text + p->needed, path, n);
    p->needed += n;
    return 0;
}

/* False: out of memory. */
static bool read_paths(struct paths *ret)
{
    enum { SPARE = 4096 }; /* for libraries that are loaded meanwhile */

    *ret = (struct paths){0};
    for (;;) {
        ret->needed = 0;
        (void)dl_iterate_phdr(note_path, ret);
        if (ret->needed <= ret->room)
            return true;
        free(ret->text);
        ret->room = ret->needed + SPARE;
        ret->text = malloc(ret->room);
        if (!ret->text)
            return false;
    }
}

int libraries_visit(int (*f)(void *library, const char *path, void *context), void *context)
{
    struct paths all;
    int r = 0;
    if (!read_paths(&all))
        return 0;
    for (size_t at = 0; at < all.needed && r == 0; at += strlen(all.text + at) + 1) {
        const char *path = all.text + at;
        /* A library that was unloaded meanwhile is not loaded again. */
        void *library = dlopen(*path ? path : NULL, RTLD_LAZY | RTLD_NOLOAD);
        if (!library)
            continue;
        r = f(library, path, context);
        dlclose(library);
    }
    free(all.text);
    return r;
}

static int note_loads(struct dl_phdr_info *info, size_t size, void *context)
{
    if (size >= offsetof(struct dl_phdr_info, dlpi_adds) + sizeof(info->dlpi_adds))
        *(unsigned long long *)context = info->dlpi_adds;
    return 1;
}

unsigned long long libraries_loaded(void)
{
    unsigned long long loaded = 0;
    (void)dl_iterate_phdr(note_loads, &loaded);
    return loaded;
}
