/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The readings of CPU time (jvmscope.CpuTime) in a part of a recording. Each reading says what was
 * used since the one before, so those at the ends of the part belong to it in the share that
 * vm_time_sum uses for a selection of the same time.
 */
#pragma once

#include "base/buf.h"
#include "base/vec.h"
#include "jfr/reader.h"
#include "profile/profile.h"

/* Appends a compressed number of exactly `width` bytes (1 to 8). */
void cut_times_put_padded(struct buf *b, uint64_t v, int width);

struct cut_time {
    uint64_t offset;           /* of the event in the file */
    int64_t time_ns, moved_ns; /* since the recording began; by how much the event moves earlier */
    uint64_t cpu_ns, part_ns;  /* what was used, and how much of that in the part */
    bool last;                 /* of the events that are written together */
};

struct cut_times {
    VEC(struct cut_time) list; /* after cut_times_settle: those of the part, by their offsets */
};

/* Notes an event of the recording that began at start_ns. Returns 0 or -ENOMEM. */
int cut_times_note(struct cut_times *c, const struct rec_event *e, int64_t start_ns) must_check;

/*
 * Keeps the readings that belong to the selected time, wholly or in part, and computes that part.
 */
void cut_times_settle(struct cut_times *c, const struct profile_filter *filter);

/*
 * Appends the event at `offset` of the file, in a chunk whose clock ticks hz times a second, as the
 * part of the recording has it. Returns false and appends nothing if the event is not to be
 * changed.
 */
bool cut_times_put(const struct cut_times *c, struct buf *out, uint64_t offset,
                   const uint8_t *event, size_t size, uint64_t hz);

void cut_times_release(struct cut_times *c);
