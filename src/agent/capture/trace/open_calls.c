/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/capture/trace/open_calls.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { OPEN_MAX = 1 << 18, IDLE_THREADS = 1024 };

struct open_calls *open_calls_of(const struct open_threads *t, int64_t thread)
{
    const uint64_t *at = map_get(&t->threads, (uint64_t)thread);
    return at ? (struct open_calls *)(uintptr_t)*at : NULL;
}

static struct open_calls *make_list(struct open_threads *t, int64_t thread)
{
    uint64_t *at = map_at(&t->threads, (uint64_t)thread, 0, NULL);
    if (at && !*at)
        *at = (uintptr_t)calloc(1, sizeof(struct open_calls));
    return at ? (struct open_calls *)(uintptr_t)*at : NULL;
}

static void free_calls(struct open_calls *o)
{
    for (uint32_t i = 0; o && i < o->cap; i++)
        free(o->calls[i].entry);
    free(o ? o->calls : NULL);
    free(o);
}

/* Makes room for a record in entry n of a list. Returns false if memory is exhausted. */
static bool make_room(struct open_calls *o, uint32_t size)
{
    if (o->n == o->cap) {
        uint32_t cap = o->cap ? 2 * o->cap : 8;
        struct open_call *more = realloc(o->calls, cap * sizeof(*more));
        if (!more)
            return false;
        memset(more + o->cap, 0, (cap - o->cap) * sizeof(*more));
        o->calls = more;
        o->cap = cap;
    }
    struct open_call *c = &o->calls[o->n];
    if (c->room >= size)
        return true;
    free(c->entry);
    c->entry = malloc(size);
    c->room = c->entry ? size : 0;
    return c->entry != NULL;
}

int open_calls_add(struct open_threads *t, const struct trace_record *r, bool of_agent)
{
    struct open_calls *o = t->n_open < OPEN_MAX ? make_list(t, r->thread) : NULL;
    if (!o || !make_room(o, r->size))
        return -ENOMEM;
    struct open_call *own = &o->calls[o->n++];
    memcpy(own->entry, r, r->size);
    own->of_agent = of_agent;
    own->read_before_ns = o->read_ns;
    o->read_ns += r->reading_ns;
    o->n_of_agent += of_agent;
    t->n_open++;
    return 0;
}

void open_calls_read(const struct open_threads *t, const struct trace_record *r)
{
    struct open_calls *o = r->reading_ns ? open_calls_of(t, r->thread) : NULL;
    if (o)
        o->read_ns += r->reading_ns;
}

uint64_t open_calls_reading(const struct open_calls *o, uint32_t at)
{
    return o->read_ns - o->calls[at].read_before_ns;
}

bool open_calls_within_agent(const struct open_calls *o, uint32_t at)
{
    bool is = false;
    for (uint32_t i = 0; o->n_of_agent && i <= at && !is; i++)
        is = o->calls[i].of_agent;
    return is;
}

void open_calls_remove(struct open_threads *t, struct open_calls *o, uint32_t at)
{
    struct open_call own = o->calls[at];
    o->n--;
    o->n_of_agent -= own.of_agent;
    t->n_open--;
    memmove(&o->calls[at], &o->calls[at + 1], (o->n - at) * sizeof(own));
    o->calls[o->n] = own;
}

void open_calls_forget_idle(struct open_threads *t)
{
    if (t->threads.len < IDLE_THREADS || t->threads.len < 2 * t->n_open)
        return;
    struct map kept = {0};
    uint64_t key, value;
    for (size_t i = 0; map_next(&t->threads, &i, &key, &value);) {
        struct open_calls *o = (struct open_calls *)(uintptr_t)value;
        if (!o || !o->n)
            free_calls(o);
        else if (map_put(&kept, key, value) < 0) {
            t->n_open -= o->n;
            free_calls(o);
        }
    }
    map_release(&t->threads);
    t->threads = kept;
}

void open_calls_release(struct open_threads *t)
{
    uint64_t key, value;
    for (size_t i = 0; map_next(&t->threads, &i, &key, &value);)
        free_calls((struct open_calls *)(uintptr_t)value);
    map_release(&t->threads);
    *t = (struct open_threads){0};
}
