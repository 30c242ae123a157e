/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cpu=samples and cpu=wall: writes the sampler's results into the recording or into HPROF's CPU
 * SAMPLES section.
 */
#include "agent/output/dictionary.h"
#include "agent/sampler/perf.h"
#include "agent/sampler/sampler.h"
#include "agent/sampler/tasks.h"
#include "agent/session/session.h"
#include "agent/vm/names.h"
#include "agent/vm/virtual_lives.h"
#include "agent/vm/virtual_threads.h"
#include "base/clock.h"
#include "base/map.h"
#include "base/parse.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REPEAT_MAX = 1600, REPORT_EVERY_NS = 5000000000, CHECK_EVERY_NS = 1000000000 };

/* jvmscope.UnattributedSample, jvmscope.SamplerCost and jvmscope.CpuTime: doc/format.md. */
static const struct jfr_type types[] = {
    {.name = "jvmscope.UnattributedSample",
     .label = "Unattributed Sample",
     .category = "jvmscope",
     .description = "Samples whose stack could not be walked",
     .kind = JFR_EVENT,
     .fields = JFR_FIELDS({"sampledThread", "Thread", "java.lang.Thread"},
                          {"reason", "Reason", "java.lang.String"},
                          {"samples", "Samples", "int", JFR_UNITS})},
    {.name = "jvmscope.SamplerCost",
     .label = "Sampler Cost",
     .category = "jvmscope",
     .description = "What sampling has cost and missed since the start of the recording",
     .kind = JFR_EVENT,
     .fields = JFR_FIELDS(
         {"samples", "Samples", "long", JFR_UNITS},
         {"unattributed", "Samples Without a Stack", "long", JFR_UNITS},
         {"truncated", "Samples Deeper Than the Depth", "long", JFR_UNITS},
         {"lost", "Samples Without a Buffer", "long", JFR_UNITS},
         {"uncovered", "Threads Without a Timer", "long", JFR_UNITS},
         {"handlerTime", "Time in the Signal Handler", "long", JFR_NANOS},
         {"handlerP50", "Median of the Signal Handler", "long", JFR_NANOS},
         {"handlerP99", "99th Percentile of the Signal Handler", "long", JFR_NANOS},
         {"handlerMax", "Longest Signal Handler", "long", JFR_NANOS},
         {"resumed", "Walks That Lost Their Way and Resumed", "long", JFR_UNITS},
         {"faults", "Faults Survived While Walking", "long", JFR_UNITS},
         {"laterTime", "Time of Walking What the Signal Handler Copied", "long", JFR_NANOS})},
    {.name = "jvmscope.CpuTime",
     .label = "CPU Time",
     .category = "jvmscope",
     .description = "CPU time that threads without Java code, and the process, have used since "
                    "the previous event",
     .kind = JFR_EVENT,
     .fields = JFR_FIELDS({"what", "What Used It", "java.lang.String"},
                          {"name", "Thread Name", "java.lang.String"},
                          {"cpuTime", "CPU Time", "long", JFR_NANOS})},
};

static struct {
    bool wall;
    struct jfr_writer *jfr;
    uint32_t unattributed_type, cost_type, time_type;
    uint64_t groups[TASK_GROUPS];    /* strings of the recording, as are the following */
    uint64_t reasons[WALK_FAILURES]; /* strings of the recording */
    uint64_t reported_ns, checked_ns;
    uint64_t java_ns;        /* CPU time of Java threads that has been reported */
    _Atomic uint64_t beyond; /* intervals of samples beyond REPEAT_MAX */
    bool uncovered_reported;
    bool sampling; /* the sampler is running */
    bool follows;  /* names of virtual threads */
    bool lives;    /* and for how long they are not mounted */
    uint64_t unmounted_ms;
    bool listens; /* attributed to compilations */
    /* For HPROF outputs: */
    pthread_mutex_t lock;
    struct map counts; /* trace serial -> samples; 0 stands for stacks that could not be walked */
    uint64_t total;
    struct dictionary *dictionary;
    struct map off; /* serials of threads for which a front end has switched sampling off */
    bool all_off;
} cpu = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- recordings; runs in the signal handler, except for idle threads ---- */

at_each_sample static void put_wall(uint64_t time_ns, uint64_t thread, uint64_t trace, bool idle,
                                    uint32_t weight)
{
    struct jfr_event e;
    if (!jfr_begin(cpu.jfr, JFR_WALL_SAMPLE, 0, &e))
        return;
    jfr_put_time(&e, time_ns);
    jfr_put_long(&e, (int64_t)thread);
    jfr_put_long(&e, (int64_t)trace);
    jfr_put_long(&e, idle ? JFR_STATE_SLEEPING : JFR_STATE_RUNNABLE);
    jfr_put_int(&e, (int32_t)weight);
    jfr_commit(&e);
}

