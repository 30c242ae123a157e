/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes lines such as "a.B.run;a.C.work 12", with the outermost frame first, which flamegraph.pl,
 * speedscope and others read.
 */
#include "export/export.h"

#include "profile/load.h"

#include "base/utf8.h"

#include <inttypes.h>

/*
 * Appends a name as one word of a line: ';', which separates frames, becomes a comma, and
 * characters that would affect a terminal or the line become '?'.
 */
static void append_name(struct buf *line, struct str name)
{
    for (size_t at = 0, n; at < name.len; at += n) {
        uint32_t v;
        n = utf8_next(name.data + at, name.len - at, &v);
        utf8_put(line, v == ';' ? ',' : utf8_is_control(v) ? '?' : v);
    }
}

static int export_collapsed(const struct export_source *s, FILE *out, struct buf *why)
{
    _cleanup_(profile_view_release) struct profile_view v = {0};
    _cleanup_(profile_tree_release) struct profile_tree t = {0};
    _cleanup_(buf_release) struct buf line = BUF(1 << 28);
    int r = profile_view_init(&v, s->profile, s->metric, &s->filter);
    if (r == 0)
        r = profile_tree_init(&t, &v, false);
    if (r == 0 && s->metric != PROFILE_CPU)
        fprintf(out, COLLAPSED_METRIC "%s 0\n", profile_metrics[s->metric].name);
    if (r == 0) {
        _cleanup_(buf_release) struct buf note = BUF(4096);
        profile_note(&v, &note);
        append_name(&line, (struct str){buf_str(&note), note.len});
        if (line.len)
            fprintf(out, COLLAPSED_NOTE "%s 0\n", buf_str(&line));
        buf_clear(&line);
    }
    /*
     * Visits nodes depth first. `line` holds the path to n; marks[] are the positions where its
     * frames begin.
     */
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

const struct export_format export_format_collapsed = {
    .extension = ".collapsed",
    .what = "one stack per line, for flame graph tools",
    .one_metric = true,
    .holds = HOLDS_STACKS,
    .follows = FOLLOWS_SAMPLES,
    .write = export_collapsed,
    .detail = LOAD_SUMS,
};
