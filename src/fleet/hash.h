/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of contents: the first 128 bits of SHA-256 (FIPS 180-4). Machines that never communicated
 * give the same frame or stack the same name, and it is infeasible to construct two contents with
 * the same name.
 */
#pragma once

#include <sha2.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { FLEET_HASH_BYTES = 16 };

struct fleet_hash {
    uint8_t bytes[FLEET_HASH_BYTES];
};

struct fleet_sha {
    SHA2_CTX state;
};

void fleet_sha_begin(struct fleet_sha *s);
void fleet_sha_add(struct fleet_sha *s, const void *bytes, size_t len);
/* Adds a text with its length in front of it, so that ("ab", "c") and ("a", "bc") differ. */
void fleet_sha_add_text(struct fleet_sha *s, const char *text, size_t len);
struct fleet_hash fleet_sha_end(struct fleet_sha *s);

/* Returns the name of a frame: of its kind and label. */
struct fleet_hash fleet_hash_frame(uint8_t kind, const char *label, size_t len);
/*
 * Returns the name of the stack that consists of another one and a frame; that of no frames is all
 * zeros.
 */
struct fleet_hash fleet_hash_stack(const struct fleet_hash *caller, const struct fleet_hash *frame);

static inline uint64_t fleet_hash_key(const struct fleet_hash *h)
{
    uint64_t key;
    memcpy(&key, h->bytes, sizeof(key));
    return key;
}
