/* SPDX-License-Identifier: Apache-2.0 */
/* The part of exact counts that the probes call (exact_probes.c), for the capture (exact.c). */
#pragma once

#include "agent/vm/thread_table.h"
#include "agent/vm/vm.h"

struct alloc_exact {
    jclass probe;           /* java/lang/JvmscopeSites */
    int64_t eetop;          /* offset of Thread.eetop */
    intptr_t env_offset;    /* offset of the JNIEnv in its JavaThread */
    uint64_t stacks, by_vm; /* stacks that were sampled, objects that the VM reported */
    bool on;
};

extern struct alloc_exact alloc_exact; /* protected by sites_lock() */

/*
 * Finds the probe class's tables and creates what they need, once; like the probe class, they are
 * never freed. Returns 0, or -EPROTO when the class is not ours.
 */
int alloc_exact_learn_tables(JNIEnv *jni);

/* Makes sure that there are counters for what cannot be counted. Under sites_lock(). */
int alloc_exact_reserve(void) must_check;

extern const struct thread_listener alloc_exact_threads;
extern const struct vm_callbacks alloc_exact_events;
