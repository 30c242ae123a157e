/* SPDX-License-Identifier: Apache-2.0 */
/* Objects and classes as the recording knows them: identity hashes and constants. */
#include "agent/capture/threads/threads.h"

#include "agent/names.h"
#include "base/map.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

uint32_t object_identity(jobject o)
{
    jint hash = 0;
    return o && (*vm.ti)->GetObjectHashCode(vm.ti, o, &hash) == JVMTI_ERROR_NONE ? (uint32_t)hash : 0;
}

/* Classes by the identity hash of their mirrors. */
static pthread_mutex_t classes_lock = PTHREAD_MUTEX_INITIALIZER;
static struct map classes;
static struct map class_names; /* by constant: char * */

static uint64_t class_constant(jclass c)
{
    char *signature = NULL;
    if ((*vm.ti)->GetClassSignature(vm.ti, c, &signature, NULL) != JVMTI_ERROR_NONE)
        return 0;
    size_t len = strlen(signature);
    char *name = signature;
    if (*name == 'L' && len > 2) {
        signature[len - 1] = 0;
        name++;
    }
    uint64_t id = jfr_define_class(thread_capture.jfr, &(struct jfr_class){.name = name});
    char *copy = thread_capture.watch ? strdup(name) : NULL;
    pthread_mutex_lock(&classes_lock);
    uint64_t *slot = copy ? map_at(&class_names, id, 0, NULL) : NULL;
    if (slot && !*slot)
        *slot = (uint64_t)(uintptr_t)copy;
    else
        free(copy);
    pthread_mutex_unlock(&classes_lock);
    vm_free(signature);
    return id;
}

void object_class_name(uint64_t class, char *to, size_t size)
{
    pthread_mutex_lock(&classes_lock);
    const uint64_t *name = map_get(&class_names, class);
    dotted_name(name ? (const char *)(uintptr_t)*name : "?", to, size);
    pthread_mutex_unlock(&classes_lock);
}

uint64_t class_record(jclass c)
{
    uint32_t hash = object_identity(c);
    pthread_mutex_lock(&classes_lock);
    const uint64_t *known = map_get(&classes, hash);
    uint64_t id = known ? *known : 0;
    pthread_mutex_unlock(&classes_lock);
    if (!id) {
        id = class_constant(c);
        pthread_mutex_lock(&classes_lock);
        if (map_put(&classes, hash, id) < 0)
            id = 0;
        pthread_mutex_unlock(&classes_lock);
    }
    return id;
}

uint64_t object_class(JNIEnv *jni, jobject o)
{
    jclass c = o ? (*jni)->GetObjectClass(jni, o) : NULL;
    uint64_t id = c ? class_record(c) : 0;
    if (c)
        (*jni)->DeleteLocalRef(jni, c);
    return id;
}

void objects_release(void)
{
    uint64_t key, value;
    for (size_t k = 0; map_next(&class_names, &k, &key, &value);)
        free((void *)(uintptr_t)value);
    map_release(&class_names);
    map_release(&classes);
}
