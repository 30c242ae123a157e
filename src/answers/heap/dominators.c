/* SPDX-License-Identifier: Apache-2.0 */
#include "answers/heap/heap.h"
#include "answers/heap/value.h"
#include "heap/text.h"

#include <stdlib.h>

static const struct arg dominators_args[] = {
    {"--children", 0, ARG_TEXT, offsetof(struct heap_options, children), "OBJECT",
     "list what this object immediately dominates (an address, \"root\" for the roots)"},
    {0},
};

static const struct arg_set dominators_set = {"Which part of the tree", dominators_args};
static const struct arg_set *const heap_dominators_sets[] = {
    &dominators_set, &heap_common_set, &heap_retained_set, &heap_index_set, NULL};

static const struct answer_column columns[] = {
    {"object", "object", ANSWER_ID},       {"class", "class", ANSWER_TEXT, true},
    {"shallow", "shallow", ANSWER_BYTES},  {"retained", "retained", ANSWER_BYTES},
    {"percent", "share", ANSWER_PERCENT},  {"children", "children", ANSWER_COUNT},
    {"value", "value", ANSWER_TEXT, true}, {"dominator", NULL, ANSWER_ID}};

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

static void add_row(struct answer *a, const struct heap *h, uint64_t i)
{
    uint64_t first, count, all = heap_retained(h, h->n), retained = heap_retained(h, i);
    heap_children(h, i, &first, &count);
    answer_number(a, heap_id(h, i));
    answer_text(a, heap_class_name(h, i));
    answer_number(a, heap_shallow(h, i));
    answer_number(a, retained);
    answer_real(a, all ? 100.0 * (double)retained / (double)all : 0);
    answer_number(a, count);
    heap_answer_value(a, h, i);
    uint64_t over = heap_idom(h, i);
    if (over < h->n)
        answer_number(a, heap_id(h, over));
    else
        answer_null(a);
}

/* Returns how many objects have a retained size and are not the agent's. */
static uint64_t ranked(const struct heap *h)
{
    uint64_t n = h->reachable;
    for (uint64_t i = 0; h->dump->agents.len && i < h->n; i++)
        n -= heap_idom(h, i) != HEAP_NONE && heap_is_agents(h, i);
    return n;
}

void heap_top_table(struct answer *a, const struct heap *h, uint64_t limit, const char *title)
{
    struct top *t = malloc((MIN(limit, h->n) + 1) * sizeof(*t));
    answer_table(a, "dominators", title, columns, ARRAY_SIZE(columns));
    a->blocks.data[a->blocks.len - 1].chart = true;
    uint64_t n = t ? largest(h, t, MIN(limit, h->n)) : 0;
    for (uint64_t i = 0; i < n; i++)
        add_row(a, h, t[i].object);
    answer_left(a, ranked(h), n);
    if (!t)
        a->error = -ENOMEM;
    free(t);
}

static int heap_answer_dominators(const struct heap_call *c)
{
    struct answer *a = c->answer;
    const struct heap *h = c->heap;
    uint64_t limit = heap_rows(c->options, 30, 1000);
    if (!c->options->children) {
        heap_top_table(a, h, limit, NULL);
        return 0;
    }
    uint64_t parent, first, count;
    int status = heap_object_named(c, c->options->children, &parent);
    if (status)
        return status;
    heap_children(h, parent, &first, &count);
    answer_table(a, "dominators", NULL, columns, ARRAY_SIZE(columns));
    uint64_t rows = 0;
    for (uint64_t k = 0; k < count; k++) {
        uint64_t child = heap_child(h, first + k);
        if (!heap_is_agents(h, child) && rows++ < limit)
            add_row(a, h, child);
    }
    answer_left(a, rows, limit);
    return 0;
}

const struct command heap_verb_dominators = {
    .name = "heap dominators",
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
