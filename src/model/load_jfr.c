/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Flight recordings of any JDK or of jvmscope: execution, wall-clock and allocation samples, and
 * contended monitors.
 */
#include "model/load.h"

#include "base/parse.h"
#include "jfr/reader_rows.h"
#include "model/frame_role.h"
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

struct answer {
    uint32_t round, number; /* an answer whose round is another chunk's is not valid */
};

/*
 * What the ids of a chunk's constants stand for in the profile, resolved once per id. It is an
 * array where ids are small, as those of all recorders are, because a map would cause a cache miss
 * for each event.
 */
struct answers {
    const struct rec_chunk *chunk;
    const struct rec_type *type; /* the type of the constants */
    uint32_t round;
    VEC(struct answer) of_id;
};

enum { ANSWERS_MAX = 1 << 22 };

#define TRUNCATED "[truncated]"

/* Names of frame types in JFR; the last ones are ours. */
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

/*
 * By node: the index + 1 of the sample in a series that collects those of the node; 0: none yet.
 * See LOAD_SUMS.
 */
struct sums {
    VEC(uint32_t) of_node;
};

struct method {
    uint32_t number; /* the number in the profile, + 1; 0: not seen yet */
    bool is_mark;
};

struct reading {
    struct load *l;
    struct profile *p;
    int64_t start_ns; /* the start of the recording */
    const struct rec_chunk *chunk;
    /* of the current chunk: stack id to node, where `answers` cannot hold it */
    struct map stacks;
    struct map nodes;                 /* hash of a stack's frames to a node; see known_node() */
    struct map sites;                 /* node and class to the site */
    struct map calls;                 /* node and thread to the row of calls */
    struct map total_of;              /* the same to the row of totals */
    VEC(struct profile_calls) totals; /* totals of methods; the node has one frame */
    /* node and thread to what its samples still have to give back, see add_change() */
    struct map owed[PROFILE_METRICS];
    VEC(struct method) methods; /* indexed by rec_method.number */

    /*
     * Frame types by their texts, each of which a recording has once, and the frame kinds they
     * stand for.
     */
    struct frame_type {
        const char *text;
        enum frame_kind kind;
    } types[16];

    VEC(uint32_t) threads; /* numbers in the profile, indexed by rec_thread.number */
    struct answers stack_answers, thread_answers;
    struct sums cpu_sums, cpu_time_sums;
    /* held back until everything has been read, see settle() */
    struct profile_series cpu_time, unattributed, sampled, tlab;
};

/* A text in brackets in place of a method is a mark, here as in the other formats. */
static bool is_mark(const struct rec_method *m)
{
    size_t len = strlen(m->name);
    return (!m->class || !*m->class->name) && len > 1 && m->name[0] == '[' &&
           m->name[len - 1] == ']';
}

static int64_t method_of(struct reading *r, const struct rec_method *m)
{
    if (m->number >= r->methods.len && vec_extend(&r->methods, m->number + 1 - r->methods.len) < 0)
        return -ENOMEM;
    struct method *known = &r->methods.data[m->number];
    if (known->number)
        return known->number - 1;
    const char *class_text = m->class ? m->class->name : "",
               *signature_text = m->descriptor ? m->descriptor : "";
    int64_t class_name = profile_string(r->p, class_text, strlen(class_text));
    int64_t name = profile_string(r->p, m->name, strlen(m->name));
    int64_t signature = profile_string(r->p, signature_text, strlen(signature_text));
    if (class_name < 0 || name < 0 || signature < 0)
        return -ENOMEM;
    int64_t n = profile_method(r->p, (uint32_t)class_name, (uint32_t)name, (uint32_t)signature, 0);
    if (n >= 0)
        *known = (struct method){(uint32_t)n + 1, is_mark(m)};
    return n;
}

static enum frame_kind kind_of_type(struct reading *r, const char *type)
{
    struct frame_type *known = &r->types[(uintptr_t)type / 8 % ARRAY_SIZE(r->types)];
    if (known->text == type)
        return known->kind;
    *known = (struct frame_type){type, FRAME_JAVA};
    for (size_t i = 0; type && i < ARRAY_SIZE(kinds); i++) {
        if (strcmp(type, kinds[i].name) == 0) {
            known->kind = kinds[i].kind;
            break;
        }
    }
    return known->kind;
}

/* Returns the profile's frame for a frame of the recording. */
static int64_t frame_of(struct reading *r, const struct rec_frame *f)
{
    int64_t method = method_of(r, f->method);
    if (method < 0)
        return method;
    bool mark = r->methods.data[f->method->number].is_mark;
    return profile_frame(r->p, (uint32_t)method, f->line,
                         mark ? FRAME_MARK : kind_of_type(r, f->type));
}

