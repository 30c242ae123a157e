/* SPDX-License-Identifier: Apache-2.0 */
/* The time that waking another thread takes. */
#pragma once

#include <stdint.h>

/*
 * The time in ns that a thread spends on waking another one; measured by the call,
 * which takes 2 ms. 0: unknown.
 */
uint64_t wake_cost(void);
