/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The function of a native method by the name that JNI gives it, in the libraries that are loaded.
 * Knows no JVM.
 */
#pragma once

#include "base/strpool.h"

/* NULL: in none, or not the same one in all of them. Strings are as in class files. */
void *native_symbol(struct str class_name, struct str name, struct str descriptor);
