/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The front end at the other end of net=: receives its commands (HPROF Agent, "Socket Connection")
 * and executes them.
 */
#pragma once

#include "agent/session/session.h"

/*
 * Starts the listening thread when the session's output is a connection. Returns 0, or a negative
 * errno.
 */
int front_start(struct session *s, JNIEnv *jni) must_check;
/* Makes the thread stop accepting commands, after which it ends. Requires the session's lock. */
void front_stop(void);
/* Appends front.* lines. */
void front_status(struct buf *out);
