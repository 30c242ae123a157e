/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/capture/cpu/cpu.h"

#include "agent/session/pace.h"
#include "agent/vm/virtual_lives.h"
#include "base/clock.h"
#include "base/hex.h"
#include "jfr/writer.h"

#include <string.h>

enum { REPEAT_MAX = 1600, CHECK_EVERY_NS = 1000000000 };

/* These events are described in doc/format.md. */
static const struct jfr_type missing_type = {
    .name = "jvmscope.Missing",
    .label = "Data Not Permitted by the System",
    .category = "jvmscope",
    .description = "Something that was to be recorded and that the system does not permit",
    .kind = JFR_EVENT,
    .fields =
        JFR_FIELDS({"capture", "Capture", "java.lang.String"}, {"what", "What", "java.lang.String"},
                   {"reason", "Reason", "java.lang.String"}),
};

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
     .description =
         "The cost of sampling, and the samples that it missed, since the start of the recording",
     .kind = JFR_EVENT,
     .fields = JFR_FIELDS(
         {"samples", "Samples", "long", JFR_UNITS},
         {"unattributed", "Samples Without a Stack", "long", JFR_UNITS},
         {"truncated", "Truncated Samples", "long", JFR_UNITS},
         {"lost", "Samples Without a Buffer", "long", JFR_UNITS},
         {"uncovered", "Threads Without a Timer", "long", JFR_UNITS},
         {"handlerTime", "Time in the Signal Handler", "long", JFR_NANOS},
         {"handlerP50", "Median Time in the Signal Handler", "long", JFR_NANOS},
         {"handlerP99", "99th Percentile of Time in the Signal Handler", "long", JFR_NANOS},
         {"handlerMax", "Longest Time in the Signal Handler", "long", JFR_NANOS},
         {"resumed", "Walks Resumed After an Unreadable Frame", "long", JFR_UNITS},
         {"faults", "Memory Faults Handled While Walking Stacks", "long", JFR_UNITS},
         {"laterTime", "Time to Walk the Copied Stacks", "long", JFR_NANOS})},
    {.name = "jvmscope.CpuTime",
     .label = "CPU Time",
     .category = "jvmscope",
     .description = "The CPU time that threads without Java code, or the process, have used since "
                    "the previous event",
     .kind = JFR_EVENT,
     .fields = JFR_FIELDS({"what", "Consumer", "java.lang.String"},
                          {"name", "Thread Name", "java.lang.String"},
                          {"cpuTime", "CPU Time", "long", JFR_NANOS})},
    {.name = "jvmscope.SampleContext",
     .label = "Trace Context of a Sample",
     .category = "jvmscope",
     .description = "The trace and the span that the program's tracer had published for a thread "
                    "when it was sampled",
     .kind = JFR_EVENT,
     .fields = JFR_FIELDS({"sampledThread", "Thread", "java.lang.Thread"},
                          {"traceId", "Trace ID", "java.lang.String"},
                          {"spanId", "Span ID", "java.lang.String"})},
};

static struct {
    struct jfr_writer *jfr;
    uint32_t unattributed_type, cost_type, time_type, context_type;
    uint64_t groups[TASK_GROUPS];    /* strings of the recording, as are the following */
    uint64_t reasons[WALK_FAILURES]; /* strings of the recording */
    uint64_t checked_ns;
    uint64_t java_ns;        /* CPU time of Java threads that has already been reported */
    _Atomic uint64_t beyond; /* intervals of samples that stand for more than REPEAT_MAX */
    _Atomic uint64_t until;  /* later samples are not part of the recording */
} events;

at_each_sample static bool is_after(uint64_t time_ns)
{
    return unlikely(time_ns > atomic_load_explicit(&events.until, memory_order_relaxed));
}

