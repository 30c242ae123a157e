/* SPDX-License-Identifier: Apache-2.0 */
#include "timeline/pack.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

/* The number of bytes that are written to the file at a time. */
enum { WRITE_BYTES = 4 << 20 };

/* The largest row, in words of 64 bits. */
enum { ROW_WORDS = (TL_TIME_BITS + TL_SHAPE_BITS + 4 * TL_REFERENCE_BITS + 63) / 64 };

int tl_packer_init(struct tl_packer *p)
{
    *p = (struct tl_packer){.shapes = calloc(TL_SHAPES, sizeof(*p->shapes)),
                            .shape_of = calloc(UINT16_MAX + 1, sizeof(*p->shape_of))};
    return p->shapes && p->shape_of ? 0 : -ENOMEM;
}

void tl_packer_release(struct tl_packer *p)
{
    tl_packed_file_free(p->file);
    free(p->path);
    vec_release(&p->bytes);
    vec_release(&p->blocks);
    free(p->shapes);
    free(p->shape_of);
    *p = (struct tl_packer){0};
}

void tl_packed_file_free(struct tl_packed_file *f)
{
    if (!f)
        return;
    if (f->map)
        munmap((void *)(uintptr_t)f->map, f->mapped);
    out_file_release(&f->file);
    free(f);
}

/* Creates the file and maps it for the largest possible number of nodes, into which it grows. */
static int file_new(struct tl_packed_file **ret, const char *path)
{
    _cleanup_(tl_packed_file_freep) struct tl_packed_file *f = calloc(1, sizeof(*f));
    if (!f)
        return -ENOMEM;
    f->file = OUT_FILE;
    size_t most = ((size_t)TL_NONE + 1) * 2 * ROW_WORDS * 8;
    int r = out_file_open_private(&f->file, path);
    void *map = r == 0 ? mmap(NULL, most, PROT_READ, MAP_SHARED, f->file.fd, 0) : MAP_FAILED;
    if (map == MAP_FAILED)
        return r < 0 ? r : -errno;
    f->map = map;
    f->mapped = most;
    if (lseek(f->file.fd, (off_t)timeline_packed_offset(), SEEK_SET) < 0)
        return -errno;
    *ret = TAKE(f);
    return 0;
}

static const uint8_t *bits_at(const struct tl_packer *p, uint64_t at)
{
    return at < p->written ? p->file->map + timeline_packed_offset() + at
                           : p->bytes.data + (at - p->written);
}

/* Moves all bytes back into memory when the file cannot grow. */
static int leave_file(struct tl_packer *p)
{
    size_t n = p->written, in_memory = p->bytes.len;
    int r = vec_extend(&p->bytes, n);
    if (r < 0)
        return r;
    memmove(p->bytes.data + n, p->bytes.data, in_memory);
    memcpy(p->bytes.data, p->file->map + timeline_packed_offset(), n);
    p->written = 0;
    tl_packed_file_free(TAKE(p->file));
    return 0;
}

/* Moves the bytes into the file, which is created when there are many nodes. */
static int into_file(struct tl_packer *p)
{
    struct rlimit limit;
    size_t n = p->bytes.len;
    if (!p->file && p->path && p->n_nodes >= TL_INDEX_NODES) {
        if (file_new(&p->file, p->path) < 0)
            p->file = NULL;
        free(TAKE(p->path));
    }
    if (!p->file)
        return 0;
    /* trying to write beyond the limit would raise SIGXFSZ */
    uint64_t end = timeline_packed_offset() + p->written + n + TL_PACKED_PADDING;
    bool fits = getrlimit(RLIMIT_FSIZE, &limit) == 0 && end <= limit.rlim_cur;
    if (!fits || file_write_all(p->file->file.fd, p->bytes.data, n) < 0 ||
        ftruncate(p->file->file.fd, (off_t)end) < 0)
        return leave_file(p);
    p->written += n;
    vec_clear(&p->bytes);
    return 0;
}

static unsigned bits_of(uint64_t value)
{
    return value ? 64 - (unsigned)__builtin_clzll(value) : 0;
}

/* Returns the number of a shape, which may be new. */
static uint16_t shape_number(struct tl_packer *p, const struct tl_node *n)
{
    uint16_t shape = TL_SHAPE_OF(n->kind, n->edge, n->flags), *number = &p->shape_of[shape];
    if (unlikely(!*number)) {
        p->shapes[p->n_shapes] = shape;
        *number = ++p->n_shapes;
    }
    return (uint16_t)(*number - 1);
}

/* The values of a block, column by column. Columns that it does not have are 0. */
struct columns {
    uint64_t of[TL_COLUMNS][TL_BLOCK_NODES];
    uint64_t all[TL_COLUMNS]; /* all bits that occur */
};

