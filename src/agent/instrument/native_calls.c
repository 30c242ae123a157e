/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/instrument/native_calls.h"

#include "agent/instrument/choice.h"
#include "agent/instrument/instrument.h"
#include "agent/instrument/native_symbols.h"
#include "agent/instrument/native_thunks.h"
#include "agent/instrument/probe_class.h"
#include "agent/vm/loaded_classes.h"
#include "agent/vm/vm.h"
#include "base/arena.h"
#include "base/hash.h"
#include "base/map.h"
#include "classfile/classfile.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

enum { ARGUMENTS_MAX = 255, NATIVE = 0x100 };

/* A native method and its thunk. Rows are never freed, because a thread may be inside the thunk. */
struct row {
    void *function; /* the function that was bound */
    jmethodID method;
    struct str descriptor;
    unsigned stack_words;
    bool is_static;
    /* the client's number + 1; 0: this client does not want it */
    _Atomic int numbers[THUNK_CLIENTS];
};

static struct {
    pthread_mutex_t lock; /* protects the list of rows and the index */
    _Atomic(const struct native_client *) clients[THUNK_CLIENTS];
    _Atomic int inside; /* calls of clients' functions in progress */
    struct row rows[NATIVE_THUNKS ? NATIVE_THUNKS : 1];
    unsigned n_rows;
    struct map index;   /* jmethodID -> index of the row */
    struct map classes; /* hashes of the names of classes with rows */
    struct arena arena;
    jclass binder;
    jmethodID set, again;
    _Atomic uint64_t no_thunk;
} natives = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* This thread is in a client's function, so native calls are not the program's. */
static __thread bool in_client;

/* ---- calls ---- */

static jvalue of_register(char type, uint64_t word)
{
    jvalue v = {.j = (jlong)word};
    switch (type) {
    case 'Z':
        v.z = (jboolean)((uint8_t)word != 0);
        break;
    case 'B':
        v.b = (jbyte)word;
        break;
    case 'C':
        v.c = (jchar)word;
        break;
    case 'S':
        v.s = (jshort)word;
        break;
    case 'I':
        v.i = (jint)word;
        break;
    default:
        break; /* a float is the low half of a long */
    }
    return v;
}

/*
 * The arguments of a call according to the C calling convention: the first in registers, with
 * separate registers for integers and reals.
 */
static void arguments(const struct native_frame *f, struct str descriptor, jvalue *ret)
{
    unsigned integers = 2, reals = 0, slots; /* after JNIEnv and the object or class */
    const uint64_t *stack = f->stack;
    for (size_t at = 1, len; (len = class_descriptor_next(descriptor, at, &slots)); at += len) {
        char type = descriptor.data[at];
        bool real = type == 'F' || type == 'D';
        uint64_t word;
        if (real && reals < THUNK_REALS)
            memcpy(&word, &f->reals[reals++], sizeof(word));
        else if (!real && integers < THUNK_INTEGERS)
            word = f->integers[integers++];
        else
            word = *stack++;
        *ret++ = of_register(type, word);
    }
}

/*
 * Returns a client and prevents its removal until natives.inside is decreased again; NULL when it
 * is not present or does not want the method.
 */
static const struct native_client *enter_client(const struct row *r, int k, int *ret_number)
{
    if (!atomic_load_explicit(&r->numbers[k], memory_order_relaxed))
        return NULL;
    atomic_fetch_add(&natives.inside, 1);
    const struct native_client *c = atomic_load(&natives.clients[k]);
    *ret_number = atomic_load(&r->numbers[k]) - 1;
    if (c && *ret_number >= 0)
        return c;
    atomic_fetch_sub(&natives.inside, 1);
    return NULL;
}

static struct native_call call_of(const struct native_frame *f, const struct row *r, int number)
{
    return (struct native_call){.jni = (JNIEnv *)(uintptr_t)f->integers[0],
                                .number = number,
                                .descriptor = r->descriptor,
                                .is_static = r->is_static,
                                .self = (jobject)(uintptr_t)f->integers[1]};
}

static void enter_clients(struct native_frame *f, const struct row *r)
{
    jvalue args[ARGUMENTS_MAX];
    int number;
    arguments(f, r->descriptor, args);
    in_client = true;
    for (int k = 0; k < THUNK_CLIENTS; k++) {
        const struct native_client *client = enter_client(r, k, &number);
        if (!client)
            continue;
        struct native_call call = call_of(f, r, number);
        call.args = args;
        client->enter(&call);
        f->tokens[k] = call.token;
        f->seen |= 1u << k;
        atomic_fetch_sub(&natives.inside, 1);
    }
    in_client = false;
}

