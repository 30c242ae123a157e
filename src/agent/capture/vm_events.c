/* SPDX-License-Identifier: Apache-2.0 */
/*
 * events=y records threads that start, end and are renamed, classes that are loaded, unloaded or
 * not found, and collections that begin and end, as instants between the calls of a trace. Classes
 * are tagged in a separate environment, so that their unloading can be reported by name. Thread
 * names are compared once per second.
 */
#include "agent/capture/vm/vm.h"
#include "agent/common/fault.h"
#include "agent/instrument/probe_class.h"
#include "agent/session/capture.h"
#include "agent/session/pace.h"
#include "agent/session/session.h"
#include "agent/vm/loaded_classes.h"
#include "agent/vm/shown_class.h"
#include "agent/vm/shown_thread.h"
#include "agent/vm/thread_table.h"
#include "base/clock.h"
#include "base/dotted.h"
#include "base/generated_name.h"
#include "base/vec.h"
#include "jfr/writer.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_MAX = 512 };

#define CHECK_EVERY_NS NS_PER_SECOND

static const struct jfr_type event_type = {
    .name = "jvmscope.VmEvent",
    .label = "VM Event",
    .category = "jvmscope|Trace",
    .description = "A thread started or ended, a class was loaded or unloaded, or a collection ran",
    .kind = JFR_EVENT,
    .fields =
        JFR_FIELDS({"what", "What", "java.lang.String"}, {"thread", "Thread", "java.lang.String"},
                   {"text", "Text", "java.lang.String"}),
};

static struct {
    pthread_mutex_t lock; /* protects the class names */
    jvmtiEnv *ti;         /* environment of the tags; never disposed of */
    /*
     * By tag - 1. An entry is used again only after the VM has reported the unloading, which may be
     * late.
     */
    VEC(struct named_class {
        char *name;
        uint32_t loader; /* the number of the class of its loader */
        /* 1 + the number that this class has as a loader's class; 0: none has loaded a class */
        uint32_t as_loader;
        uint32_t next_free; /* 1 + the index of the next free entry */
    })
    classes;
    uint32_t free_place;
    _Atomic uint32_t type;
    _Atomic bool active;
    bool frees; /* the VM reports freed tags */
    _Atomic uint64_t written, lost;
    uint64_t checked_ns; /* when the threads' names were last compared */
    jclass not_found, linkage;
    jfieldID message, name;
} all = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* May run in a safepoint, so it uses neither JNI nor a lock. */
static void report(const char *what, const char *thread, const char *text)
{
    struct jfr_event e;
    struct session *s = session_now;
    if (!all.active || !s)
        return;
    if (!jfr_begin(s->out.jfr, all.type,
                   strlen(what) + (thread ? strlen(thread) : 0) + (text ? strlen(text) : 0) + 64,
                   &e)) {
        all.lost++;
        return;
    }
    jfr_put_time(&e, now_ns());
    jfr_put_string(&e, what);
    jfr_put_string(&e, thread);
    jfr_put_string(&e, text);
    jfr_commit(&e);
    all.written++;
}

/* ---- threads ---- */

enum { NUMBER_MAX = 48 };

/* Returns a thread's last known name, or its number if the name is empty. t may be NULL. */
static const char *shown_name(const struct thread *t, const char *name, char room[NUMBER_MAX])
{
    return name && !*name && t->java_id
               ? shown_thread_number(room, NUMBER_MAX, (int64_t)t->java_id, false)
               : name;
}

static void report_of(const struct thread *t, const char *what, const char *text)
{
    char room[NUMBER_MAX];
    report(what, shown_name(t, t ? t->name : NULL, room), text);
}

static void thread_started(struct thread *t, JNIEnv *jni, jthread thread)
{
    if (!t->own && vm.live)
        report_of(t, "thread start", NULL);
}

static void thread_ended(struct thread *t, JNIEnv *jni)
{
    if (!t->own)
        report_of(t, "thread end", NULL);
}

static const struct thread_listener listener = {thread_started, thread_ended};

