/* SPDX-License-Identifier: Apache-2.0 */
/* Makes a view from all nodes of a timeline and saves it in a file. */
#include "timeline/view_private.h"

#include "base/file.h"
#include "base/hash.h"
#include "base/pages.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static_assert(STATES < 16, "the number of kinds has four bits");

enum { VIEW_MAGIC = 0x6a766d76, VIEW_VERSION = 1 }; /* "vmvj" */

/* In the machine's own byte order, because the file is a cache and not a format. */
struct view_header {
    uint32_t magic, version;
    uint64_t key, file_len;
    uint8_t n_columns, kind[STATES];
    uint8_t spare[7 - STATES % 8];

    struct {
        uint64_t offset, n;
    } parts[PARTS];
};

bool view_arrow_of(const struct timeline *t, uint32_t node, struct arrow *ret)
{
    if (node >= t->n_nodes)
        return false;
    const struct tl_node n = tl_node(t, node);
    if (!tl_is_state((enum tl_kind)n.kind) || n.waker >= t->n_nodes)
        return false;
    const struct tl_node waker = tl_node(t, n.waker);
    if (waker.thread == n.thread || MAX(waker.thread, n.thread) >= t->n_threads ||
        waker.time > n.time)
        return false;
    *ret = (struct arrow){.time = n.time,
                          .since = n.time - waker.time,
                          .node = node,
                          .waker = n.waker,
                          .thread = n.thread,
                          .from = waker.thread,
                          .edge = n.edge | (n.flags & TL_INFERRED ? 16u : 0)};
    return true;
}

/*
 * Returns zeroed memory for a part. Large pages cause fewer misses in parts that are filled in
 * random order.
 */
static void *room(struct timeline_view *v, enum view_part part, uint64_t n, size_t size)
{
    void *data = calloc(n + 1, size);
    if (data)
        pages_huge(data, (n + 1) * size);
    v->parts[part] = (struct view_memory){data, n, size};
    return data;
}

/* Counts the nodes of each kind, and of each thread in first[thread + 2]. */
static int count_nodes(struct timeline_view *v, uint64_t counts[TL_KINDS])
{
    const struct timeline *t = v->t;
    uint64_t *states = room(v, PART_STATE_FIRST, t->n_threads + 1, sizeof(*states));
    uint64_t *instants = room(v, PART_INSTANT_FIRST, t->n_threads + 1, sizeof(*instants));
    uint64_t *ends = room(v, PART_ENDS, t->n_threads, sizeof(*ends));
    if (!states || !instants || !ends)
        return -ENOMEM;
    for (size_t i = 0; i < t->n_threads; i++)
        ends[i] = t->threads[i].end_ns;
    for (size_t i = 0; i < t->n_nodes; i++) {
        const struct tl_node n = tl_node(t, i);
        (tl_is_state((enum tl_kind)n.kind) ? states : instants)[n.thread + 2]++;
        counts[n.kind]++;
        v->n_arrows += view_arrow_of(t, (uint32_t)i, &(struct arrow){0});
    }
    for (size_t i = 2; i < t->n_threads + 2; i++) {
        states[i] += states[i - 1];
        instants[i] += instants[i - 1];
    }
    return 0;
}

/* The state of lanes while they are filled. */
struct filling {
    uint64_t *first, *at;
    uint32_t *node;
};

static int lanes_room(struct timeline_view *v, enum view_part part, struct filling *f)
{
    f->first = v->parts[part].data;
    uint64_t n = f->first[v->t->n_threads + 1];
    f->at = room(v, part + 1, n, sizeof(*f->at));
    f->node = room(v, part + 2, n, sizeof(*f->node));
    return f->at && f->node ? 0 : -ENOMEM;
}

/* Puts every node into its lane. */
static int fill_lanes(struct timeline_view *v)
{
    const struct timeline *t = v->t;
    struct filling states, instants;
    uint32_t *arrows = room(v, PART_ARROWS, v->n_arrows, sizeof(*arrows));
    int r = lanes_room(v, PART_STATE_FIRST, &states);
    if (r == 0)
        r = lanes_room(v, PART_INSTANT_FIRST, &instants);
    if (r < 0 || !arrows)
        return -ENOMEM;
    for (uint32_t i = 0; i < t->n_nodes; i++) {
        const struct tl_node n = tl_node(t, i);
        struct filling *f = tl_is_state((enum tl_kind)n.kind) ? &states : &instants;
        uint64_t to = f->first[n.thread + 1]++;
        f->at[to] = (uint64_t)n.time << 8 | n.kind;
        f->node[to] = i;
        if (view_arrow_of(t, i, &(struct arrow){0}))
            *arrows++ = i;
    }
    return 0;
}

