/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Methods by jmethodID: names, source file and line table, asked of the VM once, soon after the id
 * was seen, and kept: they survive the unloading of the class. Any attached thread outside signal
 * handlers. Addresses stay until names_release.
 */
#pragma once

#include "base/macro.h"

#include <jvmti.h>
#include <stdbool.h>
#include <stdint.h>

/* Serial numbers of classes that class_watch.h does not tell apart, or not yet. */
#define UNWATCHED_CLASS_FIRST (UINT32_C(1) << 31)

struct method_line {
    uint32_t bci, line;
};

struct method {
    const char *class_name; /* internal form, "java/lang/String"; made ones by base/made_name.h */
    const char *name, *descriptor;
    const char *source; /* NULL: not known */
    uint32_t modifiers, class_modifiers;
    const struct method_line *lines; /* ascending by bci */
    size_t n_lines;
    bool native, hidden;
    /* no Java at all: a function of the library class_name, "" for code that the VM made */
    bool code;
    /* the same for the methods of one class: class_watch.h's, or from UNWATCHED_CLASS_FIRST on */
    uint32_t class_serial;
};

/* NULL: the id is stale or memory is out; asked again it answers the same. */
const struct method *names_method(JNIEnv *jni, jmethodID id);
/*
 * An id of ours for a method known by its names alone (instrumented code); the strings are copied.
 * NULL: no memory.
 */
jmethodID names_add(const struct method *m);
/* The line of a bytecode index; 0: not known. */
uint32_t method_line(const struct method *m, int32_t bci);
/* "java.lang.String" from "java/lang/String", into to[size], cut when too long. */
void dotted_name(const char *internal, char *to, size_t size);
/*
 * The dotted name of a class that is no array, "?" when the VM does not tell it; the caller frees.
 * NULL: no memory.
 */
char *names_class_text(jclass c);

/*
 * Makes the VM create the jmethodIDs of a class, so that a stack can be walked in a signal handler.
 */
void names_touch_class(jclass c);
void names_touch_all_classes(JNIEnv *jni);

uint64_t names_unresolved(void);
void names_release(void);
