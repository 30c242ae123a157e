/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/capture/alloc/alloc.h"
#include "agent/common/fault.h"
#include "base/hash.h"
#include "base/mapped.h"
#include "base/strpool.h"
#include "base/vec.h"

#include <errno.h>
#include <pthread.h>

struct alloc_slot *alloc_slots;
struct alloc_cell *alloc_cells;
static struct alloc_block of_cells;
struct alloc_block *alloc_blocks = &of_cells;

static struct alloc_block *free_blocks;
/* protects the three below; acquired while holding the sites' lock */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/*
 * The hash of class, method and code, mapped to the number of its first point in the low 32 bits
 * and, above these, the last recording that inserted its probes.
 */
static struct map bodies;
static uint64_t recording;
static uint32_t n_placed; /* places with probes of this recording */
static struct strpool names;
static struct alloc_point *points; /* ALLOC_POINTS_MAX; pages are committed on first use */
static uint32_t n_points;

int alloc_points_init(void)
{
    if (fault_here())
        return -ENOMEM;
    pthread_mutex_lock(&lock);
    recording++;
    n_placed = 0;
    pthread_mutex_unlock(&lock);
    if (!points)
        points = mapped_new(ALLOC_POINTS_MAX * sizeof(*points));
    if (!alloc_slots) {
        alloc_slots = mapped_new(ALLOC_SLOTS * sizeof(*alloc_slots));
        for (size_t i = 0; alloc_slots && i < ALLOC_SLOTS; i++)
            alloc_slots[i].key = ALLOC_FREE;
    }
    if (!alloc_cells)
        alloc_cells = mapped_new(ALLOC_POINTS_MAX * sizeof(*alloc_cells));
    return points && alloc_slots && alloc_cells ? 0 : -ENOMEM;
}

struct alloc_block *alloc_block_take(void)
{
    struct alloc_block *b = free_blocks;
    if (b) {
        free_blocks = b->next_free;
        return b;
    }
    b = calloc(1, sizeof(*b));
    if (b)
        b->counters = mapped_new(ALLOC_POINTS_MAX * sizeof(*b->counters));
    if (!b || !b->counters) {
        free(b);
        return NULL;
    }
    b->next = alloc_blocks;
    alloc_blocks = b;
    return b;
}

void alloc_block_give(struct alloc_block *b)
{
    b->next_free = free_blocks;
    free_blocks = b;
}

struct alloc_sampling *alloc_sampling_of(struct alloc_block *b, uint32_t point)
{
    bool added = false;
    uint64_t *at = map_at(&b->index, point, b->samplings.len, &added);
    if (!at)
        return NULL;
    if (added &&
        vec_push(&b->samplings, ((struct alloc_sampling){.point = point, .site = -1})) < 0) {
        map_remove(&b->index, point);
        return NULL;
    }
    return &b->samplings.data[*at];
}

struct alloc_counter *alloc_counter_of(struct alloc_block *b, uint32_t point)
{
    return b->counters ? &b->counters[point] : &alloc_cells[point].counter;
}

struct alloc_block *alloc_block_for(struct alloc_block *own, uint64_t key, uint32_t point)
{
    return alloc_cells[point].owner == key ? &of_cells : own;
}

void alloc_own(struct alloc_block *own, uint64_t key, uint32_t point)
{
    struct alloc_cell *c = &alloc_cells[point];
    if (!c->owner && vec_push(&own->owned, point) == 0)
        __atomic_store_n(&c->owner, key, __ATOMIC_RELEASE);
}

bool alloc_owns(const struct alloc_block *own, uint32_t point)
{
    for (size_t i = 0; i < own->owned.len; i++)
        if (own->owned.data[i] == point)
            return true;
    return false;
}

void alloc_disown(struct alloc_block *own, bool forget)
{
    for (size_t i = 0; i < own->owned.len; i++) {
        uint32_t point = own->owned.data[i];
        struct alloc_sampling *l = forget ? alloc_sampling_of(&of_cells, point) : NULL;
        if (l)
            alloc_forget_sampling(&of_cells, l);
        __atomic_store_n(&alloc_cells[point].owner, 0, __ATOMIC_RELEASE);
    }
    vec_clear(&own->owned);
}

