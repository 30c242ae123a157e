/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The samples of one series, type and bucket of time, in columns: stacks as differences, counts,
 * weights only where they are not a multiple of the counts, requests and traces only where there
 * are any. A sample of CPU takes one to four bytes here.
 */
#pragma once

#include "base/buf.h"
#include "base/vec.h"

#include "fleet/batch.h"

#include <stdint.h>

struct fleet_entry {
    uint64_t stack;          /* the store's number */
    uint64_t request, trace; /* the store's numbers; 0: none */
    uint64_t count, weight;
};

struct fleet_entries {
    VEC(struct fleet_entry) list;
};

/* Sorts entries by stack, request and trace, and merges those that are equal in all three. */
void fleet_entries_settle(struct fleet_entries *e);
void fleet_entries_release(struct fleet_entries *e);
/* Appends a block with the entries, which must be settled. */
void fleet_block_write(const struct fleet_entries *e, struct buf *to);
/*
 * Appends a block like fleet_block_write. The stacks and requests of its entries are hashes, which
 * are stored whole, because differences between hashes are no shorter.
 */
void fleet_block_write_hashes(const struct fleet_entries *e, struct buf *to);
/* Appends the entries of a block. Returns 0, -ENOMEM or -EBADMSG. */
int fleet_block_read(struct fleet_entries *to, const void *bytes, size_t len) must_check;

/* A histogram of latencies, sorted by bucket. Histograms are added by adding their counts. */
struct fleet_counts {
    VEC(struct fleet_count) list;
};

/* Compares two counts by bucket, for qsort. */
int fleet_count_compare(const void *left, const void *right);
/* Adds the counts of n buckets. Returns 0 or -ENOMEM. */
int fleet_counts_add(struct fleet_counts *to, const struct fleet_count *counts,
                     size_t n) must_check;
/* Adds the histogram of l, a row of the batch, if it has one. Returns 0 or -ENOMEM. */
int fleet_counts_add_latency(struct fleet_counts *to, const struct batch *b,
                             const struct fleet_latency *l) must_check;
/* Appends the histogram in the form that fleet_counts_read reads. */
void fleet_counts_write(const struct fleet_counts *c, struct buf *to);
/*
 * Adds the histogram that fleet_counts_write wrote as these bytes. Returns 0, -ENOMEM or -EBADMSG.
 */
int fleet_counts_read(struct fleet_counts *to, const void *bytes, size_t len) must_check;
/*
 * Returns the latency in ns that the share (0 to 1) of all latencies does not exceed, as the bound
 * of its bucket (base/latency.h), but at most max_ns, the largest latency (0: unknown). Returns 0
 * for an empty histogram.
 */
uint64_t fleet_counts_quantile(const struct fleet_counts *c, double share, uint64_t max_ns);
