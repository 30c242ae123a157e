/* SPDX-License-Identifier: Apache-2.0 */
/*
 * With jfr= the VM's own Flight Recorder records as well. Its recording is written to a file next
 * to the output when ours ends, and its chunks are appended to the output (output/out.h). Events
 * that our recording has are switched off there. Another recording in the VM may have switched them
 * on, and the recorder writes each event for all recordings: these are left out when the chunks are
 * appended, and counted in jvmscope.LeftOut. All of this calls the classes of jdk.jfr, whose
 * interface is the same from JDK 8u262 to 27.
 */
#include "agent/common/fault.h"
#include "agent/session/capture.h"
#include "agent/session/captures.h"
#include "agent/session/session.h"
#include "agent/vm/flags.h"
#include "jfr/reader.h"
#include "jfr/writer.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

enum { LOCALS = 32, LEFT_OUT_TYPES = 96, NAME_SIZE = 40 };

/* Every recording of ours describes the VM and the system. */
#define OUR_OWN "jdk.JVMInformation jdk.OSInformation "

static struct {
    jobject recording; /* global reference to a jdk.jfr.Recording; NULL: none was started */
    char path[PATH_MAX];
    /* the types of events that our recording has; the tag is the place in the array */
    struct rec_select left_out[LEFT_OUT_TYPES + 1];
    char names[LEFT_OUT_TYPES][NAME_SIZE];
    int types;
} flight;

static const struct jfr_type left_out_type = {
    .name = "jvmscope.LeftOut",
    .label = "Events Left Out",
    .category = "jvmscope",
    .description =
        "Events of the VM's own recorder that were left out, because jvmscope recorded the same",
    .kind = JFR_EVENT,
    .fields = JFR_FIELDS({"type", "Type", "java.lang.String"}, {"events", "Events", "long"}),
};

static bool flight_wanted(const struct options *o)
{
    return o->v[OPT_JFR].text != NULL;
}

/* ---- calls into jdk.jfr; after a failure an exception is pending, and the rest is skipped ---- */

static jobject call_static(JNIEnv *jni, const char *class_name, const char *name, const char *type,
                           jobject a, jobject b)
{
    jclass class = (*jni)->ExceptionCheck(jni) ? NULL : (*jni)->FindClass(jni, class_name);
    jmethodID method = class ? (*jni)->GetStaticMethodID(jni, class, name, type) : NULL;
    return method ? (*jni)->CallStaticObjectMethod(jni, class, method, a, b) : NULL;
}

static jmethodID method_of_recording(JNIEnv *jni, jobject recording, const char *name,
                                     const char *type)
{
    jclass class = (*jni)->ExceptionCheck(jni) ? NULL : (*jni)->GetObjectClass(jni, recording);
    return class ? (*jni)->GetMethodID(jni, class, name, type) : NULL;
}

static jobject path_of(JNIEnv *jni, const char *text)
{
    jclass class = (*jni)->ExceptionCheck(jni) ? NULL : (*jni)->FindClass(jni, "java/lang/String");
    jobjectArray none = class ? (*jni)->NewObjectArray(jni, 0, class, NULL) : NULL;
    jstring name = none ? (*jni)->NewStringUTF(jni, text) : NULL;
    return name ? call_static(jni, "java/nio/file/Paths", "get",
                              "(Ljava/lang/String;[Ljava/lang/String;)Ljava/nio/file/Path;", name,
                              none)
                : NULL;
}

/*
 * Returns the settings of a file, or those for whose name the JDK has a file ("default",
 * "profile").
 */
static jobject configuration_of(JNIEnv *jni, const char *text)
{
    if (option_is_settings_file(text))
        return call_static(jni, "jdk/jfr/Configuration", "create",
                           "(Ljava/nio/file/Path;)Ljdk/jfr/Configuration;", path_of(jni, text),
                           NULL);
    jstring name = (*jni)->NewStringUTF(jni, text);
    return name ? call_static(jni, "jdk/jfr/Configuration", "getConfiguration",
                              "(Ljava/lang/String;)Ljdk/jfr/Configuration;", name, NULL)
                : NULL;
}

/*
 * With these collectors the recorder of JDK 11 cannot take samples of old objects, and says so on
 * the program's standard output. Some unmaintained versions before 17 can; the samples are skipped
 * there too.
 */
