/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/load_sums.h"

#include "base/hash.h"
#include "base/pages.h"

/* With more than MAX_ROWS rows, cells of time become longer. A page has at most MAX_ROWS cells. */
enum { MAX_ROWS = 1200000, LONGER = 4, HALF = 32 };

static uint64_t hash_of(const struct profile_sample *key)
{
    return hash_u64(((uint64_t)key->node << HALF | key->thread) ^
                    key->time_ns * UINT64_C(0x9e3779b97f4a7c15));
}

/* Returns whether a slot has the row of a key, whose time is that of a cell, or 0. */
static bool is_row_of(const struct sum_table *t, uint64_t slot, uint64_t hash,
                      const struct profile_sample *key)
{
    if ((uint32_t)(slot >> HALF) != (uint32_t)(hash >> HALF))
        return false;
    const struct profile_sample *row = &t->rows.data[(uint32_t)slot - 1];
    return row->node == key->node && row->thread == key->thread &&
           (!t->cell_ns || row->time_ns == key->time_ns);
}

/*
 * Returns the slot at which the search for a hash begins, which is given by its upper bits. The
 * slots contain these bits, so the table can grow without reading the rows.
 */
static size_t home_of(const struct sum_table *t, uint64_t hash)
{
    return (size_t)(hash >> HALF) >> (HALF - t->bits);
}

/* Returns the slot of a key, or the one where it belongs. There is always a free one. */
static uint64_t *find(const struct sum_table *t, uint64_t hash, const struct profile_sample *key)
{
    size_t i = home_of(t, hash);
    while (t->slots[i] && !is_row_of(t, t->slots[i], hash, key))
        i = (i + 1) & (t->cap - 1);
    return &t->slots[i];
}

static struct profile_sample key_of(const struct sum_table *t, const struct profile_sample *row)
{
    struct profile_sample key = *row;
    if (!t->cell_ns)
        key.time_ns = 0;
    return key;
}

static int grow(struct sum_table *t)
{
    enum { FIRST_BITS = 10 };

    struct sum_table larger = {.bits = t->cap ? t->bits + 1 : FIRST_BITS};
    if (larger.bits > HALF)
        return -ENOMEM;
    larger.cap = (size_t)1 << larger.bits;
    larger.slots = calloc(larger.cap, sizeof(*larger.slots));
    if (!larger.slots)
        return -ENOMEM;
    pages_large(larger.slots, larger.cap * sizeof(*larger.slots));
    for (size_t i = 0; i < t->cap; i++) {
        if (!t->slots[i])
            continue;
        size_t to = home_of(&larger, t->slots[i]);
        while (larger.slots[to])
            to = (to + 1) & (larger.cap - 1);
        larger.slots[to] = t->slots[i];
    }
    free(t->slots);
    t->slots = larger.slots;
    t->cap = larger.cap;
    t->bits = larger.bits;
    return 0;
}

static void add_to(struct sum_table *t, size_t row, uint64_t weight,
                   const struct profile_spread *spread)
{
    t->rows.data[row].weight += weight;
    if (row < t->spread.len) {
        t->spread.data[row].samples += spread->samples;
        t->spread.data[row].squares += spread->squares;
    }
}

/* Adds a sample whose time is that of its cell. If times do not matter, it may be any time. */
static int add(struct sum_table *t, const struct profile_sample *s, uint64_t hash,
               const struct profile_spread *spread)
{
    /* While cells are made longer, rows never need more room here than they have left. */
    if (t->rows.len >= t->cap / 4 * 3 && grow(t) < 0)
        return -ENOMEM;
    uint64_t *slot = find(t, hash, s);
    if (*slot) {
        add_to(t, (uint32_t)*slot - 1, s->weight, spread);
        return 0;
    }
    if (t->rows.len >= UINT32_MAX - 1)
        return -E2BIG;
    int r = vec_push(&t->rows, *s);
    if (r == 0 && spread && vec_push(&t->spread, *spread) < 0) {
        t->rows.len--;
        r = -ENOMEM;
    }
    if (r == 0)
        *slot = hash >> HALF << HALF | t->rows.len;
    return r;
}

static uint64_t cell_of(struct sum_table *t, const struct sum_options *how, uint64_t time_ns)
{
    if (unlikely(time_ns < t->cell || time_ns >= t->cell_end_ns)) {
        uint64_t since = time_ns - how->from_ns;
        t->cell = time_ns - since % t->cell_ns;
        t->cell_end_ns = t->cell + t->cell_ns;
    }
    return t->cell;
}

