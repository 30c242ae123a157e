/* SPDX-License-Identifier: Apache-2.0 */
/* The part of exact counts that the probes call (exact_probes.c), for the capture (exact.c). */
#pragma once

#include "agent/capture/alloc/alloc.h"
#include "agent/vm/thread_table.h"
#include "agent/vm/vm.h"

struct alloc_exact {
    jclass probe;           /* java/lang/JvmscopeSites */
    int64_t eetop;          /* offset of Thread.eetop */
    intptr_t env_offset;    /* offset of the JNIEnv in its JavaThread */
    uint64_t stacks, by_vm; /* how many stacks were sampled, and objects reported by the VM */
    bool on;
};

extern struct alloc_exact alloc_exact; /* protected by sites_lock() */

/* The natives of the probe class. */
#define NATIVE(type, name)       EXPORT type JNICALL Java_java_lang_JvmscopeSites_##name
#define DECLARE(type, name, ...) NATIVE(type, name)(JNIEnv *, jclass, ##__VA_ARGS__)

/*
 * Finds the probe class's tables and creates what they need, once; like the probe class, they are
 * never freed. Returns 0, or -EPROTO when the class is not ours.
 */
int alloc_exact_learn_tables(JNIEnv *jni);

/*
 * Creates the counters of threads beyond the limit, whose contents are discarded. Returns 0 or
 * -ENOMEM. Under sites_lock().
 */
int alloc_exact_reserve(void) must_check;

/*
 * Returns the number of threads with a point whose next object is to be tracked: while there is
 * one, the probe after each constructor makes a call.
 */
uint32_t alloc_exact_awaiting(void);
/*
 * Tracks an object that belongs to no point: every such object, or, once the budget is spent, a
 * selection such as the VM's own sampling would make. Requires the lock.
 */
void alloc_follow_counted(JNIEnv *jni, int64_t site, jobject o, jlong size);
/*
 * Finishes the object that the VM reported: counts it, unless a probe has counted it. p->object
 * must not be NULL. Requires the lock.
 */
void alloc_pending_finish(JNIEnv *jni, struct alloc_pending *p, bool counted);

/* Lets another thread use the block of a thread that has ended. Requires the lock. */
void alloc_block_release(JNIEnv *jni, struct alloc_block *b);
/* Makes alloc_exact_release_ended release the block of a thread that ended without the lock. */
void alloc_block_release_later(struct alloc_block *b);
/*
 * Does what threads that ended without the lock have left to do. Under sites_lock(), before all
 * counters are read.
 */
void alloc_exact_release_ended(JNIEnv *jni);

extern const struct thread_listener alloc_exact_threads;
extern const struct vm_callbacks alloc_exact_events;