void native_thunk_enter(struct native_frame *f)
{
    const struct row *r = &natives.rows[f->index];
    f->function = r->function;
    f->stack_words = r->stack_words;
    f->seen = 0;
    if (!in_client)
        enter_clients(f, r);
}

void native_thunk_exit(struct native_frame *f)
{
    const struct row *r = &natives.rows[f->index];
    JNIEnv *jni = (JNIEnv *)(uintptr_t)f->integers[0];
    if (!f->seen)
        return;
    jthrowable thrown = (*jni)->ExceptionOccurred(jni);
    if (thrown)
        (*jni)->ExceptionClear(jni);
    in_client = true;
    for (int k = 0, number; k < THUNK_CLIENTS; k++) {
        const struct native_client *client = f->seen & 1u << k ? enter_client(r, k, &number) : NULL;
        if (!client)
            continue;
        char type = strchr(r->descriptor.data, ')')[1];
        struct native_call call = call_of(f, r, number);
        uint64_t word = f->integer;
        if (type == 'F' || type == 'D')
            memcpy(&word, &f->real, sizeof(word));
        call.token = f->tokens[k];
        call.result = of_register(type, word);
        call.thrown = thrown;
        client->exit(&call);
        atomic_fetch_sub(&natives.inside, 1);
    }
    in_client = false;
    if (thrown) {
        (*jni)->Throw(jni, thrown);
        (*jni)->DeleteLocalRef(jni, thrown);
    }
}

/* ---- choice of methods ---- */

/*
 * Probes call natives of Object and Thread while they write a record, so classes that are never
 * instrumented are not wrapped either.
 */
static bool client_wants_class(const struct native_client *c, struct str class_name)
{
    return c && !choice_is_excluded(class_name) && c->wants_class(class_name);
}

static bool class_wanted(struct str class_name)
{
    bool is = false;
    for (int k = 0; k < THUNK_CLIENTS && !is; k++)
        is = client_wants_class(atomic_load(&natives.clients[k]), class_name);
    return is;
}

/* Stores the clients' numbers + 1 for a method. Returns false if no client wants it. */
static bool ask_clients(const struct native_method *m, int numbers[THUNK_CLIENTS])
{
    bool any = false;
    for (int k = 0; k < THUNK_CLIENTS; k++) {
        const struct native_client *c = atomic_load(&natives.clients[k]);
        numbers[k] = client_wants_class(c, m->class_name) ? MAX(c->wants(m) + 1, 0) : 0;
        any |= numbers[k] > 0;
    }
    return any;
}

static struct row *row_of(jmethodID id)
{
    pthread_mutex_lock(&natives.lock);
    const uint64_t *at = map_get(&natives.index, (uintptr_t)id);
    struct row *r = at ? &natives.rows[*at] : NULL;
    pthread_mutex_unlock(&natives.lock);
    return r;
}

/* Returns the thunk of a method that a client wants, or NULL if none is left. */
static void *thunk_of(jmethodID id, const struct native_method *m, void *function,
                      const int numbers[THUNK_CLIENTS])
{
    void *thunk = NULL;
    pthread_mutex_lock(&natives.lock);
    const uint64_t *at = map_get(&natives.index, (uintptr_t)id);
    unsigned n = at ? (unsigned)*at : natives.n_rows;
    const char *descriptor = at ? NULL
                                : arena_copy(&natives.arena, m->descriptor.data,
                                             /*
                                              * never freed, because a thread may be inside the
                                              * thunk
                                              */
                                             m->descriptor.len);
    if (n < NATIVE_THUNKS &&
        (at || (descriptor && map_put(&natives.index, (uintptr_t)id, n) == 0))) {
        struct row *r = &natives.rows[n];
        if (!at) {
            r->method = id;
            r->descriptor = (struct str){descriptor, m->descriptor.len};
            r->stack_words = native_stack_words(r->descriptor);
            r->is_static = m->is_static;
            natives.n_rows++;
        }
        r->function = function;
        for (int k = 0; k < THUNK_CLIENTS; k++)
            atomic_store(&r->numbers[k], numbers[k]);
        thunk = native_thunk(n);
        (void)!map_put(&natives.classes, hash_bytes(m->class_name.data, m->class_name.len), 1);
    } else {
        atomic_fetch_add(&natives.no_thunk, 1);
    }
    pthread_mutex_unlock(&natives.lock);
    return thunk;
}

