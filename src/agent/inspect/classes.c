/* SPDX-License-Identifier: Apache-2.0 */
/* The questions classes, class, statics and modules. */
#include "agent/inspect/inspect.h"
#include "agent/vm/error_words.h"

#include "base/map.h"
#include "classfile/classfile.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static void put_status(struct inspection *i, jint status)
{
    json_key_string(i->out, "status",
                    status & JVMTI_CLASS_STATUS_ARRAY         ? "array"
                    : status & JVMTI_CLASS_STATUS_PRIMITIVE   ? "primitive"
                    : status & JVMTI_CLASS_STATUS_ERROR       ? "error"
                    : status & JVMTI_CLASS_STATUS_INITIALIZED ? "initialized"
                    : status & JVMTI_CLASS_STATUS_PREPARED    ? "prepared"
                    : status & JVMTI_CLASS_STATUS_VERIFIED    ? "verified"
                                                              : "loaded");
}

static void put_loader(struct inspection *i, jclass c)
{
    jobject loader = NULL;
    (*i->ti)->GetClassLoader(i->ti, c, &loader);
    inspect_put_object_key(i, "loader", loader);
}

/*
 * "java.util.*" matches with a star at the beginning, the end or both; a word without a star
 * matches only itself.
 */
static bool matches(const char *pattern, const char *name)
{
    size_t p = strlen(pattern), n = strlen(name);
    bool front = p && *pattern == '*', back = p > 1 && pattern[p - 1] == '*';
    if (p == 0 || strcmp(pattern, "*") == 0)
        return true;
    const char *core = pattern + front;
    size_t len = p - front - back;
    if (front && back)
        return memmem(name, n, core, len) != NULL;
    if (front)
        return n >= len && memcmp(name + n - len, core, len) == 0;
    return n >= len && memcmp(name, core, len) == 0 && (back || n == len);
}

static bool is_array(struct inspection *i, jclass c)
{
    jint status = 0;
    return (*i->ti)->GetClassStatus(i->ti, c, &status) == JVMTI_ERROR_NONE &&
           status & JVMTI_CLASS_STATUS_ARRAY;
}

/* The VM's own counts, which `top` shows, have no arrays, and they have the agent's classes. */
int inspect_classes(struct inspection *i)
{
    _cleanup_(loaded_classes_release) struct loaded_classes all = {0};
    if (inspect_find_loaded_classes(i, &all) < 0)
        return -ENOTSUP;
    bool found = false;
    jint arrays = 0;
    for (jint k = 0; k < all.n; k++)
        arrays += is_array(i, all.of[k]);
    json_key_i64(i->out, "loaded", all.n - arrays);
    json_key_i64(i->out, "arrays", arrays);
    if (all.own)
        json_key_i64(i->out, "of_jvmscope", all.own);
    json_key_array(i->out, "classes");
    for (jint k = 0; k < all.n; k++) {
        _cleanup_free_ char *name = inspect_class_name(i, all.of[k]);
        if (name && matches(i->operand, name)) {
            jint status = 0, modifiers = 0;
            found = true;
            (*i->ti)->GetClassStatus(i->ti, all.of[k], &status);
            (*i->ti)->GetClassModifiers(i->ti, all.of[k], &modifiers);
            json_begin_object(i->out);
            json_key_string(i->out, "class", name);
            put_status(i, status);
            inspect_put_modifiers(i, "modifiers", modifiers, KIND_CLASS);
            put_loader(i, all.of[k]);
            json_end_object(i->out);
        }
    }
    json_end_array(i->out);
    if (!found && *i->operand) {
        buf_printf(i->why,
                   "%s: no loaded class matches; * stands for any characters at the "
                   "beginning and at the end",
                   i->operand);
        return -ESRCH;
    }
    return 0;
}

/*
 * Writes the fields of a class. Values of static fields are read only from initialized classes,
 * because reading must not initialize a class.
 */
