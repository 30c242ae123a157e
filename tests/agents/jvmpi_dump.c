/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A JVMPI agent that reads heap dumps to the last byte, using what CLASS_LOAD reported about the
 * classes, and answers JvmpiDump's questions about the objects in them.
 */
#include "jvmpi.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static JVMPI_Interface *jvmpi;
static long faults;

static void fault(const char *what, long a, long b)
{
    if (faults++ < 20)
        printf("fault %s %ld %ld\n", what, a, b);
}

/* ---- classes, as CLASS_LOAD reports them ---- */

enum { SLOTS = 65536 };

static struct class_info {
    jobjectID id;
    char *name;
    int interfaces, n_statics, n_instances;
    char **names, *types; /* statics, then instance fields */
    jobjectID super;      /* from CLASS_DUMP */
    int dumped;
} * classes[SLOTS];

static struct class_info *find_class(jobjectID id)
{
    size_t i = (size_t)id * 2654435761u % SLOTS;
    while (classes[i] && classes[i]->id != id)
        i = (i + 1) % SLOTS;
    return classes[i];
}

static void on_class_load(JVMPI_Event *e)
{
    struct class_info *c = find_class(e->u.class_load.class_id);
    int i, n = e->u.class_load.num_static_fields, all = n + e->u.class_load.num_instance_fields;
    size_t at = (size_t)e->u.class_load.class_id * 2654435761u % SLOTS;
    if (!c) {
        while (classes[at])
            at = (at + 1) % SLOTS;
        c = classes[at] = (struct class_info *)calloc(1, sizeof(*c));
    }
    c->dumped = 0;
    c->id = e->u.class_load.class_id;
    c->name = strdup(e->u.class_load.class_name);
    c->interfaces = e->u.class_load.num_interfaces;
    c->n_statics = n;
    c->n_instances = all - n;
    c->names = (char **)calloc((size_t)all + 1, sizeof(char *));
    c->types = (char *)calloc((size_t)all + 1, 1);
    for (i = 0; i < all; i++) {
        JVMPI_Field *f = i < n ? &e->u.class_load.statics[i] : &e->u.class_load.instances[i - n];
        c->names[i] = strdup(f->field_name);
        c->types[i] = f->field_signature[0];
    }
}

/* Returns a class that the dump refers to, requesting it if it was not reported. */
static struct class_info *class_of(jobjectID id)
{
    struct class_info *c = find_class(id);
    if (!c && jvmpi->RequestEvent(JVMPI_EVENT_CLASS_LOAD, id) == JVMPI_SUCCESS)
        c = find_class(id);
    return c;
}

/* ---- the dump ---- */

static unsigned char *dump, *object;
static long dump_len, object_len, dump_traces;
static int level;
static JVMPI_CallTrace traces[256];
static long n_traces;

static struct record {
    jobjectID id;
    long at, len;
} * records;

static long n_records, by_type[256];

static unsigned long be(const unsigned char *p, int width)
{
    unsigned long v = 0;
    while (width-- > 0)
        v = v << 8 | *p++;
    return v;
}

static jobjectID id_at(long at)
{
    jobjectID id;
    memcpy(&id, dump + at, sizeof(id));
    return id;
}

static int width(char type)
{
    int full = type == 'Z' || type == 'B'   ? 1
               : type == 'C' || type == 'S' ? 2
               : type == 'I' || type == 'F' ? 4
                                            : 8;
    return level == 1 && type != 'L' && type != '[' ? 0 : full;
}

static int width_of_kind(int kind)
{
    return kind == JVMPI_BOOLEAN || kind == JVMPI_BYTE  ? 1
           : kind == JVMPI_CHAR || kind == JVMPI_SHORT  ? 2
           : kind == JVMPI_INT || kind == JVMPI_FLOAT   ? 4
           : kind == JVMPI_LONG || kind == JVMPI_DOUBLE ? 8
                                                        : -1;
}

static long values_len(const struct class_info *c, int statics)
{
    long n = 0;
    int i;
    for (i = statics ? 0 : c->n_statics;
         i < (statics ? c->n_statics : c->n_statics + c->n_instances); i++)
        n += width(c->types[i]);
    return n;
}

