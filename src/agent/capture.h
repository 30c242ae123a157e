/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the agent can capture: one row each in the table of capture.c, one file each in capture/. session.c calls the rows.
 *
 * Life of a row in a session that wants it: load (once; in the OnLoad phase when the library came at start-up, before any
 * class of the program, else at attach) -> its events are switched on -> start (the VM is live) -> any number of flush, dump
 * and status -> stop -> its events are switched off and no callback of it runs any more -> release. What fails in load or
 * start is told through `why` and the session does not begin. flush, dump, status, stop and release run one at a time, on an
 * attached thread, under the session's lock: they may use JNI and JVM TI, and must not wait for a Java thread.
 */
#pragma once

#include "agent/options.h"
#include "agent/vm.h"
#include "hprof/command.h"

struct session;

enum dump_reason {
    DUMP_EXIT,    /* VM death; the live phase is not over yet */
    DUMP_STOP,    /* the session is stopped in a VM that goes on */
    DUMP_REQUEST, /* SIGQUIT, or the command */
};

struct capture {
    const char *name;        /* in messages and counters: "cpu=samples" is named cpu */
    const char *title;       /* of its section, in the line that verbose=y prints at a dump; NULL: none */
    uint64_t options;        /* the options that it carries out, as bits OPTION_BIT(OPT_X); for messages */
    jvmtiCapabilities needs; /* one missing: the session does not begin, and the message names the option */
    jvmtiCapabilities likes; /* one missing: told by a message */
    const struct vm_callbacks *events;
    bool own_stacks; /* it takes stacks by own_stack.h */

    bool (*wanted)(const struct options *o);
    /* All of these may be NULL. 0 or negative errno with a sentence in `why`. */
    int (*load)(struct session *s, struct buf *why);
    int (*start)(struct session *s, JNIEnv *jni, struct buf *why);
    void (*stop)(struct session *s, JNIEnv *jni);
    void (*release)(struct session *s);
    void (*flush)(struct session *s, JNIEnv *jni); /* ten times a second: from buffers into the recording */
    void (*drain)(struct session *s, JNIEnv *jni); /* between two flushes: what must not wait as long */
    void (*dump)(struct session *s, JNIEnv *jni, enum dump_reason reason); /* HPROF outputs: the section */
    /* A front-end's command over net=; those that are not the row's are passed over. */
    void (*request)(struct session *s, JNIEnv *jni, const struct hprof_request *r);
    void (*status)(struct session *s, struct buf *out); /* lines "NAME.COUNTER N" (proto/control.h) */
};

#define OPTION_BIT(o) (UINT64_C(1) << (o))

/* In the order in which HPROF writes its sections: heap, monitor, sites, samples, times (research: the original's order). */
extern const struct capture *const captures[];
extern const int captures_count;
