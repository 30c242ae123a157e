/* SPDX-License-Identifier: Apache-2.0 */
/* One line on standard error that tells how far long work is: on a terminal only, at most ten times a second. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct progress {
    const char *what;
    uint64_t last_ns, start_ns;
    bool shown, terminal;
};

void progress_start(struct progress *p, const char *what);
/* done of total; total 0 means unknown and done is shown as bytes. */
void progress_update(struct progress *p, uint64_t done, uint64_t total);
void progress_end(struct progress *p); /* wipes the line */
