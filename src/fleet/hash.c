/* SPDX-License-Identifier: Apache-2.0 */
#include "fleet/hash.h"

#include <endian.h>

/* FIPS 180-4, section 4.2.2. */
static const uint32_t constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t turn(uint32_t x, unsigned n)
{
    return x >> n | x << (32 - n);
}

/*
 * Section 6.2.2, step 3, for round i + n, of which i is a multiple of 8. The eight variables take
 * turns instead of moving on.
 */
static inline __attribute__((always_inline)) void do_round(uint32_t v[8], unsigned n, uint32_t add)
{
    uint32_t a = v[(8 - n) % 8], b = v[(9 - n) % 8], c = v[(10 - n) % 8];
    uint32_t e = v[(12 - n) % 8], f = v[(13 - n) % 8], g = v[(14 - n) % 8];
    uint32_t *d = &v[(11 - n) % 8], *h = &v[(15 - n) % 8];
    *h += (turn(e, 6) ^ turn(e, 11) ^ turn(e, 25)) + ((e & f) ^ (~e & g)) + add;
    *d += *h;
    *h += (turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
}

static void add_block(uint32_t state[8], const uint8_t *block)
{
    uint32_t w[64], v[8];
    for (int i = 0; i < 16; i++) {
        memcpy(&w[i], block + 4 * (size_t)i, 4);
        w[i] = be32toh(w[i]);
    }
    for (int i = 16; i < 64; i++) {
        uint32_t a = turn(w[i - 15], 7) ^ turn(w[i - 15], 18) ^ w[i - 15] >> 3;
        uint32_t b = turn(w[i - 2], 17) ^ turn(w[i - 2], 19) ^ w[i - 2] >> 10;
        w[i] = w[i - 16] + a + w[i - 7] + b;
    }
    memcpy(v, state, sizeof(v));
    for (int i = 0; i < 64; i += 8) {
        /* With numbers that the compiler knows the variables stay in registers. */
        do_round(v, 0, constants[i] + w[i]);
        do_round(v, 1, constants[i + 1] + w[i + 1]);
        do_round(v, 2, constants[i + 2] + w[i + 2]);
        do_round(v, 3, constants[i + 3] + w[i + 3]);
        do_round(v, 4, constants[i + 4] + w[i + 4]);
        do_round(v, 5, constants[i + 5] + w[i + 5]);
        do_round(v, 6, constants[i + 6] + w[i + 6]);
        do_round(v, 7, constants[i + 7] + w[i + 7]);
    }
    for (int i = 0; i < 8; i++)
        state[i] += v[i];
}

void fleet_sha_begin(struct fleet_sha *s)
{
    /* Section 5.3.3. */
    static const uint32_t start[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    memcpy(s->state, start, sizeof(start));
    s->len = 0;
}

void fleet_sha_add(struct fleet_sha *s, const void *bytes, size_t len)
{
    const uint8_t *at = bytes;
    while (len) {
        size_t used = s->len % 64;
        if (!used && len >= 64) {
            add_block(s->state, at);
            s->len += 64, at += 64, len -= 64;
            continue;
        }
        size_t n = 64 - used < len ? 64 - used : len;
        memcpy(s->block + used, at, n);
        s->len += n, at += n, len -= n;
        if (s->len % 64 == 0)
            add_block(s->state, s->block);
    }
}

void fleet_sha_add_text(struct fleet_sha *s, const char *text, size_t len)
{
    uint64_t n = htole64(len);
    fleet_sha_add(s, &n, sizeof(n));
    fleet_sha_add(s, text, len);
}

struct fleet_hash fleet_sha_end(struct fleet_sha *s)
{
    static const uint8_t padding[64] = {0x80};
    uint64_t bits = htobe64(s->len * 8);
    size_t used = s->len % 64;
    struct fleet_hash h;
    fleet_sha_add(s, padding, (used < 56 ? 56 : 120) - used);
    fleet_sha_add(s, &bits, sizeof(bits));
    for (int i = 0; i < 4; i++) {
        uint32_t word = htobe32(s->state[i]);
        memcpy(h.bytes + 4 * (size_t)i, &word, 4);
    }
    return h;
}

struct fleet_hash fleet_hash_frame(uint8_t kind, const char *label, size_t len)
{
    struct fleet_sha s;
    fleet_sha_begin(&s);
    fleet_sha_add(&s, &kind, 1);
    fleet_sha_add(&s, label, len);
    return fleet_sha_end(&s);
}

struct fleet_hash fleet_hash_stack(const struct fleet_hash *caller, const struct fleet_hash *frame)
{
    struct fleet_sha s;
    fleet_sha_begin(&s);
    fleet_sha_add(&s, caller->bytes, FLEET_HASH_BYTES);
    fleet_sha_add(&s, frame->bytes, FLEET_HASH_BYTES);
    return fleet_sha_end(&s);
}
