/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/capture/trace/explain.h"

#include "agent/capture/trace/annotations.h"
#include "agent/capture/trace/below.h"
#include "agent/capture/trace/drain.h"
#include "agent/capture/trace/methods.h"
#include "agent/capture/trace/trace_state.h"
#include "agent/instrument/batches.h"
#include "agent/instrument/choice.h"
#include "agent/instrument/instrument.h"
#include "agent/instrument/loaded.h"
#include "agent/instrument/named_class.h"
#include "agent/session/session.h"
#include "agent/vm/field_guess.h"
#include "agent/vm/loaded_classes.h"
#include "agent/vm/vm.h"
#include "base/dotted.h"
#include "base/generated_name.h"
#include "base/hash.h"
#include "base/map.h"
#include "base/nearest.h"
#include "base/parse.h"
#include "classfile/classfile.h"
#include "jfr/losses.h"
#include "options/signature.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const left_reasons[LEFT_REASONS] = {
    [LEFT_MALFORMED] = "its class file is not understood",
    [LEFT_TOO_LONG] = "its code would be longer than 64 KiB",
    [LEFT_HUGE] = "its code would be too long for the JIT",
    [LEFT_POOL] = "the constant pool of its class is full",
    [LEFT_TABLE] = "the table of methods is full",
    [LEFT_UNKNOWN_CODE] = "its code is not understood",
    [LEFT_MEMORY] = "memory was short",
    [LEFT_INTRINSIC] = "the JIT replaces it as a whole, so that its code does not run",
    [LEFT_NATIVE] = "it is native, and its code was not found",
};

static struct {
    pthread_mutex_t lock;
    struct map methods; /* key_of -> an instrument_reason + 1 */
} left = {.lock = PTHREAD_MUTEX_INITIALIZER};

static uint64_t key_of(struct str class_name, struct str method, struct str descriptor)
{
    return (hash_bytes(class_name.data, class_name.len) * 31 +
            hash_bytes(method.data, method.len)) *
               31 +
           hash_bytes(descriptor.data, descriptor.len);
}

/*
 * Counts a method that is left unchanged as lost, except for native methods, whose calls may be
 * traced nevertheless.
 */
static void lose(struct str class_name, struct str method, enum instrument_reason why)
{
    struct session *s = session_now;
    char text[512];
    if (!s || why == LEFT_NATIVE)
        return;
    snprintf(text, sizeof(text), "%.*s", (int)class_name.len, class_name.data);
    text[generated_name_normalize(text, strlen(text))] = 0;
    dotted_in_place(text, strlen(text));
    _cleanup_(buf_release) struct buf first = BUF(4096);
    buf_printf(&first, "the first is %s.%.*s (%s)", text, (int)method.len, method.data,
               left_reasons[why]);
    jfr_lose_named(s->out.jfr, LOSS_TRACE_LEFT, 1, buf_str(&first));
}

void trace_left_add(struct str class_name, struct str method, struct str descriptor,
                    enum instrument_reason why)
{
    bool added = false;
    pthread_mutex_lock(&left.lock);
    uint64_t *at = map_at(&left.methods, key_of(class_name, method, descriptor), 0, &added);
    if (at)
        *at = (uint64_t)why + 1;
    pthread_mutex_unlock(&left.lock);
    if (added)
        lose(class_name, method, why);
}

void trace_left_clear(void)
{
    trace_annotations_clear();
    pthread_mutex_lock(&left.lock);
    map_release(&left.methods);
    pthread_mutex_unlock(&left.lock);
}

/* Returns the reason why a method was left alone, or NULL if it was not. */
static const char *why_left(struct str class_name, struct str method, struct str descriptor)
{
    pthread_mutex_lock(&left.lock);
    const uint64_t *why = map_get(&left.methods, key_of(class_name, method, descriptor));
    const char *text = why && *why <= LEFT_REASONS ? left_reasons[*why - 1] : NULL;
    pthread_mutex_unlock(&left.lock);
    return text;
}

struct search {
    const char *pattern, *names, *exclude; /* names: the pattern without parameters */
    /* number of loaded classes that may have such methods; number of methods that match */
    uint64_t classes, methods;
    char class[256], method[256];
    const char *why; /* reason for `method` */
    struct choice_guess guess;
    struct buf others; /* methods of this name with other parameters than the pattern's */
    struct nearest nearest;
    struct buf similar;   /* otherwise, methods of the most similar name */
    struct buf inherited; /* the method of this name that a class inherits */
    JNIEnv *jni;
};

static const char is_abstract[] = "it is abstract";

