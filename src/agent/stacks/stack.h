/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The interface between sampling and stack walking. The sampler does not know how a stack is
 * walked.
 */
#pragma once

#include "agent/vm/vm.h"
#include "hotspot/method.h"
#include "jfr/writer.h"
#include "unwind/known.h"
#include "unwind/snapshot.h"
#include "unwind/walk.h"

#include <stdbool.h>
#include <stdint.h>

/* Why there is no stack. Each reason is counted and shown by its name. */
enum walk_failure {
    WALK_NOT_JAVA,     /* the thread runs no Java code */
    WALK_NO_METHODS,   /* the walker is not ready (class load events are off) */
    WALK_GC,           /* a garbage collection is running */
    WALK_UNKNOWN_VM,   /* in the VM or native code, without a last Java frame */
    WALK_BROKEN_VM,    /* likewise, and the frames do not lead to Java code */
    WALK_UNKNOWN_JAVA, /* in Java code at an instruction without a frame (prologue, stub) */
    WALK_BROKEN_JAVA,  /* in Java code, and the chain of frames breaks */
    WALK_STATE,        /* the thread's state does not allow a walk */
    WALK_EXITING,      /* the thread is exiting */
    WALK_DEOPT,        /* frames are being deoptimized */
    WALK_SAFEPOINT,    /* the VM is at a safepoint */
    WALK_UNSIGNALLED,  /* the thread ended before the kernel signalled its first interval */
    WALK_OTHER,
    WALK_FAILURES
};

extern const char *const walk_failure_names[WALK_FAILURES];

/*
 * Walks the calling thread's stack from a signal's context. Async-signal-safe. Returns the number
 * of frames stored, at most max and innermost first, or -1 - enum walk_failure. Sets *ret_cut when
 * the outer frames could not be reached.
 */
typedef int stack_walk_fn(void *ucontext, JNIEnv *env, struct jfr_frame *frames, uint32_t max,
                          bool *ret_cut);

/*
 * Returns the walker that reads the VM's own structures, which is the preferred one; with `native`
 * it also stores native frames. Returns NULL with the reason in why[size]. Must be called from a
 * thread of the VM before sampling starts.
 */
stack_walk_fn *stack_vm(JNIEnv *jni, bool native, char *why, size_t size);
/*
 * For stack_vm: makes the compilers describe code between safepoints too from now on, like
 * -XX:+DebugNonSafepoints. They also do so while CompiledMethodLoad events are enabled, but then a
 * thread reports each compilation and every method in it gets a jmethodID, which costs 1.5 % of the
 * time of javac. Returns false when this VM has no such flag.
 */
bool stack_vm_describe_all(void);
/* Restores the flag that stack_vm_describe_all has changed. */
void stack_vm_describe_less(void);
/*
 * Prepares stack_vm's walker for stacks that are copied in the handler and walked afterwards, one
 * at a time (unwind/snapshot.h). Returns whether this is available.
 */
bool stack_vm_later(void);
/*
 * These functions do what snapshot_measure, snapshot_take and snapshot_walk do, with this walker.
 * stack_vm_walk_later returns what a stack_walk_fn does.
 */
bool stack_vm_measure(const void *ucontext, JNIEnv *env, struct snapshot *ret);
void stack_vm_take(const struct snapshot *measured, struct snapshot *ret);
int stack_vm_walk_later(const struct snapshot *of, struct jfr_frame *frames, uint32_t max,
                        bool *ret_cut);
/*
 * Creates only the walker, for stack_vm_own. Must be called from a platform thread of the VM.
 * Returns 0 or a negative errno.
 */
int stack_vm_prepare(JNIEnv *jni) must_check;
/* Returns where the VM keeps what the walker reads, or NULL before the walker was created. */
const struct hotspot_layout *stack_vm_layout(void);
/*
 * Walks the calling thread's Java frames from the last one on, in a JVM TI callback or a native
 * method; at most max of them. Returns their number, or -1 - enum walk_status if any was lost. Also
 * stores the words from which they follow if ret_words is not NULL. For own_stack.c.
 */
int stack_vm_own(JNIEnv *jni, struct walk_frame *frames, uint32_t max,
                 struct walk_words *ret_words);
/*
 * For stacks that are recognized (unwind/known.h). stack_vm_start stores where the calling thread
 * left Java, and returns false if the thread runs no Java code or no walker was created;
 * stack_vm_is returns whether its stack still is *k (known_stack_is).
 */
bool stack_vm_start(JNIEnv *jni, struct walk_start *ret);
bool stack_vm_is(const struct known_stack *k, const struct walk_start *start);
/* Prefetches what a walk from this context needs. Call it at the start of a handler. */
void stack_vm_fetch(const void *ucontext);
/* Finds libraries that were loaded. Call it periodically, outside handlers. */
void stack_vm_work(void);
/*
 * Counts, since stack_vm, the walks that lost their way and resumed, and the faults that were taken
 * and survived.
 */
void stack_vm_trouble(uint64_t *ret_resumed, uint64_t *ret_faults);
/* Appends lines for the status that state how walks ended. */
void stack_vm_status(struct buf *out);

/* Returns whether a frame's method is an id of unwind/walk.h for a Java method. */
static inline bool stack_vm_is_java(uint64_t id)
{
    return (id >> 61) == 2;
}

/* Returns whether a frame's method is an id of unwind/walk.h for other code. */
static inline bool stack_vm_is_code(uint64_t id)
{
    return (id >> 61) == 1;
}

/*
 * Describes the Java method with an id of unwind/walk.h; outside handlers. Returns 0, -ESTALE when
 * the class was unloaded, or -ENOMEM.
 */
int stack_vm_describe(uint64_t id, struct method_description *ret) must_check;
/*
 * Appends the name of the class at an address, which may be any number. Returns false when no class
 * is at the address, or no walker was created.
 */
bool stack_vm_class_name(uint64_t address, struct buf *ret);
/*
 * Appends the names of the library and of the function with an id of unwind/walk.h for code that is
 * not Java; for generated code only the latter. Outside handlers. Returns 0 or -ENOMEM.
 */
int stack_vm_native_name(uint64_t id, struct buf *library, struct buf *name) must_check;

/*
 * Returns the walker that uses AsyncGetCallTrace, or NULL when libjvm does not export that
 * function.
 */
stack_walk_fn *stack_agct(void);
