/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/requests_private.h"

#include "base/hash.h"
#include "base/latency.h"
#include "base/pattern.h"
#include "jfr/reader.h"
#include "jfr/reader_setting.h"
#include "profile/cpu_samples.h"
#include "profile/frame_role.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The agent limits the number of names itself; other recorders do not. */
enum { NAMES_MAX = 1000, FRAMES_MAX = 1024 };

#define OTHER_NAMES "[other names]"

enum tag {
    REQUEST,
    WORK,
    CHILD,
    TOTALS,
    COUNTED,
    LOST,
    BUDGET,
    SPAN,
    ENDPOINT,
    CONTEXTUAL,
    SAMPLE,
    CPU_TIME_SAMPLE,
    SAMPLE_CONTEXT,
    ALLOCATION,
    ALLOCATION_SITE,
    SOCKET,
    FILE_IO,
    IO_WAIT,
    CLASS_LOAD,
    SAFEPOINT,
    VM_OPERATION,
    SETTING,
};

static const struct rec_select selected[] = {
    {"jvmscope.Request", REQUEST},
    {"jvmscope.RequestWork", WORK},
    {"jvmscope.RequestChild", CHILD},
    {"jvmscope.RequestTotals", TOTALS},
    {"jvmscope.Counted", COUNTED},
    {"jvmscope.Lost", LOST},
    {"jvmscope.Budget", BUDGET},
    {"profiler.Span", SPAN},
    {"datadog.Endpoint", ENDPOINT},
    {"jdk.ExecutionSample", SAMPLE},
    {"jdk.CPUTimeSample", CPU_TIME_SAMPLE},
    {"jvmscope.SampleContext", SAMPLE_CONTEXT},
    {"jdk.ObjectAllocationSample", ALLOCATION},
    {"jvmscope.AllocationSite", ALLOCATION_SITE},
    {"jdk.SocketRead", SOCKET},
    {"jdk.SocketWrite", SOCKET},
    {"jdk.FileRead", FILE_IO},
    {"jdk.FileWrite", FILE_IO},
    {"jdk.FileForce", FILE_IO},
    {"jvmscope.IoWait", IO_WAIT},
    {"jdk.ClassLoad", CLASS_LOAD},
    {"jdk.SafepointBegin", SAFEPOINT},
    {"jdk.ExecuteVMOperation", VM_OPERATION},
    {"jdk.ActiveSetting", SETTING},
    {REC_CONTEXTUAL, CONTEXTUAL},
    {0},
};

struct reading {
    struct requests *out;
    const struct request_filter *filter;
    bool part_of_ring;
    /* one of this many CPU samples is kept when the budget reduces them most */
    const struct rec_event *e;
    struct map threads;      /* id -> place in out->threads */
    struct map names;        /* string -> place in out->names */
    struct map chunk_stacks; /* in the current chunk: id -> stack */
    struct map same_stacks;  /* hash of the frames -> stack */
    const struct rec_chunk *chunk;
    int error;
};

/* A damaged recording may contain any number. */
#define LONGEST_NS (INT64_C(1) << 60)

static int64_t end_of(const struct rec_event *e)
{
    int64_t ns = MIN(MAX(e->duration_ns, INT64_C(0)), LONGEST_NS);
    return e->start_ns > INT64_MAX - ns ? INT64_MAX : e->start_ns + ns;
}

static uint32_t text_of(struct reading *r, const char *s)
{
    int64_t n = s ? strpool_add(&r->out->strings, s, strlen(s)) : REQUEST_NONE;
    if (n < 0)
        r->error = (int)n;
    return n < 0 ? REQUEST_NONE : (uint32_t)n;
}

static uint32_t text_field(struct reading *r, const char *field)
{
    return text_of(r, rec_string(&r->e->object, field, NULL));
}

