/* SPDX-License-Identifier: Apache-2.0 */
#include "answers/heap/heap.h"

#include "base/generated_name.h"

#include <stdlib.h>
#include <string.h>

static const struct arg histogram_args[] = {
    {"--retained", 0, ARG_FLAG, offsetof(struct heap_options, retained), NULL,
     "show what the instances of a class retain together (builds the index if there is none; with "
     "an index it is always shown)"},
    {"--sort", 0, ARG_TEXT, offsetof(struct heap_options, sort), "shallow|retained|objects|class",
     "sort the rows by this"},
    {0},
};

static const struct arg_set histogram_set = {"What is counted", histogram_args};
static const struct arg_set *const heap_histogram_sets[] = {
    &histogram_set, &heap_common_set, &heap_retained_set, &heap_index_set, NULL};

/* A row; comparisons see the class alone. */
struct row {
    struct heap_class sum;
    uint64_t classes; /* of which it is the sum */
};

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
static int64_t rows_of(const struct heap_dump *d, struct row *rows)
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
            rows[n++] = (struct row){*c, 1};
        } else {
            rows[*at].sum.objects += c->objects;
            rows[*at].sum.bytes += c->bytes;
            rows[*at].sum.retained += c->retained;
            rows[*at].classes++;
        }
    }
    return n;
}

void heap_histogram_table(struct answer *a, const struct heap_dump *d, const char *sort,
                          uint64_t limit, bool retained, const char *title)
{
#define COLUMNS(classes)                                                                  \
    {                                                                                     \
        {"class", "class", ANSWER_TEXT, true}, {"objects", "objects", ANSWER_COUNT},      \
            {"shallow", "shallow", ANSWER_BYTES}, {"retained", "retained", ANSWER_BYTES}, \
        {                                                                                 \
            "ofName", classes, ANSWER_COUNT                                               \
        }                                                                                 \
    }
    static const struct answer_column one[] = COLUMNS(NULL), several[] = COLUMNS("classes");
    struct row *sorted = malloc((d->classes.len + 1) * sizeof(*sorted));
    int64_t n = sorted ? rows_of(d, sorted) : -ENOMEM;
    if (n < 0)
        a->error = (int)n;
    char order = sort ? sort[0] : 's';
    qsort(sorted, (size_t)MAX(n, 0), sizeof(*sorted),
          order == 'r'   ? by_retained
          : order == 'o' ? by_objects
          : order == 'c' ? by_name
                         : by_bytes);
    int64_t shown = (int64_t)MIN((uint64_t)MAX(n, 0), limit);
    bool shared = false;
    for (int64_t i = 0; i < shown; i++)
        shared = shared || sorted[i].classes > 1;
    answer_table(a, "classes", title, shared ? several : one, ARRAY_SIZE(one));
    for (int64_t i = 0; i < shown; i++) {
        answer_text(a, sorted[i].sum.name);
        answer_number(a, sorted[i].sum.objects);
        answer_number(a, sorted[i].sum.bytes);
        if (retained)
            answer_number(a, sorted[i].sum.retained);
        else
            answer_null(a);
        answer_number(a, sorted[i].classes);
    }
    answer_left(a, (uint64_t)MAX(n, 0), limit);
    if (shared)
        answer_note(a, "A row of several classes: the VM made these, for the lambdas of one class "
                       "for instance, and a heap dump has no other name for them; `jvmscope heap "
                       "query FILE \"SELECT id, name, objects FROM classes\"` lists each.");
    free(sorted);
}

static void add_unreachable(struct answer *a, const struct heap *h)
{
    uint64_t objects = h->n - MIN(h->n, h->reachable), retained = heap_retained(h, h->n);
    if (!objects)
        return;
    answer_fact(a, "unreachable", "unreachable objects", ANSWER_COUNT, objects);
    answer_fact(a, "unreachableBytes", "  bytes", ANSWER_BYTES,
                h->dump->bytes - MIN(h->dump->bytes, retained));
    answer_note(a,
                "Numbers of objects and shallow sizes include unreachable objects (jvmscope heap "
                "unreachable), which nothing retains.");
}

static int heap_answer_histogram(const struct heap_call *c)
{
    answer_fact(c->answer, "objects", NULL, ANSWER_COUNT, c->dump->objects);
    answer_fact(c->answer, "bytes", NULL, ANSWER_BYTES, c->dump->bytes);
    if (c->heap)
        add_unreachable(c->answer, c->heap);
    heap_histogram_table(c->answer, c->dump, c->options->sort,
                         heap_rows(c->options, 40, UINT64_MAX), c->heap != NULL, NULL);
    return 0;
}

const struct command heap_verb_histogram = {
    .name = "heap histogram",
    .heap_answer = heap_answer_histogram,
    .heap_survey = true,
    HEAP_ONE_FILE,
    .summary = "count the objects of each class",
    .description = "Prints a row for each class: the number of its objects, and the bytes that "
                   "they take in the VM.",
    .examples = "  jvmscope heap histogram app.hprof\n"
                "  jvmscope heap histogram --retained --sort retained app.hprof\n",
    .sets = heap_histogram_sets,
};
