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
 * Called at the first event of the calling thread in this capture: the wait that was in progress
 * has ended, at `ready`, or now when that is 0.
 */
void at_start_contact(uint64_t id, uint64_t ready);
/* Called in MonitorWaited, before at_start_contact, with whether the wait ended by its timeout. */
void at_start_timed_out(bool timed_out);
void at_start_flush(JNIEnv *jni);
/* Writes jvmscope.Waiting again for those of these waits that are still in progress. */
void at_start_keep_stacks(void);
void at_start_restate(void);
void at_start_release(void);
