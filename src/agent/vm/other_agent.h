/* SPDX-License-Identifier: Apache-2.0 */
/* Another build of the agent in the same VM. */
#pragma once

#include "base/buf.h"
#include "base/macro.h"

/*
 * Fails if another build of the agent is loaded in this process: -EEXIST with a sentence in why.
 * Both would define probe classes of the same names, and the VM looks up native methods by name in
 * the first agent that has them, so the probes of one would use the memory of the other. Returns 0
 * otherwise. Any thread.
 */
int other_agent_check(struct buf *why) must_check;