at_each_sample static void put_wall(uint64_t time_ns, uint64_t thread, uint64_t trace, bool idle,
                                    uint32_t weight)
{
    struct jfr_event e;
    if (!jfr_begin(events.jfr, JFR_WALL_SAMPLE, 0, &e))
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
    if (!jfr_begin(events.jfr, JFR_EXECUTION_SAMPLE, 0, &e))
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
    if (!jfr_begin(events.jfr, events.unattributed_type, 0, &e))
        return;
    jfr_put_time(&e, s->time_ns);
    jfr_put_long(&e, (int64_t)s->id);
    jfr_put_string_id(&e, events.reasons[-1 - s->n]);
    jfr_put_int(&e, (int32_t)s->weight);
    jfr_commit(&e);
}

static void put_context(const struct sample *s)
{
    const struct trace_context *c = &s->context;
    char trace[2 * TRACE_ID_BYTES], span[2 * SPAN_ID_BYTES];
    struct jfr_event e;
    if (!jfr_begin(events.jfr, events.context_type, 0, &e))
        return;
    hex_write(c->trace, TRACE_ID_BYTES, trace);
    hex_write(c->span, SPAN_ID_BYTES, span);
    jfr_put_time(&e, s->time_ns);
    jfr_put_long(&e, (int64_t)s->id);
    jfr_put_string_n(&e, c->present ? trace : NULL, sizeof(trace));
    jfr_put_string_n(&e, c->present ? span : NULL, sizeof(span));
    jfr_commit(&e);
}

at_each_sample bool cpu_events_record(void *context, const struct sample *s)
{
    if (is_after(s->time_ns))
        return true;
    if (unlikely(s->context.known))
        put_context(s);
    if (s->n < 0) {
        put_unattributed(s);
        return true;
    }
    uint64_t trace = jfr_trace(events.jfr, s->frames, (uint32_t)s->n, s->truncated);
    atomic_store(s->mark, trace);
    if (cpu.wall) {
        put_wall(s->time_ns, s->id, trace, s->idle, s->weight);
        return true;
    }
    /* One event per interval, because other readers know no weight. */
    for (uint32_t i = 0; i < MIN(s->weight, REPEAT_MAX); i++)
        put_cpu(s, trace);
    if (unlikely(s->weight > REPEAT_MAX))
        atomic_fetch_add(&events.beyond, s->weight - REPEAT_MAX);
    return true;
}

/*
 * Records intervals for which there was no signal. Their time is when the thread was last seen, so
 * that they belong to the request of that time, although the thread may have used them at any
 * moment since. In a ring, intervals that are older than a second get the present time, because the
 * ring is copied in consecutive parts, and an event that is written later than that would be in
 * none of them (MARGIN_NS of cli/fleet/host.c).
 */
void cpu_events_record_unsignalled(void *context, uint32_t serial, uint64_t mark, uint64_t time_ns,
                                   uint32_t weight)
{
    uint64_t now = now_ns();
    if (cpu.in_ring && now > time_ns + NS_PER_SECOND)
        time_ns = now;
    /* The thread used them before it was last seen, nearly all of them before the end. */
    time_ns = MIN(time_ns, atomic_load(&events.until));
    struct sample s = {
        .id = serial, .time_ns = time_ns, .weight = weight, .n = mark ? 0 : -1 - WALK_UNSIGNALLED};
    if (!mark)
        put_unattributed(&s);
    else if (cpu.wall)
        put_wall(time_ns, serial, mark, false, weight);
    for (uint32_t i = 0; mark && !cpu.wall && i < weight; i++)
        put_cpu(&s, mark);
}

void cpu_events_record_kept(void *context, const struct sample *s)
{
    (void)cpu_events_record(NULL, s);
}

bool cpu_events_record_idle(void *context, const struct thread *t, uint64_t mark, uint32_t weight)
{
    uint64_t now = now_ns();
    if (!is_after(now))
        put_wall(now, t->serial, mark, true, weight);
    return true;
}

