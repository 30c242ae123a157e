/* SPDX-License-Identifier: Apache-2.0 */
#include "jfr/time_part.h"

#include "base/hash.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

bool time_part_has(const struct time_part *p, enum event_scope scope, int64_t start_ns,
                   int64_t duration_ns)
{
    if (scope == SCOPE_STATE)
        return true;
    uint64_t at = (uint64_t)MAX(start_ns - p->start_ns, 0), last = at;
    if (scope == SCOPE_SUM || scope == SCOPE_OF_SUMS)
        return !p->from_ns && !p->to_ns;
    if (scope == SCOPE_OPEN_WAIT)
        last = UINT64_MAX;
    else if (scope == SCOPE_TIME || scope == SCOPE_THREAD)
        last += (uint64_t)MAX(duration_ns, 0);
    return last >= p->from_ns && (!p->to_ns || at < p->to_ns);
}

static int64_t begin_of(const struct time_part *p)
{
    return p->start_ns + (int64_t)p->from_ns;
}

/* Returns a key for the events of a wait, which have the same thread and the same beginning. */
static uint64_t wait_of(const struct rec_event *e)
{
    const struct rec_thread *t = rec_thread(&e->object, "eventThread");
    return hash_u64((uint64_t)e->start_ns) ^ (t ? t->number : 0);
}

static uint64_t monitor_of(const struct rec_event *e)
{
    const struct rec_class *c = rec_class(&e->object, "monitorClass");
    return hash_u64((uint64_t)rec_long(&e->object, "address", 0)) ^ (c ? c->number : 0);
}

/* Notes that a thread got a monitor, or waited for it when the part began. */
static int note_owner(struct time_part *p, const struct rec_event *e, bool awaits)
{
    bool added;
    uint64_t *slot = map_at(&p->owner_of, monitor_of(e), p->owners.len, &added);
    if (!slot || (added && vec_extend(&p->owners, 1) < 0))
        return -ENOMEM;
    struct time_part_owner *o = &p->owners.data[*slot];
    int64_t end = e->start_ns + MAX(e->duration_ns, INT64_C(0));
    if (added)
        *o = (struct time_part_owner){.end_ns = INT64_MIN};
    o->awaited |= awaits;
    if (!awaits && end >= o->end_ns) {
        o->end_ns = end;
        o->thread = rec_thread(&e->object, "eventThread");
        o->offset = e->offset;
    }
    return 0;
}

enum tag { ENTER, WAIT, OPEN, END, OTHER };

static int note(struct time_part *p, const struct rec_event *e, bool *ret_open)
{
    int64_t end = e->start_ns + MAX(e->duration_ns, INT64_C(0));
    if (e->start_ns >= begin_of(p))
        return 0;
    *ret_open |= e->tag == OPEN;
    if (e->tag == END) {
        const struct rec_thread *t = rec_thread(&e->object, "thread");
        t = t ? t : rec_thread(&e->object, "eventThread");
        return !t || map_at(&p->ended, t->number, 1, NULL) ? 0 : -ENOMEM;
    }
    if (e->tag == OTHER) {
        uint64_t *over = end < begin_of(p) ? map_get(&p->over, wait_of(e)) : NULL;
        if (over)
            *over = 1;
        return 0;
    }
    /* Only these are asked for. The recording may have very many other waits. */
    if (e->tag == OPEN && !map_at(&p->over, wait_of(e), 0, NULL))
        return -ENOMEM;
    bool over = e->tag != OPEN && end < begin_of(p);
    return e->tag == WAIT && !over ? 0 : note_owner(p, e, !over);
}

static int note_all(struct time_part *p, struct recording *r, const struct rec_select *types,
                    bool *ret_open)
{
    struct rec_event e;
    int err = recording_select(r, types);
    while (err == 0 && (err = recording_next(r, &e)) > 0)
        err = note(p, &e, ret_open);
    recording_rewind(r);
    return err;
}

int time_part_read(struct time_part *p, struct recording *r)
{
    static const struct rec_select monitors[] = {
        {"jdk.JavaMonitorEnter", ENTER}, {"jdk.JavaMonitorWait", WAIT}, {"jvmscope.Waiting", OPEN},
        {"jdk.ThreadEnd", END},          {"jdk.VirtualThreadEnd", END}, {0}};
    bool open = false;
    int err = note_all(p, r, monitors, &open);
    if (err < 0 || !open)
        return err;
    size_t n_rows, n = 0;
    const struct event_row *rows = catalog_rows(&n_rows);
    _cleanup_free_ struct rec_select *waits = calloc(n_rows + 1, sizeof(*waits));
    if (!waits)
        return -ENOMEM;
    for (size_t i = 0; i < n_rows; i++)
        if (rows[i].scope == SCOPE_THREAD)
            waits[n++] = (struct rec_select){rows[i].type, OTHER};
    return note_all(p, r, waits, &open);
}

bool time_part_is_over(const struct time_part *p, enum event_scope scope, const struct rec_event *e)
{
    if (e->start_ns >= begin_of(p))
        return false;
    if (scope == SCOPE_OPEN_WAIT) {
        const uint64_t *over = map_get(&p->over, wait_of(e));
        return over && *over;
    }
    if (scope != SCOPE_STATE || strcmp(e->object.type->name, "jvmscope.ThreadObject") != 0)
        return false;
    const struct rec_thread *t = rec_thread(&e->object, "eventThread");
    return t && map_get(&p->ended, t->number);
}

const struct rec_thread *time_part_owner(const struct time_part *p, const struct rec_event *e)
{
    const uint64_t *slot = e->start_ns < begin_of(p) ? map_get(&p->owner_of, monitor_of(e)) : NULL;
    const struct time_part_owner *o = slot ? &p->owners.data[*slot] : NULL;
    return o && o->end_ns > e->start_ns ? o->thread : NULL;
}

void time_part_release(struct time_part *p)
{
    map_release(&p->over);
    map_release(&p->ended);
    map_release(&p->owner_of);
    vec_release(&p->owners);
}
