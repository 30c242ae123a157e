/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records monitors that native code acquires and releases: JNI's MonitorEnter and MonitorExit are
 * replaced (JVM TI, SetJNIFunctionTable) while holds are recorded. The stack, a single frame, is
 * that of the native method and is taken before the monitor is held.
 */

#include "agent/capture/threads/locks.h"
#include "agent/capture/threads/natives.h"
#include "agent/capture/threads/objects.h"
#include "agent/capture/threads/threads.h"
#include "agent/capture/threads/waiters.h"
#include "agent/vm/class_map.h"
#include "agent/vm/class_object.h"
#include "agent/vm/self.h"
#include "base/clock.h"

#include <errno.h>

typedef jint(JNICALL *on_monitor)(JNIEnv *, jobject);

static on_monitor real_enter, real_exit;

/*
 * By class: the constant of its instances, and that of its object, if their monitors are recorded;
 * otherwise 0.
 */
static struct class_map recorded = {.lock = PTHREAD_MUTEX_INITIALIZER},
                        recorded_objects = {.lock = PTHREAD_MUTEX_INITIALIZER};

static uint64_t recorded_class(JNIEnv *jni, jobject object)
{
    jclass c = (*jni)->GetObjectClass(jni, object);
    bool of_classes = class_is_java_lang_class(jni, c);
    struct class_map *map = of_classes ? &recorded_objects : &recorded;
    jclass key = of_classes ? object : c;
    uint64_t constant = 0;
    if (!class_map_get(map, jni, key, &constant)) {
        constant = locks_constant(jni, key, of_classes);
        class_map_put(map, jni, key, constant);
    }
    (*jni)->DeleteLocalRef(jni, c);
    return constant;
}

static uint64_t caller(void)
{
    jvmtiFrameInfo frame;
    jint n = 0;
    if (self_frames(0, 1, &frame, &n) != JVMTI_ERROR_NONE || n != 1)
        return 0;
    struct jfr_frame out = {(uint64_t)(uintptr_t)frame.method, (int32_t)frame.location,
                            JFR_FRAME_JAVA};
    return jfr_trace(thread_capture.jfr, &out, 1, true);
}

static jint JNICALL our_enter(JNIEnv *jni, jobject object)
{
    uint64_t class = 0, trace = 0;
    if (object && threads_natives_enter()) {
        class = recorded_class(jni, object);
        trace = class ? caller() : 0;
        struct waiter *w = class ? native_self(jni) : NULL;
        if (w)
            locks_arriving(w, object_identity(object), now_ns());
        threads_natives_leave();
    }
    jint r = real_enter(jni, object);
    if (class && r == JNI_OK && threads_natives_enter()) {
        uint64_t now = now_ns();
        struct waiter *w = native_self(jni);
        if (w)
            locks_entered(w, class, object_identity(object), trace, now);
        threads_natives_leave();
    }
    return r;
}

/*
 * An exception may be pending, in which case JNI does not permit asking for the class. The hold is
 * therefore found by its object.
 */
static jint JNICALL our_exit(JNIEnv *jni, jobject object)
{
    uint64_t now = now_ns();
    jint r = real_exit(jni, object);
    if (object && r == JNI_OK && threads_natives_enter()) {
        struct waiter *w = native_self(jni);
        if (w && w->locks)
            locks_left(w, object_identity(object), now);
        threads_natives_leave();
    }
    return r;
}

static int set(bool to_ours)
{
    jniNativeInterface *table = NULL;
    if ((*vm.ti)->GetJNIFunctionTable(vm.ti, &table) != JVMTI_ERROR_NONE)
        return -EPROTO;
    if (to_ours) {
        real_enter = table->MonitorEnter;
        real_exit = table->MonitorExit;
        table->MonitorEnter = our_enter;
        table->MonitorExit = our_exit;
    } else {
        table->MonitorEnter = table->MonitorEnter == our_enter ? real_enter : table->MonitorEnter;
        table->MonitorExit = table->MonitorExit == our_exit ? real_exit : table->MonitorExit;
    }
    int r = (*vm.ti)->SetJNIFunctionTable(vm.ti, table) == JVMTI_ERROR_NONE ? 0 : -EPROTO;
    vm_free(table);
    return r;
}

int locks_jni_on(struct buf *why)
{
    class_map_release(&recorded, vm_jni());
    class_map_release(&recorded_objects, vm_jni());
    int r = set(true);
    if (r < 0)
        buf_printf(why, "the VM does not allow the functions of JNI to be replaced");
    return r;
}

void locks_jni_off(void)
{
    (void)!set(false);
}
