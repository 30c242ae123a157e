/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The libraries of this process, as a sorted table that a signal handler can search. The unwind
 * tables are used where the loader has mapped them (.eh_frame, found through .eh_frame_hdr), so
 * nothing is parsed in advance and nothing is copied.
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
 * Returns the current libraries; the last table if nothing was loaded or unloaded since, or if
 * memory runs out. Returns NULL when there is no last table. Takes the loader's lock: call it from
 * an ordinary thread, never from a signal handler. Earlier tables stay valid, since they are kept
 * until the process ends.
 */
const struct modules *modules_refresh(void);
/* Returns the last table; NULL before the first modules_refresh. Async-signal-safe. */
const struct modules *modules_current(void);
/* Returns the module that contains an address, or NULL. m may be NULL. Async-signal-safe. */
const struct module *module_find(const struct modules *m, uint64_t address);
