/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/stacks/names.h"

#include "agent/stacks/class_watch.h"
#include "agent/stacks/stack.h"
#include "agent/vm/lambda.h"
#include "agent/vm/loaded_classes.h"
#include "agent/vm/shown_class.h"
#include "agent/vm/vm.h"
#include "base/arena.h"
#include "base/dotted.h"
#include "base/generated_name.h"
#include "base/hash.h"
#include "base/map.h"
#include "base/vec.h"
#include "classfile/classfile.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* JVM specification 4.6; the VM stores flags of its own in the bits above */
enum { METHOD_MODIFIERS = 0x1fff };

/* Rounds of names_drop after which a method that nobody has asked for is dropped. */
enum { ROUNDS_KEPT = 2 };

/* A method, followed by what it refers to. */
struct known {
    struct method method;
    uint64_t used;      /* the round in which it was last asked for */
    struct known *next; /* in the list of dropped methods */
    bool stays, found;  /* found: the method could be resolved */
};

static __thread struct arena arena; /* holds the method that this thread is reading from the VM */
/*
 * Protects everything below. It is not held during calls of the VM, in which a thread can be
 * suspended for as long as a debugger wants.
 */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct map methods; /* jmethodID -> struct known * */
static uint64_t unresolved, round_now;
static size_t bytes;
static struct map classes; /* hash of loader and name -> serial of the class */

static const char *keep(const char *s)
{
    return s ? arena_copy(&arena, s, strlen(s)) : NULL;
}

/* Returns the name as outputs show it (base/generated_name.h). */
static const char *keep_class_name(const char *name, size_t len,
                                   const struct generated_target *made)
{
    size_t extra = made->text[0] ? strlen(made->text) + 2 : 0;
    char *kept = arena_alloc(&arena, len + extra + 1);
    if (!kept)
        return NULL;
    memcpy(kept, name, len);
    len = generated_name_normalize_for(kept, len, made);
    kept[len] = 0;
    if (extra)
        snprintf(kept + len, extra + 1, "[%s]", made->text);
    return kept;
}

static int compare_lines(const void *a, const void *b)
{
    const struct method_line *x = a, *y = b;
    return (x->bci > y->bci) - (x->bci < y->bci);
}

static void learn_lines(struct method *m, jmethodID id)
{
    jint n = 0;
    jvmtiLineNumberEntry *entries = NULL;
    if (m->native || (*vm.ti)->GetLineNumberTable(vm.ti, id, &n, &entries) != JVMTI_ERROR_NONE)
        return;
    struct method_line *lines = arena_alloc(&arena, (size_t)MAX(n, 1) * sizeof(*lines));
    for (jint i = 0; lines && i < n; i++)
        lines[i] = (struct method_line){(uint32_t)entries[i].start_location,
                                        (uint32_t)entries[i].line_number};
    vm_free(entries);
    if (!lines)
        return;
    qsort(lines, (size_t)n, sizeof(*lines), compare_lines);
    m->lines = lines;
    m->n_lines = (size_t)n;
}

/* Returns the serial of a class that class_watch.h does not know. Requires the lock. */
static uint32_t unwatched_serial(uint64_t key)
{
    uint64_t *serial = map_at(&classes, key, UNWATCHED_CLASS_FIRST + classes.len, NULL);
    return serial ? (uint32_t)*serial : 0;
}

static uint32_t class_serial(JNIEnv *jni, jclass class, const char *signature)
{
    uint32_t watched = class_watch_serial(jni, class);
    if (watched)
        return watched;
    /* Classes of the same name are distinguished by the identity hashes of their loaders. */
    jobject loader = NULL;
    jint loader_hash = 0;
    if ((*vm.ti)->GetClassLoader(vm.ti, class, &loader) == JVMTI_ERROR_NONE && loader) {
        (*vm.ti)->GetObjectHashCode(vm.ti, loader, &loader_hash);
        (*jni)->DeleteLocalRef(jni, loader);
    }
    pthread_mutex_lock(&lock);
    uint32_t serial = unwatched_serial(hash_bytes(signature, strlen(signature)) ^
                                       hash_u64((uint32_t)loader_hash));
    pthread_mutex_unlock(&lock);
    return serial;
}

/*
 * Requires the lock.
 *
 * hidden: where the address begins in the name of a hidden class, which JVM TI and class_watch.h
 * separate by a dot. NULL: not hidden.
 */
