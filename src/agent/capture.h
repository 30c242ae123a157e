/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the agent can capture: one row each in the table of capture.c, one file each in capture/.
 * session.c calls the rows.
 *
 * Life of a row in a session that wants it: check (all rows, before anything else is done) -> load
 * (once; in the OnLoad phase when the library came at start-up, before any class of the program,
 * else at attach) -> its events are switched on -> start (the VM is live) -> any number of flush,
 * save, dump and status -> stop -> its events are switched off and no callback of it runs any more
 * -> release. What fails in check, load or start is told through `why` and the session does not
 * begin. Then stop runs for the rows whose start was called and release for those whose load was
 * called, whether that call succeeded, failed at its first step or half-way: both take back what is
 * there and nothing else. flush, save, dump, status, stop and release run one at a time, on an
 * attached thread, under the session's lock: they may use JNI and JVM TI, and must not wait for a
 * Java thread.
 */
#pragma once

#include "agent/options.h"
#include "agent/vm.h"
#include "hprof/command.h"

struct session;

enum dump_reason {
    /* VM death; the live phase is not over yet, but no collection may be asked for any more */
    DUMP_EXIT,
    DUMP_STOP,    /* the session is stopped in a VM that goes on */
    DUMP_REQUEST, /* SIGQUIT, or the command */
};

struct capture {
    const char *name; /* in messages and counters: "cpu=samples" is named cpu */
    /* of its section, in the line that verbose=y prints at a dump; NULL: none */
    const char *title;
    /* the options that it carries out, as bits OPTION_BIT(OPT_X); for messages */
    uint64_t options;
    /* one missing: the session does not begin, and the message names the option */
    jvmtiCapabilities needs;
    jvmtiCapabilities likes; /* one missing: told by a message */
    const struct vm_callbacks *events;
    bool own_stacks;   /* it takes stacks by own_stack.h */
    bool records_only; /* it needs format=r */

    bool (*wanted)(const struct options *o);
    /* All of these may be NULL. 0 or negative errno with a sentence in `why`. */
    /* whether its options can be carried out; touches nothing */
    int (*check)(const struct options *o, struct buf *why);
    int (*load)(struct session *s, struct buf *why);
    int (*start)(struct session *s, JNIEnv *jni, struct buf *why);
    /*
     * A recording is about to end: what happens from now on is none of it. Whether or not it is on,
     * any thread, more than once, while others of its functions run.
     */
    void (*shut)(void);
    void (*stop)(struct session *s, JNIEnv *jni);
    void (*release)(struct session *s);
    /* ten times a second: from buffers into the recording */
    void (*flush)(struct session *s, JNIEnv *jni);
    /* between two flushes: what must not wait as long */
    void (*drain)(struct session *s, JNIEnv *jni);
    /*
     * Every few seconds, into a recording alone: writes out what is only counted and has changed
     * since the last time, so that a VM that is killed leaves it in the file. Answers how many
     * events it wrote.
     */
    uint64_t (*save)(struct session *s, JNIEnv *jni);
    /* HPROF outputs: the section */
    void (*dump)(struct session *s, JNIEnv *jni, enum dump_reason reason);
    /*
     * The VM is about to end and its collector still works (ending.h): what the dump at DUMP_EXIT
     * needs a collection for.
     */
    void (*ending)(struct session *s, JNIEnv *jni);
    /* A front-end's command over net=; those that are not the row's are passed over. */
    void (*request)(struct session *s, JNIEnv *jni, const struct hprof_request *r);
    /* lines "NAME.COUNTER N" (proto/control.h) */
    void (*status)(struct session *s, struct buf *out);
};

#define OPTION_BIT(o) (UINT64_C(1) << (o))

/*
 * In the order in which HPROF writes its sections: heap, monitor, sites, samples, times (research:
 * the original's order).
 */
extern const struct capture *const captures[];
extern const int captures_count;
