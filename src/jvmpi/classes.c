/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps what CLASS_LOAD reports until the class is unloaded, because an agent may request it until
 * then.
 */
#include "jvmpi/classes.h"
#include "agent/vm/loaded_classes.h"
#include "base/class_name.h"
#include "base/dotted.h"
#include "base/map.h"
#include "jvmpi/boot_classes.h"
#include "jvmpi/ids.h"
#include "jvmpi/interface.h"
#include "jvmpi/layer.h"
#include "jvmpi/lookup.h"
#include "jvmpi/memory.h"
#include "jvmpi/objects.h"
#include "jvmpi/references.h"
#include "jvmpi/settle.h"
#include "jvmpi/sources.h"
#include "jvmpi/threads.h"

#include <stdlib.h>
#include <string.h>

struct class_entry {
    JVMPI_Event event; /* CLASS_LOAD; the entry owns its memory */
    jweak class;
    atomic_bool reported; /* it was sent to the agent */
    /*
     * users that found the entry by id and have no reference to the class; protected by `classes`,
     * as is `ended`
     */
    int users;
    bool ended; /* the last user frees the entry */
};

static pthread_mutex_t classes = PTHREAD_MUTEX_INITIALIZER;
static struct map by_id;    /* id -> struct class_entry * */
static struct map class_of; /* jmethodID -> id */

static void free_entry(struct class_entry *entry)
{
    JVMPI_Event *e = &entry->event;
    for (jint i = 0; i < e->u.class_load.num_methods; i++) {
        free(e->u.class_load.methods[i].method_name);
        free(e->u.class_load.methods[i].method_signature);
    }
    for (jint i = 0; i < e->u.class_load.num_static_fields; i++) {
        free(e->u.class_load.statics[i].field_name);
        free(e->u.class_load.statics[i].field_signature);
    }
    for (jint i = 0; i < e->u.class_load.num_instance_fields; i++) {
        free(e->u.class_load.instances[i].field_name);
        free(e->u.class_load.instances[i].field_signature);
    }
    free(e->u.class_load.methods);
    free(e->u.class_load.statics);
    free(e->u.class_load.instances);
    free(e->u.class_load.source_name);
    free((char *)(uintptr_t)e->u.class_load.class_name);
    free(entry);
}

/* Copies memory of JVM TI into our own and frees it. */
static char *take(char *s)
{
    char *copy = s ? strdup(s) : NULL;
    vm_free(s);
    return copy;
}

/*
 * Converts a signature into the name that Class.getName returns: "Ljava/lang/String;" into
 * "java.lang.String" and "D" into "double"; in "[I" only slashes become dots.
 */
static char *external_name(char *signature)
{
    char *name = take(signature);
    size_t len = name ? strlen(name) : 0;
    const char *primitive = len == 1 ? class_name_primitive(*name) : NULL;
    if (primitive) {
        free(name);
        return strdup(primitive);
    }
    dotted_in_place(name, len);
    if (len > 1 && name[0] == 'L') {
        memmove(name, name + 1, len - 2);
        name[len - 2] = 0;
    }
    return name;
}

static void read_methods(JVMPI_Event *e, jclass class)
{
    jint n = 0;
    jmethodID *ids = NULL;
    if ((*vm.ti)->GetClassMethods(vm.ti, class, &n, &ids))
        return;
    JVMPI_Method *methods = calloc((size_t)n + 1, sizeof(*methods));
    for (jint i = 0; methods && i < n; i++) {
        char *name = NULL, *signature = NULL;
        jint lines = 0;
        jvmtiLineNumberEntry *table = NULL;
        (void)(*vm.ti)->GetMethodName(vm.ti, ids[i], &name, &signature, NULL);
        methods[i] = (JVMPI_Method){take(name), take(signature), -1, -1, ids[i]};
        if ((*vm.ti)->GetLineNumberTable(vm.ti, ids[i], &lines, &table))
            continue;
        for (jint k = 0; k < lines; k++) {
            jint line = table[k].line_number;
            methods[i].start_lineno =
                k && methods[i].start_lineno < line ? methods[i].start_lineno : line;
            methods[i].end_lineno = methods[i].end_lineno > line ? methods[i].end_lineno : line;
        }
        vm_free(table);
    }
    e->u.class_load.methods = methods;
    e->u.class_load.num_methods = methods ? n : 0;
    vm_free(ids);
}

