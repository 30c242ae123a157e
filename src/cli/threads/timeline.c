/* SPDX-License-Identifier: Apache-2.0 */
/*
 * threads timeline: the events of the TRCThread model, with the attributes that the model
 * defines.
 */
#include "analysis/graph.h"
#include "base/parse.h"
#include "cli/losses.h"
#include "cli/threads/threads.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The nodes that an interaction caused: pairs of waker and woken, by waker. */
struct pair {
    uint32_t waker, woken;
};

struct causes {
    struct pair *list;
    size_t n;
    uint32_t *next; /* per node: the next node of the same thread */
};

static int by_waker(const void *a, const void *b)
{
    const struct pair *x = a, *y = b;
    if (x->waker != y->waker)
        return x->waker < y->waker ? -1 : 1;
    return (x->woken > y->woken) - (x->woken < y->woken);
}

static int causes_of(const struct timeline *t, struct causes *ret)
{
    uint32_t *after = malloc((t->n_threads + 1) * sizeof(*after));
    ret->list = malloc((t->n_nodes + 1) * sizeof(*ret->list));
    ret->next = malloc((t->n_nodes + 1) * sizeof(*ret->next));
    if (!after || !ret->list || !ret->next) {
        free(after);
        return -ENOMEM;
    }
    for (size_t i = 0; i < t->n_threads; i++)
        after[i] = TL_NONE;
    for (size_t i = t->n_nodes; i-- > 0;) {
        const struct tl_node n = tl_node(t, i);
        ret->next[i] = after[n.thread];
        after[n.thread] = (uint32_t)i;
        if (n.edge != TL_NO_EDGE && n.waker != TL_NONE)
            ret->list[ret->n++] = (struct pair){n.waker, (uint32_t)i};
    }
    free(after);
    qsort(ret->list, ret->n, sizeof(*ret->list), by_waker);
    return 0;
}

/*
 * Returns the running event that follows what was caused. A thread that was notified reacquires the
 * monitor first.
 */
static uint32_t running_after(const struct timeline *t, const struct causes *c, uint32_t n)
{
    while (n != TL_NONE && tl_node(t, n).kind != TL_RUN)
        n = c->next[n];
    return n;
}

static void running_events(struct json *j, const struct timeline *t, const struct causes *c,
                           uint32_t waker)
{
    size_t low = 0, high = c->n;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (c->list[mid].waker < waker)
            low = mid + 1;
        else
            high = mid;
    }
    json_begin_array(j);
    for (uint32_t last = TL_NONE; low < c->n && c->list[low].waker == waker; low++) {
        uint32_t n = running_after(t, c, c->list[low].woken);
        if (n != TL_NONE && n != last)
            json_u64(j, n);
        last = n;
    }
    json_end_array(j);
}

static void key_thread(struct json *j, const char *key, const struct timeline *t, uint32_t thread)
{
    json_key(j, key);
    threads_json_thread(j, t, thread);
}

static void key_object(struct json *j, const char *key, const struct timeline *t, uint32_t object)
{
    json_key(j, key);
    if (object == TL_NONE) {
        json_null(j);
        return;
    }
    json_begin_object(j);
    json_key_string(j, "class", tl_object_class(t, object));
    json_key_u64(j, "id", t->objects[object].id);
    json_end_object(j);
}

static void attributes(struct json *j, const struct timeline *t, const struct causes *c, uint32_t n)
{
    const struct tl_context *x = tl_context_of(t, n);
    enum tl_kind kind = tl_node(t, n).kind;
    switch (kind) {
    case TL_WAIT_OBJECT:
    case TL_PARK:
    case TL_REACQUIRE:
    case TL_SLEEP:
    case TL_WAIT_JOIN:
        json_key_u64(j, "timeout_ms", x->timeout_ms);
        key_object(j, "objectWaitingFor", t, x->object);
        if (kind == TL_WAIT_JOIN)
            key_thread(j, "joinedThread", t, x->other);
        break;
    case TL_WAIT_LOCK:
    case TL_DEADLOCK:
        key_object(j, "lockedObject", t, x->object);
        key_thread(j, "lockedThread", t, x->other);
        break;
    case TL_UNMOUNTED:
        key_thread(j, "occupantThread", t, x->other);
        break;
    case TL_STARTS:
        key_thread(j, "startedThread", t, x->other);
        break;
    case TL_INTERRUPTS:
        key_thread(j, "interruptedThread", t, x->other);
        break;
    case TL_UNPARK:
        key_thread(j, "unparkedThread", t, x->other);
        break;
    case TL_NOTIFY:
    case TL_NOTIFY_ALL:
        key_object(j, "objectRef", t, x->object);
        break;
    case TL_HANDOFF:
        key_thread(j, "receiverThread", t, x->other);
        key_object(j, "lockedObject", t, x->object);
        break;
    case TL_ACQUIRE:
    case TL_RELEASE:
        key_object(j, "lockedObject", t, x->object);
        break;
    default:
        break;
    }
    if (!tl_is_state(kind) && kind != TL_TIMEOUT) {
        json_key(j, "runningEvents");
        running_events(j, t, c, n);
    }
}

