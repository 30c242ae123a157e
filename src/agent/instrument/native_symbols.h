/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the function of a native method in the loaded libraries, by the name that JNI defines for
 * it. Knows no JVM.
 */
#pragma once

#include "base/strpool.h"

/*
 * Returns the address of a native method's function, or NULL when no library has it, or when
 * several libraries have different ones. Strings are as in class files.
 */
void *native_symbol(struct str class_name, struct str name, struct str descriptor);
