/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes Perfetto's trace in protobuf, with its published field numbers (tests/data/perfetto.proto
 * has those used here): a track for each thread with its states as slices, a track for each lock
 * with its holders as slices, one for pauses, and flows for interactions.
 */
#include "analysis/holds.h"
#include "base/json.h"
#include "base/protobuf.h"
#include "export/export.h"
#include "export/thread_slices.h"
#include "timeline/load.h"

#include <errno.h>
#include <string.h>

enum { SLICE_BEGIN = 1, SLICE_END = 2, INSTANT = 3 };

/* uuids of the process, of threads, then of locks, and then of pauses */
enum { PROCESS_TRACK = 1, THREAD_TRACKS = 16 };

struct perfetto {
    const struct timeline *t;
    FILE *out;
    struct buf packet, part, inner;
};

/* Writes a string, which must be UTF-8 in protobuf. */
static void put_string(struct perfetto *p, struct buf *b, unsigned field, const char *s)
{
    struct buf text = BUF(1 << 20);
    json_put_utf8(&text, s, strlen(s));
    protobuf_put_part(b, field, &text);
    buf_release(&text);
}

/* Writes the packet as an element of Trace.packet and empties it. */
static int put_packet(struct perfetto *p)
{
    struct buf head = BUF(32);
    protobuf_put_head(&head, 1, p->packet.len);
    int r = buf_error(&p->packet);
    if (r == 0) {
        fwrite(head.data, 1, head.len, p->out);
        fwrite(p->packet.data, 1, p->packet.len, p->out);
    }
    buf_release(&head);
    buf_clear(&p->packet);
    buf_clear(&p->part);
    buf_clear(&p->inner);
    return r;
}

/* Writes TracePacket.track_descriptor = 60. With thread_id 0 the track belongs to the process. */
static int put_track(struct perfetto *p, uint64_t uuid, uint64_t parent, const char *name,
                     uint64_t thread_id)
{
    protobuf_put_number(&p->part, 1, uuid);
    if (thread_id) {
        protobuf_put_number(&p->inner, 1, 1); /* pid */
        protobuf_put_number(&p->inner, 2, thread_id);
        put_string(p, &p->inner, 5, name);
        protobuf_put_part(&p->part, 4, &p->inner);
    } else if (parent) {
        put_string(p, &p->part, 2, name);
        protobuf_put_number(&p->part, 5, parent);
    } else {
        protobuf_put_number(&p->inner, 1, 1);
        put_string(p, &p->inner, 6, name);
        protobuf_put_part(&p->part, 3, &p->inner);
    }
    protobuf_put_part(&p->packet, 60, &p->part);
    protobuf_put_number(&p->packet, 10, 1);
    return put_packet(p);
}

/* Adds a DebugAnnotation: name = 10, string_value = 6. */
static void annotate(struct perfetto *p, const char *name, const char *value)
{
    buf_clear(&p->inner);
    put_string(p, &p->inner, 10, name);
    put_string(p, &p->inner, 6, value);
    protobuf_put_part(&p->part, 4, &p->inner);
}

/*
 * Appends the remaining fields of an event, whose annotations are already in p->part, and writes it
 * as TracePacket.track_event = 11.
 */
static int put_event(struct perfetto *p, uint64_t ns, uint64_t track, int type, const char *name,
                     const char *category)
{
    protobuf_put_number(&p->part, 9, (uint64_t)type);
    protobuf_put_number(&p->part, 11, track);
    if (name) {
        put_string(p, &p->part, 22, category);
        put_string(p, &p->part, 23, name);
    }
    protobuf_put_number(&p->packet, 8, p->t->origin_ns + ns);
    protobuf_put_number(&p->packet, 10, 1);
    protobuf_put_part(&p->packet, 11, &p->part);
    return put_packet(p);
}

static uint64_t thread_track(uint32_t thread)
{
    return THREAD_TRACKS + (uint64_t)thread;
}

static int slice(void *context, uint32_t state, uint64_t start, uint64_t stop, uint32_t end_node)
{
    struct perfetto *p = context;
    const struct tl_context *x = tl_context_of(p->t, state);
    uint64_t track = thread_track(tl_node(p->t, state).thread);
    char name[1200], frames[4096];
    size_t len = 0;
    for (uint32_t k = 0;
         x->stack != TL_NONE && k < p->t->stacks[x->stack].len && len < sizeof(frames) - 300; k++)
        len += (size_t)snprintf(
            frames + len, 300, "%s%.250s", k ? "\n" : "",
            tl_string(p->t, p->t->frames[p->t->stacks[x->stack].first + k].method));
    if (len)
        annotate(p, "stack", frames);
    if (x->other != TL_NONE)
        annotate(p, "other", tl_thread_name(p->t, x->other));
    int r = put_event(p, start, track, SLICE_BEGIN,
                      thread_slice_name(p->t, state, name, sizeof(name)), "state");
    return r < 0 ? r : put_event(p, stop, track, SLICE_END, NULL, NULL);
}

