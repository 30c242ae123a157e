/* SPDX-License-Identifier: Apache-2.0 */
/* The questions instances and object: live objects and their contents. */
#include "agent/inspect/inspect.h"
#include "agent/vm/collect.h"
#include "agent/vm/error_words.h"
#include "agent/vm/monitor_usage.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { INSTANCES_SHOWN = 200, ELEMENTS_SHOWN = 200, TAG_NEW = -1 };

struct tally {
    uint64_t objects, bytes;
    jint fresh, numbered; /* those that are shown */
    jlong numbers[INSTANCES_SHOWN];
};

/*
 * Chooses the first objects. Those among them that have a number keep it; the others are marked
 * with a tag that is not used as a number.
 */
static jint JNICALL count_instance(jlong class_tag, jlong size, jlong *tag, jint length, void *data)
{
    struct tally *t = data;
    t->objects++;
    t->bytes += (uint64_t)size;
    if (t->fresh + t->numbered >= INSTANCES_SHOWN)
        return JVMTI_VISIT_OBJECTS;
    if (*tag == 0) {
        *tag = TAG_NEW;
        t->fresh++;
    } else {
        t->numbers[t->numbered++] = *tag;
    }
    return JVMTI_VISIT_OBJECTS;
}

/* Writes the objects with these tags. Returns how many there were. */
static uint64_t put_tagged(struct inspection *i, jint n_tags, const jlong *tags)
{
    jint n = 0;
    jobject *list = NULL;
    if (!n_tags ||
        (*i->ti)->GetObjectsWithTags(i->ti, n_tags, tags, &n, &list, NULL) != JVMTI_ERROR_NONE)
        return 0;
    for (jint k = 0; k < n; k++) {
        if (tags[0] == TAG_NEW)
            (*i->ti)->SetTag(i->ti, list[k], 0); /* inspect_put_object assigns the number */
        inspect_put_object(i, list[k]);
        (*i->jni)->DeleteLocalRef(i->jni, list[k]);
    }
    vm_free(list);
    return (uint64_t)n;
}

int inspect_instances(struct inspection *i)
{
    jclass c = inspect_class_by_name(i, i->operand);
    if (!c) {
        inspect_no_class(i, i->operand, i->operand, NULL);
        return -ESRCH;
    }
    const jvmtiHeapCallbacks callbacks = {.heap_iteration_callback = count_instance};
    struct tally t = {0};
    /* Only live objects should be counted, so a collection is run first. */
    collect_if_possible(i->jni);
    jvmtiError e = (*i->ti)->IterateThroughHeap(i->ti, 0, c, &callbacks, &t);
    if (e != JVMTI_ERROR_NONE) {
        buf_string(i->why, "the heap cannot be walked: ");
        vm_put_error(i->why, e);
        return -ENOTSUP;
    }
    json_key_string(i->out, "class", i->operand);
    json_key_u64(i->out, "objects", t.objects);
    json_key_u64(i->out, "bytes", t.bytes);
    json_key_array(i->out, "instances");
    const jlong fresh = TAG_NEW;
    uint64_t shown = put_tagged(i, t.numbered, t.numbers) + put_tagged(i, t.fresh > 0, &fresh);
    json_end_array(i->out);
    if (shown < t.objects)
        json_key_u64(i->out, "left_out", t.objects - shown);
    return 0;
}

static void put_instance_fields(struct inspection *i, jobject o, jclass c)
{
    json_key_array(i->out, "fields");
    for (; c; c = (*i->jni)->GetSuperclass(i->jni, c)) {
        _cleanup_free_ char *declared_in = inspect_class_name(i, c);
        jint n = 0;
        jfieldID *fields = NULL;
        if ((*i->ti)->GetClassFields(i->ti, c, &n, &fields) != JVMTI_ERROR_NONE)
            continue;
        for (jint k = 0; k < n; k++) {
            char *name = NULL, *signature = NULL;
            jint modifiers = 0;
            jvalue v;
            (*i->ti)->GetFieldModifiers(i->ti, c, fields[k], &modifiers);
            if (modifiers & 8 || (*i->ti)->GetFieldName(i->ti, c, fields[k], &name, &signature,
                                                        NULL) != JVMTI_ERROR_NONE)
                continue;
            if (inspect_field_value(i, o, c, fields[k], signature, false, &v)) {
                _cleanup_free_ char *type = inspect_type_name(signature);
                json_begin_object(i->out);
                json_key_string(i->out, "name", name);
                json_key_string(i->out, "type", type);
                json_key_string(i->out, "declared_in", declared_in);
                json_key(i->out, "value");
                inspect_put_value(i, signature, v);
                json_end_object(i->out);
            }
            vm_free(name);
            vm_free(signature);
        }
        vm_free(fields);
    }
    json_end_array(i->out);
}

