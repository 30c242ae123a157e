/* SPDX-License-Identifier: Apache-2.0 */
/* `heap retained`: what would be freed if a set of objects were removed. */
#include "answers/heap/heap.h"
#include "answers/heap/select.h"
#include "heap/memory.h"

#include <inttypes.h>
#include <string.h>

static bool bit(const uint64_t *bits, uint64_t i)
{
    return bits[i / 64] >> (i % 64) & 1;
}

static void set_bit(uint64_t *bits, uint64_t i)
{
    bits[i / 64] |= UINT64_C(1) << (i % 64);
}

/* Marks what remains reachable without the set. */
static int mark_without(const struct heap *h, const uint64_t *set, uint64_t *seen)
{
    VEC(uint64_t) stack = {0};
    int error = 0;
    for (size_t r = 0; r < h->dump->roots.len && !error; r++) {
        uint64_t at = heap_ids_find(&h->ids, h->dump->roots.data[r].id);
        if (at == HEAP_NONE || bit(set, at) || bit(seen, at))
            continue;
        set_bit(seen, at);
        error = vec_push(&stack, at);
        while (stack.len && !error) {
            struct hprof_item item;
            struct heap_refs refs;
            uint64_t id;
            if (!heap_item(h, stack.data[--stack.len], &item))
                continue;
            heap_refs_begin(&refs, h->dump, &item);
            while (heap_refs_next(&refs, &id) && !error) {
                uint64_t to = heap_ids_find(&h->ids, id);
                if (to == HEAP_NONE || bit(set, to) || bit(seen, to) || (h->strong && refs.weak))
                    continue;
                set_bit(seen, to);
                error = vec_push(&stack, to);
            }
        }
    }
    vec_release(&stack);
    return error;
}

static int heap_answer_retained(const struct heap_call *c)
{
    const struct heap *h = c->heap;
    struct heap_selection selection;
    int status = heap_select(c, &selection);
    if (status)
        return status;
    uint64_t *seen = heap_memory(h->n / 8 + 8), shallow = 0, retained = 0, kept = 0;
    struct heap_dump tally = *h->dump; /* a separate histogram, so the classes are copied */
    tally.classes.data = calloc(h->dump->classes.len + 1, sizeof(struct heap_class));
    int error = seen && tally.classes.data ? mark_without(h, selection.bits, seen) : -ENOMEM;
    for (size_t i = 0; i < h->dump->classes.len && !error; i++)
        tally.classes.data[i].name = h->dump->classes.data[i].name;
    for (uint64_t i = 0; i < h->n && !error; i++) {
        bool in = bit(selection.bits, i);
        if (!in && (bit(seen, i) || heap_idom(h, i) == HEAP_NONE))
            continue;
        uint64_t size = heap_shallow(h, i);
        struct heap_class *class = &tally.classes.data[heap_class_of(h, i)];
        shallow += in ? size : 0;
        retained += size;
        kept++;
        class->objects++;
        class->bytes += size;
    }
    if (!error) {
        uint64_t all = heap_retained(h, h->n);
        answer_fact_text(c->answer, "of", "of", selection.what);
        answer_fact(c->answer, "objects", "objects", ANSWER_COUNT, selection.count);
        answer_fact(c->answer, "shallow", "  bytes", ANSWER_BYTES, shallow);
        answer_fact(c->answer, "retainedObjects", "retained objects", ANSWER_COUNT, kept);
        answer_fact(c->answer, "retained", "  bytes", ANSWER_BYTES, retained);
        char share[32];
        snprintf(share, sizeof(share), "%.2f %%", all ? 100.0 * (double)retained / (double)all : 0);
        answer_fact_text(c->answer, "share", "  of all reachable", share);
        heap_histogram_table(c->answer, &tally, NULL, heap_rows(c->options, 25, UINT64_MAX), false,
                             "What is retained, by class");
    }
    free(tally.classes.data);
    heap_memory_free(seen);
    heap_selection_release(&selection);
    return error ? answer_refuse(c->answer, NULL, "retained", strerror(-error)) : 0;
}

const struct command heap_verb_retained = {
    .name = "heap retained",
    .heap_answer = heap_answer_retained,
    .operands = "FILE [CLASS|OBJECT]",
    .min_operands = 1,
    .max_operands = 2,
    .summary = "show what would be freed together with a set of objects",
    .description = "The set is a class, an object, a package or a class loader; the answer is "
                   "exact for the set as a whole.",
    .examples = "  jvmscope heap retained app.hprof java.lang.String\n"
                "  jvmscope heap retained --package com.example app.hprof\n",
    .sets = heap_select_sets,
};
