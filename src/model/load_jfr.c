/* SPDX-License-Identifier: Apache-2.0 */
/* Flight recordings, of any JDK or ours: execution, wall-clock and allocation samples, and contended monitors. */
#include "model/load.h"

#include "base/parse.h"
#include "jfr/reader.h"

#include <errno.h>
#include <stdio.h>

enum tag {
    EXECUTION,
    CPU_TIME, /* JDK 25's, by thread CPU timers */
    UNATTRIBUTED,
    WALL,
    ALLOCATION_SAMPLE,
    ALLOCATION_IN_TLAB,
    ALLOCATION_OUTSIDE,
    MONITOR_ENTER,
    CALL_TIMES,
    CALL_TIMES_LEFT,
    ALLOCATION_SITE,
    SAMPLER_COST,
    SETTING
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
    {"jvmscope.AllocationSite", ALLOCATION_SITE},
    {"jvmscope.SamplerCost", SAMPLER_COST},
    {"jdk.ActiveSetting", SETTING},
    {0},
};

/* Frame types as JFR names them; ours add the last ones. */
static const struct {
    const char *name;
    enum frame_kind kind;
} kinds[] = {
    {"Interpreted", FRAME_INTERPRETED},
    {"JIT compiled", FRAME_COMPILED},
    {"Inlined", FRAME_INLINED},
    {"Native", FRAME_NATIVE},
    {"C++", FRAME_NATIVE},
    {"Kernel", FRAME_KERNEL},
    {"Stub", FRAME_STUB},
    {"VM", FRAME_NATIVE},
};

struct reading {
    struct load *l;
    struct profile *p;
    int64_t start_ns; /* of the recording */
    const struct rec_chunk *chunk;
    struct map stacks;                                  /* of the chunk: id to node */
    struct map sites;                                   /* node and class to the site */
    VEC(uint32_t) methods;                              /* by rec_method.number, + 1; 0 is not seen yet */
    VEC(uint32_t) threads;                              /* by rec_thread.number, the same */
    struct profile_series cpu_time, unattributed, tlab; /* held back until all is read, see settle() */
};

static int64_t method_of(struct reading *r, const struct rec_method *m)
{
    if (m->number >= r->methods.len && vec_extend(&r->methods, m->number + 1 - r->methods.len) < 0)
        return -ENOMEM;
    uint32_t *known = &r->methods.data[m->number];
    if (*known)
        return *known - 1;
    const char *class_text = m->class ? m->class->name : "", *signature_text = m->descriptor ? m->descriptor : "";
    int64_t class_name = profile_string(r->p, class_text, strlen(class_text));
    int64_t name = profile_string(r->p, m->name, strlen(m->name));
    int64_t signature = profile_string(r->p, signature_text, strlen(signature_text));
    if (class_name < 0 || name < 0 || signature < 0)
        return -ENOMEM;
    int64_t n = profile_method(r->p, (uint32_t)class_name, (uint32_t)name, (uint32_t)signature, 0);
    if (n >= 0)
        *known = (uint32_t)n + 1;
    return n;
}

static enum frame_kind kind_of(const struct rec_frame *f)
{
    for (size_t i = 0; f->type && i < ARRAY_SIZE(kinds); i++) {
        if (strcmp(f->type, kinds[i].name) == 0)
            return kinds[i].kind;
    }
    return FRAME_JAVA;
}

static int64_t node_of_frames(struct reading *r, const struct rec_stack *s)
{
    int64_t node = 0, frame = s->truncated ? profile_mark(r->p, "[truncated]") : 0;
    if (frame >= 0 && s->truncated)
        node = profile_node(r->p, 0, (uint32_t)frame);
    for (uint32_t i = s->n; i-- > 0 && node >= 0;) {
        int64_t method = method_of(r, s->frames[i].method);
        frame = method < 0 ? method : profile_frame(r->p, (uint32_t)method, s->frames[i].line, kind_of(&s->frames[i]));
        node = frame < 0 ? frame : profile_node(r->p, (uint32_t)node, (uint32_t)frame);
    }
    return node;
}

/* The node of an event's stack; a chunk has each stack once, and so it is walked once. */
static int64_t node_of(struct reading *r, const struct rec_object *o)
{
    const struct rec_stack *s = rec_stack(o, "stackTrace");
    if (!s)
        return 0;
    if (r->chunk != o->chunk) {
        map_clear(&r->stacks);
        r->chunk = o->chunk;
    }
    uint64_t *known = map_get(&r->stacks, s->id);
    if (known)
        return (int64_t)*known;
    int64_t node = node_of_frames(r, s);
    if (node >= 0 && map_put(&r->stacks, s->id, (uint64_t)node) < 0)
        return -ENOMEM;
    return node;
}

