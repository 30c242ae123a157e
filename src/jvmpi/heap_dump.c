/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes heap dumps (specification, section 4.2). Numbers are big-endian; ids and pointers have the
 * machine's byte order. Levels 1 and 2 are made in one walk of all reachable objects. When an
 * object is first visited its record is written with zero values. Each reference and each primitive
 * value that the VM reports is then stored in its place.
 */
#include "agent/vm/loaded_classes.h"
#include "base/buf.h"
#include "jvmpi/classes.h"
#include "jvmpi/dumps.h"
#include "jvmpi/heap_walks.h"
#include "jvmpi/ids.h"
#include "jvmpi/interface.h"
#include "jvmpi/layer.h"
#include "jvmpi/layouts.h"
#include "jvmpi/memory.h"
#include "jvmpi/objects.h"
#include "jvmpi/references.h"
#include "jvmpi/settle.h"
#include "jvmpi/threads.h"
#include "jvmpi/traces.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
    POINTER = sizeof(void *),
    /*
     * The number of attempts. An attempt fails if the program has created objects of a class that
     * was linked after the classes were read. From the second attempt on, a thread that has linked
     * a class waits for the dump, so that only objects of known classes are created.
     */
    RETRIES = 50
};

/* Offsets in a CLASS DUMP record from its first byte. */
enum {
    AT_SIGNERS = 1 + 3 * POINTER,
    AT_DOMAIN = 1 + 4 * POINTER,
    AT_SIZE = 1 + 7 * POINTER,
    AT_INTERFACES = AT_SIZE + 4
};

static void put_pointer(struct buf *b, const void *p)
{
    buf_bytes(b, &p, sizeof(p));
}

static void put_id(struct buf *b, jlong id)
{
    put_pointer(b, (void *)(intptr_t)id);
}

/* ---- level 0 ---- */

struct level_0 {
    struct buf out;
    struct map kinds; /* id of a class -> kind of its instances */
    struct map seen;
    struct map unlinked; /* ids of classes with objects but without a kind */
    found_vec found;
    found_vec *dumped; /* everything, or NULL */
};

static int put_living(jlong class_id, jlong size, jlong *id, void *data)
{
    struct level_0 *d = data;
    bool added = false;
    const uint64_t *kind = map_get(&d->kinds, (uint64_t)class_id);
    if (!kind)
        return map_put(&d->unlinked, (uint64_t)class_id, 1);
    bool unknown = !*id;
    if (unknown)
        *id = layer_next_id();
    if (!map_at(&d->seen, (uint64_t)*id, 1, &added))
        return -ENOMEM;
    if ((unknown || (added && ids_walk_unreported(*id))) &&
        vec_push(&d->found, ((struct found){*id, class_id, size})))
        return -ENOMEM;
    if (added && d->dumped && vec_push(d->dumped, ((struct found){*id, class_id, size})))
        return -ENOMEM;
    if (added) {
        buf_u8(&d->out, (uint8_t)*kind);
        put_id(&d->out, *id);
    }
    return buf_error(&d->out);
}

static bool level_0_once(JNIEnv *env, struct level_0 *d)
{
    _cleanup_(loaded_classes_release) struct loaded_classes all = {0};
    if (loaded_classes(vm.ti, env, &all) < 0)
        return false;
    bool ok = true;
    buf_clear(&d->out);
    if (d->dumped)
        vec_clear(d->dumped);
    map_clear(&d->seen);
    map_clear(&d->unlinked);
    for (jint i = 0; i < all.n; i++) {
        char *signature = NULL;
        (void)layer_report_object(env, all.of[i]);
        jobjectID id = layer_report_class(env, all.of[i]);
        if (!id || map_get(&d->kinds, (uintptr_t)id))
            continue;
        layer_kind_learn(env, all.of[i]);
        (void)(*vm.ti)->GetClassSignature(vm.ti, all.of[i], &signature, NULL);
        if (!layer_mutation("unlinked-objects") || strcmp(signature, "Ljava/lang/String;") != 0)
            ok = ok && map_put(&d->kinds, (uintptr_t)id,
                               (uint64_t)layer_kind_of_signature(signature)) == 0;
        vm_free(signature);
    }
    layer_report_unreported(env);
    ids_walk_begin();
    ok = ok && layer_living_walk(put_living, d);
    ids_walk_end(&d->found);
    layer_report_found(env, &d->found);
    vec_clear(&d->found);
    return ok;
}

