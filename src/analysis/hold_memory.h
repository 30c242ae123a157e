/* SPDX-License-Identifier: Apache-2.0 */
/* The memory of holds while they are collected (holds.c). */
#pragma once

#include "analysis/holds.h"

/*
 * Reserves addresses for the largest possible number of holds: one per node, plus chunks that are
 * not full. Returns 0 or -ENOMEM; holds_release frees them in either case.
 */
int holds_reserve(struct holds *h, const struct timeline *t, bool links) must_check;
/* Reports how many slots are in use. */
void holds_filled(struct holds *h, size_t slots);
/* Reports that no more slots will be used. */
void holds_complete(struct holds *h);
