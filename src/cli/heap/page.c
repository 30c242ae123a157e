/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/heap/page.h"
#include "base/real.h"

#include "base/json.h"
#include "base/parse.h"

#include <inttypes.h>

void page_release(struct page *p)
{
    for (size_t i = 0; i < p->blocks.len; i++)
        vec_release(&p->blocks.data[i].cells);
    vec_release(&p->blocks);
    arena_release(&p->arena);
}

static const char *keep(struct page *p, const char *text, size_t len)
{
    const char *copy = arena_copy(&p->arena, text, len);
    if (!copy)
        p->error = -ENOMEM;
    return copy ? copy : "";
}

static const char *keep_format(struct page *p, const char *format, va_list args)
{
    _cleanup_(buf_release) struct buf b = BUF(16 << 20);
    buf_vprintf(&b, format, args);
    return keep(p, buf_str(&b), b.len);
}

static void add_block(struct page *p, struct page_block block)
{
    if (vec_push(&p->blocks, block) < 0)
        p->error = -ENOMEM;
}

int page_refuse(struct page *p, const char *where, const char *what, const char *why)
{
    _cleanup_(buf_release) struct buf line = BUF(1 << 20);
    const char *parts[] = {where, what, why};
    for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
        if (parts[i])
            buf_printf(&line, "%s%s", line.len ? ": " : "", parts[i]);
    }
    p->refusal = keep(p, buf_str(&line), line.len);
    return 1;
}

void page_note(struct page *p, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    add_block(p, (struct page_block){.title = keep_format(p, format, args)});
    va_end(args);
}

void page_fact_text(struct page *p, const char *key, const char *title, const char *text)
{
    struct page_cell cell = {
        .kind = PAGE_TEXT, .null = !text, .text = text ? keep(p, text, strlen(text)) : NULL};
    add_block(p, (struct page_block){.key = key, .title = title, .fact = cell});
}

void page_fact(struct page *p, const char *key, const char *title, enum page_kind kind,
               uint64_t value)
{
    add_block(p, (struct page_block){
                     .key = key, .title = title, .fact = {.kind = kind, .number = value}});
}

void page_fact_real(struct page *p, const char *key, double value)
{
    add_block(p, (struct page_block){.key = key, .fact = {.kind = PAGE_REAL, .real = value}});
}

void page_heading(struct page *p, const char *title)
{
    static const struct page_column none[] = {{0}};
    add_block(p, (struct page_block){.title = title, .columns = none});
}

void page_table(struct page *p, const char *key, const char *title,
                const struct page_column *columns, size_t n)
{
    add_block(p,
              (struct page_block){.key = key, .title = title, .columns = columns, .columns_n = n});
}

void page_left(struct page *p, uint64_t rows, uint64_t most)
{
    if (p->blocks.len)
        p->blocks.data[p->blocks.len - 1].left = rows - MIN(rows, most);
}

static void add_cell(struct page *p, struct page_cell cell)
{
    if (!p->blocks.len)
        return;
    struct page_block *b = &p->blocks.data[p->blocks.len - 1];
    if (!b->columns_n)
        return;
    const struct page_column *column = &b->columns[b->cells.len % b->columns_n];
    if (column->kind != PAGE_ANY)
        cell.kind = column->kind;
    if (vec_push(&b->cells, cell) < 0)
        p->error = -ENOMEM;
}

void page_text(struct page *p, const char *text)
{
    add_cell(p,
             (struct page_cell){.null = !text, .text = text ? keep(p, text, strlen(text)) : NULL});
}

void page_text_n(struct page *p, const char *text, size_t len)
{
    add_cell(p, (struct page_cell){.text = keep(p, text, len)});
}

void page_number(struct page *p, uint64_t value)
{
    add_cell(p, (struct page_cell){.number = value});
}

void page_real(struct page *p, double value)
{
    add_cell(p, (struct page_cell){.real = value});
}

void page_cell(struct page *p, struct page_cell cell)
{
    add_cell(p, cell);
}

void page_null(struct page *p)
{
    add_cell(p, (struct page_cell){.null = true});
}

/* Formats 1234567 as "1,234,567" in text[32]. */
static char *grouped(char text[32], uint64_t v)
{
    char digits[24];
    int n = snprintf(digits, sizeof(digits), "%" PRIu64, v), at = 0;
    for (int i = 0; i < n; i++) {
        if (i && (n - i) % 3 == 0)
            text[at++] = ',';
        text[at++] = digits[i];
    }
    text[at] = 0;
    return text;
}

