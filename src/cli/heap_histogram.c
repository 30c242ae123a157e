/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/heap.h"

#include "cli/heap_verbs.h"

#include <stdlib.h>
#include <string.h>

const struct arg_set *const heap_histogram_sets[] = {&heap_common_set, NULL};

static int by_bytes(const void *a, const void *b)
{
    const struct heap_class *x = *(struct heap_class *const *)a, *y = *(struct heap_class *const *)b;
    if (x->bytes != y->bytes)
        return x->bytes < y->bytes ? 1 : -1;
    return strcmp(x->name, y->name);
}

int cmd_heap_histogram(const struct command *self, int argc, char **argv)
{
    static const struct page_column columns[] = {{"class", "class", PAGE_TEXT, true},
                                                 {"objects", "objects", PAGE_COUNT},
                                                 {"shallow", "shallow", PAGE_BYTES},
                                                 {"retained", "retained", PAGE_BYTES}};
    struct heap_options o = {0};
    struct operands operands;
    int status;
    if (!args_parse(self, (void *const[]){&o}, argc, argv, &operands, &status))
        return status;
    struct heap_dump *d;
    status = heap_open_dump(&d, operands.list[0], &o);
    if (status)
        return status;
    _cleanup_(page_release) struct page p = {.title = operands.list[0]};
    heap_note_damage(&p, d);
    _cleanup_free_ struct heap_class **sorted = malloc((d->classes.len + 1) * sizeof(struct heap_class *));
    page_table(&p, "classes", NULL, columns, ARRAY_SIZE(columns));
    for (size_t i = 0; sorted && i < d->classes.len; i++)
        sorted[i] = &d->classes.data[i];
    if (sorted)
        qsort(sorted, d->classes.len, sizeof(struct heap_class *), by_bytes);
    uint64_t limit = o.limit ? o.limit : o.json || o.output ? UINT64_MAX : 40;
    for (size_t i = 0; sorted && i < MIN(d->classes.len, limit); i++) {
        if (!sorted[i]->objects)
            continue;
        page_text(&p, sorted[i]->name);
        page_number(&p, sorted[i]->objects);
        page_number(&p, sorted[i]->bytes);
        page_null(&p);
    }
    status = heap_answer(&p, &o);
    heap_dump_free(d);
    return status;
}