static void put_fields(struct inspection *i, jclass c, bool statics_alone)
{
    jint n = 0, status = 0;
    jfieldID *fields = NULL;
    (*i->ti)->GetClassStatus(i->ti, c, &status);
    if ((*i->ti)->GetClassFields(i->ti, c, &n, &fields) != JVMTI_ERROR_NONE)
        return;
    json_key_array(i->out, statics_alone ? "statics" : "fields");
    for (jint k = 0; k < n; k++) {
        char *name = NULL, *signature = NULL;
        jint modifiers = 0;
        (*i->ti)->GetFieldModifiers(i->ti, c, fields[k], &modifiers);
        bool is_static = modifiers & 8;
        if ((statics_alone && !is_static) ||
            (*i->ti)->GetFieldName(i->ti, c, fields[k], &name, &signature, NULL) !=
                JVMTI_ERROR_NONE)
            continue;
        _cleanup_free_ char *type = inspect_type_name(signature);
        jvalue v;
        json_begin_object(i->out);
        json_key_string(i->out, "name", name);
        json_key_string(i->out, "type", type);
        inspect_put_modifiers(i, "modifiers", modifiers, KIND_FIELD);
        if (is_static && status & JVMTI_CLASS_STATUS_INITIALIZED &&
            inspect_field_value(i, NULL, c, fields[k], signature, true, &v)) {
            json_key(i->out, "value");
            inspect_put_value(i, signature, v);
        }
        json_end_object(i->out);
        vm_free(name);
        vm_free(signature);
    }
    json_end_array(i->out);
    vm_free(fields);
}

/*
 * The code of compiled methods: jmethodID -> index in `code`. The VM reports it when it replays its
 * events.
 */
static struct map compiled;

static struct {
    uint64_t address, size;
} code[1 << 16];

static size_t n_code;

static void JNICALL on_compiled(jvmtiEnv *ti, jmethodID m, jint size, const void *address, jint n,
                                const jvmtiAddrLocationMap *map, const void *info)
{
    if (n_code == ARRAY_SIZE(code) || map_put(&compiled, (uintptr_t)m, n_code) < 0)
        return;
    code[n_code].address = (uintptr_t)address;
    code[n_code++].size = (uint64_t)size;
}

/*
 * Fills `compiled`. It uses a separate environment for each question, because the VM records debug
 * information for each compilation while the event is enabled.
 */
static void find_compiled(void)
{
    jvmtiEnv *ti;
    const jvmtiCapabilities need = {.can_generate_compiled_method_load_events = 1};
    const jvmtiEventCallbacks callbacks = {.CompiledMethodLoad = on_compiled};
    map_clear(&compiled);
    n_code = 0;
    if ((*vm.java)->GetEnv(vm.java, (void **)&ti, JVMTI_VERSION_1_2) != JNI_OK)
        return;
    if ((*ti)->AddCapabilities(ti, &need) == JVMTI_ERROR_NONE) {
        (*ti)->SetEventCallbacks(ti, &callbacks, sizeof(callbacks));
        (*ti)->SetEventNotificationMode(ti, JVMTI_ENABLE, JVMTI_EVENT_COMPILED_METHOD_LOAD, NULL);
        (*ti)->GenerateEvents(ti, JVMTI_EVENT_COMPILED_METHOD_LOAD);
        (*ti)->SetEventNotificationMode(ti, JVMTI_DISABLE, JVMTI_EVENT_COMPILED_METHOD_LOAD, NULL);
    }
    (*ti)->DisposeEnvironment(ti);
}

static void put_lines(struct inspection *i, jmethodID m)
{
    jint n = 0;
    jvmtiLineNumberEntry *lines = NULL;
    if (!i->have.can_get_line_numbers ||
        (*i->ti)->GetLineNumberTable(i->ti, m, &n, &lines) != JVMTI_ERROR_NONE)
        return;
    json_key_array(i->out, "lines");
    for (jint k = 0; k < n; k++) {
        json_begin_object(i->out);
        json_key_i64(i->out, "bci", lines[k].start_location);
        json_key_i64(i->out, "line", lines[k].line_number);
        json_end_object(i->out);
    }
    json_end_array(i->out);
    vm_free(lines);
}

