/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Triggers of a recording that is always on: conditions that are evaluated ten times a second, and
 * the actions that are carried out when one of them holds. measures.c takes the measurements,
 * firings.c carries out the actions, and triggers.c is the capture, whose functions run under the
 * session's lock.
 */
#pragma once

#include "agent/capture/alarms/trigger.h"
#include "agent/session/session.h"
#include "options/options.h"

/* ---- measures.c ---- */
/*
 * Begins to measure the tests of a trigger and activates it. Returns 0 or a negative errno, which
 * is -ENOTSUP, with a sentence in `why`, when the session cannot measure one of them.
 */
int measures_begin(struct trigger *t, struct session *s, JNIEnv *jni, struct buf *why) must_check;
void measures_end(struct trigger *t, JNIEnv *jni);
/* Called once in each round, before the conditions are evaluated. */
void measures_read(struct session *s, uint64_t now);
/* Measures the tests of a trigger. */
void measures_of(struct trigger *t, uint64_t now);
/*
 * Stores what made the condition hold, "612 ms: GET /cart", and its short form for file names,
 * "request".
 */
void measures_report(struct trigger *t);
/* Disables the events and callbacks that measures_begin has enabled. */
void measures_stop(JNIEnv *jni);

/* ---- exceptions.c ---- */
/*
 * Counts objects of a class and its subclasses as they are constructed. Returns the number of the
 * counter, or a negative errno with a sentence in `why` (none for -ENOMEM).
 */
int exception_counter(JNIEnv *jni, const char *class_name, struct buf *why) must_check;
uint64_t exception_count(int counter);
/* Returns whether the VM has loaded a class of the counter's name; true for a negative number. */
bool exception_class_seen(int counter);
/*
 * Returns whether a counter cannot count anything: its class is not loaded, or is not an exception.
 * If so, `why` receives a sentence with the class that may be meant. tense: how the sentence says
 * that no such class is loaded ("is loaded so far").
 */
bool exception_is_unsatisfiable(JNIEnv *jni, int counter, const char *tense, struct buf *why);
/* Returns whether objects of the class turned out not to be exceptions. Does not use JNI. */
bool exception_is_other(int counter);
void exception_counters_stop(JNIEnv *jni);

/* ---- firings.c ---- */
/*
 * Returns 0 if files can be written where the pattern puts them, as far as this is known now; else
 * a negative errno with a sentence in `why`.
 */
int firings_check_folder(const char *pattern, struct buf *why) must_check;
int firings_start(JNIEnv *jni) must_check;
/* Has the actions of a trigger carried out, by a thread of its own. */
void firings_take(struct session *s, struct trigger *t);
/* Carries out the actions that are still due, and ends the thread. */
void firings_stop(struct session *s, JNIEnv *jni);
/*
 * Copies what is shown of a trigger's last file and error. Returns whether that file is still
 * there.
 */
bool firings_last(const struct trigger *t, char file[PATH_MAX], char error[256]);

/* ---- run.c ---- */
struct ran {
    int pid; /* 0: none */
};

/*
 * Starts /bin/sh -c COMMAND with these variables added to the environment ("NAME=VALUE"), without
 * any of the process's descriptors, in a session of its own. Does not wait. Returns 0, or a
 * negative errno.
 */
int run_command(const char *command, char *const *variables, size_t n, struct ran *ret) must_check;
/* Returns whether the command is still running; otherwise *ret_status receives its exit status. */
bool run_is_alive(struct ran *r, int *ret_status);

/* ---- triggers.c ---- */
/*
 * Adds the triggers of a message's options to a recording that is always on, or removes all for
 * `none`. Returns 0, or a negative errno with a sentence in `why`; no trigger is added then.
 */
int triggers_change(struct session *s, JNIEnv *jni, const struct options *o,
                    struct buf *why) must_check;
