/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes a part of a flight recording as a recording: the selected events of each chunk, byte for
 * byte, with all metadata and constants of the chunk. Only the links between checkpoints, the
 * offsets and the span in the header, and readings of CPU time that reach over an end of the part
 * change.
 *
 * A chunk consists of a header of 68 bytes and of events, each "size, type, ..." in compressed
 * numbers. Type 0 is the metadata. Type 1 is a checkpoint: "size, 1, time, duration, delta, ...",
 * where delta leads back to the previous checkpoint.
 */
#include "export/export.h"

#include "base/cursor.h"
#include "base/file.h"
#include "base/pattern.h"
#include "export/cut_times.h"
#include "jfr/catalog.h"
#include "jfr/chunk_head.h"
#include "jfr/reader.h"
#include "jfr/time_part.h"

#include <errno.h>

enum { HEADER = JFR_CHUNK_HEAD, AT_STATE = 64, METADATA = 0, CHECKPOINT = 1 };

/* a flag of checkpoints: constants that only our reader understands */
enum { OF_THE_WRITER = 0x40 };

struct selecting {
    const struct export_source *source;
    struct recording *recording;
    int64_t start_ns, end_ns; /* of the recording */
    VEC(uint64_t) kept;       /* offsets of the selected events, ascending */
    struct time_part part;
    struct cut_times times;      /* readings of CPU time */
    const struct rec_type *type; /* of the last event, with its kind */
    enum event_scope scope;      /* of this type */
    /*
     * HOLDS_...: there: what the recording has; chosen: what was chosen. Without what every part of
     * the same time has.
     */
    unsigned kind, present, chosen;
    bool any; /* selected events that do not belong to every part */
};

static bool stack_matches(const struct rec_stack *s, const char *pattern)
{
    for (uint32_t i = 0; s && i < s->n; i++) {
        const struct rec_class *c = s->frames[i].method->class;
        if (c && pattern_match(pattern, c->name, strlen(c->name)))
            return true;
    }
    return false;
}

/*
 * Returns the scope of a type. What the JDK writes without a thread is about the VM as a whole,
 * such as jdk.CPULoad and jdk.GCHeapSummary.
 */
static enum event_scope scope_of(const struct rec_type *type)
{
    const struct event_row *row = catalog_find(type->name);
    if (row->type || strncmp(type->name, "jdk.", 4) != 0)
        return row->scope;
    for (uint32_t i = 0; i < type->n_fields; i++)
        if (strcmp(type->fields[i].type->name, "java.lang.Thread") == 0)
            return row->scope;
    return SCOPE_VM;
}

static bool is_selected(const struct selecting *s, const struct rec_event *e)
{
    const struct profile_filter *f = &s->source->filter;
    if (!time_part_has(&s->part, s->scope, e->start_ns, e->duration_ns) ||
        time_part_is_over(&s->part, s->scope, e))
        return false;
    bool of_thread = strcmp(s->type->name, "jvmscope.ThreadObject") == 0;
    if ((s->scope == SCOPE_STATE && !of_thread) || s->scope == SCOPE_OF_SUMS)
        return true;
    if (s->scope == SCOPE_TIME || s->scope == SCOPE_VM)
        return true;
    if (f->thread) {
        const struct rec_thread *t = rec_thread(&e->object, "sampledThread");
        if (!t)
            t = rec_thread(&e->object, "eventThread");
        /* Traced calls and log records contain only the name. */
        const char *name = t ? t->name : rec_string(&e->object, "thread", NULL);
        if (!name || !pattern_match(f->thread, name, strlen(name)))
            return false;
    }
    return !f->class_name || of_thread ||
           stack_matches(rec_stack(&e->object, "stackTrace"), f->class_name);
}

