/* SPDX-License-Identifier: Apache-2.0 */
/* The seam between sampling and stack walking: who samples does not know how a stack is walked. */
#pragma once

#include "agent/vm.h"
#include "jfr/writer.h"

#include <stdint.h>

/* Why there is no stack. Each is counted and shown by its name. */
enum walk_failure {
    WALK_NOT_JAVA,     /* the thread runs no Java code */
    WALK_NO_METHODS,   /* the walker is not ready (class load events are off) */
    WALK_GC,           /* the heap is being collected */
    WALK_UNKNOWN_VM,   /* in the VM or native code, without a last Java frame */
    WALK_BROKEN_VM,    /* the same, and the frames do not lead to Java */
    WALK_UNKNOWN_JAVA, /* in Java code at an instruction without a frame (prologue, stub) */
    WALK_BROKEN_JAVA,  /* in Java code, and the frames do not lead on */
    WALK_STATE,        /* the thread's state is none that can be walked */
    WALK_EXITING,      /* the thread ends */
    WALK_DEOPT,        /* frames are being deoptimised */
    WALK_SAFEPOINT,    /* the VM is at a safepoint */
    WALK_OTHER,
    WALK_FAILURES
};

extern const char *const walk_failure_names[WALK_FAILURES];

/*
 * Walks the calling thread's Java stack from a signal's context. Async-signal-safe. Answers the number of frames put, at most
 * max, the running method first; or -1 - enum walk_failure.
 */
typedef int stack_walk_fn(void *ucontext, JNIEnv *env, struct jfr_frame *frames, uint32_t max);

/* By AsyncGetCallTrace, which libjvm exports; NULL when this VM does not. */
stack_walk_fn *stack_agct(void);
