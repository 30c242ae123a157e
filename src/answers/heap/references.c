/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `heap references`: what soft, weak, final and phantom references refer to, and what waits for its
 * finalizer; and `heap unreachable`.
 */
#include "answers/heap/heap.h"
#include "answers/heap/value.h"

#include <stdlib.h>
#include <string.h>

static const char *const kind_names[] = {"strong", "soft", "weak", "final", "phantom"};

enum { KINDS = ARRAY_SIZE(kind_names) };

/* The referents of one class through one kind of reference. */
struct row {
    uint64_t count, only, bytes; /* only: those that nothing else holds; bytes: what these retain */
    int32_t class;
    int kind;
};

struct kinds {
    uint64_t references[KINDS], cleared[KINDS], only[KINDS], bytes[KINDS];
};

static int by_bytes(const void *a, const void *b)
{
    const struct row *x = a, *y = b;
    return x->bytes != y->bytes   ? (x->bytes < y->bytes ? 1 : -1)
           : x->count != y->count ? (x->count < y->count ? 1 : -1)
                                  : 0;
}

/* Returns whether all paths to an object lead through weak references. */
static bool only_weakly(const struct heap *h, uint64_t i)
{
    return h->path_weak[i / 8] >> (i % 8) & 1;
}

static void count_reference(const struct heap *h, uint64_t i, enum heap_reference kind,
                            struct kinds *k, struct row *rows)
{
    uint64_t referent;
    k->references[kind]++;
    if (!heap_get_object(h, i, "referent", &referent)) {
        k->cleared[kind]++;
        return;
    }
    struct row *row =
        &rows[(size_t)kind * h->dump->classes.len + (size_t)heap_class_of(h, referent)];
    row->count++;
    row->kind = kind;
    row->class = heap_class_of(h, referent);
    if (!only_weakly(h, referent))
        return;
    row->only++;
    row->bytes += heap_retained(h, referent);
    k->only[kind]++;
    k->bytes[kind] += heap_retained(h, referent);
}

/*
 * Counts the objects in a list of References linked by their field `next`, which ends with itself
 * or null.
 */
static uint64_t queue_length(const struct heap *h, uint64_t head)
{
    uint64_t n = 1, next;
    while (heap_get_object(h, head, "next", &next) && next != head && n < h->n) {
        head = next;
        n++;
    }
    return n;
}

/* Shows what waits in the queue of the finalizer thread, the static field Finalizer.queue. */
static void show_finalizers(struct answer *a, const struct heap *h)
{
    const struct heap_dump *d = h->dump;
    const unsigned n = d->header.id_size;
    int32_t class = heap_dump_class_named(d, "java.lang.ref.Finalizer");
    uint64_t mirror =
        class == HEAP_NO_CLASS ? HEAP_NONE : heap_ids_find(&h->ids, d->classes.data[class].id);
    struct hprof_item item;
    struct hprof_class c;
    struct hprof_static s;
    if (mirror == HEAP_NONE || !heap_item(h, mirror, &item) || hprof_class_read(&item, n, &c) < 0)
        return;
    answer_fact(a, "finalizers", "objects with finalizers", ANSWER_COUNT,
                d->classes.data[class].objects);
    for (unsigned k = c.statics; k && hprof_static_read(&c.statics_at, n, false, &s); k--) {
        struct str name = heap_dump_string(d, s.name);
        uint64_t queue = s.type == HPROF_OBJECT ? heap_ids_find(&h->ids, s.value) : HEAP_NONE;
        uint64_t head;
        if (!name.data || name.len != 5 || memcmp(name.data, "queue", 5) != 0 || queue == HEAP_NONE)
            continue;
        answer_fact(a, "finalizerQueue", "  waiting to be finalized", ANSWER_COUNT,
                    heap_get_object(h, queue, "head", &head) ? queue_length(h, head) : 0);
    }
}

static void show_kinds(struct answer *a, const struct kinds *k)
{
    static const struct answer_column columns[] = {{"kind", "kind", ANSWER_TEXT},
                                                   {"references", "references", ANSWER_COUNT},
                                                   {"cleared", "cleared", ANSWER_COUNT},
                                                   {"only", "sole holders", ANSWER_COUNT},
                                                   {"retained", "they retain", ANSWER_BYTES}};
    answer_table(a, "references", "Kinds of references", columns, ARRAY_SIZE(columns));
    for (int kind = HEAP_SOFT; kind < KINDS; kind++) {
        answer_text(a, kind_names[kind]);
        answer_number(a, k->references[kind]);
        answer_number(a, k->cleared[kind]);
        answer_number(a, k->only[kind]);
        answer_number(a, k->bytes[kind]);
    }
}

