/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/path_samples.h"

#include "base/hash.h"
#include "base/map.h"
#include "jfr/reader.h"
#include "profile/cpu_samples.h"
#include "profile/frame_role.h"
#include "timeline/idle.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* a larger recording is not read a second time */
#define BYTES_MOST (INT64_C(1) << 30)

/* A sample on the path. `frames` has its methods from `first` on, innermost first, each once. */
struct hit {
    uint32_t segment, first, n;
};

struct joining {
    const struct timeline *t;
    bool with_idle;
    const struct critical_path *path;
    struct path_samples *out;
    struct map threads; /* Java thread id to the thread of the timeline */
    struct map stacks;  /* of the current chunk: stack id to the place in lists */
    const struct rec_chunk *chunk;
    VEC(struct hit) hits;
    VEC(uint32_t) frames; /* numbers of methods */
    VEC(struct hit) lists;
    VEC(const char *) names; /* indexed by rec_method.number */
    struct map by_name;      /* hash of a name to the first number that has it */
    uint32_t *counts;        /* per segment */
};

static bool is_run(const struct path_segment *s)
{
    return s->state == PATH_RUN || s->state == PATH_PREEMPTED || s->state == PATH_THROTTLED ||
           s->state == PATH_GC;
}

/*
 * Returns the number of the first method with this name, because every ranked table counts
 * overloads as one method. Returns a negative errno on failure.
 */
static int64_t number_of(struct joining *j, const struct rec_method *m)
{
    if (m->number >= j->names.len && vec_extend(&j->names, m->number + 1 - j->names.len) < 0)
        return -ENOMEM;
    j->names.data[m->number] = m->full;
    const uint64_t *first =
        map_at(&j->by_name, hash_bytes(m->full, strlen(m->full)), m->number, NULL);
    return first ? (int64_t)*first : -ENOMEM;
}

/*
 * Adds the methods of a stack, each once, as a list that samples with the same stack id share.
 * Returns the list's place in lists.
 */
static int64_t list_of(struct joining *j, const struct rec_event *e, const struct rec_stack *s)
{
    if (j->chunk != e->object.chunk)
        map_clear(&j->stacks);
    j->chunk = e->object.chunk;
    const uint64_t *known = map_get(&j->stacks, s->id);
    if (known)
        return (int64_t)*known;
    struct hit list = {.first = (uint32_t)j->frames.len};
    for (uint32_t i = frame_role_probe_frames(s); i < s->n; i++) {
        if (frame_role_is_of_agent(s->frames[i].method))
            continue;
        int64_t number = number_of(j, s->frames[i].method);
        bool again = false;
        for (size_t k = list.first; k < j->frames.len && !again; k++)
            again = j->frames.data[k] == number;
        if (number < 0 || (!again && vec_push(&j->frames, (uint32_t)number) < 0))
            return -ENOMEM;
    }
    list.n = (uint32_t)j->frames.len - list.first;
    if (vec_push(&j->lists, list) < 0 || map_put(&j->stacks, s->id, j->lists.len - 1) < 0)
        return -ENOMEM;
    return (int64_t)j->lists.len - 1;
}

static int take(struct joining *j, const struct rec_event *e)
{
    const struct timeline *t = j->t;
    const struct rec_thread *thread = rec_thread(&e->object, "sampledThread");
    if (!thread)
        thread = rec_thread(&e->object, "eventThread");
    const uint64_t *known =
        thread && thread->java_id > 0 ? map_get(&j->threads, (uint64_t)thread->java_id) : NULL;
    if (!known || e->start_ns < (int64_t)t->origin_ns)
        return 0;
    size_t i = critical_path_after(j->path, 0, (uint64_t)e->start_ns - t->origin_ns);
    const struct path_segment *s = i < j->path->segments.len ? &j->path->segments.data[i] : NULL;
    if (!s || s->start > (uint64_t)e->start_ns - t->origin_ns || s->thread != *known || !is_run(s))
        return 0;
    const struct rec_stack *stack = rec_stack(&e->object, "stackTrace");
    int64_t list = stack ? list_of(j, e, stack) : -ENOENT;
    if (list < 0)
        return list == -ENOENT ? 0 : (int)list;
    /* A stack without frames, or with frames of probes alone, shows no method of the program. */
    if (!j->lists.data[list].n)
        return 0;
    j->counts[i]++;
    j->out->samples++;
    struct hit hit = j->lists.data[list];
    hit.segment = (uint32_t)i;
    return vec_push(&j->hits, hit);
}