static uint32_t walked_class_serial(const char *name, const char *hidden,
                                    const struct method_description *d)
{
    char *dotted = hidden ? strdup(name) : NULL;
    if (dotted)
        dotted[hidden - name] = '.';
    uint32_t watched = class_watch_find(dotted ? dotted : name, d->holder);
    free(dotted);
    return watched ? watched
                   : unwatched_serial(hash_bytes(name, strlen(name)) ^ hash_u64(d->loader));
}

static bool learn_class(JNIEnv *jni, struct method *m, jclass class)
{
    char *signature = NULL, *source = NULL;
    jint modifiers = 0;
    if ((*vm.ti)->GetClassSignature(vm.ti, class, &signature, NULL) != JVMTI_ERROR_NONE)
        return false;
    size_t len = strlen(signature);
    m->class_serial = class_serial(jni, class, signature);
    /* "Ljava/lang/String;"; a hidden class is "Lp/C.0x1234;" (JVM TI, GetClassSignature). */
    struct generated_target lambda = {0};
    lambda_target(class, signature, &lambda);
    m->class_name = len > 2 && signature[0] == 'L'
                        ? keep_class_name(signature + 1, len - 2, &lambda)
                        : keep(signature);
    m->hidden = strchr(signature, '.') != NULL;
    vm_free(signature);
    if ((*vm.ti)->GetSourceFileName(vm.ti, class, &source) == JVMTI_ERROR_NONE)
        m->source = keep(source);
    vm_free(source);
    (*vm.ti)->GetClassModifiers(vm.ti, class, &modifiers);
    m->class_modifiers = (uint32_t)modifiers;
    return m->class_name != NULL;
}

/* Reads a method from JVM TI. The lock must not be held. */
static struct method *learn(JNIEnv *jni, jmethodID id)
{
    struct method *m = arena_zalloc(&arena, sizeof(*m));
    jclass class = NULL;
    char *name = NULL, *descriptor = NULL;
    if (!m || (*vm.ti)->GetMethodDeclaringClass(vm.ti, id, &class) != JVMTI_ERROR_NONE || !class)
        return NULL;
    bool ok = (*vm.ti)->GetMethodName(vm.ti, id, &name, &descriptor, NULL) == JVMTI_ERROR_NONE &&
              learn_class(jni, m, class);
    jint modifiers = 0;
    (*vm.ti)->GetMethodModifiers(vm.ti, id, &modifiers);
    m->modifiers = (uint32_t)modifiers;
    m->native = modifiers & ACC_NATIVE;
    m->name = keep(name);
    m->descriptor = keep(descriptor);
    vm_free(name);
    vm_free(descriptor);
    if (ok)
        learn_lines(m, id);
    (*jni)->DeleteLocalRef(jni, class);
    return ok && m->name && m->descriptor ? m : NULL;
}

/*
 * Describes a method found by our own walker. Its names are read from the VM's structures without
 * creating a jmethodID. If its class was unloaded before that, the method is counted and gets a
 * name that says so. Requires the lock; does not call the VM.
 */
static struct method *learn_walked(uint64_t id)
{
    struct method_description d = {0};
    struct method *m = arena_zalloc(&arena, sizeof(*m));
    int r = m ? stack_vm_describe(id, &d) : -ENOMEM;
    if (r == -ESTALE) {
        unresolved++;
        *m = (struct method){
            .class_name = "", .name = "[unloaded]", .descriptor = "()V", .code = true};
        return m;
    }
    if (r < 0)
        return NULL;
    const char *source = buf_str(&d.source_file), *name = buf_str(&d.class_name);
    const char *hidden = strstr(name, "+0x");
    *m = (struct method){
        .class_name = keep_class_name(name, strlen(name), &d.lambda),
        .name = keep(buf_str(&d.name)),
        .descriptor = keep(buf_str(&d.signature)),
        .source = source[0] ? keep(source) : NULL,
        .modifiers = d.modifiers & METHOD_MODIFIERS,
        .native = d.modifiers & 0x0100,
        .hidden = hidden != NULL,
        .class_serial = walked_class_serial(name, hidden, &d),
    };
    struct method_line *lines =
        d.line_count ? arena_alloc(&arena, d.line_count * sizeof(*lines)) : NULL;
    for (size_t i = 0; lines && i < d.line_count; i++)
        lines[i] = (struct method_line){d.lines[i].bci, d.lines[i].line};
    if (lines) {
        qsort(lines, d.line_count, sizeof(*lines), compare_lines);
        m->lines = lines;
        m->n_lines = d.line_count;
    }
    method_description_release(&d);
    return m->class_name && m->name && m->descriptor ? m : NULL;
}

