/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes the last part of a ring (jfr/ring.h) as a recording of its own. The ring may be written
 * meanwhile, and its bytes are not trusted: they are copied before they are parsed.
 */
#pragma once

#include "base/macro.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Returns whether the open file begins like a ring. */
bool jfr_is_ring(int fd);

struct jfr_ring_cut {
    uint64_t last_ns; /* the length of the part, up to the end; 0: all */
    /* instead of last_ns: the time at which it begins (jfr_writer_ticks); 0: not given */
    uint64_t since_ticks;
    /*
     * The recorder has just written everything that was begun (jfr_writer_flush). Otherwise the
     * chunks before the part are also searched for the constants to which its last events refer.
     */
    bool flushed;
};

struct jfr_ring_part {
    int64_t start_ns, end_ns; /* of the part, since 1970 */
    int64_t since_ns;         /* the time from which on the ring has events */
    uint64_t events, chunks;
    uint64_t damaged; /* segments that hold no readable chunk although they should */
};

/*
 * Writes a part of the ring fd at the position of the descriptor `to`, a regular file. An event
 * belongs to the part in which it ended. Returns 0 or a negative errno: -EBADMSG with *ret_why when
 * the file is not a ring or holds nothing that can be read, -EAGAIN when the recorder overwrote it
 * again and again while it was being read, or what reading or writing failed with; *ret_why is then
 * NULL.
 */
int jfr_ring_take(int fd, const struct jfr_ring_cut *cut, int to, struct jfr_ring_part *ret,
                  const char **ret_why) must_check;