/*
 * Consecutive segments of one thread belong to one run, which pauses and delays at unknown places
 * have divided. The samples of one segment therefore stand for the whole run. Gives each segment
 * the number of its run.
 */
static uint32_t *runs_of(const struct critical_path *p)
{
    uint32_t *run = calloc(p->segments.len + 1, sizeof(*run)), n = 0;
    for (size_t i = 0; run && i < p->segments.len; i++) {
        const struct path_segment *s = &p->segments.data[i];
        const struct path_segment *before = i ? s - 1 : NULL;
        bool same = before && before->thread == s->thread && is_run(before) && is_run(s) &&
                    s->edge == TL_NO_EDGE;
        run[i] = same ? n - 1 : n++;
    }
    return run;
}

static int by_total(const void *a, const void *b)
{
    const struct ran_method *x = a, *y = b;
    if (x->total_ns != y->total_ns)
        return x->total_ns < y->total_ns ? 1 : -1;
    if (x->self_ns != y->self_ns)
        return x->self_ns < y->self_ns ? 1 : -1;
    return strcmp(x->name, y->name);
}

/* Divides each run's time equally among its samples. */
static int divide(struct joining *j, const uint32_t *run)
{
    const struct critical_path *p = j->path;
    struct path_samples *out = j->out;
    size_t n = p->segments.len;
    uint64_t *ns = calloc(n + 1, sizeof(*ns)), *count = calloc(n + 1, sizeof(*count));
    uint64_t *self = calloc(j->names.len + 1, sizeof(*self)),
             *total = calloc(j->names.len + 1, sizeof(*total));
    int r = ns && count && self && total ? 0 : -ENOMEM;
    for (size_t i = 0; r == 0 && i < n; i++) {
        const struct path_segment *s = &p->segments.data[i];
        ns[run[i]] += is_run(s) ? s->end - s->start : 0;
        count[run[i]] += j->counts[i];
    }
    for (size_t i = 0; r == 0 && i < n; i++) {
        const struct path_segment *s = &p->segments.data[i];
        out->sampled[i] = is_run(s) && count[run[i]] > 0;
        out->run_ns += is_run(s) ? s->end - s->start : 0;
        out->known_ns += out->sampled[i] ? s->end - s->start : 0;
    }
    for (size_t i = 0; r == 0 && i < j->hits.len; i++) {
        const struct hit *h = &j->hits.data[i];
        uint64_t each = ns[run[h->segment]] / count[run[h->segment]];
        for (uint32_t k = 0; k < h->n; k++)
            total[j->frames.data[h->first + k]] += each;
        self[j->frames.data[h->first]] += each;
        out->top[h->segment] = j->names.data[j->frames.data[h->first]];
    }
    for (size_t i = 1; r == 0 && i < n; i++) /* one name for a divided run */
        if (out->sampled[i] && !out->top[i] && run[i] == run[i - 1])
            out->top[i] = out->top[i - 1];
    for (size_t i = n; r == 0 && i-- > 1;)
        if (out->sampled[i - 1] && !out->top[i - 1] && run[i] == run[i - 1])
            out->top[i - 1] = out->top[i];
    for (size_t i = 0; r == 0 && i < j->names.len; i++)
        if (total[i])
            r = vec_push(&out->rows, ((struct ran_method){j->names.data[i], self[i], total[i]}));
    free(ns);
    free(count);
    free(self);
    free(total);
    return r;
}

static int find_idle(struct joining *j)
{
    const struct timeline *t = j->t;
    struct path_samples *out = j->out;
    uint8_t *roles = j->with_idle ? NULL : idle_frame_roles(t);
    if (!roles)
        return j->with_idle ? 0 : -ENOMEM;
    for (size_t i = 0; i < j->path->segments.len; i++) {
        const struct path_segment *s = &j->path->segments.data[i];
        uint32_t stack =
            is_run(s) || s->node == TL_NONE ? TL_NONE : tl_context_of(t, s->node)->stack;
        out->idle[i] = idle_is_idle_stack(t, roles, stack);
        out->idle_ns += out->idle[i] ? s->end - s->start : 0;
    }
    free(roles);
    return 0;
}

