/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/capture/times/tree.h"

#include "base/hash.h"
#include "base/map.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { FIRST_CHUNK = 16, LARGEST_CHUNK = 1024, SPARE = 4096 };

static void *map_memory(size_t size)
{
    void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

static int map_once(struct times_tree *t)
{
    if (t->slots)
        return 0;
    struct times_slot *slots = map_memory(TIMES_SLOTS * sizeof(*slots));
    struct times_context *contexts = map_memory(2 * TIMES_CONTEXTS * sizeof(*contexts));
    if (!slots || !contexts) {
        if (slots)
            munmap(slots, TIMES_SLOTS * sizeof(*slots));
        if (contexts)
            munmap(contexts, 2 * TIMES_CONTEXTS * sizeof(*contexts));
        return -ENOMEM;
    }
    for (int i = 0; i < TIMES_SLOTS; i++)
        atomic_init(&slots[i].key, TIMES_FREE);
    t->slots = slots;
    t->both_contexts = contexts;
    t->nobody = (struct times_node){.method = TIMES_NOBODY};
    t->nobody_table = &t->nobody;
    t->lost_table = &t->lost_node;
    t->lost_node = (struct times_node){.method = TIMES_BEYOND, .context = &t->lost_context, .table = &t->lost_table};
    t->lost_node.parent = &t->lost_node;
    atomic_init(&t->lost_context.current, &t->lost_node);
    t->lost_context.root = t->lost_context.beyond = &t->lost_node;
    atomic_init(&t->lost.context, &t->lost_context);
    t->lost.own = &t->lost_context;
    return 0;
}

int times_begin(struct times_tree *t, size_t limit, bool timed)
{
    int r = map_once(t);
    if (r < 0)
        return r;
    char *memory = map_memory(limit);
    if (!memory)
        return -ENOMEM;
    /* Calls of large programs touch their nodes in no order, and misses of the TLB cost a quarter of it. Refused: no matter. */
    (void)madvise(memory, limit, MADV_HUGEPAGE);
    t->memory = memory;
    t->limit = limit;
    atomic_store(&t->used, 0);
    atomic_store(&t->n_contexts, 0);
    t->free_contexts = NULL;
    t->timed = timed;
    t->node_size = timed ? TIMES_NODE_TIMED : TIMES_NODE;
    t->generation++;
    t->contexts = t->both_contexts + (t->generation & 1 ? TIMES_CONTEXTS : 0);
    t->active = true;
    return 0;
}

static struct times_node *node_at(const struct times_tree *t, const struct times_chunk *chunk, uint32_t i)
{
    return (struct times_node *)((char *)chunk->nodes + (size_t)i * t->node_size);
}

/* Late probes of calls that began in this session find no context. */
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
    /* Zeros in place of the nodes before: see the header. The address range stays taken. */
    if (t->old.memory)
        madvise(t->old.memory, t->old.size, MADV_DONTNEED);
    size_t used = (MIN(atomic_load(&t->used), t->limit) + 4095) & ~(size_t)4095;
    if (used < t->limit)
        munmap(t->memory + used, t->limit - used);
    t->old.memory = used ? t->memory : NULL;
    t->old.size = used;
    t->memory = NULL;
}

/* Fresh memory is zeroed. */
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

