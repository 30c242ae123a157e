/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Determines whether the memory of a class may have been reused. The VM counts unloaded classes in
 * its performance counters before it frees them. A redefinition may free methods before their class
 * is unloaded, which nothing reports.
 */
#pragma once

#include "hotspot/layout.h"
#include "hotspot/memory.h"

struct unloads {
    /*
     * the addresses of the counters: of all classes, and of those from the shared archive; 0: not
     * known
     */
    uint64_t counters[2];
};

/*
 * Finds the counters of this process; sets them to 0 where the VM does not publish both of them
 * (-XX:-UsePerfData). Must not be called in a signal handler.
 */
void unloads_find(struct unloads *ret, const struct hotspot_layout *l, const struct memory *m);
/*
 * Returns a number that changes before the memory of a class is reused; 0 when nothing reports
 * this. Async-signal-safe.
 */
uint32_t unloads_epoch(const struct unloads *u, const struct memory *m);
