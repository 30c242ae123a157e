/* SPDX-License-Identifier: Apache-2.0 */
#include "page/timeline.h"

#include "analysis/critical_path.h"
#include "analysis/deadlock.h"
#include "analysis/monitor_stats.h"
#include "analysis/path_samples.h"
#include "base/map.h"
#include "page/bands.h"
#include "page/data.h"
#include "page/pyramid.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void names_json(struct json *j, const char *key, const char *(*name)(int), int n)
{
    json_key_array(j, key);
    for (int i = 0; i < n; i++)
        json_string(j, name(i));
    json_end_array(j);
}

static const char *kind_name(int i)
{
    return tl_kind_name((enum tl_kind)i);
}

static const char *edge_name(int i)
{
    return tl_edge_name((enum tl_edge)i);
}

static const char *state_name(int i)
{
    return path_state_text((enum path_state)i);
}

/*
 * Returns true for a thread of the VM of which only the existence is recorded. It is probably
 * waiting inside the VM.
 */
static bool is_quiet(const struct tl_thread *thread)
{
    return thread->flags & TL_THREAD_SYSTEM && thread->nodes == 1;
}

static void threads_json(struct json *j, const struct timeline *t)
{
    json_key_array(j, "threads");
    for (size_t i = 0; i < t->n_threads; i++) {
        const struct tl_thread *thread = &t->threads[i];
        json_begin_object(j);
        json_key_string(j, "name", tl_string(t, thread->name));
        json_key_string(j, "group", tl_string(t, thread->group));
        json_key_u64(j, "id", thread->id);
        json_key_u64(j, "start", thread->start_ns);
        json_key_u64(j, "end", thread->end_ns);
        json_key_bool(j, "system", thread->flags & TL_THREAD_SYSTEM);
        json_key_bool(j, "quiet", is_quiet(thread));
        json_end_object(j);
    }
    json_end_array(j);
}

/* Appends a number that may be TL_NONE, which is written as 0. */
static void put_optional(struct buf *b, uint32_t v)
{
    buf_varint(b, v == TL_NONE ? 0 : (uint64_t)v + 1);
}

/*
 * Writes for each node: time since the previous one, kind, edge and flags, thread, distance back to
 * the waker (0: none), context.
 */
static void nodes_json(struct json *j, const struct timeline *t)
{
    _cleanup_(buf_release) struct buf bytes = BUF(SIZE_MAX / 2);
    uint64_t time = 0;
    for (size_t i = 0; i < t->n_nodes; i++) {
        const struct tl_node node = tl_node(t, i);
        buf_varint(&bytes, node.time - time);
        buf_u8(&bytes, (uint8_t)node.kind);
        buf_varint(&bytes, node.edge | (uint64_t)node.flags << 4);
        buf_varint(&bytes, node.thread);
        buf_varint(&bytes, tl_is_state((enum tl_kind)node.kind) && node.waker != TL_NONE
                               ? i - node.waker
                               : 0);
        buf_varint(&bytes, node.context);
        time = node.time;
    }
    json_key(j, "nodes");
    page_json_base64(j, &bytes);
}

/*
 * Writes the class of each object to which contexts refer, as a string. Objects are numbered in
 * order of appearance.
 */
static int objects_json(struct json *j, const struct timeline *t, const uint32_t *contexts,
                        size_t n)
{
    _cleanup_(buf_release) struct buf bytes = BUF(SIZE_MAX / 2), objects = BUF(SIZE_MAX / 2);
    _cleanup_free_ uint32_t *number = malloc((t->n_objects + 1) * sizeof(*number));
    uint32_t used = 0;
    if (!number)
        return -ENOMEM;
    memset(number, 0xff, (t->n_objects + 1) * sizeof(*number));
    for (size_t i = 0; i < n; i++) {
        const struct tl_context *c = &t->contexts[contexts ? contexts[i] : i];
        if (c->object != TL_NONE && number[c->object] == TL_NONE) {
            number[c->object] = used++;
            put_optional(&objects, t->objects[c->object].class);
        }
        put_optional(&bytes, c->object == TL_NONE ? TL_NONE : number[c->object]);
        put_optional(&bytes, c->stack);
        put_optional(&bytes, c->other);
        buf_varint(&bytes, c->timeout_ms);
    }
    json_key(j, "contexts");
    page_json_base64(j, &bytes);
    json_key(j, "objects");
    page_json_base64(j, &objects);
    return buf_error(&bytes) < 0 ? buf_error(&bytes) : buf_error(&objects);
}

