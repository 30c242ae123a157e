/* SPDX-License-Identifier: Apache-2.0 */
/* `heap collections`: how full collections are, and how evenly the keys of maps are distributed. */
#include "answers/heap/collections.h"

#include "answers/heap/fields.h"
#include "answers/heap/heap.h"

#include <stdlib.h>
#include <string.h>

/*
 * Paths of fields from a collection to its size and to the array of its slots. A subclass comes
 * before its base class.
 */
static const struct {
    const char *class, *size[3], *array[3];
    bool hashed, pairs;
} known[] = {
    {"java.util.ArrayList", {"size"}, {"elementData"}},
    {"java.util.LinkedList", {"size"}},
    {"java.util.Vector", {"elementCount"}, {"elementData"}},
    {"java.util.HashMap", {"size"}, {"table"}, true},
    {"java.util.TreeMap", {"size"}},
    {"java.util.Hashtable", {"count"}, {"table"}, true},
    {"java.util.WeakHashMap", {"size"}, {"table"}, true},
    {"java.util.IdentityHashMap", {"size"}, {"table"}, false, true},
    {"java.util.EnumMap", {"size"}, {"vals"}},
    {"java.util.PriorityQueue", {"size"}, {"queue"}},
    {"java.util.HashSet", {"map", "size"}, {"map", "table"}, true},
    {"java.util.TreeSet", {"m", "size"}},
    {"java.util.concurrent.ConcurrentHashMap", {"baseCount"}, {"table"}, true},
    {"java.util.concurrent.ArrayBlockingQueue", {"count"}, {"items"}},
    {"java.util.concurrent.LinkedBlockingQueue", {"count", "value"}},
    {"java.util.concurrent.LinkedBlockingDeque", {"count"}},
    {"java.util.concurrent.PriorityBlockingQueue", {"size"}, {"queue"}},
};

static int known_row(const struct heap_dump *d, int32_t class)
{
    for (; class != HEAP_NO_CLASS; class = d->classes.data[class].super) {
        if (strncmp(d->classes.data[class].name, "java.util.", 10) != 0)
            continue;
        for (size_t c = 0; c < ARRAY_SIZE(known); c++) {
            if (strcmp(d->classes.data[class].name, known[c].class) == 0)
                return (int)c;
        }
    }
    return -1;
}

/* Returns whether instances of the class with this number are collections. */
static bool heap_class_is_collection(const struct heap *h, int32_t class)
{
    return known_row(h->dump, class) >= 0;
}

/* Returns false when the object is not a known collection. */
static bool heap_collection_of(const struct heap *h, uint64_t i, struct heap_collection *ret)
{
    int row = known_row(h->dump, heap_class_of(h, i));
    uint64_t at = i, size;
    if (row < 0)
        return false;
    for (int step = 0;; step++) {
        if (!known[row].size[step + 1]) {
            if (!heap_get(h, at, known[row].size[step], &size))
                return false;
            break;
        }
        if (!heap_get_object(h, at, known[row].size[step], &at))
            return false;
    }
    *ret = (struct heap_collection){known[row].class, size & 0x7fffffff, HEAP_NONE,
                                    known[row].hashed, known[row].pairs};
    at = i;
    for (int step = 0; step < 3 && known[row].array[step]; step++) {
        if (!heap_get_object(h, at, known[row].array[step], &at))
            return true;
        ret->array = at;
    }
    return true;
}

bool heap_collection_size(const struct heap *h, uint64_t i, uint64_t *ret)
{
    struct heap_collection c;
    if (!heap_collection_of(h, i, &c))
        return false;
    *ret = c.size;
    return true;
}

/* All collections of one class. */
struct total {
    uint64_t objects, empty, elements, slots, unused, used, hashed, bytes, largest, largest_size;
};

static void count_slots(const struct heap *h, const struct heap_collection *c, struct total *t)
{
    const unsigned n = h->dump->header.id_size;
    struct hprof_item array;
    if (c->array == HEAP_NONE || !heap_item(h, c->array, &array) ||
        array.tag != HPROF_OBJECT_ARRAY_DUMP)
        return;
    uint64_t used = 0;
    for (uint64_t k = 0; k < array.count; k++)
        used += hprof_id_at(array.body + k * n, n) != 0;
    t->slots += array.count / (c->pairs ? 2 : 1);
    t->unused += array.count - used;
    t->bytes += (array.count - used) * h->dump->shape.reference;
    if (c->hashed) {
        t->used += used;
        t->hashed += c->size;
    }
}

