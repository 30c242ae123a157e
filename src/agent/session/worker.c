/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/common/fault.h"
#include "agent/common/rounds.h"
#include "agent/instrument/instrument.h"
#include "agent/session/captures.h"
#include "agent/session/private.h"
#include "agent/vm/own_thread.h"
#include "agent/vm/thread_table.h"
#include "base/clock.h"
#include "base/timed_wait.h"
#include "jfr/writer.h"

#include <errno.h>
#include <pthread.h>
#include <time.h>

/* IDLE_MS: the time between rounds while the program uses less than 1/IDLE_SHARE of a processor. */
enum {
    WORK_MS = 100,
    DRAIN_MOST_MS = 200,
    DRAIN_MS = SESSION_DRAIN_MS,
    SOON_MS = 1,
    DISMISS_MS = 20,
    IDLE_MS = 250,
    IDLE_SHARE = 50
};

/* used with the session's lock; signals that the worker must check worker_stop */
static pthread_cond_t worker_due;
static bool worker_exists, worker_stop;
static atomic_bool vm_ends, worker_left; /* the worker leaves without the lock once the VM ends */

/*
 * Returns whether a recording that is always on may leave out rounds, because a program that uses
 * no CPU time produces nothing to record.
 */
static bool is_idle(const struct session *s)
{
    static uint64_t at_ns, used_ns;
    static bool idle;
    uint64_t now = now_ns();
    /*
     * Rounds that the budget has slowed down are rare enough, and reading the CPU time is
     * expensive, because the kernel visits each thread.
     */
    if (!option_always(&s->options) || rounds_needed() || rounds_one_of() > 1)
        return false;
    if (now - at_ns >= NS_PER_SECOND) {
        uint64_t used = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
        idle = now - at_ns < 2 * NS_PER_SECOND && used - used_ns < (now - at_ns) / IDLE_SHARE;
        at_ns = now;
        used_ns = used;
    }
    return idle;
}

/*
 * With the lock held, which is released meanwhile: waits for ms, or until the recording's file has
 * to grow, and sets *ret_grow if it has to. Without can_grow only the time ends the wait. Returns
 * false, without the lock, if the VM ends.
 */
static bool wait_for_work(long ms, bool can_grow, bool *ret_grow)
{
    *ret_grow = false;
    if (!can_grow) {
        timed_wait(&worker_due, &session_lock, (uint64_t)ms * NS_PER_MS);
        return true;
    }
    pthread_mutex_unlock(&session_lock);
    *ret_grow = waker_wait(&rounds_waker, (uint64_t)ms * NS_PER_MS);
    if (atomic_load(&vm_ends))
        return false;
    pthread_mutex_lock(&session_lock);
    return true;
}

/* Makes the worker check worker_stop and vm.dying. Requires the lock. */
static void call_worker(void)
{
    waker_wake(&rounds_waker);
    pthread_cond_broadcast(&worker_due);
}

/*
 * The agent's thread. It flushes ten times per second and drains twice as often, both less often if
 * the budget requires it. It also makes the recording's file grow when events need room, ends the
 * session when its duration is over, and exits when there is no session.
 */
static void JNICALL work(jvmtiEnv *ti, JNIEnv *jni, void *unused)
{
    bool can_grow = true;
    pthread_mutex_lock(&session_lock);
    if (!worker_stop && !vm.dying && session_now && !vm.late)
        captures_start_later(session_now, jni);
    while (!worker_stop && !vm.dying && session_now) {
        bool at_once = rounds_at_once();
        bool rest = !at_once && can_grow && is_idle(session_now);
        rounds_rest(rest);
        unsigned of = rounds_one_of();
        long drain_ms = MIN((long)DRAIN_MS * of, (long)DRAIN_MOST_MS), work_ms = (long)WORK_MS * of;
        bool low;
        if (!wait_for_work(at_once ? SOON_MS : rest ? IDLE_MS : drain_ms, can_grow, &low)) {
            atomic_store(&worker_left, true);
            instrument_restore(jni);
            return;
        }
        rounds_rest(false);
        struct session *s = session_now;
        if (worker_stop || vm.dying || !s)
            break;
        if ((s->due_ns && now_ns() >= s->due_ns) || out_is_cut(&s->out)) {
            session_time_is_over(s, jni);
            break;
        }
        can_grow = !low || !s->out.jfr || jfr_writer_work(s->out.jfr) == 0;
        uint64_t now = now_ns(), drain_ns = (uint64_t)drain_ms * NS_PER_MS;
        if (low && !at_once && now - s->last_drain_ns < drain_ns)
            continue;
        if (now - s->last_work_ns + drain_ns / 2 < (uint64_t)work_ms * NS_PER_MS)
            session_drain_captures(s, jni);
        else
            session_flush_captures(s, jni);
        session_save_captures(s, jni);
    }
    worker_exists = false;
    pthread_cond_broadcast(&worker_due);
    pthread_mutex_unlock(&session_lock);
    instrument_restore(jni);
}

int session_worker_start(JNIEnv *jni)
{
    static bool once;
    if (!once) {
        timed_wait_init(&worker_due);
        once = true;
    }
    worker_stop = false;
    rounds_begin();
    worker_exists = true;
    int r = own_thread_start(jni, "jvmscope", work, NULL, NULL);
    worker_exists = r == 0;
    return r;
}

void session_worker_stop(void)
{
    worker_stop = true;
    call_worker();
    while (worker_exists)
        pthread_cond_wait(&worker_due, &session_lock);
}

void session_worker_ends(void)
{
    atomic_store(&vm_ends, true);
    waker_wake(&rounds_waker);
}

void session_worker_dismiss(void)
{
    if (worker_exists)
        call_worker();
    /* Waits in short intervals, because a worker that leaves without the lock notifies nobody. */
    for (int ms = 0; worker_exists && !atomic_load(&worker_left) && ms < DISMISS_MS; ms++)
        (void)timed_wait(&worker_due, &session_lock, NS_PER_MS);
}