static void event_head(struct json *j, const struct timeline *t, const char *type, uint32_t n)
{
    const struct tl_node node = tl_node(t, n);
    json_begin_object(j);
    json_key_string(j, "type", type);
    json_key_u64(j, "time", node.time);
    json_key_u64(j, "threadId", t->threads[node.thread].id);
    key_thread(j, "thread", t, node.thread);
}

static void print_time(uint64_t ns)
{
    printf("%6llu.%06llu s", (unsigned long long)ns / 1000000000,
           (unsigned long long)ns % 1000000000 / 1000);
}

/* Returns whether the event lies in the selected time, requests and threads. */
static bool in_part(const struct thread_view *v, const struct tl_node *n)
{
    uint64_t to = v->options->to_ns;
    if (v->options->times && !request_times_hold(v->options->times, v->t->threads[n->thread].id,
                                                 (int64_t)(v->t->origin_ns + n->time)))
        return false;
    return v->threads[n->thread] && n->time >= v->options->from_ns &&
           (!to || n->time < to || to >= v->t->end_ns);
}

/* Returns whether the event has an object of the selected classes. */
static bool of_object(const struct thread_view *v, const struct tl_node *n)
{
    uint32_t object = v->t->contexts[n->context].object;
    return !v->objects || (object != TL_NONE && v->objects[object]);
}

static bool selected(const struct thread_view *v, const uint8_t *keep, uint32_t n)
{
    const struct tl_node node = tl_node(v->t, n);
    return (!keep || keep[n]) && in_part(v, &node) && of_object(v, &node);
}

/* How wide the columns are, as far as names are of a usual length. */
struct columns {
    int event, thread, object;
};

static int object_text(const struct timeline *t, uint32_t object, char text[600])
{
    return object == TL_NONE ? snprintf(text, 600, "%s", "")
                             : snprintf(text, 600, "%s@%llx", tl_object_class(t, object),
                                        (unsigned long long)t->objects[object].id);
}

static struct columns columns_of(const struct thread_view *v, const uint8_t *keep)
{
    enum { EVENT_MOST = 24, THREAD_MOST = 32, OBJECT_MOST = 56 };

    const struct timeline *t = v->t;
    struct columns c = {12, 6, 0};
    char text[600];
    bool has[TL_KINDS] = {false};
    for (size_t i = 0; i < t->n_nodes; i++)
        has[tl_node(t, i).kind] |= selected(v, keep, (uint32_t)i);
    for (int i = 0; i < TL_KINDS; i++)
        if (has[i])
            c.event = text_wider(c.event, tl_kind_text((enum tl_kind)i), EVENT_MOST);
    for (uint32_t i = 0; i < t->n_threads; i++)
        if (v->threads[i] && t->threads[i].first != TL_NONE)
            c.thread = text_wider(c.thread, tl_thread_name(t, i), THREAD_MOST);
    for (uint32_t i = 0; i < t->n_objects; i++)
        if ((!v->objects || v->objects[i]) && object_text(t, i, text))
            c.object = text_wider(c.object, text, OBJECT_MOST);
    return c;
}

/* Prints a thread, an object and what follows, without blanks at the end. */
static void print_columns(const struct timeline *t, const struct columns *c, uint32_t thread,
                          uint32_t object, const char *rest)
{
    char text[600];
    bool more = object_text(t, object, text) > 0 || *rest;
    printf("%-*s", more ? c->thread : 0, tl_thread_name(t, thread));
    if (more)
        printf("  %-*s", *rest ? c->object : 0, text);
    printf("%s%s\n", *rest ? "  " : "", rest);
}

