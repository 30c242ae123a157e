/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as an index file of a timeline, after the beginning that identifies it: the file is
 * mapped, and analysed if it is accepted; before that, its nodes are read one by one. Then the same
 * bytes as the file of a view of a valid timeline.
 */
#include "analysis/critical_path.h"
#include "analysis/monitor_stats.h"
#include "analysis/what_if.h"
#include "timeline/index.h"
#include "timeline/view.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool all(const struct timeline *t, uint32_t object, void *arg)
{
    return true;
}

static void draw(const struct timeline_view *v, const struct timeline *t)
{
    static const uint32_t first;
    struct view_range r = {.from = 0,
                           .to = t->end_ns >> 20 ? 1 << 20 : t->end_ns + 1,
                           .width = 100,
                           .threads = &first,
                           .n_threads = t->n_threads > 0};
    struct buf out = BUF(1 << 20);
    (void)!timeline_view_rows(v, &r, &out);
    (void)!timeline_view_arrows(v, &r, &out);
    buf_release(&out);
}

static void analyse(struct timeline *t)
{
    struct critical_path p;
    struct path_shares shares;
    struct path_methods methods;
    struct monitor_stats stats;
    struct what_if w = {.lock = all, .factor = 0.5, .bounds = true};
    struct what_if_answer a;
    if (critical_path(t, &PATH_OPTIONS, &p) == 0) {
        if (path_shares_of(t, &PATH_OPTIONS, &p, &shares) == 0)
            vec_release(&shares.rows);
        if (path_methods(t, &p, NULL, &methods) == 0)
            vec_release(&methods.rows);
        critical_path_release(&p);
        (void)!what_if(t, &PATH_OPTIONS, &w, &a);
    }
    if (monitor_stats(t, &(struct stats_filter){0}, &stats) == 0)
        monitor_stats_release(&stats);
    struct timeline_view *v;
    if (timeline_view_new(&v, t) == 0) {
        draw(v, t);
        timeline_view_free(v);
    }
}

/* Reads nodes one by one before all of them have been checked. */
static void scan_some(const struct timeline *t)
{
    static const uint32_t some[] = {0, 1, 2, 1000, TL_NONE};
    for (size_t i = 0; i < ARRAY_SIZE(some); i++) {
        if (!timeline_node_holds(t, some[i]))
            continue;
        const struct tl_context *c = tl_context_of(t, some[i]);
        for (uint32_t k = 0; c->stack != TL_NONE && k < MIN(t->stacks[c->stack].len, 100u); k++)
            (void)tl_string(t, t->frames[t->stacks[c->stack].first + k].method);
        (void)tl_object_class(t, c->object);
        (void)tl_thread_name(t, tl_node(t, some[i]).thread);
    }
}

static void replay_unchecked(const struct timeline *t)
{
    struct what_if w = {.lock = all, .factor = 0.5, .bounds = true};
    uint64_t *times = t->holds && t->hold_first ? malloc((t->n_nodes + 1) * sizeof(*times)) : NULL;
    if (times)
        (void)!what_if_times(t, &w, times);
    free(times);
}

/* The critical path checks the nodes that it visits, the replay all of them. */
static void analyse_unchecked(const struct timeline *t)
{
    struct critical_path p;
    struct path_methods methods;
    if (timeline_check_tables(t) < 0 || t->n_nodes == 0)
        return;
    replay_unchecked(t);
    if (critical_path(t, &PATH_OPTIONS, &p) < 0)
        return;
    if (path_methods(t, &p, NULL, &methods) == 0)
        vec_release(&methods.rows);
    for (size_t i = 0; i < p.segments.len; i++) {
        const struct path_segment *s = &p.segments.data[i];
        (void)tl_thread_name(t, s->thread);
        if (s->waker != TL_NONE)
            (void)tl_thread_name(t, s->waker);
        if (s->node != TL_NONE)
            (void)tl_object_class(t, tl_context_of(t, s->node)->object);
    }
    critical_path_release(&p);
}

/* Writes the bytes after the beginning that identifies the file. */
static void file_of(int fd, const void *start, size_t len, const uint8_t *data, size_t size)
{
    if (ftruncate(fd, 0) < 0 || pwrite(fd, start, len, 0) < 0 ||
        pwrite(fd, data + len, size - len, (off_t)len) < 0)
        abort();
}

static void view_of_it(const char *path)
{
    static const struct tl_thread threads[2];
    static const struct tl_context context;
    static const uint8_t packed[TL_PACKED_PADDING];
    static const uint16_t shapes[TL_SHAPES];
    static const struct tl_block block;
    const struct timeline t = {.n_nodes = 4,
                               .threads = threads,
                               .n_threads = 2,
                               .packed = packed,
                               .n_packed = sizeof(packed),
                               .blocks = &block,
                               .n_blocks = 1,
                               .shapes = shapes,
                               .n_shapes = TL_SHAPES,
                               .contexts = &context,
                               .n_contexts = 1,
                               .end_ns = 1 << 20};
    struct timeline_view *v;
    const void *rest;
    size_t len;
    if (timeline_view_map(&v, &t, path, 1, &rest, &len) == 0) {
        draw(v, &t);
        timeline_view_free(v);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint32_t start[8];
    uint64_t view_start[3];
    struct timeline *t;
    char path[64];
    if (size < sizeof(start))
        return 0;
    memcpy(start, data, sizeof(start));
    timeline_index_stamp(start, 1, size);
    int fd = memfd_create("index", MFD_CLOEXEC);
    if (fd < 0)
        abort();
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    file_of(fd, start, sizeof(start), data, size);
    if (timeline_map_unchecked(&t, path, 1) == 0) {
        scan_some(t);
        analyse_unchecked(t);
        timeline_free(t);
    }
    if (timeline_map(&t, path, 1) == 0) {
        if (t->n_nodes)
            analyse(t);
        timeline_free(t);
    }
    timeline_view_stamp(view_start, 1, size);
    file_of(fd, view_start, sizeof(view_start), data, size);
    view_of_it(path);
    close(fd);
    return 0;
}
