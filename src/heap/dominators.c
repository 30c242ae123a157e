/* SPDX-License-Identifier: Apache-2.0 */
#include "heap/dominators.h"

#include "heap/dump.h"
#include "heap/memory.h"

#include <errno.h>
#include <string.h>

/* Each function below is compiled for both widths: `wide` is a constant in each. */
#define WIDTHS_OF(name, wide, ...) ((wide) ? name(__VA_ARGS__, true) : name(__VA_ARGS__, false))
#define ALWAYS_INLINE              inline __attribute__((always_inline))

enum { VIRTUAL_ROOT = 1, PREFETCH = 16, BATCH = 64 };

struct frame {
    const uint8_t *run;
    uint64_t node, number;
};

struct search {
    const struct edges *edges;
    struct dominators *d;
    struct frame *stack; /* address space for all nodes, of which only the used part takes memory */
    uint64_t depth;
};

static ALWAYS_INLINE bool visit(struct search *s, uint64_t node, uint64_t parent, struct frame *ret,
                                const bool wide)
{
    struct dominators *d = s->d;
    dominators_set(d->number, node, ++d->reached, wide);
    dominators_set(d->parent, d->reached, parent, wide);
    const uint8_t *run = edges_of(s->edges, node);
    uint64_t weak;
    if (run && d->strong && edges_first_weak(s->edges, node) && !edges_next(&run, node, &weak))
        return false;
    if (!run || *run == 0)
        return false;
    *ret = (struct frame){run, node, d->reached};
    return true;
}

/*
 * Visits everything that is reachable from a node and has not been visited, in depth-first order.
 */
static ALWAYS_INLINE void walk(struct search *s, uint64_t root, const bool wide)
{
    struct frame at, next;
    uint64_t target;
    if (!visit(s, root, VIRTUAL_ROOT, &at, wide))
        return;
    for (;;) {
        if (!edges_next(&at.run, at.node, &target)) {
            if (!s->depth)
                return;
            at = s->stack[--s->depth];
            continue;
        }
        if (dominators_get(s->d->number, target, wide) || !visit(s, target, at.number, &next, wide))
            continue;
        /*
         * A node without further references is not pushed, so a list of ten million nodes needs no
         * stack.
         */
        if (*at.run)
            s->stack[s->depth++] = at;
        at = next;
    }
}

/* Visits what is reachable only through weak references; their targets become roots. */
static ALWAYS_INLINE int walk_weak(struct search *s, const bool wide)
{
    struct dominators *d = s->d;
    const struct edges *e = s->edges;
    for (bool again = true; again;) {
        again = false;
        for (uint64_t word = 0; word <= e->nodes / 64; word++) {
            for (uint64_t bits = e->weak[word]; bits; bits &= bits - 1) {
                uint64_t node = word * 64 + (unsigned)__builtin_ctzll(bits), target;
                const uint8_t *run = edges_of(e, node);
                if (!dominators_get(d->number, node, wide) || !run ||
                    !edges_next(&run, node, &target) || dominators_get(d->number, target, wide))
                    continue;
                if (d->extra_n == d->extra_cap) {
                    uint64_t cap = d->extra_cap ? d->extra_cap * 2 : 1024;
                    uint64_t *more = realloc(d->extra, cap * sizeof(uint64_t));
                    if (!more)
                        return -ENOMEM;
                    d->extra = more;
                    d->extra_cap = cap;
                }
                d->extra[d->extra_n++] = target;
                again = true;
                walk(s, target, wide);
            }
        }
    }
    return 0;
}

static ALWAYS_INLINE int search_all(struct search *s, const bool wide)
{
    struct dominators *d = s->d;
    d->reached = VIRTUAL_ROOT;
    for (uint64_t i = 0; i < d->roots_n; i++) {
        if (!dominators_get(d->number, d->roots[i], wide))
            walk(s, d->roots[i], wide);
    }
    return d->strong ? walk_weak(s, wide) : 0;
}

