/* SPDX-License-Identifier: Apache-2.0 */
/* Native methods that wait for files and sockets. */
#pragma once

#include "agent/capture/threads/waiters.h"

/* Writes the event of a wait for a file or socket that has ended. */
void threads_put_io_wait(uint64_t thread, const struct wait *was, uint64_t ns);

/*
 * start must be called before natives_bind, which calls bind where natives of the boot loader
 * may be bound. bind returns how many natives of loaded classes are bound to ours now, or were
 * restored.
 */
void io_start(JNIEnv *jni);
/*
 * Returns whether the native method `name` of a class ("sun/nio/ch/Net") waits for files or
 * sockets.
 */
bool io_waits_in(const char *class_name, const char *name);
int io_bind(JNIEnv *jni, bool ours);
void io_stop(void);