static void read_fields(JVMPI_Event *e, jclass class)
{
    enum { STATIC = 8 };

    jint n = 0;
    jfieldID *ids = NULL;
    if ((*vm.ti)->GetClassFields(vm.ti, class, &n, &ids))
        return;
    e->u.class_load.statics = calloc((size_t)n + 1, sizeof(JVMPI_Field));
    e->u.class_load.instances = calloc((size_t)n + 1, sizeof(JVMPI_Field));
    for (jint i = 0; e->u.class_load.statics && e->u.class_load.instances && i < n; i++) {
        char *name = NULL, *signature = NULL;
        jint modifiers = 0;
        (void)(*vm.ti)->GetFieldName(vm.ti, class, ids[i], &name, &signature, NULL);
        (void)(*vm.ti)->GetFieldModifiers(vm.ti, class, ids[i], &modifiers);
        JVMPI_Field f = {take(name), take(signature)};
        if (modifiers & STATIC)
            e->u.class_load.statics[e->u.class_load.num_static_fields++] = f;
        else
            e->u.class_load.instances[e->u.class_load.num_instance_fields++] = f;
    }
    vm_free(ids);
}

/*
 * Since JDK 17 the VM's archive also contains objects of java.lang.Class whose classes have not
 * been loaded (arrays of classes in the archive, for instance). JVM TI takes them for classes, and
 * GetClassLoader crashes. Such a class is in no module, while each loaded class is in one.
 */
static bool is_loaded(jclass class)
{
    static jfieldID _Atomic module;
    JNIEnv *env = vm_jni();
    if (vm.version < 9 || !env)
        return true;
    jfieldID field = atomic_load(&module);
    if (!field) {
        jclass of_classes = boot_class(env, "java/lang/Class");
        field =
            of_classes ? (*env)->GetFieldID(env, of_classes, "module", "Ljava/lang/Module;") : NULL;
        (*env)->DeleteLocalRef(env, of_classes);
        if (vm_clear_exception(env) || !field)
            return true;
        atomic_store(&module, field);
    }
    jobject in = (*env)->GetObjectField(env, class, field);
    (*env)->DeleteLocalRef(env, in);
    return in;
}

bool layer_class_is_defined(jclass class)
{
    jint status = 0;
    return is_loaded(class) && !(*vm.ti)->GetClassStatus(vm.ti, class, &status) &&
           (status | (layer_mutation("unlinked-class") ? JVMTI_CLASS_STATUS_PREPARED : 0)) &
               (JVMTI_CLASS_STATUS_PREPARED | JVMTI_CLASS_STATUS_ARRAY |
                JVMTI_CLASS_STATUS_PRIMITIVE);
}

static struct class_entry *known_entry(jlong id)
{
    layer_lock(&classes);
    const uint64_t *known = map_get(&by_id, (uint64_t)id);
    struct class_entry *entry = known ? (struct class_entry *)(uintptr_t)*known : NULL;
    layer_unlock(&classes);
    return entry;
}

/*
 * Returns the entry of a class for callers without a reference to the class, which may be unloaded
 * meanwhile. They release it with leave_entry.
 */
static struct class_entry *use_entry(jlong id)
{
    layer_lock(&classes);
    const uint64_t *known = map_get(&by_id, (uint64_t)id);
    struct class_entry *entry = known ? (struct class_entry *)(uintptr_t)*known : NULL;
    if (entry)
        entry->users++;
    layer_unlock(&classes);
    return entry;
}

static void leave_entry(struct class_entry *entry)
{
    layer_lock(&classes);
    bool last = --entry->users == 0 && entry->ended;
    layer_unlock(&classes);
    if (last)
        free_entry(entry);
}

/* Returns a local reference, or NULL when the class is unloaded. */
static jclass class_of_entry(JNIEnv *env, const struct class_entry *entry)
{
    layer_lock(&classes);
    jclass class = entry->class ? (*env)->NewLocalRef(env, entry->class) : NULL;
    layer_unlock(&classes);
    return class;
}

/*
 * Returns the class's entry, which is read when it is first needed, or NULL when the class is not
 * linked or memory runs out. It is not freed while the class lives.
 */
