/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads that wait for something to do: those of pools without a task, timers, selectors,
 * cleaners. Their waits are no delay of anything, and in a server there are more of them than of
 * all others.
 */
#pragma once

#include "model/frame_role.h"
#include "model/timeline.h"

#include <stdbool.h>

/*
 * The kinds of a timeline's methods by the numbers of their strings, n_strings of them, for free();
 * NULL: no memory.
 */
uint8_t *frame_roles(const struct timeline *t);
/* Of a frame by its number. */
enum frame_role role_of_frame(const struct timeline *t, const uint8_t *kinds, uint32_t frame);
/*
 * Whether a wait with this stack (TL_NONE: not known) is that of a thread that has nothing to do.
 */
bool stack_is_idle(const struct timeline *t, const uint8_t *kinds, uint32_t stack);
/*
 * The frame that says what a stack waits in: the program's that called what waits; where only the
 * JDK's are, the one of them that says most. TL_NONE of an empty stack.
 */
uint32_t waiting_frame(const struct timeline *t, const uint8_t *kinds, uint32_t stack);
