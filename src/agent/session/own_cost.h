/* SPDX-License-Identifier: Apache-2.0 */
/* The agent's account of its own CPU time. */
#pragma once

#include "base/buf.h"

#include <stdint.h>

enum own_cost_part {
    OWN_THREADS, /* threads of the agent, without the walks that OWN_SAMPLES includes */
    OWN_SAMPLES, /* signal handlers, and walking the stacks that they copy */
    OWN_WAITS,   /* callbacks on threads of the program (agent/session/budget.h) */
    OWN_ALLOCATIONS,
    OWN_REQUESTS,
    OWN_PARTS
};

struct own_cost {
    uint64_t parts[OWN_PARTS]; /* ns of CPU time since own_cost_start */
    uint64_t process_ns;       /* of the whole process */
};

/* Begins to count CPU time, for a recording that begins now. */
void own_cost_start(void);
/* Stores the CPU time that was used since own_cost_start. */
void own_cost_read(struct own_cost *ret);
/*
 * Appends lines "cost.NAME N": CPU time in ns since own_cost_start of the agent's threads, of its
 * signal handlers and of its callbacks, and of the whole process; "memory.tables_bytes N": the
 * resident bytes of its tables.
 */
void own_cost_status(struct buf *out);
