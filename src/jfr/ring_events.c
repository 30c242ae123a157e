/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file.h"
#include "base/varint.h"
#include "jfr/catalog.h"
#include "jfr/reader.h"
#include "jfr/ring_take.h"

static enum ring_what what_of(const char *name)
{
    if (strcmp(name, "jdk.ThreadEnd") == 0)
        return THREAD_END;
    enum event_scope scope = catalog_find(name)->scope;
    return scope == SCOPE_STATE ? STATE : scope == SCOPE_OPEN_WAIT ? WAITING : MOMENT;
}

static bool field_is(const struct rec_type *type, uint32_t i, const char *name)
{
    return i < type->n_fields && strcmp(type->fields[i].name, name) == 0;
}

int ring_learn_kinds(struct ring_taking *t, size_t len)
{
    _cleanup_(recording_closep) struct recording *r = NULL;
    const char *why;
    int error = recording_open_bytes(&r, t->bytes, len, &why);
    if (error)
        return error;
    size_t n;
    const struct rec_type *types = recording_types(r, &n);
    memset(t->kinds, 0, sizeof(t->kinds));
    for (size_t i = 0; i < n; i++) {
        if (!types[i].event || types[i].id >= KINDS || !field_is(&types[i], 0, "startTime"))
            continue;
        bool lasts = field_is(&types[i], 1, "duration");
        t->kinds[types[i].id] =
            (struct ring_kind){.what = (uint8_t)what_of(types[i].name),
                               .lasts = lasts,
                               .has_thread = field_is(&types[i], 1 + lasts, "eventThread")};
    }
    return 0;
}

static uint64_t wait_key(const struct ring_event *e)
{
    return (e->thread + 1) * UINT64_C(0x9e3779b97f4a7c15) ^ e->start;
}

static uint64_t thread_key(uint64_t thread)
{
    return (thread + 1) * UINT64_C(0xbf58476d1ce4e5b9);
}

enum { CONTINUES = 1, ENDED = 2 };

static void end_of(struct ring_taking *t, uint64_t key)
{
    uint64_t *state = map_get(&t->states, key);
    if (state)
        *state = ENDED;
}

static bool has_ended(const struct ring_taking *t, uint64_t key)
{
    const uint64_t *state = map_get(&t->states, key);
    return state && *state == ENDED;
}

int ring_learn_ends(struct ring_taking *t, const uint8_t *bytes, size_t len)
{
    struct ring_event e;
    const uint8_t *at = bytes + JFR_CHUNK_HEAD;
    for (; ring_read_event(t, at, bytes + len, &e); at = e.end) {
        int r = 0;
        if (e.kind->what == WAITING)
            r = map_put(&t->states, wait_key(&e), CONTINUES);
        else if (e.kind->what == STATE && e.kind->has_thread)
            r = map_put(&t->states, thread_key(e.thread), CONTINUES);
        if (r)
            return r;
    }
    for (at = bytes + JFR_CHUNK_HEAD; t->states.len && ring_read_event(t, at, bytes + len, &e);
         at = e.end) {
        if (e.kind->what == UNKNOWN || e.ends >= t->from)
            continue;
        if (e.kind->what == THREAD_END)
            end_of(t, thread_key(e.thread));
        else if (e.kind->what == MOMENT && e.kind->lasts && e.kind->has_thread)
            end_of(t, wait_key(&e));
    }
    return 0;
}

/* Returns whether the chunk began before the part or with it, so that ring_learn_ends read it. */
static bool begins_before(const struct ring_taking *t, const struct ring_chunk *s)
{
    return s->ticks <= t->from;
}

/*
 * Records of an event in a chunk that ring_learn_ends did not read that a wait goes on, or that it
 * ended before the part. The two may come in any order. Returns 0 or -ENOMEM.
 */
static int learn_wait(struct ring_taking *t, const struct ring_event *e, bool kept)
{
    bool waits = e->kind->what == WAITING, ended = e->kind->what == MOMENT && e->kind->lasts &&
                                                   e->kind->has_thread && e->ends < t->from;
    return kept == waits && (waits || ended)
               ? map_put(&t->states, wait_key(e), waits ? CONTINUES : ENDED)
               : 0;
}

uint64_t ring_last_end(const struct ring_taking *t, const uint8_t *bytes, size_t len)
{
    struct ring_event e;
    uint64_t last = 0;
    for (const uint8_t *at = bytes + JFR_CHUNK_HEAD; ring_read_event(t, at, bytes + len, &e);
         at = e.end)
        if (e.kind->what != UNKNOWN && e.kind->what != WAITING)
            last = MAX(last, e.ends);
    return last;
}

