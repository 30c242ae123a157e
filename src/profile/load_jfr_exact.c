/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/load_jfr.h"

#include <errno.h>
#include <math.h>

/*
 * Adds a change of a site's bytes, which events report as differences. If a sum decreases because a
 * better figure became known, the difference is subtracted from later changes, and the remainder
 * from earlier ones (load_subtract_pending), because a view has no negative weights.
 */
static int add_change(struct reading *r, const struct rec_row *row, int64_t node, int64_t change)
{
    int64_t thread = load_thread_of_row(r, row);
    if (thread < 0 || node < 0)
        return -ENOMEM;
    uint64_t key = (uint64_t)thread << 32 | (uint64_t)node, *pending = map_get(&r->pending, key);
    if (change < 0 && !pending && !(pending = map_at(&r->pending, key, 0, NULL)))
        return -ENOMEM;
    if (change < 0)
        *pending += 0 - (uint64_t)change;
    if (change <= 0)
        return 0;
    uint64_t subtracted = pending ? MIN(*pending, (uint64_t)change) : 0;
    if (subtracted)
        *pending -= subtracted;
    if ((uint64_t)change <= subtracted)
        return 0;
    struct profile_sample s = {load_since_start(r, row->start_ns), (uint64_t)change - subtracted,
                               (uint32_t)thread, (uint32_t)node};
    return vec_push(&r->p->series[PROFILE_ALLOCATION].samples, s);
}

void load_subtract_pending(struct reading *r)
{
    struct profile_series *s = &r->p->series[PROFILE_ALLOCATION];
    size_t kept = 0;
    if (!r->pending.len)
        return;
    for (size_t i = s->samples.len; i-- > 0;) {
        struct profile_sample *sample = &s->samples.data[i];
        uint64_t *pending = map_get(&r->pending, (uint64_t)sample->thread << 32 | sample->node);
        uint64_t subtracted = pending ? MIN(*pending, sample->weight) : 0;
        sample->weight -= subtracted;
        if (subtracted)
            *pending -= subtracted;
    }
    for (size_t i = 0; i < s->samples.len; i++)
        if (s->samples.data[i].weight)
            s->samples.data[kept++] = s->samples.data[i];
    s->samples.len = kept;
}

/* Returns the node of CPU time that belongs to no method, which events without a stack give. */
static int64_t unread_node(struct reading *r)
{
    int64_t frame = profile_mark(r->p, PROFILE_UNREAD);
    return frame < 0 ? frame : profile_node(r->p, 0, (uint32_t)frame);
}

static int64_t read_calls(struct reading *r, const struct rec_row *row, struct profile_calls *ret)
{
    int64_t node = load_node_of_row(r, row), thread = load_thread_of_row(r, row);
    if (node == 0 && rec_row_long(row, CALLS, 0) == 0)
        node = unread_node(r);
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
        .squares = (double)rec_row_long(row, SQUARES, 0) * 1e6,
    };
    return node;
}

int load_total(struct reading *r, const struct rec_row *row)
{
    struct load_total t = {.at_ns = row->start_ns};
    bool added = false;
    int64_t node = read_calls(r, row, &t.calls);
    if (node <= 0)
        return (int)node;
    t.unread = t.calls.calls == 0;
    uint64_t key = (uint64_t)t.calls.thread << 32 | t.calls.node;
    uint64_t *at = map_at(&r->total_of, key, r->totals.len, &added);
    if (!at)
        return -ENOMEM;
    if (added)
        return vec_push(&r->totals, t);
    if (t.at_ns >= r->totals.data[*at].at_ns)
        r->totals.data[*at] = t;
    return 0;
}

int load_settle_totals(struct reading *r)
{
    struct map of_method = {0}; /* method and thread -> total */
    struct profile *p = r->p;
    int error = 0;
    for (size_t i = 0; i < r->totals.len && error == 0; i++) {
        const struct profile_calls *c = &r->totals.data[i].calls;
        error = map_put(&of_method,
                        (uint64_t)c->thread << 32 | profile_node_frame(p, c->node)->method, i);
    }
    for (size_t i = 0; i < p->calls.len && r->totals.len && error == 0; i++) {
        const struct profile_calls *c = &p->calls.data[i];
        const uint64_t *at = c->node
                                 ? map_get(&of_method, (uint64_t)c->thread << 32 |
                                                           profile_node_frame(p, c->node)->method)
                                 : NULL;
        struct profile_calls *rest = at ? &r->totals.data[*at].calls : NULL;
        if (rest) {
            rest->calls -= MIN(rest->calls, c->calls);
            rest->samples -= MIN(rest->samples, c->samples);
            rest->squares = MAX(rest->squares - c->squares, 0);
            rest->self_ns = (int64_t)((uint64_t)rest->self_ns - (uint64_t)c->self_ns);
            rest->raw_ns = (int64_t)((uint64_t)rest->raw_ns - (uint64_t)c->raw_ns);
            rest->open_ns = (int64_t)((uint64_t)rest->open_ns - (uint64_t)c->open_ns);
        }
    }
    map_release(&of_method);
    int64_t mark = error == 0 ? profile_mark(p, "[callers not saved]") : error;
    int64_t above = mark < 0 ? mark : profile_node(p, 0, (uint32_t)mark);
    for (size_t i = 0; i < r->totals.len && above >= 0; i++) {
        struct profile_calls rest = r->totals.data[i].calls;
        bool unread = r->totals.data[i].unread;
        if (unread ? rest.raw_ns <= 0 : !rest.calls)
            continue;
        int64_t node = unread ? (int64_t)rest.node
                              : profile_node(p, (uint32_t)above, p->nodes.data[rest.node].frame);
        rest.node = (uint32_t)node;
        uint64_t time_ns = load_since_start(r, r->totals.data[i].at_ns);
        if (node < 0 || vec_push(&p->calls, rest) < 0 || vec_push(&r->call_times, time_ns) < 0)
            return -ENOMEM;
    }
    return above < 0 ? (int)above : 0;
}

