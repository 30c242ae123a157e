/* SPDX-License-Identifier: Apache-2.0 */
/* Opens a recording, and iterates over its chunks and events, also in chronological order. */
#include "jfr/reader.h"

#include "base/pages.h"
#include "jfr/reader_internal.h"
#include "jfr/ring.h"

#include <stdio.h>

enum { FORGET_BYTES = 1 << 22 };

void recording_damage(struct recording *r, const uint8_t *at, const char *why)
{
    if (r->info.truncated)
        return;
    r->info.truncated = true;
    r->info.at = at ? (uint64_t)(at - r->data) : r->len;
    snprintf(r->why, sizeof(r->why), "%s", why);
    r->info.why = r->why;
}

const char *recording_text(struct recording *r, const char *s, size_t len)
{
    int64_t number = strpool_add(&r->texts, s, len);
    return number < 0 ? "" : strpool_get(&r->texts, (uint64_t)number).data;
}

/* ---- chunks ---- */

/* Frees what the chunk has allocated except its struct; it can be prepared again. */
static void chunk_forget(struct rec_chunk *k)
{
    described_release(&k->types);
    map_release(&k->method_of_key);
    arena_release(&k->decoded);
    k->constants_read = k->constants_early = k->searched = k->ids_known = false;
    k->chain_why = NULL;
}

static void chunk_release(struct rec_chunk *k)
{
    chunk_forget(k);
    free(k);
}

static void apply_selection(const struct recording *r, struct rec_chunk *k)
{
    if (k->types.selection == r->selection)
        return;
    k->types.selection = r->selection;
    k->types.plans = 0;
    for (size_t i = 0; i < k->types.list.len; i++) {
        struct rec_type *t = &k->types.list.data[i]->pub;
        t->tag = r->select_all && t->event ? 0 : -1;
        for (size_t j = 0; j < r->selected.len && t->event; j++) {
            const char *wanted = r->selected.data[j].type;
            if (!strcmp(wanted, t->name) ||
                (t->contextual && t->tag < 0 && !strcmp(wanted, REC_CONTEXTUAL)))
                t->tag = r->selected.data[j].tag;
        }
        k->types.public.data[i].tag = t->tag;
    }
}

/* Finds the last metadata event of a chunk without a usable header. */
static uint64_t search_metadata(const struct rec_chunk *k)
{
    uint64_t found = 0;
    for (const uint8_t *at = k->start + JFR_CHUNK_HEAD; at < k->end;) {
        struct cursor c = rec_chunk_cursor(k, at);
        uint32_t size = (uint32_t)rec_read_int(k, &c);
        int64_t type = rec_read_long(k, &c);
        if (c.failed || size < (size_t)(c.at - at) || size > (size_t)(k->end - at))
            break;
        c.end = at + size;
        for (int i = 0; i < 3; i++) /* start time, duration, metadata id */
            rec_read_long(k, &c);
        uint32_t strings = (uint32_t)rec_read_int(k, &c);
        if (type == TYPE_METADATA && strings > 16 && strings < size) /* our pads have no strings */
            found = (uint64_t)(at - k->start);
        at += size;
    }
    return found;
}

int rec_chunk_prepare_early(struct rec_chunk *k)
{
    if (k->state == CHUNK_READY)
        return 0;
    if (k->state == CHUNK_BAD)
        return -EBADMSG;
    const char *why;
    int ret = rec_chunk_read_metadata(k, &why);
    if (ret == -EBADMSG && k->cut) {
        uint64_t found = search_metadata(k);
        if (found && found != k->metadata) {
            chunk_forget(k);
            k->metadata = found;
            ret = rec_chunk_read_metadata(k, &why);
        }
    }
    if (ret) {
        chunk_forget(k);
        if (ret == -EBADMSG) {
            k->state = CHUNK_BAD;
            k->why = why;
        }
        return ret;
    }
    k->state = CHUNK_READY;
    apply_selection(k->recording, k);
    return 0;
}

void rec_chunk_report(struct rec_chunk *k)
{
    if (k->state == CHUNK_BAD)
        recording_damage(k->recording, k->start, k->why);
}

int rec_chunk_prepare(struct rec_chunk *k)
{
    int ret = rec_chunk_prepare_early(k);
    rec_chunk_report(k);
    return ret;
}