static int64_t thread_of(struct reading *r, const struct rec_event *e)
{
    const struct rec_thread *t = rec_thread(&e->object, "sampledThread");
    if (!t)
        t = rec_thread(&e->object, "eventThread");
    if (!t)
        return profile_thread(r->p, UINT64_MAX, "", 0);
    if (t->number >= r->threads.len && vec_extend(&r->threads, t->number + 1 - r->threads.len) < 0)
        return -ENOMEM;
    uint32_t *known = &r->threads.data[t->number];
    if (*known)
        return *known - 1;
    int64_t n = profile_thread(r->p, t->number, t->name, strlen(t->name));
    if (n >= 0) {
        r->p->threads.data[n].id = t->java_id > 0 ? (uint64_t)t->java_id : (uint64_t)t->os_id;
        *known = (uint32_t)n + 1;
    }
    return n;
}

static int add(struct reading *r, struct profile_series *to, const struct rec_event *e, int64_t node, uint64_t weight)
{
    int64_t thread = thread_of(r, e);
    if (thread < 0 || node < 0)
        return -ENOMEM;
    /* An event may begin before the recording does: a lock waited for all the while. */
    struct profile_sample s = {.time_ns = (uint64_t)MAX(e->start_ns - r->start_ns, 0),
                               .weight = weight,
                               .thread = (uint32_t)thread,
                               .node = (uint32_t)node};
    if (s.time_ns > r->p->duration_ns)
        r->p->duration_ns = s.time_ns;
    return vec_push(&to->samples, s);
}

static int64_t unattributed_node(struct reading *r, const struct rec_event *e)
{
    char text[160];
    snprintf(text, sizeof(text), "[%s]", rec_string(&e->object, "reason", "stack not walked"));
    int64_t frame = profile_mark(r->p, text);
    return frame < 0 ? frame : profile_node(r->p, 0, (uint32_t)frame);
}

/* "10 ms" of jdk.ExecutionSample's period, "10" of our own interval. */
static void read_setting(struct reading *r, const struct rec_event *e)
{
    const char *name = rec_string(&e->object, "name", ""), *value = rec_string(&e->object, "value", "");
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

/* Exact calls: a row of the table, and self time for views and flame graphs, which know no negative one. */
static int add_calls(struct reading *r, const struct rec_event *e)
{
    int64_t node = node_of(r, &e->object), thread = thread_of(r, e);
    if (node < 0 || thread < 0)
        return -ENOMEM;
    struct profile_calls c = {
        .node = (uint32_t)node,
        .thread = (uint32_t)thread,
        .calls = (uint64_t)rec_long(&e->object, "calls", 0),
        .samples = (uint64_t)rec_long(&e->object, "samples", 0),
        .self_ns = rec_ns(&e->object, "selfTime", 0),
        .raw_ns = rec_ns(&e->object, "rawSelfTime", 0),
        .slowest_ns = (uint64_t)rec_ns(&e->object, "slowest", 0),
    };
    int error = vec_push(&r->p->calls, c);
    if (error < 0 || c.self_ns <= 0)
        return error;
    return add(r, &r->p->series[PROFILE_EXACT], e, node, (uint64_t)c.self_ns);
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

static int add_site(struct reading *r, const struct rec_event *e)
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
    };
    /* Each event says what came since the one before. */
    bool added = false;
    uint64_t *at = map_at(&r->sites, (uint64_t)site.node << 32 | site.class_name, r->p->sites.len, &added);
    int error = !at ? -ENOMEM : added ? vec_push(&r->p->sites, site) : 0;
    if (at && !added) {
        struct profile_site *sum = &r->p->sites.data[*at];
        sum->objects += site.objects;
        sum->bytes += site.bytes;
        sum->live_objects += site.live_objects;
        sum->live_bytes += site.live_bytes;
    }
    return error < 0 || !site.bytes ? error : add(r, &r->p->series[PROFILE_ALLOCATION], e, node, site.bytes);
}

/* Each event has the sums since the recording's start: the last one counts. */
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

