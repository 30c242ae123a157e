/* SPDX-License-Identifier: Apache-2.0 */
#include "timeline/timeline.h"

#include "base/file.h"
#include "timeline/index.h"
#include "timeline/pack.h"

#include <stdlib.h>

static const struct {
    const char *name, *trc;
} kinds[TL_KINDS] = {
    [TL_RUN] = {"run", "TRCThreadRunningEvent"},
    [TL_WAIT_OBJECT] = {"wait-object", "TRCThreadWaitingForObjectEvent"},
    [TL_WAIT_LOCK] = {"wait-lock", "TRCThreadWaitingForLockEvent"},
    [TL_SLEEP] = {"sleep", "TRCThreadSleepingEvent"},
    [TL_WAIT_JOIN] = {"wait-join", "TRCThreadWaitingForJoinEvent"},
    [TL_DEADLOCK] = {"deadlock", "TRCThreadDeadLockEvent"},
    [TL_DEAD] = {"dead", "TRCThreadDeadEvent"},
    [TL_PARK] = {"park", "TRCThreadParkedEvent"},
    [TL_REACQUIRE] = {"reacquire", "TRCThreadReacquireEvent"},
    [TL_IO] = {"io", "TRCThreadIOEvent"},
    [TL_PREEMPTED] = {"preempted", "TRCThreadPreemptedEvent"},
    [TL_UNMOUNTED] = {"unmounted", "TRCThreadUnmountedEvent"},
    [TL_CLASS_INIT] = {"class-init", "TRCThreadWaitingForClassEvent"},
    [TL_UNKNOWN] = {"unknown", "TRCThreadUnknownEvent"},
    [TL_TIMEOUT] = {"timeout", "TRCThreadWaitTimeoutExceedEvent"},
    [TL_STARTS] = {"starts", "TRCThreadStartsThreadEvent"},
    [TL_HANDOFF] = {"handoff", "TRCThreadHandoffLockEvent"},
    [TL_INTERRUPTS] = {"interrupts", "TRCThreadInterruptThreadEvent"},
    [TL_NOTIFY] = {"notify", "TRCThreadNotifyEvent"},
    [TL_NOTIFY_ALL] = {"notify-all", "TRCThreadNotifyAllEvent"},
    [TL_DEAD_JOIN] = {"dead-join", "TRCThreadDeadAndNotifyJoinedEvent"},
    [TL_UNPARK] = {"unpark", "TRCThreadUnparkEvent"},
    [TL_ACQUIRE] = {"acquire", "TRCThreadAcquireLockEvent"},
    [TL_RELEASE] = {"release", "TRCThreadReleaseLockEvent"},
};

static const char *const edges[TL_EDGES] = {
    [TL_NO_EDGE] = "none",     [TL_BY_START] = "start",           [TL_BY_HANDOFF] = "handoff",
    [TL_BY_NOTIFY] = "notify", [TL_BY_NOTIFY_ALL] = "notify-all", [TL_BY_UNPARK] = "unpark",
    [TL_BY_JOIN] = "join",     [TL_BY_INTERRUPT] = "interrupt",   [TL_BY_TIMER] = "timer",
    [TL_BY_IO] = "io",
};

const char *tl_kind_name(enum tl_kind kind)
{
    return kind < TL_KINDS ? kinds[kind].name : "?";
}

const char *tl_kind_text(enum tl_kind kind)
{
    return kind == TL_PREEMPTED ? "waiting for a processor" : tl_kind_name(kind);
}

const char *tl_trc_name(enum tl_kind kind)
{
    return kind < TL_KINDS ? kinds[kind].trc : "?";
}

const char *tl_edge_name(enum tl_edge edge)
{
    return edge < TL_EDGES ? edges[edge] : "?";
}

const char *tl_string(const struct timeline *t, uint32_t number)
{
    return number < t->n_strings && t->strings[number] < t->n_text ? t->text + t->strings[number]
                                                                   : "";
}

const char *tl_thread_name(const struct timeline *t, uint32_t thread)
{
    return thread < t->n_threads ? tl_string(t, t->threads[thread].name) : "";
}

const char *tl_object_class(const struct timeline *t, uint32_t object)
{
    return object < t->n_objects ? tl_string(t, t->objects[object].class) : NULL;
}

static inline uint64_t word_at(const uint8_t *at)
{
    uint64_t word;
    memcpy(&word, at, sizeof(word));
    return le64toh(word);
}

/* Unpacks a column of the first n nodes of a block, two nodes at a time. */
static void unpack_column(const uint8_t *bits, const struct tl_block *b, enum tl_column column,
                          uint32_t n, uint64_t *ret)
{
    typedef uint64_t two_words __attribute__((vector_size(16)));

    const unsigned bit = b->begin[column], width = b->begin[column + 1] - bit, shift = bit & 7;
    const uint64_t mask = (UINT64_C(1) << width) - 1;
    const size_t row = b->row;
    const uint8_t *at = bits + (bit >> 3);
    uint32_t i = 0;
    for (; i + 1 < n; i += 2, at += 2 * row) {
        two_words two = {word_at(at), word_at(at + row)};
        two = two >> shift & mask;
        memcpy(&ret[i], &two, sizeof(two));
    }
    if (i < n)
        ret[i] = word_at(at) >> shift & mask;
}

/*
 * Unpacks one column of a block after the other. Everything that depends on the block alone is
 * known.
 */
void tl_reader_fill(struct tl_reader *r, uint32_t node)
{
    const struct timeline *t = r->t;
    const struct tl_block b = t->blocks[node >> TL_BLOCK_BITS];
    const uint8_t *bits = t->packed + b.at;
    uint64_t columns[TL_COLUMNS][TL_BLOCK_NODES];
    r->from = node & ~(uint32_t)(TL_BLOCK_NODES - 1);
    r->to = MIN(r->from + TL_BLOCK_NODES, t->n_nodes);
    uint32_t n = (uint32_t)(r->to - r->from);
    for (int c = 0; c < TL_COLUMNS; c++)
        unpack_column(bits, &b, (enum tl_column)c, n, columns[c]);
    const uint16_t *shapes = t->shapes;
    const size_t n_nodes = t->n_nodes, n_threads = t->n_threads, n_contexts = t->n_contexts;
    for (uint32_t i = 0; i < n; i++) {
        const struct tl_values v = {.time = columns[TL_TIME][i],
                                    .shape = columns[TL_SHAPE][i],
                                    .thread = columns[TL_THREAD][i],
                                    .prev = columns[TL_PREV][i],
                                    .waker = columns[TL_WAKER][i],
                                    .context = columns[TL_CONTEXT][i]};
        r->nodes[i] = tl_node_within(tl_node_of(&v, b.time, shapes, (uint32_t)r->from + i, n_nodes),
                                     n_threads, n_contexts);
    }
}

void timeline_free(struct timeline *t)
{
    if (!t)
        return;
    timeline_index_close(t);
#define FREE_KEPT_(type, name)             \
    if (t->own_kept >> TL_KEEP_##name & 1) \
        free((void *)(uintptr_t)t->name);
    TL_KEPT(FREE_KEPT_)
#undef FREE_KEPT_
    if (t->mapped) {
        file_map_release(&(struct file_map){t->mapped, t->mapped_len});
    } else {
        if (t->packed_file)
            t->packed = NULL;
#define FREE_(type, name) free((void *)(uintptr_t)t->name);
        TL_ARRAYS(FREE_)
#undef FREE_
    }
    tl_packed_file_free(t->packed_file);
    free(t);
}
