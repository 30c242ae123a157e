/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Samples a VM whose stacks cannot be walked in a signal handler. In every interval a thread of the
 * agent asks JVM TI for the stack of each thread that has used an interval of CPU time since its
 * last sample (WALL: of every thread). The VM answers at a safepoint or a handshake, so the stack
 * is that of the next poll and not of the moment. Carriers of virtual threads show their own
 * frames. When rounds become expensive they are made less often and each sample weighs more.
 */
#pragma once

#include "agent/vm/thread_table.h"

struct sampler_jvmti {
    bool wall;
    uint64_t interval_ns;
    /*
     * Takes a sample of a thread, on the agent's thread. *mark is a word that stays with the
     * thread.
     */
    void (*sample)(struct thread *t, JNIEnv *jni, jthread thread, uint32_t weight, bool idle,
                   _Atomic uint64_t *mark);
    /*
     * WALL: the thread has not run since its last sample. Returns false when it must be sampled
     * nevertheless.
     */
    bool (*idle)(const struct thread *t, uint64_t mark, uint32_t weight);
};

/*
 * Starts the thread that samples. Returns 0, -ENOTSUP when the VM does not provide the CPU time of
 * threads, or another negative errno. sampler_jvmti_release is needed in any case.
 */
int sampler_jvmti_start(const struct sampler_jvmti *o) must_check;
/* Makes the thread end and waits for it; does nothing when it was not started. */
void sampler_jvmti_stop(void);
/* Frees the words that samples refer to as *mark. Call it when no sample is left. */
void sampler_jvmti_release(void);
/* Returns how many threads are sampled in this way. */
uint64_t sampler_jvmti_threads(void);