/* Returns whether the event is the end of a wait that the part reports as still going on. */
static bool is_end_of_wait(const struct ring_taking *t, const struct ring_event *e)
{
    const uint64_t *state =
        e->kind->lasts && e->kind->has_thread ? map_get(&t->states, wait_key(e)) : NULL;
    return state && *state == CONTINUES;
}

enum choice { DROP, KEEP, MOVE /* to the beginning of the part */ };

/* Decides what to do with an event. begins: the chunk began before the part or with it. */
static inline enum choice choose(const struct ring_taking *t, const struct ring_event *e,
                                 bool begins)
{
    switch ((enum ring_what)e->kind->what) {
    case UNKNOWN:
        return e->type > 1 ? KEEP : DROP;
    case STATE:
        if (e->start >= t->from)
            return e->kind->has_thread && e->start > t->until ? DROP : KEEP;
        return e->kind->has_thread && has_ended(t, thread_key(e->thread)) ? DROP : MOVE;
    case WAITING:
        /* The flush that ends the part also reports waits that began after its end. */
        return has_ended(t, wait_key(e)) || e->start > t->until ? DROP : KEEP;
    case MOMENT:
    case THREAD_END:
        break;
    }
    /*
     * A wait may have been reported as still going on. Its end must be kept in a chunk whose ends
     * ring_learn_ends did not read.
     */
    return (e->ends >= t->from || (!begins && is_end_of_wait(t, e))) && e->ends <= t->until ? KEEP
                                                                                            : DROP;
}

/* Appends an event with another start time. */
static void put_moved(struct buf *out, const struct ring_event *e, uint64_t start)
{
    size_t at = out->len;
    buf_add(out, 4);
    buf_jfr_long(out, e->type);
    buf_jfr_long(out, start);
    buf_bytes(out, e->after_start, (size_t)(e->end - e->after_start));
    if (buf_error(out))
        return;
    uint32_t word = jfr_size_word((uint32_t)(out->len - at));
    memcpy(out->data + at, &word, sizeof(word));
}

/* Appends bytes unchanged. Returns 0 or a negative errno. */
static int put_run(struct ring_taking *t, const uint8_t *at, size_t n)
{
    enum { LONG = 1 << 16 };

    if (n < LONG) {
        buf_bytes(&t->out, at, n);
        return buf_error(&t->out);
    }
    int r = buf_error(&t->out);
    if (r == 0)
        r = file_write_all(t->to, t->out.data, t->out.len);
    if (r == 0)
        r = file_write_all(t->to, at, n);
    t->written += t->out.len + n;
    buf_clear(&t->out);
    return r;
}

/*
 * Returns the end of the event at `at` if it happened and began within the part, which is known
 * without its duration and its thread, or else NULL.
 */
static inline const uint8_t *end_if_within(const struct ring_taking *t, const uint8_t *at,
                                           const uint8_t *end)
{
    const uint8_t *p = at;
    uint64_t size = varint_jfr(&p), type = varint_jfr(&p);
    if (type >= KINDS || (t->kinds[type].what != MOMENT && t->kinds[type].what != THREAD_END))
        return NULL;
    uint64_t start = varint_jfr(&p);
    bool whole = size >= (size_t)(p - at) && size <= (size_t)(end - at);
    return whole && start >= t->from && start <= t->until ? at + size : NULL;
}

int ring_put_events(struct ring_taking *t, const struct ring_chunk *s)
{
    const uint8_t *end = t->bytes + s->size, *run = t->bytes + JFR_CHUNK_HEAD, *at = run;
    bool begins = begins_before(t, s), ended = s + 1 < t->segments.data + t->segments.len;
    struct ring_event e;
    int r = 0;
    while (r == 0) {
        /* Nothing in a chunk that has ended ends after the part. */
        for (const uint8_t *next; ended && at < end && (next = end_if_within(t, at, end));
             at = next)
            t->part.events++;
        if (!ring_read_event(t, at, end, &e))
            break;
        enum choice choice;
        struct ring_checkpoint raw;
        if (e.type == 1) {
            /* It has stacks and threads that are not in the chain yet. */
            choice = ring_read_checkpoint(t, at, end, &raw) && raw.flags & JFR_OUTSIDE_CHAIN ? KEEP
                                                                                             : DROP;
        } else {
            choice = choose(t, &e, begins);
            t->part.events += choice != DROP;
            t->before += choice == DROP && e.kind->what != UNKNOWN && e.ends < t->from;
            r = begins ? 0 : learn_wait(t, &e, choice != DROP);
        }
        if (r == 0 && choice != KEEP) {
            r = put_run(t, run, (size_t)(at - run)); /* everything before this has been kept */
            run = e.end;
        }
        if (choice == MOVE)
            put_moved(&t->out, &e, t->from);
        at = e.end;
    }
    if (r == 0)
        r = put_run(t, run, (size_t)(at - run));
    return r ? r : buf_error(&t->out);
}
