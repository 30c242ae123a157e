/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Flight recordings of any JDK or of jvmscope: execution, wall-clock and allocation samples, and
 * contended monitors.
 */
#include "model/load.h"

#include "base/parse.h"
#include "jfr/reader_rows.h"
#include "model/load_jfr_names.h"
#include "model/losses.h"
#include "model/vm_time.h"

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
    CALL_TIMES,
    CALL_TIMES_LEFT,
    CALL_TIMES_TOTAL,
    CALL_TIMES_COST,
    ALLOCATION_SITE,
    SAMPLER_COST,
    THREAD_TIME,
    SETTING,
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
    {"jvmscope.CallTimes", CALL_TIMES},
    {"jvmscope.CallTimesLeft", CALL_TIMES_LEFT},
    {"jvmscope.CallTimesTotal", CALL_TIMES_TOTAL},
    {"jvmscope.CallTimesCost", CALL_TIMES_COST},
    {"jvmscope.AllocationSite", ALLOCATION_SITE},
    {"jvmscope.SamplerCost", SAMPLER_COST},
    {"jvmscope.CpuTime", THREAD_TIME},
    {"jdk.ActiveSetting", SETTING},
    LOSSES_SELECT(LOST),
    {0},
};

/* The fields that are read from events of which there may be millions. */
enum wish {
    STACK,
    SAMPLED_THREAD,
    EVENT_THREAD,
    SAMPLES,
    WEIGHT,
    TLAB_SIZE,
    ALLOCATION_SIZE,
    PERIOD,
    CALLS,
    SELF_TIME,
    RAW_SELF_TIME,
    SLOWEST,
    OPEN_TIME,
    WISHES
};

static const struct rec_wish wishes[WISHES] = {
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
};

/* Where samples are collected until all is read, see settle(). */
enum kind { CPU, TIMED, NOT_WALKED, ELAPSED, SAMPLED, TLAB, LOCKS, KINDS };

/* The events of which there may be millions. */
static const struct rec_sampling samplings[] = {
    {EXECUTION, STACK, SAMPLED_THREAD, EVENT_THREAD, REC_NO_WEIGHT, 1},
    {CPU_TIME, STACK, SAMPLED_THREAD, EVENT_THREAD, PERIOD, 0},
    {WALL, STACK, SAMPLED_THREAD, EVENT_THREAD, SAMPLES, 1},
    {ALLOCATION_SAMPLE, STACK, SAMPLED_THREAD, EVENT_THREAD, WEIGHT, 0},
    {ALLOCATION_IN_TLAB, STACK, SAMPLED_THREAD, EVENT_THREAD, TLAB_SIZE, 0},
    {ALLOCATION_OUTSIDE, STACK, SAMPLED_THREAD, EVENT_THREAD, ALLOCATION_SIZE, 0},
    {MONITOR_ENTER, STACK, SAMPLED_THREAD, EVENT_THREAD, REC_DURATION, 0},
};

struct reading {
    struct load *l;
    struct profile *p;
    int64_t start_ns; /* the start of the recording */
    struct names names;
    struct sum_options how;
    struct sums sums[KINDS];
    uint64_t period_ns;               /* of the samples by CPU timers */
    struct map sites;                 /* node and class to the site */
    struct map calls;                 /* node and thread to the row of calls */
    struct map total_of;              /* the same to the row of totals */
    VEC(struct profile_calls) totals; /* totals of methods; the node has one frame */
    /* node and thread to what its samples still have to give back, see add_change() */
    struct map owed[PROFILE_METRICS];
};

static int64_t node_of(struct reading *r, const struct rec_object *o)
{
    return names_stack_by_name(&r->names, o, "stackTrace");
}

static int64_t node_of_row(struct reading *r, const struct rec_row *row)
{
    uint64_t id;
    if (row->plan->slot[STACK] == REC_ABSENT)
        return 0;
    struct rec_event e;
    rec_row_event(row, &e);
    return rec_row_id(row, STACK, &id)
               ? names_stack(&r->names, &e.object, row->plan->field[STACK], id)
               : node_of(r, &e.object);
}

