/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The triggers of a recording, and what the tests of their conditions have measured. The capture
 * triggers/ adds and removes them; callbacks of any thread may read the list.
 */
#pragma once

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
    /* of stops: when the last one ended, and when the last one did that a round has taken */
    _Atomic uint64_t until_ns, taken_until_ns;
    char name[TRIGGER_NAME_SIZE]; /* of the longest, if it has one; protected by measures.c */
    uint64_t counted;             /* the number of events that have been taken into account */
    uint64_t since_ns; /* the time in ns since which the comparison has been true; 0: it is false */
    struct window window;
    struct latency_window *latencies;
    int counter;            /* of exceptions; -1: none */
    bool is_other_reported; /* that the class is no exception */
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
    unsigned number; /* from 1; the number of a removed trigger is reused */
    uint64_t serial; /* never reused */
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
    uint64_t fired, held_back, last_ns;
    _Atomic uint64_t written, failed;
    char last_file[PATH_MAX], last_error[256];
    struct trigger *retired; /* the next in the list of removed triggers whose place was reused */
};

/*
 * Returns trigger i, which may be a removed one that no other has replaced yet; NULL after the
 * last. A caller without the session's lock must call it between triggers_enter and triggers_leave,
 * which any thread may call and which do not wait.
 */
struct trigger *trigger_at(unsigned i);
void triggers_enter(void);
void triggers_leave(void);

/* ---- with the session's lock ---- */
unsigned triggers_count(void);
/*
 * Stores t as trigger i; i may be triggers_count(). Returns the trigger that it replaces, or NULL.
 */
struct trigger *trigger_put(unsigned i, struct trigger *t);
/* Returns whether a caller between triggers_enter and triggers_leave may use a former trigger. */
bool triggers_are_read(void);
/* Makes the list empty. f, which may be NULL, receives each trigger that was in it. */
void triggers_clear(void (*f)(struct trigger *t));