static const char *why_not(const struct search *s, jclass class, struct str class_name,
                           struct str method, struct str descriptor, jint modifiers)
{
    const char *reason = why_left(class_name, method, descriptor);
    if (modifiers & ACC_ABSTRACT)
        return is_abstract;
    if (drain_is_used(class_name))
        return "the trace itself calls methods of its class";
    if (choice_matches(s->exclude, class_name, method, descriptor))
        return "--exclude names it";
    if (modifiers & ACC_NATIVE)
        return method_trace.live ? "it is native, and its code was not found: it is not linked "
                                   "yet, or RegisterNatives has bound it"
                                 : "it is native and was not linked: it was never called, or its "
                                   "library was not found";
    if (reason)
        return reason;
    if (choice_is_excluded(class_name))
        return "the VM's own work depends on its class, which is never changed";
    if (!loaded_may_change(class, class_name))
        return "the VM does not allow its class to be changed";
    if (batches_ended())
        return "the program ended before its class was changed";
    return "its class could not be changed";
}

static void put_method(struct buf *list, const char *name, const char *descriptor)
{
    buf_printf(list, "%s%s", list->len ? ", " : "", name);
    signature_put_parameters(list, descriptor);
}

/*
 * Checks one method of a class. named: the class name that a pattern must use, which may be the
 * shortened name that results show.
 */
static void see_method(struct search *s, jclass class, struct str class_name, struct str named,
                       jmethodID m)
{
    char *name = NULL, *descriptor = NULL;
    jint modifiers = 0;
    if ((*vm.ti)->GetMethodName(vm.ti, m, &name, &descriptor, NULL) != JVMTI_ERROR_NONE)
        return;
    struct str method = {name, strlen(name)}, types = {descriptor, strlen(descriptor)};
    if (choice_matches(s->pattern, named, method, types)) {
        (*vm.ti)->GetMethodModifiers(vm.ti, m, &modifiers);
        if (!s->methods++) {
            snprintf(s->method, sizeof(s->method), "%.*s.%s", (int)class_name.len, class_name.data,
                     name);
            s->why = why_not(s, class, class_name, method, types, modifiers);
            size_t n = MIN(class_name.len, strlen(s->method)),
                   shown = generated_name_normalize(s->method, n);
            memmove(s->method + shown, s->method + n, strlen(s->method + n) + 1);
        }
    } else if (choice_matches(s->names, named, method, types)) {
        put_method(&s->others, name, descriptor);
    } else {
        if (nearest_try(&s->nearest, name))
            buf_clear(&s->similar);
        if (strcmp(name, s->nearest.best) == 0)
            put_method(&s->similar, name, descriptor);
    }
    vm_free(name);
    vm_free(descriptor);
}

static void see_class(struct search *s, jclass class, struct str name, struct str named)
{
    jint n = 0;
    jmethodID *methods = NULL;
    if (!s->classes++)
        snprintf(s->class, sizeof(s->class), "%.*s", (int)name.len, name.data);
    if ((*vm.ti)->GetClassMethods(vm.ti, class, &n, &methods) != JVMTI_ERROR_NONE)
        return;
    for (jint i = 0; i < n; i++)
        see_method(s, class, name, named, methods[i]);
    vm_free(methods);
    const char *wanted = named_class_method(s->pattern);
    if (!s->methods && !s->inherited.len && wanted && *wanted)
        (void)named_class_inherits(s->jni, class, wanted, &s->inherited);
}

/* Returns whether the pattern refers to the class: pkg.Cartoon.add does not refer to pkg.Cart. */
static bool names_class(const struct search *s, struct str name)
{
    const char *dot = strrchr(s->names, '.');
    _cleanup_free_ char *class = dot ? strndup(s->names, (size_t)(dot - s->names)) : NULL;
    if (choice_matches_class(s->names, name))
        return true;
    if (!class)
        return false;
    return strchr(class, '*') ? choice_matches_class(class, name) : choice_is_class(name, class);
}

static void explain_not_loaded(struct buf *why, const struct choice_guess *guess)
{
    buf_string(why, "no class of this name is loaded");
    if (guess->rank)
        buf_printf(why, ", but %s is", guess->name);
}

static bool means(void *context, struct str name)
{
    return names_class(context, name);
}

