/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/trace/exceptions.h"

#include "base/hash.h"
#include "base/json.h"
#include "base/map.h"
#include "base/parse.h"
#include "base/vec.h"
#include "cli/commands.h"
#include "cli/contents.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

struct row {
    char *class_name, *place, *caught; /* caught may be NULL */
    int64_t count, at_ns;              /* the number of throws up to this time */
    /* The method has a handler for the class, so it may have rethrown what it caught. */
    bool after_handler;
};

struct table {
    VEC(struct row) rows;
    struct map index;
};

static void row_release(struct row *row)
{
    free(row->class_name);
    free(row->place);
    free(row->caught);
}

static void table_release(struct table *t)
{
    for (size_t i = 0; i < t->rows.len; i++)
        row_release(&t->rows.data[i]);
    vec_release(&t->rows);
    map_release(&t->index);
}

/*
 * Each event has the total so far, and the last one counts. A total can decrease, because a throw
 * on its way to a handler counts as not caught.
 */
static int add_event(void *context, const struct rec_event *e)
{
    struct table *t = context;
    const struct rec_object *o = &e->object;
    const char *class_name = rec_string(o, "className", "?"), *place = rec_string(o, "place", "?"),
               *caught = rec_string(o, "caught", NULL);
    int64_t count = rec_long(o, "count", 0);
    uint64_t key = hash_bytes(class_name, strlen(class_name)) +
                   31 * hash_bytes(place, strlen(place)) +
                   (caught ? 961 * hash_bytes(caught, strlen(caught)) : 0);
    bool added;
    uint64_t *at = map_at(&t->index, key, t->rows.len, &added);
    if (!at)
        return -ENOMEM;
    if (added) {
        int r = vec_reserve(&t->rows, t->rows.len + 1);
        if (r < 0)
            return r;
        t->rows.data[t->rows.len++] = (struct row){.class_name = strdup(class_name),
                                                   .place = strdup(place),
                                                   .caught = caught ? strdup(caught) : NULL,
                                                   .count = count,
                                                   .at_ns = e->start_ns};
        const struct row *row = &t->rows.data[t->rows.len - 1];
        return row->class_name && row->place && (!caught || row->caught) ? 0 : -ENOMEM;
    }
    struct row *row = &t->rows.data[*at];
    if (e->start_ns >= row->at_ns) {
        row->count = count;
        row->at_ns = e->start_ns;
    }
    return 0;
}

/* Removes the rows of throws that have all reached a handler after all. */
static void remove_empty(struct table *t)
{
    size_t n = 0;
    for (size_t i = 0; i < t->rows.len; i++) {
        if (t->rows.data[i].count)
            t->rows.data[n++] = t->rows.data[i];
        else
            row_release(&t->rows.data[i]);
    }
    t->rows.len = n;
}

/* Returns the length of the method in a place: "pkg.Class.name" in "pkg.Class.name:12". */
static size_t method_length(const char *place)
{
    const char *line = strrchr(place, ':');
    return line ? (size_t)(line - place) : strlen(place);
}

static uint64_t handler_key(const char *class_name, const char *place)
{
    return hash_bytes(class_name, strlen(class_name)) +
           31 * hash_bytes(place, method_length(place));
}

/*
 * Finds throws that a handler may have caused by rethrowing. For the program's own throws the
 * number lies between that of the other throws and that of all throws.
 */
static int mark_after_handlers(struct table *t)
{
    struct map handlers = {0};
    int r = 0;
    for (size_t i = 0; i < t->rows.len && r == 0; i++) {
        const struct row *row = &t->rows.data[i];
        if (row->caught)
            r = map_put(&handlers, handler_key(row->class_name, row->caught), 1);
    }
    for (size_t i = 0; i < t->rows.len && r == 0; i++) {
        struct row *row = &t->rows.data[i];
        row->after_handler = map_get(&handlers, handler_key(row->class_name, row->place)) != NULL;
    }
    map_release(&handlers);
    return r;
}

static int by_count(const void *a, const void *b)
{
    const struct row *x = a, *y = b;
    int by_class = strcmp(x->class_name, y->class_name);
    return x->count != y->count ? (x->count < y->count ? 1 : -1)
           : by_class           ? by_class
                                : strcmp(x->place, y->place);
}

static void print_throws(uint64_t throws, int64_t again)
{
    char text[64];
    format_count(text, throws, "throws");
    if (again)
        printf("%s, at most %" PRId64 " of them of an exception that was caught before: "
               "what a handler throws on (finally, synchronized, try-with-resources, a rethrow) "
               "counts again\n",
               text, again);
    else
        printf("%s, none of them of an exception that was caught before\n", text);
}

