/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A JVMPI agent that enables events in a handler while another thread does so too, for JvmpiSwitch.
 * The program enters its method marker() while the VM links a class, and so holds that class's
 * lock. The handler lets a thread of the agent enable MONITOR_CONTENDED_EXIT, for which the layer
 * changes all classes, and the VM waits for that lock. Then the handler enables events itself, for
 * which it must not wait. Later the program calls held(), whose code the layer changes while it
 * runs. The METHOD_EXIT that follows is the first event of that method, and has the same id as
 * CLASS_LOAD.
 */
#include "jvmpi.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { POLL_MS = 10, SLEEPS = 30 /* polls in a row */, LIMIT = 1000 /* polls */ };

static JVMPI_Interface *jvmpi;
static jmethodID marker, held;
static atomic_int tid, entered, switched;
static atomic_long exits, exits_of_held, objects;
static jint answers[3]; /* of the other thread, and of the handler */

/* Returns true when the other thread sleeps; its state follows the name in parentheses. */
static int sleeps(void)
{
    char path[60], line[400] = "";
    const char *state;
    FILE *f;
    snprintf(path, sizeof(path), "/proc/self/task/%d/stat", atomic_load(&tid));
    f = tid ? fopen(path, "r") : NULL;
    if (!f)
        return 0;
    (void)!fgets(line, sizeof(line), f);
    fclose(f);
    state = strrchr(line, ')');
    return state && state[1] && state[2] == 'S';
}

static void switcher(void *unused)
{
    atomic_store(&tid, (int)syscall(SYS_gettid));
    answers[0] = jvmpi->EnableEvent(JVMPI_EVENT_MONITOR_CONTENDED_EXIT, NULL);
    atomic_store(&switched, 1);
}

static void on_marker(void)
{
    int in_a_row = 0, i;
    jvmpi->CreateSystemThread("switcher", JVMPI_NORMAL_PRIORITY, switcher);
    for (i = 0; i < LIMIT && in_a_row < SLEEPS && !atomic_load(&switched); i++) {
        struct timespec t = {0, POLL_MS * 1000000L};
        nanosleep(&t, NULL);
        in_a_row = sleeps() ? in_a_row + 1 : 0;
    }
    answers[1] = jvmpi->EnableEvent(JVMPI_EVENT_METHOD_EXIT, NULL);
    answers[2] = jvmpi->EnableEvent(JVMPI_EVENT_OBJECT_ALLOC, NULL);
}

static void on_class_load(const JVMPI_Event *e)
{
    jint i;
    if (strcmp(e->u.class_load.class_name, "JvmpiSwitch"))
        return;
    for (i = 0; i < e->u.class_load.num_methods; i++) {
        const JVMPI_Method *m = &e->u.class_load.methods[i];
        if (!strcmp(m->method_name, "marker"))
            marker = m->method_id;
        if (!strcmp(m->method_name, "held"))
            held = m->method_id;
    }
}

static void notify_event(JVMPI_Event *e)
{
    switch (e->event_type) {
    case JVMPI_EVENT_CLASS_LOAD:
        on_class_load(e);
        break;
    case JVMPI_EVENT_METHOD_ENTRY:
        if (e->u.method.method_id == marker && !atomic_exchange(&entered, 1))
            on_marker();
        break;
    case JVMPI_EVENT_METHOD_EXIT:
        atomic_fetch_add(&exits, 1);
        atomic_fetch_add(&exits_of_held, held && e->u.method.method_id == held);
        break;
    case JVMPI_EVENT_OBJECT_ALLOC:
        atomic_fetch_add(&objects, 1);
        break;
    }
}

JNIEXPORT jboolean JNICALL Java_JvmpiSwitch_switched(JNIEnv *env, jclass class)
{
    return atomic_load(&switched);
}

JNIEXPORT void JNICALL Java_JvmpiSwitch_methods(JNIEnv *env, jclass class, jboolean on)
{
    if (!on) {
        jvmpi->DisableEvent(JVMPI_EVENT_METHOD_ENTRY, NULL);
        jvmpi->DisableEvent(JVMPI_EVENT_METHOD_EXIT, NULL);
        return;
    }
    jvmpi->EnableEvent(JVMPI_EVENT_INSTRUCTION_START, NULL); /* which needs probes of its own */
    jvmpi->DisableEvent(JVMPI_EVENT_INSTRUCTION_START, NULL);
    jvmpi->EnableEvent(JVMPI_EVENT_METHOD_EXIT, NULL);
}

JNIEXPORT void JNICALL Java_JvmpiSwitch_report(JNIEnv *env, jclass class)
{
    printf("entered %d answers %d %d %d exits %d of held %ld objects %d\n", atomic_load(&entered),
           (int)answers[0], (int)answers[1], (int)answers[2], atomic_load(&exits) > 0,
           atomic_load(&exits_of_held), atomic_load(&objects) >= 100);
    fflush(stdout);
}

JNIEXPORT jint JNICALL JVM_OnLoad(JavaVM *jvm, char *options, void *reserved)
{
    if ((*jvm)->GetEnv(jvm, (void **)&jvmpi, JVMPI_VERSION_1) != JNI_OK)
        return JNI_ERR;
    jvmpi->NotifyEvent = notify_event;
    jvmpi->EnableEvent(JVMPI_EVENT_CLASS_LOAD, NULL);
    jvmpi->EnableEvent(JVMPI_EVENT_METHOD_ENTRY, NULL);
    return JNI_OK;
}
