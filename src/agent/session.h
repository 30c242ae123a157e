/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One recording at a time: its options, its output, the captures that are active, and the agent's thread that works for them.
 */
#pragma once

#include "agent/capture.h"
#include "agent/options.h"
#include "agent/out.h"

#include <stdatomic.h>

struct session {
    struct options options;
    char *text; /* the options as given */
    struct out out;
    uint64_t wanted; /* rows of captures[], as bits */
    uint64_t on;     /* those whose events are switched on */
    uint64_t started_ns;
    uint64_t last_work_ns;
    struct buf messages; /* "message TEXT" lines for the user: fallbacks, missing capabilities */
    bool running;        /* captures have started and none has stopped */
};

/* The session, NULL when none. The callbacks of a capture whose events are on may use it without a lock. */
extern struct session *session_now;

/*
 * Begins a session; takes the options over, on failure too. In the OnLoad phase all up to load happens here and the rest in
 * session_vm_init; jni is NULL then. Negative errno with a sentence in why: -EBUSY when there is one already.
 */
int session_begin(struct options *o, const char *text, JNIEnv *jni, struct buf *why) must_check;
/* VMInit: starts what was loaded. Negative errno with a sentence in why; the session is over then. */
int session_vm_init(JNIEnv *jni, struct buf *why) must_check;
/* VMDeath: what is still in buffers goes out, sections are dumped (doe=y), the output is closed. */
void session_vm_death(JNIEnv *jni);
/* Writes out what there is; -ESRCH when there is no session. */
int session_dump(JNIEnv *jni, enum dump_reason reason, struct buf *why);
/* Calls f under the session's lock, when there is one and its captures run; else -ESRCH. */
int session_run(JNIEnv *jni, void (*f)(struct session *s, JNIEnv *jni, void *context), void *context);
/* Starts a thread of the agent's, attached to the VM and a daemon. 0 or -ENOMEM. */
int session_thread(JNIEnv *jni, const char *name, jvmtiStartFunction run, void *context) must_check;
/* The same, and ends the session. */
int session_end(JNIEnv *jni, struct buf *why);
/* Appends control.h's lines from `state` on. */
void session_status(struct buf *out);
/* From here on jmethodIDs of all prepared classes exist (AsyncGetCallTrace needs them). For `start` of a capture. */
int session_need_method_ids(JNIEnv *jni) must_check;
/* Adds a line for the user; at start-up it also goes to standard error. Not in a signal handler. */
void session_message(struct session *s, const char *format, ...) printf_like(2, 3);
