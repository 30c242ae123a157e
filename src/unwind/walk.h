/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stacks in signal context: Java by the VM's own structures (hotspot/), native code by call frame
 * information, in one walk from the interrupted instruction to the thread's start. Nothing is
 * allocated, no lock is taken, every load that might fail is guarded, no object is read but the
 * chunk that has a virtual thread's frames (walk_chunks). Where a step fails, the walk resumes at
 * the last Java frame that the VM itself has noted; where that is not possible it ends and says
 * why.
 */
#pragma once

#include "base/macro.h"

#include <stdbool.h>
#include <stdint.h>

struct buf;
struct hotspot_layout;
struct memory;
struct method_description;
struct walker;

enum walk_kind {
    WALK_INTERPRETED,
    WALK_C1,
    WALK_C2,
    WALK_INLINED,
    WALK_NATIVE_METHOD, /* a Java method implemented in native code */
    WALK_NATIVE,        /* a function of a library or of the program */
    WALK_VM,            /* a function of libjvm */
    WALK_STUB,          /* generated code that is no method */
    /* frames of a virtual thread that are in the heap and were not read (walk_chunks) */
    WALK_GAP,
    WALK_KERNEL,
    WALK_KINDS,
};

static inline bool walk_is_java(uint32_t kind)
{
    return kind <= WALK_NATIVE_METHOD;
}

/*
 * An id says what a frame is, for as long as the process lives: of a Java frame the method's
 * address and a check that distinguishes it from later methods there (hotspot/method.h), of another
 * one its program counter. Bit 63 is always clear, and ids of methods that the VM gives
 * (jmethodIDs) have bits 61 and 62 clear.
 */
#define WALK_ID_JAVA        (UINT64_C(1) << 62)
#define WALK_ID_CODE        (UINT64_C(1) << 61)
#define WALK_ID_CHECK_SHIFT 44

static inline uint64_t walk_id_of_method(uint64_t method, uint32_t check)
{
    return WALK_ID_JAVA | (uint64_t)check << WALK_ID_CHECK_SHIFT | method >> 3;
}

static inline uint64_t walk_id_method(uint64_t id)
{
    return (id & ((UINT64_C(1) << WALK_ID_CHECK_SHIFT) - 1)) << 3;
}

static inline uint32_t walk_id_check(uint64_t id)
{
    return (uint32_t)((id & (WALK_ID_CODE | (WALK_ID_CODE - 1))) >> WALK_ID_CHECK_SHIFT);
}

static inline uint64_t walk_id_pc(uint64_t id)
{
    return id & (WALK_ID_CODE - 1);
}

/* Kernel addresses are the upper half's: three of their leading ones make room for the mark. */
static inline uint64_t walk_id_of_kernel(uint64_t pc)
{
    return WALK_ID_CODE | (pc & (WALK_ID_CODE - 1));
}

/* The kernel's address of an id; 0 when it is none. */
static inline uint64_t walk_id_kernel(uint64_t id)
{
    return walk_id_pc(id) & WALK_ID_CODE >> 1 ? id | UINT64_C(7) << 61 : 0;
}

struct walk_frame {
    uint64_t id;
    /* Java: bytecode index, -1 when not known, -3 for a native method; otherwise 0 */
    int32_t bci;
    uint32_t kind; /* enum walk_kind */
};

/* How a walk ended. All but COMPLETE and DEPTH lost something. */
enum walk_status {
    WALK_COMPLETE, /* the thread's first frame was reached */
    WALK_DEPTH,    /* as many frames as were asked for */
    WALK_HEAP,     /* frames of a virtual thread lie in the heap; what is below them was walked */
    WALK_BROKEN,   /* a step failed and there was nothing to resume from */
    WALK_FAULT,    /* the same, by a load that faulted */
    WALK_STATUSES,
};

struct walk_end {
    uint8_t status;  /* enum walk_status */
    bool recovered;  /* a step failed and the walk resumed; frames may be missing there */
    uint64_t pc, sp; /* where it ended, for reports */
};

enum {
    WALK_WITH_NATIVE = 1, /* native, VM and stub frames too; without it only Java's are answered */
    /* it ends where frames are in the heap; what is below them is not wanted */
    WALK_TO_HEAP = 2,
};

/*
 * Prepares walks of the VM whose libjvm was loaded, once, from a thread of it and not in a signal
 * handler: env is that thread's JNIEnv, java_thread the VM's structure of it (the field `eetop` of
 * its java.lang.Thread). Installs the fault guard. 0; -ENOTSUP with the reason in why[size]: use
 * AsyncGetCallTrace then and say so.
 */
int walker_new(struct walker **ret, void *libjvm, const void *env, uint64_t java_thread, char *why,
               size_t size) must_check;
/* Not while a walk may run. */
void walker_free(struct walker *w);

/*
 * Where frames of a mounted virtual thread are that lie in the heap still: in the continuation's
 * last chunk. Offsets in bytes; references in objects are shifted numbers of 32 bits from oop_base
 * on when `narrow`.
 */
struct walk_chunks {
    uint64_t oop_base;
    int32_t oop_shift;
    bool narrow;
    int32_t cont; /* in the continuation's entry on the stack */
    /* of Continuation; of StackChunk, `stack` where its frames are */
    int32_t tail, parent, sp, bottom, stack;
};

/*
 * From now on snapshots have the frames in chunks; only with a collector that moves objects at
 * safepoints alone.
 */
void walker_chunks(struct walker *w, const struct walk_chunks *chunks);

/*
 * Walks the stack of this thread. context is the signal's ucontext_t; NULL starts at the thread's
 * last Java frame, for callers in a JVM TI callback or native method. env is this thread's JNIEnv,
 * NULL in a thread that is none of Java's. At most max frames, the innermost first; returns how
 * many. Async-signal-safe.
 */
unsigned walk_stack(const struct walker *w, const void *context, const void *env, unsigned flags,
                    struct walk_frame *frames, unsigned max, struct walk_end *ret_end);

/*
 * Where the words of a stack are that its frames follow from, from the last Java frame on: as long
 * as that one and all of these are the same, and the code that they lead to, the frames are. More
 * than fit: n is WALK_WORDS_MAX + 1.
 */
enum { WALK_WORDS_MAX = 200 };

struct walk_words {
    uint32_t n;
    uint64_t at[WALK_WORDS_MAX];
};

/* walk_stack from the thread's last Java frame; with words when they are asked for. */
unsigned walk_own_stack(const struct walker *w, const void *env, unsigned flags,
                        struct walk_frame *frames, unsigned max, struct walk_words *ret_words,
                        struct walk_end *ret_end);

/*
 * What a walk from there begins with is brought into the cache; async-signal-safe, some time before
 * walk_stack.
 */
void walker_fetch(const struct walker *w, const void *context);
/* Loads the table of libraries again when it changed; outside of handlers, now and then. */
void walker_refresh(struct walker *w);

/*
 * What a Java frame's method is; outside of handlers. 0; -ESTALE: its class is unloaded; -ENOMEM.
 * See hotspot/method.h.
 */
int walker_describe(const struct walker *w, uint64_t id, struct method_description *ret) must_check;
/* The name of the class at an address, which may be any number: hotspot/method.h. */
bool walker_class_name(const struct walker *w, uint64_t address, struct buf *ret);
/* The layout in use. */
const struct hotspot_layout *walker_layout(const struct walker *w);
/* The name of the piece of generated code at pc into ret[size], "" when there is none. */
void walker_stub_name(const struct walker *w, uint64_t pc, char *ret, size_t size);
/* Faults that walks have taken and survived. */
uint64_t walker_faults(void);
