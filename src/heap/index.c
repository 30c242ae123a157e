/* SPDX-License-Identifier: Apache-2.0 */
#include "heap/index.h"

#include "base/buf.h"
#include "base/hash.h"
#include "heap/memory.h"
#include "heap/proxies.h"
#include "heap/shape.h"
#include "heap/text.h"

#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>

enum { VERSION = 8, PAGE = 4096, SMALL = 8 << 20, CHECKED = 256 << 20, FINGERPRINT = 64 << 10 };

static const char magic[16] = "JVMSCOPE HEAP\n";

/* Uses four independent lanes, so that a gigabyte takes a tenth of a second. */
static uint64_t heap_index_checksum(const void *bytes, uint64_t len)
{
    const uint8_t *p = bytes;
    uint64_t lanes[4] = {1, 2, 3, len};
    for (; len >= 32; len -= 32, p += 32) {
        uint64_t words[4];
        memcpy(words, p, 32);
        for (int i = 0; i < 4; i++)
            lanes[i] = (lanes[i] ^ words[i]) * UINT64_C(0x9e3779b97f4a7c15) + (lanes[i] >> 47);
    }
    return hash_bytes(lanes, sizeof(lanes)) ^ hash_bytes(p, len);
}

void heap_index_stamp(struct heap_index_header *h, const struct heap_dump *d, uint64_t mtime_ns)
{
    uint64_t part = MIN(d->len, (uint64_t)FINGERPRINT);
    memcpy(h->magic, magic, sizeof(magic));
    h->version = VERSION;
    h->header_bytes = sizeof(*h);
    h->dump_len = d->len;
    h->dump_mtime_ns = d->spooled ? 0 : mtime_ns;
    h->dump_hash =
        heap_index_checksum(d->data, part) ^ heap_index_checksum(d->data + d->len - part, part);
    h->chosen = d->chosen;
}