/* A method, with the strings of JVM TI that describe it. */
struct described {
    struct native_method m;
    char *name, *descriptor;
};

static bool describe(jmethodID id, struct str class_name, struct described *ret)
{
    jint modifiers = 0;
    *ret = (struct described){.m.class_name = class_name};
    if ((*vm.ti)->GetMethodModifiers(vm.ti, id, &modifiers) != JVMTI_ERROR_NONE ||
        !(modifiers & NATIVE) ||
        (*vm.ti)->GetMethodName(vm.ti, id, &ret->name, &ret->descriptor, NULL) != JVMTI_ERROR_NONE)
        return false;
    ret->m.name = (struct str){ret->name, strlen(ret->name)};
    ret->m.descriptor = (struct str){ret->descriptor, strlen(ret->descriptor)};
    ret->m.is_static = modifiers & ACC_STATIC;
    return true;
}

static void described_release(struct described *d)
{
    vm_free(d->name);
    vm_free(d->descriptor);
}

/*
 * Returns "java/lang/String" for a class, as a part of *ret_signature, which JVM TI allocated;
 * empty for arrays.
 */
static struct str name_of(jclass c, char **ret_signature)
{
    *ret_signature = NULL;
    if ((*vm.ti)->GetClassSignature(vm.ti, c, ret_signature, NULL) != JVMTI_ERROR_NONE ||
        !*ret_signature || **ret_signature != 'L')
        return (struct str){"", 0};
    size_t len = strlen(*ret_signature) - 2;
    (*ret_signature)[len + 1] = 0;
    return (struct str){*ret_signature + 1, len};
}

static bool has_rows(struct str class_name)
{
    pthread_mutex_lock(&natives.lock);
    bool has = map_get(&natives.classes, hash_bytes(class_name.data, class_name.len)) != NULL;
    pthread_mutex_unlock(&natives.lock);
    return has;
}

static void JNICALL on_bind(jvmtiEnv *ti, JNIEnv *jni, jthread thread, jmethodID id, void *function,
                            void **new_function)
{
    jclass c = NULL;
    char *signature;
    int numbers[THUNK_CLIENTS];
    if (native_is_thunk(function) || (*ti)->GetMethodDeclaringClass(ti, id, &c) != JVMTI_ERROR_NONE)
        return;
    struct str class_name = name_of(c, &signature);
    struct described d;
    if (class_name.len && (has_rows(class_name) || class_wanted(class_name)) &&
        describe(id, class_name, &d)) {
        bool wanted = ask_clients(&d.m, numbers);
        struct row *r = wanted ? NULL : row_of(id);
        void *thunk = wanted ? thunk_of(id, &d.m, function, numbers) : NULL;
        if (thunk)
            *new_function = thunk;
        if (r)
            r->function = function;
        described_release(&d);
    }
    vm_free(signature);
    (*jni)->DeleteLocalRef(jni, c);
}

static const struct vm_callbacks events = {.ti = {.NativeMethodBind = on_bind}};

/* ---- methods that are already bound ---- */

EXPORT void JNICALL Java_java_lang_JvmscopeNatives_register(JNIEnv *jni, jclass binder, jclass c,
                                                            jstring name, jstring descriptor,
                                                            jlong function);

void JNICALL Java_java_lang_JvmscopeNatives_register(JNIEnv *jni, jclass binder, jclass c,
                                                     jstring name, jstring descriptor,
                                                     jlong function)
{
    if (!c)
        return;
    const char *n = (*jni)->GetStringUTFChars(jni, name, NULL),
               *d = (*jni)->GetStringUTFChars(jni, descriptor, NULL);
    JNINativeMethod method = {(char *)n, (char *)d, (void *)(uintptr_t)function};
    if (n && d)
        (void)(*jni)->RegisterNatives(jni, c, &method, 1);
    if (n)
        (*jni)->ReleaseStringUTFChars(jni, name, n);
    if (d)
        (*jni)->ReleaseStringUTFChars(jni, descriptor, d);
}

