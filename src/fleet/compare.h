/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compares the methods of two selections of a store: finds differences that chance does not
 * explain.
 */
#pragma once

#include "base/map.h"
#include "base/strpool.h"
#include "fleet/stat.h"
#include "fleet/store.h"
#include "fleet/sums.h"

struct compare_side {
    struct sum all;
    struct stat_side blocks, instances; /* the same samples, clustered by block and by instance */
};

/* A method's samples and weight in the current block: self, total. */
struct compare_now {
    double x[2];
    uint64_t weight[2];
};

/* A method, with the sums over clusters of each side. */
struct compared {
    const char *label; /* valid until compare_release */
    bool is_mark;
    struct sum parts[2][2];                     /* by side; self, total */
    struct stat_part of[2][2], instances[2][2]; /* by side; self, total */
    struct stat_change change[2];
    bool few[2]; /* self, total: both sides are based on too few readings to know the change */
};

/* A method's samples or weight in one instance: self, total. */
struct compare_cell {
    uint32_t instance, method;
    double x[2];
};

struct compare_list {
    uint32_t start, n; /* the number of elements + 1; 0: not known yet */
};

struct comparison {
    struct store *store;
    struct buf *why;
    bool weights; /* compares weights instead of samples */
    struct compare_side sides[2];
    VEC(struct compared) methods;

    /* While a side is read. */
    struct store_read *r;
    struct strpool labels;
    VEC(uint32_t) touched;       /* methods of the current block */
    VEC(struct compare_now) now; /* by method; apart from the methods, so that the cache has all */
    VEC(uint32_t) seen;          /* by method: the last stack that it was counted for, + 1 */
    int side;
    struct map method_of_frame;
    /* By stack: its methods in lists, the running one first. */
    VEC(struct compare_list) stack_at;
    VEC(uint32_t) lists;
    struct map instance_of; /* series: its number in instance_n */
    VEC(double) instance_n;
    struct map cell_of; /* instance << 32 | method: its number in cells */
    VEC(struct compare_cell) cells;
};

void compare_release(struct comparison *c);
/*
 * Reads what `choice` selects as side 0 or 1. Call it once for each side. Returns 0, or a negative
 * errno with the reason in c->why.
 */
int compare_read(struct comparison *c, int side, const struct fleet_choice *choice) must_check;
/*
 * Removes the methods that are not worth a comparison, and sorts the others: those that have
 * certainly changed come first. Their intervals hold at this confidence for all methods of
 * `comparisons` such comparisons together. Both sides must have samples.
 */
void compare_methods(struct comparison *c, double confidence, double comparisons);

/*
 * Returns the least by which the share of a method (part 0: self, 1: total) has changed; 0 when it
 * may not have changed, or is based on too few readings.
 */
double compare_evidence(const struct compared *m, int part);
/* Returns "more", "less", "no change" or "too few readings" for a part (0: self, 1: total). */
const char *compare_verdict(const struct compared *m, int part);
