/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/capture/times/tree.h"

#include "agent/common/fault.h"

#include "base/map.h"
#include "base/mapped.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { FIRST_CHUNK = 16, LARGEST_CHUNK = 1024, SPARE = 4096 };

#define NODE_SHIFT 6 /* TIMES_NODE */

/* Marks all entries of a table as empty. */
static void clear_table(uint64_t *table, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        table[i] = TIMES_EMPTY;
}

/* Initializes a node that contains its table. */
static void init_node(struct times_node *n, struct times_context *c, int32_t method)
{
    n->method = method;
    n->context = c;
    clear_table(n->own_table, TIMES_OWN_TABLE);
    atomic_init(&n->table, n->own_table);
    atomic_init(&n->mask, TIMES_OWN_TABLE - 1);
}

static int map_once(struct times_tree *t, size_t limit)
{
    if (t->slots)
        return 0;
    struct times_slot *slots = mapped_new(TIMES_SLOTS * sizeof(*slots));
    size_t contexts_size = TIMES_ENDED * TIMES_CONTEXTS * sizeof(struct times_context);
    struct times_context *contexts = mapped_new(contexts_size);
    struct times_reading *readings = mapped_new(limit / TIMES_NODE * sizeof(*readings));
    struct times_virtual *virtuals = mapped_new(TIMES_VIRTUALS * sizeof(*virtuals));
    if (!slots || !contexts || !readings || !virtuals) {
        mapped_free(slots, TIMES_SLOTS * sizeof(*slots));
        mapped_free(virtuals, TIMES_VIRTUALS * sizeof(*virtuals));
        mapped_free(contexts, contexts_size);
        mapped_free(readings, limit / TIMES_NODE * sizeof(*readings));
        return -ENOMEM;
    }
    for (int i = 0; i < TIMES_SLOTS; i++)
        atomic_init(&slots[i].key, TIMES_FREE);
    t->slots = slots;
    t->virtuals = virtuals;
    t->all_contexts = contexts;
    t->readings = readings;
    t->limit = limit;
    init_node(&t->lost_node, &t->lost_context, TIMES_BEYOND);
    t->lost_node.parent = &t->lost_node;
    atomic_init(&t->lost_context.current, &t->lost_node);
    t->lost_context.root = t->lost_context.beyond = &t->lost_node;
    atomic_init(&t->lost.context, &t->lost_context);
    t->lost.own = &t->lost_context;
    return 0;
}

int times_begin(struct times_tree *t, size_t limit, bool timed)
{
    int r = fault_here() ? -ENOMEM : map_once(t, limit);
    if (r < 0)
        return r;
    char *memory = mapped_new(limit);
    if (!memory)
        return -ENOMEM;
    if (t->active)
        times_end(t);
    /*
     * Calls of large programs access their nodes in random order, and TLB misses are a quarter of
     * the cost. If the kernel refuses, nothing is lost.
     */
    (void)madvise(memory, limit, MADV_HUGEPAGE);
    madvise(t->readings, limit / TIMES_NODE * sizeof(*t->readings), MADV_DONTNEED);
    t->memory = memory;
    atomic_store(&t->used, 0);
    atomic_store(&t->n_contexts, 0);
    t->free_contexts = NULL;
    t->timed = timed;
    t->node_size = timed ? TIMES_NODE_TIMED : TIMES_NODE;
    t->generation++;
    t->contexts = t->all_contexts + t->generation % TIMES_ENDED * TIMES_CONTEXTS;
    t->active = true;
    return 0;
}

static struct times_node *node_at(const struct times_tree *t, const struct times_chunk *chunk,
                                  uint32_t i)
{
    return (struct times_node *)((char *)chunk->nodes + (size_t)i * t->node_size);
}

/* Makes probes at the end of calls that began in this tree find no context. */
static void disown_nodes(struct times_tree *t)
{
    uint32_t n = atomic_load(&t->n_contexts);
    for (uint32_t i = 0; i < n; i++)
        for (struct times_chunk *c = atomic_load(&t->contexts[i].chunks); c; c = c->next)
            for (uint32_t k = 0; k < atomic_load(&c->used); k++)
                node_at(t, c, k)->context = NULL;
}

