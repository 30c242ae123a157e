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

struct look {
    bool (*transform)(const jclass *classes, int n); /* false: the VM rejects them */
    void (*pause)(JNIEnv *jni);                      /* called between batches; may be NULL */
    jclass refused; /* a class that the class file hook makes the VM reject, see look_kind */
};

/*
 * Moves the classes that are to be changed to the front and returns their number. Classes that the
 * VM does not show are included.
 */
int look_through(JNIEnv *jni, const struct look *l, jclass *classes, int n);

/* Why the class file hook is called. */
enum look_kind {
    LOOK_NOT, /* to change a class, or to load one meanwhile */
    /* to inspect its code: the hook must call look_saw and leave the code unchanged */
    LOOK_CODE,
    LOOK_REFUSED, /* for the class to be rejected: the hook must change its modifiers */
};

enum look_kind look_kind(JNIEnv *jni, jclass redefined);
void look_saw(bool changes);