static bool is_frame(struct reading *r, uint32_t node, const struct rec_frame *f)
{
    const struct profile_frame *have = profile_node_frame(r->p, node);
    const struct method *m =
        f->method->number < r->methods.len ? &r->methods.data[f->method->number] : NULL;
    int32_t line = f->line < 0 || f->line >= PROFILE_LINES ? 0 : f->line;
    return m && m->number == have->method + 1 && have->line == line &&
           have->kind == (m->is_mark ? FRAME_MARK : kind_of_type(r, f->type));
}

/* Returns whether a node's stack equals this one. */
static bool is_node_of(struct reading *r, uint32_t node, const struct rec_stack *s, uint32_t ours)
{
    for (uint32_t i = ours; i < s->n; i++) {
        if (!node || !is_frame(r, node, &s->frames[i]))
            return false;
        node = r->p->nodes.data[node].parent;
    }
    if (s->truncated && node) {
        const struct profile_frame *f = profile_node_frame(r->p, node);
        return f->kind == FRAME_MARK && r->p->nodes.data[node].parent == 0 &&
               str_is(profile_text(r->p, r->p->methods.data[f->method].label), TRUNCATED);
    }
    return !node && !s->truncated;
}

static uint64_t hash_of(struct reading *r, const struct rec_stack *s, uint32_t ours)
{
    uint64_t hash = s->truncated;
    for (uint32_t i = ours; i < s->n; i++) {
        const struct rec_frame *f = &s->frames[i];
        hash ^= (uint64_t)f->method->number << 32 | (uint32_t)f->line;
        hash = (hash ^ (uint64_t)kind_of_type(r, f->type) << 60) * UINT64_C(0x9e3779b97f4a7c15);
        hash ^= hash >> 32;
    }
    return hash;
}

static int64_t add_frames(struct reading *r, const struct rec_stack *s, uint32_t ours)
{
    int64_t node = 0, frame = s->truncated ? profile_mark(r->p, TRUNCATED) : 0;
    if (frame >= 0 && s->truncated)
        node = profile_node(r->p, 0, (uint32_t)frame);
    if (s->n && ours == s->n && node >= 0) {
        frame = profile_mark(r->p, "[jvmscope]");
        node = frame < 0 ? frame : profile_node(r->p, (uint32_t)node, (uint32_t)frame);
    }
    for (uint32_t i = s->n; i-- > ours && node >= 0;) {
        frame = frame_of(r, &s->frames[i]);
        node = frame < 0 ? frame : profile_node(r->p, (uint32_t)node, (uint32_t)frame);
    }
    return node;
}

/*
 * Returns the node of a stack. Each chunk defines the stacks that it needs again, and most of them
 * have a node by then.
 */
static int64_t node_of_frames(struct reading *r, const struct rec_stack *s)
{
    uint32_t ours = probe_frames(s);
    if (ours == s->n)
        return add_frames(r, s, ours);
    uint64_t *known = map_at(&r->nodes, hash_of(r, s, ours), 0, NULL);
    if (!known)
        return -ENOMEM;
    if (*known && is_node_of(r, (uint32_t)*known, s, ours))
        return (int64_t)*known;
    int64_t node = add_frames(r, s, ours);
    if (node > 0)
        *known = (uint64_t)node;
    return node;
}

static int64_t node_of_stack(struct reading *r, const struct rec_object *o)
{
    const struct rec_stack *s = rec_stack(o, "stackTrace");
    return s ? node_of_frames(r, s) : 0;
}

/*
 * Returns the node of an event's stack. A chunk defines each stack once, so each is walked once per
 * chunk.
 */
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

