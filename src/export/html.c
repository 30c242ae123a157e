/* SPDX-License-Identifier: Apache-2.0 */
/* Writes a single, self-contained HTML file (page/page.h). */
#include "export/export.h"
#include "page/page.h"

#include <errno.h>

static int export_html(const struct export_source *s, FILE *out, struct buf *why)
{
    if (!page_head[0]) {
        buf_string(why, "this build has no page: npm or its packages were missing when it was "
                        "built; install npm and build again");
        return -ENOTSUP;
    }
    _cleanup_(buf_release) struct buf data = BUF(SIZE_MAX / 2);
    const struct page_source source = {.path = s->path,
                                       .name = s->name,
                                       .profile = s->profile,
                                       .metric = s->metric,
                                       .filter = s->filter,
                                       .warning = s->warning,
                                       .whole = s->whole,
                                       .part = s->part,
                                       .members = s->members,
                                       .fields = s->fields};
    int r = page_of_recording(&source, &data);
    if (r == 0)
        page_write(out, &data);
    return r;
}

const struct export_format export_format_html = {
    .extension = ".html",
    .what = "flame graph and table, one file that works offline",
    .any = true,
    .holds = HOLDS_ALL & ~(HOLDS_EXCEPTIONS | HOLDS_VM | HOLDS_LOG),
    .holds_partly = HOLDS_VM, /* collections and safepoints */
    .follows = FOLLOWS_SAMPLES,
    .write = export_html,
    .detail = LOAD_CELLS,
};
