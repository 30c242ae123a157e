/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the code of loaded classes without changing them. The VM shows a class's code only as part
 * of changing it, and stops the program even if nothing is changed. Classes are therefore passed to
 * it together with one more class that it must reject: it shows the code of all of them, then
 * rejects them all, without stopping anything.
 */
#pragma once

#include <jni.h>
#include <stdbool.h>
#include <stdint.h>

struct scan {
    bool (*transform)(const jclass *classes, int n); /* false: the VM rejects them */
    void (*pause)(JNIEnv *jni);                      /* called between batches; may be NULL */
    jclass refused; /* a class that the class file hook makes the VM reject, see scan_kind */
};

/*
 * Moves the classes that have to be changed to the front of the array and returns their number.
 * Classes whose code the VM does not show are among them.
 */
int scan_loaded(JNIEnv *jni, const struct scan *s, jclass *classes, int n);

/* Why the class file hook is called. */
enum scan_kind {
    SCAN_NONE, /* to change a class, or to load one meanwhile */
    /* to inspect its code: the hook must call scan_report and leave the code unchanged */
    SCAN_CODE,
    SCAN_REFUSED, /* for the class to be rejected: the hook must change its modifiers */
};

/*
 * Returns why the class file hook is called with the class `redefined`; NULL: a class that is being
 * loaded.
 */
enum scan_kind scan_kind(JNIEnv *jni, jclass redefined);
/* Reports whether the class of the last call of scan_kind has to be changed. */
void scan_report(bool changes);