static void put_bytecode(struct inspection *i, jmethodID m)
{
    jint n = 0;
    unsigned char *bytes = NULL;
    if (!i->have.can_get_bytecodes ||
        (*i->ti)->GetBytecodes(i->ti, m, &n, &bytes) != JVMTI_ERROR_NONE)
        return;
    _cleanup_(buf_release) struct buf hex = BUF(1 << 18);
    for (jint k = 0; k < n; k++)
        buf_printf(&hex, "%02x", bytes[k]);
    json_key_string(i->out, "bytecode", buf_str(&hex));
    vm_free(bytes);
}

static void put_method(struct inspection *i, jmethodID m)
{
    char *name = NULL, *signature = NULL;
    jint modifiers = 0;
    jboolean native = JNI_FALSE;
    if ((*i->ti)->GetMethodName(i->ti, m, &name, &signature, NULL) != JVMTI_ERROR_NONE)
        return;
    (*i->ti)->GetMethodModifiers(i->ti, m, &modifiers);
    (*i->ti)->IsMethodNative(i->ti, m, &native);
    const uint64_t *at = map_get(&compiled, (uintptr_t)m);
    json_begin_object(i->out);
    json_key_string(i->out, "name", name);
    json_key_string(i->out, "descriptor", signature);
    inspect_put_modifiers(i, "modifiers", modifiers, KIND_METHOD);
    json_key_string(i->out, "runs",
                    native                     ? "native"
                    : at                       ? "compiled"
                    : modifiers & ACC_ABSTRACT ? "abstract"
                                               : "interpreted");
    if (at) {
        char address[24];
        snprintf(address, sizeof(address), "0x%llx", (unsigned long long)code[*at].address);
        json_key_string(i->out, "code_address", address);
        json_key_u64(i->out, "code_bytes", code[*at].size);
    }
    put_lines(i, m);
    put_bytecode(i, m);
    json_end_object(i->out);
    vm_free(name);
    vm_free(signature);
}

static void put_methods(struct inspection *i, jclass c)
{
    jint n = 0;
    jmethodID *methods = NULL;
    if ((*i->ti)->GetClassMethods(i->ti, c, &n, &methods) != JVMTI_ERROR_NONE)
        return;
    json_key_array(i->out, "methods");
    for (jint k = 0; k < n; k++)
        put_method(i, methods[k]);
    json_end_array(i->out);
    vm_free(methods);
}

static void put_names(struct inspection *i, const char *key, jclass *list, jint n)
{
    json_key_array(i->out, key);
    for (jint k = 0; k < n; k++) {
        _cleanup_free_ char *name = inspect_class_name(i, list[k]);
        json_string(i->out, name);
    }
    json_end_array(i->out);
}

/* Writes superclasses, interfaces, and the loaded classes that extend this one. */
static void put_hierarchy(struct inspection *i, jclass c)
{
    json_key_array(i->out, "supers");
    for (jclass s = (*i->jni)->GetSuperclass(i->jni, c); s;
         s = (*i->jni)->GetSuperclass(i->jni, s)) {
        _cleanup_free_ char *name = inspect_class_name(i, s);
        json_string(i->out, name);
    }
    json_end_array(i->out);
    jint n = 0;
    jclass *list = NULL;
    if ((*i->ti)->GetImplementedInterfaces(i->ti, c, &n, &list) == JVMTI_ERROR_NONE) {
        put_names(i, "interfaces", list, n);
        vm_free(list);
    }
    _cleanup_(loaded_classes_release) struct loaded_classes all = {0};
    if (inspect_find_loaded_classes(i, &all) < 0)
        return;
    json_key_array(i->out, "subclasses");
    for (jint k = 0; k < all.n; k++) {
        jclass super = (*i->jni)->GetSuperclass(i->jni, all.of[k]);
        if (super && (*i->jni)->IsSameObject(i->jni, super, c)) {
            _cleanup_free_ char *name = inspect_class_name(i, all.of[k]);
            json_string(i->out, name);
        }
        if (super)
            (*i->jni)->DeleteLocalRef(i->jni, super);
    }
    json_end_array(i->out);
}

