/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/json_view.h"

#include "base/buf.h"
#include "base/parse.h"
#include "base/vec.h"
#include "options/signature.h"

#include <json-c/json.h>

enum { CELL_WIDTH = 48, LABEL_MAX = 64 };

/*
 * Returns whether a member is only in the JSON: the bits of a thread's state, which the member
 * "state" says in a word, and bytecode, which `javap` shows.
 */
static bool is_for_programs(const char *key)
{
    return strcmp(key, "flags") == 0 || strcmp(key, "bytecode") == 0;
}

/* Returns whether a member is a duration, which is shown with its unit. */
static bool is_duration(const char *key)
{
    size_t len = strlen(key);
    return len > 3 && strcmp(key + len - 3, "_ns") == 0;
}

/* Puts what a member is called in text: "held threads", "identity hash". Returns `to`. */
static const char *label_of(const char *key, char to[LABEL_MAX])
{
    snprintf(to, LABEL_MAX, "%s", strcmp(key, "held") == 0 ? "held threads" : key);
    if (is_duration(to))
        to[strlen(to) - 3] = 0;
    for (char *p = to; *p; p++)
        if (*p == '_')
            *p = ' ';
    return to;
}

/* Returns whether an object is a reference, not a row: it has a class, an id or hash, no status. */
static bool is_reference(json_object *o)
{
    return json_object_object_get(o, "class") &&
           (json_object_object_get(o, "id") || json_object_object_get(o, "hash")) &&
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

static bool is_empty(json_object *v)
{
    return json_object_is_type(v, json_type_array) && json_object_array_length(v) == 0;
}

static void put_cell(struct buf *b, json_object *v);
static void put_member(struct buf *b, const char *key, json_object *v);

/* Appends the members of an object that put_reference does not show, as key=value. */
static void put_others(struct buf *b, json_object *o)
{
    static const char *const shown[] = {"value", "class", "id",      "length",
                                        "name",  "hash",  "constant"};
    json_object_object_foreach(o, key, value)
    {
        size_t i = 0;
        while (i < ARRAY_SIZE(shown) && strcmp(key, shown[i]) != 0)
            i++;
        if (i < ARRAY_SIZE(shown) || !value || is_empty(value) || is_for_programs(key))
            continue;
        if (json_object_is_type(value, json_type_boolean)) { /* such as "daemon" */
            if (json_object_get_boolean(value))
                buf_printf(b, "%s%s", b->len ? " " : "", key);
            continue;
        }
        /* Commands take the name of a thread or the number that inspect gives it, not its Java id.
         */
        bool is_owner = strcmp(key, "owner_name") == 0;
        if (strcmp(key, "owner") == 0 && json_object_object_get(o, "owner_name"))
            continue;
        char label[LABEL_MAX];
        label_of(is_owner ? "owner" : key, label);
        buf_printf(b, "%s%s=", b->len ? " " : "",
                   is_duration(key) ? label
                   : is_owner       ? "owner"
                                    : key);
        put_member(b, key, value);
    }
}

/* Appends a string of the program, quoted and escaped; a truncated one ends in `...`. */
static void put_string(struct buf *b, json_object *text, bool continues)
{
    buf_string(b, json_object_to_json_string_ext(text, JSON_C_TO_STRING_NOSLASHESCAPE));
    buf_string(b, continues ? "..." : "");
}

/* Appends an object in one line: its value, or its class and number, then its other members. */
static void put_reference(struct buf *b, json_object *o)
{
    json_object *value = json_object_object_get(o, "value"),
                *class = json_object_object_get(o, "class");
    json_object *id = json_object_object_get(o, "id"),
                *length = json_object_object_get(o, "length");
    json_object *name = json_object_object_get(o, "name"),
                *hash = json_object_object_get(o, "hash");
    json_object *constant = json_object_object_get(o, "constant");
    if (class) {
        buf_string(b, json_object_get_string(constant ? constant : class));
        if (id)
            buf_printf(b, "@%s", json_object_get_string(id));
        if (hash)
            buf_printf(b, "#%x", (unsigned)json_object_get_int(hash));
    }
    if (name) {
        buf_string(b, class ? " " : "");
        put_cell(b, name);
    }
    if (length && !value)
        buf_printf(b, "[%s]", json_object_get_string(length));
    if (value) {
        buf_string(b, class ? " " : name ? " = " : "");
        if (class && strcmp(json_object_get_string(class), "java.lang.String") == 0)
            put_string(b, value, length != NULL);
        else
            put_cell(b, value);
    }
    put_others(b, o);
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
        for (size_t i = 0; i < json_object_array_length(v); i++) {
            buf_string(b, i ? ", " : "");
            put_cell(b, json_object_array_get_idx(v, i));
        }
        break;
    default:
        buf_string(b, json_object_get_string(v));
    }
}

