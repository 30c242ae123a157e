/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The libraries of this process, as a sorted table that a signal handler can search. The tables for
 * unwinding are used where the loader has put them (.eh_frame, found by .eh_frame_hdr), so that
 * nothing is parsed in advance and nothing is stored.
 */
#pragma once

#include "base/macro.h"

#include <stdint.h>

struct module {
    uint64_t begin, end;    /* of everything that is mapped of it */
    uint64_t base;          /* what is added to the file's addresses */
    uint64_t eh_frame_hdr;  /* address, 0 when there is none */
    uint64_t eh_frame_size; /* of the header and its table */
    const char *path;       /* "" for the program itself; lives as long as the process */
};

struct modules {
    uint32_t count, generation;
    struct module modules[];
};

/*
 * The libraries now; what it answered last when nothing was loaded or unloaded since. Takes the
 * loader's lock: from a plain thread, never from a signal handler. NULL when memory is out. Earlier
 * tables stay valid (they are kept to the end).
 */
const struct modules *modules_refresh(void);
/* The last table; NULL before the first. Async-signal-safe. */
const struct modules *modules_current(void);
/* The module that an address lies in, or NULL. Async-signal-safe. */
const struct module *module_find(const struct modules *m, uint64_t address);