/* Returns the cell in the form for people, in text[32] or in the cell's own text. */
static const char *shown(const struct page_cell *c, char text[32])
{
    char digits[32];
    if (c->null)
        return "-";
    switch (c->kind) {
    case PAGE_TEXT:
        return c->text;
    case PAGE_COUNT:
    case PAGE_BYTES:
        return grouped(text, c->number);
    case PAGE_ID:
        snprintf(text, 32, "0x%" PRIx64, c->number);
        return text;
    case PAGE_PERCENT:
        snprintf(text, 32, "%.2f %%", c->real);
        return text;
    case PAGE_REAL:
        real_text(c->real, false, text);
        return text;
    case PAGE_BOOL:
        return c->number ? "yes" : "no";
    case PAGE_INTEGER:
        snprintf(text, 32, "%" PRId64, (int64_t)c->number);
        return text;
    case PAGE_CHANGE:
        text[0] = (int64_t)c->number < 0 ? '-' : '+';
        (void)grouped(digits, (uint64_t)llabs((int64_t)c->number));
        snprintf(text + 1, 31, "%.30s", digits);
        return c->number ? text : "0";
    case PAGE_ANY:
        break;
    }
    return "";
}

enum {
    MAX_COLUMNS = 32,
    WIDEST = 80 /* maximum columns on the terminal; a wider cell shifts the rest of its row */
};

/* Returns the columns that are shown, in their order. */
static size_t shown_order(const struct page_block *b, size_t ret[MAX_COLUMNS])
{
    size_t n = 0;
    for (int last = 0; last < 2; last++) {
        for (size_t c = 0; c < MIN(b->columns_n, (size_t)MAX_COLUMNS); c++) {
            if (b->columns[c].title && b->columns[c].last == (bool)last)
                ret[n++] = c;
        }
    }
    return n;
}

static bool left_aligned(const struct page_column *c)
{
    return c->kind == PAGE_TEXT || c->kind == PAGE_ID || c->kind == PAGE_ANY;
}

static int width_of(const char *text)
{
    return (int)MIN(text_width(text, strlen(text)), (size_t)WIDEST);
}

static void print_cell(bool left, const char *s, int width, bool last, FILE *to)
{
    fprintf(to, left ? "%-*s" : "%*s", left && last ? 0 : width, s);
    fputs(last ? "\n" : "  ", to);
}

static bool is_left(const struct page_column *column, const struct page_cell *cell)
{
    bool number = cell->kind == PAGE_INTEGER || cell->kind == PAGE_REAL;
    return left_aligned(column) && !(column->kind == PAGE_ANY && number);
}

static void print_table(const struct page_block *b, FILE *to)
{
    int widths[MAX_COLUMNS] = {0};
    char text[32];
    size_t order[MAX_COLUMNS], n = shown_order(b, order), rows = b->cells.len / b->columns_n;
    if (!n)
        return; /* for programs only */
    for (size_t i = 0; i < n; i++)
        widths[i] = width_of(b->columns[order[i]].title);
    for (size_t r = 0; r < rows; r++) {
        for (size_t i = 0; i < n; i++)
            widths[i] =
                MAX(widths[i], width_of(shown(&b->cells.data[r * b->columns_n + order[i]], text)));
    }
    if (b->title)
        fprintf(to, "\n%s\n", b->title);
    for (size_t i = 0; i < n; i++)
        print_cell(left_aligned(&b->columns[order[i]]), b->columns[order[i]].title, widths[i],
                   i + 1 == n, to);
    for (size_t r = 0; r < rows; r++) {
        const struct page_cell *row = &b->cells.data[r * b->columns_n];
        for (size_t i = 0; i < n; i++)
            print_cell(is_left(&b->columns[order[i]], &row[order[i]]), shown(&row[order[i]], text),
                       widths[i], i + 1 == n, to);
    }
    if (!rows)
        fputs("(none)\n", to);
    if (b->left)
        fprintf(to, "... and %s more (--limit)\n", COUNT_TEXT(b->left, "rows"));
}

static bool is_heading(const struct page_block *b)
{
    return b->columns && !b->columns_n;
}

void page_print(const struct page *p, FILE *to)
{
    char text[32], size[24];
    for (size_t i = 0; i < p->blocks.len; i++) {
        const struct page_block *b = &p->blocks.data[i];
        if (is_heading(b)) {
            fprintf(to, "\n%s\n", b->title);
        } else if (b->columns_n) {
            print_table(b, to);
        } else if (!b->key) {
            fprintf(to, "%s\n", b->title);
        } else if (b->title) {
            fprintf(to, "%-23s %s", b->title, shown(&b->fact, text));
            if (b->fact.kind == PAGE_BYTES && b->fact.number >= 1024)
                fprintf(to, " (%s)", format_size(size, b->fact.number));
            fputc('\n', to);
        }
    }
}