static bool dump_level_0(JNIEnv *env, struct buf *out, found_vec *dumped)
{
    struct level_0 d = {.out = BUF(SIZE_MAX / 2), .dumped = dumped};
    bool ok = level_0_once(env, &d);
    layer_classes_freeze();
    for (int i = 0; ok && i < RETRIES && d.unlinked.len; i++) {
        (void)classes_link(env, &d.unlinked);
        ok = level_0_once(env, &d);
    }
    layer_classes_unfreeze();
    ok = ok && !d.unlinked.len; /* no dump may leave out objects */
    *out = d.out;
    map_release(&d.kinds);
    map_release(&d.seen);
    map_release(&d.unlinked);
    vec_release(&d.found);
    return ok && !buf_error(out);
}

/* ---- levels 1 and 2 ---- */

struct root {
    uint8_t group, type; /* records are sorted by group, thread, type */
    jint frame;
    const void *by; /* a JNIEnv or a JNI reference */
    jlong id;
};

struct walk {
    struct layouts layouts;
    const struct layer_traces *traces;
    struct map records; /* id -> start of its record in `objects` */
    struct buf objects;
    VEC(struct root) roots;
    jlong last_id; /* the record looked up last */
    size_t last_at;
    found_vec found;     /* objects that the walk gave ids */
    found_vec *dumped;   /* all objects, or NULL */
    struct map unlinked; /* ids of classes that are not defined but have objects */
    /* strange: something belongs to a class that did not exist when the layouts were read. */
    bool strange, failed;
};

static bool record_of(struct walk *w, jlong id, size_t *ret_at)
{
    if (id != w->last_id) {
        const uint64_t *at = map_get(&w->records, (uint64_t)id);
        if (!at)
            return false;
        w->last_id = id;
        w->last_at = *at;
    }
    *ret_at = w->last_at;
    return true;
}

static void put_zeros(struct buf *b, size_t n)
{
    uint8_t *p = buf_add(b, n);
    if (p)
        memset(p, 0, n);
}

/*
 * Returns whether the agent knows a class as such. Other class objects are recorded like any
 * object, with zeros.
 */
static bool is_class_record(const struct walk *w, jlong id)
{
    const struct layout *c = layout_of(&w->layouts, id);
    return c && c->defined;
}

static void put_class_record(struct walk *w, jlong id)
{
    const struct layout *c = layout_of(&w->layouts, id);
    struct buf *b = &w->objects;
    buf_u8(b, JVMPI_GC_CLASS_DUMP);
    put_id(b, id);
    put_id(b, c->super);
    put_id(b, c->loader);
    /*
     * Signers and domain are set by references; two words are reserved; the size is set at the end.
     */
    put_zeros(b, 4 * POINTER + 4);
    for (jint i = 0; i < c->n_interfaces; i++)
        put_id(b, c->interfaces[i]);
    buf_be16(b, 0); /* no constants, as in the old VMs */
    put_zeros(b, c->static_bytes);
}

static void put_record(struct walk *w, jlong id, jlong class_id, jlong size, jint length)
{
    struct layout *c = layout_of(&w->layouts, class_id);
    struct buf *b = &w->objects;
    if (!c || !c->defined) {
        w->strange = true;
        w->failed |= map_put(&w->unlinked, (uint64_t)class_id, 1) != 0;
        return;
    }
    if (is_class_record(w, id)) {
        put_class_record(w, id);
        /* The class object includes its statics, so the smallest one has none. */
        c->size = c->size && c->size < size ? c->size : size;
        return;
    }
    c->size = size;
    buf_u8(b, c->kind == JVMPI_NORMAL_OBJECT ? JVMPI_GC_INSTANCE_DUMP
              : c->kind == JVMPI_CLASS       ? JVMPI_GC_OBJ_ARRAY_DUMP
                                             : JVMPI_GC_PRIM_ARRAY_DUMP);
    put_id(b, id);
    if (c->kind == JVMPI_NORMAL_OBJECT) {
        put_id(b, class_id);
        buf_be32(b, c->all_bytes);
        put_zeros(b, c->all_bytes);
        return;
    }
    buf_be32(b, (uint32_t)length);
    if (c->kind == JVMPI_CLASS) {
        put_id(b, c->element);
        put_zeros(b, (size_t)length * POINTER);
    } else {
        buf_u8(b, (uint8_t)c->kind);
        put_zeros(b, w->layouts.references
                         ? 0
                         : (size_t)length * layer_value_width("....ZCFDBSIJ"[c->kind]));
    }
}