static void bind_to(JNIEnv *jni, jclass c, const struct described *d, void *function)
{
    jstring name = (*jni)->NewStringUTF(jni, d->name),
            descriptor = (*jni)->NewStringUTF(jni, d->descriptor);
    if (name && descriptor)
        (*jni)->CallStaticVoidMethod(jni, natives.binder, natives.set, c, name, descriptor,
                                     (jlong)(uintptr_t)function);
    vm_clear_exception(jni);
    (*jni)->DeleteLocalRef(jni, name);
    (*jni)->DeleteLocalRef(jni, descriptor);
}

typedef jint(JNICALL *register_natives)(JNIEnv *, jclass, const JNINativeMethod *, jint);
static register_natives real_register;
static __thread bool registering_again;

/*
 * Replaces RegisterNatives while a class registers its methods again. Only methods without a thunk
 * are rebound.
 */
static jint JNICALL our_register(JNIEnv *jni, jclass c, const JNINativeMethod *methods, jint n)
{
    char *signature;
    int numbers[THUNK_CLIENTS];
    if (!registering_again)
        return real_register(jni, c, methods, n);
    struct str class_name = name_of(c, &signature);
    for (jint i = 0; class_name.len && i < n; i++) {
        jmethodID id = (*jni)->GetStaticMethodID(jni, c, methods[i].name, methods[i].signature);
        struct described d;
        if (!id) {
            vm_clear_exception(jni);
            id = (*jni)->GetMethodID(jni, c, methods[i].name, methods[i].signature);
        }
        vm_clear_exception(jni);
        if (!id || row_of(id) || !describe(id, class_name, &d))
            continue;
        JNINativeMethod one = methods[i];
        if (ask_clients(&d.m, numbers) && (one.fnPtr = thunk_of(id, &d.m, one.fnPtr, numbers)))
            (void)real_register(jni, c, &one, 1);
        described_release(&d);
    }
    vm_free(signature);
    return JNI_OK;
}

EXPORT void JNICALL Java_java_lang_JvmscopeNatives_again(JNIEnv *jni, jclass binder, jclass c);

/* Runs as Java code of the boot loader, as the caller of the class's own registerNatives. */
void JNICALL Java_java_lang_JvmscopeNatives_again(JNIEnv *jni, jclass binder, jclass c)
{
    jniNativeInterface *table = NULL;
    jmethodID m = c ? (*jni)->GetStaticMethodID(jni, c, "registerNatives", "()V") : NULL;
    vm_clear_exception(jni);
    if (!m || (*vm.ti)->GetJNIFunctionTable(vm.ti, &table) != JVMTI_ERROR_NONE)
        return;
    real_register = table->RegisterNatives;
    table->RegisterNatives = our_register;
    if ((*vm.ti)->SetJNIFunctionTable(vm.ti, table) == JVMTI_ERROR_NONE) {
        registering_again = true;
        (*jni)->CallStaticVoidMethod(jni, c, m);
        vm_clear_exception(jni);
        registering_again = false;
        table->RegisterNatives = real_register;
        (void)(*vm.ti)->SetJNIFunctionTable(vm.ti, table);
    }
    vm_free(table);
}

/*
 * Updates a method that has a thunk according to what the clients want now: gives it other numbers,
 * or its original function.
 */
static void wrap_row(JNIEnv *jni, jclass c, const struct described *d, struct row *r)
{
    int numbers[THUNK_CLIENTS];
    bool wanted = ask_clients(&d->m, numbers), was = false;
    for (int k = 0; k < THUNK_CLIENTS; k++)
        was |= atomic_exchange(&r->numbers[k], numbers[k]) != 0;
    if (wanted != was)
        bind_to(jni, c, d, wanted ? native_thunk((unsigned)(r - natives.rows)) : r->function);
}

static void wrap_method(JNIEnv *jni, jclass c, struct str class_name, jmethodID id,
                        bool *ret_registered)
{
    struct described d;
    int numbers[THUNK_CLIENTS];
    if (!describe(id, class_name, &d))
        return;
    struct row *r = row_of(id);
    void *function = r ? NULL : native_symbol(class_name, d.m.name, d.m.descriptor);
    if (r) {
        wrap_row(jni, c, &d, r);
    } else if (!function) {
        *ret_registered = true;
    } else if (ask_clients(&d.m, numbers)) {
        void *thunk = thunk_of(id, &d.m, function, numbers);
        if (thunk)
            bind_to(jni, c, &d, thunk);
    }
    described_release(&d);
}

