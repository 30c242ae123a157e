/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/request_ledger_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char *const cause_names[REQUEST_CAUSES] = {
    "cpu", "runnable", "throttled", "lock", "park",      "queue",      "pool",
    "io",  "fault",    "sleep",     "gc",   "safepoint", "class-load", "unknown"};

/* web/src/causes.ts has the same. */
static const char *const cause_texts[REQUEST_CAUSES] = {
    [CAUSE_CPU] = "CPU",
    [CAUSE_RUNNABLE] = "waiting for a processor",
    [CAUSE_THROTTLED] = "container out of CPU",
    [CAUSE_LOCK] = "lock",
    [CAUSE_PARK] = "parked",
    [CAUSE_QUEUE] = "queue of an executor",
    [CAUSE_POOL] = "connection pool",
    [CAUSE_IO] = "I/O",
    [CAUSE_FAULT] = "page faults",
    [CAUSE_SLEEP] = "sleep",
    [CAUSE_GC] = "garbage collection",
    [CAUSE_SAFEPOINT] = "stopped by the VM",
    [CAUSE_CLASS_LOAD] = "class loading",
    [CAUSE_UNKNOWN] = "unknown",
};

const char *request_cause_name(enum request_cause cause)
{
    return cause < REQUEST_CAUSES ? cause_names[cause] : "?";
}

const char *request_cause_text(enum request_cause cause)
{
    return cause < REQUEST_CAUSES ? cause_texts[cause] : "?";
}

const char *request_cause_text_of(const char *name)
{
    for (size_t i = 0; i < REQUEST_CAUSES; i++)
        if (strcmp(cause_names[i], name) == 0)
            return cause_texts[i];
    return name;
}

/* Methods in which a thread waits for a connection that others use. */
static const char *const pool_methods[] = {
    "com.zaxxer.hikari.pool.HikariPool.getConnection",
    "com.zaxxer.hikari.util.ConcurrentBag.borrow",
    "org.apache.commons.dbcp.",
    "org.apache.commons.dbcp2.",
    "org.apache.commons.pool.impl.",
    "org.apache.commons.pool2.impl.",
    "org.apache.tomcat.dbcp.",
    "org.apache.tomcat.jdbc.pool.ConnectionPool.borrowConnection",
    "com.mchange.v2.resourcepool.BasicResourcePool.",
    "org.apache.http.pool.AbstractConnPool.",
    "org.apache.hc.core5.pool.",
    "oracle.ucp.",
    "org.vibur.objectpool.",
    "io.agroal.pool.ConnectionPool.",
    "snaq.db.ConnectionPool.",
};

uint8_t ledger_mark(const char *method)
{
    uint8_t mark = 0;
    for (size_t i = 0; i < ARRAY_SIZE(pool_methods); i++)
        if (strncmp(method, pool_methods[i], strlen(pool_methods[i])) == 0)
            mark |= FRAME_POOL;
    if (strncmp(method, "sun.nio.ch.Poller.", strlen("sun.nio.ch.Poller.")) == 0)
        mark |= FRAME_IO;
    const char *name = strrchr(method, '.');
    if (name && strcmp(name, ".<clinit>") == 0)
        mark |= FRAME_CLASS_LOAD | FRAME_CLASS_INIT;
    else if ((name && strcmp(name, ".loadClass") == 0) ||
             strcmp(method, "java.lang.Class.forName") == 0)
        mark |= FRAME_CLASS_LOAD;
    return mark;
}

/* Lists the nodes of each thread. */
static int index_nodes(struct request_ledger *l)
{
    const struct timeline *t = l->t;
    l->first = calloc(t->n_threads + 2, sizeof(*l->first));
    l->nodes = malloc((t->n_nodes + 1) * sizeof(*l->nodes));
    if (!l->first || !l->nodes)
        return -ENOMEM;
    for (size_t i = 0; i < t->n_nodes; i++)
        l->first[tl_node(t, i).thread + 2]++;
    for (size_t i = 2; i < t->n_threads + 2; i++)
        l->first[i] += l->first[i - 1];
    for (size_t i = 0; i < t->n_nodes; i++)
        l->nodes[l->first[tl_node(t, i).thread + 1]++] = (uint32_t)i;
    return 0;
}

