/* SPDX-License-Identifier: Apache-2.0 */
/* Reports of classes. */
#pragma once

#include "jvmpi/layer.h"

/* Reports the classes that are loaded already, if an enabled event is about classes. */
void classes_replay(JNIEnv *env);
/*
 * Returns the id of a class that an event is about to name as a class. Sends OBJECT_ALLOC and
 * CLASS_LOAD first, as for objects. Returns NULL for null and for a class that is not linked, whose
 * class object is treated like any other object until then (see doc/jvmpi.md).
 */
jobjectID layer_report_class(JNIEnv *env, jclass class);
/*
 * Stores the data of CLASS_LOAD, so that the event can be requested until CLASS_UNLOAD is sent,
 * even if the VM has unloaded the class before.
 */
void layer_class_remember(JNIEnv *env, jclass class);
/* Returns true when the class is linked, or is an array or primitive class. */
bool layer_class_is_defined(jclass class);
/*
 * Links classes that are not linked although objects of them exist; the class data archive has
 * some. Returns true when one was linked. Calls Java.
 */
struct map;
bool classes_link(JNIEnv *env, const struct map *ids);
/* Reports the class of a method, like layer_report_class. */
void layer_report_class_of(JNIEnv *env, jmethodID method);
/*
 * Returns a method's id as CLASS_LOAD reported it. Code that still runs from before its class was
 * changed, for example instrumented, has another id.
 */
jmethodID layer_current_method(jmethodID method);
jint layer_request_class_load(JNIEnv *env, jobjectID id);
/* Sends CLASS_LOAD for classes that were loaded while the calling thread's events were left out. */
void classes_report_pending(JNIEnv *env);
/* Returns whether the id is that of a class that the layer knows. */
bool layer_is_class(jlong id);
/*
 * Returns true when the id was that of a class, which is then forgotten. Sends CLASS_UNLOAD if that
 * is enabled.
 */
bool layer_class_freed(JNIEnv *env, jlong id);
/*
 * Called before layer_class_freed, and before the agent may take a lock for that: no more events
 * about the code of the class's methods are sent. Waits for those in progress.
 */
void layer_class_code_forget(jlong id);
/*
 * Returns the number of classes linked so far. Callers compare it to detect that classes have
 * changed.
 */
uint64_t classes_linked(void);
jobjectID layer_get_method_class(jmethodID method);
extern const struct vm_callbacks class_load_events, class_hook_events, class_watch_events;
