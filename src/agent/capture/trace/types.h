/* SPDX-License-Identifier: Apache-2.0 */
/*
 * "implements pkg.Type" among the patterns of trace=: which classes are subtypes of such a type.
 * Not thread-safe.
 */
#pragma once

#include "agent/capture/trace/rules.h"
#include "base/map.h"
#include "base/strpool.h"

#include <jni.h>
#include <stdbool.h>

enum { TRACE_TYPES_MAX = 64 };

/*
 * Any threads may call trace_types_on_class and trace_types_rules, also while trace_types_set
 * replaces the patterns. So names and classes are only added, until trace_types_release, when no
 * other thread uses them.
 */
struct trace_types {
    char *names[TRACE_TYPES_MAX];    /* pkg.Type */
    uint64_t rules[TRACE_TYPES_MAX]; /* those of its patterns, as a set (rules.h); 0: none now */
    _Atomic unsigned n_names;
    jclass classes[TRACE_TYPES_MAX]; /* global references; several loaders may have the type */
    uint64_t class_rules[TRACE_TYPES_MAX];
    unsigned n_classes;
    /* hash of a class's name -> the rules of its supertypes among these types, as a set */
    struct map below;
};

/*
 * Replaces the types by those of the patterns and finds those that are loaded. Returns the number
 * of such patterns; -ENOMEM, or -ENOSPC after TRACE_TYPES_MAX types.
 */
int trace_types_set(struct trace_types *t, const struct trace_patterns *patterns,
                    JNIEnv *jni) must_check;
/* Notes a loaded class that is one of the types or a subtype of one. */
void trace_types_on_class(struct trace_types *t, JNIEnv *jni, jclass class, struct str name);
/* Returns the rules of the types of which a class is a subtype, as a set; 0: none. */
uint64_t trace_types_rules(const struct trace_types *t, struct str name);
void trace_types_release(struct trace_types *t, JNIEnv *jni);
