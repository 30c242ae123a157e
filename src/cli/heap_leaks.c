/* SPDX-License-Identifier: Apache-2.0 */
/* `heap leaks`: who holds much more than the rest, through which path, and what accumulates there; in sentences. */
#include "cli/heap_paths.h"
#include "cli/heap_value.h"
#include "cli/heap_verbs.h"

#include "base/parse.h"

#include <inttypes.h>
#include <string.h>

/* A suspect holds a tenth of the heap and at least 2 MiB: below that even the VM's own tables of a small program show up. */
enum { MIN_SHARE = 10, MIN_BYTES = 2 << 20, MAX_SUSPECTS = 16, MAX_STEPS = 100000000, SHOWN_STEPS = 12 };

struct suspect {
    uint64_t holder, accumulator, bytes, count; /* count > 1: so many instances of a class, holder is the largest */
};

/* The class that most of an object's children belong to. */
struct crowd {
    int32_t class;
    uint64_t count, bytes, children;
};

static struct crowd crowd_of(const struct heap *h, uint64_t i)
{
    struct crowd best = {HEAP_NO_CLASS};
    uint64_t first;
    heap_children(h, i, &first, &best.children);
    uint64_t *counts = calloc(2 * h->dump->classes.len + 2, sizeof(uint64_t));
    for (uint64_t k = 0; counts && k < best.children; k++) {
        uint64_t child = heap_child(h, first + k);
        size_t class = (size_t)heap_class_of(h, child);
        counts[2 * class]++;
        counts[2 * class + 1] += heap_retained(h, child);
    }
    for (size_t k = 0; counts && k < h->dump->classes.len; k++) {
        if (counts[2 * k] && counts[2 * k + 1] >= best.bytes) {
            best.class = (int32_t)k;
            best.count = counts[2 * k];
            best.bytes = counts[2 * k + 1];
        }
    }
    free(counts);
    return best;
}

/* Goes down while one child keeps nearly all: where that ends, memory accumulates. A list counts as one place. */
static uint64_t accumulation(const struct heap *h, uint64_t i, uint64_t *ret_links)
{
    uint64_t links = 0, of_class = i;
    for (uint64_t step = 0; step < MAX_STEPS; step++) {
        uint64_t first, count;
        heap_children(h, i, &first, &count);
        if (!count)
            break;
        uint64_t child = heap_child(h, first);
        if (heap_retained(h, child) * 10 < heap_retained(h, i) * 7)
            break;
        if (heap_class_of(h, child) == heap_class_of(h, i)) {
            links++;
        } else {
            links = 0;
            of_class = child;
        }
        i = child;
    }
    *ret_links = links;
    return links > 2 ? of_class : i;
}

/* The application's own class on the way to the suspect, to name who holds it. */
static void describe_path(const struct heap *h, uint64_t i, struct buf *b)
{
    VEC(uint64_t) way = {0};
    for (uint64_t at = i, n = 0; at < h->n && n < 1000; at = heap_path(h, at), n++) {
        if (vec_push(&way, at) < 0)
            break;
    }
    for (size_t k = way.len; k-- > 0;) {
        if (way.len > SHOWN_STEPS && k == way.len - SHOWN_STEPS / 2) {
            buf_printf(b, " -> ... %zu steps ... ", way.len - SHOWN_STEPS);
            k = SHOWN_STEPS / 2;
            continue;
        }
        if (k + 1 == way.len) {
            heap_root_kinds(h, way.data[k], b);
            buf_u8(b, ' ');
            heap_describe(h, way.data[k], b);
        } else {
            buf_string(b, " -> ");
            heap_link_name(h, way.data[k + 1], way.data[k], b);
            buf_u8(b, ' ');
            buf_string(b, heap_class_name(h, way.data[k]));
        }
    }
    vec_release(&way);
}

static void explain(struct page *p, const struct heap *h, const struct suspect *s, unsigned number)
{
    _cleanup_(buf_release) struct buf who = BUF(1 << 20), path = BUF(1 << 20), where = BUF(1 << 20);
    char size[24], each[24];
    uint64_t all = heap_retained(h, h->n), links, place = accumulation(h, s->holder, &links);
    struct crowd crowd = crowd_of(h, place);
    heap_describe(h, s->holder, &who);
    heap_describe(h, place, &where);
    describe_path(h, s->holder, &path);
    double share = all ? 100.0 * (double)s->bytes / (double)all : 0;
    page_note(p, " ");
    if (s->count > 1)
        page_note(p, "Suspect %u: %" PRIu64 " instances of %s keep %s (%.1f %% of the heap); the largest is %s.", number,
                  s->count, heap_class_name(h, s->holder), format_size(size, s->bytes), share, buf_str(&who));
    else
        page_note(p, "Suspect %u: %s keeps %s (%.1f %% of the heap).", number, buf_str(&who), format_size(size, s->bytes),
                  share);
    page_note(p, "  It is held through: %s", buf_str(&path));
    if (links > 2)
        page_note(p, "  What accumulates is a chain of %" PRIu64 " %s that begins at %s.", links + 1, heap_class_name(h, place),
                  buf_str(&where));
    else if (crowd.count > 1 && crowd.class != HEAP_NO_CLASS)
        page_note(p, "  What accumulates lies in %s: %" PRIu64 " %s, %s each on average, %s together.", buf_str(&where),
                  crowd.count, h->dump->classes.data[crowd.class].name, format_size(each, crowd.bytes / crowd.count),
                  format_size(size, crowd.bytes));
    else
        page_note(p, "  Most of it is %s itself (%s).", buf_str(&where), format_size(size, heap_shallow(h, place)));
}

