/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What earlier walks have found at return addresses and interrupted instructions in compiled code:
 * the size of the frame and the methods that are inlined there. The cost of a walk is cache misses,
 * not instructions. Determining this again touches a dozen cache lines for each frame, one after
 * the other; a site takes one or two, and the sites of the next part of the stack are prefetched
 * together. A site is valid while the same compilation is at the same place, identified by its
 * method and compile id, which the VM never reuses. Code to which a frame returns is not freed, and
 * classes whose methods are inlined in it are not unloaded. There is no lock: a site that is being
 * written counts as absent.
 */
#pragma once

#include "hotspot/code.h"
#include "hotspot/method.h"
#include "unwind/walk.h"

#include <stdatomic.h>

enum { SITE_METHODS_MAX = 7, SITES_LOG2 = 14 };

struct walk_site {
    _Atomic uint32_t version; /* odd while it is written; 0: empty */
    uint32_t frame_bytes;
    uint64_t pc;           /* or the key of an interrupted instruction */
    uint64_t blob, method; /* the compile id of the nmethod */
    uint32_t compile_id;
    uint8_t count;
    uint8_t state; /* enum frame_state */

    struct site_method {
        uint32_t id_low, id_high;
        uint32_t bci_and_kind; /* bci << 4 | kind */
        /* innermost first; two of them are in the first cache line, which usually suffices */
    } methods[SITE_METHODS_MAX];
};

_Static_assert(sizeof(struct walk_site) == 128, "two cache lines");

/*
 * Describes a Method: where its bytecode is, and its check. It is valid while everything from
 * which the check is computed is unchanged: the memory of an unloaded class may be reused by a
 * class that is identical, pointer for pointer. While no class is unloaded (hotspot/unloads.h),
 * less needs to be compared.
 */
struct known_method {
    _Atomic uint32_t version;
    uint16_t code_size; /* 0: native or abstract */
    uint32_t check;     /* method_parts_check of the parts */
    /* the value of unloads_epoch when the parts were last valid; 0: not known */
    uint32_t epoch;
    uint64_t method;
    struct method_parts parts;
} __attribute__((aligned(64)));

enum { KNOWN_LOG2 = 12 };

/* Returns 1 << KNOWN_LOG2 zeroed entries; NULL when out of memory. */
struct known_method *known_methods_new(void);
void known_methods_free(struct known_method *known);

/* Returns the entry for a method, which may hold another method. */
static inline struct known_method *known_method_at(struct known_method *known, uint64_t method)
{
    return &known[(method * UINT64_C(0x9e3779b97f4a7c15)) >> (64 - KNOWN_LOG2)];
}

/*
 * Stores what is known about a method and still valid. Returns false when nothing is. known may be
 * NULL. epoch is a value of unloads_epoch since which the method cannot have been freed, because it
 * is on the stack; 0: none is known.
 */
bool known_method_find(struct known_method *known, const struct hotspot_layout *l,
                       const struct memory *m, uint64_t method, uint32_t epoch,
                       struct known_method *ret);
/*
 * Stores what was known about a method at an epoch, whatever is at its address now. Returns false
 * when nothing was, or epoch is 0. known may be NULL.
 */
bool known_method_recall(struct known_method *known, uint64_t method, uint32_t epoch,
                         struct known_method *ret);
/*
 * Reads from the VM what *ret is to hold about a method. Returns false when the address is not that
 * of a Method.
 */
bool known_method_read(const struct hotspot_layout *l, const struct memory *m, uint64_t method,
                       struct known_method *ret);
/* Keeps in the table what known_method_read has read at an epoch. known may be NULL. */
void known_method_note(struct known_method *known, uint32_t epoch, const struct known_method *of);

/*
 * Returns the bytecode index for a pointer to a bytecode of the method; -1 when bcp points
 * elsewhere.
 */
static inline int32_t known_method_bci(const struct known_method *k, const struct hotspot_layout *l,
                                       uint64_t bcp)
{
    uint64_t offset = bcp - (k->parts.constant + (uint64_t)l->sizeof_const_method);
    return offset < k->code_size ? (int32_t)offset : -1;
}

/* Returns 1 << SITES_LOG2 zeroed entries, two mebibytes; NULL when out of memory. */
struct walk_site *sites_new(void);
void sites_free(struct walk_site *sites);

/*
 * Returns the entry for a return address or the key of an interrupted instruction, which may hold
 * another one.
 */
static inline struct walk_site *site_at(struct walk_site *sites, uint64_t pc)
{
    return &sites[(pc * UINT64_C(0x9e3779b97f4a7c15)) >> (64 - SITES_LOG2)];
}

/* Returns the frame of a method that a site holds. */
static inline struct walk_frame site_frame(const struct site_method *m)
{
    return (struct walk_frame){.id = (uint64_t)m->id_high << 32 | m->id_low,
                               .bci = (int32_t)m->bci_and_kind >> 4,
                               .kind = m->bci_and_kind & 15};
}

/*
 * Stores the compilation whose nmethod is at `blob` now. Returns false when the memory at `blob`
 * cannot be read. Async-signal-safe.
 */
bool site_read_compilation(const struct hotspot_layout *l, const struct memory *m, uint64_t blob,
                           struct compilation *ret);
/* Returns whether the nmethod at c->blob still is this compilation. Async-signal-safe. */
bool site_compilation_holds(const struct hotspot_layout *l, const struct memory *m,
                            const struct compilation *c);
/*
 * Notes the frames of an nmethod at a return address, or at an interrupted instruction whose frame
 * is in the given state; the ids have their checks. Notes nothing when there are more than
 * SITE_METHODS_MAX frames, or another thread is writing the entry. Async-signal-safe.
 */
void site_note(struct walk_site *sites, const struct compilation *of, int32_t frame_bytes,
               uint64_t key, uint8_t state, const struct walk_frame *frames, unsigned count);
/* Forgets what is known about a return address or the key of an interrupted instruction. */
void site_forget(struct walk_site *sites, uint64_t key);