/* Makes the marks of filled lanes: those of level 0, from which the other levels are selected. */
static int make_marks(struct timeline_view *v, const struct lanes *l, enum view_part part)
{
    uint64_t n = l->first[v->t->n_threads], sum[STATES] = {0};
    size_t stride = l->stride;
    uint64_t *marks[LEVELS];
    for (int k = 0; k < LEVELS; k++) {
        marks[k] = room(v, part + (enum view_part)k, ((n >> view_shift(k)) + 1) * stride,
                        sizeof(*marks[k]));
        if (!marks[k])
            return -ENOMEM;
    }
    for (uint32_t thread = 0; thread < v->t->n_threads; thread++) {
        for (uint64_t i = l->first[thread]; i < l->first[thread + 1]; i++) {
            if (i % (1 << FIRST_SHIFT) == 0) {
                uint64_t *mark = marks[0] + (i >> FIRST_SHIFT) * stride;
                mark[0] = l->at[i];
                memcpy(mark + 1, sum, (stride - 1) * sizeof(*sum));
            }
            if (stride > 1)
                sum[v->column[view_kind(l->at[i])]] += view_end(v, thread, i) - view_time(l->at[i]);
        }
    }
    for (int k = 1; k < LEVELS; k++) {
        for (uint64_t m = 0; m << view_shift(k) < n; m++)
            memcpy(marks[k] + m * stride, marks[k - 1] + (m << FAN_SHIFT) * stride,
                   stride * sizeof(**marks));
    }
    return 0;
}

static int make_samples(struct timeline_view *v)
{
    for (int k = 0; k < LEVELS; k++) {
        unsigned shift = FAN_SHIFT * (unsigned)(k + 1);
        struct arrow *a =
            room(v, PART_SAMPLES + (enum view_part)k, (v->n_arrows >> shift) + 1, sizeof(*a));
        if (!a)
            return -ENOMEM;
        for (uint64_t i = 0; i << shift < v->n_arrows; i++)
            (void)view_arrow_of(v->t, v->arrows[i << shift], &a[i]);
    }
    return 0;
}

static void lanes_at(struct lanes *l, const struct timeline_view *v, enum view_part part,
                     size_t stride)
{
    l->first = v->parts[part].data;
    l->at = v->parts[part + 1].data;
    l->node = v->parts[part + 2].data;
    for (int k = 0; k < LEVELS; k++)
        l->mark[k] = v->parts[part + 3 + (enum view_part)k].data;
    l->stride = stride;
}

/* Sets the names of the parts that exist. */
static void name_parts(struct timeline_view *v)
{
    v->ends = v->parts[PART_ENDS].data;
    lanes_at(&v->states, v, PART_STATE_FIRST, 1 + v->n_columns);
    lanes_at(&v->instants, v, PART_INSTANT_FIRST, 1);
    v->arrows = v->parts[PART_ARROWS].data;
    v->n_arrows = v->parts[PART_ARROWS].n;
    for (int k = 0; k < LEVELS; k++)
        v->sample[k] = v->parts[PART_SAMPLES + (enum view_part)k].data;
}

static int make(struct timeline_view *v)
{
    uint64_t counts[TL_KINDS] = {0};
    int r = count_nodes(v, counts);
    for (unsigned k = 0; k < STATES; k++) {
        if (!counts[k])
            continue;
        v->column[k] = (uint8_t)v->n_columns;
        v->kind[v->n_columns++] = (uint8_t)k;
    }
    if (r == 0)
        r = fill_lanes(v);
    name_parts(v);
    if (r == 0)
        r = make_marks(v, &v->states, PART_STATE_MARKS);
    if (r == 0)
        r = make_marks(v, &v->instants, PART_INSTANT_MARKS);
    if (r == 0)
        r = make_samples(v);
    name_parts(v);
    return r;
}

int timeline_view_new(struct timeline_view **ret, const struct timeline *t)
{
    struct timeline_view *v = calloc(1, sizeof(*v));
    if (!v)
        return -ENOMEM;
    v->t = t;
    int r = make(v);
    if (r < 0)
        timeline_view_free(v);
    else
        *ret = v;
    return r;
}

void timeline_view_free(struct timeline_view *v)
{
    if (!v)
        return;
    for (int i = 0; i < PARTS && !v->mapped; i++)
        free(v->parts[i].data);
    if (v->mapped)
        munmap(v->mapped, v->mapped_len);
    free(v);
}

