/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Triggers of a recording that is always on: conditions that are evaluated ten times a second, and
 * the actions that are carried out when one of them holds. measures.c takes the measurements,
 * firings.c carries out the actions, and triggers.c is the capture, whose functions run under the
 * session's lock.
 */
#pragma once

#include "agent/session/session.h"
#include "options/options.h"
#include "options/trigger_condition.h"

#include <limits.h>
#include <stdatomic.h>

/*
 * TRIGGERS_AT_ONCE: how many triggers a recording may have at a time. WINDOW_SLOTS: readings in a
 * window.
 */
enum { TRIGGERS_AT_ONCE = 64, WINDOW_SLOTS = 10 };

/* A growing number, read at equal intervals of time. */
struct window {
    double value[WINDOW_SLOTS];
    uint64_t read_ns[WINDOW_SLOTS];
    uint64_t next_ns; /* when the next reading is due */
    unsigned n, at;   /* the number of readings, and the index of the next one */
};

/* Latencies of the last ten seconds. */
struct latency_window;

/* The state of a test. */
struct measured {
    /*
     * Written by callbacks: the longest time since the last round, and the number of times that
     * were too long.
     */
    _Atomic uint64_t longest_ns;
    char name[TRIGGER_NAME_SIZE]; /* of the longest, if it has one; protected by measures.c */
    uint64_t counted;             /* the number of events that have been taken into account */
    uint64_t since_ns; /* the time in ns since which the comparison has been true; 0: it is false */
    struct window window;
    struct latency_window *latencies;
    int counter;            /* of exceptions; -1: none */
    bool is_other_reported; /* the user knows that the class is not an exception */
    double value;           /* as measured in the last round */
    /* a rate that was measured for less than its unit of time, so that `value` is a lower bound */
    bool partial;
    bool holds;
};

struct trigger {
    char *text;
    struct trigger_condition *condition;
    char *actions[ACTIONS_MAX];
    unsigned n_actions;
    unsigned number; /* 1 and up; that of a removed trigger is given again */
    uint64_t serial; /* is not given again */
    char *pattern;   /* of the names of files */
    uint64_t before_ns, after_ns, max_files;
    _Atomic bool active; /* it has not been removed */
    struct measured tests[LOGIC_NODES];
    bool held; /* whether the condition held in the last round */
    /*
     * when the trigger was added or, if it has fired, when it last fired; `every` counts from here
     */
    uint64_t started_ns;
    /* The trigger has fired and its actions are not over yet. */
    _Atomic bool busy;
    bool due; /* its actions wait until the recording covers the requested time after the cause */
    uint64_t fired_ns, due_ns, taken_ns;
    char reason[32], measured[320];
    /* What status shows. last_file and last_error are protected by firings.c. */
    uint64_t fired, held_back, last_ms;
    _Atomic uint64_t written, failed;
    char last_file[PATH_MAX], last_error[256];
    struct trigger *retired; /* the next removed trigger in the list of those that were replaced */
};

/*
 * Returns trigger i, which may be a removed one that no other has replaced yet; NULL after the
 * last. A caller without the session's lock must call it between triggers_enter and triggers_leave,
 * which any thread may call and which do not wait.
 */
struct trigger *trigger_at(unsigned i);
void triggers_enter(void);
void triggers_leave(void);

/* ---- measures.c ---- */
/*
 * Begins to measure the tests of a trigger and activates it. Returns 0, or -ENOTSUP with a sentence
 * in `why` when the session cannot measure one of them.
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
 * counter, or a negative errno with a sentence in `why`.
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