int page_contexts_json(struct json *j, const struct timeline *t, const uint32_t *contexts, size_t n)
{
    _cleanup_(buf_release) struct buf bytes = BUF(SIZE_MAX / 2);
    int r = objects_json(j, t, contexts, n);
    for (size_t i = 0; i < t->n_stacks; i++) {
        const struct tl_stack *s = &t->stacks[i];
        buf_varint(&bytes, s->len);
        for (uint32_t k = 0; k < s->len; k++) {
            put_optional(&bytes, t->frames[s->first + k].method);
            buf_varint(&bytes, t->frames[s->first + k].line);
        }
    }
    json_key(j, "stacks");
    page_json_base64(j, &bytes);
    json_key_array(j, "strings");
    for (size_t i = 0; i < t->n_strings; i++)
        json_string(j, tl_string(t, (uint32_t)i));
    json_end_array(j);
    return r < 0 ? r : buf_error(&bytes);
}

/* Writes which kinds of states and causes occur, for legends and buttons. */
static void used_json(struct json *j, const struct timeline *t)
{
    uint32_t kinds = 0, edges = 0;
    for (size_t i = 0; i < t->n_nodes; i++) {
        kinds |= 1u << tl_node(t, i).kind;
        edges |= tl_node(t, i).waker != TL_NONE ? 1u << tl_node(t, i).edge : 0;
    }
    json_key_array(j, "used_kinds");
    for (uint32_t i = 0; i < TL_KINDS; i++) {
        if (kinds >> i & 1)
            json_u64(j, i);
    }
    json_end_array(j);
    json_key_array(j, "used_edges");
    for (uint32_t i = 0; i < TL_EDGES; i++) {
        if (edges >> i & 1)
            json_u64(j, i);
    }
    json_end_array(j);
}

/* Writes what ran on the path, as `threads critical-path` shows it. */
static void ran_json(struct json *j, const struct critical_path *path,
                     const struct path_samples *ran)
{
    uint64_t states[PATH_STATES];
    path_busy_states(path, ran, states);
    json_key_array(j, "states");
    for (int i = 0; i < PATH_STATES; i++)
        json_u64(j, states[i]);
    json_end_array(j);
    json_key_u64(j, "idle_ns", ran->idle_ns);
    json_key_u64(j, "samples", ran->samples);
    json_key_u64(j, "run_ns", ran->run_ns);
    json_key_u64(j, "sampled_run_ns", ran->known_ns);
    json_key_array(j, "methods");
    for (size_t i = 0, shown = 0; i < ran->rows.len && shown < PAGE_PATH_METHODS; i++) {
        const struct ran_method *row = &ran->rows.data[i];
        if (!path_method_is_informative(row))
            continue;
        shown++;
        json_begin_object(j);
        json_key_string(j, "method", row->name);
        json_key_u64(j, "self_ns", row->self_ns);
        json_key_u64(j, "total_ns", row->total_ns);
        json_end_object(j);
    }
    json_end_array(j);
}

/* The methods of `top`, each once. A segment refers to one by its index + 1; 0: none. */
struct ran_names {
    struct map places;
    VEC(const char *) list;
};

static int ran_place(struct ran_names *names, const char *name, uint64_t *ret)
{
    bool added = false;
    uint64_t *place =
        name ? map_at(&names->places, (uintptr_t)name, names->list.len + 1, &added) : NULL;
    *ret = place ? *place : 0;
    return (name && !place) || (added && vec_push(&names->list, name) < 0) ? -ENOMEM : 0;
}

static void ran_names_json(struct json *j, struct ran_names *names)
{
    json_key_array(j, "ran");
    for (size_t i = 0; i < names->list.len; i++)
        json_string(j, names->list.data[i]);
    json_end_array(j);
    map_release(&names->places);
    vec_release(&names->list);
}

/*
 * Writes the path's length and states, and its segments unless the server provides them or there
 * are too many.
 */
static int path_json(struct json *j, const struct critical_path *path,
                     const struct path_samples *ran, bool served)
{
    struct ran_names names = {0};
    int r = 0;
    _cleanup_(buf_release) struct buf bytes = BUF(SIZE_MAX / 2);
    uint64_t time = 0;
    size_t n = served || path->segments.len > PAGE_SEGMENTS ? 0 : path->segments.len;
    for (size_t i = 0; i < n && r == 0; i++) {
        const struct path_segment *s = &path->segments.data[i];
        buf_varint(&bytes, s->start - time);
        buf_varint(&bytes, s->end - s->start);
        buf_varint(&bytes, s->thread);
        put_optional(&bytes, s->node);
        buf_u8(&bytes, s->state);
        buf_varint(&bytes, s->edge | (s->inferred ? 16u : 0) | (ran->idle[i] ? 32u : 0));
        uint64_t place;
        r = ran_place(&names, ran->top[i], &place);
        buf_varint(&bytes, place);
        time = s->start;
    }
    json_key_object(j, "path");
    json_key_u64(j, "makespan_ns", path->makespan);
    json_key_u64(j, "length_ns", path->length);
    json_key_u64(j, "n_segments", path->segments.len);
    ran_json(j, path, ran);
    ran_names_json(j, &names);
    json_key(j, "segments");
    page_json_base64(j, &bytes);
    json_end_object(j);
    return r < 0 ? r : buf_error(&bytes);
}

