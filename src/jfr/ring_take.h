/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files that extract a part of a ring share: ring_read.c finds the chunks and the limits
 * of the part, ring_events.c decides which events belong to it, and ring_chunk.c writes each chunk.
 */
#pragma once

#include "base/buf.h"
#include "base/map.h"
#include "base/varint.h"
#include "base/vec.h"
#include "jfr/internal.h"
#include "jfr/ring.h"
#include "jfr/ring_read.h"

enum { KINDS = 16384 };

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
    bool all;        /* the part is everything that a ring still has which has overwritten chunks */
    uint64_t before; /* left out so far: events that ended before the part */
    bool caught_up;  /* no event of the last chunk was left out, so later ones are copied whole */
};

struct ring_event {
    const uint8_t *at, *body, *after_start, *end; /* the body, after size and type */
    uint64_t type;
    const struct ring_kind *kind;
    uint64_t start, ends, thread; /* ticks */
};

static const struct ring_kind ring_unknown;

/* The most bytes that ring_event_here reads at once: six numbers. */
enum { NUMBERS = 6 * VARINT_JFR_MAX };

/*
 * Reads the event at `at`, which is before `end`. Returns false when it is not complete. t->bytes
 * has NUMBERS bytes more than the chunk, so that an incomplete event is read safely.
 */
static inline bool ring_event_here(const struct ring_taking *t, const uint8_t *at,
                                   const uint8_t *end, struct ring_event *ret)
{
    *ret = (struct ring_event){.at = at, .kind = &ring_unknown};
    uint64_t size = varint_jfr(&at);
    ret->type = varint_jfr(&at);
    ret->body = at;
    if (size < (size_t)(at - ret->at) || size > (size_t)(end - ret->at))
        return false;
    ret->end = ret->at + size;
    if (ret->type < KINDS)
        ret->kind = &t->kinds[ret->type];
    if (ret->kind->what == UNKNOWN)
        return true;
    ret->ends = ret->start = varint_jfr(&at);
    ret->after_start = at;
    if (ret->kind->lasts)
        ret->ends += varint_jfr(&at);
    if (ret->kind->has_thread)
        ret->thread = varint_jfr(&at);
    if (ret->kind->what == THREAD_END)
        ret->thread = varint_jfr(&at); /* the virtual thread that the carrier runs */
    if (at > ret->end)
        ret->kind = &ring_unknown;
    return true;
}

/* Reads the event at `at`. Returns false at the end, or when the event is not complete. */
static inline bool ring_read_event(const struct ring_taking *t, const uint8_t *at,
                                   const uint8_t *end, struct ring_event *ret)
{
    return at < end && ring_event_here(t, at, end, ret);
}

/* Returns the offset of a segment in the file. */
static inline uint64_t ring_offset_of(const struct ring_taking *t, uint32_t segment)
{
    return JFR_RING_HEAD + segment * t->head.segment_bytes;
}

/* ---- ring_read.c */

/*
 * Reads n bytes at an offset of a file. Returns 0 or a negative errno, -ENODATA when the file ends
 * before.
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
 * without a copy. Returns 0 or a negative errno.
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

/* Reads the checkpoint at `at`. Returns false when no complete checkpoint is there. */
bool ring_read_checkpoint(const struct ring_taking *t, const uint8_t *at, const uint8_t *end,
                          struct ring_checkpoint *ret);
/*
 * Writes a chunk. events: the whole chunk is in t->bytes, and those of its events that belong to
 * the part are written; otherwise only its constants are needed. last: it is the last chunk of the
 * part. Returns 0 or a negative errno.
 */
int ring_put_chunk(struct ring_taking *t, const struct ring_chunk *s, bool events,
                   bool last) must_check;
/* Copies a chunk all of which belongs to the part. Returns 0 or a negative errno. */
int ring_copy_chunk(struct ring_taking *t, const struct ring_chunk *s) must_check;
