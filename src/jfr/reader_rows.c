/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the events of large recordings quickly. The positions of a type's fields are determined
 * once for each chunk. Threads read ahead and hand over batches in the order of the file.
 */
#include "jfr/reader_rows.h"

#include "base/pages.h"
#include "jfr/reader_plan.h"

#include <pthread.h>
#include <unistd.h>

/*
 * A recording of fewer than ALONE_BYTES bytes is read without a thread.
 */
enum {
    BATCH_ROWS = 2048,
    BATCHES = 4,
    PART_BYTES = 1 << 18,
    BATCH_PARTS = 512,
    READERS = 4,
    FORGET_BYTES = 1 << 22,
    BATCH_BYTES = 1 << 22,
    READ_BYTES = 1 << 21, /* mapped at a time */
    BATCH_SAMPLES = 8192,
    ALONE_BYTES = 1 << 20
};

struct batch {
    struct rec_row *rows;
    struct rec_sample *samples; /* NULL: the caller needs none */
    size_t n, n_samples;
    struct rec_chunk *chunk;
    bool last;    /* the last batch of its chunk */
    uint64_t end; /* offset in the file */
    struct rec_part parts[BATCH_PARTS];
    size_t n_parts;
    const uint8_t *damage;
    const char *why;
};

/* Reads every n-th chunk ahead, in a thread of its own if `threaded`. */
struct reader {
    struct rec_rows *rows;
    struct batch batches[BATCHES];
    size_t filled, given;  /* numbers of batches so far; batch given - 1 is with the caller */
    size_t chunk;          /* the chunk that is being read */
    const uint8_t *at;     /* the position in it; NULL at its beginning */
    const uint8_t *mapped; /* up to here the file has been mapped in order to be read */
    bool threaded;
    pthread_t thread;
};

struct rec_rows {
    struct recording *r;
    struct wanted wanted;
    VEC(struct rec_part) parts;
    struct reader readers[READERS];
    size_t n_readers;
    const struct batch *current; /* the batch that the caller has */
    size_t prepared;             /* the number of chunks that may be read */
    bool forget;
    size_t forgotten; /* the number of bytes of the file whose pages were released */
    bool stop, all_read;
    pthread_mutex_t lock;
    pthread_cond_t changed;
};

/* Ends a part of the file. `least` is the earliest start of its events in ticks. */
static void end_part(struct batch *b, const uint8_t *at, int64_t least)
{
    uint64_t end = (uint64_t)(at - b->chunk->recording->data);
    bool no_time = least == INT64_MAX || least == INT64_MIN;
    b->parts[b->n_parts++] =
        (struct rec_part){end, no_time ? least : plan_start_ns(b->chunk, least)};
}

/* Maps a part of the file at once, which costs less than a fault for every few pages. */
static void map_early(struct reader *from, const uint8_t *at, const uint8_t *end)
{
    size_t bytes = MIN((size_t)(end - at), (size_t)READ_BYTES);
    pages_to_read(at, bytes);
    from->mapped = at + bytes;
}

static void add_row(struct batch *b, const struct plan *p, const uint8_t *at, const uint8_t *body,
                    uint32_t size, const uint8_t *limit)
{
    struct rec_row *row = &b->rows[b->n++];
    row->plan = &p->pub;
    row->at = at;
    row->body = body;
    row->size = size;
    row->damaged = false;
    if (unlikely(!plan_read_row(p, limit, row)))
        plan_by_name(p, row);
}

/*
 * Fills a batch with the next events of the chunk that is being read. b->last is set if they were
 * the last.
 */
