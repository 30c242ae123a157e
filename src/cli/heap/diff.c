/* SPDX-License-Identifier: Apache-2.0 */
/* `heap diff OLD NEW`: which classes grew, by number, size and retained size. */
#include "base/generated_name.h"
#include "cli/heap/accumulation.h"
#include "cli/heap/verbs.h"

#include <stdlib.h>
#include <string.h>

/* A class by its name; classes with the same name from several loaders are counted together. */
struct row {
    const char *name;
    uint64_t objects[2], bytes[2], retained[2];
    bool program; /* it is neither the JDK's nor an array of primitive values */
};

struct rows {
    struct strpool names;
    struct map by_name;
    VEC(struct row) list;
};

static int take(struct rows *r, const struct heap_dump *d, int side)
{
    for (size_t k = 0; k < d->classes.len; k++) {
        const struct heap_class *c = &d->classes.data[k];
        bool added;
        if (!c->objects || generated_name_is_agents(c->name, strlen(c->name)))
            continue;
        int64_t number = strpool_add(&r->names, c->name, strlen(c->name));
        uint64_t *at =
            number < 0 ? NULL : map_at(&r->by_name, (uint64_t)number, r->list.len, &added);
        if (!at)
            return -ENOMEM;
        struct row new = {.program = heap_is_program_class(c)};
        if (added)
            new.name = strpool_get(&r->names, (uint64_t)number).data;
        if (added && vec_push(&r->list, new) < 0)
            return -ENOMEM;
        struct row *row = &r->list.data[*at];
        row->objects[side] += c->objects;
        row->bytes[side] += c->bytes;
        row->retained[side] += c->retained;
    }
    return 0;
}

static int64_t grown(const uint64_t v[2])
{
    return (int64_t)(v[1] - v[0]);
}

static int by_bytes(const void *a, const void *b)
{
    const struct row *x = a, *y = b;
    if (grown(x->bytes) != grown(y->bytes))
        return grown(x->bytes) < grown(y->bytes) ? 1 : -1;
    return strcmp(x->name, y->name);
}

static int by_retained(const void *a, const void *b)
{
    const struct row *x = a, *y = b;
    if (grown(x->retained) != grown(y->retained))
        return grown(x->retained) < grown(y->retained) ? 1 : -1;
    return strcmp(x->name, y->name);
}

static void put_grown(struct page *p, const uint64_t v[2])
{
    page_cell(p, (struct page_cell){.kind = PAGE_CHANGE, .number = (uint64_t)grown(v)});
}

static const struct page_column columns[] = {
    {"class", "class", PAGE_TEXT, true},     {"objectsOld", "objects", PAGE_COUNT},
    {"objectsNew", "now", PAGE_COUNT},       {"objectsGrown", "change", PAGE_CHANGE},
    {"shallowOld", "bytes", PAGE_BYTES},     {"shallowNew", "now", PAGE_BYTES},
    {"shallowGrown", "change", PAGE_CHANGE}, {"retainedOld", "retained", PAGE_BYTES},
    {"retainedNew", "now", PAGE_BYTES},      {"retainedGrown", "change", PAGE_CHANGE}};

static void show(struct page *p, struct rows *rows, int (*compare)(const void *, const void *),
                 uint64_t limit, bool program, const char *key, const char *title)
{
    if (rows->list.len)
        qsort(rows->list.data, rows->list.len, sizeof(struct row), compare);
    page_table(p, key, title, columns, ARRAY_SIZE(columns));
    uint64_t n = 0;
    for (size_t i = 0; i < rows->list.len; i++) {
        const struct row *r = &rows->list.data[i];
        if (program && !r->program)
            continue;
        if (!grown(r->objects) && !grown(r->bytes) && !grown(r->retained))
            continue;
        if (n++ >= limit)
            continue;
        const uint64_t *const sets[] = {r->objects, r->bytes, r->retained};
        page_text(p, r->name);
        for (int k = 0; k < 3; k++) {
            page_number(p, sets[k][0]);
            page_number(p, sets[k][1]);
            put_grown(p, sets[k]);
        }
    }
    page_left(p, n, limit);
}

static void totals(struct page *p, const struct heap *old, const struct heap *new)
{
    page_fact(p, "objectsOld", "objects before", PAGE_COUNT, old->dump->objects);
    page_fact(p, "objectsNew", "  now", PAGE_COUNT, new->dump->objects);
    page_fact(p, "bytesOld", "bytes before", PAGE_BYTES, old->dump->bytes);
    page_fact(p, "bytesNew", "  now", PAGE_BYTES, new->dump->bytes);
    page_fact(p, "reachableOld", "reachable bytes before", PAGE_BYTES, heap_retained(old, old->n));
    page_fact(p, "reachableNew", "  now", PAGE_BYTES, heap_retained(new, new->n));
}

static int cmd_heap_diff(const struct command *self, int argc, char **argv)
{
    struct heap_options o = {0};
    struct operands operands;
    int status;
    if (!args_parse(self, ARGS({NULL, &o}), argc, argv, &operands, &status))
        return status;
    _cleanup_(heap_freep) struct heap *old = NULL, *new = NULL;
    struct heap_options each = o;
    each.index = NULL; /* each has an index of its own next to it */
    status = heap_open_index(&old, operands.list[0], &each);
    if (!status)
        status = heap_open_index(&new, operands.list[1], &each);
    if (status)
        return status;
    _cleanup_(page_release) struct page p = {.title = operands.list[1]};
    struct rows rows = {0};
    heap_note_damage(&p, old->dump);
    heap_note_damage(&p, new->dump);
    int error = take(&rows, old->dump, 0);
    if (!error)
        error = take(&rows, new->dump, 1);
    if (!error) {
        uint64_t limit = heap_rows(&o, 25, UINT64_MAX);
        totals(&p, old, new);
        show(&p, &rows, by_retained, limit, true, "program",
             "The program's classes, by what they retain");
        show(&p, &rows, by_bytes, limit, false, "classes", "All classes, by size");
        show(&p, &rows, by_retained, limit, false, "retained", "All classes, by what they retain");
    }
    status = error ? complain(NULL, "diff", strerror(-error)) : heap_answer(&p, &o);
    strpool_release(&rows.names);
    map_release(&rows.by_name);
    vec_release(&rows.list);
    return status;
}

const struct command heap_verb_diff = {
    .name = "heap diff",
    .run = cmd_heap_diff,
    .operands = "OLD NEW",
    .min_operands = 2,
    .max_operands = 2,
    .summary = "say which classes grew from one dump to another",
    .description = "Prints how the objects, bytes and retained sizes of each class changed, those "
                   "that grew most first: the program's own classes by what they retain, then all "
                   "classes by size and by what they retain.",
    .examples = "  jvmscope heap diff before.hprof after.hprof\n",
    .sets = heap_sets,
};
