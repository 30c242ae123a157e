/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A JVMPI profiler: how many methods each thread calls. The counters are thread-local, as the
 * specification's section 1.5 shows it, so that no lock is taken for a call.
 *
 *     gcc -shared -fPIC -I.../include -o libcalls.so calls.c
 *     java -agentpath:.../libjvmpi.so -Xruncalls Main
 */
#include <jvmpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CALL(routine) (jvmpi->routine)

static JVMPI_Interface *jvmpi;

struct counter {
    long calls;
    char name[64];
    JNIEnv *env;
    struct counter *next;
};

static struct counter *all;
static JVMPI_RawMonitor lock;

static void thread_start(JVMPI_Event *event)
{
    struct counter *c = (struct counter *)calloc(1, sizeof(*c));
    if (c == NULL)
        return;
    strncpy(c->name, event->u.thread_start.thread_name, sizeof(c->name) - 1);
    c->env = event->u.thread_start.thread_env_id;
    CALL(RawMonitorEnter)(lock);
    c->next = all;
    all = c;
    CALL(RawMonitorExit)(lock);
    CALL(SetThreadLocalStorage)(c->env, c);
}

static void report(void)
{
    struct counter *c;
    for (c = all; c != NULL; c = c->next)
        printf("thread %s called %ld methods\n", c->name, c->calls);
    fflush(stdout);
}

static void notify(JVMPI_Event *event)
{
    struct counter *c;
    switch (event->event_type) {
    case JVMPI_EVENT_THREAD_START:
        thread_start(event);
        break;
    case JVMPI_EVENT_METHOD_ENTRY:
        c = (struct counter *)CALL(GetThreadLocalStorage)(event->env_id);
        if (c != NULL)
            c->calls++;
        break;
    case JVMPI_EVENT_JVM_SHUT_DOWN:
        report();
        break;
    }
}

JNIEXPORT jint JNICALL JVM_OnLoad(JavaVM *jvm, char *options, void *reserved)
{
    (void)options;
    (void)reserved;
    if ((*jvm)->GetEnv(jvm, (void **)&jvmpi, JVMPI_VERSION_1) < 0)
        return JNI_ERR;
    jvmpi->NotifyEvent = notify;
    lock = CALL(RawMonitorCreate)((char *)"_calls");
    CALL(EnableEvent)(JVMPI_EVENT_THREAD_START, NULL);
    CALL(EnableEvent)(JVMPI_EVENT_METHOD_ENTRY, NULL);
    CALL(EnableEvent)(JVMPI_EVENT_JVM_SHUT_DOWN, NULL);
    return JNI_OK;
}
