/* SPDX-License-Identifier: Apache-2.0 */
#include "jvmpi_agent.h"

struct known_thread threads[4096];
struct known_class classes[20000];
int n_threads, n_classes;
jobjectID marker_class;

struct known_thread *thread_by_name(const char *name)
{
    int i;
    for (i = n_threads; i-- > 0;)
        if (!strcmp(threads[i].name, name))
            return &threads[i];
    return NULL;
}

struct known_class *class_by_name(const char *name)
{
    int i;
    for (i = 0; i < n_classes; i++)
        if (!strcmp(classes[i].name, name))
            return &classes[i];
    return NULL;
}

jmethodID method_named(const char *class_name, const char *name)
{
    struct known_class *c = class_by_name(class_name);
    int i;
    for (i = 0; c && i < c->n_methods; i++)
        if (!strcmp(c->methods[i].method_name, name))
            return c->methods[i].method_id;
    return NULL;
}

void on_class_load(JVMPI_Event *e)
{
    struct known_class *c;
    int i;
    pthread_mutex_lock(&lock);
    c = &classes[n_classes];
    if (n_classes < 19999)
        n_classes++;
    c->id = e->u.class_load.class_id;
    strncpy(c->name, e->u.class_load.class_name, sizeof(c->name) - 1);
    c->n_methods = e->u.class_load.num_methods;
    c->methods = (JVMPI_Method *)calloc((size_t)c->n_methods + 1, sizeof(*c->methods));
    for (i = 0; i < c->n_methods; i++) {
        c->methods[i] = e->u.class_load.methods[i];
        c->methods[i].method_name = strdup(e->u.class_load.methods[i].method_name);
        c->methods[i].method_signature = strdup(e->u.class_load.methods[i].method_signature);
    }
    c->n_statics = e->u.class_load.num_static_fields;
    c->n_instances = e->u.class_load.num_instance_fields;
    c->n_interfaces = e->u.class_load.num_interfaces;
    if (!strcmp(c->name, "JvmpiWork$Marker"))
        marker_class = c->id;
    if (!init_order || init_order == 1)
        init_order = init_order * 10 + 2;
    pthread_mutex_unlock(&lock);
}

void on_thread_start(JVMPI_Event *e)
{
    int i;
    pthread_mutex_lock(&lock);
    for (i = 0; !(e->event_type & JVMPI_REQUESTED_EVENT) && i < n_threads; i++)
        if (threads[i].id == e->u.thread_start.thread_id)
            fault("THREAD_START of a thread that has started");
    if (n_threads < 4096) {
        threads[n_threads].env = e->u.thread_start.thread_env_id;
        threads[n_threads].id = e->u.thread_start.thread_id;
        strncpy(threads[n_threads].name, e->u.thread_start.thread_name, 63);
        n_threads++;
    }
    if (init_order && init_order % 10 != 4 && !counts[JVMPI_EVENT_JVM_INIT_DONE])
        init_order = init_order * 10 + 4;
    pthread_mutex_unlock(&lock);
}

void on_class_unload(JVMPI_Event *e)
{
    int i;
    pthread_mutex_lock(&lock);
    for (i = 0; i < n_classes; i++)
        if (classes[i].id == e->u.class_unload.class_id)
            classes[i].unloaded++;
    pthread_mutex_unlock(&lock);
    /* The specification lets a profiler request a class until it has handled CLASS_UNLOAD. */
    if (jvmpi->RequestEvent(JVMPI_EVENT_CLASS_LOAD, e->u.class_unload.class_id) != JVMPI_SUCCESS)
        fault("no CLASS_LOAD on request within CLASS_UNLOAD");
}

void on_thread_end(JVMPI_Event *e)
{
    int i;
    for (i = 0; i < n_threads && threads[i].env != e->env_id; i++)
        ;
    if (i == n_threads && counts[JVMPI_EVENT_THREAD_START])
        fault("the end of a thread that never started");
}
