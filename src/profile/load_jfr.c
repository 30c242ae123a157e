/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads flight recordings of any JDK or of jvmscope: execution, wall-clock and allocation samples,
 * and contended monitors.
 */
#include "profile/load_jfr.h"

#include "base/clock.h"
#include "jfr/reader_setting.h"
#include "profile/losses.h"
#include "profile/vm_time.h"

#include <errno.h>
#include <stdio.h>

enum tag {
    EXECUTION,
    CPU_TIME, /* JDK 25's samples by thread CPU timers */
    UNATTRIBUTED,
    WALL,
    ALLOCATION_SAMPLE,
    ALLOCATION_IN_TLAB,
    ALLOCATION_OUTSIDE,
    MONITOR_ENTER,
    WAITING,
    CALL_TIMES,
    CALL_TIMES_LEFT,
    CALL_TIMES_TOTAL,
    CALL_TIMES_COST,
    ALLOCATION_SITE,
    ALLOCATED_BYTES,
    SAMPLER_COST,
    THREAD_TIME,
    SETTING,
    VM,
    LOST
};

static const struct rec_select wanted[] = {
    {"jdk.ExecutionSample", EXECUTION},
    {"jdk.CPUTimeSample", CPU_TIME},
    {"jvmscope.UnattributedSample", UNATTRIBUTED},
    {"jvmscope.WallSample", WALL},
    {"jdk.ObjectAllocationSample", ALLOCATION_SAMPLE},
    {"jdk.ObjectAllocationInNewTLAB", ALLOCATION_IN_TLAB},
    {"jdk.ObjectAllocationOutsideTLAB", ALLOCATION_OUTSIDE},
    {"jdk.JavaMonitorEnter", MONITOR_ENTER},
    {"jvmscope.Waiting", WAITING},
    {"jvmscope.CallTimes", CALL_TIMES},
    {"jvmscope.CallTimesLeft", CALL_TIMES_LEFT},
    {"jvmscope.CallTimesTotal", CALL_TIMES_TOTAL},
    {"jvmscope.CallTimesCost", CALL_TIMES_COST},
    {"jvmscope.AllocationSite", ALLOCATION_SITE},
    {"jvmscope.AllocatedBytes", ALLOCATED_BYTES},
    {"jvmscope.SamplerCost", SAMPLER_COST},
    {"jvmscope.CpuTime", THREAD_TIME},
    {"jdk.ActiveSetting", SETTING},
    {"jdk.JVMInformation", VM},
    LOSSES_SELECT(LOST),
    {0},
};

static const struct rec_column columns[COLUMNS] = {
    [STACK] = {"stackTrace", true},
    [SAMPLED_THREAD] = {"sampledThread", true},
    [EVENT_THREAD] = {"eventThread", true},
    [SAMPLES] = {"samples", false},
    [WEIGHT] = {"weight", false},
    [TLAB_SIZE] = {"tlabSize", false},
    [ALLOCATION_SIZE] = {"allocationSize", false},
    [PERIOD] = {"samplingPeriod", false},
    [CALLS] = {"calls", false},
    [SELF_TIME] = {"selfTime", false},
    [RAW_SELF_TIME] = {"rawSelfTime", false},
    [SLOWEST] = {"slowest", false},
    [OPEN_TIME] = {"openTime", false},
    [SQUARES] = {"squares", false},
};

/* Types of which a recording may have millions of events. */
static const struct rec_sampling samplings[] = {
    {EXECUTION, STACK, SAMPLED_THREAD, EVENT_THREAD, REC_NO_WEIGHT, 1},
    {CPU_TIME, STACK, SAMPLED_THREAD, EVENT_THREAD, PERIOD, 0},
    {WALL, STACK, SAMPLED_THREAD, EVENT_THREAD, SAMPLES, 1},
    {ALLOCATION_SAMPLE, STACK, SAMPLED_THREAD, EVENT_THREAD, WEIGHT, 0},
    {ALLOCATION_IN_TLAB, STACK, SAMPLED_THREAD, EVENT_THREAD, TLAB_SIZE, 0},
    {ALLOCATION_OUTSIDE, STACK, SAMPLED_THREAD, EVENT_THREAD, ALLOCATION_SIZE, 0},
    {MONITOR_ENTER, STACK, SAMPLED_THREAD, EVENT_THREAD, REC_DURATION, 0},
};

