/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The frames that are left out of a dump's stacks because they belong to the agent's classes: a
 * thread may be inside a probe when the VM writes the dump. A local of such a frame becomes one of
 * the frame that called the agent, so that no object loses the root that holds it. A zeroed struct
 * is empty and valid.
 */
#pragma once

#include "base/map.h"
#include "base/vec.h"

struct left_out_stack {
    uint32_t first, n; /* its part of `positions` */
    uint32_t frames;   /* number of all frames of the stack */
};

struct left_out {
    struct map stacks; /* serial number of a trace -> index of `of` */
    VEC(struct left_out_stack) of;
    VEC(uint32_t) positions;
};

/*
 * Leaves out the frame at position `at` of the stack of `trace`, which has this number of frames.
 * The positions of one stack are added in ascending order, before those of the next. Returns 0 or
 * -ENOMEM.
 */
int left_out_add(struct left_out *l, uint32_t trace, uint32_t frames, uint32_t at) must_check;
void left_out_release(struct left_out *l);

/* Returns the number of frames that are left out of a stack. */
uint32_t left_out_count(const struct left_out *l, uint32_t trace);
/* Returns the position, among all frames of a stack, of the frame that is shown at a position. */
uint32_t left_out_recorded(const struct left_out *l, uint32_t trace, uint32_t shown);
/*
 * Returns the position at which a frame is shown or, for one that is left out, the position of the
 * frame that called it; if nothing called the agent, that of the last frame that is shown.
 * UINT32_MAX, which stands for no frame, is returned unchanged.
 */
uint32_t left_out_shown(const struct left_out *l, uint32_t trace, uint32_t recorded);
