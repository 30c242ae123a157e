/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/capture/trace/paths.h"

#include "agent/capture/trace/constants.h"
#include "agent/capture/trace/drain.h"
#include "agent/capture/trace/impossible.h"
#include "agent/instrument/named_class.h"
#include "agent/instrument/probe_class.h"
#include "agent/vm/field_guess.h"
#include "agent/vm/loaded_classes.h"
#include "agent/vm/shown_class.h"
#include "agent/vm/vm.h"

#include "base/dotted.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* JvmscopeTrace.java has the same values. */
enum { NAMES_MAX = 256, STATICS_MAX = 64, STEPS_MAX = 16 };

enum { NO_FIELD = -1 };

static struct {
    pthread_mutex_t lock;
    char *names[NAMES_MAX]; /* never freed, because code may still refer to them */
    unsigned n_names;
    char *statics[STATICS_MAX]; /* pkg.Class.f.g */
    bool found[STATICS_MAX];
    unsigned n_statics;
    /* "pkg.Class.field" that may be meant where there is no field of the name; NULL: none */
    char *similar_names[NAMES_MAX], *similar_statics[STATICS_MAX];
} paths = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Returns the number of a text in a table, to which it is added if it is new, or -ENOTSUP. */
static int number_of(char **table, unsigned *n, unsigned max, const char *text, size_t len)
{
    int r = -ENOTSUP;
    pthread_mutex_lock(&paths.lock);
    for (unsigned i = 0; i < *n && r < 0; i++)
        if (strlen(table[i]) == len && memcmp(table[i], text, len) == 0)
            r = (int)i;
    char *copy = r < 0 && *n < max ? strndup(text, len) : NULL;
    if (copy) {
        table[*n] = copy;
        r = (int)(*n)++;
    }
    pthread_mutex_unlock(&paths.lock);
    return r;
}

static int name_number(const char *name, size_t len)
{
    return number_of(paths.names, &paths.n_names, NAMES_MAX, name, len);
}

int trace_path(struct edit *e, struct buf *code, const char *path, unsigned id)
{
    int r = 0;
    for (const char *at = path; r == 0 && *at;) {
        size_t n = strcspn(at, ".");
        bool last = !at[n];
        int name = name_number(at, n);
        r = name < 0 ? name : last ? code_int(e->rewrite, code, (int32_t)id) : 0;
        if (r == 0)
            r = code_int(e->rewrite, code, name);
        if (r == 0)
            r = last ? code_call_static(e->rewrite, code, TRACE_PROBE, "path",
                                        "(JLjava/lang/Object;II)J")
                     : code_call_static(e->rewrite, code, TRACE_PROBE, "step",
                                        "(Ljava/lang/Object;I)Ljava/lang/Object;");
        at += n + !last;
    }
    return r;
}

int trace_path_name_static(const char *path)
{
    return number_of(paths.statics, &paths.n_statics, STATICS_MAX, path, strlen(path));
}

int trace_path_static(struct edit *e, struct buf *code, const char *path, unsigned id)
{
    int number = trace_path_name_static(path);
    int r = number < 0 ? number : code_int(e->rewrite, code, (int32_t)id);
    if (r == 0)
        r = code_int(e->rewrite, code, number);
    return r < 0 ? r : code_call_static(e->rewrite, code, TRACE_PROBE, "staticPath", "(JII)J");
}

/* ---- fields of classes ---- */

struct field {
    int64_t place; /* type << 56 | offset; NO_FIELD */
    char *signature;
};

