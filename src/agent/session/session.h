/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The current recording; there is at most one. It has options, an output, the active captures, and
 * the agent's thread that works for them.
 */
#pragma once

#include "agent/output/out.h"
#include "agent/session/capture.h"
#include "options/options.h"

#include <stdatomic.h>

/*
 * True while the thread that ends the VM waits for the session's lock. Long work in the agent's
 * thread then stops at a point from which that other thread can continue it.
 */
extern atomic_bool session_end_waits;

struct session {
    struct options options;
    char *text; /* the options as given */
    struct out out;
    uint64_t wanted;                 /* the requested captures, as bits */
    uint64_t loaded;                 /* captures whose load was called */
    uint64_t events;                 /* captures whose events are enabled */
    uint64_t on;                     /* captures whose start was called */
    uint64_t capture_started_ns[64]; /* when start was called, by capture */
    uint64_t capture_saved_ns[64];   /* when all of its counts were last saved */
    uint64_t started_ns;             /* when all had started: the beginning of the recording */
    uint64_t span_ns; /* when the captures began to count, in a VM that was already running */
    uint64_t due_ns;  /* when its duration ends, counted from the end of its start; 0: never */
    uint64_t last_work_ns;
    uint64_t last_drain_ns;
    uint64_t save_due_ns; /* when the captures next save what they have counted */
    struct buf messages;  /* "message TEXT" lines for the user: fallbacks, missing capabilities */
    /* how many there are; how many of them were included in answers */
    unsigned messages_count, messages_reported;
    uint64_t chunks; /* of a ring: how many have received the current state */
    bool running;    /* the captures have started and none has stopped */
    /* the first error passed to session_failed, and its text */
    int failure;
    char failed[256];
};

/*
 * The current session, NULL when there is none. Callbacks of an active capture may use it without a
 * lock.
 */
extern struct session *session_now;

/*
 * Begins a session; takes ownership of the options, on failure too. In the OnLoad phase everything
 * up to load is done here and the rest in session_vm_init; jni is NULL then. Returns 0, or a
 * negative errno with a sentence in why (none for some -ENOMEM); -EBUSY when there already is a
 * session or the VM is ending.
 */
int session_begin(struct options *o, const char *text, JNIEnv *jni, struct buf *why) must_check;
/*
 * Starts what was loaded. Called in VMInit. Returns 0, or a negative errno with a sentence in why;
 * the session has then ended.
 */
int session_vm_init(JNIEnv *jni, struct buf *why) must_check;
/* Makes captures do what would be too late in VMDeath. The VM's last shutdown hook calls it. */
void session_vm_ending(JNIEnv *jni);
/* Flushes buffers, dumps sections (doe=y), and closes the output. Called in VMDeath. */
void session_vm_death(JNIEnv *jni);
/*
 * Writes everything recorded so far. Returns 0, or a negative errno with a sentence in why; -ESRCH
 * when there is no session.
 */
int session_dump(JNIEnv *jni, struct buf *why) must_check;
/*
 * Dumps the session for SIGQUIT, whose thread also prints thread dumps and must not wait: does
 * nothing while a recording is being started, ended or dumped.
 */
void session_dump_unless_occupied(JNIEnv *jni);
/*
 * Calls f under the session's lock if there is a session and its captures run. Returns 0, or
 * -ESRCH.
 */
int session_run(JNIEnv *jni, void (*f)(struct session *s, JNIEnv *jni, void *context),
                void *context);
/*
 * Dumps like session_dump, and ends the session. If a session has ended because its duration was
 * over, returns its result instead, once. Returns 0, or a negative errno with a sentence in why;
 * -ESRCH when no session is running and no such result is left.
 */
int session_end(JNIEnv *jni, struct buf *why);
/*
 * Prepares the end of the session: the sender asks about the session before it ends it. If the
 * request to end it does not arrive within ten seconds, the session ends anyway. A ring is left
 * alone, because the sender copies it first.
 */
void session_ending(void);
/* Ends a running session as if it had not begun, and removes its output. */
void session_abandon(JNIEnv *jni);
/*
 * Ends the recording if its time is over. A capture calls this between the records of threads that
 * it reads: when records arrive faster than they can be read, reading may last long. What was
 * recorded until then is still written.
 */
void session_watch_time(const struct session *s);
/*
 * Returns whether the recording was ended early because records arrived faster than they are read.
 */
bool session_is_shut(void);
/* Drains the captures if that is due. A capture's save calls it between its events. */
void session_drain(struct session *s, JNIEnv *jni);
/*
 * Appends the lines of control.h from `state` on. reports: the messages among them then count as
 * reported to the user; ends: those of a recording that has ended do, which belong to the command
 * that reports its end. Does not wait for a start or an end that takes long.
 */
void session_status(struct buf *out, bool reports, bool ends);
/*
 * Makes the VM create the jmethodIDs of all prepared classes, now and when others are prepared,
 * because AsyncGetCallTrace needs them. For `start` of a capture. Returns 0 or a negative errno.
 */
int session_need_method_ids(JNIEnv *jni) must_check;
/*
 * Records that something that the user requested did not reach its file. The first such failure is
 * the result of the session. error: negative errno. Also adds a line for the user. Any thread, but
 * not in a signal handler.
 */
void session_failed(struct session *s, int error, const char *format, ...) printf_like(3, 4);
/*
 * Adds a line for the user, which is also printed on standard error at start-up. Not in a signal
 * handler.
 */
void session_message(struct session *s, const char *format, ...) printf_like(2, 3);
/* Adds a line for the user as session_message does; `jvmscope run` also prints it at once. */
void session_report(struct session *s, const char *format, ...) printf_like(2, 3);
/*
 * Adds a line for the user about something that a result lacks; it is printed on standard error
 * only if the library was loaded at start-up.
 */
void session_warn(struct session *s, const char *format, ...) printf_like(2, 3);