/* Returns the length of the record at `at`, or 0 when its type is unknown. */
static long record_len(long at)
{
    struct class_info *c;
    switch (dump[at]) {
    case JVMPI_GC_ROOT_UNKNOWN:
    case JVMPI_GC_ROOT_STICKY_CLASS:
    case JVMPI_GC_ROOT_MONITOR_USED:
        return 9;
    case JVMPI_GC_ROOT_JNI_GLOBAL:
    case JVMPI_GC_ROOT_NATIVE_STACK:
    case JVMPI_GC_ROOT_THREAD_BLOCK:
        return 17;
    case JVMPI_GC_ROOT_JNI_LOCAL:
    case JVMPI_GC_ROOT_JAVA_FRAME:
        return 21;
    case JVMPI_GC_CLASS_DUMP:
        c = class_of(id_at(at + 1));
        if (!c) {
            fault("a class that CLASS_LOAD cannot tell of", at, 0);
            return 0;
        }
        c->super = id_at(at + 9);
        c->dumped = 1;
        return 1 + 7 * 8 + 4 + 8 * c->interfaces + 2 + values_len(c, 1);
    case JVMPI_GC_INSTANCE_DUMP:
        return 1 + 8 + 8 + 4 + (long)be(dump + at + 17, 4);
    case JVMPI_GC_OBJ_ARRAY_DUMP:
        return 1 + 8 + 4 + 8 + 8 * (long)be(dump + at + 9, 4);
    case JVMPI_GC_PRIM_ARRAY_DUMP:
        if (width_of_kind(dump[at + 13]) < 0)
            fault("an array of no known kind", at, dump[at + 13]);
        return 1 + 8 + 4 + 1 +
               (level == 1 ? 0 : (long)be(dump + at + 9, 4) * width_of_kind(dump[at + 13]));
    }
    return 0;
}

static int compare_records(const void *a, const void *b)
{
    const struct record *x = (const struct record *)a, *y = (const struct record *)b;
    return x->id < y->id ? -1 : x->id > y->id;
}

static struct record *find_record(jobjectID id)
{
    struct record key;
    key.id = id;
    return (struct record *)bsearch(&key, records, (size_t)n_records, sizeof(*records),
                                    compare_records);
}

static void check_reference(long at, const char *where)
{
    if (id_at(at) && !find_record(id_at(at)))
        fault(where, at, (long)id_at(at));
}

/*
 * Values must fit the class and its superclasses, and every reference must lead to an object in the
 * dump.
 */
static void check_instance(const struct record *r)
{
    long at = r->at + 21;
    jobjectID id = id_at(r->at + 9);
    while (id) {
        struct class_info *c = class_of(id);
        int i;
        if (!c || !c->dumped) {
            fault("an instance of a class that is not in the dump", r->at, (long)id);
            return;
        }
        for (i = c->n_statics; i < c->n_statics + c->n_instances; i++) {
            if (width(c->types[i]) == 8 && (c->types[i] == 'L' || c->types[i] == '['))
                check_reference(at, "a field's object that is not in the dump");
            at += width(c->types[i]);
        }
        id = c->super;
    }
    if (at != r->at + r->len)
        fault("an instance's values are not those of its class", at, r->at + r->len);
}

static void parse(void)
{
    long at = 0, i, k, roots_end = 0;
    n_records = 0;
    memset(by_type, 0, sizeof(by_type));
    free(records);
    records = (struct record *)malloc(((size_t)dump_len / 9 + 1) * sizeof(*records));
    while (at < dump_len) {
        long len = record_len(at);
        if (len <= 0 || at + len > dump_len) {
            fault("a record beyond the end, or of no known type", at, dump[at]);
            break;
        }
        by_type[dump[at]]++;
        if (dump[at] >= JVMPI_GC_CLASS_DUMP && dump[at] <= JVMPI_GC_PRIM_ARRAY_DUMP) {
            records[n_records].id = id_at(at + 1);
            records[n_records].at = at;
            records[n_records++].len = len;
        } else {
            roots_end = at + len;
            if (n_records)
                fault("a root behind objects", at, 0);
        }
        at += len;
    }
    if (at != dump_len)
        fault("the dump does not end with its last record", at, dump_len);
    qsort(records, (size_t)n_records, sizeof(*records), compare_records);
    for (i = 0; i < n_records; i++) {
        const struct record *r = &records[i];
        if (i && records[i - 1].id == r->id)
            fault("an object twice", r->at, (long)r->id);
        if (dump[r->at] == JVMPI_GC_INSTANCE_DUMP)
            check_instance(r);
        else if (dump[r->at] == JVMPI_GC_OBJ_ARRAY_DUMP)
            for (k = 0; k < (r->len - 21) / 8; k++)
                check_reference(r->at + 21 + 8 * k, "an element that is not in the dump");
        else if (dump[r->at] == JVMPI_GC_CLASS_DUMP)
            for (k = 0; k < 7; k++)
                check_reference(
                    r->at + 1 + 8 * k,
                    "a class's loader, signers, domain or superclass that is not in the dump");
    }
    for (at = 0; at < roots_end; at += record_len(at))
        check_reference(at + 1, "a root that is not in the dump");
}

