/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/vm/collect.h"

#include "agent/vm/vm.h"

#include <pthread.h>
#include <stdatomic.h>

static pthread_mutex_t collecting = PTHREAD_MUTEX_INITIALIZER;
static atomic_bool over;

void collect_stop(bool wait)
{
    over = true;
    if (wait) {
        pthread_mutex_lock(&collecting);
        pthread_mutex_unlock(&collecting);
    }
}

jweak collect_make_garbage(JNIEnv *jni)
{
    jbyteArray garbage = (*jni)->NewByteArray(jni, 8);
    jweak weak = garbage ? (*jni)->NewWeakGlobalRef(jni, garbage) : NULL;
    if (garbage)
        (*jni)->DeleteLocalRef(jni, garbage);
    vm_clear_exception(jni);
    return weak;
}

int collect_by(JNIEnv *jni, int (*f)(JNIEnv *jni, bool collect, void *context), void *context,
               bool *ret_collected)
{
    jweak garbage = ret_collected ? collect_make_garbage(jni) : NULL;
    bool may = !over;
    if (may) {
        pthread_mutex_lock(&collecting);
        may = !over;
        if (!may)
            pthread_mutex_unlock(&collecting);
    }
    int r = f(jni, may, context);
    if (may)
        pthread_mutex_unlock(&collecting);
    if (ret_collected)
        *ret_collected = garbage && (*jni)->IsSameObject(jni, garbage, NULL);
    if (garbage)
        (*jni)->DeleteWeakGlobalRef(jni, garbage);
    return r;
}

static int force(JNIEnv *jni, bool collect, void *unused)
{
    if (collect)
        (*vm.ti)->ForceGarbageCollection(vm.ti);
    return 0;
}

void collect_if_possible(JNIEnv *jni)
{
    collect_by(jni, force, NULL, NULL);
}

bool collect_garbage(JNIEnv *jni)
{
    bool collected;
    collect_by(jni, force, NULL, &collected);
    return collected;
}