static struct times_node *new_node(struct times_tree *t, struct times_context *c, struct times_node *parent, int32_t method)
{
    struct times_chunk *chunk = atomic_load(&c->chunks);
    if (!chunk || atomic_load(&chunk->used) == chunk->capacity)
        chunk = new_chunk(t, c);
    if (!chunk)
        return NULL;
    uint32_t i = atomic_load(&chunk->used);
    struct times_node *n = node_at(t, chunk, i);
    n->method = method;
    n->context = c;
    n->parent = parent;
    n->only = &t->nobody;
    n->table = &n->only;
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
    c->root->parent = c->root;
    c->beyond->only = c->beyond;
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

struct times_slot *times_slot_add(struct times_tree *t, uint64_t key, struct times_context *own, void *owner)
{
    uint64_t at = key * UINT64_C(0x9e3779b97f4a7c15) >> (64 - TIMES_SLOT_BITS);
    for (int probes = 0; probes < 64; probes++, at = (at + 1) & (TIMES_SLOTS - 1)) {
        struct times_slot *s = &t->slots[at];
        uint64_t there = atomic_load(&s->key);
        if (there != TIMES_FREE && there != TIMES_GONE)
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

static void table_put(struct times_node **table, uint32_t mask, struct times_node *child, const struct times_node *nobody)
{
    uint32_t i = (uint32_t)child->method & mask;
    while (table[i] != nobody)
        i = (i + 1) & mask;
    table[i] = child;
}

static struct times_node **new_table(struct times_tree *t, struct times_context *c, uint32_t n)
{
    size_t size = n * sizeof(struct times_node *);
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
    struct times_node **table = (struct times_node **)c->spare;
    c->spare += size;
    return table;
}

/* A table at most half full, so that most children are found at once. */
static bool grow(struct times_tree *t, struct times_node *parent)
{
    uint32_t size = parent->mask ? 2 * (parent->mask + 1) : 4;
    struct times_node **table = new_table(t, parent->context, size);
    if (!table)
        return false;
    for (uint32_t i = 0; i < size; i++)
        table[i] = &t->nobody;
    for (uint32_t i = 0; i <= parent->mask; i++)
        if (parent->table[i] != &t->nobody)
            table_put(table, size - 1, parent->table[i], &t->nobody);
    parent->table = table;
    parent->mask = size - 1;
    return true;
}

struct times_node *times_child(struct times_tree *t, struct times_node *parent, int32_t method)
{
    if (parent->method == TIMES_BEYOND)
        return parent;
    struct times_context *c = parent->context;
    if (!c || !t->active)
        return &t->lost_node;
    for (uint32_t i = (uint32_t)method & parent->mask, n = 0; n <= parent->mask; n++, i = (i + 1) & parent->mask)
        if (parent->table[i]->method == method)
            return parent->table[i];
    bool full = parent->mask == 0 ? parent->children > 0 : 2 * (parent->children + 1) > parent->mask + 1;
    if (full && !grow(t, parent))
        return c->beyond;
    struct times_node *child = new_node(t, c, parent, method);
    if (!child)
        return c->beyond;
    table_put(parent->table, parent->mask, child, &t->nobody);
    parent->children++;
    return child;
}

struct merging {
    struct times_paths *to;
    struct map index;  /* (parent, method, thread) to path */
    uint32_t *of_node; /* the path of a node, + 1, by where it lies in the tree's memory */
    size_t n_lines;    /* of of_node; nodes that were made since then wait for the next report */
    bool by_thread;
};

/* The merged path of a node whose parent's is known. */
static int64_t merged_path(struct merging *m, const struct times_node *n, uint32_t parent, uint32_t thread)
{
    uint64_t key = hash_u64((uint64_t)parent << 32 | (uint32_t)n->method) ^ (m->by_thread ? hash_u64(thread) : 0);
    for (;; key++) { /* keys are hashes: two paths may share one */
        bool added;
        uint64_t *at = map_at(&m->index, key, m->to->all.len, &added);
        if (!at)
            return -ENOMEM;
        if (added) {
            struct times_path p = {.method = n->method, .parent = parent, .thread = m->by_thread ? thread : 0};
            int r = vec_push(&m->to->all, p);
            return r < 0 ? r : (int64_t)m->to->all.len - 1;
        }
        const struct times_path *p = &m->to->all.data[*at];
        if (p->method == n->method && p->parent == parent && p->thread == (m->by_thread ? thread : 0))
            return (int64_t)*at;
    }
}

/* Where the path of a node is noted; NULL for one beyond what was there when merging began. */
static uint32_t *noted_path(const struct times_tree *t, const struct merging *m, const struct times_node *n)
{
    size_t line = ((uintptr_t)n - (uintptr_t)t->memory) / TIMES_NODE;
    return line < m->n_lines ? &m->of_node[line] : NULL;
}

static int merge_node(const struct times_tree *t, struct merging *m, const struct times_node *n, uint32_t thread)
{
    uint32_t parent = 0, *note = noted_path(t, m, n);
    if (!note)
        return 0;
    if (n->method != TIMES_ROOT) {
        const uint32_t *at = noted_path(t, m, n->parent);
        parent = at && *at ? *at - 1 : 0;
    }
    int64_t path = n->method == TIMES_ROOT ? 0 : merged_path(m, n, parent, thread);
    if (path < 0)
        return (int)path;
    struct times_path *p = &m->to->all.data[path];
    p->samples += n->samples;
    p->count += n->count;
    p->cpu_ns += n->cpu_ns;
    if (t->timed) {
        p->total_ns += n->total_ns;
        p->slowest_ns = MAX(p->slowest_ns, n->slowest_ns);
    }
    *note = (uint32_t)path + 1;
    return 0;
}

/* Chunks are listed newest first; parents lie in older ones or before their children. */
static int merge_chunks(const struct times_tree *t, struct merging *m, const struct times_chunk *chunk, uint32_t thread)
{
    VEC(const struct times_chunk *) order = {0};
    int r = 0;
    for (; chunk && r == 0; chunk = chunk->next)
        r = vec_push(&order, chunk);
    while (r == 0 && order.len) {
        const struct times_chunk *c = order.data[--order.len];
        uint32_t used = atomic_load_explicit(&c->used, memory_order_acquire);
        for (uint32_t i = 0; i < used && r == 0; i++)
            r = merge_node(t, m, node_at(t, c, i), thread);
    }
    vec_release(&order);
    return r;
}

/* Adds the calls of a context that are still going on, up to now. */
static void merge_open_calls(const struct times_tree *t, const struct times_context *c, struct merging *m, uint64_t now)
{
    int depth = 0;
    for (const struct times_node *n = atomic_load(&c->current); n && n != c->root && depth < 1 << 20; n = n->parent, depth++) {
        const uint32_t *at = noted_path(t, m, n);
        if (!at || !*at || n->method == TIMES_BEYOND)
            return;
        uint64_t started = n->started;
        if (started && started < now)
            m->to->all.data[*at - 1].total_ns += now - started;
    }
}

int times_merge(const struct times_tree *t, bool by_thread, uint64_t now, struct times_paths *ret)
{
    size_t lines = MIN(atomic_load(&((struct times_tree *)t)->used), t->limit) / TIMES_NODE;
    struct merging m = {.to = ret, .by_thread = by_thread, .of_node = calloc(lines + 1, sizeof(*m.of_node)), .n_lines = lines};
    if (!m.of_node)
        return -ENOMEM;
    vec_clear(&ret->all);
    int r = vec_push(&ret->all, ((struct times_path){.method = TIMES_ROOT}));
    uint32_t n = atomic_load_explicit(&((struct times_tree *)t)->n_contexts, memory_order_acquire);
    for (uint32_t i = 0; i < n && r == 0; i++) {
        struct times_context *c = &t->contexts[i];
        r = merge_chunks(t, &m, atomic_load_explicit(&c->chunks, memory_order_acquire), c->thread);
        if (r == 0 && t->timed)
            merge_open_calls(t, c, &m, now);
    }
    map_release(&m.index);
    free(m.of_node);
    return r;
}

void times_paths_release(struct times_paths *p)
{
    vec_release(&p->all);
}