static void notify_event(JVMPI_Event *e)
{
    switch (e->event_type & ~JVMPI_REQUESTED_EVENT) {
    case JVMPI_EVENT_CLASS_LOAD:
        on_class_load(e);
        break;
    case JVMPI_EVENT_HEAP_DUMP:
        dump_len = e->u.heap_dump.end - e->u.heap_dump.begin;
        dump = (unsigned char *)realloc(dump, (size_t)dump_len + 64);
        memcpy(dump, e->u.heap_dump.begin, (size_t)dump_len);
        level = e->u.heap_dump.dump_level;
        dump_traces = e->u.heap_dump.num_traces;
        for (n_traces = 0; n_traces < dump_traces && n_traces < 256; n_traces++) {
            int i, n = e->u.heap_dump.traces[n_traces].num_frames;
            traces[n_traces] = e->u.heap_dump.traces[n_traces];
            traces[n_traces].frames =
                (JVMPI_CallFrame *)malloc(((size_t)n + 1) * sizeof(JVMPI_CallFrame));
            for (i = 0; i < n; i++)
                traces[n_traces].frames[i] = e->u.heap_dump.traces[n_traces].frames[i];
        }
        break;
    case JVMPI_EVENT_OBJECT_DUMP:
        object_len = e->u.object_dump.data_len;
        object = (unsigned char *)realloc(object, (size_t)object_len + 1);
        memcpy(object, e->u.object_dump.data, (size_t)object_len);
        break;
    }
}

/* ---- questions ---- */

/*
 * Returns the position of the value of an object's field, or -1; for a class object, of its static
 * field.
 */
static long place_of(const struct record *r, const char *class_name, const char *field,
                     char *ret_type)
{
    struct class_info *c = class_of(dump[r->at] == JVMPI_GC_CLASS_DUMP ? r->id : id_at(r->at + 9));
    long at;
    int i;
    if (dump[r->at] == JVMPI_GC_CLASS_DUMP) {
        for (at = r->at + r->len - values_len(c, 1), i = 0; i < c->n_statics;
             at += width(c->types[i++]))
            if (!strcmp(c->names[i], field)) {
                *ret_type = c->types[i];
                return at;
            }
        return -1;
    }
    for (at = r->at + 21; c; c = c->super ? class_of(c->super) : NULL)
        for (i = c->n_statics; i < c->n_statics + c->n_instances; at += width(c->types[i++]))
            if (!strcmp(c->names[i], field) && !strcmp(c->name, class_name)) {
                *ret_type = c->types[i];
                return at;
            }
    return -1;
}

/* Returns the value as bits, or a reference as its id. */
static jlong value_of(const struct record *r, const char *class_name, const char *field)
{
    char type;
    long at = place_of(r, class_name, field, &type);
    if (at < 0)
        return -777777;
    if (width(type) == 0)
        return -888888;
    return type == 'L' || type == '[' ? (jlong)(size_t)id_at(at)
                                      : (jlong)be(dump + at, width(type));
}

/*
 * Returns which roots of a type refer to the object. For frames it is their number, when the trace
 * of the thread has the method there.
 */
static long roots_of(jobjectID id, int type, const char *method_class)
{
    long at, n = 0, i;
    for (at = 0; at < dump_len &&
                 !(dump[at] >= JVMPI_GC_CLASS_DUMP && dump[at] <= JVMPI_GC_PRIM_ARRAY_DUMP);
         at += record_len(at)) {
        if (dump[at] != type || id_at(at + 1) != id)
            continue;
        if (*method_class) {
            int frame = (int)be(dump + at + 17, 4), found = 0;
            for (i = 0; i < n_traces; i++)
                if ((void *)traces[i].env_id == (void *)id_at(at + 9) && frame >= 0 &&
                    frame < traces[i].num_frames) {
                    struct class_info *c =
                        class_of(jvmpi->GetMethodClass(traces[i].frames[frame].method_id));
                    found = c && !strcmp(c->name, method_class);
                }
            n += found;
        } else
            n++;
    }
    return n;
}