static bool lacks_old_objects(void)
{
    return vm.version >= 11 && vm.version < 17 && (vm_flag("UseZGC") || vm_flag("UseShenandoahGC"));
}

/* Notes the types whose names are in a list with a space after each. */
static void leave_out(const char *names)
{
    for (size_t n; names && (n = strcspn(names, " ")) > 0; names += n + 1) {
        if (flight.types == LEFT_OUT_TYPES)
            return;
        char *name = flight.names[flight.types];
        snprintf(name, NAME_SIZE, "%.*s", (int)n, names);
        flight.left_out[flight.types] = (struct rec_select){name, flight.types};
        flight.types++;
    }
    flight.left_out[flight.types] = (struct rec_select){0};
}

static void switch_off(JNIEnv *jni, jobject recording, const char *name)
{
    jmethodID disable = method_of_recording(jni, recording, "disable",
                                            "(Ljava/lang/String;)Ljdk/jfr/EventSettings;");
    jstring text = disable ? (*jni)->NewStringUTF(jni, name) : NULL;
    jobject settings = text ? (*jni)->CallObjectMethod(jni, recording, disable, text) : NULL;
    if ((*jni)->ExceptionCheck(jni))
        return;
    (*jni)->DeleteLocalRef(jni, settings);
    (*jni)->DeleteLocalRef(jni, text);
}

static jobject recording_of(JNIEnv *jni, jobject configuration)
{
    jclass class = (*jni)->ExceptionCheck(jni) || !configuration
                       ? NULL
                       : (*jni)->FindClass(jni, "jdk/jfr/Recording");
    jmethodID make =
        class ? (*jni)->GetMethodID(jni, class, "<init>", "(Ljdk/jfr/Configuration;)V") : NULL;
    return make ? (*jni)->NewObject(jni, class, make, configuration) : NULL;
}

/* Starts a recording that is written to flight.path when it is stopped or the VM ends. */
static jobject start_recording(struct session *s, JNIEnv *jni, const char *settings)
{
    jobject recording = recording_of(jni, configuration_of(jni, settings));
    if (!recording)
        return NULL;
    flight.types = 0;
    leave_out(OUR_OWN);
    for (int i = 0; i < captures_count; i++)
        if (captures_has(s->loaded, i))
            leave_out(captures[i]->jdk_events);
    for (int i = 0; i < flight.types; i++)
        switch_off(jni, recording, flight.names[i]);
    if (lacks_old_objects())
        switch_off(jni, recording, "jdk.OldObjectSample");
    jmethodID name = method_of_recording(jni, recording, "setName", "(Ljava/lang/String;)V");
    jstring ours = name ? (*jni)->NewStringUTF(jni, "jvmscope") : NULL;
    if (ours)
        (*jni)->CallVoidMethod(jni, recording, name, ours);
    jmethodID to = method_of_recording(jni, recording, "setDestination", "(Ljava/nio/file/Path;)V");
    jobject path = to ? path_of(jni, flight.path) : NULL;
    if (path && !(*jni)->ExceptionCheck(jni))
        (*jni)->CallVoidMethod(jni, recording, to, path);
    jmethodID at_exit = method_of_recording(jni, recording, "setDumpOnExit", "(Z)V");
    if (at_exit)
        (*jni)->CallVoidMethod(jni, recording, at_exit, JNI_TRUE);
    jmethodID start = method_of_recording(jni, recording, "start", "()V");
    if (start)
        (*jni)->CallVoidMethod(jni, recording, start);
    return recording;
}

/* Appends the pending exception as "why: java.lang.Error: text", and clears it. */
static void put_exception(JNIEnv *jni, struct buf *why)
{
    jthrowable thrown = (*jni)->ExceptionOccurred(jni);
    vm_clear_exception(jni);
    jclass class = thrown ? (*jni)->GetObjectClass(jni, thrown) : NULL;
    jmethodID method =
        class ? (*jni)->GetMethodID(jni, class, "toString", "()Ljava/lang/String;") : NULL;
    jstring text = method ? (jstring)(*jni)->CallObjectMethod(jni, thrown, method) : NULL;
    vm_clear_exception(jni);
    if (!vm_put_string(jni, text, why))
        buf_string(why, "out of memory");
    vm_clear_exception(jni);
}

