/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records the parts of the VM's memory as its management library reports them. Only natives of that
 * library are called, and no Java code except the constructors of what they return.
 */
#include "agent/capture/vm/vm.h"

#include "agent/vm/management.h"

enum { POOLS = 24 };

#define POOLS_EVERY  (2 * NS_PER_SECOND)
#define POOLS_BEHIND (NS_PER_SECOND / 2) /* nothing is done while the program starts */

static struct {
    uint64_t due_ns;
    bool found, failed; /* set once per process: the natives were found; some are missing */
    int n;

    struct pool {
        jobject pool;
        char name[64];
    } of[POOLS];

    jobject(JNICALL *usage)(JNIEnv *, jobject);
    jfieldID used, committed, max;
} all;

void pools_reset(void)
{
    all.due_ns = now_ns() + POOLS_BEHIND;
}

/* Returns a class's field, or NULL without a pending exception. */
static jfieldID field_of(JNIEnv *jni, jclass c, const char *name, const char *type)
{
    jfieldID f = c ? (*jni)->GetFieldID(jni, c, name, type) : NULL;
    vm_clear_exception(jni);
    return f;
}

static void add_pool(JNIEnv *jni, jobject pool)
{
    struct pool *p = &all.of[all.n];
    jclass c = (*jni)->GetObjectClass(jni, pool);
    jfieldID name = field_of(jni, c, "name", "Ljava/lang/String;");
    jstring text = name ? (*jni)->GetObjectField(jni, pool, name) : NULL;
    const char *s = text ? (*jni)->GetStringUTFChars(jni, text, NULL) : NULL;
    if (s) {
        snprintf(p->name, sizeof(p->name), "%s", s);
        (*jni)->ReleaseStringUTFChars(jni, text, s);
        p->pool = (*jni)->NewGlobalRef(jni, pool);
        all.n += p->pool != NULL;
    }
    if (text)
        (*jni)->DeleteLocalRef(jni, text);
    (*jni)->DeleteLocalRef(jni, c);
}

static bool find_pools(JNIEnv *jni)
{
    static const char list_name[] = "Java_sun_management_MemoryImpl_getMemoryPools0",
                      usage_name[] = "Java_sun_management_MemoryPoolImpl_getUsage0";
    jobjectArray(JNICALL * list)(JNIEnv *, jclass);
    list = (jobjectArray(JNICALL *)(JNIEnv *, jclass))management_native(list_name, list_name);
    all.usage = (jobject(JNICALL *)(JNIEnv *, jobject))management_native(usage_name, usage_name);
    vm_clear_exception(jni);
    if (!list || !all.usage)
        return false;
    jclass usage = (*jni)->FindClass(jni, "java/lang/management/MemoryUsage");
    vm_clear_exception(jni);
    all.used = field_of(jni, usage, "used", "J");
    all.committed = field_of(jni, usage, "committed", "J");
    all.max = field_of(jni, usage, "max", "J");
    jobjectArray pools = usage ? list(jni, NULL) : NULL;
    vm_clear_exception(jni);
    jsize n = pools ? (*jni)->GetArrayLength(jni, pools) : 0;
    for (jsize i = 0; i < n && all.n < POOLS; i++) {
        jobject pool = (*jni)->GetObjectArrayElement(jni, pools, i);
        if (pool) {
            add_pool(jni, pool);
            (*jni)->DeleteLocalRef(jni, pool);
        }
    }
    if (pools)
        (*jni)->DeleteLocalRef(jni, pools);
    if (usage)
        (*jni)->DeleteLocalRef(jni, usage);
    return all.n > 0 && all.used && all.committed && all.max;
}

static void put_pool(JNIEnv *jni, const struct pool *p, uint64_t now)
{
    struct jfr_event e;
    jobject u = all.usage(jni, p->pool);
    vm_clear_exception(jni);
    if (!u)
        return;
    if (jfr_begin(vm_activity.jfr, vm_activity.pool_type, sizeof(p->name) + 64, &e)) {
        jfr_put_time(&e, now);
        jfr_put_string(&e, p->name);
        jfr_put_long(&e, (*jni)->GetLongField(jni, u, all.used));
        jfr_put_long(&e, (*jni)->GetLongField(jni, u, all.committed));
        jfr_put_long(&e, (*jni)->GetLongField(jni, u, all.max));
        jfr_commit(&e);
    }
    (*jni)->DeleteLocalRef(jni, u);
}

void pools_flush(JNIEnv *jni, uint64_t now, bool at_once)
{
    if (!jni || (now < all.due_ns && !at_once))
        return;
    all.due_ns = now + POOLS_EVERY;
    if (!all.found) {
        all.found = true;
        all.failed = !find_pools(jni);
    }
    for (int i = 0; i < all.n && !all.failed; i++)
        put_pool(jni, &all.of[i], now);
}
