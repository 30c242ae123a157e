/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of trace= share: method_trace.c is the capture, trace_match.c finds the methods
 * that the patterns mean, and trace_calls.c turns records into events.
 */
#pragma once

#include "agent/capture/trace/budget.h"
#include "agent/capture/trace/drain.h"
#include "agent/capture/trace/methods.h"
#include "agent/capture/trace/open_calls.h"
#include "agent/capture/trace/rules.h"
#include "agent/capture/trace/types.h"
#include "agent/instrument/instrument.h"
#include "agent/instrument/native_calls.h"

#include <pthread.h>

/* A copy of a traced method for the agent's thread, which needs no lock to read it. */
struct method_copy {
    struct traced_method method;
    uint64_t name;    /* 0: not seen yet */
    bool takes_class; /* a parameter is a java.lang.Class */
    unsigned changed; /* method_trace.methods_changed when the copy was made */
};

/* Bytes of the arguments of a call as JSON, and of its result. */
enum { TRACE_VALUES_MAX = 32 << 10 };

extern struct method_trace {
    /* protects what clients of the instrumentation share with the agent's thread */
    pthread_mutex_t lock;
    struct traced_methods methods;
    uint32_t type, unmatched_type;
    /* the patterns, as given at the start and added later, and their conditions */
    struct trace_rules rules;
    const char *exclude;
    struct trace_types types; /* patterns with "implements" */
    bool typed;               /* trace_typed_client is registered */
    /* the recording began in a VM that was already running and had loaded its classes */
    bool live;
    unsigned patterns_changed; /* number of changes */
    _Atomic unsigned methods_changed;
    struct trace_budget budget;
    uint64_t false_condition;
    /*
     * sets of rules: those whose condition some call did not meet, and those of them that were
     * checked for conditions that can never hold
     */
    uint64_t unmet, unmet_seen;
    /*
     * when conditions are next compared with the loaded classes, and the interval until the time
     * after that; in ns
     */
    uint64_t fit_due_ns, fit_wait_ns;
    unsigned fit_changed;
    /* patterns are being added whose condition may still be refused; for the agent's thread */
    bool trying;
    struct open_threads open;
    VEC(struct method_copy) known;
    /* path values of the call that is being written */
    struct buf arguments, returned, exception, message;
    bool has_message; /* which may be empty */
} method_trace;

/* ---- trace_calls.c */

extern const struct jfr_type trace_call_type;
/* Pairs entries with exits and writes each call as an event. On the agent's thread. */
extern const struct drain_reader trace_call_reader;

/* ---- trace_match.c */

/*
 * They insert probes where patterns match: the first by name or annotation, the second by type
 * ("implements"), the third into native methods.
 */
extern const struct instrument_client trace_client, trace_typed_client;
extern const struct native_client trace_native_client;

/* When a condition is compared with the loaded classes. */
enum fit_when {
    FIT_EARLY, /* the program is loading its classes: only what they cannot change counts */
    FIT_NOW,   /* classes that are loaded later are not considered */
    FIT_END,   /* no more classes will be loaded */
};

/*
 * Compares the condition of rule i with the loaded classes: finds paths of fields that none of them
 * has, and enum constants that do not exist. Without the lock, because it searches all classes.
 */
void trace_fit_classes(JNIEnv *jni, unsigned i, enum fit_when when);
/*
 * Returns whether the condition of rule i holds for none of the loaded classes. Then *why explains
 * it, and says whether a class that is loaded later can change it.
 */
bool trace_fits_nothing_loaded(JNIEnv *jni, unsigned i, struct buf *why);
/*
 * Returns true when no call of any method found for rule i can meet the condition. Then *why
 * explains it for one of the methods.
 */
bool trace_is_unsatisfiable(unsigned i, struct buf *why);

typedef void trace_report(void *context, const char *pattern, const char *why);

/* Marks a rule as reported, and calls f with its patterns and the reason why it traces nothing. */
void trace_report_rule(unsigned i, const char *why, trace_report *f, void *context);
/*
 * Calls f with the patterns of each rule whose condition no method can meet, and with each other
 * pattern none of whose methods can meet it, and the reason. unreported: only those for which this
 * was not done before.
 */
void trace_each_unsatisfiable(JNIEnv *jni, enum fit_when when, bool unreported, trace_report *f,
                              void *context);
