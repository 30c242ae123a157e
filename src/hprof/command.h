/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parses the commands of a front-end (HPROF Agent, "Socket Connection and Communication") from a
 * stream that may arrive in pieces of any size. A command that is unknown, too short or too long is
 * skipped by its length and counted.
 */
#pragma once

#include "base/macro.h"
#include "hprof/records.h"

#include <stdbool.h>
#include <stddef.h>

struct hprof_request {
    enum hprof_command command;
    uint32_t serial;
    uint16_t flags;             /* for ALLOC SITES: HPROF_SITES_* */
    float cutoff;               /* for ALLOC SITES and CPU SAMPLES, from 0 to 1 */
    enum hprof_control control; /* for CONTROL */
    uint64_t object;            /* the thread object for sampling on and off; 0 means all threads */
    uint16_t depth;             /* for max stack depth */
};

enum { HPROF_COMMAND_HEADER = 9, HPROF_COMMAND_BODY = 16 };

/* A struct that is zeroed except for id_size (the one in the stream's header) is ready for use. */
struct hprof_commands {
    unsigned id_size;
    /* The bytes of the incomplete command. */
    uint8_t bytes[HPROF_COMMAND_HEADER + HPROF_COMMAND_BODY];
    size_t len;
    uint64_t skip;    /* the number of bytes of a body still to be skipped */
    uint64_t refused; /* the number of commands that were skipped */
};

/*
 * Takes bytes until a command is complete. Returns 1 with the command, or 0 when all len bytes were
 * taken without completing one. *used is the number of bytes taken.
 */
int hprof_command_next(struct hprof_commands *c, const void *bytes, size_t len, size_t *used,
                       struct hprof_request *ret);
