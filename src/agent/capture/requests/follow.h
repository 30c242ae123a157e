/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files that follow requests share: the records of open requests and of works in progress
 * (a work is a stretch of time in which one thread works for one request), and the state of a
 * recording. records.c has the tables, kept.c decides which details are written, works.c knows
 * which request each thread works for, follow.c begins and ends requests, natives.c is what the
 * probe calls.
 *
 * A thread that works for a request has an entry in the slots (tables.h). Its nested works form a
 * list, innermost first, and the entry names the request of the innermost one. Requests and works
 * are records in two fixed tables whose records are reused. A number that a probe holds also names
 * the use of the record, so a number that arrives late is recognized and does no harm.
 */
#pragma once

#include "agent/capture/requests/requests.h"
#include "agent/capture/requests/tables.h"
#include "agent/common/inside.h"
#include "base/clock.h"

enum {
    REQUESTS = 1 << 16, /* open at a time */
    WORKS = 1 << 17,    /* in progress at a time */
    USE_SHIFT = 20,     /* in a work's number, the bit from which it holds the record's use */
    PIECES = 16,        /* works and children of a request that may be kept until it ends */
    NAMED = 1 << 16,    /* known hashes of methods and paths */
    NAME_BITS = 13,
    TRACE_ID = 32, /* hexadecimal digits */
    SPAN_ID = 16,
    /* the search of the open requests takes at most this fraction of the time: one part in ... */
    RUNNING_RARELY = 200,
    /* for this many ended requests it is remembered whether they were kept */
    LATE = 1 << 20,
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
    _Atomic uint64_t token; /* 0: free. The first member, because the probe reads it */
    uint64_t parent, start, thread;
    /* when its duration was last reported to triggers; 0: never */
    _Atomic uint64_t reported;
    unsigned name;
    uint32_t weight; /* the number of requests that it stands for in counts */
    uint32_t one_of; /* the number of requests that its details were chosen from; 0: not chosen */
    enum request_kind kind;
    /* the answer's status if it became known before the end; otherwise 0 */
    int status;
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
    uint64_t in_slot; /* its number before it had a record; 0: it always had one */
    struct request_work as;
    struct request_child child; /* in progress; start 0: none */
    _Atomic uint32_t next;
};

enum pool_kind { POOL_REQUESTS, POOL_WORKS, POOLS };

/* A table from which free records are taken. A record never moves. */
struct record_pool {
    char *records;
    size_t size, next_at; /* the size of a record, and the offset of its `next` */
    enum pool_kind kind;
    uint32_t max;
    _Atomic uint64_t free; /* 1 + index, and above it a count of the changes */
    _Atomic uint32_t used; /* records from here on have never been used in this recording */
};

/* The entry of a thread in the slots. */
struct work_slot {
    struct work_slots *in; /* NULL: none */
    unsigned i;
};

struct follow {
    struct work_slots *slots;
    struct handed *handed, *hot;
    _Atomic uint64_t *spilled; /* entries in `handed`, by bucket of `hot` */
    struct task *tasks;
    _Atomic uint64_t *named;
    uint64_t *draws;         /* DRAWS random states; the probe changes them */
    _Atomic uint64_t choice; /* tables.h */
    uint64_t *prepared;      /* identity hash of a statement << NAME_BITS | number of its text */
    struct record_pool requests, works;
    _Atomic uint64_t *late;       /* one bit for each request, by id: whether it was kept */
    _Atomic uint64_t overwritten; /* by the probe */
    _Atomic uint64_t any;
    int64_t tid_offset;
    jfieldID tid;
    jclass probe;
    _Atomic bool refused; /* the VM has refused the probe since the last flush */
    uint64_t session;     /* the number of the recording, 1 to 127 */
    _Atomic uint64_t begun, ended, no_record, no_slot;
    /* how many requests the first two stand for, while not each is counted (`weight`) */
    _Atomic uint64_t begun_all, ended_all;
    _Atomic int64_t allowance; /* details that may still be written */
    _Atomic uint32_t share;    /* of 2^16: the sample */
    /*
     * How many details may still be written before the next flush, and how many the last flush
     * allowed.
     */
    _Atomic int64_t now_left, now_most;
    uint64_t flushed_ns, flushed_begun;
};

extern struct follow follow;
extern struct inside follow_inside;

/* ---- records.c ---- */

void follow_empty(void);
/*
 * follow_take takes a free record and returns its index, or -1 when there is none; follow_give
 * gives record i back. Each thread holds one spare record of each kind, which follow_give_spare
 * gives back when the thread ends.
 */
int64_t follow_take(struct record_pool *p);
void follow_give(struct record_pool *p, uint32_t i);
void follow_give_spare(void);

/* Returns the record that a token names, even if another request uses the record by now. */
static inline struct request *follow_at(uint64_t token)
{
    return (struct request *)follow.requests.records + (token & TOKEN_INDEX);
}

/* Returns the record of the request with this token if it has not ended, otherwise NULL. */
static inline struct request *follow_request(uint64_t token)
{
    struct request *r = token ? follow_at(token) : NULL;
    return r && atomic_load(&r->token) == token ? r : NULL;
}

/* Returns the record of the work with this number if it is in progress, otherwise NULL. */
static inline struct work *follow_work(uint64_t number)
{
    struct work *w = (struct work *)follow.works.records + (number & (WORKS - 1));
    return number && atomic_load(&w->number) == number ? w : NULL;
}

/*
 * Locks a request for as long as it takes to copy a piece. A waiter may wait longer, because the
 * holder may have lost its processor.
 */