/*
 * The thread table has the names at the start of each thread. For threads whose name has changed,
 * the last reported name is kept here.
 */
static VEC(struct renamed {
    uint32_t serial;
    char *name;
}) renamed;

static void report_if_renamed(struct thread *t, const char *now)
{
    const char *before = t->name;
    char room[NUMBER_MAX];
    size_t i = 0;
    while (i < renamed.len && renamed.data[i].serial != t->serial)
        i++;
    if (i < renamed.len)
        before = renamed.data[i].name;
    if (!before || strcmp(before, now) == 0)
        return;
    report("thread name", shown_name(t, before, room), now);
    char *copy = strdup(now);
    if (copy && i < renamed.len) {
        free(renamed.data[i].name);
        renamed.data[i].name = copy;
    } else if (copy && vec_push(&renamed, ((struct renamed){t->serial, copy})) < 0) {
        free(copy);
    }
}

static void forget_ended(void)
{
    size_t n = 0;
    for (size_t i = 0; i < renamed.len; i++) {
        struct renamed r = renamed.data[i];
        const struct thread *t = threads_by_serial(r.serial);
        if (t && !atomic_load(&t->ended_ns))
            renamed.data[n++] = r;
        else
            free(r.name);
    }
    renamed.len = n;
}

/*
 * Copies a thread's name, cut off if it is too long. GetThreadInfo would search the VM's list of
 * all threads; before JDK 9 the field may be an array, and there is no other way.
 */
static bool read_name(JNIEnv *jni, jthread thread, char *ret, size_t size)
{
    jvmtiThreadInfo info = {0};
    if (all.name) {
        jstring name = (*jni)->GetObjectField(jni, thread, all.name);
        bool fits = name && (size_t)(*jni)->GetStringUTFLength(jni, name) < size;
        if (fits)
            (*jni)->GetStringUTFRegion(jni, name, 0, (*jni)->GetStringLength(jni, name), ret);
        if (fits)
            ret[(*jni)->GetStringUTFLength(jni, name)] = 0;
        if (name)
            (*jni)->DeleteLocalRef(jni, name);
        if (fits)
            return true;
    }
    if ((*vm.ti)->GetThreadInfo(vm.ti, thread, &info) != JVMTI_ERROR_NONE)
        return false;
    if (info.name)
        snprintf(ret, size, "%s", info.name);
    bool found = info.name;
    vm_free_thread_info(jni, &info);
    return found;
}

static void report_renamed(JNIEnv *jni)
{
    jint n = 0;
    jthread *list = NULL;
    if (vm_all_threads(&n, &list) != JVMTI_ERROR_NONE)
        return;
    for (jint i = 0; i < n; i++) {
        char name[1024];
        struct thread *t = threads_find(jni, list[i]);
        if (t && !t->own && read_name(jni, list[i], name, sizeof(name)))
            report_if_renamed(t, name);
        (*jni)->DeleteLocalRef(jni, list[i]);
    }
    vm_free(list);
    forget_ended();
}

/* ---- classes ---- */

/* Returns "com.acme.Shop", which the caller frees; NULL for an array, or if memory is exhausted. */
static char *readable_name(jclass c)
{
    _cleanup_free_ char *signature = shown_class_signature(c);
    size_t n = signature ? strlen(signature) : 0;
    char *name = n > 2 && signature[0] == 'L' ? strndup(signature + 1, n - 2) : NULL;
    dotted_in_place(name, name ? n - 2 : 0);
    return name;
}

static char *keep_class(JNIEnv *jni, jclass c, uint32_t *ret_loader);

