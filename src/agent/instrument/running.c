/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/instrument/running.h"

#include "agent/instrument/instrument.h"
#include "agent/vm/names.h"
#include "agent/vm/thread_table.h"
#include "base/map.h"

#include <string.h>

/* Frames of each thread that are looked at. */
enum { RUNNING_DEPTH = 128 };

static bool runs_old_code(JNIEnv *jni, jmethodID method)
{
    jboolean old = JNI_FALSE;
    if ((*vm.ti)->IsMethodObsolete(vm.ti, method, &old) != JVMTI_ERROR_NONE || !old)
        return false;
    const struct method *m = names_method(jni, method);
    return m && instrument_chosen((struct str){m->class_name, strlen(m->class_name)},
                                  (struct str){m->name, strlen(m->name)});
}

uint64_t instrument_running(JNIEnv *jni)
{
    struct map seen = {0};
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
        for (jint k = 0; k < infos[i].frame_count; k++) {
            jmethodID method = infos[i].frame_buffer[k].method;
            bool added = false;
            if (map_at(&seen, (uint64_t)(uintptr_t)method, 0, &added) && added)
                n += runs_old_code(jni, method);
        }
    vm_free(infos);
    map_release(&seen);
    (*jni)->PopLocalFrame(jni, NULL);
    return n;
}