static struct class_entry *class_entry(JNIEnv *env, jclass class)
{
    jobjectID id = layer_id_of(class);
    struct class_entry *entry = known_entry((jlong)(intptr_t)id);
    jint status = 0;
    if (entry || !id || (*vm.ti)->GetClassStatus(vm.ti, class, &status))
        return entry;
    bool array = status & JVMTI_CLASS_STATUS_ARRAY,
         primitive = status & JVMTI_CLASS_STATUS_PRIMITIVE;
    if (!array && !primitive && !(status & JVMTI_CLASS_STATUS_PREPARED))
        return NULL;
    entry = calloc(1, sizeof(*entry));
    if (!entry)
        return NULL;
    memory_watch_class(env, class, id);
    JVMPI_Event *e = &entry->event;
    char *signature = NULL, *source = NULL;
    (void)(*vm.ti)->GetClassSignature(vm.ti, class, &signature, NULL);
    e->u.class_load.class_name = external_name(signature);
    e->u.class_load.class_id = id;
    if (!array && !primitive) {
        if (!(*vm.ti)->GetSourceFileName(vm.ti, class, &source))
            e->u.class_load.source_name = take(source);
        jclass *interfaces = NULL;
        if (!(*vm.ti)->GetImplementedInterfaces(vm.ti, class, &e->u.class_load.num_interfaces,
                                                &interfaces)) {
            for (jint i = 0; i < e->u.class_load.num_interfaces; i++)
                (*env)->DeleteLocalRef(env, interfaces[i]);
            vm_free(interfaces);
        }
        read_methods(e, class);
        read_fields(e, class);
    }
    layer_lock(&classes);
    uint64_t *known = map_at(&by_id, (uintptr_t)id, (uintptr_t)entry, NULL);
    if (!known || *known != (uintptr_t)entry) {
        free_entry(entry); /* another thread has added an entry meanwhile */
        entry = known ? (struct class_entry *)(uintptr_t)*known : NULL;
    } else {
        entry->class = layer_weak(env, class);
        layer_id_keep(id, entry->class);
        for (jint i = 0; i < e->u.class_load.num_methods; i++)
            if (map_put(&class_of, (uintptr_t)e->u.class_load.methods[i].method_id, (uintptr_t)id))
                break;
    }
    layer_unlock(&classes);
    return entry;
}

static void send_entry(JNIEnv *env, const struct class_entry *entry, jint type)
{
    JVMPI_Event e = entry->event;
    e.event_type = type;
    layer_notify(env, &e);
}

jobjectID layer_report_class(JNIEnv *env, jclass class)
{
    if (!class || !layer_class_is_defined(class))
        return NULL;
    struct flight f = {0};
    bool wanted = layer_enabled(JVMPI_EVENT_CLASS_LOAD) && atomic_load(&layer.live) &&
                  thread_ready(my_own(), env);
    if (!wanted || !layer_report_begin(my_own()))
        return layer_report_object(env, class);
    struct class_entry *entry = class_entry(env, class);
    if (!entry || !flight_begin(&f, (uintptr_t)entry, &entry->reported)) {
        jobjectID known = layer_report_object(env, class);
        layer_report_end(my_own());
        return known;
    }
    bool early = layer_mutation("class-before-its-object");
    if (early)
        send_entry(env, entry, JVMPI_EVENT_CLASS_LOAD);
    jobjectID id = layer_report_object(env, class);
    if (!early && !f.requested && !layer_mutation_eighth("unannounced-class"))
        send_entry(env, entry, JVMPI_EVENT_CLASS_LOAD);
    flight_end(&f);
    layer_report_end(my_own());
    return id;
}

void layer_class_remember(JNIEnv *env, jclass class)
{
    (void)class_entry(env, class);
}

bool classes_link(JNIEnv *env, const struct map *ids)
{
    jclass of_classes = boot_class(env, "java/lang/Class");
    jmethodID fields =
        (*env)->GetMethodID(env, of_classes, "getDeclaredFields0", "(Z)[Ljava/lang/reflect/Field;");
    uint64_t id, unused;
    bool any = false;
    my.quiet++;
    for (size_t i = 0; !vm_clear_exception(env) && map_next(ids, &i, &id, &unused);) {
        jclass class = layer_object_of(env, (jobjectID)(uintptr_t)id);
        jobject all =
            class && fields ? (*env)->CallObjectMethod(env, class, fields, JNI_FALSE) : NULL;
        vm_clear_exception(env);
        (*env)->DeleteLocalRef(env, all);
        any |= class && layer_class_is_defined(class);
        (*env)->DeleteLocalRef(env, class);
    }
    my.quiet--;
    (*env)->DeleteLocalRef(env, of_classes);
    return any;
}

