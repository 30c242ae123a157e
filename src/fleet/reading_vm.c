/* SPDX-License-Identifier: Apache-2.0 */
/* Adds the figures of the VM in a recording to a batch. */
#include "base/file.h"
#include "base/latency.h"
#include "fleet/figures.h"
#include "fleet/reading.h"
#include "profile/profile.h"
#include "profile/vm_activity.h"
#include "profile/vm_time.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* Figures are kept by the minute. In the buckets of samples they would take six times the room. */
enum { STEP_S = 60 };

const struct fleet_figure_info fleet_figures[FLEET_FIGURES] = {
    [FIGURE_COLLECTIONS] = {"collections", FIGURE_NS},
    [FIGURE_PAUSES] = {"pauses", FIGURE_NS},
    [FIGURE_SAFEPOINTS] = {"safepoints", FIGURE_NS},
    [FIGURE_THROTTLED] = {"throttled", FIGURE_NS},
    [FIGURE_CPU] = {"cpu", FIGURE_NS},
    [FIGURE_HEAP] = {"heap", FIGURE_BYTES},
    [FIGURE_RSS] = {"rss", FIGURE_BYTES},
    [FIGURE_MEMORY] = {"memory", FIGURE_BYTES},
    [FIGURE_THREADS] = {"threads", FIGURE_COUNT},
};

struct value {
    int64_t start_s;
    uint64_t value;
    enum fleet_figure figure;
};

struct values {
    const struct fleet_reading *how;
    VEC(struct value) list;
    int error;
};

/* time_ns decides to which of two adjacent uploads a value belongs. */
static void add(struct values *to, enum fleet_figure figure, int64_t time_ns, uint64_t value)
{
    struct value v = {fleet_floor(time_ns / 1000000000, STEP_S), value, figure};
    if (fleet_reading_includes(to->how, time_ns) && to->error == 0)
        to->error = vec_push(&to->list, v);
}

static void add_activity(struct values *to, const struct vm_activity *v)
{
    static const struct {
        enum vm_figure_kind kind;
        enum fleet_figure figure;
    } readings[] = {{VM_RSS, FIGURE_RSS}, {VM_MEMORY, FIGURE_MEMORY}, {VM_THREADS, FIGURE_THREADS}};

    for (size_t i = 0; i < v->collections.len; i++) {
        const struct vm_collection *c = &v->collections.data[i];
        int64_t end = c->start_ns + (int64_t)c->duration_ns;
        add(to, FIGURE_COLLECTIONS, end, c->duration_ns);
        if (c->has_heap)
            add(to, FIGURE_HEAP, end, c->after);
    }
    for (size_t i = 0; i < v->pauses.len; i++) {
        const struct vm_pause *p = &v->pauses.data[i];
        add(to, FIGURE_PAUSES, p->start_ns + (int64_t)p->duration_ns, p->duration_ns);
    }
    /* The end of a safepoint is in another event; a recording may be cut between the two. */
    for (size_t i = 0; i < v->safepoints.len; i++) {
        const struct vm_safepoint *s = &v->safepoints.data[i];
        add(to, FIGURE_SAFEPOINTS, s->start_ns + (int64_t)s->sync_ns, s->total_ns);
    }
    for (size_t i = 0; i < v->throttles.len; i++)
        add(to, FIGURE_THROTTLED, v->throttles.data[i].to_ns, v->throttles.data[i].throttled_ns);
    for (size_t i = 0; i < v->readings.len; i++)
        for (size_t k = 0; k < ARRAY_SIZE(readings); k++)
            if (v->readings.data[i].kind == readings[k].kind)
                add(to, readings[k].figure, v->readings.data[i].ns, v->readings.data[i].value);
}

static void add_cpu(struct values *to, const struct profile *p)
{
    for (size_t i = 0; i < p->cpu_times.len; i++) {
        const struct profile_cpu_time *t = &p->cpu_times.data[i];
        if (str_is(profile_text(p, t->what), VM_TIME_PROCESS))
            add(to, FIGURE_CPU, (int64_t)(p->start_epoch_ns + t->time_ns), t->cpu_ns);
    }
}

