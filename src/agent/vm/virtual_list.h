/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The live virtual threads (JDK 21 and later). JVM TI does not list them; the JDK itself does, for
 * its thread dumps: jdk.internal.vm.ThreadContainers.
 *
 * Its functions begin with virtual_ or thread_.
 */
#pragma once

#include "agent/vm/thread_table.h"

enum { VIRTUAL_LISTED_MAX = 10000 }; /* a limit, so that a million of them do not delay the VM */

struct existing_virtual {
    jthread thread;               /* a local reference, valid during the call */
    uint64_t id;                  /* Thread.threadId() */
    const struct thread *carrier; /* NULL: it is not mounted, or that is unknown */
};

/*
 * Returns whether there may be virtual threads. Until the program itself has initialized their
 * class there are none, and the agent must not initialize it: that takes 20 to 40 ms and starts the
 * thread "VirtualThread-unblocker", which would look like one of the program's.
 */
bool virtual_threads_may_exist(JNIEnv *jni);
/*
 * Calls `visit` for each live virtual thread, but at most VIRTUAL_LISTED_MAX times. Calls code of
 * the JDK that takes no lock of the program; must not be called in a callback. *ret_left: how many
 * others there are, as far as the JDK counts them. Returns 0, also before JDK 21, or -ENOTSUP when
 * this JDK has no such list.
 */
int virtual_threads_visit(JNIEnv *jni, void (*visit)(const struct existing_virtual *v, void *arg),
                          void *arg, uint64_t *ret_left) must_check;
/* Returns whether a thread is virtual; false before JDK 21 and for NULL. */
bool thread_is_virtual(JNIEnv *jni, jthread thread);
/* Returns the present carrier of a virtual thread; NULL when it has none. */
const struct thread *virtual_thread_carrier(JNIEnv *jni, jthread thread);
