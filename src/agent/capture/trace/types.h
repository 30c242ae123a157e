/* SPDX-License-Identifier: Apache-2.0 */
/* "implements pkg.Type" among trace's patterns: which classes are below such a type. Not for two threads at once. */
#pragma once

#include "base/map.h"
#include "base/strpool.h"

#include <jni.h>
#include <stdbool.h>

enum { TRACE_TYPES_MAX = 64 };

struct trace_types {
    char *names[TRACE_TYPES_MAX]; /* pkg.Type */
    unsigned n_names;
    jclass classes[TRACE_TYPES_MAX]; /* global; of several loaders too */
    unsigned n_classes;
    struct map below; /* hash of a class's name -> 1 */
};

/* Takes the types of the patterns, finding those that are loaded. How many types there are; -ENOMEM. */
int trace_types_set(struct trace_types *t, const char *patterns, JNIEnv *jni) must_check;
/* Learns of a loaded class: it is one of the types, or below one. */
void trace_types_look(struct trace_types *t, JNIEnv *jni, jclass class, struct str name);
bool trace_types_has(const struct trace_types *t, struct str name);
void trace_types_release(struct trace_types *t, JNIEnv *jni);