void follow_lock(struct request *r);
void follow_unlock(struct request *r);

/* ---- kept.c ---- */

void follow_kept_start(void);
/* Returns the number of requests for which a request that begins now stands if it is counted. */
uint32_t follow_weight(void);
/*
 * Decides whether a request that begins now is one of those whose details are written. If so,
 * *ret_one_of is the number of requests from which it was chosen; otherwise it is left unchanged.
 */
enum request_kept follow_choose(uint64_t id, uint32_t *ret_one_of);
/*
 * Stores whether the request with this id was kept, for works that end after it; follow_was_kept
 * returns that.
 */
void follow_set_kept(uint64_t id, bool kept);
bool follow_was_kept(uint64_t id);
/* Writes a piece of the request with this id into the recording. */
void follow_put(uint64_t id, const struct piece *p);
/*
 * Writes p, a work or child that has ended, of the request with this token; or keeps it until the
 * request ends, or drops it, as is decided for the request.
 */
void follow_keep(uint64_t token, const struct piece *p);
/*
 * Returns whether a request is open and its details are written at once, which is usual and needs
 * no lock. If not, follow_keep decides.
 */
bool follow_is_kept(uint64_t token);

/* ---- works.c ---- */

/* Returns the calling thread's id in the recording, for its Java id. */
uint64_t follow_thread_id(JNIEnv *jni, uint64_t java_id, bool *ret_virtual);
/*
 * Returns the entry of the calling thread, or one without `in` if it has none. Makes the record of
 * the entry's work if that has none yet.
 */
struct work_slot follow_slot(uint64_t java_id);
/* Like follow_slot, but creates an entry if there is none; without `in` if the table is full. */
struct work_slot follow_claim(JNIEnv *jni, uint64_t java_id);
void follow_slot_free(struct work_slot s);
/*
 * Does what follow_take does for the thread of this entry. If there is no free record, counts that,
 * and clears the entry's request unless the thread has other work; the entry of a virtual thread is
 * then freed and must not be used again.
 */
int64_t follow_take_for(struct work_slot s, struct record_pool *p);
/*
 * Begins work of the calling thread for a request. Returns the work's number, or 0 if there is no
 * room.
 */
uint64_t follow_begin(struct work_slot s, uint64_t token, const struct request_work *how);

/*
 * Begins work of the calling thread for a request that thread `by` handed over at a given time; the
 * time is 0 if the work did not lie in a queue. Returns the work's number, or 0 when the thread
 * already works for the request or the request is not followed.
 */
uint64_t follow_hand(JNIEnv *jni, uint64_t java_id, uint64_t token, enum request_way way,
                     uint64_t time, uint64_t by);

/*
 * Ends the time in the queue of a task that thread `by` had handed over at a given time, that no
 * thread has taken, and that the calling thread has cancelled.
 */
void follow_cancel(JNIEnv *jni, uint64_t java_id, uint64_t token, uint64_t time, uint64_t by);

/* Ends the calling thread's work of this number. */
void follow_work_end(uint64_t java_id, uint64_t number);
/*
 * Ends what the calling thread, which belongs to a pool, works for: it looks for its next task.
 * With drop, what it has done so far does not count as work.
 */
void follow_leave(JNIEnv *jni, uint64_t java_id, bool drop);

/* Returns whether a work in progress is the one that the caller means by `what`. */
typedef bool (*follow_is)(const struct work *w, uint64_t what);
bool follow_is_number(const struct work *w, uint64_t number);
/*
 * Returns whether the work is the call in which the request began, or the one in which its server
 * continues it.
 */
bool follow_is_entry(const struct work *w, uint64_t token);
/* Returns whether no other work of the thread encloses the work. */
bool follow_is_outermost(const struct work *w, uint64_t none);
/* Returns the innermost work of the entry's thread that `is` accepts for `what`, or NULL. */
struct work *follow_find(struct work_slot s, follow_is is, uint64_t what);
/*
 * Ends the calling thread's work that `is` selects, if there is one. With now 0 the work is dropped
 * as if it had never begun.
 */
void follow_end_if(uint64_t java_id, follow_is is, uint64_t what, uint64_t now);

/* ---- follow.c ---- */

/*
 * Begins a request on the calling thread. due: for a task, when it was to begin, in ns; 0: unknown.
 * Returns its token, or 0 if it is not followed, because there is no room or because the method
 * that is the request calls itself.
 */
uint64_t follow_request_begin(JNIEnv *jni, enum request_kind kind, unsigned name, uint64_t java_id,
                              uint64_t due);
/*
 * Ends the request at `now`, unless it has ended, and writes and counts it. status: the answer's, 0
 * if there is none; a status that became known earlier takes its place. exception: NULL if none.
 */
void follow_request_end(JNIEnv *jni, struct request *r, uint64_t token, int status,
                        jclass exception, uint64_t now, uint64_t java_id);
/*
 * Ends the request of the task or message that the calling thread handles, and all works of the
 * thread. Returns false when the thread handles none.
 */
bool follow_task_end(JNIEnv *jni, uint64_t java_id, jclass exception);
/*
 * Informs the probe class which threads carry virtual threads, and the pool of these threads.
 * Does nothing until the program has initialized VirtualThread; the probe calls it again when the
 * first virtual thread is started.
 */
void follow_find_carriers(JNIEnv *jni, jclass probe);

/* ---- natives.c ---- */

/* Forgets the texts of children, whose numbers are valid in one recording only. */
void follow_texts_forget(void);
