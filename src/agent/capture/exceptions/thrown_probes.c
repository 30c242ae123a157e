/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/capture/exceptions/thrown_probes.h"

#include "agent/capture/exceptions/thrown_rows.h"
#include "agent/instrument/instrument.h"
#include "agent/instrument/probe_class.h"
#include "agent/stacks/names.h"
#include "agent/vm/vm.h"
#include "base/arena.h"
#include "base/generated_name.h"
#include "base/hash.h"
#include "base/map.h"
#include "base/vec.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#define PROBE "java/lang/JvmscopeThrown"

/* The probe class has the same values. */
enum { THREADS = 1 << 14, SITES_MAX = 1 << 16 };

/*
 * Sites and the data that probes write to are never freed, because code that was compiled with
 * probes may still run.
 */
static struct {
    pthread_mutex_t lock;
    struct arena arena;
    VEC(const char *) sites; /* "pkg.Class.method:line"; 0 is none */
    struct map index;        /* hash of a place in the code -> site */
    int64_t tid, backtrace;
    jclass probe;
    _Atomic uint64_t lost, left;
    atomic_bool off;     /* counting is off, but probes may still be in classes */
    atomic_bool partial; /* handlers without a probe may run */
    bool selected;       /* some classes were selected, which java.lang.Thread cannot be */

    struct {
        uint64_t thread_and_site;
        uint64_t identity;
    } last[THREADS]; /* the last exception of each thread */
} thrown = {.lock = PTHREAD_MUTEX_INITIALIZER};

_Static_assert(sizeof(thrown.last[0]) == 16, "as the probe has it");

/* ---- the probe's native methods ---- */

#define NATIVE(type, name) EXPORT type JNICALL Java_java_lang_JvmscopeThrown_##name
NATIVE(jlong, constant)(JNIEnv *, jclass, jint);
NATIVE(jlong, find)(JNIEnv *, jclass, jclass, jint, jint);
NATIVE(jlong, findImplicit)(JNIEnv *, jclass, jclass, jthrowable, jint);

NATIVE(jlong, constant)(JNIEnv *jni, jclass probe, jint which)
{
    const int64_t values[] = {(int64_t)(uintptr_t)thrown.last, thrown.tid, thrown.backtrace};
    return which >= 0 && which < (jint)ARRAY_SIZE(values) ? values[which] : 0;
}

static const char *site_text(jint site)
{
    pthread_mutex_lock(&thrown.lock);
    const char *text = site > 0 && (size_t)site < thrown.sites.len ? thrown.sites.data[site] : NULL;
    pthread_mutex_unlock(&thrown.lock);
    return text;
}

/* A handler is a site or one of these values, as in the probe class. */
enum { CAUGHT_NOT_SEEN = 0, CAUGHT_NOWHERE = -1 };

static jlong row_of(jclass c, const char *place, jint to)
{
    const char *caught = to == CAUGHT_NOT_SEEN && thrown.partial ? THROWN_NOT_KNOWN : site_text(to);
    struct thrown_row *row =
        thrown_row_of(names_class_text(c), strdup(place), caught ? strdup(caught) : NULL);
    if (!row)
        atomic_fetch_add(&thrown.lost, 1);
    return row ? (jlong)(uintptr_t)&row->count : 0;
}

NATIVE(jlong, find)(JNIEnv *jni, jclass probe, jclass c, jint from, jint to)
{
    const char *place = c && !thrown.off ? site_text(from) : NULL;
    return place ? row_of(c, place, to) : 0;
}

/* Calls a method of a frame that returns a text; NULL if there is none, or no memory. */
static jstring text_of(JNIEnv *jni, jclass element, jobject frame, const char *method)
{
    jmethodID m = (*jni)->GetMethodID(jni, element, method, "()Ljava/lang/String;");
    jstring text = vm_clear_exception(jni) || !m ? NULL : (*jni)->CallObjectMethod(jni, frame, m);
    return vm_clear_exception(jni) ? NULL : text;
}

