/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looking at the code of loaded classes without changing them. The VM shows a class's code on the
 * way to changing it alone, and stops the program even when nobody changes anything. So classes are
 * handed to it together with one more that it must refuse: it shows the code of all, then refuses
 * them all, and stops nothing.
 */
#pragma once

#include <jni.h>
#include <stdbool.h>
#include <stdint.h>

struct look {
    bool (*transform)(const jclass *classes, int n); /* false: the VM refuses them */
    void (*pause)(JNIEnv *jni);                      /* while nothing is looked at; may be NULL */
    jclass refused; /* one that the class file hook makes the VM refuse, see look_kind */
};

/*
 * Moves the classes that are to be changed to the front and returns how many they are. Classes that
 * the VM does not show are among them.
 */
int look_through(JNIEnv *jni, const struct look *l, jclass *classes, int n);

/* What the class file hook is called for. */
enum look_kind {
    LOOK_NOT,     /* to change a class, or to load one on the way */
    LOOK_CODE,    /* to look at its code: look_saw is to be called, and the code to be left */
    LOOK_REFUSED, /* for the one to be refused: the hook is to give it other modifiers */
};

enum look_kind look_kind(JNIEnv *jni, jclass redefined);
void look_saw(bool changes);