int64_t load_node(struct reading *r, const struct rec_object *o)
{
    return names_stack_by_name(&r->names, o, "stackTrace");
}

int64_t load_node_of_row(struct reading *r, const struct rec_row *row)
{
    uint64_t id;
    if (row->plan->slot[STACK] == REC_ABSENT)
        return 0;
    struct rec_event e;
    rec_row_event(row, &e);
    return rec_row_id(row, STACK, &id)
               ? names_stack(&r->names, &e.object, row->plan->field[STACK], id)
               : load_node(r, &e.object);
}

int64_t load_thread_of_row(struct reading *r, const struct rec_row *row)
{
    const struct rec_plan *p = row->plan;
    enum column column = p->slot[SAMPLED_THREAD] == REC_ABSENT ? EVENT_THREAD : SAMPLED_THREAD;
    /* If an event has both fields, the second one is used when the first is null. */
    bool sole = column == EVENT_THREAD || p->slot[EVENT_THREAD] == REC_ABSENT;
    uint64_t id;
    struct rec_event e;
    rec_row_event(row, &e);
    if (likely(sole && rec_row_id(row, column, &id)))
        return names_thread(&r->names, &e.object, p->field[column], id);
    const struct rec_thread *t = rec_thread(&e.object, "sampledThread");
    return names_thread_of(&r->names, t ? t : rec_thread(&e.object, "eventThread"));
}

uint64_t load_since_start(struct reading *r, int64_t start_ns)
{
    uint64_t time_ns = (uint64_t)MAX(start_ns - r->start_ns, 0);
    r->p->duration_ns = MAX(r->p->duration_ns, time_ns);
    return time_ns;
}

int load_sample(struct reading *r, enum kind kind, int64_t start_ns, int64_t node, int64_t thread,
                uint64_t weight)
{
    if (thread < 0 || node < 0)
        return -ENOMEM;
    struct profile_sample s = {load_since_start(r, start_ns), weight, (uint32_t)thread,
                               (uint32_t)node};
    struct profile_spread spread = {1, (double)weight * (double)weight};
    r->names.of_thread.data[thread].kinds |= 1u << kind;
    struct sums *to = &r->sums[kind];
    const struct sum_thread *of = &r->names.of_thread.data[thread];
    return to->how->detail == LOAD_THREADS || to->how->detail == LOAD_CELLS
               ? load_queue_add(&r->queue, to, &s, of, &spread)
               : sums_add(to, &s, of, &spread);
}

static int add(struct reading *r, enum kind kind, const struct rec_row *row, int64_t node,
               uint64_t weight)
{
    int64_t start_ns = row->start_ns, thread = load_thread_of_row(r, row);
    int counts = kind == LOCKS ? load_wait_ended(r, thread, &start_ns, &weight) : 1;
    struct load_same same = {start_ns, (uint64_t)thread};
    if (kind == CPU && node == r->last_node && same.start_ns == r->last.start_ns &&
        same.thread == r->last.thread)
        load_thinned(r, &same);
    r->last = same;
    r->last_node = kind == CPU ? node : -1;
    return counts <= 0 ? counts : load_sample(r, kind, start_ns, node, thread, weight);
}

static enum kind kind_of(enum tag tag)
{
    switch (tag) {
    case CPU_TIME:
        return TIMED;
    case WALL:
        return ELAPSED;
    case ALLOCATION_SAMPLE:
        return SAMPLED;
    case ALLOCATION_IN_TLAB:
    case ALLOCATION_OUTSIDE:
        return TLAB;
    case MONITOR_ENTER:
        return LOCKS;
    default:
        return CPU;
    }
}

/*
 * Returns whether only the weights of samples are needed, without sums of squares and times.
 */
static bool is_tallied(const struct reading *r, enum kind kind)
{
    return r->sums[kind].how->detail == LOAD_SUMS && !r->sums[kind].estimated && !r->how.from_ns &&
           !r->how.to_ns;
}

