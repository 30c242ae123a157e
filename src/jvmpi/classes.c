/* SPDX-License-Identifier: Apache-2.0 */
/* Classes: what CLASS_LOAD tells, kept until the class is unloaded, so that it can be asked for to the end. */
#include "agent/loaded_classes.h"
#include "base/map.h"
#include "jvmpi/layer.h"

#include <stdlib.h>
#include <string.h>

struct class_entry {
    JVMPI_Event event; /* of CLASS_LOAD, with memory of its own */
    jweak class;
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

/* JVM TI's memory becomes ours. */
static char *take(char *s)
{
    char *copy = s ? strdup(s) : NULL;
    vm_free(s);
    return copy;
}

/* "Ljava/lang/String;" to "java.lang.String"; "[I" stays, with dots for slashes. */
static char *external_name(char *signature)
{
    char *name = take(signature);
    size_t len = name ? strlen(name) : 0;
    for (char *p = name; p && *p; p++)
        if (*p == '/')
            *p = '.';
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
            methods[i].start_lineno = k && methods[i].start_lineno < line ? methods[i].start_lineno : line;
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

/* CLASS_LOAD on request of a class that is not linked yet: it has a name, and nothing else can be told of it. */
static jint send_unlinked(JNIEnv *env, jclass class, jobjectID id, jint type)
{
    JVMPI_Event e = {.event_type = type};
    char *signature = NULL;
    (void)(*vm.ti)->GetClassSignature(vm.ti, class, &signature, NULL);
    char *name = external_name(signature);
    e.u.class_load.class_name = name ? name : (char *)"";
    e.u.class_load.class_id = id;
    notify(env, &e);
    free(name);
    return JVMPI_SUCCESS;
}

/* The class's entry, read on first sight; NULL: not linked, or no memory. Never freed while the class lives. */
static struct class_entry *class_entry(JNIEnv *env, jclass class)
{
    jobjectID id = id_of(class);
    layer_lock(&classes);
    uint64_t *known = map_get(&by_id, (uintptr_t)id);
    struct class_entry *entry = known ? (struct class_entry *)(uintptr_t)*known : NULL;
    layer_unlock(&classes);
    jint status = 0;
    if (entry || !id || (*vm.ti)->GetClassStatus(vm.ti, class, &status))
        return entry;
    bool array = status & JVMTI_CLASS_STATUS_ARRAY, primitive = status & JVMTI_CLASS_STATUS_PRIMITIVE;
    if (!array && !primitive && !(status & JVMTI_CLASS_STATUS_PREPARED))
        return NULL;
    entry = calloc(1, sizeof(*entry));
    if (!entry)
        return NULL;
    JVMPI_Event *e = &entry->event;
    char *signature = NULL, *source = NULL;
    (void)(*vm.ti)->GetClassSignature(vm.ti, class, &signature, NULL);
    e->u.class_load.class_name = external_name(signature);
    e->u.class_load.class_id = id;
    if (!array && !primitive) {
        if (!(*vm.ti)->GetSourceFileName(vm.ti, class, &source))
            e->u.class_load.source_name = take(source);
        jclass *interfaces = NULL;
        if (!(*vm.ti)->GetImplementedInterfaces(vm.ti, class, &e->u.class_load.num_interfaces, &interfaces)) {
            for (jint i = 0; i < e->u.class_load.num_interfaces; i++)
                (*env)->DeleteLocalRef(env, interfaces[i]);
            vm_free(interfaces);
        }
        read_methods(e, class);
        read_fields(e, class);
    }
    layer_lock(&classes);
    known = map_at(&by_id, (uintptr_t)id, (uintptr_t)entry, NULL);
    if (!known || *known != (uintptr_t)entry) {
        free_entry(entry); /* another thread was faster */
        entry = known ? (struct class_entry *)(uintptr_t)*known : NULL;
    } else {
        entry->class = layer_weak(env, class);
        id_keep(id, entry->class);
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
    notify(env, &e);
}

void send_class_load(JNIEnv *env, jclass class)
{
    const struct class_entry *entry = class_entry(env, class);
    if (entry && event_enabled(JVMPI_EVENT_CLASS_LOAD))
        send_entry(env, entry, JVMPI_EVENT_CLASS_LOAD);
}

void classes_replay(JNIEnv *env)
{
    _cleanup_(loaded_classes_release) struct loaded_classes all = {0};
    uint64_t e = atomic_load(&layer.enabled);
    /* reading all classes costs: only when somebody has to know them */
    if (!(e & (UINT64_C(1) << JVMPI_EVENT_CLASS_LOAD | UINT64_C(1) << JVMPI_EVENT_CLASS_UNLOAD)))
        return;
    if (loaded_classes(vm.ti, env, &all) < 0)
        return;
    for (jint i = 0; i < all.n; i++)
        send_class_load(env, all.of[i]);
}

jint request_class_load(JNIEnv *env, jobjectID id)
{
    layer_lock(&classes);
    const uint64_t *known = map_get(&by_id, (uintptr_t)id);
    const struct class_entry *entry = known ? (const struct class_entry *)(uintptr_t)*known : NULL;
    layer_unlock(&classes);
    jint ret = JVMPI_FAIL;
    if (!entry) {
        jobject object = object_of(env, id);
        jclass of_classes = object ? (*env)->FindClass(env, "java/lang/Class") : NULL;
        bool is_class = of_classes && (*env)->IsInstanceOf(env, object, of_classes);
        if (is_class)
            entry = class_entry(env, object);
        if (is_class && !entry)
            ret = send_unlinked(env, object, id, JVMPI_EVENT_CLASS_LOAD | JVMPI_REQUESTED_EVENT);
        if (of_classes)
            (*env)->DeleteLocalRef(env, of_classes);
        if (object)
            (*env)->DeleteLocalRef(env, object);
    }
    if (!entry)
        return ret;
    send_entry(env, entry, JVMPI_EVENT_CLASS_LOAD | JVMPI_REQUESTED_EVENT);
    return JVMPI_SUCCESS;
}

bool class_freed(JNIEnv *env, jlong id)
{
    layer_lock(&classes);
    const uint64_t *known = map_get(&by_id, (uint64_t)id);
    struct class_entry *entry = known ? (struct class_entry *)(uintptr_t)*known : NULL;
    layer_unlock(&classes);
    if (!entry)
        return false;
    JVMPI_Event e = {.event_type = JVMPI_EVENT_CLASS_UNLOAD, .u.class_unload = {(jobjectID)(intptr_t)id}};
    if (event_enabled(JVMPI_EVENT_CLASS_UNLOAD))
        notify(env, &e);
    layer_lock(&classes);
    map_remove(&by_id, (uint64_t)id);
    for (jint i = 0; i < entry->event.u.class_load.num_methods; i++)
        map_remove(&class_of, (uintptr_t)entry->event.u.class_load.methods[i].method_id);
    layer_unlock(&classes);
    id_drop((jobjectID)(intptr_t)id);
    layer_delete_weak(env, entry->class);
    free_entry(entry);
    return true;
}

jobjectID get_method_class(jmethodID method)
{
    layer_lock(&classes);
    const uint64_t *known = map_get(&class_of, (uintptr_t)method);
    jobjectID id = known ? (jobjectID)(uintptr_t)*known : NULL;
    layer_unlock(&classes);
    JNIEnv *env = vm_jni();
    jclass class = NULL;
    if (id || !env || !method || (*vm.ti)->GetMethodDeclaringClass(vm.ti, method, &class))
        return id;
    id = id_of(class);
    (*env)->DeleteLocalRef(env, class);
    return id;
}

/* ---- events ---- */

static void JNICALL on_prepare(jvmtiEnv *ti, JNIEnv *env, jthread thread, jclass class)
{
    if (atomic_load(&layer.live) && event_enabled(JVMPI_EVENT_CLASS_LOAD))
        send_class_load(env, class);
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
    /* CLASS_UNLOAD alone: the class must be known to be told of */
    if (atomic_load(&layer.live) && event_enabled(JVMPI_EVENT_CLASS_UNLOAD) && !event_enabled(JVMPI_EVENT_CLASS_LOAD))
        (void)class_entry(env, class);
}

const struct vm_callbacks class_watch_events = {.ti = {.ClassPrepare = on_watch}};

static void *agent_malloc(unsigned int n)
{
    unsigned char *memory = NULL;
    return (*vm.ti)->Allocate(vm.ti, n, &memory) ? NULL : memory;
}

static void JNICALL on_hook(jvmtiEnv *ti, JNIEnv *env, jclass redefined, jobject loader, const char *name, jobject domain,
                            jint len, const unsigned char *data, jint *new_len, unsigned char **new_data)
{
    if (redefined || !event_enabled(JVMPI_EVENT_CLASS_LOAD_HOOK))
        return; /* our own instrumentation is not the program's loading */
    /* some agents write into what they are given */
    unsigned char *copy = agent_malloc((unsigned)len);
    if (!copy)
        return;
    memcpy(copy, data, (size_t)len);
    JVMPI_Event e = {.event_type = JVMPI_EVENT_CLASS_LOAD_HOOK, .u.class_load_hook = {copy, len, copy, len, agent_malloc}};
    notify(env, &e);
    unsigned char *result = e.u.class_load_hook.new_class_data;
    jint result_len = e.u.class_load_hook.new_class_data_len;
    bool changed = result && (result != copy || result_len != len || memcmp(copy, data, (size_t)len) != 0);
    if (changed) {
        *new_data = result;
        *new_len = result_len;
    }
    if (!changed || result != copy)
        vm_free(copy);
}

const struct vm_callbacks class_hook_events = {.ti = {.ClassFileLoadHook = on_hook}};