void times_end(struct times_tree *t)
{
    t->active = false;
    disown_nodes(t);
    for (int i = 0; i < TIMES_SLOTS; i++) {
        atomic_store(&t->slots[i].key, TIMES_FREE);
        if (atomic_load(&t->slots[i].context))
            atomic_store(&t->slots[i].context, &t->lost_context);
        t->slots[i].own = &t->lost_context;
    }
    madvise(t->virtuals, TIMES_VIRTUALS * sizeof(*t->virtuals), MADV_DONTNEED);
    /* Replaces the old nodes by zeros, as the header explains. The addresses remain reserved. */
    const struct times_ended *oldest = &t->ended[TIMES_ENDED - 1];
    if (oldest->memory)
        madvise(oldest->memory, oldest->size, MADV_DONTNEED);
    memmove(t->ended + 1, t->ended, (TIMES_ENDED - 1) * sizeof(*t->ended));
    size_t used = (MIN(atomic_load(&t->used), t->limit) + 4095) & ~(size_t)4095;
    if (!used)
        mapped_free(t->memory, t->limit);
    else if (used < t->limit)
        mapped_shrink(t->memory, t->limit, used);
    t->ended[0] = (struct times_ended){used ? t->memory : NULL, used};
    t->memory = NULL;
}

/* Returns zeroed memory of the tree. */
static void *take_memory(struct times_tree *t, size_t size)
{
    size = (size + 63) & ~(size_t)63;
    size_t at = atomic_fetch_add(&t->used, size);
    if (at + size > t->limit) {
        atomic_fetch_sub(&t->used, size);
        return NULL;
    }
    return t->memory + at;
}

static struct times_chunk *new_chunk(struct times_tree *t, struct times_context *c)
{
    struct times_chunk *last = atomic_load(&c->chunks);
    uint32_t n = last ? MIN(2 * last->capacity, LARGEST_CHUNK) : FIRST_CHUNK;
    struct times_chunk *chunk = take_memory(t, 64 + (size_t)n * t->node_size);
    if (!chunk)
        return NULL;
    chunk->next = last;
    chunk->capacity = n;
    chunk->nodes = (struct times_node *)((char *)chunk + 64);
    atomic_store_explicit(&c->chunks, chunk, memory_order_release);
    return chunk;
}

static struct times_node *new_node(struct times_tree *t, struct times_context *c,
                                   struct times_node *parent, int32_t method)
{
    struct times_chunk *chunk = atomic_load(&c->chunks);
    if (!chunk || atomic_load(&chunk->used) == chunk->capacity)
        chunk = new_chunk(t, c);
    if (!chunk)
        return NULL;
    uint32_t i = atomic_load(&chunk->used);
    struct times_node *n = node_at(t, chunk, i);
    init_node(n, c, method);
    if (t->timed)
        n->parent = parent;
    atomic_store_explicit(&chunk->used, i + 1, memory_order_release);
    return n;
}

struct times_context *times_context_take(struct times_tree *t, bool reuse)
{
    struct times_context *c = t->free_contexts;
    if (c && reuse) {
        t->free_contexts = c->next_free;
        return c;
    }
    uint32_t n = atomic_load(&t->n_contexts);
    if (n == TIMES_CONTEXTS || !t->active)
        return NULL;
    c = &t->contexts[n];
    *c = (struct times_context){.number = n};
    c->root = new_node(t, c, NULL, TIMES_ROOT);
    c->beyond = c->root ? new_node(t, c, c->root, TIMES_BEYOND) : NULL;
    if (!c->beyond)
        return NULL;
    if (t->timed)
        c->root->parent = c->root;
    atomic_store(&c->current, c->root);
    atomic_store_explicit(&t->n_contexts, n + 1, memory_order_release);
    return c;
}

void times_context_give(struct times_tree *t, struct times_context *c)
{
    if (c == &t->lost_context)
        return;
    atomic_store(&c->current, c->root);
    c->next_free = t->free_contexts;
    t->free_contexts = c;
}

