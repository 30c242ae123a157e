/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/heap/heap.h"
#include "cli/heap/value.h"
#include "cli/heap/verbs.h"
#include "heap/text.h"

#include <stdlib.h>

static const struct arg dominators_args[] = {
    {"--children", 0, ARG_TEXT, offsetof(struct heap_options, children), "OBJECT",
     "list what this object immediately dominates (an address, \"root\" for the roots)"},
    {0},
};

static const struct arg_set dominators_set = {"Which part of the tree", dominators_args};
static const struct arg_set *const heap_dominators_sets[] = {&dominators_set, &heap_common_set,
                                                             &heap_index_set, NULL};

static const struct page_column columns[] = {
    {"object", "object", PAGE_ID},       {"class", "class", PAGE_TEXT, true},
    {"shallow", "shallow", PAGE_BYTES},  {"retained", "retained", PAGE_BYTES},
    {"percent", "share", PAGE_PERCENT},  {"children", "children", PAGE_COUNT},
    {"value", "value", PAGE_TEXT, true}, {"dominator", NULL, PAGE_ID}};

/*
 * The k objects with the largest retained size, in a binary heap whose top is the smallest of them.
 */
struct top {
    uint64_t object, retained;
};

static bool less(const struct top *a, const struct top *b)
{
    return a->retained != b->retained ? a->retained < b->retained : a->object > b->object;
}

static void sift_down(struct top *t, uint64_t n, uint64_t i)
{
    for (uint64_t child; (child = 2 * i + 1) < n; i = child) {
        if (child + 1 < n && less(&t[child + 1], &t[child]))
            child++;
        if (!less(&t[child], &t[i]))
            return;
        struct top swap = t[i];
        t[i] = t[child];
        t[child] = swap;
    }
}

static int by_rank(const void *a, const void *b)
{
    return less(a, b) ? 1 : -1;
}

static uint64_t largest(const struct heap *h, struct top *t, uint64_t k)
{
    uint64_t n = 0;
    for (uint64_t i = 0; k && i < h->n; i++) {
        struct top candidate = {i, heap_retained(h, i)};
        if (n == k && !less(&t[0], &candidate))
            continue;
        if (heap_idom(h, i) == HEAP_NONE || heap_is_agents(h, i))
            continue;
        if (n < k) {
            t[n++] = candidate;
            if (n == k) {
                for (uint64_t at = k / 2 + 1; at-- > 0;)
                    sift_down(t, k, at);
            }
        } else {
            t[0] = candidate;
            sift_down(t, k, 0);
        }
    }
    qsort(t, n, sizeof(*t), by_rank);
    return n;
}

static void add_row(struct page *p, const struct heap *h, uint64_t i)
{
    uint64_t first, count, all = heap_retained(h, h->n), retained = heap_retained(h, i);
    heap_children(h, i, &first, &count);
    page_number(p, heap_id(h, i));
    page_text(p, heap_class_name(h, i));
    page_number(p, heap_shallow(h, i));
    page_number(p, retained);
    page_real(p, all ? 100.0 * (double)retained / (double)all : 0);
    page_number(p, count);
    heap_page_value(p, h, i);
    uint64_t over = heap_idom(h, i);
    if (over < h->n)
        page_number(p, heap_id(h, over));
    else
        page_null(p);
}

void heap_top_table(struct page *p, const struct heap *h, uint64_t limit, const char *title)
{
    struct top *t = malloc((MIN(limit, h->n) + 1) * sizeof(*t));
    page_table(p, "dominators", title, columns, ARRAY_SIZE(columns));
    p->blocks.data[p->blocks.len - 1].chart = true;
    uint64_t n = t ? largest(h, t, MIN(limit, h->n)) : 0;
    for (uint64_t i = 0; i < n; i++)
        add_row(p, h, t[i].object);
    if (!t)
        p->error = -ENOMEM;
    free(t);
}

static int heap_answer_dominators(const struct heap_call *c)
{
    struct page *p = c->page;
    const struct heap *h = c->heap;
    uint64_t limit = heap_rows(c->options, 30, 1000);
    if (!c->options->children) {
        heap_top_table(p, h, limit, NULL);
        return 0;
    }
    uint64_t parent, first, count;
    int status = heap_object_named(c, c->options->children, &parent);
    if (status)
        return status;
    heap_children(h, parent, &first, &count);
    page_table(p, "dominators", NULL, columns, ARRAY_SIZE(columns));
    uint64_t rows = 0;
    for (uint64_t k = 0; k < count; k++) {
        uint64_t child = heap_child(h, first + k);
        if (!heap_is_agents(h, child) && rows++ < limit)
            add_row(p, h, child);
    }
    page_left(p, rows, limit);
    return 0;
}

const struct command heap_verb_dominators = {
    .name = "heap dominators",
    .run = heap_run_verb,
    .heap_answer = heap_answer_dominators,
    HEAP_ONE_FILE,
    .summary = "rank all objects by what they retain",
    .description = "An object retains what would be freed if it were gone: everything that is "
                   "reachable through it alone.",
    .examples =
        "  jvmscope heap dominators app.hprof                          the largest objects\n"
        "  jvmscope heap dominators --children 0x7f01a8 app.hprof      what one of them "
        "retains\n"
        "  jvmscope heap dominators --children root app.hprof          the top of the tree\n",
    .sets = heap_dominators_sets,
};
