/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What earlier walks have found at return addresses in compiled code: the size of the frame and the methods inlined there. Cold
 * caches make a walk dear, not instructions: finding this out anew touches a dozen cache lines a frame, one after the other; a
 * site is two, and all sites of a stack are fetched ahead at once.
 *
 * A site counts while the same compilation is at the same place: by its method and compile id, which the VM gives once. Code
 * that a frame returns to is not freed, and classes whose methods are inlined in it are not unloaded. No lock: a site that is
 * being written is none.
 */
#pragma once

#include "hotspot/code.h"
#include "hotspot/method.h"
#include "unwind/walk.h"

#include <stdatomic.h>

enum { SITE_METHODS_MAX = 7, SITES_LOG2 = 14 };

struct site {
    _Atomic uint32_t version; /* odd while it is written; 0: empty */
    uint32_t frame_bytes;
    uint64_t pc;
    uint64_t blob, method; /* of the nmethod */
    uint32_t compile_id;
    uint32_t count;
    uint64_t ids[SITE_METHODS_MAX];          /* innermost first */
    uint32_t bci_and_kind[SITE_METHODS_MAX]; /* bci << 4 | kind */
};

_Static_assert(sizeof(struct site) == 128, "two cache lines");

/*
 * The same of a Method: where its bytecode lies, and its check. It counts while all that the check is made of is the same: the
 * memory of a class that is unloaded is given to the next one just like it, pointer for pointer. What is saved is the waiting
 * of one load for the other.
 */
struct known_method {
    _Atomic uint32_t version;
    uint16_t code_size; /* 0: native or abstract */
    uint64_t method;
    struct method_parts parts;
} __attribute__((aligned(64)));

enum { KNOWN_LOG2 = 12 };

struct known_method *known_methods_new(void);
void known_methods_free(struct known_method *known);
/* What is known of a method, looked up now where nothing is; false when there is no Method. known may be NULL. */
bool known_method_get(struct known_method *known, const struct hotspot_layout *l, const struct memory *m, uint64_t method,
                      struct known_method *ret);

static inline int32_t known_method_bci(const struct known_method *k, const struct hotspot_layout *l, uint64_t bcp)
{
    uint64_t offset = bcp - (k->parts.constant + (uint64_t)l->sizeof_const_method);
    return offset < k->code_size ? (int32_t)offset : -1;
}

/* 1 << SITES_LOG2 of them, zeroed, two mebibytes; NULL when there is no memory. */
struct site *sites_new(void);
void sites_free(struct site *sites);

static inline struct site *site_at(struct site *sites, uint64_t pc)
{
    return &sites[(pc * UINT64_C(0x9e3779b97f4a7c15)) >> (64 - SITES_LOG2)];
}

static inline enum walk_kind site_kind(const struct site *s, unsigned i)
{
    return (enum walk_kind)(s->bci_and_kind[i] & 15);
}

static inline int32_t site_bci(const struct site *s, unsigned i)
{
    return (int32_t)s->bci_and_kind[i] >> 4;
}

/* Copies what is known of a return address; false when nothing (any more). Async-signal-safe. */
bool site_find(struct site *sites, const struct hotspot_layout *l, const struct memory *m, uint64_t pc, struct site *ret);
/* Notes frames of an nmethod at a return address; ids have their checks. Too many are not noted. Async-signal-safe. */
void site_note(struct site *sites, const struct hotspot_layout *l, const struct memory *m, const struct code_blob *blob,
               uint64_t pc, const struct walk_frame *frames, unsigned count);
