/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Native memory that records, for the probe class and works.c, which thread works for which
 * request and which request handed over which task. Nothing in it refers to an object of the
 * program. Each table consists of buckets of eight entries. A full bucket loses an entry, and the
 * loss is counted. JvmscopeRequests.java knows the same layout.
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
 * The threads that work for a request, by Thread.getId(). Only the thread itself writes its entry.
 * Ids are consecutive numbers and so fill the buckets evenly.
 *
 * A work is usually a record of follow.h. If a thread that has an entry and works for no request
 * takes a task, the probe writes into the entry what is known about the work, without a call of the
 * agent. The agent makes the record if anything else happens before the work ends.
 */
struct work_slots {
    _Atomic uint64_t java_id[BUCKET];    /* 0: free */
    _Atomic uint64_t request[BUCKET];    /* the token of the innermost request; 0: none */
    _Atomic uint64_t thread[BUCKET];     /* the thread's id in the recording */
    uint64_t work[BUCKET];               /* the number of its innermost work; 0: none */
    uint64_t handed[BUCKET], by[BUCKET]; /* of a work without a record, as in struct handed */
};

/* This bit marks the number of a work without a record. The others are its start in ns. */
#define WORK_IN_SLOT (UINT64_C(1) << 63)

/* From this bit on, `by` of a task holds an enum request_way. */
#define WAY_SHIFT 56

/*
 * A task that waits to be run. The key is HANDED_THREAD | the Java id of a thread that was started,
 * or the identity hash of an object and one of the bits from 1 << 32 on, which says what the object
 * is (the probe chooses them). Entries are made in a table that is small enough for a processor's
 * cache; when a bucket of it is full, its oldest entry moves to the large one. For each small
 * bucket there is a number of entries that are in the large table instead.
 */
#define HANDED_THREAD (UINT64_C(1) << 62)

struct handed {
    _Atomic uint64_t key;     /* 0: free, 1: being written */
    _Atomic uint64_t request; /* 0: the thread that handed it over works for no request */
    _Atomic uint64_t time;    /* when, in ns */
    /*
     * The thread's id in the recording; from WAY_SHIFT on an enum request_way, or 0 for the way of
     * the place where it was handed over.
     */
    _Atomic uint64_t by;
};

/*
 * By Java id: the task that a pool's thread runs now and that belongs to no request. If a request
 * begins in the task, the time that the task waited is part of that request.
 */
struct task {
    _Atomic uint64_t java_id; /* 0: none */
    uint64_t start, handed, by;
};

/*
 * Decides which requests are counted while counting all of them would exceed the budget. Bits 0 to
 * 5 hold n: one in 2^n requests is counted and stands for all; with 0 all are counted. The bits
 * from 6 on hold a random number. Calls of methods are drawn one by one, with a random state that
 * several threads share. For servers either all requests of a thread are counted or none, until the
 * random number changes, because what an entry point calls may be an entry point too.
 */
#define CHOICE_BITS UINT64_C(63)

enum { DRAWS = 256, DRAW_WORDS = 8 /* a cache line each */ };

_Static_assert(sizeof(struct work_slots) == 384 && sizeof(struct handed) == 32 &&
                   sizeof(struct task) == 32,
               "as the probe has it");
