/* SPDX-License-Identifier: Apache-2.0 */

#include "agent/capture/threads/threads.h"

#include "agent/capture/threads/at_start.h"
#include "agent/capture/threads/carriers.h"
#include "agent/capture/threads/deadlocks.h"
#include "agent/capture/threads/delays.h"
#include "agent/capture/threads/io.h"
#include "agent/capture/threads/lifetimes.h"
#include "agent/capture/threads/locks.h"
#include "agent/capture/threads/monitors.h"
#include "agent/capture/threads/mounts.h"
#include "agent/capture/threads/natives.h"
#include "agent/capture/threads/objects.h"
#include "agent/capture/threads/owner.h"
#include "agent/capture/threads/stack.h"
#include "agent/capture/threads/unpark.h"
#include "agent/capture/threads/waiters.h"
#include "agent/capture/threads/waiting.h"
#include "agent/capture/threads/wake_cost.h"
#include "agent/common/inside.h"
#include "agent/session/pace.h"
#include "agent/vm/vm.h"
#include "base/clock.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

#define WAITING_REPORT (NS_PER_SECOND / 2)

struct thread_capture thread_capture;

/* ---- calls of our natives in progress ---- */

static struct inside inside;

/* What natives and probes may do: nothing, describe classes to the recording, or record. */
enum natives_do { NATIVES_NOTHING, NATIVES_DESCRIBE, NATIVES_RECORD };

bool threads_natives_enter(void)
{
    return inside_enter_at(&inside, NATIVES_RECORD);
}

bool threads_natives_enter_early(void)
{
    return inside_enter_at(&inside, NATIVES_DESCRIBE);
}

void threads_natives_leave(void)
{
    inside_leave(&inside);
}

static bool is_idle(void)
{
    return inside_is_idle(&inside);
}

void threads_put_interaction(enum threads_type type, struct waiter *w, uint64_t trace,
                             uint64_t class, uint32_t object, uint64_t target, bool all)
{
    struct jfr_event e;
    if (!jfr_begin(thread_capture.jfr, thread_capture.types[type], 0, &e))
        return;
    jfr_put_time(&e, now_ns());
    jfr_put_long(&e, (int64_t)w->id);
    jfr_put_long(&e, (int64_t)trace);
    if (type == TYPE_NOTIFY) {
        jfr_put_long(&e, (int64_t) class);
        jfr_put_long(&e, object);
        jfr_put_byte(&e, all);
    } else {
        jfr_put_long(&e, (int64_t)target);
        if (type != TYPE_UNPARK)
            jfr_put_long(&e, object);
    }
    jfr_commit(&e);
}

/* ---- the capture ---- */

static bool wanted(const struct options *o)
{
    return option_on(o, OPT_THREADS) || option_on(o, OPT_DEADLOCK) || o->v[OPT_LOCKS].text ||
           (option_on(o, OPT_MONITOR) && option_format(o)->events);
}

static int find_fields(JNIEnv *jni)
{
    static const char thread[] = "java/lang/Thread";

    if (!thread_capture.tid)
        thread_capture.tid = vm_field(jni, thread, "tid", "J");
    if (!thread_capture.park_blocker)
        thread_capture.park_blocker = vm_field(jni, thread, "parkBlocker", "Ljava/lang/Object;");
    return thread_capture.tid && thread_capture.park_blocker ? 0 : -ENOTSUP;
}

static struct {
    int natives;
    uint64_t wake_up;
    bool wake_up_later; /* the cost of a wake-up has still to be measured */
} analysis;

static void put_analysis(const char *locks)
{
    struct jfr_event e;
    if (!jfr_begin(thread_capture.jfr, thread_capture.types[TYPE_ANALYSIS], 1100, &e))
        return;
    jfr_put_time(&e, now_ns());
    jfr_put_byte(&e, thread_capture.instrument);
    jfr_put_int(&e, analysis.natives);
    jfr_put_byte(&e, vm.hotspot);
    jfr_put_string_n(&e, locks, locks ? MIN(strlen(locks), 1000) : 0);
    jfr_put_long(&e, (int64_t)analysis.wake_up);
    jfr_put_byte(&e, delays_counted());
    jfr_commit(&e);
}

static int load(struct session *s, struct buf *why)
{
    int r = jfr_declare(s->out.jfr, thread_types, TYPES, thread_capture.types);
    return r < 0 ? r : deadlock_watch_load(s, why);
}

static int start(struct session *s, JNIEnv *jni, struct buf *why)
{
    int r = find_fields(jni);
    if (r < 0) {
        buf_printf(why, "threads=y: java.lang.Thread has no field tid or parkBlocker in this VM");
        return r;
    }
    r = waiters_init();
    if (r < 0)
        return r;
    waiting_init(s->out.jfr);
    thread_capture.depth = (jint)MIN(s->options.v[OPT_DEPTH].number, 512);
    thread_capture.instrument =
        !s->options.v[OPT_CONTANALYSIS].text || option_on(&s->options, OPT_CONTANALYSIS);
    owner_init(jni);
    if (option_on(&s->options, OPT_DEADLOCK))
        r = deadlock_watch_start(jni, option_always(&s->options), why);
    if (r < 0)
        return r;
    /* At the start of the VM this is left to the agent's thread, because it takes milliseconds. */
    analysis.wake_up = vm.late ? wake_cost() : 0;
    analysis.wake_up_later = !vm.late;
    thread_capture.jfr = s->out.jfr;
    inside_open(&inside, NATIVES_DESCRIBE);
    stack_init(jni);
    io_start(jni);
    int natives = natives_bind(jni, thread_capture.instrument, why);
    if (natives < 0)
        return natives;
    analysis.natives = natives;
    jvmtiCapabilities want = {0}, missing = {0};
    vm_capability_virtual_threads(&want);
    thread_capture.virtual_too =
        vm.version >= 21 && vm_need(&want, &missing) == 0 && vm_capabilities_empty(&missing);
    if (thread_capture.virtual_too && thread_capture.instrument)
        r = unparks_on(jni, why);
    if (r == 0 && s->options.v[OPT_LOCKS].text)
        r = locks_on(s->options.v[OPT_LOCKS].text, jni, why);
    return r;
}

