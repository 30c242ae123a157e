/* SPDX-License-Identifier: Apache-2.0 */
/* Objects and classes in the events of threads. */
#pragma once

#include "agent/session/session.h"

uint32_t object_identity(jobject o);
/*
 * Returns the class of an object as a constant of the recording; 0 for NULL. Each object of
 * java.lang.Class has a constant of its own: "class com.shop.Store".
 */
uint64_t object_class(JNIEnv *jni, jobject o);
/* Returns a class as a constant of the recording. */
uint64_t object_record_class(JNIEnv *jni, jclass c);
/* Returns the constant of the object of a class, "class com.shop.Store"; 0 if it is unknown. */
uint64_t object_record_class_object(JNIEnv *jni, jclass c);
/* Writes the name of a recorded class, "java.lang.Object"; "?" when unknown. */
void object_class_name(uint64_t class, char *to, size_t size);
/* Forgets what is known about classes, because a new chunk begins or the recording has ended. */
void objects_forget(void);