struct times_slot *times_slot_add(struct times_tree *t, uint64_t key, struct times_context *own,
                                  void *owner)
{
    uint64_t at = key * UINT64_C(0x9e3779b97f4a7c15) >> (64 - TIMES_SLOT_BITS);
    for (int probes = 0; probes < 64; probes++, at = (at + 1) & (TIMES_SLOTS - 1)) {
        struct times_slot *s = &t->slots[at];
        uint64_t present = atomic_load(&s->key);
        if (present != TIMES_FREE && present != TIMES_GONE)
            continue;
        s->own = own;
        s->owner = owner;
        atomic_store(&s->context, own);
        atomic_store(&s->key, key);
        return s;
    }
    return NULL;
}

void times_slot_remove(struct times_tree *t, struct times_slot *s)
{
    atomic_store(&s->context, &t->lost_context);
    s->own = &t->lost_context;
    s->owner = NULL;
    atomic_store(&s->key, TIMES_GONE);
}

static uint64_t first_place(uint64_t thread)
{
    return thread * UINT64_C(0x9e3779b97f4a7c15) >> (64 - TIMES_VIRTUAL_BITS);
}

bool times_virtual_add(struct times_tree *t, uint64_t thread, struct times_context *context)
{
    struct times_virtual *place = NULL;
    uint64_t at = first_place(thread), present = TIMES_LEFT;
    for (int probes = 0; present && probes < TIMES_PROBES; probes++) {
        struct times_virtual *v = &t->virtuals[(at + (uint64_t)probes) % TIMES_VIRTUALS];
        present = atomic_load(&v->thread);
        if (present == thread) {
            atomic_store(&v->context, context);
            return true;
        }
        place = !place && (!present || present == TIMES_LEFT) ? v : place;
    }
    if (!place)
        return false;
    atomic_store(&place->context, context);
    atomic_store(&place->thread, thread);
    return true;
}

/*
 * Marks places before a free one as free if their entries have left, because no search needs to
 * continue there. Otherwise all searches would become as long as they may be.
 */
static void free_places(struct times_tree *t, uint64_t at)
{
    if (atomic_load(&t->virtuals[(at + 1) % TIMES_VIRTUALS].thread))
        return;
    for (; atomic_load(&t->virtuals[at].thread) == TIMES_LEFT;
         at = (at + TIMES_VIRTUALS - 1) % TIMES_VIRTUALS)
        atomic_store(&t->virtuals[at].thread, 0);
}

bool times_virtual_remove(struct times_tree *t, uint64_t thread,
                          const struct times_context *context)
{
    uint64_t at = first_place(thread);
    for (int probes = 0; probes < TIMES_PROBES; probes++, at = (at + 1) % TIMES_VIRTUALS) {
        struct times_virtual *v = &t->virtuals[at];
        uint64_t present = atomic_load(&v->thread);
        if (!present)
            return false;
        if (present != thread)
            continue;
        if (atomic_load(&v->context) != context)
            return false;
        atomic_store(&v->thread, TIMES_LEFT);
        free_places(t, at);
        return true;
    }
    return false;
}

struct times_reading *times_reading_of(const struct times_tree *t, const struct times_node *n)
{
    size_t at = ((uintptr_t)n - (uintptr_t)t->memory) >> NODE_SHIFT;
    return at < t->limit >> NODE_SHIFT ? &t->readings[at] : NULL;
}

static int32_t entry_method(uint64_t entry)
{
    return (int32_t)(entry & TIMES_METHODS);
}

static struct times_node *entry_node(uint64_t entry)
{
    return (struct times_node *)(uintptr_t)(entry >> TIMES_METHOD_BITS << NODE_SHIFT);
}

static void table_put(uint64_t *table, uint32_t mask, uint64_t entry)
{
    uint32_t i = (uint32_t)entry_method(entry) & mask;
    while (table[i] != TIMES_EMPTY)
        i = (i + 1) & mask;
    __atomic_store_n(&table[i], entry, __ATOMIC_RELEASE);
}

