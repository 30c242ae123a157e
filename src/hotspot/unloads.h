/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether the memory of any class can have been given to another since. The VM counts in its
 * performance counters which classes it unloads, before it frees them. Methods may go before their
 * class, by redefinition, which nothing reports.
 */
#pragma once

#include "hotspot/layout.h"
#include "hotspot/memory.h"

struct unloads {
    /* addresses: of classes, and of those from the shared archive; 0: not known */
    uint64_t counters[2];
};

/*
 * Of this process; finds nothing where the VM does not report it (-XX:-UsePerfData). Not for a
 * signal handler.
 */
void unloads_find(struct unloads *ret, const struct hotspot_layout *l, const struct memory *m);
/*
 * A number that changes before a class's memory is given to another; 0 when nothing says so.
 * Async-signal-safe.
 */
uint32_t unloads_epoch(const struct unloads *u, const struct memory *m);