/* Adds TrackEvent.flow_ids = 47 and terminating_flow_ids = 48. */
static int arrow(void *context, uint64_t id, uint32_t waker, uint32_t woken)
{
    struct perfetto *p = context;
    const struct tl_node from = tl_node(p->t, waker), to = tl_node(p->t, woken);
    protobuf_put_fixed64(&p->part, 47, id);
    int r =
        put_event(p, from.time, thread_track(from.thread), INSTANT, tl_edge_name(to.edge), "wake");
    if (r < 0)
        return r;
    protobuf_put_fixed64(&p->part, 48, id);
    if (to.flags & TL_INFERRED)
        annotate(p, "inferred", "true");
    return put_event(p, to.time, thread_track(to.thread), INSTANT, "woken", "wake");
}

static int put_tracks(struct perfetto *p)
{
    int r = put_track(p, PROCESS_TRACK, 0, "Java", 0);
    for (size_t i = 0; r == 0 && i < p->t->n_threads; i++)
        r = put_track(p, thread_track((uint32_t)i), PROCESS_TRACK,
                      tl_thread_name(p->t, (uint32_t)i), i + 2);
    return r;
}

static int put_hold(struct perfetto *p, uint32_t thread, const struct tl_hold *one,
                    uint8_t *reported)
{
    uint32_t object = tl_hold_object(one);
    uint64_t track = THREAD_TRACKS + p->t->n_threads + object;
    char name[1200];
    if (one->end <= one->start)
        return 0;
    snprintf(name, sizeof(name), "lock %s@%llx", tl_object_class(p->t, object),
             (unsigned long long)p->t->objects[object].id);
    int r = reported[object] ? 0 : put_track(p, track, PROCESS_TRACK, name, 0);
    reported[object] = 1;
    if (r == 0 && one->flags & HOLD_INFERRED)
        annotate(p, "inferred", "true");
    if (r == 0)
        r = put_event(p, one->start, track, SLICE_BEGIN, tl_thread_name(p->t, thread), "lock");
    return r < 0 ? r : put_event(p, one->end, track, SLICE_END, NULL, NULL);
}

/*
 * Writes the tracks of locks. A lock has at most one holder at a time, so its track has a slice for
 * each holder, named after the thread.
 */
static int put_locks(struct perfetto *p)
{
    struct holds h = {0};
    int r = holds_collect(p->t, NULL, NULL, &h);
    uint8_t *reported = r == 0 ? calloc(p->t->n_objects + 1, 1) : NULL;
    if (r == 0 && !reported)
        r = -ENOMEM;
    for (uint32_t thread = 0; r == 0 && thread < p->t->n_threads; thread++) {
        for (size_t i = 0, n = hold_count(&h, thread); r == 0 && i < n; i++) {
            const struct hold_read one = hold_of(&h, thread, i);
            r = put_hold(p, thread, &one.hold, reported);
        }
    }
    free(reported);
    holds_release(&h);
    return r;
}

/* Writes the track of the pauses, which stop all threads. Its uuid follows those of locks. */
static int put_pauses(struct perfetto *p)
{
    uint64_t track = THREAD_TRACKS + p->t->n_threads + p->t->n_objects;
    int r = p->t->n_pauses ? put_track(p, track, PROCESS_TRACK, SLICES_OF_PAUSES, 0) : 0;
    for (size_t i = 0; r == 0 && i < p->t->n_pauses; i++) {
        const struct tl_pause *one = &p->t->pauses[i];
        r = put_event(p, one->start_ns, track, SLICE_BEGIN, tl_string(p->t, one->name), "pause");
        if (r == 0)
            r = put_event(p, one->end_ns, track, SLICE_END, NULL, NULL);
    }
    return r;
}

static int export_perfetto(const struct export_source *s, FILE *out, struct buf *why)
{
    _cleanup_(timeline_freep) struct timeline *t = NULL;
    int r = thread_slices_load(&t, s->path, why);
    if (r < 0)
        return r;
    struct perfetto p = {
        .t = t, .out = out, .packet = BUF(1 << 20), .part = BUF(1 << 20), .inner = BUF(1 << 20)};
    r = put_tracks(&p);
    if (r == 0)
        r = thread_slices(t, &(struct slice_visitor){&p, slice, arrow});
    if (r == 0)
        r = put_locks(&p);
    if (r == 0)
        r = put_pauses(&p);
    buf_release(&p.packet);
    buf_release(&p.part);
    buf_release(&p.inner);
    return r;
}

const struct export_format export_format_perfetto = {
    .extension = ".pftrace",
    .what = "threads for Perfetto",
    .holds = HOLDS_WAITS | HOLDS_PAUSES,
    .write = export_perfetto,
    .threads = true,
};
