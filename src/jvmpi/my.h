/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the calling thread is doing. It is one variable because each event reads most of it, and the
 * library pays for the address of each thread-local variable separately.
 */
#pragma once

#include <jni.h>
#include <stdatomic.h>
#include <stdbool.h>

struct dumped;
struct known_kind;
struct named;
struct weak_buffer;

struct my {
    /*
     * Says, to other threads, whether this thread is reporting something: an odd number while it
     * does, which is different for each report. It is written with plain stores, because it is
     * seldom read (settle.c).
     */
    _Atomic unsigned *thread_reports;
    unsigned report; /* the last even number */
    int reports;     /* number of layer_report_begin without layer_report_end */
    /*
     * Positive while the layer itself calls Java, or a function of JVM TI that walks the heap or
     * reads a thread's monitors. What the thread allocates and enters meanwhile is not reported.
     * Since JDK 16 such a function first makes, on the thread that calls it, the objects that
     * compiled code has done without, and suspends the threads of that code until it is done. One
     * of these may hold a lock of ids.c, for which an event of such an object would wait forever.
     * These objects are reported when an event is about to name them.
     */
    int quiet;
    int notifying;    /* positive within NotifyEvent */
    int probe_inside; /* positive while a probe's event is handled */
    /* Positive while the agent's own code runs outside handlers, in a function of the interface. */
    int asked;
    int requests;                /* number of RequestEvent in progress */
    int raw_held;                /* number of raw monitors that the thread holds */
    const struct named *named;   /* the objects of the events in progress */
    const struct dumped *dumped; /* what the dump names whose handler runs, or NULL */
    /* The kinds of the two classes of which the thread allocated last (objects.c), or NULL. */
    struct known_kind *recent_kinds[2];
    struct weak_buffer *weak_buffer; /* the thread's (weak_ids.c), or NULL */
    /*
     * The environment with which the agent knows the thread, or NULL. A thread that detaches itself
     * and attaches itself again has another one, and the VM may not have reported its end.
     */
    JNIEnv *known_env;
    bool ending;   /* the thread ends the VM */
    bool replayer; /* the thread reports what existed at the start */
};

extern __thread struct my my;

/*
 * Returns its address. For each use of `my` next to a call the compiler computes the address again,
 * which takes a call as well; the functions that handle an event receive it as an argument instead.
 */
static inline struct my *my_own(void)
{
    struct my *own = &my;
    __asm__("" : "+r"(own)); /* the compiler must not know what it is */
    return own;
}