static jclass class_of_operand(struct inspection *i)
{
    jclass c = inspect_class_by_name(i, i->operand);
    if (!c)
        inspect_no_class(i, i->operand, i->operand, NULL);
    return c;
}

int inspect_class(struct inspection *i)
{
    jclass c = class_of_operand(i);
    if (!c)
        return -ESRCH;
    jint status = 0, modifiers = 0, minor = 0, major = 0;
    char *source = NULL, *generic = NULL, *signature = NULL;
    (*i->ti)->GetClassStatus(i->ti, c, &status);
    (*i->ti)->GetClassModifiers(i->ti, c, &modifiers);
    (*i->ti)->GetClassSignature(i->ti, c, &signature, &generic);
    json_key_string(i->out, "class", i->operand);
    json_key_i64(i->out, "id", inspect_object_number(i, c));
    put_status(i, status);
    inspect_put_modifiers(i, "modifiers", modifiers, KIND_CLASS);
    put_loader(i, c);
    if (i->have.can_get_source_file_name &&
        (*i->ti)->GetSourceFileName(i->ti, c, &source) == JVMTI_ERROR_NONE) {
        json_key_string(i->out, "source", source);
        vm_free(source);
    }
    if (generic) {
        json_key_string(i->out, "generic", generic);
    }
    if ((*i->ti)->GetClassVersionNumbers(i->ti, c, &minor, &major) == JVMTI_ERROR_NONE) {
        json_key_i64(i->out, "version", major);
    }
    vm_free(signature);
    vm_free(generic);
    put_hierarchy(i, c);
    put_fields(i, c, false);
    find_compiled();
    put_methods(i, c);
    return 0;
}

int inspect_statics(struct inspection *i)
{
    jclass c = class_of_operand(i);
    if (!c)
        return -ESRCH;
    json_key_string(i->out, "class", i->operand);
    put_fields(i, c, true);
    return 0;
}

static jobject field_of(struct inspection *i, jobject o, const char *name, const char *signature)
{
    jclass c = (*i->jni)->GetObjectClass(i->jni, o);
    jfieldID f = (*i->jni)->GetFieldID(i->jni, c, name, signature);
    jobject value =
        vm_clear_exception(i->jni) || !f ? NULL : (*i->jni)->GetObjectField(i->jni, o, f);
    vm_clear_exception(i->jni);
    (*i->jni)->DeleteLocalRef(i->jni, c);
    return value;
}

int inspect_modules(struct inspection *i)
{
    if (vm.version < 9) {
        buf_string(i->why, "modules came with JDK 9");
        return -ENOTSUP;
    }
    jint n = 0;
    jobject *list = NULL;
    jvmtiError e = (*i->ti)->GetAllModules(i->ti, &n, &list);
    if (e != JVMTI_ERROR_NONE) {
        buf_string(i->why, "the VM does not list its modules: ");
        vm_put_error(i->why, e);
        return -ENOTSUP;
    }
    json_key_array(i->out, "modules");
    for (jint k = 0; k < n; k++) {
        json_begin_object(i->out);
        inspect_put_string(i, "name", field_of(i, list[k], "name", "Ljava/lang/String;"));
        inspect_put_object_key(i, "loader",
                               field_of(i, list[k], "loader", "Ljava/lang/ClassLoader;"));
        json_end_object(i->out);
        (*i->jni)->DeleteLocalRef(i->jni, list[k]);
    }
    json_end_array(i->out);
    vm_free(list);
    return 0;
}