/* Makes the probes, which have done nothing so far, and the VM's events record from now on. */
static int begin(struct session *s, JNIEnv *jni, struct buf *why)
{
    inside_open(&inside, NATIVES_RECORD);
    struct waiter *self_waits = waiter_self(jni, NULL);
    if (self_waits)
        delays_run_begins(self_waits, now_ns(), 0);
    uint64_t since = lifetimes_put_existing(jni, UINT32_MAX);
    put_analysis(s->options.v[OPT_LOCKS].text);
    int r = lifetimes_on();
    if (r == 0) {
        /* Threads that started since the first call have posted no event. */
        lifetimes_put_existing(jni, UINT32_MAX);
        r = vm_events_on(&thread_monitor_events);
    }
    if (r == 0 && thread_capture.virtual_too)
        r = lifetimes_virtual_on();
    thread_capture.mounts = r == 0 && thread_capture.virtual_too && mounts_on();
    if (r == 0)
        at_start_record(jni, since + 1);
    return r;
}

static void drain(struct session *s, JNIEnv *jni)
{
    if (!analysis.wake_up_later || vm.dying)
        return;
    analysis.wake_up_later = false;
    analysis.wake_up = wake_cost();
    put_analysis(s->options.v[OPT_LOCKS].text);
}

static void flush(struct session *s, JNIEnv *jni)
{
    static struct pace pace;
    at_start_flush(jni);
    if (!pace_begins(&pace))
        return;
    waiting_report_all(now_ns() - WAITING_REPORT);
    pace_ends(&pace);
}

/*
 * Writes again which threads exist and what they wait for. Each of the two lists is limited to
 * about a quarter of the chunk, because otherwise a chunk might contain nothing else.
 */
static void restate(struct session *s, JNIEnv *jni)
{
    enum { EACH = 512 };

    struct jfr_ring_state ring;
    uint32_t most = jfr_writer_ring(s->out.jfr, &ring)
                        ? (uint32_t)MIN(ring.segment / EACH, (uint64_t)UINT32_MAX)
                        : UINT32_MAX;
    objects_forget();
    put_analysis(s->options.v[OPT_LOCKS].text);
    lifetimes_put_existing(jni, most);
    at_start_restate();
    waiting_report_again(most);
}

/* Keeps the stacks of waits in progress, which refer to them by id. */
static void keep_stacks(struct session *s, JNIEnv *jni)
{
    waiting_keep_stacks();
    at_start_keep_stacks();
}

static void dump(struct session *s, JNIEnv *jni, enum dump_reason reason)
{
    waiting_report_all(UINT64_MAX);
}

static void stop(struct session *s, JNIEnv *jni)
{
    deadlock_watch_stop(jni);
    locks_off(jni);
    unparks_off(jni);
    io_stop();
    natives_unbind(jni);
    if (thread_capture.mounts)
        mounts_off();
    vm_events_off(&thread_monitor_events);
    lifetimes_off();
    inside_close(&inside);
    if (thread_capture.jfr) {
        waiting_report_all(UINT64_MAX);
        jfr_lose(thread_capture.jfr, LOSS_WAITS_STOPPED, !waiters_reachable());
    }
    vm_wait_callbacks();
    if (is_idle())
        thread_capture.jfr = NULL;
}

static void release(struct session *s)
{
    thread_capture.jfr = NULL;
    waiters_release();
    objects_forget();
    at_start_release();
    carriers_release();
}

static void status(struct session *s, struct buf *out)
{
    if (s->options.v[OPT_LOCKS].text)
        buf_printf(out, "threads.holds %llu\nthreads.holds_lost %llu\n",
                   (unsigned long long)locks_count(), (unsigned long long)locks_lost());
    if (option_on(&s->options, OPT_DEADLOCK))
        buf_printf(out, "threads.deadlocks %llu\n", (unsigned long long)deadlock_watch_found());
    deadlock_watch_status(out);
}

const struct capture capture_threads = {
    .name = "threads",
    .options = OPTION_BIT(OPT_THREADS) | OPTION_BIT(OPT_CONTANALYSIS) | OPTION_BIT(OPT_DEADLOCK) |
               OPTION_BIT(OPT_LOCKS),
    .jdk_events = "jdk.JavaMonitorEnter jdk.JavaMonitorWait jdk.ThreadPark jdk.ThreadSleep "
                  "jdk.ThreadStart jdk.ThreadEnd jdk.FileRead jdk.FileWrite jdk.SocketRead "
                  "jdk.SocketWrite jdk.GCPhasePause ",
    .needs = {.can_generate_monitor_events = 1},
    .own_stacks = true,
    .records_only = true,
    .changes_classes = true,
    .likes = {.can_generate_garbage_collection_events = 1, .can_get_monitor_info = 1},
    .wanted = wanted,
    .load = load,
    .start = start,
    .begin = begin,
    .stop = stop,
    .release = release,
    .is_idle = is_idle,
    .flush = flush,
    .drain = drain,
    .dump = dump,
    .restate = restate,
    .keep_stacks = keep_stacks,
    .status = status,
};
