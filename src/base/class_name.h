/* SPDX-License-Identifier: Apache-2.0 */
/* Converts names of types from the form of class files to that of Java source. */
#pragma once

#include "base/buf.h"
#include "base/strpool.h"

#include <stdbool.h>

/*
 * Returns the name of the primitive type, or void, that a letter of descriptors stands for, such as
 * "int" for 'I'; NULL for another letter.
 */
const char *class_name_primitive(char letter);
/*
 * Appends the name of a class without what the VM added to it (base/generated_name.h):
 * "java.lang.String" for "java/lang/String", "int[]" for "[I", "java.lang.String[]" for
 * "[Ljava/lang/String;". Returns whether something was left out.
 */
bool class_name_put(struct buf *b, struct str name);
