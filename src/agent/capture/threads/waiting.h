/* SPDX-License-Identifier: Apache-2.0 */
/* Waits in progress, which are written as jvmscope.Waiting. */
#pragma once

#include "agent/capture/threads/waiters.h"

/* Writes jvmscope.Waiting for a wait in progress. Returns false when there is no room. */
bool threads_put_waiting(uint64_t thread, enum wait_kind kind, const struct wait *how);
/* Defines the constants of these events in a recording that begins. */
void waiting_init(struct jfr_writer *jfr);
/* Writes jvmscope.Waiting for all waits that began before a time and were not reported yet. */
void waiting_report_all(uint64_t before);
/*
 * Reports all waits, whether they were reported or not, up to a limit, which is `most` or less. The
 * rest is counted as lost.
 */
void waiting_report_again(uint32_t most);
/*
 * For keep_stacks of capture.h: waiting_keep_stack keeps the stack of one wait, waiting_keep_stacks
 * those of all waits in progress.
 */
void waiting_keep_stack(struct wait *at);
void waiting_keep_stacks(void);
