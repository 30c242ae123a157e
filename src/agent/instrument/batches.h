/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How classes are handed to RetransformClasses: in batches that are small enough not to be felt by
 * a program that runs, with pauses between them, and never so often that the VM breaks.
 */
#pragma once

#include "base/strpool.h"

#include <jni.h>
#include <stdbool.h>

struct batches {
    /* false: the VM refuses the batch as a whole */
    bool (*transform)(const jclass *classes, int n);
    void (*one)(jclass class); /* for each class of such a batch */
    /* some fifty times a second while nothing is transformed; may be NULL */
    void (*pause)(JNIEnv *jni);
    void (*progress)(int done, int of); /* after each batch; may be NULL */
};

/*
 * Has the VM transform classes. In a VM that came to life before us a batch stops the program for
 * some milliseconds, and the pauses are so long that one request of a hundred waits for more than 4
 * ms because of it; or shorter, where all pauses together would take over 30 ms a class or 60 s.
 */
void batches_run(JNIEnv *jni, const struct batches *b, const jclass *classes, int n);
/* Lets the program run for so long. False: the VM is ending, and so did the rest. */
bool batches_rest(JNIEnv *jni, void (*pause)(JNIEnv *jni), uint64_t ns);
/* The VM is ending: what is under way leaves the rest as it is. Any thread. */
void batches_end(void);

/*
 * Whether a class can be transformed once more. HotSpot adds the constants of the new code to those
 * of the old one and takes no NaN for equal to another: the number of these doubles each time, and
 * at 65,536 constants the VM hangs in its own loop. Counts the transformations of each class name.
 * `back`: to take probes out, which is always right. Any thread.
 */
bool batches_may_transform(jclass class, struct str name, bool back);
/* Classes that were left alone for that. */
uint64_t batches_left(void);
