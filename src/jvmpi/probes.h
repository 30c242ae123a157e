/* SPDX-License-Identifier: Apache-2.0 */
/* What instrumented code tells: one client of the instrumentation, which inserts what the enabled events need. */
#pragma once

#include "jvmpi/layer.h"

enum probe_feature {
    PROBE_METHODS = 1,      /* entries and exits */
    PROBE_MONITORS = 2,     /* exits of monitors */
    PROBE_INSTRUCTIONS = 4, /* each instruction */
    PROBE_ALLOCATIONS = 8,  /* new objects and arrays */
};

/* What is to be inserted from the next probes_enable on, without doing it yet. */
void probes_expect(unsigned features);
/* Inserts the probes of these features into all classes, once; JVMPI_SUCCESS or JVMPI_FAIL with a line on standard error. */
jint probes_enable(JNIEnv *env, unsigned features);
/* The probe class, once probes_enable or probes_class has succeeded; NULL when the VM refuses it. */
jclass probes_class(JNIEnv *env);

/* Has the probe class bind native methods to ours, for the VM complains when a class of another than the boot loader does. */
enum probe_binding { BIND_SLEEP, BIND_ALL };

void probes_bind(JNIEnv *env, enum probe_binding which);
/* What it then calls. */
void sleep_bind(JNIEnv *env);
void methods_bind(JNIEnv *env);
/* Sets what the probes look at before they call, by the enabled events. */
void probes_flags(void);
/* How many threads contend for a monitor. */
void probes_contenders(int change);

/* The method of a number that a probe passes; the probe must have called the caller of this directly. NULL: not known. */
jmethodID probe_method(uint32_t number);

/* A switch that was instrumented: what its operands are. */
struct probe_switch {
    jint low, high; /* tableswitch */
    jint n;         /* lookupswitch: its pairs */
    const jint *keys;
};

struct probe_switch probe_switch(jint number);

/* True when this thread is to send an event of the code that runs: it is known, and neither the layer nor a handler runs. */
bool probe_may_tell(JNIEnv *env);
extern __thread int probe_inside; /* a handler of such an event runs */

/* The VM finds them by name. */
#define PROBE_NATIVE(type, name) EXPORT type JNICALL Java_java_lang_JvmscopeJvmpi_##name