static uint64_t number_of(struct reading *r, const struct rec_thread *t)
{
    if (!t)
        return 0;
    uint64_t id = t->java_id > 0 ? (uint64_t)t->java_id : UINT64_C(1) << 62 | t->number;
    bool added = false;
    if (!map_at(&r->threads, id, r->out->threads.len, &added))
        r->error = -ENOMEM;
    else if (added &&
             vec_push(&r->out->threads, ((struct request_thread){id, text_of(r, t->name)})))
        r->error = -ENOMEM;
    return id;
}

static uint64_t thread_field(struct reading *r, const char *field)
{
    return number_of(r, rec_thread(&r->e->object, field));
}

static uint32_t add_frames(struct reading *r, const struct request_frame *frames, uint32_t n)
{
    struct requests *q = r->out;
    uint64_t key = hash_bytes(frames, n * sizeof(*frames));
    const uint64_t *same = map_get(&r->same_stacks, key);
    if (same) {
        const struct request_stack *s = &q->stacks.data[*same];
        if (s->len == n && !memcmp(&q->frames.data[s->first], frames, n * sizeof(*frames)))
            return (uint32_t)*same;
    }
    struct request_stack stack = {(uint32_t)q->frames.len, n};
    if (vec_extend(&q->frames, n) < 0 || vec_push(&q->stacks, stack) < 0 ||
        map_put(&r->same_stacks, key, q->stacks.len - 1) < 0) {
        r->error = -ENOMEM;
        return REQUEST_NONE;
    }
    memcpy(&q->frames.data[stack.first], frames, n * sizeof(*frames));
    return (uint32_t)q->stacks.len - 1;
}

static uint32_t stack_field(struct reading *r)
{
    const struct rec_stack *s = rec_stack(&r->e->object, "stackTrace");
    if (!s || s->n == 0)
        return REQUEST_NONE;
    if (r->chunk != r->e->object.chunk)
        map_clear(&r->chunk_stacks);
    r->chunk = r->e->object.chunk;
    const uint64_t *known = map_get(&r->chunk_stacks, s->id);
    if (known)
        return (uint32_t)*known;
    struct request_frame frames[FRAMES_MAX];
    uint32_t n = 0;
    for (uint32_t i = frame_role_probe_frames(s); i < s->n && n < FRAMES_MAX; i++) {
        const struct rec_frame *f = &s->frames[i];
        if (frame_role_is_of_agent(f->method))
            continue;
        frames[n++] = (struct request_frame){.method = text_of(r, f->method->full),
                                             .line = f->line > 0 ? (uint32_t)f->line : 0};
    }
    uint32_t stack = n ? add_frames(r, frames, n) : REQUEST_NONE;
    if (map_put(&r->chunk_stacks, s->id, stack) < 0)
        r->error = -ENOMEM;
    return stack;
}

/* Returns the number of a name, given its text. */
static uint32_t name_of(struct reading *r, uint32_t text, uint32_t kind, bool cap)
{
    struct requests *q = r->out;
    if (cap && q->names.len >= NAMES_MAX && !map_get(&r->names, text))
        text = text_of(r, OTHER_NAMES);
    bool added = false;
    const uint64_t *at = map_at(&r->names, text, q->names.len, &added);
    struct request_name new = {.name = text, .kind = kind, .example = REQUEST_NONE};
    if (!at || (added && vec_push(&q->names, new) < 0)) {
        r->error = -ENOMEM;
        return 0;
    }
    return (uint32_t)*at;
}

static bool name_wanted(const struct reading *r, const char *name)
{
    return pattern_match(r->filter->name, name, strlen(name));
}

/* Returns whether the request of this event passes the filter's time and thread. */
static bool event_wanted(const struct reading *r)
{
    const struct request_filter *f = r->filter;
    /* An event that began before the recording and continued into it has a negative time. */
    int64_t since = r->e->start_ns - r->out->start_ns;
    if ((f->from_ns && since < (int64_t)f->from_ns) || (f->to_ns && since >= (int64_t)f->to_ns))
        return false;
    if (!f->thread)
        return true;
    const struct rec_thread *t = rec_thread(&r->e->object, "eventThread");
    return t && pattern_match(f->thread, t->name, strlen(t->name));
}

