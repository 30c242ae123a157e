/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `heap arrays`: arrays that are empty, that hold the same value everywhere, that hold little, or
 * that are larger than what they hold.
 */
#include "answers/heap/heap.h"
#include "answers/heap/value.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_THREADS = 16, SHORT = 8, MAX_WORST = 4096 };

/* What is wrong with an array. If several apply, the first one counts. */
enum fault { SOUND, EMPTY, CONSTANT, SPARSE, OVERSIZED, FAULTS };

static const char *const fault_names[FAULTS] = {"sound", "empty", "constant", "sparse",
                                                "oversized"};

/* All arrays of one class. */
struct total {
    uint64_t objects, bytes, wasted, count[FAULTS];
};

struct worst {
    uint64_t object, wasted;
    enum fault fault;
};

struct scan {
    const struct heap *h;
    struct total *totals[MAX_THREADS];
    VEC(struct worst) worst[MAX_THREADS];
    uint64_t least; /* minimum number of wasted bytes for an array to be listed */
};

/* Counts the zero bytes at the end. */
static uint64_t zeros_at_end(const uint8_t *p, uint64_t n)
{
    uint64_t end = n;
    for (uint64_t word; end >= 8; end -= 8) {
        memcpy(&word, p + end - 8, 8);
        if (word)
            break;
    }
    while (end && !p[end - 1])
        end--;
    return n - end;
}

/* Determines how an array is used and how many of its elements serve no purpose. */
static enum fault judge(const struct hprof_item *a, unsigned size, uint64_t *ret_useless)
{
    const uint64_t bytes = (uint64_t)a->count * size, n = a->count;
    *ret_useless = 0;
    if (!n)
        return EMPTY;
    if (n < SHORT)
        return SOUND;
    *ret_useless = n - 1;
    /* Every element equals the previous one. */
    if (memcmp(a->body, a->body + size, bytes - size) == 0)
        return CONSTANT;
    uint64_t tail = zeros_at_end(a->body, bytes) / size;
    if (a->tag == HPROF_OBJECT_ARRAY_DUMP) {
        uint64_t used = 0;
        for (uint64_t k = 0; k < n; k++)
            used += hprof_id_at(a->body + k * size, size) != 0;
        *ret_useless = n - used;
        if (used * 4 <= n)
            return n - used - tail > tail ? SPARSE : OVERSIZED;
    }
    *ret_useless = tail;
    return tail * 2 >= n ? OVERSIZED : SOUND;
}

static int scan_chunk(void *ctx, unsigned thread, uint64_t k)
{
    struct scan *s = ctx;
    const struct heap_dump *d = s->h->dump;
    const struct heap_chunk *chunk = &d->chunks.data[k];
    struct hprof_items it = heap_chunk_items(d, chunk);
    struct hprof_item item = {0};
    while (hprof_item_next(&it, &item) > 0) {
        bool objects = item.tag == HPROF_OBJECT_ARRAY_DUMP;
        int32_t class = objects || item.tag == HPROF_PRIMITIVE_ARRAY_DUMP
                            ? heap_dump_class_of(d, &item)
                            : HEAP_NO_CLASS;
        if (class == HEAP_NO_CLASS)
            continue;
        unsigned size = hprof_type_size(objects ? HPROF_OBJECT : item.type, d->header.id_size);
        uint64_t useless = 0, shallow = heap_item_size(d, &item);
        enum fault fault = judge(&item, size, &useless);
        uint64_t wasted = fault == EMPTY ? shallow
                          : fault        ? useless * (objects ? d->shape.reference : size)
                                         : 0;
        struct total *t = &s->totals[thread][class];
        t->objects++;
        t->bytes += shallow;
        t->wasted += wasted;
        t->count[fault]++;
        if (wasted < s->least || !fault)
            continue;
        uint64_t number = heap_ids_find(&s->h->ids, item.id);
        if (number != HEAP_NONE && s->worst[thread].len < MAX_WORST * 64 &&
            vec_push(&s->worst[thread], ((struct worst){number, wasted, fault})) < 0)
            return -ENOMEM;
    }
    return 0;
}

static int by_waste(const void *a, const void *b)
{
    const struct worst *x = a, *y = b;
    return x->wasted != y->wasted  ? (x->wasted < y->wasted ? 1 : -1)
           : x->object < y->object ? -1
                                   : 1;
}

static int by_total(const void *a, const void *b, void *ctx)
{
    const struct total *t = ctx, *x = &t[*(const size_t *)a], *y = &t[*(const size_t *)b];
    return x->wasted != y->wasted ? (x->wasted < y->wasted ? 1 : -1)
           : x->bytes < y->bytes  ? 1
           : x->bytes > y->bytes  ? -1
                                  : 0;
}

