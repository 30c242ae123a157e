/* SPDX-License-Identifier: Apache-2.0 */
/* deadlock=y: the search for deadlocks. */
#pragma once

#include "agent/session/session.h"

/* Requests what the search needs, if deadlock=y was given. Returns 0 or a negative errno. */
int deadlock_watch_load(struct session *s, struct buf *why) must_check;
/*
 * Starts the search. always: it runs rarely, so that it may go on for months. Returns 0, or a
 * negative errno with a sentence in `why`.
 */
int deadlock_watch_start(JNIEnv *jni, bool always, struct buf *why) must_check;
/* Begins the search in a recording of threads that is already in progress. */
int deadlock_watch_begin(JNIEnv *jni, struct buf *why) must_check;
void deadlock_watch_status(struct buf *out);
void deadlock_watch_stop(JNIEnv *jni);
/* Returns whether an object is a synchronizer that has an owner. */
bool deadlock_watch_owned(JNIEnv *jni, jobject blocker);
/* Returns how many deadlocks have been found. */
uint64_t deadlock_watch_found(void);
