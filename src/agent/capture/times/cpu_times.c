/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cpu=times and cpu=old: instrumented code counts every call in a call tree. clock=cpu: a timer on
 * each thread's CPU clock reads the thread's current node (tree.h), so calls do not read a clock.
 * clock=elapsed: every call reads the clock twice, and the cost of that is measured at start
 * (costs.c) and subtracted (report.c). doc/cpu-times.md describes the alternatives that were
 * measured and why these two were chosen.
 */
#include "agent/capture/times/methods.h"
#include "agent/capture/times/state.h"
#include "agent/instrument/probe_class.h"
#include "agent/instrument/running.h"
#include "agent/session/capture.h"
#include "agent/session/session.h"
#include "jfr/losses.h"

#include <errno.h>
#include <string.h>

#define TREE_LIMIT (UINT64_C(1) << 30)

struct cpu_times cpu_times = {.lock = PTHREAD_MUTEX_INITIALIZER};
static jclass probe_class;

static bool wanted(const struct options *o)
{
    return option_is(o, OPT_CPU, "times") || option_is(o, OPT_CPU, "old");
}

static int start(struct session *s, JNIEnv *jni, struct buf *why)
{
    cpu_times.elapsed = option_is(&s->options, OPT_CLOCK, "elapsed");
    cpu_times.by_thread = option_on(&s->options, OPT_THREAD);
    atomic_store(&cpu_times.no_timer, 0);
    atomic_store(&cpu_times.no_slot, 0);
    atomic_store(&cpu_times.no_context, 0);
    if (!cpu_times.eetop)
        cpu_times.eetop = probe_field_offset(jni, "java/lang/Thread", "eetop", "J");
    if (!cpu_times.carrier && vm.version >= 21) {
        cpu_times.thread_id = probe_field_offset(jni, "java/lang/Thread", "tid", "J");
        cpu_times.carrier = cpu_times.thread_id <= 0
                                ? 0
                                : MAX(0, probe_field_offset(jni, "java/lang/VirtualThread",
                                                            "carrierThread", "Ljava/lang/Thread;"));
    }
    if (cpu_times.eetop <= 0 || sizeof(void *) != 8) {
        buf_printf(why, "cpu=times: only HotSpot on 64 bits");
        return -ENOTSUP;
    }
    int r = times_threads_prepare();
    if (r == 0)
        r = times_begin(&cpu_times.tree, TREE_LIMIT, cpu_times.elapsed);
    if (r < 0) {
        buf_printf(why, "cpu=times: out of memory");
        return r;
    }
    r = probe_define(jni, TIMES_PROBE, &probe_class, why);
    if (r == 0)
        r = threads_listen(&times_listener);
    if (r == 0)
        r = instrument_choose(s->options.v[OPT_INCLUDE].text, s->options.v[OPT_EXCLUDE].text);
    if (r == 0)
        r = times_costs_begin(probe_class);
    if (r == 0)
        times_costs_measure(jni);
    if (r == 0)
        r = instrument_on(&times_client, jni, why);
    if (r == 0 && vm.late && s->out.jfr)
        instrument_lose_running(s->out.jfr, jni, LOSS_TIMES_RUNNING, NULL);
    return r;
}

/*
 * Begins a new tree. The calls made while classes were changed remain in the tree that
 * ends here. Calls in progress then find no context, like those of code that was entered before its
 * class was changed, and the calls that they make from now on have no caller.
 */
static int begin(struct session *s, JNIEnv *jni, struct buf *why)
{
    int r = 0;
    if (!vm.late)
        return r;
    pthread_mutex_lock(&cpu_times.lock);
    times_threads_forget();
    r = times_begin(&cpu_times.tree, TREE_LIMIT, cpu_times.elapsed);
    times_costs_leave_tree();
    pthread_mutex_unlock(&cpu_times.lock);
    if (r < 0)
        buf_string(why, "cpu=times: out of memory");
    return r;
}

static void stop(struct session *s, JNIEnv *jni)
{
    if (!cpu_times.tree.active)
        return;
    instrument_off(&times_client, jni);
    threads_unlisten(&times_listener);
    pthread_mutex_lock(&cpu_times.lock);
    times_threads_forget();
    if (vm.dying)
        cpu_times.tree.active = false;
    else
        times_end(&cpu_times.tree);
    pthread_mutex_unlock(&cpu_times.lock);
    times_report_release();
    times_methods_forget();
}

static uint64_t save(struct session *s, JNIEnv *jni, bool *ret_all)
{
    uint64_t events = 0;
    /*
     * If the VM is killed, these counts are the last ones, so they use the cost of probes that the
     * JIT has compiled by now.
     */
    if (cpu_times.tree.active)
        times_costs_refine(jni);
    *ret_all = cpu_times.tree.active &&
               times_report(s, jni, &cpu_times.tree, &cpu_times.costs, times_threads_settle(),
                            cpu_times.elapsed, cpu_times.by_thread, true, &events) == 0;
    return events;
}

static void prepare(struct session *s, JNIEnv *jni, enum dump_reason reason)
{
    if (cpu_times.tree.active)
        times_costs_measure(jni);
}

static void dump(struct session *s, JNIEnv *jni, enum dump_reason reason)
{
    uint64_t events = 0;
    if (!cpu_times.tree.active)
        return;
    jfr_lose_total(s->out.jfr, LOSS_TIMES_THREAD,
                   atomic_load(&cpu_times.no_slot) + atomic_load(&cpu_times.no_context));
    jfr_lose_total(s->out.jfr, LOSS_TIMES_TIMER, atomic_load(&cpu_times.no_timer));
    int r = times_report(s, jni, &cpu_times.tree, &cpu_times.costs, times_threads_settle(),
                         cpu_times.elapsed, cpu_times.by_thread, false, &events);
    if (r < 0)
        session_message(s, "cpu=times: the section is missing: %s", strerror(-r));
}

static void status(struct session *s, struct buf *out)
{
    buf_printf(out, "times.methods %u\ntimes.bytes %llu\ntimes.call_cost_ps %llu\n",
               times_method_count(),
               (unsigned long long)MIN(atomic_load(&cpu_times.tree.used), cpu_times.tree.limit),
               (unsigned long long)(cpu_times.costs.call_ns * 1000));
    buf_printf(out,
               "times.threads_without_timer %llu\ntimes.threads_lost "
               "%llu\ntimes.virtual_threads_lost %llu\n",
               (unsigned long long)atomic_load(&cpu_times.no_timer),
               (unsigned long long)atomic_load(&cpu_times.no_slot),
               (unsigned long long)atomic_load(&cpu_times.no_context));
}

const struct capture capture_cpu_times = {
    .name = "cpu",
    .title = "CPU usage by timing methods",
    .options = OPTION_BIT(OPT_CPU),
    .changes_classes = true,
    .needs = {.can_retransform_classes = 1},
    .wanted = wanted,
    .start = start,
    .begin = begin,
    .stop = stop,
    .save = save,
    .counts = "times",
    .prepare = prepare,
    .dump = dump,
    .status = status,
};