static void put_cpu(const struct sample *s, uint64_t trace)
{
    struct jfr_event e;
    if (!jfr_begin(cpu.jfr, JFR_EXECUTION_SAMPLE, 0, &e))
        return;
    jfr_put_time(&e, s->time_ns);
    jfr_put_long(&e, (int64_t)s->id);
    jfr_put_long(&e, (int64_t)trace);
    jfr_put_long(&e, JFR_STATE_RUNNABLE);
    jfr_commit(&e);
}

static void put_unattributed(const struct sample *s)
{
    struct jfr_event e;
    if (!jfr_begin(cpu.jfr, cpu.unattributed_type, 0, &e))
        return;
    jfr_put_time(&e, s->time_ns);
    jfr_put_long(&e, (int64_t)s->id);
    jfr_put_string_id(&e, cpu.reasons[-1 - s->n]);
    jfr_put_int(&e, (int32_t)s->weight);
    jfr_commit(&e);
}

at_each_sample static bool record(void *context, const struct sample *s)
{
    if (s->n < 0) {
        put_unattributed(s);
        return true;
    }
    uint64_t trace = jfr_trace(cpu.jfr, s->frames, (uint32_t)s->n, s->truncated);
    atomic_store(s->mark, trace);
    if (cpu.wall) {
        put_wall(s->time_ns, s->id, trace, s->idle, s->weight);
        return true;
    }
    /* One event for each interval, because other readers know no weight. */
    for (uint32_t i = 0; i < MIN(s->weight, REPEAT_MAX); i++)
        put_cpu(s, trace);
    if (unlikely(s->weight > REPEAT_MAX))
        atomic_fetch_add(&cpu.beyond, s->weight - REPEAT_MAX);
    return true;
}

/* They count where the thread was last seen, so that they belong to the request of that time. */
static void record_unsignalled(void *context, uint32_t serial, uint64_t mark, uint64_t time_ns,
                               uint32_t weight)
{
    struct sample s = {
        .id = serial, .time_ns = time_ns, .weight = weight, .n = mark ? 0 : -1 - WALK_UNSIGNALLED};
    if (!mark)
        put_unattributed(&s);
    for (uint32_t i = 0; mark && i < weight; i++)
        put_cpu(&s, mark);
}

static void record_kept(void *context, const struct sample *s)
{
    (void)record(NULL, s);
}

static bool record_idle(void *context, const struct thread *t, uint64_t mark, uint32_t weight)
{
    put_wall(now_ns(), t->serial, mark, true, weight);
    return true;
}

/* ---- HPROF outputs ---- */

static bool keep(void *context, const struct sample *s)
{
    return false;
}

static void count(uint32_t trace, uint32_t weight)
{
    pthread_mutex_lock(&cpu.lock);
    uint64_t *n = map_at(&cpu.counts, trace, 0, NULL);
    if (n) {
        *n += weight;
        cpu.total += weight;
    }
    pthread_mutex_unlock(&cpu.lock);
}

static void count_kept(void *context, const struct sample *s)
{
    JNIEnv *jni = context;
    if (cpu.all_off || (cpu.off.len && map_get(&cpu.off, s->serial)))
        return;
    uint32_t trace =
        s->n < 0 ? 0 : dictionary_trace(cpu.dictionary, jni, s->frames, (uint32_t)s->n, s->serial);
    atomic_store(s->mark, trace);
    count(trace, s->weight);
}

static void count_unsignalled(void *context, uint32_t serial, uint64_t mark, uint64_t time_ns,
                              uint32_t weight)
{
    if (!cpu.all_off && !(cpu.off.len && map_get(&cpu.off, serial)))
        count((uint32_t)mark, weight);
}

static bool count_idle(void *context, const struct thread *t, uint64_t mark, uint32_t weight)
{
    count((uint32_t)mark, weight);
    return true;
}

static int by_count(const void *a, const void *b)
{
    const struct hprof_sample *x = a, *y = b;
    if (x->count != y->count)
        return x->count < y->count ? 1 : -1;
    return (x->trace > y->trace) - (x->trace < y->trace);
}