static int64_t thread_of_row(struct reading *r, const struct rec_row *row)
{
    const struct rec_plan *p = row->plan;
    enum wish wish = p->slot[SAMPLED_THREAD] == REC_ABSENT ? EVENT_THREAD : SAMPLED_THREAD;
    /* Where an event has both fields, the second one is used when the first is null. */
    bool sole = wish == EVENT_THREAD || p->slot[EVENT_THREAD] == REC_ABSENT;
    uint64_t id;
    struct rec_event e;
    rec_row_event(row, &e);
    if (likely(sole && rec_row_id(row, wish, &id)))
        return names_thread(&r->names, &e.object, p->field[wish], id);
    const struct rec_thread *t = rec_thread(&e.object, "sampledThread");
    return names_thread_of(&r->names, t ? t : rec_thread(&e.object, "eventThread"));
}

/* An event may begin before the recording does, such as the wait for a lock. */
static uint64_t since_start(struct reading *r, int64_t start_ns)
{
    uint64_t time_ns = (uint64_t)MAX(start_ns - r->start_ns, 0);
    r->p->duration_ns = MAX(r->p->duration_ns, time_ns);
    return time_ns;
}

static int add_sample(struct reading *r, enum kind kind, int64_t start_ns, int64_t node,
                      int64_t thread, uint64_t weight)
{
    if (thread < 0 || node < 0)
        return -ENOMEM;
    struct profile_sample s = {since_start(r, start_ns), weight, (uint32_t)thread, (uint32_t)node};
    struct profile_spread spread = {1, (double)weight * (double)weight};
    return sums_add(&r->sums[kind], &s, &r->names.of_thread.data[thread], &spread);
}