static void fill(struct reader *from, struct batch *b)
{
    const struct rec_rows *rows = from->rows;
    struct rec_chunk *k = rows->r->chunks.data[from->chunk];
    const uint8_t *at = from->at ? from->at : k->start + JFR_CHUNK_HEAD;
    const uint8_t *end = k->state == CHUNK_READY ? k->end : at;
    if (!from->at && from->threaded && k->state == CHUNK_READY && !rows->wanted.what)
        rec_chunk_read_constants_early(k);
    const uint8_t *part = at, *begin = at;
    b->n = b->n_parts = b->n_samples = 0;
    b->chunk = k;
    b->damage = NULL;
    int64_t least = INT64_MAX; /* in ticks */
    while (at < end && b->n < BATCH_ROWS && b->n_samples < BATCH_SAMPLES &&
           (!b->samples || at - begin < BATCH_BYTES)) {
        if (rows->wanted.what && at - part >= PART_BYTES) {
            end_part(b, at, least);
            part = at;
            least = INT64_MAX;
            if (b->n_parts == BATCH_PARTS)
                break;
        }
        if (unlikely(at >= from->mapped) && rows->forget)
            map_early(from, at, end);
        uint32_t size;
        uint64_t id;
        const uint8_t *body = rec_event_head(k, at, end, &size, &id);
        if (unlikely(!body)) {
            b->damage = at;
            b->why = k->cut ? "the last event is not complete" : "an event's size is damaged";
            at = end;
            break;
        }
        struct type *t = rec_chunk_type(k, id);
        const struct plan *p = t ? t->plan : NULL;
        if (t && unlikely(!t->seen))
            t->seen = true;
        if (p && p->what & REC_TIME)
            least = MIN(least, plan_start_ticks(p, body, end));
        if (p && p->what & REC_ROW) {
            if (b->samples && p->sampling &&
                likely(plan_read_sample(p, body, at + size, end, &b->samples[b->n_samples])))
                b->n_samples++;
            else
                add_row(b, p, at, body, size, end);
        }
        at += size;
    }
    if (rows->wanted.what && b->n_parts < BATCH_PARTS)
        end_part(b, at, least);
    b->last = at >= end;
    b->end = (uint64_t)(at - rows->r->data);
    from->at = at;
    if (b->last) {
        from->at = NULL;
        from->chunk += rows->n_readers;
    }
}

/*
 * Releases the pages that were read, except the most recent ones: fields that are read by name are
 * read there again.
 */
static void forget(struct rec_rows *rows, const struct batch *b)
{
    size_t bytes = b->end > rows->forgotten ? (b->end - rows->forgotten) / FORGET_BYTES : 0;
    if (bytes < 2)
        return;
    bytes = (bytes - 1) * FORGET_BYTES;
    pages_forget(rows->r->data + rows->forgotten, bytes);
    rows->forgotten += bytes;
}

static void *read_chunks(void *arg)
{
    struct reader *from = arg;
    struct rec_rows *rows = from->rows;
    pthread_mutex_lock(&rows->lock);
    while (from->chunk < rows->r->chunks.len) {
        while (!rows->stop &&
               (rows->prepared <= from->chunk || from->filled - from->given >= BATCHES - 1))
            pthread_cond_wait(&rows->changed, &rows->lock);
        if (rows->stop)
            break;
        struct batch *b = &from->batches[from->filled % BATCHES];
        pthread_mutex_unlock(&rows->lock);
        fill(from, b);
        pthread_mutex_lock(&rows->lock);
        from->filled++;
        pthread_cond_broadcast(&rows->changed);
    }
    pthread_mutex_unlock(&rows->lock);
    return NULL;
}

/* ---- the caller's side ---- */

int rec_rows_open(struct rec_rows **ret, struct recording *r, const struct rec_column *columns,
                  size_t n)
{
    return rec_rows_first(ret, r, columns, n, NULL);
}

static int reader_init(struct reader *from, struct rec_rows *rows, size_t number)
{
    from->rows = rows;
    from->chunk = number;
    for (size_t i = 0; i < BATCHES; i++) {
        from->batches[i].rows = malloc(BATCH_ROWS * sizeof(struct rec_row));
        if (!from->batches[i].rows)
            return -ENOMEM;
    }
    from->threaded =
        rows->r->len >= ALONE_BYTES && pthread_create(&from->thread, NULL, read_chunks, from) == 0;
    return 0;
}

int rec_rows_first(struct rec_rows **ret, struct recording *r, const struct rec_column *columns,
                   size_t n, unsigned (*what)(int tag))
{
    struct rec_rows *rows = calloc(1, sizeof(*rows));
    if (!rows)
        return -ENOMEM;
    rows->r = r;
    rows->wanted = (struct wanted){.number = ++r->rows,
                                   .columns = columns,
                                   .n_columns = MIN(n, (size_t)REC_COLUMNS),
                                   .what = what};
    pthread_mutex_init(&rows->lock, NULL);
    pthread_cond_init(&rows->changed, NULL);
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    rows->n_readers = MIN(r->chunks.len, (size_t)MIN(MAX(processors, 1), (long)READERS));
    int error = 0;
    for (size_t i = 0; error == 0 && i < rows->n_readers; i++)
        error = reader_init(&rows->readers[i], rows, i);
    if (error)
        rec_rows_close(rows);
    else
        *ret = rows;
    return error;
}

