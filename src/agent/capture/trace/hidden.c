/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/capture/trace/hidden.h"

#include "agent/capture/trace/trace_state.h"
#include "agent/instrument/choice.h"
#include "agent/instrument/instrument.h"
#include "agent/instrument/loaded.h"
#include "agent/session/session.h"
#include "agent/vm/lambda.h"
#include "agent/vm/loaded_classes.h"
#include "agent/vm/shown_class.h"
#include "agent/vm/vm.h"
#include "base/dotted.h"
#include "base/generated_name.h"
#include "base/hash.h"
#include "base/map.h"
#include "classfile/classfile.h"
#include "jfr/losses.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COUNTED_MAX = 1 << 16 };

/* The classes that were counted, by the hashes of their names: the first COUNTED_MAX. */
static struct {
    pthread_mutex_t lock;
    struct map names;
} counted = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* The name of a class without what the VM has added to it. */
struct plain_name {
    char text[512];
    struct str name;
};

static void plain_name(struct plain_name *ret, struct str name)
{
    snprintf(ret->text, sizeof(ret->text), "%.*s", (int)name.len, name.data);
    ret->name = (struct str){ret->text, generated_name_normalize(ret->text, strlen(ret->text))};
    ret->text[ret->name.len] = 0;
}

static void target_of(jclass c, struct generated_target *ret)
{
    char *signature = NULL;
    *ret = (struct generated_target){0};
    if ((*vm.ti)->GetClassSignature(vm.ti, c, &signature, NULL) != JVMTI_ERROR_NONE)
        return;
    lambda_target(c, signature, ret);
    vm_free(signature);
}

static void put_shown_name(jclass c, char *to, size_t size)
{
    _cleanup_free_ char *shown = shown_class_signature(c);
    size_t len = shown ? strlen(shown) : 0;
    if (len > 2)
        dotted_copy(to, size, (struct str){shown + 1, len - 2});
}

void trace_hidden_add(struct trace_hidden *h, jclass c)
{
    struct generated_target target;
    if (!h->n++)
        put_shown_name(c, h->name, sizeof(h->name));
    target_of(c, &target);
    char *to = target.is_lambda ? h->lambda : h->reference;
    struct str pattern = {target.pattern, strlen(target.pattern)};
    if (!*to && pattern.len && !instrument_is_jdk(pattern)) {
        snprintf(to, sizeof(h->lambda), "%s", target.pattern);
        dotted_in_place(to, strlen(to));
    }
}

void trace_hidden_put_hint(const struct trace_hidden *h, struct buf *why)
{
    if (*h->lambda)
        buf_printf(why, "; the code of a lambda is traced by its own name, such as %s", h->lambda);
    if (*h->reference)
        buf_printf(why, "%s what a method reference calls%s by its own name, such as %s",
                   *h->lambda ? ", and" : ";", *h->lambda ? "" : " is traced", h->reference);
}

/* Returns the patterns without the parameters of the methods, or NULL if memory is exhausted. */
static char *without_parameters(const char *patterns)
{
    char *names = strdup(patterns), *to = names;
    for (const char *p = patterns; names && *p;) {
        size_t name = strcspn(p, "(:");
        memcpy(to, p, name);
        to += name;
        p += strcspn(p, ":");
        if (*p)
            *to++ = *p++;
    }
    if (names)
        *to = 0;
    return names;
}

/* Returns whether the patterns match what a lambda or a method reference in the class runs. */
static bool matches_target(const char *patterns, jclass c, struct str host)
{
    static const struct str any_lambda = {"lambda$", 7}, none = {"", 0};
    _cleanup_free_ char *names = without_parameters(patterns);
    struct generated_target target;
    if (!names || choice_matches(names, host, any_lambda, none))
        return true;
    target_of(c, &target);
    const char *dot = strrchr(target.pattern, '.');
    return dot &&
           choice_matches(names, (struct str){target.pattern, (size_t)(dot - target.pattern)},
                          (struct str){dot + 1, strlen(dot + 1)}, none);
}

static bool matches_method(const char *patterns, const char *exclude, struct str class_name,
                           bool is_lambda, jmethodID m)
{
    char *name = NULL, *descriptor = NULL;
    jint modifiers = 0;
    if ((*vm.ti)->GetMethodName(vm.ti, m, &name, &descriptor, NULL) != JVMTI_ERROR_NONE)
        return false;
    (*vm.ti)->GetMethodModifiers(vm.ti, m, &modifiers);
    struct str method = {name, strlen(name)}, types = {descriptor, strlen(descriptor)};
    /* Only the VM calls the constructors and the factories of a lambda's class. */
    bool is_made = is_lambda && (modifiers & ACC_STATIC || str_is(method, "<init>"));
    bool matches = !(modifiers & ACC_ABSTRACT) && !is_made &&
                   choice_matches(patterns, class_name, method, types) &&
                   !choice_matches(exclude, class_name, method, types);
    vm_free(name);
    vm_free(descriptor);
    return matches;
}

