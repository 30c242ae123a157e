/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of threads as people read and write them. A thread without a name is called by its
 * java.lang.Thread id: "thread #24", or "virtual #25".
 */
#pragma once

#include <jvmti.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Writes the name of a thread without a name into to[size] and returns `to`. */
const char *shown_thread_number(char *to, size_t size, int64_t java_id, bool is_virtual);
/*
 * Returns the name of a live thread, which the caller frees; NULL when the VM does not provide it
 * or memory runs out.
 */
char *shown_thread_name(JNIEnv *jni, jthread t);
/* Returns what Thread.getId() returns, without calling it; -1 when the VM has no such field. */
int64_t shown_thread_java_id(JNIEnv *jni, jthread t);
