/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Takes the captures of a session through their life cycle (capture.h). Everything requires the
 * session's lock.
 */
#pragma once

#include "agent/session/session.h"

/* Returns whether capture i is in one of the session's sets. */
static inline bool captures_has(uint64_t set, int i)
{
    return set >> i & 1;
}

/*
 * The functions check, load and start the captures that the session wants. Each returns 0, or a
 * negative errno with a sentence in why; captures_stop then undoes what was done.
 */
int captures_check(const struct session *s, struct buf *why) must_check;
int captures_load(struct session *s, struct buf *why) must_check;
int captures_start(struct session *s, JNIEnv *jni, struct buf *why) must_check;
/*
 * Calls `later` of the captures that have started (capture.h). captures_start does so itself in a
 * VM that was already running (vm.late).
 */
void captures_start_later(struct session *s, JNIEnv *jni);
/* Ends everything that was begun, in reverse order. jni may be NULL if nothing was started. */
void captures_stop(struct session *s, JNIEnv *jni);