static int by_figure(const void *left, const void *right)
{
    const struct value *a = left, *b = right;
    if (a->figure != b->figure)
        return a->figure < b->figure ? -1 : 1;
    if (a->start_s != b->start_s)
        return a->start_s < b->start_s ? -1 : 1;
    return (a->value > b->value) - (a->value < b->value);
}

/* Adds values of one figure and bucket of time, the smallest first. */
static int put(struct batch *b, const struct value *v, size_t n)
{
    const struct fleet_figure_info *info = &fleet_figures[v->figure];
    int64_t name = batch_name(b, FLEET_FIGURE, info->name, strlen(info->name));
    struct fleet_latency l = {.start_s = v->start_s,
                              .request = (uint32_t)name,
                              .first = (uint32_t)b->counts.len,
                              .count = n,
                              .max_ns = v[n - 1].value};
    int r = name < 0 ? (int)name : 0;
    for (size_t i = 0; i < n && r == 0; i++) {
        uint32_t bucket = latency_bucket(v[i].value);
        l.total_ns += v[i].value;
        if (info->unit != FIGURE_NS)
            continue;
        if (l.buckets && b->counts.data[b->counts.len - 1].bucket == bucket) {
            b->counts.data[b->counts.len - 1].count++;
            continue;
        }
        r = vec_push(&b->counts, ((struct fleet_count){bucket, 1}));
        l.buckets++;
    }
    return r < 0 ? r : vec_push(&b->latencies, l);
}

/*
 * Adds the methods in which threads ran while all others waited for them at a safepoint, and the
 * container's limit.
 */
static int report(struct batch *b, const struct vm_activity *v, const struct fleet_reading *how)
{
    uint64_t throttled_ns = 0, times = 0;
    int64_t last_ns = 0;
    int r = 0;
    for (size_t i = 0; i < v->safepoints.len && r == 0; i++) {
        const struct vm_safepoint *s = &v->safepoints.data[i];
        int64_t reached_ns = s->start_ns + (int64_t)s->sync_ns;
        if (s->late_n && fleet_reading_includes(how, reached_ns))
            r = batch_finding(b, reached_ns, FLEET_LATE_THREAD,
                              vm_activity_text(v, v->frames.data[s->late_first].method), 1,
                              s->sync_ns);
    }
    for (size_t i = 0; i < v->throttles.len; i++) {
        const struct vm_throttle *t = &v->throttles.data[i];
        if (!fleet_reading_includes(how, t->to_ns))
            continue;
        throttled_ns += t->throttled_ns;
        last_ns = t->to_ns;
        times++;
    }
    if (times && r == 0)
        r = batch_finding(b, last_ns, FLEET_OUT_OF_CPU, "the limit of the container", times,
                          throttled_ns);
    return r;
}

static bool is_recording(const char *path)
{
    char head[4];
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
    return fd >= 0 && pread(fd, head, sizeof(head), 0) == (ssize_t)sizeof(head) &&
           memcmp(head, "FLR", sizeof(head)) == 0;
}

int figures_read_vm(struct batch *b, const char *path, const struct profile *p,
                    const struct fleet_reading *how, struct buf *why)
{
    struct vm_activity v = {0};
    struct values values = {.how = how};
    if (p->only_samples || !p->start_epoch_ns || !is_recording(path))
        return 0;
    int r = vm_activity_load(&v, path, &(struct vm_activity_filter){0}, why);
    if (r < 0)
        return r;
    add_activity(&values, &v);
    add_cpu(&values, p);
    r = report(b, &v, how);
    vm_activity_release(&v);
    vec_sort(&values.list, by_figure);
    for (size_t i = 0, end; values.error == 0 && i < values.list.len; i = end) {
        const struct value *first = &values.list.data[i];
        for (end = i + 1; end < values.list.len && values.list.data[end].figure == first->figure &&
                          values.list.data[end].start_s == first->start_s;)
            end++;
        values.error = put(b, first, end - i);
    }
    vec_release(&values.list);
    return r < 0 ? r : values.error;
}