/* Returns the number of the class of a class's loader. */
static uint32_t loader_of(JNIEnv *jni, jclass c)
{
    jobject loader = NULL;
    if ((*all.ti)->GetClassLoader(all.ti, c, &loader) != JVMTI_ERROR_NONE || !loader)
        return loaders_number(NULL);
    jclass of = (*jni)->GetObjectClass(jni, loader);
    jlong tag = 0;
    uint32_t known = 0, its_loader;
    (void)(*all.ti)->GetTag(all.ti, of, &tag);
    if (!tag) {
        free(keep_class(jni, of, &its_loader));
        (void)(*all.ti)->GetTag(all.ti, of, &tag);
    }
    pthread_mutex_lock(&all.lock);
    if (tag > 0 && (size_t)tag <= all.classes.len)
        known = all.classes.data[tag - 1].as_loader;
    pthread_mutex_unlock(&all.lock);
    if (!known) {
        _cleanup_free_ char *name = readable_name(of);
        known = 1 + loaders_number(name ? name : "?");
        pthread_mutex_lock(&all.lock);
        if (tag > 0 && (size_t)tag <= all.classes.len)
            all.classes.data[tag - 1].as_loader = known;
        pthread_mutex_unlock(&all.lock);
    }
    (*jni)->DeleteLocalRef(jni, of);
    (*jni)->DeleteLocalRef(jni, loader);
    return known - 1;
}

/*
 * Takes ownership of the name. Returns the tag of its entry, or 0 if memory is exhausted. Requires
 * the lock.
 */
static jlong take_place(char *name, uint32_t loader)
{
    struct named_class c = {.name = name, .loader = loader};
    if (!all.free_place)
        return vec_push(&all.classes, c) == 0 ? (jlong)all.classes.len : 0;
    uint32_t place = all.free_place;
    all.free_place = all.classes.data[place - 1].next_free;
    all.classes.data[place - 1] = c;
    return place;
}

/*
 * Keeps the name of a class until it is unloaded, and tags the class with its number. Returns a
 * copy of the name for the caller to free; NULL when the class was known, or is an array.
 */
static char *keep_class(JNIEnv *jni, jclass c, uint32_t *ret_loader)
{
    jlong tag = 0;
    if ((*all.ti)->GetTag(all.ti, c, &tag) != JVMTI_ERROR_NONE || tag)
        return NULL;
    char *name = readable_name(c);
    char *copy = name ? strdup(name) : NULL;
    if (!copy) {
        free(name);
        return NULL;
    }
    *ret_loader = loader_of(jni, c);
    pthread_mutex_lock(&all.lock);
    tag = take_place(name, *ret_loader);
    pthread_mutex_unlock(&all.lock);
    if (!tag)
        free(name);
    else
        (*all.ti)->SetTag(all.ti, c, tag);
    return copy;
}

/* Reports classes that are never linked as well; they may keep their loader from being unloaded. */
static void JNICALL on_class_load(jvmtiEnv *ti, JNIEnv *jni, jthread thread, jclass c)
{
    const struct thread *self = threads_self(jni);
    uint32_t loader = 0;
    _cleanup_free_ char *name = all.active ? keep_class(jni, c, &loader) : NULL;
    if (!name)
        return;
    loaders_loaded(loader);
    /*
     * A probe may be loaded on a thread of the program. The interfaces that name a proxy are known
     * once it is prepared, which follows at once.
     */
    if ((!self || !self->own) && !probe_is_class(name) &&
        !generated_name_is_proxy(name, strlen(name)))
        report_of(self, "class load", name);
}

static void JNICALL on_class_prepare(jvmtiEnv *ti, JNIEnv *jni, jthread thread, jclass c)
{
    jlong tag = 0;
    char *signature = NULL;
    if (!all.active || (*vm.ti)->GetClassSignature(vm.ti, c, &signature, NULL) != JVMTI_ERROR_NONE)
        return;
    bool proxy = generated_name_is_proxy(signature, strlen(signature));
    (*vm.ti)->Deallocate(vm.ti, (unsigned char *)signature);
    const struct thread *self = threads_self(jni);
    if (!proxy || (self && self->own))
        return;
    _cleanup_free_ char *name = readable_name(c);
    char *kept = name ? strdup(name) : NULL;
    (void)(*all.ti)->GetTag(all.ti, c, &tag);
    pthread_mutex_lock(&all.lock);
    if (kept && tag > 0 && (size_t)tag <= all.classes.len) {
        free(all.classes.data[tag - 1].name);
        all.classes.data[tag - 1].name = kept;
        kept = NULL;
    }
    pthread_mutex_unlock(&all.lock);
    free(kept);
    if (name)
        report_of(self, "class load", name);
}

