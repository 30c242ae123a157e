/* SPDX-License-Identifier: Apache-2.0 */
/* A JVMPI profiler that counts how often threads had to wait for each monitor. */
#include <jvmpi.h>
#include <stdio.h>
#include <string.h>

#define CALL(routine) (jvmpi->routine)
#define MAX_MONITORS  1000

static JVMPI_Interface *jvmpi;
static JVMPI_RawMonitor lock;

static struct {
    jobjectID object;
    long enters;
} monitors[MAX_MONITORS];

static int n_monitors;
static jobjectID asked_class;
static char asked_name[128];

static void contended(jobjectID object)
{
    int i;
    CALL(RawMonitorEnter)(lock);
    for (i = 0; i < n_monitors && monitors[i].object != object; i++)
        ;
    if (i < MAX_MONITORS) {
        monitors[i].object = object;
        monitors[i].enters++;
        if (i == n_monitors)
            n_monitors++;
    }
    CALL(RawMonitorExit)(lock);
}

static void report(void)
{
    int i;
    for (i = 0; i < n_monitors; i++) {
        strcpy(asked_name, "gone");
        if (CALL(RequestEvent)(JVMPI_EVENT_OBJECT_ALLOC, monitors[i].object) == JVMPI_SUCCESS)
            CALL(RequestEvent)(JVMPI_EVENT_CLASS_LOAD, asked_class);
        printf("monitor %p of class %s: %ld contended enters\n", (void *)monitors[i].object,
               asked_name, monitors[i].enters);
    }
    fflush(stdout);
}

static void notify(JVMPI_Event *event)
{
    switch (event->event_type) {
    case JVMPI_EVENT_MONITOR_CONTENDED_ENTER:
        contended(event->u.monitor.object);
        break;
    case JVMPI_EVENT_OBJECT_ALLOC | JVMPI_REQUESTED_EVENT:
        asked_class = event->u.obj_alloc.class_id;
        break;
    case JVMPI_EVENT_CLASS_LOAD | JVMPI_REQUESTED_EVENT:
        strncpy(asked_name, event->u.class_load.class_name, sizeof(asked_name) - 1);
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
    lock = CALL(RawMonitorCreate)((char *)"_locks");
    CALL(EnableEvent)(JVMPI_EVENT_MONITOR_CONTENDED_ENTER, NULL);
    CALL(EnableEvent)(JVMPI_EVENT_JVM_SHUT_DOWN, NULL);
    return JNI_OK;
}
