/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/stacks/class_watch.h"

#include "agent/stacks/stack.h"
#include "agent/vm/loaded_classes.h"
#include "agent/vm/patience.h"
#include "agent/vm/vm.h"
#include "base/dotted.h"
#include "base/hash.h"
#include "base/map.h"
#include "base/vec.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct watched {
    uint64_t name;    /* hash of the dotted name */
    uint64_t address; /* address of the VM's structure; 0: unknown */
    bool gone;
};

struct named {
    uint32_t loaded; /* number of live classes */
    uint32_t latest; /* serial of the most recent one */
};

/*
 * Serializes the assignment of tags. Never acquired in ObjectFree, and not held while Java code
 * runs, because that may load classes.
 */
static pthread_mutex_t tagging = PTHREAD_MUTEX_INITIALIZER;

/*
 * Innermost lock: an object may be freed at a safepoint, so the VM must not be called while holding
 * it.
 */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct {
    jvmtiEnv *ti;
    VEC(struct watched) classes; /* in the order of their serials, which begin with 1 */
    VEC(struct named) names;
    struct map by_name;    /* hash -> index of names */
    struct map by_address; /* -> serial; of classes that are loaded */
    uint64_t unloads;
    atomic_bool on;
} watch;

/*
 * How to read a class's address, which is stored at an offset in a java.lang.Class. Determined
 * once.
 */
static struct {
    jobject unsafe; /* a global reference that is never released */
    jmethodID get_long;
    jlong offset; /* 0: unknown */
} mirror;

static uint64_t name_hash(const char *name, size_t len)
{
    char *text = strndup(name, len);
    dotted_in_place(text, text ? len : 0);
    uint64_t hash = text ? hash_bytes(text, len) : 0;
    free(text);
    return hash;
}

static const struct named *find_name(uint64_t hash)
{
    const uint64_t *index = map_get(&watch.by_name, hash);
    return index ? &watch.names.data[*index] : NULL;
}

static uint64_t long_at(JNIEnv *jni, jclass c, jlong offset)
{
    jlong value = (*jni)->CallLongMethod(jni, mirror.unsafe, mirror.get_long, c, offset);
    return vm_clear_exception(jni) ? 0 : (uint64_t)value;
}

/*
 * Compares candidates with classes of known names: their mirrors must contain the address of a
 * structure with this name.
 */
static jlong find_offset(JNIEnv *jni)
{
    enum { OFFSET_MAX = 256 };

    static const char *const names[] = {"java/lang/Object", "java/lang/String", "java/lang/Thread"};

    for (jlong offset = 8; offset < OFFSET_MAX; offset += 8) {
        unsigned same = 0;
        for (size_t i = 0; i < ARRAY_SIZE(names) && same == i; i++) {
            jclass c = (*jni)->FindClass(jni, names[i]);
            struct buf name = BUF(1 << 16);
            same += c && stack_vm_class_name(long_at(jni, c, offset), &name) &&
                    strcmp(buf_str(&name), names[i]) == 0;
            buf_release(&name);
            vm_clear_exception(jni);
            (*jni)->DeleteLocalRef(jni, c);
        }
        if (same == ARRAY_SIZE(names))
            return offset;
    }
    return 0;
}

static void open_mirror(JNIEnv *jni)
{
    jclass class;
    jobject unsafe = mirror.unsafe ? NULL : vm_unsafe(jni, &class);
    if (unsafe) {
        mirror.get_long = (*jni)->GetMethodID(jni, class, "getLong", "(Ljava/lang/Object;J)J");
        mirror.unsafe = mirror.get_long ? (*jni)->NewGlobalRef(jni, unsafe) : NULL;
        vm_clear_exception(jni);
        (*jni)->DeleteLocalRef(jni, unsafe);
        (*jni)->DeleteLocalRef(jni, class);
    }
    mirror.offset = mirror.unsafe ? find_offset(jni) : 0;
}

/* Returns a new serial number for a class of this name, or 0 if memory is exhausted. */
static uint32_t add(uint64_t name, uint64_t address)
{
    uint32_t serial = 0;
    bool added;
    pthread_mutex_lock(&lock);
    uint64_t *index = map_at(&watch.by_name, name, watch.names.len, &added);
    if (index && (!added || vec_push(&watch.names, ((struct named){0})) == 0) &&
        vec_push(&watch.classes, ((struct watched){.name = name, .address = address})) == 0) {
        serial = (uint32_t)watch.classes.len;
        struct named *n = &watch.names.data[*index];
        n->loaded++;
        n->latest = serial;
        /*
         * A class that was at this address may have been unloaded without a report by the VM so
         * far.
         */
        if (address && map_put(&watch.by_address, address, serial) < 0)
            watch.classes.data[serial - 1].address = 0;
    }
    pthread_mutex_unlock(&lock);
    return serial;
}

static uint32_t give_tag(jvmtiEnv *ti, jclass c, uint64_t address)
{
    char *signature = NULL;
    if ((*ti)->GetClassSignature(ti, c, &signature, NULL) != JVMTI_ERROR_NONE)
        return 0;
    size_t len = strlen(signature);
    /*
     * The signature is "Ljava/lang/String;" or, for hidden classes, "Lp/C.0x1234;". An array class
     * gets no serial number, because it lives as long as the class of its elements.
     */
    uint32_t serial =
        signature[0] == 'L' && len > 2 ? add(name_hash(signature + 1, len - 2), address) : 0;
    if (serial)
        (*ti)->SetTag(ti, c, serial);
    (*ti)->Deallocate(ti, (unsigned char *)signature);
    return serial;
}