/* Makes cells longer and merges their rows. */
static int lengthen_cells(struct sum_table *t, const struct sum_options *how)
{
    const struct profile_sample *rows = t->rows.data;
    const struct profile_spread *spread = t->spread.data;
    size_t n = t->rows.len, n_spread = t->spread.len;
    t->cell_ns *= LONGER;
    t->cell_end_ns = 0;
    memset(t->slots, 0, t->cap * sizeof(*t->slots));
    t->rows.len = t->spread.len = 0;
    int r = 0;
    /* Rows that stay move towards the beginning, where there is room for them. */
    for (size_t i = 0; r == 0 && i < n; i++) {
        struct profile_sample row = rows[i];
        row.time_ns = cell_of(t, how, row.time_ns);
        struct profile_spread of_row = i < n_spread ? spread[i] : (struct profile_spread){0};
        r = add(t, &row, hash_of(&row), i < n_spread ? &of_row : NULL);
    }
    return r;
}

static void give_up(struct sum_table *t)
{
    vec_release(&t->rows);
    vec_release(&t->spread);
    free(t->slots);
    t->slots = NULL;
    t->cap = 0;
    t->full = true;
}

/*
 * Returns whether the pairs of stacks and threads that have rows leave room for only a few cells of
 * time. Threads are then merged, which leaves room for more cells.
 */
static bool has_too_many_pairs(const struct sum_table *t)
{
    enum { SHARE = 2, SKETCH_BITS = 24, WORD = 64 };

    /*
     * A set of pairs with one bit per hash. A few pairs share a bit by chance, so the error is
     * small.
     */
    _cleanup_free_ uint64_t *seen = calloc((1 << SKETCH_BITS) / WORD, sizeof(*seen));
    size_t pairs = 0;
    for (size_t i = 0; seen && i < t->rows.len; i++) {
        const struct profile_sample *row = &t->rows.data[i];
        uint64_t hash = hash_u64((uint64_t)row->node << HALF | row->thread) >> (64 - SKETCH_BITS);
        uint64_t bit = UINT64_C(1) << hash % WORD;
        pairs += !(seen[hash / WORD] & bit);
        seen[hash / WORD] |= bit;
    }
    return pairs > MAX_ROWS / SHARE;
}

/* Keeps the table below its limits if possible. */
static int limit(struct sums *s, struct sum_table *t)
{
    uint64_t span = s->latest_ns - s->how->from_ns;
    int r = 0;
    while (r == 0 && t->cell_ns && !t->full &&
           (t->rows.len > MAX_ROWS || span / t->cell_ns >= LOAD_TIME_CELLS)) {
        bool many = t->rows.len > MAX_ROWS;
        if (many && t == &s->rows && (span < t->cell_ns || has_too_many_pairs(t)))
            give_up(t); /* the other table has no threads */
        else if (span >= t->cell_ns)
            r = lengthen_cells(t, s->how);
        else
            break;
    }
    return r;
}

static int push(struct sums *s, const struct profile_sample *sample,
                const struct profile_spread *spread)
{
    int r = vec_push(&s->rows.rows, *sample);
    return r == 0 && s->estimated && s->how->detail != LOAD_SAMPLES
               ? vec_push(&s->rows.spread, *spread)
               : r;
}

/* Adds a sample to the row of its node, which is found without a hash (LOAD_SUMS). */
static int add_to_node(struct sums *s, const struct sum_pending *pending)
{
    uint32_t *known = &s->of_node.data[pending->sample.node];
    if (*known) {
        add_to(&s->rows, *known - 1, pending->sample.weight, &pending->spread);
        return 0;
    }
    *known = (uint32_t)s->rows.rows.len + 1;
    return push(s, &pending->sample, &pending->spread);
}

static void prefetch_rows(const struct sums *s, const struct sum_table *t, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct sum_pending *p = &t->pending[i];
        uint32_t row = s->how->detail == LOAD_SUMS ? s->of_node.data[p->sample.node]
                       : t->cap                    ? (uint32_t)t->slots[home_of(t, p->hash)]
                                                   : 0;
        if (row)
            __builtin_prefetch(&t->rows.data[row - 1], 1);
    }
}

static int flush(struct sums *s, struct sum_table *t)
{
    size_t n = t->n_pending;
    t->n_pending = 0;
    if (t->full)
        return 0;
    prefetch_rows(s, t, n);
    int r = 0;
    for (size_t i = 0; r == 0 && i < n; i++) {
        const struct sum_pending *p = &t->pending[i];
        r = s->how->detail == LOAD_SUMS
                ? add_to_node(s, p)
                : add(t, &p->sample, p->hash, s->estimated ? &p->spread : NULL);
    }
    return r < 0 ? r : limit(s, t);
}

