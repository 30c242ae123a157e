/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the agent can capture. Each capture is a row of captures[], listed in capture_list.h, and is
 * defined in a file or folder of capture/ ("control" in control/). The files of session/ call the
 * captures.
 *
 * Life cycle of a capture in a session that requests it: check (of all captures, before anything
 * else is done) -> load (once; in the OnLoad phase when the library was loaded at start-up, before
 * any class of the program; otherwise at attach) -> its events are enabled -> start (the VM is
 * live) -> any number of flush, save, dump and status -> stop -> its events are disabled and none
 * of its callbacks runs any more -> release. A failure in check, load, start or begin is reported
 * through `why`, and the session does not begin. In that case stop runs for the captures whose
 * start was called and release for those whose load was called, whether that call succeeded or
 * failed at any of its steps: both undo only what has been done. flush, save, dump, status, stop
 * and release run one at a time, on an attached thread, under the session's lock. They may use JNI
 * and JVM TI, and must not wait for a Java thread.
 */
#pragma once

#include "agent/vm/vm.h"
#include "hprof/command.h"
#include "options/options.h"

struct session;

enum dump_reason {
    /* VM death; still in the live phase, but collections can no longer be requested */
    DUMP_EXIT,
    DUMP_STOP,    /* the session is stopped and the VM continues */
    DUMP_REQUEST, /* SIGQUIT, or a request by the command */
};

/* The setting events of the VM's Flight Recorder; those of our recording are about our own. */
#define JDK_SETTINGS "jdk.ActiveSetting"

struct capture {
    const char *name; /* used in messages and counters: "cpu=samples" is named cpu */
    /* title of its section, in the line that verbose=y prints at a dump; NULL: none */
    const char *title;
    /* the options that it implements, as OPTION_BIT of each; for messages */
    uint64_t options;
    /* capabilities without which the session does not begin; the message names the option */
    jvmtiCapabilities needs;
    jvmtiCapabilities likes; /* capabilities whose absence is reported by a message */
    const struct vm_callbacks *events;
    bool own_stacks;   /* it reads stacks with own_stack.h */
    bool records_only; /* it requires format=r */
    /*
     * Its start and stop change loaded classes, which in a VM that runs already takes many seconds:
     * it starts before the other captures and stops after them.
     */
    bool changes_classes;
    /*
     * Names of events of the VM's Flight Recorder, each followed by a space, that it writes itself:
     * with jfr= those of the recorder are left out.
     */
    const char *jdk_events;

    bool (*wanted)(const struct options *o);
    /*
     * All functions below may be NULL. Those that have `why` return 0, or a negative errno with a
     * sentence in it.
     */
    /* checks whether its options can be carried out; has no side effects */
    int (*check)(const struct options *o, struct buf *why);
    int (*load)(struct session *s, struct buf *why);
    int (*start)(struct session *s, JNIEnv *jni, struct buf *why);
    /*
     * All captures have started, and the recording begins: in a VM that was already running
     * (vm.late), a capture has counted since its start what happened while classes were changed. A
     * capture that changes classes and has this function records nothing of that time. For the
     * other captures the recording states when they began (session/work.c).
     */
    int (*begin)(struct session *s, JNIEnv *jni, struct buf *why);
    /*
     * The part of start that the program need not wait for. At the start of a VM the agent's thread
     * calls it before its first round, or never if the recording ends before that; in a VM that was
     * running it follows begin.
     */
    void (*later)(struct session *s, JNIEnv *jni);
    /*
     * Called when the recording ends; what begins after end_ns is not part of it. Captures that
     * record events with times need this, because they would otherwise continue while other
     * captures write their final counts.
     */
    void (*shut)(uint64_t end_ns);
    /*
     * Returns true if the capture records so much that the recording would never end otherwise. The
     * recording is then shut as soon as its end is requested. Called from any thread, also when the
     * capture is off.
     */
    bool (*overloaded)(void);
    /*
     * For captures that share a lock with threads of the program, which may be stopped while they
     * hold it (patience.h). Returns whether the lock is free, and waits a while for it. Until then
     * flush, save, prepare and dump are not called, nor, at the end of the VM, any other function.
     */
    bool (*reachable)(void);
    /*
     * an enum jfr_loss: milliseconds that are lost when a recording ends while it is not reachable
     */
    unsigned unsaved;
    void (*stop)(struct session *s, JNIEnv *jni);
    void (*release)(struct session *s);
    /*
     * For captures whose functions the program calls. Returns whether all these calls have ended
     * since stop(). Until then release() is not called, the recording's writer is not freed, and
     * the capture is not loaded again.
     */
    bool (*is_idle)(void);
    /* ten times a second: moves data from buffers into the recording */
    void (*flush)(struct session *s, JNIEnv *jni);
    /* between two flushes: handles what must not wait as long */
    void (*drain)(struct session *s, JNIEnv *jni);
    /*
     * Every two seconds, or less often when it takes long (SESSION_SAVE_NS), for recordings only:
     * writes what is only counted and has changed since the last time, so that the file contains it
     * if the VM is killed. Returns the number of events written, and clears *ret_all when it left
     * some for a later time.
     */
    uint64_t (*save)(struct session *s, JNIEnv *jni, bool *ret_all);
    /*
     * The capture whose counts save writes, as jvmscope.Counted events name it ("times"); NULL:
     * none of its figures depends on save.
     */
    const char *counts;
    /*
     * A new chunk of a ring has begun: writes the events again that say what holds now, because the
     * chunk that has them may be overwritten.
     */
    void (*restate)(struct session *s, JNIEnv *jni);
    /*
     * Memory for stacks is about to be used again (jfr_traces_due): passes the stacks that the
     * capture still needs to jfr_trace_keep.
     */
    void (*keep_stacks)(struct session *s, JNIEnv *jni);
    /*
     * Before the dumps of all captures: does what takes long, so that the figures that these then
     * write are of the same moment.
     */
    void (*prepare)(struct session *s, JNIEnv *jni, enum dump_reason reason);
    /* HPROF outputs: writes the section */
    void (*dump)(struct session *s, JNIEnv *jni, enum dump_reason reason);
    /*
     * The VM is about to end and its collector still works (ending.h): does the part of the dump at
     * DUMP_EXIT that needs a collection.
     */
    void (*ending)(struct session *s, JNIEnv *jni);
    /* A front end's command over net=; commands for other captures are ignored. */
    void (*request)(struct session *s, JNIEnv *jni, const struct hprof_request *r);
    /* appends lines "NAME.COUNTER N" (options/control.h) */
    void (*status)(struct session *s, struct buf *out);
};

#define OPTION_BIT(o) (UINT64_C(1) << (o))
_Static_assert(OPTION_COUNT <= 64, "a set of options has a bit for each");

/* The captures in the order of capture_list.h. */
#define CAPTURE(name) extern const struct capture capture_##name;
#include "agent/session/capture_list.h"
#undef CAPTURE

#define CAPTURE(name) +1

enum {
    captures_count =

#include "agent/session/capture_list.h"
};
#undef CAPTURE
extern const struct capture *const captures[captures_count];
