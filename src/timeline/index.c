/* SPDX-License-Identifier: Apache-2.0 */
#include "timeline/index.h"

#include "base/do_both.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/pages.h"
#include "timeline/pack.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/*
 * The index file: this header, then the arrays, each aligned to 8 bytes. It is in the machine's own
 * byte order, because it is a cache and not a format.
 */
#define ONE_(type, name) +1

enum { ARRAYS = TL_ARRAYS(ONE_), MAGIC = 0x6a766d74 }; /* "tmvj" */

#undef ONE_

#define VERSION 28

struct index_header {
    uint32_t magic, version;
    uint64_t key, file_len;
    uint64_t sum; /* of the arrays */
    uint64_t n_nodes;
    uint64_t origin_ns, start_epoch, end_ns, lost, lost_any, unbound, began_before, cut_at, wake_ns;
    uint32_t instrumented, deadlocks, unsampled, owners_unknown, vm_version, part_of_time;
    uint32_t uncounted, part_of;

    struct {
        uint64_t offset, n;
        /* kept: an offset of 0 means that the array has not been computed yet */
    } arrays[ARRAYS], kept[TL_KEPT_ARRAYS];
};

void timeline_index_stamp(uint32_t start[8], uint64_t key, uint64_t len)
{
    struct index_header h;
    memcpy(&h, start, 32);
    h.magic = MAGIC;
    h.version = VERSION;
    h.key = key;
    h.file_len = len;
    memcpy(start, &h, 32);
}

bool timeline_index_is_foreign(const char *path)
{
    const uint32_t start = MAGIC;
    return file_is_foreign(path, &start, sizeof(start));
}

/* A file that is being written while the timeline is in use. */
struct tl_index {
    char *path;
    uint64_t key;
    const struct timeline *t;
    struct out_file file;
    struct file_map kept; /* the mapped file, once an array has been added that exists only in it */
    bool writing;
    pthread_t thread;
};

static struct index_header header_of(const struct timeline *t, uint64_t key)
{
    struct index_header h = {.magic = MAGIC,
                             .version = VERSION,
                             .key = key,
                             .n_nodes = t->n_nodes,
                             .origin_ns = t->origin_ns,
                             .start_epoch = t->start_epoch,
                             .end_ns = t->end_ns,
                             .lost = t->lost,
                             .lost_any = t->lost_any,
                             .unbound = t->unbound,
                             .began_before = t->began_before,
                             .cut_at = t->cut_at,
                             .wake_ns = t->wake_ns,
                             .instrumented = t->instrumented,
                             .deadlocks = t->deadlocks,
                             .unsampled = t->unsampled,
                             .owners_unknown = t->owners_unknown,
                             .vm_version = t->vm_version,
                             .part_of_time = t->part_of_time,
                             .uncounted = t->uncounted,
                             .part_of = t->part_of};
    return h;
}

size_t timeline_packed_offset(void)
{
    return sizeof(struct index_header);
}

/* Half of an array; one thread computes its sum. */
struct half {
    const uint8_t *bytes;
    size_t n;
    uint64_t sum;
};

/* Computes several sums at a time, because each multiplication waits for the previous one. */
static void *sum_up(void *arg)
{
    enum { LANES = 4, STEP_BYTES = 4 << 20 };

    struct half *h = arg;
    uint64_t lane[LANES] = {1, 2, 3, 4}, rest[LANES] = {0};
    size_t i = 0;
    for (; h->n - i >= sizeof(lane); i += sizeof(lane)) {
        if (i % STEP_BYTES == 0)
            pages_to_read(h->bytes + i, MIN(h->n - i, (size_t)STEP_BYTES));
        for (int k = 0; k < LANES; k++) {
            uint64_t word;
            memcpy(&word, h->bytes + i + sizeof(word) * (size_t)k, sizeof(word));
            lane[k] = (lane[k] ^ word) * UINT64_C(0x9e3779b97f4a7c15);
            lane[k] ^= lane[k] >> 29;
        }
    }
    if (h->n > i)
        memcpy(rest, h->bytes + i, h->n - i);
    h->sum = h->n;
    for (int k = 0; k < LANES; k++)
        h->sum = hash_u64(h->sum ^ hash_u64(lane[k] ^ rest[k]));
    return NULL;
}

