/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trace_host LIBRARY: loads tests/agents/tracer_jni.c after its start, as a program loads a tracer,
 * and prints what src/agent/sampler/trace_context.c reads in two threads before and while each
 * publishes a trace.
 */
#include "agent/sampler/trace_context.h"

#include <dlfcn.h>
#include <jni.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>

static void(JNICALL *enter)(JNIEnv *, jclass, jint, jint);

static void *publish(void *number)
{
    int n = (int)(intptr_t)number;
    struct trace_context before, within;
    trace_context_read(&before);
    enter(NULL, NULL, n, 16 + n);
    trace_context_read(&within);
    printf("known %d: %d before, then %d: %02x %02x\n", before.known, before.present,
           within.present, within.trace[TRACE_ID_BYTES - 1], within.span[SPAN_ID_BYTES - 1]);
    return NULL;
}

int main(int argc, char **argv)
{
    void *library = argc == 2 ? dlopen(argv[1], RTLD_NOW) : NULL;
    if (!library) {
        fprintf(stderr, "%s\n", argc == 2 ? dlerror() : "usage: trace_host LIBRARY");
        return 2;
    }
    enter =
        (void(JNICALL *)(JNIEnv *, jclass, jint, jint))dlsym(library, "Java_TracerContext_enter");
    trace_context_find();
    for (intptr_t n = 1; n <= 2; n++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, publish, (void *)n))
            return 3;
        pthread_join(thread, NULL);
    }
    trace_context_release();
    return 0;
}
