/* SPDX-License-Identifier: Apache-2.0 */
/* Traced calls that have begun and not ended, by thread. For one thread at a time. */
#pragma once

#include "agent/capture/trace/ring.h"
#include "base/map.h"

/*
 * A call that has begun. Entries of a thread's list that are not in use keep the memory of their
 * record for the next call.
 */
struct open_call {
    struct trace_record *entry;
    uint32_t room; /* of entry */
};

/* A thread's traced calls that have begun and not ended, the outermost first. */
struct open_calls {
    struct open_call *calls;
    uint32_t n, cap;
};

/* All threads; zeroed is empty. */
struct open_threads {
    struct map threads; /* java thread id -> struct open_calls * */
    uint64_t n_open;    /* calls */
};

/* The calls of a thread; NULL: none of it was ever open. */
struct open_calls *open_calls_of(const struct open_threads *t, int64_t thread);
/*
 * Copies the record of a call that has begun to its place in the order of time: what a virtual
 * thread has begun on another carrier may be read later than what it began after that. -ENOMEM,
 * also when too many are open.
 */
int open_calls_add(struct open_threads *t, const struct trace_record *r) must_check;
/* Takes call `at` out of a thread's list; its record stays until the next call is added. */
void open_calls_remove(struct open_threads *t, struct open_calls *o, uint32_t at);
/* Forgets threads without an open call when they are many. */
void open_calls_forget_idle(struct open_threads *t);
void open_calls_release(struct open_threads *t);
