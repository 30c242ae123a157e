/* SPDX-License-Identifier: Apache-2.0 */
/* Waits in progress, which are written as jvmscope.Waiting. */
#pragma once

#include "agent/capture/threads/waiters.h"

/* Writes jvmscope.Waiting for a wait in progress. Returns false when there is no room. */
bool threads_put_waiting(uint64_t thread, enum wait_kind kind, const struct wait *how);
/*
 * Writes jvmscope.Waiting for all waits that began before a time and have not been
 * reported yet.
 */
void waiting_init(struct jfr_writer *jfr);
void waiting_report_all(uint64_t before);
/*
 * Reports all waits, whether they were reported or not, up to a limit, which is `most` or less. The
 * rest is counted as lost.
 */
void waiting_report_again(uint32_t most);
/*
 * Serve keep_stacks of capture.h: keep the stack of one wait, and the stacks of all waits in
 * progress.
 */
void waiting_keep_stack(struct wait *at);
void waiting_keep_stacks(void);
