/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Native methods of the JDK bound to functions of ours, and given back. Thread and Unsafe bind
 * theirs by a method of theirs, registerNatives, through the JNI function table: with
 * RegisterNatives of that table replaced for the time of the call, what they bind is ours and calls
 * what they had. Others are bound by a class of our own on the boot loader, which may do so
 * silently. So nothing is instrumented, and it is the same at start-up and on attach.
 */
#pragma once

#include "agent/vm.h"

struct rebind_row {
    const char *name; /* a native method of Thread or Unsafe; the first one found */
    void *ours;
    void **real; /* gets what it was bound to */
};

/*
 * Binds them to ours, or back to what they were; `more` (NULL: none) may bind natives of further
 * classes of the boot loader, and answers how many. How many were bound, or -EPROTO when the VM
 * refuses. One call at a time.
 */
int rebind_natives(JNIEnv *jni, const struct rebind_row *rows, size_t n, bool ours,
                   int (*more)(JNIEnv *jni, bool ours)) must_check;
