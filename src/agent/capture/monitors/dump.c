/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/capture/monitors/monitors.h"

#include "agent/output/dictionary.h"
#include "agent/stacks/names.h"
#include "agent/vm/monitor_usage.h"
#include "agent/vm/shown_class.h"
#include "base/vec.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_DEPTH = 1024, MAX_MONITORS = 4096 };

/* The objects seen so far, each once. Their numbers are their tags in a separate environment. */
struct seen {
    jvmtiEnv *ti;
    JNIEnv *jni;
    VEC(jobject) objects;
};

static void see(struct seen *seen, jobject object)
{
    jlong tag = 0;
    (*seen->ti)->GetTag(seen->ti, object, &tag);
    if (!tag && seen->objects.len < MAX_MONITORS && vec_push(&seen->objects, object) == 0)
        (*seen->ti)->SetTag(seen->ti, object, (jlong)seen->objects.len);
    else
        (*seen->jni)->DeleteLocalRef(seen->jni, object);
}

static uint32_t serial_of(JNIEnv *jni, jthread thread)
{
    struct thread *t = thread ? threads_find(jni, thread) : NULL;
    return t ? t->serial : 0;
}

/* Returns the trace of a thread's stack, and writes it if it is new. */
static uint32_t thread_trace(struct session *s, JNIEnv *jni, const jvmtiStackInfo *info)
{
    struct jfr_frame frames[MAX_DEPTH];
    jint n = MIN(info->frame_count, MAX_DEPTH);
    for (jint i = 0; i < n; i++)
        frames[i] = (struct jfr_frame){.method = (uint64_t)(uintptr_t)info->frame_buffer[i].method,
                                       .bci = (int32_t)info->frame_buffer[i].location};
    return dictionary_trace(s->out.dictionary, jni, frames, (uint32_t)n,
                            serial_of(jni, info->thread));
}

/* Writes a THREAD line and notes the monitors that the thread owns or waits for. */
static void dump_thread(struct session *s, JNIEnv *jni, struct hprof_text *out,
                        const jvmtiStackInfo *info, struct seen *seen)
{
    struct thread *t = threads_find(jni, info->thread);
    jint owned_count = 0;
    if (!t || t->own)
        return;
    hprof_text_monitors_thread(out, t->serial, thread_trace(s, jni, info), (uint32_t)info->state);
    jobject *owned = NULL, contended = NULL;
    if (vm.have.can_get_owned_monitor_info &&
        (*vm.ti)->GetOwnedMonitorInfo(vm.ti, info->thread, &owned_count, &owned) ==
            JVMTI_ERROR_NONE)
        for (jint i = 0; i < owned_count; i++)
            see(seen, owned[i]);
    vm_free(owned);
    if (vm.have.can_get_current_contended_monitor &&
        (*vm.ti)->GetCurrentContendedMonitor(vm.ti, info->thread, &contended) == JVMTI_ERROR_NONE &&
        contended)
        see(seen, contended);
}

/* Writes the serial numbers of threads, leaving out threads that are not known. */
static size_t serials(JNIEnv *jni, const jthread *threads, jint n, uint32_t *to)
{
    size_t len = 0;
    for (jint i = 0; i < n; i++) {
        uint32_t serial = serial_of(jni, threads[i]);
        if (serial)
            to[len++] = serial;
    }
    return len;
}

static void dump_monitor(JNIEnv *jni, struct hprof_text *out, const monitor_entrant_vec *entrants,
                         jobject object)
{
    jvmtiMonitorUsage usage;
    jclass class = (*jni)->GetObjectClass(jni, object);
    _cleanup_free_ char *signature = shown_class_signature(class);
    if (signature && !monitor_usage(vm.ti, jni, entrants, object, &usage)) {
        uint32_t *ids = calloc((size_t)usage.waiter_count + (size_t)usage.notify_waiter_count + 1,
                               sizeof(*ids));
        if (ids) {
            size_t enter = serials(jni, usage.waiters, usage.waiter_count, ids);
            const uint32_t *waiting = ids + enter;
            size_t wait =
                serials(jni, usage.notify_waiters, usage.notify_waiter_count, ids + enter);
            hprof_text_monitor(out, signature, serial_of(jni, usage.owner),
                               (uint32_t)usage.entry_count, ids, enter, waiting, wait);
        }
        monitor_usage_release(vm.ti, jni, &usage);
        free(ids);
    }
    (*jni)->DeleteLocalRef(jni, class);
}

void monitors_dump(struct session *s, JNIEnv *jni)
{
    const jvmtiCapabilities tags = {.can_tag_objects = 1};
    struct seen seen = {.jni = jni};
    monitor_entrant_vec entrants = {0};
    jvmtiStackInfo *infos = NULL;
    jint n = 0, depth = (jint)MIN(s->options.v[OPT_DEPTH].number, MAX_DEPTH);
    if ((*vm.java)->GetEnv(vm.java, (void **)&seen.ti, JVMTI_VERSION_1_2) != JNI_OK)
        return;
    /*
     * The section is built in memory, because TRACEs are written to the output meanwhile and must
     * not appear inside it.
     */
    struct buf section;
    struct hprof_text out;
    out_section_open(&out, &section);
    hprof_text_monitors_begin(&out);
    if ((*seen.ti)->AddCapabilities(seen.ti, &tags) == JVMTI_ERROR_NONE &&
        vm_all_stacks(depth, &n, &infos) == JVMTI_ERROR_NONE) {
        for (jint i = 0; i < n; i++) {
            dump_thread(s, jni, &out, &infos[i], &seen);
            (*jni)->DeleteLocalRef(jni, infos[i].thread);
        }
        vm_free(infos);
    }
    /* If it fails, the VM's own lists of waiting threads are used. */
    (void)!monitor_entrants_find(vm.ti, jni, &entrants);
    for (size_t i = 0; i < seen.objects.len; i++) {
        dump_monitor(jni, &out, &entrants, seen.objects.data[i]);
        (*jni)->DeleteLocalRef(jni, seen.objects.data[i]);
    }
    monitor_entrants_release(jni, &entrants);
    hprof_text_monitors_end(&out);
    out_section_close(&s->out, &out, &section);
    vec_release(&seen.objects);
    (*seen.ti)->DisposeEnvironment(seen.ti);
}
