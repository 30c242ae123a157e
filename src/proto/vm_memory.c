/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/vm_memory.h"

#include "base/file.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PAGE = 4096, PAGES = 512, MAPS_MAX = 64 << 20, HEADERS_MAX = 64, DYNAMIC_MAX = 256 };

enum { CHAIN_MAX = 1 << 20, NAME_LEN = 128 };

struct vm_page {
    uint64_t address; /* 0: not read */
    uint8_t bytes[PAGE];
};

static int read_memory(void *context, uint64_t address, void *bytes, size_t len)
{
    struct vm_memory *m = context;
    for (uint8_t *to = bytes; len;) {
        uint64_t start = address & ~(uint64_t)(PAGE - 1);
        struct vm_page *page = &m->pages[start / PAGE % PAGES];
        if (!start || start > INT64_MAX)
            return -EFAULT;
        if (page->address != start) {
            page->address = 0;
            if (pread(m->fd, page->bytes, PAGE, (off_t)start) != PAGE)
                return -EFAULT;
            page->address = start;
        }
        size_t n = MIN(len, (size_t)(PAGE - (address - start)));
        memcpy(to, page->bytes + (address - start), n);
        address += n;
        to += n;
        len -= n;
    }
    return 0;
}

/* Finds where the first byte of libjvm.so is mapped. */
static int find_library(struct vm_memory *m, pid_t pid)
{
    static const char name[] = "/libjvm.so";
    char path[64];
    _cleanup_free_ uint8_t *maps = NULL;
    size_t len;
    snprintf(path, sizeof(path), "/proc/%d/maps", pid);
    int r = file_read_path(path, MAPS_MAX, &maps, &len);
    if (r < 0)
        return r;
    const char *at = strstr((const char *)maps, name);
    if (!at)
        return -ENOENT;
    while (at > (const char *)maps && at[-1] != '\n')
        at--;
    uint64_t offset;
    return sscanf(at, "%" SCNx64 "-%*s %*s %" SCNx64, &m->base, &offset) == 2 && offset == 0
               ? 0
               : -ENOENT;
}

/*
 * Returns the address of a value of the dynamic table: glibc stores addresses there while it loads
 * a library, and musl leaves the offsets.
 */
static uint64_t address_of(const struct vm_memory *m, uint64_t value)
{
    return value < m->base ? m->base + value : value;
}

static int read_dynamic(struct vm_memory *m, uint64_t at)
{
    for (int i = 0; i < DYNAMIC_MAX; i++) {
        Elf64_Dyn d;
        int r = read_memory(m, at + (uint64_t)i * sizeof(d), &d, sizeof(d));
        if (r < 0)
            return r;
        if (d.d_tag == DT_NULL)
            return m->hash && m->symbols && m->strings ? 0 : -ENOENT;
        uint64_t *to = d.d_tag == DT_GNU_HASH ? &m->hash
                       : d.d_tag == DT_SYMTAB ? &m->symbols
                       : d.d_tag == DT_STRTAB ? &m->strings
                                              : NULL;
        if (to)
            *to = address_of(m, d.d_un.d_ptr);
    }
    return -ENOENT;
}

static int find_tables(struct vm_memory *m)
{
    Elf64_Ehdr file;
    int r = read_memory(m, m->base, &file, sizeof(file));
    if (r < 0)
        return r;
    if (memcmp(file.e_ident, ELFMAG, SELFMAG) != 0 || file.e_ident[EI_CLASS] != ELFCLASS64 ||
        file.e_phentsize != sizeof(Elf64_Phdr) || file.e_phnum > HEADERS_MAX)
        return -ENOENT;
    for (unsigned i = 0; i < file.e_phnum; i++) {
        Elf64_Phdr part;
        r = read_memory(m, m->base + file.e_phoff + i * sizeof(part), &part, sizeof(part));
        if (r < 0)
            return r;
        if (part.p_type == PT_DYNAMIC)
            return read_dynamic(m, m->base + part.p_vaddr);
    }
    return -ENOENT;
}

/* Looks a name up in the table of DT_GNU_HASH. */
static int find_symbol(void *context, const char *name, uint64_t *ret)
{
    struct vm_memory *m = context;
    struct hotspot_image image = vm_memory_image(m);
    uint32_t hash = 5381, buckets, first, bloom, index, other;
    for (const char *c = name; *c; c++)
        hash = hash * 33 + (uint8_t)*c;
    if (image_u32(&image, m->hash, &buckets) < 0 || image_u32(&image, m->hash + 4, &first) < 0 ||
        image_u32(&image, m->hash + 8, &bloom) < 0 || !buckets)
        return -ENOENT;
    uint64_t table = m->hash + 16 + (uint64_t)bloom * 8, chains = table + (uint64_t)buckets * 4;
    if (image_u32(&image, table + (uint64_t)(hash % buckets) * 4, &index) < 0)
        return -ENOENT;
    for (uint32_t n = 0; index >= first && n < CHAIN_MAX; index++, n++) {
        Elf64_Sym symbol;
        char text[NAME_LEN];
        if (image_u32(&image, chains + (uint64_t)(index - first) * 4, &other) < 0)
            return -ENOENT;
        if ((other | 1) == (hash | 1) &&
            read_memory(m, m->symbols + (uint64_t)index * sizeof(symbol), &symbol,
                        sizeof(symbol)) == 0 &&
            symbol.st_shndx != SHN_UNDEF &&
            image_string(&image, m->strings + symbol.st_name, text, sizeof(text)) == 0 &&
            strcmp(text, name) == 0) {
            *ret = m->base + symbol.st_value;
            return 0;
        }
        if (other & 1)
            return -ENOENT;
    }
    return -ENOENT;
}

int vm_memory_open(struct vm_memory *ret, const struct vm *vm)
{
    char path[64];
    struct vm_memory m = VM_MEMORY;
    int r = find_library(&m, vm->pid);
    if (r < 0)
        return r;
    snprintf(path, sizeof(path), "/proc/%d/mem", vm->pid);
    m.fd = open(path, O_RDONLY | O_CLOEXEC);
    if (m.fd < 0)
        return -errno;
    m.pages = calloc(PAGES, sizeof(*m.pages));
    r = m.pages ? find_tables(&m) : -ENOMEM;
    if (r < 0) {
        vm_memory_close(&m);
        return r;
    }
    *ret = m;
    return 0;
}

void vm_memory_close(struct vm_memory *m)
{
    close_descriptor(&m->fd);
    free(m->pages);
    *m = VM_MEMORY;
}

struct hotspot_image vm_memory_image(struct vm_memory *m)
{
    return (struct hotspot_image){.context = m, .symbol = find_symbol, .read = read_memory};
}