JNIEXPORT jlong JNICALL Java_JvmpiDump_ask(JNIEnv *env, jclass unused, jstring jwhat, jobject o,
                                           jstring jclass_name, jstring jfield, jlong n)
{
    const char *what = (*env)->GetStringUTFChars(env, jwhat, NULL);
    const char *name = jclass_name ? (*env)->GetStringUTFChars(env, jclass_name, NULL) : "";
    const char *field = jfield ? (*env)->GetStringUTFChars(env, jfield, NULL) : "";
    jobjectID id = jvmpi->jobject2jobjectID(o);
    struct record *r = records ? find_record(id) : NULL;
    jlong answer = -999999;
    long i;
#define IS(s) (!strcmp(what, s))
    if (IS("dump")) {
        JVMPI_HeapDumpArg arg;
        jobject local = (*env)->NewLocalRef(env, o);
        arg.heap_dump_level = (jint)n;
        answer = jvmpi->RequestEvent(JVMPI_EVENT_HEAP_DUMP, n < 0 ? NULL : &arg);
        if (answer == JVMPI_SUCCESS)
            parse();
        (*env)->DeleteLocalRef(env, local);
        fflush(stdout);
    } else if (IS("faults"))
        answer = faults;
    else if (IS("level"))
        answer = level;
    else if (IS("traces"))
        answer = dump_traces;
    else if (IS("id"))
        answer = (jlong)(size_t)id;
    else if (IS("roots of type"))
        answer = by_type[n];
    else if (IS("instances")) {
        for (answer = 0, i = 0; i < n_records; i++)
            answer +=
                dump[records[i].at] == JVMPI_GC_INSTANCE_DUMP && id_at(records[i].at + 9) == id;
    } else if (IS("root"))
        answer = roots_of(id, (int)n, name);
    else if (!r)
        answer = -666666;
    else if (IS("type"))
        answer = dump[r->at];
    else if (IS("value"))
        answer = value_of(r, name, field);
    else if (IS("class"))
        answer = (jlong)(size_t)id_at(r->at + 9);
    else if (IS("pointer")) /* of CLASS_DUMP: super, loader, signers, domain, name, reserved */
        answer = (jlong)(size_t)id_at(r->at + 9 + 8 * (long)n);
    else if (IS("interface"))
        answer =
            n < class_of(r->id)->interfaces ? (jlong)(size_t)id_at(r->at + 61 + 8 * (long)n) : -1;
    else if (IS("size"))
        answer = (jlong)be(dump + r->at + 57, 4);
    else if (IS("length"))
        answer = (jlong)be(dump + r->at + 9, 4);
    else if (IS("element class"))
        answer = (jlong)(size_t)id_at(r->at + 13);
    else if (IS("kind"))
        answer = dump[r->at + 13];
    else if (IS("element"))
        answer = dump[r->at] == JVMPI_GC_OBJ_ARRAY_DUMP
                     ? (jlong)(size_t)id_at(r->at + 21 + 8 * (long)n)
                     : (jlong)be(dump + r->at + 14 + n * width_of_kind(dump[r->at + 13]),
                                 width_of_kind(dump[r->at + 13]));
    else if (IS("record length"))
        answer = r->len;
    else if (IS("same as object dump"))
        answer = jvmpi->RequestEvent(JVMPI_EVENT_OBJECT_DUMP, id) == JVMPI_SUCCESS &&
                 object_len == r->len && !memcmp(object, dump + r->at, (size_t)object_len);
    (*env)->ReleaseStringUTFChars(env, jwhat, what);
    if (jclass_name)
        (*env)->ReleaseStringUTFChars(env, jclass_name, name);
    if (jfield)
        (*env)->ReleaseStringUTFChars(env, jfield, field);
    return answer;
}

static jobject held;

JNIEXPORT void JNICALL Java_JvmpiDump_hold(JNIEnv *env, jclass unused, jobject o)
{
    held = (*env)->NewGlobalRef(env, o);
}

/* Returns the reference in the dump for an object that hold() was given. */
JNIEXPORT jlong JNICALL Java_JvmpiDump_held(JNIEnv *env, jclass unused, jobject o)
{
    long at;
    jobjectID id = jvmpi->jobject2jobjectID(o);
    for (at = 0; at < dump_len &&
                 !(dump[at] >= JVMPI_GC_CLASS_DUMP && dump[at] <= JVMPI_GC_PRIM_ARRAY_DUMP);
         at += record_len(at))
        if (dump[at] == JVMPI_GC_ROOT_JNI_GLOBAL && id_at(at + 1) == id)
            return (void *)id_at(at + 9) == (void *)held;
    return -1;
}

JNIEXPORT jint JNICALL JVM_OnLoad(JavaVM *jvm, char *options, void *reserved);

JNIEXPORT jint JNICALL JVM_OnLoad(JavaVM *jvm, char *options, void *reserved)
{
    if ((*jvm)->GetEnv(jvm, (void **)&jvmpi, JVMPI_VERSION_1) != JNI_OK)
        return JNI_ERR;
    jvmpi->NotifyEvent = notify_event;
    jvmpi->EnableEvent(JVMPI_EVENT_JNI_GLOBALREF_ALLOC, NULL);
    jvmpi->EnableEvent(JVMPI_EVENT_CLASS_LOAD, NULL);
    return JNI_OK;
}
