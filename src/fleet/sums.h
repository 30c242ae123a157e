/* SPDX-License-Identifier: Apache-2.0 */
/* Sums over the blocks of a store: by stack, and from those by method. */
#pragma once

#include "fleet/store.h"

struct sum {
    uint64_t samples, weight;
    uint64_t timeless; /* the number of samples without a weight, see FLEET_TIMELESS */
    /*
     * Samples and weight of FLEET_READ and FLEET_ESTIMATED. FLEET_UNSURE, which no metric has
     * together with these, adds its weight alone.
     */
    uint64_t readings, read;
};

/*
 * Returns the weight below which figures are based on too few readings or samples
 * (profile_least_weight), from the sum of all samples. 0: no figure is based on readings;
 * UINT64_MAX: all that is estimated is unsure (FLEET_UNSURE).
 */
uint64_t sum_least(struct sum all);
/* Returns whether a part is based on too few readings, or all of it is unsure (FLEET_UNSURE). */
bool sum_is_few(struct sum part, uint64_t least);

/*
 * Returns whether the block's figures are based on readings or estimates (FLEET_READ,
 * FLEET_ESTIMATED, FLEET_UNSURE), of which there can be too few.
 */
bool sum_is_read(const struct store_block *b);
/* Adds the sums of a block; its entries are not needed. */
void sum_add_block(struct sum *to, const struct store_block *b);

/* Sums by stack: most numbers of stacks have none. */
struct stack_sums {
    VEC(struct sum) by_stack; /* index: the store's number of the stack */
    struct sum all;
};

void stack_sums_release(struct stack_sums *s);
/* Adds up all blocks of a view. Returns 0 or a negative errno. */
int stack_sums_read(struct stack_sums *ret, struct store *s, struct store_read *r) must_check;
/*
 * Adds a block, which must have entries, to the sums of its stacks. Returns 0, -ENOMEM, or -E2BIG
 * for a stack number that is too large.
 */
int stack_sums_add(struct stack_sums *s, const struct store_block *b) must_check;

/* A method of the ranked table; recursive calls count once in the total. */
struct fleet_method_sum {
    const char *label; /* valid until store_end */
    enum fleet_kind kind;
    struct sum self, total;
    bool few; /* self is based on too few readings to be known */
};

struct method_sums {
    VEC(struct fleet_method_sum) list; /* the heaviest first */
    struct sum unattributed;           /* the running method is not known */
    struct sum profiler;               /* what the profiler itself ran or allocated */
};

/*
 * Ranks methods by self, then total, then name; methods whose self is unknown follow the others. If
 * `weights` is true, compares weights instead of samples. Returns 0 or a negative errno.
 */
int method_sums_of(struct method_sums *ret, struct store *s, struct store_read *r,
                   const struct stack_sums *stacks, bool weights) must_check;
void method_sums_release(struct method_sums *m);