static int by_offset(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static int keep_times(struct selecting *s)
{
    cut_times_settle(&s->times, &s->source->filter);
    for (size_t i = 0; i < s->times.list.len; i++)
        if (vec_push(&s->kept, s->times.list.data[i].offset) < 0)
            return -ENOMEM;
    return 0;
}

/*
 * Keeps the events that tell who had the monitors for which threads waited when the part began.
 * They ended before the part, which their readers see.
 */
static int keep_owners(struct selecting *s)
{
    for (size_t i = 0; i < s->part.owners.len; i++)
        if (s->part.owners.data[i].awaited && s->part.owners.data[i].thread &&
            vec_push(&s->kept, s->part.owners.data[i].offset) < 0)
            return -ENOMEM;
    return 0;
}

static int select_events(struct selecting *s, const struct file_map *map, struct buf *why)
{
    const struct profile_filter *f = &s->source->filter;
    bool by_name = f->thread || f->class_name;
    const char *reason = NULL;
    int r = recording_open_bytes(&s->recording, map->data, map->len, &reason);
    if (r < 0) {
        buf_string(why, "only a flight recording can become one: the source is none");
        return -ENOTSUP;
    }
    struct rec_info info;
    recording_info(s->recording, &info);
    s->start_ns = info.start_ns;
    s->end_ns = info.end_ns;
    s->part =
        (struct time_part){.start_ns = info.start_ns, .from_ns = f->from_ns, .to_ns = f->to_ns};
    r = f->from_ns ? time_part_read(&s->part, s->recording) : 0;
    if (r == 0)
        r = recording_select(s->recording, NULL);
    struct rec_event e;
    while (r >= 0 && (r = recording_next(s->recording, &e)) > 0) {
        s->end_ns = MAX(s->end_ns, e.start_ns);
        if (s->type != e.object.type) {
            s->type = e.object.type;
            unsigned holds = catalog_find(s->type->name)->holds;
            s->scope = scope_of(s->type);
            s->kind = s->scope == SCOPE_STATE || s->scope == SCOPE_TIME ? 0 : holds & -holds;
            /* These events repeat the counts of sites for other readers. */
            if (s->source->profile && s->source->profile->sites.len &&
                strcmp(s->type->name, "jdk.ObjectAllocationSample") == 0)
                s->scope = SCOPE_SUM;
        }
        s->present |= s->kind;
        if (s->scope == SCOPE_SHARE) {
            r = by_name ? 0 : cut_times_note(&s->times, &e, s->start_ns);
            if (r < 0)
                break;
            continue;
        }
        if (!is_selected(s, &e))
            continue;
        s->chosen |= s->kind;
        s->any = s->any || s->scope == SCOPE_SELECTION ||
                 (s->scope > (by_name ? SCOPE_TIME : SCOPE_STATE) && s->scope != SCOPE_OF_SUMS);
        if (vec_push(&s->kept, e.offset) < 0) {
            r = -ENOMEM;
            break;
        }
    }
    if (r == 0)
        r = keep_times(s);
    s->any = s->any || s->times.list.len;
    if (r == 0 && !s->any && (by_name || f->from_ns || f->to_ns)) {
        buf_string(why, "the selection has no events");
        return -ENOENT;
    }
    if (r == 0 && !by_name)
        r = keep_owners(s);
    vec_sort(&s->kept, by_offset);
    return r;
}

struct chunk {
    struct buf out; /* the new chunk */
    /*
     * Offsets in the new chunk: of the last linked checkpoint, and of the metadata that is valid.
     */
    uint64_t checkpoint, metadata;
    struct map chain; /* offsets in the file of the checkpoints in the chain */
};

/*
 * Copies a checkpoint with a new link to the previous one. `event` is positioned after size and
 * type.
 */
static void put_checkpoint(struct chunk *c, struct cursor event)
{
    uint64_t time = cursor_jfr_long(&event), duration = cursor_jfr_long(&event);
    cursor_jfr_long(&event);
    if (event.failed)
        return;
    uint64_t at = c->out.len;
    struct buf body = BUF(64);
    buf_u8(&body, CHECKPOINT);
    buf_jfr_long(&body, time);
    buf_jfr_long(&body, duration);
    buf_jfr_long(&body, c->checkpoint ? c->checkpoint - at : 0);
    cut_times_put_padded(&c->out, 4 + body.len + cursor_left(&event), 4);
    buf_bytes(&c->out, body.data, body.len);
    buf_bytes(&c->out, event.at, cursor_left(&event));
    buf_release(&body);
    c->checkpoint = at;
}

/*
 * Collects all checkpoints of a chunk that belong to a chain, because its end, where the chain
 * begins, is missing.
 */
static int find_checkpoints(struct map *ret, const uint8_t *file, uint64_t begin, uint64_t end)
{
    struct cursor cursor = cursor_of(file + begin + HEADER, end - begin - HEADER);
    while (cursor_left(&cursor)) {
        struct cursor c = cursor;
        uint64_t at = (uint64_t)(cursor.at - file);
        uint64_t size = cursor_jfr_long(&c), type = cursor_jfr_long(&c);
        if (c.failed || !size || !cursor_take(&cursor, size))
            return 0;
        for (int i = 0; i < 3; i++) /* time, duration, delta */
            cursor_jfr_long(&c);
        if (type == CHECKPOINT && cursor_u8(&c) != OF_THE_WRITER && !c.failed &&
            !map_at(ret, at, 1, NULL))
            return -ENOMEM;
    }
    return 0;
}

/*
 * Collects the checkpoints in the chain that the header begins. Others belong to the writer and are
 * copied unchanged.
 */
static int find_chain(struct map *ret, const uint8_t *file, uint64_t begin, uint64_t end)
{
    struct cursor header = cursor_of(file + begin + HEAD_CONSTANTS, 8);
    uint64_t at = begin + cursor_be64(&header);
    if (at >= end)
        return find_checkpoints(ret, file, begin, end);
    while (at > begin && at < end) {
        bool added;
        struct cursor c = cursor_of(file + at, end - at);
        cursor_jfr_long(&c);
        uint64_t type = cursor_jfr_long(&c);
        cursor_jfr_long(&c);
        cursor_jfr_long(&c);
        uint64_t delta = cursor_jfr_long(&c);
        if (c.failed || type != CHECKPOINT)
            return 0;
        if (!map_at(ret, at, 1, &added))
            return -ENOMEM;
        if (!delta || !added)
            return 0;
        at += delta; /* delta is negative */
    }
    return 0;
}

/*
 * Copies one chunk, whose metadata is at the given offset in the file, and advances *kept over its
 * events. What follows damage is left out, as the reader does. Returns false when no event of the
 * chunk can be read.
 */
static bool copy_chunk(struct chunk *c, const struct cut_times *times, const uint8_t *file,
                       uint64_t begin, uint64_t end, uint64_t metadata, const uint64_t **kept,
                       const uint64_t *last)
{
    uint64_t hz = chunk_big_endian(file + begin + HEAD_HZ);
    struct cursor cursor = cursor_of(file + begin, end - begin);
    buf_bytes(&c->out, cursor_take(&cursor, HEADER), HEADER);
    while (cursor_left(&cursor)) {
        uint64_t at = (uint64_t)(cursor.at - file);
        struct cursor peek = cursor;
        uint64_t size = cursor_jfr_long(&peek), type = cursor_jfr_long(&peek);
        const uint8_t *bytes = peek.failed || !size ? NULL : cursor_take(&cursor, size);
        if (!bytes)
            break;
        while (*kept < last && **kept < at)
            (*kept)++;
        if (type == METADATA) {
            /* The header refers to the valid metadata; others of this type are padding. */
            if (at != metadata)
                continue;
            c->metadata = c->out.len;
            buf_bytes(&c->out, bytes, size);
        } else if (type == CHECKPOINT && map_get(&c->chain, at)) {
            peek.end = bytes + size;
            put_checkpoint(c, peek);
        } else if (type == CHECKPOINT) {
            buf_bytes(&c->out, bytes, size);
        } else if (*kept < last && **kept == at) {
            if (!cut_times_put(times, &c->out, at, bytes, size, hz))
                buf_bytes(&c->out, bytes, size);
        }
    }
    return c->metadata != 0;
}

/*
 * Sets the span of a chunk. If a part of the time is selected, it is the intersection with that
 * part, which may be empty.
 */
static void set_span(const struct selecting *s, uint8_t *head)
{
    const struct profile_filter *f = &s->source->filter;
    if (f->thread || f->class_name)
        head[HEAD_FEATURES] |= JFR_PART_OF_SELECTION;
    if (f->class_name)
        head[HEAD_FEATURES] |= JFR_PART_OF_CLASSES;
    uint64_t whole = (uint64_t)MAX(s->end_ns - s->start_ns, 0);
    if (!f->from_ns && (!f->to_ns || f->to_ns > whole))
        return;
    int64_t first = s->start_ns + (int64_t)MIN(f->from_ns, whole);
    int64_t last = f->to_ns ? s->start_ns + (int64_t)MIN(f->to_ns, whole) : s->end_ns;
    int64_t start = (int64_t)chunk_big_endian(head + HEAD_START),
            duration = (int64_t)chunk_big_endian(head + HEAD_DURATION);
    /* The header of a recorder that was killed has no duration. */
    int64_t end = duration > 0 && start < INT64_MAX - duration ? start + duration : s->end_ns;
    int64_t from = MIN(MAX(start, first), last), to = MAX(MIN(end, last), from);
    uint64_t hz = chunk_big_endian(head + HEAD_HZ);
    double ticks = (double)(from - start) * (hz ? (double)hz / 1e9 : 1);
    chunk_put_big_endian(head + HEAD_START, (uint64_t)from);
    chunk_put_big_endian(head + HEAD_DURATION, (uint64_t)(to - from));
    chunk_put_big_endian(head + HEAD_TICKS,
                         chunk_big_endian(head + HEAD_TICKS) + (uint64_t)(int64_t)ticks);
    head[HEAD_FEATURES] |= JFR_PART_OF_TIME;
}

/*
 * Returns whether the part ends at a time that the recording reaches. Then nothing is missing at
 * the end of the part, even if the recorder was killed later.
 */
static bool ends_in_recording(const struct selecting *s)
{
    uint64_t to_ns = s->source->filter.to_ns;
    return to_ns && s->start_ns + (int64_t)MIN(to_ns, (uint64_t)INT64_MAX / 2) <= s->end_ns;
}

static int copy_chunks(const struct selecting *s, const struct file_map *map, FILE *out,
                       struct buf *why)
{
    const uint64_t *kept = s->kept.data, *last = kept + s->kept.len;
    bool any = false;
    int r = 0;
    for (uint64_t begin = 0, size; r == 0 && map->len - begin >= HEADER; begin += size) {
        struct cursor c = cursor_of(map->data + begin + HEAD_SIZE, 8);
        size = cursor_be64(&c);
        if (memcmp(map->data + begin, "FLR", 4) != 0)
            break;
        bool cut = size < HEADER || size > map->len - begin;
        if (cut)
            size = map->len - begin; /* a killed recorder has not set it */
        bool last_chunk = size == map->len - begin;
        struct chunk chunk = {.out = BUF(SIZE_MAX / 2)};
        r = find_chain(&chunk.chain, map->data, begin, begin + size);
        uint64_t metadata = begin + chunk_big_endian(map->data + begin + HEAD_METADATA);
        if (metadata - begin >= size)
            metadata = recording_metadata_at(s->recording, begin);
        bool whole =
            r == 0 && metadata &&
            copy_chunk(&chunk, &s->times, map->data, begin, begin + size, metadata, &kept, last);
        if (r == 0)
            r = buf_error(&chunk.out);
        if (whole && r == 0) {
            chunk_put_big_endian(chunk.out.data + HEAD_SIZE, chunk.out.len);
            chunk_put_big_endian(chunk.out.data + HEAD_CONSTANTS, chunk.checkpoint);
            chunk_put_big_endian(chunk.out.data + HEAD_METADATA, chunk.metadata);
            set_span(s, chunk.out.data);
            chunk.out.data[AT_STATE] = 0; /* the chunk is complete */
            if (cut)
                chunk.out.data[HEAD_FEATURES] &= (uint8_t)~JFR_FINAL;
            if (last_chunk && ends_in_recording(s))
                chunk.out.data[HEAD_FEATURES] |= JFR_FINAL;
            fwrite(chunk.out.data, 1, chunk.out.len, out);
            any = true;
        }
        buf_release(&chunk.out);
        map_release(&chunk.chain);
    }
    if (r == 0 && !any) {
        buf_string(why, "no part of the recording can be read");
        return -EBADMSG;
    }
    return r;
}

static int export_jfr(const struct export_source *s, FILE *out, struct buf *why)
{
    struct file_map map = {0};
    struct selecting selecting = {.source = s};
    int r = file_map_open(&map, s->path);
    if (r == 0)
        r = select_events(&selecting, &map, why);
    if (r == 0)
        r = copy_chunks(&selecting, &map, out, why);
    unsigned left_out = selecting.present & ~selecting.chosen;
    if (r == 0 && left_out && s->note) {
        buf_string(s->note, "the selection leaves out all of: ");
        export_kind_names(s->note, left_out);
    }
    recording_close(selecting.recording);
    vec_release(&selecting.kept);
    cut_times_release(&selecting.times);
    time_part_release(&selecting.part);
    file_map_release(&map);
    return r;
}

const struct export_format export_format_jfr = {
    .extension = ".jfr",
    .what = "a part of a flight recording: a window, threads, classes",
    .any = true,
    .holds = HOLDS_ALL,
    .follows = FOLLOWS_THREAD | FOLLOWS_CLASS | FOLLOWS_TIME,
    .write = export_jfr,
    .detail = LOAD_SUMS,
};