/* Appends variables as name=value. One that is null has a value, too. */
static void put_variables(struct buf *b, json_object *o)
{
    size_t begin = b->len;
    json_object_object_foreach(o, key, value)
    {
        buf_printf(b, "%s%s=", b->len > begin ? " " : "", key);
        put_cell(b, value);
    }
}

/* Appends "pkg.Class.name(IJ)V" as it is written in source code. */
static void put_method(struct buf *b, const char *text)
{
    size_t n = strcspn(text, "(");
    _cleanup_free_ char *name = strndup(text, n);
    if (name && text[n])
        signature_put(b, name, text + n);
    else
        buf_string(b, text);
}

/* Appends a member for people: descriptors and methods as in Java source, bits by their names. */
static void put_member(struct buf *b, const char *key, json_object *v)
{
    if (strcmp(key, "descriptor") == 0 && json_object_is_type(v, json_type_string))
        signature_put(b, "", json_object_get_string(v));
    else if ((strcmp(key, "methods") == 0 || strcmp(key, "methods_added") == 0) &&
             json_object_is_type(v, json_type_string))
        put_method(b, json_object_get_string(v));
    else if (strcmp(key, "locals") == 0 && json_object_is_type(v, json_type_object))
        put_variables(b, v);
    else if (is_duration(key) && json_object_is_type(v, json_type_int))
        buf_string(b, format_duration((char[24]){0}, (uint64_t)json_object_get_int64(v)));
    else
        put_cell(b, v);
}

static void print_cell(FILE *to, const char *key, json_object *v, size_t width, bool right)
{
    _cleanup_(buf_release) struct buf b = BUF(SIZE_MAX / 4);
    if (v)
        put_member(&b, key, v);
    if (width)
        print_column(to, buf_str(&b), width, right);
    else
        fprintf(to, "%s", buf_str(&b));
}

struct column {
    const char *key;
    size_t width;
    bool number;
};

static void print_table(FILE *to, json_object *a, int indent);

/* Prints the tables inside a row, below it. */
static void print_tables_of_row(FILE *to, json_object *row, int indent)
{
    char label[LABEL_MAX];
    json_object_object_foreach(row, key, value)
    {
        if (!json_object_is_type(value, json_type_array) || !is_table(value))
            continue;
        fprintf(to, "%*s%s (%zu)\n", indent, "", label_of(key, label),
                json_object_array_length(value));
        print_table(to, value, indent + 2);
    }
}

/* For variables, for which null is a value; other null members are absent. */
static bool is_null(json_object *row, const char *key)
{
    json_object *value = NULL;
    return strcmp(key, "value") == 0 && json_object_object_get_ex(row, key, &value) && !value;
}

static void print_table(FILE *to, json_object *a, int indent)
{
    VEC(struct column) columns = {0};
    char label[LABEL_MAX];
    size_t rows = json_object_array_length(a);
    for (size_t r = 0; r < rows; r++) {
        json_object_object_foreach(json_object_array_get_idx(a, r), key, value)
        {
            size_t c = 0;
            if (is_for_programs(key) ||
                (json_object_is_type(value, json_type_array) && is_table(value)))
                continue;
            while (c < columns.len && strcmp(columns.data[c].key, key) != 0)
                c++;
            if (c == columns.len &&
                vec_push(&columns,
                         ((struct column){key, MAX(text_width(key, strlen(key)), 3), true})) < 0)
                break;
            _cleanup_(buf_release) struct buf b = BUF(SIZE_MAX / 4);
            put_member(&b, key, value);
            size_t wide = text_width(buf_str(&b), b.len);
            columns.data[c].width = MIN(MAX(columns.data[c].width, wide), CELL_WIDTH);
            columns.data[c].number &= json_object_is_type(value, json_type_int) ||
                                      json_object_is_type(value, json_type_double);
        }
    }
    for (size_t r = 0; r <= rows; r++) {
        fprintf(to, "%*s", indent, "");
        for (size_t c = 0; c < columns.len; c++) {
            const struct column *col = &columns.data[c];
            size_t width = c + 1 < columns.len || col->number ? col->width : 0;
            fputs("  ", to);
            if (r == 0)
                fprintf(to, col->number ? "%*s" : "%-*s", (int)width, label_of(col->key, label));
            else if (is_null(json_object_array_get_idx(a, r - 1), col->key))
                print_column(to, "null", MAX(width, sizeof("null") - 1), false);
            else
                print_cell(to, col->key,
                           json_object_object_get(json_object_array_get_idx(a, r - 1), col->key),
                           width, col->number);
        }
        fputc('\n', to);
        if (r)
            print_tables_of_row(to, json_object_array_get_idx(a, r - 1), indent + 6);
    }
    vec_release(&columns);
}

