/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The probes of instrumented code: one client of the instrumentation, which inserts what the
 * enabled events need.
 */
#pragma once

#include "jvmpi/layer.h"
#include "jvmpi/threads.h"

enum probe_feature {
    PROBE_METHODS = 1,      /* entries and exits */
    PROBE_MONITORS = 2,     /* exits of monitors */
    PROBE_INSTRUCTIONS = 4, /* each instruction */
    PROBE_ALLOCATIONS = 8,  /* new objects and arrays */
};

/* Announces features that the next probes_enable will insert. */
void probes_expect(unsigned features);
/*
 * Inserts the probes of these features into all classes. Returns JVMPI_SUCCESS, or JVMPI_FAIL with
 * a line on standard error.
 */
jint probes_enable(JNIEnv *env, unsigned features);

/*
 * Makes the probe class bind native methods to ours, because the VM warns when a class that is not
 * of the boot loader does so.
 */
enum probe_binding { BIND_SLEEP, BIND_ALL };

void probes_bind(JNIEnv *env, enum probe_binding which);
/* Called by the probe class. */
void sleep_bind(JNIEnv *env);
void methods_bind(JNIEnv *env);
/* Sets the flags that probes check before they call, according to the enabled events. */
void probes_flags(void);
/* Changes the number of threads that contend for a monitor. */
void probes_contenders(int change);

/*
 * Returns the method for a number passed by a probe, or NULL. The probe must have called the caller
 * of this function directly.
 */
jmethodID probe_method(uint32_t number);

/* Returns whether a method is one of the probe class. */
bool probe_is_own(jmethodID method);

/* The operands of an instrumented switch. */
struct probe_switch {
    jint low, high; /* tableswitch */
    jint n;         /* lookupswitch: its pairs */
    const jint *keys;
};

struct probe_switch probe_switch(jint number);

/*
 * Returns true when this thread may send an event about the running code: the agent knows the
 * thread, and neither the layer nor a handler is running. own: the calling thread's.
 */
static inline bool probe_may_report(const struct my *own, JNIEnv *env)
{
    return !own->probe_inside && !own->quiet &&
           (likely(own->known_env == env) || thread_known(env));
}

/* The VM finds these functions by name. */
#define PROBE_NATIVE(type, name) EXPORT type JNICALL Java_java_lang_JvmscopeJvmpi_##name