uint32_t class_watch_serial(JNIEnv *jni, jclass c)
{
    jlong tag = 0;
    if (!atomic_load(&watch.on))
        return 0;
    uint64_t address = mirror.offset ? long_at(jni, c, mirror.offset) : 0;
    if (!patience_lock(&tagging))
        return 0; /* the class is tagged when it is next asked for */
    jvmtiEnv *ti = watch.ti;
    if (ti && (*ti)->GetTag(ti, c, &tag) == JVMTI_ERROR_NONE && !tag)
        tag = give_tag(ti, c, address);
    pthread_mutex_unlock(&tagging);
    return (uint32_t)tag;
}

static void JNICALL on_prepare(jvmtiEnv *ti, JNIEnv *jni, jthread thread, jclass c)
{
    class_watch_serial(jni, c);
}

/* May run during a collection, so it does not call the VM. */
static void JNICALL on_free(jvmtiEnv *ti, jlong tag)
{
    pthread_mutex_lock(&lock);
    struct watched *w =
        tag > 0 && (size_t)tag <= watch.classes.len ? &watch.classes.data[tag - 1] : NULL;
    const uint64_t *index = w && !w->gone ? map_get(&watch.by_name, w->name) : NULL;
    if (index) {
        w->gone = true;
        watch.unloads++;
        watch.names.data[*index].loaded--;
        const uint64_t *serial = w->address ? map_get(&watch.by_address, w->address) : NULL;
        if (serial && *serial == (uint64_t)tag)
            map_remove(&watch.by_address, w->address);
    }
    pthread_mutex_unlock(&lock);
}

uint32_t class_watch_find(const char *name, uint64_t address)
{
    uint64_t hash = name_hash(name, strlen(name));
    uint32_t serial = 0;
    pthread_mutex_lock(&lock);
    const uint64_t *known = map_get(&watch.by_address, address);
    const struct named *n = find_name(hash);
    if (known && watch.classes.data[*known - 1].name == hash)
        serial = (uint32_t)*known;
    else if (n && n->loaded == 1 && !watch.classes.data[n->latest - 1].gone)
        serial = n->latest;
    pthread_mutex_unlock(&lock);
    return serial;
}

bool class_watch_is_unloaded(uint32_t serial)
{
    pthread_mutex_lock(&lock);
    bool gone = serial && serial <= watch.classes.len && watch.classes.data[serial - 1].gone;
    pthread_mutex_unlock(&lock);
    return gone;
}

bool class_watch_none_left(const char *name)
{
    uint64_t hash = name_hash(name, strlen(name));
    pthread_mutex_lock(&lock);
    const struct named *n = find_name(hash);
    bool none = n && !n->loaded;
    pthread_mutex_unlock(&lock);
    return none;
}

uint64_t class_watch_unload_count(void)
{
    pthread_mutex_lock(&lock);
    uint64_t unloads = watch.unloads;
    pthread_mutex_unlock(&lock);
    return unloads;
}

static void tag_loaded(jvmtiEnv *ti, JNIEnv *jni)
{
    _cleanup_(loaded_classes_release) struct loaded_classes all = {0};
    if (loaded_classes(ti, jni, &all) < 0)
        return;
    for (jint i = 0; i < all.n; i++)
        class_watch_serial(jni, all.of[i]);
}

int class_watch_start(JNIEnv *jni)
{
    static const jvmtiCapabilities tags = {.can_tag_objects = 1,
                                           .can_generate_object_free_events = 1};
    static const jvmtiEventCallbacks callbacks = {.ClassPrepare = on_prepare,
                                                  .ObjectFree = on_free};
    jvmtiEnv *ti = NULL;
    if (!mirror.offset)
        open_mirror(jni);
    if ((*vm.java)->GetEnv(vm.java, (void **)&ti, JVMTI_VERSION_1_2) != JNI_OK)
        return -ENOTSUP;
    if ((*ti)->AddCapabilities(ti, &tags) != JVMTI_ERROR_NONE ||
        (*ti)->SetEventCallbacks(ti, &callbacks, sizeof(callbacks)) != JVMTI_ERROR_NONE ||
        (*ti)->SetEventNotificationMode(ti, JVMTI_ENABLE, JVMTI_EVENT_OBJECT_FREE, NULL) !=
            JVMTI_ERROR_NONE ||
        (*ti)->SetEventNotificationMode(ti, JVMTI_ENABLE, JVMTI_EVENT_CLASS_PREPARE, NULL) !=
            JVMTI_ERROR_NONE) {
        (*ti)->DisposeEnvironment(ti);
        return -ENOTSUP;
    }
    pthread_mutex_lock(&tagging);
    watch.ti = ti;
    pthread_mutex_unlock(&tagging);
    atomic_store(&watch.on, true);
    tag_loaded(ti, jni);
    return 0;
}

void class_watch_stop(void)
{
    atomic_store(&watch.on, false);
    if (!patience_lock(&tagging))
        return; /* another tool has stopped a thread that is tagging a class: the memory stays */
    jvmtiEnv *ti = watch.ti;
    watch.ti = NULL;
    pthread_mutex_unlock(&tagging);
    if (ti)
        (*ti)->DisposeEnvironment(ti);
    pthread_mutex_lock(&lock);
    vec_release(&watch.classes);
    vec_release(&watch.names);
    map_release(&watch.by_name);
    map_release(&watch.by_address);
    watch.unloads = 0;
    pthread_mutex_unlock(&lock);
}