/* Called only for this environment, possibly during a collection, so it uses no JNI. */
static void JNICALL on_free(jvmtiEnv *ti, jlong tag)
{
    pthread_mutex_lock(&all.lock);
    struct named_class *c =
        tag > 0 && (size_t)tag <= all.classes.len ? &all.classes.data[tag - 1] : NULL;
    if (c && c->name) {
        if (all.active)
            loaders_unloaded(c->loader);
        report("class unload", NULL, c->name);
        free(c->name);
        *c = (struct named_class){.next_free = all.free_place};
        all.free_place = (uint32_t)tag;
    }
    pthread_mutex_unlock(&all.lock); /* events_stop waits for it */
}

static void JNICALL on_exception(jvmtiEnv *ti, JNIEnv *jni, jthread thread, jmethodID m,
                                 jlocation at, jobject e, jmethodID cm, jlocation cat)
{
    char text[3 * TEXT_MAX + 1] = "";
    if (!all.linkage || (!(*jni)->IsInstanceOf(jni, e, all.not_found) &&
                         !(*jni)->IsInstanceOf(jni, e, all.linkage)))
        return;
    const struct thread *self = threads_self(jni);
    if (self && self->own)
        return;
    jstring s = all.message ? (*jni)->GetObjectField(jni, e, all.message) : NULL;
    if (s) {
        (*jni)->GetStringUTFRegion(jni, s, 0, MIN((*jni)->GetStringLength(jni, s), TEXT_MAX), text);
        vm_clear_exception(jni);
        (*jni)->DeleteLocalRef(jni, s);
    }
    report_of(self, "class load failed", text);
}

static int open_tags(struct buf *why)
{
    static const jvmtiCapabilities wanted = {.can_tag_objects = 1,
                                             .can_generate_object_free_events = 1};
    static const jvmtiEventCallbacks callbacks = {.ObjectFree = on_free};
    if (fault_here())
        return -ENOTSUP;
    if (!all.ti && ((*vm.java)->GetEnv(vm.java, (void **)&all.ti, JVMTI_VERSION_1_2) != JNI_OK ||
                    (*all.ti)->AddCapabilities(all.ti, &wanted) != JVMTI_ERROR_NONE)) {
        buf_string(why, "events: the VM cannot report the unloading of classes");
        all.ti = NULL;
        return -ENOTSUP;
    }
    (*all.ti)->SetEventCallbacks(all.ti, &callbacks, sizeof(callbacks));
    return 0;
}

/* Returns whether a class is never unloaded: one of the boot loader that is not hidden. */
static bool stays_loaded(JNIEnv *jni, jclass c)
{
    jobject loader = NULL;
    char *signature = NULL;
    if ((*all.ti)->GetClassLoader(all.ti, c, &loader) != JVMTI_ERROR_NONE || loader) {
        if (loader)
            (*jni)->DeleteLocalRef(jni, loader);
        return false;
    }
    if ((*all.ti)->GetClassSignature(all.ti, c, &signature, NULL) != JVMTI_ERROR_NONE)
        return false;
    size_t n = strlen(signature);
    bool hidden = strchr(signature, '.') || /* "Lp/C.0x01;" since JDK 15, "Lp/C/123;" before */
                  (n > 2 && generated_name_is_anonymous(signature + 1, n - 2));
    (*all.ti)->Deallocate(all.ti, (unsigned char *)signature);
    return !hidden;
}

/*
 * Tags the loaded classes that may be unloaded, without an event. When a VM starts, nearly all are
 * of the boot loader, and naming each would take half a millisecond.
 */
