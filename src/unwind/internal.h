/* SPDX-License-Identifier: Apache-2.0 */
/* A walk in progress: shared by walk.c, java.c and native.c, and by tests that walk an image. */
#pragma once

#include "hotspot/code.h"
#include "hotspot/unloads.h"
#include "unwind/arch.h"
#include "unwind/modules.h"
#include "unwind/sites.h"
#include "unwind/walk.h"

enum { NATIVE_CACHE_SIZE = 4096 };

/*
 * Rules for native addresses that were found earlier. `sum` is key ^ rule, so a torn pair is never
 * valid.
 */
struct native_cache_entry {
    uint64_t sum, rule;
};

struct walker {
    struct hotspot_layout layout;
    struct code_cache code;
    struct memory memory;
    const struct arch *arch;
    const struct modules *modules; /* of an image; NULL: this process's */
    uint64_t libjvm;               /* an address within it */
    int64_t env_offset;            /* from a JavaThread to its JNIEnv */
    /* where each method entry pushes the frame pointer */
    uint64_t entry_frame[INTERPRETER_ENTRIES_MAX];
    struct native_cache_entry *native_cache;
    struct walk_site *sites; /* NULL: none are kept */
    struct known_method *known;
    struct unloads unloads;
    struct walk_chunks chunks;
    bool has_chunks;
};

/* A place where a walk can resume. */
struct anchor {
    uint64_t sp, pc, fp;
};

/*
 * What a walk assumes at first: that a site belongs to the compilation that is there now, and that
 * a word of an interpreted frame points to a Method. Claims are checked together, when there are
 * many of them or when the walk is finished, so that their cache misses overlap instead of
 * following one another.
 */
enum { CLAIMS_MAX = 32 };

struct claims {
    unsigned sites, methods;
    struct compilation of_site[CLAIMS_MAX];

    struct method_claim {
        uint64_t bcp;
        unsigned frame; /* its id contains the method, but no check yet */
    } of_method[CLAIMS_MAX];
};

/*
 * What the walk has found out about compiled code, which is kept as sites once the checks of its
 * methods are known.
 */
enum { NOTES_MAX = 16 };

struct notes {
    unsigned count;

    struct note {
        struct compilation of;
        uint64_t key;
        int32_t frame_bytes;
        uint32_t first;
        uint16_t frames;
        uint8_t state; /* enum frame_state */
    } of[NOTES_MAX];
};

struct walk {
    const struct walker *w;
    const struct modules *modules;
    struct registers r;
    uint64_t thread;     /* JavaThread, or 0 */
    uint64_t stack_low;  /* the lowest valid stack pointer */
    uint64_t stack_high; /* the stack pointer is below this */
    uint64_t mapped_low; /* mapped_bytes of the stack, from here on, are known to be mapped */
    uint64_t mapped_bytes;
    uint64_t moved; /* of a snapshot: the distance between the copy and the original */
    /* the memory with the stack and the thread as they were; NULL: the walker's */
    const struct memory *memory;
    /* the sites of return addresses on the stack up to here have been prefetched */
    uint64_t fetched;
    uint32_t epoch;           /* the value of `unloads` when the walk began */
    struct claims *claims;    /* NULL: nothing is assumed */
    struct notes *notes;      /* NULL: nothing is kept */
    struct walk_words *words; /* NULL: none are noted */
    /*
     * where the frame pointer was read; this word is noted only when a frame is found through it;
     * 0: it has been noted
     */
    uint64_t fp_at;
    uint64_t chunk_low, chunk_high; /* of a snapshot: frames in the heap; equal: none are known */
    uint64_t chunk_moved;
    struct anchor anchor;
    struct walk_frame *frames;
    unsigned count, max, flags;
    bool top;  /* registers are those of the interrupted instruction */
    bool full; /* max frames were returned and there was one more */
    bool done; /* the first frame was reached */
    bool heap; /* frames in the heap were skipped */
    bool recovered;
    /* a claim was wrong, so the walk is worthless; later: nothing below is known any more */
    bool refuted;
    bool later; /* of a snapshot: code and methods may have been replaced since (snapshot.h) */
    /*
     * the frame was left through a stub or the VM: its pc is where it polled or faulted, which need
     * not be a call
     */
    bool stopped;
    bool uncertain; /* later: classes were unloaded meanwhile */
    bool in_chunk, chunk_left;
    bool chunk_more; /* there are more frames than those of the chunk */
    /* the thread was in native code when the snapshot was taken, so nothing changed its chunk */
    bool in_native;
    /*
     * the interrupted instruction was not a method's, but the VM's or that of a stub called by it
     */
    bool in_runtime;
};

/*
 * Each of these functions adds the current frame to the result and moves to its caller. They return
 * false when that is not possible; the registers are then unchanged.
 */
bool java_step(struct walk *k);
bool native_step(struct walk *k);

/*
 * Adds the frames that a snapshot has copied from the heap (chunk.c), and restores the registers.
 * Returns whether these were all frames of the virtual thread in the heap.
 */
bool chunk_walk(struct walk *k);
/*
 * Does the work of walk_leave for a walk in a chunk. Sets k->chunk_left when the frame was the
 * chunk's last one.
 */
