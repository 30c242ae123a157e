/* SPDX-License-Identifier: Apache-2.0 */
#include "answers/answer.h"

#include "base/json.h"

static void cell_json(struct json *j, const struct answer_cell *c)
{
    char text[32];
    if (c->null)
        json_null(j);
    else if (c->kind == ANSWER_TEXT || c->kind == ANSWER_ID)
        json_string(j, answer_cell_shown(c, text));
    else if (c->kind == ANSWER_PERCENT || c->kind == ANSWER_REAL)
        json_double(j, c->real);
    else if (c->kind == ANSWER_BOOL)
        json_bool(j, c->number);
    else if (c->kind == ANSWER_INTEGER || c->kind == ANSWER_CHANGE)
        json_i64(j, (int64_t)c->number);
    else
        json_u64(j, c->number);
}

/* Writes "columns" and "rows" of a table whose column names come from the user. */
static void arrays_json(struct json *j, const struct answer_block *b)
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
static void left_json(const struct answer *a, struct json *j)
{
    bool any = false;
    for (size_t i = 0; i < a->blocks.len; i++) {
        const struct answer_block *b = &a->blocks.data[i];
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

int answer_json(const struct answer *a, struct buf *out)
{
    struct json j = {.out = out};
    json_begin_object(&j);
    for (size_t i = 0; i < a->blocks.len; i++) {
        const struct answer_block *b = &a->blocks.data[i];
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
    left_json(a, &j);
    bool notes = false;
    for (size_t i = 0; i < a->blocks.len; i++)
        notes = notes || (!a->blocks.data[i].key && !answer_is_heading(&a->blocks.data[i]));
    if (notes) {
        json_key_array(&j, "notes");
        for (size_t i = 0; i < a->blocks.len; i++) {
            if (!a->blocks.data[i].key && !answer_is_heading(&a->blocks.data[i]))
                json_string(&j, a->blocks.data[i].title);
        }
        json_end_array(&j);
    }
    json_end_object(&j);
    buf_u8(out, '\n');
    return a->error ? a->error : buf_error(out);
}
