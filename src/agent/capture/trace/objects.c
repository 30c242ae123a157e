/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/capture/trace/objects.h"

#include "agent/common/fault.h"
#include "agent/common/rounds.h"
#include "agent/instrument/probe_class.h"
#include "agent/session/session.h"
#include "agent/vm/own_thread.h"
#include "agent/vm/shown_class.h"

#include "base/clock.h"
#include "base/dotted.h"
#include "base/pattern.h"
#include "jfr/losses.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define VALUES   "java/lang/JvmscopeValues"
#define CONTENTS "java/lang/JvmscopeContents"

enum { CLASSES_MAX = (1 << 14) + 2, FAILED_MAX = 64, HELPERS_MAX = 4 };

/*
 * For how long toString() of a class is not called after it did not end in time; doubled each time.
 */
#define REST_NS     (1000 * NS_PER_MS)
#define REST_MAX_NS (64 * REST_NS)

static struct {
    pthread_mutex_t lock;
    char *show, *to_string; /* separated by , : or ; */
    struct shown_class *shown[CLASSES_MAX];
    jclass values;

    struct helper {
        jobject thread; /* global reference; NULL once it was replaced */
        atomic_bool runs;
    } helpers[HELPERS_MAX]; /* the threads that call toString() */

    int helper;           /* index of the one that is used now; -1: none */
    atomic_bool is_stuck; /* another thread must replace it */
    bool none_left;       /* it was reported that no helper is left */

    struct {
        jclass class; /* global reference */
        bool reported;
        unsigned times;    /* how often toString() did not end in time; 0: it threw */
        uint64_t until_ns; /* toString() is not called before this time */
        uint64_t rest_ns;
        char name[256], thrown[128];
    } failed[FAILED_MAX];

    unsigned n_failed;
    atomic_ulong without[3]; /* values without text that are not reported yet, by reason */
    bool active;
} objects = {.lock = PTHREAD_MUTEX_INITIALIZER, .helper = -1};

const struct shown_class *trace_shown(uint32_t number)
{
    return number < CLASSES_MAX ? __atomic_load_n(&objects.shown[number], __ATOMIC_ACQUIRE) : NULL;
}

/* Writes the class's name with dots. */
static void name_of(jclass c, char *to, size_t size)
{
    _cleanup_free_ char *signature = shown_class_signature(c);
    to[0] = 0;
    if (!signature)
        return;
    size_t n = strlen(signature);
    if (*signature == 'L' && n > 2)
        snprintf(to, size, "%.*s", (int)(n - 2), signature + 1);
    dotted_in_place(to, strlen(to));
}

/* Returns whether a list contains `word` of n characters. */
static bool is_listed(const char *list, const char *word, size_t n)
{
    for (const char *p = list; p && *p;) {
        size_t len = strcspn(p, ",:; ");
        if (len == n && memcmp(p, word, n) == 0)
            return true;
        p += len + strspn(p + len, ",:; ");
    }
    return false;
}

/* Returns whether a list contains a class, or a pattern that matches it. */
static bool is_meant(const char *list, const char *class_name)
{
    if (is_listed(list, class_name, strlen(class_name)))
        return true;
    for (const char *p = list; *p;) {
        size_t len = strcspn(p, ",:; ");
        _cleanup_free_ char *pattern = memchr(p, '*', len) ? strndup(p, len) : NULL;
        if (pattern && pattern_match_one(pattern, class_name, strlen(class_name)))
            return true;
        p += len + strspn(p + len, ",:; ");
    }
    return false;
}

/* Adds the fields that a class declares: all of them, or those that show= lists. */
static void add_fields(JNIEnv *jni, jclass c, const char *class_name, bool all,
                       struct shown_class *s, jlong *out)
{
    jint n = 0;
    jfieldID *fields = NULL;
    if ((*vm.ti)->GetClassFields(vm.ti, c, &n, &fields) != JVMTI_ERROR_NONE)
        return;
    for (jint i = 0; i < n && s->n < SHOWN_FIELDS_MAX; i++) {
        char *name = NULL, *signature = NULL, whole[768];
        jint modifiers = 0;
        (*vm.ti)->GetFieldModifiers(vm.ti, c, fields[i], &modifiers);
        if (modifiers & 8 || (*vm.ti)->GetFieldName(vm.ti, c, fields[i], &name, &signature, NULL) !=
                                 JVMTI_ERROR_NONE)
            continue;
        snprintf(whole, sizeof(whole), "%s.%s", class_name, name);
        if (all || is_listed(objects.show, whole, strlen(whole))) {
            jobject reflected = (*jni)->ToReflectedField(jni, c, fields[i], JNI_FALSE);
            int64_t offset = reflected ? probe_reflected_offset(jni, reflected, false) : -1;
            vm_clear_exception(jni);
            s->types[s->n] = *signature == '[' ? 'L' : *signature;
            s->names[s->n] = offset > 0 ? strdup(name) : NULL;
            if (s->names[s->n]) {
                out[s->n] = (jlong)((uint64_t)(uint8_t)s->types[s->n] << 56 | (uint64_t)offset);
                s->n++;
            }
        }
        vm_free(name);
        vm_free(signature);
    }
    vm_free(fields);
}

