/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Native memory in which the probe class and follow.c know which thread works for which request,
 * and which task was handed over by which request. Nothing in it refers to an object of the
 * program. Each table consists of buckets of eight; a bucket that is full loses an entry, which is
 * counted. The layout is in JvmscopeRequests.java too.
 */
#pragma once

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

enum {
    BUCKET = 8,
    SLOT_BUCKETS = 1 << 16,
    HANDED_BUCKETS = 1 << 15,
    HOT_BUCKETS = 1 << 8,
    TASKS = 1 << 16
};

/*
 * A request while it is open: its id from bit 24 on, the recording's number, whether it began at
 * an entry point of a server (or within such a request), and its place in the table of requests.
 */
#define TOKEN_INDEX      UINT64_C(0xffff)
#define TOKEN_SERVER     (UINT64_C(1) << 16)
#define TOKEN_SESSION(t) ((t) >> 17 & 127)
#define TOKEN_ID(t)      ((t) >> 24)

/*
 * Threads that work for a request, by Thread.getId(); only the thread itself writes its entry.
 * Ids are consecutive numbers, so that they fill the buckets evenly.
 */
struct slots {
    _Atomic uint64_t java_id[BUCKET]; /* 0: free */
    _Atomic uint64_t request[BUCKET]; /* the token of the innermost request */
    _Atomic uint64_t thread[BUCKET];  /* the thread's id in the recording */
    uint64_t work[BUCKET];            /* follow.c */
};

/*
 * A task that waits to be run. The key is HANDED_TASK | the identity hash of an object, or
 * HANDED_THREAD | the Java id of a thread that was started. Entries are made in a table that is
 * small enough for a processor's cache; when a bucket of it is full, its oldest entry moves to the
 * large one. For each small bucket there is a number of entries that are in the large table
 * instead.
 */
#define HANDED_BUSY   UINT64_C(1) /* the key of an entry that is being written */
#define HANDED_TASK   (UINT64_C(1) << 32)
#define HANDED_THREAD (UINT64_C(1) << 62)
#define HANDED_WAY    56 /* `by` has an enum request_way from this bit on; 0: that of the place */

struct handed {
    _Atomic uint64_t key;     /* 0: free */
    _Atomic uint64_t request; /* 0: handed over by a thread that works for none */
    _Atomic uint64_t time;    /* when, in ns */
    _Atomic uint64_t by;      /* the thread's id in the recording */
};

/*
 * The task without a request that a thread of a pool runs now, by Java id: if a request begins in
 * it, the time that the task waited is part of that request.
 */
struct task {
    _Atomic uint64_t java_id; /* 0: none */
    uint64_t start, handed, by;
};

/*
 * Which requests are counted while counting each of them exceeds the budget: a random number from
 * bit 6 on, and below it n where one of 2^n is counted and stands for all; 0: all are. Of methods
 * each call is drawn, with a random state for some threads. Of servers all or none of a thread are
 * until the number changes, since what one of them calls may be an entry point as well.
 */
#define CHOICE_BITS UINT64_C(63)

enum { DRAWS = 256, DRAW_WORDS = 8 /* a cache line each */ };

_Static_assert(sizeof(struct slots) == 256 && sizeof(struct handed) == 32 &&
                   sizeof(struct task) == 32,
               "as the probe has it");
