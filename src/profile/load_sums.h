/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Samples of one metric on their way into a profile, merged as far as load_detail allows, so that
 * their number depends on the number of stacks, threads and cells of time, not of samples. Rows are
 * in the order of their first samples.
 */
#pragma once

#include "profile/load.h"

struct sum_options {
    enum load_detail detail;
    uint64_t from_ns, to_ns; /* samples outside do not count; to_ns = 0: to the end */
    uint64_t cell_ns;        /* LOAD_CELLS: how long a cell of time is at first */
};

/* Samples merged by one kind of key; the keys are found by open addressing. */
struct sum_table {
    struct profile_samples rows;
    struct profile_spreads spread; /* by row, where weights are estimates */
    uint64_t *slots;  /* the upper half of the key's hash, and the row's number + 1; 0: free */
    size_t cap;       /* 0, or 1 << bits; at least a quarter is free */
    unsigned bits;    /* at most 32 */
    uint64_t cell_ns; /* 0: times do not matter */
    uint64_t cell, cell_end_ns; /* the beginning and end of the cell of the last sample */
    /* there were more rows than the limit, so the table has been given up and has no rows */
    bool full;

    /* Samples whose places in the table have been prefetched. */
    struct sum_pending {
        struct profile_sample sample;
        struct profile_spread spread;
        uint64_t hash;
    } pending[32];

    size_t n_pending;
};

struct sums {
    const struct sum_options *how;
    bool estimated;
    VEC(uint32_t) of_node;         /* LOAD_SUMS: by node, the row + 1 */
    struct sum_table rows, merged; /* merged: LOAD_CELLS, with threads merged */
    uint64_t latest_ns;
    struct profile_sample outside; /* the first sample that does not count */
    bool has_outside;
};

/* A thread as far as sums must know it. */
struct sum_thread {
    bool counts;       /* it passes the filter */
    uint32_t stand_in; /* the thread that represents it where threads are merged */
    uint32_t kinds;    /* 1u << kind of the samples that it has (load_jfr.h) */
};

/*
 * Adds a sample, whose thread is described by *t. `spread` states how many samples this one stands
 * for. This and the functions below that can fail return 0, -ENOMEM, or -E2BIG when there would be
 * 4 billion rows.
 */
int sums_add(struct sums *s, const struct profile_sample *sample, const struct sum_thread *t,
             const struct profile_spread *spread) must_check;
/*
 * Makes the rows of all samples that were added (LOAD_SUMS), to which weights can then be added.
 */
int sums_settle(struct sums *s) must_check;
/* Adds to the weight of a node's row, if a sample of the node was added and counted. */
void sums_add_weight(struct sums *s, uint32_t node, uint64_t weight);
/*
 * Moves the rows to the end of a series. If the filter leaves none, the series still gets one
 * sample from outside the filter, so that it can be distinguished from a series that the recording
 * lacks.
 */
int sums_move(struct sums *s, struct profile_series *to) must_check;
/* Returns whether any sample was added, whether or not the filter counts it. */
bool sums_any(const struct sums *s);
void sums_release(struct sums *s);