void rec_rows_close(struct rec_rows *rows)
{
    if (!rows)
        return;
    pthread_mutex_lock(&rows->lock);
    rows->stop = true;
    pthread_cond_broadcast(&rows->changed);
    pthread_mutex_unlock(&rows->lock);
    for (size_t i = 0; i < rows->n_readers; i++) {
        struct reader *from = &rows->readers[i];
        if (from->threaded)
            pthread_join(from->thread, NULL);
        for (size_t k = 0; k < BATCHES; k++) {
            free(from->batches[k].rows);
            free(from->batches[k].samples);
        }
    }
    pthread_cond_destroy(&rows->changed);
    pthread_mutex_destroy(&rows->lock);
    vec_release(&rows->parts);
    free(rows);
}

int rec_rows_sample(struct rec_rows *rows, const struct rec_sampling *samplings, size_t n)
{
    rows->wanted.samplings = samplings;
    rows->wanted.n_samplings = n;
    for (size_t i = 0; i < rows->n_readers; i++) {
        for (size_t j = 0; j < BATCHES; j++) {
            struct rec_sample **to = &rows->readers[i].batches[j].samples;
            *to = malloc(BATCH_SAMPLES * sizeof(**to));
            if (!*to)
                return -ENOMEM;
        }
    }
    return 0;
}

uint64_t rec_rows_offset(const struct rec_rows *rows)
{
    return rows->current ? rows->current->end : 0;
}

void rec_rows_forget(struct rec_rows *rows)
{
    pthread_mutex_lock(&rows->lock);
    rows->forget = true;
    pthread_mutex_unlock(&rows->lock);
}

const struct rec_part *rec_rows_parts(const struct rec_rows *rows, size_t *ret_n)
{
    *ret_n = rows->parts.len;
    return rows->parts.data;
}

/*
 * Prepares the chunks that are being read and the one after them, so that the readers always have
 * work.
 */
static int prepare_until(struct rec_rows *rows, size_t n)
{
    n = MIN(n, rows->r->chunks.len);
    for (size_t i = rows->prepared; i < n; i++) {
        struct rec_chunk *k = rows->r->chunks.data[i];
        int error = rec_chunk_prepare_early(k);
        if (!error)
            error = plan_chunk(&rows->wanted, k);
        if (error == -ENOMEM)
            return error;
        pthread_mutex_lock(&rows->lock);
        rows->prepared = i + 1;
        pthread_cond_broadcast(&rows->changed);
        pthread_mutex_unlock(&rows->lock);
    }
    return 0;
}

/* Stores which types the events of a chunk have, after it has been read. */
static int note_seen(struct recording *r, const struct rec_chunk *k)
{
    for (size_t i = 0; i < k->types.list.len; i++) {
        struct type *t = k->types.list.data[i];
        if (!t->seen)
            continue;
        if (t->pub.number >= r->seen.len &&
            vec_extend(&r->seen, t->pub.number + 1 - r->seen.len) < 0)
            return -ENOMEM;
        r->seen.data[t->pub.number] = 1;
        t->seen = false;
    }
    return 0;
}

int rec_rows_each_type(const struct rec_rows *rows, int (*visit)(void *context, const char *type),
                       void *context)
{
    const struct recording *r = rows->r;
    int stop = 0;
    for (size_t i = 0; stop == 0 && i < r->seen.len; i++)
        if (r->seen.data[i])
            stop = visit(context, strpool_get(&r->names, i).data);
    return stop;
}

