/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/vm/shown_thread.h"

#include "agent/vm/virtual_list.h"
#include "agent/vm/vm.h"

#include <stdio.h>
#include <string.h>

const char *shown_thread_number(char *to, size_t size, int64_t java_id, bool is_virtual)
{
    snprintf(to, size, "%s #%lld", is_virtual ? "virtual" : "thread", (long long)java_id);
    return to;
}

char *shown_thread_name(JNIEnv *jni, jthread t)
{
    jvmtiThreadInfo info = {0};
    char number[48];
    if ((*vm.ti)->GetThreadInfo(vm.ti, t, &info) != JVMTI_ERROR_NONE)
        return NULL;
    bool has_name = info.name && *info.name;
    char *name =
        strdup(has_name ? info.name
                        : shown_thread_number(number, sizeof(number), shown_thread_java_id(jni, t),
                                              thread_is_virtual(jni, t)));
    vm_free_thread_info(jni, &info);
    return name;
}

int64_t shown_thread_java_id(JNIEnv *jni, jthread t)
{
    /* The field has had the same name since JDK 5. */
    jfieldID f = vm_field(jni, "java/lang/Thread", "tid", "J");
    return f ? (*jni)->GetLongField(jni, t, f) : -1;
}
