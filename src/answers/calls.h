/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that were recorded with their values, for the command and the page. */
#pragma once

#include "analysis/request_groups.h"
#include "base/json.h"
#include "base/strpool.h"
#include "jfr/reader.h"

#include <stdbool.h>

/* Which calls and moments are shown. */
struct call_filter {
    const char *thread, *method;       /* patterns, NULL: all */
    const char *thread_name;           /* exactly, NULL: any */
    const char *typed_name;            /* see call_name_matches() */
    uint64_t limit, min;               /* calls; ns */
    bool threw;                        /* only calls that ended with an exception */
    uint64_t from_ns, to_ns;           /* since the recording's start; 0: all */
    int64_t start_ns;                  /* of the recording, when one of these is given */
    const struct request_times *times; /* only during these requests; NULL: always */
};

/* A call in a recording; the strings live as long as the recording. */
struct call {
    const char *method, *thread, *caller, *returned, *exception, *message;
    /* NULL for a call that the JDK traced, which lacks result, exception and caller as well */
    const char *arguments;
    /* Values were read for the recording for reading_ns, which ns does not contain. */
    int64_t start_ns, ns, reading_ns, java_thread;
    int64_t depth; /* -1: unknown */
    bool has_this;
    char text[1024]; /* the method of a call that the JDK traced */
};

/*
 * The arguments of a call: `this` separately, empty if there is none, and the others without the
 * brackets of their array.
 */
struct call_arguments {
    struct str self, others;
};

/*
 * Returns whether the name of a method, up to its parameters, contains what a user of the page
 * typed, or matches it if that has * or ?. Case does not matter for ASCII letters. NULL matches
 * everything. filterCalls() in web/src/calls.ts follows the same rule.
 */
bool call_name_matches(const char *typed, const char *method);
/* Reads a call from an event of type jvmscope.Call or jdk.MethodTrace. */
void call_read(const struct rec_event *e, struct call *ret);
struct call_arguments call_arguments(const struct call *c);
/* Returns whether the filter selects an event. Fills *ret for a call. */
bool call_filter_passes(const struct call_filter *o, const struct rec_event *event,
                        struct call *ret);
/*
 * Writes a call as an object, with the values as the recording has them, or as strings if they are
 * not valid JSON.
 */
void call_json(const struct call *c, struct json *j);
/*
 * Writes an object {"calls": [as `jvmscope trace --json`, with this, args and return as strings
 * that contain JSON, and with "self_ns", the time that no recorded call directly below took, and
 * "callees", the number of those, and "java_thread", 0 if unknown], "total": how many match the
 * filter, "methods": [{"name", "calls", "total", "self", "max" (ns), "threw"}], "threads":
 * [names]}, with at most o->limit calls. Methods sum up all calls that match, but the total of a
 * method leaves out calls within another one of them, whose time contains theirs. Threads are those
 * of all calls. Returns 0, or a negative errno: -ENOENT, having written nothing, when
 * the file contains no calls.
 */
int calls_page_json(const char *path, const struct call_filter *o, struct json *j) must_check;