int heap_index_create(struct heap_index_file *f, const char *path)
{
    _cleanup_free_ char *copy = strdup(path);
    if (!copy)
        return -ENOMEM;
    f->fd = open(dirname(copy), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    f->nameless = f->fd < 0;
    if (f->nameless)
        f->fd = open("/var/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (f->fd < 0)
        return -errno;
    f->len = (sizeof(struct heap_index_header) + PAGE - 1) / PAGE * PAGE;
    for (int i = 0; i < HEAP_SECTIONS; i++) {
        f->header.sections[i].offset = f->len;
        f->len += (f->header.sections[i].bytes + PAGE - 1) / PAGE * PAGE;
    }
    void *data = MAP_FAILED;
    int error = posix_fallocate(f->fd, 0, (off_t)f->len);
    if (!error) {
        data = mmap(NULL, f->len, PROT_READ | PROT_WRITE, MAP_SHARED, f->fd, 0);
        error = data == MAP_FAILED ? errno : 0;
    }
    if (error) {
        close(f->fd);
        return -error;
    }
    f->data = data;
    return 0;
}

static void heap_index_discard(struct heap_index_file *f)
{
    if (f->data) {
        munmap(f->data, f->len);
        close(f->fd);
    }
    f->data = NULL;
}

static int checksum_section(void *ctx, unsigned thread, uint64_t i)
{
    struct heap_index_file *f = ctx;
    f->header.sections[i].checksum =
        heap_index_checksum(f->data + f->header.sections[i].offset, f->header.sections[i].bytes);
    return 0;
}

/* Writes the checksums and gives the file its name. Returns 0 or a negative errno. */
static int heap_index_commit(struct heap_index_file *f, const char *path, unsigned threads)
{
    int failed = heap_parallel(threads, HEAP_SECTIONS, checksum_section, f);
    if (failed)
        return failed;
    f->header.checksum =
        heap_index_checksum(&f->header, offsetof(struct heap_index_header, checksum));
    memcpy(f->data, &f->header, sizeof(f->header));
    if (f->nameless)
        return 0;
    char from[64];
    _cleanup_(buf_release) struct buf temporary = BUF(1 << 16);
    buf_printf(&temporary, "%s.%ld", path, (long)getpid());
    snprintf(from, sizeof(from), "/proc/self/fd/%d", f->fd);
    if (buf_error(&temporary))
        return -ENOMEM;
    if (linkat(AT_FDCWD, from, AT_FDCWD, buf_str(&temporary), AT_SYMLINK_FOLLOW) < 0 ||
        rename(buf_str(&temporary), path) < 0) {
        int error = -errno;
        unlink(buf_str(&temporary));
        return error;
    }
    return 0;
}

static const void *section(const struct heap *h, enum heap_section s)
{
    const struct heap_index_header *header = (const void *)h->map.data;
    return h->map.data + header->sections[s].offset;
}

/*
 * Checks that the header is ours and complete and belongs to this dump, and checks the checksums of
 * the sections. In an index larger than CHECKED only small sections are checked, because otherwise
 * a query that needs a few pages would have to read all of it.
 */
static bool header_fits(const struct heap_index_header *h, uint64_t len, const struct heap_dump *d,
                        uint64_t mtime_ns, const struct heap_settings *settings)
{
    struct heap_index_header expected = {0};
    heap_index_stamp(&expected, d, mtime_ns);
    if (len < sizeof(*h) || memcmp(h->magic, magic, sizeof(magic)) != 0 || h->version != VERSION ||
        h->header_bytes != sizeof(*h) ||
        h->checksum != heap_index_checksum(h, offsetof(struct heap_index_header, checksum)))
        return false;
    if (h->dump_len != expected.dump_len || h->dump_mtime_ns != expected.dump_mtime_ns ||
        h->dump_hash != expected.dump_hash || h->chosen != expected.chosen ||
        h->strong != settings->strong || h->n != h->ids.count)
        return false;
    for (int i = 0; i < HEAP_SECTIONS; i++) {
        if (h->sections[i].offset > len || h->sections[i].bytes > len - h->sections[i].offset)
            return false;
        bool small = i == HEAP_CLASSES || i == HEAP_ROOTS || i == HEAP_CHUNKS ||
                     h->sections[i].bytes <= 65536;
        if ((len <= CHECKED || (small && h->sections[i].bytes <= SMALL)) &&
            heap_index_checksum((const uint8_t *)h + h->sections[i].offset, h->sections[i].bytes) !=
                h->sections[i].checksum)
            return false;
    }
    return true;
}

/* Restores from the index what the survey would determine. */
static int restore_dump(struct heap_dump *d, const struct heap_index_header *h, const uint8_t *data)
{
    const struct heap_index_class *classes =
        (const void *)(data + h->sections[HEAP_CLASSES].offset);
    size_t n = h->sections[HEAP_CLASSES].bytes / sizeof(*classes);
    d->shape = h->shape;
    for (size_t i = 0; i < n; i++) {
        const struct heap_index_class *c = &classes[i];
        int error = c->record && c->record < d->len
                        ? heap_dump_add_class(d, d->data + c->record, d->len - c->record)
                        : heap_dump_made_up_class(d, c->id);
        if (error)
            return error;
    }
    int error = heap_dump_finish_classes(d);
    if (error)
        return error;
    if (d->classes.len != n)
        return -EILSEQ;
    heap_shape_apply(d);
    for (size_t i = 0; i < n; i++) {
        d->classes.data[i].objects = classes[i].objects;
        d->classes.data[i].bytes = classes[i].bytes;
        d->classes.data[i].retained = classes[i].retained;
        d->classes.data[i].held_by_instances = classes[i].held_by_instances;
        d->class_edges = d->class_edges || classes[i].held_by_instances;
    }
    const struct heap_root *roots = (const void *)(data + h->sections[HEAP_ROOTS].offset);
    for (size_t i = 0; i < h->sections[HEAP_ROOTS].bytes / sizeof(*roots) && !error; i++)
        error = vec_push(&d->roots, roots[i]);
    const struct heap_chunk *chunks = (const void *)(data + h->sections[HEAP_CHUNKS].offset);
    for (size_t i = 0; i < h->sections[HEAP_CHUNKS].bytes / sizeof(*chunks) && !error; i++) {
        if (chunks[i].start > chunks[i].end || chunks[i].end > d->len)
            return -EILSEQ;
        error = vec_push(&d->chunks, chunks[i]);
    }
    d->min_id = h->min_id;
    d->max_id = h->max_id;
    d->id_bits = h->id_bits;
    d->instances = h->instances;
    d->arrays = h->arrays;
    d->mirrors = h->mirrors;
    d->objects = h->objects;
    d->bytes = h->bytes;
    d->cut = h->cut;
    d->garbage_at = h->garbage_at;
    return error;
}

/* Sets the heap's pointers to the sections. */
static int attach(struct heap *h)
{
    const struct heap_index_header *header = (const void *)h->map.data;
    h->n = header->n;
    h->reachable = header->reachable;
    h->strong = header->strong;
    h->wide = header->wide;
    h->class_wide = header->class_wide;
    h->retained_wide = header->retained_wide;
    h->size_shift = header->size_shift & 15;
    h->times = header->times;
    h->index_bytes = h->map.len;
    h->ids = header->ids;
    h->ids.lines = h->ids.sorted = NULL;
    uint64_t *first = (uint64_t *)section(h, HEAP_IDS),
             *second = (uint64_t *)section(h, HEAP_RANKS);
    const uint64_t width = h->wide ? 8 : 4;
    const uint64_t need[HEAP_SECTIONS] = {[HEAP_IDS] =
                                              h->ids.bitmap ? h->ids.lines_n * 64 : h->n * 8,
                                          [HEAP_RANKS] = (h->ids.lines_n + 1) * 8,
                                          [HEAP_CLASS_OF] = h->n * (h->class_wide ? 4 : 2),
                                          [HEAP_OFFSET_LOW] = h->n * 4,
                                          [HEAP_OFFSET_HIGH] = h->n,
                                          [HEAP_IDOM] = h->n * width,
                                          [HEAP_RETAINED] = (h->n + 1) * (h->retained_wide ? 8 : 4),
                                          [HEAP_CHILDREN] = h->reachable * width,
                                          [HEAP_PATH] = h->n * width,
                                          [HEAP_PATH_WEAK] = h->n / 8 + 1};
    for (int i = 0; i < HEAP_SECTIONS; i++) {
        if (header->sections[i].bytes < need[i])
            return -EILSEQ;
    }
    if (h->ids.bitmap) {
        h->ids.lines = first;
        h->ids.ranks = second;
    } else {
        h->ids.sorted = first;
        h->ids.buckets = second;
    }
    h->class_of = section(h, HEAP_CLASS_OF);
    h->offset_low = section(h, HEAP_OFFSET_LOW);
    h->offset_high = section(h, HEAP_OFFSET_HIGH);
    h->idom = section(h, HEAP_IDOM);
    h->retained = section(h, HEAP_RETAINED);
    h->children = section(h, HEAP_CHILDREN);
    h->path = section(h, HEAP_PATH);
    h->path_weak = section(h, HEAP_PATH_WEAK);
    return 0;
}

/* Opens an existing index if it is suitable. */
static int open_existing(struct heap *h, const char *path, uint64_t mtime_ns,
                         const struct heap_settings *settings)
{
    int error = file_map_open(&h->map, path);
    if (error)
        return error;
    if (h->map.len < sizeof(struct heap_index_header) ||
        !header_fits((const void *)h->map.data, h->map.len, h->dump, mtime_ns, settings)) {
        file_map_release(&h->map);
        return -ESTALE;
    }
    error = attach(h);
    if (!error)
        error = restore_dump(h->dump, (const void *)h->map.data, h->map.data);
    if (error)
        file_map_release(&h->map);
    return error;
}

static int build_new(struct heap *h, const char *path, uint64_t mtime_ns,
                     const struct heap_settings *settings)
{
    struct heap_index_file f = {.fd = -1};
    if (file_is_foreign(path, magic, sizeof(magic)))
        return -EEXIST;
    int error = heap_build(h->dump, settings, path, mtime_ns, &f);
    if (!error)
        error = heap_index_commit(&f, path, h->dump->threads);
    if (error) {
        heap_index_discard(&f);
        return error;
    }
    close(f.fd);
    h->map = (struct file_map){f.data, f.len};
    h->built = true;
    h->unkept = f.nameless;
    return attach(h);
}

bool heap_index_exists(const char *path, const struct heap_settings *settings)
{
    _cleanup_(buf_release) struct buf name = BUF(1 << 16);
    if (settings->index)
        buf_string(&name, settings->index);
    else
        buf_printf(&name, "%s.heapidx", path);
    return access(buf_str(&name), R_OK) == 0;
}

static bool find_object(void *context, uint64_t id, struct hprof_item *ret)
{
    const struct heap *h = context;
    return heap_item(h, heap_ids_find(&h->ids, id), ret);
}

int heap_open(struct heap **ret, const char *path, const struct heap_settings *settings)
{
    _cleanup_(heap_freep) struct heap *h = calloc(1, sizeof(*h));
    _cleanup_(buf_release) struct buf name = BUF(1 << 16);
    struct stat st = {0};
    if (!h)
        return -ENOMEM;
    int error = heap_dump_open(&h->dump, path, settings->which);
    if (error)
        return error;
    bool pipe =
        h->dump->spooled && (strcmp(path, "-") == 0 || stat(path, &st) < 0 || !S_ISREG(st.st_mode));
    if (!pipe && stat(path, &st) < 0)
        return -errno;
    uint64_t mtime_ns = (uint64_t)st.st_mtim.tv_sec * 1000000000u + (uint64_t)st.st_mtim.tv_nsec;
    if (settings->index)
        buf_string(&name, settings->index);
    else
        buf_printf(&name, "%s.heapidx", pipe ? "/nowhere/pipe" : path);
    error =
        settings->rebuild || pipe ? -ESTALE : open_existing(h, buf_str(&name), mtime_ns, settings);
    if (error) {
        /* Discard a dump that was restored only in part. */
        if (h->dump->classes.len) {
            heap_dump_free(TAKE(h->dump));
            error = heap_dump_open(&h->dump, path, settings->which);
            if (error)
                return error;
        }
        error = build_new(h, buf_str(&name), mtime_ns, settings);
    }
    if (!error)
        error = heap_name_proxies(h->dump, find_object, h);
    if (error)
        return error;
    heap_text_prepare(h);
    *ret = TAKE(h);
    return 0;
}

void heap_free(struct heap *h)
{
    if (!h)
        return;
    file_map_release(&h->map);
    heap_dump_free(h->dump);
    free(h);
}

bool heap_item(const struct heap *h, uint64_t i, struct hprof_item *ret)
{
    if (i >= h->n)
        return false;
    uint64_t at = heap_offset(h, i);
    if (at >= h->dump->len)
        return false;
    struct hprof_items it =
        hprof_items_of(h->dump->data + at, h->dump->data + h->dump->len, h->dump->header.id_size);
    return hprof_item_next(&it, ret) > 0 &&
           (hprof_item_is_object(ret) || ret->tag == HPROF_CLASS_DUMP);
}

uint64_t heap_shallow(const struct heap *h, uint64_t i)
{
    struct hprof_item item;
    if (i >= h->n)
        return 0;
    uint64_t size = heap_size_by_class(h->dump, heap_class_of(h, i));
    return size ? size : heap_item(h, i, &item) ? heap_item_size(h->dump, &item) : 0;
}

/*
 * Searches the list of children, which is ordered by dominator, outwards from `at` for the first
 * entry whose dominator is not below i.
 */
static uint64_t first_child(const struct heap *h, uint64_t i, uint64_t at)
{
    uint64_t low = 0, high = h->reachable, step = 1;
    int last = 0;
    bool bounded = false; /* until then the step doubles */
    at = high ? MIN(at, high - 1) : 0;
    while (low < high) {
        int side = heap_idom(h, heap_child(h, at)) < i ? 1 : -1;
        bounded = bounded || side == -last;
        last = side;
        if (side > 0)
            low = at + 1;
        else
            high = at;
        if (low < high)
            at = bounded    ? low + (high - low) / 2
                 : side > 0 ? MIN(low + step, high - 1)
                            : high - 1 - MIN(step, high - 1 - low);
        step *= 2;
    }
    return low;
}

void heap_children_near(const struct heap *h, uint64_t i, uint64_t near, uint64_t *ret_first,
                        uint64_t *ret_count)
{
    *ret_first = first_child(h, i, MIN(near, h->reachable));
    *ret_count = first_child(h, i + 1, *ret_first) - *ret_first;
}

void heap_children(const struct heap *h, uint64_t i, uint64_t *ret_first, uint64_t *ret_count)
{
    heap_children_near(h, i, h->reachable / 2, ret_first, ret_count);
}
