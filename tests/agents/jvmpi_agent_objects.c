/* SPDX-License-Identifier: Apache-2.0 */
#include "jvmpi_agent.h"

static jobjectID freed[200000], allocated[200000];
static long n_freed, n_allocated, in_gc;
long allocated_markers, allocated_ints, frees_outside_gc;
JVMPI_RawMonitor gc_monitor;
jlong last_used_objects;
long dump_bytes, dump_records, object_dump_type, object_dump_len;
jobjectID dump_wanted;
unsigned char object_dump[4096];

static void on_alloc(JVMPI_Event *e)
{
    if (e->u.obj_alloc.arena_id != 1)
        fault("an arena that is not 1");
    if (e->event_type & JVMPI_REQUESTED_EVENT)
        return;
    pthread_mutex_lock(&lock);
    if (!init_order)
        init_order = 1;
    if (marker_class && e->u.obj_alloc.class_id == marker_class &&
        e->u.obj_alloc.is_array == JVMPI_NORMAL_OBJECT) {
        allocated_markers++;
        if (n_allocated < 200000)
            allocated[n_allocated++] = e->u.obj_alloc.obj_id;
    }
    if (e->u.obj_alloc.is_array == JVMPI_INT && e->u.obj_alloc.size >= 4 * 12345 &&
        e->u.obj_alloc.size < 4 * 12345 + 32)
        allocated_ints++;
    pthread_mutex_unlock(&lock);
}

void on_object(JVMPI_Event *e, int type)
{
    if (type == JVMPI_EVENT_OBJECT_ALLOC) {
        on_alloc(e);
        return;
    }
    if (counts[JVMPI_EVENT_GC_START] && !in_gc)
        frees_outside_gc++;
    if (n_freed < 200000)
        freed[n_freed++] = e->u.obj_free.obj_id;
}

void on_gc(JVMPI_Event *e, int type)
{
    if (type == JVMPI_EVENT_GC_START) {
        jvmpi->RawMonitorEnter(gc_monitor);
        in_gc = 1;
        return;
    }
    in_gc = 0;
    last_used_objects = e->u.gc_info.used_objects;
    if (e->u.gc_info.used_object_space > e->u.gc_info.total_object_space)
        fault("more space used than there is");
    jvmpi->RawMonitorExit(gc_monitor);
}

void on_heap_dump(JVMPI_Event *e)
{
    char *p;
    dump_bytes = e->u.heap_dump.end - e->u.heap_dump.begin;
    dump_records = 0;
    for (p = e->u.heap_dump.begin; p < e->u.heap_dump.end; p += 1 + sizeof(void *)) {
        jobjectID id;
        memcpy(&id, p + 1, sizeof(id));
        if (id == dump_wanted)
            dump_records += 1000000000L;
        dump_records++;
    }
    if (p != e->u.heap_dump.end || e->u.heap_dump.num_traces)
        fault("a heap dump of level 0 does not end at its end");
}

void on_object_dump(JVMPI_Event *e)
{
    object_dump_len = e->u.object_dump.data_len;
    if (object_dump_len <= (long)sizeof(object_dump))
        memcpy(object_dump, e->u.object_dump.data, (size_t)object_dump_len);
    object_dump_type = object_dump[0];
}

/* Returns the i-th marker that OBJECT_ALLOC reported, in the order of allocation. */
jobjectID marker_reported(long i)
{
    return i >= 0 && i < n_allocated ? allocated[i] : NULL;
}

long all_marker_frees(void)
{
    long i, k, n = 0;
    for (i = 0; i < n_allocated; i++)
        for (k = 0; k < n_freed; k++)
            if (freed[k] == allocated[i]) {
                n++;
                break;
            }
    return n;
}