int dominators_search(struct dominators *d, const struct edges *e, uint64_t *roots,
                      uint64_t roots_n, bool wide, bool strong)
{
    *d = (struct dominators){
        .nodes = e->nodes, .wide = wide, .strong = strong, .roots = roots, .roots_n = roots_n};
    const uint64_t width = wide ? 8 : 4;
    d->number = heap_memory(e->nodes * width);
    d->parent = heap_memory((e->nodes + 2) * width);
    struct search s = {
        .edges = e, .d = d, .stack = heap_memory((e->nodes + 1) * sizeof(struct frame))};
    int error = d->number && d->parent && s.stack ? WIDTHS_OF(search_all, wide, &s) : -ENOMEM;
    heap_memory_free(s.stack);
    if (error)
        dominators_release(d);
    return error;
}

void dominators_release(struct dominators *d)
{
    heap_memory_free(d->number);
    heap_memory_free(d->parent);
    heap_memory_free(d->idom);
    heap_memory_free(d->spare[0]);
    heap_memory_free(d->spare[1]);
    free(d->extra);
    *d = (struct dominators){0};
}

/*
 * References outside the search tree, as pairs of search numbers (to, from), one list for each
 * thread.
 */
struct pairs {
    const struct dominators *d;
    const struct edges *e;
    uint64_t capacity;
    void *runs[16];
    uint64_t n[16];
};

static ALWAYS_INLINE void add_pair(struct pairs *p, unsigned thread, uint64_t to, uint64_t from,
                                   const bool wide)
{
    uint64_t at = p->n[thread]++;
    dominators_set(p->runs[thread], at * 2, to, wide);
    dominators_set(p->runs[thread], at * 2 + 1, from, wide);
}

/* A reference as read: the search number of its source, and its target. */
struct reference {
    uint64_t from, target;
};

/*
 * Numbers the targets, for which the entries have already been fetched into the cache, and adds
 * their pairs.
 */
static ALWAYS_INLINE void add_pairs(struct pairs *p, unsigned thread, struct reference *refs,
                                    unsigned n, const bool wide)
{
    const struct dominators *d = p->d;
    for (unsigned i = 0; i < n; i++) {
        refs[i].target = dominators_get(d->number, refs[i].target, wide);
        __builtin_prefetch((const uint8_t *)d->parent + refs[i].target * (wide ? 8 : 4));
    }
    for (unsigned i = 0; i < n; i++) {
        uint64_t to = refs[i].target, from = refs[i].from;
        if (to != VIRTUAL_ROOT && to != from && dominators_get(d->parent, to, wide) != from)
            add_pair(p, thread, to, from, wide);
    }
}

static ALWAYS_INLINE int pair_block(struct pairs *p, unsigned thread, uint64_t block,
                                    const bool wide)
{
    const struct dominators *d = p->d;
    const uint8_t *at = p->e->bytes + p->e->blocks[block].start,
                  *end = p->e->bytes + p->e->blocks[block].end;
    struct reference refs[BATCH];
    uint64_t node = 0, target;
    unsigned n = 0;
    while (at < end) {
        node += edges_unzigzag_(edges_take_(&at));
        uint64_t from = dominators_get(d->number, node, wide);
        bool skip = d->strong && edges_first_weak(p->e, node);
        while (edges_next(&at, node, &target)) {
            bool skipped = skip;
            skip = false;
            if (!from || skipped)
                continue;
            __builtin_prefetch((const uint8_t *)d->number + target * (wide ? 8 : 4));
            refs[n++] = (struct reference){from, target};
            if (n == BATCH) {
                add_pairs(p, thread, refs, n, wide);
                n = 0;
            }
        }
    }
    add_pairs(p, thread, refs, n, wide);
    return 0;
}

