/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `heap strings`: strings that exist more than once and what a single copy of each would save, or
 * strings that contain a text.
 */
#include "answers/heap/heap.h"
#include "answers/heap/value.h"
#include "heap/memory.h"
#include "heap/text.h"

#include "base/hash.h"

#include <stdlib.h>
#include <string.h>

static const struct arg strings_args[] = {
    {"--find", 0, ARG_TEXT, offsetof(struct heap_options, find), "TEXT",
     "list the strings that contain this text"},
    {0},
};

static const struct arg_set strings_set = {"Which strings", strings_args};
static const struct arg_set *const heap_strings_sets[] = {
    &strings_set, &heap_common_set, &heap_retained_set, &heap_index_set, NULL};

enum { SLICE = 1 << 18 };

struct entry {
    uint64_t hash, object;
};

struct scan {
    const struct heap *h;
    struct entry *entries;
    uint64_t n, cap;
    const uint8_t *needle[3]; /* by enum heap_coder */
    size_t needle_len[3];
};

static int count_slice(void *ctx, unsigned thread, uint64_t slice)
{
    struct scan *s = ctx;
    uint64_t end = MIN((slice + 1) * SLICE, s->h->n);
    for (uint64_t i = slice * SLICE; i < end; i++) {
        struct heap_text t;
        if (heap_class_of(s->h, i) != s->h->dump->string_class || !heap_text_of(s->h, i, &t))
            continue;
        uint64_t bytes = heap_text_bytes(&t), at = __atomic_fetch_add(&s->n, 1, __ATOMIC_RELAXED);
        if (at < s->cap)
            s->entries[at] =
                (struct entry){hash_bytes(t.bytes, bytes) + (t.coder == HEAP_LATIN1), i};
    }
    return 0;
}

static int by_hash(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    return x->hash != y->hash      ? (x->hash < y->hash ? -1 : 1)
           : x->object < y->object ? -1
                                   : x->object > y->object;
}

/* Equal texts: the number of strings, and of arrays. */
struct same {
    uint64_t object, count, arrays, wasted;
};

static int by_waste(const void *a, const void *b)
{
    const struct same *x = a, *y = b;
    return x->wasted != y->wasted ? (x->wasted < y->wasted ? 1 : -1)
           : x->count != y->count ? (x->count < y->count ? 1 : -1)
                                  : 0;
}

static struct same same_of(const struct heap *h, const struct entry *e, uint64_t n)
{
    struct same s = {e->object, n, 0, 0};
    uint64_t last = HEAP_NONE;
    for (uint64_t k = 0; k < n; k++) {
        struct heap_text t;
        /* Strings that were made from one another share an array, and are usually adjacent. */
        if (!heap_text_of(h, e[k].object, &t) || t.array == last)
            continue;
        s.wasted += s.arrays++ ? heap_shallow(h, t.array) : 0;
        last = t.array;
    }
    s.wasted += (n - 1) * heap_shallow(h, e->object);
    return s;
}

