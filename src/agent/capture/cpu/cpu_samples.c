/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/capture/cpu/cpu.h"

#include "agent/output/dictionary.h"
#include "agent/sampler/perf.h"
#include "agent/stacks/names.h"
#include "agent/vm/virtual_lives.h"
#include "agent/vm/virtual_threads.h"
#include "base/clock.h"
#include "base/parse.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REPORT_EVERY_NS = 5000000000 };

struct cpu_capture cpu;

static bool wanted(const struct options *o)
{
    return option_is(o, OPT_CPU, "samples") || option_is(o, OPT_CPU, "wall");
}

static void JNICALL on_compiled(jvmtiEnv *ti, jmethodID method, jint size, const void *code, jint n,
                                const jvmtiAddrLocationMap *map, const void *info)
{
    /*
     * HotSpot's compilers record debug information between safepoints only while an agent has this
     * event enabled.
     */
}

static const struct vm_callbacks compilations = {.ti = {.CompiledMethodLoad = on_compiled}};

/* Makes the VM describe compiled code between safepoints too, because samples are taken there. */
static void describe_all(struct session *s, bool by_flag)
{
    const jvmtiCapabilities want = {.can_generate_compiled_method_load_events = 1};
    if (by_flag && stack_vm_describe_all())
        return;
    cpu.listens = vm_need(&want, NULL) == 0 && vm_events_on(&compilations) == 0;
    if (!cpu.listens)
        session_message(s,
                        "cpu: inlined methods may be mistaken for their callers: this VM reports "
                        "no compilations");
}

static void describe_less(void)
{
    stack_vm_describe_less();
    if (cpu.listens)
        (void)vm_events_off(&compilations);
    cpu.listens = false;
}

/*
 * Chooses the walker: our own; AsyncGetCallTrace if our walker does not support the VM; or NULL,
 * which means JVM TI, if the VM lacks that too. Each fallback is reported.
 */
static int choose_walker(struct session *s, JNIEnv *jni, stack_walk_fn **ret, struct buf *why)
{
    const struct options *o = &s->options;
    char reason[200] = "walker=agct";
    *ret = NULL;
    if (option_is(o, OPT_WALKER, "jvmti")) {
        session_message(s, "cpu: stacks are taken by JVM TI, at safepoints: walker=jvmti");
        return 0;
    }
    if (!option_is(o, OPT_WALKER, "agct")) {
        *ret = stack_vm(jni, option_on(o, OPT_NATIVE), reason, sizeof(reason));
        if (*ret)
            return 0;
        if (option_is(o, OPT_WALKER, "vm")) {
            buf_printf(why, "walker=vm: %s", reason);
            return -ENOTSUP;
        }
    }
    *ret = stack_agct();
    if (*ret && session_need_method_ids(jni) < 0) {
        buf_printf(why, "cpu=%s: the VM refuses class events", o->v[OPT_CPU].text);
        return -ENOTSUP;
    }
    if (!*ret)
        session_message(s,
                        "cpu: stacks are taken by JVM TI, at safepoints: this VM has no "
                        "AsyncGetCallTrace, and %s",
                        reason);
    else if (!option_is(o, OPT_WALKER, "agct"))
        session_message(s, "cpu: stacks are walked by AsyncGetCallTrace: %s", reason);
    return 0;
}

#define NO_KERNEL_FRAMES "no kernel frames"
#define PERF_REFUSED     "perf_event_open is refused (%s; `jvmscope check` says what it takes)"

#define PERF_NOT_OF_WALL "perf_event, which supplies them, cannot sample threads that wait"

static void report_missing(struct session *s)
{
    char why[256] = PERF_NOT_OF_WALL;
    bool of_wall = cpu.wall && option_on(&s->options, OPT_NATIVE);
    if (!(cpu.perf_error || of_wall) || !s->out.format->events)
        return;
    if (!of_wall)
        snprintf(why, sizeof(why), PERF_REFUSED, strerror(-cpu.perf_error));
    cpu_events_report_missing(s->out.jfr, NO_KERNEL_FRAMES, why);
}

/* Writes again what each chunk of a ring must contain. */
static void restate(struct session *s, JNIEnv *jni)
{
    report_missing(s);
}

/*
 * Decides whether perf_event supplies the samples: when the user requests it or wants kernel frames
 * below native ones, and the kernel permits it. If it is not permitted, one line says so.
 */
