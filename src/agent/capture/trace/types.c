/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/capture/trace/types.h"

#include "agent/instrument/choice.h"
#include "agent/instrument/instrument.h"
#include "agent/loaded_classes.h"
#include "agent/vm.h"
#include "base/hash.h"

#include <errno.h>
#include <string.h>

static const char word[] = "implements ";

static bool is_type(const struct trace_types *t, struct str name)
{
    for (unsigned i = 0; i < t->n_names; i++)
        if (choice_is_class(name, t->names[i]))
            return true;
    return false;
}

static void keep_type(struct trace_types *t, JNIEnv *jni, jclass class)
{
    for (unsigned i = 0; i < t->n_classes; i++)
        if ((*jni)->IsSameObject(jni, t->classes[i], class))
            return;
    jclass global = t->n_classes < TRACE_TYPES_MAX ? (*jni)->NewGlobalRef(jni, class) : NULL;
    if (global)
        t->classes[t->n_classes++] = global;
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
            if (*signature == 'L' && len > 2 && is_type(t, (struct str){signature + 1, len - 2}))
                keep_type(t, jni, all.of[i]);
            vm_free(signature);
        }
    }
}

int trace_types_set(struct trace_types *t, const char *patterns, JNIEnv *jni)
{
    trace_types_release(t, jni);
    for (const char *p = patterns; *p && t->n_names < TRACE_TYPES_MAX;) {
        size_t n = strcspn(p, ":"), skip = sizeof(word) - 1;
        if (n > skip && strncmp(p, word, skip) == 0) {
            char *name = strndup(p + skip, n - skip);
            if (!name)
                return -ENOMEM;
            t->names[t->n_names++] = name;
        }
        p += n + (p[n] == ':');
    }
    if (t->n_names)
        find_loaded(t, jni);
    return (int)t->n_names;
}

void trace_types_look(struct trace_types *t, JNIEnv *jni, jclass class, struct str name)
{
    if (is_type(t, name))
        keep_type(t, jni, class);
    if (instrument_is_jdk(name))
        return;
    for (unsigned i = 0; i < t->n_classes; i++)
        if ((*jni)->IsAssignableFrom(jni, class, t->classes[i]))
            (void)!map_put(&t->below, hash_bytes(name.data, name.len), 1);
}

bool trace_types_has(const struct trace_types *t, struct str name)
{
    return map_get(&t->below, hash_bytes(name.data, name.len)) != NULL;
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
