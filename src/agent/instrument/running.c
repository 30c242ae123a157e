/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/instrument/running.h"

#include "agent/instrument/instrument.h"
#include "agent/stacks/names.h"
#include "agent/vm/thread_table.h"
#include "base/buf.h"
#include "base/dotted.h"
#include "base/map.h"
#include "options/signature.h"

#include <string.h>

/*
 * RUNNING_DEPTH: frames of each thread that are examined. NAMES_MAX: methods that a message names.
 */
enum { RUNNING_DEPTH = 128, NAMES_MAX = 12 };

struct running {
    const struct method *named[NAMES_MAX]; /* the program's before the JDK's */
    unsigned n_named, of_program;
    uint64_t n;
};

static bool is_chosen(const struct method *m)
{
    return instrument_chosen((struct str){m->class_name, strlen(m->class_name)},
                             (struct str){m->name, strlen(m->name)},
                             (struct str){m->descriptor, strlen(m->descriptor)});
}

/* Adds a method to the named ones. Methods of the program displace those of the JDK. */
static void add(struct running *r, const struct method *m)
{
    bool jdk = instrument_is_jdk((struct str){m->class_name, strlen(m->class_name)});
    unsigned at = jdk ? r->n_named : r->of_program;
    r->n++;
    if (at == NAMES_MAX)
        return;
    r->of_program += !jdk;
    r->n_named = MIN(r->n_named + 1, (unsigned)NAMES_MAX);
    memmove(&r->named[at + 1], &r->named[at], (r->n_named - 1 - at) * sizeof(r->named[0]));
    r->named[at] = m;
}

static void check_method(JNIEnv *jni, jmethodID id, bool (*is_meant)(const struct method *m),
                         struct running *r)
{
    jboolean old = JNI_FALSE;
    if ((*vm.ti)->IsMethodObsolete(vm.ti, id, &old) != JVMTI_ERROR_NONE || !old)
        return;
    const struct method *m = names_method(jni, id);
    if (m && is_meant(m))
        add(r, m);
}

/* Returns whether another named method differs only in its parameters. */
static bool is_overloaded(const struct running *r, unsigned i)
{
    const struct method *m = r->named[i];
    for (unsigned k = 0; k < r->n_named; k++)
        if (strcmp(r->named[k]->name, m->name) == 0 &&
            strcmp(r->named[k]->class_name, m->class_name) == 0 &&
            strcmp(r->named[k]->descriptor, m->descriptor) != 0)
            return true;
    return false;
}

/*
 * Writes the names of methods. If several methods have the same name, their parameters are written
 * too, as in patterns.
 */
static void put_names(const struct running *r, struct buf *names)
{
    for (unsigned i = 0; i < r->n_named; i++) {
        buf_string(names, i ? ", " : "");
        dotted_append(names, r->named[i]->class_name, strlen(r->named[i]->class_name));
        buf_printf(names, ".%s", r->named[i]->name);
        if (is_overloaded(r, i))
            signature_put_parameters(names, r->named[i]->descriptor);
    }
    if (r->n > r->n_named)
        buf_printf(names, " and %llu more", (unsigned long long)(r->n - r->n_named));
}

void instrument_lose_running(struct jfr_writer *w, JNIEnv *jni, enum jfr_loss loss,
                             bool (*is_meant)(const struct method *m))
{
    _cleanup_(buf_release) struct buf names = BUF(8192);
    struct map seen = {0};
    struct running running = {0};
    jvmtiStackInfo *infos = NULL;
    jint threads = 0;
    if ((*jni)->PushLocalFrame(jni, 64) != 0) {
        vm_clear_exception(jni);
        return;
    }
    if (vm_all_stacks(RUNNING_DEPTH, &threads, &infos) != JVMTI_ERROR_NONE)
        threads = 0;
    for (jint i = 0; i < threads; i++)
        for (jint k = 0; k < infos[i].frame_count; k++) {
            jmethodID method = infos[i].frame_buffer[k].method;
            bool added = false;
            if (map_at(&seen, (uint64_t)(uintptr_t)method, 0, &added) && added)
                check_method(jni, method, is_meant ? is_meant : is_chosen, &running);
        }
    put_names(&running, &names);
    jfr_lose_named(w, loss, running.n, buf_str(&names));
    vm_free(infos);
    map_release(&seen);
    (*jni)->PopLocalFrame(jni, NULL);
}

static bool is_running(JNIEnv *jni, const jvmtiStackInfo *info,
                       bool (*is_meant)(const struct method *m))
{
    for (jint k = 0; k < info->frame_count; k++) {
        const struct method *m = names_method(jni, info->frame_buffer[k].method);
        if (m && is_meant(m))
            return true;
    }
    return false;
}

uint64_t instrument_running_threads(JNIEnv *jni, bool (*is_meant)(const struct method *m))
{
    jvmtiStackInfo *infos = NULL;
    jint threads = 0;
    uint64_t n = 0;
    if ((*jni)->PushLocalFrame(jni, 64) != 0) {
        vm_clear_exception(jni);
        return 0;
    }
    if (vm_all_stacks(RUNNING_DEPTH, &threads, &infos) != JVMTI_ERROR_NONE)
        threads = 0;
    for (jint i = 0; i < threads; i++)
        n += is_running(jni, &infos[i], is_meant);
    vm_free(infos);
    (*jni)->PopLocalFrame(jni, NULL);
    return n;
}
