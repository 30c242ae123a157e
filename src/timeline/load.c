/* SPDX-License-Identifier: Apache-2.0 */
#include "timeline/load.h"

#include "base/clock.h"
#include "base/file.h"
#include "jfr/chunk_head.h"
#include "timeline/fields.h"
#include "timeline/index.h"
#include "timeline/load_events.h"
#include "timeline/pack.h"
#include "timeline/trcxml.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/*
 * The approximate number of bytes of a recording per event; and the number of events that are added
 * at once.
 */
enum { EVENT_BYTES = 16, SLICE = 512 };

/*
 * Returns whether an event repeats a wait. A wait that was reported while it continued, and ended
 * later, is recorded several times, always with the same beginning. The record of the whole wait is
 * kept, or else the first one.
 */
static bool is_double(const struct tl_event *events, size_t n, size_t i)
{
    const struct tl_event *e = &events[i];
    size_t first = i;
    while (first > 0 && events[first - 1].time == e->time)
        first--;
    for (size_t k = first; k < n && events[k].time == e->time; k++)
        if (k != i && events[k].thread == e->thread && events[k].kind == e->kind &&
            (k < i || !(events[k].flags & TLE_REPORTED)))
            return true;
    return false;
}

/* Adds the events in chronological order until there are no more. */
static int build_events(struct loader *l)
{
    struct tl_event *events;
    size_t n;
    int more, r = 0;
    while (r == 0 && (more = tl_spool_next(&l->events, &events, &n)) != 0) {
        r = MIN(more, 0);
        for (size_t i = 0; r == 0 && i < n;) {
            timeline_lock(l->b);
            for (size_t end = MIN(i + SLICE, n); r == 0 && i < end; i++) {
                timeline_prefetch(l->b, events, i, n);
                if (!(events[i].flags & TLE_REPORTED) || !is_double(events, n, i))
                    r = timeline_add(l->b, &events[i]);
            }
            timeline_unlock(l->b);
        }
    }
    return r;
}

static void *build_concurrently(void *arg)
{
    struct loader *l = arg;
    l->built = build_events(l);
    /* after a failure nobody takes the events that are still being added */
    tl_spool_stop(&l->events);
    return NULL;
}

/* Sets time 0: the beginning that the recording states, or else the time of the first event. */
static void begin(struct loader *l, const struct rec_info *info, int64_t first)
{
    int64_t origin = first ? MIN(first, info->start_ns) : info->start_ns;
    origin = MAX(origin, l->floor_ns);
    timeline_origin(l->b, (uint64_t)origin, (uint64_t)origin);
}

/* Reads the recording to its end and passes all rows to `on_row`. */
static int read_rows(struct loader *l, struct rec_rows *rows, void (*on_row)(struct loader *))
{
    const struct rec_row *batch;
    struct rec_event e = {0};
    size_t n;
    int more, r = 0;
    l->e = &e; /* cppcheck-suppress autoVariables ; until it returns */
    while (r == 0 && (more = rec_rows_next(rows, &batch, &n)) != 0) {
        r = MIN(more, 0);
        for (size_t i = 0; r == 0 && i < n; i++) {
            l->row = &batch[i];
            rec_row_event(l->row, &e);
            on_row(l);
            r = l->error;
        }
        if (r < 0 || l->parts.len == 0)
            continue;
        while (l->part + 1 < l->parts.len && l->parts.data[l->part].end <= e.offset)
            l->part++;
        tl_spool_until(&l->events, (uint64_t)l->parts.data[l->part].start_ns);
    }
    l->e = NULL;
    return r;
}

/*
 * First pass: collects what must be known before the events; finds, for each part of the file, the
 * time before which no later event begins; and raises *last_ns to when the last of them begins.
 */
static int read_first(struct loader *l, struct recording *recording, int64_t *last_ns)
{
    _cleanup_(rec_rows_closep) struct rec_rows *rows = NULL;
    int r = rec_rows_first(&rows, recording, loader_columns, FIELDS, loader_first_wants);
    if (r == 0)
        r = read_rows(l, rows, loader_on_first);
    if (r < 0)
        return r;
    size_t n;
    const struct rec_part *parts = rec_rows_parts(rows, &n);
    r = vec_extend(&l->parts, n);
    int64_t least = INT64_MAX;
    for (size_t i = n; r == 0 && i-- > 0;) {
        least = MIN(least, parts[i].start_ns);
        l->parts.data[i] = (struct rec_part){parts[i].end, least};
        if (parts[i].start_ns != INT64_MAX)
            *last_ns = MAX(*last_ns, parts[i].start_ns);
    }
    l->streamed = r == 0 && n && least > 0 && least < INT64_MAX;
    if (!l->streamed)
        vec_clear(&l->parts);
    return r;
}

