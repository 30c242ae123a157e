/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The probe class java/lang/JvmscopeTrace with its rings, threads and classes, shared by the
 * captures that write through it. Records are told apart by their kind: calls (from 0, and their
 * exits) and sites (from HUB_SITE).
 */
#pragma once

#include "agent/capture/trace/ring.h"
#include "agent/session.h"
#include "base/buf.h"
#include "base/strpool.h"
#include "jfr/writer.h"

#include <jni.h>

enum { HUB_SITE = 1 << 24 }; /* a site's number is kind - HUB_SITE */

struct hub_reader {
    bool sites; /* else calls */
    /*
     * One record, which stays until the call returns. False: try it again behind the others of this
     * round.
     */
    bool (*record)(struct jfr_writer *w, const struct trace_record *r);
    /* It was tried again, and false again. NULL: never false. */
    void (*unmatched)(struct jfr_writer *w);
};

/*
 * Defines the probe class and gives threads their rings; each user once. -ENOTSUP with a sentence
 * in why.
 */
int hub_open(const struct hub_reader *reader, struct session *s, JNIEnv *jni,
             struct buf *why) must_check;
/*
 * The recording ends: for all users no call and no site is written any more, and none of them is a
 * loss. Ends of calls that are there still are. Any thread, more than once.
 */
void hub_shut(void);
/* Reads what is left; no more probes of this user may run. */
void hub_close(const struct hub_reader *reader, struct jfr_writer *w, JNIEnv *jni);
/*
 * Hands records to their readers, one call at a time. Asks for the next round at once when much has
 * come meanwhile.
 */
void hub_drain(struct session *s, JNIEnv *jni);
/* The probe class; NULL when it was never defined. */
jclass hub_probe(void);
/* Classes that the probes call themselves: no probe may be in them. */
bool hub_is_used(struct str class_name);

/*
 * For readers, inside `record`: the name of a thread, and the signature of a class number; NULL
 * when not known.
 */
const char *hub_thread_name(int64_t java_id);
const char *hub_class(uint32_t number);