static void add_request(struct reading *r, const char *name, uint32_t kind, bool cap,
                        struct request q)
{
    if (!name_wanted(r, name) || !event_wanted(r))
        return;
    q.start_ns = r->e->start_ns;
    q.end_ns = end_of(r->e);
    q.thread = thread_field(r, "eventThread");
    q.end_thread = q.end_thread ? q.end_thread : q.thread;
    q.name = name_of(r, text_of(r, name), kind, cap);
    if (r->error == 0)
        r->error = vec_push(&r->out->list, q);
}

static void on_request(struct reading *r)
{
    const struct rec_object *o = &r->e->object;
    struct request q = {.id = (uint64_t)rec_long(o, "id", 0),
                        .parent = (uint64_t)rec_long(o, "parent", 0),
                        .end_thread = thread_field(r, "endThread"),
                        .exception = text_field(r, "exception"),
                        .trace = text_field(r, "traceId"),
                        .span = text_field(r, "spanId"),
                        .status = (int32_t)rec_long(o, "status", 0),
                        .bytes = rec_long(o, "bytes", -1),
                        .beyond = strcmp(rec_string(o, "kept", ""), "slow") == 0,
                        .one_of = (float)MAX(rec_long(o, "oneOf", 1), INT64_C(1))};
    add_request(r, rec_string(o, "name", "?"), text_field(r, "kind"), false, q);
}

/* Adds an event of another recorder as a request of one thread that works for it all the time. */
static void on_foreign(struct reading *r, const char *name, const char *kind)
{
    struct request q = {.exception = REQUEST_NONE,
                        .trace = REQUEST_NONE,
                        .span = REQUEST_NONE,
                        .bytes = -1,
                        .one_of = 1};
    add_request(r, name && *name ? name : "?", text_of(r, kind), true, q);
}

static void on_contextual(struct reading *r)
{
    const struct rec_type *t = r->e->object.type;
    if (strncmp(t->name, "jvmscope.", 9) == 0)
        return;
    const char *name = NULL;
    for (uint32_t i = 0; i < t->n_fields && !name; i++)
        if (t->fields[i].contextual && t->fields[i].type->kind == REC_STRING)
            name = rec_string(&r->e->object, t->fields[i].name, NULL);
    on_foreign(r, name ? name : t->label ? t->label : t->name, "event");
}

static void on_work(struct reading *r)
{
    const struct rec_object *o = &r->e->object;
    struct request_work w = {.request = (uint64_t)rec_long(o, "request", 0),
                             .start_ns = r->e->start_ns,
                             .end_ns = end_of(r->e),
                             .queued_ns = MIN(MAX(rec_ns(o, "queued", 0), INT64_C(0)), LONGEST_NS),
                             .thread = thread_field(r, "eventThread"),
                             .submitter = thread_field(r, "submitter"),
                             .hand_over = text_field(r, "handOver"),
                             .owner = REQUEST_NONE};
    if (r->error == 0)
        r->error = vec_push(&r->out->works, w);
}

static void on_child(struct reading *r)
{
    const struct rec_object *o = &r->e->object;
    struct request_child c = {.request = (uint64_t)rec_long(o, "request", 0),
                              .start_ns = r->e->start_ns,
                              .end_ns = end_of(r->e),
                              .thread = thread_field(r, "eventThread"),
                              .kind = text_field(r, "kind"),
                              .name = text_field(r, "name"),
                              .peer = text_field(r, "peer"),
                              .exception = text_field(r, "exception"),
                              .stack = stack_field(r),
                              .trace = text_field(r, "traceId"),
                              .span = text_field(r, "spanId"),
                              .rows = rec_long(o, "rows", -1)};
    if (r->error == 0)
        r->error = vec_push(&r->out->children, c);
}