static int is_cpu_sample(void *context, const char *type)
{
    return strcmp(type, "jdk.ExecutionSample") == 0 || strcmp(type, "jdk.CPUTimeSample") == 0;
}

/*
 * Reads all events while a thread builds the timeline from those that no later event can precede.
 * For small recordings one follows the other.
 */
static int read_all_events(struct loader *l, struct recording *recording,
                           const struct rec_info *info)
{
    _cleanup_(rec_rows_closep) struct rec_rows *rows = NULL;
    pthread_t builder;
    int r = rec_rows_open(&rows, recording, loader_columns, FIELDS);
    if (r < 0)
        return r;
    if (l->streamed) {
        begin(l, info, l->parts.data[0].start_ns);
        timeline_share(l->b);
        rec_rows_forget(rows); /* it has an index then */
    }
    bool concurrent = l->streamed && pthread_create(&builder, NULL, build_concurrently, l) == 0;
    if (!concurrent)
        vec_clear(&l->parts); /* nobody takes events meanwhile, so all of them are kept */
    r = read_rows(l, rows, loader_on_event);
    l->unsampled = r == 0 && rec_rows_each_type(rows, is_cpu_sample, NULL) == 0;
    if (r < 0)
        tl_spool_stop(&l->events);
    tl_spool_close(&l->events);
    if (!concurrent) {
        if (r == 0 && !l->streamed)
            begin(l, info, l->first);
        return r < 0 ? r : build_events(l);
    }
    (void)pthread_join(builder, NULL);
    return r < 0 ? r : l->built;
}

/*
 * Adds what an error (a negative errno) of building a timeline means. Only a part of a recording
 * can be converted to another recording.
 */
static void print_error(struct buf *why, int error, bool is_recording)
{
    const char *hint = is_recording ? "; convert a part of it with --from and --to" : "";
    if (error == -EOVERFLOW)
        buf_printf(why, "the states of threads cover more than %" PRIu64 " hours, the limit%s",
                   TL_TIME_LAST / NS_PER_SECOND / 3600, hint);
    else if (error == -E2BIG)
        buf_printf(why, "threads change their states more than 2^32 times, the limit%s", hint);
    else
        buf_printf(why, "%s", strerror(-error));
}

static int load_xml(struct timeline **ret, const char *path, struct buf *why)
{
    _cleanup_(file_map_release) struct file_map m = {0};
    int r = file_map_open(&m, path);
    if (r == 0)
        r = trcxml_is(m.data, m.len) ? trcxml_read(ret, m.data, m.len, why) : -ENOEXEC;
    if (r < 0 && r != -ENOEXEC && why->len == 0)
        print_error(why, r, false);
    return r;
}

