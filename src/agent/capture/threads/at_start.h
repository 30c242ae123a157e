/* SPDX-License-Identifier: Apache-2.0 */
/* Waits that are in progress when the capture begins. */
#pragma once

#include "agent/session/session.h"

/*
 * Records waits that are in progress when the capture begins, at `since`. Called once
 * natives are bound and events are enabled.
 */
void at_start_record(JNIEnv *jni, uint64_t since);
/*
 * Ends the wait in which the calling thread, with this id, was when the capture began. ready: when
 * it ended; 0: now. Called at the thread's first event in this capture.
 */
void at_start_contact(uint64_t id, uint64_t ready);
/*
 * Stores whether the wait that at_start_contact is about to end has ended by its timeout. Called in
 * MonitorWaited, before at_start_contact.
 */
void at_start_timed_out(bool timed_out);
void at_start_flush(JNIEnv *jni);
/* Keeps the stacks of the waits above that are still in progress (waiting_keep_stack). */
void at_start_keep_stacks(void);
/* Writes jvmscope.Waiting again for the waits that are still in progress. */
void at_start_restate(void);
void at_start_release(void);
