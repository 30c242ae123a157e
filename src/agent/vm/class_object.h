/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Objects of java.lang.Class, whose monitors `static synchronized` methods lock. Outputs name such
 * an object by the class that it stands for. Any attached thread except in signal handlers;
 * requires the capability to read constant pools.
 */
#pragma once

#include "agent/vm/loaded_classes.h"

#include <jvmti.h>
#include <stdbool.h>

#define CLASS_OF_CLASSES "java.lang.Class"

/* Returns whether c is java.lang.Class, whose instances are the classes. */
bool class_is_java_lang_class(JNIEnv *jni, jclass c);
/*
 * Returns "class com.shop.Store" for the object of com.shop.Store, without what the VM adds to
 * names of classes that it generated. The caller frees the text. Returns NULL when the VM does not
 * provide the name or memory runs out.
 */
char *class_object_text(jclass object);

/* Finds objects of java.lang.Class by their identity hash, as java.lang.management names locks. */
struct class_finder {
    jvmtiEnv *ti;
    JNIEnv *jni;
    bool sees_monitors; /* ti has the capability can_get_monitor_info */
    bool listed;
    struct loaded_classes all;
    jint *hashes; /* of all.of */
};

/*
 * Returns the object of the loaded class with this identity hash, valid until the release. Among
 * several with this hash, it is the one whose monitor is owned or waited for. NULL if none, or more
 * than one, remains. The first call lists the classes.
 */
jclass class_find_by_hash(struct class_finder *f, jint hash);
void class_finder_release(struct class_finder *f);
