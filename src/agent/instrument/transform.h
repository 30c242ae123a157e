/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Instruments the code of one class: lets the clients edit its methods and builds the new class
 * file.
 */
#pragma once

#include <jvmti.h>

/*
 * The callback for ClassFileLoadHook: instruments a class that is loaded or changed, or reports on
 * one whose code is read (scan.h).
 */
void JNICALL transform_class_file(jvmtiEnv *ti, JNIEnv *jni, jclass redefined, jobject loader,
                                  const char *name, jobject domain, jint len,
                                  const unsigned char *data, jint *new_len,
                                  unsigned char **new_data);
/* Frees the memory that is kept between classes. No hook may be running. */
void transform_release(void);
