/* SPDX-License-Identifier: Apache-2.0 */
#include "jvmpi/layouts.h"
#include "agent/vm/loaded_classes.h"
#include "jvmpi/boot_classes.h"
#include "jvmpi/classes.h"
#include "jvmpi/ids.h"
#include "jvmpi/interface.h"
#include "jvmpi/objects.h"

#include <stdlib.h>
#include <string.h>

enum { STATIC = 8 };

unsigned layer_value_width(char type)
{
    switch (type) {
    case 'Z':
    case 'B':
        return 1;
    case 'C':
    case 'S':
        return 2;
    case 'I':
    case 'F':
        return 4;
    default: /* long, double, reference */
        return 8;
    }
}

jint layer_kind_of_signature(const char *s)
{
    static const char letters[] = {
        [JVMPI_BOOLEAN] = 'Z', [JVMPI_CHAR] = 'C',  [JVMPI_FLOAT] = 'F', [JVMPI_DOUBLE] = 'D',
        [JVMPI_BYTE] = 'B',    [JVMPI_SHORT] = 'S', [JVMPI_INT] = 'I',   [JVMPI_LONG] = 'J'};
    if (!s || s[0] != '[')
        return JVMPI_NORMAL_OBJECT;
    for (size_t i = JVMPI_BOOLEAN; i < ARRAY_SIZE(letters); i++)
        if (letters[i] == s[1])
            return (jint)i;
    return JVMPI_CLASS;
}

struct layout *layout_of(const struct layouts *l, jlong class_id)
{
    const uint64_t *at = map_get(&l->by_id, (uint64_t)class_id);
    return at ? &l->rows.data[*at] : NULL;
}

/* ---- reading ---- */

static jlong id_and_drop(JNIEnv *env, jobject o)
{
    jlong id = (jlong)(intptr_t)layer_report_object(env, o);
    if (o)
        (*env)->DeleteLocalRef(env, o);
    return id;
}

/* Returns the id of a class that the dump contains as a class. */
static jlong class_and_drop(JNIEnv *env, jclass class)
{
    jlong id = (jlong)(intptr_t)layer_report_class(env, class);
    if (class)
        (*env)->DeleteLocalRef(env, class);
    return id;
}

static void read_interfaces(JNIEnv *env, struct layout *row, jclass class)
{
    jint n = 0;
    jclass *interfaces = NULL;
    if ((*vm.ti)->GetImplementedInterfaces(vm.ti, class, &n, &interfaces))
        return;
    row->interfaces = calloc((size_t)n + 1, sizeof(*row->interfaces));
    for (jint i = 0; i < n; i++) {
        jlong id = class_and_drop(env, interfaces[i]);
        if (row->interfaces)
            row->interfaces[row->n_interfaces++] = id;
    }
    vm_free(interfaces);
}

static void read_fields(struct layout *row, jclass class, bool references)
{
    jint n = 0;
    jfieldID *ids = NULL;
    if ((*vm.ti)->GetClassFields(vm.ti, class, &n, &ids))
        return;
    row->fields = calloc((size_t)n + 1, sizeof(*row->fields));
    for (jint i = 0; row->fields && i < n; i++) {
        struct layout_field *f = &row->fields[row->n_fields++];
        jint modifiers = 0;
        char *signature = NULL;
        (void)(*vm.ti)->GetFieldModifiers(vm.ti, class, ids[i], &modifiers);
        (void)(*vm.ti)->GetFieldName(vm.ti, class, ids[i], NULL, &signature, NULL);
        f->type = signature && signature[0] != '[' ? signature[0] : 'L';
        f->is_static = modifiers & STATIC;
        uint32_t *sum = f->is_static ? &row->static_bytes : &row->own_bytes;
        f->offset = *sum;
        *sum += references && f->type != 'L' ? 0 : layer_value_width(f->type);
        vm_free(signature);
    }
    vm_free(ids);
}

static void row_release(struct layout *row)
{
    free(row->interfaces);
    free(row->fields);
}

/* Returns whether everything of the class is linked, so that its row can no longer change. */
static bool is_complete(const struct layout *row)
{
    return row->defined && (row->kind != JVMPI_CLASS || row->element);
}

/* Adds a row, or replaces the one of the same class. Takes ownership of the row's memory. */
static bool put_row(struct layouts *l, struct layout row)
{
    struct layout *known = layout_of(l, row.id);
    if (known) {
        row_release(known);
        *known = row;
        return true;
    }
    bool ok = map_put(&l->by_id, (uint64_t)row.id, l->rows.len) == 0;
    if (ok && vec_push(&l->rows, row)) {
        (void)map_remove(&l->by_id, (uint64_t)row.id);
        ok = false;
    }
    if (!ok)
        row_release(&row);
    return ok;
}

