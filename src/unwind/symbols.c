/* SPDX-License-Identifier: Apache-2.0 */
#include "unwind/symbols.h"

#include "base/file.h"
#include "base/vec.h"
#include "unwind/modules.h"

#include <elf.h>
#include <errno.h>
#include <link.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SECTIONS_MAX = 4096, NOTE_ID_MAX = 64 };

/*
 * To sort the 60,000 symbols of a VM takes almost 10 ms, which is much for a program that ends
 * soon; this many searches without order take less.
 */
enum { SEARCHES_UNSORTED = 64 };

struct symbol {
    uint64_t address; /* as in the file */
    uint32_t size;
    uint32_t name : 31; /* offset in the strings */
    uint32_t local : 1;
};

struct library {
    const char *path; /* in the table of modules */
    const char *name;
    VEC(struct symbol) symbols; /* by address once `sorted` */
    unsigned searches;
    bool sorted;
    char *strings;
    size_t strings_len;
};

struct symbols {
    VEC(struct library *) libraries;
};

/* An ELF file that was checked: its section headers are inside the file. */
struct elf {
    const uint8_t *data;
    size_t len;
    const ElfW(Shdr) * sections;
    unsigned count;
};

static bool elf_open(struct elf *ret, const struct file_map *file)
{
    const ElfW(Ehdr) *h = (const void *)file->data;
    if (file->len < sizeof(*h) || memcmp(h->e_ident, ELFMAG, SELFMAG) != 0 ||
        h->e_ident[EI_CLASS] != ELFCLASS64 || h->e_ident[EI_DATA] != ELFDATA2LSB ||
        h->e_shentsize != sizeof(ElfW(Shdr)) || h->e_shnum > SECTIONS_MAX || h->e_shoff % 8 ||
        h->e_shoff > file->len || file->len - h->e_shoff < (size_t)h->e_shnum * sizeof(ElfW(Shdr)))
        return false;
    *ret = (struct elf){file->data, file->len, (const void *)(file->data + h->e_shoff), h->e_shnum};
    return true;
}

/* Returns the bytes of a section, NULL when it has none or they are not inside the file. */
static const uint8_t *section(const struct elf *e, unsigned index, size_t *ret_len)
{
    if (index >= e->count)
        return NULL;
    const ElfW(Shdr) *s = &e->sections[index];
    if (s->sh_type == SHT_NOBITS || s->sh_offset > e->len || s->sh_size > e->len - s->sh_offset)
        return NULL;
    *ret_len = s->sh_size;
    return e->data + s->sh_offset;
}

static int by_address(const void *a, const void *b)
{
    const struct symbol *x = a, *y = b;
    /*
     * Of several names for one address it prefers an exported one, then one with a size, then the
     * first.
     */
    if (x->address != y->address)
        return x->address < y->address ? -1 : 1;
    if (x->local != y->local)
        return x->local ? 1 : -1;
    return x->size != y->size ? (x->size > y->size ? -1 : 1)
                              : (x->name > y->name) - (x->name < y->name);
}

static int add_table(struct library *l, const struct elf *e, const ElfW(Shdr) * table)
{
    size_t len = 0, strings_len = 0;
    const uint8_t *bytes = section(e, (unsigned)(table - e->sections), &len),
                  *strings = section(e, table->sh_link, &strings_len);
    if (!bytes || !strings || strings_len == 0 || strings_len > INT32_MAX ||
        strings[strings_len - 1] != 0)
        return 0;
    l->strings = malloc(strings_len);
    if (!l->strings)
        return -ENOMEM;
    memcpy(l->strings, strings, strings_len);
    l->strings_len = strings_len;
    for (size_t i = 0; i + sizeof(ElfW(Sym)) <= len; i += sizeof(ElfW(Sym))) {
        ElfW(Sym) s;
        memcpy(&s, bytes + i, sizeof(s));
        unsigned type = ELF64_ST_TYPE(s.st_info);
        if ((type != STT_FUNC && type != STT_GNU_IFUNC) || s.st_shndx == SHN_UNDEF ||
            s.st_name >= strings_len)
            continue;
        struct symbol symbol = {s.st_value, (uint32_t)MIN(s.st_size, UINT32_MAX),
                                s.st_name & INT32_MAX, ELF64_ST_BIND(s.st_info) == STB_LOCAL};
        if (vec_push(&l->symbols, symbol) < 0)
            return -ENOMEM;
    }
    return 0;
}