/* Returns whether a class belongs to the JDK but was not loaded by the boot loader. */
static bool is_platforms(jclass c, struct str class_name, JNIEnv *jni)
{
    jobject loader = NULL;
    (*vm.ti)->GetClassLoader(vm.ti, c, &loader);
    bool is = loader && instrument_is_jdk(class_name);
    (*jni)->DeleteLocalRef(jni, loader);
    return is;
}

static void wrap_class(JNIEnv *jni, jclass c, struct str class_name)
{
    jint n = 0;
    jmethodID *ids = NULL;
    bool registered = false;
    if (is_platforms(c, class_name, jni) ||
        (*vm.ti)->GetClassMethods(vm.ti, c, &n, &ids) != JVMTI_ERROR_NONE)
        return;
    for (jint i = 0; i < n; i++)
        wrap_method(jni, c, class_name, ids[i], &registered);
    if (registered && instrument_is_jdk(class_name))
        (*jni)->CallStaticVoidMethod(jni, natives.binder, natives.again, c);
    vm_clear_exception(jni);
    vm_free(ids);
}

static void wrap_loaded(JNIEnv *jni)
{
    _cleanup_(loaded_classes_release) struct loaded_classes all = {0};
    if (loaded_classes(vm.ti, jni, &all) < 0)
        return;
    for (jint i = 0; i < all.n; i++) {
        char *signature;
        struct str name = name_of(all.of[i], &signature);
        if (name.len && (has_rows(name) || class_wanted(name)))
            wrap_class(jni, all.of[i], name);
        vm_free(signature);
    }
}

static bool any_client(void)
{
    for (int k = 0; k < THUNK_CLIENTS; k++)
        if (atomic_load(&natives.clients[k]))
            return true;
    return false;
}

int native_calls_on(const struct native_client *c, JNIEnv *jni, struct buf *why)
{
    jvmtiCapabilities needs = {.can_generate_native_method_bind_events = 1}, missing = {0};
    int k = 0;
    int r = NATIVE_THUNKS ? vm_need(&needs, &missing) : -ENOTSUP;
    if (r < 0 || !vm_capabilities_empty(&missing)) {
        buf_printf(why, "%s: native methods cannot be seen on this machine", c->name);
        return -ENOTSUP;
    }
    r = probe_define(jni, "java/lang/JvmscopeNatives", &natives.binder, why);
    if (r < 0)
        return r;
    natives.set = (*jni)->GetStaticMethodID(
        jni, natives.binder, "set", "(Ljava/lang/Class;Ljava/lang/String;Ljava/lang/String;J)V");
    natives.again = (*jni)->GetStaticMethodID(jni, natives.binder, "again", "(Ljava/lang/Class;)V");
    while (k < THUNK_CLIENTS && atomic_load(&natives.clients[k]))
        k++;
    if (!natives.set || !natives.again || k == THUNK_CLIENTS) {
        buf_printf(why, "%s: calls of native methods have too many observers", c->name);
        return -ENOSPC;
    }
    if (!any_client())
        natives.no_thunk = 0;
    if (!any_client() && !natives.n_rows && (r = vm_events_on(&events)) < 0) {
        buf_printf(why, "%s: native methods cannot be observed: %s", c->name, strerror(-r));
        return r;
    }
    atomic_store(&natives.clients[k], c);
    wrap_loaded(jni);
    return 0;
}

void native_calls_change(JNIEnv *jni)
{
    wrap_loaded(jni);
}

void native_calls_off(const struct native_client *c, JNIEnv *jni)
{
    bool was = false;
    for (int k = 0; k < THUNK_CLIENTS; k++) {
        if (atomic_load(&natives.clients[k]) != c)
            continue;
        atomic_store(&natives.clients[k], NULL);
        was = true;
    }
    if (!was)
        return;
    while (atomic_load(&natives.inside))
        nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
    /*
     * The event remains enabled while there are rows, because a stop has to restore methods that
     * are bound meanwhile, and another start has to use them.
     */
    if (!any_client() && !natives.n_rows)
        vm_events_off(&events);
    if (!vm.dying)
        wrap_loaded(jni);
}

void native_calls_status(struct buf *out)
{
    unsigned n = 0;
    for (unsigned i = 0; i < natives.n_rows; i++) {
        bool wanted = false;
        for (int k = 0; k < THUNK_CLIENTS; k++)
            wanted |= atomic_load(&natives.rows[i].numbers[k]) != 0;
        n += wanted;
    }
    buf_printf(out, "native.methods %u\nnative.lost_no_thunk %llu\n", n,
               (unsigned long long)natives.no_thunk);
}