/* Adds the samples of a batch, all of which come from one chunk. */
static int read_samples(struct reading *r, const struct rec_sample *list, size_t n)
{
    enum { PREFETCH = 16 };

    const struct rec_plan *plan = NULL;
    struct rec_object o = {0};
    enum kind kind = CPU;
    struct tally *tally = NULL;
    int64_t latest_ns = r->start_ns;
    int e = 0;
    for (size_t i = 0; i < n && e >= 0; i++) {
        const struct rec_sample *s = &list[i];
        if (unlikely(plan != s->plan)) {
            plan = s->plan;
            kind = kind_of((enum tag)plan->type->tag);
            rec_sample_object(s, &o);
            const struct rec_type *type = plan->field[STACK]->type;
            tally = is_tallied(r, kind) ? &r->tallies[kind] : NULL;
            if (tally && (tally->chunk != plan->chunk || tally->stacks != type))
                e = tally_begin(tally, &r->sums[kind], plan->chunk, type);
            if (e < 0)
                break;
        }
        uint32_t later = list[MIN(i + PREFETCH, n - 1)].stack;
        if (tally) {
            tally_prefetch(tally, later);
            tally_prefetch_weight(tally, list[MIN(i + PREFETCH / 2, n - 1)].stack);
        } else {
            names_prefetch_stack(&r->names, later);
        }
        uint64_t weight = s->weight;
        int64_t start_ns = s->start_ns;
        if (kind == SAMPLED)
            r->allocated.sampled_ns = MAX(r->allocated.sampled_ns, s->start_ns);
        if (kind == TIMED) {
            r->period_ns = rec_sample_ns(s, PERIOD, r->period_ns);
            weight = 1;
        }
        int64_t thread = names_thread(&r->names, &o, plan->field[plan->thread], s->thread);
        bool again = i && unlikely(start_ns == s[-1].start_ns) && s->thread == s[-1].thread &&
                     s->stack == s[-1].stack;
        if (unlikely(again) && kind == CPU)
            load_thinned(r, &(struct load_same){start_ns, s->thread});
        if (kind == LOCKS && (e = load_wait_ended(r, thread, &start_ns, &weight)) <= 0)
            continue;
        bool simple = tally && thread >= 0 && r->names.of_thread.data[thread].counts;
        if (simple && tally_add(tally, s->stack, weight)) {
            latest_ns = MAX(latest_ns, start_ns);
            r->names.of_thread.data[thread].kinds |= 1u << kind;
            continue;
        }
        int64_t node = names_stack(&r->names, &o, plan->field[STACK], s->stack);
        e = load_sample(r, kind, start_ns, node, thread, weight);
        if (simple && e >= 0)
            e = tally_know(tally, s->stack, (uint32_t)node);
    }
    r->p->duration_ns = MAX(r->p->duration_ns, load_since_start(r, latest_ns));
    return e;
}

static int64_t unattributed_node(struct reading *r, const struct rec_row *row)
{
    struct rec_event e;
    rec_row_event(row, &e);
    char text[160];
    snprintf(text, sizeof(text), "[%s]", rec_string(&e.object, "reason", "stack not walked"));
    int64_t frame = profile_mark(r->p, text);
    return frame < 0 ? frame : profile_node(r->p, 0, (uint32_t)frame);
}

/*
 * Reads the VM's version. Before JDK 25, if the VM decides what to sample, it counts the unused
 * rest of a thread's allocation buffer at a collection as allocated. Recordings with
 * jvmscope.AllocatedBytes have weights that allow for that. JDK 8, whose HotSpot has version 25,
 * has no such events.
 */
static void read_vm(struct reading *r, const struct rec_event *e)
{
    unsigned long version = strtoul(rec_string(&e->object, "jvmVersion", ""), NULL, 10);
    r->rests_count = version >= 11 && version < 25;
}

/*
 * Reads the bytes that the VM counted. Each event has the sum since its recording began, and the
 * first one has 0. A part of a ring lacks that first event, so its sums cannot be used.
 */
static void read_allocated(struct allocated *a, const struct rec_event *e)
{
    uint64_t bytes = (uint64_t)MAX(rec_long(&e->object, "bytes", 0), 0);
    if (a->chunk != e->object.chunk) {
        a->chunk = e->object.chunk;
        a->chunks++;
        a->earlier = MAX(a->earlier, a->here);
        a->here = 0;
    }
    if (bytes == 0) { /* in the first chunk of its recording */
        a->whole |= a->chunks == 1;
        a->others += a->earlier;
        a->earlier = 0;
    }
    a->here = MAX(a->here, bytes);
    a->last_ns = a->events++ ? MAX(a->last_ns, e->start_ns) : e->start_ns;
}

/*
 * Reads the sampling interval: "10 ms" in the period of jdk.ExecutionSample, "10" in our own
 * setting.
 */
