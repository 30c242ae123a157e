/* SPDX-License-Identifier: Apache-2.0 */
/* locks=: who holds the monitors of some classes, exactly. */
#pragma once

#include "agent/capture/threads/waiters.h"

/*
 * locks_on begins to record holds of the monitors of the classes that the patterns match; it
 * returns 0 or a negative errno. locks_wait and locks_waited mark where wait() releases a monitor
 * and acquires it again.
 */
int locks_on(const char *patterns, JNIEnv *jni, struct buf *why) must_check;
void locks_off(JNIEnv *jni);
void locks_wait(struct waiter *w, uint64_t class, uint32_t object, uint64_t now);
void locks_waited(struct waiter *w, uint64_t class, uint32_t object, uint64_t now);
/*
 * Returns the constant that holds of monitors have as their class: those of the instances of a
 * class, or that of its object. 0 if these holds are not recorded.
 */
uint64_t locks_constant(JNIEnv *jni, jclass class, bool object);
/*
 * locks_arriving is called when the calling thread is about to enter a monitor. locks_arrived
 * returns when that was, in ns; 0: unknown, or too long ago.
 */
void locks_arriving(struct waiter *w, uint32_t object, uint64_t now);
uint64_t locks_arrived(const struct waiter *w, uint32_t object);
void locks_entered(struct waiter *w, uint64_t class, uint32_t object, uint64_t trace, uint64_t now);
void locks_left(struct waiter *w, uint32_t object, uint64_t now);
/* locks_jni.c */
int locks_jni_on(struct buf *why) must_check;
void locks_jni_off(void);
uint64_t locks_count(void);
uint64_t locks_lost(void);