/* Finds a field that the class itself declares. The caller frees the signature. */
static struct field declared(JNIEnv *jni, jclass c, const char *name, size_t len, bool is_static)
{
    struct field ret = {.place = NO_FIELD};
    jint n = 0;
    jfieldID *fields = NULL;
    if ((*vm.ti)->GetClassFields(vm.ti, c, &n, &fields) != JVMTI_ERROR_NONE)
        return ret;
    for (jint i = 0; i < n && ret.place == NO_FIELD; i++) {
        char *own = NULL, *signature = NULL;
        jint modifiers = 0;
        (*vm.ti)->GetFieldModifiers(vm.ti, c, fields[i], &modifiers);
        if (!(modifiers & 8) == is_static ||
            (*vm.ti)->GetFieldName(vm.ti, c, fields[i], &own, &signature, NULL) != JVMTI_ERROR_NONE)
            continue;
        if (strlen(own) == len && memcmp(own, name, len) == 0) {
            jobject reflected = (*jni)->ToReflectedField(jni, c, fields[i], is_static);
            int64_t offset = reflected ? probe_reflected_offset(jni, reflected, is_static) : -1;
            uint64_t type = (uint8_t)(*signature == '[' ? 'L' : *signature);
            vm_clear_exception(jni);
            if (offset > 0)
                ret = (struct field){(int64_t)(type << 56 | (uint64_t)offset), strdup(signature)};
        }
        vm_free(own);
        vm_free(signature);
    }
    vm_free(fields);
    return ret;
}

/* Remembers a field of a class that may be meant by a name of which it has none. */
static void remember_similar(JNIEnv *jni, jclass c, const char *field, char **similar)
{
    struct field_guess g = {0};
    struct nearest length = {.word = field};
    _cleanup_free_ char *signature = shown_class_signature(c);
    field_guess_see(&g, jni, c, field);
    if (signature && *signature == '[' && nearest_try(&length, "length"))
        snprintf(g.name, sizeof(g.name), "length");
    pthread_mutex_lock(&paths.lock);
    if (!*similar && *g.name)
        *similar = strdup(g.name);
    pthread_mutex_unlock(&paths.lock);
}

char *trace_path_similar(const char *path, size_t len)
{
    const char *found = NULL, *end = path + len;
    pthread_mutex_lock(&paths.lock);
    for (unsigned i = 0; i < paths.n_statics && !found; i++) {
        size_t n = strlen(paths.statics[i]);
        if (n <= len && memcmp(path, paths.statics[i], n) == 0 && (n == len || path[n] == '.'))
            found = paths.similar_statics[i];
    }
    /* The first name is a local or this. */
    for (const char *at = memchr(path, '.', len); at && at < end && !found;) {
        const char *next = memchr(at + 1, '.', (size_t)(end - at - 1));
        size_t n = (size_t)((next ? next : end) - at - 1);
        for (unsigned i = 0; i < paths.n_names && !found; i++)
            if (strlen(paths.names[i]) == n && memcmp(paths.names[i], at + 1, n) == 0)
                found = paths.similar_names[i];
        at = next;
    }
    char *ret = found ? strdup(found) : NULL;
    pthread_mutex_unlock(&paths.lock);
    return ret;
}

EXPORT jlong JNICALL Java_java_lang_JvmscopeTrace_place(JNIEnv *jni, jclass class, jclass c,
                                                        jint name);

/* Returns the offset, in objects of a class, of a field that the class or a superclass declares. */
jlong JNICALL Java_java_lang_JvmscopeTrace_place(JNIEnv *jni, jclass class, jclass c, jint name)
{
    pthread_mutex_lock(&paths.lock);
    const char *text = name >= 0 && name < (jint)paths.n_names ? paths.names[name] : NULL;
    pthread_mutex_unlock(&paths.lock);
    if (!c || !text || (*jni)->PushLocalFrame(jni, 128) < 0) {
        vm_clear_exception(jni);
        return NO_FIELD;
    }
    struct field f = {.place = NO_FIELD};
    for (jclass k = c; k && f.place == NO_FIELD; k = (*jni)->GetSuperclass(jni, k))
        f = declared(jni, k, text, strlen(text), false);
    free(f.signature);
    if (f.place == NO_FIELD)
        remember_similar(jni, c, text, &paths.similar_names[name]);
    vm_clear_exception(jni);
    (*jni)->PopLocalFrame(jni, NULL);
    return f.place;
}

/* ---- static fields ---- */

