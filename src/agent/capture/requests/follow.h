/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files that follow requests share: the records of open requests and of works in progress,
 * and the state of a recording. records.c has the tables, kept.c decides which details are written,
 * follow.c knows which request each thread works for, natives.c is what the probe calls.
 *
 * A thread that works for a request has an entry in the slots (tables.h), and the works that it is
 * in form a list, innermost first; the entry shows the innermost one's request. Requests and works
 * are records of two fixed tables; a number that a probe holds says which use of a record it means,
 * so that it is harmless when it comes late.
 */
#pragma once

#include "agent/capture/requests/requests.h"
#include "agent/capture/requests/tables.h"
#include "agent/inside.h"
#include "base/clock.h"

enum {
    REQUESTS = 1 << 16, /* open at a time */
    WORKS = 1 << 17,    /* in progress at a time */
    USE_SHIFT = 20,     /* of the use of a work's record, in the work's number */
    PIECES = 16,        /* works and children of a request that may be kept until it ends */
    NAMED = 1 << 16,    /* known hashes of methods and paths */
    NAME_BITS = 13,
    TRACE_ID = 32, /* hexadecimal digits */
    SPAN_ID = 16,
    RUNNING_RARELY = 200, /* looking at open requests takes at most this share of the time */
    LATE = 1 << 20,       /* requests that have ended of which it is known whether they were kept */
};

/* A work or a child that has ended. */
struct piece {
    bool is_child;

    union {
        struct request_work work;
        struct request_child child;
    };
};

struct request {
    _Atomic uint64_t token; /* 0: free. First: the probe reads it */
    uint64_t parent, start, thread;
    _Atomic uint64_t
        reported; /* triggers know how long it had taken by this time; 0: they do not */
    unsigned name;
    uint32_t weight; /* it stands for so many requests */
    enum request_kind kind;
    int status;                                  /* if it was known before the end; 0: it was not */
    int64_t bytes;                               /* of the answer; -1: unknown */
    char trace[TRACE_ID + 1], span[SPAN_ID + 1]; /* of its caller; "": none */
    enum request_kept kept;                      /* KEPT_NOT: decided at the end */
    atomic_flag busy;                            /* guards the pieces, and the end of the request */
    unsigned n_pieces;
    struct piece pieces[PIECES];
    _Atomic uint32_t next; /* in the list of free ones */
};

struct work {
    _Atomic uint64_t number; /* 0: free; its use in the upper bits */
    uint64_t use;
    uint64_t request; /* a token */
    uint64_t outer;   /* the work that it is nested in; 0: none */
    struct request_work as;
    struct request_child child; /* in progress; start 0: none */
    _Atomic uint32_t next;
};

/* A table of records of which free ones are taken; a record keeps its place for good. */
struct pool {
    char *records;
    size_t size, next_at; /* of a record; where its `next` is */
    uint32_t max;
    _Atomic uint64_t free; /* 1 + index, and above it a count of the changes */
    _Atomic uint32_t used; /* records from here on have never been used in this recording */
};

/* The entry of a thread in the slots. */
struct slot {
    struct slots *in; /* NULL: none */
    unsigned i;
};

struct follow {
    struct slots *slots;
    struct handed *handed, *hot;
    _Atomic uint64_t *spilled; /* entries in `handed`, by bucket of `hot` */
    struct task *tasks;
    _Atomic uint64_t *named;
    uint64_t *draws;         /* DRAWS random states; the probe changes them */
    _Atomic uint64_t choice; /* tables.h */
    uint64_t *prepared;      /* identity hash of a statement << NAME_BITS | number of its text */
    struct pool requests, works;
    _Atomic uint64_t *late;       /* a bit each, by id: it was kept */
    _Atomic uint64_t overwritten; /* by the probe */
    _Atomic uint64_t any;
    int64_t tid_offset;
    jfieldID tid;
    jclass carrier, probe;
    jobject scheduler;
    uint64_t session; /* the number of the recording, 1 to 127 */
    _Atomic uint64_t begun, open, no_record, no_slot;
    _Atomic int64_t allowance; /* details that may still be written */
    _Atomic uint32_t share;    /* of 2^16: the sample */
    _Atomic int64_t now_left;  /* details that may be written before the next flush */
    uint64_t flushed_ns, flushed_begun;
};

extern struct follow follow;
extern struct inside follow_inside;

/* ---- records.c ---- */

void follow_empty(void);
/* The index of a free record, -1 when there is none; and its return. */
int64_t follow_take(struct pool *p);
void follow_give(struct pool *p, uint32_t i);
/* The record that a token names, whether it is still its own or not. */
struct request *follow_at(uint64_t token);
/* The record of a request that has not ended; NULL otherwise. */
struct request *follow_request(uint64_t token);
/* The record of a work that is in progress; NULL otherwise. */
struct work *follow_work(uint64_t number);
/* For as long as it takes to copy a piece: the holder may have lost its processor, though. */
void follow_lock(struct request *r);
void follow_unlock(struct request *r);

/* ---- kept.c ---- */

void follow_kept_start(void);
/* How many requests one stands for that begins now and is counted. */
uint32_t follow_weight(void);
/* Whether a request that begins now is one of those whose details are written. */
enum request_kept follow_choose(uint64_t id);
/* For works that end after their request: whether that was kept. */
void follow_set_kept(uint64_t id, bool kept);
bool follow_was_kept(uint64_t id);
void follow_put(uint64_t id, const struct piece *p);
/* A work or child has ended: it is written now, kept with its request, or dropped with it. */
void follow_keep(uint64_t token, const struct piece *p);

/* ---- follow.c ---- */

/* The entry of a thread that works for a request; and one that is made if it has none. */
struct slot follow_slot(uint64_t java_id);
struct slot follow_claim(JNIEnv *jni, uint64_t java_id);
/* The calling thread begins to work for a request. Returns the work's number; 0: no room. */
uint64_t follow_begin(struct slot s, uint64_t token, const struct request_work *how);

/*
 * The calling thread begins to work for a request that `by` handed over at a time, 0 if it did not
 * lie in a queue. Returns the work's number; 0: the thread works for it already, or it is not
 * followed.
 */
uint64_t follow_hand(JNIEnv *jni, uint64_t java_id, uint64_t token, enum request_way way,
                     uint64_t time, uint64_t by);

/* Which of a thread's works in progress is meant. */
typedef bool (*follow_is)(const struct work *w, uint64_t what);
bool follow_is_number(const struct work *w, uint64_t number);
/* The call in which a request began, or in which its server goes on with it. */
bool follow_is_entry(const struct work *w, uint64_t token);
bool follow_is_outermost(const struct work *w, uint64_t none);
struct work *follow_find(struct slot s, follow_is is, uint64_t what);
/* Ends the calling thread's work that is meant, if there is one; now 0: it was none. */
void follow_end_if(uint64_t java_id, follow_is is, uint64_t what, uint64_t now);

/* A request begins on the calling thread; late: for how long a task was due before, in ns. */
uint64_t follow_request_begin(JNIEnv *jni, enum request_kind kind, unsigned name, uint64_t java_id,
                              uint64_t late);
void follow_request_end(JNIEnv *jni, struct request *r, uint64_t token, int status,
                        jclass exception, uint64_t now, uint64_t java_id);
/*
 * Ends the request of a task or message in which the calling thread is, and all that the thread
 * works for; false: it is in none.
 */
bool follow_task_end(JNIEnv *jni, uint64_t java_id, jclass exception);

/* ---- natives.c ---- */

/* The texts of children have the numbers of one recording. */
void follow_texts_forget(void);
