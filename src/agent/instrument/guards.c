/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/instrument/guards.h"

#include "agent/stacks/names.h"
#include "agent/vm/vm.h"
#include "base/hash.h"
#include "base/map.h"

#include <pthread.h>
#include <string.h>

/*
 * Where the first handler of a method begins. The key consists of the method and the length of its
 * code; the length distinguishes code with probes from code without.
 */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct map guards;

static uint64_t key_of(struct str class_name, struct str name, struct str descriptor,
                       uint64_t length)
{
    uint64_t key = hash_bytes(class_name.data, class_name.len);
    key = hash_u64(key ^ hash_bytes(name.data, name.len));
    return hash_u64(hash_u64(key ^ hash_bytes(descriptor.data, descriptor.len)) ^ length);
}

void guards_add(struct str class_name, const struct edit *e)
{
    uint32_t length, first = edit_guards(e, &length);
    struct str name = class_utf8(e->rewrite->class, e->method->name);
    struct str descriptor = class_utf8(e->rewrite->class, e->method->descriptor);
    if (first == length)
        return;
    pthread_mutex_lock(&lock);
    (void)!map_put(&guards, key_of(class_name, name, descriptor, length), first);
    pthread_mutex_unlock(&lock);
}

bool guards_have(JNIEnv *jni, jmethodID method, jlocation at)
{
    jlocation start, last;
    unsigned hold = names_hold();
    const struct method *m = method && at >= 0 ? names_method(jni, method) : NULL;
    if (!m || (*vm.ti)->GetMethodLocation(vm.ti, method, &start, &last) != JVMTI_ERROR_NONE) {
        names_unhold(hold);
        return false;
    }
    struct str class_name = {m->class_name, strlen(m->class_name)},
               name = {m->name, strlen(m->name)};
    struct str descriptor = {m->descriptor, strlen(m->descriptor)};
    pthread_mutex_lock(&lock);
    const uint64_t *first =
        map_get(&guards, key_of(class_name, name, descriptor, (uint64_t)last + 1));
    bool is = first && at >= (jlocation)*first;
    pthread_mutex_unlock(&lock);
    names_unhold(hold);
    return is;
}
