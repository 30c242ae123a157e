/* SPDX-License-Identifier: Apache-2.0 */
/* An index file of a timeline, whatever is in it behind what says that it is one: mapped, and analysed when it holds. */
#include "analysis/critical_path.h"
#include "analysis/monitor_stats.h"
#include "analysis/what_if.h"
#include "model/timeline_index.h"
#include "model/timeline_view.h"

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

static void analyse(struct timeline *t)
{
    struct critical_path p;
    struct path_shares shares;
    struct path_methods methods;
    struct monitor_stats stats;
    struct what_if w = {.lock = all, .factor = 0.5};
    struct what_if_answer a;
    if (critical_path(t, &PATH_OPTIONS, &p) == 0) {
        if (path_shares_of(t, &PATH_OPTIONS, &p, &shares) == 0)
            vec_release(&shares.rows);
        if (path_methods(t, &p, &methods) == 0)
            vec_release(&methods.rows);
        critical_path_release(&p);
        (void)!what_if(t, &PATH_OPTIONS, &w, &a);
    }
    if (monitor_stats(t, &(struct stats_filter){0}, &stats) == 0)
        monitor_stats_release(&stats);
    struct timeline_view *v;
    if (timeline_view_new(&v, t) == 0) {
        uint32_t first = 0;
        struct view_range r = {.from = 0,
                               .to = t->end_ns >> 20 ? 1 << 20 : t->end_ns + 1,
                               .width = 100,
                               .threads = &first,
                               .n_threads = t->n_threads > 0};
        struct buf out = BUF(1 << 20);
        (void)!timeline_view_rows(v, &r, &out);
        (void)!timeline_view_arrows(v, &r, &out);
        buf_release(&out);
        timeline_view_free(v);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint32_t start[8];
    struct timeline *t;
    char path[64];
    if (size < sizeof(start))
        return 0;
    memcpy(start, data, sizeof(start));
    timeline_index_stamp(start, 1, size);
    int fd = memfd_create("index", MFD_CLOEXEC);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    if (fd < 0 || write(fd, start, sizeof(start)) < 0 || write(fd, data + sizeof(start), size - sizeof(start)) < 0)
        abort();
    if (timeline_map(&t, path, 1) == 0) {
        if (t->n_nodes)
            analyse(t);
        timeline_free(t);
    }
    close(fd);
    return 0;
}
