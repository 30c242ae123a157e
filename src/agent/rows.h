/* SPDX-License-Identifier: Apache-2.0 */
/* The captures of a session through their lives (capture.h), all under the session's lock. */
#pragma once

#include "agent/session.h"

/* Whether row i is among `rows`, one of the session's sets. */
static inline bool rows_has(uint64_t rows, int i)
{
    return rows >> i & 1;
}

/*
 * Each answers 0 or negative errno with a sentence in why; rows_stop takes back what has begun
 * then.
 */
int rows_check(const struct session *s, struct buf *why) must_check;
int rows_load(struct session *s, struct buf *why) must_check;
int rows_start(struct session *s, JNIEnv *jni, struct buf *why) must_check;
/* Ends what has begun, in reverse. jni may be NULL as long as nothing was started. */
void rows_stop(struct session *s, JNIEnv *jni);