/* Puts "pkg.Class.method:line" of a stack trace's frame. Returns whether it is the agent's own. */
static bool put_element(JNIEnv *jni, jobject frame, char *to, size_t size)
{
    jclass element = (*jni)->GetObjectClass(jni, frame);
    jstring class_name = text_of(jni, element, frame, "getClassName");
    jstring method = text_of(jni, element, frame, "getMethodName");
    jmethodID get_line = (*jni)->GetMethodID(jni, element, "getLineNumber", "()I");
    jint line =
        vm_clear_exception(jni) || !get_line ? -1 : (*jni)->CallIntMethod(jni, frame, get_line);
    vm_clear_exception(jni);
    const char *c = class_name ? (*jni)->GetStringUTFChars(jni, class_name, NULL) : NULL;
    const char *m = method ? (*jni)->GetStringUTFChars(jni, method, NULL) : NULL;
    bool is_own = c && probe_is_class(c);
    char shown[512];
    snprintf(shown, sizeof(shown), "%s", c ? c : "");
    shown[generated_name_normalize(shown, strlen(shown))] = 0;
    if (c && m && line > 0)
        snprintf(to, size, "%s.%s:%d", shown, m, (int)line);
    else if (c && m)
        snprintf(to, size, "%s.%s", shown, m);
    if (c)
        (*jni)->ReleaseStringUTFChars(jni, class_name, c);
    if (m)
        (*jni)->ReleaseStringUTFChars(jni, method, m);
    return is_own;
}

/*
 * Puts the place of the first frame of a stack trace that is not the agent's own; an agent's frame
 * is first when a stack overflows in a probe. Puts "?" when there is no frame, as in exceptions
 * that hot compiled code throws. Returns the number of the agent's frames before it.
 */
static jint first_frame(JNIEnv *jni, jthrowable t, char *to, size_t size)
{
    jclass throwable = (*jni)->FindClass(jni, "java/lang/Throwable");
    jmethodID ask = throwable ? (*jni)->GetMethodID(jni, throwable, "getStackTrace",
                                                    "()[Ljava/lang/StackTraceElement;")
                              : NULL;
    /*
     * This does not call an override in the exception's class, which would be code of the program.
     */
    jobjectArray trace =
        ask ? (jobjectArray)(*jni)->CallNonvirtualObjectMethod(jni, t, throwable, ask) : NULL;
    jint n = trace && !(*jni)->ExceptionCheck(jni) ? (*jni)->GetArrayLength(jni, trace) : 0;
    snprintf(to, size, "?");
    for (jint i = 0; i < n && (*jni)->PushLocalFrame(jni, 8) == 0; i++) {
        jobject frame = (*jni)->GetObjectArrayElement(jni, trace, i);
        bool is_own = frame && put_element(jni, frame, to, size);
        (*jni)->PopLocalFrame(jni, NULL);
        if (!is_own || (*jni)->ExceptionCheck(jni))
            return i;
    }
    return 0;
}

NATIVE(jlong, findImplicit)(JNIEnv *jni, jclass probe, jclass c, jthrowable t, jint to)
{
    char place[1024];
    if (!c || !t || thrown.off || (*jni)->PushLocalFrame(jni, 16) != 0) {
        vm_clear_exception(jni);
        return 0;
    }
    jint own = first_frame(jni, t, place, sizeof(place));
    vm_clear_exception(jni);
    jlong address = row_of(c, place, to ?: CAUGHT_NOWHERE);
    (*jni)->PopLocalFrame(jni, NULL);
    return own ? -address : address;
}

/* ---- the probes ---- */

/* Returns the number of a throw or handler, or 0 if there are too many. */
static int site(const struct instrument_class *c, const struct edit *e, uint32_t pc, bool handler)
{
    struct str name = class_utf8(c->file, e->method->name),
               descriptor = class_utf8(c->file, e->method->descriptor);
    char text[1024], class_name[512];
    uint64_t key =
        thrown_mix(hash_bytes(c->name.data, c->name.len), hash_bytes(name.data, name.len));
    key = thrown_mix(thrown_mix(key, hash_bytes(descriptor.data, descriptor.len)),
                     (uint64_t)pc << 1 | handler);
    names_dotted(c->name.data, class_name, MIN(sizeof(class_name), c->name.len + 1));
    class_name[generated_name_normalize(class_name, strlen(class_name))] = 0;
    unsigned line = edit_line(e, pc);
    snprintf(text, sizeof(text), line ? "%s.%.*s:%u" : "%s.%.*s", class_name, (int)name.len,
             name.data, line);
    pthread_mutex_lock(&thrown.lock);
    const uint64_t *known = map_get(&thrown.index, thrown_mix(key, hash_bytes(text, strlen(text))));
    int number = known ? (int)*known : 0;
    if (!known && thrown.sites.len == 0)
        (void)!vec_push(&thrown.sites, NULL);
    if (!known && thrown.sites.len > 0 && thrown.sites.len < SITES_MAX) {
        const char *copy = arena_copy(&thrown.arena, text, strlen(text));
        if (copy && vec_push(&thrown.sites, copy) == 0)
            number = (int)thrown.sites.len - 1;
        if (number && map_put(&thrown.index, thrown_mix(key, hash_bytes(text, strlen(text))),
                              (uint64_t)number) < 0)
            number = 0;
    }
    pthread_mutex_unlock(&thrown.lock);
    if (!number && !c->scanned)
        atomic_fetch_add(&thrown.left, 1);
    return number;
}