/* Reads "INDEX:COUNT INDEX:COUNT ..." and stops at anything else. */
static int read_buckets(struct request_name *n, const char *text)
{
    int used;
    uint32_t bucket;
    uint64_t count;
    n->histogram.len = 0;
    for (; sscanf(text, "%" SCNu32 ":%" SCNu64 "%n", &bucket, &count, &used) == 2; text += used) {
        if (bucket >= LATENCY_BUCKETS ||
            (n->histogram.len && n->histogram.data[n->histogram.len - 1].bucket >= bucket))
            break;
        int r = vec_push(&n->histogram, ((struct request_count){bucket, count}));
        if (r < 0)
            return r;
    }
    return 0;
}

static void on_totals(struct reading *r)
{
    const struct rec_object *o = &r->e->object;
    const char *name = rec_string(o, "name", "?");
    /* The totals count from the start of the recording, not from that of a part of it. */
    if (r->part_of_ring || r->filter->thread || r->filter->from_ns || r->filter->to_ns ||
        !name_wanted(r, name))
        return;
    uint32_t at = name_of(r, text_of(r, name), text_field(r, "kind"), false);
    if (r->error)
        return;
    struct request_name *n = &r->out->names.data[at];
    uint64_t all = (uint64_t)MAX(rec_long(o, "count", 0), 0);
    if (n->exact && n->all > all)
        return; /* an older event that is read later */
    n->exact = true;
    n->example = text_field(r, "example");
    n->all = all;
    n->errors = (uint64_t)MAX(rec_long(o, "errors", 0), 0);
    n->total_ns = (uint64_t)MAX(rec_ns(o, "totalTime", 0), 0);
    n->max_ns = (uint64_t)MAX(rec_ns(o, "maxTime", 0), 0);
    r->error = read_buckets(n, rec_string(o, "buckets", ""));
}

/* Counts the requests without details that ended within the filter's time, or near it. */
static void on_lost(struct reading *r)
{
    const struct rec_object *o = &r->e->object;
    const struct request_filter *f = r->filter;
    int64_t from = r->e->start_ns - r->out->start_ns, to = end_of(r->e) - r->out->start_ns;
    if (strcmp(rec_string(o, "what", ""), REQUESTS_NOT_KEPT) == 0 && to >= (int64_t)f->from_ns &&
        (!f->to_ns || from < (int64_t)f->to_ns))
        r->out->not_kept += (uint64_t)MAX(rec_long(o, "amount", 0), INT64_C(0));
}

static void on_sample(struct reading *r)
{
    switch (cpu_sample_use(&r->out->by_cpu_clock, r->e->tag == CPU_TIME_SAMPLE)) {
    case CPU_SAMPLE_SKIP:
        return;
    case CPU_SAMPLE_TAKE_ALONE:
        vec_clear(&r->out->samples);
        break;
    case CPU_SAMPLE_TAKE:
        break;
    }
    if (r->e->tag == CPU_TIME_SAMPLE)
        r->out->sample_ns = (uint64_t)MAX(rec_ns(&r->e->object, "samplingPeriod", 0), INT64_C(0));
    uint64_t thread = thread_field(r, "sampledThread");
    if (!thread)
        thread = thread_field(r, "eventThread");
    r->out->sampled = true;
    struct request_sample s = {r->e->start_ns, thread, stack_field(r)};
    if (r->error == 0 && s.stack != REQUEST_NONE)
        r->error = vec_push(&r->out->samples, s);
}

static void on_sample_context(struct reading *r)
{
    struct request_context c = {r->e->start_ns, thread_field(r, "sampledThread"),
                                text_field(r, "traceId"), text_field(r, "spanId")};
    if (r->error == 0)
        r->error = vec_push(&r->out->contexts, c);
}

