/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Deadlocks in a timeline: cycles of threads each of which waits for a lock that the next one owns.
 */
#pragma once

#include "base/vec.h"
#include "timeline/timeline.h"

struct deadlock {
    uint64_t formed_ns; /* when the last of its threads began to wait */
    /*
     * one TL_DEADLOCK node for each thread of the cycle; its context has the lock, the stack and
     * the owner, which is the next thread
     */
    VEC(uint32_t) waits;
};

struct deadlocks {
    VEC(struct deadlock) list;
};

/* Finds the deadlocks that exist at the end of the recording. Returns 0 or -ENOMEM. */
int deadlocks_find(const struct timeline *t, struct deadlocks *ret) must_check;
void deadlocks_release(struct deadlocks *d);
/*
 * Returns how many threads wait for a lock of java.util.concurrent when the recording ends and are
 * in no deadlock that was found.
 */
uint64_t deadlocks_waiting_for_locks(const struct timeline *t);
