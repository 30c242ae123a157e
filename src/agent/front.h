/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The front-end at the other end of net=: takes its commands (HPROF Agent, "Socket Connection") and
 * has them carried out.
 */
#pragma once

#include "agent/session.h"

/*
 * Starts the thread that listens, when the session's output is a connection. 0 or negative errno.
 */
int front_start(struct session *s, JNIEnv *jni) must_check;
/* The thread takes no more commands; it goes on its own. Under the session's lock. */
void front_stop(void);
/* Appends front.* lines. */
void front_status(struct buf *out);
