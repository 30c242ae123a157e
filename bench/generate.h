/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the generators of recordings: xorshift (Marsaglia 2003) from a fixed seed, so that
 * every run writes the same file.
 */
#pragma once

#include <stdint.h>

static uint64_t random_state = 88172645463325252u;

static uint64_t next_random(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    return random_state ^= random_state << 17;
}
