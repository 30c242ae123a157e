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
 * The calling thread has its first event of this capture: the wait that it was in has ended, at
 * `ready`, or now when that is 0.
 */
void at_start_contact(uint64_t id, uint64_t ready);
/* Called before that, in MonitorWaited: whether the wait ended by its timeout. */
void at_start_timed_out(bool timed_out);
void at_start_flush(JNIEnv *jni);
/* Writes jvmscope.Waiting again for those of them that go on. */
void at_start_keep_stacks(void);
void at_start_restate(void);
void at_start_release(void);