static void write_text(struct hprof_text *out, const struct hprof_sample *rows, uint32_t n,
                       double cutoff)
{
    enum hprof_ranked kind = cpu.wall ? HPROF_RANKED_WALL : HPROF_RANKED_SAMPLES;
    double accumulated = 0;
    hprof_text_ranked_begin(out, kind, cpu.total, time(NULL));
    for (uint32_t i = 0; i < n; i++) {
        double self = (double)rows[i].count / (double)cpu.total;
        if (self < cutoff)
            break;
        accumulated += self;
        const char *name = rows[i].trace == TRACE_EMPTY
                               ? "<no stack>"
                               : dictionary_trace_method(cpu.dictionary, rows[i].trace);
        hprof_text_ranked(out, kind, i + 1, self * 100, accumulated * 100, rows[i].count,
                          rows[i].trace, name);
    }
    hprof_text_ranked_end(out, kind);
}

static void write_binary(struct session *s, const struct hprof_sample *rows, uint32_t n,
                         double cutoff)
{
    uint32_t kept = 0;
    while (kept < n && (double)rows[kept].count >= cutoff * (double)cpu.total)
        kept++;
    pthread_mutex_lock(&s->out.lock);
    out_stamp(&s->out);
    hprof_cpu_samples(&s->out.binary, cpu.total, rows, kept);
    pthread_mutex_unlock(&s->out.lock);
}

static void write_samples(struct session *s, double cutoff)
{
    uint32_t n = 0;
    struct hprof_sample *rows = calloc(cpu.counts.len + 1, sizeof(*rows));
    uint64_t trace, samples;
    if (!rows)
        return;
    for (size_t i = 0; map_next(&cpu.counts, &i, &trace, &samples);)
        rows[n++] = (struct hprof_sample){samples, trace ? (uint32_t)trace
                                                         : dictionary_empty_trace(cpu.dictionary)};
    qsort(rows, n, sizeof(*rows), by_count);
    if (s->out.format == OUT_TEXT) {
        struct hprof_text text;
        struct buf bytes;
        out_section_open(&text, &bytes);
        write_text(&text, rows, n, cutoff);
        out_section_close(&s->out, &text, &bytes);
    } else {
        write_binary(s, rows, n, cutoff);
    }
    free(rows);
}

static void clear(void)
{
    map_clear(&cpu.counts);
    cpu.total = 0;
}

static void dump(struct session *s, JNIEnv *jni, enum dump_reason reason)
{
    if (s->out.format == OUT_RECORDING)
        return;
    pthread_mutex_lock(&cpu.lock);
    write_samples(s, s->options.v[OPT_CUTOFF].fraction);
    clear();
    pthread_mutex_unlock(&cpu.lock);
}

/* ---- the capture ---- */

static void report_cost(void)
{
    struct sampler_counters c;
    struct jfr_event e;
    uint64_t failed = 0, resumed, faults;
    sampler_counters(&c);
    stack_vm_trouble(&resumed, &faults);
    for (int i = 0; i < WALK_FAILURES; i++)
        failed += c.failed[i];
    c.lost += atomic_load(&cpu.beyond);
    jfr_lose_total(cpu.jfr, LOSS_CPU_BUFFER, c.lost);
    jfr_lose_total(cpu.jfr, LOSS_CPU_TIMER, c.uncovered);
    if (cpu.lives)
        cpu.unmounted_ms = MAX(cpu.unmounted_ms, virtual_lives_unmounted_ms());
    jfr_lose_total(cpu.jfr, LOSS_CPU_UNMOUNTED, cpu.unmounted_ms);
    if (!jfr_begin(cpu.jfr, cpu.cost_type, 0, &e))
        return;
    jfr_put_time(&e, now_ns());
    const uint64_t values[] = {c.samples,
                               failed,
                               c.truncated,
                               c.lost,
                               c.uncovered,
                               c.handler_ns,
                               sampler_cost_percentile(&c, 0.5),
                               sampler_cost_percentile(&c, 0.99),
                               c.handler_max_ns,
                               resumed,
                               faults,
                               c.later_ns};
    for (size_t i = 0; i < ARRAY_SIZE(values); i++)
        jfr_put_long(&e, (int64_t)values[i]);
    jfr_commit(&e);
}

static void report_time(const struct task_time *t)
{
    struct jfr_event e;
    if (!t->cpu_ns || !jfr_begin(cpu.jfr, cpu.time_type, strlen(t->name), &e))
        return;
    jfr_put_time(&e, now_ns());
    jfr_put_string_id(&e, cpu.groups[t->group]);
    jfr_put_string(&e, t->name);
    jfr_put_long(&e, (int64_t)t->cpu_ns);
    jfr_commit(&e);
}

/*
 * The sampler begins and ends with each thread on its own, so the rest of the process's time is not
 * what the samples are to be compared with.
 */