static void read_setting(struct reading *r, const struct rec_event *e)
{
    const char *name = rec_string(&e->object, "name", "");
    bool ours = strcmp(name, "interval") == 0;
    r->ours |= strcmp(name, "alloc") == 0;
    uint64_t ns;
    if ((!ours && strcmp(name, "period") != 0) || rec_setting_duration(e, &ns) < 0)
        return;
    if (rec_setting_is_of(e, "jdk.ExecutionSample"))
        r->p->series[PROFILE_CPU].interval_ns = ns;
    if (rec_setting_is_of(e, "jvmscope.WallSample"))
        r->p->series[PROFILE_WALL].interval_ns = ns;
    if (ours && !r->p->series[PROFILE_CPU].interval_ns)
        r->p->series[PROFILE_CPU].interval_ns = ns;
    if (ours && !r->p->series[PROFILE_WALL].interval_ns)
        r->p->series[PROFILE_WALL].interval_ns = ns;
}

/*
 * Reads the sampler's counters. Each event has the sums since the recording's start, so the latest
 * one is used.
 */
static void read_sampler(struct reading *r, const struct rec_event *e)
{
    const struct rec_object *o = &e->object;
    if (r->p->sampler.known && e->start_ns < r->sampler_ns)
        return;
    r->sampler_ns = e->start_ns;
    r->p->sampler = (struct profile_sampler){
        .known = true,
        .lost = (uint64_t)rec_long(o, "lost", 0),
        .handler_ns = (uint64_t)rec_ns(o, "handlerTime", 0),
        .handler_p50_ns = (uint64_t)rec_ns(o, "handlerP50", 0),
        .handler_p99_ns = (uint64_t)rec_ns(o, "handlerP99", 0),
        .later_ns = (uint64_t)rec_ns(o, "laterTime", 0),
        .resumed = (uint64_t)rec_long(o, "resumed", 0),
        .faults = (uint64_t)rec_long(o, "faults", 0),
    };
}

/* Reads events that are rare or have many fields. */
static int read_by_name(struct reading *r, const struct rec_row *row)
{
    struct rec_event e;
    rec_row_event(row, &e);
    switch ((enum tag)e.tag) {
    case CALL_TIMES_COST:
        r->p->timed_by_readings = strcmp(rec_string(&e.object, "clock", ""), "cpu") == 0;
        return 0;
    case CALL_TIMES_LEFT:
        return load_left(r, &e.object);
    case ALLOCATION_SITE:
        return load_site(r, row, &e);
    case ALLOCATED_BYTES:
        read_allocated(&r->allocated, &e);
        return 0;
    case SAMPLER_COST:
        read_sampler(r, &e);
        return 0;
    case THREAD_TIME:
        return profile_cpu_time(r->p, (uint64_t)MAX(e.start_ns - r->start_ns, 0),
                                rec_string(&e.object, "what", "?"),
                                rec_string(&e.object, "name", ""), rec_ns(&e.object, "cpuTime", 0));
    case SETTING:
        read_setting(r, &e);
        return 0;
    case VM:
        read_vm(r, &e);
        return 0;
    default:
        return 0;
    }
}

static int read_row(struct reading *r, const struct rec_row *row)
{
    enum tag tag = (enum tag)row->plan->type->tag;
    switch (tag) {
    case EXECUTION:
        return add(r, CPU, row, load_node_of_row(r, row), 1);
    case CPU_TIME:
        r->period_ns = (uint64_t)rec_row_ns(row, PERIOD, (int64_t)r->period_ns);
        return add(r, TIMED, row, load_node_of_row(r, row), 1);
    case UNATTRIBUTED:
        return add(r, NOT_WALKED, row, unattributed_node(r, row),
                   (uint64_t)rec_row_long(row, SAMPLES, 1));
    case WALL:
        return add(r, ELAPSED, row, load_node_of_row(r, row),
                   (uint64_t)rec_row_long(row, SAMPLES, 1));
    case ALLOCATION_SAMPLE:
    case ALLOCATION_IN_TLAB:
    case ALLOCATION_OUTSIDE:
        return add(r, kind_of(tag), row, load_node_of_row(r, row),
                   (uint64_t)rec_row_long(row,
                                          tag == ALLOCATION_SAMPLE    ? WEIGHT
                                          : tag == ALLOCATION_IN_TLAB ? TLAB_SIZE
                                                                      : ALLOCATION_SIZE,
                                          0));
    case MONITOR_ENTER:
        return add(r, LOCKS, row, load_node_of_row(r, row), (uint64_t)row->duration_ns);
    case WAITING:
        return load_wait_in_progress(r, row);
    case LOST:
        load_loss(r, row);
        return 0;
    case CALL_TIMES:
        return load_calls(r, row);
    case CALL_TIMES_TOTAL:
        return load_total(r, row);
    default:
        return read_by_name(r, row);
    }
}

