/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HPROF's text output: THREAD and TRACE records, then CPU SAMPLES, CPU TIME and SITES tables that name traces. Samples and
 * times start from zero at each dump, so dumps add up; sites are cumulative, so the last table counts.
 */
#include "model/load.h"

#include "base/map.h"

#include <stdio.h>
#include <string.h>

enum section { NONE, TRACE, SAMPLES, TIMES, SITES };

struct reading {
    struct load *l;
    enum section section;
    struct map traces, threads_of; /* trace number to node; to thread */
    uint64_t trace, thread, total;
    VEC(uint32_t) frames; /* of the trace being read, innermost first */
    bool traced;
};

/* A frame line, "a.B.run(B.java:12)": the class ends at the last dot before the parenthesis. */
static int64_t add_frame(struct profile *p, const char *s, size_t len)
{
    const char *paren = memrchr(s, '(', len), *end = paren ? paren : s + len;
    const char *dot = memrchr(s, '.', (size_t)(end - s)), *name = dot ? dot + 1 : s;
    int64_t file = 0, line = 0;
    if (paren) {
        const char *close = memrchr(paren, ')', (size_t)(s + len - paren));
        if (!close)
            close = s + len;
        const char *colon = memrchr(paren, ':', (size_t)(close - paren));
        const char *file_end = colon ? colon : close;
        if (memcmp(paren, "(Unknown", MIN((size_t)8, (size_t)(s + len - paren))) != 0)
            file = profile_string(p, paren + 1, (size_t)(file_end - paren - 1));
        for (const char *d = colon ? colon + 1 : close; d < close && *d >= '0' && *d <= '9' && line < 1 << 24; d++)
            line = line * 10 + (*d - '0');
    }
    int64_t class_name = dot ? profile_string(p, s, (size_t)(dot - s)) : 0;
    int64_t method_name = profile_string(p, name, (size_t)(end - name));
    if (file < 0 || class_name < 0 || method_name < 0)
        return -ENOMEM;
    int64_t method = profile_method(p, (uint32_t)class_name, (uint32_t)method_name, 0, (uint32_t)file);
    return method < 0 ? method : profile_frame(p, (uint32_t)method, (int32_t)line, FRAME_JAVA);
}

/* The trace is complete: its frames become a path of the tree. */
static int finish_trace(struct reading *r)
{
    if (!r->traced)
        return 0;
    r->traced = false;
    int64_t node = 0;
    for (size_t i = r->frames.len; i-- > 0;) {
        node = profile_node(r->l->profile, (uint32_t)node, r->frames.data[i]);
        if (node < 0)
            return (int)node;
    }
    int e = map_put(&r->traces, r->trace, (uint64_t)node);
    return e < 0 || !r->thread ? e : map_put(&r->threads_of, r->trace, r->thread);
}

static int start_trace(struct reading *r, const char *line)
{
    unsigned long long trace, thread = 0;
    if (sscanf(line, "TRACE %llu: (thread=%llu", &trace, &thread) < 1)
        return 0;
    r->section = TRACE;
    r->trace = trace;
    r->thread = thread;
    r->traced = true;
    vec_clear(&r->frames);
    return 0;
}

static int add_thread(struct reading *r, const char *line)
{
    const char *id = strstr(line, "id = "), *name = strstr(line, "name=\""), *group = strstr(line, "\", group=");
    if (!id || !name || !group || group < name + 6)
        return 0;
    int64_t n = profile_thread(r->l->profile, strtoull(id + 5, NULL, 10), name + 6, (size_t)(group - name - 6));
    return n < 0 ? (int)n : 0;
}

static int trace_line(struct reading *r, const char *line)
{
    if (line[0] != '\t' || line[1] == '<') /* "<empty>" */
        return 0;
    int64_t frame = add_frame(r->l->profile, line + 1, strlen(line + 1));
    return frame < 0 ? (int)frame : vec_push(&r->frames, (uint32_t)frame);
}

static int add_sample(struct reading *r, enum profile_metric metric, uint64_t weight, uint64_t trace, uint64_t node)
{
    uint64_t *of = map_get(&r->threads_of, trace);
    int64_t thread = profile_thread(r->l->profile, of ? *of : 0, "", 0);
    if (thread < 0)
        return (int)thread;
    struct profile_sample s = {.weight = weight, .thread = (uint32_t)thread, .node = (uint32_t)node};
    return profile_sample(r->l->profile, metric, s);
}

static int table_line(struct reading *r, const char *line)
{
    double self;
    unsigned long long count, trace, bytes, objects;
    uint64_t *node;
    if (r->section == SITES) {
        if (sscanf(line, " %*u %*f%% %*f%% %*u %*u %llu %llu %llu", &bytes, &objects, &trace) != 3)
            return 0;
        node = map_get(&r->traces, trace);
        return add_sample(r, PROFILE_ALLOCATION, bytes, trace, node ? *node : 0);
    }
    if (sscanf(line, " %*u %lf%% %*f%% %llu %llu", &self, &count, &trace) != 3)
        return 0;
    node = map_get(&r->traces, trace);
    if (r->section == SAMPLES)
        return add_sample(r, PROFILE_CPU, count, trace, node ? *node : 0);
    return add_sample(r, PROFILE_EXACT, (uint64_t)(self / 100 * (double)r->total * 1e6), trace, node ? *node : 0);
}

static int start_table(struct reading *r, const char *line)
{
    static const struct {
        const char *begin;
        enum section section;
    } tables[] = {{"CPU SAMPLES BEGIN", SAMPLES}, {"CPU TIME (ms) BEGIN", TIMES}, {"SITES BEGIN", SITES}};

    for (size_t i = 0; i < ARRAY_SIZE(tables); i++) {
        if (strncmp(line, tables[i].begin, strlen(tables[i].begin)) != 0)
            continue;
        r->section = tables[i].section;
        const char *total = strstr(line, "total = ");
        r->total = total ? strtoull(total + 8, NULL, 10) : 0;
        if (r->section == SITES)
            vec_clear(&r->l->profile->series[PROFILE_ALLOCATION].samples);
    }
    return 0;
}

static int read_line(struct reading *r, const char *line)
{
    if (line[0] != '\t') {
        int e = finish_trace(r);
        if (e < 0)
            return e;
    }
    if (strncmp(line, "TRACE ", 6) == 0)
        return start_trace(r, line);
    if (strncmp(line, "THREAD START ", 13) == 0)
        return add_thread(r, line);
    if (r->section == TRACE && line[0] == '\t')
        return trace_line(r, line);
    if (r->section > TRACE && line[0] == ' ')
        return table_line(r, line);
    return start_table(r, line);
}

int load_hprof_text(struct load *l)
{
    struct reading r = {.l = l};
    _cleanup_(buf_release) struct buf line = BUF(1 << 20);
    int e = 0;
    const char *at = (const char *)l->data, *end = at + l->len;
    for (size_t number = 1; at < end && e == 0; number++) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        size_t len = (size_t)((stop ? stop : end) - at);
        buf_clear(&line);
        buf_bytes(&line, at, MIN(len, line.limit - 1));
        e = buf_error(&line) ? buf_error(&line) : read_line(&r, buf_str(&line));
        at = stop ? stop + 1 : end;
        if (l->progress && number % 65536 == 0)
            l->progress(l->progress_context, (uint64_t)(at - (const char *)l->data), l->len);
    }
    if (e == 0)
        e = finish_trace(&r);
    map_release(&r.traces);
    map_release(&r.threads_of);
    vec_release(&r.frames);
    return e;
}