uint64_t recording_metadata_at(struct recording *r, uint64_t chunk)
{
    for (size_t i = 0; i < r->chunks.len; i++) {
        struct rec_chunk *k = r->chunks.data[i];
        if ((uint64_t)(k->start - r->data) == chunk)
            return rec_chunk_prepare_early(k) == 0 ? chunk + k->metadata : 0;
    }
    return 0;
}

void rec_chunk_leave(struct recording *r, struct rec_chunk *k)
{
    if (r->keep_chunks || k->state != CHUNK_READY)
        return;
    described_keep(k);
    chunk_forget(k);
    k->state = CHUNK_NEW;
}

static int add_chunk(struct recording *r, const uint8_t *at, struct rec_chunk **ret)
{
    struct cursor c = cursor_of(at, (size_t)(r->data + r->len - at));
    const uint8_t *magic = cursor_take(&c, 4);
    uint16_t major = cursor_be16(&c);
    cursor_be16(&c);
    if (c.failed || memcmp(magic, "FLR", 4) != 0 || major < 1 || major > 2)
        return -EBADMSG;
    struct rec_chunk *k = calloc(1, sizeof(*k));
    if (!k)
        return -ENOMEM;
    uint64_t size = cursor_be64(&c), left = (uint64_t)(r->data + r->len - at);
    k->recording = r;
    k->index = r->chunks.len;
    k->start = at;
    k->constants = cursor_be64(&c);
    k->metadata = cursor_be64(&c);
    k->start_ns = (int64_t)cursor_be64(&c);
    k->duration_ns = (int64_t)cursor_be64(&c);
    k->start_ticks = (int64_t)cursor_be64(&c);
    uint64_t hz = cursor_be64(&c);
    uint32_t flags = cursor_be32(&c);
    k->compressed = flags & JFR_COMPRESSED;
    k->final = flags & JFR_FINAL;
    k->part_of_ring = flags & JFR_PART_OF_RING;
    k->part_of = flags & (JFR_PART_OF_TIME | JFR_PART_OF_SELECTION | JFR_PART_OF_CLASSES);
    k->ns_per_tick = hz && hz != 1000000000 ? 1e9 / (double)hz : 1.0;
    k->cut = size > left || size < JFR_CHUNK_HEAD;
    k->end = at + (k->cut ? left : size);
    int error = c.failed ? -EBADMSG : vec_push(&r->chunks, k);
    if (error) {
        free(k);
        return error;
    }
    *ret = k;
    return 0;
}

/*
 * When a recorder is killed while it adds room to the file, zeros follow the last chunk, and their
 * first bytes may already be a pad (its size, then its code). Returns whether that is the case
 * here.
 */
static bool is_new_room(const struct recording *r, const uint8_t *at)
{
    static const uint8_t nothing[6], pad_code[2] = {0x80, 0};
    const uint8_t *end = r->data + r->len;
    if (r->chunks.data[r->chunks.len - 1]->final || (size_t)(end - at) < sizeof(nothing) ||
        (memcmp(at, nothing, sizeof(nothing)) != 0 &&
         memcmp(at + 4, pad_code, sizeof(pad_code)) != 0))
        return false;
    for (at += sizeof(nothing); at < end && !*at;)
        at++;
    return at == end;
}

static int find_chunks(struct recording *r, const char **ret_why)
{
    const uint8_t *kept = r->data;
    for (const uint8_t *at = r->data; at < r->data + r->len;) {
        struct rec_chunk *k;
        /* The kernel maps further pages around each header, together possibly the whole file. */
        if (r->mapped && at - kept >= FORGET_BYTES) {
            pages_forget(kept, (size_t)(at - kept));
            kept = at;
        }
        int ret = add_chunk(r, at, &k);
        if (ret == -EBADMSG && r->chunks.len) {
            if (!is_new_room(r, at))
                recording_damage(r, at, "what follows a chunk is not a chunk");
            break;
        }
        if (ret) {
            *ret_why = file_format_of(r->data, r->len) == FORMAT_RING ? JFR_RING_ADVICE
                       : ret == -EBADMSG ? "not a flight recording (.jfr), which is needed here"
                                         : "out of memory";
            return ret;
        }
        r->info.cut = r->info.cut || k->cut;
        r->info.part_of |= k->part_of;
        r->info.part_of_time = r->info.part_of & JFR_PART_OF_TIME;
        if (k->cut)
            recording_damage(
                r, r->data + r->len,
                "the last chunk is not complete: the recorder was killed or the file is cut");
        at = k->end;
        r->info.start_ns = k->index == 0 ? k->start_ns : MIN(r->info.start_ns, k->start_ns);
        int64_t end_ns = (int64_t)((uint64_t)k->start_ns + (uint64_t)k->duration_ns);
        r->info.end_ns = MAX(r->info.end_ns, end_ns);
        r->info.flushed_ns = r->info.end_ns;
    }
    *ret_why = "an empty file is not a flight recording";
    return r->chunks.len ? 0 : -EBADMSG;
}