static void suspect_row(struct page *p, const struct heap *h, const struct suspect *s)
{
    _cleanup_(buf_release) struct buf path = BUF(1 << 20);
    uint64_t all = heap_retained(h, h->n), links, place = accumulation(h, s->holder, &links);
    struct crowd crowd = crowd_of(h, place);
    describe_path(h, s->holder, &path);
    page_number(p, heap_id(h, s->holder));
    page_text(p, heap_class_name(h, s->holder));
    page_number(p, s->count);
    page_number(p, s->bytes);
    page_real(p, all ? 100.0 * (double)s->bytes / (double)all : 0);
    page_number(p, heap_id(h, place));
    page_text(p, heap_class_name(h, place));
    page_text(p, links > 2                      ? heap_class_name(h, place)
                 : crowd.class != HEAP_NO_CLASS ? h->dump->classes.data[crowd.class].name
                                                : NULL);
    page_number(p, links > 2 ? links + 1 : crowd.count);
    page_text(p, buf_str(&path));
}

/* Top-level objects by class: many that are small each can be one suspect together. */
static size_t find_groups(const struct heap *h, uint64_t least, struct suspect *out, size_t n)
{
    uint64_t first, count;
    heap_children(h, h->n, &first, &count);
    struct suspect *groups = calloc(h->dump->classes.len + 1, sizeof(*groups));
    for (uint64_t k = 0; groups && k < count; k++) {
        uint64_t child = heap_child(h, first + k), bytes = heap_retained(h, child);
        struct suspect *g = &groups[heap_class_of(h, child)];
        if (bytes >= least)
            continue; /* one on its own */
        if (!g->count++)
            g->holder = child; /* the largest: they come in order */
        g->bytes += bytes;
    }
    for (size_t k = 0; groups && k < h->dump->classes.len && n < MAX_SUSPECTS; k++) {
        bool mirror = (int32_t)k == h->dump->class_class;
        if (groups[k].count && groups[k].bytes >= least && !mirror)
            out[n++] = groups[k];
    }
    free(groups);
    return n;
}

static int by_bytes(const void *a, const void *b)
{
    const struct suspect *x = a, *y = b;
    return x->bytes < y->bytes ? 1 : x->bytes > y->bytes ? -1 : 0;
}

static size_t find_suspects(const struct heap *h, struct suspect *out)
{
    uint64_t all = heap_retained(h, h->n), least = MAX(all / MIN_SHARE, (uint64_t)MIN_BYTES), first, count;
    size_t n = 0;
    heap_children(h, h->n, &first, &count);
    for (uint64_t k = 0; k < count && n < MAX_SUSPECTS; k++) {
        uint64_t child = heap_child(h, first + k), bytes = heap_retained(h, child);
        if (bytes < least)
            break;
        /* What a class loader, a thread or a class holds in two places is two suspects. */
        uint64_t inner, inner_count;
        heap_children(h, child, &inner, &inner_count);
        size_t before = n;
        for (uint64_t j = 0; j < inner_count && n < MAX_SUSPECTS && heap_retained(h, heap_child(h, inner + j)) >= least; j++) {
            uint64_t part = heap_child(h, inner + j);
            if (heap_retained(h, part) * 10 < bytes * 9)
                out[n++] = (struct suspect){part, 0, heap_retained(h, part), 1};
        }
        if (n < before + 2) {
            n = before;
            out[n++] = (struct suspect){child, 0, bytes, 1};
        }
    }
    n = find_groups(h, least, out, n);
    qsort(out, n, sizeof(*out), by_bytes);
    return n;
}

int heap_answer_leaks(const struct heap_call *c)
{
    static const struct page_column columns[] = {{"object", NULL, PAGE_ID},
                                                 {"class", NULL, PAGE_TEXT},
                                                 {"instances", NULL, PAGE_COUNT},
                                                 {"retained", NULL, PAGE_BYTES},
                                                 {"percent", NULL, PAGE_PERCENT},
                                                 {"accumulator", NULL, PAGE_ID},
                                                 {"accumulatorClass", NULL, PAGE_TEXT},
                                                 {"accumulates", NULL, PAGE_TEXT},
                                                 {"count", NULL, PAGE_COUNT},
                                                 {"path", NULL, PAGE_TEXT}};
    struct suspect suspects[MAX_SUSPECTS];
    size_t n = find_suspects(c->heap, suspects);
    if (!n)
        page_note(c->page, "No suspects: nothing holds a tenth of the heap and 2 MiB or more.");
    for (size_t i = 0; i < n; i++)
        explain(c->page, c->heap, &suspects[i], (unsigned)i + 1);
    if (c->options->json) {
        page_table(c->page, "suspects", NULL, columns, ARRAY_SIZE(columns));
        for (size_t i = 0; i < n; i++)
            suspect_row(c->page, c->heap, &suspects[i]);
    }
    return 0;
}