static int read_event(struct reading *r, const struct rec_event *e)
{
    struct profile_series *series = r->p->series;
    switch ((enum tag)e->tag) {
    case EXECUTION:
        return add(r, &series[PROFILE_CPU], e, node_of(r, &e->object), 1);
    case CPU_TIME:
        r->cpu_time.interval_ns = (uint64_t)rec_ns(&e->object, "samplingPeriod", (int64_t)r->cpu_time.interval_ns);
        return add(r, &r->cpu_time, e, node_of(r, &e->object), 1);
    case UNATTRIBUTED:
        return add(r, &r->unattributed, e, unattributed_node(r, e), (uint64_t)rec_long(&e->object, "samples", 1));
    case WALL:
        return add(r, &series[PROFILE_WALL], e, node_of(r, &e->object), (uint64_t)rec_long(&e->object, "samples", 1));
    case ALLOCATION_SAMPLE:
        return add(r, &series[PROFILE_ALLOCATION], e, node_of(r, &e->object), (uint64_t)rec_long(&e->object, "weight", 0));
    case ALLOCATION_IN_TLAB:
        return add(r, &r->tlab, e, node_of(r, &e->object), (uint64_t)rec_long(&e->object, "tlabSize", 0));
    case ALLOCATION_OUTSIDE:
        return add(r, &r->tlab, e, node_of(r, &e->object), (uint64_t)rec_long(&e->object, "allocationSize", 0));
    case MONITOR_ENTER:
        return add(r, &series[PROFILE_LOCK], e, node_of(r, &e->object), (uint64_t)e->duration_ns);
    case CALL_TIMES:
        return add_calls(r, e);
    case CALL_TIMES_LEFT:
        return add_left(r, &e->object);
    case ALLOCATION_SITE:
        return add_site(r, e);
    case SAMPLER_COST:
        read_sampler(r->p, &e->object);
        return 0;
    case SETTING:
        read_setting(r, e);
        return 0;
    }
    return 0;
}

static int append(struct profile_series *to, const struct profile_series *from)
{
    for (size_t i = 0; i < from->samples.len; i++) {
        if (vec_push(&to->samples, from->samples.data[i]) < 0)
            return -ENOMEM;
    }
    return 0;
}

/*
 * What counts the same twice counts once: JDK 25's CPU-time samples go before execution samples, allocation samples before
 * those of thread-local buffers. Samples without a stack belong to the metric that the agent recorded.
 */
static int settle(struct reading *r)
{
    struct profile_series *series = r->p->series;
    if (r->cpu_time.samples.len) {
        vec_release(&series[PROFILE_CPU].samples);
        series[PROFILE_CPU] = r->cpu_time;
        r->cpu_time = (struct profile_series){0};
    }
    bool wall = series[PROFILE_WALL].samples.len && !series[PROFILE_CPU].samples.len;
    int e = append(&series[wall ? PROFILE_WALL : PROFILE_CPU], &r->unattributed);
    return e < 0 || series[PROFILE_ALLOCATION].samples.len ? e : append(&series[PROFILE_ALLOCATION], &r->tlab);
}

static int read_all_events(struct reading *r, struct recording *recording)
{
    struct rec_event e;
    int n = recording_select(recording, wanted);
    for (uint64_t count = 0; n >= 0 && (n = recording_next(recording, &e)) > 0; count++) {
        int error = read_event(r, &e);
        if (error < 0)
            return error;
        if (r->l->progress && count % 65536 == 0)
            r->l->progress(r->l->progress_context, e.offset, r->l->len);
    }
    return n < 0 ? n : settle(r);
}

int load_jfr(struct load *l)
{
    struct recording *recording;
    const char *why = NULL;
    int e = recording_open_bytes(&recording, l->data, l->len, &why);
    if (e < 0) {
        if (why)
            buf_string(l->why, why);
        return e;
    }
    struct rec_info info;
    recording_info(recording, &info);
    struct reading r = {.l = l, .p = l->profile, .start_ns = info.start_ns};
    l->profile->start_epoch_ns = (uint64_t)MAX(info.start_ns, 0);
    e = read_all_events(&r, recording);
    recording_info(recording, &info);
    l->profile->duration_ns = MAX(l->profile->duration_ns, (uint64_t)MAX(info.end_ns - info.start_ns, 0));
    if (e == 0 && info.truncated)
        buf_printf(l->why, "%s (at byte %llu)", info.why ? info.why : "damaged", (unsigned long long)info.at);
    recording_close(recording);
    map_release(&r.stacks);
    map_release(&r.sites);
    vec_release(&r.methods);
    vec_release(&r.threads);
    vec_release(&r.cpu_time.samples);
    vec_release(&r.unattributed.samples);
    vec_release(&r.tlab.samples);
    return e;
}
