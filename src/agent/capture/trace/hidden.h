/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Classes of lambdas and method references, and other hidden classes, in which no agent can place
 * probes. Those whose methods the patterns of trace= match are reported as losses.
 */
#pragma once

#include "base/buf.h"
#include "base/strpool.h"

#include <jni.h>
#include <stdbool.h>

/* The classes that were found. All zeros: none. */
struct trace_hidden {
    unsigned n;
    char name[256]; /* of the first, as outputs show it */
    /* Methods of the program, as patterns: what a lambda and a method reference run; or "". */
    char lambda[256], reference[256];
};

/* Adds a class. */
void trace_hidden_add(struct trace_hidden *h, jclass c);
/* Appends how the code of the lambdas and method references can be traced, if there are any. */
void trace_hidden_put_hint(const struct trace_hidden *h, struct buf *why);

/*
 * Finds the loaded classes of the program of which a pattern, which names methods, matches methods
 * whose calls are not recorded. A lambda's class is not among them if the pattern matches what the
 * lambda runs. exclude: that of the option, or NULL.
 */
void trace_hidden_find(JNIEnv *jni, const char *pattern, const char *exclude,
                       struct trace_hidden *ret);

/*
 * Counts such classes as losses: those that are loaded, and each that is created until
 * trace_hidden_off. Returns 0, or the error of vm_events_on.
 */
int trace_hidden_on(JNIEnv *jni) must_check;
void trace_hidden_off(void);
/* Counts the loaded ones again, after the patterns have changed. */
void trace_hidden_count(JNIEnv *jni);
/* Returns whether any was counted since trace_hidden_on. */
bool trace_hidden_any(void);
