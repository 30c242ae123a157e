/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/vm/management.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

static void *find_in(const char *folder, size_t folder_len, const char *library_name,
                     const char *function_name)
{
    char path[PATH_MAX];
    int n = snprintf(path, sizeof(path), "%.*s/%s", (int)folder_len, folder, library_name);
    void *library = n < (int)sizeof(path) ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
    void *function = library ? dlsym(library, function_name) : NULL;
    if (!function)
        return NULL;
    /* The library requests the VM's management interface when it is loaded. */
    jint(JNICALL * on_load)(JavaVM *, void *) =
        (jint(JNICALL *)(JavaVM *, void *))dlsym(library, "JNI_OnLoad");
    return !on_load || on_load(vm.java, NULL) >= JNI_VERSION_1_2 ? function : NULL;
}

void *management_native(const char *now, const char *jdk8)
{
    char *folders = NULL;
    void *function = NULL;
    if ((*vm.ti)->GetSystemProperty(vm.ti, "sun.boot.library.path", &folders) != JVMTI_ERROR_NONE)
        return NULL;
    for (const char *at = folders; *at && !function; at += strspn(at, ":")) {
        size_t n = strcspn(at, ":");
        function = find_in(at, n, "libmanagement_ext.so", now);
        if (!function && jdk8)
            function = find_in(at, n, "libmanagement.so", jdk8);
        at += n;
    }
    vm_free(folders);
    return function;
}

static void append_message(JNIEnv *jni, jthrowable thrown, struct buf *out)
{
    jclass class = (*jni)->GetObjectClass(jni, thrown);
    jmethodID get = (*jni)->GetMethodID(jni, class, "getMessage", "()Ljava/lang/String;");
    jstring message = get ? (jstring)(*jni)->CallObjectMethod(jni, thrown, get) : NULL;
    vm_clear_exception(jni);
    vm_put_string(jni, message, out);
    if (message)
        (*jni)->DeleteLocalRef(jni, message);
    (*jni)->DeleteLocalRef(jni, class);
}

int management_diagnostic_command(JNIEnv *jni, const char *command, struct buf *out)
{
    static jstring(JNICALL * execute)(JNIEnv *, jobject, jstring);
    if (!execute)
        execute = (jstring(JNICALL *)(JNIEnv *, jobject, jstring))management_native(
            "Java_com_sun_management_internal_DiagnosticCommandImpl_executeDiagnosticCommand",
            "Java_sun_management_DiagnosticCommandImpl_executeDiagnosticCommand");
    vm_clear_exception(jni);
    if (!execute)
        return -ENOTSUP;
    jstring text = (*jni)->NewStringUTF(jni, command);
    jstring answer = text ? execute(jni, NULL, text) : NULL;
    jthrowable thrown = (*jni)->ExceptionOccurred(jni);
    vm_clear_exception(jni);
    if (thrown && out)
        append_message(jni, thrown, out);
    if (!thrown && out)
        vm_put_string(jni, answer, out);
    int r = thrown ? -EINVAL : text ? 0 : -ENOMEM;
    if (thrown)
        (*jni)->DeleteLocalRef(jni, thrown);
    if (answer)
        (*jni)->DeleteLocalRef(jni, answer);
    if (text)
        (*jni)->DeleteLocalRef(jni, text);
    return r;
}
