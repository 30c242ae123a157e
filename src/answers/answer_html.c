/* SPDX-License-Identifier: Apache-2.0 */
#include "answers/answer.h"

#include "base/json.h"
#include "base/parse.h"

#include <string.h>

static void html_text(struct buf *b, const char *text)
{
    static const char *const escapes[128] = {
        ['<'] = "&lt;", ['>'] = "&gt;", ['&'] = "&amp;", ['"'] = "&quot;"};
    _cleanup_(buf_release) struct buf clean = BUF(64 << 20);
    json_put_utf8(&clean, text, strlen(text));
    for (const char *p = buf_str(&clean); *p; p++) {
        const char *escape = (unsigned char)*p < 128 ? escapes[(unsigned char)*p] : NULL;
        if (escape)
            buf_string(b, escape);
        else
            buf_u8(b, (uint8_t)*p);
    }
}

/* Draws bars for the first rows by their largest BYTES column. */
static void html_chart(const struct answer_block *b, struct buf *out)
{
    size_t bytes = b->columns_n, name = b->columns_n,
           rows = MIN(b->cells.len / b->columns_n, (size_t)12);
    for (size_t c = 0; c < b->columns_n; c++) {
        if (b->columns[c].kind == ANSWER_BYTES)
            bytes = c;
        if (b->columns[c].kind == ANSWER_TEXT && name == b->columns_n)
            name = c;
    }
    if (bytes == b->columns_n || name == b->columns_n || !rows)
        return;
    uint64_t most = 1;
    for (size_t r = 0; r < rows; r++)
        most = MAX(most, b->cells.data[r * b->columns_n + bytes].number);
    buf_string(out, "<div class=chart>");
    for (size_t r = 0; r < rows; r++) {
        const struct answer_cell *row = &b->cells.data[r * b->columns_n];
        char size[24];
        buf_string(out, "<div><span>");
        html_text(out, row[name].null ? "-" : row[name].text);
        buf_printf(out, "</span><i style=\"width:%.1f%%\"></i><b>%s</b></div>",
                   55.0 * (double)row[bytes].number / (double)most,
                   format_size(size, row[bytes].number));
    }
    buf_string(out, "</div>\n");
}

/* Writes what follows the rows that are shown. */
static void html_rest(const struct answer_block *b, size_t rows, struct buf *out)
{
    if (!rows)
        buf_string(out, "<p>(none)</p>\n");
    if (b->left)
        buf_printf(out, "<p>... and %s (--limit)</p>\n", COUNT_TEXT(b->left, "more rows"));
}

static void html_table(const struct answer_block *b, struct buf *out)
{
    char text[32];
    size_t order[ANSWER_MAX_COLUMNS], n = answer_columns_shown(b, order),
                                      rows = b->cells.len / b->columns_n;
    if (!n)
        return;
    if (b->title) {
        buf_string(out, "<h2>");
        html_text(out, b->title);
        buf_string(out, "</h2>\n");
    }
    if (b->chart)
        html_chart(b, out);
    if (!rows) {
        html_rest(b, rows, out);
        return;
    }
    buf_string(out, "<table><tr>");
    for (size_t i = 0; i < n; i++)
        buf_printf(out, "<th>%s", b->columns[order[i]].title);
    for (size_t r = 0; r < rows; r++) {
        buf_string(out, "\n<tr>");
        for (size_t i = 0; i < n; i++) {
            const struct answer_cell *cell = &b->cells.data[r * b->columns_n + order[i]];
            buf_string(out, cell->kind == ANSWER_ID                       ? "<td class=i>"
                            : answer_is_left(&b->columns[order[i]], cell) ? "<td>"
                                                                          : "<td class=n>");
            html_text(out, answer_cell_shown(cell, text));
        }
    }
    buf_string(out, "</table>\n");
    html_rest(b, rows, out);
}

