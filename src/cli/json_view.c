/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/json_view.h"

/* json-c and base/json.h cannot be seen together: both have a json_object. */
#include "base/buf.h"
#include "base/vec.h"
#include "cli/text.h"

#include <json-c/json.h>

enum { CELL_WIDTH = 48, CELL_MAX = 1 << 16 };

/* {"class", ...} with nothing of its own beyond a name for the object is a reference, not a row. */
static bool is_reference(json_object *o)
{
    return json_object_object_get(o, "class") && (json_object_object_get(o, "id") || json_object_object_get(o, "hash")) &&
           !json_object_object_get(o, "status");
}

static bool is_table(json_object *a)
{
    size_t n = json_object_array_length(a);
    for (size_t i = 0; i < n; i++) {
        json_object *o = json_object_array_get_idx(a, i);
        if (!json_object_is_type(o, json_type_object) || is_reference(o))
            return false;
    }
    return n > 0;
}

static void put_cell(struct buf *b, json_object *v);

/* What stands for an object in a line: its value, or its class and number. */
static void put_reference(struct buf *b, json_object *o)
{
    json_object *value = json_object_object_get(o, "value"), *class = json_object_object_get(o, "class");
    json_object *id = json_object_object_get(o, "id"), *length = json_object_object_get(o, "length");
    json_object *name = json_object_object_get(o, "name"), *hash = json_object_object_get(o, "hash");
    if (class) {
        buf_string(b, json_object_get_string(class));
        if (id)
            buf_printf(b, "@%s", json_object_get_string(id));
        if (hash)
            buf_printf(b, "#%x", (unsigned)json_object_get_int(hash));
    } else if (name) {
        put_cell(b, name);
    }
    if (length && !value)
        buf_printf(b, "[%s]", json_object_get_string(length));
    if (value) {
        buf_string(b, class ? " " : "");
        put_cell(b, value);
    }
}

static void put_cell(struct buf *b, json_object *v)
{
    switch (json_object_get_type(v)) {
    case json_type_null:
        buf_string(b, "null");
        break;
    case json_type_object:
        put_reference(b, v);
        break;
    case json_type_array:
        if (is_table(v)) {
            buf_printf(b, "(%zu)", json_object_array_length(v));
            break;
        }
        for (size_t i = 0; i < json_object_array_length(v); i++) {
            buf_string(b, i ? ", " : "");
            put_cell(b, json_object_array_get_idx(v, i));
        }
        break;
    default:
        buf_string(b, json_object_get_string(v));
    }
}

static void print_cell(FILE *to, json_object *v, size_t width, bool right)
{
    _cleanup_(buf_release) struct buf b = BUF(CELL_MAX);
    if (v)
        put_cell(&b, v);
    size_t len = strlen(buf_str(&b));
    bool cut = width && len > width;
    size_t shown = cut ? width - 3 : len;
    if (right)
        fprintf(to, "%*s", (int)(width > len ? width - len : 0), "");
    print_text(to, (struct str){buf_str(&b), shown});
    fputs(cut ? "..." : "", to);
    if (!right && width)
        fprintf(to, "%*s", (int)(width > len ? width - len : 0), "");
}

struct column {
    const char *key;
    size_t width;
    bool number;
};

static void print_table(FILE *to, json_object *a)
{
    VEC(struct column) columns = {0};
    size_t rows = json_object_array_length(a);
    for (size_t r = 0; r < rows; r++) {
        json_object_object_foreach(json_object_array_get_idx(a, r), key, value)
        {
            size_t c = 0;
            while (c < columns.len && strcmp(columns.data[c].key, key) != 0)
                c++;
            if (c == columns.len && vec_push(&columns, ((struct column){key, strlen(key), true})) < 0)
                break;
            _cleanup_(buf_release) struct buf b = BUF(CELL_MAX);
            put_cell(&b, value);
            columns.data[c].width = MIN(MAX(columns.data[c].width, strlen(buf_str(&b))), CELL_WIDTH);
            columns.data[c].number &= json_object_is_type(value, json_type_int) || json_object_is_type(value, json_type_double);
        }
    }
    for (size_t r = 0; r <= rows; r++) {
        for (size_t c = 0; c < columns.len; c++) {
            const struct column *col = &columns.data[c];
            size_t width = c + 1 < columns.len || col->number ? col->width : 0;
            fputs(c ? "  " : "  ", to);
            if (r == 0)
                fprintf(to, col->number ? "%*s" : "%-*s", (int)width, col->key);
            else
                print_cell(to, json_object_object_get(json_object_array_get_idx(a, r - 1), col->key), width, col->number);
        }
        fputc('\n', to);
    }
    vec_release(&columns);
}

static void print_lines(FILE *to, json_object *a)
{
    for (size_t i = 0; i < json_object_array_length(a); i++) {
        fputs("  ", to);
        print_cell(to, json_object_array_get_idx(a, i), 0, false);
        fputc('\n', to);
    }
}

static void print_members(FILE *to, json_object *o)
{
    json_object_object_foreach(o, key, value)
    {
        bool array = json_object_is_type(value, json_type_array);
        if (array && json_object_array_length(value) == 0)
            continue;
        if (array) {
            fprintf(to, "%s (%zu)\n", key, json_object_array_length(value));
            is_table(value) ? print_table(to, value) : print_lines(to, value);
        } else {
            fprintf(to, "%-24s ", key);
            print_cell(to, value, 0, false);
            fputc('\n', to);
        }
    }
}

int json_view(FILE *to, const char *text)
{
    json_object *o = json_tokener_parse(text);
    if (!o)
        return -EINVAL;
    if (json_object_is_type(o, json_type_object))
        print_members(to, o);
    json_object_put(o);
    return 0;
}

int json_view_each(const char *text, const char *array, const char *key, void (*see)(void *context, const char *value),
                   void *context)
{
    json_object *o = json_tokener_parse(text), *list = json_object_object_get(o, array);
    int r = json_object_is_type(list, json_type_array) ? 0 : -EINVAL;
    for (size_t i = 0; r == 0 && i < json_object_array_length(list); i++) {
        const char *value = json_object_get_string(json_object_object_get(json_object_array_get_idx(list, i), key));
        if (value)
            see(context, value);
    }
    json_object_put(o);
    return r;
}
