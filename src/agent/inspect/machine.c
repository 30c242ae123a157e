/* SPDX-License-Identifier: Apache-2.0 */
/* The question vm: the VM's identity and capabilities. */
#include "agent/inspect/inspect.h"

#include <stdio.h>

static void put_capabilities(struct inspection *i, const char *key, const jvmtiCapabilities *c)
{
    _cleanup_(buf_release) struct buf names = BUF(8192);
    vm_capability_names(c, &names);
    json_key_string(i->out, key, buf_str(&names));
}

static void put_property(struct inspection *i, const char *key, const char *name)
{
    char *value = NULL;
    if ((*i->ti)->GetSystemProperty(i->ti, name, &value) == JVMTI_ERROR_NONE) {
        json_key_string(i->out, key, value);
        vm_free(value);
    }
}

/*
 * Writes the version as `java -version` prints it. HotSpot's own version of JDK 8 is another one,
 * such as 25.504-b01 for Java 1.8.0_504, and is written as well.
 */
static void put_version(struct inspection *i)
{
    jclass c = vm.version <= 8 ? vm_find_class(i->jni, "sun/misc/Version") : NULL;
    jfieldID f =
        c ? (*i->jni)->GetStaticFieldID(i->jni, c, "java_version", "Ljava/lang/String;") : NULL;
    jstring java = f ? (*i->jni)->GetStaticObjectField(i->jni, c, f) : NULL;
    vm_clear_exception(i->jni);
    if (java)
        inspect_put_string(i, "version", java);
    put_property(i, java ? "hotspot_version" : "version", "java.vm.version");
    if (c)
        (*i->jni)->DeleteLocalRef(i->jni, c);
}

static void put_timer(struct inspection *i, const char *key, const jvmtiTimerInfo *t)
{
    json_key_object(i->out, key);
    json_key_string(i->out, "max_value", t->max_value == -1 ? "2^64-1" : "bounded");
    json_key_bool(i->out, "skips_forward", t->may_skip_forward);
    json_key_bool(i->out, "skips_backward", t->may_skip_backward);
    json_key_string(i->out, "kind",
                    t->kind == JVMTI_TIMER_USER_CPU    ? "user"
                    : t->kind == JVMTI_TIMER_TOTAL_CPU ? "total"
                                                       : "elapsed");
    json_end_object(i->out);
}

static void put_extensions(struct inspection *i)
{
    jint n = 0;
    jvmtiExtensionFunctionInfo *functions = NULL;
    jvmtiExtensionEventInfo *events = NULL;
    json_key_array(i->out, "extension_functions");
    if ((*i->ti)->GetExtensionFunctions(i->ti, &n, &functions) == JVMTI_ERROR_NONE) {
        for (jint k = 0; k < n; k++)
            json_string(i->out, functions[k].id);
    }
    json_end_array(i->out);
    json_key_array(i->out, "extension_events");
    if ((*i->ti)->GetExtensionEvents(i->ti, &n, &events) == JVMTI_ERROR_NONE) {
        for (jint k = 0; k < n; k++)
            json_string(i->out, events[k].id);
    }
    json_end_array(i->out);
    vm_free(functions);
    vm_free(events);
}

int inspect_vm(struct inspection *i)
{
    jvmtiCapabilities potential = {0};
    jvmtiTimerInfo timer = {0};
    jint version = 0, processors = 0;
    jlong now = 0;
    jvmtiJlocationFormat format = JVMTI_JLOCATION_OTHER;
    (*i->ti)->GetPotentialCapabilities(i->ti, &potential);
    (*i->ti)->GetVersionNumber(i->ti, &version);
    (*i->ti)->GetAvailableProcessors(i->ti, &processors);
    (*i->ti)->GetTime(i->ti, &now);
    (*i->ti)->GetJLocationFormat(i->ti, &format);
    put_property(i, "name", "java.vm.name");
    put_property(i, "vendor", "java.vm.vendor");
    put_version(i);
    put_property(i, "info", "java.vm.info");
    put_property(i, "class_path", "java.class.path");
    put_property(i, "library_path", "java.library.path");
    char text[32];
    snprintf(text, sizeof(text), "%d.%d.%d", version >> 16 & 0xfff, version >> 8 & 0xff,
             version & 0xff);
    json_key_string(i->out, "jvmti", text);
    json_key_i64(i->out, "processors", processors);
    json_key_i64(i->out, "time_ns", now);
    json_key_string(i->out, "locations",
                    format == JVMTI_JLOCATION_JVMBCI ? "bytecode index" : "other");
    put_capabilities(i, "capabilities_held", &vm.have);
    put_capabilities(i, "capabilities_to_be_had", &potential);
    if ((*i->ti)->GetTimerInfo(i->ti, &timer) == JVMTI_ERROR_NONE)
        put_timer(i, "timer", &timer);
    if (i->have.can_get_thread_cpu_time &&
        (*i->ti)->GetThreadCpuTimerInfo(i->ti, &timer) == JVMTI_ERROR_NONE)
        put_timer(i, "cpu_timer", &timer);
    put_extensions(i);
    return 0;
}
