/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers questions about the running program (jvmscope inspect): one row a question, JSON in
 * return. Everything here runs on the VM's attach listener thread; it calls no code of the program
 * (of the JDK, java.lang.management alone), so that no lock of the program is ever waited for.
 *
 * Objects are named by small numbers, their JVM TI tags in an environment of their own. A number
 * stays valid over collections until the object dies or `free` forgets it; it is never given to
 * another object.
 */
#pragma once

#include "agent/vm.h"
#include "base/json.h"

/*
 * Answers "threads", "class java.lang.String" ...: one JSON object into `out`. Negative errno with
 * a sentence in `why`
 * (-EINVAL: no such question or a bad operand, -ESRCH: no such thread, class or object, -ENOTSUP:
 * this VM cannot tell).
 */
int inspect(JNIEnv *jni, const char *question, struct buf *out, struct buf *why) must_check;

/* ---- for the files of this folder ---- */

struct inspection {
    jvmtiEnv *ti; /* the environment of the numbers; its capabilities are in `have` */
    jvmtiCapabilities have;
    JNIEnv *jni;
    const char *operand; /* what follows the question's name; "" when nothing */
    struct json *out;    /* inside the answer's object */
    struct buf *why;
};

/*
 * Opens the environment of the numbers if there is none yet, and asks for these capabilities too,
 * as far as the VM gives them (most of them in the OnLoad phase alone). callbacks may be NULL;
 * GarbageCollectionFinish is its own.
 */
int inspect_open(const jvmtiCapabilities *more, const jvmtiEventCallbacks *callbacks,
                 struct buf *why) must_check;
/* An inspection without an operand; only after inspect_open. */
struct inspection inspect_with(JNIEnv *jni, struct json *out, struct buf *why);

struct question {
    const char *name;
    int (*answer)(struct inspection *i);
};

int inspect_threads(struct inspection *i);
int inspect_groups(struct inspection *i);
int inspect_stack(struct inspection *i);
int inspect_classes(struct inspection *i);
int inspect_class(struct inspection *i);
int inspect_statics(struct inspection *i);
int inspect_modules(struct inspection *i);
int inspect_instances(struct inspection *i);
int inspect_object(struct inspection *i);
int inspect_free(struct inspection *i);
int inspect_vm(struct inspection *i);
int inspect_deadlocks(struct inspection *i);

/* The number of an object, given now if it has none; 0 when o is NULL or it cannot be had. */
jlong object_number(struct inspection *i, jobject o);
/* The object of a number as a local reference, NULL when it is gone. */
jobject object_of_number(struct inspection *i, jlong number);
/* Collections since the number was given. */
uint64_t object_age(jlong number);
/* Forgets a number, or all when it is 0. */
void object_forget(struct inspection *i, jlong number);

/*
 * Writes null, or {"id", "class"} with "value" where it can be read without calling code (strings,
 * boxes, array lengths).
 */
void put_object(struct inspection *i, jobject o);
/* The same under a key; the local reference is deleted. */
void put_object_key(struct inspection *i, const char *key, jobject o);
/*
 * The whole of a string, null for NULL, under a key when there is one; the local reference is
 * deleted.
 */
void put_string(struct inspection *i, const char *key, jstring s);
/* A value by its type's signature; an object in it is a local reference and deleted. */
void put_value(struct inspection *i, const char *signature, jvalue v);

enum member_kind { KIND_CLASS, KIND_FIELD, KIND_METHOD };

/* "public static final" of modifiers. */
void put_modifiers(struct inspection *i, const char *key, jint modifiers, enum member_kind kind);
/* "java.util.Map$Entry" or "int[][]" of a signature; malloc'ed, NULL when memory is out. */
char *type_name(const char *signature);
/* The same of a class, "?" when the VM does not tell. */
char *class_name(struct inspection *i, jclass c);
/*
 * The loaded class of a name ("java.lang.String", "int[]"), the first when several loaders have
 * one; NULL when there is none.
 */
jclass class_by_name(struct inspection *i, const char *name);
/* A value of a field. False when it cannot be read. */
bool field_value(struct inspection *i, jobject holder, jclass c, jfieldID f, const char *signature,
                 bool is_static, jvalue *ret);
/*
 * Asks for all threads' locks at once; put_locks then writes "holds" and "awaits" of a thread by
 * its java.lang.Thread id. Each lock is {"class", "hash"}, hash being what `object` shows as
 * identity_hash, and one awaited names its owner's Java id.
 */
void find_locks(struct inspection *i);
void put_locks(struct inspection *i, jlong java_id);
/*
 * The live thread of a name or object number, as a local reference; NULL (said in why) when there
 * is none.
 */
jthread thread_of_operand(struct inspection *i);
