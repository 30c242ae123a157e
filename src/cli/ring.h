/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of status, dump and stop for the rings of recordings that are always on (--always). */
#pragma once

#include "cli/commands.h"
#include "proto/vm.h"

struct ring_status {
    bool in_memory; /* otherwise a file */
    bool moved;     /* the file's name is gone, or is another file's */
    int descriptor; /* the VM's, of memory or file; -1: unknown */
    uint64_t size, used, rate, from_ms, to_ms, keep_ms;
    uint64_t own_ns, process_ns; /* CPU time of the agent and of the process since it began */
    uint64_t memory;             /* resident bytes of the agent's tables and names */
};

/*
 * Reads the agent's answer to a status request. Returns false when the agent does not record into a
 * ring.
 */
bool ring_status_read(const char *answer, struct ring_status *ret);
/*
 * Formats a time, in ms since 1970, in the local time zone, as "2026-11-24 07:00:05". Returns text.
 */
const char *ring_time(char text[32], uint64_t ms);

/*
 * Carries out dump and stop for a VM whose agent writes a ring at `file`: sends the verb and
 * extracts the last last_ns (0: all) of the ring into `output`. output may be NULL when the verb
 * ends the recording (`ends`). Returns the exit status.
 */
int ring_send(const struct command *self, const struct vm *vm, const char *verb,
              const struct ring_status *ring, const char *file, const char *output,
              uint64_t last_ns, bool ends);
/*
 * Carries out dump for the file of a ring: extracts its last last_ns (0: all) into `output`.
 * Returns the exit status.
 */
int ring_dump_file(const char *path, const char *output, uint64_t last_ns);
