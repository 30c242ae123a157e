/* SPDX-License-Identifier: Apache-2.0 */
/* The two replays behind what_if.h. */
#pragma once

#include "analysis/graph.h"
#include "analysis/what_if.h"

struct replay {
    const struct timeline *t;
    const struct holds *holds; /* sections that are scaled, or NULL */
    struct holds lock_holds;
    size_t *near;            /* per thread, with holds: the last place in them */
    uint8_t *stacks;         /* per stack: inside a method that is scaled; NULL when none is */
    struct graph_seen *seen; /* per thread, with stacks */
    double factor;
    uint64_t scaled;
};

int replay_init(struct replay *ret, const struct timeline *t, const struct what_if *w) must_check;
void replay_release(struct replay *r);

/* The thread's own time between node n and the one before, scaled as far as it is inside. */
uint64_t replay_own(struct replay *r, uint32_t n);
/* New time of node n from those of the node before it and of its waker. */
uint64_t replay_node(struct replay *r, const uint64_t *times, uint32_t n);

/* The schedule with locks given in the order in which threads come in the new schedule. */
int replay_arbitrated(struct replay *r, uint64_t *times) must_check;