/* Reads a flight recording, or (part not NULL) a part of it; see timeline_read_part. */
static int read_recording(struct timeline **ret, const char *path, uint64_t streamed_from,
                          const char *index, const struct time_part *part, uint64_t *ret_whole_ns,
                          struct buf *why)
{
    _cleanup_(recording_closep) struct recording *recording = NULL;
    struct loader l = {.instrumented = TL_NONE};
    const char *reason = NULL;
    int r = recording_open(&recording, path, &reason);
    if (r < 0) {
        buf_printf(why, "%s", reason ? reason : strerror(-r));
        return r;
    }
    struct rec_info info;
    recording_info(recording, &info);
    struct time_part span = part ? *part : (struct time_part){0};
    span.start_ns = info.start_ns;
    l.floor_ns = info.part_of_ring || info.start_ns < info.end_ns ? info.start_ns : 0;
    uint64_t whole = (uint64_t)MAX(info.end_ns - info.start_ns, 0);
    int64_t end_ns = info.end_ns;
    if (span.to_ns > whole)
        span.to_ns = 0;
    bool is_part = span.from_ns || span.to_ns, part_of_time = info.part_of_time || is_part;
    if (span.to_ns)
        end_ns = info.start_ns + (int64_t)span.to_ns;
    if (is_part)
        l.floor_ns = info.start_ns + (int64_t)MIN(span.from_ns, whole);
    l.ceiling_ns = part_of_time && info.start_ns < info.end_ns ? end_ns : INT64_MAX;
    l.window = is_part ? &span : NULL;
    l.earlier = part_of_time ? &span : NULL;
    l.answers = calloc(ANSWERS, sizeof(*l.answers));
    r = l.answers ? timeline_builder_new(&l.b) : -ENOMEM;
    if (r == 0)
        timeline_part_of(l.b, (info.part_of & JFR_PART_OF_SELECTION ? TL_PART_OF_THREADS : 0) |
                                  (info.part_of & JFR_PART_OF_CLASSES ? TL_PART_OF_CLASSES : 0));
    if (r == 0 && index)
        r = timeline_nodes_in(l.b, index);
    if (r == 0 && info.bytes < streamed_from)
        r = loader_read_writer(&l, recording);
    if (r == 0 && part_of_time)
        r = time_part_read(&span, recording);
    if (r == 0)
        r = recording_select(recording, loader_events);
    int64_t last_ns = end_ns;
    if (r == 0 && info.bytes >= streamed_from)
        r = read_first(&l, recording, &last_ns);
    if (r == 0)
        r = tl_spool_init(&l.events, (uint64_t)MAX(info.start_ns, 0), (uint64_t)MAX(last_ns, 0),
                          info.bytes / EVENT_BYTES);
    if (r == 0)
        r = read_all_events(&l, recording, &info);
    recording_info(recording, &info);
    if (r == 0)
        r = timeline_finish(l.b, (uint64_t)MAX(l.end, is_part ? end_ns : info.end_ns), ret);
    if (r == 0 && part)
        *ret_whole_ns = (uint64_t)(MAX(MAX(l.seen_ns, l.end), info.end_ns) - info.start_ns);
    if (r == 0) {
        (*ret)->part_of_time = part_of_time;
        (*ret)->lost = l.lost;
        (*ret)->lost_any = l.lost_any;
        (*ret)->began_before = l.began_before;
        (*ret)->cut_at = info.truncated ? MAX(info.at, UINT64_C(1)) : 0;
        (*ret)->vm_version = l.vm_version;
        (*ret)->instrumented = l.instrumented;
        (*ret)->uncounted = l.uncounted;
        (*ret)->unsampled = l.unsampled;
        (*ret)->wake_ns = (uint64_t)l.wake_ns;
    } else {
        print_error(why, r, true);
    }
    timeline_builder_free(l.b);
    free(l.answers);
    tl_spool_release(&l.events);
    vec_release(&l.threads);
    vec_release(&l.classes);
    vec_release(&l.methods);
    vec_release(&l.parts);
    map_release(&l.stacks);
    map_release(&l.conditions);
    map_release(&l.before);
    time_part_release(&span);
    return r;
}

int timeline_read(struct timeline **ret, const char *path, uint64_t streamed_from,
                  const char *index, struct buf *why)
{
    int r = load_xml(ret, path, why);
    return r != -ENOEXEC ? r : read_recording(ret, path, streamed_from, index, NULL, NULL, why);
}

int timeline_read_part(struct timeline **ret, const char *path, uint64_t streamed_from,
                       uint64_t from_ns, uint64_t to_ns, uint64_t *ret_whole_ns, struct buf *why)
{
    const struct time_part part = {.from_ns = from_ns, .to_ns = to_ns};
    _cleanup_(file_map_release) struct file_map m = {0};
    if (file_map_open(&m, path) == 0 && trcxml_is(m.data, m.len))
        return -ENOEXEC;
    return read_recording(ret, path, streamed_from, NULL, &part, ret_whole_ns, why);
}

/*
 * Returns the place of a recording's index and the key that it must match, or 0 when there can be
 * none.
 */
static uint64_t index_of(const char *path, struct buf *index)
{
    struct stat st;
    buf_printf(index, "%s.timeline", path);
    if (buf_error(index) < 0 || stat(path, &st) < 0 || timeline_index_is_foreign(buf_str(index)))
        return 0;
    return (uint64_t)st.st_size * 1000003u ^ (uint64_t)st.st_mtim.tv_sec * NS_PER_SECOND ^
           (uint64_t)st.st_mtim.tv_nsec;
}

int timeline_load(struct timeline **ret, const char *path, struct buf *why)
{
    _cleanup_(buf_release) struct buf index = BUF(8192);
    uint64_t key = index_of(path, &index);
    int r = key ? timeline_map(ret, buf_str(&index), key) : -ENOENT;
    if (r < 0) {
        r = timeline_read(ret, path, TIMELINE_STREAMED_BYTES, key ? buf_str(&index) : NULL, why);
        if (r == 0 && key && (*ret)->n_nodes >= TL_INDEX_NODES)
            timeline_save(*ret, buf_str(&index), key);
    }
    return r;
}

int timeline_load_unchecked(struct timeline **ret, const char *path)
{
    _cleanup_(buf_release) struct buf index = BUF(8192);
    uint64_t key = index_of(path, &index);
    return key ? timeline_map_unchecked(ret, buf_str(&index), key) : -ENOENT;
}
