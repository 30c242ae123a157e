/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fake_vm LIBRARY OPTIONS: stands in for a VM up to the agent's first answer. It loads an agent as
 * a VM does and starts it on a separate thread, in a VM that has no JVM TI, and prints what the
 * agent answers. Compiled with musl, it shows that the agent runs there as well.
 */
#include <dlfcn.h>
#include <jni.h>
#include <pthread.h>
#include <stdio.h>

static jint JNICALL no_environment(JavaVM *vm, void **ret, jint version)
{
    *ret = NULL;
    return JNI_EVERSION;
}

static const struct JNIInvokeInterface_ functions = {.GetEnv = no_environment};
static JavaVM vm = &functions;
static const char *options;
static jint(JNICALL *on_load)(JavaVM *, char *, void *);

static void *start(void *unused)
{
    printf("answer %d\n", (int)on_load(&vm, (char *)options, NULL));
    return NULL;
}

int main(int argc, char **argv)
{
    void *library = argc == 3 ? dlopen(argv[1], RTLD_NOW) : NULL;
    pthread_t thread;
    if (!library) {
        fprintf(stderr, "%s\n", argc == 3 ? dlerror() : "usage: fake_vm LIBRARY OPTIONS");
        return 2;
    }
    options = argv[2];
    on_load = (jint(JNICALL *)(JavaVM *, char *, void *))dlsym(library, "Agent_OnLoad");
    if (!on_load || pthread_create(&thread, NULL, start, NULL))
        return 3;
    pthread_join(thread, NULL);
    return 0;
}