static void keep_loaded(JNIEnv *jni)
{
    _cleanup_(loaded_classes_release) struct loaded_classes loaded = {0};
    if (loaded_classes(all.ti, jni, &loaded) < 0)
        return;
    for (jint i = 0; i < loaded.n; i++) {
        uint32_t loader;
        if (vm.late || !stays_loaded(jni, loaded.of[i]))
            free(keep_class(jni, loaded.of[i], &loader));
    }
}

/* ---- collections ---- */

static void JNICALL on_gc_start(jvmtiEnv *ti)
{
    report("gc start", NULL, NULL);
}

static void JNICALL on_gc_finish(jvmtiEnv *ti)
{
    report("gc finish", NULL, NULL);
}

/* ---- the capture ---- */

static const struct vm_callbacks events = {.ti = {.ClassLoad = on_class_load,
                                                  .ClassPrepare = on_class_prepare,
                                                  .GarbageCollectionStart = on_gc_start,
                                                  .GarbageCollectionFinish = on_gc_finish}};
static const struct vm_callbacks failures = {.ti = {.Exception = on_exception}};
static bool failures_on;

static bool events_wanted(const struct options *o)
{
    return option_on(o, OPT_EVENTS);
}

static int events_load(struct session *s, struct buf *why)
{
    uint32_t type;
    all.written = all.lost = 0;
    int r = jfr_declare(s->out.jfr, &event_type, 1, &type);
    all.type = type;
    return r < 0 ? r : open_tags(why);
}

static int events_start(struct session *s, JNIEnv *jni, struct buf *why)
{
    all.not_found =
        all.not_found ? all.not_found : vm_class(jni, "java/lang/ClassNotFoundException");
    all.linkage = all.linkage ? all.linkage : vm_class(jni, "java/lang/LinkageError");
    all.message = vm_field(jni, "java/lang/Throwable", "detailMessage", "Ljava/lang/String;");
    all.name = vm_field(jni, "java/lang/Thread", "name", "Ljava/lang/String;");
    keep_loaded(jni);
    /*
     * Enabled once and never disabled. Since JDK 16, changing an event mode makes the VM report
     * freed tags on this thread; if the thread stops there for a collection while the service
     * thread waits for it, the service thread cannot stop and the VM hangs.
     */
    if (!all.frees)
        all.frees = !(*all.ti)->SetEventNotificationMode(all.ti, JVMTI_ENABLE,
                                                         JVMTI_EVENT_OBJECT_FREE, NULL);
    all.active = true;
    if (vm.have.can_generate_exception_events)
        failures_on = vm_events_on(&failures) == 0;
    return threads_listen(&listener);
}

static void events_stop(struct session *s, JNIEnv *jni)
{
    threads_unlisten(&listener);
    if (failures_on)
        vm_events_off(&failures);
    failures_on = false;
    pthread_mutex_lock(&all.lock);
    all.active = false;
    pthread_mutex_unlock(&all.lock);
    for (size_t i = 0; i < renamed.len; i++)
        free(renamed.data[i].name);
    vec_release(&renamed);
}

static void events_flush(struct session *s, JNIEnv *jni)
{
    static struct pace pace;
    if (now_ns() - all.checked_ns < CHECK_EVERY_NS || vm.dying || !pace_begins(&pace))
        return;
    all.checked_ns = now_ns();
    report_renamed(jni);
    pace_ends(&pace);
}

static void events_status(struct session *s, struct buf *out)
{
    buf_printf(out, "events.written %llu\nevents.lost_no_room %llu\n",
               (unsigned long long)all.written, (unsigned long long)all.lost);
}

const struct capture capture_vm_events = {
    .name = "events",
    .options = OPTION_BIT(OPT_EVENTS),
    .needs = {.can_generate_garbage_collection_events = 1},
    .likes = {.can_generate_exception_events = 1},
    .events = &events,
    .records_only = true,
    .wanted = events_wanted,
    .load = events_load,
    .start = events_start,
    .stop = events_stop,
    .flush = events_flush,
    .status = events_status,
};
