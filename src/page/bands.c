/* SPDX-License-Identifier: Apache-2.0 */
#include "page/bands.h"

#include "base/map.h"
#include "page/data.h"
#include "profile/vm_activity.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum kind { COLLECTIONS, SAFEPOINTS, THROTTLED, KINDS };

static const char *const kinds[KINDS] = {"collections", "safepoints", "throttled"};

/* One event, or several that are close together. */
struct band {
    uint64_t start, end;
    uint64_t stopped; /* ns between start and end for which threads could not run */
    uint64_t way;     /* ns of these for which threads were being stopped, of safepoints */
    uint64_t events;
    uint32_t name; /* of the longest event */
    uint64_t longest;
};

struct bands {
    const struct timeline *t;
    const struct vm_activity *v;
    VEC(struct band) of[KINDS];
    struct strpool names;
};

static int by_start(const void *a, const void *b)
{
    const struct band *x = a, *y = b;
    return (x->start > y->start) - (x->start < y->start);
}

/*
 * Adds an event that began at a time since 1970 and took `length` ns. Events outside of the
 * timeline are left out, and those that last beyond its end are cut.
 */
static int add(struct bands *b, enum kind kind, int64_t from_epoch, uint64_t length,
               struct band what, const char *name)
{
    int64_t start = from_epoch - (int64_t)b->t->start_epoch;
    if (start < 0 || (uint64_t)start > b->t->end_ns)
        return 0;
    what.start = (uint64_t)start;
    what.end = MIN(what.start + length, b->t->end_ns);
    what.longest = length;
    what.events = 1;
    int64_t number = strpool_add(&b->names, name, strlen(name));
    what.name = number < 0 ? 0 : (uint32_t)number;
    return number < 0 ? (int)number : vec_push(&b->of[kind], what);
}

static int add_collections(struct bands *b)
{
    const struct vm_activity *v = b->v;
    _cleanup_(map_release) struct map causes = {0};
    bool added;
    for (size_t i = 0; i < v->collections.len; i++) {
        if (!map_at(&causes, v->collections.data[i].id, i, &added))
            return -ENOMEM;
    }
    int r = 0;
    for (size_t i = 0; i < v->pauses.len && r == 0; i++) {
        const struct vm_pause *p = &v->pauses.data[i];
        const uint64_t *c = map_get(&causes, p->collection);
        const char *cause = c ? vm_activity_text(v, v->collections.data[*c].cause) : "";
        char name[256];
        snprintf(name, sizeof(name), *cause ? "%s (%s)" : "%s", vm_activity_text(v, p->name),
                 cause);
        r = add(b, COLLECTIONS, p->start_ns, p->duration_ns,
                (struct band){.stopped = p->duration_ns}, name);
    }
    return r;
}

static int add_safepoints(struct bands *b)
{
    int r = 0;
    for (size_t i = 0; i < b->v->safepoints.len && r == 0; i++) {
        const struct vm_safepoint *s = &b->v->safepoints.data[i];
        const char *late = vm_activity_text(b->v, s->late_thread);
        char name[512];
        snprintf(name, sizeof(name), *late ? "%s; the thread %s was late" : "%s",
                 vm_activity_text(b->v, s->operation), late);
        r = add(b, SAFEPOINTS, s->start_ns, s->total_ns,
                (struct band){.stopped = s->total_ns, .way = s->sync_ns}, name);
    }
    return r;
}

static int add_throttles(struct bands *b)
{
    int r = 0;
    for (size_t i = 0; i < b->v->throttles.len && r == 0; i++) {
        const struct vm_throttle *x = &b->v->throttles.data[i];
        r = add(b, THROTTLED, x->from_ns, (uint64_t)MAX(x->to_ns - x->from_ns, 0),
                (struct band){.stopped = x->throttled_ns}, "");
    }
    return r;
}

/*
 * Merges the bands of a sorted list that begin in the same of PAGE_BANDS equal parts of the time.
 * Returns how many are left.
 */
static size_t merge(struct band *list, size_t n, uint64_t end_ns)
{
    size_t kept = 0;
    uint64_t part = end_ns / PAGE_BANDS + 1;
    for (size_t i = 1; i < n; i++) {
        struct band *last = &list[kept];
        if (list[i].start / part != last->start / part) {
            list[++kept] = list[i];
            continue;
        }
        last->end = MAX(last->end, list[i].end);
        last->stopped += list[i].stopped;
        last->way += list[i].way;
        last->events += list[i].events;
        if (list[i].longest > last->longest) {
            last->longest = list[i].longest;
            last->name = list[i].name;
        }
    }
    return n ? kept + 1 : 0;
}

static void kind_json(struct json *j, const struct bands *b, enum kind kind)
{
    _cleanup_(buf_release) struct buf bytes = BUF(SIZE_MAX / 2);
    uint64_t at = 0;
    for (size_t i = 0; i < b->of[kind].len; i++) {
        const struct band *x = &b->of[kind].data[i];
        buf_varint(&bytes, x->start - at);
        buf_varint(&bytes, x->end - x->start);
        buf_varint(&bytes, x->stopped);
        buf_varint(&bytes, x->way);
        buf_varint(&bytes, x->events);
        buf_varint(&bytes, x->name);
        at = x->start;
    }
    json_key(j, kinds[kind]);
    page_json_base64(j, &bytes);
}

static void write_json(struct json *j, const struct bands *b)
{
    json_key_object(j, "bands");
    for (int i = 0; i < KINDS; i++)
        kind_json(j, b, (enum kind)i);
    json_key_array(j, "names");
    for (size_t i = 0; i < b->names.strings.len; i++)
        json_string(j, b->names.strings.data[i].data);
    json_end_array(j);
    json_end_object(j);
}

static int find(struct bands *b)
{
    int r = add_collections(b);
    if (r == 0)
        r = add_safepoints(b);
    if (r == 0)
        r = add_throttles(b);
    for (int i = 0; i < KINDS; i++) {
        if (!b->of[i].len)
            continue;
        qsort(b->of[i].data, b->of[i].len, sizeof(struct band), by_start);
        if (b->of[i].len > PAGE_BANDS)
            b->of[i].len = merge(b->of[i].data, b->of[i].len, b->t->end_ns);
    }
    return r;
}

int page_bands_json(struct json *j, const struct timeline *t, const char *file)
{
    struct vm_activity v = {0};
    _cleanup_(buf_release) struct buf why = BUF(4096);
    int r = vm_activity_load(&v, file, &(struct vm_activity_filter){0}, &why);
    struct bands b = {.t = t, .v = &v};
    if (r == 0)
        r = find(&b);
    size_t any = 0;
    for (int i = 0; i < KINDS; i++)
        any += b.of[i].len;
    if (r == 0 && any)
        write_json(j, &b);
    for (int i = 0; i < KINDS; i++)
        vec_release(&b.of[i]);
    strpool_release(&b.names);
    vm_activity_release(&v);
    /*
     * The timeline was read from the same file. What cannot be read here is reported by the views
     * that need it.
     */
    return r == -ENOMEM ? r : 0;
}
