/* SPDX-License-Identifier: Apache-2.0 */
/* Monitor events of JVM TI. */
#pragma once

#include "agent/capture/threads/waiters.h"
#include "agent/vm/vm.h"
#include "jfr/writer.h"

/*
 * Begins the event of a wait with the fields that all of them have: time, duration, thread, stack
 * and class. False when there is no room.
 */
bool monitor_wait_event_begin(struct jfr_event *e, uint32_t type, uint64_t thread,
                              const struct wait *was, uint64_t ns);
/* Writes jdk.JavaMonitorEnter for a wait of ns by the calling thread. */
void threads_put_monitor_enter(uint64_t thread, const struct wait *how, uint64_t ns);
/* Writes the event of a wait that has ended, of a thread given by its id in the recording. */
void threads_put_wait(uint64_t thread, enum wait_kind kind, const struct wait *was, uint64_t ns,
                      bool timed_out);

extern const struct vm_callbacks thread_monitor_events;