/* Writes a tree as elements that open. Rows are in pre-order; the first column is the depth. */
static void html_tree(const struct answer_block *b, struct buf *out)
{
    char text[32];
    size_t n = b->columns_n, rows = b->cells.len / n;
    buf_printf(out, "<h2>%s</h2>\n<div class=tree>", b->title ? b->title : "");
    for (size_t r = 0; r < rows; r++) {
        const struct answer_cell *row = &b->cells.data[r * n];
        uint64_t depth = row[0].number;
        uint64_t next = r + 1 < rows ? b->cells.data[(r + 1) * n].number : 0;
        buf_string(out, next > depth ? "<details><summary>" : "<p>");
        for (size_t c = 1; c < n; c++) {
            if (!b->columns[c].title)
                continue;
            buf_string(out,
                       row[c].kind == ANSWER_TEXT || row[c].kind == ANSWER_ID ? "<span>" : "<b>");
            html_text(out, answer_cell_shown(&row[c], text));
            buf_string(out, row[c].kind == ANSWER_TEXT || row[c].kind == ANSWER_ID ? "</span> "
                                                                                   : "</b> ");
        }
        buf_string(out, next > depth ? "</summary>" : "</p>");
        for (uint64_t d = next; d < depth; d++)
            buf_string(out, "</details>");
        buf_u8(out, '\n');
    }
    buf_string(out, "</div>\n");
    html_rest(b, rows, out);
}

int answer_html(const struct answer *a, struct buf *out)
{
    char text[32], size[24];
    buf_string(out, "<!DOCTYPE html><html lang=en><meta charset=utf-8><meta "
                    "name=viewport content=\"width=device-width\"><title>");
    html_text(out, a->title ? a->title : "heap");
    buf_string(
        out,
        "</title><style>body{font:15px/1.45 system-ui,sans-serif;margin:2em "
        "auto;max-width:75em;padding:0 "
        "1em;color:#222;background:#fff}table{border-collapse:collapse;margin:.5em 0 "
        "1.5em}th,td{text-align:left;padding:.15em .8em;border-bottom:1px solid "
        "#ddd;vertical-align:top;overflow-wrap:anywhere}th{border-bottom:2px solid "
        "#888}th,td.i{white-space:nowrap}td.n{text-align:right;font-variant-numeric:tabular-nums;"
        "white-space:nowrap}.chart div{display:flex;align-items:center;gap:.6em;margin:.15em "
        "0}.chart span{width:24em;overflow:hidden;text-overflow:ellipsis;white-space:nowrap}.chart "
        "i{background:#3572b0;height:1.1em;display:block}.chart "
        "b{font-weight:400;white-space:nowrap}.tree details,.tree p{margin:0 0 0 1.2em}.tree "
        "summary{cursor:pointer;margin-left:-1.1em}dl{display:grid;grid-template-columns:max-"
        "content 1fr;gap:.1em 1.5em}dd{margin:0}p.note{margin:.4em "
        "0;max-width:60em}@media(max-width:50em){table{display:block;overflow-x:auto}td:not("
        "[class]){min-width:16em}dl{grid-"
        "template-columns:"
        "1fr}dt,dd,h1,h2,p{overflow-wrap:anywhere}.chart,.tree{overflow-x:auto}.chart "
        "span{width:10em}}@media(prefers-color-scheme:dark){body{background:#16181c;color:#ddd}th,"
        "td{border-color:#3a3d44}}h1{overflow-wrap:anywhere}</style><h1>");
    html_text(out, a->title ? a->title : "heap");
    buf_string(out, "</h1>\n");
    bool list = false;
    for (size_t i = 0; i < a->blocks.len; i++) {
        const struct answer_block *b = &a->blocks.data[i];
        bool fact = !b->columns_n && b->key && b->title;
        if (answer_block_is_idle(a, b))
            continue;
        if (fact != list)
            buf_string(out, fact ? "<dl>" : "</dl>\n");
        list = fact;
        if (fact) {
            buf_printf(out, "<dt>%s<dd>", b->title);
            html_text(out, answer_cell_shown(&b->fact, text));
            if (b->fact.kind == ANSWER_BYTES)
                buf_printf(out, " (%s)", format_size(size, b->fact.number));
        } else if (answer_is_heading(b)) {
            buf_printf(out, "<h2>%s</h2>\n", b->title);
        } else if (b->columns_n) {
            (b->nested ? html_tree : html_table)(b, out);
        } else if (!b->key) {
            buf_string(out, "<p class=note>");
            html_text(out, b->title);
            buf_string(out, "</p>\n");
        }
    }
    buf_string(out, list ? "</dl></html>\n" : "</html>\n");
    return a->error ? a->error : buf_error(out);
}