static jvalue element(JNIEnv *jni, jarray a, char type, jsize at)
{
    jvalue v = {.j = 0};
    switch (type) {
    case 'Z':
        (*jni)->GetBooleanArrayRegion(jni, a, at, 1, &v.z);
        break;
    case 'B':
        (*jni)->GetByteArrayRegion(jni, a, at, 1, &v.b);
        break;
    case 'C':
        (*jni)->GetCharArrayRegion(jni, a, at, 1, &v.c);
        break;
    case 'S':
        (*jni)->GetShortArrayRegion(jni, a, at, 1, &v.s);
        break;
    case 'I':
        (*jni)->GetIntArrayRegion(jni, a, at, 1, &v.i);
        break;
    case 'J':
        (*jni)->GetLongArrayRegion(jni, a, at, 1, &v.j);
        break;
    case 'F':
        (*jni)->GetFloatArrayRegion(jni, a, at, 1, &v.f);
        break;
    case 'D':
        (*jni)->GetDoubleArrayRegion(jni, a, at, 1, &v.d);
        break;
    default:
        v.l = (*jni)->GetObjectArrayElement(jni, a, at);
    }
    return v;
}

static void put_elements(struct inspection *i, jarray a, const char *signature)
{
    jsize n = (*i->jni)->GetArrayLength(i->jni, a);
    json_key_i64(i->out, "length", n);
    json_key_array(i->out, "elements");
    for (jsize k = 0; k < MIN(n, ELEMENTS_SHOWN); k++)
        inspect_put_value(i, signature + 1, element(i->jni, a, signature[1], k));
    json_end_array(i->out);
}

static void put_usage(struct inspection *i, jobject o)
{
    monitor_entrant_vec entrants = {0};
    jvmtiMonitorUsage use;
    /* If it fails, the VM's own list of waiting threads is used. */
    (void)!monitor_entrants_find(i->ti, i->jni, &entrants);
    if (i->have.can_get_monitor_info && !monitor_usage(i->ti, i->jni, &entrants, o, &use)) {
        json_key_object(i->out, "monitor");
        inspect_put_object_key(i, "owner", use.owner);
        use.owner = NULL; /* inspect_put_object_key has released it */
        json_key_i64(i->out, "entries", use.entry_count);
        json_key_i64(i->out, "waiting_to_enter", use.waiter_count);
        json_key_i64(i->out, "waiting_to_be_notified", use.notify_waiter_count);
        json_end_object(i->out);
        monitor_usage_release(i->ti, i->jni, &use);
    }
    monitor_entrants_release(i->jni, &entrants);
}

int inspect_object(struct inspection *i)
{
    char *end;
    long long number = strtoll(i->operand, &end, 10);
    jobject o = !*end ? inspect_object_of_number(i, number) : NULL;
    if (!o) {
        buf_printf(i->why, "%s: no living object has this number", i->operand);
        return -ESRCH;
    }
    jclass c = (*i->jni)->GetObjectClass(i->jni, o);
    char *signature = NULL;
    jlong size = 0;
    jint hash = 0;
    (*i->ti)->GetClassSignature(i->ti, c, &signature, NULL);
    (*i->ti)->GetObjectSize(i->ti, o, &size);
    (*i->ti)->GetObjectHashCode(i->ti, o, &hash);
    json_key(i->out, "object");
    inspect_put_object(i, o);
    json_key_i64(i->out, "bytes", size);
    json_key_i64(i->out, "identity_hash", hash);
    json_key_u64(i->out, "collections_survived", inspect_object_age(number));
    put_usage(i, o);
    if (signature && *signature == '[')
        put_elements(i, o, signature);
    else
        put_instance_fields(i, o, c);
    vm_free(signature);
    return 0;
}