/*
 * Returns where to store the value of a field, or NULL. class_id is the class that declares or
 * inherits it.
 */
static uint8_t *value_at(struct walk *w, jlong id, jlong class_id, jint index, bool is_static)
{
    size_t at;
    uint32_t offset;
    const struct layout *of = layout_of(&w->layouts, is_static ? id : class_id);
    const struct layout_field *f = of ? layout_place(&w->layouts, of, index, &offset) : NULL;
    if (!f || is_static != is_class_record(w, id) || f->is_static != is_static ||
        !record_of(w, id, &at))
        return NULL;
    at += is_static ? AT_INTERFACES + (size_t)of->n_interfaces * POINTER + 2 : 1 + 2 * POINTER + 4;
    return w->objects.data + at + offset;
}

static void store_reference(struct walk *w, uint8_t *p, jlong id)
{
    if (p)
        memcpy(p, &id, POINTER);
}

static void store_at(struct walk *w, jlong referrer, size_t offset, jlong id)
{
    size_t at;
    if (record_of(w, referrer, &at))
        store_reference(w, w->objects.data + at + offset, id);
}

static void store_of_class(struct walk *w, jlong referrer, size_t offset, jlong id)
{
    if (is_class_record(w, referrer))
        store_at(w, referrer, offset, id);
}

static void put_root(struct walk *w, jvmtiHeapReferenceKind kind,
                     const jvmtiHeapReferenceInfo *info, jlong id)
{
    struct root r = {.group = 4, .type = JVMPI_GC_ROOT_UNKNOWN, .id = id};
    JNIEnv *hidden =
        kind == JVMTI_HEAP_REFERENCE_JNI_GLOBAL ? traces_hidden_env(w->traces, id) : NULL;
    if (hidden) { /* see threads_show */
        r.group = 0;
        r.by = hidden;
        r.type = JVMPI_GC_ROOT_THREAD_BLOCK;
    } else if (kind == JVMTI_HEAP_REFERENCE_JNI_GLOBAL) {
        r.group = 1;
        r.type = JVMPI_GC_ROOT_JNI_GLOBAL;
    } else if (kind == JVMTI_HEAP_REFERENCE_SYSTEM_CLASS &&
               (is_class_record(w, id) || layer_mutation("sticky-object"))) {
        r.group = 2;
        r.type = JVMPI_GC_ROOT_STICKY_CLASS;
    } else if (kind == JVMTI_HEAP_REFERENCE_MONITOR) {
        r.group = 3;
        r.type = JVMPI_GC_ROOT_MONITOR_USED;
    } else if (kind == JVMTI_HEAP_REFERENCE_STACK_LOCAL || kind == JVMTI_HEAP_REFERENCE_JNI_LOCAL) {
        bool java = kind == JVMTI_HEAP_REFERENCE_STACK_LOCAL;
        jlong thread = java ? info->stack_local.thread_tag : info->jni_local.thread_tag;
        jint depth = java ? info->stack_local.depth : info->jni_local.depth;
        jmethodID method = java ? info->stack_local.method : info->jni_local.method;
        r.by = traces_env(w->traces, thread);
        if (r.by) {
            r.group = 0;
            r.frame = traces_frame(w->traces, thread, depth, method);
            r.type = !java                            ? JVMPI_GC_ROOT_JNI_LOCAL
                     : info->stack_local.location < 0 ? JVMPI_GC_ROOT_NATIVE_STACK
                                                      : JVMPI_GC_ROOT_JAVA_FRAME;
        }
    } else if (kind == JVMTI_HEAP_REFERENCE_THREAD) {
        r.by = traces_env(w->traces, id);
        r.group = r.by ? 0 : r.group;
        r.type = r.by ? JVMPI_GC_ROOT_THREAD_BLOCK : r.type;
    }
    if (r.type == JVMPI_GC_ROOT_NATIVE_STACK || r.type == JVMPI_GC_ROOT_THREAD_BLOCK)
        r.frame = 0;
    if (r.type == JVMPI_GC_ROOT_JAVA_FRAME && layer_mutation("deep-frame"))
        r.frame += 1000;
    w->failed |= vec_push(&w->roots, r) != 0;
}