/* Reads an allocation sample, whose weight is what was allocated since the last one. */
static void on_allocation(struct reading *r)
{
    int64_t bytes = rec_long(&r->e->object, "weight", 0);
    struct request_allocation a = {r->e->start_ns, thread_field(r, "eventThread"),
                                   (uint64_t)MAX(bytes, INT64_C(0))};
    if (r->error == 0)
        r->error = vec_push(&r->out->allocations, a);
}

static void add_span(struct reading *r, enum request_span_kind kind, uint64_t thread, uint32_t text)
{
    struct request_span s = {r->e->start_ns, end_of(r->e), thread, text, kind};
    if (r->error == 0)
        r->error = vec_push(&r->out->spans, s);
}

static void on_socket(struct reading *r)
{
    const struct rec_object *o = &r->e->object;
    const char *host = rec_string(o, "host", NULL), *address = rec_string(o, "address", NULL);
    if (!host || !*host)
        host = address;
    char text[512];
    snprintf(text, sizeof(text), "socket %s:%" PRId64, host ? host : "?", rec_long(o, "port", 0));
    add_span(r, SPAN_IO, thread_field(r, "eventThread"), text_of(r, text));
}

static void on_file(struct reading *r)
{
    char text[4200];
    const char *path = rec_string(&r->e->object, "path", "");
    const char *operation = r->e->tag == IO_WAIT ? rec_string(&r->e->object, "operation", "") : "";
    snprintf(text, sizeof(text), "%s%s%s", r->e->tag == IO_WAIT ? operation : "file",
             *path ? " " : "", path);
    add_span(r, SPAN_IO, thread_field(r, "eventThread"), text_of(r, text));
}

static void on_class_load(struct reading *r)
{
    const struct rec_class *c = rec_class(&r->e->object, "loadedClass");
    add_span(r, SPAN_CLASS_LOAD, thread_field(r, "eventThread"), text_of(r, c ? c->name : NULL));
}

/*
 * Reads the sampling interval. Our agent's setting is `interval`, without a type's name before it.
 */
static void on_setting(struct reading *r)
{
    uint64_t ns;
    if (strcmp(rec_string(&r->e->object, "name", ""), "interval") == 0 &&
        rec_setting_duration(r->e, &ns) == 0)
        r->out->sample_ns = ns;
}

/* Reads that the agent kept one of n samples from then on, to stay within its budget. */
static void on_budget(struct reading *r)
{
    static const char *const kinds[THIN_KINDS] = {[THIN_SAMPLES] = "CPU samples",
                                                  [THIN_WAITS] = "short waits",
                                                  [THIN_PARKS] = "times of short parks"};
    int64_t one_of = MIN(MAX(rec_long(&r->e->object, "oneOf", 1), INT64_C(1)), INT64_C(1) << 20);
    if (one_of > 1 && strcmp(rec_string(&r->e->object, "what", ""), "requests") == 0)
        r->out->not_kept_estimated = true;
    for (unsigned k = 0; k < THIN_KINDS; k++)
        if (r->error == 0 && strcmp(rec_string(&r->e->object, "what", ""), kinds[k]) == 0)
            r->error = vec_push(&r->out->thinnings,
                                ((struct request_thinning){r->e->start_ns, (uint32_t)one_of, k}));
}