void layer_report_class_of(JNIEnv *env, jmethodID method)
{
    jclass class = NULL;
    if ((*vm.ti)->GetMethodDeclaringClass(vm.ti, method, &class))
        return;
    (void)layer_report_class(env, class);
    (*env)->DeleteLocalRef(env, class);
}

void classes_replay(JNIEnv *env)
{
    _cleanup_(loaded_classes_release) struct loaded_classes all = {0};
    uint64_t e = atomic_load(&layer.enabled);
    bool loads = e >> JVMPI_EVENT_CLASS_LOAD & 1, unloads = e >> JVMPI_EVENT_CLASS_UNLOAD & 1;
    /* Reading all classes is expensive, so do it only if an enabled event needs them. */
    if ((!loads && !unloads) || loaded_classes(vm.ti, env, &all) < 0)
        return;
    for (jint i = 0; i < all.n; i++)
        if (loads)
            (void)layer_report_class(env, all.of[i]);
        else
            (void)class_entry(env, all.of[i]);
}

bool layer_is_class(jlong id)
{
    return known_entry(id);
}

jint layer_request_class_load(JNIEnv *env, jobjectID id)
{
    struct class_entry *entry = use_entry((jlong)(intptr_t)id);
    if (!entry) {
        jobject object = layer_object_of(env, id);
        jclass of_classes = object ? boot_class(env, "java/lang/Class") : NULL;
        if (of_classes && (*env)->IsInstanceOf(env, object, of_classes) && class_entry(env, object))
            entry = use_entry((jlong)(intptr_t)id);
        if (of_classes)
            (*env)->DeleteLocalRef(env, of_classes);
        if (object)
            (*env)->DeleteLocalRef(env, object);
    }
    if (!entry)
        return JVMPI_FAIL;
    flight_requested((uintptr_t)entry, &entry->reported);
    /*
     * When a class is found in a trace, its class object may not have been reported yet. There is
     * no class object while the class is being unloaded.
     */
    jclass class = class_of_entry(env, entry);
    if (class) {
        (void)layer_report_object(env, class);
        layer_request_in_flight(env, id);
        (*env)->DeleteLocalRef(env, class);
    }
    send_entry(env, entry, JVMPI_EVENT_CLASS_LOAD | JVMPI_REQUESTED_EVENT);
    leave_entry(entry);
    return JVMPI_SUCCESS;
}

void layer_class_code_forget(jlong id)
{
    const struct class_entry *entry = known_entry(id);
    for (jint i = 0; entry && i < entry->event.u.class_load.num_methods; i++)
        layer_compiled_forget(entry->event.u.class_load.methods[i].method_id);
}

bool layer_class_freed(JNIEnv *env, jlong id)
{
    struct class_entry *entry = known_entry(id);
    if (!entry)
        return false;
    JVMPI_Event e = {.event_type = JVMPI_EVENT_CLASS_UNLOAD,
                     .u.class_unload = {(jobjectID)(intptr_t)id}};
    if (layer_enabled(JVMPI_EVENT_CLASS_UNLOAD))
        layer_notify(env, &e);
    layer_lock(&classes);
    map_remove(&by_id, (uint64_t)id);
    for (jint i = 0; i < entry->event.u.class_load.num_methods; i++)
        map_remove(&class_of, (uintptr_t)entry->event.u.class_load.methods[i].method_id);
    jweak class = entry->class;
    entry->class = NULL;
    entry->ended = true;
    bool unused = entry->users == 0;
    layer_unlock(&classes);
    layer_id_drop((jobjectID)(intptr_t)id);
    layer_delete_weak(env, class);
    if (unused)
        free_entry(entry);
    return true;
}

static const struct class_entry *entry_of_method(jmethodID method)
{
    jclass class = NULL;
    JNIEnv *env = vm_jni();
    if (!env || (*vm.ti)->GetMethodDeclaringClass(vm.ti, method, &class))
        return NULL;
    const struct class_entry *entry = class_entry(env, class);
    (*env)->DeleteLocalRef(env, class);
    return entry;
}

