/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Locks held and awaited, from ThreadMXBean.dumpAllThreads: JVM TI's own functions for this need
 * capabilities that no VM grants to an agent that attaches. Ownable synchronizers that are held are
 * not requested, because the VM would have to walk the heap for them.
 */
#include "agent/inspect/inspect.h"
#include "base/generated_name.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static jobjectArray infos; /* ThreadInfo[], a local reference that is valid for this question */

static struct {
    jmethodID id, lock, owner, monitors, class_name, hash, name, lock_name, owner_name, stack, text;
} method;

static jobject call(struct inspection *i, jobject o, jmethodID m)
{
    jobject result = o && m ? (*i->jni)->CallObjectMethod(i->jni, o, m) : NULL;
    return vm_clear_exception(i->jni) ? NULL : result;
}

static jmethodID find_method(struct inspection *i, const char *class, const char *name,
                             const char *descriptor)
{
    jclass c = (*i->jni)->FindClass(i->jni, class);
    jmethodID m = c ? (*i->jni)->GetMethodID(i->jni, c, name, descriptor) : NULL;
    return vm_clear_exception(i->jni) ? NULL : m;
}

/* ThreadMXBean and the methods of its results; NULL when this VM does not have them. */
static jobject thread_bean(struct inspection *i)
{
    static const char info[] = "java/lang/management/ThreadInfo",
                      lock[] = "java/lang/management/LockInfo";
    static const char string[] = "()Ljava/lang/String;";
    jclass factory = (*i->jni)->FindClass(i->jni, "java/lang/management/ManagementFactory");
    jmethodID get = factory ? (*i->jni)->GetStaticMethodID(i->jni, factory, "getThreadMXBean",
                                                           "()Ljava/lang/management/ThreadMXBean;")
                            : NULL;
    jobject bean = get ? (*i->jni)->CallStaticObjectMethod(i->jni, factory, get) : NULL;
    if (vm_clear_exception(i->jni) || !bean)
        return NULL;
    method.id = find_method(i, info, "getThreadId", "()J");
    method.lock = find_method(i, info, "getLockInfo", "()Ljava/lang/management/LockInfo;");
    method.owner = find_method(i, info, "getLockOwnerId", "()J");
    method.monitors =
        find_method(i, info, "getLockedMonitors", "()[Ljava/lang/management/MonitorInfo;");
    method.name = find_method(i, info, "getThreadName", string);
    method.lock_name = find_method(i, info, "getLockName", string);
    method.owner_name = find_method(i, info, "getLockOwnerName", string);
    method.stack = find_method(i, info, "getStackTrace", "()[Ljava/lang/StackTraceElement;");
    method.text = find_method(i, "java/lang/StackTraceElement", "toString", string);
    method.class_name = find_method(i, lock, "getClassName", string);
    method.hash = find_method(i, lock, "getIdentityHashCode", "()I");
    bool all = method.id && method.lock && method.owner && method.monitors && method.name &&
               method.lock_name && method.owner_name && method.stack && method.text &&
               method.class_name && method.hash;
    return all ? bean : NULL;
}

void inspect_find_locks(struct inspection *i)
{
    infos = NULL;
    jobject bean = thread_bean(i);
    jmethodID dump = find_method(i, "java/lang/management/ThreadMXBean", "dumpAllThreads",
                                 "(ZZ)[Ljava/lang/management/ThreadInfo;");
    if (!bean || !dump)
        return;
    infos = (*i->jni)->CallObjectMethod(i->jni, bean, dump, JNI_TRUE, JNI_FALSE);
    if (vm_clear_exception(i->jni))
        infos = NULL;
}

static void put_lock(struct inspection *i, jobject lock, jlong owner)
{
    json_begin_object(i->out);
    inspect_put_string(i, "class", call(i, lock, method.class_name));
    json_key_i64(i->out, "hash", (*i->jni)->CallIntMethod(i->jni, lock, method.hash));
    vm_clear_exception(i->jni);
    if (owner > 0) {
        json_key_i64(i->out, "owner", owner);
    }
    json_end_object(i->out);
}