/*
 * Returns the rest of the path after the class name at its beginning, or NULL if it begins with
 * another class.
 */
static const char *after_class(const char *path, struct str name)
{
    for (size_t i = 0; i < name.len; i++)
        if (path[i] != dotted(name.data[i]))
            return NULL;
    return path[name.len] == '.' ? path + name.len + 1 : NULL;
}

/* Sets an element of one of the probe class's arrays. */
static void put_place(JNIEnv *jni, const char *array, int number, jlong value)
{
    jfieldID f = (*jni)->GetStaticFieldID(jni, drain_probe(), array, "[J");
    jobject a = f ? (*jni)->GetStaticObjectField(jni, drain_probe(), f) : NULL;
    if (a)
        (*jni)->SetLongArrayRegion(jni, a, number, 1, &value);
}

static void put_object(JNIEnv *jni, const char *array, const char *type, int number, jobject value)
{
    jfieldID f = (*jni)->GetStaticFieldID(jni, drain_probe(), array, type);
    jobject a = f ? (*jni)->GetStaticObjectField(jni, drain_probe(), f) : NULL;
    if (a)
        (*jni)->SetObjectArrayElement(jni, a, number, value);
}

/* Returns the fields after the static one, as an array of the numbers of their names. */
static jobject rest_of(JNIEnv *jni, const char *rest)
{
    jint numbers[STEPS_MAX];
    jsize n = 0;
    for (const char *at = rest; *at && n < STEPS_MAX; at += strcspn(at, ".")) {
        at += *at == '.';
        numbers[n++] = name_number(at, strcspn(at, "."));
    }
    jobject array = (*jni)->NewIntArray(jni, n);
    if (array)
        (*jni)->SetIntArrayRegion(jni, array, 0, n, numbers);
    return array;
}

/*
 * Finds the static field that a class declares or inherits from a superclass, which then replaces
 * it in *class.
 */
static struct field static_field(JNIEnv *jni, jclass *class, const char *name, size_t len)
{
    struct field f = {.place = NO_FIELD};
    for (jclass k = *class; k && f.place == NO_FIELD; k = (*jni)->GetSuperclass(jni, k)) {
        f = declared(jni, k, name, len, true);
        *class = f.place == NO_FIELD ? *class : k;
    }
    return f;
}

/*
 * Stores a class that has been found. The class itself is stored last, so that the rest is present
 * once the probe sees it.
 */
static void found_class(JNIEnv *jni, jclass class, int number, const char *field)
{
    size_t n = strcspn(field, ".");
    jclass c = class;
    struct field f = static_field(jni, &c, field, n);
    free(f.signature);
    _cleanup_free_ char *word = f.place == NO_FIELD ? strndup(field, n) : NULL;
    if (word)
        remember_similar(jni, class, word, &paths.similar_statics[number]);
    jobject rest = f.place == NO_FIELD ? NULL : rest_of(jni, field + n);
    if (!rest || vm_clear_exception(jni))
        return;
    put_place(jni, "staticPlaces", number, f.place);
    put_object(jni, "staticRests", "[[I", number, rest);
    put_object(jni, "statics", "[Ljava/lang/Object;", number, c);
    vm_clear_exception(jni);
    paths.found[number] = true;
}

void trace_paths_on_class(JNIEnv *jni, jclass class, struct str name)
{
    for (unsigned i = 0; i < __atomic_load_n(&paths.n_statics, __ATOMIC_ACQUIRE); i++) {
        const char *field = paths.found[i] ? NULL : after_class(paths.statics[i], name);
        if (field && (*jni)->PushLocalFrame(jni, 128) == 0) {
            found_class(jni, class, (int)i, field);
            (*jni)->PopLocalFrame(jni, NULL);
        }
    }
    vm_clear_exception(jni);
}

static bool on_loaded(void *context, jclass c, struct str name)
{
    trace_paths_on_class(context, c, name);
    return false;
}

void trace_paths_find(JNIEnv *jni)
{
    if (paths.n_statics)
        loaded_classes_each(vm.ti, jni, on_loaded, jni);
}