/* Returns whether our writer wrote a chunk. The chunk is prepared for this. */
static bool is_ours(struct rec_chunk *k)
{
    if (k->state != CHUNK_READY && rec_chunk_prepare(k) < 0)
        return true; /* damaged: assumed to be ours */
    for (size_t type = 0; type < k->types.list.len; type++)
        if (strcmp(k->types.list.data[type]->pub.name, "jvmscope.Lost") == 0)
            return true;
    return false;
}

/*
 * Returns the end of the last event of a chunk. Events are in the file before the header, which has
 * the time of the last flush, says so.
 */
static int64_t last_end_ns(struct rec_chunk *k)
{
    int64_t last = INT64_MIN;
    uint32_t size;
    uint64_t id;
    const uint8_t *body, *at = k->start + JFR_CHUNK_HEAD;
    for (; at < k->end && (body = rec_event_head(k, at, k->end, &size, &id)); at += size) {
        const struct type *t = id > TYPE_CHECKPOINT ? rec_chunk_type(k, id) : NULL;
        struct rec_event e;
        if (!t || !t->starts)
            continue;
        int64_t end;
        rec_chunk_fill_event(k, t, at, body, at + size, &e);
        if (!__builtin_add_overflow(e.start_ns, e.duration_ns, &end))
            last = MAX(last, end);
    }
    if (k->recording->mapped)
        pages_forget(k->start, (size_t)(k->end - k->start));
    return last;
}

/*
 * Returns whether this is a recording of our agent that was not ended: only our writer marks the
 * last chunk when it ends.
 */
static bool is_unended(struct recording *r)
{
    bool ours = false;
    for (size_t i = 0; i < r->chunks.len; i++) {
        struct rec_chunk *k = r->chunks.data[i];
        ours = ours || (k->state == CHUNK_READY && is_ours(k));
    }
    if (!ours)
        return false;
    /* Chunks of the VM's recorder may follow. */
    for (size_t i = r->chunks.len; i-- > 0;) {
        struct rec_chunk *k = r->chunks.data[i];
        if (!is_ours(k))
            continue;
        if (!k->final && k->state == CHUNK_READY && !r->chunks.data[0]->part_of_ring)
            r->without_end = k;
        return !k->final;
    }
    return true;
}

static int open_common(struct recording *r, const char **ret_why)
{
    r->data = r->data ? r->data : (const uint8_t *)"";
    r->select_all = true;
    r->selection = 1;
    r->key = BUF(UINT32_C(1) << 20);
    r->info.bytes = r->len;
    int ret = find_chunks(r, ret_why);
    if (ret)
        return ret;
    r->info.chunks = r->chunks.len;
    r->info.part_of_ring = r->chunks.data[0]->part_of_ring;
    for (size_t i = 0; i < r->chunks.len; i++) {
        ret = rec_chunk_prepare(r->chunks.data[i]);
        if (ret != -EBADMSG)
            break;
    }
    r->info.unended = ret == 0 && is_unended(r);
    if (ret == -ENOMEM)
        *ret_why = "out of memory";
    else if (ret)
        *ret_why =
            "no chunk of it can be read: the description of the events is damaged or missing";
    return ret;
}

static int open_bytes(struct recording **ret, const void *bytes, size_t len, bool mapped,
                      const char **ret_why)
{
    struct recording *r = calloc(1, sizeof(*r));
    *ret_why = "out of memory";
    if (!r)
        return -ENOMEM;
    r->data = bytes;
    r->len = len;
    r->mapped = mapped;
    int error = open_common(r, ret_why);
    if (error)
        recording_close(r);
    else
        *ret = r;
    return error;
}

