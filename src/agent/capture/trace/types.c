/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/capture/trace/types.h"

#include "agent/capture/trace/methods.h"
#include "agent/instrument/choice.h"
#include "agent/instrument/instrument.h"
#include "agent/vm/loaded_classes.h"
#include "agent/vm/vm.h"
#include "base/hash.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

/* Protects the contents of every struct trace_types. It is not held during calls of the VM. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* The types that are loaded. */
struct loaded_types {
    jclass classes[TRACE_TYPES_MAX];
    uint64_t rules[TRACE_TYPES_MAX];
    unsigned n;
};

static void copy_loaded(const struct trace_types *t, struct loaded_types *ret)
{
    pthread_mutex_lock(&lock);
    ret->n = t->n_classes;
    memcpy(ret->classes, t->classes, ret->n * sizeof(*ret->classes));
    memcpy(ret->rules, t->class_rules, ret->n * sizeof(*ret->rules));
    pthread_mutex_unlock(&lock);
}

/* Returns the rules of the types with this name, as a set. */
static uint64_t rules_of(const struct trace_types *t, struct str name)
{
    uint64_t rules = 0;
    for (unsigned i = 0; i < t->n_names; i++)
        rules |= choice_is_class(name, t->names[i]) ? t->rules[i] : 0;
    return rules;
}

static void keep_type(struct trace_types *t, JNIEnv *jni, jclass class, uint64_t rules)
{
    jclass global = (*jni)->NewGlobalRef(jni, class);
    struct loaded_types loaded = {0};
    for (bool again = global != NULL; again;) {
        copy_loaded(t, &loaded);
        unsigned at = 0;
        while (at < loaded.n && !(*jni)->IsSameObject(jni, loaded.classes[at], class))
            at++;
        pthread_mutex_lock(&lock);
        again = at == loaded.n && t->n_classes != loaded.n;
        if (at < loaded.n) {
            t->class_rules[at] = rules;
        } else if (!again && at < TRACE_TYPES_MAX) {
            t->class_rules[t->n_classes] = rules;
            t->classes[t->n_classes++] = global;
            global = NULL;
        }
        pthread_mutex_unlock(&lock);
    }
    if (global)
        (*jni)->DeleteGlobalRef(jni, global);
}

static void find_loaded(struct trace_types *t, JNIEnv *jni)
{
    _cleanup_(loaded_classes_release) struct loaded_classes all = {0};
    if (loaded_classes(vm.ti, jni, &all) < 0)
        return;
    for (jint i = 0; i < all.n; i++) {
        char *signature = NULL;
        if ((*vm.ti)->GetClassSignature(vm.ti, all.of[i], &signature, NULL) == JVMTI_ERROR_NONE) {
            size_t len = strlen(signature);
            bool named = *signature == 'L' && len > 2;
            uint64_t rules = named ? rules_of(t, (struct str){signature + 1, len - 2}) : 0;
            if (rules)
                keep_type(t, jni, all.of[i], rules);
            vm_free(signature);
        }
    }
}

/* Gives a type the rule of its pattern. Requires the lock. */
static int add_name(struct trace_types *t, const char *name, size_t n, uint64_t rule)
{
    unsigned i = 0;
    while (i < t->n_names && (strlen(t->names[i]) != n || memcmp(t->names[i], name, n) != 0))
        i++;
    if (i == TRACE_TYPES_MAX)
        return -ENOSPC;
    if (i == t->n_names) {
        t->names[i] = strndup(name, n);
        if (!t->names[i])
            return -ENOMEM;
        t->n_names++;
    }
    t->rules[i] |= rule;
    return 1;
}

int trace_types_set(struct trace_types *t, const struct trace_patterns *patterns, JNIEnv *jni)
{
    const char *p = patterns->list;
    int r = 0, found = 0;
    pthread_mutex_lock(&lock);
    memset(t->rules, 0, sizeof(t->rules));
    memset(t->class_rules, 0, sizeof(t->class_rules));
    map_release(&t->below);
    for (unsigned i = 0; i < patterns->n && r >= 0; i++) {
        size_t n = strcspn(p, ":");
        const char *type = trace_pattern_type(p);
        if (type && type < p + n) {
            r = add_name(t, type, (size_t)(p + n - type), UINT64_C(1) << patterns->rules[i]);
            found += r > 0;
        }
        p += n + (p[n] == ':');
    }
    pthread_mutex_unlock(&lock);
    if (r >= 0 && t->n_names)
        find_loaded(t, jni);
    return r < 0 ? r : found;
}

void trace_types_on_class(struct trace_types *t, JNIEnv *jni, jclass class, struct str name)
{
    uint64_t rules = rules_of(t, name), below = 0;
    struct loaded_types types;
    if (rules)
        keep_type(t, jni, class, rules);
    if (instrument_is_jdk(name))
        return;
    copy_loaded(t, &types);
    for (unsigned i = 0; i < types.n; i++)
        if ((*jni)->IsAssignableFrom(jni, class, types.classes[i]))
            below |= types.rules[i];
    pthread_mutex_lock(&lock);
    uint64_t *at = below ? map_at(&t->below, hash_bytes(name.data, name.len), 0, NULL) : NULL;
    if (at)
        *at |= below;
    pthread_mutex_unlock(&lock);
}

uint64_t trace_types_rules(const struct trace_types *t, struct str name)
{
    pthread_mutex_lock(&lock);
    const uint64_t *at = map_get(&t->below, hash_bytes(name.data, name.len));
    uint64_t rules = at ? *at : 0;
    pthread_mutex_unlock(&lock);
    return rules;
}

void trace_types_release(struct trace_types *t, JNIEnv *jni)
{
    for (unsigned i = 0; i < t->n_names; i++)
        free(t->names[i]);
    for (unsigned i = 0; i < t->n_classes; i++)
        (*jni)->DeleteGlobalRef(jni, t->classes[i]);
    map_release(&t->below);
    memset(t, 0, sizeof(*t));
}