/* Adds a sample once its place in the table is in the cache. */
static int add_later(struct sums *s, struct sum_table *t, const struct profile_sample *sample,
                     uint32_t thread, const struct profile_spread *spread)
{
    struct sum_pending *to = &t->pending[t->n_pending];
    to->sample = *sample;
    to->sample.thread = thread;
    if (s->estimated)
        to->spread = *spread;
    if (s->how->detail == LOAD_SUMS) {
        if (sample->node >= s->of_node.len &&
            vec_extend(&s->of_node, sample->node + 1 - s->of_node.len) < 0)
            return -ENOMEM;
        __builtin_prefetch(&s->of_node.data[sample->node]);
    } else {
        if (t->cell_ns)
            to->sample.time_ns = cell_of(t, s->how, sample->time_ns);
        struct profile_sample key = key_of(t, &to->sample);
        to->hash = hash_of(&key);
        if (t->cap)
            __builtin_prefetch(&t->slots[home_of(t, to->hash)]);
    }
    return ++t->n_pending == ARRAY_SIZE(t->pending) ? flush(s, t) : 0;
}

int sums_add(struct sums *s, const struct profile_sample *sample, const struct sum_thread *t,
             const struct profile_spread *spread)
{
    const struct sum_options *how = s->how;
    if (how->detail == LOAD_SAMPLES)
        return push(s, sample, spread);
    bool counts = t->counts && sample->time_ns >= how->from_ns &&
                  (!how->to_ns || sample->time_ns < how->to_ns);
    if (!counts) {
        if (!s->has_outside)
            s->outside = *sample;
        s->has_outside = true;
        return 0;
    }
    s->latest_ns = MAX(s->latest_ns, sample->time_ns);
    if (how->cell_ns && !s->merged.cell_ns)
        s->merged.cell_ns = s->rows.cell_ns = how->cell_ns;
    int r = s->rows.full ? 0 : add_later(s, &s->rows, sample, sample->thread, spread);
    return r == 0 && how->cell_ns ? add_later(s, &s->merged, sample, t->stand_in, spread) : r;
}

int sums_settle(struct sums *s)
{
    return flush(s, &s->rows);
}

void sums_add_weight(struct sums *s, uint32_t node, uint64_t weight)
{
    uint32_t row = node < s->of_node.len ? s->of_node.data[node] : 0;
    if (row)
        s->rows.rows.data[row - 1].weight += weight;
}

static int append(struct profile_samples *to, const struct profile_samples *from)
{
    size_t at = to->len;
    if (vec_extend(to, from->len) < 0)
        return -ENOMEM;
    if (from->len)
        memcpy(to->data + at, from->data, from->len * sizeof(*to->data));
    return 0;
}

/* Merges the threads of a series: from now on its samples are those with merged threads. */
static void merge_threads(struct profile_series *to)
{
    if (to->threads_merged)
        return;
    vec_release(&to->samples);
    to->samples = to->merged;
    to->merged = (struct profile_samples){0};
    to->cell_ns = to->merged_cell_ns;
    to->threads_merged = true;
}

int sums_move(struct sums *s, struct profile_series *to)
{
    int r = flush(s, &s->rows);
    if (r == 0)
        r = flush(s, &s->merged);
    if (r == 0 && s->has_outside && !s->rows.rows.len && !s->rows.full && !to->samples.len)
        r = push(s, &s->outside, &(struct profile_spread){0});
    if (r < 0)
        return r;
    if (s->rows.full)
        merge_threads(to);
    struct sum_table *first = to->threads_merged ? &s->merged : &s->rows;
    if (to->samples.len) {
        r = append(&to->samples, &first->rows);
    } else {
        to->samples = first->rows;
        to->spread = first->spread;
        first->rows = (struct profile_samples){0};
        first->spread = (struct profile_spreads){0};
    }
    if (r == 0 && !to->threads_merged)
        r = append(&to->merged, &s->merged.rows);
    to->cell_ns = MAX(to->cell_ns, first->cell_ns);
    to->merged_cell_ns = MAX(to->merged_cell_ns, s->merged.cell_ns);
    return r;
}

bool sums_any(const struct sums *s)
{
    return s->rows.rows.len || s->rows.n_pending || s->rows.full || s->has_outside;
}

static void table_release(struct sum_table *t)
{
    vec_release(&t->rows);
    vec_release(&t->spread);
    free(t->slots);
    t->slots = NULL;
}

void sums_release(struct sums *s)
{
    table_release(&s->rows);
    table_release(&s->merged);
    vec_release(&s->of_node);
}
