/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/vm/virtual_threads.h"

#include "agent/vm/virtual_list.h"

#include "base/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* a separate environment, because an extension event can have only one callback in each */
static jvmtiEnv *ti;
static jint mount_event, unmount_event;
static jfieldID tid_field, name_field;
static unsigned users;

/* by thread_index: Thread.threadId() of the mounted virtual thread; 0: none */
static _Atomic uint64_t mounted[THREADS_MAX];
/* since when, in ns; 0: none is mounted, or that was not seen */
static _Atomic uint64_t mounted_since[THREADS_MAX];
static _Atomic uint64_t mounted_ns; /* by threads that are no longer mounted */

/* A fixed number of names by thread id; a newer thread replaces an older one. */
enum { NAMES = 1 << 14, NAME_CHARS = 31 };

static struct {
    _Atomic uint64_t id; /* 0 while the name is changed */
    char name[3 * NAME_CHARS + 1];
} names[NAMES];

/* Returns the entry of the calling carrier. The last result is cached, because mounts are short. */
static struct thread *carrier(JNIEnv *jni)
{
    static __thread struct thread *last;
    static __thread uint32_t serial;
    if (!last || atomic_load(&last->env) != jni || atomic_load(&last->serial) != serial) {
        last = threads_by_env(jni);
        serial = last ? atomic_load(&last->serial) : 0;
    }
    return last;
}

static void learn_name(JNIEnv *jni, jthread thread, uint64_t id)
{
    char *to = names[id % NAMES].name;
    atomic_store(&names[id % NAMES].id, 0);
    to[0] = 0;
    jstring name = (*jni)->GetObjectField(jni, thread, name_field);
    if (name) {
        jint len = (*jni)->GetStringLength(jni, name);
        (*jni)->GetStringUTFRegion(jni, name, 0, MIN(len, NAME_CHARS), to);
        (*jni)->DeleteLocalRef(jni, name);
    }
    atomic_store(&names[id % NAMES].id, id);
}

static void JNICALL on_mount(jvmtiEnv *env, JNIEnv *jni, jthread thread)
{
    struct thread *t = carrier(jni);
    if (!t)
        return;
    uint64_t id = (uint64_t)(*jni)->GetLongField(jni, thread, tid_field);
    if (atomic_load(&names[id % NAMES].id) != id)
        learn_name(jni, thread, id);
    atomic_store(&mounted_since[thread_index(t)], now_ns());
    atomic_store(&mounted[thread_index(t)], id);
}

static void JNICALL on_unmount(jvmtiEnv *env, JNIEnv *jni, jthread thread)
{
    struct thread *t = carrier(jni);
    if (!t)
        return;
    atomic_store(&mounted[thread_index(t)], 0);
    uint64_t since = atomic_exchange(&mounted_since[thread_index(t)], 0);
    if (since)
        atomic_fetch_add(&mounted_ns, now_ns() - since);
}

uint64_t virtual_threads_mounted_ns(void)
{
    uint64_t ns = atomic_load(&mounted_ns), now = now_ns();
    for (uint32_t i = 0; i < threads_used(); i++) {
        uint64_t since = atomic_load(&mounted_since[i]);
        ns += since && since < now ? now - since : 0;
    }
    return ns;
}

bool virtual_thread_name(uint64_t id, char *ret, size_t size)
{
    id &= ~THREAD_VIRTUAL;
    bool known = atomic_load(&names[id % NAMES].id) == id;
    snprintf(ret, size, "%.*s", 3 * NAME_CHARS, names[id % NAMES].name);
    return known && atomic_load(&names[id % NAMES].id) == id;
}

at_each_sample uint64_t virtual_thread_id(const struct thread *t)
{
    uint64_t id = atomic_load(&mounted[thread_index(t)]);
    return id ? THREAD_VIRTUAL | id : atomic_load(&t->serial);
}

void virtual_threads_find_events(jvmtiEnv *env, jint *mount, jint *unmount)
{
    jvmtiExtensionEventInfo *list = NULL;
    jint n = 0;
    if ((*env)->GetExtensionEvents(env, &n, &list) != JVMTI_ERROR_NONE)
        return;
    for (jint i = 0; i < n; i++) {
        if (strstr(list[i].id, "VirtualThreadMount"))
            *mount = list[i].extension_event_index;
        if (strstr(list[i].id, "VirtualThreadUnmount"))
            *unmount = list[i].extension_event_index;
        for (jint k = 0; k < list[i].param_count; k++)
            vm_free(list[i].params[k].name);
        vm_free(list[i].params);
        vm_free(list[i].id);
        vm_free(list[i].short_description);
    }
    vm_free(list);
}

