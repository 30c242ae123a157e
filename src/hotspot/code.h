/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The code cache as a stack walk needs it: which piece of generated code contains an address, and
 * which methods, inlined into one another, are executing there. Everything except code_cache_init
 * is async-signal-safe. Every load is guarded, since code may be freed and patched at any time.
 */
#pragma once

#include "hotspot/layout.h"
#include "hotspot/memory.h"

enum code_kind {
    CODE_COMPILED,    /* an nmethod of C1 or C2 */
    CODE_NATIVE,      /* the wrapper that calls a native method */
    CODE_INTERPRETER, /* the template interpreter; no blob is read */
    CODE_VTABLE,      /* vtable and itable stubs: no frame */
    CODE_ADAPTER,     /* between compiled and interpreted calls: no frame */
    CODE_STUB,        /* everything else */
};

/* The piece of code that contains an address. */
struct code_blob {
    enum code_kind kind;
    uint64_t address;    /* address of the CodeBlob; 0 for the interpreter */
    uint64_t begin, end; /* its instructions */
    uint64_t name;       /* address of its name */
    /* of a complete frame, including the return address; 0 when it has none */
    int32_t frame_bytes;
    /* offset from `begin` at which the frame is complete; -1 when the VM does not say */
    int32_t frame_offset;
};

/*
 * A method entry of the interpreter: there is no frame up to `frame`, and an unfinished one up to
 * the push of the method.
 */
struct interpreter_entry {
    uint64_t begin, end;
};

enum { CODE_HEAPS_MAX = 8, INTERPRETER_ENTRIES_MAX = 128 };

struct code_cache {
    const struct hotspot_layout *layout; /* must outlive this struct */
    uint64_t low, high;                  /* reserved for code */

    struct code_heap {
        uint64_t low, high, segmap;
        uint32_t log2_segment;
    } heaps[CODE_HEAPS_MAX];

    unsigned heap_count;
    uint64_t interpreter, interpreter_end;
    struct interpreter_entry entries[INTERPRETER_ENTRIES_MAX];
    unsigned entry_count;
    uint64_t call_stub_return; /* where the stub of JavaCalls continues */
    uint64_t cont_return;      /* where enterSpecial continues; 0 when the VM does not reveal it */
};

/*
 * Finds out where a running VM keeps its code. Returns 0, or -ENOTSUP with the reason in why[size].
 */
int code_cache_init(struct code_cache *ret, const struct hotspot_layout *layout,
                    const struct memory *m, char *why, size_t size) must_check;

/* Returns whether an address lies in the memory that the VM has reserved for code. */
static inline bool code_holds(const struct code_cache *c, uint64_t pc)
{
    return pc - c->low < c->high - c->low;
}

static inline bool code_is_interpreter(const struct code_cache *c, uint64_t pc)
{
    return pc - c->interpreter < c->interpreter_end - c->interpreter;
}

/*
 * Finds the code at pc. Returns false when there is none (free memory, not in the cache, or a
 * fault).
 */
bool code_find(const struct code_cache *c, const struct memory *m, uint64_t pc,
               struct code_blob *ret);
/* Prefetches what code_find reads first. */
void code_fetch(const struct code_cache *c, uint64_t pc);
/* Returns the interpreter's method entry that contains pc, or NULL. */
const struct interpreter_entry *code_interpreter_entry(const struct code_cache *c, uint64_t pc);

/* Returns whether a stub is one of those that thaw or leave the frames of a continuation. */
bool code_is_continuation_stub(const struct memory *m, const struct code_blob *blob);

/* The methods at one address of an nmethod, innermost first. */
struct code_scopes {
    const struct code_cache *cache;
    const struct memory *memory;
    uint64_t metadata, scopes; /* addresses of the nmethod's tables */
    uint32_t next;             /* offset of the next scope; 0 at the end */
    uint64_t method;           /* of the nmethod itself */
    bool started;
};

struct code_scope {
    uint64_t method;
    int32_t bci;
    bool inlined;
};

/*
 * Begins with the methods at pc: uses the description of that very address, or of the next one that
 * has a description. Returns false on a fault or when the nmethod's tables are malformed.
 */
bool code_scopes_at(struct code_scopes *ret, const struct code_cache *c, const struct memory *m,
                    const struct code_blob *blob, uint64_t pc);
/*
 * Prefetches what code_scopes_at and the functions after it will read, as far as that is known in
 * advance.
 */
void code_fetch_scopes(const struct code_cache *c, const struct memory *m,
                       const struct code_blob *blob, uint64_t pc);
/*
 * Stores the next method. For an nmethod without descriptions that is its own method, once, with
 * bci 0. Returns false at the end, on a fault, or when the description is malformed.
 */
bool code_scopes_next(struct code_scopes *s, struct code_scope *ret);

/* Returns the compiler's level (1 to 3: C1, 4: C2), 0 on a fault. */
int code_level(const struct code_cache *c, const struct memory *m, const struct code_blob *blob);
/*
 * Returns the address at which callers and the VM enter once the receiver's class is checked;
 * `begin` on a fault.
 */
uint64_t code_entry(const struct code_cache *c, const struct memory *m,
                    const struct code_blob *blob);
/*
 * Returns the address at which a frame of the nmethod continues: pc itself, or the original address
 * that deoptimization has replaced by its handler's. sp is the stack pointer of the frame.
 */
uint64_t code_original_pc(const struct code_cache *c, const struct memory *m,
                          const struct code_blob *blob, uint64_t pc, uint64_t sp);