static void times_json(struct json *j, const struct wait_times *w)
{
    json_key_u64(j, "count", w->count);
    json_key_u64(j, "cut", w->cut);
    json_key_u64(j, "unknown", w->unknown);
    json_key_u64(j, "total_ns", w->total_ns);
    json_key_u64(j, "min_ns", w->min_ns);
    json_key_u64(j, "max_ns", w->max_ns);
    json_key_u64(j, "avg_ns", w->avg_ns);
    json_key_u64(j, "p50_ns", w->p50_ns);
    json_key_u64(j, "p90_ns", w->p90_ns);
    json_key_u64(j, "p99_ns", w->p99_ns);
}

void page_frames_json(struct json *j, const struct timeline *t, uint32_t stack)
{
    json_key_array(j, "frames");
    for (uint32_t k = 0; stack != TL_NONE && k < t->stacks[stack].len; k++) {
        const struct tl_frame *f = &t->frames[t->stacks[stack].first + k];
        json_begin_object(j);
        json_key_string(j, "method", tl_string(t, f->method));
        json_key_u64(j, "line", f->line);
        json_end_object(j);
    }
    json_end_array(j);
}

/*
 * Determines, by class and thread, whether the thread waited for, acquired or released a lock of
 * the class. The threads of one class are adjacent.
 */
static int users_new(const struct timeline *t, const struct monitor_stats *s, uint8_t **ret)
{
    /* For each string that is the name of a class: 1 + its row; 0 for others. */
    _cleanup_free_ uint32_t *row = malloc((t->n_strings + 1) * sizeof(*row));
    uint8_t *users = calloc(s->classes.len * t->n_threads + 1, 1);
    if (!row || !users) {
        free(users);
        return -ENOMEM;
    }
    memset(row, 0, (t->n_strings + 1) * sizeof(*row));
    for (uint32_t i = 0; i < s->classes.len; i++) {
        if (s->classes.data[i].class < t->n_strings)
            row[s->classes.data[i].class] = i + 1;
    }
    for (size_t i = 0; i < t->n_nodes; i++) {
        uint32_t object = tl_context_of(t, (uint32_t)i)->object;
        uint32_t class = object == TL_NONE ? TL_NONE : t->objects[object].class;
        if (class < t->n_strings && row[class])
            users[(row[class] - 1) * t->n_threads + tl_node(t, i).thread] = 1;
    }
    *ret = users;
    return 0;
}

static void users_json(struct json *j, const uint8_t *users, size_t n_threads)
{
    json_key_array(j, "users");
    for (size_t i = 0; i < n_threads; i++) {
        if (users[i])
            json_u64(j, i);
    }
    json_end_array(j);
}

/* users may be NULL. */
static void classes_json(struct json *j, const struct timeline *t, const struct monitor_stats *s,
                         const uint8_t *users)
{
    json_key_array(j, "classes");
    for (size_t i = 0; i < s->classes.len; i++) {
        const struct class_stats *x = &s->classes.data[i];
        json_begin_object(j);
        json_key_string(j, "class", tl_string(t, x->class));
        json_key_object(j, "blocks");
        times_json(j, &x->block);
        json_end_object(j);
        json_key_object(j, "waits");
        times_json(j, &x->wait);
        json_end_object(j);
        json_key_u64(j, "objects", x->objects);
        json_key_u64(j, "threads", x->threads);
        if (users)
            users_json(j, users + i * t->n_threads, t->n_threads);
        json_end_object(j);
    }
    json_end_array(j);
}