static void columns_fill(struct tl_packer *p, uint32_t first, const struct tl_node *nodes, size_t n,
                         struct columns *c)
{
    if (n < TL_BLOCK_NODES)
        memset(c->of, 0, sizeof(c->of));
    struct tl_values all = {0};
    for (uint32_t i = 0; i < n; i++) {
        const struct tl_node *one = &nodes[i];
        const struct tl_values v = {
            .time = one->time - nodes[0].time,
            .shape = shape_number(p, one),
            .prev = one->prev == TL_NONE ? 0 : first + i - one->prev,
            .waker = tl_waker_code(first + i, one->waker),
        };
        all.time |= c->of[TL_TIME][i] = v.time;
        all.shape |= c->of[TL_SHAPE][i] = v.shape;
        all.thread |= c->of[TL_THREAD][i] = one->thread;
        all.prev |= c->of[TL_PREV][i] = v.prev;
        all.waker |= c->of[TL_WAKER][i] = v.waker;
        all.context |= c->of[TL_CONTEXT][i] = one->context;
    }
    c->all[TL_TIME] = all.time;
    c->all[TL_SHAPE] = all.shape;
    c->all[TL_THREAD] = all.thread;
    c->all[TL_PREV] = all.prev;
    c->all[TL_WAKER] = all.waker;
    c->all[TL_CONTEXT] = all.context;
}

/* Sets where each column begins in a row. */
static void lay_out(struct tl_block *b, const struct columns *columns)
{
    for (int c = 0; c < TL_COLUMNS; c++)
        b->begin[c + 1] = (uint8_t)(b->begin[c] + bits_of(columns->all[c]));
    b->row = (uint8_t)((b->begin[TL_COLUMNS] + 7) / 8);
}

static void put_word(uint8_t *to, uint64_t word)
{
    word = htole64(word);
    memcpy(to, &word, sizeof(word));
}

/*
 * Writes the rows one after the other and returns the end of what was written. The words of all
 * rows are composed column by column, in loops that a compiler turns into vector instructions.
 */
static uint8_t *put_rows(const struct tl_block *b, const struct columns *columns, size_t n,
                         uint8_t *to)
{
    uint64_t words[ROW_WORDS][TL_BLOCK_NODES];
    size_t used = MAX((b->begin[TL_COLUMNS] + 63) / 64, 2);
    memset(words, 0, used * sizeof(words[0]));
    for (int c = 0; c < TL_COLUMNS; c++) {
        const uint64_t *from = columns->of[c];
        unsigned word = b->begin[c] / 64, bit = b->begin[c] % 64;
        if (!columns->all[c])
            continue;
        for (int i = 0; i < TL_BLOCK_NODES; i++)
            words[word][i] |= from[i] << bit;
        if (b->begin[c + 1] > 64 * (word + 1))
            for (int i = 0; i < TL_BLOCK_NODES; i++)
                words[word + 1][i] |= from[i] >> (64 - bit);
    }
    const size_t row = b->row;
    for (size_t i = 0; i < n; i++, to += row) { /* the next row begins within what is written */
        put_word(to, words[0][i]);
        put_word(to + sizeof(uint64_t), words[1][i]);
        for (size_t k = 2; k < used; k++)
            put_word(to + k * sizeof(uint64_t), words[k][i]);
    }
    return to;
}

int tl_packer_put(struct tl_packer *p, size_t block, const struct tl_node *nodes, size_t n)
{
    struct columns columns;
    int r = block < p->blocks.len ? 0 : vec_extend(&p->blocks, 1);
    if (r == 0)
        r = vec_reserve(&p->bytes, p->bytes.len + (TL_BLOCK_NODES + 1) * ROW_WORDS * 8);
    if (r < 0)
        return r;
    columns_fill(p, (uint32_t)(block << TL_BLOCK_BITS), nodes, n, &columns);
    struct tl_block b = {.time = nodes[0].time, .at = p->written + p->bytes.len};
    lay_out(&b, &columns);
    uint8_t *to = put_rows(&b, &columns, n, vec_end(&p->bytes));
    p->bytes.len = (size_t)(to - p->bytes.data);
    p->blocks.data[block] = b;
    p->n_nodes = MAX(p->n_nodes, (block << TL_BLOCK_BITS) + n);
    return p->bytes.len >= WRITE_BYTES && (p->file || p->path) ? into_file(p) : 0;
}

struct tl_node tl_packer_node(const struct tl_packer *p, uint32_t node)
{
    const struct tl_block *b = &p->blocks.data[node >> TL_BLOCK_BITS];
    return tl_node_unpack(bits_at(p, b->at), b, p->shapes, node, (size_t)TL_NONE + 1);
}

int tl_packer_finish(struct tl_packer *p, struct timeline *t)
{
    int r = vec_extend(&p->bytes, TL_PACKED_PADDING);
    if (r == 0 && p->file)
        r = into_file(p);
    if (r < 0)
        return r;
    t->n_nodes = p->n_nodes;
    t->blocks = p->blocks.data;
    t->n_blocks = p->blocks.len;
    t->shapes = TAKE(p->shapes);
    t->n_shapes = TL_SHAPES;
    t->packed_file = TAKE(p->file);
    t->n_packed = p->written + p->bytes.len;
    t->packed = t->packed_file ? t->packed_file->map + timeline_packed_offset() : p->bytes.data;
    if (!t->packed_file)
        p->bytes = (__typeof__(p->bytes)){0};
    p->blocks = (__typeof__(p->blocks)){0};
    return 0;
}