int load_calls(struct reading *r, const struct rec_row *row)
{
    struct profile_calls c;
    int64_t node = read_calls(r, row, &c);
    if (node < 0)
        return (int)node;
    /* Each event has the difference from the previous one. */
    bool added = false;
    uint64_t *at = map_at(&r->calls, (uint64_t)c.thread << 32 | c.node, r->p->calls.len, &added);
    uint64_t time_ns = load_since_start(r, row->start_ns);
    if (!at || (added && (vec_push(&r->p->calls, c) < 0 || vec_push(&r->call_times, time_ns) < 0)))
        return -ENOMEM;
    if (added)
        return 0;
    struct profile_calls *sum = &r->p->calls.data[*at];
    r->call_times.data[*at] = MAX(r->call_times.data[*at], time_ns);
    sum->calls += c.calls;
    sum->samples += c.samples;
    sum->squares += c.squares;
    /* A file may contain any numbers. */
    sum->self_ns = (int64_t)((uint64_t)sum->self_ns + (uint64_t)c.self_ns);
    sum->raw_ns = (int64_t)((uint64_t)sum->raw_ns + (uint64_t)c.raw_ns);
    sum->open_ns = (int64_t)((uint64_t)sum->open_ns + (uint64_t)c.open_ns);
    sum->slowest_ns = MAX(sum->slowest_ns, c.slowest_ns);
    return 0;
}

static int by_node(const void *a, const void *b, void *calls)
{
    const struct profile_calls *x = (const struct profile_calls *)calls + *(const uint32_t *)a,
                               *y = (const struct profile_calls *)calls + *(const uint32_t *)b;
    return x->node != y->node ? (x->node < y->node ? 1 : -1)
                              : (x->thread > y->thread) - (x->thread < y->thread);
}

/* Returns the nearest caller in the same thread whose calls were counted, or NULL. */
static struct profile_calls *caller_of(struct reading *r, const struct profile_calls *c)
{
    struct profile *p = r->p;
    for (uint32_t n = p->nodes.data[c->node].parent; n; n = p->nodes.data[n].parent) {
        const uint64_t *at = map_get(&r->calls, (uint64_t)c->thread << 32 | n);
        if (at)
            return &p->calls.data[*at];
    }
    return NULL;
}

/*
 * Removes rows without a call and without a time, such as CPU time that a later event has given to
 * methods.
 */
static void drop_empty(struct profile *p)
{
    size_t kept = 0;
    for (size_t i = 0; i < p->calls.len; i++) {
        const struct profile_calls *c = &p->calls.data[i];
        if (c->calls || c->samples || c->raw_ns || c->self_ns)
            p->calls.data[kept++] = *c;
    }
    p->calls.len = kept;
}

int load_settle_times(struct reading *r)
{
    struct profile *p = r->p;
    struct profile_series *series = &p->series[PROFILE_EXACT];
    _cleanup_free_ uint32_t *order = calloc(p->calls.len + 1, sizeof(*order));
    if (!order)
        return -ENOMEM;
    for (size_t i = 0; i < p->calls.len; i++)
        order[i] = (uint32_t)i;
    if (p->calls.len)
        qsort_r(order, p->calls.len, sizeof(*order), by_node, p->calls.data);
    for (size_t i = 0; i < p->calls.len; i++) { /* callees first */
        struct profile_calls *c = &p->calls.data[order[i]], *caller;
        if (c->self_ns < 0 && (caller = caller_of(r, c)))
            caller->self_ns = (int64_t)((uint64_t)caller->self_ns + (uint64_t)c->self_ns);
        c->self_ns = MAX(c->self_ns, 0);
    }
    for (size_t i = 0; i < p->calls.len; i++) {
        struct profile_calls *c = &p->calls.data[i];
        uint64_t time_ns = r->call_times.data[i];
        c->cost_ns = (int64_t)((uint64_t)c->raw_ns - (uint64_t)c->self_ns);
        c->open_ns = MAX(MIN(c->open_ns, c->self_ns), 0);
        int64_t ns = c->self_ns - c->open_ns;
        int64_t open = c->open_ns ? profile_open_node(p, c->node) : 0;
        struct profile_sample s = {time_ns, (uint64_t)ns, c->thread, c->node};
        if (open < 0 || (ns && vec_push(&series->samples, s) < 0))
            return -ENOMEM;
        s.weight = (uint64_t)c->open_ns;
        s.node = (uint32_t)open;
        if (open && vec_push(&series->samples, s) < 0)
            return -ENOMEM;
    }
    drop_empty(p);
    return 0;
}

