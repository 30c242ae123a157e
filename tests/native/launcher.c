/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A launcher that has the agent linked in: launcher -OPTION ... CLASS ARGUMENT ...
 * The VM is that of $JAVA_HOME.
 */
#include <dlfcn.h>
#include <jni.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef jint create_fn(JavaVM **, void **, void *);

static void *open_libjvm(void)
{
    const char *home = getenv("JAVA_HOME");
    const char *const places[] = {"lib/server/libjvm.so", "jre/lib/amd64/server/libjvm.so",
                                  "jre/lib/aarch64/server/libjvm.so"};
    void *libjvm = NULL;
    for (size_t i = 0; home && !libjvm && i < sizeof(places) / sizeof(places[0]); i++) {
        char path[4096];
        snprintf(path, sizeof(path), "%s/%s", home, places[i]);
        libjvm = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    }
    return libjvm;
}

/* Calls main of the class argv[0] with the arguments that follow. */
static int run(JNIEnv *jni, char **argv)
{
    jclass class = (*jni)->FindClass(jni, argv[0]);
    jmethodID method =
        class ? (*jni)->GetStaticMethodID(jni, class, "main", "([Ljava/lang/String;)V") : NULL;
    int n = 0;
    while (argv[1 + n])
        n++;
    jobjectArray args =
        method ? (*jni)->NewObjectArray(jni, n, (*jni)->FindClass(jni, "java/lang/String"), NULL)
               : NULL;
    for (int i = 0; args && i < n; i++)
        (*jni)->SetObjectArrayElement(jni, args, i, (*jni)->NewStringUTF(jni, argv[1 + i]));
    if (args)
        (*jni)->CallStaticVoidMethod(jni, class, method, args);
    if (!args || (*jni)->ExceptionCheck(jni)) {
        (*jni)->ExceptionDescribe(jni);
        return 1;
    }
    return 0;
}

int main(int argc, char **argv)
{
    JavaVMOption options[32];
    int n = 0, i = 1;
    for (; i < argc && argv[i][0] == '-' && n < 32; i++)
        options[n++].optionString = argv[i];
    JavaVMInitArgs init = {.version = JNI_VERSION_1_8, .nOptions = n, .options = options};
    void *libjvm = open_libjvm();
    create_fn *create = libjvm ? (create_fn *)dlsym(libjvm, "JNI_CreateJavaVM") : NULL;
    JavaVM *vm;
    JNIEnv *jni;
    if (!create || i >= argc || create(&vm, (void **)&jni, &init) != JNI_OK) {
        fprintf(stderr, "launcher: no VM in JAVA_HOME, or no class\n");
        return 1;
    }
    int status = run(jni, argv + i);
    (*vm)->DestroyJavaVM(vm);
    return status;
}