static jint JNICALL on_reference(jvmtiHeapReferenceKind kind, const jvmtiHeapReferenceInfo *info,
                                 jlong class_tag, jlong referrer_class_tag, jlong size, jlong *tag,
                                 jlong *referrer, jint length, void *data)
{
    struct walk *w = data;
    bool added = false;
    bool unknown = !*tag;
    if (unknown)
        *tag = layer_next_id();
    if (!map_at(&w->records, (uint64_t)*tag, w->objects.len, &added))
        w->failed = true;
    if (unknown || (added && ids_walk_unreported(*tag)))
        w->failed |= vec_push(&w->found, ((struct found){*tag, class_tag, size})) != 0;
    if (added && w->dumped)
        w->failed |= vec_push(w->dumped, ((struct found){*tag, class_tag, size})) != 0;
    if (added)
        put_record(w, *tag, class_tag, size, length);
    w->failed |= buf_error(&w->objects) != 0;
    if (w->failed)
        return JVMTI_VISIT_ABORT;
    if (!referrer)
        put_root(w, kind, info, *tag);
    else if (kind == JVMTI_HEAP_REFERENCE_FIELD || kind == JVMTI_HEAP_REFERENCE_STATIC_FIELD)
        store_reference(w,
                        value_at(w, *referrer, referrer_class_tag, info->field.index,
                                 kind == JVMTI_HEAP_REFERENCE_STATIC_FIELD),
                        *tag);
    else if (kind == JVMTI_HEAP_REFERENCE_ARRAY_ELEMENT)
        store_at(w, *referrer, 1 + 2 * POINTER + 4 + (size_t)info->array.index * POINTER, *tag);
    else if (kind == JVMTI_HEAP_REFERENCE_SIGNERS)
        store_of_class(w, *referrer, AT_SIGNERS, *tag);
    else if (kind == JVMTI_HEAP_REFERENCE_PROTECTION_DOMAIN)
        store_of_class(w, *referrer, AT_DOMAIN, *tag);
    return JVMTI_VISIT_OBJECTS;
}

/* Stores a value of the machine in big-endian order. */
static void store_value(uint8_t *to, const void *value, unsigned width)
{
    const uint8_t *from = value;
    for (unsigned i = 0; i < width; i++)
        to[i] = from[width - 1 - i];
}

static jint JNICALL on_primitive(jvmtiHeapReferenceKind kind, const jvmtiHeapReferenceInfo *info,
                                 jlong class_tag, jlong *tag, jvalue value, jvmtiPrimitiveType type,
                                 void *data)
{
    struct walk *w = data;
    uint8_t *p =
        value_at(w, *tag, class_tag, info->field.index, kind == JVMTI_HEAP_REFERENCE_STATIC_FIELD);
    if (p)
        store_value(p, &value, layer_value_width((char)type));
    return 0;
}

static jint JNICALL on_elements(jlong class_tag, jlong size, jlong *tag, jint n,
                                jvmtiPrimitiveType type, const void *elements, void *data)
{
    struct walk *w = data;
    size_t at;
    unsigned width = layer_value_width((char)type);
    if (!record_of(w, *tag, &at))
        return 0;
    uint8_t *to = w->objects.data + at + 1 + POINTER + 4 + 1;
    for (jint i = 0; i < n; i++)
        store_value(to + (size_t)i * width, (const uint8_t *)elements + (size_t)i * width, width);
    return 0;
}

/* ---- the finished dump ---- */

#define COMPARE(a, b)                  \
    do {                               \
        if ((a) != (b))                \
            return (a) < (b) ? -1 : 1; \
    } while (0)

static int compare_roots(const void *left, const void *right)
{
    const struct root *a = left, *b = right;
    COMPARE(a->group, b->group);
    COMPARE((uintptr_t)a->by, (uintptr_t)b->by);
    COMPARE(a->type == JVMPI_GC_ROOT_THREAD_BLOCK, b->type == JVMPI_GC_ROOT_THREAD_BLOCK);
    COMPARE(a->frame, b->frame);
    COMPARE(a->type, b->type);
    COMPARE(a->id, b->id);
    return 0;
}

