/* SPDX-License-Identifier: Apache-2.0 */
#include "jvmpi/traces.h"
#include "jvmpi/classes.h"
#include "jvmpi/ids.h"
#include "jvmpi/interface.h"
#include "jvmpi/threads.h"

#include "base/map.h"
#include "jvmpi/probes.h"

#include <stdlib.h>

enum { DEPTH = 256, NATIVE_LINE = -3 /* as in the old VMs */ };

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

/*
 * raw: receives the VM's own ids of the frames' methods, or is NULL. Frames that the layer has
 * inserted are left out.
 */
static void fill(JVMPI_CallTrace *trace, jmethodID *raw, const jvmtiFrameInfo *frames, jint n)
{
    jint used = 0;
    for (jint i = 0; i < n; i++) {
        if (probe_is_own(frames[i].method))
            continue;
        if (raw)
            raw[used] = frames[i].method;
        trace->frames[used].method_id = layer_current_method(frames[i].method);
        trace->frames[used++].lineno = line_of(frames[i].method, frames[i].location);
    }
    trace->num_frames = used;
}

void layer_get_call_trace(JVMPI_CallTrace *trace, jint depth)
{
    JNIEnv *self = vm_jni();
    jint n = 0;
    if (!trace)
        return;
    trace->num_frames = 0;
    if (!self || depth <= 0 || !trace->frames || layer_mutation_eighth("no-trace"))
        return;
    jthread thread = trace->env_id == self ? NULL : layer_thread_of(self, trace->env_id);
    if (trace->env_id != self && !thread)
        return;
    jvmtiFrameInfo *frames = malloc((size_t)depth * sizeof(*frames));
    if (frames && !(*vm.ti)->GetStackTrace(vm.ti, thread, 0, depth, frames, &n))
        fill(trace, NULL, frames, n);
    free(frames);
    if (thread)
        (*self)->DeleteLocalRef(self, thread);
}

/* Adds threads for which the VM gives no trace, such as its own, without frames. */
static void add_frameless(const reported_thread_vec *threads, struct layer_traces *t)
{
    struct map seen = {0};
    t->n_listed = t->n;
    for (jint i = 0; i < t->n; i++)
        (void)!map_put(&seen, (uintptr_t)t->all[i].env_id, 1);
    for (size_t i = 0; i < threads->len; i++) {
        const struct reported_thread *r = &threads->data[i];
        if (map_get(&seen, (uintptr_t)r->env))
            continue;
        t->threads[t->n] = (jlong)(intptr_t)r->id;
        t->all[t->n++] = (JVMPI_CallTrace){r->env, 0, t->frames};
    }
    map_release(&seen);
}

bool traces_take(JNIEnv *env, const reported_thread_vec *threads, struct layer_traces *t)
{
    jint n = 0;
    size_t used = 0;
    jvmtiStackInfo *stacks = NULL;
    if (vm_all_stacks(DEPTH, &n, &stacks))
        return false;
    for (jint i = 0; i < n; i++)
        used += (size_t)stacks[i].frame_count;
    struct map reported = {0};
    for (size_t i = 0; i < threads->len; i++)
        (void)!map_put(&reported, (uintptr_t)threads->data[i].env, 1);
    t->all = calloc((size_t)n + threads->len + 1, sizeof(*t->all));
    t->threads = calloc((size_t)n + threads->len + 1, sizeof(*t->threads));
    t->frames = calloc(used + 1, sizeof(*t->frames));
    t->raw = calloc(used + 1, sizeof(*t->raw));
    bool ok = t->all && t->threads && t->frames && t->raw;
    used = 0;
    for (jint i = 0; i < n; i++) {
        JNIEnv *of = ok ? env_of(env, stacks[i].thread) : NULL;
        if (of && map_get(&reported, (uintptr_t)of)) {
            t->threads[t->n] = (jlong)(intptr_t)layer_id_of(stacks[i].thread);
            t->all[t->n] = (JVMPI_CallTrace){of, 0, t->frames + used};
            fill(&t->all[t->n++], t->raw + used, stacks[i].frame_buffer, stacks[i].frame_count);
            used += (size_t)stacks[i].frame_count;
        }
        (*env)->DeleteLocalRef(env, stacks[i].thread);
    }
    vm_free(stacks);
    map_release(&reported);
    if (ok)
        add_frameless(threads, t);
    return ok;
}

void layer_traces_release(struct layer_traces *t)
{
    free(t->all);
    free(t->threads);
    free(t->frames);
    free(t->raw);
}

static const JVMPI_CallTrace *trace_of(const struct layer_traces *t, jlong thread)
{
    for (jint i = 0; i < t->n; i++)
        if (t->threads[i] == thread)
            return &t->all[i];
    return NULL;
}

JNIEnv *traces_env(const struct layer_traces *t, jlong thread)
{
    const JVMPI_CallTrace *of = trace_of(t, thread);
    return of ? of->env_id : NULL;
}

JNIEnv *traces_hidden_env(const struct layer_traces *t, jlong thread)
{
    for (jint i = t->n_listed; i < t->n; i++)
        if (t->threads[i] == thread)
            return t->all[i].env_id;
    return NULL;
}

jint traces_frame(const struct layer_traces *t, jlong thread, jint depth, jmethodID method)
{
    const JVMPI_CallTrace *of = trace_of(t, thread);
    bool same = of && depth >= 0 && depth < of->num_frames &&
                t->raw[of->frames - t->frames + depth] == method;
    return same ? depth : -1;
}
