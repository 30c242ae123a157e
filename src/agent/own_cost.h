/* SPDX-License-Identifier: Apache-2.0 */
/* The agent's account of its own CPU time. */
#pragma once

#include "base/buf.h"

/* A recording begins now. */
void own_cost_start(void);
/*
 * Lines "cost.NAME N": CPU time in ns since own_cost_start of the agent's threads and of its signal
 * handlers, and of the whole process.
 */
void own_cost_status(struct buf *out);
