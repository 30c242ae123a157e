/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Locks that are held and waited for, from ThreadMXBean.dumpAllThreads: JVM TI's own functions for
 * this need capabilities that no VM grants to an agent that attaches. Ownable synchronizers that
 * are held are not requested, because the VM would have to walk the heap for them.
 */
#include "agent/inspect/inspect.h"
#include "agent/stacks/names.h"
#include "agent/vm/shown_thread.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static jobjectArray infos; /* ThreadInfo[], a local reference that is valid for this question */

static struct {
    jmethodID id, lock, owner, monitors, class_name, hash, name, owner_name;
} method;

static jmethodID find_method(struct inspection *i, const char *class, const char *name,
                             const char *descriptor)
{
    jclass c = (*i->jni)->FindClass(i->jni, class);
    jmethodID m = c ? (*i->jni)->GetMethodID(i->jni, c, name, descriptor) : NULL;
    return vm_clear_exception(i->jni) ? NULL : m;
}

/*
 * Returns the ThreadMXBean and finds the methods of its results. Returns NULL if this VM does not
 * have them.
 */
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
    method.owner_name = find_method(i, info, "getLockOwnerName", string);
    method.class_name = find_method(i, lock, "getClassName", string);
    method.hash = find_method(i, lock, "getIdentityHashCode", "()I");
    bool all = method.id && method.lock && method.owner && method.monitors && method.name &&
               method.owner_name && method.class_name && method.hash;
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

/*
 * Appends the name of a lock's class; that of an object of java.lang.Class is "class
 * com.shop.Store".
 */
static void append_class(struct inspection *i, jobject lock, jint hash, struct buf *b)
{
    jstring name = vm_call_object(i->jni, lock, method.class_name);
    (void)vm_put_string(i->jni, name, b);
    if (name)
        (*i->jni)->DeleteLocalRef(i->jni, name);
    jclass of =
        strcmp(buf_str(b), CLASS_OF_CLASSES) == 0 ? class_find_by_hash(&i->finder, hash) : NULL;
    _cleanup_free_ char *text = of ? class_object_text(of) : NULL;
    if (!text)
        return;
    buf_clear(b);
    buf_string(b, text);
}

/* Writes the name of a platform thread, and deletes the local reference `name`. */
static void put_thread_name(struct inspection *i, const char *key, jstring name, jlong java_id)
{
    char number[48];
    if (name && (*i->jni)->GetStringLength(i->jni, name) == 0) {
        (*i->jni)->DeleteLocalRef(i->jni, name);
        json_key_string(i->out, key, shown_thread_number(number, sizeof(number), java_id, false));
    } else {
        inspect_put_string(i, key, name);
    }
}

/* info: that of the thread that awaits the lock; NULL: it is held */
static void put_lock(struct inspection *i, jobject lock, jobject info)
{
    _cleanup_(buf_release) struct buf class = BUF(1 << 20);
    jint hash = vm_call_int(i->jni, lock, method.hash);
    json_begin_object(i->out);
    append_class(i, lock, hash, &class);
    json_key_string(i->out, "class", buf_str(&class));
    json_key_i64(i->out, "hash", hash);
    jlong owner = info ? vm_call_long(i->jni, info, method.owner) : 0;
    if (owner > 0) {
        json_key_i64(i->out, "owner", owner);
        put_thread_name(i, "owner_name", vm_call_object(i->jni, info, method.owner_name), owner);
    }
    json_end_object(i->out);
}

static void put_of(struct inspection *i, jobject info)
{
    jobject awaited = vm_call_object(i->jni, info, method.lock);
    jobjectArray held = vm_call_object(i->jni, info, method.monitors);
    json_key_array(i->out, "holds");
    for (jsize k = 0, n = held ? (*i->jni)->GetArrayLength(i->jni, held) : 0; k < n; k++) {
        jobject lock = (*i->jni)->GetObjectArrayElement(i->jni, held, k);
        put_lock(i, lock, NULL);
        (*i->jni)->DeleteLocalRef(i->jni, lock);
    }
    json_end_array(i->out);
    json_key(i->out, "awaits");
    if (awaited)
        put_lock(i, awaited, info);
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
        bool found = info && vm_call_long(i->jni, info, method.id) == java_id;
        if (found)
            put_of(i, info);
        if (info)
            (*i->jni)->DeleteLocalRef(i->jni, info);
        if (found)
            return;
    }
}

