/* SPDX-License-Identifier: Apache-2.0 */
#include "unwind/kernel_symbols.h"

#include "base/file.h"
#include "base/vec.h"

#include <stdlib.h>
#include <string.h>

enum { KALLSYMS_LIMIT = 256 << 20 };

struct kernel_symbol {
    uint64_t address;
    const char *name;
};

struct kernel_symbols {
    char *text;                        /* the file, cut into strings */
    VEC(struct kernel_symbol) symbols; /* by address */
};

static int by_address(const void *a, const void *b)
{
    const struct kernel_symbol *x = a, *y = b;
    return (x->address > y->address) - (x->address < y->address);
}

/* Parses "ffffffff81000000 T name" or "... t name\t[module]"; only functions are kept. */
static int add_line(struct kernel_symbols *s, char *line)
{
    char *at;
    uint64_t address = strtoull(line, &at, 16);
    if (address == 0 || at[0] != ' ' || !strchr("tTwW", at[1]) || at[2] != ' ')
        return 0;
    char *name = at + 3;
    name[strcspn(name, "\t")] = 0;
    return vec_push(&s->symbols, ((struct kernel_symbol){address, name}));
}

struct kernel_symbols *kernel_symbols_new(void)
{
    struct kernel_symbols *s = calloc(1, sizeof(*s));
    size_t len = 0;
    if (!s || file_read_path("/proc/kallsyms", KALLSYMS_LIMIT, (uint8_t **)&s->text, &len) < 0)
        return s;
    for (char *line = s->text, *next; line && *line; line = next) {
        next = strchr(line, '\n');
        if (next)
            *next++ = 0;
        if (add_line(s, line) < 0)
            break;
    }
    /* Modules are listed after the kernel itself, and not in the order of addresses. */
    if (s->symbols.len)
        qsort(s->symbols.data, s->symbols.len, sizeof(*s->symbols.data), by_address);
    return s;
}

const char *kernel_symbols_find(const struct kernel_symbols *s, uint64_t address)
{
    size_t low = 0, high = s->symbols.len;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (s->symbols.data[middle].address <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low ? s->symbols.data[low - 1].name : NULL;
}