static bool on_loaded(void *context, jclass c, struct str name)
{
    struct search *s = context;
    char text[512];
    struct str shown = {text,
                        (size_t)snprintf(text, sizeof(text), "%.*s", (int)name.len, name.data)};
    if (names_class(s, name)) {
        see_class(s, c, name, name);
    } else if (shown.len < sizeof(text)) {
        /* Results show the classes of lambdas without their numbers, which no user can know. */
        shown.len = generated_name_normalize(text, shown.len);
        if (shown.len < name.len && names_class(s, shown))
            see_class(s, c, name, shown);
    }
    if (!s->classes) {
        const char *dot = strrchr(s->names, '.');
        _cleanup_free_ char *class = strndup(s->names, dot ? (size_t)(dot - s->names) : 0);
        named_class_guess(&s->guess, c, name, means, s, class,
                          &(struct wanted_member){.method = named_class_method(s->pattern)});
    }
    return false;
}

/*
 * Tables show a lambda's class as X$$Lambda[method], and that of a method reference as
 * X$$Lambda[Class::method], which arrives here with a dot instead of the colons. Reports under
 * which name the method can be traced. Returns false, without a report, for other patterns.
 */
static bool explain_lambda(JNIEnv *jni, const char *pattern, struct buf *why)
{
    const char *lambda = strstr(pattern, "$$Lambda[");
    const char *end = lambda ? strchr(lambda, ']') : NULL;
    _cleanup_free_ char *class = end ? strndup(pattern, (size_t)(end + 1 - pattern)) : NULL;
    if (!class)
        return false;
    const char *method = lambda + strlen("$$Lambda[");
    int len = (int)(end - method);
    if (trace_below_put_lambda(jni, class, why))
        return true;
    if (memchr(method, '.', (size_t)len))
        buf_printf(why, "what a method reference calls is traced as %.*s, with its package", len,
                   method);
    else
        buf_printf(why, "the code of a lambda is traced as %.*s.%.*s", (int)(lambda - pattern),
                   pattern, len, method);
    return true;
}

/*
 * Writes what can be traced instead of an abstract method. The class of a lambda that implements an
 * interface cannot be changed, but the lambda's code can.
 */
static void put_implementations(JNIEnv *jni, const char *type, struct buf *why)
{
    struct trace_below below;
    trace_below_find(jni, type, NULL, &below);
    if (below.changeable)
        buf_printf(why, ": trace the methods that implement it with 'implements %s'", type);
    else
        buf_string(why, ", and no loaded class of the program that can be traced implements it");
    trace_hidden_put_hint(&below.hidden, why);
}

void trace_explain_implemented(JNIEnv *jni, const char *type, const char *method, struct buf *why)
{
    struct trace_below below;
    trace_below_find(jni, type, method, &below);
    if (below.first[0])
        buf_printf(why, ": name the methods that implement it, such as %s.%s", below.first, method);
    else
        buf_string(why, ", and no loaded class of the program that can be changed implements it");
    trace_hidden_put_hint(&below.hidden, why);
}

static const char cannot_be_changed[] =
    "cannot be traced: the VM does not allow those of lambdas, method references and hidden "
    "classes to be changed";

enum trace_result trace_explain_type(JNIEnv *jni, const char *type, struct buf *why)
{
    struct trace_below below;
    trace_below_find(jni, type, NULL, &below);
    if (!below.loaded)
        explain_not_loaded(why, &below.guess);
    else if (below.hidden.n)
        buf_printf(why, "%s below this type %s", COUNT_TEXT(below.hidden.n, "classes"),
                   cannot_be_changed);
    else
        buf_string(why, "no loaded class of the program is below this type");
    trace_hidden_put_hint(&below.hidden, why);
    return !below.traced ? TRACED_NOTHING : below.hidden.n ? TRACED_PARTLY : TRACED;
}

enum trace_result trace_explain_hidden(JNIEnv *jni, const char *pattern, const char *exclude,
                                       struct buf *why)
{
    struct trace_hidden hidden = {0};
    if (trace_is_named(pattern) && trace_hidden_any())
        trace_hidden_find(jni, pattern, exclude, &hidden);
    if (!hidden.n)
        return TRACED;
    buf_printf(why, "%s that it matches %s (%s%s)", COUNT_TEXT(hidden.n, "classes"),
               cannot_be_changed, hidden.n > 1 ? "the first is " : "", hidden.name);
    trace_hidden_put_hint(&hidden, why);
    return TRACED_PARTLY;
}

