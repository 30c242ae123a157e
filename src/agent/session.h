/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One recording at a time: its options, its output, the captures that are active, and the agent's
 * thread that works for them.
 */
#pragma once

#include "agent/capture.h"
#include "agent/options.h"
#include "agent/out.h"

#include <stdatomic.h>

/*
 * Lets the agent's thread look again at once instead of in a twentieth of a second; for a capture's
 * flush and drain.
 */
void session_hurry(void);

struct session {
    struct options options;
    char *text; /* the options as given */
    struct out out;
    uint64_t wanted; /* rows of captures[], as bits */
    uint64_t loaded; /* those whose load was called */
    uint64_t events; /* those whose events are switched on */
    uint64_t on;     /* those whose start was called */
    uint64_t started_ns;
    uint64_t due_ns; /* when its duration is over, counted from the end of its start; 0: never */
    uint64_t last_work_ns;
    uint64_t last_drain_ns;
    uint64_t save_due_ns; /* when the rows save what they have counted */
    struct buf messages;  /* "message TEXT" lines for the user: fallbacks, missing capabilities */
    unsigned messages_said, messages_told; /* how many there are; how many of them were answered */
    bool running;                          /* captures have started and none has stopped */
    int failure;                           /* the first of session_failed, and what it said */
    char failed[256];
};

/*
 * The session, NULL when none. The callbacks of a capture whose events are on may use it without a
 * lock.
 */
extern struct session *session_now;

/*
 * Begins a session; takes the options over, on failure too. In the OnLoad phase all up to load
 * happens here and the rest in session_vm_init; jni is NULL then. Negative errno with a sentence in
 * why: -EBUSY when there is one already.
 */
int session_begin(struct options *o, const char *text, JNIEnv *jni, struct buf *why) must_check;
/*
 * VMInit: starts what was loaded. Negative errno with a sentence in why; the session is over then.
 */
int session_vm_init(JNIEnv *jni, struct buf *why) must_check;
/* The VM's last shutdown hook: rows do what VMDeath is too late for. */
void session_vm_ending(JNIEnv *jni);
/* VMDeath: what is still in buffers goes out, sections are dumped (doe=y), the output is closed. */
void session_vm_death(JNIEnv *jni);
/* Writes out what there is; -ESRCH when there is no session. */
int session_dump(JNIEnv *jni, enum dump_reason reason, struct buf *why);
/* Calls f under the session's lock, when there is one and its captures run; else -ESRCH. */
int session_run(JNIEnv *jni, void (*f)(struct session *s, JNIEnv *jni, void *context),
                void *context);
/* Starts a thread of the agent's, attached to the VM and a daemon. 0 or -ENOMEM. */
int session_thread(JNIEnv *jni, const char *name, jvmtiStartFunction run, void *context) must_check;
/*
 * The same, and ends the session. What a session that its own duration has ended came to is
 * answered too, once. -ESRCH: there is none of either.
 */
int session_end(JNIEnv *jni, struct buf *why);
/* For a capture's save, between its events: drains the other captures when that is due. */
void session_drain(struct session *s, JNIEnv *jni);
/*
 * Appends control.h's lines from `state` on. tells: the messages in them count as told from here
 * on.
 */
void session_status(struct buf *out, bool tells);
/*
 * From here on jmethodIDs of all prepared classes exist (AsyncGetCallTrace needs them). For `start`
 * of a capture.
 */
int session_need_method_ids(JNIEnv *jni) must_check;
/*
 * Something that the user asked for did not reach its file: the end of the session answers the
 * first such failure. error: negative errno. Adds a line for the user as well. Any thread, not in a
 * signal handler.
 */
void session_failed(struct session *s, int error, const char *format, ...) printf_like(3, 4);
/* Adds a line for the user; at start-up it also goes to standard error. Not in a signal handler. */
void session_message(struct session *s, const char *format, ...) printf_like(2, 3);
/*
 * The same for what a result lacks: it also goes to standard error when the library came at
 * start-up.
 */
void session_warn(struct session *s, const char *format, ...) printf_like(2, 3);
