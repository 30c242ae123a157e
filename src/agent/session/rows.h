/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Takes the captures of a session through their life cycle (capture.h). Everything requires the
 * session's lock.
 */
#pragma once

#include "agent/session/session.h"

/* Returns whether row i is among `rows`, one of the session's sets. */
static inline bool rows_has(uint64_t rows, int i)
{
    return rows >> i & 1;
}

/*
 * The functions check, load and start the rows that the session wants. Each returns 0, or a
 * negative errno with a sentence in why; rows_stop then undoes what was done.
 */
int rows_check(const struct session *s, struct buf *why) must_check;
int rows_load(struct session *s, struct buf *why) must_check;
int rows_start(struct session *s, JNIEnv *jni, struct buf *why) must_check;
/* Does what rows_start has left for later (capture.h). */
void rows_start_later(struct session *s, JNIEnv *jni);
/* Ends everything that was begun, in reverse order. jni may be NULL if nothing was started. */
void rows_stop(struct session *s, JNIEnv *jni);