static void print_implied(const struct timeline *t, const struct columns *c,
                          const struct tl_node *node)
{
    bool join = node->edge == TL_BY_JOIN;
    uint32_t object =
        join || node->prev == TL_NONE ? TL_NONE : tl_context_of(t, node->prev)->object;
    char rest[600];
    snprintf(rest, sizeof(rest), "-> %s", tl_thread_name(t, node->thread));
    print_time(node->time);
    printf("  %-*s  ", c->event, tl_kind_text(join ? TL_DEAD_JOIN : TL_HANDOFF));
    print_columns(t, c, tl_node(t, node->waker).thread, object, rest);
}

static void implied_interaction(struct json *j, const struct timeline *t, uint32_t n)
{
    const struct tl_node node = tl_node(t, n);
    if (!graph_is_implied(t, &node))
        return;
    bool join = node.edge == TL_BY_JOIN;
    event_head(j, t, tl_trc_name(join ? TL_DEAD_JOIN : TL_HANDOFF), node.waker);
    if (!join) {
        key_thread(j, "receiverThread", t, node.thread);
        key_object(j, "lockedObject", t,
                   node.prev == TL_NONE ? TL_NONE : tl_context_of(t, node.prev)->object);
    }
    json_key_array(j, "runningEvents");
    json_u64(j, n);
    json_end_array(j);
    json_key_bool(j, "inferred", node.flags & TL_INFERRED);
    json_end_object(j);
}

uint64_t thread_view_events(const struct thread_view *v, const struct monitor_stats *s)
{
    const struct thread_options *o = v->options;
    if (!o->thread && !o->from_ns && !o->to_ns && !o->times && !v->objects)
        return v->t->n_nodes + s->implied;
    uint64_t n = 0;
    struct tl_reader reader = {.t = v->t};
    for (size_t i = 0; i < v->t->n_nodes; i++) {
        const struct tl_node *node = tl_read(&reader, (uint32_t)i);
        if (in_part(v, node) && of_object(v, node))
            n += 1 + graph_is_implied(v->t, node);
    }
    return n;
}

/* What --min keeps and leaves out. */
struct long_waits {
    uint8_t *keep; /* for each node: waits that are long enough, and where they end; NULL: all */
    uint64_t shorter;
};

/* With --min, fills *ret; keep is NULL if there is no memory. */
static void long_waits(const struct thread_view *v, struct long_waits *ret)
{
    const struct timeline *t = v->t;
    uint8_t *keep = ret->keep = calloc(t->n_nodes + 1, 1);
    for (size_t i = 0; keep && i < t->n_nodes; i++) {
        uint32_t p = tl_node(t, i).prev;
        if (p == TL_NONE || p >= i || !tl_is_state(tl_node(t, i).kind))
            continue;
        p = graph_state(t, p);
        if (!(tl_node(t, p).flags & TL_BLOCKED))
            continue;
        if (tl_node(t, i).time - tl_node(t, p).time >= v->options->min_ns)
            keep[p] = keep[i] = 1;
        else
            ret->shorter += selected(v, NULL, p);
    }
    for (size_t i = 0; keep && i < t->n_threads; i++) {
        uint32_t last =
            t->threads[i].last == TL_NONE ? TL_NONE : graph_state(t, t->threads[i].last);
        if (last == TL_NONE || !(tl_node(t, last).flags & TL_BLOCKED))
            continue;
        if (t->end_ns - tl_node(t, last).time >= v->options->min_ns)
            keep[last] = 1;
        else
            ret->shorter += selected(v, NULL, last);
    }
}

