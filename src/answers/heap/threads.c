/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `heap threads`: which threads exist, where they are, and what each of them and each of its frames
 * keeps alive.
 */
#include "answers/heap/threads.h"

#include "answers/heap/heap.h"
#include "answers/heap/value.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Finds the thread with a serial number; returns false when there is none. */
static bool heap_thread_of(const struct heap *h, uint32_t serial, struct heap_thread *ret)
{
    for (size_t i = 0; i < h->dump->roots.len; i++) {
        const struct heap_root *r = &h->dump->roots.data[i];
        if (r->tag != HPROF_ROOT_THREAD_OBJECT || r->thread != serial)
            continue;
        *ret = (struct heap_thread){serial, r->frame, heap_ids_find(&h->ids, r->id)};
        return true;
    }
    return false;
}

/*
 * Positions a cursor at the frames' ids of a TRACE record and returns their number, those of the
 * agent's frames included; 0 when there is no record.
 */
static unsigned trace_at(const struct heap *h, uint32_t trace, struct cursor *ret)
{
    const struct heap_dump *d = h->dump;
    const uint64_t *at = map_get(&d->traces, trace);
    if (!at || *at > d->len)
        return 0;
    *ret = cursor_of(d->data + *at, d->len - *at);
    cursor_skip(ret, 8);
    uint32_t frames = cursor_be32(ret);
    return ret->failed ? 0 : MIN(frames, (uint32_t)(d->len / d->header.id_size));
}

/* Returns the number of frames of the stack with this serial number, without the agent's. */
static unsigned heap_frames(const struct heap *h, uint32_t trace)
{
    struct cursor c;
    unsigned all = trace_at(h, trace, &c);
    return all - MIN(left_out_count(&h->dump->left_out, trace), all);
}

static void put_class(const struct heap_dump *d, uint32_t serial, struct buf *b)
{
    const uint64_t *id = map_get(&d->class_serials, serial);
    int32_t class = id ? heap_dump_class(d, *id) : HEAP_NO_CLASS;
    if (class != HEAP_NO_CLASS)
        buf_printf(b, "%s.", d->classes.data[class].name);
}

/* Appends "Shop.sell (Shop.java:12)"; returns false when there is no such frame. */
static bool heap_frame_text(const struct heap *h, uint32_t trace, unsigned frame, struct buf *b)
{
    const struct heap_dump *d = h->dump;
    const unsigned n = d->header.id_size;
    struct cursor c;
    frame = left_out_recorded(&d->left_out, trace, frame);
    if (frame >= trace_at(h, trace, &c))
        return false;
    cursor_skip(&c, (size_t)frame * n);
    const uint64_t *at = map_get(&d->frames, hprof_id(&c, n));
    if (c.failed || !at || *at > d->len)
        return false;
    c = cursor_of(d->data + *at, d->len - *at);
    cursor_skip(&c, n);
    struct str method = heap_dump_string(d, hprof_id(&c, n));
    cursor_skip(&c, n);
    struct str file = heap_dump_string(d, hprof_id(&c, n));
    uint32_t class = cursor_be32(&c);
    int32_t line = (int32_t)cursor_be32(&c);
    if (c.failed || !method.data)
        return false;
    put_class(d, class, b);
    buf_bytes(b, method.data, method.len);
    if (line == -3)
        buf_string(b, " (native)");
    else if (file.data && line > 0)
        buf_printf(b, " (%.*s:%d)", (int)file.len, file.data, line);
    else if (file.data)
        buf_printf(b, " (%.*s)", (int)file.len, file.data);
    return true;
}

void heap_root_place(const struct heap *h, const struct heap_root *root, struct buf *b)
{
    struct heap_thread t;
    bool stack = root->tag == HPROF_ROOT_JAVA_FRAME || root->tag == HPROF_ROOT_JNI_LOCAL ||
                 root->tag == HPROF_ROOT_NATIVE_STACK;
    if (!stack || !heap_thread_of(h, root->thread, &t))
        return;
    buf_string(b, " of thread ");
    size_t before = b->len;
    if (t.object == HEAP_NONE || !heap_value(h, t.object, b, 0)) {
        b->len = before;
        buf_printf(b, "%u", root->thread);
    }
    if (root->tag == HPROF_ROOT_NATIVE_STACK || root->frame == UINT32_MAX)
        return;
    before = b->len;
    buf_string(b, " in ");
    if (!heap_frame_text(h, t.trace, root->frame, b))
        b->len = before;
}