int load_left(struct reading *r, const struct rec_object *o)
{
    int64_t node = load_node(r, o);
    const char *reason = rec_string(o, "reason", "");
    int64_t text = profile_string(r->p, reason, strlen(reason));
    if (node <= 0 || text < 0)
        return node < 0 || text < 0 ? -ENOMEM : 0;
    uint32_t label = r->p->methods.data[profile_node_frame(r->p, (uint32_t)node)->method].label;
    return vec_push(&r->p->left, ((struct profile_left){label, (uint32_t)text}));
}

/*
 * Replaces what is known of a site and thread by a later event. Each event has the accuracy of the
 * sum of all events of its thread so far, and threads are independent of each other. The events of
 * a chunk are not in chronological order.
 */
static int add_accuracy(struct reading *r, uint32_t at, uint32_t thread,
                        const struct load_site_part *now)
{
    bool added = false;
    uint64_t *known = map_at(&r->site_parts, (uint64_t)at << 32 | thread, r->parts.len, &added);
    const struct load_site_part none = {.at_ns = INT64_MIN, .live_ns = INT64_MIN};
    if (!known || (added && vec_push(&r->parts, none) < 0))
        return -ENOMEM;
    struct load_site_part *part = &r->parts.data[*known];
    struct load_site_sum *sum = &r->site_sums.data[at];
    if (now->at_ns >= part->at_ns) {
        part->at_ns = now->at_ns;
        sum->estimated += now->estimated - part->estimated;
        part->estimated = now->estimated;
    }
    if (now->live_ns > INT64_MIN && now->live_ns >= part->live_ns) {
        part->live_ns = now->live_ns;
        sum->objects_squares +=
            now->objects_error * now->objects_error - part->objects_error * part->objects_error;
        sum->bytes_squares +=
            now->bytes_error * now->bytes_error - part->bytes_error * part->bytes_error;
        sum->uncollected += now->uncollected - part->uncollected;
        part->objects_error = now->objects_error;
        part->bytes_error = now->bytes_error;
        part->uncollected = now->uncollected;
    }
    struct profile_site *site = &r->p->sites.data[at];
    site->estimated = sum->estimated > 0;
    site->uncollected = sum->uncollected > 0;
    site->live_objects_error = (uint64_t)llround(sqrt(MAX(sum->objects_squares, 0)));
    site->live_bytes_error = (uint64_t)llround(sqrt(MAX(sum->bytes_squares, 0)));
    return 0;
}

int load_site(struct reading *r, const struct rec_row *row, const struct rec_event *e)
{
    int64_t node = load_node(r, &e->object);
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
        .live_known = rec_long(&e->object, "liveKnown", 1) != 0,
    };
    struct load_site_part part = {.at_ns = e->start_ns,
                                  .live_ns = site.live_known ? e->start_ns : INT64_MIN,
                                  .objects_error =
                                      (double)rec_long(&e->object, "liveObjectsError", 0),
                                  .bytes_error = (double)rec_long(&e->object, "liveBytesError", 0),
                                  .estimated = rec_long(&e->object, "estimated", 0) != 0,
                                  .uncollected = rec_long(&e->object, "collected", 1) == 0};
    r->p->only_counted |= rec_long(&e->object, "onlyCounted", 0) != 0;
    r->p->every_stack |= rec_long(&e->object, "everyStack", 0) != 0;
    /* Each event has the difference from the previous one. */
    bool added = false;
    uint64_t *at =
        map_at(&r->sites, (uint64_t)site.node << 32 | site.class_name, r->p->sites.len, &added);
    int error = !at ? -ENOMEM : added ? vec_push(&r->p->sites, site) : 0;
    if (at && added && error == 0)
        error = vec_push(&r->site_sums, ((struct load_site_sum){0}));
    if (at && !added) {
        struct profile_site *sum = &r->p->sites.data[*at];
        sum->objects += site.objects;
        sum->bytes += site.bytes;
        sum->live_objects += site.live_objects;
        sum->live_bytes += site.live_bytes;
        sum->live_known |= site.live_known;
    }
    int64_t thread = load_thread_of_row(r, row);
    error = error        ? error
            : thread < 0 ? -ENOMEM
                         : add_accuracy(r, (uint32_t)*at, (uint32_t)thread, &part);
    return error < 0 ? error : add_change(r, row, node, (int64_t)site.bytes);
}