static void report_java(void)
{
    uint64_t java_ns = sampler_java_ns();
    if (java_ns <= cpu.java_ns)
        return;
    report_time(&(struct task_time){TASK_JAVA, "", java_ns - cpu.java_ns});
    cpu.java_ns = java_ns;
}

/* CPU time of threads that are not sampled: written from time to time, and the rest at the end. */
static void report_times(const struct session *s, bool end)
{
    enum { LEAST_NS = 1000000 };

    uint64_t now = now_ns();
    if (s->out.format != OUT_RECORDING || cpu.wall ||
        (!end && now - cpu.checked_ns < CHECK_EVERY_NS))
        return;
    cpu.checked_ns = now;
    report_java();
    tasks_report(end ? 0 : LEAST_NS, report_time);
}

static bool wanted(const struct options *o)
{
    return option_is(o, OPT_CPU, "samples") || option_is(o, OPT_CPU, "wall");
}

static int start_recording(struct jfr_writer *w)
{
    uint32_t ids[ARRAY_SIZE(types)];
    int r = jfr_declare(w, types, ARRAY_SIZE(types), ids);
    if (r < 0)
        return r;
    cpu.unattributed_type = ids[0];
    cpu.cost_type = ids[1];
    cpu.time_type = ids[2];
    for (int i = 0; i < TASK_GROUPS; i++)
        cpu.groups[i] = jfr_define_string(w, task_group_names[i]);
    for (int i = 0; i < WALK_FAILURES; i++)
        cpu.reasons[i] = jfr_define_string(w, walk_failure_names[i]);
    return 0;
}

static void JNICALL on_compiled(jvmtiEnv *ti, jmethodID method, jint size, const void *code, jint n,
                                const jvmtiAddrLocationMap *map, const void *info)
{
    /*
     * HotSpot's compilers describe the code between safepoints while an agent has this event
     * enabled.
     */
}

static const struct vm_callbacks compilations = {.ti = {.CompiledMethodLoad = on_compiled}};

