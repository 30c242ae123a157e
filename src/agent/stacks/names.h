/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Methods by jmethodID: names, source file and line table. They are read from the VM once, soon
 * after the id was first seen, and kept after the class is unloaded: until names_release, or, in a
 * recording that is always on, as long as they are requested (names_drop). Any attached thread
 * except in signal handlers.
 */
#pragma once

#include "base/buf.h"
#include "base/macro.h"

#include <jvmti.h>
#include <stdbool.h>
#include <stdint.h>

/* Serial numbers of classes for which class_watch.h has none, or none yet. */
#define UNWATCHED_CLASS_FIRST (UINT32_C(1) << 31)

struct method_line {
    uint32_t bci, line;
};

struct method {
    /* internal form, "java/lang/String"; generated classes as in base/generated_name.h */
    const char *class_name;
    const char *name, *descriptor;
    const char *source; /* NULL: unknown */
    uint32_t modifiers, class_modifiers;
    const struct method_line *lines; /* in ascending order of bci */
    size_t n_lines;
    bool native, hidden;
    /* not Java: a function of the library class_name, which is "" for code that the VM generated */
    bool code;
    /*
     * the same for all methods of a class: the serial of class_watch.h, or one from
     * UNWATCHED_CLASS_FIRST on
     */
    uint32_t class_serial;
};

/*
 * Returns the method with an id, or NULL if the id is stale or memory is exhausted. A repeated call
 * returns the same method. Where the recording may be always on, the result may only be used
 * between names_hold and names_unhold, except on the thread that calls names_drop.
 */
const struct method *names_method(JNIEnv *jni, jmethodID id);
/*
 * Returns an id of our own for a method of which only the names are known (instrumented code); the
 * strings are copied. Returns NULL when a name is missing or memory runs out.
 */
jmethodID names_add(const struct method *m);
/* Returns the line of a bytecode index; 0: unknown. */
uint32_t names_method_line(const struct method *m, int32_t bci);
/* Writes "java.lang.String" for "java/lang/String" into to[size], cut when too long. */
void names_dotted(const char *internal, char *to, size_t size);
/*
 * Returns the dotted name of a class that is not an array, "?" when the VM does not provide it; the
 * caller frees it. Returns NULL when out of memory.
 */
char *names_class_text(jclass c);

/*
 * Makes the VM create the jmethodIDs of a class, so that a stack with its methods can be walked in
 * a signal handler.
 */
void names_touch_class(jclass c);
/* Calls names_touch_class for all loaded classes. */
void names_touch_all_classes(JNIEnv *jni);

/* Prevents methods from being freed until names_unhold is called with the result. */
unsigned names_hold(void);
void names_unhold(unsigned hold);
/*
 * Drops the methods that nobody has requested since the call before the last one. Their memory is
 * freed by names_tidy, once no hold that began before is left. Only one thread may call these two
 * functions.
 */
void names_drop(void);
void names_tidy(void);

/* Returns how many methods could not be named. */
uint64_t names_unresolved(void);
/* Appends lines "names.WHAT N": the methods that are known, and their bytes. */
void names_status(struct buf *out);
/* Forgets and frees all methods; no result of names_method may be used any more. */
void names_release(void);
