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
 * Rules of native addresses found before. `sum` is key ^ rule, so that a torn pair never looks
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
    struct site *sites; /* NULL: none are kept */
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
 * What a walk takes for granted at first: that a site is of the compilation that is there, that a
 * word of an interpreted frame is a Method. They are looked at together, when there are many or the
 * walk is done: the cache misses overlap instead of following one another.
 */
enum { CLAIMS_MAX = 32 };

struct claims {
    unsigned sites, methods;
    struct compilation of_site[CLAIMS_MAX];

    struct method_claim {
        uint64_t bcp;
        unsigned frame; /* its id holds the method, still without a check */
    } of_method[CLAIMS_MAX];
};

/*
 * What the walk has found out of compiled code, to be kept as sites when the checks of its methods
 * are known.
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
    uint64_t stack_low;  /* the stack pointer may not go below */
    uint64_t stack_high; /* nor reach this */
    uint64_t mapped_low; /* from here on so many bytes of the stack are known to be mapped */
    uint64_t mapped_bytes;
    uint64_t moved; /* how far from there they lie: of a snapshot */
    /* that has the stack, and the thread as it was; NULL: the walker's */
    const struct memory *memory;
    /* up to here on the stack the sites of return addresses are on their way into the cache */
    uint64_t fetched;
    uint32_t epoch;           /* of `unloads` when the walk began */
    struct claims *claims;    /* NULL: nothing is taken for granted */
    struct notes *notes;      /* NULL: nothing is kept */
    struct walk_words *words; /* NULL: none are noted */
    /*
     * where the frame pointer was read, which is not noted until a frame is found by it; 0: it is
     */
    uint64_t fp_at;
    uint64_t chunk_low, chunk_high; /* frames in the heap, of a snapshot; equal: none are known */
    uint64_t chunk_moved;
    struct anchor anchor;
    struct walk_frame *frames;
    unsigned count, max, flags;
    bool top;  /* registers are those of the interrupted instruction */
    bool full; /* max frames were answered and one more was there */
    bool done; /* the first frame was reached */
    bool heap; /* frames in the heap were passed over */
    bool recovered;
    /*
     * a claim did not hold: the walk is worth nothing; later: what is below is not known any more
     */
    bool refuted;
    bool later; /* of a snapshot: code and methods may be others by now (snapshot.h) */
    /*
     * the frame was left by a stub or by the VM: it stands where it polled or faulted, perhaps not
     * at a call
     */
    bool stopped;
    bool doubt; /* later: classes were unloaded meanwhile */
    bool in_chunk, chunk_left;
    bool chunk_more; /* there are more than those of the chunk */
    /* the thread was in native code when the snapshot was taken: nobody changed its chunk */
    bool in_native;
    /*
     * the interrupted instruction was none of a method's, but of the VM or of a stub that calls it
     */
    bool in_runtime;
};

/*
 * Steps: emit what the registers stand at and leave it. False when that is not possible; registers
 * are then as before.
 */
bool java_step(struct walk *k);
bool native_step(struct walk *k);

/* In a chunk, chunk.c: all of its frames, true when they were; walk_leave there. */
bool chunk_walk(struct walk *k);
bool chunk_leave(struct walk *k, uint64_t pc, uint64_t sp, uint64_t fp);

void walk_emit(struct walk *k, enum walk_kind kind, uint64_t id, int32_t bci);
/* Its check follows when the walk is done. */
void walk_emit_java(struct walk *k, enum walk_kind kind, uint64_t method, int32_t bci);
/* Sets what the walk continues with; false when it cannot be a caller of what is left. */
bool walk_leave(struct walk *k, uint64_t pc, uint64_t sp, uint64_t fp);
bool walk_stack_word_guarded(const struct walk *k, uint64_t address, uint64_t *ret);

static inline void walk_note(const struct walk *k, uint64_t address)
{
    struct walk_words *w = k->words;
    if (w->n < WALK_WORDS_MAX)
        w->at[w->n++] = address;
    else
        w->n = WALK_WORDS_MAX + 1;
}

/*
 * A frame is found by the frame pointer that another one has kept, which may be anything else in
 * compiled code.
 */
static inline void walk_by_fp(struct walk *k)
{
    if (unlikely(k->words && k->fp_at))
        walk_note(k, k->fp_at);
    k->fp_at = 0;
}

/* The word at an address of the thread's stack. */
static inline bool walk_stack_word_unnoted(const struct walk *k, uint64_t address, uint64_t *ret)
{
    if (unlikely(address - k->mapped_low >= k->mapped_bytes || address & 7))
        return walk_stack_word_guarded(k, address, ret);
    *ret = *(const uint64_t *)(uintptr_t)(address + k->moved);
    return true;
}

static inline bool walk_stack_word(const struct walk *k, uint64_t address, uint64_t *ret)
{
    if (unlikely(k->words != NULL))
        walk_note(k, address);
    return walk_stack_word_unnoted(k, address, ret);
}

static inline const struct memory *walk_memory(const struct walk *k)
{
    return k->memory ? k->memory : &k->w->memory;
}

/*
 * The key of what is known of an interrupted instruction, apart from the same address as one that
 * is returned to. No address of a process has the top bit.
 */
static inline uint64_t walk_top_key(uint64_t pc)
{
    return pc | UINT64_C(1) << 63;
}

/* True when pc can be a return address: in generated code or in a library. */
bool walk_is_code(const struct walk *k, uint64_t pc);
/*
 * True when pc can be a return address into generated code: it follows a call, or is the
 * interpreter's, which jumps.
 */
bool walk_is_java_return(const struct walker *w, uint64_t pc);
/* Reads a JavaFrameAnchor; false when it notes no frame. */
bool walk_read_anchor(const struct walk *k, uint64_t address, struct anchor *ret);
/* Claims; false when this or an earlier one was looked at and does not hold. */
bool claim_site(struct walk *k, const struct compilation *of);
bool claim_method(struct walk *k, uint64_t method, uint64_t bcp);
bool claims_settle(struct walk *k);
/* What is known of a method of the stack; false when nothing is, or may not be believed. */
bool walk_method(struct walk *k, uint64_t method, struct known_method *ret);
/*
 * Puts the checks into the ids of Java frames that have none yet, and keeps as sites what was
 * noted.
 */
void walk_finish(struct walk *k);
/* Runs a walk that is set up. */
void walk_run(struct walk *k, struct walk_end *ret_end);
