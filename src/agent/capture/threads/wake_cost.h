/* SPDX-License-Identifier: Apache-2.0 */
/* How long a thread takes to wake another one. */
#pragma once

#include <stdint.h>

/* Measures that time, in ns, which takes 2 ms. Returns 0 if it cannot be measured. */
uint64_t wake_cost(void);
