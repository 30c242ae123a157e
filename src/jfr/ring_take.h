/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files that extract a part of a ring share: ring_read.c finds the chunks and the limits
 * of the part, ring_events.c decides which events belong to it, and ring_chunk.c writes each chunk.
 */
#pragma once

#include "base/buf.h"
#include "base/map.h"
#include "base/vec.h"
#include "jfr/internal.h"
#include "jfr/ring.h"
#include "jfr/ring_read.h"

enum { KINDS = 16384, FEATURES = 67, COMPRESSED = 1, FINAL = 2 };

/* What an event type means for a part of a recording. */
enum ring_what {
    UNKNOWN,
    MOMENT,     /* something that happened */
    STATE,      /* something that is true from then on; each chunk repeats it */
    WAITING,    /* a wait that was in progress; its end has an event of its own */
    THREAD_END, /* ends what is known of a thread */
};

struct ring_kind {
    uint8_t what;
    bool lasts, has_thread;
};

struct ring_chunk {
    uint32_t index;
    uint64_t number;      /* of the chunk */
    uint64_t size;        /* in bytes */
    uint64_t ticks, ends; /* when it began and ended */
    uint64_t start_ns;    /* when it began, since 1970 */
    bool final;
};

struct ring_taking {
    int fd, to;
    const struct jfr_ring_cut *cut;
    struct jfr_ring_head head;
    VEC(struct ring_chunk) segments; /* by number */
    uint64_t damaged;
    uint64_t from, until;          /* ticks */
    int64_t epoch_ns;              /* of tick 0 */
    uint8_t *bytes;                /* of one chunk */
    struct buf out;                /* what is written to the file next */
    uint64_t written;              /* bytes of the chunk that is being written, before out */
    struct ring_kind kinds[KINDS]; /* by type id; of one chunk */
    struct map states;             /* waits and threads: whether they ended before the part */
    struct jfr_ring_part part;
    bool first;
};

struct ring_event {
    const uint8_t *at, *body, *after_start, *end; /* the body, after size and type */
    uint64_t type;
    const struct ring_kind *kind;
    uint64_t start, ends, thread; /* ticks */
};

static const struct ring_kind ring_unknown;

/* Nine bytes must be readable. */
static inline const uint8_t *ring_read_number(const uint8_t *at, uint64_t *ret)
{
    uint64_t v = *at & 0x7f;
    for (unsigned shift = 7; *at++ & 0x80; shift += 7) {
        if (shift == 56) {
            v |= (uint64_t)*at++ << 56;
            break;
        }
        v |= (uint64_t)(*at & 0x7f) << shift;
    }
    *ret = v;
    return at;
}

/* The most bytes that read_event reads at once: six numbers. */
enum { NUMBERS = 6 * 9 };

/* t->bytes has NUMBERS bytes more than the chunk, so that an incomplete event is read safely. */
static inline bool ring_event_here(const struct ring_taking *t, const uint8_t *at,
                                   const uint8_t *end, struct ring_event *ret)
{
    uint64_t size, number = 0;
    *ret = (struct ring_event){.at = at, .kind = &ring_unknown};
    ret->body = ring_read_number(ring_read_number(at, &size), &ret->type);
    if (size < (size_t)(ret->body - at) || size > (size_t)(end - at))
        return false;
    ret->end = at + size;
    if (ret->type < KINDS)
        ret->kind = &t->kinds[ret->type];
    if (ret->kind->what == UNKNOWN)
        return true;
    at = ret->after_start = ring_read_number(ret->body, &ret->start);
    ret->ends = ret->start;
    ret->thread = 0;
    if (ret->kind->lasts) {
        at = ring_read_number(at, &number);
        ret->ends += number;
    }
    if (ret->kind->has_thread)
        at = ring_read_number(at, &ret->thread);
    if (ret->kind->what == THREAD_END)
        at = ring_read_number(at, &ret->thread); /* the virtual thread that the carrier runs */
    if (at > ret->end)
        ret->kind = &ring_unknown;
    return true;
}

/* Reads the event at `at`. Returns false when there is no complete one. */
static inline bool ring_read_event(const struct ring_taking *t, const uint8_t *at,
                                   const uint8_t *end, struct ring_event *ret)
{
    return at < end && ring_event_here(t, at, end, ret);
}

static inline uint64_t ring_offset_of(const struct ring_taking *t, uint32_t segment)
{
    return JFR_RING_HEAD + segment * t->head.segment_bytes;
}

/* ---- ring_read.c */

/*
 * Reads n bytes at an offset of a file. Returns 0, or a negative errno; -ENODATA: it ends before.
 */
int ring_read_at(int fd, void *to, size_t n, uint64_t offset) must_check;

/* ---- ring_events.c */

/* Reads the event types of the chunk in t->bytes into t->kinds. Returns 0 or a negative errno. */
int ring_learn_kinds(struct ring_taking *t, size_t len) must_check;
/*
 * Records in t->states which of the waits and threads in the chunk ended before the part. Returns 0
 * or a negative errno.
 */
int ring_learn_ends(struct ring_taking *t, const uint8_t *bytes, size_t len) must_check;
/* Returns the end of the last event of the chunk, in ticks. */
uint64_t ring_last_end(const struct ring_taking *t, const uint8_t *bytes, size_t len);
/*
 * Appends the events of the chunk in t->bytes that belong to the part. Long runs are written
 * without a copy.
 */
int ring_put_events(struct ring_taking *t, const struct ring_chunk *s) must_check;

/* ---- ring_chunk.c */

struct ring_checkpoint {
    struct ring_event e;
    uint64_t start, duration;
    int64_t delta;
    const uint8_t *rest;
    uint8_t flags;
};

/* Returns false when there is no complete checkpoint at `at`. */
bool ring_read_checkpoint(const struct ring_taking *t, const uint8_t *at, const uint8_t *end,
                          struct ring_checkpoint *ret);
/*
 * Writes a chunk. events: the whole chunk is in t->bytes, and those of its events that belong to
 * the part are written; otherwise only its constants are needed.
 */
int ring_put_chunk(struct ring_taking *t, const struct ring_chunk *s, bool events,
                   bool last) must_check;
/* Copies a chunk that belongs to the part as a whole. */
int ring_copy_chunk(struct ring_taking *t, const struct ring_chunk *s) must_check;