static int pair_work(void *ctx, unsigned thread, uint64_t block)
{
    struct pairs *p = ctx;
    return WIDTHS_OF(pair_block, p->d->wide, p, thread, block);
}

/*
 * The arrays that SEMI-NCA needs, by search number. A node's ancestor is links[2 v] and its label
 * is links[2 v + 1], because one is always read with the other.
 */
struct semi {
    void *parent, *links, *semi, *starts, *sources;
    uint64_t reached;
    uint64_t *path; /* has room for all nodes */
};

static ALWAYS_INLINE void group_pairs(struct semi *s, const struct pairs *p, unsigned threads,
                                      const bool wide)
{
    const uint64_t width = wide ? 8 : 4;
    for (unsigned t = 0; t < threads; t++) {
        for (uint64_t i = 0; i < p->n[t]; i++) {
            uint64_t to = dominators_get(p->runs[t], i * 2, wide);
            if (i + PREFETCH < p->n[t])
                __builtin_prefetch((uint8_t *)s->starts +
                                       dominators_get(p->runs[t], (i + PREFETCH) * 2, wide) * width,
                                   1);
            dominators_set(s->starts, to, dominators_get(s->starts, to, wide) + 1, wide);
        }
    }
    uint64_t sum = 0;
    for (uint64_t v = 0; v <= s->reached + 1; v++) {
        uint64_t n = dominators_get(s->starts, v, wide);
        dominators_set(s->starts, v, sum += n, wide);
    }
    /*
     * Groups are filled from their end. Afterwards starts[v] is the beginning of the group of v,
     * and starts[v + 1] its end.
     */
    for (unsigned t = 0; t < threads; t++) {
        for (uint64_t i = 0; i < p->n[t]; i++) {
            if (i + 2 * PREFETCH < p->n[t]) {
                uint64_t near = dominators_get(p->runs[t], (i + PREFETCH) * 2, wide);
                uint64_t far = dominators_get(p->runs[t], (i + 2 * PREFETCH) * 2, wide);
                __builtin_prefetch((uint8_t *)s->starts + far * width, 1);
                __builtin_prefetch(
                    (uint8_t *)s->sources + dominators_get(s->starts, near, wide) * width, 1);
            }
            uint64_t to = dominators_get(p->runs[t], i * 2, wide),
                     at = dominators_get(s->starts, to, wide) - 1;
            dominators_set(s->starts, to, at, wide);
            dominators_set(s->sources, at, dominators_get(p->runs[t], i * 2 + 1, wide), wide);
        }
    }
}

/*
 * Returns the least semidominator on the path up from v within the forest of nodes above `w`, and
 * compresses the path.
 */
static ALWAYS_INLINE uint64_t evaluate(struct semi *s, uint64_t v, uint64_t w, const bool wide)
{
    uint64_t x = v, up, length = 0;
    while ((up = dominators_get(s->links, x * 2, wide)) > w) {
        s->path[length++] = x;
        x = up;
    }
    uint64_t least = dominators_get(s->links, x * 2 + 1, wide), top = up;
    while (length) {
        x = s->path[--length];
        uint64_t label = dominators_get(s->links, x * 2 + 1, wide);
        if (label > least)
            dominators_set(s->links, x * 2 + 1, least, wide);
        else
            least = label;
        dominators_set(s->links, x * 2, top, wide);
    }
    return least;
}