/* Samples fall between safepoints. */
static void describe_all(struct session *s, bool by_flag)
{
    const jvmtiCapabilities want = {.can_generate_compiled_method_load_events = 1};
    if (by_flag && stack_vm_describe_all())
        return;
    cpu.listens = vm_need(&want, NULL) == 0 && vm_events_on(&compilations) == 0;
    if (!cpu.listens)
        session_message(s, "cpu: inlined methods may be taken for their callers: this VM reports "
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
 * Chooses the walker: our own; AsyncGetCallTrace where our walker does not support the VM; NULL,
 * which means JVM TI, where the VM lacks that too. Each fallback is reported.
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

/*
 * Decides whether perf_event supplies the samples: when it was requested, or for the kernel frames
 * below native ones, provided that the kernel permits it. If it was requested and is not permitted,
 * one line says so.
 */
static bool choose_perf(struct session *s)
{
    const struct options *o = &s->options;
    bool asked = option_is(o, OPT_TIMER, "perf");
    if (cpu.wall || !(asked || (option_is(o, OPT_TIMER, "auto") && option_on(o, OPT_NATIVE))))
        return false;
    int r = perf_clock_check();
    if (r < 0 && asked)
        session_message(s,
                        "cpu: perf_event is refused (%s; see kernel.perf_event_paranoid): threads' "
                        "CPU timers are used, and "
                        "there are no kernel frames",
                        strerror(-r));
    return r == 0;
}

static int start_sampler(struct session *s, JNIEnv *jni, struct buf *why);

static int start(struct session *s, JNIEnv *jni, struct buf *why)
{
    const struct options *o = &s->options;
    bool recording = s->out.format == OUT_RECORDING;
    cpu.wall = option_is(o, OPT_CPU, "wall");
    cpu.jfr = s->out.jfr;
    cpu.dictionary = s->out.dictionary;
    cpu.reported_ns = now_ns();
    cpu.uncovered_reported = false;
    cpu.total = 0;
    cpu.java_ns = 0;
    atomic_store(&cpu.beyond, 0);
    /* Threads that keep all CPUs busy let a long time pass between the first timer and the last. */
    uint64_t process_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    int r = recording ? start_recording(s->out.jfr) : 0;
    if (r == 0)
        r = start_sampler(s, jni, why);
    /* The first recording of an agent that was loaded at VM start covers the whole process. */
    static bool begun;
    if (r == 0 && recording && !cpu.wall)
        tasks_start(!vm.attached && !begun, process_ns, report_time);
    begun = true;
    return r;
}

static int start_sampler(struct session *s, JNIEnv *jni, struct buf *why)
{
    const struct options *o = &s->options;
    bool recording = s->out.format == OUT_RECORDING;
    struct sampler_options options = {
        .wall = cpu.wall,
        .perf = choose_perf(s),
        .kernel = option_on(o, OPT_NATIVE),
        .interval_ns = o->v[OPT_INTERVAL].number,
        .depth = (uint32_t)o->v[OPT_DEPTH].number,
        .on_sample = recording ? record : keep,
        .idle = recording ? record_idle : count_idle,
        .unsignalled = recording ? record_unsignalled : count_unsignalled,
        /* Twice what all CPUs can produce until the buffer is next emptied. */
        .keep = recording
                    ? 0
                    : (unsigned)MIN(65536, 64 + 2 * (uint64_t)sysconf(_SC_NPROCESSORS_CONF) * 150 *
                                                    NS_PER_MS / o->v[OPT_INTERVAL].number),
    };
    int r = choose_walker(s, jni, &options.walk, why);
    if (r < 0)
        return r;
    if (options.walk)
        describe_all(s, options.walk != stack_agct());
    options.later = !cpu.wall && options.walk && options.walk != stack_agct() && stack_vm_later();
    cpu.follows = recording && virtual_threads_on(jni);
    cpu.unmounted_ms = 0;
    cpu.lives = cpu.wall && cpu.follows && virtual_lives_on(jni);
    r = sampler_start(&options, jni, why);
    cpu.sampling = r == 0;
    return r;
}

static void drain(struct session *s, JNIEnv *jni)
{
    sampler_drain(s->out.format == OUT_RECORDING ? record_kept : count_kept, jni);
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
                        "cpu: sampling %s without a timer of its own at every interval "
                        "instead (ulimit -i, pending signals)",
                        COUNT_TEXT(c.uncovered, "threads"));
    }
    report_times(s, false);
    if (s->out.format == OUT_RECORDING && now_ns() - cpu.reported_ns > REPORT_EVERY_NS) {
        cpu.reported_ns = now_ns();
        report_cost();
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
 * Changes the depth. Not under the lock: the callback that reports idle threads takes it, and this
 * function waits for that callback.
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

/* CONTROL: switches sampling on and off, for all threads or for one given by its object's id. */
static void control(struct session *s, JNIEnv *jni, const struct hprof_request *r)
{
    bool off = r->control == HPROF_CONTROL_SAMPLING_OFF;
    uint32_t serial = thread_serial_of_object(r->object);
    if (r->control == HPROF_CONTROL_CLEAR_SAMPLES)
        clear();
    if (r->control != HPROF_CONTROL_SAMPLING_ON && !off)
        return;
    if (!r->object) {
        cpu.all_off = off;
        map_clear(&cpu.off);
    } else if (!off) {
        map_remove(&cpu.off, serial);
    } else if (serial && map_put(&cpu.off, serial, 1) < 0) {
        session_message(s, "cpu: no memory to leave a thread out");
    }
}

static void request(struct session *s, JNIEnv *jni, const struct hprof_request *r)
{
    if (r->command != HPROF_CMD_CPU_SAMPLES && r->command != HPROF_CMD_CONTROL)
        return;
    drain(s, jni); /* samples taken before the command are counted first */
    if (r->command == HPROF_CMD_CONTROL && r->control == HPROF_CONTROL_MAX_DEPTH)
        restart(s, jni);
    pthread_mutex_lock(&cpu.lock);
    if (r->command == HPROF_CMD_CPU_SAMPLES)
        write_samples(s, r->cutoff);
    else
        control(s, jni, r);
    pthread_mutex_unlock(&cpu.lock);
}

static void stop(struct session *s, JNIEnv *jni)
{
    bool sampled = cpu.sampling;
    stop_sampler(s, jni);
    cpu.sampling = false;
    if (sampled)
        report_times(s, true);
    if (sampled && s->out.format == OUT_RECORDING)
        report_cost();
}

static void release(struct session *s)
{
    map_release(&cpu.counts);
    map_release(&cpu.off);
    tasks_release();
    cpu.all_off = false;
    cpu.jfr = NULL;
    cpu.dictionary = NULL;
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
    .jdk_events = "jdk.ExecutionSample jdk.NativeMethodSample jdk.CPUTimeSample jdk.ActiveSetting ",
    .wanted = wanted,
    .start = start,
    .stop = stop,
    .release = release,
    .flush = flush,
    .drain = drain,
    .dump = dump,
    .request = request,
    .status = status,
};
