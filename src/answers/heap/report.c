/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `heap summary -o report.html` contains in addition to the summary: suspects, the largest
 * consumers, and the dominator tree.
 */
#include "answers/heap/heap.h"
#include "answers/heap/value.h"

#include <inttypes.h>

/* parts below a thousandth of the heap are not shown */
enum { TREE_ROWS = 1500, TREE_CHILDREN = 25, TREE_DEPTH = 24, MIN_PART = 1000 };

static const struct answer_column tree_columns[] = {{"depth", NULL, ANSWER_COUNT},
                                                    {"percent", "share", ANSWER_PERCENT},
                                                    {"retained", "retained", ANSWER_BYTES},
                                                    {"object", "object", ANSWER_TEXT},
                                                    {"more", "", ANSWER_TEXT}};

struct tree {
    struct answer *answer;
    const struct heap *h;
    uint64_t left, least;
};

/* Adds a node and those parts of it that are large enough for a line, the largest first. */
static void add_node(struct tree *t, uint64_t i, unsigned depth)
{
    _cleanup_(buf_release) struct buf text = BUF(1 << 16), more = BUF(1 << 16);
    const struct heap *h = t->h;
    uint64_t first, count, all = heap_retained(h, h->n), shown = 0;
    t->left--;
    heap_children(h, i, &first, &count);
    while (shown < MIN(count, (uint64_t)TREE_CHILDREN) &&
           heap_retained(h, heap_child(h, first + shown)) >= t->least)
        shown++;
    if (i == h->n)
        buf_string(&text, "GC roots");
    else
        heap_describe(h, i, &text);
    if (count > shown)
        buf_printf(&more, "(%" PRIu64 "%s objects below)", count - shown, shown ? " more" : "");
    answer_number(t->answer, depth);
    answer_real(t->answer, all ? 100.0 * (double)heap_retained(h, i) / (double)all : 0);
    answer_number(t->answer, heap_retained(h, i));
    answer_text(t->answer, buf_str(&text));
    answer_text(t->answer, buf_str(&more));
    for (uint64_t k = 0; k < shown && depth < TREE_DEPTH && t->left; k++)
        add_node(t, heap_child(h, first + k), depth + 1);
}

void heap_report_sections(const struct heap_call *c)
{
    const struct heap *h = c->heap;
    struct tree t = {c->answer, h, TREE_ROWS, MAX(heap_retained(h, h->n) / MIN_PART, (uint64_t)1)};
    answer_heading(c->answer, "Suspects");
    heap_suspects(c->answer, h);
    heap_histogram_table(c->answer, h->dump, "r", 40, true, "Classes by what they retain");
    c->answer->blocks.data[c->answer->blocks.len - 1].chart = true;
    (void)!heap_verb_components.heap_answer(c);
    answer_table(c->answer, "tree", "Who retains what: the tree of dominators", tree_columns,
                 ARRAY_SIZE(tree_columns));
    c->answer->blocks.data[c->answer->blocks.len - 1].nested = true;
    add_node(&t, h->n, 0);
}
