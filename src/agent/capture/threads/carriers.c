/* SPDX-License-Identifier: Apache-2.0 */

#include "agent/capture/threads/carriers.h"

#include "agent/capture/threads/waiters.h"
#include "base/clock.h"
#include "base/macro.h"

#include <stdatomic.h>

/* By thread_index: the virtual thread that is mounted on a carrier; 0: none, or not known. */
static _Atomic uint64_t carries[THREADS_MAX];

uint64_t thread_running_on(const struct thread *t)
{
    uint64_t mounted = atomic_load(&carries[thread_index(t)]);
    return mounted ? mounted : t->serial;
}

/*
 * The virtual threads that the calling carrier has run. Those that ran for a short time, or long
 * ago, are replaced first.
 */
enum { CARRIED = 8 };

#define CARRIED_KEPT (10 * NS_PER_SECOND)

static __thread struct {
    uint64_t since; /* since when it has been running the present one */

    struct {
        uint64_t id, from, until;
    } ran[CARRIED];
} carried_here;

static void note_carried(uint64_t id, uint64_t now)
{
    uint64_t least = UINT64_MAX;
    int at = 0;
    for (int i = 0; i < CARRIED; i++) {
        uint64_t until = carried_here.ran[i].until;
        uint64_t ns = until + CARRIED_KEPT < now ? 0 : until - carried_here.ran[i].from;
        if (ns < least) {
            least = ns;
            at = i;
        }
    }
    carried_here.ran[at].id = id;
    carried_here.ran[at].from = carried_here.since;
    carried_here.ran[at].until = now;
}

void thread_carries(JNIEnv *jni, uint64_t id)
{
    struct thread *t = waiters_platform_self(jni);
    if (!t)
        return;
    uint64_t was = atomic_exchange(&carries[thread_index(t)], id);
    if (was == id)
        return;
    uint64_t now = now_ns();
    if (was)
        note_carried(was, now);
    carried_here.since = now;
}

uint64_t thread_carried_since(uint64_t time)
{
    uint64_t most = 0, id = 0;
    for (int i = 0; i < CARRIED; i++) {
        uint64_t from = MAX(carried_here.ran[i].from, time), until = carried_here.ran[i].until;
        if (until > from && until - from > most) {
            most = until - from;
            id = carried_here.ran[i].id;
        }
    }
    return id;
}

void thread_carried(const struct thread *carrier, uint64_t was, uint64_t now)
{
    atomic_compare_exchange_strong(&carries[thread_index(carrier)], &was, now);
}

void carriers_thread_ends(const struct thread *t)
{
    if (atomic_load(&carries[thread_index(t)]))
        atomic_store(&carries[thread_index(t)], 0);
}

void carriers_release(void)
{
    for (uint32_t i = 0; i < threads_used(); i++)
        if (atomic_load(&carries[i]))
            atomic_store(&carries[i], 0);
}