static struct layout read_class(JNIEnv *env, jclass class, bool references)
{
    bool defined = layer_report_class(env, class);
    if (defined) {
        layer_kind_learn(env, class);
        layer_class_remember(env, class); /* readers of the dump cannot do without it */
    }
    struct layout row = {.id = (jlong)(intptr_t)layer_report_object(env, class),
                         .defined = defined};
    char *signature = NULL;
    jint status = 0;
    jobject loader = NULL;
    (void)(*vm.ti)->GetClassSignature(vm.ti, class, &signature, NULL);
    (void)(*vm.ti)->GetClassStatus(vm.ti, class, &status);
    (void)(*vm.ti)->GetClassLoader(vm.ti, class, &loader);
    row.kind = layer_kind_of_signature(signature);
    row.loader = id_and_drop(env, loader);
    vm_free(signature);
    row.super = class_and_drop(env, (*env)->GetSuperclass(env, class));
    if (row.kind == JVMPI_CLASS)
        row.element = class_and_drop(env, layer_component_class(env, class));
    /*
     * Read only what CLASS_LOAD reports, because readers of the dump take the numbers of fields and
     * interfaces from there.
     */
    if (row.kind == JVMPI_NORMAL_OBJECT && status & JVMTI_CLASS_STATUS_PREPARED) {
        read_interfaces(env, &row, class);
        read_fields(&row, class, references);
    }
    return row;
}

/*
 * Counts the fields of all interfaces of a class, each interface once; `marks` has an element per
 * row.
 */
static jint count_interface_fields(const struct layouts *l, const struct layout *row,
                                   uint32_t *marks, uint32_t mark)
{
    jint n = 0;
    for (const struct layout *c = row; c; c = c->super ? layout_of(l, c->super) : NULL)
        for (jint i = 0; i < c->n_interfaces; i++) {
            const struct layout *interface = layout_of(l, c->interfaces[i]);
            size_t at = interface ? (size_t)(interface - l->rows.data) : 0;
            if (!interface || marks[at] == mark)
                continue;
            marks[at] = mark;
            n += interface->n_fields + count_interface_fields(l, interface, marks, mark);
        }
    return n;
}

static bool add_up(struct layouts *l)
{
    uint32_t *marks = calloc(l->rows.len + 1, sizeof(*marks));
    bool ok = marks != NULL;
    for (size_t i = 0; ok && i < l->rows.len; i++) {
        struct layout *row = &l->rows.data[i];
        row->all_bytes = row->own_bytes;
        row->fields_above = 0;
        for (const struct layout *s =
                 row->super && !layer_mutation("short-instance") ? layout_of(l, row->super) : NULL;
             s; s = s->super ? layout_of(l, s->super) : NULL) {
            row->all_bytes += s->own_bytes;
            row->fields_above += s->n_fields;
        }
        row->fields_of_interfaces = count_interface_fields(l, row, marks, (uint32_t)i + 1);
    }
    free(marks);
    return ok;
}

/*
 * Adds the classes of primitive types, such as int.class, which are not among the loaded classes.
 */
static bool read_primitives(JNIEnv *env, struct layouts *l)
{
    static const char *const holders[] = {"Boolean", "Byte",  "Character", "Short", "Integer",
                                          "Long",    "Float", "Double",    "Void"};
    bool ok = true;
    for (size_t i = 0; i < ARRAY_SIZE(holders); i++) {
        char name[40] = "java/lang/";
        jclass holder = boot_class(env, strcat(name, holders[i]));
        jfieldID type =
            holder ? (*env)->GetStaticFieldID(env, holder, "TYPE", "Ljava/lang/Class;") : NULL;
        struct layout row = {
            .id = type ? class_and_drop(env, (*env)->GetStaticObjectField(env, holder, type)) : 0,
            .defined = true};
        ok = ok && (layout_of(l, row.id) || put_row(l, row));
        (*env)->DeleteLocalRef(env, holder);
    }
    return !vm_clear_exception(env) && ok;
}

bool layouts_read(JNIEnv *env, struct layouts *l, bool references)
{
    _cleanup_(loaded_classes_release) struct loaded_classes all = {0};
    jclass of_classes = boot_class(env, "java/lang/Class");
    if (!of_classes || loaded_classes(vm.ti, env, &all) < 0)
        return false;
    bool ok = true;
    l->references = references;
    l->class_id = id_and_drop(env, of_classes);
    for (jint i = 0; i < all.n && ok; i++) {
        struct layout *known = layout_of(l, (jlong)(intptr_t)layer_report_object(env, all.of[i]));
        if (!known || !is_complete(known))
            ok = put_row(l, read_class(env, all.of[i], references));
    }
    return ok && read_primitives(env, l) && add_up(l);
}

void layouts_release(struct layouts *l)
{
    for (size_t i = 0; i < l->rows.len; i++)
        row_release(&l->rows.data[i]);
    vec_release(&l->rows);
    map_release(&l->by_id);
}

