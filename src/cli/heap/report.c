/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `heap summary -o report.html` contains in addition to the summary: suspects, the largest
 * consumers, and the dominator tree.
 */
#include "cli/heap/value.h"
#include "cli/heap/verbs.h"

#include <inttypes.h>

/* parts below a thousandth of the heap are not shown */
enum { TREE_ROWS = 1500, TREE_CHILDREN = 25, TREE_DEPTH = 24, MIN_PART = 1000 };

static const struct page_column tree_columns[] = {{"depth", NULL, PAGE_COUNT},
                                                  {"percent", "share", PAGE_PERCENT},
                                                  {"retained", "retained", PAGE_BYTES},
                                                  {"object", "object", PAGE_TEXT},
                                                  {"more", "", PAGE_TEXT}};

struct tree {
    struct page *page;
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
    page_number(t->page, depth);
    page_real(t->page, all ? 100.0 * (double)heap_retained(h, i) / (double)all : 0);
    page_number(t->page, heap_retained(h, i));
    page_text(t->page, buf_str(&text));
    page_text(t->page, buf_str(&more));
    for (uint64_t k = 0; k < shown && depth < TREE_DEPTH && t->left; k++)
        add_node(t, heap_child(h, first + k), depth + 1);
}

void heap_report_sections(const struct heap_call *c)
{
    const struct heap *h = c->heap;
    struct tree t = {c->page, h, TREE_ROWS, MAX(heap_retained(h, h->n) / MIN_PART, (uint64_t)1)};
    page_heading(c->page, "Suspects");
    heap_suspects(c->page, h);
    heap_histogram_table(c->page, h->dump, "r", 40, true, "Classes by what they retain");
    c->page->blocks.data[c->page->blocks.len - 1].chart = true;
    (void)!heap_verb_components.heap_answer(c);
    page_table(c->page, "tree", "Who retains what: the tree of dominators", tree_columns,
               ARRAY_SIZE(tree_columns));
    c->page->blocks.data[c->page->blocks.len - 1].nested = true;
    add_node(&t, h->n, 0);
}
