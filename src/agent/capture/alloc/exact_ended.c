/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Releases what a thread leaves when it ends: its counters, and perhaps an object that is not
 * counted yet.
 */
#include "agent/capture/alloc/alloc.h"
#include "agent/capture/alloc/exact_probes.h"

void alloc_follow_counted(JNIEnv *jni, int64_t site, jobject o, jlong size)
{
    double chance =
        alloc_follow == FOLLOW_ALL || sites_follow_each(0) ? 1 : sites_chance(size, SITES_INTERVAL);
    if (site >= 0 && (double)alloc_random_below(1 << 20) < chance * (1 << 20))
        sites_follow(jni, site, (*jni)->NewWeakGlobalRef(jni, o), 1 / chance, size);
}

void alloc_pending_finish(JNIEnv *jni, struct alloc_pending *p, bool counted)
{
    if (!counted) {
        jobject o = (*jni)->NewLocalRef(jni, p->object);
        alloc_add(p->site, 1, (double)p->size);
        sites_without_probe(p->site);
        if (o) {
            alloc_follow_counted(jni, p->site, o, p->size);
            (*jni)->DeleteLocalRef(jni, o);
        }
    }
    (*jni)->DeleteWeakGlobalRef(jni, p->object);
    p->object = NULL;
}

/*
 * The blocks of threads that could not acquire the lock when they ended. A thread that ends must
 * not wait for one that may be suspended, so the next owner of the lock does the rest.
 */
static struct alloc_block *ended;

void alloc_block_release_later(struct alloc_block *b)
{
    alloc_orphan(b);
    b->next_ended = __atomic_load_n(&ended, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(&ended, &b->next_ended, b, false, __ATOMIC_RELEASE,
                                        __ATOMIC_RELAXED))
        ;
}

void alloc_block_release(JNIEnv *jni, struct alloc_block *b)
{
    /*
     * Without threads in traces, a stratum may continue in the next thread that uses the counters.
     */
    bool forget = sites_by_thread() && alloc_exact.on;
    if (b->pending.object)
        alloc_pending_finish(jni, &b->pending, false);
    if (forget)
        alloc_forget(b);
    alloc_disown(b, forget);
    alloc_block_give(b);
}

void alloc_exact_release_ended(JNIEnv *jni)
{
    struct alloc_block *b = __atomic_exchange_n(&ended, NULL, __ATOMIC_ACQUIRE);
    while (b) {
        struct alloc_block *next = b->next_ended;
        alloc_block_release(jni, b);
        b = next;
    }
}
