/* SPDX-License-Identifier: Apache-2.0 */
/* A JVMPI agent for bench/jvmpi: enables the events of its option and only counts them. */
#include "jvmpi.h"

#include <stdlib.h>
#include <string.h>

static long events;

static void notify_event(JVMPI_Event *e)
{
    events += e->event_type;
}

JNIEXPORT jint JNICALL JVM_OnLoad(JavaVM *jvm, char *options, void *reserved)
{
    JVMPI_Interface *jvmpi;
    char *p;
    if ((*jvm)->GetEnv(jvm, (void **)&jvmpi, JVMPI_VERSION_1) != JNI_OK)
        return JNI_ERR;
    jvmpi->NotifyEvent = notify_event;
    for (p = options; p && *p; p = strchr(p, '+') ? strchr(p, '+') + 1 : NULL)
        jvmpi->EnableEvent(atoi(p), NULL);
    return JNI_OK;
}
