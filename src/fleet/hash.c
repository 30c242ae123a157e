/* SPDX-License-Identifier: Apache-2.0 */
#include "fleet/hash.h"

#include <endian.h>

void fleet_sha_begin(struct fleet_sha *s)
{
    SHA256Init(&s->state);
}

void fleet_sha_add(struct fleet_sha *s, const void *bytes, size_t len)
{
    SHA256Update(&s->state, bytes, len);
}

void fleet_sha_add_text(struct fleet_sha *s, const char *text, size_t len)
{
    uint64_t n = htole64(len);
    fleet_sha_add(s, &n, sizeof(n));
    fleet_sha_add(s, text, len);
}

struct fleet_hash fleet_sha_end(struct fleet_sha *s)
{
    uint8_t all[SHA256_DIGEST_LENGTH];
    struct fleet_hash h;
    SHA256Final(all, &s->state);
    memcpy(h.bytes, all, sizeof(h.bytes));
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
