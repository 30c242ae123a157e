/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/instrument/named_class.h"

#include "agent/instrument/choice.h"
#include "agent/vm/loaded_classes.h"
#include "agent/vm/shown_class.h"
#include "agent/vm/vm.h"
#include "base/dotted.h"
#include "classfile/classfile.h"
#include "options/signature.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *named_class_method(const char *pattern)
{
    const char *dot = memrchr(pattern, '.', strcspn(pattern, "("));
    return dot ? dot + 1 : NULL;
}

/*
 * Returns whether a class declares a method, and appends it to *ret unless that is NULL. inherited:
 * only one with code that classes below this one have as well.
 */
static bool declares_method(jclass c, const char *wanted, bool inherited, struct buf *ret)
{
    static const struct str any_class = {"C", 1};
    char pattern[512];
    jint n = 0, class_modifiers = 0;
    jmethodID *methods = NULL;
    bool is = false;
    if ((size_t)snprintf(pattern, sizeof(pattern), "C.%s", wanted) >= sizeof(pattern) ||
        (*vm.ti)->GetClassMethods(vm.ti, c, &n, &methods) != JVMTI_ERROR_NONE)
        return false;
    (*vm.ti)->GetClassModifiers(vm.ti, c, &class_modifiers);
    jint without = ACC_PRIVATE | ACC_ABSTRACT | (class_modifiers & ACC_INTERFACE ? ACC_STATIC : 0);
    for (jint i = 0; i < n && !is; i++) {
        char *name = NULL, *descriptor = NULL;
        jint modifiers = 0;
        if ((*vm.ti)->GetMethodName(vm.ti, methods[i], &name, &descriptor, NULL) !=
            JVMTI_ERROR_NONE)
            continue;
        (*vm.ti)->GetMethodModifiers(vm.ti, methods[i], &modifiers);
        is = !(inherited && (modifiers & without || *name == '<')) &&
             choice_matches(pattern, any_class, (struct str){name, strlen(name)},
                            (struct str){descriptor, strlen(descriptor)});
        if (is && ret) {
            buf_printf(ret, ".%s", name);
            signature_put_parameters(ret, descriptor);
        }
        vm_free(name);
        vm_free(descriptor);
    }
    vm_free(methods);
    return is;
}

static bool has_member(jclass c, const struct wanted_member *m)
{
    return (m->method && *m->method && declares_method(c, m->method, false, NULL)) ||
           (m->field && *m->field && loaded_class_declares_field(vm.ti, c, m->field));
}

void named_class_guess(struct choice_guess *g, jclass c, struct str name,
                       bool (*means)(void *context, struct str name), void *context,
                       const char *wanted, const struct wanted_member *member)
{
    struct choice_guess one = {0};
    choice_guess_see(&one, name, means, context);
    if (wanted)
        choice_guess_spelling(&one, name, wanted);
    one.has_member = one.rank && has_member(c, member);
    choice_guess_prefer(g, &one);
}

struct search {
    JNIEnv *jni;
    const char *name;
    const struct wanted_member *member;
    struct choice_guess guess;
    jclass found;
};

static bool means(void *context, struct str name)
{
    const struct search *s = context;
    return choice_is_class(name, s->name);
}

static bool see(void *context, jclass c, struct str name)
{
    struct search *s = context;
    if (choice_is_class(name, s->name)) {
        s->found = (*s->jni)->NewLocalRef(s->jni, c);
        return true;
    }
    named_class_guess(&s->guess, c, name, means, s, s->name, s->member);
    return false;
}

jclass named_class(JNIEnv *jni, const char *name, const struct wanted_member *member,
                   struct choice_guess *ret_guess)
{
    struct search s = {.jni = jni, .name = name, .member = member};
    loaded_classes_each(vm.ti, jni, see, &s);
    *ret_guess = s.guess;
    return s.found;
}

/*
 * Writes "pkg.Class.f(int)" if the class declares such a method; inherited is as in
 * declares_method.
 */
static bool put_declared(jclass c, const char *method, bool inherited, struct buf *ret)
{
    _cleanup_free_ char *signature = shown_class_signature(c);
    _cleanup_(buf_release) struct buf found = BUF(1024);
    if (!signature || *signature != 'L' || !declares_method(c, method, inherited, &found))
        return false;
    dotted_append(ret, signature + 1, strlen(signature) - 2);
    buf_bytes(ret, found.data, found.len);
    return true;
}

/* Writes such a method of the interfaces of a class, or of those above them. */
static bool from_interface(JNIEnv *jni, jclass c, const char *method, unsigned depth,
                           struct buf *ret)
{
    enum { DEPTH_MAX = 16 };

    jint n = 0;
    jclass *of = NULL;
    bool is = false;
    if (depth >= DEPTH_MAX ||
        (*vm.ti)->GetImplementedInterfaces(vm.ti, c, &n, &of) != JVMTI_ERROR_NONE)
        return false;
    for (jint i = 0; i < n; i++) {
        is = is || put_declared(of[i], method, true, ret) ||
             from_interface(jni, of[i], method, depth + 1, ret);
        (*jni)->DeleteLocalRef(jni, of[i]);
    }
    vm_free(of);
    return is;
}

bool named_class_inherits(JNIEnv *jni, jclass c, const char *method, struct buf *ret)
{
    bool is = false;
    for (int pass = 0; pass < 2 && !is; pass++) {
        jclass k = (*jni)->NewLocalRef(jni, c);
        while (k) {
            jclass next = (*jni)->GetSuperclass(jni, k);
            is = is || (pass == 0 ? next && put_declared(next, method, true, ret)
                                  : from_interface(jni, k, method, 0, ret));
            (*jni)->DeleteLocalRef(jni, k);
            k = next;
        }
    }
    return is;
}

bool named_class_similar(jclass c, const char *method, struct buf *ret)
{
    _cleanup_free_ char *word = strndup(method, strcspn(method, "("));
    struct nearest n = {.word = word ? word : ""};
    return loaded_class_nearest_method(vm.ti, c, &n) && put_declared(c, n.best, false, ret);
}