static int add(struct reading *r, enum kind kind, const struct rec_row *row, int64_t node,
               uint64_t weight)
{
    return add_sample(r, kind, row->start_ns, node, thread_of_row(r, row), weight);
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

/* Adds the samples of a batch, which are all of one chunk. */
static int read_samples(struct reading *r, const struct rec_sample *list, size_t n)
{
    enum { AHEAD = 16 };

    const struct rec_plan *plan = NULL;
    struct rec_object o = {0};
    enum kind kind = CPU;
    int e = 0;
    for (size_t i = 0; i < n && e >= 0; i++) {
        const struct rec_sample *s = &list[i];
        names_stack_soon(&r->names, list[MIN(i + AHEAD, n - 1)].stack);
        if (unlikely(plan != s->plan)) {
            plan = s->plan;
            kind = kind_of((enum tag)plan->type->tag);
            rec_sample_object(s, &o);
        }
        int64_t node = names_stack(&r->names, &o, plan->field[STACK], s->stack),
                thread = names_thread(&r->names, &o, plan->field[plan->thread], s->thread);
        uint64_t weight = s->weight;
        if (kind == TIMED) {
            r->period_ns = rec_sample_ns(s, PERIOD, r->period_ns);
            weight = 1;
        }
        e = add_sample(r, kind, s->start_ns, node, thread, weight);
    }
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

/* "10 ms" in the period of jdk.ExecutionSample, "10" in our own interval. */
static void read_setting(struct reading *r, const struct rec_event *e)
{
    const char *name = rec_string(&e->object, "name", ""),
               *value = rec_string(&e->object, "value", "");
    bool ours = strcmp(name, "interval") == 0;
    if (!ours && strcmp(name, "period") != 0)
        return;
    char text[32];
    size_t n = 0;
    for (; *value && n + 1 < sizeof(text); value++) {
        if (*value != ' ')
            text[n++] = *value;
    }
    text[n] = 0;
    uint64_t ns;
    if (parse_duration(text, 1000000, &ns) < 0)
        return;
    int64_t id = rec_long(&e->object, "id", -1);
    size_t types;
    const struct rec_type *t = recording_types(e->object.recording, &types);
    for (size_t i = 0; i < types; i++) {
        if ((int64_t)t[i].id == id && strcmp(t[i].name, "jdk.ExecutionSample") == 0)
            r->p->series[PROFILE_CPU].interval_ns = ns;
        if ((int64_t)t[i].id == id && strcmp(t[i].name, "jvmscope.WallSample") == 0)
            r->p->series[PROFILE_WALL].interval_ns = ns;
    }
    if (ours && !r->p->series[PROFILE_CPU].interval_ns)
        r->p->series[PROFILE_CPU].interval_ns = ns;
    if (ours && !r->p->series[PROFILE_WALL].interval_ns)
        r->p->series[PROFILE_WALL].interval_ns = ns;
}

/*
 * Adds a change of a sum that events report incrementally. A view has no negative weights: when a
 * sum decreases because a better figure became known, the difference is taken from later changes,
 * and at the end from earlier ones (pay_owed).
 */
static int add_change(struct reading *r, enum profile_metric metric, const struct rec_row *row,
                      int64_t node, int64_t change)
{
    int64_t thread = thread_of_row(r, row);
    if (thread < 0 || node < 0)
        return -ENOMEM;
    uint64_t key = (uint64_t)thread << 32 | (uint64_t)node, *owed = map_get(&r->owed[metric], key);
    if (change < 0 && !owed && !(owed = map_at(&r->owed[metric], key, 0, NULL)))
        return -ENOMEM;
    if (change < 0)
        *owed += 0 - (uint64_t)change;
    if (change <= 0)
        return 0;
    uint64_t paid = owed ? MIN(*owed, (uint64_t)change) : 0;
    if (paid)
        *owed -= paid;
    if ((uint64_t)change <= paid)
        return 0;
    struct profile_sample s = {since_start(r, row->start_ns), (uint64_t)change - paid,
                               (uint32_t)thread, (uint32_t)node};
    return vec_push(&r->p->series[metric].samples, s);
}

/* Takes what is still owed from the latest samples. */
static void pay_owed(struct reading *r, enum profile_metric metric)
{
    struct profile_series *s = &r->p->series[metric];
    size_t kept = 0;
    if (!r->owed[metric].len)
        return;
    for (size_t i = s->samples.len; i-- > 0;) {
        struct profile_sample *sample = &s->samples.data[i];
        uint64_t *owed = map_get(&r->owed[metric], (uint64_t)sample->thread << 32 | sample->node);
        uint64_t paid = owed ? MIN(*owed, sample->weight) : 0;
        sample->weight -= paid;
        if (paid)
            *owed -= paid;
    }
    for (size_t i = 0; i < s->samples.len; i++)
        if (s->samples.data[i].weight)
            s->samples.data[kept++] = s->samples.data[i];
    s->samples.len = kept;
}

static int64_t read_calls(struct reading *r, const struct rec_row *row, struct profile_calls *ret)
{
    int64_t node = node_of_row(r, row), thread = thread_of_row(r, row);
    if (node < 0 || thread < 0)
        return -ENOMEM;
    *ret = (struct profile_calls){
        .node = (uint32_t)node,
        .thread = (uint32_t)thread,
        .calls = (uint64_t)rec_row_long(row, CALLS, 0),
        .samples = (uint64_t)rec_row_long(row, SAMPLES, 0),
        .self_ns = rec_row_ns(row, SELF_TIME, 0),
        .raw_ns = rec_row_ns(row, RAW_SELF_TIME, 0),
        .slowest_ns = (uint64_t)rec_row_ns(row, SLOWEST, 0),
        .open_ns = rec_row_ns(row, OPEN_TIME, 0),
    };
    return node;
}

/*
 * Adds the calls of a method up to now, which are saved from time to time when there are many
 * stacks; the last event counts.
 */
static int add_total(struct reading *r, const struct rec_row *row)
{
    struct profile_calls c;
    bool added = false;
    int64_t node = read_calls(r, row, &c);
    if (node <= 0)
        return (int)node;
    uint64_t *at = map_at(&r->total_of, (uint64_t)c.thread << 32 | c.node, r->totals.len, &added);
    if (!at)
        return -ENOMEM;
    if (added)
        return vec_push(&r->totals, c);
    r->totals.data[*at] = c;
    return 0;
}

/*
 * Adds what totals have beyond the calls by stack, in a recording that was cut: calls of their
 * methods whose callers are unknown.
 */
static int settle_totals(struct reading *r)
{
    struct map of_method = {0}; /* method and thread to the total */
    struct profile *p = r->p;
    int error = 0;
    for (size_t i = 0; i < r->totals.len && error == 0; i++) {
        const struct profile_calls *c = &r->totals.data[i];
        error = map_put(&of_method,
                        (uint64_t)c->thread << 32 | profile_node_frame(p, c->node)->method, i);
    }
    for (size_t i = 0; i < p->calls.len && r->totals.len && error == 0; i++) {
        const struct profile_calls *c = &p->calls.data[i];
        const uint64_t *at = c->node
                                 ? map_get(&of_method, (uint64_t)c->thread << 32 |
                                                           profile_node_frame(p, c->node)->method)
                                 : NULL;
        struct profile_calls *rest = at ? &r->totals.data[*at] : NULL;
        if (rest) {
            rest->calls -= MIN(rest->calls, c->calls);
            rest->samples -= MIN(rest->samples, c->samples);
            rest->self_ns = (int64_t)((uint64_t)rest->self_ns - (uint64_t)c->self_ns);
            rest->raw_ns = (int64_t)((uint64_t)rest->raw_ns - (uint64_t)c->raw_ns);
            rest->open_ns = (int64_t)((uint64_t)rest->open_ns - (uint64_t)c->open_ns);
        }
    }
    map_release(&of_method);
    int64_t mark = error == 0 ? profile_mark(p, "[callers not saved]") : error;
    int64_t above = mark < 0 ? mark : profile_node(p, 0, (uint32_t)mark);
    for (size_t i = 0; i < r->totals.len && above >= 0; i++) {
        struct profile_calls rest = r->totals.data[i];
        if (!rest.calls)
            continue;
        int64_t node = profile_node(p, (uint32_t)above, p->nodes.data[rest.node].frame);
        rest.node = (uint32_t)node;
        if (node < 0 || vec_push(&p->calls, rest) < 0)
            return -ENOMEM;
        int64_t open_ns = MAX(MIN(rest.open_ns, rest.self_ns), 0), ns = rest.self_ns - open_ns;
        int64_t open = open_ns ? profile_open_node(p, rest.node) : 0;
        struct profile_sample s = {p->duration_ns, (uint64_t)ns, rest.thread, rest.node},
                              not_returned = {p->duration_ns, (uint64_t)open_ns, rest.thread,
                                              (uint32_t)open};
        if (open < 0 || (ns > 0 && vec_push(&p->series[PROFILE_EXACT].samples, s) < 0) ||
            (open_ns && vec_push(&p->series[PROFILE_EXACT].samples, not_returned) < 0))
            return -ENOMEM;
    }
    return above < 0 ? (int)above : 0;
}

/*
 * Adds exact calls: a row of the table for each stack and thread, and self time for views and flame
 * graphs, where that of calls that have not returned lies under a mark of its own.
 */
static int add_calls(struct reading *r, const struct rec_row *row)
{
    struct profile_calls c;
    int64_t node = read_calls(r, row, &c);
    if (node < 0)
        return (int)node;
    /* Each event holds the difference from the one before. */
    bool added = false;
    uint64_t *at = map_at(&r->calls, (uint64_t)c.thread << 32 | c.node, r->p->calls.len, &added);
    int error = !at ? -ENOMEM : added ? vec_push(&r->p->calls, c) : 0;
    if (at && !added) {
        struct profile_calls *sum = &r->p->calls.data[*at];
        sum->calls += c.calls;
        sum->samples += c.samples;
        /* A file may contain any numbers. */
        sum->self_ns = (int64_t)((uint64_t)sum->self_ns + (uint64_t)c.self_ns);
        sum->raw_ns = (int64_t)((uint64_t)sum->raw_ns + (uint64_t)c.raw_ns);
        sum->open_ns = (int64_t)((uint64_t)sum->open_ns + (uint64_t)c.open_ns);
        sum->slowest_ns = MAX(sum->slowest_ns, c.slowest_ns);
    }
    if (error == 0)
        error = add_change(r, PROFILE_EXACT, row, node,
                           (int64_t)((uint64_t)c.self_ns - (uint64_t)c.open_ns));
    if (error < 0 || !c.open_ns)
        return error;
    int64_t open = profile_open_node(r->p, c.node);
    return open < 0 ? (int)open : add_change(r, PROFILE_EXACT, row, open, c.open_ns);
}

static int add_left(struct reading *r, const struct rec_object *o)
{
    int64_t node = node_of(r, o);
    const char *reason = rec_string(o, "reason", "");
    int64_t text = profile_string(r->p, reason, strlen(reason));
    if (node <= 0 || text < 0)
        return node < 0 || text < 0 ? -ENOMEM : 0;
    uint32_t label = r->p->methods.data[profile_node_frame(r->p, (uint32_t)node)->method].label;
    return vec_push(&r->p->left, ((struct profile_left){label, (uint32_t)text}));
}

static int add_site(struct reading *r, const struct rec_row *row, const struct rec_event *e)
{
    int64_t node = node_of(r, &e->object);
    const char *name = rec_string(&e->object, "class", "");
    int64_t class_name = profile_string(r->p, name, strlen(name));
    if (node < 0 || class_name < 0)
        return -ENOMEM;
    struct profile_site site = {
        .node = (uint32_t)node,
        .class_name = (uint32_t)class_name,
        .objects = (uint64_t)rec_long(&e->object, "objects", 0),
        .bytes = (uint64_t)rec_long(&e->object, "bytes", 0),
        .live_objects = (uint64_t)rec_long(&e->object, "liveObjects", 0),
        .live_bytes = (uint64_t)rec_long(&e->object, "liveBytes", 0),
        .estimated = rec_long(&e->object, "estimated", 0) != 0,
        .live_known = rec_long(&e->object, "liveKnown", 1) != 0,
    };
    if (site.live_known) {
        site.live_objects_error = (uint64_t)rec_long(&e->object, "liveObjectsError", 0);
        site.live_bytes_error = (uint64_t)rec_long(&e->object, "liveBytesError", 0);
        site.uncollected = rec_long(&e->object, "collected", 1) == 0;
    }
    /* Each event holds the difference from the one before. */
    bool added = false;
    uint64_t *at =
        map_at(&r->sites, (uint64_t)site.node << 32 | site.class_name, r->p->sites.len, &added);
    int error = !at ? -ENOMEM : added ? vec_push(&r->p->sites, site) : 0;
    if (at && !added) {
        struct profile_site *sum = &r->p->sites.data[*at];
        sum->objects += site.objects;
        sum->bytes += site.bytes;
        sum->live_objects += site.live_objects;
        sum->live_bytes += site.live_bytes;
        sum->estimated = site.estimated;
        sum->live_known |= site.live_known;
        if (site.live_known) {
            sum->live_objects_error = site.live_objects_error;
            sum->live_bytes_error = site.live_bytes_error;
            sum->uncollected = site.uncollected;
        }
    }
    return error < 0 ? error : add_change(r, PROFILE_ALLOCATION, row, node, (int64_t)site.bytes);
}

/* Each event has the sums since the recording's start, so the last one counts. */
static void read_sampler(struct profile *p, const struct rec_object *o)
{
    p->sampler = (struct profile_sampler){
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
        return add_left(r, &e.object);
    case ALLOCATION_SITE:
        return add_site(r, row, &e);
    case SAMPLER_COST:
        read_sampler(r->p, &e.object);
        return 0;
    case THREAD_TIME:
        return profile_cpu_time(r->p, (uint64_t)MAX(e.start_ns - r->start_ns, 0),
                                rec_string(&e.object, "what", "?"),
                                rec_string(&e.object, "name", ""), rec_ns(&e.object, "cpuTime", 0));
    case SETTING:
        read_setting(r, &e);
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
        return add(r, CPU, row, node_of_row(r, row), 1);
    case CPU_TIME:
        r->period_ns = (uint64_t)rec_row_ns(row, PERIOD, (int64_t)r->period_ns);
        return add(r, TIMED, row, node_of_row(r, row), 1);
    case UNATTRIBUTED:
        return add(r, NOT_WALKED, row, unattributed_node(r, row),
                   (uint64_t)rec_row_long(row, SAMPLES, 1));
    case WALL:
        return add(r, ELAPSED, row, node_of_row(r, row), (uint64_t)rec_row_long(row, SAMPLES, 1));
    case ALLOCATION_SAMPLE:
    case ALLOCATION_IN_TLAB:
    case ALLOCATION_OUTSIDE:
        return add(r, kind_of(tag), row, node_of_row(r, row),
                   (uint64_t)rec_row_long(row,
                                          tag == ALLOCATION_SAMPLE    ? WEIGHT
                                          : tag == ALLOCATION_IN_TLAB ? TLAB_SIZE
                                                                      : ALLOCATION_SIZE,
                                          0));
    case MONITOR_ENTER:
        return add(r, LOCKS, row, node_of_row(r, row), (uint64_t)row->duration_ns);
    case LOST:
        r->p->lost_any = true;
        return 0;
    case CALL_TIMES:
        return add_calls(r, row);
    case CALL_TIMES_TOTAL:
        return add_total(r, row);
    default:
        return read_by_name(r, row);
    }
}

/*
 * Drops what is recorded twice: JDK 25's CPU-time samples take precedence over execution samples,
 * allocation sites over samples of allocations, and these over those of thread-local buffers.
 * Samples without a stack belong to the metric that the agent recorded.
 */
static int settle(struct reading *r)
{
    struct profile_series *series = r->p->series, *cpu = &series[PROFILE_CPU],
                          *allocation = &series[PROFILE_ALLOCATION];
    bool timed = sums_any(&r->sums[TIMED]), sampled = sums_any(&r->sums[SAMPLED]);
    bool wall = sums_any(&r->sums[ELAPSED]) && !timed && !sums_any(&r->sums[CPU]);
    if (timed)
        cpu->interval_ns = r->period_ns;
    pay_owed(r, PROFILE_EXACT);
    pay_owed(r, PROFILE_ALLOCATION);
    int e = r->totals.len ? settle_totals(r) : 0;
    if (e == 0)
        e = sums_move(&r->sums[timed ? TIMED : CPU], cpu);
    if (e == 0)
        e = sums_move(&r->sums[ELAPSED], &series[PROFILE_WALL]);
    if (e == 0)
        e = sums_move(&r->sums[NOT_WALKED], &series[wall ? PROFILE_WALL : PROFILE_CPU]);
    if (e == 0)
        e = sums_move(&r->sums[LOCKS], &series[PROFILE_LOCK]);
    if (e == 0 && !r->p->sites.len && sampled) {
        vec_release(&allocation->samples);
        allocation->estimated = true;
        return sums_move(&r->sums[SAMPLED], allocation);
    }
    return e < 0 || allocation->samples.len ? e : sums_move(&r->sums[TLAB], allocation);
}

/* The types whose events are in a profile and in nothing else. */
static bool is_only_profile(const char *type)
{
    static const char *const names[] = {
        "jdk.ExecutionSample",
        "jdk.CPUTimeSample",
        "jdk.ObjectAllocationSample",
        "jdk.ObjectAllocationInNewTLAB",
        "jdk.ActiveSetting",
        "jdk.ActiveRecording",
        "jdk.JVMInformation",
        "jvmscope.UnattributedSample",
        "jvmscope.AllocationSite",
        "jvmscope.SamplerCost",
        "jdk.ObjectAllocationOutsideTLAB",
    };
    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        if (strcmp(type, names[i]) == 0)
            return true;
    return false;
}

static int read_all_events(struct reading *r, struct recording *recording)
{
    _cleanup_(recording_rows_closep) struct rec_rows *rows = NULL;
    const struct rec_row *batch;
    size_t n;
    int more = recording_select(recording, wanted);
    if (more == 0)
        more = recording_rows_open(&rows, recording, wishes, WISHES);
    if (more == 0 && r->l->is_mapped)
        recording_rows_forget(rows);
    if (more == 0 && r->l->detail != LOAD_SAMPLES)
        more = recording_rows_sample(rows, samplings, ARRAY_SIZE(samplings));
    while (more >= 0 && (more = recording_rows_next(rows, &batch, &n)) > 0) {
        for (size_t i = 0; i < n && more >= 0; i++)
            more = read_row(r, &batch[i]);
        const struct rec_sample *samples = recording_rows_samples(rows, &n);
        if (more >= 0)
            more = read_samples(r, samples, n);
        if (r->l->progress && more >= 0)
            r->l->progress(r->l->progress_context, recording_rows_offset(rows), r->l->len);
    }
    if (more == 0)
        r->p->only_samples = recording_rows_saw_only(rows, is_only_profile);
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
    for (int i = 0; i < KINDS; i++)
        r->sums[i].how = how;
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
    struct reading r = {.l = l, .p = l->profile, .start_ns = info.start_ns};
    prepare(&r, &info);
    l->profile->start_epoch_ns = (uint64_t)MAX(info.start_ns, 0);
    e = read_all_events(&r, recording);
    recording_info(recording, &info);
    l->profile->duration_ns =
        MAX(l->profile->duration_ns, (uint64_t)MAX(info.end_ns - info.start_ns, 0));
    if (e == 0 && info.truncated)
        buf_printf(l->why, "%s (at byte %llu)", info.why ? info.why : "damaged",
                   (unsigned long long)info.at);
    recording_close(recording);
    names_release(&r.names);
    for (int i = 0; i < KINDS; i++)
        sums_release(&r.sums[i]);
    map_release(&r.sites);
    map_release(&r.calls);
    map_release(&r.total_of);
    vec_release(&r.totals);
    for (int i = 0; i < PROFILE_METRICS; i++)
        map_release(&r.owed[i]);
    return e;
}