void cpu_events_report_cost(void)
{
    struct sampler_counters c;
    struct jfr_event e;
    uint64_t failed = 0, resumed, faults;
    sampler_counters(&c);
    stack_vm_trouble(&resumed, &faults);
    for (int i = 0; i < WALK_FAILURES; i++)
        failed += c.failed[i];
    c.lost += atomic_load(&events.beyond);
    jfr_lose_total(events.jfr, LOSS_CPU_BUFFER, c.lost);
    jfr_lose_total(events.jfr, LOSS_CPU_TIMER, c.uncovered);
    if (cpu.lives)
        cpu.unmounted_ms = MAX(cpu.unmounted_ms, virtual_lives_unmounted_ms());
    jfr_lose_total(events.jfr, LOSS_CPU_UNMOUNTED, cpu.unmounted_ms);
    if (!jfr_begin(events.jfr, events.cost_type, 0, &e))
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

void cpu_events_report_time(const struct task_time *t)
{
    struct jfr_event e;
    if (!t->cpu_ns || !jfr_begin(events.jfr, events.time_type, strlen(t->name) + 5, &e))
        return;
    jfr_put_time(&e, now_ns());
    jfr_put_string_id(&e, events.groups[t->group]);
    jfr_put_string(&e, t->name);
    jfr_put_long(&e, (int64_t)t->cpu_ns);
    jfr_commit(&e);
}

/*
 * Reports the CPU time that the sampler saw, because only this can be compared with the samples.
 * The process's time cannot: the sampler starts and stops separately for each thread.
 */
static void report_java(void)
{
    uint64_t java_ns = sampler_java_ns();
    if (java_ns <= events.java_ns)
        return;
    cpu_events_report_time(&(struct task_time){TASK_JAVA, "", java_ns - events.java_ns});
    events.java_ns = java_ns;
}

void cpu_events_report_times(const struct session *s, bool end)
{
    enum { LEAST_NS = 1000000 };

    uint64_t now = now_ns();
    static struct pace pace;
    if (!s->out.format->events || cpu.wall ||
        (!end && (now - events.checked_ns < CHECK_EVERY_NS || now < pace.due_ns)))
        return;
    events.checked_ns = now;
    pace_begins(&pace);
    report_java();
    tasks_report(end ? 0 : LEAST_NS, cpu_events_report_time);
    pace_ends(&pace);
}

int cpu_events_load(struct jfr_writer *w)
{
    uint32_t ids[ARRAY_SIZE(types)];
    int r = jfr_declare(w, types, ARRAY_SIZE(types), ids);
    if (r < 0)
        return r;
    events.unattributed_type = ids[0];
    events.cost_type = ids[1];
    events.time_type = ids[2];
    events.context_type = ids[3];
    for (int i = 0; i < TASK_GROUPS; i++)
        events.groups[i] = jfr_define_string(w, task_group_names[i]);
    for (int i = 0; i < WALK_FAILURES; i++)
        events.reasons[i] = jfr_define_string(w, walk_failure_names[i]);
    return 0;
}

void cpu_events_start(struct jfr_writer *w)
{
    events.jfr = w;
    events.java_ns = 0;
    atomic_store(&events.beyond, 0);
    atomic_store(&events.until, UINT64_MAX);
}

void cpu_events_shut(uint64_t end_ns)
{
    atomic_store(&events.until, end_ns);
}

void cpu_events_report_missing(struct jfr_writer *w, const char *what, const char *reason)
{
    uint32_t type;
    struct jfr_event e;
    if (jfr_declare(w, &missing_type, 1, &type) < 0 || !jfr_begin_growing(w, type, 128, &e))
        return;
    jfr_put_time(&e, now_ns());
    jfr_put_string(&e, "cpu");
    jfr_put_string(&e, what);
    jfr_put_string(&e, reason);
    jfr_commit(&e);
}

void cpu_events_release(void)
{
    events.jfr = NULL;
}
