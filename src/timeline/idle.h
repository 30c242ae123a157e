/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads that wait for work: those of pools without a task, timers, selectors, cleaners. Their
 * waits delay nothing, and in a server they outnumber all other waits.
 */
#pragma once

#include "profile/frame_role.h"
#include "timeline/timeline.h"

#include <stdbool.h>

/*
 * Returns the roles (enum frame_role) of a timeline's methods, an array of n_strings elements by
 * string number. The caller frees the array. Returns NULL when out of memory.
 */
uint8_t *idle_frame_roles(const struct timeline *t);
/*
 * Returns the role of a frame, given its number. kinds is the result of idle_frame_roles, here and
 * below.
 */
enum frame_role idle_role_of_frame(const struct timeline *t, const uint8_t *kinds, uint32_t frame);
/*
 * Returns whether a wait with this stack (TL_NONE: not known) is that of a thread that has nothing
 * to do.
 */
bool idle_is_idle_stack(const struct timeline *t, const uint8_t *kinds, uint32_t stack);
/*
 * Returns the frame that best explains what a stack waits for: the program's frame that called the
 * waiting method or, if the stack has only frames of the JDK, the most informative one of them.
 * Returns TL_NONE for an empty stack.
 */
uint32_t idle_waiting_frame(const struct timeline *t, const uint8_t *kinds, uint32_t stack);