static void shown_free(struct shown_class *s)
{
    for (unsigned i = 0; s && i < SHOWN_FIELDS_MAX; i++)
        free(s->names[i]);
    if (s)
        free(s->enum_name);
    free(s);
}

/*
 * Finds what show= and tostring= request for objects of a class, with the fields of superclasses
 * last. Returns the number of longs in `out`; 0: nothing.
 */
static int find_requested(JNIEnv *jni, jclass c, jlong out[SHAPE_MAX], struct shown_class *s)
{
    char name[512];
    for (jclass k = c; k; k = (*jni)->GetSuperclass(jni, k)) {
        name_of(k, name, sizeof(name));
        if (objects.to_string && is_meant(objects.to_string, name)) {
            out[0] = s->kind = SHAPE_TO_STRING;
            return 1;
        }
        if (objects.show)
            add_fields(jni, k, name, false, s, out + 1);
    }
    out[0] = s->kind = SHAPE_FIELDS;
    return s->n ? 1 + (int)s->n : 0;
}

/*
 * Finds what to record of objects of a class whose contents are known, or that has such a
 * superclass. Returns the number of longs in `out`; 0: nothing.
 */
static int find_known(JNIEnv *jni, jclass c, jlong out[SHAPE_MAX], struct shown_class *s)
{
    char name[512], below[512] = "";
    for (jclass k = c; k; k = (*jni)->GetSuperclass(jni, k)) {
        name_of(k, name, sizeof(name));
        if (strcmp(name, "java.lang.Record") == 0) { /* the fields of a record are its contents */
            add_fields(jni, c, below, true, s, out + 1);
            out[0] = s->kind = SHAPE_FIELDS;
            return s->n ? 1 + (int)s->n : 0;
        }
        int n = shape_of_class(jni, k, name, k == c, out, s);
        if (n > 0 && s->style == STYLE_ENUM)
            s->enum_name = strdup(below);
        if (n)
            return n;
        memcpy(below, name, sizeof(below));
    }
    return 0;
}

/*
 * Returns what is to be shown of a class's objects: *ret_n longs in out. Returns NULL if nothing is
 * shown.
 */
static struct shown_class *find(JNIEnv *jni, jclass c, jlong out[SHAPE_MAX], int *ret_n)
{
    struct shown_class *s = calloc(1, sizeof(*s));
    int n = s ? find_requested(jni, c, out, s) : 0;
    if (s && n == 0)
        n = find_known(jni, c, out, s);
    if (n <= 0) {
        shown_free(s);
        return NULL;
    }
    *ret_n = n;
    return s;
}

EXPORT void JNICALL Java_java_lang_JvmscopeValues_failed(JNIEnv *jni, jclass class, jclass c,
                                                         jstring thrown);
EXPORT jboolean JNICALL Java_java_lang_JvmscopeValues_rests(JNIEnv *jni, jclass class, jclass c);
EXPORT void JNICALL Java_java_lang_JvmscopeValues_pause(JNIEnv *jni, jclass class, jlong ns);

/*
 * Returns whether the VM knows the fields of the class. Linking the class here could run Java code.
 */
static bool is_linked(jclass c)
{
    jint status = 0;
    return (*vm.ti)->GetClassStatus(vm.ti, c, &status) == JVMTI_ERROR_NONE &&
           status & (JVMTI_CLASS_STATUS_PREPARED | JVMTI_CLASS_STATUS_ARRAY |
                     JVMTI_CLASS_STATUS_PRIMITIVE);
}

jlongArray trace_objects_shape(JNIEnv *jni, jclass c, jint number)
{
    jlong out[SHAPE_MAX] = {SHAPE_UNREADY};
    int n = 0;
    if (number <= 0 || number >= CLASSES_MAX || !objects.active ||
        (*jni)->PushLocalFrame(jni, 128) < 0) {
        vm_clear_exception(jni);
        return NULL;
    }
    struct shown_class *s = NULL;
    if (is_linked(c))
        s = find(jni, c, out, &n);
    else
        n = 1;
    jlongArray array = n ? (*jni)->NewLongArray(jni, n) : NULL;
    if (array)
        (*jni)->SetLongArrayRegion(jni, array, 0, n, out);
    vm_clear_exception(jni);
    /*
     * A number stands for one class during the whole recording; the shapes of a recording are
     * dropped at its end.
     */
    __atomic_store_n(&objects.shown[number], array ? s : NULL, __ATOMIC_RELEASE);
    if (!array)
        shown_free(s);
    return (*jni)->PopLocalFrame(jni, array);
}

