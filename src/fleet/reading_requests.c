/* SPDX-License-Identifier: Apache-2.0 */
#include "fleet/reading_requests.h"

#include "base/hex.h"
#include "base/latency.h"
#include "fleet/block.h"

#include <errno.h>
#include <string.h>

/* Reads a trace id of W3C's trace context: 32 hexadecimal digits. */
static bool read_trace(const char *text, struct fleet_hash *ret)
{
    return hex_read(text, strlen(text), ret->bytes, FLEET_HASH_BYTES);
}

static int add_names(struct sample_requests *s)
{
    int r = vec_extend(&s->names, s->requests.names.len);
    for (size_t i = 0; r == 0 && i < s->requests.names.len; i++) {
        const char *name = requests_text(&s->requests, s->requests.names.data[i].name);
        int64_t at = batch_name(s->b, FLEET_REQUEST, name, strlen(name));
        if (at < 0)
            return (int)at;
        s->names.data[i] = (uint32_t)at + 1;
    }
    return r;
}

static int add_traces(struct sample_requests *s)
{
    int r = vec_extend(&s->traces, s->requests.list.len);
    for (size_t i = 0; r == 0 && i < s->requests.list.len; i++) {
        const struct request *q = &s->requests.list.data[i];
        struct fleet_hash trace;
        if (q->trace == REQUEST_NONE || !read_trace(requests_text(&s->requests, q->trace), &trace))
            continue;
        int64_t at = batch_trace(s->b, &trace);
        if (at < 0)
            return (int)at;
        s->traces.data[i] = (uint32_t)at + 1;
    }
    return r;
}

/*
 * The exact figures of a name have no time, so they are added to the bucket in which the recording
 * began.
 */
static int add_exact(struct sample_requests *s, size_t name)
{
    const struct request_name *n = &s->requests.names.data[name];
    struct batch *b = s->b;
    struct fleet_latency l = {.start_s =
                                  fleet_floor(s->requests.start_ns / 1000000000, FLEET_BUCKET_S),
                              .request = s->names.data[name] - 1,
                              .first = (uint32_t)b->counts.len,
                              .buckets = (uint32_t)n->histogram.len,
                              .count = n->all,
                              .errors = n->errors,
                              .total_ns = n->total_ns,
                              .max_ns = n->max_ns};
    int r = 0;
    for (size_t i = 0; r == 0 && i < n->histogram.len; i++)
        r = vec_push(&b->counts, ((struct fleet_count){n->histogram.data[i].bucket,
                                                       n->histogram.data[i].count}));
    return r < 0 ? r : vec_push(&b->latencies, l);
}

static int64_t bucket_of_end(const struct request *q)
{
    return fleet_floor(q->end_ns / 1000000000, FLEET_BUCKET_S);
}

static int by_end(const void *left, const void *right, void *context)
{
    const struct request *list = context;
    int64_t a = bucket_of_end(&list[*(const uint32_t *)left]),
            b = bucket_of_end(&list[*(const uint32_t *)right]);
    return (a > b) - (a < b);
}

/* Adds the requests of one name and one bucket of time. */
static int add_bucket(struct sample_requests *s, size_t name, const uint32_t *numbers, size_t n)
{
    struct batch *b = s->b;
    struct fleet_latency l = {.start_s = bucket_of_end(&s->requests.list.data[numbers[0]]),
                              .request = s->names.data[name] - 1,
                              .first = (uint32_t)b->counts.len,
                              .count = n};
    int r = vec_extend(&b->counts, n);
    if (r < 0)
        return r;
    struct fleet_count *c = b->counts.data + l.first;
    for (size_t i = 0; i < n; i++) {
        const struct request *q = &s->requests.list.data[numbers[i]];
        uint64_t ns = q->end_ns > q->start_ns ? (uint64_t)(q->end_ns - q->start_ns) : 0;
        c[i] = (struct fleet_count){latency_bucket(ns), 1};
        l.errors += q->status >= 500 || q->exception != REQUEST_NONE;
        l.total_ns += ns;
        l.max_ns = MAX(l.max_ns, ns);
    }
    qsort(c, n, sizeof(*c), fleet_count_compare);
    for (size_t i = 0; i < n; i++) {
        if (l.buckets && c[l.buckets - 1].bucket == c[i].bucket)
            c[l.buckets - 1].count++;
        else
            c[l.buckets++] = c[i];
    }
    b->counts.len = l.first + l.buckets;
    return vec_push(&b->latencies, l);
}