static uint64_t *new_table(struct times_tree *t, struct times_context *c, uint32_t n)
{
    size_t size = n * sizeof(uint64_t);
    if (size > SPARE / 4)
        return take_memory(t, size);
    if ((size_t)(c->spare_end - c->spare) < size) {
        size_t more = atomic_load(&c->chunks)->capacity == FIRST_CHUNK ? 512 : SPARE;
        more = MAX(more, size);
        if (!(c->spare = take_memory(t, more))) {
            c->spare_end = NULL;
            return NULL;
        }
        c->spare_end = c->spare + more;
    }
    uint64_t *table = (uint64_t *)c->spare;
    c->spare += size;
    return table;
}

/*
 * Makes room for one more child. The table inside a node keeps one entry free, and other tables are
 * at most half full, so that most children are found at the first attempt.
 */
static bool make_room(struct times_tree *t, struct times_node *n)
{
    uint32_t mask = atomic_load(&n->mask), children = 0;
    uint64_t *old = atomic_load(&n->table);
    for (uint32_t i = 0; i <= mask; i++)
        children += old[i] != TIMES_EMPTY;
    if (mask + 1 == TIMES_OWN_TABLE ? children < TIMES_OWN_TABLE - 1
                                    : 2 * (children + 1) <= mask + 1)
        return true;
    uint32_t size = mask + 1 == TIMES_OWN_TABLE ? 2 * TIMES_OWN_TABLE : 2 * (mask + 1);
    uint64_t *table = new_table(t, n->context, size);
    if (!table)
        return false;
    clear_table(table, size);
    for (uint32_t i = 0; i <= mask; i++)
        if (old[i] != TIMES_EMPTY)
            table_put(table, size - 1, old[i]);
    atomic_store_explicit(&n->table, table, memory_order_release);
    atomic_store_explicit(&n->mask, size - 1, memory_order_release);
    return true;
}

struct times_node *times_child(struct times_tree *t, struct times_node *parent, int32_t method)
{
    if (parent->method == TIMES_BEYOND)
        return parent;
    struct times_context *c = parent->context;
    if (!c || !t->active)
        return &t->lost_node;
    const uint64_t *table = atomic_load(&parent->table);
    uint32_t mask = atomic_load(&parent->mask);
    for (uint32_t i = (uint32_t)method & mask, n = 0; n <= mask; n++, i = (i + 1) & mask)
        if (entry_method(table[i]) == method)
            return entry_node(table[i]);
    struct times_node *child = make_room(t, parent) ? new_node(t, c, parent, method) : NULL;
    if (!child)
        return c->beyond;
    table_put(atomic_load(&parent->table), atomic_load(&parent->mask),
              (uint64_t)(uintptr_t)child >> NODE_SHIFT << TIMES_METHOD_BITS | (uint32_t)method);
    return child;
}

struct merging {
    const struct times_tree *t;
    struct times_paths *to;
    /* children of all paths; those of one path are contiguous */
    VEC(const struct times_node *) nodes;
    /* index of the first child of each path; one more than there are paths */
    VEC(size_t) first;
    struct map open; /* addresses of nodes of timed calls in progress; 2: innermost */
    uint64_t now;
    bool by_thread;
};

/* Notes the nodes of calls in progress, whose time up to now counts. */
static int note_open_calls(struct merging *m, const struct times_context *c)
{
    int depth = 0, r = 0;
    for (const struct times_node *n = atomic_load(&c->current);
         r == 0 && n && n != c->root && n->method != TIMES_BEYOND && depth < 1 << 20;
         n = n->parent, depth++)
        r = map_put(&m->open, (uintptr_t)n, depth ? 1 : 2);
    return r;
}

static void add_node(const struct merging *m, struct times_path *p, const struct times_node *n)
{
    const struct times_reading *seen = times_reading_of(m->t, n);
    p->count += n->count;
    p->samples += seen ? seen->samples : 0;
    p->cpu_ns += seen ? seen->cpu_ns + seen->granted_ns : 0;
    p->squares += seen ? seen->squares + seen->granted_squares : 0;
    if (!m->t->timed)
        return;
    p->total_ns += n->total_ns;
    p->slowest_ns = MAX(p->slowest_ns, n->slowest_ns);
    const uint64_t *open =
        n->started && n->started < m->now ? map_get(&m->open, (uintptr_t)n) : NULL;
    if (!open)
        return;
    p->total_ns += m->now - n->started;
    p->open_ns += *open == 2 ? m->now - n->started : 0;
}