int page_statistics_json(struct json *j, const struct timeline *t, const uint8_t *threads,
                         bool idle)
{
    struct monitor_stats s = {0};
    int r = monitor_stats(t, &(struct stats_filter){.threads = threads, .idle = idle}, &s);
    _cleanup_free_ uint8_t *users = NULL;
    if (r == 0 && !threads && s.classes.len <= PAGE_CLASSES_USERS / (t->n_threads + 1))
        r = users_new(t, &s, &users);
    if (r < 0) {
        monitor_stats_release(&s);
        return r;
    }
    json_begin_object(j);
    json_key_u64(j, "idle", s.idle);
    json_key_u64(j, "idle_ns", s.idle_ns);
    json_key_array(j, "threads");
    for (size_t i = 0; i < s.threads.len; i++) {
        const struct thread_stats *x = &s.threads.data[i];
        json_begin_object(j);
        json_key_u64(j, "thread", x->thread);
        json_key_u64(j, "blocked", x->blocked);
        json_key_u64(j, "blocked_ns", x->blocked_ns);
        json_key_u64(j, "waited", x->waited);
        json_key_u64(j, "waited_ns", x->waited_ns);
        json_key_u64(j, "io", x->io);
        json_key_u64(j, "io_ns", x->io_ns);
        json_key_u64(j, "ready", x->ready);
        json_key_u64(j, "ready_ns", x->ready_ns);
        json_end_object(j);
    }
    json_end_array(j);
    json_key_array(j, "sites");
    for (size_t i = 0; i < s.sites.len; i++) {
        const struct site_stats *x = &s.sites.data[i];
        json_begin_object(j);
        json_key_string(j, "class", tl_string(t, x->class));
        json_key_string(j, "method", x->method == TL_NONE ? NULL : tl_string(t, x->method));
        json_key_u64(j, "line", x->line);
        page_frames_json(j, t, x->stack);
        json_key_bool(j, "block", x->block);
        json_key_u64(j, "threads", x->threads);
        json_key_u64(j, "objects", x->objects);
        times_json(j, &x->times);
        json_end_object(j);
    }
    json_end_array(j);
    classes_json(j, t, &s, users);
    json_end_object(j);
    monitor_stats_release(&s);
    return 0;
}

/* Writes the tables without idle waits and with them. */
static int both_statistics_json(struct json *j, const struct timeline *t, const uint8_t *threads)
{
    json_key(j, "stats");
    int r = page_statistics_json(j, t, threads, false);
    if (r < 0)
        return r;
    json_key(j, "stats_idle");
    return page_statistics_json(j, t, threads, true);
}

/*
 * Writes the tables of each thread separately. A page without a server adds them up for the threads
 * that are selected.
 */
static int by_thread_json(struct json *j, const struct timeline *t)
{
    _cleanup_free_ uint8_t *chosen = calloc(t->n_threads + 1, 1);
    int r = chosen ? 0 : -ENOMEM;
    json_key_array(j, "by_thread");
    for (uint32_t i = 0; i < t->n_threads && r == 0; i++) {
        chosen[i] = 1;
        json_begin_object(j);
        json_key_u64(j, "thread", i);
        r = both_statistics_json(j, t, chosen);
        json_end_object(j);
        chosen[i] = 0;
    }
    json_end_array(j);
    return r;
}

/* Writes every state change, or pictures of them when there are too many. */
static int changes_json(struct json *j, const struct timeline *t, const struct critical_path *path)
{
    if (t->n_nodes > PAGE_TIMELINE_NODES)
        return page_pyramid_json(j, t, path);
    nodes_json(j, t);
    return page_contexts_json(j, t, NULL, t->n_contexts);
}

int page_timeline_json(struct json *j, const struct timeline *t, const char *file, bool served)
{
    json_key_object(j, "timeline");
    json_key_u64(j, "end_ns", t->end_ns);
    json_key_u64(j, "lost_here", t->lost);
    json_key_u64(j, "deadlocks", t->deadlocks);
    json_key_u64(j, "owner_unknown", t->owners_unknown);
    json_key_u64(j, "waiting_for_locks", deadlocks_waiting_for_locks(t));
    json_key_bool(j, "exact", t->instrumented == 1);
    json_key_bool(j, "part", t->part_of);
    names_json(j, "kinds", kind_name, TL_KINDS);
    names_json(j, "edges", edge_name, TL_EDGES);
    names_json(j, "path_states", state_name, PATH_STATES);
    threads_json(j, t);
    used_json(j, t);
    json_key_bool(j, "served", served);
    json_key_u64(j, "n_nodes", t->n_nodes);
    struct critical_path path = {0};
    struct path_samples ran = {0};
    int r = page_bands_json(j, t, file);
    if (r == 0)
        r = critical_path(t, &PATH_OPTIONS, &path);
    if (r == 0)
        r = path_samples(t, file, false, &path, &ran);
    if (r == 0)
        r = path_json(j, &path, &ran, served);
    path_samples_release(&ran);
    if (r == -ENOENT || r == -ENODATA)
        r = 0; /* no state ends here, or what others did is not in this part */
    if (r == 0 && !served)
        r = changes_json(j, t, &path);
    critical_path_release(&path);
    if (r == 0 && !served) {
        r = both_statistics_json(j, t, NULL);
    }
    if (r == 0 && !served && t->n_threads <= PAGE_THREAD_STATISTICS) {
        const struct json before = *j;
        size_t len = j->out->len;
        r = by_thread_json(j, t);
        if (j->out->len - len > PAGE_STATISTICS_BYTES) {
            *j = before; /* larger than what it would show */
            j->out->len = len;
        }
    }
    json_end_object(j);
    return r;
}