/* Writes a frame as "Class.method:line", as the views of a recording show it. */
static void put_frame(struct inspection *i, const jvmtiFrameInfo *frame)
{
    const struct method *m = names_method(i->jni, frame->method);
    char class[512] = "?", text[1024];
    if (m)
        names_dotted(m->class_name, class, sizeof(class));
    uint32_t line = m ? names_method_line(m, (int32_t)frame->location) : 0;
    snprintf(text, sizeof(text), line ? "%s.%s:%u" : "%s.%s", class, m ? m->name : "?", line);
    json_string(i->out, text);
}

static void put_stack(struct inspection *i, jlong java_id)
{
    jthread thread = inspect_thread_of_java_id(i, java_id);
    jint n = 0;
    if (!thread || (*vm.ti)->GetFrameCount(vm.ti, thread, &n) != JVMTI_ERROR_NONE)
        n = 0;
    jvmtiFrameInfo *frames = calloc((size_t)n + 1, sizeof(*frames));
    if (!frames || (*vm.ti)->GetStackTrace(vm.ti, thread, 0, n, frames, &n) != JVMTI_ERROR_NONE)
        n = 0;
    for (jint k = 0; k < n; k++)
        if (!inspect_is_agents_frame(i, &frames[k]))
            put_frame(i, &frames[k]);
    free(frames);
    if (thread)
        (*i->jni)->DeleteLocalRef(i->jni, thread);
}

/* Writes the lock for which a thread waits as "com.shop.Store@6d06d69c". */
static void put_awaited(struct inspection *i, jobject info)
{
    jobject lock = vm_call_object(i->jni, info, method.lock);
    _cleanup_(buf_release) struct buf name = BUF(1 << 20);
    if (!lock) {
        inspect_put_string(i, "waits_for", NULL);
        return;
    }
    jint hash = vm_call_int(i->jni, lock, method.hash);
    append_class(i, lock, hash, &name);
    buf_printf(&name, "@%x", (unsigned)hash);
    json_key_string(i->out, "waits_for", buf_str(&name));
    (*i->jni)->DeleteLocalRef(i->jni, lock);
}

static void put_blocked(struct inspection *i, jobject info)
{
    json_begin_object(i->out);
    jlong id = vm_call_long(i->jni, info, method.id),
          owner = vm_call_long(i->jni, info, method.owner);
    put_thread_name(i, "thread", vm_call_object(i->jni, info, method.name), id);
    put_awaited(i, info);
    put_thread_name(i, "owned_by", vm_call_object(i->jni, info, method.owner_name), owner);
    json_key_array(i->out, "frames");
    if (!vm_clear_exception(i->jni))
        put_stack(i, id);
    json_end_array(i->out);
    json_end_object(i->out);
}

/* Returns the index of a thread's Java id in an array of ThreadInfo, or n. */
static jsize place_of(struct inspection *i, jobjectArray all, jsize n, jlong id)
{
    jsize place = n;
    for (jsize k = 0; k < n && place == n; k++) {
        jobject info = (*i->jni)->GetObjectArrayElement(i->jni, all, k);
        if (info && vm_call_long(i->jni, info, method.id) == id)
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
        jlong owner = vm_call_long(i->jni, info, method.owner);
        (*i->jni)->DeleteLocalRef(i->jni, info);
        at = place_of(i, all, n, owner);
    }
    json_end_array(i->out);
    json_end_object(i->out);
}

/*
 * Writes the deadlocks of monitors and ownable synchronizers that the VM finds; it ignores virtual
 * threads.
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
    jlongArray ids = vm_call_object(i->jni, bean, find);
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
        if (!info) /* the thread has ended since */
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
