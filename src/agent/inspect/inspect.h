/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers questions about the running program (jvmscope inspect): one table row for each question,
 * with JSON as the answer. Everything here runs on the VM's attach listener thread and calls no
 * code of the program (of the JDK only java.lang.management), so it never waits for a lock of the
 * program.
 *
 * Objects are identified by small numbers, which are their JVM TI tags in an environment of its
 * own. A number remains valid across collections until the object dies or `free` removes it; it is
 * never reused for another object.
 */
#pragma once

#include "agent/vm/class_object.h"
#include "agent/vm/loaded_classes.h"
#include "agent/vm/vm.h"
#include "base/json.h"

/*
 * Answers "threads", "class java.lang.String" ...: writes one JSON object to `out`. Returns 0, or a
 * negative errno: -ENOMEM, or with a sentence in `why` -EINVAL (no such query or a bad operand),
 * -ESRCH (no such thread, class or object) or -ENOTSUP (not supported by this VM).
 */
int inspect_answer(JNIEnv *jni, const char *question, struct buf *out, struct buf *why) must_check;

/* ---- internal to this folder ---- */

struct inspection {
    jvmtiEnv *ti; /* the environment of the numbers; `have` lists its capabilities */
    jvmtiCapabilities have;
    JNIEnv *jni;
    const char *operand; /* what follows the question's name; "" if nothing does */
    struct json *out;    /* positioned inside the answer's object */
    struct buf *why;
    struct class_finder finder; /* for the locks of threads */
};

/*
 * Creates the environment of the numbers if necessary, and requests these capabilities as far as
 * the VM grants them (most of them only in the OnLoad phase). `more` and `callbacks` may be NULL;
 * GarbageCollectionFinish is reserved. Returns 0, or -ENOTSUP with a sentence in `why`.
 */
int inspect_open(const jvmtiCapabilities *more, const jvmtiEventCallbacks *callbacks,
                 struct buf *why) must_check;
/*
 * Returns a question without an operand, whose answer is written to `out`; requires inspect_open.
 */
struct inspection inspect_with(JNIEnv *jni, struct json *out, struct buf *why);

struct question {
    const char *name, *operand; /* operand: "" for none; in brackets if it may be left out */
    int (*answer)(struct inspection *i);
};

/*
 * Answer the question that the function is named after, about i->operand: write the members of the
 * answer's object. Return 0, or a negative errno, in most cases with a sentence in i->why.
 */
int inspect_threads(struct inspection *i);
int inspect_groups(struct inspection *i);
int inspect_stack(struct inspection *i);
int inspect_classes(struct inspection *i);
int inspect_class(struct inspection *i);
int inspect_statics(struct inspection *i);
int inspect_modules(struct inspection *i);
int inspect_instances(struct inspection *i);
int inspect_object(struct inspection *i);
int inspect_vm(struct inspection *i);
int inspect_deadlocks(struct inspection *i);

/* Returns the number of an object, assigned now if it has none; 0 when o is NULL or on failure. */
jlong inspect_object_number(struct inspection *i, jobject o);
/*
 * Returns the object of a number as a local reference, or NULL when no live object has this number.
 */
jobject inspect_object_of_number(struct inspection *i, jlong number);
/*
 * Returns the number of collections since the object with this number received it; 0 for a number
 * that was never assigned.
 */
uint64_t inspect_object_age(jlong number);

/*
 * Writes null for NULL, or else {"id", "class"}, with a "value" if the value can be read without
 * calling code (strings, boxes, array lengths).
 */
void inspect_put_object(struct inspection *i, jobject o);
/* Writes what inspect_put_object writes, under a key; deletes the local reference. */
void inspect_put_object_key(struct inspection *i, const char *key, jobject o);
/*
 * Writes the whole string, or null for NULL, under `key`, or as a value alone if `key` is NULL;
 * deletes the local reference.
 */
void inspect_put_string(struct inspection *i, const char *key, jstring s);
/*
 * Returns whether a frame belongs to a probe, inside which a thread may be. No stack shows such a
 * frame; the other frames keep the depths that the VM gives them, by which `control` names them.
 */
bool inspect_is_agents_frame(struct inspection *i, const jvmtiFrameInfo *frame);
/*
 * Writes a value of the type given by a signature. If v is an object, deletes its local reference.
 */
void inspect_put_value(struct inspection *i, const char *signature, jvalue v);

enum member_kind { KIND_CLASS, KIND_FIELD, KIND_METHOD };

/* Writes modifiers in the form "public static final". */
void inspect_put_modifiers(struct inspection *i, const char *key, jint modifiers,
                           enum member_kind kind);
/*
 * Returns the name of a type, "java.util.Map$Entry" or "int[][]", given its signature, or NULL when
 * out of memory. The caller frees the name.
 */
char *inspect_type_name(const char *signature);
/* Returns the name of a class as inspect_type_name does; "?" when the VM does not provide it. */
char *inspect_class_name(struct inspection *i, jclass c);
/*
 * Returns the loaded class with this name ("java.lang.String", "int[]"), the first one when several
 * loaders have it; NULL when there is none.
 */
jclass inspect_class_by_name(struct inspection *i, const char *name);
/*
 * Writes to i->why that no class of this name is loaded, and which one may be meant. shown: what
 * the user wrote. method: a method that the class should have, or NULL.
 */
void inspect_no_class(struct inspection *i, const char *shown, const char *name,
                      const char *method);
/* Does what loaded_classes does, but leaves out the classes of the agent. */
int inspect_find_loaded_classes(struct inspection *i, struct loaded_classes *ret) must_check;
/*
 * Reads the value of a field f of class c: a static one, or that of the object `holder`. An object
 * in *ret is a local reference. Returns false when the value cannot be read.
 */
bool inspect_field_value(struct inspection *i, jobject holder, jclass c, jfieldID f,
                         const char *signature, bool is_static, jvalue *ret);
/*
 * Reads the locks of all threads at once; inspect_put_locks then writes "holds" and "awaits" of a
 * thread given by its java.lang.Thread id. Each lock is {"class", "hash"}, where hash is what
 * `object` shows as identity_hash; an awaited lock also has the Java id and the name of its owner.
 */
void inspect_find_locks(struct inspection *i);
void inspect_put_locks(struct inspection *i, jlong java_id);
/*
 * Returns the live thread whose name or object number is the operand, as a local reference; NULL,
 * with the reason in i->why, when there is none.
 */
jthread thread_of_operand(struct inspection *i);
/*
 * Returns the live platform thread with this java.lang.Thread id, as a local reference; NULL when
 * there is none.
 */
jthread inspect_thread_of_java_id(struct inspection *i, jlong java_id);
