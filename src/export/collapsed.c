/* SPDX-License-Identifier: Apache-2.0 */
/* "a.B.run;a.C.work 12", the outermost frame first: what flamegraph.pl, speedscope and others read. */
#include "export/export.h"

#include <inttypes.h>

/* A name as one word of a line: what separates frames and lines is replaced. */
static void append_name(struct buf *line, struct str name)
{
    size_t at = line->len;
    buf_bytes(line, name.data, name.len);
    for (; at < line->len && !buf_error(line); at++) {
        if (line->data[at] == ';')
            line->data[at] = ',';
        else if (line->data[at] < 0x20)
            line->data[at] = '?';
    }
}

int export_collapsed(const struct export_source *s, FILE *out, struct buf *why)
{
    _cleanup_(profile_view_release) struct profile_view v = {0};
    _cleanup_(profile_tree_release) struct profile_tree t = {0};
    _cleanup_(buf_release) struct buf line = BUF(1 << 28);
    int r = profile_view_init(&v, s->profile, s->metric, &s->filter);
    if (r == 0)
        r = profile_tree_init(&t, &v, false);
    /* Depth first; `line` holds the path to n, marks[] where each of its frames begins. */
    VEC(size_t) starts = {0};
    uint32_t n = r == 0 ? t.nodes.data[0].first_child : 0;
    while (n && r == 0) {
        const struct profile_tree_node *node = &t.nodes.data[n];
        r = vec_push(&starts, line.len);
        if (line.len)
            buf_u8(&line, ';');
        append_name(&line, profile_text(s->profile, node->label));
        if (r == 0)
            r = buf_error(&line);
        if (r < 0)
            break;
        if (node->self) {
            fwrite(line.data, 1, line.len, out);
            fprintf(out, " %" PRIu64 "\n", node->self);
        }
        uint32_t next = node->first_child;
        for (; !next && n; n = t.nodes.data[n].parent) {
            line.len = starts.data[--starts.len];
            next = t.nodes.data[n].next_sibling;
        }
        n = next;
    }
    if (r == 0 && t.nodes.data[0].self)
        fprintf(out, "[no frame] %" PRIu64 "\n", t.nodes.data[0].self);
    vec_release(&starts);
    return r;
}
