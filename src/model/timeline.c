/* SPDX-License-Identifier: Apache-2.0 */
#include "model/timeline.h"

#include "base/file.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

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
    return number < t->n_strings && t->strings[number] < t->n_text ? t->text + t->strings[number] : "";
}

const char *tl_thread_name(const struct timeline *t, uint32_t thread)
{
    return thread < t->n_threads ? tl_string(t, t->threads[thread].name) : "";
}

const char *tl_object_class(const struct timeline *t, uint32_t object)
{
    return object < t->n_objects ? tl_string(t, t->objects[object].class) : NULL;
}

/* The index file: this header, then the arrays, each on a multiple of 8. The machine's own byte order; a cache, not a format.
 */
enum { ARRAYS = 10, MAGIC = 0x6a766d74 }; /* "tmvj" */

#define VERSION 2

struct index_header {
    uint32_t magic, version;
    uint64_t key, file_len;
    uint64_t origin_ns, start_epoch, end_ns, lost, unbound;
    uint32_t instrumented, deadlocks;

    struct {
        uint64_t offset, n;
    } arrays[ARRAYS];
};

int timeline_save(const struct timeline *t, const char *path, uint64_t key)
{
    struct index_header h = {MAGIC,      VERSION,         key,          0,    t->origin_ns, t->start_epoch, t->end_ns, t->lost,
                             t->unbound, t->instrumented, t->deadlocks, {{0}}};
    const void *data[ARRAYS];
    size_t bytes[ARRAYS], i = 0;
    uint64_t at = sizeof(h);
#define SAVE_(type, name)                  \
    data[i] = t->name;                     \
    bytes[i] = t->n_##name * sizeof(type); \
    h.arrays[i].offset = at;               \
    h.arrays[i].n = t->n_##name;           \
    at += (bytes[i] + 7) & ~(uint64_t)7;   \
    i++;
    TL_ARRAYS(SAVE_)
#undef SAVE_
    h.file_len = at;
    _cleanup_(out_file_release) struct out_file f = OUT_FILE;
    int r = out_file_open(&f, path);
    if (r == 0)
        r = write_all(f.fd, &h, sizeof(h));
    for (i = 0; r == 0 && i < ARRAYS; i++) {
        static const char zeros[8];
        r = write_all(f.fd, data[i], bytes[i]);
        if (r == 0)
            r = write_all(f.fd, zeros, -bytes[i] & 7);
    }
    return r == 0 ? out_file_commit(&f) : r;
}

/* Every index in the file is used without a check later on, so each is looked at once here, and quickly. */
static bool indices_hold(const struct timeline *t)
{
    uint64_t bad = 0;
    for (size_t i = 0; i < t->n_nodes; i++) {
        const struct tl_node *n = &t->nodes[i];
        bad |= (n->prev != TL_NONE) & (n->prev >= i);
        bad |= (n->waker != TL_NONE) & (n->waker >= t->n_nodes);
        bad |= n->thread >= t->n_threads;
        bad |= n->context >= t->n_contexts;
        bad |= n->kind >= TL_KINDS;
    }
#define BAD_(value, count) ((value) != TL_NONE && (value) >= (count))
    for (size_t i = 0; i < t->n_contexts; i++) {
        const struct tl_context *c = &t->contexts[i];
        bad |= BAD_(c->object, t->n_objects) | BAD_(c->stack, t->n_stacks) | BAD_(c->other, t->n_threads);
    }
    for (size_t i = 0; i < t->n_threads; i++) {
        const struct tl_thread *p = &t->threads[i];
        bad |= BAD_(p->first, t->n_nodes) | BAD_(p->last, t->n_nodes) | BAD_(p->object, t->n_objects) |
               BAD_(p->parent, t->n_threads);
    }
    for (size_t i = 0; i < t->n_objects; i++)
        bad |= BAD_(t->objects[i].thread, t->n_threads);
    for (size_t i = 0; i < t->n_stacks; i++)
        bad |= t->stacks[i].first > t->n_frames || t->stacks[i].len > t->n_frames - t->stacks[i].first;
    for (size_t i = 0; i < t->n_delays; i++)
        bad |= t->delays[i].thread >= t->n_threads || t->delays[i].end_ns <= t->delays[i].start_ns;
#undef BAD_
    return bad == 0 && (t->n_text == 0 || t->text[t->n_text - 1] == 0);
}

int timeline_map(struct timeline **ret, const char *path, uint64_t key)
{
    _cleanup_(file_map_release) struct file_map m = {0};
    int r = file_map_open(&m, path);
    if (r < 0)
        return r;
    const struct index_header *h = (const void *)m.data;
    if (m.len < sizeof(*h) || h->magic != MAGIC || h->version != VERSION || h->file_len != m.len)
        return -EPROTO;
    if (h->key != key)
        return -ESTALE;
    _cleanup_(timeline_freep) struct timeline *t = calloc(1, sizeof(*t));
    if (!t)
        return -ENOMEM;
    t->origin_ns = h->origin_ns;
    t->start_epoch = h->start_epoch;
    t->end_ns = h->end_ns;
    t->lost = h->lost;
    t->unbound = h->unbound;
    t->instrumented = h->instrumented;
    t->deadlocks = h->deadlocks;
    size_t i = 0;
#define MAP_(type, name)                                               \
    if (h->arrays[i].offset > m.len || h->arrays[i].offset % 8 ||      \
        h->arrays[i].n > (m.len - h->arrays[i].offset) / sizeof(type)) \
        return -EPROTO;                                                \
    t->name = (const void *)(m.data + h->arrays[i].offset);            \
    t->n_##name = h->arrays[i].n;                                      \
    i++;
    TL_ARRAYS(MAP_)
#undef MAP_
    t->mapped = (void *)m.data;
    t->mapped_len = m.len;
    m = (struct file_map){0};
    if (!indices_hold(t))
        return -EPROTO;
    *ret = TAKE(t);
    return 0;
}

void timeline_free(struct timeline *t)
{
    if (!t)
        return;
    if (t->mapped) {
        file_map_release(&(struct file_map){t->mapped, t->mapped_len});
    } else {
#define FREE_(type, name) free((void *)(uintptr_t)t->name);
        TL_ARRAYS(FREE_)
#undef FREE_
    }
    free(t);
}
