/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much of a thread's time lies inside the sections of some locks, for who asks along the time
 * of each thread: the holds of all locks lie together in 16 bytes each, in the timeline's index
 * when it has one, and are passed once.
 */
#pragma once

#include "analysis/holds.h"

/* The holds of a timeline, short: its own, or found here. */
struct hold_list {
    const struct tl_hold *holds;
    const uint64_t *first; /* per thread, as tl_hold's of a timeline */
    bool own;
};

/* What the timeline has, of all locks; else worked out, of those that are wanted. */
int hold_list_init(struct hold_list *ret, const struct timeline *t, holds_want *want,
                   void *arg) must_check;
void hold_list_release(struct hold_list *l);
/*
 * Keeps the holds with the timeline if it has an index; h NULL: works them out for that, else
 * shortens them.
 */
int hold_list_keep(struct timeline *t, struct holds *h) must_check;

struct section_span {
    uint64_t start, end;
};

struct section_lane {
    uint64_t at, to; /* in the list: what was not reached yet */
    uint64_t next;   /* the start of the first of these, UINT64_MAX when there is none */
    VEC(struct section_span) open;
};

struct sections {
    const struct timeline *t;
    const struct hold_list *list;
    const uint8_t *wanted;      /* per object */
    struct section_lane *lanes; /* per thread */
    bool failed;                /* no memory: answers since are too small */
};

int sections_init(struct sections *ret, const struct timeline *t, const struct hold_list *l,
                  const uint8_t *wanted) must_check;
void sections_release(struct sections *s);
/*
 * Ns of [start, end) inside; neither start nor end lies before those of the thread's question
 * before.
 */
uint64_t sections_inside(struct sections *s, uint32_t thread, uint64_t start, uint64_t end);
