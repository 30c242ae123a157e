/* SPDX-License-Identifier: Apache-2.0 */
#include "core_file.h"

#include "base/vec.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/procfs.h>
#include <sys/stat.h>
#include <sys/user.h>
#include <unistd.h>

/* The mapped contents of a file. */
struct file {
    const uint8_t *bytes;
    uint64_t size;
};

/* Describes `size` bytes of memory, from `address` on, that a file holds at an offset. */
struct part {
    uint64_t address, size, offset;
    const struct file *file;
    const char *path; /* path of a library; NULL means the core itself */
};

struct core {
    struct file self;
    /* those of the core come first, because they hold what the process had written */
    VEC(struct part) parts;
    VEC(struct core_thread) threads;
    VEC(struct file *) files;
    struct modules *modules;
    const char *root;
    const struct file *libjvm;
    uint64_t libjvm_base;
};

static bool map_file(const char *path, struct file *ret)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    void *bytes = fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0
                      ? mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0)
                      : MAP_FAILED;
    if (fd >= 0)
        close(fd);
    if (bytes == MAP_FAILED)
        return false;
    *ret = (struct file){bytes, (uint64_t)st.st_size};
    return true;
}

/* Returns the bytes at an offset, or NULL when the file does not have all of them. */
static const void *at(const struct file *f, uint64_t offset, uint64_t size)
{
    return offset <= f->size && size <= f->size - offset ? f->bytes + offset : NULL;
}

static const Elf64_Ehdr *header(const struct file *f)
{
    const Elf64_Ehdr *e = at(f, 0, sizeof(*e));
    return e && memcmp(e->e_ident, ELFMAG, SELFMAG) == 0 && e->e_ident[EI_CLASS] == ELFCLASS64 &&
                   e->e_phentsize == sizeof(Elf64_Phdr) &&
                   at(f, e->e_phoff, e->e_phnum * sizeof(Elf64_Phdr))
               ? e
               : NULL;
}

static const Elf64_Phdr *segments(const struct file *f, const Elf64_Ehdr *e)
{
    return (const Elf64_Phdr *)(const void *)(f->bytes + e->e_phoff);
}

int core_read(void *context, uint64_t address, void *bytes, size_t len)
{
    const struct core *c = context;
    for (size_t i = 0; len > 0 && i < c->parts.len; i++) {
        const struct part *p = &c->parts.data[i];
        uint64_t skip = address - p->address, n = MIN(len, p->size - skip);
        const void *found = skip < p->size ? at(p->file, p->offset + skip, n) : NULL;
        if (!found)
            continue;
        memcpy(bytes, found, n);
        return n == len ? 0 : core_read(context, address + n, (char *)bytes + n, len - n);
    }
    return len ? -EFAULT : 0;
}

static void add_thread(struct core *c, const struct elf_prstatus *status)
{
    struct user_regs_struct r;
    memcpy(&r, &status->pr_reg, sizeof(r));
#if defined(__x86_64__)
    struct registers registers = {.pc = r.rip,
                                  .sp = r.rsp,
                                  .fp = r.rbp,
                                  .link = r.rax,
                                  .method = r.rbx,
                                  .sender_sp = r.r13,
                                  .old_sender_sp = r.r13,
                                  .bcp = r.r13,
                                  .popped_sp = r.rbx};
#elif defined(__aarch64__)
    struct registers registers = {.pc = r.pc,
                                  .sp = r.sp,
                                  .fp = r.regs[29],
                                  .link = r.regs[30],
                                  .method = r.regs[12],
                                  .sender_sp = r.regs[19],
                                  .old_sender_sp = r.regs[13],
                                  .bcp = r.regs[22],
                                  .popped_sp = r.regs[20]};
#endif
    struct core_thread t = {.tid = status->pr_pid, .registers = registers};
    (void)!vec_push(&c->threads, t);
}

static const struct file *open_file(struct core *c, const char *name)
{
    char *path = NULL;
    struct file *f = malloc(sizeof(*f));
    for (size_t i = 0; i < c->parts.len; i++)
        if (c->parts.data[i].path && strcmp(c->parts.data[i].path, name) == 0) {
            free(f);
            return c->parts.data[i].file;
        }
    bool ok = f && asprintf(&path, "%s%s", c->root, name) > 0 && map_file(path, f) &&
              vec_push(&c->files, f) == 0;
    free(path);
    if (!ok)
        free(f);
    return ok ? f : NULL;
}

/*
 * NT_FILE holds the number of mappings and the page size, then begin, end and offset (in pages) of
 * each mapping, then their names.
 */
static void add_files(struct core *c, const uint64_t *words, uint64_t size)
{
    uint64_t n = size >= 16 ? words[0] : 0, room = size / 8;
    if (n > room || 2 + 3 * n > room)
        return;
    const char *name = (const char *)(words + 2 + 3 * n), *end = (const char *)words + size;
    for (uint64_t i = 0; i < n; i++) {
        const uint64_t *w = words + 2 + 3 * i;
        const char *stop = memchr(name, 0, (size_t)(end - name));
        if (!stop)
            return;
        const struct file *f = open_file(c, name);
        if (f)
            (void)!vec_push(&c->parts,
                            ((struct part){w[0], w[1] - w[0], w[2] * words[1], f, name}));
        name = stop + 1;
    }
}

static void read_notes(struct core *c, const Elf64_Phdr *p)
{
    uint64_t offset = p->p_offset, end = offset + p->p_filesz;
    const Elf64_Nhdr *n;
    while (offset < end && (n = at(&c->self, offset, sizeof(*n)))) {
        uint64_t body = offset + sizeof(*n) + ((n->n_namesz + 3) & ~UINT64_C(3));
        const void *bytes = at(&c->self, body, n->n_descsz);
        if (bytes && n->n_type == NT_PRSTATUS && n->n_descsz >= sizeof(struct elf_prstatus))
            add_thread(c, bytes);
        if (bytes && n->n_type == NT_FILE)
            add_files(c, bytes, n->n_descsz);
        offset = body + ((n->n_descsz + 3) & ~UINT64_C(3));
    }
}

