/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A JVMPI profiler that walks the heap when the VM shuts down. It enables no event that slows the
 * program down while it runs; it uses RequestEvent to ask for what it does not know yet.
 */
#include <jvmpi.h>
#include <stdio.h>
#include <string.h>

#define CALL(routine) (jvmpi->routine)

static JVMPI_Interface *jvmpi;
static jobjectID asked_class;

static void heap_dump(JVMPI_Event *event)
{
    long objects = 0, arrays = 0;
    char *p;
    /* Level 0 has an entry of one type byte and one id for each object. */
    for (p = event->u.heap_dump.begin; p < event->u.heap_dump.end; p += 1 + sizeof(jobjectID)) {
        objects++;
        arrays += *p != JVMPI_NORMAL_OBJECT;
    }
    printf("heap: %ld objects, %ld of them arrays\n", objects, arrays);
}

static void shut_down(JNIEnv *env)
{
    JVMPI_HeapDumpArg level;
    jobjectID thread;
    level.heap_dump_level = JVMPI_DUMP_LEVEL_0;
    CALL(RequestEvent)(JVMPI_EVENT_HEAP_DUMP, &level);
    CALL(DisableGC)();
    thread = CALL(GetThreadObject)(env);
    CALL(RequestEvent)(JVMPI_EVENT_OBJECT_ALLOC, thread); /* this event reports the class's id */
    CALL(RequestEvent)(JVMPI_EVENT_CLASS_LOAD, asked_class);
    CALL(EnableGC)();
    fflush(stdout);
}

static void notify(JVMPI_Event *event)
{
    switch (event->event_type) {
    case JVMPI_EVENT_HEAP_DUMP | JVMPI_REQUESTED_EVENT:
        heap_dump(event);
        break;
    case JVMPI_EVENT_OBJECT_ALLOC | JVMPI_REQUESTED_EVENT:
        asked_class = event->u.obj_alloc.class_id;
        break;
    case JVMPI_EVENT_CLASS_LOAD | JVMPI_REQUESTED_EVENT:
        printf("the last thread is a %s with %ld methods\n", event->u.class_load.class_name,
               (long)event->u.class_load.num_methods);
        break;
    case JVMPI_EVENT_JVM_SHUT_DOWN:
        shut_down(event->env_id);
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
    CALL(EnableEvent)(JVMPI_EVENT_JVM_SHUT_DOWN, NULL);
    return JNI_OK;
}