static void print_lines(FILE *to, const char *key, json_object *a)
{
    for (size_t i = 0; i < json_object_array_length(a); i++) {
        fputs("  ", to);
        print_cell(to, key, json_object_array_get_idx(a, i), 0, false);
        fputc('\n', to);
    }
}

static bool has_only_empty(json_object *o)
{
    json_object_object_foreach(o, key, value)
    {
        (void)key;
        if (!is_empty(value))
            return false;
    }
    return true;
}

/* Returns whether a member is the number of frames, and the table of all of them is below it. */
static bool is_said_by_table(json_object *o, const char *key, json_object *value)
{
    json_object *frames = json_object_object_get(o, "frames");
    return strcmp(key, "depth") == 0 && json_object_is_type(frames, json_type_array) &&
           (int64_t)json_object_array_length(frames) == json_object_get_int64(value);
}

/* Prints the members; empty arrays only if there is nothing else. */
static void print_members(FILE *to, json_object *o)
{
    char label[LABEL_MAX];
    bool empty = has_only_empty(o);
    json_object_object_foreach(o, key, value)
    {
        bool array = json_object_is_type(value, json_type_array);
        if (is_empty(value)) {
            if (empty)
                fprintf(to, "no %s\n", label_of(key, label));
        } else if (array) {
            fprintf(to, "%s (%zu)\n", label_of(key, label), json_object_array_length(value));
            is_table(value) ? print_table(to, value, 0) : print_lines(to, key, value);
        } else if (is_said_by_table(o, key, value)) {
            continue;
        } else if (strcmp(key, "left_out") == 0) {
            fprintf(to, "and %s\n",
                    COUNT_TEXT((uint64_t)json_object_get_int64(value), "more objects"));
        } else {
            fprintf(to, "%-24s ", label_of(key, label));
            print_cell(to, key, value, 0, false);
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

int json_view_members(FILE *to, const char *text, const char *const names[])
{
    json_object *o = json_tokener_parse(text), *some = json_object_new_object();
    for (size_t i = 0; names[i]; i++) {
        json_object *value = json_object_object_get(o, names[i]);
        if (value)
            json_object_object_add(some, names[i], json_object_get(value));
    }
    if (o)
        print_members(to, some);
    int r = o ? 0 : -EINVAL;
    json_object_put(some);
    json_object_put(o);
    return r;
}

int json_view_each(const char *text, const char *array, const char *const keys[],
                   void (*see)(void *context, const char *const values[]), void *context)
{
    json_object *o = json_tokener_parse(text), *list = json_object_object_get(o, array);
    int r = json_object_is_type(list, json_type_array) ? 0 : -EINVAL;
    for (size_t i = 0; r == 0 && i < json_object_array_length(list); i++) {
        json_object *element = json_object_array_get_idx(list, i);
        const char *values[JSON_VIEW_KEYS] = {NULL};
        for (size_t k = 0; k < JSON_VIEW_KEYS && keys[k]; k++)
            values[k] = json_object_get_string(json_object_object_get(element, keys[k]));
        see(context, values);
    }
    json_object_put(o);
    return r;
}

char *json_view_text(const char *text, const char *key)
{
    json_object *o = json_tokener_parse(text), *value = json_object_object_get(o, key);
    char *copy =
        json_object_is_type(value, json_type_string) ? strdup(json_object_get_string(value)) : NULL;
    json_object_put(o);
    return copy;
}
