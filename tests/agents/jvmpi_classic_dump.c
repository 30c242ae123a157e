/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The profiler in the style of 1.2 writes out dumps, for which it must know every class, object and
 * thread in them.
 */
#include "jvmpi_classic.h"

long n_records;

static const unsigned char *at, *end;

static uint32_t take(int bytes)
{
    uint32_t v = 0;
    if (end - at < bytes)
        fatal("a dump ends too early", at);
    while (bytes-- > 0)
        v = v << 8 | *at++;
    return v;
}

static void *take_id(void)
{
    void *p;
    if (end - at < (ptrdiff_t)sizeof(p))
        fatal("a dump ends too early", at);
    memcpy(&p, at, sizeof(p));
    at += sizeof(p);
    return p;
}

static void take_values(const char *letters)
{
    for (; *letters; letters++) {
        bool is_long = *letters == 'J' || *letters == 'D';
        if (*letters == 'L' || *letters == '[')
            (void)object_info(take_id());
        else if (is_long)
            (void)(take(4) + take(4));
        else
            (void)take(*letters == 'Z' || *letters == 'B'   ? 1
                       : *letters == 'C' || *letters == 'S' ? 2
                                                            : 4);
    }
}

static void take_class(void)
{
    struct class_info *c = class_info(take_id());
    c->super = class_info(take_id());
    c->linked = true;
    for (int i = 0; i < 4; i++) /* loader, signers, domain, name */
        (void)object_info(take_id());
    (void)take_id();
    (void)take(4);
    for (jint i = 0; i < c->n_interfaces; i++)
        (void)class_info(take_id());
    if (take(2) != 0)
        fatal("constants, of which the old VMs have none", c->name);
    take_values(c->statics);
}

static void take_instance(void)
{
    (void)object_info(take_id());
    struct class_info *c = class_info(take_id());
    uint32_t length = take(4);
    const unsigned char *begin = at;
    if ((uint64_t)(end - at) < length)
        fatal("a dump ends too early", at);
    for (; c; c = super_class(c))
        take_values(c->instances);
    if (at != begin + length)
        fatal("an instance of another length than its fields have", begin);
}

static void take_record(void)
{
    static const char widths[] = {
        [JVMPI_BOOLEAN] = 1, [JVMPI_CHAR] = 2,  [JVMPI_FLOAT] = 4, [JVMPI_DOUBLE] = 8,
        [JVMPI_BYTE] = 1,    [JVMPI_SHORT] = 2, [JVMPI_INT] = 4,   [JVMPI_LONG] = 8};
    uint32_t type = take(1), n, kind;
    n_records++;
    switch (type) {
    case JVMPI_GC_CLASS_DUMP:
        take_class();
        return;
    case JVMPI_GC_INSTANCE_DUMP:
        take_instance();
        return;
    }
    jobjectID id = take_id();
    (void)object_info(id);
    switch (type) {
    case JVMPI_GC_OBJ_ARRAY_DUMP:
        n = take(4);
        (void)class_info(take_id());
        while (n-- > 0)
            (void)object_info(take_id());
        return;
    case JVMPI_GC_PRIM_ARRAY_DUMP:
        n = take(4);
        kind = take(1);
        if (kind >= sizeof(widths) || !widths[kind] ||
            (uint64_t)(end - at) < (uint64_t)n * (uint64_t)widths[kind])
            fatal("a strange array", at);
        at += (size_t)n * (size_t)widths[kind];
        return;
    case JVMPI_GC_ROOT_JNI_LOCAL:
    case JVMPI_GC_ROOT_JAVA_FRAME:
        (void)thread_info(take_id());
        (void)take(4);
        return;
    case JVMPI_GC_ROOT_NATIVE_STACK:
    case JVMPI_GC_ROOT_THREAD_BLOCK:
        (void)thread_info(take_id());
        return;
    case JVMPI_GC_ROOT_JNI_GLOBAL:
        (void)take_id();
        return;
    case JVMPI_GC_ROOT_STICKY_CLASS: /* such profilers print it with its name */
        (void)class_info(id);
        return;
    case JVMPI_GC_ROOT_MONITOR_USED:
    case JVMPI_GC_ROOT_UNKNOWN:
        return;
    default:
        fatal("a strange record", (void *)(uintptr_t)type);
    }
}

static void take_traces(const JVMPI_CallTrace *traces, jint n)
{
    for (jint i = 0; i < n; i++) {
        if (!thread_info(traces[i].env_id))
            fatal("a trace of no thread", traces[i].env_id);
        for (jint k = 0; k < traces[i].num_frames; k++)
            (void)method_info(traces[i].frames[k].method_id);
    }
}

void read_heap_dump(const JVMPI_Event *e)
{
    at = (const unsigned char *)e->u.heap_dump.begin;
    end = (const unsigned char *)e->u.heap_dump.end;
    take_traces(e->u.heap_dump.traces, e->u.heap_dump.num_traces);
    while (at < end && e->u.heap_dump.dump_level == JVMPI_DUMP_LEVEL_0) {
        jint type = (jint)take(1);
        if (object_info(take_id())->is_array != type)
            fatal("an object of another type than before", at);
    }
    while (at < end)
        take_record();
}

/* Comes within another dump, so the position in that one is saved. */
void read_object_dump(const JVMPI_Event *e)
{
    const unsigned char *outer_at = at, *outer_end = end;
    at = (const unsigned char *)e->u.object_dump.data;
    end = at + e->u.object_dump.data_len;
    take_record();
    if (at != end)
        fatal("an object dump with something behind it", at);
    at = outer_at;
    end = outer_end;
}

void read_monitor_dump(const JVMPI_Event *e)
{
    at = (const unsigned char *)e->u.monitor_dump.begin;
    end = (const unsigned char *)e->u.monitor_dump.end;
    take_traces(e->u.monitor_dump.traces, e->u.monitor_dump.num_traces);
    while (at < end) {
        bool raw = take(1) == JVMPI_MONITOR_RAW;
        void *id = take_id();
        if (raw)
            (void)(strlen(id) + (uintptr_t)take_id());
        (void)thread_info(take_id());
        (void)take(4);
        for (int list = 0; list < 2; list++)
            for (uint32_t n = take(4); n > 0; n--)
                if (!thread_info(take_id()))
                    fatal("a list of threads with none in it", id);
        n_records++;
    }
}
