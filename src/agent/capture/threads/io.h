/* SPDX-License-Identifier: Apache-2.0 */
/* Native methods that wait for files and sockets. */
#pragma once

#include "agent/capture/threads/waiters.h"

/* Writes the event of a wait for a file or socket that has ended. */
void threads_put_io_wait(uint64_t thread, const struct wait *was, uint64_t ns);

/*
 * Asks the VM to report the binding of native methods, if it can. Must be called before
 * natives_bind, which calls io_bind where native methods of the boot loader may be bound.
 */
void io_start(JNIEnv *jni);
/*
 * Returns whether the native method `name` of a class ("sun/nio/ch/Net") waits for files or
 * sockets.
 */
bool io_waits_in(const char *class_name, const char *name);
/*
 * Binds the native methods of loaded classes that wait for files and sockets to the agent's
 * functions (`ours`), or restores them. Returns how many it has bound or restored.
 */
int io_bind(JNIEnv *jni, bool ours);
void io_stop(void);