const struct layout_field *layout_place(const struct layouts *l, const struct layout *of,
                                        jint index, uint32_t *ret_offset)
{
    uint32_t before = 0;
    index -= of->fields_of_interfaces;
    while (of && index < of->fields_above) {
        before += of->own_bytes;
        of = of->super ? layout_of(l, of->super) : NULL;
    }
    if (!of || index < 0 || index - of->fields_above >= of->n_fields)
        return NULL;
    const struct layout_field *f = &of->fields[index - of->fields_above];
    *ret_offset = (f->is_static ? 0 : before) + f->offset;
    return f;
}

/* ---- sizes ---- */

struct unsafe {
    jclass class;
    jobject the;
    jmethodID offset;
    jlong reference_bytes, object_bytes;
};

static jlong size_of_array(JNIEnv *env, jclass element, jsize n)
{
    jlong size = 0;
    jobjectArray array = (*env)->NewObjectArray(env, n, element, NULL);
    if (!vm_clear_exception(env))
        (void)(*vm.ti)->GetObjectSize(vm.ti, array, &size);
    (*env)->DeleteLocalRef(env, array);
    return size;
}

static bool unsafe_open(JNIEnv *env, struct unsafe *u)
{
    u->class = boot_class(env, vm.version >= 9 ? "jdk/internal/misc/Unsafe" : "sun/misc/Unsafe");
    u->the = vm_unsafe_of(env, u->class);
    u->offset = u->the ? (*env)->GetMethodID(env, u->class, "objectFieldOffset",
                                             "(Ljava/lang/reflect/Field;)J")
                       : NULL;
    jclass object = boot_class(env, "java/lang/Object");
    jobject one = object ? (*env)->AllocObject(env, object) : NULL;
    if (!vm_clear_exception(env)) {
        (void)(*vm.ti)->GetObjectSize(vm.ti, one, &u->object_bytes);
        u->reference_bytes =
            (size_of_array(env, object, 1000) - size_of_array(env, object, 0)) / 1000;
    }
    (*env)->DeleteLocalRef(env, one);
    (*env)->DeleteLocalRef(env, object);
    return u->offset && u->object_bytes && u->reference_bytes;
}

static void unsafe_close(JNIEnv *env, struct unsafe *u)
{
    (*env)->DeleteLocalRef(env, u->the);
    (*env)->DeleteLocalRef(env, u->class);
}

/* Returns the end of the last field that a class declares, or 0 when it declares none. */
static jlong own_end(JNIEnv *env, const struct unsafe *u, jclass class)
{
    jint n = 0;
    jlong end = 0;
    jfieldID *ids = NULL;
    if ((*vm.ti)->GetClassFields(vm.ti, class, &n, &ids))
        return 0; /* not linked yet */
    for (jint i = 0; i < n; i++) {
        jint modifiers = STATIC;
        char *signature = NULL;
        (void)(*vm.ti)->GetFieldModifiers(vm.ti, class, ids[i], &modifiers);
        jobject field =
            modifiers & STATIC ? NULL : (*env)->ToReflectedField(env, class, ids[i], JNI_FALSE);
        if (field && !(*vm.ti)->GetFieldName(vm.ti, class, ids[i], NULL, &signature, NULL)) {
            bool primitive = signature[0] != 'L' && signature[0] != '[';
            jlong at = (*env)->CallLongMethod(env, u->the, u->offset, field);
            at += primitive ? (jlong)layer_value_width(signature[0]) : u->reference_bytes;
            end = !vm_clear_exception(env) && at > end ? at : end;
        }
        vm_free(signature);
        (*env)->DeleteLocalRef(env, field);
    }
    vm_free(ids);
    return end;
}

/*
 * Computes the size of an instance from its fields. HotSpot rounds the end of the last field up to
 * 8 bytes. A superclass's field may be after those of the class.
 */
static jlong size_by_fields(JNIEnv *env, const struct unsafe *u, jclass class)
{
    jclass super = (*env)->GetSuperclass(env, class);
    jlong size = (own_end(env, u, class) + 7) & ~7LL;
    jlong of_super = super ? size_by_fields(env, u, super) : u->object_bytes;
    (*env)->DeleteLocalRef(env, super);
    return size > of_super ? size : of_super;
}

jlong layer_instance_size(JNIEnv *env, jclass class)
{
    struct unsafe u = {0};
    my.quiet++;
    jlong size = unsafe_open(env, &u) ? size_by_fields(env, &u, class) : 0;
    unsafe_close(env, &u);
    my.quiet--;
    return size;
}

void layouts_sizes(JNIEnv *env, struct layouts *l)
{
    _cleanup_(loaded_classes_release) struct loaded_classes all = {0};
    struct unsafe u = {0};
    my.quiet++;
    bool ok = unsafe_open(env, &u) && loaded_classes(vm.ti, env, &all) == 0;
    for (jint i = 0; i < all.n && ok; i++) {
        struct layout *row = layout_of(l, (jlong)(intptr_t)layer_id_of(all.of[i]));
        if (row && !row->size && row->kind == JVMPI_NORMAL_OBJECT)
            row->size = size_by_fields(env, &u, all.of[i]);
    }
    unsafe_close(env, &u);
    my.quiet--;
}