/* Returns the object of the wait that node n ends, or TL_NONE. */
static uint32_t object_taken(const struct timeline *t, uint32_t n)
{
    uint32_t before = graph_before(t, n);
    if (tl_node(t, n).kind != TL_RUN || before == TL_NONE)
        return TL_NONE;
    switch ((enum tl_kind)tl_node(t, before).kind) {
    case TL_WAIT_LOCK:
    case TL_REACQUIRE:
    case TL_DEADLOCK:
    case TL_PARK:
        return tl_context_of(t, before)->object;
    default:
        return TL_NONE;
    }
}

static int index_objects(struct request_ledger *l)
{
    const struct timeline *t = l->t;
    size_t n = 0;
    l->object_first = calloc(t->n_objects + 2, sizeof(*l->object_first));
    if (!l->object_first)
        return -ENOMEM;
    for (uint32_t i = 0; i < t->n_nodes; i++) {
        uint32_t object = object_taken(t, i);
        if (object == TL_NONE)
            continue;
        l->object_first[object + 2]++;
        n++;
    }
    l->taken = malloc((n + 1) * sizeof(*l->taken));
    if (!l->taken)
        return -ENOMEM;
    for (size_t i = 2; i < t->n_objects + 2; i++)
        l->object_first[i] += l->object_first[i - 1];
    for (uint32_t i = 0; i < t->n_nodes; i++) {
        uint32_t object = object_taken(t, i);
        if (object != TL_NONE)
            l->taken[l->object_first[object + 1]++] = i;
    }
    return 0;
}

uint8_t ledger_stack_marks(const struct request_ledger *l, uint32_t node)
{
    uint32_t stack = tl_context_of(l->t, node)->stack;
    uint8_t marks = 0;
    for (uint32_t k = 0; stack != TL_NONE && k < l->t->stacks[stack].len; k++) {
        uint32_t method = l->t->frames[l->t->stacks[stack].first + k].method;
        marks |= method < l->t->n_strings ? l->marks[method] : 0;
    }
    return marks;
}

static int mark_samples(struct request_ledger *l)
{
    const struct requests *r = l->r;
    l->sampled = calloc(r->stacks.len + 1, 1);
    if (!l->sampled)
        return -ENOMEM;
    for (size_t i = 0; i < r->stacks.len; i++)
        for (uint32_t k = 0; k < r->stacks.data[i].len; k++)
            l->sampled[i] |=
                ledger_mark(requests_text(r, r->frames.data[r->stacks.data[i].first + k].method));
    return 0;
}

static int by_init_start(const void *a, const void *b)
{
    const struct initializing *x = a, *y = b;
    return (x->start > y->start) - (x->start < y->start);
}

/* Lists the times in which threads waited while they initialized a class. */
static int index_inits(struct request_ledger *l)
{
    const struct timeline *t = l->t;
    int e = 0;
    for (uint32_t thread = 0; thread < t->n_threads; thread++)
        for (uint32_t i = l->first[thread]; e == 0 && i + 1 < l->first[thread + 1]; i++) {
            uint32_t n = l->nodes[i];
            if (tl_node(t, n).kind == TL_RUN || !tl_is_state(tl_node(t, n).kind) ||
                !(ledger_stack_marks(l, n) & FRAME_CLASS_INIT))
                continue;
            e = vec_push(&l->inits, ((struct initializing){
                                        (uint64_t)tl_node(t, n).time,
                                        (uint64_t)tl_node(t, l->nodes[i + 1]).time, thread, n}));
        }
    vec_sort(&l->inits, by_init_start);
    return e;
}