static int show_duplicates(const struct heap_call *c)
{
    static const struct answer_column columns[] = {
        {"object", "one of them", ANSWER_ID}, {"count", "strings", ANSWER_COUNT},
        {"arrays", "arrays", ANSWER_COUNT},   {"wasted", "wasted", ANSWER_BYTES},
        {"length", "length", ANSWER_COUNT},   {"value", "value", ANSWER_TEXT, true}};
    const struct heap *h = c->heap;
    uint64_t strings =
        h->dump->string_class < 0 ? 0 : h->dump->classes.data[h->dump->string_class].objects;
    struct scan s = {
        .h = h, .cap = strings, .entries = heap_memory((strings + 1) * sizeof(struct entry))};
    VEC(struct same) found = {0};
    uint64_t distinct = 0, wasted = 0;
    int error = s.entries
                    ? heap_parallel(h->dump->threads, (h->n + SLICE - 1) / SLICE, count_slice, &s)
                    : -ENOMEM;
    s.n = MIN(s.n, s.cap);
    if (!error)
        qsort(s.entries, s.n, sizeof(struct entry), by_hash);
    for (uint64_t i = 0, end; !error && i < s.n; i = end) {
        for (end = i + 1; end < s.n && s.entries[end].hash == s.entries[i].hash; end++)
            ;
        distinct++;
        if (end - i < 2)
            continue;
        struct same one = same_of(h, &s.entries[i], end - i);
        wasted += one.wasted;
        error = vec_push(&found, one);
    }
    heap_memory_free(s.entries);
    if (found.len)
        qsort(found.data, found.len, sizeof(struct same), by_waste);
    answer_fact(c->answer, "strings", "strings", ANSWER_COUNT, s.n);
    answer_fact(c->answer, "distinct", "  of different text", ANSWER_COUNT, distinct);
    answer_fact(c->answer, "wasted", "  saved with one copy of each", ANSWER_BYTES, wasted);
    answer_table(c->answer, "duplicates", "Texts that occur more than once", columns,
                 ARRAY_SIZE(columns));
    uint64_t limit = heap_rows(c->options, 40, 10000);
    for (size_t i = 0; i < found.len && i < limit; i++) {
        struct heap_text t = {0};
        (void)!heap_text_of(h, found.data[i].object, &t);
        answer_number(c->answer, heap_id(h, found.data[i].object));
        answer_number(c->answer, found.data[i].count);
        answer_number(c->answer, found.data[i].arrays);
        answer_number(c->answer, found.data[i].wasted);
        answer_number(c->answer, t.len);
        heap_answer_value(c->answer, h, found.data[i].object);
    }
    answer_left(c->answer, found.len, limit);
    vec_release(&found);
    return error ? answer_refuse(c->answer, "strings", strerror(-error), NULL) : 0;
}

/* Finds arrays of characters whose bytes, as they are in the file, contain the text. */
static int find_chunk(void *ctx, unsigned thread, uint64_t k)
{
    struct scan *s = ctx;
    const struct heap_dump *d = s->h->dump;
    const struct heap_chunk *chunk = &d->chunks.data[k];
    struct hprof_items it = heap_chunk_items(d, chunk);
    struct hprof_item item = {0};
    while (hprof_item_next(&it, &item) > 0) {
        if (item.tag != HPROF_PRIMITIVE_ARRAY_DUMP ||
            (item.type != HPROF_BYTE && item.type != HPROF_CHAR))
            continue;
        bool hit = false;
        for (int coder = 0; coder < 3 && !hit; coder++) {
            if (s->needle_len[coder] && (item.type == HPROF_CHAR) == (coder == HEAP_UTF16_BE))
                hit = memmem(item.body, item.body_len, s->needle[coder], s->needle_len[coder]) !=
                      NULL;
        }
        if (!hit)
            continue;
        uint64_t number = heap_ids_find(&s->h->ids, item.id),
                 at = __atomic_fetch_add(&s->n, 1, __ATOMIC_RELAXED);
        if (number != HEAP_NONE && at < s->cap)
            s->entries[at] = (struct entry){number, 0};
    }
    return 0;
}

/* Encodes the text in the three ways in which VMs store characters. */
static int make_needles(struct scan *s, const char *text, struct buf b[3])
{
    for (const unsigned char *p = (const unsigned char *)text; *p;) {
        uint32_t c = *p++;
        int more = c >= 0xf0 ? 3 : c >= 0xe0 ? 2 : c >= 0xc0 ? 1 : 0;
        c &= more == 3 ? 7u : more == 2 ? 15u : more ? 31u : 127u;
        for (; more && (*p & 0xc0) == 0x80; more--)
            c = c << 6 | (*p++ & 0x3f);
        uint32_t units[2] = {c, 0};
        if (c >= 0x10000) {
            units[0] = 0xd800 + ((c - 0x10000) >> 10);
            units[1] = 0xdc00 + (c & 0x3ff);
        }
        if (c < 0x100)
            buf_u8(&b[HEAP_LATIN1], (uint8_t)c);
        else
            b[HEAP_LATIN1].failed = true; /* no array of single bytes can contain it */
        for (int k = 0; k < (units[1] ? 2 : 1); k++) {
            buf_be16(&b[HEAP_UTF16_BE], (uint16_t)units[k]);
            buf_be16(&b[HEAP_UTF16_LE], (uint16_t)(units[k] << 8 | units[k] >> 8));
        }
    }
    for (int k = 0; k < 3; k++) {
        s->needle[k] = b[k].data;
        s->needle_len[k] = b[k].failed ? 0 : b[k].len;
    }
    return b[HEAP_UTF16_BE].failed ? -ENOMEM : 0;
}