jmethodID layer_current_method(jmethodID method)
{
    jboolean obsolete = JNI_FALSE;
    char *name = NULL, *signature = NULL;
    if ((*vm.ti)->IsMethodObsolete(vm.ti, method, &obsolete) || !obsolete ||
        layer_mutation("obsolete-method"))
        return method;
    const struct class_entry *entry = entry_of_method(method);
    if (!(*vm.ti)->GetMethodName(vm.ti, method, &name, &signature, NULL)) {
        for (jint i = 0; entry && i < entry->event.u.class_load.num_methods; i++) {
            const JVMPI_Method *m = &entry->event.u.class_load.methods[i];
            if (!strcmp(m->method_name, name) && !strcmp(m->method_signature, signature)) {
                method = m->method_id;
                break;
            }
        }
    }
    vm_free(name);
    vm_free(signature);
    return method;
}

jobjectID layer_get_method_class(jmethodID method)
{
    layer_lock(&classes);
    const uint64_t *known = map_get(&class_of, (uintptr_t)method);
    jobjectID id = known ? (jobjectID)(uintptr_t)*known : NULL;
    layer_unlock(&classes);
    JNIEnv *env = vm_jni();
    jclass class = NULL;
    if (id || !env || !method || (*vm.ti)->GetMethodDeclaringClass(vm.ti, method, &class))
        return id;
    id = layer_id_of(class);
    (*env)->DeleteLocalRef(env, class);
    return id;
}

/* ---- events ---- */

static __thread bool
    classes_unreported; /* classes were linked while this thread's events were left out */

static bool class_may_be_reported(JNIEnv *env)
{
    classes_unreported |= !thread_ready(my_own(), env);
    return thread_ready(my_own(), env);
}

void classes_report_pending(JNIEnv *env)
{
    if (classes_unreported)
        classes_replay(env);
    classes_unreported = false;
}

static void JNICALL on_prepare(jvmtiEnv *ti, JNIEnv *env, jthread thread, jclass class)
{
    vm_expect_references(env); /* as in objects.c for allocations */
    if (atomic_load(&layer.live) && layer_enabled(JVMPI_EVENT_CLASS_LOAD) &&
        class_may_be_reported(env))
        (void)layer_report_class(env, class);
}

const struct vm_callbacks class_load_events = {.ti = {.ClassPrepare = on_prepare}};

static _Atomic uint64_t linked;

uint64_t classes_linked(void)
{
    return atomic_load(&linked);
}

static void JNICALL on_watch(jvmtiEnv *ti, JNIEnv *env, jthread thread, jclass class)
{
    atomic_fetch_add(&linked, 1);
    /* Even if only CLASS_UNLOAD is enabled, the class must be known to report its end. */
    if (atomic_load(&layer.live) && layer_enabled(JVMPI_EVENT_CLASS_UNLOAD) &&
        !layer_enabled(JVMPI_EVENT_CLASS_LOAD))
        (void)class_entry(env, class);
    layer_class_linked();
}

const struct vm_callbacks class_watch_events = {.ti = {.ClassPrepare = on_watch}};

static void *agent_malloc(unsigned int n)
{
    unsigned char *memory = NULL;
    return (*vm.ti)->Allocate(vm.ti, n, &memory) ? NULL : memory;
}

static void JNICALL on_hook(jvmtiEnv *ti, JNIEnv *env, jclass redefined, jobject loader,
                            const char *name, jobject domain, jint len, const unsigned char *data,
                            jint *new_len, unsigned char **new_data)
{
    if (redefined || !layer_enabled(JVMPI_EVENT_CLASS_LOAD_HOOK))
        return; /* our own instrumentation is not a class load of the program */
    /* Some agents modify the bytes that they are given. */
    unsigned char *copy = agent_malloc((unsigned)len);
    if (!copy)
        return;
    memcpy(copy, data, (size_t)len);
    JVMPI_Event e = {.event_type = JVMPI_EVENT_CLASS_LOAD_HOOK,
                     .u.class_load_hook = {copy, len, copy, len, agent_malloc}};
    layer_notify(env, &e);
    unsigned char *result = e.u.class_load_hook.new_class_data;
    jint result_len = e.u.class_load_hook.new_class_data_len;
    bool changed =
        result && (result != copy || result_len != len || memcmp(copy, data, (size_t)len) != 0);
    if (changed) {
        *new_data = result;
        *new_len = result_len;
    }
    if (!changed || result != copy)
        vm_free(copy);
}

const struct vm_callbacks class_hook_events = {.ti = {.ClassFileLoadHook = on_hook},
                                               .rewrites_first = true};