/* Sorts roots that a stack holds by thread and frame. */
static int by_place(const void *a, const void *b)
{
    const struct heap_root *x = *(const struct heap_root *const *)a,
                           *y = *(const struct heap_root *const *)b;
    if (x->thread != y->thread)
        return x->thread < y->thread ? -1 : 1;
    /* Frame -1 is a local of native code without a frame, which belongs at the top. */
    uint32_t fx = x->frame + 1, fy = y->frame + 1;
    if (fx != fy)
        return fx < fy ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

struct locals {
    const struct heap_root **list;
    size_t n;
};

static int find_locals(const struct heap *h, struct locals *ret)
{
    ret->list = calloc(h->dump->roots.len + 1, sizeof(*ret->list));
    if (!ret->list)
        return -ENOMEM;
    for (size_t i = 0; i < h->dump->roots.len; i++) {
        const struct heap_root *r = &h->dump->roots.data[i];
        if (r->tag == HPROF_ROOT_JAVA_FRAME || r->tag == HPROF_ROOT_JNI_LOCAL)
            ret->list[ret->n++] = r;
    }
    if (ret->n)
        qsort(ret->list, ret->n, sizeof(*ret->list), by_place);
    return 0;
}

static size_t locals_of(const struct locals *l, uint32_t thread, size_t *ret_first)
{
    size_t low = 0, high = l->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (l->list[middle]->thread < thread)
            low = middle + 1;
        else
            high = middle;
    }
    *ret_first = low;
    while (low < l->n && l->list[low]->thread == thread)
        low++;
    return low - *ret_first;
}

/* Returns the state as in java.lang.Thread.State, from the JVM TI bits in the field. */
static const char *thread_state(const struct heap *h, uint64_t i)
{
    uint64_t bits, holder;
    if (heap_get_object(h, i, "holder", &holder) ? !heap_get(h, holder, "threadStatus", &bits)
                                                 : !heap_get(h, i, "threadStatus", &bits))
        return NULL;
    return bits & 0x2     ? "TERMINATED"
           : bits & 0x400 ? "BLOCKED"
           : bits & 0x10  ? "WAITING"
           : bits & 0x20  ? "TIMED_WAITING"
           : bits & 0x4   ? "RUNNABLE"
           : bits & 0x1   ? "ALIVE"
                          : "NEW";
}

static const struct answer_column thread_columns[] = {
    {"object", "object", ANSWER_ID},
    {"name", "name", ANSWER_TEXT},
    {"class", NULL, ANSWER_TEXT},
    {"state", "state", ANSWER_TEXT},
    {"shallow", "shallow", ANSWER_BYTES},
    {"retained", "retained", ANSWER_BYTES},
    {"frames", "frames", ANSWER_COUNT},
    {"locals", "locals", ANSWER_COUNT},
    {"localsRetained", "by locals", ANSWER_BYTES}};
static const struct answer_column frame_columns[] = {
    {"thread", NULL, ANSWER_ID},     {"name", "thread", ANSWER_TEXT},
    {"depth", NULL, ANSWER_COUNT},   {"frame", "stack", ANSWER_TEXT},
    {"object", "local", ANSWER_ID},  {"retained", "retained", ANSWER_BYTES},
    {"class", "class", ANSWER_TEXT}, {"value", "value", ANSWER_TEXT, true}};

static void local_cells(struct answer *a, const struct heap *h, const struct heap_root *r)
{
    uint64_t i = r ? heap_ids_find(&h->ids, r->id) : HEAP_NONE;
    if (i == HEAP_NONE) {
        for (int k = 0; k < 4; k++)
            answer_null(a);
        return;
    }
    answer_number(a, r->id);
    answer_number(a, heap_retained(h, i));
    answer_text(a, heap_class_name(h, i));
    heap_answer_value(a, h, i);
}

enum { NAME_SHOWN = 200 };

static bool thread_name(const struct heap *h, uint64_t i, struct buf *b)
{
    uint64_t name;
    return (heap_get_object(h, i, "name", &name) && heap_string(h, name, b, NAME_SHOWN)) ||
           heap_value(h, i, b, 0);
}

