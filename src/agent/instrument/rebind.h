/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Binds native methods of the JDK to functions of ours, and restores them. Thread and Unsafe bind
 * theirs by calling their own method registerNatives, which uses the JNI function table. While that
 * call runs, RegisterNatives in the table is replaced, so that our functions are bound and call the
 * originals. Other natives are bound by a class of our own on the boot loader, which may do so
 * without a warning. Nothing is instrumented, and start-up and attach work the same way.
 */
#pragma once

#include "agent/vm/vm.h"

struct rebind_row {
    const char *name; /* a native method of Thread or Unsafe; the first existing name is used */
    void *ours;
    void **real; /* receives the original function */
};

/*
 * Binds the methods of the rows to our functions, or back to the originals; `more` (NULL: none) may
 * bind natives of further classes of the boot loader and returns their number. Returns how many
 * were bound, or -EPROTO when the VM refuses. One call at a time.
 */
int rebind_natives(JNIEnv *jni, const struct rebind_row *rows, size_t n, bool ours,
                   int (*more)(JNIEnv *jni, bool ours)) must_check;