void trace_paths_forget(void)
{
    pthread_mutex_lock(&paths.lock);
    memset(paths.found, 0, sizeof(paths.found));
    for (unsigned i = 0; i < NAMES_MAX; i++)
        free(paths.similar_names[i]);
    for (unsigned i = 0; i < STATICS_MAX; i++)
        free(paths.similar_statics[i]);
    memset(paths.similar_names, 0, sizeof(paths.similar_names));
    memset(paths.similar_statics, 0, sizeof(paths.similar_statics));
    pthread_mutex_unlock(&paths.lock);
}

/* ---- paths that lead nowhere ---- */

struct search {
    JNIEnv *jni;
    const struct cond_test *test;
    struct str type;  /* pkg/Class */
    const char *name; /* the class if the field is static, the field, and what follows it */
    size_t len;
    jclass top;      /* a global reference to the type of the object */
    char *signature; /* of the field */
    bool unready;    /* the class of a static field has no fields yet, because it is not linked */
    struct nearest nearest; /* otherwise, a field of a similar name */
    struct buf impossible;  /* why no value of the field at the end of the path passes the test */
};

static bool find_type(void *context, jclass c, struct str name)
{
    struct search *s = context;
    if (name.len != s->type.len || memcmp(name.data, s->type.data, name.len) != 0)
        return false;
    s->top = (*s->jni)->NewGlobalRef(s->jni, c);
    return s->top != NULL;
}

/* Returns whether no value of the field that ends the path passes the test. */
static bool impossible_field(struct search *s, const char *name, struct str type)
{
    if (trace_is_impossible_of_field(s->test, name, type, &s->impossible))
        return true;
    _cleanup_(buf_release) struct buf what = BUF(8192);
    bool impossible = trace_no_constant(s->jni, s->test, type, &what);
    if (impossible)
        buf_printf(&s->impossible, "the field %s %s", name, buf_str(&what));
    return impossible;
}

/*
 * Stores the signature of a field. Returns true to end the search, which continues as long as no
 * value of the field passes the test.
 */
static bool take_field(struct search *s, const char *name, char *signature)
{
    if (!signature)
        return false;
    free(s->signature);
    s->signature = signature;
    buf_clear(&s->impossible);
    return strchr(name, '.') ||
           !impossible_field(s, name, (struct str){signature, strlen(signature)});
}

static bool is_ready(jclass c)
{
    jint status = 0;
    return (*vm.ti)->GetClassStatus(vm.ti, c, &status) != JVMTI_ERROR_NONE ||
           status & JVMTI_CLASS_STATUS_PREPARED;
}

static bool find_field(void *context, jclass c, struct str name)
{
    struct search *s = context;
    JNIEnv *jni = s->jni;
    bool related =
        (*jni)->IsAssignableFrom(jni, c, s->top) || (*jni)->IsAssignableFrom(jni, s->top, c);
    if (related)
        loaded_class_nearest_field(vm.ti, c, FIELD_OF_OBJECT, &s->nearest);
    return related && take_field(s, s->name, declared(jni, c, s->name, s->len, false).signature);
}

static bool find_static(void *context, jclass c, struct str name)
{
    struct search *s = context;
    const char *field = after_class(s->name, name);
    if (!field)
        return false;
    _cleanup_free_ char *word = strndup(field, strcspn(field, "."));
    s->len = (size_t)(field - s->name);
    s->unready |= !is_ready(c);
    s->nearest.word = word ? word : "";
    loaded_class_nearest_field(vm.ti, c, FIELD_STATIC, &s->nearest);
    s->nearest.word = NULL;
    return take_field(s, field, static_field(s->jni, &c, field, strcspn(field, ".")).signature);
}

static bool missing_below(JNIEnv *jni, struct str type, const struct cond_test *t, const char *path,
                          struct buf *why);

/*
 * Returns whether the rest of the path, after its first field, which has been found, cannot exist;
 * `why` receives the reason.
 */
