/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/capture/trace/below.h"

#include "agent/capture/trace/trace_state.h"
#include "agent/instrument/instrument.h"
#include "agent/instrument/loaded.h"
#include "agent/vm/lambda.h"
#include "agent/vm/loaded_classes.h"
#include "agent/vm/shown_class.h"
#include "agent/vm/vm.h"
#include "base/dotted.h"
#include "classfile/classfile.h"

#include <stdio.h>
#include <string.h>

enum { LOADERS_MAX = 16 }; /* classes of one name */

struct search {
    JNIEnv *jni;
    const char *type, *method;
    jclass types[LOADERS_MAX];
    unsigned n;
    struct trace_below *found;
};

static bool is_type(void *context, struct str name)
{
    const struct search *s = context;
    return choice_is_class(name, s->type);
}

static bool see_type(void *context, jclass c, struct str name)
{
    struct search *s = context;
    if (is_type(s, name)) {
        s->types[s->n] = (*s->jni)->NewLocalRef(s->jni, c);
        s->n += s->types[s->n] != NULL;
    } else if (!s->n) {
        choice_guess_see(&s->found->guess, name, is_type, s);
        choice_guess_spelling(&s->found->guess, name, s->type);
    }
    return s->n == LOADERS_MAX;
}

static bool traces_method_of(struct str class_name)
{
    bool found = false;
    pthread_mutex_lock(&method_trace.lock);
    for (size_t i = 0; i < method_trace.methods.methods.len && !found; i++) {
        const struct traced_method *m = &method_trace.methods.methods.data[i];
        if (!m->rules || m->patterns != method_trace.patterns_changed ||
            strnlen(m->text, class_name.len + 1) <= class_name.len ||
            m->text[class_name.len] != '.' || memchr(m->text, '(', class_name.len))
            continue;
        size_t at = 0;
        while (at < class_name.len && m->text[at] == dotted(class_name.data[at]))
            at++;
        found =
            at == class_name.len && !memchr(m->text + at + 1, '.', strcspn(m->text + at + 1, "("));
    }
    pthread_mutex_unlock(&method_trace.lock);
    return found;
}

/* Returns whether a class declares a method of this name that has code. */
static bool implements(jclass c, const char *method)
{
    jint n = 0, modifiers = 0;
    jmethodID *methods = NULL;
    bool does = false;
    if (!method || (*vm.ti)->GetClassMethods(vm.ti, c, &n, &methods) != JVMTI_ERROR_NONE)
        return false;
    for (jint i = 0; i < n && !does; i++) {
        char *name = NULL;
        if ((*vm.ti)->GetMethodName(vm.ti, methods[i], &name, NULL, NULL) != JVMTI_ERROR_NONE)
            continue;
        does = strcmp(name, method) == 0 &&
               (*vm.ti)->GetMethodModifiers(vm.ti, methods[i], &modifiers) == JVMTI_ERROR_NONE &&
               !(modifiers & (ACC_NATIVE | ACC_ABSTRACT));
        vm_free(name);
    }
    vm_free(methods);
    return does;
}

static bool see_below(void *context, jclass c, struct str name)
{
    struct search *s = context;
    bool is_below = false;
    if (instrument_is_jdk(name))
        return false;
    for (unsigned i = 0; i < s->n && !is_below; i++)
        is_below = (*s->jni)->IsAssignableFrom(s->jni, c, s->types[i]);
    if (is_below && !loaded_may_change(c, name))
        trace_hidden_add(&s->found->hidden, c);
    else if (is_below && !s->found->traced)
        s->found->traced = traces_method_of(name);
    if (is_below && !is_type(s, name) && loaded_may_change(c, name)) {
        s->found->changeable = true;
        if (!s->found->first[0] && implements(c, s->method))
            dotted_copy(s->found->first, sizeof(s->found->first), name);
    }
    return false;
}

void trace_below_find(JNIEnv *jni, const char *type, const char *method, struct trace_below *ret)
{
    struct search s = {.jni = jni, .type = type, .method = method, .found = ret};
    *ret = (struct trace_below){0};
    loaded_classes_each(vm.ti, jni, see_type, &s);
    ret->loaded = s.n > 0;
    if (s.n)
        loaded_classes_each(vm.ti, jni, see_below, &s);
    for (unsigned i = 0; i < s.n; i++)
        (*jni)->DeleteLocalRef(jni, s.types[i]);
}

struct shown_search {
    const char *shown;
    struct generated_target target;
};

static bool see_shown(void *context, jclass c, struct str name)
{
    struct shown_search *s = context;
    char *signature = NULL;
    if (!memmem(name.data, name.len, "$$Lambda", strlen("$$Lambda")))
        return false;
    _cleanup_free_ char *shown = shown_class_signature(c);
    char *colons = shown ? strstr(shown, "::") : NULL;
    if (colons) {
        *colons = '.';
        memmove(colons + 1, colons + 2, strlen(colons + 2) + 1);
    }
    if (!shown || strlen(shown) < 2 ||
        !choice_is_class((struct str){shown + 1, strlen(shown) - 2}, s->shown) ||
        (*vm.ti)->GetClassSignature(vm.ti, c, &signature, NULL) != JVMTI_ERROR_NONE)
        return false;
    lambda_target(c, signature, &s->target);
    vm_free(signature);
    return true;
}

bool trace_below_put_lambda(JNIEnv *jni, const char *shown, struct buf *why)
{
    struct shown_search s = {.shown = shown};
    if (loaded_classes_each(vm.ti, jni, see_shown, &s) != 1 || !s.target.pattern[0])
        return false;
    dotted_in_place(s.target.pattern, strlen(s.target.pattern));
    buf_printf(why, "%s is traced as %s",
               s.target.is_lambda ? "the code of a lambda" : "what a method reference calls",
               s.target.pattern);
    return true;
}