static bool choose_perf(struct session *s)
{
    const struct options *o = &s->options;
    bool asked = option_is(o, OPT_TIMER, "perf");
    cpu.perf_error = 0;
    if (cpu.wall && option_on(o, OPT_NATIVE)) {
        session_message(s, "cpu: " NO_KERNEL_FRAMES ": " PERF_NOT_OF_WALL);
        report_missing(s);
    }
    if (cpu.wall || !(asked || (option_is(o, OPT_TIMER, "auto") && option_on(o, OPT_NATIVE))))
        return false;
    int r = perf_clock_check();
    if (r < 0)
        session_message(s, "cpu: %s" NO_KERNEL_FRAMES ": " PERF_REFUSED,
                        asked ? "threads' CPU timers are used, and there are " : "", strerror(-r));
    cpu.perf_error = option_on(o, OPT_NATIVE) ? r : 0;
    report_missing(s);
    return r == 0;
}

static int start_sampler(struct session *s, JNIEnv *jni, struct buf *why);

static int load(struct session *s, struct buf *why)
{
    return s->out.format->events ? cpu_events_load(s->out.jfr) : 0;
}

static int start(struct session *s, JNIEnv *jni, struct buf *why)
{
    const struct options *o = &s->options;
    bool recording = s->out.format->events;
    cpu.wall = option_is(o, OPT_CPU, "wall");
    cpu_counts_start(s);
    cpu.reported_ns = now_ns();
    cpu.uncovered_reported = false;
    /*
     * Read before the timers are set: threads that keep all CPUs busy may cause a long delay
     * between the first timer and the last one.
     */
    uint64_t process_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    if (recording)
        cpu_events_start(s->out.jfr);
    int r = start_sampler(s, jni, why);
    /*
     * The first recording of an agent that was loaded when the VM started covers the whole process.
     */
    static bool begun;
    if (r == 0 && recording && !cpu.wall)
        tasks_start(!vm.attached && !begun, process_ns, cpu_events_report_time);
    begun = true;
    return r;
}

static int start_sampler(struct session *s, JNIEnv *jni, struct buf *why)
{
    const struct options *o = &s->options;
    bool recording = s->out.format->events;
    struct sampler_options options = {
        .wall = cpu.wall,
        .perf = choose_perf(s),
        .kernel = option_on(o, OPT_NATIVE),
        .interval_ns = o->v[OPT_INTERVAL].number,
        .depth = (uint32_t)o->v[OPT_DEPTH].number,
        .contexts = recording,
        .on_sample = recording ? cpu_events_record : cpu_counts_keep,
        .idle = recording ? cpu_events_record_idle : cpu_counts_count_idle,
        .unsignalled = recording ? cpu_events_record_unsignalled : cpu_counts_count_unsignalled,
        /* Twice as many samples as all CPUs can produce until the buffer is next emptied. */
        .keep = recording
                    ? 0
                    : (unsigned)MIN(65536, 64 + 2 * (uint64_t)sysconf(_SC_NPROCESSORS_CONF) * 150 *
                                                    NS_PER_MS / o->v[OPT_INTERVAL].number),
    };
    cpu.in_ring = o->v[OPT_ALWAYS].given;
    int r = choose_walker(s, jni, &options.walk, why);
    if (r < 0)
        return r;
    if (options.walk)
        describe_all(s, options.walk != stack_agct());
    options.later = !cpu.wall && options.walk && options.walk != stack_agct() && stack_vm_later();
    cpu.follows = recording && virtual_threads_on(jni);
    cpu.unmounted_ms = 0;
    cpu.lives = cpu.wall && cpu.follows && virtual_lives_start(jni);
    r = sampler_start(&options, jni, why);
    cpu.sampling = r == 0;
    return r;
}

static void later(struct session *s, JNIEnv *jni)
{
    sampler_fill();
}

static void drain(struct session *s, JNIEnv *jni)
{
    sampler_drain(s->out.format->events ? cpu_events_record_kept : cpu_counts_count_kept, jni);
}

static void flush(struct session *s, JNIEnv *jni)
{
    drain(s, jni);
    sampler_work();
    stack_vm_work();
    struct sampler_counters c;
    sampler_counters(&c);
    if (c.uncovered && !cpu.uncovered_reported) {
        cpu.uncovered_reported = true;
        session_message(s,
                        "cpu: %s got no timer and will be sampled at every interval instead "
                        "(ulimit -i, pending signals)",
                        COUNT_TEXT(c.uncovered, "threads"));
    }
    cpu_events_report_times(s, false);
    if (s->out.format->events && now_ns() - cpu.reported_ns > REPORT_EVERY_NS) {
        cpu.reported_ns = now_ns();
        cpu_events_report_cost();
    }
}

