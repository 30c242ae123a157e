/* SPDX-License-Identifier: Apache-2.0 */
/* The field that the name of a field which a class does not declare probably means. */
#pragma once

#include "base/nearest.h"

#include <jni.h>
#include <stdbool.h>

/* All zeros is no field. */
struct field_guess {
    char name[400];    /* "pkg.Class.field"; "" for none */
    bool is_inherited; /* a superclass declares a field of the wanted name */
    unsigned distance; /* as in struct nearest */
};

/*
 * Considers the fields of a class and of its superclasses. One of the wanted name in a superclass
 * is better than one of a similar name. Call it for each loaded class of the wanted name.
 */
void field_guess_see(struct field_guess *g, JNIEnv *jni, jclass c, const char *field);