/* Returns a number by which damaged arrays are recognized. */
static uint64_t sum_of(const struct timeline *t)
{
    enum { ALONE_BYTES = 1 << 20 };

    const void *data[ARRAYS];
    size_t bytes[ARRAYS], i = 0;
    uint64_t sum = t->n_nodes;
#define LIST_(type, name) \
    data[i] = t->name;    \
    bytes[i++] = t->n_##name * sizeof(type);
    TL_ARRAYS(LIST_)
#undef LIST_
    for (i = 0; i < ARRAYS; i++) {
        size_t first = bytes[i] / 2 & ~(size_t)63;
        struct half halves[2] = {
            {data[i], first, 0},
            {data[i] ? (const uint8_t *)data[i] + first : NULL, bytes[i] - first, 0}};
        do_both(sum_up, &halves[0], &halves[1], bytes[i] > ALONE_BYTES);
        sum = hash_u64(sum ^ halves[0].sum ^ hash_u64(halves[1].sum));
    }
    return sum;
}

/* Writes all arrays except those that are already in the file. */
static int write_arrays(const struct timeline *t, struct index_header *h, int fd,
                        bool nodes_written)
{
    static const char zeros[8];
    const void *data[ARRAYS];
    size_t bytes[ARRAYS], i = 0;
    uint64_t at = sizeof(*h);
#define SAVE_(type, name)                  \
    data[i] = t->name;                     \
    bytes[i] = t->n_##name * sizeof(type); \
    h->arrays[i].offset = at;              \
    h->arrays[i].n = t->n_##name;          \
    at += (bytes[i] + 7) & ~(uint64_t)7;   \
    i++;
    TL_ARRAYS(SAVE_)
#undef SAVE_
    h->file_len = at;
    h->sum = sum_of(t);
    int r = nodes_written && lseek(fd, (off_t)h->arrays[1].offset, SEEK_SET) < 0 ? -errno : 0;
    for (i = nodes_written; r == 0 && i < ARRAYS; i++) {
        r = file_write_all(fd, data[i], bytes[i]);
        if (r == 0)
            r = file_write_all(fd, zeros, -bytes[i] & 7);
    }
    return r;
}

static int write_index(const struct timeline *t, uint64_t key, struct out_file *f)
{
    struct index_header h = header_of(t, key);
    int r = lseek(f->fd, sizeof(h), SEEK_SET) < 0
                ? -errno
                : write_arrays(t, &h, f->fd, t->packed_file != NULL);
    if (r == 0 && (ftruncate(f->fd, (off_t)h.file_len) < 0 ||
                   pwrite(f->fd, &h, sizeof(h), 0) != (ssize_t)sizeof(h)))
        r = -EIO;
    return r == 0 ? out_file_commit(f) : r;
}

static void *write_file(void *arg)
{
    struct tl_index *x = arg;
    /* The file is only a cache, so a failure is ignored. */
    (void)!write_index(x->t, x->key, &x->file);
    return NULL;
}

static struct tl_index *index_new(const struct timeline *t, const char *path, uint64_t key)
{
    struct tl_index *x = calloc(1, sizeof(*x));
    if (x)
        *x = (struct tl_index){.path = strdup(path), .key = key, .t = t, .file = OUT_FILE};
    if (x && !x->path) {
        free(x);
        x = NULL;
    }
    return x;
}

void timeline_save(struct timeline *t, const char *path, uint64_t key)
{
    struct tl_index *x = index_new(t, path, key);
    if (!x)
        return;
    t->index = x;
    if (t->packed_file) {
        x->file = t->packed_file->file;
        t->packed_file->file = OUT_FILE;
    } else if (out_file_open_private(&x->file, path) < 0) {
        return;
    }
    x->writing = pthread_create(&x->thread, NULL, write_file, x) == 0;
    if (!x->writing)
        write_file(x);
}