static int timeline_json(struct thread_view *v, const struct causes *c, const struct long_waits *w)
{
    const struct timeline *t = v->t;
    _cleanup_(buf_release) struct buf b = BUF(SIZE_MAX / 2);
    struct json j = {.out = &b};
    json_begin_object(&j);
    json_key_u64(&j, "origin_ns", t->origin_ns);
    json_key_u64(&j, "end_ns", t->end_ns);
    json_key_array(&j, "events");
    int r = 0;
    for (size_t i = 0; r == 0 && i < t->n_nodes; i++) {
        uint32_t n = (uint32_t)i;
        if (!selected(v, w->keep, n))
            continue;
        implied_interaction(&j, t, n);
        event_head(&j, t, tl_trc_name(tl_node(t, n).kind), n);
        json_key_u64(&j, "id", n);
        if (tl_node(t, n).edge != TL_NO_EDGE) {
            json_key_string(&j, "cause", tl_edge_name(tl_node(t, n).edge));
            key_thread(&j, "causedBy", t,
                       tl_node(t, n).waker == TL_NONE ? TL_NONE
                                                      : tl_node(t, tl_node(t, n).waker).thread);
            json_key_bool(&j, "inferred", tl_node(t, n).flags & TL_INFERRED);
        }
        attributes(&j, t, c, n);
        if (tl_context_of(t, n)->stack != TL_NONE) {
            json_key(&j, "frames");
            threads_json_frames(&j, t, tl_context_of(t, n)->stack);
        }
        json_end_object(&j);
        r = threads_json_print_part(&b);
    }
    json_end_array(&j);
    json_key_u64(&j, "shorter", w->shorter);
    threads_json_part(&j, t);
    losses_json_of_file(v->path, losses_of_threads, t->lost_any || t->cut_at, &j);
    json_end_object(&j);
    return r < 0 ? complain_errno(NULL, "cannot write", r) : threads_json_print(&b);
}

static int timeline_text(struct thread_view *v, const struct long_waits *w)
{
    const struct timeline *t = v->t;
    uint64_t limit = v->options->limit ? v->options->limit : UINT64_MAX;
    uint64_t shown = 0;
    const struct columns c = columns_of(v, w->keep);
    _cleanup_(buf_release) struct buf rest = BUF(1 << 16);
    printf("%15s  %-*s  %-*s  %-*s  -> which thread went on  by what\n", "time", c.event, "event",
           c.thread, "thread", c.object, "what it waited for");
    for (size_t i = 0; i < t->n_nodes; i++) {
        const struct tl_node n = tl_node(t, i);
        const struct tl_context *x = &t->contexts[n.context];
        if (!selected(v, w->keep, (uint32_t)i))
            continue;
        if (graph_is_implied(t, &n) && shown++ < limit)
            print_implied(t, &c, &n);
        if (shown++ >= limit)
            continue;
        print_time(n.time);
        printf("  %-*s  ", c.event, tl_kind_text(n.kind));
        buf_clear(&rest);
        if (x->other != TL_NONE)
            buf_printf(&rest, "-> %s", tl_thread_name(t, x->other));
        else if (n.kind == TL_WAIT_LOCK)
            buf_string(&rest, "owner unknown");
        if (n.edge != TL_NO_EDGE)
            buf_printf(&rest, "%sby %s%s%s%s", rest.len ? "  " : "", tl_edge_name(n.edge),
                       n.waker != TL_NONE ? " of " : "",
                       n.waker != TL_NONE ? tl_thread_name(t, tl_node(t, n.waker).thread) : "",
                       n.flags & TL_INFERRED ? " (inferred)" : "");
        /* The object of a thread that runs is the thread itself. */
        print_columns(t, &c, n.thread, n.kind != TL_RUN ? x->object : TL_NONE, buf_str(&rest));
    }
    print_left_out(shown, limit, "events");
    thread_view_print_shorter(v, w->shorter);
    return 0;
}

/* Returns 0 if an event is selected, or the exit status after a complaint. */
static int check_any(const struct thread_view *v, const uint8_t *keep)
{
    const struct thread_options *o = v->options;
    for (size_t i = 0; i < v->t->n_nodes; i++)
        if (selected(v, keep, (uint32_t)i))
            return 0;
    if (keep)
        return thread_view_no_wait(v);
    return complain(v->path,
                    o->from_ns || o->to_ns ? "no event lies between --from and --to"
                                           : "no event is selected",
                    "jvmscope threads summary lists the threads and their times");
}

int threads_timeline(struct thread_view *v)
{
    struct long_waits w = {0};
    struct causes c = {0};
    if (v->options->min_ns)
        long_waits(v, &w);
    int r = v->options->min_ns && !w.keep ? -ENOMEM : v->options->json ? causes_of(v->t, &c) : 0;
    int status = r < 0 ? complain_errno(v->path, "cannot show", r) : 0;
    if (r == 0)
        status = check_any(v, w.keep);
    if (status == 0 && v->options->json)
        status = timeline_json(v, &c, &w);
    else if (status == 0)
        status = timeline_text(v, &w);
    free(w.keep);
    free(c.list);
    free(c.next);
    return status;
}
