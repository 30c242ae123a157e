/* SPDX-License-Identifier: Apache-2.0 */
/* The seam between sampling and stack walking: who samples does not know how a stack is walked. */
#pragma once

#include "agent/vm.h"
#include "hotspot/method.h"
#include "jfr/writer.h"
#include "unwind/snapshot.h"
#include "unwind/walk.h"

#include <stdbool.h>
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
 * Walks the calling thread's stack from a signal's context. Async-signal-safe. Answers the number of frames put, at most
 * max, the running method first; or -1 - enum walk_failure. Sets *ret_cut when the outer frames could not be reached.
 */
typedef int stack_walk_fn(void *ucontext, JNIEnv *env, struct jfr_frame *frames, uint32_t max, bool *ret_cut);

/*
 * By the VM's own structures, the first choice: native frames too when `native`. NULL with the reason in why[size]. From a
 * thread of the VM, before sampling starts.
 */
stack_walk_fn *stack_vm(JNIEnv *jni, bool native, char *why, size_t size);
/*
 * With stack_vm: the compilers describe the code between safepoints too, as by -XX:+DebugNonSafepoints, from now on. They do so
 * as well while somebody listens to CompiledMethodLoad, but each compilation is then told on a thread of its own and every
 * method in it gets a jmethodID, which costs 1.5 % of javac. False when this VM has no such flag.
 */
bool stack_vm_describe_all(void);
void stack_vm_describe_less(void); /* as before */
/*
 * Stacks of stack_vm that are copied in the handler and walked afterwards, one at a time (unwind/snapshot.h).
 */
bool stack_vm_later(void); /* whether that can be had */
bool stack_vm_look(const void *ucontext, JNIEnv *env, struct snapshot *ret);
void stack_vm_take(const struct snapshot *look, struct snapshot *ret);
int stack_vm_walk_later(const struct snapshot *of, struct jfr_frame *frames, uint32_t max, bool *ret_cut);
/* Makes the walker alone, for stack_vm_own. From a platform thread of the VM. */
int stack_vm_prepare(JNIEnv *jni) must_check;
/* Where the VM keeps what the walker looks at; NULL before it is made. */
const struct hotspot_layout *stack_vm_layout(void);
/*
 * The calling thread's Java frames from its last one on, in a JVM TI callback or native method, whole or max of them; -1 - enum
 * walk_status where something was lost. With the words that they follow from when these are asked for. For own_stack.c.
 */
int stack_vm_own(JNIEnv *jni, struct walk_frame *frames, uint32_t max, struct walk_words *ret_words);
/* As a handler begins: what a walk from there needs is on its way into the cache. */
void stack_vm_fetch(const void *ucontext);
/* Now and then, outside of handlers: learns of libraries that were loaded. */
void stack_vm_work(void);
/* Since stack_vm: walks that lost their way and resumed, faults taken and survived. */
void stack_vm_trouble(uint64_t *ret_resumed, uint64_t *ret_faults);
/* Lines for the status: how walks ended. */
void stack_vm_status(struct buf *out);

/* Whether a frame's method is an id of unwind/walk.h: of a Java method, or of other code. */
static inline bool stack_vm_is_java(uint64_t id)
{
    return (id >> 61) == 2;
}

static inline bool stack_vm_is_code(uint64_t id)
{
    return (id >> 61) == 1;
}

/* What such an id is; outside of handlers. 0; -ESTALE: the class is unloaded; -ENOMEM. */
int stack_vm_describe(uint64_t id, struct method_description *ret) must_check;
/* The name of the class at an address, which may be any number; false when none is there, or no stack is walked that way. */
bool stack_vm_class_name(uint64_t address, struct buf *ret);
int stack_vm_native_name(uint64_t id, struct buf *library, struct buf *name) must_check;

/* By AsyncGetCallTrace, which libjvm exports; NULL when this VM does not. */
stack_walk_fn *stack_agct(void);
