/* SPDX-License-Identifier: Apache-2.0 */
/* Which classes grew from one dump to another, in number, size and retained size. */
#include "answers/heap/accumulation.h"
#include "answers/heap/heap.h"
#include "base/generated_name.h"

#include <stdlib.h>
#include <string.h>

/* A class by its name; classes with the same name from several loaders are counted together. */
struct row {
    const char *name;
    uint64_t objects[2], bytes[2], retained[2];
    bool program; /* neither a class of the JDK nor an array of primitive values */
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

static void put_grown(struct answer *a, const uint64_t v[2])
{
    answer_cell(a, (struct answer_cell){.kind = ANSWER_CHANGE, .number = (uint64_t)grown(v)});
}

static const struct answer_column columns[] = {
    {"class", "class", ANSWER_TEXT, true},     {"objectsOld", "objects", ANSWER_COUNT},
    {"objectsNew", "now", ANSWER_COUNT},       {"objectsGrown", "change", ANSWER_CHANGE},
    {"shallowOld", "bytes", ANSWER_BYTES},     {"shallowNew", "now", ANSWER_BYTES},
    {"shallowGrown", "change", ANSWER_CHANGE}, {"retainedOld", "retained", ANSWER_BYTES},
    {"retainedNew", "now", ANSWER_BYTES},      {"retainedGrown", "change", ANSWER_CHANGE}};

static void show(struct answer *a, struct rows *rows, int (*compare)(const void *, const void *),
                 uint64_t limit, bool program, const char *key, const char *title)
{
    if (rows->list.len)
        qsort(rows->list.data, rows->list.len, sizeof(struct row), compare);
    answer_table(a, key, title, columns, ARRAY_SIZE(columns));
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
        answer_text(a, r->name);
        for (int k = 0; k < 3; k++) {
            answer_number(a, sets[k][0]);
            answer_number(a, sets[k][1]);
            put_grown(a, sets[k]);
        }
    }
    answer_left(a, n, limit);
}

static void totals(struct answer *a, const struct heap *before, const struct heap *now)
{
    answer_fact(a, "objectsOld", "objects before", ANSWER_COUNT, before->dump->objects);
    answer_fact(a, "objectsNew", "  now", ANSWER_COUNT, now->dump->objects);
    answer_fact(a, "bytesOld", "bytes before", ANSWER_BYTES, before->dump->bytes);
    answer_fact(a, "bytesNew", "  now", ANSWER_BYTES, now->dump->bytes);
    answer_fact(a, "reachableOld", "reachable bytes before", ANSWER_BYTES,
                heap_retained(before, before->n));
    answer_fact(a, "reachableNew", "  now", ANSWER_BYTES, heap_retained(now, now->n));
    if (before->reachable < before->n || now->reachable < now->n)
        answer_note(a, "Numbers of objects and bytes include unreachable objects (jvmscope heap "
                       "unreachable), which nothing retains.");
}

int heap_compare(struct answer *a, const struct heap *before, const struct heap *now,
                 uint64_t limit)
{
    struct rows rows = {0};
    int r = take(&rows, before->dump, 0);
    if (r == 0)
        r = take(&rows, now->dump, 1);
    if (r == 0) {
        totals(a, before, now);
        show(a, &rows, by_retained, limit, true, "program",
             "The program's classes, by what they retain");
        show(a, &rows, by_bytes, limit, false, "classes", "All classes, by size");
        show(a, &rows, by_retained, limit, false, "retained", "All classes, by what they retain");
    }
    strpool_release(&rows.names);
    map_release(&rows.by_name);
    vec_release(&rows.list);
    return r;
}