/*
 * Adds the present children of a node to m->nodes. The mask is never newer than the table that is
 * read after it.
 */
static int push_children(struct merging *m, const struct times_node *n)
{
    uint32_t mask = atomic_load_explicit(&((struct times_node *)n)->mask, memory_order_acquire);
    const uint64_t *table =
        atomic_load_explicit(&((struct times_node *)n)->table, memory_order_acquire);
    int r = 0;
    for (uint32_t i = 0; i <= mask && r == 0; i++) {
        uint64_t entry = __atomic_load_n(&table[i], __ATOMIC_ACQUIRE);
        if (entry != TIMES_EMPTY)
            r = vec_push(&m->nodes, entry_node(entry));
    }
    const struct times_node *beyond = n->method == TIMES_ROOT ? n->context->beyond : NULL;
    return r == 0 && beyond && beyond->count ? vec_push(&m->nodes, beyond) : r;
}

static int by_method(const void *a, const void *b)
{
    const struct times_node *x = *(const struct times_node *const *)a,
                            *y = *(const struct times_node *const *)b;
    return (x->method > y->method) - (x->method < y->method);
}

static int by_thread_and_method(const void *a, const void *b)
{
    const struct times_node *x = *(const struct times_node *const *)a,
                            *y = *(const struct times_node *const *)b;
    uint32_t u = x->context->thread, v = y->context->thread;
    return u != v ? (u > v) - (u < v) : by_method(a, b);
}

/* Makes paths from the children of a path's nodes, one per method and thread. */
static int merge_children(struct merging *m, uint32_t path)
{
    size_t from = m->first.data[path], to = m->first.data[path + 1], start = m->nodes.len;
    int (*order)(const void *, const void *) = m->by_thread ? by_thread_and_method : by_method;
    int r = 0;
    for (size_t i = from; i < to && r == 0; i++)
        r = push_children(m, m->nodes.data[i]);
    if (r == 0 && to - from > 1)
        qsort(m->nodes.data + start, m->nodes.len - start, sizeof(*m->nodes.data), order);
    for (size_t i = start; i < m->nodes.len && r == 0;) {
        const struct times_node *n = m->nodes.data[i];
        struct times_path p = {
            .method = n->method, .parent = path, .thread = m->by_thread ? n->context->thread : 0};
        for (const struct times_node *const *same = m->nodes.data + i;
             i < m->nodes.len && order(same, m->nodes.data + i) == 0; i++)
            add_node(m, &p, m->nodes.data[i]);
        r = vec_push(&m->to->all, p);
        if (r == 0)
            r = vec_push(&m->first, i);
    }
    return r;
}

/* Makes path 0 from the roots of all contexts. */
static int merge_roots(struct merging *m)
{
    uint32_t n =
        atomic_load_explicit(&((struct times_tree *)m->t)->n_contexts, memory_order_acquire);
    int r = vec_push(&m->to->all, ((struct times_path){.method = TIMES_ROOT}));
    if (r == 0)
        r = vec_push(&m->first, 0);
    for (uint32_t i = 0; i < n && r == 0; i++) {
        r = vec_push(&m->nodes, m->t->contexts[i].root);
        if (r == 0 && m->t->timed)
            r = note_open_calls(m, &m->t->contexts[i]);
    }
    return r < 0 ? r : vec_push(&m->first, m->nodes.len);
}

int times_merge(const struct times_tree *t, bool by_thread, uint64_t now, struct times_paths *ret)
{
    struct merging m = {.t = t, .to = ret, .by_thread = by_thread, .now = now};
    vec_clear(&ret->all);
    int r = merge_roots(&m);
    for (uint32_t path = 0; path < ret->all.len && r == 0; path++)
        r = merge_children(&m, path);
    vec_release(&m.nodes);
    vec_release(&m.first);
    map_release(&m.open);
    return r;
}

void times_paths_release(struct times_paths *p)
{
    vec_release(&p->all);
}