int timeline_view_save(struct timeline_view *v, const char *path, uint64_t key, const void *rest,
                       size_t len)
{
    struct view_header h = {.magic = VIEW_MAGIC,
                            .version = VIEW_VERSION,
                            .key = key,
                            .file_len = sizeof(h),
                            .n_columns = (uint8_t)v->n_columns};
    memcpy(h.kind, v->kind, sizeof(h.kind));
    for (int i = 0; i < PARTS; i++) {
        h.parts[i].offset = h.file_len;
        h.parts[i].n = i == PART_REST ? len : v->parts[i].n;
        h.file_len += (h.parts[i].n * (i == PART_REST ? 1 : v->parts[i].size) + 7) & ~(uint64_t)7;
    }
    if (file_is_foreign(path, &h.magic, sizeof(h.magic)))
        return -EEXIST;
    _cleanup_(out_file_release) struct out_file f = OUT_FILE;
    int r = out_file_open(&f, path);
    if (r == 0)
        r = file_write_all(f.fd, &h, sizeof(h));
    for (int i = 0; r == 0 && i < PARTS; i++) {
        static const char zeros[8];
        size_t bytes = i == PART_REST ? len : v->parts[i].n * v->parts[i].size;
        r = file_write_all(f.fd, i == PART_REST ? rest : v->parts[i].data, bytes);
        if (r == 0)
            r = file_write_all(f.fd, zeros, -bytes & 7);
    }
    return r == 0 ? out_file_commit(&f) : r;
}

/* Returns the size of an element of a part in bytes. */
static size_t size_of(int part)
{
    if (part == PART_STATE_NODE || part == PART_INSTANT_NODE || part == PART_ARROWS)
        return sizeof(uint32_t);
    return part == PART_REST ? 1 : part < PART_SAMPLES ? sizeof(uint64_t) : sizeof(struct arrow);
}

/* Checks where the lanes of threads begin, and that all of them and their marks exist. */
static bool lanes_hold(const struct timeline_view *v, const struct lanes *l, enum view_part part)
{
    size_t n_threads = v->t->n_threads;
    if (v->parts[part].n <= n_threads)
        return false;
    uint64_t before = 0, n = v->parts[part + 1].n;
    for (size_t i = 0; i <= n_threads; i++) {
        if (l->first[i] < before || l->first[i] > n)
            return false;
        before = l->first[i];
    }
    bool ok = l->first[0] == 0 && before == n && v->parts[part + 2].n == n;
    for (int k = 0; k < LEVELS; k++)
        ok &= v->parts[part + 3 + (enum view_part)k].n >= ((n >> view_shift(k)) + 1) * l->stride;
    return ok;
}

/*
 * Checks that the parts match each other. The values of the numbers in them are checked where they
 * are used.
 */
static bool parts_hold(const struct timeline_view *v)
{
    bool ok = v->parts[PART_ENDS].n >= v->t->n_threads &&
              lanes_hold(v, &v->states, PART_STATE_FIRST) &&
              lanes_hold(v, &v->instants, PART_INSTANT_FIRST);
    for (int k = 0; k < LEVELS; k++)
        ok &= v->parts[PART_SAMPLES + (enum view_part)k].n > v->n_arrows >> FAN_SHIFT * (k + 1);
    return ok;
}

/*
 * Takes the parts of a mapped file; returns false when they are missing or not where the header
 * says.
 */
static bool take_parts(struct timeline_view *v, const struct view_header *h)
{
    if (h->n_columns > STATES)
        return false;
    v->n_columns = h->n_columns;
    for (unsigned k = 0; k < h->n_columns; k++) {
        if (h->kind[k] >= STATES)
            return false;
        v->kind[k] = h->kind[k];
        v->column[h->kind[k]] = (uint8_t)k;
    }
    for (int i = 0; i < PARTS; i++) {
        uint64_t offset = h->parts[i].offset, n = h->parts[i].n;
        if (offset > v->mapped_len || offset % 8 || n > (v->mapped_len - offset) / size_of(i))
            return false;
        v->parts[i] = (struct view_memory){(uint8_t *)v->mapped + offset, n, size_of(i)};
    }
    name_parts(v);
    return parts_hold(v);
}

void timeline_view_stamp(uint64_t start[3], uint64_t key, uint64_t len)
{
    struct view_header h = {
        .magic = VIEW_MAGIC, .version = VIEW_VERSION, .key = key, .file_len = len};
    memcpy(start, &h, 3 * sizeof(*start));
}

int timeline_view_map(struct timeline_view **ret, const struct timeline *t, const char *path,
                      uint64_t key, const void **ret_rest, size_t *ret_len)
{
    _cleanup_(file_map_release) struct file_map m = {0};
    int r = file_map_open(&m, path);
    if (r < 0)
        return r;
    const struct view_header *h = (const void *)m.data;
    if (m.len < sizeof(*h) || h->magic != VIEW_MAGIC || h->version != VIEW_VERSION ||
        h->file_len != m.len)
        return -EPROTO;
    if (h->key != key)
        return -ESTALE;
    _cleanup_(timeline_view_freep) struct timeline_view *v = calloc(1, sizeof(*v));
    if (!v)
        return -ENOMEM;
    v->t = t;
    v->mapped = (void *)m.data;
    v->mapped_len = m.len;
    m = (struct file_map){0};
    if (!take_parts(v, h))
        return -EPROTO;
    *ret_rest = v->parts[PART_REST].data;
    *ret_len = v->parts[PART_REST].n;
    *ret = TAKE(v);
    return 0;
}