static bool missing_after(const struct search *s, const char *path, struct buf *why)
{
    const char *rest = strchr(path, '.'), *type = s->signature;
    buf_bytes(why, s->impossible.data, s->impossible.len);
    if (!rest)
        return s->impossible.len > 0;
    if (*type == 'L')
        return missing_below(s->jni, (struct str){type, strlen(type)}, s->test, rest + 1, why);
    buf_printf(why, "the field %.*s is %s, which has no fields", (int)(rest - path), path,
               *type == '[' ? "an array" : "a number");
    return true;
}

static void search_release(struct search *s)
{
    free(s->signature);
    buf_release(&s->impossible);
}

static void put_nearest(struct buf *why, const struct search *s)
{
    if (*s->nearest.best)
        buf_printf(why, "; there is %s", s->nearest.best);
}

static bool missing_below(JNIEnv *jni, struct str type, const struct cond_test *t, const char *path,
                          struct buf *why)
{
    _cleanup_free_ char *word = strndup(path, strcspn(path, "."));
    _cleanup_(search_release) struct search s = {.jni = jni,
                                                 .test = t,
                                                 .type = {type.data + 1, type.len - 2},
                                                 .name = path,
                                                 .len = strcspn(path, "."),
                                                 .nearest.word = word ? word : "",
                                                 .impossible = BUF(16384)};
    if (loaded_classes_each(vm.ti, jni, find_type, &s) <= 0)
        return false;
    loaded_classes_each(vm.ti, jni, find_field, &s);
    (*jni)->DeleteGlobalRef(jni, s.top);
    if (s.signature)
        return missing_after(&s, path, why);
    dotted_append(why, s.type.data, s.type.len);
    buf_printf(why, " has no field %.*s", (int)s.len, path);
    put_nearest(why, &s);
    return true;
}

/* Adds the field of a loaded class that a path without a package, or with a wrong one, may mean. */
static void put_static_meant(JNIEnv *jni, const char *path, struct buf *why)
{
    struct choice_guess guess = {0};
    for (const char *dot = strchr(path, '.'); dot && !guess.has_member;
         dot = strchr(dot + 1, '.')) {
        _cleanup_free_ char *class = strndup(path, (size_t)(dot - path));
        _cleanup_free_ char *field = strndup(dot + 1, strcspn(dot + 1, "."));
        jclass c = class && field
                       ? named_class(jni, class, &(struct wanted_member){.field = field}, &guess)
                       : NULL;
        if (c)
            (*jni)->DeleteLocalRef(jni, c);
        else if (guess.has_member)
            buf_printf(why, "; there is %s.%s", guess.name, field);
    }
}

static bool static_missing(JNIEnv *jni, bool late, const struct cond_test *t, struct buf *why)
{
    _cleanup_(search_release) struct search s = {
        .jni = jni, .test = t, .name = t->path, .impossible = BUF(16384)};
    const char *path = t->path;
    loaded_classes_each(vm.ti, jni, find_static, &s);
    if (s.signature)
        return missing_after(&s, path + s.len, why);
    if (s.unready)
        return false;
    if (s.len) {
        buf_printf(why, "%.*s has no static field %.*s", (int)s.len - 1, path,
                   (int)strcspn(path + s.len, "."), path + s.len);
        put_nearest(why, &s);
    } else if (late) {
        buf_printf(why, "no class was loaded that has a static field %s", path);
        put_static_meant(jni, path, why);
    }
    return s.len || late;
}

bool trace_path_is_missing(JNIEnv *jni, bool late, struct str type, const struct cond_test *t,
                           struct buf *why)
{
    if ((*jni)->PushLocalFrame(jni, 128) < 0) {
        vm_clear_exception(jni);
        return false;
    }
    bool missing =
        type.len ? missing_below(jni, type, t, t->path, why) : static_missing(jni, late, t, why);
    vm_clear_exception(jni);
    (*jni)->PopLocalFrame(jni, NULL);
    return missing;
}
