/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of the session share. session.c begins and ends the session and answers questions,
 * worker.c is the agent's thread, work.c makes the captures do their work, and notices.c collects
 * what is reported to the user.
 */
#pragma once

#include "agent/session/session.h"
#include "base/clock.h"

#include <pthread.h>
#include <time.h>

enum { SESSION_DRAIN_MS = 50 };

#define SESSION_SAVE_NS (2 * NS_PER_SECOND)

/* Protects the session; held while a capture's functions run. */
extern pthread_mutex_t session_lock;

/* ---- session.c; all with the lock held */

/* Ends the session because its duration is over. */
void session_time_is_over(struct session *s, JNIEnv *jni);

/* ---- worker.c; all with the lock held */

/* Starts the worker. Returns 0 or a negative errno. */
int session_worker_start(JNIEnv *jni) must_check;
/* Makes the worker exit and waits until it has. */
void session_worker_stop(void);
/*
 * Makes the worker exit at the end of the VM without waiting for the session's lock, which the
 * thread that ends the VM holds while it ends the recording. Does not wait.
 */
void session_worker_ends(void);
/*
 * Makes the worker exit at the end of the VM, with vm.dying set, and waits until it has, but not
 * for long: the worker may be unable to run, for example because a debugger has stopped it.
 */
void session_worker_dismiss(void);

/* ---- work.c; with the lock held unless stated otherwise */

/* Returns whether capture i of captures[] has started. */
bool session_capture_on(const struct session *s, int i);
/* Returns whether capture i has started and its functions can be called (capture.h, reachable). */
bool session_capture_reachable(const struct session *s, int i);
/* Calls `drain` of the captures that have started and are not shut. */
void session_drain_captures(struct session *s, JNIEnv *jni);
/* Calls `flush` of the captures that have started. */
void session_flush_captures(struct session *s, JNIEnv *jni);
/*
 * Makes the captures write what they have counted, every SESSION_SAVE_NS or less often, so that
 * this takes at most a fiftieth of this thread's time and, at about 50 bytes per event, 32 KiB of
 * the file per second.
 */
void session_save_captures(struct session *s, JNIEnv *jni);
/*
 * Begins the recording, after all captures have started. Writes what captures recorded before, and
 * which captures only count, with the note that none of their counts are in the recording before
 * its first save.
 */
void session_begin_span(struct session *s);
/*
 * If a capture records so much that ending the recording would take long, shuts all captures now;
 * the recording states this moment as its end. Call it when the end of a recording is requested,
 * from any thread, with or without the lock.
 */
void session_shut_overloaded(void);
/* Flushes the captures and makes them write their sections. Returns 0 or a negative errno. */
int session_dump_captures(struct session *s, JNIEnv *jni, enum dump_reason reason);

/* ---- notices.c */

/* session_dump_captures has printed the beginning of a line on standard error. */
extern bool session_line_open;
/* Appends the messages to an answer. reports: the messages then count as reported to the user. */
void session_put_messages(struct session *s, struct buf *out, bool reports);