int recording_open_bytes(struct recording **ret, const void *bytes, size_t len,
                         const char **ret_why)
{
    return open_bytes(ret, bytes, len, false, ret_why);
}

int recording_open_mapped(struct recording **ret, const void *bytes, size_t len,
                          const char **ret_why)
{
    return open_bytes(ret, bytes, len, true, ret_why);
}

int recording_open(struct recording **ret, const char *path, const char **ret_why)
{
    struct recording *r = calloc(1, sizeof(*r));
    *ret_why = "out of memory";
    if (!r)
        return -ENOMEM;
    int error = file_map_open(&r->map, path);
    if (error) {
        *ret_why = file_map_why(error);
    } else {
        r->data = r->map.data;
        r->len = r->map.len;
        r->mapped = true;
        error = open_common(r, ret_why);
    }
    if (error)
        recording_close(r);
    else
        *ret = r;
    return error;
}

void recording_close(struct recording *r)
{
    if (!r)
        return;
    for (size_t i = 0; i < r->chunks.len; i++)
        chunk_release(r->chunks.data[i]);
    vec_release(&r->chunks);
    for (size_t i = 0; i < r->n_spare; i++)
        described_release(&r->spare[i]);
    vec_release(&r->selected);
    strpool_release(&r->names);
    strpool_release(&r->texts);
    strpool_release(&r->thread_keys);
    strpool_release(&r->class_keys);
    strpool_release(&r->method_keys);
    vec_release(&r->threads);
    vec_release(&r->classes);
    vec_release(&r->methods);
    vec_release(&r->class_names);
    map_release(&r->method_ids);
    map_release(&r->frame_type_ids);
    vec_release(&r->seen);
    arena_release(&r->strings);
    arena_release(&r->usual);
    buf_release(&r->key);
    file_map_release(&r->map);
    free(r);
}

void recording_info(struct recording *r, struct rec_info *ret)
{
    if (r->without_end)
        r->info.end_ns = MAX(r->info.end_ns, last_end_ns(TAKE(r->without_end)));
    *ret = r->info;
}

int recording_select(struct recording *r, const struct rec_select *rows)
{
    vec_clear(&r->selected);
    r->select_all = !rows;
    r->selection++;
    for (; rows && rows->type; rows++) {
        const char *name = recording_text(r, rows->type, strlen(rows->type));
        if (strcmp(name, rows->type) != 0 ||
            vec_push(&r->selected, ((struct rec_selection){name, rows->tag})))
            return -ENOMEM;
    }
    for (size_t i = 0; i < r->chunks.len; i++)
        if (r->chunks.data[i]->state == CHUNK_READY)
            apply_selection(r, r->chunks.data[i]);
    return 0;
}

/* ---- events ---- */

void rec_chunk_fill_event(struct rec_chunk *k, const struct type *t, const uint8_t *at,
                          const uint8_t *body, const uint8_t *end, struct rec_event *ret)
{
    struct cursor c = cursor_of(body, (size_t)(end - body));
    *ret = (struct rec_event){.object = {k->recording, k, &t->pub, body, end},
                              .tag = t->pub.tag,
                              .start_ns = k->start_ns,
                              .offset = (uint64_t)(at - k->recording->data),
                              .size = (uint32_t)(end - at)};
    if (t->starts)
        ret->start_ns =
            (int64_t)((uint64_t)k->start_ns +
                      (uint64_t)rec_ticks_to_ns(
                          k, (int64_t)((uint64_t)rec_read_long(k, &c) - (uint64_t)k->start_ticks)));
    if (t->lasts)
        ret->duration_ns = rec_ticks_to_ns(k, rec_read_long(k, &c));
}

void recording_forget_strings(struct recording *r)
{
    if (r->strings.bytes)
        arena_release(&r->strings);
}

/* Releases the pages of events that were skipped, which may be most of a large recording. */
static void forget_until(struct recording *r, const uint8_t *at)
{
    if (!r->kept || r->kept > at)
        r->kept = at;
    if (r->mapped && at - r->kept >= FORGET_BYTES) {
        pages_forget(r->kept, (size_t)(at - r->kept));
        r->kept = at;
    }
}