/* Uses the full symbol table if there is one, otherwise the exported symbols. */
static int add_symbols(struct library *l, const struct elf *e, bool full_only)
{
    const uint32_t types[] = {SHT_SYMTAB, SHT_DYNSYM};
    for (size_t t = 0; t < (full_only ? 1 : 2); t++)
        for (unsigned i = 0; i < e->count; i++)
            if (e->sections[i].sh_type == types[t]) {
                int r = add_table(l, e, &e->sections[i]);
                if (r < 0 || l->symbols.len)
                    return r;
                free(l->strings);
                l->strings = NULL;
            }
    return 0;
}

/* Opens /usr/lib/debug/.build-id/xx/yyyy.debug, whose name comes from the build id note. */
static bool debug_file_name(const struct elf *e, char *ret, size_t size)
{
    for (unsigned i = 0; i < e->count; i++) {
        size_t len = 0;
        const uint8_t *note = e->sections[i].sh_type == SHT_NOTE ? section(e, i, &len) : NULL;
        ElfW(Nhdr) h;
        if (!note || len < sizeof(h) + 4)
            continue;
        memcpy(&h, note, sizeof(h));
        if (h.n_type != NT_GNU_BUILD_ID || h.n_namesz != 4 || h.n_descsz < 2 ||
            h.n_descsz > NOTE_ID_MAX || len < sizeof(h) + 4 + h.n_descsz)
            continue;
        const uint8_t *id = note + sizeof(h) + 4;
        int n = snprintf(ret, size, "/usr/lib/debug/.build-id/%02x/", id[0]);
        for (uint32_t k = 1; k < h.n_descsz && n > 0 && (size_t)n + 3 < size; k++)
            n += snprintf(ret + n, size - (size_t)n, "%02x", id[k]);
        return n > 0 && (size_t)snprintf(ret + n, size - (size_t)n, ".debug") < size - (size_t)n;
    }
    return false;
}

static int load(struct library *l, const char *path)
{
    struct file_map file = {0}, debug = {0};
    struct elf e;
    char name[512];
    if (file_map_open(&file, path) < 0)
        return 0; /* the vdso, a deleted file: no names */
    int r = 0;
    if (elf_open(&e, &file)) {
        struct elf d;
        if (debug_file_name(&e, name, sizeof(name)) && file_map_open(&debug, name) == 0 &&
            elf_open(&d, &debug))
            r = add_symbols(l, &d, true);
        if (r == 0 && !l->symbols.len)
            r = add_symbols(l, &e, false);
    }
    file_map_release(&debug);
    file_map_release(&file);
    return r;
}

static void library_free(struct library *l)
{
    vec_release(&l->symbols);
    free(l->strings);
    free(l);
}

static int library_of(struct symbols *s, const struct module *m, struct library **ret)
{
    for (size_t i = 0; i < s->libraries.len; i++)
        if (s->libraries.data[i]->path == m->path) {
            *ret = s->libraries.data[i];
            return 0;
        }
    struct library *l = calloc(1, sizeof(*l));
    if (!l)
        return -ENOMEM;
    const char *slash = strrchr(m->path, '/');
    l->path = m->path;
    l->name = slash ? slash + 1 : m->path[0] ? m->path : "program";
    int r = load(l, m->path[0] ? m->path : "/proc/self/exe");
    if (r == 0)
        r = vec_push(&s->libraries, l);
    if (r < 0)
        library_free(l);
    else
        *ret = l;
    return r;
}

struct symbols *symbols_new(void)
{
    return calloc(1, sizeof(struct symbols));
}

