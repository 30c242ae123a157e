/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shows the progress of long work as one line on standard error, only on a terminal and at most ten
 * times a second.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct progress {
    const char *what;
    uint64_t last_ns, start_ns;
    bool shown, terminal;
};

void progress_start(struct progress *p, const char *what);
/*
 * Shows that `done` of `total` is done. A total of 0 means that it is unknown; `done` is then shown
 * as bytes.
 */
void progress_update(struct progress *p, uint64_t done, uint64_t total);
void progress_end(struct progress *p); /* erases the line */
