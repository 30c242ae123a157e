/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The probe class java/lang/JvmscopeTrace with its rings, threads and classes, shared by the
 * captures that write through it. The kind of a record says what it is: a call (from 0, and exits
 * of calls) or a site (from RECORD_SITE).
 */
#pragma once

#include "agent/capture/trace/ring.h"
#include "agent/session/session.h"
#include "base/buf.h"
#include "base/strpool.h"
#include "jfr/writer.h"

#include <jni.h>

enum { RECORD_SITE = 1 << 24 }; /* a site's number is kind - RECORD_SITE */

struct drain_reader {
    bool sites; /* otherwise calls */
    /* Handles one record, which remains valid until the function returns. False: it was lost. */
    bool (*record)(struct jfr_writer *w, const struct trace_record *r);
    /* A record was lost. NULL: this never happens. */
    void (*unmatched)(struct jfr_writer *w);
};

/*
 * Defines the probe class and gives threads their rings; called once by each user. Returns 0, or a
 * negative errno with a sentence in `why`.
 */
int drain_open(const struct drain_reader *reader, struct session *s, JNIEnv *jni,
               struct buf *why) must_check;
/*
 * Begins the recording. In a VM that was already running, probes have written records while classes
 * were changed; these are not written to the recording, and do not count as lost.
 */
void drain_begin(void);
/*
 * Ends the recording: from end_ns on no new call and no record of a site is written for any user,
 * and none of them counts as lost. Exits of calls in progress are still written. Any thread; may be
 * called repeatedly: the first call decides.
 */
void drain_shut(uint64_t end_ns);
/*
 * Returns whether a call is part of the recording: it ended after drain_begin, and began before the
 * end_ns of drain_shut. Both times are the same for the record of a site.
 */
bool drain_is_recorded(uint64_t began_ns, uint64_t ended_ns);
/*
 * Returns whether records arrive so fast that writing the pending ones takes long. From any thread.
 */
bool drain_is_overloaded(void);
/* Reads what is left. No probes of this user may run any more. */
void drain_close(const struct drain_reader *reader, struct jfr_writer *w, JNIEnv *jni);
/*
 * Passes records to their readers. Only one call at a time. Requests the next round at once when
 * many records have arrived meanwhile.
 */
void drain_round(struct session *s, JNIEnv *jni);
/* Returns the probe class; NULL before it is defined. */
jclass drain_probe(void);
/*
 * Returns whether a class is one that the probes call themselves, which therefore must not be
 * instrumented.
 */
bool drain_is_used(struct str class_name);

/*
 * For readers, inside `record`: returns the name that the thread with this Java id had when it
 * wrote the record (a virtual thread: when it first ran), or NULL when it is unknown.
 */
const char *drain_thread_name(int64_t java_id);
/*
 * Returns the name of a thread in the form that events contain: "" for a platform thread without a
 * name and NULL for a virtual one, which readers then name by their numbers. As drain_thread_name.
 */
const char *drain_thread_written(int64_t java_id);
/* Returns the signature of the class with this number, or NULL when it is unknown. */
const char *drain_class(uint32_t number);