/*
 * The VM reports only the object. The references to it are known if the agent has enabled their
 * events; if not, returns NULL.
 */
static const void *take_reference(struct reference *list, size_t n, jlong id)
{
    size_t low = 0, high = n;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (list[middle].id < id)
            low = middle + 1;
        else
            high = middle;
    }
    while (low < n && list[low].id == id && list[low].taken)
        low++;
    if (low == n || list[low].id != id)
        return NULL;
    list[low].taken = true;
    return list[low].ref;
}

static void put_roots(struct walk *w, struct buf *out)
{
    struct reference *list;
    size_t n = references_list(&list);
    for (size_t i = 0; i < w->roots.len; i++) {
        struct root *r = &w->roots.data[i];
        if (r->type == JVMPI_GC_ROOT_JNI_GLOBAL)
            r->by = take_reference(list, n, r->id);
    }
    free(list);
    if (w->roots.len)
        qsort(w->roots.data, w->roots.len, sizeof(struct root), compare_roots);
    for (size_t i = 0; i < w->roots.len; i++) {
        const struct root *r = &w->roots.data[i];
        if (i && compare_roots(r, r - 1) == 0)
            continue;
        buf_u8(out, r->type);
        put_id(out, r->id);
        if (r->group < 2)
            put_pointer(out, r->by);
        if (r->type == JVMPI_GC_ROOT_JNI_LOCAL || r->type == JVMPI_GC_ROOT_JAVA_FRAME)
            buf_be32(out, (uint32_t)r->frame);
    }
}

static void put_sizes(struct walk *w)
{
    size_t at;
    for (size_t i = 0; i < w->layouts.rows.len; i++) {
        const struct layout *c = &w->layouts.rows.data[i];
        uint32_t size = c->kind == JVMPI_NORMAL_OBJECT ? (uint32_t)c->size : 0;
        if (c->defined && record_of(w, c->id, &at))
            store_value(w->objects.data + at + AT_SIZE, &size, 4);
    }
}

/* Releases everything but the layouts. */
static void walk_release(struct walk *w)
{
    map_release(&w->records);
    buf_release(&w->objects);
    vec_release(&w->roots);
    vec_release(&w->found);
    map_release(&w->unlinked);
}

/* Resets the walk for another try. */
static void walk_again(struct walk *w)
{
    struct walk fresh = {.layouts = w->layouts,
                         .traces = w->traces,
                         .dumped = w->dumped,
                         .objects = BUF(SIZE_MAX / 2)};
    if (w->dumped)
        vec_clear(w->dumped);
    walk_release(w);
    *w = fresh;
}

static bool walk_once(JNIEnv *env, struct walk *w, jint level)
{
    jvmtiHeapCallbacks callbacks = {.heap_reference_callback = on_reference};
    if (level == JVMPI_DUMP_LEVEL_2) {
        callbacks.primitive_field_callback = on_primitive;
        callbacks.array_primitive_value_callback = on_elements;
    }
    my.quiet++;
    bool ok = layouts_read(env, &w->layouts, level == JVMPI_DUMP_LEVEL_1);
    my.quiet--;
    if (!ok)
        return false;
    layer_report_unreported(env);
    ids_walk_begin();
    heap_walk_begin();
    ok = !(*vm.ti)->FollowReferences(vm.ti, 0, NULL, NULL, &callbacks, w) && !w->failed;
    heap_walk_end();
    ids_walk_end(&w->found);
    layer_report_found(env, &w->found);
    vec_clear(&w->found);
    return ok;
}

