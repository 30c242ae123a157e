/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/answer.h"

#include "base/parse.h"

/* maximum columns on the terminal; a wider cell shifts the rest of its row */
enum { WIDEST = 80 };

static int width_of(const char *text)
{
    return (int)MIN(text_width(text, strlen(text)), (size_t)WIDEST);
}

static void print_cell(bool left, const char *s, int width, bool last, FILE *to)
{
    fprintf(to, left ? "%-*s" : "%*s", left && last ? 0 : width, s);
    fputs(last ? "\n" : "  ", to);
}

static void print_table(const struct answer_block *b, FILE *to)
{
    int widths[ANSWER_MAX_COLUMNS] = {0};
    char text[32];
    size_t order[ANSWER_MAX_COLUMNS], n = answer_columns_shown(b, order),
                                      rows = b->cells.len / b->columns_n;
    if (!n)
        return; /* for programs only */
    for (size_t i = 0; i < n; i++)
        widths[i] = width_of(b->columns[order[i]].title);
    for (size_t r = 0; r < rows; r++) {
        for (size_t i = 0; i < n; i++)
            widths[i] =
                MAX(widths[i],
                    width_of(answer_cell_shown(&b->cells.data[r * b->columns_n + order[i]], text)));
    }
    if (b->title)
        fprintf(to, "\n%s\n", b->title);
    for (size_t i = 0; i < n; i++)
        print_cell(answer_column_is_left(&b->columns[order[i]]), b->columns[order[i]].title,
                   widths[i], i + 1 == n, to);
    for (size_t r = 0; r < rows; r++) {
        const struct answer_cell *row = &b->cells.data[r * b->columns_n];
        for (size_t i = 0; i < n; i++)
            print_cell(answer_is_left(&b->columns[order[i]], &row[order[i]]),
                       answer_cell_shown(&row[order[i]], text), widths[i], i + 1 == n, to);
    }
    if (!rows)
        fputs("(none)\n", to);
    if (b->left)
        fprintf(to, "... and %s (--limit)\n", COUNT_TEXT(b->left, "more rows"));
}

void answer_print(const struct answer *a, FILE *to)
{
    char text[32], size[24];
    for (size_t i = 0; i < a->blocks.len; i++) {
        const struct answer_block *b = &a->blocks.data[i];
        if (answer_block_is_idle(a, b))
            continue;
        if (answer_is_heading(b)) {
            fprintf(to, "\n%s\n", b->title);
        } else if (b->columns_n) {
            print_table(b, to);
        } else if (!b->key) {
            fprintf(to, "%s\n", b->title);
        } else if (b->title) {
            fprintf(to, "%-23s %s", b->title, answer_cell_shown(&b->fact, text));
            if (b->fact.kind == ANSWER_BYTES && b->fact.number >= 1024)
                fprintf(to, " (%s)", format_size(size, b->fact.number));
            fputc('\n', to);
        }
    }
}