static bool prepare(JNIEnv *jni)
{
    jvmtiCapabilities wanted = {0};
    tid_field = vm_field(jni, "java/lang/Thread", "tid", "J");
    name_field = tid_field ? vm_field(jni, "java/lang/Thread", "name", "Ljava/lang/String;") : NULL;
    if (!name_field || (*vm.java)->GetEnv(vm.java, (void **)&ti, JVMTI_VERSION_1_2) != JNI_OK)
        return false;
    vm_capability_virtual_threads(&wanted);
    if ((*ti)->AddCapabilities(ti, &wanted) != JVMTI_ERROR_NONE)
        return false;
    virtual_threads_find_events(ti, &mount_event, &unmount_event);
    return mount_event && unmount_event &&
           (*ti)->SetExtensionEventCallback(
               ti, mount_event, (jvmtiExtensionEvent)(void *)on_mount) == JVMTI_ERROR_NONE &&
           (*ti)->SetExtensionEventCallback(
               ti, unmount_event, (jvmtiExtensionEvent)(void *)on_unmount) == JVMTI_ERROR_NONE;
}

static bool switch_events(jvmtiEventMode mode)
{
    return (*ti)->SetEventNotificationMode(ti, mode, (jvmtiEvent)mount_event, NULL) ==
               JVMTI_ERROR_NONE &&
           (*ti)->SetEventNotificationMode(ti, mode, (jvmtiEvent)unmount_event, NULL) ==
               JVMTI_ERROR_NONE;
}

/* ---- threads that are already mounted ---- */

struct mounts {
    JNIEnv *jni;
    uint32_t carriers[THREADS_MAX / 64]; /* by thread_index */
    jobject threads[THREADS_MAX / 64];
    uint64_t ids[THREADS_MAX / 64];
    uint32_t n;
};

static void on_mounted(const struct existing_virtual *v, void *arg)
{
    struct mounts *found = arg;
    uint64_t none = 0;
    if (!v->carrier || found->n == ARRAY_SIZE(found->ids))
        return;
    if (atomic_load(&names[v->id % NAMES].id) != v->id)
        learn_name(found->jni, v->thread, v->id);
    if (!atomic_compare_exchange_strong(&mounted[thread_index(v->carrier)], &none, v->id))
        return;
    atomic_store(&mounted_since[thread_index(v->carrier)], now_ns());
    found->carriers[found->n] = thread_index(v->carrier);
    found->threads[found->n] = (*found->jni)->NewLocalRef(found->jni, v->thread);
    found->ids[found->n++] = v->id;
}

/*
 * Finds the virtual threads that were mounted before the events were enabled. A thread that leaves
 * its carrier while it is being added is removed again.
 */
static void find_mounted(JNIEnv *jni)
{
    uint64_t left;
    struct mounts *found = calloc(1, sizeof(*found));
    if (!found || (*jni)->PushLocalFrame(jni, ARRAY_SIZE(found->ids) + 64) != 0) {
        vm_clear_exception(jni);
        free(found);
        return;
    }
    found->jni = jni;
    (void)!virtual_threads_visit(jni, on_mounted, found, &left);
    for (uint32_t i = 0; i < found->n; i++) {
        const struct thread *on = virtual_thread_carrier(jni, found->threads[i]);
        if (on && thread_index(on) == found->carriers[i])
            continue;
        atomic_store(&mounted_since[found->carriers[i]], 0);
        atomic_compare_exchange_strong(&mounted[found->carriers[i]], &found->ids[i], 0);
    }
    (*jni)->PopLocalFrame(jni, NULL);
    free(found);
}

bool virtual_threads_on(JNIEnv *jni)
{
    static bool tried, available;
    if (vm.version < 21)
        return false;
    if (!tried)
        available = prepare(jni);
    tried = true;
    if (users == 0)
        atomic_store(&mounted_ns, 0);
    if (!available || (users == 0 && !switch_events(JVMTI_ENABLE)))
        return false;
    if (users++ == 0 && vm.late)
        find_mounted(jni);
    return true;
}

void virtual_threads_off(void)
{
    if (users == 0 || --users > 0)
        return;
    switch_events(JVMTI_DISABLE);
    for (uint32_t i = 0; i < threads_used(); i++)
        if (atomic_load(&mounted[i])) {
            atomic_store(&mounted[i], 0);
            atomic_store(&mounted_since[i], 0);
        }
}