/* Adds what the timeline knows about the other segments. */
static int add_others(struct joining *j)
{
    const struct timeline *t = j->t;
    struct path_samples *out = j->out;
    struct path_methods others = {0};
    struct map by_name = {0};
    int r = find_idle(j);
    uint8_t *skip = malloc(j->path->segments.len + 1);
    for (size_t i = 0; skip && i < j->path->segments.len; i++)
        skip[i] = out->sampled[i] || out->idle[i];
    r = r < 0 ? r : skip ? path_methods(t, j->path, skip, &others) : -ENOMEM;
    free(skip);
    for (size_t i = 0; r == 0 && i < out->rows.len; i++)
        r = map_put(&by_name, hash_bytes(out->rows.data[i].name, strlen(out->rows.data[i].name)),
                    i);
    for (size_t i = 0; r == 0 && i < others.rows.len; i++) {
        const struct path_method *m = &others.rows.data[i];
        const char *name = tl_string(t, m->method);
        const uint64_t *known = map_get(&by_name, hash_bytes(name, strlen(name)));
        if (!known)
            r = vec_push(&out->rows, ((struct ran_method){name, m->self_ns, m->total_ns}));
        else
            out->rows.data[*known] =
                (struct ran_method){name, out->rows.data[*known].self_ns + m->self_ns,
                                    out->rows.data[*known].total_ns + m->total_ns};
    }
    if (r == 0 && out->rows.len)
        qsort(out->rows.data, out->rows.len, sizeof(*out->rows.data), by_total);
    vec_release(&others.rows);
    map_release(&by_name);
    return r;
}

static void forget_hits(struct joining *j)
{
    vec_clear(&j->hits);
    memset(j->counts, 0, (j->path->segments.len + 1) * sizeof(*j->counts));
    j->out->samples = 0;
}

static int join(struct joining *j)
{
    enum { EXECUTION, CPU_TIME };

    static const struct rec_select wanted[] = {
        {"jdk.ExecutionSample", EXECUTION}, {"jdk.CPUTimeSample", CPU_TIME}, {0}};
    struct rec_event e;
    bool timed = false;
    int r = recording_select(j->out->recording, wanted), more = 1;
    for (size_t i = 0; r == 0 && i < j->t->n_threads; i++)
        r = map_put(&j->threads, j->t->threads[i].id, i);
    while (r == 0 && (more = recording_next(j->out->recording, &e)) > 0) {
        j->out->exists = true;
        enum cpu_sample_use use = cpu_sample_use(&timed, e.tag == CPU_TIME);
        if (use == CPU_SAMPLE_TAKE_ALONE)
            forget_hits(j);
        if (use != CPU_SAMPLE_SKIP)
            r = take(j, &e);
    }
    return r < 0 ? r : MIN(more, 0);
}

int path_samples(const struct timeline *t, const char *file, bool idle,
                 const struct critical_path *p, struct path_samples *ret)
{
    struct path_samples out = {0};
    struct joining j = {.t = t, .with_idle = idle, .path = p, .out = &out};
    const char *why = NULL;
    uint32_t *run = NULL;
    struct stat st;
    out.too_large = stat(file, &st) == 0 && st.st_size > BYTES_MOST;
    int r = out.too_large ? -EFBIG : t->unsampled ? 0 : recording_open(&out.recording, file, &why);
    if (r == -ENOMEM)
        return r;
    /* otherwise the file is the thread profiler's XML, or too large to be read */
    bool readable = r == 0;
    out.top = calloc(p->segments.len + 1, sizeof(*out.top));
    out.sampled = calloc(p->segments.len + 1, 1);
    out.idle = calloc(p->segments.len + 1, 1);
    j.counts = calloc(p->segments.len + 1, sizeof(*j.counts));
    r = out.top && out.sampled && out.idle && j.counts && (run = runs_of(p)) ? 0 : -ENOMEM;
    if (r == 0 && out.recording)
        r = join(&j);
    if (r == 0 && readable)
        r = divide(&j, run);
    if (r == 0)
        r = add_others(&j);
    free(run);
    free(j.counts);
    map_release(&j.threads);
    map_release(&j.stacks);
    map_release(&j.by_name);
    vec_release(&j.hits);
    vec_release(&j.frames);
    vec_release(&j.lists);
    vec_release(&j.names);
    if (r < 0)
        path_samples_release(&out);
    else
        *ret = out;
    return r;
}

void path_samples_release(struct path_samples *s)
{
    recording_close(s->recording);
    vec_release(&s->rows);
    free(s->top);
    free(s->sampled);
    free(s->idle);
}

bool path_method_is_informative(const struct ran_method *row)
{
    return row->self_ns || frame_role(row->name) == ROLE_PROGRAM;
}

void path_busy_states(const struct critical_path *p, const struct path_samples *s,
                      uint64_t ret[PATH_STATES])
{
    memcpy(ret, p->states, sizeof(p->states));
    for (size_t i = 0; i < p->segments.len; i++)
        if (s->idle[i])
            ret[p->segments.data[i].state] -= p->segments.data[i].end - p->segments.data[i].start;
}