static void cell_json(struct json *j, const struct page_cell *c)
{
    char text[32];
    if (c->null)
        json_null(j);
    else if (c->kind == PAGE_TEXT || c->kind == PAGE_ID)
        json_string(j, shown(c, text));
    else if (c->kind == PAGE_PERCENT || c->kind == PAGE_REAL)
        json_double(j, c->real);
    else if (c->kind == PAGE_BOOL)
        json_bool(j, c->number);
    else if (c->kind == PAGE_INTEGER || c->kind == PAGE_CHANGE)
        json_i64(j, (int64_t)c->number);
    else
        json_u64(j, c->number);
}

/* Writes "columns" and "rows" of a table whose column names come from the user. */
static void arrays_json(struct json *j, const struct page_block *b)
{
    json_key_array(j, "columns");
    for (size_t c = 0; c < b->columns_n; c++)
        json_string(j, b->columns[c].key);
    json_end_array(j);
    json_key_array(j, b->key);
    for (size_t c = 0; b->columns_n && c < b->cells.len; c++) {
        if (c % b->columns_n == 0)
            json_begin_array(j);
        cell_json(j, &b->cells.data[c]);
        if (c % b->columns_n == b->columns_n - 1)
            json_end_array(j);
    }
    json_end_array(j);
}

/* Writes how many rows each table leaves out. */
static void left_json(const struct page *p, struct json *j)
{
    bool any = false;
    for (size_t i = 0; i < p->blocks.len; i++) {
        const struct page_block *b = &p->blocks.data[i];
        if (!b->left || !b->key)
            continue;
        if (!any)
            json_key_object(j, "left_out");
        any = true;
        json_key_u64(j, b->key, b->left);
    }
    if (any)
        json_end_object(j);
}

int page_json(const struct page *p, struct buf *out)
{
    struct json j = {.out = out};
    json_begin_object(&j);
    for (size_t i = 0; i < p->blocks.len; i++) {
        const struct page_block *b = &p->blocks.data[i];
        if (!b->key)
            continue;
        if (b->arrays) {
            arrays_json(&j, b);
            continue;
        }
        json_key(&j, b->key);
        if (!b->columns_n) {
            cell_json(&j, &b->fact);
            continue;
        }
        json_begin_array(&j);
        for (size_t c = 0; c < b->cells.len; c++) {
            if (c % b->columns_n == 0)
                json_begin_object(&j);
            json_key(&j, b->columns[c % b->columns_n].key);
            cell_json(&j, &b->cells.data[c]);
            if (c % b->columns_n == b->columns_n - 1)
                json_end_object(&j);
        }
        json_end_array(&j);
    }
    left_json(p, &j);
    bool notes = false;
    for (size_t i = 0; i < p->blocks.len; i++)
        notes = notes || (!p->blocks.data[i].key && !is_heading(&p->blocks.data[i]));
    if (notes) {
        json_key_array(&j, "notes");
        for (size_t i = 0; i < p->blocks.len; i++) {
            if (!p->blocks.data[i].key && !is_heading(&p->blocks.data[i]))
                json_string(&j, p->blocks.data[i].title);
        }
        json_end_array(&j);
    }
    json_end_object(&j);
    buf_u8(out, '\n');
    return p->error ? p->error : buf_error(out);
}

static void html_text(struct buf *b, const char *text)
{
    static const char *const escapes[128] = {
        ['<'] = "&lt;", ['>'] = "&gt;", ['&'] = "&amp;", ['"'] = "&quot;"};
    _cleanup_(buf_release) struct buf clean = BUF(64 << 20);
    buf_utf8(&clean, text, strlen(text));
    for (const char *p = buf_str(&clean); *p; p++) {
        const char *escape = (unsigned char)*p < 128 ? escapes[(unsigned char)*p] : NULL;
        if (escape)
            buf_string(b, escape);
        else
            buf_u8(b, (uint8_t)*p);
    }
}