/*
 * Among spans without a thread, returns the number of the one that began last before a time, or
 * SIZE_MAX.
 */
static size_t pause_before(const struct request_ledger *l, int64_t ns)
{
    size_t low = 0, high = l->late.len;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (l->r->spans.data[mid].start_ns <= ns)
            low = mid + 1;
        else
            high = mid;
    }
    return low - 1;
}

/*
 * At a safepoint all threads but the late ones stop at once. If reaching the safepoint takes long,
 * the last thread that a sample saw running is therefore the one for which the VM waited.
 */
static int index_late(struct request_ledger *l)
{
    enum { LONG_NS = 2000000 };

    const struct requests *r = l->r;
    int e = 0;
    for (size_t i = 0; e == 0 && i < r->spans.len && r->spans.data[i].thread == 0; i++)
        e = vec_push(&l->late, ((struct stopping){TL_NONE, INT64_MIN}));
    for (size_t i = 0; e == 0 && l->late.len && i < r->samples.len; i++) {
        const struct request_sample *s = &r->samples.data[i];
        size_t at = pause_before(l, s->time_ns);
        const struct request_span *way = at == SIZE_MAX ? NULL : &r->spans.data[at];
        if (!way || way->kind != SPAN_SAFEPOINT || way->text != REQUEST_NONE ||
            way->end_ns - way->start_ns < LONG_NS || s->time_ns >= way->end_ns ||
            s->time_ns < l->late.data[at].seen_ns)
            continue;
        l->late.data[at] = (struct stopping){ledger_thread(l, s->thread), s->time_ns};
    }
    return e;
}

int request_ledger_new(struct request_ledger **ret, const struct requests *r,
                       const struct timeline *t)
{
    _cleanup_(request_ledger_freep) struct request_ledger *l = calloc(1, sizeof(*l));
    if (!l)
        return -ENOMEM;
    l->r = r;
    l->t = t;
    l->roles = idle_frame_roles(t);
    l->marks = calloc(t->n_strings + 1, 1);
    int e = l->roles && l->marks ? 0 : -ENOMEM;
    for (size_t i = 0; e == 0 && i < t->n_strings; i++)
        l->marks[i] = ledger_mark(tl_string(t, (uint32_t)i));
    for (size_t i = 0; e == 0 && i < t->n_threads; i++)
        e = map_put(&l->threads, t->threads[i].id, i);
    if (e == 0)
        e = index_nodes(l);
    if (e == 0)
        e = index_objects(l);
    if (e == 0)
        e = mark_samples(l);
    if (e == 0)
        e = index_inits(l);
    if (e == 0)
        e = index_late(l);
    if (e == 0)
        e = ledger_index_excesses(l);
    if (e == 0)
        *ret = TAKE(l);
    return e;
}

void request_ledger_free(struct request_ledger *l)
{
    if (!l)
        return;
    map_release(&l->threads);
    free(l->first);
    free(l->nodes);
    free(l->object_first);
    free(l->taken);
    free(l->roles);
    free(l->marks);
    free(l->sampled);
    vec_release(&l->inits);
    vec_release(&l->late);
    vec_release(&l->excesses);
    free(l->excess_sums);
    strpool_release(&l->made);
    request_parts_release(&l->scratch);
    free(l);
}

uint32_t ledger_thread(const struct request_ledger *l, uint64_t id)
{
    const uint64_t *at = id ? map_get(&l->threads, id) : NULL;
    return at ? (uint32_t)*at : TL_NONE;
}

uint64_t ledger_since_origin(const struct request_ledger *l, int64_t ns)
{
    return ns > (int64_t)l->t->origin_ns ? (uint64_t)ns - l->t->origin_ns : 0;
}

int64_t ledger_since_epoch(const struct request_ledger *l, uint64_t ns)
{
    return (int64_t)(ns + l->t->origin_ns);
}