static int64_t thread_of(struct reading *r, const struct rec_object *o)
{
    const struct rec_thread *t = rec_thread(o, "sampledThread");
    if (!t)
        t = rec_thread(o, "eventThread");
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

/*
 * Returns the cached answer for an id, which has another round when it is not valid yet; NULL: the
 * id cannot be cached.
 */
static struct answer *answer(struct answers *all, const struct rec_row *row, enum wish wish,
                             uint64_t id)
{
    const struct rec_type *type = row->plan->field[wish]->type;
    if (unlikely(all->chunk != row->plan->chunk || all->type != type)) {
        all->chunk = row->plan->chunk;
        all->type = type;
        all->round++;
    }
    if (unlikely(id >= all->of_id.len &&
                 (id >= ANSWERS_MAX || vec_extend(&all->of_id, id + 1 - all->of_id.len) < 0)))
        return NULL;
    return &all->of_id.data[id];
}

/*
 * Returns the number that a row's field stands for, computing it only once for each id. `find`
 * computes it; it keeps a cache of its own for ids that cannot be cached here.
 */
static int64_t answered(struct reading *r, struct answers *all, const struct rec_row *row,
                        enum wish wish,
                        int64_t (*find)(struct reading *r, const struct rec_object *o),
                        int64_t (*remember)(struct reading *r, const struct rec_object *o))
{
    uint64_t id;
    struct answer *a = rec_row_id(row, wish, &id) ? answer(all, row, wish, id) : NULL;
    if (likely(a && a->round == all->round))
        return a->number;
    struct rec_event e;
    rec_row_event(row, &e);
    int64_t number = a ? find(r, &e.object) : remember(r, &e.object);
    if (a && number >= 0)
        *a = (struct answer){all->round, (uint32_t)number};
    return number;
}

static int64_t node_of_row(struct reading *r, const struct rec_row *row)
{
    return row->plan->slot[STACK] == REC_ABSENT
               ? 0
               : answered(r, &r->stack_answers, row, STACK, node_of_stack, node_of);
}

static int64_t thread_of_row(struct reading *r, const struct rec_row *row)
{
    enum wish wish = row->plan->slot[SAMPLED_THREAD] == REC_ABSENT ? EVENT_THREAD : SAMPLED_THREAD;
    /* Where an event has both fields, the second one is used when the first is null. */
    bool sole = wish == EVENT_THREAD || row->plan->slot[EVENT_THREAD] == REC_ABSENT;
    if (likely(sole))
        return answered(r, &r->thread_answers, row, wish, thread_of, thread_of);
    struct rec_event e;
    rec_row_event(row, &e);
    return thread_of(r, &e.object);
}

static int add(struct reading *r, struct profile_series *to, const struct rec_row *row,
               int64_t node, uint64_t weight)
{
    int64_t thread = thread_of_row(r, row);
    if (thread < 0 || node < 0)
        return -ENOMEM;
    /* An event may begin before the recording does, such as the wait for a lock. */
    struct profile_sample s = {.time_ns = (uint64_t)MAX(row->start_ns - r->start_ns, 0),
                               .weight = weight,
                               .thread = (uint32_t)thread,
                               .node = (uint32_t)node};
    if (s.time_ns > r->p->duration_ns)
        r->p->duration_ns = s.time_ns;
    return vec_push(&to->samples, s);
}

/* Adds a CPU sample, or adds it to the earlier one of its stack where samples may be merged. */
static int add_cpu(struct reading *r, struct profile_series *to, struct sums *sums,
                   const struct rec_row *row)
{
    int64_t node = node_of_row(r, row);
    if (r->l->detail == LOAD_SAMPLES || node < 0)
        return add(r, to, row, node, row->events);
    if ((size_t)node >= sums->of_node.len &&
        vec_extend(&sums->of_node, r->p->nodes.len - sums->of_node.len) < 0)
        return -ENOMEM;
    uint32_t *known = &sums->of_node.data[node];
    if (!*known) {
        *known = (uint32_t)to->samples.len + 1;
        return add(r, to, row, node, row->events);
    }
    to->samples.data[*known - 1].weight += row->events;
    r->p->duration_ns =
        MAX(r->p->duration_ns, (uint64_t)MAX(row->start_ns - r->start_ns, INT64_C(0)));
    return thread_of_row(r, row) < 0 ? -ENOMEM : 0;
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
    return (uint64_t)change > paid
               ? add(r, &r->p->series[metric], row, node, (uint64_t)change - paid)
               : 0;
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
    struct profile_series *series = r->p->series;
    switch ((enum tag)row->plan->type->tag) {
    case EXECUTION:
        return add_cpu(r, &series[PROFILE_CPU], &r->cpu_sums, row);
    case CPU_TIME:
        r->cpu_time.interval_ns =
            (uint64_t)rec_row_ns(row, PERIOD, (int64_t)r->cpu_time.interval_ns);
        return add_cpu(r, &r->cpu_time, &r->cpu_time_sums, row);
    case UNATTRIBUTED:
        return add(r, &r->unattributed, row, unattributed_node(r, row),
                   (uint64_t)rec_row_long(row, SAMPLES, 1));
    case WALL:
        return add(r, &series[PROFILE_WALL], row, node_of_row(r, row),
                   (uint64_t)rec_row_long(row, SAMPLES, 1));
    case ALLOCATION_SAMPLE:
        return add(r, &r->sampled, row, node_of_row(r, row),
                   (uint64_t)rec_row_long(row, WEIGHT, 0));
    case ALLOCATION_IN_TLAB:
        return add(r, &r->tlab, row, node_of_row(r, row),
                   (uint64_t)rec_row_long(row, TLAB_SIZE, 0));
    case ALLOCATION_OUTSIDE:
        return add(r, &r->tlab, row, node_of_row(r, row),
                   (uint64_t)rec_row_long(row, ALLOCATION_SIZE, 0));
    case MONITOR_ENTER:
        return add(r, &series[PROFILE_LOCK], row, node_of_row(r, row), (uint64_t)row->duration_ns);
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

static int append(struct profile_series *to, const struct profile_series *from)
{
    for (size_t i = 0; i < from->samples.len; i++) {
        if (vec_push(&to->samples, from->samples.data[i]) < 0)
            return -ENOMEM;
    }
    return 0;
}

/*
 * Drops what is recorded twice: JDK 25's CPU-time samples take precedence over execution samples,
 * allocation sites over samples of allocations, and these over those of thread-local buffers.
 * Samples without a stack belong to the metric that the agent recorded.
 */
static int settle(struct reading *r)
{
    struct profile_series *series = r->p->series;
    if (r->cpu_time.samples.len) {
        vec_release(&series[PROFILE_CPU].samples);
        series[PROFILE_CPU] = r->cpu_time;
        r->cpu_time = (struct profile_series){0};
    }
    pay_owed(r, PROFILE_EXACT);
    pay_owed(r, PROFILE_ALLOCATION);
    int e = r->totals.len ? settle_totals(r) : 0;
    if (e < 0)
        return e;
    bool wall = series[PROFILE_WALL].samples.len && !series[PROFILE_CPU].samples.len;
    e = append(&series[wall ? PROFILE_WALL : PROFILE_CPU], &r->unattributed);
    if (e == 0 && !r->p->sites.len && r->sampled.samples.len) {
        vec_release(&series[PROFILE_ALLOCATION].samples);
        series[PROFILE_ALLOCATION] = r->sampled;
        series[PROFILE_ALLOCATION].estimated = true;
        r->sampled = (struct profile_series){0};
    }
    return e < 0 || series[PROFILE_ALLOCATION].samples.len
               ? e
               : append(&series[PROFILE_ALLOCATION], &r->tlab);
}

static int read_all_events(struct reading *r, struct recording *recording)
{
    static const struct rec_fold fold = {
        .tag = EXECUTION, .by = STACK, .seen = SAMPLED_THREAD, .without = EVENT_THREAD};
    _cleanup_(recording_rows_closep) struct rec_rows *rows = NULL;
    const struct rec_row *batch;
    size_t n;
    int more = recording_select(recording, wanted);
    if (more == 0)
        more = recording_rows_open(&rows, recording, wishes, WISHES);
    if (more == 0 && r->l->is_mapped)
        recording_rows_forget(rows);
    if (more == 0 && r->l->detail == LOAD_SUMS)
        recording_rows_fold(rows, &fold);
    while (more >= 0 && (more = recording_rows_next(rows, &batch, &n)) > 0) {
        for (size_t i = 0; i < n && more >= 0; i++)
            more = read_row(r, &batch[i]);
        if (r->l->progress && more >= 0)
            r->l->progress(r->l->progress_context, recording_rows_offset(rows), r->l->len);
    }
    return more < 0 ? more : settle(r);
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
    l->profile->duration_ns =
        MAX(l->profile->duration_ns, (uint64_t)MAX(info.end_ns - info.start_ns, 0));
    if (e == 0 && info.truncated)
        buf_printf(l->why, "%s (at byte %llu)", info.why ? info.why : "damaged",
                   (unsigned long long)info.at);
    recording_close(recording);
    map_release(&r.stacks);
    map_release(&r.nodes);
    vec_release(&r.stack_answers.of_id);
    vec_release(&r.thread_answers.of_id);
    map_release(&r.sites);
    map_release(&r.calls);
    map_release(&r.total_of);
    vec_release(&r.totals);
    for (int i = 0; i < PROFILE_METRICS; i++)
        map_release(&r.owed[i]);
    vec_release(&r.cpu_sums.of_node);
    vec_release(&r.cpu_time_sums.of_node);
    vec_release(&r.methods);
    vec_release(&r.threads);
    vec_release(&r.cpu_time.samples);
    vec_release(&r.unattributed.samples);
    vec_release(&r.sampled.samples);
    vec_release(&r.tlab.samples);
    return e;
}