/* Draws bars for the first rows by their largest BYTES column. */
static void html_chart(const struct page_block *b, struct buf *out)
{
    size_t bytes = b->columns_n, name = b->columns_n,
           rows = MIN(b->cells.len / b->columns_n, (size_t)12);
    for (size_t c = 0; c < b->columns_n; c++) {
        if (b->columns[c].kind == PAGE_BYTES)
            bytes = c;
        if (b->columns[c].kind == PAGE_TEXT && name == b->columns_n)
            name = c;
    }
    if (bytes == b->columns_n || name == b->columns_n || !rows)
        return;
    uint64_t most = 1;
    for (size_t r = 0; r < rows; r++)
        most = MAX(most, b->cells.data[r * b->columns_n + bytes].number);
    buf_string(out, "<div class=chart>");
    for (size_t r = 0; r < rows; r++) {
        const struct page_cell *row = &b->cells.data[r * b->columns_n];
        char size[24];
        buf_string(out, "<div><span>");
        html_text(out, row[name].null ? "-" : row[name].text);
        buf_printf(out, "</span><i style=\"width:%.1f%%\"></i><b>%s</b></div>",
                   55.0 * (double)row[bytes].number / (double)most,
                   format_size(size, row[bytes].number));
    }
    buf_string(out, "</div>\n");
}

static void html_table(const struct page_block *b, struct buf *out)
{
    char text[32];
    size_t order[MAX_COLUMNS], n = shown_order(b, order), rows = b->cells.len / b->columns_n;
    if (!n)
        return;
    if (b->title) {
        buf_string(out, "<h2>");
        html_text(out, b->title);
        buf_string(out, "</h2>\n");
    }
    if (b->chart)
        html_chart(b, out);
    buf_string(out, "<table><tr>");
    for (size_t i = 0; i < n; i++)
        buf_printf(out, "<th>%s", b->columns[order[i]].title);
    for (size_t r = 0; r < rows; r++) {
        buf_string(out, "\n<tr>");
        for (size_t i = 0; i < n; i++) {
            const struct page_cell *cell = &b->cells.data[r * b->columns_n + order[i]];
            buf_string(out, cell->kind == PAGE_ID                  ? "<td class=i>"
                            : is_left(&b->columns[order[i]], cell) ? "<td>"
                                                                   : "<td class=n>");
            html_text(out, shown(cell, text));
        }
    }
    buf_string(out, "</table>\n");
    if (b->left)
        buf_printf(out, "<p>... and %s more (--limit)</p>\n", COUNT_TEXT(b->left, "rows"));
}

/* Writes a tree as elements that open. Rows are in pre-order; the first column is the depth. */
static void html_tree(const struct page_block *b, struct buf *out)
{
    char text[32];
    size_t n = b->columns_n, rows = b->cells.len / n;
    buf_printf(out, "<h2>%s</h2>\n<div class=tree>", b->title ? b->title : "");
    for (size_t r = 0; r < rows; r++) {
        const struct page_cell *row = &b->cells.data[r * n];
        uint64_t depth = row[0].number;
        uint64_t next = r + 1 < rows ? b->cells.data[(r + 1) * n].number : 0;
        buf_string(out, next > depth ? "<details><summary>" : "<p>");
        for (size_t c = 1; c < n; c++) {
            if (!b->columns[c].title)
                continue;
            buf_string(out, row[c].kind == PAGE_TEXT || row[c].kind == PAGE_ID ? "<span>" : "<b>");
            html_text(out, shown(&row[c], text));
            buf_string(out,
                       row[c].kind == PAGE_TEXT || row[c].kind == PAGE_ID ? "</span> " : "</b> ");
        }
        buf_string(out, next > depth ? "</summary>" : "</p>");
        for (uint64_t d = next; d < depth; d++)
            buf_string(out, "</details>");
        buf_u8(out, '\n');
    }
    buf_string(out, "</div>\n");
}

int page_html(const struct page *p, struct buf *out)
{
    char text[32], size[24];
    buf_string(out, "<!DOCTYPE html><html lang=en><meta charset=utf-8><title>");
    html_text(out, p->title ? p->title : "heap");
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
        "0;max-width:60em}@media(prefers-color-scheme:dark){body{background:#16181c;color:#ddd}th,"
        "td{border-color:#3a3d44}}</style><h1>");
    html_text(out, p->title ? p->title : "heap");
    buf_string(out, "</h1>\n");
    bool list = false;
    for (size_t i = 0; i < p->blocks.len; i++) {
        const struct page_block *b = &p->blocks.data[i];
        bool fact = !b->columns_n && b->key && b->title;
        if (fact != list)
            buf_string(out, fact ? "<dl>" : "</dl>\n");
        list = fact;
        if (fact) {
            buf_printf(out, "<dt>%s<dd>", b->title);
            html_text(out, shown(&b->fact, text));
            if (b->fact.kind == PAGE_BYTES)
                buf_printf(out, " (%s)", format_size(size, b->fact.number));
        } else if (is_heading(b)) {
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
    return p->error ? p->error : buf_error(out);
}
