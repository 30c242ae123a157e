/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Corrects what HotSpot's sampler of allocations (JDK 11 and later) gets wrong.
 *
 * It draws the bytes that a thread allocates until its next sample from a generator that starts
 * again with the address of each new thread. Threads that one after the other have the same memory
 * therefore have the same distance to their first sample: of thousands of short threads either all
 * are sampled or none. The distances are drawn here instead, and stored where the VM keeps them.
 *
 * Before JDK 25 a collection takes a thread's allocation buffer away, and the sampler counts the
 * unused rest of it as allocated. The first object of the next buffer is therefore sampled more
 * often than its size says, and must be weighted by its size and that rest together.
 */
#pragma once

#include "agent/vm/thread_table.h"

/*
 * Finds the offsets of the sampler's fields in the VM's threads. If it does not find them (VMs
 * other than HotSpot, JDKs before 11, incomplete tables, -Xcheck:jni), the functions below do
 * nothing. Requires the session's lock.
 */
void vm_sampler_find(JNIEnv *jni);

/*
 * Draws the first distance of a thread that has started again, with the interval `now`; the VM has
 * drawn it with `now` or `before`. On that thread.
 */
void vm_sampler_thread(const struct thread *t, JNIEnv *jni, uint64_t now, uint64_t before);

/* Handles the end of a thread. Called on that thread. */
void vm_sampler_thread_ended(const struct thread *t, JNIEnv *jni);

/*
 * Draws the distance to the next sample again, which the VM has drawn when it took a sample. On the
 * thread that allocates, while SampledObjectAlloc is handled.
 */
void vm_sampler_next(JNIEnv *jni, uint64_t interval);

/*
 * Returns the bytes that the sampler counted immediately before an object of `size` bytes that was
 * just sampled, although they were not allocated. Must be called before the other functions when
 * SampledObjectAlloc is handled, on the thread that allocates.
 */
uint64_t vm_sampler_rest(const struct thread *t, JNIEnv *jni, uint64_t size);

/*
 * Handles GarbageCollectionStart, at which all threads stand still. Must be enabled while samples
 * are taken.
 */
void JNICALL vm_sampler_collection(jvmtiEnv *ti);

/*
 * Counts what the threads of the program allocate from now on, by the VM's own counters. Returns
 * false when they are not where this version of the VM should have them. With the session's lock
 * held.
 */
bool vm_sampler_count(void);
/*
 * Sets *ret to the bytes that these threads have allocated since then. What a thread allocates
 * during the call may be missing or, up to one buffer of it, be counted twice. Returns false when
 * the counters are not known. Any thread.
 */
bool vm_sampler_counted(uint64_t *ret);
