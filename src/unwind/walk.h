/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stack walks in signal context. Java frames are found through the VM's own structures (hotspot/)
 * and native frames through call frame information, in one walk from the interrupted instruction to
 * the thread's start. Nothing is allocated, no lock is taken, every load that might fail is
 * guarded, and no object is read except the chunk with a virtual thread's frames (walk_chunks).
 * When a step fails, the walk resumes at the last Java frame that the VM itself has saved; if that
 * is not possible, it ends and returns the reason.
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
    WALK_STUB,          /* generated code that does not belong to a method */
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
 * An id identifies a frame for as long as the process lives. For a Java frame it consists of the
 * method's address and a check that distinguishes it from later methods at that address
 * (hotspot/method.h); for other frames it is the program counter. Bit 63 is always clear, and ids
 * of methods that the VM gives (jmethodIDs) have bits 61 and 62 clear.
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

/*
 * Returns the id of a frame in the kernel. Kernel addresses are in the upper half of the address
 * space: three of their leading ones are free for the mark.
 */
static inline uint64_t walk_id_of_kernel(uint64_t pc)
{
    return WALK_ID_CODE | (pc & (WALK_ID_CODE - 1));
}

/* Returns the kernel address in an id; 0 when the id is something else. */
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

/* How a walk ended. All but COMPLETE and DEPTH have lost something. */
enum walk_status {
    WALK_COMPLETE, /* the thread's first frame was reached */
    WALK_DEPTH,    /* as many frames as were requested */
    /* frames of a virtual thread are in the heap; the frames below them were walked */
    WALK_HEAP,
    WALK_BROKEN, /* a step failed and there was no frame at which to resume */
    WALK_FAULT,  /* a load faulted and there was no frame at which to resume */
    WALK_STATUSES,
};

struct walk_end {
    uint8_t status;  /* enum walk_status */
    bool recovered;  /* a step failed and the walk resumed; frames may be missing there */
    uint64_t pc, sp; /* where it ended, for reports */
};

enum {
    WALK_WITH_NATIVE = 1, /* return native, VM and stub frames too; otherwise only Java frames */
    /* stop where frames are in the heap; the frames below them are not wanted */
    WALK_TO_HEAP = 2,
};

/*
 * Prepares walks of the VM whose libjvm was loaded. Call it once, from a thread of that VM and not
 * in a signal handler: env is that thread's JNIEnv, java_thread the VM's structure for it (the
 * field `eetop` of its java.lang.Thread). Installs the fault guard. Returns 0, or -ENOTSUP or
 * -ENOMEM with the reason in why[size]; the caller should then use AsyncGetCallTrace and report
 * that.
 */
int walker_new(struct walker **ret, void *libjvm, const void *env, uint64_t java_thread, char *why,
               size_t size) must_check;

/*
 * Where the frames of a mounted virtual thread that have not been thawed are stored: in the last
 * chunk of its continuation. Offsets are in bytes; when `narrow`, references in objects are shifted
 * 32-bit numbers relative to oop_base.
 */
struct walk_chunks {
    uint64_t oop_base;
    int32_t oop_shift;
    bool narrow;
    int32_t cont; /* in the continuation's entry on the stack */
    /* of Continuation, and of StackChunk, whose frames begin at `stack` */
    int32_t tail, parent, sp, bottom, stack;
};

/*
 * Makes snapshots contain the frames in chunks from now on. Call it only if the collector moves
 * objects at safepoints alone.
 */
void walker_chunks(struct walker *w, const struct walk_chunks *chunks);

/*
 * Walks the stack of the calling thread. context is the signal's ucontext_t; NULL starts at the
 * thread's last Java frame, for callers in a JVM TI callback or native method. env is this thread's
 * JNIEnv, NULL in a thread that is not a Java thread. flags: WALK_WITH_NATIVE, WALK_TO_HEAP.
 * Returns the number of frames, at most max, innermost first. Async-signal-safe.
 */
unsigned walk_stack(const struct walker *w, const void *context, const void *env, unsigned flags,
                    struct walk_frame *frames, unsigned max, struct walk_end *ret_end);

/* A compilation of a method; its place may be used for another one later. */
struct compilation {
    uint64_t blob, method;
    uint32_t id; /* which the VM never reuses */
};

/* Where a thread left Java code, as its JavaThread says, and the end of its stack. */
struct walk_start {
    uint64_t sp, pc, fp, base;
};

/*
 * The data that determine the frames of a stack, from the last Java frame on: where the thread left
 * Java, the words that a walk has read on the stack, and the code to which these point:
 * compilations, and the methods of interpreted frames, by the ids of their frames. As long as all
 * of it is the same, so are the frames (unwind/known.h). When there is too much of it, n is
 * WALK_WORDS_MAX + 1.
 */
enum { WALK_WORDS_MAX = 200, WALK_CODES_MAX = 80, WALK_METHODS_MAX = 60 };

struct walk_words {
    struct walk_start start;
    uint32_t n, codes, methods;
    uint64_t at[WALK_WORDS_MAX], word[WALK_WORDS_MAX];
    struct compilation code[WALK_CODES_MAX];
    uint64_t method[WALK_METHODS_MAX];
};

/*
 * Walks the calling thread's stack like walk_stack, from the last Java frame on. Also stores the
 * words of the stack in *ret_words, unless that is NULL.
 */
unsigned walk_own_stack(const struct walker *w, const void *env, unsigned flags,
                        struct walk_frame *frames, unsigned max, struct walk_words *ret_words,
                        struct walk_end *ret_end);

/*
 * Prefetches the data that walk_stack reads first when it is called with this context, a
 * ucontext_t. Call it some time before walk_stack. Async-signal-safe.
 */
void walker_fetch(const struct walker *w, const void *context);
/*
 * Reads the table of libraries again when it has changed. Call it now and then, outside of signal
 * handlers.
 */
void walker_refresh(struct walker *w);

/*
 * Describes the method of a Java frame, given the frame's id. Returns 0; -ESTALE when the method no
 * longer exists; -ENOMEM. Must not be called in a signal handler. See hotspot/method.h.
 */
int walker_describe(const struct walker *w, uint64_t id, struct method_description *ret) must_check;
/*
 * Appends the name of the class at an address, which may be any number. Returns false when nothing
 * at the address looks like a class. See hotspot/method.h.
 */
bool walker_class_name(const struct walker *w, uint64_t address, struct buf *ret);
/* Returns the layout of the VM's structures that the walker uses. */
const struct hotspot_layout *walker_layout(const struct walker *w);
/* Writes the name of the piece of generated code at pc into ret[size], "" when pc is in none. */
void walker_stub_name(const struct walker *w, uint64_t pc, char *ret, size_t size);
/* Returns the number of faults that walks have survived. */
uint64_t walker_faults(void);
