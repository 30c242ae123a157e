/* SPDX-License-Identifier: Apache-2.0 */
#include "unwind/symbols.h"

#include "base/arena.h"
#include "base/file.h"
#include "base/map.h"
#include "base/pages.h"
#include "base/vec.h"
#include "unwind/modules.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SECTIONS_MAX = 4096, NOTE_ID_MAX = 64 };

/*
 * The symbols of a larger library, usually only libjvm, are not copied: each search reads what it
 * needs from the file. Copying all of them would cost a short-lived program 3 ms and 4 MiB.
 */
enum { COPIED_MAX = 256 << 10, NAME_LEN_MAX = 4096 };

struct symbol {
    uint32_t distance; /* from the library's lowest address */
    uint32_t index;    /* in the table */
};

/* A section of the file. */
struct part {
    uint64_t offset;
    size_t len;
    uint8_t *copy; /* NULL: the section is read from the file */
};

/*
 * The symbols of a library are in groups of neighbours. The groups are in the order of addresses;
 * the symbols in a group are in any order. Sorting the 60,000 symbols of a VM takes almost 10 ms,
 * and this takes a tenth of that.
 */
struct library {
    const char *path; /* in the table of modules */
    const char *name;
    int fd; /* -1: everything is copied */
    dev_t device;
    ino_t inode;
    struct part table, strings;
    struct symbol *symbols;
    /* the first symbol of each group, and after the last group the number of symbols */
    uint32_t *groups;
    size_t count;     /* number of groups; 0: no symbols */
    uint64_t low;     /* the lowest address */
    unsigned shift;   /* an address's distance from `low` >> shift is the number of its group */
    struct map names; /* offset in the strings -> text */
    struct arena texts;
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

/* Finds the next function of a table from *i on, and moves *i past it. */
static bool next_function(const uint8_t *table, size_t n, size_t *i, ElfW(Sym) * ret)
{
    while (*i < n) {
        memcpy(ret, table + (*i)++ * sizeof(*ret), sizeof(*ret));
        unsigned type = ELF64_ST_TYPE(ret->st_info);
        if ((type == STT_FUNC || type == STT_GNU_IFUNC) && ret->st_shndx != SHN_UNDEF)
            return true;
    }
    return false;
}

static size_t group_of(const struct library *l, uint64_t distance)
{
    return MIN(distance >> l->shift, l->count - 1);
}

/*
 * Counts the symbols of each group, and then puts each symbol at the end of the filled part of its
 * group.
 */
static int group(struct library *l, const uint8_t *table)
{
    enum { USUAL = 8 /* symbols of a group */ };

    ElfW(Sym) s;
    size_t entries = MIN(l->table.len / sizeof(s), UINT32_MAX), n = 0, i;
    uint64_t high = 0;
    l->low = UINT64_MAX;
    for (i = 0; next_function(table, entries, &i, &s); n++) {
        l->low = MIN(l->low, s.st_value);
        high = MAX(high, s.st_value);
    }
    if (n == 0)
        return 0;
    high = MIN(high - l->low, UINT32_MAX); /* those beyond are in no group */
    while (high >> l->shift > n / USUAL)
        l->shift++;
    l->count = (high >> l->shift) + 1;
    l->symbols = malloc(n * sizeof(*l->symbols));
    l->groups = calloc(l->count + 2, sizeof(*l->groups));
    if (!l->symbols || !l->groups)
        return -ENOMEM;
    /* While the symbols are put in place, a group's beginning is in the element after its own. */
    for (i = 0; next_function(table, entries, &i, &s);)
        if (s.st_value - l->low <= high)
            l->groups[group_of(l, s.st_value - l->low) + 2]++;
    for (size_t k = 2; k < l->count + 2; k++)
        l->groups[k] += l->groups[k - 1];
    for (i = 0; next_function(table, entries, &i, &s);)
        if (s.st_value - l->low <= high)
            l->symbols[l->groups[group_of(l, s.st_value - l->low) + 1]++] =
                (struct symbol){(uint32_t)(s.st_value - l->low), (uint32_t)(i - 1)};
    return 0;
}

static int copy_part(struct part *p, const uint8_t *bytes)
{
    p->copy = malloc(p->len);
    if (!p->copy)
        return -ENOMEM;
    memcpy(p->copy, bytes, p->len);
    return 0;
}

static int add_table(struct library *l, const struct elf *e, const ElfW(Shdr) * table)
{
    size_t len = 0, strings_len = 0;
    const uint8_t *bytes = section(e, (unsigned)(table - e->sections), &len),
                  *strings = section(e, table->sh_link, &strings_len);
    if (!bytes || !strings || strings_len == 0 || strings[strings_len - 1] != 0)
        return 0;
    pages_to_read(bytes, len);
    l->table = (struct part){.offset = (uint64_t)(bytes - e->data), .len = len};
    l->strings = (struct part){.offset = (uint64_t)(strings - e->data), .len = strings_len};
    int r = group(l, bytes);
    if (r < 0 || !l->count || len + strings_len > COPIED_MAX)
        return r;
    r = copy_part(&l->table, bytes);
    return r < 0 ? r : copy_part(&l->strings, strings);
}

/* Uses the full symbol table if there is one, otherwise the exported symbols. */
static int add_symbols(struct library *l, const struct elf *e, bool full_only)
{
    const uint32_t types[] = {SHT_SYMTAB, SHT_DYNSYM};
    for (size_t t = 0; t < (full_only ? 1 : 2); t++)
        for (unsigned i = 0; i < e->count; i++)
            if (e->sections[i].sh_type == types[t]) {
                int r = add_table(l, e, &e->sections[i]);
                if (r < 0 || l->count)
                    return r;
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

static bool open_elf(const char *path, int *ret_fd, struct file_map *ret_file, struct elf *ret)
{
    *ret_fd = open(path, O_RDONLY | O_CLOEXEC);
    return *ret_fd >= 0 && file_map_fd(ret_file, *ret_fd) == 0 && elf_open(ret, ret_file);
}

/* Keeps the file open if it will be read again. */
static void keep_file(struct library *l, int *fd)
{
    struct stat st;
    if (l->strings.copy || fstat(*fd, &st) < 0)
        return;
    l->device = st.st_dev;
    l->inode = st.st_ino;
    l->fd = *fd;
    *fd = -1;
}

static int load(struct library *l, const char *path)
{
    struct file_map file = {0}, debug = {0};
    struct elf e, d;
    int fd = -1, debug_fd = -1, r = 0;
    char name[512];
    /* The vdso and a deleted file have no names. */
    if (open_elf(path, &fd, &file, &e)) {
        if (debug_file_name(&e, name, sizeof(name)) && open_elf(name, &debug_fd, &debug, &d))
            r = add_symbols(l, &d, true);
        int *from = l->count ? &debug_fd : &fd;
        if (r == 0 && !l->count)
            r = add_symbols(l, &e, false);
        if (r == 0 && l->count)
            keep_file(l, from);
    }
    file_map_release(&debug);
    file_map_release(&file);
    if (debug_fd >= 0)
        close(debug_fd);
    if (fd >= 0)
        close(fd);
    return r;
}

static void library_free(struct library *l)
{
    free(l->symbols);
    free(l->groups);
    free(l->table.copy);
    free(l->strings.copy);
    map_release(&l->names);
    arena_release(&l->texts);
    if (l->fd >= 0)
        close(l->fd);
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
    l->fd = -1;
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

/*
 * Reads a part of a file. The program may have closed our descriptor and opened another file with
 * the same number, which is detected.
 */
static bool part_read(const struct library *l, const struct part *p, uint64_t at, void *to,
                      size_t n)
{
    struct stat st;
    if (at > p->len || n > p->len - at)
        return false;
    if (p->copy) {
        memcpy(to, p->copy + at, n);
        return true;
    }
    return l->fd >= 0 && fstat(l->fd, &st) == 0 && st.st_dev == l->device &&
           st.st_ino == l->inode && pread(l->fd, to, n, (off_t)(p->offset + at)) == (ssize_t)n;
}

static bool symbol_read(const struct library *l, const struct symbol *s, ElfW(Sym) * ret)
{
    return part_read(l, &l->table, (uint64_t)s->index * sizeof(*ret), ret, sizeof(*ret));
}

/*
 * Returns whether the first of two symbols at one address is preferred: an exported one, then one
 * with a size, then the one whose name comes first.
 */
static bool is_preferred(const struct library *l, const struct symbol *a, const struct symbol *b)
{
    ElfW(Sym) x, y;
    if (!symbol_read(l, a, &x) || !symbol_read(l, b, &y))
        return false;
    bool x_local = ELF64_ST_BIND(x.st_info) == STB_LOCAL,
         y_local = ELF64_ST_BIND(y.st_info) == STB_LOCAL;
    if (x_local != y_local)
        return y_local;
    return x.st_size != y.st_size ? x.st_size > y.st_size : x.st_name < y.st_name;
}

/*
 * Finds the last symbol that begins at or before the address and extends past it; one without a
 * size extends to the next symbol.
 */
static bool search(const struct library *l, uint64_t address, ElfW(Sym) * ret)
{
    const struct symbol *best = NULL;
    uint64_t distance = address - l->low;
    if (!l->count || address < l->low)
        return false;
    for (size_t g = group_of(l, distance) + 1; !best && g-- > 0;)
        for (uint32_t i = l->groups[g]; i < l->groups[g + 1]; i++) {
            const struct symbol *s = &l->symbols[i];
            if (s->distance <= distance &&
                (!best || s->distance > best->distance ||
                 (s->distance == best->distance && is_preferred(l, s, best))))
                best = s;
        }
    return best && symbol_read(l, best, ret) &&
           (ret->st_size == 0 || address - ret->st_value < ret->st_size);
}

/* Returns a name from the library's strings, or NULL if it cannot be read. */
static const char *name_of(struct library *l, uint32_t offset)
{
    char text[NAME_LEN_MAX];
    const uint64_t *known = map_get(&l->names, offset);
    if (known)
        return (const char *)(uintptr_t)*known;
    size_t n = MIN(sizeof(text), l->strings.len - MIN(offset, l->strings.len));
    if (n == 0 || !part_read(l, &l->strings, offset, text, n))
        return NULL;
    const char *copy = arena_copy(&l->texts, text, strnlen(text, n));
    return copy && map_put(&l->names, offset, (uintptr_t)copy) == 0 ? copy : NULL;
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
    ElfW(Sym) symbol;
    const char *name = search(l, in_file, &symbol) ? name_of(l, symbol.st_name) : NULL;
    *ret = (struct symbol_place){
        .library = l->name,
        .name = name,
        .offset = in_file - (name ? symbol.st_value : 0),
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
            /* a constructor or destructor has the name of its class */
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
