/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HPROF outputs report threads that start and end. The threads themselves only leave a note,
 * because they must not wait for an output that a front end delays or to which a heap dump is being
 * written.
 */
#pragma once

#include "agent/session/session.h"
#include "agent/vm/thread_table.h"

/* Leaves a note of each thread that starts or ends. */
extern const struct thread_listener thread_notes;
/*
 * Writes what was noted since the last time. Call it on the agent's thread, or under the session's
 * lock.
 */
void thread_notes_write(struct session *s);
