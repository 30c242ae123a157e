/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/heap/heap.h"

#include "base/generated_name.h"
#include "cli/heap/verbs.h"

#include <stdlib.h>
#include <string.h>

static const struct arg histogram_args[] = {
    {"--retained", 0, ARG_FLAG, offsetof(struct heap_options, retained), NULL,
     "what the instances of a class retain together (needs the index; shown anyway when that is "
     "there)"},
    {"--sort", 0, ARG_TEXT, offsetof(struct heap_options, sort), "shallow|retained|objects|class",
     "the order of the rows"},
    {0},
};

static const struct arg_set histogram_set = {"What is counted", histogram_args};
static const struct arg_set *const heap_histogram_sets[] = {&histogram_set, &heap_common_set,
                                                            &heap_index_set, NULL};

static int by_retained(const void *a, const void *b)
{
    const struct heap_class *x = a, *y = b;
    return x->retained < y->retained   ? 1
           : x->retained > y->retained ? -1
                                       : strcmp(x->name, y->name);
}

static int by_objects(const void *a, const void *b)
{
    const struct heap_class *x = a, *y = b;
    return x->objects < y->objects ? 1 : x->objects > y->objects ? -1 : strcmp(x->name, y->name);
}

static int by_name(const void *a, const void *b)
{
    const struct heap_class *x = a, *y = b;
    return strcmp(x->name, y->name);
}

static int by_bytes(const void *a, const void *b)
{
    const struct heap_class *x = a, *y = b;
    if (x->bytes != y->bytes)
        return x->bytes < y->bytes ? 1 : -1;
    return strcmp(x->name, y->name);
}

/*
 * Lists the classes that have instances. Classes with the same name that the VM generated, for the
 * lambdas of one class for instance, share a row.
 */
static int64_t rows_of(const struct heap_dump *d, struct heap_class *rows)
{
    /* by the address of the name, because the dump has each name once */
    _cleanup_(map_release) struct map made = {0};
    int64_t n = 0;
    for (size_t i = 0; i < d->classes.len; i++) {
        const struct heap_class *c = &d->classes.data[i];
        bool added = true;
        if (!c->objects || generated_name_is_agents(c->name, strlen(c->name)))
            continue;
        uint64_t *at = c->made ? map_at(&made, (uintptr_t)c->name, (uint64_t)n, &added) : NULL;
        if (c->made && !at)
            return -ENOMEM;
        if (added) {
            rows[n++] = *c;
        } else {
            rows[*at].objects += c->objects;
            rows[*at].bytes += c->bytes;
            rows[*at].retained += c->retained;
        }
    }
    return n;
}

void heap_histogram_table(struct page *p, const struct heap_dump *d, const char *sort,
                          uint64_t limit, bool retained, const char *title)
{
    static const struct page_column columns[] = {{"class", "class", PAGE_TEXT, true},
                                                 {"objects", "objects", PAGE_COUNT},
                                                 {"shallow", "shallow", PAGE_BYTES},
                                                 {"retained", "retained", PAGE_BYTES}};
    struct heap_class *sorted = malloc((d->classes.len + 1) * sizeof(*sorted));
    page_table(p, "classes", title, columns, ARRAY_SIZE(columns));
    if (!sorted) {
        p->error = -ENOMEM;
        return;
    }
    int64_t n = rows_of(d, sorted);
    if (n < 0)
        p->error = (int)n;
    char order = sort ? sort[0] : 's';
    qsort(sorted, (size_t)MAX(n, 0), sizeof(*sorted),
          order == 'r'   ? by_retained
          : order == 'o' ? by_objects
          : order == 'c' ? by_name
                         : by_bytes);
    for (int64_t i = 0; i < (int64_t)MIN((uint64_t)MAX(n, 0), limit); i++) {
        page_text(p, sorted[i].name);
        page_number(p, sorted[i].objects);
        page_number(p, sorted[i].bytes);
        if (retained)
            page_number(p, sorted[i].retained);
        else
            page_null(p);
    }
    page_left(p, (uint64_t)MAX(n, 0), limit);
    free(sorted);
}

static int heap_answer_histogram(const struct heap_call *c)
{
    const struct heap_dump *d = c->heap->dump;
    page_fact(c->page, "objects", NULL, PAGE_COUNT, d->objects);
    page_fact(c->page, "bytes", NULL, PAGE_BYTES, d->bytes);
    heap_histogram_table(c->page, d, c->options->sort, heap_rows(c->options, 40, UINT64_MAX), true,
                         NULL);
    return 0;
}

static int cmd_heap_histogram(const struct command *self, int argc, char **argv)
{
    struct heap_options o = {0};
    struct operands operands;
    int status;
    if (!args_parse(self, ARGS({NULL, &o}), argc, argv, &operands, &status))
        return status;
    const struct heap_settings settings = {.index = o.index};
    _cleanup_(heap_freep) struct heap *h = NULL;
    struct heap_dump *d = NULL;
    bool indexed = o.retained || o.rebuild || heap_index_there(operands.list[0], &settings);
    status = indexed ? heap_open_index(&h, operands.list[0], &o)
                     : heap_open_dump(&d, operands.list[0], &o);
    if (status)
        return status;
    _cleanup_(page_release) struct page p = {.title = operands.list[0]};
    const struct heap_dump *shown = indexed ? h->dump : d;
    heap_note_damage(&p, shown);
    page_fact(&p, "objects", NULL, PAGE_COUNT, shown->objects);
    page_fact(&p, "bytes", NULL, PAGE_BYTES, shown->bytes);
    heap_histogram_table(&p, shown, o.sort, heap_rows(&o, 40, UINT64_MAX), indexed, NULL);
    status = heap_answer(&p, &o);
    heap_dump_free(d);
    return status;
}

const struct command heap_verb_histogram = {
    .name = "heap histogram",
    .run = cmd_heap_histogram,
    .heap_answer = heap_answer_histogram,
    HEAP_ONE_FILE,
    .summary = "count the objects of each class",
    .description = "Prints a row for each class: the number of its objects, and the bytes that "
                   "they take in the VM.",
    .examples = "  jvmscope heap histogram app.hprof\n"
                "  jvmscope heap histogram --retained --sort retained app.hprof\n",
    .sets = heap_histogram_sets,
};
