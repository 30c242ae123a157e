/* SPDX-License-Identifier: Apache-2.0 */
/* What the readers of HPROF's binary and text formats share (load_hprof.c, load_hprof_text.c). */
#pragma once

#include "base/map.h"
#include "profile/profile.h"

/* The traces that have been read, by their serial number. */
struct hprof_traces {
    struct map nodes, threads; /* the trace's node; its thread, if the trace has one */
};

/*
 * Adds a sample whose stack and thread are those of the trace with this serial number; an unknown
 * one has no stack. Returns 0 or a negative errno.
 */
int load_hprof_sample(struct profile *p, const struct hprof_traces *t, enum profile_metric metric,
                      uint64_t weight, uint32_t trace);
