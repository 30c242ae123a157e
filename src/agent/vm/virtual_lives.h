/* SPDX-License-Identifier: Apache-2.0 */
/* How long virtual threads have lived without a carrier, which samplers cannot see. */
#pragma once

#include <jni.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * Begins counting; virtual_threads_on() must be in effect. Returns false when this VM does not
 * report when virtual threads begin and end. Requires the session's lock.
 */
bool virtual_lives_start(JNIEnv *jni);
/* Ends counting. */
void virtual_lives_off(void);
/*
 * Returns the time in ms since virtual_lives_start for which virtual threads were alive and not
 * mounted, summed over them. Threads that existed before and that the JDK neither lists nor counts
 * are left out.
 */
uint64_t virtual_lives_unmounted_ms(void);