static int by_address(const void *a, const void *b)
{
    const struct module *x = a, *y = b;
    return (x->begin > y->begin) - (x->begin < y->begin);
}

/* Describes the library that begins with this part. */
static bool describe_module(const struct part *p, struct module *ret)
{
    const Elf64_Ehdr *e = p->path && p->offset == 0 ? header(p->file) : NULL;
    struct module m = {.begin = UINT64_MAX, .base = UINT64_MAX, .path = p->path};
    for (int i = 0; e && i < e->e_phnum; i++) {
        const Elf64_Phdr *s = &segments(p->file, e)[i];
        if (s->p_type == PT_LOAD && m.base == UINT64_MAX)
            m.base = p->address - (s->p_vaddr & ~UINT64_C(4095));
        if (s->p_type == PT_LOAD) {
            m.begin = MIN(m.begin, m.base + s->p_vaddr);
            m.end = MAX(m.end, m.base + s->p_vaddr + s->p_memsz);
        } else if (s->p_type == PT_GNU_EH_FRAME) {
            m.eh_frame_hdr = s->p_vaddr;
            m.eh_frame_size = s->p_memsz;
        }
    }
    if (m.eh_frame_hdr)
        m.eh_frame_hdr += m.base;
    *ret = m;
    return m.begin < m.end;
}

static int find_modules(struct core *c)
{
    struct modules *m = c->modules = calloc(1, sizeof(*m) + c->parts.len * sizeof(m->modules[0]));
    if (!m)
        return -ENOMEM;
    for (size_t i = 0; i < c->parts.len; i++) {
        const struct part *p = &c->parts.data[i];
        struct module *at = &m->modules[m->count];
        if (!describe_module(p, at))
            continue;
        m->count++;
        size_t len = strlen(p->path);
        if (len > 10 && strcmp(p->path + len - 10, "/libjvm.so") == 0) {
            c->libjvm = p->file;
            c->libjvm_base = at->base;
        }
    }
    m->generation = 1;
    qsort(m->modules, m->count, sizeof(m->modules[0]), by_address);
    return 0;
}

int core_symbol(void *context, const char *name, uint64_t *ret)
{
    const struct core *c = context;
    const struct file *f = c->libjvm;
    const Elf64_Ehdr *e = f ? header(f) : NULL;
    const Elf64_Shdr *sections = e ? at(f, e->e_shoff, e->e_shnum * sizeof(*sections)) : NULL;
    for (int i = 0; sections && i < e->e_shnum; i++) {
        const Elf64_Shdr *s = &sections[i],
                         *strings = &sections[s->sh_link < e->e_shnum ? s->sh_link : 0];
        const Elf64_Sym *symbols =
            s->sh_type == SHT_DYNSYM ? at(f, s->sh_offset, s->sh_size) : NULL;
        const char *names = symbols ? at(f, strings->sh_offset, strings->sh_size) : NULL;
        for (uint64_t k = 0; names && k < s->sh_size / sizeof(*symbols); k++)
            if (symbols[k].st_name < strings->sh_size &&
                strcmp(names + symbols[k].st_name, name) == 0) {
                *ret = c->libjvm_base + symbols[k].st_value;
                return 0;
            }
    }
    return -ENOENT;
}

static int read_core(struct core *c, const char *path)
{
    const Elf64_Ehdr *e = map_file(path, &c->self) ? header(&c->self) : NULL;
    if (!e || e->e_type != ET_CORE || e->e_machine != EM_X86_64)
        return -EINVAL;
    const Elf64_Phdr *p = segments(&c->self, e);
    for (int i = 0; i < e->e_phnum; i++)
        if (p[i].p_type == PT_LOAD && p[i].p_filesz &&
            vec_push(&c->parts, ((struct part){p[i].p_vaddr, p[i].p_filesz, p[i].p_offset, &c->self,
                                               NULL})) < 0)
            return -ENOMEM;
    for (int i = 0; i < e->e_phnum; i++)
        if (p[i].p_type == PT_NOTE)
            read_notes(c, &p[i]);
    return find_modules(c);
}

int core_open(struct core **ret, const char *path, const char *root, char *why, size_t size)
{
    struct core *c = calloc(1, sizeof(*c));
    int r = -ENOMEM;
    if (c) {
        c->root = root;
        r = read_core(c, path);
    }
    if (r == 0 && !c->libjvm)
        r = -ENOENT;
    if (r < 0) {
        snprintf(why, size, "%s",
                 r == -ENOMEM   ? "out of memory"
                 : r == -ENOENT ? "no libjvm.so of this process can be read"
                                : "no core file of a process on x86-64");
        core_close(c);
        return r;
    }
    *ret = c;
    return 0;
}

void core_close(struct core *c)
{
    if (!c)
        return;
    for (size_t i = 0; i < c->files.len; i++) {
        munmap((void *)(uintptr_t)c->files.data[i]->bytes, c->files.data[i]->size);
        free(c->files.data[i]);
    }
    if (c->self.bytes)
        munmap((void *)(uintptr_t)c->self.bytes, c->self.size);
    vec_release(&c->parts);
    vec_release(&c->threads);
    vec_release(&c->files);
    free(c->modules);
    free(c);
}

const struct core_thread *core_threads(const struct core *c, unsigned *ret_count)
{
    *ret_count = (unsigned)c->threads.len;
    return c->threads.data;
}

const struct modules *core_modules(const struct core *c)
{
    return c->modules;
}