static void put_of(struct inspection *i, jobject info)
{
    jobject awaited = call(i, info, method.lock);
    jobjectArray held = call(i, info, method.monitors);
    jlong owner = (*i->jni)->CallLongMethod(i->jni, info, method.owner);
    vm_clear_exception(i->jni);
    json_key_array(i->out, "holds");
    for (jsize k = 0, n = held ? (*i->jni)->GetArrayLength(i->jni, held) : 0; k < n; k++) {
        jobject lock = (*i->jni)->GetObjectArrayElement(i->jni, held, k);
        put_lock(i, lock, 0);
        (*i->jni)->DeleteLocalRef(i->jni, lock);
    }
    json_end_array(i->out);
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

void inspect_put_locks(struct inspection *i, jlong java_id)
{
    for (jsize k = 0, n = infos ? (*i->jni)->GetArrayLength(i->jni, infos) : 0; k < n; k++) {
        jobject info = (*i->jni)->GetObjectArrayElement(i->jni, infos, k);
        bool found = info && (*i->jni)->CallLongMethod(i->jni, info, method.id) == java_id &&
                     !vm_clear_exception(i->jni);
        if (found)
            put_of(i, info);
        if (info)
            (*i->jni)->DeleteLocalRef(i->jni, info);
        if (found)
            return;
    }
}

/*
 * Length of what StackTraceElement.toString has in front of the class: the loader and the module,
 * as in "app//Shop.main(Shop.java:3)". A slash in front of a number belongs to a hidden class.
 */
static size_t before_class(const char *text, size_t len)
{
    size_t start = 0;
    for (size_t k = 0; k < len; k++) {
        const char *rest = text + k + 1;
        if (text[k] == '/' && !(rest[0] == '0' && rest[1] == 'x') &&
            rest[strspn(rest, "0123456789")] != '.')
            start = k + 1;
    }
    return start;
}

/* A StackTraceElement as "Class.method:line", as the views of a recording show frames. */
static void put_frame(struct inspection *i, jobject frame)
{
    _cleanup_(buf_release) struct buf text = BUF(1 << 16), out = BUF(1 << 16);
    jstring string = call(i, frame, method.text);
    if (!vm_put_string(i->jni, string, &text))
        buf_string(&text, "?");
    if (string)
        (*i->jni)->DeleteLocalRef(i->jni, string);
    char *all = (char *)buf_str(&text);
    size_t end = strcspn(all, "("), start = before_class(all, end);
    char *dot = memrchr(all + start, '.', end - start);
    size_t class_len = dot ? (size_t)(dot - all) - start : 0;
    const char *line = memrchr(all + end, ':', strlen(all + end));
    buf_bytes(&out, all + start, generated_name_normalize(all + start, class_len));
    if (dot)
        buf_printf(&out, ".%.*s", (int)(all + end - dot - 1), dot + 1);
    else
        buf_bytes(&out, all + start, end - start);
    if (line)
        buf_printf(&out, ":%.*s", (int)strspn(line + 1, "0123456789"), line + 1);
    json_string_n(i->out, (const char *)out.data, out.len);
}

static void put_blocked(struct inspection *i, jobject info)
{
    json_begin_object(i->out);
    inspect_put_string(i, "thread", call(i, info, method.name));
    inspect_put_string(i, "waits_for", call(i, info, method.lock_name));
    inspect_put_string(i, "owned_by", call(i, info, method.owner_name));
    jobjectArray stack = call(i, info, method.stack);
    json_key_array(i->out, "frames");
    for (jsize k = 0, n = stack ? (*i->jni)->GetArrayLength(i->jni, stack) : 0; k < n; k++) {
        jobject frame = (*i->jni)->GetObjectArrayElement(i->jni, stack, k);
        put_frame(i, frame);
        (*i->jni)->DeleteLocalRef(i->jni, frame);
    }
    json_end_array(i->out);
    json_end_object(i->out);
    if (stack)
        (*i->jni)->DeleteLocalRef(i->jni, stack);
}

/* The index of a thread's Java id in an array of ThreadInfo, or n. */
static jsize place_of(struct inspection *i, jobjectArray all, jsize n, jlong id)
{
    jsize place = n;
    for (jsize k = 0; k < n && place == n; k++) {
        jobject info = (*i->jni)->GetObjectArrayElement(i->jni, all, k);
        if (info && (*i->jni)->CallLongMethod(i->jni, info, method.id) == id &&
            !vm_clear_exception(i->jni))
            place = k;
        if (info)
            (*i->jni)->DeleteLocalRef(i->jni, info);
    }
    return place;
}

/* Follows the owners from the thread at `first` until one is reached twice. */
static void put_cycle(struct inspection *i, jobjectArray all, jsize n, jsize first, bool *done)
{
    json_begin_object(i->out);
    json_key_array(i->out, "cycle");
    for (jsize at = first; at < n && !done[at];) {
        jobject info = (*i->jni)->GetObjectArrayElement(i->jni, all, at);
        done[at] = true;
        put_blocked(i, info);
        jlong owner = (*i->jni)->CallLongMethod(i->jni, info, method.owner);
        vm_clear_exception(i->jni);
        (*i->jni)->DeleteLocalRef(i->jni, info);
        at = place_of(i, all, n, owner);
    }
    json_end_array(i->out);
    json_end_object(i->out);
}

/*
 * Deadlocks of monitors and ownable synchronizers, found by the VM, which ignores virtual threads.
 */
int inspect_deadlocks(struct inspection *i)
{
    static const char bean_class[] = "java/lang/management/ThreadMXBean";
    jobject bean = thread_bean(i);
    jmethodID find = bean ? find_method(i, bean_class, "findDeadlockedThreads", "()[J") : NULL;
    jmethodID get = bean ? find_method(i, bean_class, "getThreadInfo",
                                       "([JI)[Ljava/lang/management/ThreadInfo;")
                         : NULL;
    if (!find || !get) {
        buf_string(i->why, "the VM has no java.lang.management");
        return -ENOTSUP;
    }
    jlongArray ids = call(i, bean, find);
    jobjectArray all =
        ids ? (*i->jni)->CallObjectMethod(i->jni, bean, get, ids, (jint)INT32_MAX) : NULL;
    if (vm_clear_exception(i->jni))
        all = NULL;
    jsize n = all ? (*i->jni)->GetArrayLength(i->jni, all) : 0;
    bool *done = calloc((size_t)n + 1, sizeof(*done));
    if (!done)
        return -ENOMEM;
    json_key_array(i->out, "deadlocks");
    for (jsize k = 0; k < n; k++) {
        jobject info = (*i->jni)->GetObjectArrayElement(i->jni, all, k);
        if (!info) /* it has ended since */
            done[k] = true;
        else
            (*i->jni)->DeleteLocalRef(i->jni, info);
    }
    for (jsize k = 0; k < n; k++)
        if (!done[k])
            put_cycle(i, all, n, k, done);
    json_end_array(i->out);
    free(done);
    return 0;
}