static void written(struct tl_index *x)
{
    if (x->writing)
        pthread_join(x->thread, NULL);
    x->writing = false;
    out_file_release(&x->file);
}

void timeline_index_close(struct timeline *t)
{
    if (!t->index)
        return;
    written(t->index);
    file_map_release(&t->index->kept);
    free(t->index->path);
    free(t->index);
    t->index = NULL;
}

/* The data to be appended, in elements of equal size. `put` returns how many it wrote. */
struct appendix {
    enum tl_kept which;
    size_t size;
    int64_t (*put)(int fd, void *arg);
    void *arg;
};

/*
 * Appends an array to the file and, once it is there, records it in the header. Returns the number
 * of elements, or a negative errno.
 */
static int64_t append(const struct tl_index *x, const struct appendix *a)
{
    _cleanup_close_ int fd = open(x->path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
    struct index_header h;
    struct stat st;
    if (fd < 0 || fstat(fd, &st) < 0 || pread(fd, &h, sizeof(h), 0) != (ssize_t)sizeof(h))
        return -EIO;
    if (h.magic != MAGIC || h.version != VERSION || h.key != x->key ||
        h.file_len != (uint64_t)st.st_size || h.kept[a->which].offset)
        return -ESTALE;
    uint64_t before = h.file_len;
    int64_t n = lseek(fd, (off_t)before, SEEK_SET) < 0 ? -errno : a->put(fd, a->arg);
    h.kept[a->which].offset = before;
    h.kept[a->which].n = (uint64_t)MAX(n, 0);
    h.file_len += (h.kept[a->which].n * a->size + 7) & ~UINT64_C(7);
    if (n < 0 || ftruncate(fd, (off_t)h.file_len) < 0 ||
        pwrite(fd, &h, sizeof(h), 0) != (ssize_t)sizeof(h)) {
        /* restores the previous length; if that fails too, the file is no longer an index */
        (void)!ftruncate(fd, (off_t)before);
        return -EIO;
    }
    return n;
}

struct plain {
    const void *data;
    size_t n, size;
};

static int64_t put_plain(int fd, void *arg)
{
    const struct plain *p = arg;
    int r = file_write_all(fd, p->data, p->n * p->size);
    return r < 0 ? r : (int64_t)p->n;
}

static size_t element_bytes(enum tl_kept which)
{
    static const size_t sizes[] = {
#define SIZE_(type, name) [TL_KEEP_##name] = sizeof(type),
        TL_KEPT(SIZE_)
#undef SIZE_
    };
    return sizes[which];
}

void timeline_keep(struct timeline *t, enum tl_kept which, void *data, size_t n)
{
    bool known = false;
    switch (which) {
#define KEEP_(type, name)        \
    case TL_KEEP_##name:         \
        known = t->name != NULL; \
        if (!known) {            \
            t->name = data;      \
            t->n_##name = n;     \
        }                        \
        break;
        TL_KEPT(KEEP_)
#undef KEEP_
    case TL_KEPT_ARRAYS:
        break;
    }
    if (known) {
        free(data);
        return;
    }
    t->own_kept |= 1u << which;
    if (t->index) {
        written(t->index);
        struct plain all = {data, n, element_bytes(which)};
        struct appendix a = {which, all.size, put_plain, &all};
        (void)!append(t->index, &a); /* if this fails, it is computed again the next time */
    }
}

void timeline_keep_copy(struct timeline *t, enum tl_kept which, const void *rows, size_t n,
                        size_t size)
{
    /* with n = 0 it is not NULL, which says that there are no rows */
    void *copy = malloc((n + 1) * size);
    if (!copy)
        return;
    if (n)
        memcpy(copy, rows, n * size);
    timeline_keep(t, which, copy, n);
}

int timeline_keep_put(struct timeline *t, enum tl_kept which, int64_t (*put)(int fd, void *arg),
                      void *arg)
{
    struct tl_index *x = t->index;
    struct file_map m = {0};
    if (!x || x->kept.data)
        return -ENOENT;
    written(x);
    struct appendix a = {which, element_bytes(which), put, arg};
    int64_t n = append(x, &a);
    int r = n < 0 ? (int)n : file_map_open(&m, x->path);
    const struct index_header *h = (const void *)m.data;
    if (r < 0 || m.len < sizeof(*h) || h->kept[which].offset > m.len ||
        (uint64_t)n > (m.len - h->kept[which].offset) / a.size) {
        file_map_release(&m);
        return r < 0 ? r : -ESTALE;
    }
    x->kept = m;
    switch (which) {
#define KEEP_(type, name)                                         \
    case TL_KEEP_##name:                                          \
        t->name = (const void *)(m.data + h->kept[which].offset); \
        t->n_##name = (size_t)n;                                  \
        break;
        TL_KEPT(KEEP_)
#undef KEEP_
    case TL_KEPT_ARRAYS:
        break;
    }
    return 0;
}

int timeline_check_tables(const struct timeline *t)
{
    uint64_t bad = 0;
#define BAD_(value, count) ((value) != TL_NONE && (value) >= (count))
    for (size_t i = 0; i < t->n_contexts; i++) {
        const struct tl_context *c = &t->contexts[i];
        bad |= BAD_(c->object, t->n_objects) | BAD_(c->stack, t->n_stacks) |
               BAD_(c->other, t->n_threads);
    }
    for (size_t i = 0; i < t->n_threads; i++) {
        const struct tl_thread *p = &t->threads[i];
        bad |= BAD_(p->first, t->n_nodes) | BAD_(p->last, t->n_nodes) |
               BAD_(p->object, t->n_objects) | BAD_(p->parent, t->n_threads);
    }
    for (size_t i = 0; i < t->n_objects; i++)
        bad |= BAD_(t->objects[i].thread, t->n_threads);
    for (size_t i = 0; i < t->n_stacks; i++)
        bad |=
            t->stacks[i].first > t->n_frames || t->stacks[i].len > t->n_frames - t->stacks[i].first;
    for (size_t i = 0; i < t->n_shares; i++)
        bad |= BAD_(t->shares[i].object, t->n_objects);
    for (size_t i = 0; i < t->n_delays; i++)
        bad |= t->delays[i].thread >= t->n_threads || t->delays[i].end_ns <= t->delays[i].start_ns;
#undef BAD_
    bad |= t->hold_first && t->n_hold_first != t->n_threads + 1;
    for (size_t i = 0; !bad && i < t->n_hold_first; i++)
        bad |= t->hold_first[i] > t->n_holds || (i && t->hold_first[i] < t->hold_first[i - 1]);
    return bad ? -EPROTO : 0;
}

/*
 * Returns whether every node lies within the packed bytes, so that any bytes can be read as a node.
 */
static bool blocks_hold(const struct timeline *t)
{
    static const uint8_t most[TL_COLUMNS] = {
        [TL_TIME] = TL_TIME_BITS,      [TL_SHAPE] = TL_SHAPE_BITS,     [TL_THREAD] = 32,
        [TL_PREV] = TL_REFERENCE_BITS, [TL_WAKER] = TL_REFERENCE_BITS, [TL_CONTEXT] = 32};
    uint64_t bad = t->n_nodes > TL_NONE || t->n_shapes != TL_SHAPES ||
                   t->n_blocks != (t->n_nodes + TL_BLOCK_NODES - 1) / TL_BLOCK_NODES ||
                   (t->n_nodes && (t->n_threads == 0 || t->n_contexts == 0));
    for (size_t i = 0; !bad && i < t->n_blocks; i++) {
        const struct tl_block *b = &t->blocks[i];
        size_t n = MIN(t->n_nodes - (i << TL_BLOCK_BITS), (size_t)TL_BLOCK_NODES);
        uint64_t bytes = n * b->row + TL_PACKED_PADDING;
        bad |= bytes > t->n_packed || b->at > t->n_packed - bytes || b->begin[0] != 0 ||
               b->row != (b->begin[TL_COLUMNS] + 7) / 8;
        for (int c = 0; c < TL_COLUMNS; c++)
            bad |= b->begin[c + 1] < b->begin[c] || b->begin[c + 1] - b->begin[c] > most[c];
    }
    for (size_t i = 0; !bad && i < TL_SHAPES; i++)
        bad |= (t->shapes[i] & 0xff) >= TL_KINDS || (t->shapes[i] >> 8 & 0xf) >= TL_EDGES;
    return !bad;
}

int timeline_map_unchecked(struct timeline **ret, const char *path, uint64_t key)
{
    _cleanup_(file_map_release) struct file_map m = {0};
    int r = file_map_open(&m, path);
    if (r < 0)
        return r;
    const struct index_header *h = (const void *)m.data;
    if (m.len < sizeof(*h) || h->magic != MAGIC || h->version != VERSION || h->file_len != m.len)
        return -EPROTO;
    if (h->key != key)
        return -ESTALE;
    _cleanup_(timeline_freep) struct timeline *t = calloc(1, sizeof(*t));
    if (!t)
        return -ENOMEM;
    t->n_nodes = h->n_nodes;
    t->origin_ns = h->origin_ns;
    t->start_epoch = h->start_epoch;
    t->end_ns = h->end_ns;
    t->lost = h->lost;
    t->lost_any = h->lost_any;
    t->unbound = h->unbound;
    t->began_before = h->began_before;
    t->cut_at = h->cut_at;
    t->wake_ns = h->wake_ns;
    t->instrumented = h->instrumented;
    t->uncounted = h->uncounted;
    t->deadlocks = h->deadlocks;
    t->unsampled = h->unsampled;
    t->owners_unknown = h->owners_unknown;
    t->vm_version = h->vm_version;
    t->part_of_time = h->part_of_time;
    t->part_of = h->part_of;
    /* its arrays are part of the file from here on, and are not freed one by one */
    t->mapped = (void *)m.data;
    t->mapped_len = m.len;
    m = (struct file_map){0};
    size_t i = 0, k = 0;
#define MAP_AT_(type, name, at)                                         \
    if ((at).offset > t->mapped_len || (at).offset % 8 ||               \
        (at).n > (t->mapped_len - (at).offset) / sizeof(type))          \
        return -EPROTO;                                                 \
    t->name = (const void *)((const uint8_t *)t->mapped + (at).offset); \
    t->n_##name = (at).n;
#define MAP_(type, name) MAP_AT_(type, name, h->arrays[i]) i++;
#define MAP_KEPT_(type, name)           \
    if (h->kept[k].offset) {            \
        MAP_AT_(type, name, h->kept[k]) \
    }                                   \
    k++;
    TL_ARRAYS(MAP_)
    TL_KEPT(MAP_KEPT_)
#undef MAP_
#undef MAP_KEPT_
#undef MAP_AT_
    if ((t->n_text && t->text[t->n_text - 1] != 0) || !blocks_hold(t))
        return -EPROTO;
    t->index = index_new(t, path, key);
    *ret = TAKE(t);
    return 0;
}

bool timeline_node_holds(const struct timeline *t, uint32_t node)
{
    if (node >= t->n_nodes)
        return false;
    uint32_t stack = tl_context_of(t, node)->stack;
    if (stack == TL_NONE)
        return true;
    return stack < t->n_stacks && t->stacks[stack].first <= t->n_frames &&
           t->stacks[stack].len <= t->n_frames - t->stacks[stack].first;
}

int timeline_check(const struct timeline *t)
{
    int r = timeline_check_tables(t);
    const struct index_header *h = t->mapped;
    return r == 0 && h && h->sum != sum_of(t) ? -EPROTO : r;
}

int timeline_map(struct timeline **ret, const char *path, uint64_t key)
{
    _cleanup_(timeline_freep) struct timeline *t = NULL;
    int r = timeline_map_unchecked(&t, path, key);
    if (r == 0)
        r = timeline_check(t);
    if (r == 0)
        *ret = TAKE(t);
    return r;
}

uint64_t timeline_identity(const struct timeline *t)
{
    return t->index
               ? hash_u64(t->index->key ^ hash_u64(t->n_nodes ^ hash_u64(t->end_ns + VERSION))) | 1
               : 0;
}