static int by_number(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/*
 * Returns the bytes that a thread's locals alone retain. An object that another frame holds as well
 * is counted once; one that something else leads to, not at all.
 */
static uint64_t kept_by_locals(const struct heap *h, uint64_t thread, const struct locals *l,
                               size_t first, size_t n)
{
    _cleanup_free_ uint64_t *ids = calloc(n + 1, sizeof(*ids));
    uint64_t bytes = 0;
    for (size_t k = 0; ids && k < n; k++)
        ids[k] = l->list[first + k]->id;
    if (ids && n)
        qsort(ids, n, sizeof(*ids), by_number);
    for (size_t k = 0; ids && k < n; k++) {
        uint64_t local = k && ids[k] == ids[k - 1] ? HEAP_NONE : heap_ids_find(&h->ids, ids[k]);
        if (local != HEAP_NONE && local != thread && heap_idom(h, local) == h->n)
            bytes += heap_retained(h, local);
    }
    return bytes;
}

/*
 * Adds the stack of one thread: a row for each frame, and more where a frame holds several objects.
 */
static void stack_rows(struct answer *a, const struct heap *h, const struct heap_thread *t,
                       const struct locals *l, uint64_t most, uint64_t *rows)
{
    size_t at, n = locals_of(l, t->serial, &at), end = at + n;
    unsigned frames = heap_frames(h, t->trace);
    _cleanup_(buf_release) struct buf name = BUF(1 << 16);
    if (!thread_name(h, t->object, &name))
        buf_printf(&name, "%u", t->serial);
    for (unsigned f = 0; f < frames; f++) {
        _cleanup_(buf_release) struct buf text = BUF(1 << 16);
        if (!heap_frame_text(h, t->trace, f, &text))
            buf_string(&text, "?");
        bool first = true;
        for (; first || (at < end && l->list[at]->frame + 1 <= f + 1); first = false) {
            const struct heap_root *r =
                at < end && l->list[at]->frame + 1 <= f + 1 ? l->list[at++] : NULL;
            if (++*rows > most)
                continue;
            answer_number(a, heap_id(h, t->object));
            answer_text(a, buf_str(&name));
            answer_number(a, f);
            answer_text(a, first ? buf_str(&text) : "");
            local_cells(a, h, r);
        }
    }
}

struct ranked {
    struct heap_thread thread;
    uint64_t retained;
};

static int by_retained(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;
    return x->retained < y->retained   ? 1
           : x->retained > y->retained ? -1
                                       : (x->thread.serial > y->thread.serial) * 2 - 1;
}

static void thread_row(struct answer *a, const struct heap *h, const struct ranked *t,
                       const struct locals *l)
{
    _cleanup_(buf_release) struct buf name = BUF(1 << 16);
    uint64_t i = t->thread.object;
    size_t at, n = locals_of(l, t->thread.serial, &at);
    answer_number(a, heap_id(h, i));
    answer_text(a, thread_name(h, i, &name) ? buf_str(&name) : NULL);
    answer_text(a, heap_class_name(h, i));
    answer_text(a, thread_state(h, i));
    answer_number(a, heap_shallow(h, i));
    answer_number(a, t->retained);
    answer_number(a, heap_frames(h, t->thread.trace));
    answer_number(a, n);
    answer_number(a, kept_by_locals(h, i, l, at, n));
}

static int heap_answer_threads(const struct heap_call *c)
{
    const struct heap *h = c->heap;
    struct locals locals = {0};
    VEC(struct ranked) threads = {0};
    int error = find_locals(h, &locals);
    for (size_t i = 0; i < h->dump->roots.len && !error; i++) {
        const struct heap_root *r = &h->dump->roots.data[i];
        uint64_t object =
            r->tag == HPROF_ROOT_THREAD_OBJECT ? heap_ids_find(&h->ids, r->id) : HEAP_NONE;
        if (object != HEAP_NONE)
            error = vec_push(&threads, ((struct ranked){{r->thread, r->frame, object},
                                                        heap_retained(h, object)}));
    }
    if (threads.len)
        qsort(threads.data, threads.len, sizeof(struct ranked), by_retained);
    answer_table(c->answer, "threads", NULL, thread_columns, ARRAY_SIZE(thread_columns));
    uint64_t shown = heap_rows(c->options, 60, UINT64_MAX), rows = 0,
             most = heap_rows(c->options, 400, UINT64_MAX);
    for (size_t i = 0; i < threads.len && i < shown; i++)
        thread_row(c->answer, h, &threads.data[i], &locals);
    answer_left(c->answer, threads.len, shown);
    answer_table(c->answer, "stacks", "Stacks and what their locals hold", frame_columns,
                 ARRAY_SIZE(frame_columns));
    for (size_t i = 0; i < threads.len && !error; i++)
        stack_rows(c->answer, h, &threads.data[i].thread, &locals, most, &rows);
    answer_left(c->answer, rows, most);
    vec_release(&threads);
    free(locals.list);
    return error ? answer_refuse(c->answer, NULL, "threads", strerror(-error)) : 0;
}

const struct command heap_verb_threads = {
    .name = "heap threads",
    .heap_answer = heap_answer_threads,
    HEAP_ONE_FILE,
    .summary = "show the threads, their stacks, and what each thread and its locals retain",
    .description = "Prints a row for each thread, by retained size, and then the stacks with the "
                   "objects that their frames hold.",
    .examples = "  jvmscope heap threads app.hprof\n",
    .sets = heap_sets,
};