void alloc_orphan(struct alloc_block *own)
{
    /* No JavaThread has the address ALLOC_GONE. */
    for (size_t i = 0; i < own->owned.len; i++)
        __atomic_store_n(&alloc_cells[own->owned.data[i]].owner, ALLOC_GONE, __ATOMIC_RELEASE);
}

struct alloc_slot *alloc_slot_add(uint64_t key, struct alloc_block *b)
{
    /*
     * The same search as in the probes, which begins at the hash and tries one entry after the
     * other.
     */
    uint64_t at = key * UINT64_C(0x9e3779b97f4a7c15) >> (64 - ALLOC_SLOT_BITS);
    for (int probes = 0; probes < 64; probes++, at = (at + 1) & (ALLOC_SLOTS - 1)) {
        struct alloc_slot *s = &alloc_slots[at];
        uint64_t present = __atomic_load_n(&s->key, __ATOMIC_ACQUIRE);
        if (present != ALLOC_FREE && present != ALLOC_GONE)
            continue;
        s->counters = b->counters;
        s->expected = 0;
        __atomic_store_n(&s->key, key, __ATOMIC_RELEASE);
        return s;
    }
    return NULL;
}

int64_t alloc_points_add(struct str class_name, const struct edit *e, uint32_t n, bool *ret_new)
{
    const struct class_file *c = e->rewrite->class;
    struct str name = class_utf8(c, e->method->name),
               descriptor = class_utf8(c, e->method->descriptor);
    uint64_t key = hash_bytes(class_name.data, class_name.len);
    key = hash_u64(key ^ hash_bytes(name.data, name.len));
    key = hash_u64(key ^ hash_bytes(descriptor.data, descriptor.len));
    key = hash_u64(key ^ hash_bytes(e->code, e->code_len)) + n;
    int64_t r = -ENOBUFS;
    pthread_mutex_lock(&lock);
    const uint64_t *known = map_get(&bodies, key);
    bool placed = known && *known >> 32 == recording;
    *ret_new = !known;
    if (known)
        r = (int64_t)(*known & UINT32_MAX);
    else if (n <= ALLOC_POINTS_MAX - n_points)
        r = n_points;
    if (r >= 0 && !placed && map_put(&bodies, key, recording << 32 | (uint64_t)r) < 0)
        r = -ENOMEM;
    n_points += r >= 0 && !known ? n : 0;
    n_placed += r >= 0 && !placed ? n : 0;
    pthread_mutex_unlock(&lock);
    return r;
}

int64_t alloc_point_new(enum alloc_kind kind, const char *descriptor)
{
    uint32_t n = kind == ALLOC_ARRAY ? 2 : 1;
    pthread_mutex_lock(&lock);
    int64_t r = n <= ALLOC_POINTS_MAX - n_points ? (int64_t)n_points : -ENOBUFS;
    n_points += r >= 0 ? n : 0;
    pthread_mutex_unlock(&lock);
    if (r >= 0)
        alloc_point_set((uint32_t)r, kind, descriptor, strlen(descriptor));
    if (r >= 0)
        points[r].offered = true;
    return r;
}

void alloc_point_set(uint32_t number, enum alloc_kind kind, const char *descriptor, size_t len)
{
    pthread_mutex_lock(&lock);
    int64_t class = strpool_add(&names, descriptor, len);
    points[number] = (struct alloc_point){.kind = kind, .class = class < 0 ? 0 : (uint32_t) class};
    pthread_mutex_unlock(&lock);
}

struct alloc_point *alloc_point(uint32_t number)
{
    return &points[number];
}

const char *alloc_point_class(uint32_t number)
{
    pthread_mutex_lock(&lock);
    const char *name = strpool_get(&names, points[number].class).data;
    pthread_mutex_unlock(&lock);
    return name;
}

uint32_t alloc_points_count(void)
{
    pthread_mutex_lock(&lock);
    uint32_t n = n_placed;
    pthread_mutex_unlock(&lock);
    return n;
}