static int show_totals(const struct heap_call *c, const struct total *t)
{
    static const struct answer_column columns[] = {
        {"class", "class", ANSWER_TEXT, true}, {"objects", "objects", ANSWER_COUNT},
        {"shallow", "bytes", ANSWER_BYTES},    {"wasted", "wasted", ANSWER_BYTES},
        {"empty", "empty", ANSWER_COUNT},      {"constant", "constant", ANSWER_COUNT},
        {"sparse", "sparse", ANSWER_COUNT},    {"oversized", "oversized", ANSWER_COUNT}};
    const struct heap_dump *d = c->heap->dump;
    _cleanup_free_ size_t *order = calloc(d->classes.len + 1, sizeof(size_t));
    size_t rows = 0;
    if (!order)
        return -ENOMEM;
    for (size_t k = 0; k < d->classes.len; k++) {
        if (t[k].objects)
            order[rows++] = k;
    }
    qsort_r(order, rows, sizeof(size_t), by_total, (void *)t);
    answer_table(c->answer, "arrays", NULL, columns, ARRAY_SIZE(columns));
    size_t shown = MIN((uint64_t)rows, heap_rows(c->options, 25, UINT64_MAX));
    for (size_t k = 0; k < shown; k++) {
        const struct total *one = &t[order[k]];
        answer_text(c->answer, d->classes.data[order[k]].name);
        answer_number(c->answer, one->objects);
        answer_number(c->answer, one->bytes);
        answer_number(c->answer, one->wasted);
        for (int f = EMPTY; f < FAULTS; f++)
            answer_number(c->answer, one->count[f]);
    }
    answer_left(c->answer, rows, shown);
    return 0;
}

static void show_worst(const struct heap_call *c, const struct worst *list, size_t n)
{
    static const struct answer_column columns[] = {
        {"object", "object", ANSWER_ID},    {"fault", "fault", ANSWER_TEXT},
        {"wasted", "wasted", ANSWER_BYTES}, {"shallow", "bytes", ANSWER_BYTES},
        {"class", "class", ANSWER_TEXT},    {"value", "value", ANSWER_TEXT, true},
        {"holder", "held by", ANSWER_TEXT}};
    const struct heap *h = c->heap;
    answer_table(c->answer, "worst", "The most wasteful", columns, ARRAY_SIZE(columns));
    size_t shown = MIN((uint64_t)n, heap_rows(c->options, 25, 1000));
    for (size_t k = 0; k < shown; k++) {
        uint64_t i = list[k].object, over = heap_idom(h, i);
        answer_number(c->answer, heap_id(h, i));
        answer_text(c->answer, fault_names[list[k].fault]);
        answer_number(c->answer, list[k].wasted);
        answer_number(c->answer, heap_shallow(h, i));
        answer_text(c->answer, heap_class_name(h, i));
        heap_answer_value(c->answer, h, i);
        answer_text(c->answer, over == HEAP_NONE ? "nobody" : heap_class_name(h, over));
    }
    answer_left(c->answer, n, shown);
}

static int heap_answer_arrays(const struct heap_call *c)
{
    const struct heap_dump *d = c->heap->dump;
    struct scan s = {.h = c->heap, .least = 256};
    int error = 0;
    for (unsigned t = 0; t < MIN(d->threads, (unsigned)MAX_THREADS) && !error; t++)
        error = (s.totals[t] = calloc(d->classes.len + 1, sizeof(struct total))) ? 0 : -ENOMEM;
    if (!error)
        error = heap_parallel(d->threads, d->chunks.len, scan_chunk, &s);
    for (unsigned t = 1; t < MAX_THREADS && s.totals[t] && !error; t++) {
        const uint64_t *from = (const uint64_t *)s.totals[t];
        uint64_t *to = (uint64_t *)s.totals[0];
        for (size_t k = 0; k < d->classes.len * sizeof(struct total) / 8; k++)
            to[k] += from[k];
        for (size_t k = 0; k < s.worst[t].len && !error; k++)
            error = vec_push(&s.worst[0], s.worst[t].data[k]);
    }
    if (!error)
        error = show_totals(c, s.totals[0]);
    if (!error && s.worst[0].len)
        qsort(s.worst[0].data, s.worst[0].len, sizeof(struct worst), by_waste);
    if (!error)
        show_worst(c, s.worst[0].data, s.worst[0].len);
    for (unsigned t = 0; t < MAX_THREADS; t++) {
        free(s.totals[t]);
        vec_release(&s.worst[t]);
    }
    return error ? answer_refuse(c->answer, "arrays", strerror(-error), NULL) : 0;
}

const struct command heap_verb_arrays = {
    .name = "heap arrays",
    .heap_answer = heap_answer_arrays,
    HEAP_ONE_FILE,
    .summary = "find arrays that are empty, constant, sparse or oversized",
    .description = "In a constant array every element is the same. In a sparse one three quarters "
                   "of the elements are null. In an oversized one the second half or more is null "
                   "or zero.",
    .examples = "  jvmscope heap arrays app.hprof\n",
    .sets = heap_plain_sets,
};
