/* SPDX-License-Identifier: Apache-2.0 */
#include "answers/answer.h"
#include "base/parse.h"
#include "base/real.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void answer_release(struct answer *a)
{
    for (size_t i = 0; i < a->blocks.len; i++)
        vec_release(&a->blocks.data[i].cells);
    vec_release(&a->blocks);
    arena_release(&a->arena);
}

static const char *keep(struct answer *a, const char *text, size_t len)
{
    const char *copy = arena_copy(&a->arena, text, len);
    if (!copy)
        a->error = -ENOMEM;
    return copy ? copy : "";
}

static const char *keep_format(struct answer *a, const char *format, va_list args)
{
    _cleanup_(buf_release) struct buf b = BUF(16 << 20);
    buf_vprintf(&b, format, args);
    return keep(a, buf_str(&b), b.len);
}

static void add_block(struct answer *a, struct answer_block block)
{
    if (vec_push(&a->blocks, block) < 0)
        a->error = -ENOMEM;
}

int answer_refuse(struct answer *a, const char *where, const char *what, const char *why)
{
    _cleanup_(buf_release) struct buf line = BUF(1 << 20);
    const char *parts[] = {where, what, why};
    for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
        if (parts[i])
            buf_printf(&line, "%s%s", line.len ? ": " : "", parts[i]);
    }
    a->refusal = keep(a, buf_str(&line), line.len);
    return 1;
}

void answer_note(struct answer *a, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    add_block(a, (struct answer_block){.title = keep_format(a, format, args)});
    va_end(args);
}

void answer_fact_text(struct answer *a, const char *key, const char *title, const char *text)
{
    struct answer_cell cell = {
        .kind = ANSWER_TEXT, .null = !text, .text = text ? keep(a, text, strlen(text)) : NULL};
    add_block(a, (struct answer_block){.key = key, .title = title, .fact = cell});
}

void answer_fact(struct answer *a, const char *key, const char *title, enum answer_kind kind,
                 uint64_t value)
{
    add_block(a, (struct answer_block){
                     .key = key, .title = title, .fact = {.kind = kind, .number = value}});
}

void answer_fact_real(struct answer *a, const char *key, double value)
{
    add_block(a, (struct answer_block){.key = key, .fact = {.kind = ANSWER_REAL, .real = value}});
}

void answer_heading(struct answer *a, const char *title)
{
    static const struct answer_column none[] = {{0}};
    add_block(a, (struct answer_block){.title = title, .columns = none});
}

void answer_table(struct answer *a, const char *key, const char *title,
                  const struct answer_column *columns, size_t n)
{
    add_block(
        a, (struct answer_block){.key = key, .title = title, .columns = columns, .columns_n = n});
}

void answer_left(struct answer *a, uint64_t rows, uint64_t most)
{
    if (a->blocks.len)
        a->blocks.data[a->blocks.len - 1].left = rows - MIN(rows, most);
}

static void add_cell(struct answer *a, struct answer_cell cell)
{
    if (!a->blocks.len)
        return;
    struct answer_block *b = &a->blocks.data[a->blocks.len - 1];
    if (!b->columns_n)
        return;
    const struct answer_column *column = &b->columns[b->cells.len % b->columns_n];
    if (column->kind != ANSWER_ANY)
        cell.kind = column->kind;
    if (vec_push(&b->cells, cell) < 0)
        a->error = -ENOMEM;
}

void answer_text(struct answer *a, const char *text)
{
    add_cell(
        a, (struct answer_cell){.null = !text, .text = text ? keep(a, text, strlen(text)) : NULL});
}

void answer_text_n(struct answer *a, const char *text, size_t len)
{
    add_cell(a, (struct answer_cell){.text = keep(a, text, len)});
}

void answer_number(struct answer *a, uint64_t value)
{
    add_cell(a, (struct answer_cell){.number = value});
}

void answer_real(struct answer *a, double value)
{
    add_cell(a, (struct answer_cell){.real = value});
}

void answer_cell(struct answer *a, struct answer_cell cell)
{
    add_cell(a, cell);
}

void answer_null(struct answer *a)
{
    add_cell(a, (struct answer_cell){.null = true});
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

const char *answer_cell_shown(const struct answer_cell *c, char text[32])
{
    char digits[32];
    if (c->null)
        return "-";
    switch (c->kind) {
    case ANSWER_TEXT:
        return c->text;
    case ANSWER_COUNT:
    case ANSWER_BYTES:
        return grouped(text, c->number);
    case ANSWER_ID:
        snprintf(text, 32, "0x%" PRIx64, c->number);
        return text;
    case ANSWER_PERCENT:
        snprintf(text, 32, "%.2f %%", c->real);
        return text;
    case ANSWER_REAL:
        real_text(c->real, false, text);
        return text;
    case ANSWER_BOOL:
        return c->number ? "yes" : "no";
    case ANSWER_INTEGER:
        snprintf(text, 32, "%" PRId64, (int64_t)c->number);
        return text;
    case ANSWER_CHANGE:
        text[0] = (int64_t)c->number < 0 ? '-' : '+';
        (void)grouped(digits, (uint64_t)llabs((int64_t)c->number));
        snprintf(text + 1, 31, "%.30s", digits);
        return c->number ? text : "0";
    case ANSWER_ANY:
        break;
    }
    return "";
}

size_t answer_columns_shown(const struct answer_block *b, size_t ret[ANSWER_MAX_COLUMNS])
{
    size_t n = 0;
    for (int last = 0; last < 2; last++) {
        for (size_t c = 0; c < MIN(b->columns_n, (size_t)ANSWER_MAX_COLUMNS); c++) {
            if (b->columns[c].title && b->columns[c].last == (bool)last)
                ret[n++] = c;
        }
    }
    return n;
}

bool answer_column_is_left(const struct answer_column *c)
{
    return c->kind == ANSWER_TEXT || c->kind == ANSWER_ID || c->kind == ANSWER_ANY;
}

bool answer_is_left(const struct answer_column *column, const struct answer_cell *cell)
{
    bool number = cell->kind == ANSWER_INTEGER || cell->kind == ANSWER_REAL;
    return answer_column_is_left(column) && !(column->kind == ANSWER_ANY && number);
}

bool answer_is_heading(const struct answer_block *b)
{
    return b->columns && !b->columns_n;
}

bool answer_block_is_idle(const struct answer *a, const struct answer_block *b)
{
    bool note = !b->key && !answer_is_heading(b);
    return a->nothing && !note;
}
