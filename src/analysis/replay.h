/* SPDX-License-Identifier: Apache-2.0 */
/* The two replays behind what_if.h. */
#pragma once

#include "analysis/graph.h"
#include "analysis/sections.h"
#include "analysis/what_if.h"

/* What is scaled. */
struct scaled {
    uint8_t *objects;      /* per object: its sections; NULL when none are */
    struct hold_list list; /* with objects: all holds */
    uint8_t *stacks;       /* per stack: inside a method that is scaled; NULL when none is */
};

int scaled_init(struct scaled *ret, const struct timeline *t, const struct what_if *w) must_check;
void scaled_release(struct scaled *s);

struct replay {
    const struct timeline *t;
    const struct scaled *what;
    struct sections sections; /* with objects */
    struct graph_seen *seen;  /* per thread, with stacks */
    double factor;
    uint64_t scaled;
};

int replay_init(struct replay *ret, const struct timeline *t, const struct scaled *what, double factor) must_check;
void replay_release(struct replay *r);

/* New time of node n from those of the node before it and of its waker. */
uint64_t replay_node(struct replay *r, const uint64_t *times, uint32_t n);

/* Whether the timeline is small enough for the next one to do anything. */
bool replay_arbitrates(const struct timeline *t);
/* The schedule with locks given in the order in which threads come in the new schedule. */
int replay_arbitrated(struct replay *r, uint64_t *times) must_check;
