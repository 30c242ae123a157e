/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Locks held and awaited, from ThreadMXBean.dumpAllThreads: JVM TI's own functions for that need capabilities that no VM gives
 * to an agent that comes late. Ownable synchronizers that are held are not asked for: the VM would walk the heap for them.
 */
#include "agent/inspect/inspect.h"

static jobjectArray infos; /* ThreadInfo[], a local reference of the question */

static struct {
    jmethodID id, lock, owner, monitors, class_name, hash;
} method;

static jobject call(struct inspection *i, jobject o, jmethodID m)
{
    jobject result = o && m ? (*i->jni)->CallObjectMethod(i->jni, o, m) : NULL;
    return vm_clear_exception(i->jni) ? NULL : result;
}

static jmethodID find_method(struct inspection *i, const char *class, const char *name, const char *descriptor)
{
    jclass c = (*i->jni)->FindClass(i->jni, class);
    jmethodID m = c ? (*i->jni)->GetMethodID(i->jni, c, name, descriptor) : NULL;
    return vm_clear_exception(i->jni) ? NULL : m;
}

void find_locks(struct inspection *i)
{
    static const char info[] = "java/lang/management/ThreadInfo", lock[] = "java/lang/management/LockInfo";
    infos = NULL;
    jclass factory = (*i->jni)->FindClass(i->jni, "java/lang/management/ManagementFactory");
    jmethodID get =
        factory ? (*i->jni)->GetStaticMethodID(i->jni, factory, "getThreadMXBean", "()Ljava/lang/management/ThreadMXBean;")
                : NULL;
    jobject bean = get ? (*i->jni)->CallStaticObjectMethod(i->jni, factory, get) : NULL;
    if (vm_clear_exception(i->jni) || !bean)
        return;
    jmethodID dump =
        find_method(i, "java/lang/management/ThreadMXBean", "dumpAllThreads", "(ZZ)[Ljava/lang/management/ThreadInfo;");
    method.id = find_method(i, info, "getThreadId", "()J");
    method.lock = find_method(i, info, "getLockInfo", "()Ljava/lang/management/LockInfo;");
    method.owner = find_method(i, info, "getLockOwnerId", "()J");
    method.monitors = find_method(i, info, "getLockedMonitors", "()[Ljava/lang/management/MonitorInfo;");
    method.class_name = find_method(i, lock, "getClassName", "()Ljava/lang/String;");
    method.hash = find_method(i, lock, "getIdentityHashCode", "()I");
    if (!dump || !method.id || !method.lock || !method.owner || !method.monitors || !method.class_name || !method.hash)
        return;
    infos = (*i->jni)->CallObjectMethod(i->jni, bean, dump, JNI_TRUE, JNI_FALSE);
    if (vm_clear_exception(i->jni))
        infos = NULL;
}

static void put_lock(struct inspection *i, jobject lock, jlong owner)
{
    jstring name = call(i, lock, method.class_name);
    const char *text = name ? (*i->jni)->GetStringUTFChars(i->jni, name, NULL) : NULL;
    json_object(i->out);
    json_key(i->out, "class");
    json_string(i->out, text);
    json_key(i->out, "hash");
    json_i64(i->out, (*i->jni)->CallIntMethod(i->jni, lock, method.hash));
    vm_clear_exception(i->jni);
    if (owner > 0) {
        json_key(i->out, "owner");
        json_i64(i->out, owner);
    }
    json_object_end(i->out);
    if (text)
        (*i->jni)->ReleaseStringUTFChars(i->jni, name, text);
    if (name)
        (*i->jni)->DeleteLocalRef(i->jni, name);
}

static void put_of(struct inspection *i, jobject info)
{
    jobject awaited = call(i, info, method.lock);
    jobjectArray held = call(i, info, method.monitors);
    jlong owner = (*i->jni)->CallLongMethod(i->jni, info, method.owner);
    vm_clear_exception(i->jni);
    json_key(i->out, "holds");
    json_array(i->out);
    for (jsize k = 0, n = held ? (*i->jni)->GetArrayLength(i->jni, held) : 0; k < n; k++) {
        jobject lock = (*i->jni)->GetObjectArrayElement(i->jni, held, k);
        put_lock(i, lock, 0);
        (*i->jni)->DeleteLocalRef(i->jni, lock);
    }
    json_array_end(i->out);
    json_key(i->out, "awaits");
    if (awaited)
        put_lock(i, awaited, owner);
    else
        json_null(i->out);
    if (awaited)
        (*i->jni)->DeleteLocalRef(i->jni, awaited);
    if (held)
        (*i->jni)->DeleteLocalRef(i->jni, held);
}

void put_locks(struct inspection *i, jlong java_id)
{
    for (jsize k = 0, n = infos ? (*i->jni)->GetArrayLength(i->jni, infos) : 0; k < n; k++) {
        jobject info = (*i->jni)->GetObjectArrayElement(i->jni, infos, k);
        bool found = info && (*i->jni)->CallLongMethod(i->jni, info, method.id) == java_id && !vm_clear_exception(i->jni);
        if (found)
            put_of(i, info);
        if (info)
            (*i->jni)->DeleteLocalRef(i->jni, info);
        if (found)
            return;
    }
}