/* Shows the strings whose characters lie in one of the arrays that were found, which are sorted. */
static void show_found(const struct heap_call *c, const struct scan *s)
{
    static const struct answer_column columns[] = {{"object", "object", ANSWER_ID},
                                                   {"length", "length", ANSWER_COUNT},
                                                   {"retained", "retained", ANSWER_BYTES},
                                                   {"value", "value", ANSWER_TEXT}};
    const struct heap *h = c->heap;
    uint64_t limit = heap_rows(c->options, 50, 100000), count = 0;
    answer_table(c->answer, "strings", NULL, columns, ARRAY_SIZE(columns));
    for (uint64_t i = 0; s->n && i < h->n; i++) {
        struct heap_text t;
        if (heap_class_of(h, i) != h->dump->string_class || !heap_text_of(h, i, &t))
            continue;
        struct entry key = {t.array, 0};
        if (!bsearch(&key, s->entries, s->n, sizeof(key), by_hash) ||
            !memmem(t.bytes, heap_text_bytes(&t), s->needle[t.coder], s->needle_len[t.coder]) ||
            !s->needle_len[t.coder])
            continue;
        if (count++ >= limit)
            continue;
        answer_number(c->answer, heap_id(h, i));
        answer_number(c->answer, t.len);
        answer_number(c->answer, heap_retained(h, i));
        heap_answer_value(c->answer, h, i);
    }
    answer_left(c->answer, count, limit);
    answer_fact(c->answer, "count", "found", ANSWER_COUNT, count);
}

static int heap_answer_strings(const struct heap_call *c)
{
    const struct heap *h = c->heap;
    if (!c->options->find)
        return show_duplicates(c);
    if (!*c->options->find) {
        answer_refuse(c->answer, "--find", "an empty text", NULL);
        return 2;
    }
    struct buf needles[3] = {BUF(1 << 20), BUF(1 << 20), BUF(1 << 20)};
    struct scan s = {.h = h, .cap = h->n};
    s.entries = heap_memory((s.cap + 1) * sizeof(struct entry));
    int error = s.entries ? make_needles(&s, c->options->find, needles) : -ENOMEM;
    if (!error)
        error = heap_parallel(h->dump->threads, h->dump->chunks.len, find_chunk, &s);
    s.n = MIN(s.n, s.cap);
    if (!error) {
        qsort(s.entries, s.n, sizeof(struct entry), by_hash);
        show_found(c, &s);
    }
    heap_memory_free(s.entries);
    for (int k = 0; k < 3; k++)
        buf_release(&needles[k]);
    return error ? answer_refuse(c->answer, "strings", strerror(-error), NULL) : 0;
}

const struct command heap_verb_strings = {
    .name = "heap strings",
    .heap_answer = heap_answer_strings,
    HEAP_ONE_FILE,
    .summary = "find duplicate strings, or strings that contain a text",
    .description = "Prints for each text that several strings share how many there are, and what "
                   "keeping one copy would save. With *--find* it lists strings instead.",
    .examples = "  jvmscope heap strings app.hprof\n"
                "  jvmscope heap strings --find password app.hprof\n",
    .sets = heap_strings_sets,
};