static void on_event(struct reading *r)
{
    switch ((enum tag)r->e->tag) {
    case REQUEST:
        on_request(r);
        break;
    case WORK:
        on_work(r);
        break;
    case CHILD:
        on_child(r);
        break;
    case LOST:
        on_lost(r);
        break;
    case BUDGET:
        on_budget(r);
        break;
    case TOTALS:
        on_totals(r);
        break;
    case COUNTED:
        if (strcmp(rec_string(&r->e->object, "capture", ""), "requests") == 0)
            r->out->counted_ns = MAX(r->out->counted_ns, r->e->start_ns);
        break;
    case SPAN:
        on_foreign(r, rec_string(&r->e->object, "tag", NULL), "span");
        break;
    case ENDPOINT:
        on_foreign(r, rec_string(&r->e->object, "endpoint", NULL), "endpoint");
        break;
    case CONTEXTUAL:
        on_contextual(r);
        break;
    case SAMPLE:
    case CPU_TIME_SAMPLE:
        on_sample(r);
        break;
    case SAMPLE_CONTEXT:
        on_sample_context(r);
        break;
    case ALLOCATION:
        on_allocation(r);
        break;
    case ALLOCATION_SITE:
        r->out->allocations_counted = true;
        break;
    case SOCKET:
        on_socket(r);
        break;
    case FILE_IO:
    case IO_WAIT:
        on_file(r);
        break;
    case CLASS_LOAD:
        on_class_load(r);
        break;
    case SAFEPOINT:
        add_span(r, SPAN_SAFEPOINT, 0, REQUEST_NONE);
        break;
    case VM_OPERATION:
        if (rec_long(&r->e->object, "safepoint", 0))
            add_span(r, SPAN_SAFEPOINT, 0, text_field(r, "operation"));
        break;
    case SETTING:
        on_setting(r);
        break;
    }
}

int requests_load(struct requests *ret, const char *path, const struct request_filter *filter,
                  struct buf *why)
{
    _cleanup_(recording_closep) struct recording *recording = NULL;
    struct requests out = {0};
    struct reading r = {.out = &out, .filter = filter};
    const char *reason = NULL;
    struct rec_info info;
    struct rec_event e;
    int error = recording_open(&recording, path, &reason), more = 1;
    if (error < 0) {
        buf_printf(why, "%s", reason ? reason : strerror(-error));
        return error;
    }
    recording_info(recording, &info);
    out.start_ns = info.start_ns;
    r.part_of_ring = info.part_of_ring;
    error = recording_select(recording, selected);
    while (error == 0 && (more = recording_next(recording, &e)) > 0) {
        r.e = &e;
        on_event(&r);
        error = r.error;
    }
    error = error ? error : MIN(more, 0);
    recording_info(recording, &info);
    out.end_ns = info.end_ns;
    if ((!info.unended && !info.cut) || !out.counted_ns)
        out.counted_ns = out.end_ns;
    if (out.allocations_counted) /* these samples only repeat the counts, at the time of writing */
        out.allocations.len = 0;
    if (error == 0)
        error = requests_order(&out);
    map_release(&r.threads);
    map_release(&r.names);
    map_release(&r.chunk_stacks);
    map_release(&r.same_stacks);
    if (error < 0) {
        buf_printf(why, "%s", strerror(-error));
        requests_release(&out);
        return error;
    }
    *ret = out;
    return 0;
}

static bool has_any(const char *path, const struct rec_select *any)
{
    _cleanup_(recording_closep) struct recording *r = NULL;
    const char *why = NULL;
    struct rec_event e;
    if (recording_open(&r, path, &why) < 0 || recording_select(r, any) < 0)
        return false;
    while (recording_next(r, &e) > 0)
        if (e.tag != CONTEXTUAL || strncmp(e.object.type->name, "jvmscope.", 9) != 0)
            return true;
    return false;
}

/* Requests begin at the second row. */
static const struct rec_select any_or_contexts[] = {
    {"jvmscope.SampleContext", SAMPLE_CONTEXT},
    {"jvmscope.Request", REQUEST},
    {"jvmscope.RequestTotals", TOTALS},
    {"profiler.Span", SPAN},
    {"datadog.Endpoint", ENDPOINT},
    {REC_CONTEXTUAL, CONTEXTUAL},
    {0},
};

bool requests_any(const char *path)
{
    return has_any(path, any_or_contexts + 1);
}

bool requests_any_or_contexts(const char *path)
{
    return has_any(path, any_or_contexts);
}