bool chunk_leave(struct walk *k, uint64_t pc, uint64_t sp, uint64_t fp);

/*
 * Adds a frame to the result, unless the flags exclude frames of this kind. Sets k->full when the
 * result already has max frames.
 */
void walk_emit(struct walk *k, enum walk_kind kind, uint64_t id, int32_t bci);
/* Adds a frame of a method. The id gets its check when the walk is finished. */
void walk_emit_java(struct walk *k, enum walk_kind kind, uint64_t method, int32_t bci);
/*
 * Sets the registers with which the walk continues. Returns false, and leaves the registers
 * unchanged, when these values cannot be those of a caller.
 */
bool walk_leave(struct walk *k, uint64_t pc, uint64_t sp, uint64_t fp);
/*
 * Reads a word of the thread's stack that may not be mapped. Returns false when the address is not
 * on the stack, not a multiple of 8, or cannot be read.
 */
bool walk_stack_word_guarded(const struct walk *k, uint64_t address, uint64_t *ret);

/*
 * Notes a word as it was read: deoptimization may replace a return address at any time, by one that
 * contains less information.
 */
static inline void walk_note(const struct walk *k, uint64_t address, uint64_t word)
{
    struct walk_words *w = k->words;
    if (w->n >= WALK_WORDS_MAX) {
        w->n = WALK_WORDS_MAX + 1;
        return;
    }
    w->at[w->n] = address;
    w->word[w->n++] = word;
}

/* Notes that the frames depend on a compilation. */
static inline void walk_note_code(const struct walk *k, const struct compilation *of)
{
    struct walk_words *w = k->words;
    if (w->codes < WALK_CODES_MAX)
        w->code[w->codes++] = *of;
    else
        w->n = WALK_WORDS_MAX + 1;
}

/* Notes that the frames depend on the method of an interpreted frame, given its id. */
static inline void walk_note_method(const struct walk *k, uint64_t id)
{
    struct walk_words *w = k->words;
    if (w->methods < WALK_METHODS_MAX)
        w->method[w->methods++] = id;
    else
        w->n = WALK_WORDS_MAX + 1;
}

/*
 * Notes the word from which the frame pointer was read, because the next frame is found through it.
 * Until then the word need not be noted: in compiled code the register may hold anything else.
 */
static inline void walk_by_fp(struct walk *k)
{
    if (unlikely(k->words && k->fp_at))
        walk_note(k, k->fp_at, k->r.fp);
    k->fp_at = 0;
}

/*
 * Read the word at an address of the thread's stack; walk_stack_word also notes the word in
 * k->words. They return false when it cannot be read.
 */
static inline bool walk_stack_word_unnoted(const struct walk *k, uint64_t address, uint64_t *ret)
{
    if (unlikely(address - k->mapped_low >= k->mapped_bytes || address & 7))
        return walk_stack_word_guarded(k, address, ret);
    *ret = *(const uint64_t *)(uintptr_t)(address + k->moved);
    return true;
}

static inline bool walk_stack_word(const struct walk *k, uint64_t address, uint64_t *ret)
{
    if (!walk_stack_word_unnoted(k, address, ret))
        return false;
    if (unlikely(k->words != NULL))
        walk_note(k, address, *ret);
    return true;
}

/* Returns the memory with the stack and the thread. */
static inline const struct memory *walk_memory(const struct walk *k)
{
    return k->memory ? k->memory : &k->w->memory;
}

/*
 * Returns the key for an interrupted instruction, which must differ from the key of the same
 * address as a return address. No address of a process has the top bit set.
 */
static inline uint64_t walk_top_key(uint64_t pc)
{
    return pc | UINT64_C(1) << 63;
}

/* Returns whether pc can be a return address in generated code or in a library. */
bool walk_is_code(const struct walk *k, uint64_t pc);
/*
 * Returns whether pc can be a return address in generated code: it follows a call, or it is in the
 * interpreter, which jumps.
 */
bool walk_is_java_return(const struct walker *w, uint64_t pc);
/*
 * Reads the JavaFrameAnchor at an address. Returns false when it contains no frame or cannot be
 * read.
 */
bool walk_read_anchor(const struct walk *k, uint64_t address, struct anchor *ret);
/*
 * claim_site notes the claim that a compilation is still at its place. claim_method adds the frame
 * of an interpreted method and notes the claim that this is a Method with the bytecode at bcp.
 * These claims are checked later, at the latest when the list is full; claims_settle checks all of
 * them. All three return false when a check has failed.
 */
bool claim_site(struct walk *k, const struct compilation *of);
bool claim_method(struct walk *k, uint64_t method, uint64_t bcp);
bool claims_settle(struct walk *k);
/*
 * Stores what is known about a method on the stack, reading it from the VM if need be. Returns
 * false when nothing is known or it cannot be trusted.
 */
bool walk_method(struct walk *k, uint64_t method, struct known_method *ret);
/* Adds the checks to ids of Java frames that have none yet, and keeps what was noted as sites. */
void walk_finish(struct walk *k);
/*
 * Runs a walk that has been set up, and stores how it ended. When a claim turns out to be wrong,
 * repeats the walk without claims.
 */
void walk_run(struct walk *k, struct walk_end *ret_end);