/* Reads the next selected event of the chunk. Returns 1, or 0 at its end. */
static int next_in_chunk(struct recording *r, struct rec_chunk *k, struct rec_event *ret)
{
    const uint8_t *at = r->at ? r->at : k->start + JFR_CHUNK_HEAD;
    while (at < k->end) {
        uint32_t size;
        uint64_t id;
        const uint8_t *body = rec_event_head(k, at, k->end, &size, &id);
        if (unlikely(!body)) {
            recording_damage(
                r, at, k->cut ? "the last event is not complete" : "an event's size is damaged");
            break;
        }
        const struct type *t = id > TYPE_CHECKPOINT ? rec_chunk_type(k, id) : NULL;
        if (t && t->pub.tag >= 0) {
            r->at = at + size;
            r->last = k;
            rec_chunk_fill_event(k, t, at, body, at + size, ret);
            return 1;
        }
        at += size;
        forget_until(r, at);
    }
    r->at = k->end;
    return 0;
}

int recording_each(struct recording *r, const struct rec_select *types,
                   int (*visit)(void *context, const struct rec_event *e), void *context)
{
    struct rec_event e;
    int more = recording_select(r, types);
    while (more >= 0 && (more = recording_next(r, &e)) > 0)
        more = visit(context, &e);
    return more;
}

int recording_next(struct recording *r, struct rec_event *ret)
{
    recording_forget_strings(r);
    while (r->current < r->chunks.len) {
        struct rec_chunk *k = r->chunks.data[r->current];
        int error = rec_chunk_prepare(k);
        if (error == -ENOMEM)
            return error;
        if (!error && next_in_chunk(r, k, ret))
            return 1;
        if (r->current + 1 < r->chunks.len)
            rec_chunk_leave(r, k);
        r->current++;
        r->at = NULL;
    }
    return 0;
}

void recording_rewind(struct recording *r)
{
    r->current = 0;
    r->at = NULL;
}

static int compare_marks(const void *a, const void *b)
{
    const struct rec_mark *x = a, *y = b;
    if (x->start_ns != y->start_ns)
        return x->start_ns < y->start_ns ? -1 : 1;
    return (x->offset > y->offset) - (x->offset < y->offset);
}

int recording_by_time(struct recording *r, struct rec_mark **ret, size_t *ret_n)
{
    VEC(struct rec_mark) marks = {0};
    struct rec_event e;
    int error;
    r->keep_chunks = true;
    recording_rewind(r);
    while ((error = recording_next(r, &e)) > 0) {
        error = vec_push(&marks, ((struct rec_mark){e.start_ns, e.offset}));
        if (error)
            break;
    }
    recording_rewind(r);
    if (error) {
        vec_release(&marks);
        return error;
    }
    if (marks.len)
        qsort(marks.data, marks.len, sizeof(*marks.data), compare_marks);
    *ret = marks.data;
    *ret_n = marks.len;
    return 0;
}

int recording_at(struct recording *r, uint64_t offset, struct rec_event *ret)
{
    size_t low = 0, high = r->chunks.len;
    recording_forget_strings(r);
    while (high - low > 1) {
        size_t middle = (low + high) / 2;
        if (r->data + MIN(offset, r->len) >= r->chunks.data[middle]->start)
            low = middle;
        else
            high = middle;
    }
    struct rec_chunk *k = r->chunks.data[low];
    int error = rec_chunk_prepare(k);
    if (error)
        return error;
    const uint8_t *at = r->data + MIN(offset, r->len);
    struct cursor c = rec_chunk_cursor(k, at);
    uint32_t size = (uint32_t)rec_read_int(k, &c);
    const struct type *t = rec_chunk_type(k, (uint64_t)rec_read_long(k, &c));
    if (c.failed || !t || size < (size_t)(c.at - at) || size > (size_t)(k->end - at))
        return -EBADMSG;
    r->last = k;
    rec_chunk_fill_event(k, t, at, c.at, at + size, ret);
    return 0;
}

const struct rec_type *recording_types(const struct recording *r, size_t *ret_n)
{
    const struct rec_chunk *k = r->last;
    for (size_t i = 0; !k && i < r->chunks.len; i++)
        if (r->chunks.data[i]->state == CHUNK_READY)
            k = r->chunks.data[i];
    *ret_n = k ? k->types.public.len : 0;
    return k ? k->types.public.data : NULL;
}