struct editing {
    const struct instrument_class *class;
    struct edit *edit;
    int result;
    bool any;
};

static void insert(struct editing *x, uint32_t pc, const char *name)
{
    _cleanup_(buf_release) struct buf code = BUF(16);
    int number = x->result < 0 ? 0 : site(x->class, x->edit, pc, strcmp(name, "caught") == 0);
    if (!number)
        return;
    int ref = rewrite_methodref(x->edit->rewrite, PROBE, name, "(Ljava/lang/Throwable;I)V");
    code_op(&code, OP_DUP);
    int r = ref < 0 ? ref : code_int(x->edit->rewrite, &code, number);
    if (r == 0) {
        code_invokestatic(&code, ref);
        r = edit_insert(x->edit, EDIT_BEFORE, pc, 0, &code, 3);
    }
    x->result = r;
    x->any = true;
}

static void insert_caught(void *context, uint32_t pc)
{
    insert(context, pc, "caught");
}

/*
 * Inserts a probe into ThreadGroup.uncaughtException(Thread, Throwable), which is called for
 * exceptions that no handler catches.
 */
static int insert_uncaught(struct edit *e)
{
    _cleanup_(buf_release) struct buf code = BUF(16);
    int ref = rewrite_methodref(e->rewrite, PROBE, "caught", "(Ljava/lang/Throwable;I)V");
    if (ref < 0)
        return ref;
    code_load(&code, 'A', 2);
    int r = code_int(e->rewrite, &code, 0);
    code_invokestatic(&code, ref);
    return r < 0 ? r : edit_insert(e, EDIT_ENTRY, 0, 0, &code, 2);
}

static int thrown_edit(const struct instrument_class *c, struct edit *e)
{
    struct editing x = {.class = c, .edit = e};
    if (c->thread && thrown.selected)
        return 0;
    if (str_is(c->name, "java/lang/ThreadGroup") &&
        str_is(class_utf8(c->file, e->method->name), "uncaughtException")) {
        x.result = insert_uncaught(e);
        x.any = true;
    }
    for (struct insn i = {0}; x.result == 0 && edit_next(e, &i);)
        if (i.op == OP_ATHROW)
            insert(&x, i.pc, "thrown");
    edit_handlers(e, insert_caught, &x);
    return x.result < 0 ? x.result : x.any;
}

static const struct instrument_client client = {
    .name = "exceptions", .edit = thrown_edit, .thread = true, .seldom = true};

int thrown_probes_on(JNIEnv *jni, bool selected, struct buf *why)
{
    thrown.selected = selected;
    thrown.partial = selected || vm.late;
    thrown.tid = probe_field_offset(jni, "java/lang/Thread", "tid", "J");
    thrown.backtrace =
        MAX(probe_field_offset(jni, "java/lang/Throwable", "backtrace", "Ljava/lang/Object;"), 0);
    thrown.lost = thrown.left = 0;
    if (thrown.tid < 0) {
        buf_string(why, "exceptions: the layout of java.lang.Thread is unknown");
        return -ENOTSUP;
    }
    int r = probe_define(jni, PROBE, &thrown.probe, why);
    thrown.off = true;
    return r < 0 ? r : instrument_on(&client, jni, why);
}

void thrown_probes_partial(void)
{
    thrown.partial = true;
}

void thrown_probes_begin(void)
{
    thrown.off = false;
}

void thrown_probes_off(JNIEnv *jni)
{
    thrown.off = true;
    instrument_off_later(&client, jni);
    jmethodID m =
        thrown.probe ? (*jni)->GetStaticMethodID(jni, thrown.probe, "forget", "()V") : NULL;
    if (m)
        (*jni)->CallStaticVoidMethod(jni, thrown.probe, m);
    vm_clear_exception(jni);
}

uint64_t thrown_probes_lost(void)
{
    return thrown.lost;
}

uint64_t thrown_probes_left(void)
{
    return thrown.left;
}