/* Returns whether calls that the patterns mean are missing because the class cannot be changed. */
static bool is_left_out(const char *patterns, const char *exclude, jclass c, struct str name)
{
    struct plain_name plain;
    size_t host;
    jint n = 0;
    jmethodID *methods = NULL;
    if (instrument_is_jdk(name))
        return false;
    plain_name(&plain, name);
    if (!choice_may_match(patterns, plain.name) || loaded_may_change(c, name))
        return false;
    bool is_lambda = generated_name_is_lambda(plain.name.data, plain.name.len, &host);
    if (is_lambda && matches_target(patterns, c, (struct str){plain.name.data, host}))
        return false;
    if ((*vm.ti)->GetClassMethods(vm.ti, c, &n, &methods) != JVMTI_ERROR_NONE)
        return false;
    bool matches = false;
    for (jint i = 0; i < n && !matches; i++)
        matches = matches_method(patterns, exclude, plain.name, is_lambda, methods[i]);
    vm_free(methods);
    return matches;
}

struct search {
    const char *pattern, *exclude;
    struct trace_hidden *found;
};

static bool see(void *context, jclass c, struct str name)
{
    const struct search *s = context;
    if (is_left_out(s->pattern, s->exclude, c, name))
        trace_hidden_add(s->found, c);
    return false;
}

void trace_hidden_find(JNIEnv *jni, const char *pattern, const char *exclude,
                       struct trace_hidden *ret)
{
    struct search s = {pattern, exclude, ret};
    *ret = (struct trace_hidden){0};
    loaded_classes_each(vm.ti, jni, see, &s);
}

/* Returns whether the class is below a type of a pattern and cannot be changed. */
static bool is_below(JNIEnv *jni, jclass c, struct str name)
{
    if (!method_trace.typed || instrument_is_jdk(name) || loaded_may_change(c, name))
        return false;
    trace_types_on_class(&method_trace.types, jni, c, name);
    return trace_types_rules(&method_trace.types, name) != 0;
}

/* Returns whether the class was not counted before. */
static bool is_new(struct str name)
{
    uint64_t key = hash_bytes(name.data, name.len);
    pthread_mutex_lock(&counted.lock);
    bool is = !map_get(&counted.names, key);
    if (is && counted.names.len < COUNTED_MAX)
        (void)!map_put(&counted.names, key, 1);
    pthread_mutex_unlock(&counted.lock);
    return is;
}

static bool count(void *context, jclass c, struct str name)
{
    JNIEnv *jni = context;
    struct session *s = session_now;
    char first[300] = "the first is ", *name_at = first + strlen(first);
    pthread_mutex_lock(&method_trace.lock);
    const char *list = method_trace.rules.patterns.list;
    _cleanup_free_ char *patterns = list ? strdup(list) : NULL;
    pthread_mutex_unlock(&method_trace.lock);
    if (!s || !patterns ||
        (!is_below(jni, c, name) && !is_left_out(patterns, method_trace.exclude, c, name)) ||
        !is_new(name))
        return false;
    put_shown_name(c, name_at, sizeof(first) - (size_t)(name_at - first));
    jfr_lose_named(s->out.jfr, LOSS_TRACE_HIDDEN, 1, first);
    return false;
}

static void JNICALL on_prepare(jvmtiEnv *ti, JNIEnv *jni, jthread thread, jclass c)
{
    char *signature = NULL;
    if ((*ti)->GetClassSignature(ti, c, &signature, NULL) != JVMTI_ERROR_NONE)
        return;
    size_t len = strlen(signature);
    if (signature[0] == 'L' && len > 2)
        (void)count(jni, c, (struct str){signature + 1, len - 2});
    (*ti)->Deallocate(ti, (unsigned char *)signature);
}

static const struct vm_callbacks events = {.ti = {.ClassPrepare = on_prepare}};

int trace_hidden_on(JNIEnv *jni)
{
    int r = vm_events_on(&events);
    if (r == 0 && vm_is_live())
        trace_hidden_count(jni);
    return r;
}

void trace_hidden_off(void)
{
    vm_events_off(&events);
    pthread_mutex_lock(&counted.lock);
    map_release(&counted.names);
    pthread_mutex_unlock(&counted.lock);
}

void trace_hidden_count(JNIEnv *jni)
{
    (void)!loaded_classes_each(vm.ti, jni, count, jni);
}

bool trace_hidden_any(void)
{
    pthread_mutex_lock(&counted.lock);
    bool any = counted.names.len > 0;
    pthread_mutex_unlock(&counted.lock);
    return any;
}