/*
 * Describes a function of a library, or code that the VM generated. Requires the lock; does not
 * call the VM.
 */
static struct method *learn_code(uint64_t id)
{
    struct method *m = arena_zalloc(&arena, sizeof(*m));
    struct buf library = BUF(4096), name = BUF(1 << 16);
    if (m && stack_vm_native_name(id, &library, &name) == 0) {
        *m = (struct method){.class_name = keep(buf_str(&library)),
                             .name = keep(buf_str(&name)),
                             .descriptor = "()V",
                             .native = true,
                             .code = true};
        m->class_serial =
            m->class_name ? unwatched_serial(hash_bytes(m->class_name, strlen(m->class_name))) : 0;
    }
    buf_release(&library);
    buf_release(&name);
    return m && m->class_name && m->name ? m : NULL;
}

/* ---- how long they are kept ---- */

static const char *take_text(char **at, const char *text)
{
    size_t n = text ? strlen(text) + 1 : 0;
    char *to = *at;
    *at += n;
    return text ? memcpy(to, text, n) : NULL;
}

static size_t size_of_text(const char *text)
{
    return text ? strlen(text) + 1 : 0;
}

static size_t size_of(const struct method *m)
{
    return sizeof(struct known) + m->n_lines * sizeof(*m->lines) + size_of_text(m->class_name) +
           size_of_text(m->name) + size_of_text(m->descriptor) + size_of_text(m->source);
}

/*
 * Copies a method into one block of memory, which the caller owns. m is NULL if the method could
 * not be resolved. Returns NULL if memory is exhausted.
 */
static struct known *settle(const struct method *m)
{
    struct known *k = calloc(1, m ? size_of(m) : sizeof(*k));
    if (!k || !m)
        return k;
    char *at = (char *)(k + 1);
    k->found = true;
    k->method = *m;
    if (m->n_lines)
        memcpy(at, m->lines, m->n_lines * sizeof(*m->lines));
    k->method.lines = (const struct method_line *)(void *)at;
    at += m->n_lines * sizeof(*m->lines);
    k->method.class_name = take_text(&at, m->class_name);
    k->method.name = take_text(&at, m->name);
    k->method.descriptor = take_text(&at, m->descriptor);
    k->method.source = take_text(&at, m->source);
    return k;
}

static size_t size_of_known(const struct known *k)
{
    return k->found ? size_of(&k->method) : sizeof(*k);
}

static struct known *enter(uint64_t id, const struct method *m)
{
    struct known *k = settle(m);
    if (k && map_put(&methods, id, (uintptr_t)k) < 0) {
        free(k);
        return NULL;
    }
    bytes += k ? size_of_known(k) : 0;
    return k;
}

/*
 * Dropped methods are freed when nobody can refer to them any more. For this, holds that began
 * before the drop are counted apart from those that began later.
 */
static struct {
    atomic_uint phase, holds[2];
    struct known *dropped[2]; /* by the phase in which they were dropped */
} limbo;

unsigned names_hold(void)
{
    for (;;) {
        unsigned phase = atomic_load(&limbo.phase) & 1;
        atomic_fetch_add(&limbo.holds[phase], 1);
        if ((atomic_load(&limbo.phase) & 1) == phase)
            return phase;
        atomic_fetch_sub(&limbo.holds[phase], 1);
    }
}

void names_unhold(unsigned hold)
{
    atomic_fetch_sub(&limbo.holds[hold], 1);
}

static void free_dropped(unsigned phase)
{
    for (struct known *k = limbo.dropped[phase], *next; k; k = next) {
        next = k->next;
        free(k);
    }
    limbo.dropped[phase] = NULL;
}

void names_tidy(void)
{
    pthread_mutex_lock(&lock);
    unsigned phase = atomic_load(&limbo.phase) & 1, before = phase ^ 1;
    if (limbo.dropped[before] && atomic_load(&limbo.holds[before]) == 0)
        free_dropped(before);
    /*
     * Holds that began in this phase may refer to methods that were dropped in it; holds of the
     * next phase cannot.
     */
    if (limbo.dropped[phase] && !limbo.dropped[before] && !atomic_load(&limbo.holds[before]))
        atomic_store(&limbo.phase, before);
    pthread_mutex_unlock(&lock);
}