static int flight_start(struct session *s, JNIEnv *jni, struct buf *why)
{
    const char *settings = s->options.v[OPT_JFR].text;
    int n = snprintf(flight.path, sizeof(flight.path), "%s.vm", s->out.path);
    if (n >= (int)sizeof(flight.path))
        return -ENAMETOOLONG;
    if (fault_here() || (*jni)->PushLocalFrame(jni, LOCALS) < 0) {
        vm_clear_exception(jni);
        return -ENOMEM;
    }
    jobject recording = start_recording(s, jni, settings);
    int r = recording && !(*jni)->ExceptionCheck(jni) ? 0 : -ENOTSUP;
    if (r < 0) {
        option_put(why, OPT_JFR, settings);
        buf_string(why, ": the VM's Flight Recorder does not start: ");
        put_exception(jni, why);
    } else {
        flight.recording = (*jni)->NewGlobalRef(jni, recording);
        r = out_append_later(&s->out, flight.path, flight.left_out);
    }
    (*jni)->PopLocalFrame(jni, NULL);
    return r;
}

static int count(void *context, const struct rec_event *e)
{
    uint64_t *counts = context;
    counts[e->tag]++;
    return 0;
}

/* Writes how many events of each type will be left out of what the VM's recorder wrote. */
static void report_left_out(struct session *s)
{
    _cleanup_(recording_closep) struct recording *r = NULL;
    uint64_t counts[LEFT_OUT_TYPES] = {0};
    const char *why;
    uint32_t type;
    struct jfr_event e;
    if (recording_open(&r, flight.path, &why) < 0 ||
        recording_each(r, flight.left_out, count, counts) < 0)
        return;
    for (int i = 0; i < flight.types; i++) {
        /* Settings and descriptions of the VM are not measurements. */
        if (!counts[i] || strstr(OUR_OWN JDK_SETTINGS, flight.names[i]) ||
            jfr_declare(s->out.jfr, &left_out_type, 1, &type) < 0 ||
            !jfr_begin_growing(s->out.jfr, type, 2 * NAME_SIZE, &e))
            continue;
        jfr_put_time(&e, s->started_ns);
        jfr_put_string(&e, flight.names[i]);
        jfr_put_long(&e, (int64_t)counts[i]);
        jfr_commit(&e);
    }
}

/*
 * Stops the recording, which makes the recorder write it. The recorder's own shutdown hook may have
 * done so already.
 */
static void flight_end(struct session *s, JNIEnv *jni)
{
    if (!flight.recording || (*jni)->PushLocalFrame(jni, LOCALS) < 0) {
        vm_clear_exception(jni);
        return;
    }
    jmethodID state =
        method_of_recording(jni, flight.recording, "getState", "()Ljdk/jfr/RecordingState;");
    jobject now = state ? (*jni)->CallObjectMethod(jni, flight.recording, state) : NULL;
    jclass class = now && !(*jni)->ExceptionCheck(jni) ? (*jni)->GetObjectClass(jni, now) : NULL;
    jmethodID number = class ? (*jni)->GetMethodID(jni, class, "ordinal", "()I") : NULL;

    enum { RUNNING = 2 };

    if (number && (*jni)->CallIntMethod(jni, now, number) == RUNNING) {
        jmethodID stop = method_of_recording(jni, flight.recording, "stop", "()Z");
        if (stop)
            (*jni)->CallBooleanMethod(jni, flight.recording, stop);
    }
    if ((*jni)->ExceptionCheck(jni)) {
        struct buf why = BUF(4096);
        put_exception(jni, &why);
        session_message(s, "the VM's Flight Recorder did not write its recording: %.*s",
                        (int)why.len, why.data);
        buf_release(&why);
    }
    jmethodID close = method_of_recording(jni, flight.recording, "close", "()V");
    if (close)
        (*jni)->CallVoidMethod(jni, flight.recording, close);
    vm_clear_exception(jni);
    (*jni)->PopLocalFrame(jni, NULL);
    (*jni)->DeleteGlobalRef(jni, flight.recording);
    flight.recording = NULL;
    report_left_out(s);
}

const struct capture capture_flight = {
    .name = "flight",
    .options = OPTION_BIT(OPT_JFR),
    .records_only = true,
    .wanted = flight_wanted,
    .start = flight_start,
    .stop = flight_end,
    .ending = flight_end,
};
