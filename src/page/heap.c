/* SPDX-License-Identifier: Apache-2.0 */
#include "page/heap.h"

#include "answers/heap/ask.h"
#include "answers/heap/heap.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

enum { EMBED_BYTES = 6 << 20, EMBED_OBJECTS = 160 };

struct embedding {
    const struct heap *h;
    struct json *j;
    size_t end; /* the limit of the output; nothing is added beyond it */
};

/*
 * Embeds one query and its answer. The query is written in the form in which the page makes it
 * (web/src/heapdata.ts).
 */
static int embed(struct embedding *e, const char *verb, const char *parameter, const char *value,
                 const struct heap_options *o, const char *operand)
{
    _cleanup_(buf_release) struct buf answer = BUF(EMBED_BYTES), question = BUF(1 << 16);
    int r = heap_ask_json(e->h, verb, o, operand, &answer);
    if (r == -ENOMEM || r == -E2BIG || e->j->out->len + answer.len > e->end)
        return r == -ENOMEM ? r : 0;
    if (r < 0)
        return 0;
    buf_string(&question, verb);
    if (parameter)
        buf_printf(&question, " %s=%s", parameter, value);
    json_key(e->j, buf_str(&question));
    while (answer.len && answer.data[answer.len - 1] == '\n')
        answer.len--;
    buf_bytes(e->j->out, answer.data, answer.len);
    e->j->comma = true;
    return 0;
}

/* Embeds the object, what it holds, what refers to it, and why it is alive. */
static int embed_object(struct embedding *e, uint64_t i)
{
    char id[32];
    const struct heap_options o = {.json = true, .limit = 60},
                              tree = {.json = true, .limit = 60, .children = id};
    snprintf(id, sizeof(id), "0x%llx", (unsigned long long)heap_id(e->h, i));
    uint64_t first, count;
    heap_children(e->h, i, &first, &count);
    int r = embed(e, "objects", "operand", id, &o, id);
    if (r == 0)
        r = embed(e, "paths", "operand", id, &o, id);
    if (r == 0 && count)
        r = embed(e, "dominators", "children", id, &tree, NULL);
    return r;
}

/* Embeds the objects that only the roots hold, and instances of the largest classes. */
static int embed_tops(struct embedding *e)
{
    const struct heap_options few = {.json = true, .limit = 60};
    const struct heap_dump *d = e->h->dump;
    int r = 0;
    uint64_t first, count;
    heap_children(e->h, e->h->n, &first, &count);
    for (uint64_t k = 0; r == 0 && k < MIN(count, (uint64_t)EMBED_OBJECTS / 4); k++)
        r = embed_object(e, heap_child(e->h, first + k));
    uint64_t least = heap_retained(e->h, e->h->n) / 200;
    for (size_t i = 0; r == 0 && i < d->classes.len; i++) {
        if (d->classes.data[i].objects && d->classes.data[i].retained > least)
            r = embed(e, "objects", "operand", d->classes.data[i].name, &few,
                      d->classes.data[i].name);
    }
    return r;
}

/*
 * Embeds the largest objects of the dominator tree, from its top: the next object is always the
 * largest one that one of these dominates.
 */
static int embed_largest(struct embedding *e)
{
    /*
     * Finding what refers to an object takes a pass over the dump, which limits the number of
     * objects.
     */
    uint64_t most =
        MIN((uint64_t)EMBED_OBJECTS * 3 / 4, ((uint64_t)4 << 30) / (e->h->dump->len + 1) + 10);
    uint64_t *open = malloc((most + 1) * 64 * sizeof(*open));
    size_t n = 1;
    int r = open ? 0 : -ENOMEM;
    if (open)
        open[0] = e->h->n;
    for (uint64_t taken = 0; r == 0 && n && taken <= most; taken++) {
        size_t best = 0;
        for (size_t k = 1; k < n; k++) {
            if (heap_retained(e->h, open[k]) > heap_retained(e->h, open[best]))
                best = k;
        }
        uint64_t at = open[best], first, count;
        open[best] = open[--n];
        if (at != e->h->n && heap_idom(e->h, at) != e->h->n)
            r = embed_object(e, at);
        heap_children(e->h, at, &first, &count);
        for (uint64_t k = 0; k < MIN(count, (uint64_t)63); k++)
            open[n++] = heap_child(e->h, first + k);
    }
    free(open);
    return r;
}

int page_heap(const struct heap *h, struct json *j)
{
    const struct heap_options all = {.json = true}, classes = {.json = true, .limit = 2000};
    const struct heap_options top = {.json = true, .limit = 300, .children = "root"};
    struct embedding e = {h, j, j->out->len + EMBED_BYTES};
    json_begin_object(j);
    json_key_object(j, "answers");
    int r = embed(&e, "summary", NULL, NULL, &all, NULL);
    if (r == 0)
        r = embed(&e, "histogram", "retained", "1", &classes, NULL);
    if (r == 0)
        r = embed(&e, "leaks", NULL, NULL, &all, NULL);
    if (r == 0)
        r = embed(&e, "dominators", "children", "root", &top, NULL);
    if (r == 0)
        r = embed_tops(&e);
    if (r == 0)
        r = embed_largest(&e);
    json_end_object(j);
    json_end_object(j);
    return r;
}
