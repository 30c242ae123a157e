/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/vm/class_map.h"

static uint32_t hash_of(jclass c)
{
    jint hash = 0;
    return (*vm.ti)->GetObjectHashCode(vm.ti, c, &hash) == JVMTI_ERROR_NONE ? (uint32_t)hash : 0;
}

/* Returns the entry of a class, or NULL. Requires the lock. */
static const struct known_class *find(const struct class_map *m, JNIEnv *jni, jclass c,
                                      uint32_t hash)
{
    const uint64_t *first = map_get(&m->first, hash);
    for (uint64_t at = first ? *first : 0; at; at = m->list.data[at - 1].next)
        if ((*jni)->IsSameObject(jni, m->list.data[at - 1].mirror, c))
            return &m->list.data[at - 1];
    return NULL;
}

bool class_map_get(struct class_map *m, JNIEnv *jni, jclass c, uint64_t *ret)
{
    uint32_t hash = hash_of(c);
    pthread_mutex_lock(&m->lock);
    const struct known_class *known = find(m, jni, c, hash);
    if (known)
        *ret = known->number;
    pthread_mutex_unlock(&m->lock);
    return known != NULL;
}

void class_map_put(struct class_map *m, JNIEnv *jni, jclass c, uint64_t number)
{
    uint32_t hash = hash_of(c);
    jweak mirror = (*jni)->NewWeakGlobalRef(jni, c);
    bool kept = false;
    pthread_mutex_lock(&m->lock);
    uint64_t *first = mirror && !find(m, jni, c, hash) ? map_at(&m->first, hash, 0, NULL) : NULL;
    if (first) {
        struct known_class one = {.mirror = mirror, .number = number, .next = (uint32_t)*first};
        kept = vec_push(&m->list, one) == 0;
        *first = kept ? m->list.len : *first;
    }
    pthread_mutex_unlock(&m->lock);
    if (mirror && !kept)
        (*jni)->DeleteWeakGlobalRef(jni, mirror);
}

void class_map_release(struct class_map *m, JNIEnv *jni)
{
    pthread_mutex_lock(&m->lock);
    for (size_t i = 0; jni && i < m->list.len; i++)
        (*jni)->DeleteWeakGlobalRef(jni, m->list.data[i].mirror);
    vec_release(&m->list);
    map_release(&m->first);
    pthread_mutex_unlock(&m->lock);
}