static ALWAYS_INLINE void semi_nca(struct semi *s, const bool wide)
{
    const uint64_t width = wide ? 8 : 4;
    for (uint64_t w = s->reached; w > VIRTUAL_ROOT; w--) {
        uint64_t semi = dominators_get(s->parent, w, wide),
                 end = dominators_get(s->starts, w + 1, wide);
        for (uint64_t i = dominators_get(s->starts, w, wide); i < end; i++) {
            uint64_t v = dominators_get(s->sources, i, wide);
            if (i > PREFETCH) { /* the groups are visited from the end */
                uint64_t later = dominators_get(s->sources, i - PREFETCH, wide);
                __builtin_prefetch((const uint8_t *)s->links + later * 2 * width);
            }
            uint64_t candidate = v > w ? evaluate(s, v, w, wide) : v;
            semi = MIN(semi, candidate);
        }
        dominators_set(s->semi, w, semi, wide);
        dominators_set(s->links, w * 2 + 1, semi, wide);
    }
    /* Works in place: for every v < w, semi[v] is already its immediate dominator. */
    dominators_set(s->semi, VIRTUAL_ROOT, 0, wide);
    for (uint64_t w = VIRTUAL_ROOT + 1; w <= s->reached; w++) {
        uint64_t semi = dominators_get(s->semi, w, wide),
                 dominator = dominators_get(s->parent, w, wide);
        while (dominator > semi)
            dominator = dominators_get(s->semi, dominator, wide);
        dominators_set(s->semi, w, dominator, wide);
    }
}

static int collect_pairs(struct pairs *p, unsigned threads)
{
    const struct dominators *d = p->d;
    /* A reference takes at least one byte. */
    p->capacity = p->e->taken + d->roots_n + d->extra_n;
    for (unsigned t = 0; t < threads; t++) {
        if (!(p->runs[t] = heap_memory(p->capacity * (d->wide ? 16 : 8))))
            return -ENOMEM;
    }
    for (uint64_t i = 0; i < d->roots_n + d->extra_n; i++) {
        uint64_t root = i < d->roots_n ? d->roots[i] : d->extra[i - d->roots_n];
        uint64_t to = dominators_get(d->number, root, d->wide);
        if (dominators_get(d->parent, to, d->wide) != VIRTUAL_ROOT)
            add_pair(p, 0, to, VIRTUAL_ROOT, d->wide);
    }
    return heap_parallel(threads, p->e->blocks_n, pair_work, p);
}

int dominators_finish(struct dominators *d, struct edges *e, void *park, unsigned threads)
{
    const uint64_t width = d->wide ? 8 : 4;
    const uint64_t size = (d->reached + 2) * width;
    struct pairs pairs = {.d = d, .e = e};
    struct semi s = {.parent = d->parent, .reached = d->reached};
    threads = MAX(MIN(threads, 16u), 1u);
    edges_release_starts(e);
    int error = collect_pairs(&pairs, threads);
    edges_release(e);
    uint64_t n = 0;
    for (unsigned t = 0; t < threads; t++)
        n += pairs.n[t];
    void *number = NULL;
    if (!error && park) {
        memcpy(park, d->number, d->nodes * width);
        number = d->number;
        d->number = NULL;
    }
    s.starts = heap_memory(size + width);
    s.sources = heap_memory((n + 1) * width);
    if (!error && s.starts && s.sources)
        d->wide ? group_pairs(&s, &pairs, threads, true) : group_pairs(&s, &pairs, threads, false);
    else
        error = -ENOMEM;
    for (unsigned t = 0; t < threads; t++)
        heap_memory_free(pairs.runs[t]);
    s.links = heap_memory(size * 2);
    s.semi = heap_memory_again(number, size);
    s.path = heap_memory((d->reached + 1) * sizeof(*s.path));
    if (!error && s.links && s.semi && s.path) {
        for (uint64_t v = 0; v <= d->reached; v++)
            dominators_set(s.links, v * 2, dominators_get(s.parent, v, d->wide), d->wide);
        d->wide ? semi_nca(&s, true) : semi_nca(&s, false);
    } else {
        error = -ENOMEM;
    }
    d->parent = NULL;
    d->spare[0] = s.parent;
    d->spare[1] = s.starts;
    void *const done[] = {s.links, s.sources, s.path};
    for (size_t i = 0; i < ARRAY_SIZE(done); i++)
        heap_memory_free(done[i]);
    d->idom = s.semi;
    return error;
}