static int by_waste(const void *a, const void *b, void *ctx)
{
    const struct total *t = ctx, *x = &t[*(const size_t *)a], *y = &t[*(const size_t *)b];
    if (x->bytes != y->bytes)
        return x->bytes < y->bytes ? 1 : -1;
    return x->objects < y->objects ? 1 : x->objects > y->objects ? -1 : 0;
}

static void total_row(struct answer *a, const struct heap *h, int32_t class, const struct total *t)
{
    answer_text(a, h->dump->classes.data[class].name);
    answer_number(a, t->objects);
    answer_number(a, t->empty);
    answer_number(a, t->elements);
    answer_number(a, t->slots);
    if (t->slots)
        answer_real(a, 100.0 * (double)(t->slots > t->unused ? t->slots - t->unused : 0) /
                           (double)t->slots);
    else
        answer_null(a);
    answer_number(a, t->bytes);
    /* The share of entries that had to share a slot with another one. */
    if (t->hashed && t->used <= t->hashed)
        answer_real(a, 100.0 * (double)(t->hashed - t->used) / (double)t->hashed);
    else
        answer_null(a);
    answer_number(a, t->largest_size);
    answer_number(a, heap_id(h, t->largest));
}

static int heap_answer_collections(const struct heap_call *c)
{
    static const struct answer_column columns[] = {
        {"class", "class", ANSWER_TEXT, true},    {"objects", "objects", ANSWER_COUNT},
        {"empty", "empty", ANSWER_COUNT},         {"elements", "elements", ANSWER_COUNT},
        {"slots", "slots", ANSWER_COUNT},         {"fill", "filled", ANSWER_PERCENT},
        {"wasted", "unused bytes", ANSWER_BYTES}, {"collisions", "collisions", ANSWER_PERCENT},
        {"largest", "largest", ANSWER_COUNT},     {"object", "which", ANSWER_ID}};
    const struct heap *h = c->heap;
    const size_t n = h->dump->classes.len;
    _cleanup_free_ struct total *totals = calloc(n + 1, sizeof(*totals));
    _cleanup_free_ bool *wanted = calloc(n + 1, sizeof(bool));
    _cleanup_free_ size_t *order = calloc(n + 1, sizeof(size_t));
    if (!totals || !wanted || !order)
        return answer_refuse(c->answer, "collections", strerror(ENOMEM), NULL);
    for (size_t k = 0; k < n; k++)
        wanted[k] = h->dump->classes.data[k].objects && heap_class_is_collection(h, (int32_t)k);
    for (uint64_t i = 0; i < h->n; i++) {
        struct heap_collection one;
        int32_t class = heap_class_of(h, i);
        if (!wanted[class] || !heap_collection_of(h, i, &one))
            continue;
        struct total *t = &totals[class];
        t->objects++;
        t->empty += !one.size;
        t->elements += one.size;
        if (one.size >= t->largest_size) {
            t->largest_size = one.size;
            t->largest = i;
        }
        count_slots(h, &one, t);
    }
    size_t rows = 0;
    for (size_t k = 0; k < n; k++) {
        if (totals[k].objects)
            order[rows++] = k;
    }
    qsort_r(order, rows, sizeof(size_t), by_waste, totals);
    answer_table(c->answer, "collections", NULL, columns, ARRAY_SIZE(columns));
    size_t shown = MIN((uint64_t)rows, heap_rows(c->options, 40, UINT64_MAX));
    for (size_t k = 0; k < shown; k++)
        total_row(c->answer, h, (int32_t)order[k], &totals[order[k]]);
    answer_left(c->answer, rows, shown);
    return 0;
}

const struct command heap_verb_collections = {
    .name = "heap collections",
    .heap_answer = heap_answer_collections,
    HEAP_ONE_FILE,
    .summary = "show how full the collections are, and how maps spread their keys",
    .description = "Prints a row for each of the JDK's collection classes and those derived from "
                   "them: how many are empty, how many slots are unused, and how many entries "
                   "share a slot with another.",
    .examples = "  jvmscope heap collections app.hprof\n",
    .sets = heap_plain_sets,
};