static void print(const struct table *t, bool as_json, size_t n, const struct losses *l)
{
    _cleanup_(buf_release) struct buf out = BUF(SIZE_MAX / 4);
    struct json j = {.out = &out};
    int64_t throws = 0, again = 0;
    int class_width = 9, place_width = 9;

    enum { COLUMN_MOST = 56 };

    for (size_t i = 0; i < t->rows.len; i++) {
        throws += t->rows.data[i].count;
        again += t->rows.data[i].after_handler ? t->rows.data[i].count : 0;
    }
    for (size_t i = 0; i < n; i++) {
        class_width = text_wider(class_width, t->rows.data[i].class_name, COLUMN_MOST);
        place_width = text_wider(place_width, t->rows.data[i].place, COLUMN_MOST);
    }
    if (!as_json)
        printf("%12s  %-*s  %-*s  %s\n", "COUNT", class_width, "EXCEPTION", place_width,
               "THROWN AT", "CAUGHT AT");
    json_begin_object(&j);
    json_key_array(&j, "exceptions");
    for (size_t i = 0; i < n; i++) {
        const struct row *row = &t->rows.data[i];
        if (!as_json) {
            printf("%12" PRId64 "  %-*s  %-*s  %s\n", row->count, class_width, row->class_name,
                   place_width, row->place, row->caught ? row->caught : "nowhere");
            continue;
        }
        json_begin_object(&j);
        json_key_string(&j, "class", row->class_name);
        json_key_string(&j, "place", row->place);
        json_key_string(&j, "caught", row->caught);
        json_key_i64(&j, "count", row->count);
        json_key_bool(&j, "after_handler", row->after_handler);
        json_end_object(&j);
    }
    for (size_t i = 0; !as_json && i < n; i++) {
        if (strcmp(t->rows.data[i].place, "?") == 0) {
            printf(" ?: compiled code throws an exception of an instruction (NullPointerException "
                   "and so on) without a stack trace once it has thrown many; "
                   "-XX:-OmitStackTraceInFastThrow makes the VM create each trace, and "
                   "--exceptions=stacks has all places\n");
            break;
        }
    }
    for (size_t i = 0; !as_json && i < n; i++) {
        if (t->rows.data[i].caught && strcmp(t->rows.data[i].caught, "not known") == 0) {
            printf(
                " not known: the handler has no probe, as in methods that ran when the recording "
                "began, in hidden classes and in classes left out, or native code was called in "
                "between, which may have ended the exception\n");
            break;
        }
    }
    json_end_array(&j);
    json_key_i64(&j, "throws", throws);
    json_key_i64(&j, "throws_after_handler", again);
    losses_json(l, losses_of_exceptions, &j);
    json_end_object(&j);
    if (as_json)
        puts(buf_str(&out));
    else
        print_throws((uint64_t)throws, again);
}

/* Returns whether a recording holds single throws. */
static bool has_throws(struct recording *r)
{
    static const struct rec_select throws[] = {{"jvmscope.ExceptionThrown", 1}, {0}};
    struct rec_event e;
    recording_rewind(r);
    return recording_select(r, throws) == 0 && recording_next(r, &e) > 0;
}

int exception_table(struct recording *r, const char *path, bool as_json, uint64_t limit,
                    const struct losses *l)
{
    static const struct rec_select counts[] = {{"jvmscope.ExceptionCount", 1}, {0}};
    struct table t = {0};
    int e = recording_each(r, counts, add_event, &t);
    remove_empty(&t);
    if (e >= 0)
        e = mark_after_handlers(&t);
    if (e >= 0 && t.rows.len) {
        qsort(t.rows.data, t.rows.len, sizeof(*t.rows.data), by_count);
        print(&t, as_json, limit && limit < t.rows.len ? (size_t)limit : t.rows.len, l);
    }
    bool empty = e >= 0 && !t.rows.len;
    table_release(&t);
    /* The counts may be missing because the disk was full; a part of a ring has none. */
    if (empty && has_throws(r))
        return complain(path, "holds no counts of exceptions",
                        "jvmscope trace lists the throws that it holds");
    if (empty)
        return contents_complain(path, (const char *const[]){"exceptions", NULL},
                                 "holds no exceptions", "record them with --exceptions");
    return e < 0 ? complain_errno(path, "cannot read", e) : 0;
}
