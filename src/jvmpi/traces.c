/* SPDX-License-Identifier: Apache-2.0 */
#include "jvmpi/traces.h"

#include <stdlib.h>

enum { DEPTH = 256, NATIVE_LINE = -3 /* as the old VMs have it */ };

static jint line_of(jmethodID method, jlocation at)
{
    jint n = 0, line = -1;
    jvmtiLineNumberEntry *lines = NULL;
    if (at < 0)
        return NATIVE_LINE;
    if ((*vm.ti)->GetLineNumberTable(vm.ti, method, &n, &lines))
        return -1;
    jlocation best = -1;
    for (jint i = 0; i < n; i++) {
        if (lines[i].start_location <= at && lines[i].start_location > best) {
            best = lines[i].start_location;
            line = lines[i].line_number;
        }
    }
    vm_free(lines);
    return line;
}

static void fill(JVMPI_CallTrace *trace, const jvmtiFrameInfo *frames, jint n)
{
    for (jint i = 0; i < n; i++) {
        trace->frames[i].method_id = frames[i].method;
        trace->frames[i].lineno = line_of(frames[i].method, frames[i].location);
    }
    trace->num_frames = n;
}

void get_call_trace(JVMPI_CallTrace *trace, jint depth)
{
    JNIEnv *self = vm_jni();
    jint n = 0;
    trace->num_frames = 0;
    if (!self || depth <= 0 || !trace->frames)
        return;
    jthread thread = trace->env_id == self ? NULL : thread_of(self, trace->env_id);
    if (trace->env_id != self && !thread)
        return;
    jvmtiFrameInfo *frames = malloc((size_t)depth * sizeof(*frames));
    if (frames && !(*vm.ti)->GetStackTrace(vm.ti, thread, 0, depth, frames, &n))
        fill(trace, frames, n);
    free(frames);
    if (thread)
        (*self)->DeleteLocalRef(self, thread);
}

bool traces_take(JNIEnv *env, struct traces *t)
{
    jint n = 0;
    size_t used = 0;
    jvmtiStackInfo *stacks = NULL;
    if ((*vm.ti)->GetAllStackTraces(vm.ti, DEPTH, &stacks, &n))
        return false;
    for (jint i = 0; i < n; i++)
        used += (size_t)stacks[i].frame_count;
    t->all = calloc((size_t)n + 1, sizeof(*t->all));
    t->threads = calloc((size_t)n + 1, sizeof(*t->threads));
    t->frames = calloc(used + 1, sizeof(*t->frames));
    bool ok = t->all && t->threads && t->frames;
    used = 0;
    for (jint i = 0; i < n; i++) {
        JNIEnv *of = ok ? env_of(env, stacks[i].thread) : NULL;
        if (of) {
            t->threads[t->n] = (jlong)(intptr_t)id_of(stacks[i].thread);
            t->all[t->n] = (JVMPI_CallTrace){of, 0, t->frames + used};
            fill(&t->all[t->n++], stacks[i].frame_buffer, stacks[i].frame_count);
            used += (size_t)stacks[i].frame_count;
        }
        (*env)->DeleteLocalRef(env, stacks[i].thread);
    }
    vm_free(stacks);
    return ok;
}

void traces_release(struct traces *t)
{
    free(t->all);
    free(t->threads);
    free(t->frames);
}

static const JVMPI_CallTrace *trace_of(const struct traces *t, jlong thread)
{
    for (jint i = 0; i < t->n; i++)
        if (t->threads[i] == thread)
            return &t->all[i];
    return NULL;
}

JNIEnv *traces_env(const struct traces *t, jlong thread)
{
    const JVMPI_CallTrace *of = trace_of(t, thread);
    return of ? of->env_id : NULL;
}

jint traces_frame(const struct traces *t, jlong thread, jint depth, jmethodID method)
{
    const JVMPI_CallTrace *of = trace_of(t, thread);
    bool same = of && depth >= 0 && depth < of->num_frames && of->frames[depth].method_id == method;
    return same ? depth : -1;
}
