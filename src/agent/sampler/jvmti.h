/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sampling for a VM whose stacks nobody can walk in a signal handler: a thread of the agent's looks round every interval, and
 * asks JVM TI for the stack of each thread that has used an interval of CPU time since it was last asked about (WALL: of each).
 * The VM answers at a safepoint or a handshake, so what is running is found where it next polls, not where it was; carriers of
 * virtual threads show their own frames. Rounds that become dear come less often, each thread's samples weighing more.
 */
#pragma once

#include "agent/thread_table.h"

struct sampler_jvmti {
    bool wall;
    uint64_t interval_ns;
    /* A thread is to be sampled; on the agent's thread. mark stays with the thread. */
    void (*sample)(struct thread *t, JNIEnv *jni, jthread thread, uint32_t weight, bool idle, _Atomic uint64_t *mark);
    /* WALL: it has not run since the last one. False: it must be sampled. */
    bool (*idle)(const struct thread *t, uint64_t mark, uint32_t weight);
};

/* 0; -ENOTSUP: the VM does not tell threads' CPU time; or another negative errno. */
int sampler_jvmti_start(const struct sampler_jvmti *o) must_check;
void sampler_jvmti_stop(void); /* waits for the thread's end; nothing when it was not started */
uint64_t sampler_jvmti_threads(void);