static void stop_sampler(struct session *s, JNIEnv *jni)
{
    if (cpu.sampling) {
        sampler_stop();
        drain(s, jni);
        sampler_settle();
        sampler_release();
    }
    describe_less();
    if (cpu.lives) {
        cpu.unmounted_ms = MAX(cpu.unmounted_ms, virtual_lives_unmounted_ms());
        virtual_lives_off();
    }
    cpu.lives = false;
    if (cpu.follows)
        virtual_threads_off();
    cpu.follows = false;
}

/*
 * Changes the depth. The lock must not be held: the callback that reports idle threads takes it,
 * and this function waits for that callback.
 */
static void restart(struct session *s, JNIEnv *jni)
{
    struct buf why = BUF(4096);
    stop_sampler(s, jni);
    if (start_sampler(s, jni, &why) < 0) {
        session_message(s, "cpu: sampling has ended: %s", buf_str(&why));
        stop_sampler(s, jni);
    }
    buf_release(&why);
}

static void request(struct session *s, JNIEnv *jni, const struct hprof_request *r)
{
    if (r->command != HPROF_CMD_CPU_SAMPLES && r->command != HPROF_CMD_CONTROL)
        return;
    drain(s, jni); /* samples taken before the command are counted first */
    if (r->command == HPROF_CMD_CONTROL && r->control == HPROF_CONTROL_MAX_DEPTH)
        restart(s, jni);
    cpu_counts_request(s, r);
}

static void dump(struct session *s, JNIEnv *jni, enum dump_reason reason)
{
    if (!s->out.format->events)
        cpu_counts_dump(s);
}

static void stop(struct session *s, JNIEnv *jni)
{
    bool sampled = cpu.sampling;
    stop_sampler(s, jni);
    cpu.sampling = false;
    if (sampled)
        cpu_events_report_times(s, true);
    if (sampled && s->out.format->events)
        cpu_events_report_cost();
}

static void release(struct session *s)
{
    cpu_counts_release();
    cpu_events_release();
    tasks_release();
}

static void status(struct session *s, struct buf *out)
{
    struct sampler_counters c;
    sampler_counters(&c);

    const struct {
        const char *name;
        uint64_t value;
    } rows[] = {
        {"samples", c.samples},
        {"truncated", c.truncated},
        {"lost", c.lost},
        {"skipped", c.coalesced},
        {"threads", c.threads},
        {"threads_without_timer", c.uncovered},
        {"unloaded", names_unresolved()},
        {"handler_ns", c.handler_ns},
        {"handler_p99_ns", sampler_cost_percentile(&c, 0.99)},
        {"handler_max_ns", c.handler_max_ns},
        {"later_ns", c.later_ns},
    };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        buf_printf(out, "cpu.%s %llu\n", rows[i].name, (unsigned long long)rows[i].value);
    for (int i = 0; i < WALK_FAILURES; i++) {
        if (!c.failed[i])
            continue;
        buf_string(out, "cpu.unattributed.");
        for (const char *at = walk_failure_names[i]; *at; at++)
            buf_u8(out, *at == ' ' ? '_' : (uint8_t)*at); /* a key ends at the space */
        buf_printf(out, " %llu\n", (unsigned long long)c.failed[i]);
    }
    stack_vm_status(out);
}

const struct capture capture_cpu_samples = {
    .name = "cpu",
    .title = "CPU usage by sampling running threads",
    .options = OPTION_BIT(OPT_CPU) | OPTION_BIT(OPT_NATIVE) | OPTION_BIT(OPT_TIMER) |
               OPTION_BIT(OPT_WALKER),
    .jdk_events = "jdk.ExecutionSample jdk.NativeMethodSample jdk.CPUTimeSample "
                  "jdk.CPUTimeSamplesLost " JDK_SETTINGS " ",
    .wanted = wanted,
    .load = load,
    .start = start,
    .later = later,
    .shut = cpu_events_shut,
    .stop = stop,
    .release = release,
    .flush = flush,
    .restate = restate,
    .drain = drain,
    .dump = dump,
    .request = request,
    .status = status,
};