/* Returns the index of a class among those that failed, or their number. */
static unsigned failed_place(JNIEnv *jni, jclass c)
{
    unsigned n = __atomic_load_n(&objects.n_failed, __ATOMIC_ACQUIRE), i = 0;
    while (i < n && !(*jni)->IsSameObject(jni, objects.failed[i].class, c))
        i++;
    return i;
}

void JNICALL Java_java_lang_JvmscopeValues_failed(JNIEnv *jni, jclass class, jclass c,
                                                  jstring thrown)
{
    if (!c)
        return;
    /* Half of the entries are reserved for classes that do not end in time. */
    const unsigned most = thrown ? FAILED_MAX / 2 : FAILED_MAX;
    pthread_mutex_lock(&objects.lock);
    unsigned at = failed_place(jni, c);
    jclass global = at == objects.n_failed && at < most ? (*jni)->NewGlobalRef(jni, c) : NULL;
    __typeof__(objects.failed[0]) *f = at < FAILED_MAX ? &objects.failed[at] : NULL;
    if (global) {
        *f = (__typeof__(*f)){.class = global};
        name_of(c, f->name, sizeof(f->name));
        jsize n = thrown ? (*jni)->GetStringLength(jni, thrown) : 0;
        if (n && n < 40)
            (*jni)->GetStringUTFRegion(jni, thrown, 0, n, f->thrown);
        __atomic_store_n(&objects.n_failed, at + 1, __ATOMIC_RELEASE);
    }
    if (f && f->class && !thrown) {
        uint64_t now = now_ns();
        bool again = f->times && now < f->until_ns + f->rest_ns;
        f->rest_ns = again ? MIN(2 * f->rest_ns, REST_MAX_NS) : REST_NS;
        f->reported = f->reported && f->times;
        f->times++;
        __atomic_store_n(&f->until_ns, now + f->rest_ns, __ATOMIC_RELAXED);
    }
    pthread_mutex_unlock(&objects.lock);
    if (!thrown) {
        objects.is_stuck = true;
        rounds_request();
    }
}

jboolean JNICALL Java_java_lang_JvmscopeValues_rests(JNIEnv *jni, jclass class, jclass c)
{
    if (!c)
        return JNI_FALSE;
    unsigned i = failed_place(jni, c);
    return i == FAILED_MAX ||
           (i < __atomic_load_n(&objects.n_failed, __ATOMIC_ACQUIRE) &&
            now_ns() < __atomic_load_n(&objects.failed[i].until_ns, __ATOMIC_RELAXED));
}

void JNICALL Java_java_lang_JvmscopeValues_pause(JNIEnv *jni, jclass class, jlong ns)
{
    clock_nanosleep(CLOCK_MONOTONIC, 0, &(struct timespec){.tv_nsec = ns}, NULL);
}

/* ---- values without text ---- */

void trace_objects_without_text(enum text_missing why)
{
    static const int first = TEXT_NOT_CALLED;
    atomic_fetch_add(&objects.without[why - first], 1);
}

void trace_objects_report(struct jfr_writer *w)
{
    static const enum jfr_loss losses[] = {LOSS_TRACE_TEXT_NOT_CALLED, LOSS_TRACE_TEXT_SLOW,
                                           LOSS_TRACE_TEXT_THREW};

    for (unsigned i = 0; i < ARRAY_SIZE(losses); i++)
        jfr_lose_since(w, losses[i], atomic_exchange(&objects.without[i], 0));
}

/* ---- the thread ---- */

static void JNICALL serve(jvmtiEnv *ti, JNIEnv *jni, void *runs)
{
    jmethodID m = (*jni)->GetStaticMethodID(jni, objects.values, "serve", "()V");
    if (m)
        (*jni)->CallStaticVoidMethod(jni, objects.values, m);
    vm_clear_exception(jni);
    atomic_store((atomic_bool *)runs, false);
}

/*
 * Starts a thread that calls toString(). Returns 0 or a negative errno; -EAGAIN means that too many
 * such threads are stuck.
 */
static int start_helper(JNIEnv *jni)
{
    int at = 0;
    while (at < HELPERS_MAX && atomic_load(&objects.helpers[at].runs))
        at++;
    if (at == HELPERS_MAX)
        return -EAGAIN;
    struct helper *h = &objects.helpers[at];
    atomic_store(&h->runs, true);
    int r = own_thread_start(jni, "jvmscope values", serve, &h->runs, &h->thread);
    if (r == 0)
        objects.helper = at;
    else
        atomic_store(&h->runs, false);
    return r;
}

