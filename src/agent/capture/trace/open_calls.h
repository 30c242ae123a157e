/* SPDX-License-Identifier: Apache-2.0 */
/* Traced calls in progress, by thread. Not thread-safe. */
#pragma once

#include "agent/capture/trace/ring.h"
#include "base/map.h"

/*
 * A call in progress. Unused entries of a list keep the memory of their record for the next call.
 */
struct open_call {
    struct trace_record *entry;
    uint32_t room; /* of entry */
    uint64_t read_before_ns;
    bool of_agent; /* the VM or a class loader looks for a class or function of the agent */
};

/* A thread's traced calls in progress, outermost first. */
struct open_calls {
    struct open_call *calls;
    uint32_t n, cap;
    uint32_t n_of_agent;
    uint64_t read_ns; /* how long the thread read values in all; only differences matter */
};

/* All threads; zeroed is empty. */
struct open_threads {
    struct map threads; /* java thread id -> struct open_calls * */
    uint64_t n_open;    /* number of calls */
};

/* Returns the calls of a thread; NULL: it never had any. */
struct open_calls *open_calls_of(const struct open_threads *t, int64_t thread);
/*
 * Adds a copy of the record of a call that began within all other calls of its thread. Returns 0,
 * or -ENOMEM, also when too many are open.
 */
int open_calls_add(struct open_threads *t, const struct trace_record *r, bool of_agent) must_check;
/* Adds the time in which the values of a record, other than that of a new call, were read. */
void open_calls_read(const struct open_threads *t, const struct trace_record *r);
/*
 * Returns how long values were read within call `at` so far, those of its own arguments included,
 * in ns.
 */
uint64_t open_calls_reading(const struct open_calls *o, uint32_t at);
/* Returns whether call `at`, or one that encloses it, belongs to the agent (of_agent). */
bool open_calls_within_agent(const struct open_calls *o, uint32_t at);
/* Removes call `at` from a thread's list; its record remains valid until the next call is added. */
void open_calls_remove(struct open_threads *t, struct open_calls *o, uint32_t at);
/* Removes threads without open calls when there are many. */
void open_calls_forget_idle(struct open_threads *t);
void open_calls_release(struct open_threads *t);