static int add_listed(struct sample_requests *s, size_t name)
{
    const struct request_name *n = &s->requests.names.data[name];
    VEC(uint32_t) in_window = {0};
    int r = 0;
    for (size_t i = 0; r == 0 && i < n->count; i++) {
        uint32_t number = s->requests.by_name.data[n->first + i];
        if (fleet_reading_includes(s->how, s->requests.list.data[number].end_ns))
            r = vec_push(&in_window, number);
    }
    uint32_t *numbers = in_window.data;
    size_t count = in_window.len;
    if (count)
        qsort_r(numbers, count, sizeof(*numbers), by_end, s->requests.list.data);
    for (size_t i = 0, end; r == 0 && i < count; i = end) {
        int64_t bucket = bucket_of_end(&s->requests.list.data[numbers[i]]);
        for (end = i + 1; end < count; end++)
            if (bucket_of_end(&s->requests.list.data[numbers[end]]) != bucket)
                break;
        r = add_bucket(s, name, numbers + i, end - i);
    }
    vec_release(&in_window);
    return r;
}

/* ---- the slowest, for which the recording is kept */

enum { SLOWEST = 3 };

static int add_slow(struct sample_requests *s, const struct request *q)
{
    _cleanup_(buf_release) struct buf text = BUF(1 << 16);
    struct fleet_hash trace;
    const char *name = requests_text(&s->requests, s->requests.names.data[q->name].name);
    const char *of = q->trace == REQUEST_NONE ? "-" : requests_text(&s->requests, q->trace);
    buf_printf(&text, "%s %s %llu %s", s->how->kept, read_trace(of, &trace) ? of : "-",
               (unsigned long long)q->id, name);
    return buf_error(&text) ? buf_error(&text)
                            : batch_finding(s->b, q->end_ns, FLEET_SLOW_REQUEST, buf_str(&text), 1,
                                            (uint64_t)(q->end_ns - q->start_ns));
}

static int64_t length_of(const struct request *q)
{
    return q->end_ns - q->start_ns;
}

/*
 * Finds the slowest request of each name, for the names whose slowest requests are the slowest of
 * all.
 */
static int add_slowest(struct sample_requests *s)
{
    const struct request *slowest[SLOWEST];
    size_t n = 0;
    int r = 0;
    for (size_t i = 0; i < s->requests.names.len; i++) {
        const struct request_name *name = &s->requests.names.data[i];
        const struct request *longest = NULL;
        for (size_t k = 0; k < name->count; k++) {
            const struct request *q =
                &s->requests.list.data[s->requests.by_name.data[name->first + k]];
            if (fleet_reading_includes(s->how, q->end_ns) &&
                length_of(q) > (longest ? length_of(longest) : 0))
                longest = q;
        }
        if (!longest || (n == SLOWEST && length_of(longest) <= length_of(slowest[n - 1])))
            continue;
        n += n < SLOWEST;
        size_t at = n - 1;
        for (; at && length_of(slowest[at - 1]) < length_of(longest); at--)
            slowest[at] = slowest[at - 1];
        slowest[at] = longest;
    }
    for (size_t i = 0; i < n && r == 0; i++)
        r = add_slow(s, slowest[i]);
    return r;
}

int sample_requests_load(struct sample_requests *ret, struct batch *b, const char *path,
                         const struct fleet_reading *how, struct buf *why)
{
    ret->b = b;
    ret->how = how;
    if (!requests_any(path))
        return 0;
    int r = requests_load(&ret->requests, path, &(struct request_filter){0}, why);
    if (r < 0)
        return r;
    ret->any = true;
    r = add_names(ret);
    if (r == 0)
        r = add_traces(ret);
    if (r == 0 && how->kept)
        r = add_slowest(ret);
    for (size_t i = 0; r == 0 && i < ret->requests.names.len; i++) {
        const struct request_name *n = &ret->requests.names.data[i];
        /*
         * Only the list has the time at which each request ended. For a recording of up to a minute
         * it is complete.
         */
        if (n->exact && n->all != n->count)
            r = add_exact(ret, i);
        else if (n->count)
            r = add_listed(ret, i);
    }
    return r;
}

void sample_requests_release(struct sample_requests *s)
{
    if (s->any)
        requests_release(&s->requests);
    vec_release(&s->names);
    vec_release(&s->traces);
}

void sample_requests_find(const struct sample_requests *s, uint64_t thread, int64_t time_ns,
                          struct fleet_sample *sample)
{
    if (!s || !s->any)
        return;
    const struct requests *q = &s->requests;
    /*
     * Pieces of work are nested; of those that have begun and not ended, the one that began last is
     * the innermost.
     */
    for (size_t i = requests_work_at(q, thread, time_ns + 1); i-- > 0;) {
        const struct request_work *w = &q->works.data[q->by_thread.data[i]];
        if (w->thread != thread)
            return;
        if (w->owner != REQUEST_NONE && w->start_ns <= time_ns && time_ns < w->end_ns) {
            sample->request = s->names.data[q->list.data[w->owner].name];
            sample->trace = s->traces.data[w->owner];
            return;
        }
        if (w->end_ns <= time_ns && requests_work_at(q, thread, time_ns + 1) - i > 64)
            /*
             * after this many pieces of work that had ended, it is assumed that none encloses this
             * time
             */
            return;
    }
}