void symbols_free(struct symbols *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->libraries.len; i++)
        library_free(s->libraries.data[i]);
    vec_release(&s->libraries);
    free(s);
}

/* Returns the symbol that is last before or at the address; of several there, the preferred one. */
static const struct symbol *search_unsorted(const struct library *l, uint64_t address)
{
    const struct symbol *best = NULL;
    for (const struct symbol *s = l->symbols.data; s < l->symbols.data + l->symbols.len; s++)
        if (s->address <= address && (!best || s->address > best->address ||
                                      (s->address == best->address && by_address(s, best) < 0)))
            best = s;
    return best;
}

static const struct symbol *search_sorted(const struct library *l, uint64_t address)
{
    size_t low = 0, high = l->symbols.len;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (l->symbols.data[middle].address <= address)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0)
        return NULL;
    const struct symbol *best = &l->symbols.data[low - 1];
    while (best > l->symbols.data && best[-1].address == best->address)
        best--;
    return best;
}

/*
 * Returns the last symbol that begins at or before the address and extends past it; one without a
 * size extends to the next symbol.
 */
static const struct symbol *search(struct library *l, uint64_t address)
{
    if (!l->symbols.len)
        return NULL;
    if (!l->sorted && l->searches++ == SEARCHES_UNSORTED) {
        qsort(l->symbols.data, l->symbols.len, sizeof(struct symbol), by_address);
        l->sorted = true;
    }
    const struct symbol *best = l->sorted ? search_sorted(l, address) : search_unsorted(l, address);
    if (!best)
        return NULL;
    return best->size == 0 || address - best->address < best->size ? best : NULL;
}

int symbols_find(struct symbols *s, uint64_t address, struct symbol_place *ret)
{
    const struct module *m = module_find(modules_current(), address);
    struct library *l;
    if (!m) {
        *ret = (struct symbol_place){.library = "", .offset = address};
        return 0;
    }
    int r = library_of(s, m, &l);
    if (r < 0)
        return r;
    uint64_t in_file = address - m->base;
    const struct symbol *symbol = search(l, in_file);
    *ret = (struct symbol_place){
        .library = l->name,
        .name = symbol ? l->strings + symbol->name : NULL,
        .offset = in_file - (symbol ? symbol->address : 0),
    };
    return 0;
}

/*
 * Reads a length and that many characters of a mangled name (Itanium C++ ABI, 5.1.3); NULL when
 * there is none.
 */
static const char *source_name(const char **at, size_t *ret_len)
{
    size_t len = 0;
    while (**at >= '0' && **at <= '9' && len < 4096)
        len = len * 10 + (size_t)(*(*at)++ - '0');
    const char *name = *at;
    if (len == 0 || strnlen(name, len) < len)
        return NULL;
    *at += len;
    *ret_len = len;
    return name;
}

const char *symbols_plain_name(const char *symbol, char *ret, size_t size)
{
    struct {
        const char *name;
        size_t len;
    } parts[16];

    size_t count = 0, used = 0;
    snprintf(ret, size, "%s", symbol);
    if (strncmp(symbol, "_Z", 2) != 0)
        return ret;
    const char *at = symbol + 2;
    at += *at == 'L';
    bool nested = *at == 'N';
    if (nested)
        for (at++; *at == 'K' || *at == 'V' || *at == 'R' || *at == 'O' || *at == 'L'; at++)
            ;
    do {
        if (nested && count > 0 && (*at == 'C' || *at == 'D') && at[1] >= '0' && at[1] <= '9') {
            /* a constructor or destructor is named like its class */
            parts[count] = parts[count - 1];
            at += 2;
        } else if (!(parts[count].name = source_name(&at, &parts[count].len))) {
            return ret;
        }
        count++;
    } while (nested && *at != 'E' && *at && count < ARRAY_SIZE(parts));
    for (size_t i = 0; i < count && used + 3 < size; i++)
        used += (size_t)snprintf(ret + used, size - used, "%s%.*s", i ? "::" : "",
                                 (int)parts[i].len, parts[i].name);
    return ret;
}
