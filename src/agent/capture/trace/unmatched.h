/* SPDX-License-Identifier: Apache-2.0 */
/* The patterns of trace= that trace nothing, or not all that they mean. */
#pragma once

#include "agent/capture/trace/explain.h"

/* Receives such a pattern, and the reason. */
typedef void trace_unmatched(void *context, const char *pattern, enum trace_result traced,
                             const char *why);

/*
 * Calls f with each pattern that so far has traced nothing, or not all that it means, and the
 * reason. among: a list of the only patterns to consider, or NULL for all. Without the lock,
 * because it searches all classes.
 */
void trace_each_unmatched(JNIEnv *jni, const char *among, trace_unmatched *f, void *context);