void trace_explain(JNIEnv *jni, const char *pattern, const char *exclude, struct buf *why)
{
    _cleanup_free_ char *names = strndup(pattern, strcspn(pattern, "("));
    const char *dot = names ? strrchr(names, '.') : NULL;
    struct search s = {.jni = jni,
                       .pattern = pattern,
                       .names = names,
                       .exclude = exclude,
                       .others = BUF(1024),
                       .nearest.word = dot && !strchr(dot, '*') ? dot + 1 : "",
                       .similar = BUF(1024),
                       .inherited = BUF(1024)};
    if (*pattern == '@') {
        buf_string(why, "no method of a loaded class, and no such class, has this annotation");
        trace_annotation_put_similar(pattern + 1, why);
        return;
    }
    if (names)
        loaded_classes_each(vm.ti, jni, on_loaded, &s);
    s.class[generated_name_normalize(s.class, strlen(s.class))] = 0;
    dotted_in_place(s.class, strlen(s.class));
    dotted_in_place(s.method, strlen(s.method));
    if (!s.classes && explain_lambda(jni, pattern, why))
        return;
    if (!s.classes)
        explain_not_loaded(why, &s.guess);
    else if (!s.methods && s.classes == 1)
        buf_printf(why, "%s is loaded and has no such method", s.class);
    else if (!s.methods)
        buf_printf(why, "%llu loaded classes match and have no such method",
                   (unsigned long long)s.classes);
    else if (s.methods == 1)
        buf_printf(why, "%s cannot be traced: %s", s.method, s.why);
    else
        buf_printf(why, "%llu methods match and cannot be traced, such as %s: %s",
                   (unsigned long long)s.methods, s.method, s.why);
    struct buf *others = s.others.len ? &s.others : &s.similar;
    if (s.classes && !s.methods && s.inherited.len && !buf_error(&s.inherited))
        buf_printf(why, ", but inherits %s", buf_str(&s.inherited));
    else if (s.classes && !s.methods && others->len && !buf_error(others))
        buf_printf(why, "; there is %s", buf_str(others));
    char *end = s.why == is_abstract ? strrchr(s.method, '.') : NULL;
    if (end) {
        *end = 0;
        put_implementations(jni, s.method, why);
    }
    buf_release(&s.others);
    buf_release(&s.similar);
    buf_release(&s.inherited);
}

static bool is_loaded(JNIEnv *jni, const char *name, const char *field,
                      struct choice_guess *ret_guess)
{
    jclass c = named_class(jni, name, &(struct wanted_member){.field = field}, ret_guess);
    if (c)
        (*jni)->DeleteLocalRef(jni, c);
    return c != NULL;
}

bool trace_class_is_loaded(JNIEnv *jni, const char *name)
{
    struct choice_guess guess;
    return is_loaded(jni, name, NULL, &guess);
}

bool trace_class_has_similar(JNIEnv *jni, const char *name)
{
    struct choice_guess guess;
    return !is_loaded(jni, name, NULL, &guess) && guess.rank;
}

static void explain_class_of(JNIEnv *jni, const char *name, const char *field, struct buf *why)
{
    struct choice_guess guess;
    (void)is_loaded(jni, name, field, &guess);
    explain_not_loaded(why, &guess);
}

void trace_explain_class(JNIEnv *jni, const char *name, struct buf *why)
{
    explain_class_of(jni, name, NULL, why);
}

struct field_search {
    JNIEnv *jni;
    const char *class, *field;
    bool loaded;
    struct field_guess guess;
};

static bool has_field(void *context, jclass c, struct str name)
{
    struct field_search *s = context;
    if (!choice_is_class(name, s->class))
        return false;
    s->loaded = true;
    if (loaded_class_declares_field(vm.ti, c, s->field))
        return true;
    field_guess_see(&s->guess, s->jni, c, s->field);
    return false;
}

bool trace_field_is_declared(JNIEnv *jni, const char *class_name, const char *field)
{
    struct field_search s = {.jni = jni, .class = class_name, .field = field};
    return loaded_classes_each(vm.ti, jni, has_field, &s) != 0;
}

void trace_explain_field(JNIEnv *jni, const char *class_name, const char *field, struct buf *why)
{
    struct field_search s = {.jni = jni, .class = class_name, .field = field};
    if (loaded_classes_each(vm.ti, jni, has_field, &s) != 0)
        buf_string(why,
                   "no loaded code has an instruction that reads or writes this field; reflection, "
                   "VarHandle, Unsafe and JNI are not seen");
    else if (s.guess.is_inherited)
        buf_printf(why, "the class inherits this field: --watch %s names it", s.guess.name);
    else if (s.loaded)
        buf_printf(why, "the class is loaded and declares no field of this name%s%s",
                   *s.guess.name ? "; there is " : "", s.guess.name);
    else
        explain_class_of(jni, class_name, field, why);
}