/* Returns the next batch of a chunk, read by its reader's thread or by the caller itself. */
static struct batch *take(struct rec_rows *rows, size_t chunk)
{
    struct reader *from = &rows->readers[chunk % rows->n_readers];
    struct batch *b = &from->batches[from->given % BATCHES];
    if (!from->threaded) {
        fill(from, b);
        from->filled++;
    }
    pthread_mutex_lock(&rows->lock);
    while (from->filled == from->given)
        pthread_cond_wait(&rows->changed, &rows->lock);
    from->given++;
    pthread_cond_broadcast(&rows->changed);
    pthread_mutex_unlock(&rows->lock);
    return b;
}

int rec_rows_next(struct rec_rows *rows, const struct rec_row **ret, size_t *ret_n)
{
    struct recording *r = rows->r;
    recording_forget_strings(r);
    while (!rows->all_read) {
        const struct batch *before = rows->current;
        if (before && before->damage && !rows->wanted.what)
            recording_damage(r, before->damage, before->why);
        if (before && rows->forget)
            forget(rows, before);
        size_t chunk = before ? before->chunk->index + before->last : 0;
        if (before && before->last && note_seen(r, before->chunk) < 0)
            return -ENOMEM;
        if (before && before->last && chunk < r->chunks.len)
            rec_chunk_leave(r, before->chunk);
        rows->all_read = chunk >= r->chunks.len;
        if (rows->all_read)
            break;
        int error = prepare_until(rows, chunk + 1 + rows->n_readers);
        if (error)
            return error;
        const struct batch *b = rows->current = take(rows, chunk);
        rec_chunk_report(b->chunk);
        for (size_t i = 0; i < b->n_parts; i++) {
            if (vec_push(&rows->parts, b->parts[i]) < 0)
                return -ENOMEM;
        }
        *ret = b->rows;
        *ret_n = b->n;
        if (b->n || b->n_samples || b->samples)
            return 1;
    }
    return 0;
}

const struct rec_sample *rec_rows_samples(const struct rec_rows *rows, size_t *ret_n)
{
    *ret_n = rows->current ? rows->current->n_samples : 0;
    return rows->current ? rows->current->samples : NULL;
}

uint64_t rec_sample_ns(const struct rec_sample *s, unsigned column, uint64_t otherwise)
{
    const struct rec_plan *p = s->plan;
    struct rec_object o = {.recording = p->chunk->recording, .chunk = p->chunk};
    struct rec_value v = {.field = p->field[column], .number = (int64_t)s->weight};
    return p->slot[column] >= 0 ? (uint64_t)rec_value_ns(&o, &v) : otherwise;
}

void rec_sample_object(const struct rec_sample *s, struct rec_object *ret)
{
    struct rec_chunk *k = s->plan->chunk;
    recording_forget_strings(k->recording);
    k->recording->last = k;
    *ret = (struct rec_object){.recording = k->recording, .chunk = k, .type = s->plan->type};
}

static struct rec_object object_of(const struct rec_row *row)
{
    const struct rec_plan *p = row->plan;
    return (struct rec_object){p->chunk->recording, p->chunk, p->type, row->body,
                               row->at + row->size};
}

int64_t rec_row_long(const struct rec_row *row, unsigned column, int64_t otherwise)
{
    int slot = row->plan->slot[column];
    if (likely(slot >= 0 && !row->damaged))
        return row->values[slot];
    struct rec_object o = object_of(row);
    return slot == REC_ABSENT ? otherwise
                              : rec_long(&o, row->plan->columns[column].name, otherwise);
}

int64_t rec_row_ns(const struct rec_row *row, unsigned column, int64_t otherwise)
{
    int slot = row->plan->slot[column];
    struct rec_object o = object_of(row);
    if (likely(slot >= 0 && !row->damaged))
        return rec_value_ns(&o, &(struct rec_value){.field = row->plan->field[column],
                                                    .number = row->values[slot]});
    return slot == REC_ABSENT ? otherwise : rec_ns(&o, row->plan->columns[column].name, otherwise);
}

void rec_row_event(const struct rec_row *row, struct rec_event *ret)
{
    const struct rec_plan *p = row->plan;
    recording_forget_strings(p->chunk->recording);
    p->chunk->recording->last = p->chunk;
    *ret = (struct rec_event){.object = object_of(row),
                              .tag = p->type->tag,
                              .start_ns = row->start_ns,
                              .duration_ns = row->duration_ns,
                              .offset = (uint64_t)(row->at - p->chunk->recording->data),
                              .size = row->size};
}
