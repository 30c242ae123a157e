/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes what the stack walker knows about a VM's structures: layouts LIBJVM. The library is loaded
 * but no VM is started. tests/unit/test_hotspot.c builds its synthetic images from these lines.
 */
#include "hotspot/layout.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>

static void write_line(void *context, const char *what, const char *type, const char *field,
                       int64_t value)
{
    /* The address of a static field depends on the loader; only its presence matters. */
    bool is_static = what[0] == 's' && what[1] == 't';
    printf("%s %s %s %lld\n", what, type, field[0] ? field : "-",
           is_static ? 0LL : (long long)value);
}

int main(int argc, char **argv)
{
    char why[200];
    struct hotspot_layout layout;
    void *vm = argc == 2 ? dlopen(argv[1], RTLD_NOW) : NULL;
    if (!vm) {
        fprintf(stderr, "layouts: %s\n", argc == 2 ? dlerror() : "usage: layouts LIBJVM");
        return argc == 2 ? 1 : 2;
    }
    struct hotspot_image image = hotspot_image_of_library(vm);
    if (hotspot_layout_read(&image, &layout, why, sizeof(why)) < 0) {
        fprintf(stderr, "layouts: %s: %s\n", argv[1], why);
        return 1;
    }
    printf("version %d\n", layout.version);
    hotspot_layout_visit(&layout, write_line, NULL);
    return 0;
}