static void forget_helper(JNIEnv *jni)
{
    if (objects.helper >= 0)
        (*jni)->DeleteGlobalRef(jni, objects.helpers[objects.helper].thread);
    objects.helper = -1;
}

/*
 * Throws an exception in a thread that hangs in toString(): a loop ends, and a wait for a lock ends
 * once the lock has been acquired.
 */
static void stop_helper(JNIEnv *jni)
{
    static const jvmtiCapabilities need = {.can_signal_thread = 1};
    jclass error = (*jni)->FindClass(jni, "java/lang/Error");
    jmethodID make = error ? (*jni)->GetMethodID(jni, error, "<init>", "()V") : NULL;
    jobject e = make ? (*jni)->NewObject(jni, error, make) : NULL;
    if (!vm_clear_exception(jni) && e && objects.helper >= 0 && vm_need(&need, NULL) == 0)
        (*vm.ti)->StopThread(vm.ti, objects.helpers[objects.helper].thread, e);
    if (e)
        (*jni)->DeleteLocalRef(jni, e);
    if (error)
        (*jni)->DeleteLocalRef(jni, error);
    forget_helper(jni);
}

/* Calls leave() of the probe, after which the program's threads no longer wait for a helper. */
static void leave(JNIEnv *jni)
{
    jmethodID m =
        objects.values ? (*jni)->GetStaticMethodID(jni, objects.values, "leave", "()V") : NULL;
    if (m && objects.to_string)
        (*jni)->CallStaticVoidMethod(jni, objects.values, m);
    vm_clear_exception(jni);
}

static void report_failed(struct session *s)
{
    for (unsigned i = 0; i < objects.n_failed; i++) {
        __typeof__(objects.failed[0]) *f = &objects.failed[i];
        if (f->reported)
            continue;
        f->reported = true;
        if (f->times)
            session_message(s,
                            "tostring: %s.toString() did not end in 100 ms: it is not called "
                            "for a second, and longer if that happens again",
                            f->name);
        else
            session_message(s, "tostring: %s.toString() threw %s", f->name,
                            *f->thrown ? f->thrown : "an exception");
    }
}

void trace_objects_work(struct session *s, JNIEnv *jni)
{
    if (!objects.active || !objects.to_string)
        return;
    report_failed(s);
    if (atomic_exchange(&objects.is_stuck, false))
        stop_helper(jni);
    if (objects.helper >= 0)
        return;
    int r = start_helper(jni);
    if (r < 0 && !objects.none_left) {
        leave(jni);
        session_message(s,
                        "tostring: toString() is called again only when a call in progress ends");
    }
    objects.none_left = r < 0;
}

int trace_objects_begin(struct session *s, JNIEnv *jni, struct buf *why)
{
    const char *show = s->options.v[OPT_SHOW].text, *to_string = s->options.v[OPT_TOSTRING].text;
    jclass contents;
    if (objects.active)
        return 0;
    int r = probe_define(jni, CONTENTS, &contents, why);
    if (r < 0)
        return r;
    objects.show = show ? strdup(show) : NULL;
    objects.to_string = to_string ? strdup(to_string) : NULL;
    if ((show && !objects.show) || (to_string && !objects.to_string))
        return -ENOMEM;
    objects.active = true;
    objects.is_stuck = objects.none_left = false;
    if (!to_string)
        return 0;
    r = probe_define(jni, VALUES, &objects.values, why);
    if (r == 0 && (r = fault_here() ? -EAGAIN : start_helper(jni)) < 0)
        buf_string(why, "tostring: the VM cannot start a thread for the agent");
    if (r == 0 && (option_on(&s->options, OPT_THREADS) || s->options.v[OPT_REQUESTS].text))
        session_message(s, "tostring: a thread that waits for a text counts as running in threads "
                           "and requests");
    return r;
}

void trace_objects_end(JNIEnv *jni)
{
    if (!objects.active)
        return;
    leave(jni);
    forget_helper(jni);
    for (unsigned i = 0; i < objects.n_failed; i++)
        (*jni)->DeleteGlobalRef(jni, objects.failed[i].class);
    objects.n_failed = 0;
    for (unsigned i = 0; i < CLASSES_MAX; i++) {
        struct shown_class *s = objects.shown[i];
        shown_free(s);
        objects.shown[i] = NULL;
    }
    free(objects.show);
    free(objects.to_string);
    objects.show = objects.to_string = NULL;
    objects.active = false;
}
