/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The commands of a front-end (HPROF Agent, "Socket Connection and Communication"), taken from a stream that may come in any
 * pieces. A command that is unknown, too short or too long is passed over by its length and counted; the next one is read.
 */
#pragma once

#include "base/macro.h"
#include "hprof/records.h"

#include <stdbool.h>
#include <stddef.h>

struct hprof_request {
    enum hprof_command command;
    uint32_t serial;
    uint16_t flags;             /* of ALLOC SITES: HPROF_SITES_* */
    float cutoff;               /* of ALLOC SITES and CPU SAMPLES, within 0 and 1 */
    enum hprof_control control; /* of CONTROL */
    uint64_t object;            /* the thread object of sampling on and off; 0: all threads */
    uint16_t depth;             /* of max stack depth */
};

enum { HPROF_COMMAND_HEADER = 9, HPROF_COMMAND_BODY = 16 };

/* Zeroed, but for id_size (that of the stream's header), is ready. */
struct hprof_commands {
    unsigned id_size;
    uint8_t bytes[HPROF_COMMAND_HEADER + HPROF_COMMAND_BODY]; /* of the command that is not complete */
    size_t len;
    uint64_t skip;    /* bytes of a body that are passed over */
    uint64_t refused; /* commands that were */
};

/*
 * Takes bytes until a command is complete: 1 and the command, with *used counting the bytes taken; 0 when all len bytes are
 * taken and none is.
 */
int hprof_command_next(struct hprof_commands *c, const void *bytes, size_t len, size_t *used, struct hprof_request *ret);
