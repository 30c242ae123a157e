/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes Chrome's trace event format (JSON): a slice for each state and each pause, and flow events
 * for interactions. Times are in microseconds.
 */
#include "analysis/holds.h"
#include "base/json.h"
#include "export/export.h"
#include "export/thread_slices.h"
#include "timeline/load.h"

#include <errno.h>

enum { FLUSH_BYTES = 1 << 16 };

struct chrome {
    const struct timeline *t;
    FILE *out;
    struct buf b;
    struct json j;
};

/*
 * Writes the keys that all events have. The number of a thread in the file is its index in the
 * timeline + 1.
 */
static void begin(struct chrome *c, const char *phase, const char *name, const char *category,
                  uint32_t thread, uint64_t ns)
{
    struct json *j = &c->j;
    char ts[40];
    json_begin_object(j);
    json_key_string(j, "ph", phase);
    json_key_string(j, "name", name);
    json_key_string(j, "cat", category);
    json_key_u64(j, "pid", 1);
    json_key_u64(j, "tid", (uint64_t)thread + 1);
    json_key(j, "ts");
    snprintf(ts, sizeof(ts), "%llu.%03llu", (unsigned long long)(ns / 1000),
             (unsigned long long)(ns % 1000));
    buf_string(&c->b, ts);
    j->comma = true;
}

static int end(struct chrome *c)
{
    json_end_object(&c->j);
    int r = buf_error(&c->b);
    if (r == 0 && c->b.len > FLUSH_BYTES) {
        fwrite(c->b.data, 1, c->b.len, c->out);
        buf_clear(&c->b);
    }
    return r;
}

static void put_length(struct chrome *c, uint64_t ns)
{
    char text[40];
    json_key(&c->j, "dur");
    snprintf(text, sizeof(text), "%llu.%03llu", (unsigned long long)(ns / 1000),
             (unsigned long long)(ns % 1000));
    buf_string(&c->b, text);
    c->j.comma = true;
}

static int slice(void *context, uint32_t state, uint64_t start, uint64_t stop, uint32_t end_node)
{
    struct chrome *c = context;
    const struct tl_context *x = tl_context_of(c->t, state);
    char name[1200];
    begin(c, "X", thread_slice_name(c->t, state, name, sizeof(name)), "state",
          tl_node(c->t, state).thread, start);
    put_length(c, stop - start);
    json_key_object(&c->j, "args");
    if (x->stack != TL_NONE && c->t->stacks[x->stack].len) {
        json_key_string(&c->j, "at",
                        tl_string(c->t, c->t->frames[c->t->stacks[x->stack].first].method));
    }
    if (x->other != TL_NONE) {
        json_key_string(&c->j, "other", tl_thread_name(c->t, x->other));
    }
    if (end_node != TL_NONE && tl_node(c->t, end_node).edge != TL_NO_EDGE) {
        json_key_string(&c->j, "ended_by", tl_edge_name(tl_node(c->t, end_node).edge));
        json_key_bool(&c->j, "inferred", tl_node(c->t, end_node).flags & TL_INFERRED);
    }
    json_end_object(&c->j);
    return end(c);
}

static int arrow(void *context, uint64_t id, uint32_t waker, uint32_t woken)
{
    struct chrome *c = context;
    const char *name = tl_edge_name(tl_node(c->t, woken).edge);
    begin(c, "s", name, "wake", tl_node(c->t, waker).thread, tl_node(c->t, waker).time);
    json_key_u64(&c->j, "id", id);
    int r = end(c);
    begin(c, "f", name, "wake", tl_node(c->t, woken).thread, tl_node(c->t, woken).time);
    json_key_u64(&c->j, "id", id);
    json_key_string(&c->j, "bp", "e");
    return r < 0 ? r : end(c);
}

static int thread_name(struct chrome *c, uint32_t thread, const char *name)
{
    begin(c, "M", "thread_name", "__metadata", thread, 0);
    json_key_object(&c->j, "args");
    json_key_string(&c->j, "name", name);
    json_end_object(&c->j);
    return end(c);
}

static int thread_names(struct chrome *c)
{
    int r = 0;
    for (uint32_t i = 0; r == 0 && i < c->t->n_threads; i++)
        r = thread_name(c, i, tl_thread_name(c->t, i));
    return r;
}

/* The pauses have a row of their own, after those of the threads, which they stop. */
static int put_pauses(struct chrome *c)
{
    uint32_t row = (uint32_t)c->t->n_threads;
    int r = c->t->n_pauses ? thread_name(c, row, SLICES_OF_PAUSES) : 0;
    for (size_t i = 0; r == 0 && i < c->t->n_pauses; i++) {
        const struct tl_pause *p = &c->t->pauses[i];
        begin(c, "X", tl_string(c->t, p->name), "pause", row, p->start_ns);
        put_length(c, p->end_ns - p->start_ns);
        r = end(c);
    }
    return r;
}

static int export_chrome(const struct export_source *s, FILE *out, struct buf *why)
{
    _cleanup_(timeline_freep) struct timeline *t = NULL;
    int r = thread_slices_load(&t, s->path, why);
    if (r < 0)
        return r;
    struct chrome c = {.t = t, .out = out, .b = BUF(64 << 20)};
    c.j.out = &c.b;
    json_begin_object(&c.j);
    json_key_string(&c.j, "displayTimeUnit", "ns");
    json_key_array(&c.j, "traceEvents");
    r = thread_names(&c);
    if (r == 0)
        r = thread_slices(t, &(struct slice_visitor){&c, slice, arrow});
    if (r == 0)
        r = put_pauses(&c);
    json_end_array(&c.j);
    json_end_object(&c.j);
    buf_u8(&c.b, '\n');
    r = r < 0 ? r : buf_error(&c.b);
    if (r == 0)
        fwrite(c.b.data, 1, c.b.len, out);
    buf_release(&c.b);
    return r;
}

const struct export_format export_format_chrome = {
    .extension = ".json",
    .what = "threads for chrome://tracing and speedscope",
    .holds = HOLDS_WAITS | HOLDS_PAUSES,
    .write = export_chrome,
    .threads = true,
};