/* Adds the monitors that are entered. HotSpot reports them as roots only up to about JDK 16. */
static bool add_monitors(JNIEnv *env, struct walk *w)
{
    jint n_threads = 0;
    jthread *threads = NULL;
    if (vm_all_threads(&n_threads, &threads))
        return false;
    for (jint i = 0; i < n_threads; i++) {
        jint n = 0;
        jobject *owned = NULL;
        (void)thread_owned_monitors(threads[i], &n, &owned);
        for (jint k = 0; k < n; k++) {
            struct root r = {.group = 3,
                             .type = JVMPI_GC_ROOT_MONITOR_USED,
                             .id = (jlong)(intptr_t)layer_id_of(owned[k])};
            if (map_get(&w->records, (uint64_t)r.id))
                w->failed |= vec_push(&w->roots, r) != 0;
            (*env)->DeleteLocalRef(env, owned[k]);
        }
        vm_free(owned);
        (*env)->DeleteLocalRef(env, threads[i]);
    }
    vm_free(threads);
    return !w->failed;
}

static bool dump_graph(JNIEnv *env, jint level, const struct layer_traces *traces, struct buf *out,
                       found_vec *dumped)
{
    struct walk w = {.traces = traces, .dumped = dumped, .objects = BUF(SIZE_MAX / 2)};
    bool ok = true, again = true;
    int tries = 0;
    for (; ok && again && tries < RETRIES; tries++) {
        if (tries == 1)
            layer_classes_freeze();
        walk_again(&w);
        uint64_t linked = classes_linked();
        ok = walk_once(env, &w, level);
        if (ok && w.unlinked.len)
            (void)classes_link(env, &w.unlinked);
        if (ok)
            layouts_sizes(env, &w.layouts);
        /* CLASS_LOAD of a class linked meanwhile reports fields that its record does not have. */
        again = w.strange || linked != classes_linked();
    }
    if (tries > 1)
        layer_classes_unfreeze();
    ok = ok && !w.strange && add_monitors(env, &w);
    if (ok) {
        put_sizes(&w);
        put_roots(&w, out);
        buf_bytes(out, w.objects.data, w.objects.len);
    }
    walk_release(&w);
    layouts_release(&w.layouts);
    return ok && !buf_error(out);
}

/* Makes the dump without its event. */
static bool take_dump(JNIEnv *env, jint level, struct layer_traces *traces, struct buf *out,
                      found_vec *dumped)
{
    reported_thread_vec threads = {0};
    object_vec held = {0};
    ids_sweep_begin();
    bool ok = threads_reported(env, &threads) == 0 && threads_show(env, &threads, &held);
    if (level == JVMPI_DUMP_LEVEL_0)
        ok = ok && dump_level_0(env, out, dumped);
    else
        ok =
            ok && traces_take(env, &threads, traces) && dump_graph(env, level, traces, out, dumped);
    ids_sweep_end();
    threads_hide(env, &held);
    threads_release(env, &threads);
    return ok;
}

jint layer_request_heap_dump(JNIEnv *env, jint level)
{
    struct buf out = BUF(SIZE_MAX / 2);
    struct layer_traces traces = {0};
    _cleanup_(loaded_classes_release) struct loaded_classes living = {0};
    /*
     * If not all objects were reported to the agent, it may request each object that the dump
     * names, including one that ends meanwhile.
     */
    struct dumped dumped = {0};
    bool keep = !layer_enabled(JVMPI_EVENT_OBJECT_ALLOC) && !layer_mutation("forgetful-dump");
    layer_known_freeze();
    layer_brackets_hold();
    bool ok = take_dump(env, level, &traces, &out, keep ? &dumped.objects : NULL);
    if (ok)
        layer_report_unreported(env); /* ids that answers to other threads have assigned since */
    layer_reports_settle();           /* other threads may still be reporting what the dump names */
    /* While the dump is handled the VM unloads no class, because the agent requests many then. */
    ok = ok && loaded_classes(vm.ti, env, &living) == 0;
    JVMPI_Event e = {.event_type = JVMPI_EVENT_HEAP_DUMP | JVMPI_REQUESTED_EVENT,
                     .u.heap_dump = {level, (char *)out.data,
                                     (char *)out.data + out.len - layer_mutation("short-dump"),
                                     traces.n, traces.all}};
    const struct dumped *outer = my.dumped;
    vec_sort(&dumped.objects, layer_found_compare);
    my.dumped = &dumped;
    if (ok)
        layer_notify(env, &e);
    my.dumped = outer;
    layer_brackets_release();
    layer_known_unfreeze();
    vec_release(&dumped.objects);
    layer_traces_release(&traces);
    buf_release(&out);
    return ok ? JVMPI_SUCCESS : JVMPI_FAIL;
}