static int heap_answer_references(const struct heap_call *c)
{
    static const struct answer_column columns[] = {{"kind", "kind", ANSWER_TEXT},
                                                   {"class", "referent", ANSWER_TEXT, true},
                                                   {"count", "references", ANSWER_COUNT},
                                                   {"only", "sole holders", ANSWER_COUNT},
                                                   {"retained", "they retain", ANSWER_BYTES}};
    const struct heap *h = c->heap;
    const struct heap_dump *d = h->dump;
    struct kinds k = {0};
    _cleanup_free_ struct row *rows = calloc((d->classes.len + 1) * KINDS, sizeof(*rows));
    if (!rows)
        return answer_refuse(c->answer, "references", strerror(ENOMEM), NULL);
    for (uint64_t i = 0; i < h->n; i++) {
        enum heap_reference kind = d->classes.data[heap_class_of(h, i)].reference;
        if (kind)
            count_reference(h, i, kind, &k, rows);
    }
    show_finalizers(c->answer, h);
    show_kinds(c->answer, &k);
    qsort(rows, d->classes.len * KINDS, sizeof(*rows), by_bytes);
    answer_table(c->answer, "referents", "What they refer to", columns, ARRAY_SIZE(columns));
    uint64_t limit = heap_rows(c->options, 25, UINT64_MAX), n = 0;
    for (uint64_t i = 0; i < d->classes.len * KINDS && rows[i].count; i++) {
        if (n++ >= limit)
            continue;
        answer_text(c->answer, kind_names[rows[i].kind]);
        answer_text(c->answer, d->classes.data[rows[i].class].name);
        answer_number(c->answer, rows[i].count);
        answer_number(c->answer, rows[i].only);
        answer_number(c->answer, rows[i].bytes);
    }
    answer_left(c->answer, n, limit);
    return 0;
}

static int heap_answer_unreachable(const struct heap_call *c)
{
    const struct heap *h = c->heap;
    const size_t n = h->dump->classes.len;
    struct heap_dump tally = *h->dump; /* a separate histogram, so the classes are copied */
    uint64_t objects = 0, bytes = 0;
    tally.classes.data = calloc(n + 1, sizeof(struct heap_class));
    if (!tally.classes.data)
        return answer_refuse(c->answer, "unreachable", strerror(ENOMEM), NULL);
    for (size_t k = 0; k < n; k++)
        tally.classes.data[k].name = h->dump->classes.data[k].name;
    for (uint64_t i = 0; i < h->n; i++) {
        if (heap_idom(h, i) != HEAP_NONE)
            continue;
        uint64_t size = heap_shallow(h, i);
        struct heap_class *class = &tally.classes.data[heap_class_of(h, i)];
        class->objects++;
        class->bytes += size;
        objects++;
        bytes += size;
    }
    answer_fact(c->answer, "objects", "unreachable objects", ANSWER_COUNT, objects);
    answer_fact(c->answer, "bytes", "  bytes", ANSWER_BYTES, bytes);
    answer_note(
        c->answer,
        objects ? "No GC root of the dump leads to these objects. They are garbage, or are held "
                  "by roots that dumps do not contain."
                : "Everything in the dump is reachable (a dump of live objects has no garbage).");
    heap_histogram_table(c->answer, &tally, NULL, heap_rows(c->options, 40, UINT64_MAX), false,
                         NULL);
    free(tally.classes.data);
    return 0;
}

const struct command heap_verb_references = {
    .name = "heap references",
    .heap_answer = heap_answer_references,
    HEAP_ONE_FILE,
    .summary = "show what soft, weak, final and phantom references hold, and the finalizer's queue",
    .description = "Prints for each kind how many references there are, how many of them are "
                   "cleared, and what nothing else holds.",
    .examples = "  jvmscope heap references app.hprof\n",
    .sets = heap_sets,
};

const struct command heap_verb_unreachable = {
    .name = "heap unreachable",
    .heap_answer = heap_answer_unreachable,
    HEAP_ONE_FILE,
    .summary = "count the objects that cannot be reached from a GC root",
    .description = "Prints by class what no GC root of the dump leads to: garbage, in a dump that "
                   "was made with *--all*, and what the VM holds by roots that it does not write, "
                   "such as earlier versions of classes that an agent changed.",
    .examples = "  jvmscope heap unreachable all.hprof\n",
    .sets = heap_plain_sets,
};
