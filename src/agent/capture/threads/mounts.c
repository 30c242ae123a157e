/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Virtual threads that are mounted and unmounted, reported by HotSpot's extension events: 218 to
 * 350 ns for the two (JDK 25).
 */
#include "agent/capture/threads/threads.h"

#include "agent/vm/virtual_threads.h"

#include <string.h>

static jint mount_event, unmount_event; /* 0: unknown */

void put_unmounted(uint64_t thread, const struct wait *was, uint64_t ns)
{
    struct jfr_event e;
    if (!jfr_begin(thread_capture.jfr, thread_capture.types[TYPE_UNMOUNTED], 0, &e))
        return;
    jfr_put_time(&e, was->start);
    jfr_put_long(&e, (int64_t)ns);
    jfr_put_long(&e, (int64_t)thread);
    jfr_put_long(&e, (int64_t)was->trace);
    jfr_put_long(&e, (int64_t)was->class);
    jfr_put_long(&e, was->object);
    jfr_commit(&e);
}

static void JNICALL on_unmount(jvmtiEnv *ti, JNIEnv *jni, jthread thread)
{
    if (!natives_enter())
        return;
    struct waiter *w = waiter_self(jni, thread);
    /* When a wait for a monitor unmounts the thread, only the wait is recorded. */
    if (w && !atomic_load(&w->waits[WAIT_ENTER].start) &&
        !atomic_load(&w->waits[WAIT_OBJECT].start)) {
        jobject blocker = (*jni)->GetObjectField(jni, thread, thread_capture.park_blocker);
        struct wait how = {.class = object_class(jni, blocker),
                           .object = object_identity(blocker),
                           .trace = stack_unmounting()};
        how.owned = blocker && thread_capture.watch && watch_owned(jni, blocker);
        if (blocker)
            (*jni)->DeleteLocalRef(jni, blocker);
        wait_begin(w, WAIT_UNMOUNTED, &how);
    }
    if (w)
        thread_carries(jni, 0);
    natives_leave();
}

static void JNICALL on_mount(jvmtiEnv *ti, JNIEnv *jni, jthread thread)
{
    if (!natives_enter())
        return;
    struct waiter *w = waiter_self(jni, thread);
    struct wait was;
    uint64_t ns;
    if (w && waiter_self(jni, NULL))
        thread_carries(jni, w->id);
    if (w && wait_end(w, WAIT_UNMOUNTED, &was, &ns))
        put_unmounted(w->id, &was, ns);
    natives_leave();
}

static bool listen(jint event, jvmtiExtensionEvent callback)
{
    /* The VM requires both the callback and the event to be enabled by its number. */
    return event &&
           (*vm.ti)->SetExtensionEventCallback(vm.ti, event, callback) == JVMTI_ERROR_NONE &&
           (*vm.ti)->SetEventNotificationMode(vm.ti, callback ? JVMTI_ENABLE : JVMTI_DISABLE,
                                              (jvmtiEvent)event, NULL) == JVMTI_ERROR_NONE;
}

bool mounts_on(void)
{
    jvmtiExtensionEventInfo *list = NULL;
    jint n = 0;
    if ((*vm.ti)->GetExtensionEvents(vm.ti, &n, &list) != JVMTI_ERROR_NONE)
        return false;
    for (jint i = 0; i < n; i++) {
        if (strstr(list[i].id, "VirtualThreadMount"))
            mount_event = list[i].extension_event_index;
        if (strstr(list[i].id, "VirtualThreadUnmount"))
            unmount_event = list[i].extension_event_index;
    }
    virtual_threads_free_events(list, n);
    return listen(unmount_event, (jvmtiExtensionEvent)(void *)on_unmount) &&
           listen(mount_event, (jvmtiExtensionEvent)(void *)on_mount);
}

void mounts_off(void)
{
    (void)listen(unmount_event, NULL);
    (void)listen(mount_event, NULL);
}