void names_drop(void)
{
    VEC(uint64_t) gone = {0};
    uint64_t id, value;
    pthread_mutex_lock(&lock);
    unsigned phase = atomic_load(&limbo.phase) & 1;
    round_now++;
    for (size_t i = 0; map_next(&methods, &i, &id, &value);) {
        const struct known *k = (struct known *)(uintptr_t)value;
        if (!k->stays && k->used + ROUNDS_KEPT < round_now && vec_push(&gone, id))
            break; /* out of memory; the next round drops them */
    }
    for (size_t i = 0; i < gone.len; i++) {
        struct known *k = (struct known *)(uintptr_t)*map_get(&methods, gone.data[i]);
        map_remove(&methods, gone.data[i]);
        bytes -= size_of_known(k);
        k->next = limbo.dropped[phase];
        limbo.dropped[phase] = k;
    }
    if (gone.len)
        /* only HPROF's outputs use these serials, and then nothing is dropped */
        map_clear(&classes);
    pthread_mutex_unlock(&lock);
    vec_release(&gone);
}

static struct known *find_known(uint64_t id)
{
    const uint64_t *value = map_get(&methods, id);
    return value ? (struct known *)(uintptr_t)*value : NULL;
}

static struct known *enter_learnt(uint64_t id, const struct method *m)
{
    unresolved += !m;
    return enter(id, m);
}

const struct method *names_method(JNIEnv *jni, jmethodID method)
{
    uint64_t id = (uintptr_t)method;
    pthread_mutex_lock(&lock);
    struct known *k = find_known(id);
    if (!k && (!id || stack_vm_is_java(id) || stack_vm_is_code(id))) {
        k = enter_learnt(id, !id ? NULL : stack_vm_is_java(id) ? learn_walked(id) : learn_code(id));
    } else if (!k) {
        pthread_mutex_unlock(&lock);
        const struct method *m = learn(jni, method);
        pthread_mutex_lock(&lock);
        /* Another thread may have added the method meanwhile. */
        k = find_known(id);
        if (!k)
            k = enter_learnt(id, m);
    }
    if (k)
        k->used = round_now;
    pthread_mutex_unlock(&lock);
    arena_release(&arena);
    return k && k->found ? &k->method : NULL;
}

jmethodID names_add(const struct method *m)
{
    /* User-space addresses and the VM's own ids do not use the highest bit. */
    static uint64_t last = UINT64_C(1) << 63;
    bool whole = m->class_name && m->name && m->descriptor;
    pthread_mutex_lock(&lock);
    struct known *k = whole ? enter(last + 1, m) : NULL;
    jmethodID id = k ? (jmethodID)(uintptr_t)++last : NULL;
    if (k)
        k->stays = true;
    pthread_mutex_unlock(&lock);
    return id;
}

uint32_t names_method_line(const struct method *m, int32_t bci)
{
    uint32_t line = 0;
    for (size_t i = 0; bci >= 0 && i < m->n_lines && m->lines[i].bci <= (uint32_t)bci; i++)
        line = m->lines[i].line;
    return line;
}

void names_dotted(const char *internal, char *to, size_t size)
{
    dotted_copy(to, size, (struct str){internal, strlen(internal)});
}

char *names_class_text(jclass c)
{
    _cleanup_free_ char *signature = shown_class_signature(c);
    char name[512] = "?";
    if (signature && strlen(signature) > 2) {
        names_dotted(signature + 1, name, sizeof(name));
        name[strcspn(name, ";")] = 0;
    }
    return strdup(name);
}

void names_touch_class(jclass c)
{
    jint n = 0;
    jmethodID *ids = NULL;
    (*vm.ti)->GetClassMethods(vm.ti, c, &n, &ids);
    vm_free(ids);
}

void names_touch_all_classes(JNIEnv *jni)
{
    _cleanup_(loaded_classes_release) struct loaded_classes all = {0};
    if (loaded_classes(vm.ti, jni, &all) < 0)
        return;
    for (jint i = 0; i < all.n; i++)
        names_touch_class(all.of[i]);
}

uint64_t names_unresolved(void)
{
    return unresolved;
}

void names_status(struct buf *out)
{
    pthread_mutex_lock(&lock);
    buf_printf(out, "names.methods %zu\nnames.bytes %zu\n", methods.len, bytes);
    pthread_mutex_unlock(&lock);
}

void names_release(void)
{
    uint64_t id, value;
    pthread_mutex_lock(&lock);
    for (size_t i = 0; map_next(&methods, &i, &id, &value);)
        free((void *)(uintptr_t)value);
    map_release(&methods);
    map_release(&classes);
    free_dropped(0);
    free_dropped(1);
    unresolved = 0;
    bytes = 0;
    pthread_mutex_unlock(&lock);
}