/* Moves the samples of a kind to the metric that they belong to. Returns 0 or -ENOMEM. */
static int move(struct reading *r, enum kind kind, enum profile_metric metric)
{
    for (size_t i = 0; i < r->p->threads.len && i < r->names.of_thread.len; i++)
        r->p->threads.data[i].metrics |= (r->names.of_thread.data[i].kinds >> kind & 1) << metric;
    return sums_move(&r->sums[kind], &r->p->series[metric]);
}

/*
 * Drops what is recorded twice. Samples by CPU clocks take precedence over execution samples
 * (cpu_samples.h), allocation sites over samples of allocations, and these over samples of
 * thread-local buffers. Samples without a stack belong to the metric that the agent recorded.
 */
static int settle(struct reading *r)
{
    struct profile_series *cpu = &r->p->series[PROFILE_CPU],
                          *allocation = &r->p->series[PROFILE_ALLOCATION];
    bool timed = sums_any(&r->sums[TIMED]), sampled = sums_any(&r->sums[SAMPLED]);
    bool wall = sums_any(&r->sums[ELAPSED]) && !timed && !sums_any(&r->sums[CPU]);
    if (timed)
        cpu->interval_ns = r->period_ns;
    int e = 0;
    for (int i = 0; e == 0 && i < KINDS; i++)
        e = tally_end(&r->tallies[i], &r->sums[i]);
    load_subtract_pending(r);
    profile_cpu_times_sort(r->p);
    if (e == 0 && r->totals.len)
        e = load_settle_totals(r);
    if (e == 0)
        e = load_settle_times(r);
    if (e == 0)
        e = move(r, timed ? TIMED : CPU, PROFILE_CPU);
    if (e == 0)
        e = move(r, ELAPSED, PROFILE_WALL);
    load_settle_thinned(&r->thinned, cpu);
    if (e == 0)
        e = move(r, NOT_WALKED, wall ? PROFILE_WALL : PROFILE_CPU);
    if (e == 0)
        e = move(r, LOCKS, PROFILE_LOCK);
    if (e == 0 && !r->p->sites.len && sampled) {
        vec_release(&allocation->samples);
        allocation->estimated = true;
        r->p->rests_count = r->ours && r->rests_count && !r->allocated.events;
        return move(r, SAMPLED, PROFILE_ALLOCATION);
    }
    return e < 0 || allocation->samples.len ? e : move(r, TLAB, PROFILE_ALLOCATION);
}

/* Types whose events are used by a profile and by nothing else. */
static bool is_only_profile(const char *type)
{
    static const char *const names[] = {
        "jdk.ExecutionSample",        "jdk.CPUTimeSample",
        "jdk.ObjectAllocationSample", "jdk.ObjectAllocationInNewTLAB",
        "jdk.ActiveSetting",          "jdk.ActiveRecording",
        "jdk.JVMInformation",         "jvmscope.UnattributedSample",
        "jvmscope.AllocationSite",    "jvmscope.AllocatedBytes",
        "jvmscope.SamplerCost",       "jdk.ObjectAllocationOutsideTLAB",
    };
    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        if (strcmp(type, names[i]) == 0)
            return true;
    return false;
}

/* Notes that the recording has events of a type. */
static int add_type(void *context, const char *type)
{
    struct profile *p = context;
    p->only_samples = p->only_samples && is_only_profile(type);
    return (int)MIN(strpool_add(&p->types, type, strlen(type)), 0);
}

static int read_all_events(struct reading *r, struct recording *recording)
{
    _cleanup_(rec_rows_closep) struct rec_rows *rows = NULL;
    const struct rec_row *batch;
    size_t n;
    int more = recording_select(recording, wanted);
    if (more == 0)
        more = rec_rows_open(&rows, recording, columns, COLUMNS);
    if (more == 0 && r->l->is_mapped)
        rec_rows_forget(rows);
    if (more == 0 && r->l->detail != LOAD_SAMPLES)
        more = rec_rows_sample(rows, samplings, ARRAY_SIZE(samplings));
    while (more >= 0 && (more = rec_rows_next(rows, &batch, &n)) > 0) {
        for (size_t i = 0; i < n && more >= 0; i++)
            more = read_row(r, &batch[i]);
        const struct rec_sample *samples = rec_rows_samples(rows, &n);
        if (more >= 0)
            more = read_samples(r, samples, n);
        if (r->l->progress && more >= 0)
            r->l->progress(r->l->progress_context, rec_rows_offset(rows), r->l->len);
    }
    r->p->only_samples = r->p->types_known = more == 0;
    if (more == 0)
        more = rec_rows_each_type(rows, add_type, r->p);
    if (more == 0 && r->waits.len) {
        struct rec_info info;
        recording_info(recording, &info);
        more = load_open_waits(r, info.end_ns);
    }
    int queued = load_queue_end(&r->queue);
    more = more < 0 ? more : queued;
    return more < 0 ? more : settle(r);
}

/* Determines how samples are merged. */
static void prepare(struct reading *r, const struct rec_info *info)
{
    const struct profile_filter *f = r->l->filter;
    struct sum_options *how = &r->how;
    r->names.p = r->p;
    r->names.filter = f;
    how->detail = r->l->detail;
    if (f) {
        how->from_ns = f->from_ns;
        how->to_ns = f->to_ns;
    }
    if (how->detail == LOAD_CELLS) {
        uint64_t to = (uint64_t)MAX(info->end_ns - info->start_ns, 0);
        to = how->to_ns ? MIN(how->to_ns, to) : to;
        uint64_t span = to > how->from_ns ? to - how->from_ns + 1 : 1;
        how->cell_ns = (span + LOAD_TIME_CELLS - 1) / LOAD_TIME_CELLS;
    }
    r->by_thread = *how;
    if (how->detail == LOAD_SUMS)
        r->by_thread.detail = LOAD_THREADS;
    for (int i = 0; i < KINDS; i++)
        r->sums[i].how = i == ELAPSED || i == NOT_WALKED ? &r->by_thread : how;
    r->sums[SAMPLED].estimated = true;
}

int load_jfr(struct load *l)
{
    struct recording *recording;
    const char *why = NULL;
    int e = l->is_mapped ? recording_open_mapped(&recording, l->data, l->len, &why)
                         : recording_open_bytes(&recording, l->data, l->len, &why);
    if (e < 0) {
        if (why)
            buf_string(l->why, why);
        return e;
    }
    struct rec_info info;
    recording_info(recording, &info);
    struct reading r = {.l = l,
                        .p = l->profile,
                        .start_ns = info.start_ns,
                        .ceiling_ns = info.part_of_time && info.start_ns < info.end_ns ? info.end_ns
                                                                                       : INT64_MAX};
    prepare(&r, &info);
    l->profile->start_epoch_ns = (uint64_t)MAX(info.start_ns, 0);
    l->profile->flight_recording = true;
    e = read_all_events(&r, recording);
    recording_info(recording, &info);
    /*
     * The last event is written when sampling ends. A copy of a running recording may have samples
     * after it.
     */
    if (r.allocated.whole && !info.unended && !info.truncated &&
        r.allocated.sampled_ns - r.allocated.last_ns < (int64_t)NS_PER_SECOND)
        l->profile->allocated = r.allocated.others + MAX(r.allocated.earlier, r.allocated.here);
    l->profile->duration_ns =
        MAX(l->profile->duration_ns, (uint64_t)MAX(info.end_ns - info.start_ns, 0));
    l->profile->lost_any |= info.truncated;
    if (e == 0 && info.truncated)
        buf_printf(l->why, "%s (at byte %llu)", info.why ? info.why : "damaged",
                   (unsigned long long)info.at);
    recording_close(recording);
    load_names_release(&r.names);
    for (int i = 0; i < KINDS; i++) {
        tally_release(&r.tallies[i]);
        sums_release(&r.sums[i]);
    }
    map_release(&r.sites);
    map_release(&r.calls);
    map_release(&r.total_of);
    vec_release(&r.totals);
    vec_release(&r.site_sums);
    map_release(&r.site_parts);
    vec_release(&r.parts);
    vec_release(&r.call_times);
    map_release(&r.pending);
    vec_release(&r.waits);
    return e;
}
