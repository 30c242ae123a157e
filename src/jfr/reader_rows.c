/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads millions of events. The positions of a type's fields are determined once for each chunk.
 * Threads read ahead and hand over batches in the order of the file.
 */
#include "jfr/reader_rows.h"

#include "base/pages.h"
#include "jfr/reader_internal.h"

#include <pthread.h>

/*
 * Three batches fill a second-level cache. A recording of less than a few batches is read without a
 * thread.
 */
enum {
    BATCH_ROWS = 2048,
    BATCHES = 4,
    PART_BYTES = 1 << 18,
    BATCH_PARTS = 512,
    READERS = 2,
    FORGET_BYTES = 1 << 22,
    BATCH_BYTES = 1 << 22,
    FOLD_IDS = 1 << 22, /* larger ids are not folded */
    ALONE_BYTES = 1 << 20,
    LONG_MAX_BYTES = 9
};

enum {
    OP_LONG,
    OP_INT,
    OP_UNSIGNED,
    OP_SHORT,
    OP_CHAR,
    OP_BYTE,
    OP_UNSIGNED_BYTE,
    OP_BOOLEAN,
    OP_SKIP_LONG,
    OP_SKIP,
    OP_FIELD
};

struct op {
    uint8_t op, slot; /* for OP_SKIP: the number of bytes */
    uint16_t field;
};

struct plan {
    struct rec_plan pub; /* must be the first member */
    bool by_name;        /* nothing is read ahead because the type does not begin as events do */
    bool folds;
    unsigned what; /* REC_ROW, REC_TIME */
    uint32_t n_ops;
    struct op *ops;
};

struct batch {
    struct rec_row *rows;
    size_t n;
    struct rec_chunk *chunk;
    bool last;    /* the last batch of its chunk */
    uint64_t end; /* offset in the file */
    struct rec_part parts[BATCH_PARTS];
    size_t n_parts;
    const uint8_t *damage;
    const char *why;
};

/* What is known of an id in the chunk being read. */
struct folded {
    uint32_t chunk; /* the number of the chunk, + 1, for which the rest is valid */
    uint32_t events;
};

/* The events of a chunk that are not rows of their own. */
struct folding {
    VEC(struct folded) by, seen; /* by id */
    VEC(struct rec_row) firsts;  /* the first row of each id of `by` */
    size_t given;                /* how many of them were checked for events */
    int64_t latest_ns;
};

/* A thread that reads every n-th chunk ahead. */
struct reader {
    struct rec_rows *rows;
    struct batch batches[BATCHES];
    size_t filled, given; /* numbers of batches so far; batch given - 1 is with the caller */
    size_t chunk;         /* the chunk being read */
    const uint8_t *at;    /* the position in it; NULL at its beginning */
    struct folding folding;
    bool threaded;
    pthread_t thread;
};

struct rec_rows {
    struct recording *r;
    uint64_t number; /* of this iteration */
    const struct rec_wish *wishes;
    size_t n_wishes;
    unsigned (*what)(int tag);   /* NULL: return all rows and record no times */
    const struct rec_fold *fold; /* NULL: none */
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

/* ---- plans ---- */

static uint8_t number_op(const struct rec_field *f)
{
    switch (f->type->kind) {
    case REC_BOOLEAN:
        return OP_BOOLEAN;
    case REC_BYTE:
        return f->is_unsigned ? OP_UNSIGNED_BYTE : OP_BYTE;
    case REC_CHAR:
        return OP_CHAR;
    case REC_SHORT:
        return f->is_unsigned ? OP_CHAR : OP_SHORT;
    case REC_INT:
        return f->is_unsigned ? OP_UNSIGNED : OP_INT;
    case REC_LONG:
        return OP_LONG;
    default:
        return OP_FIELD;
    }
}

static uint8_t skip_op(const struct rec_field *f, uint8_t *ret_bytes)
{
    *ret_bytes = 0;
    if (f->array)
        return OP_FIELD;
    if (f->constant)
        return OP_SKIP_LONG;
    switch (f->type->kind) {
    case REC_BOOLEAN:
    case REC_BYTE:
        *ret_bytes = 1;
        return OP_SKIP;
    case REC_FLOAT:
        *ret_bytes = 4;
        return OP_SKIP;
    case REC_DOUBLE:
        *ret_bytes = 8;
        return OP_SKIP;
    case REC_STRING:
    case REC_STRUCT:
        return OP_FIELD;
    default:
        return OP_SKIP_LONG;
    }
}

static void plan_field(const struct rec_rows *rows, struct plan *p, uint32_t i, uint8_t *slots)
{
    const struct rec_field *f = &p->pub.type->fields[i];
    struct op op = {.field = (uint16_t)i};
    op.op = skip_op(f, &op.slot);
    for (size_t w = 0; w < rows->n_wishes; w++) {
        if (strcmp(rows->wishes[w].name, f->name) != 0 || p->pub.field[w])
            continue;
        p->pub.slot[w] = REC_BY_NAME;
        p->pub.field[w] = f;
        bool fits = !f->array && f->constant == rows->wishes[w].constant && *slots < REC_ROW_VALUES;
        uint8_t read = f->constant ? OP_LONG : number_op(f);
        if (fits && read != OP_FIELD && !p->by_name) {
            op.op = read;
            op.slot = *slots;
            p->pub.slot[w] = (int8_t)(*slots)++;
        }
    }
    if (i >= 2 || (i == 1 && !((const struct type *)(const void *)p->pub.type)->lasts))
        p->ops[p->n_ops++] = op;
}

static struct plan *plan_of(const struct rec_rows *rows, struct rec_chunk *k, const struct type *t)
{
    struct plan *p = arena_zalloc(&k->types.arena, sizeof(*p));
    struct op *ops = arena_alloc(&k->types.arena, (t->pub.n_fields + 1) * sizeof(*ops));
    if (!p || !ops)
        return NULL;
    *p = (struct plan){.pub = {.type = &t->pub, .chunk = k, .wishes = rows->wishes}, .ops = ops};
    p->what = rows->what ? rows->what(t->pub.tag) : REC_ROW;
    p->by_name = !k->compressed || !t->starts || t->pub.n_fields > UINT16_MAX;
    memset(p->pub.slot, REC_ABSENT, sizeof(p->pub.slot));
    uint8_t slots = 0;
    for (uint32_t i = 0; i < t->pub.n_fields; i++)
        plan_field(rows, p, i, &slots);
    while (p->n_ops && p->ops[p->n_ops - 1].op >= OP_SKIP_LONG)
        p->n_ops--;
    const struct rec_fold *fold = rows->fold;
    p->folds = fold && fold->tag == t->pub.tag && p->pub.slot[fold->by] >= 0 &&
               p->pub.slot[fold->seen] >= 0 && p->pub.slot[fold->without] == REC_ABSENT;
    return p;
}

/* Makes the plans of all selected types of the chunk, unless an earlier one has passed them on. */
static int chunk_plan(struct rec_rows *rows, struct rec_chunk *k)
{
    bool made = k->types.plans == rows->number;
    for (size_t i = 0; i < k->types.list.len; i++) {
        struct type *t = k->types.list.data[i];
        if (made && t->plan)
            t->plan->pub.chunk = k;
        if (made)
            continue;
        t->plan = t->pub.tag >= 0 && t->pub.id > TYPE_CHECKPOINT ? plan_of(rows, k, t) : NULL;
        if (!t->plan && t->pub.tag >= 0 && t->pub.id > TYPE_CHECKPOINT)
            return -ENOMEM;
    }
    k->types.plans = rows->number;
    return 0;
}

/* ---- reading ---- */

/* Like cursor_jfr_long, when at least nine bytes are available. */
static inline uint64_t long_at(const uint8_t **at)
{
    uint64_t x;
    memcpy(&x, *at, sizeof(x));
    x = le64toh(x);
    if (!(x & 0x80)) {
        ++*at;
        return x & 0x7f;
    }
    uint64_t stop = ~x & UINT64_C(0x8080808080808080), high = 0;
    if (likely(stop)) {
        *at += (unsigned)__builtin_ctzll(stop) / 8 + 1;
        x &= stop ^ (stop - 1);
    } else {
        high = (uint64_t)(*at)[8] << 56;
        *at += LONG_MAX_BYTES;
    }
    x = (x & UINT64_C(0x007f007f007f007f)) | (x & UINT64_C(0x7f007f007f007f00)) >> 1;
    x = (x & UINT64_C(0x00003fff00003fff)) | (x & UINT64_C(0x3fff00003fff0000)) >> 2;
    return (x & UINT64_C(0x0fffffff)) | (x & UINT64_C(0x0fffffff00000000)) >> 4 | high;
}

static void row_by_name(const struct plan *p, struct rec_row *row)
{
    row->damaged = true;
    const struct type *t = (const struct type *)(const void *)p->pub.type;
    struct rec_event e;
    chunk_fill_event(p->pub.chunk, t, row->at, row->body, row->at + row->size, &e);
    row->start_ns = e.start_ns;
    row->duration_ns = e.duration_ns;
}

static bool run_ops(const struct plan *p, const uint8_t *at, const uint8_t *end,
                    const uint8_t *limit, int64_t *values)
{
    for (const struct op *op = p->ops, *last = op + p->n_ops; op < last; op++) {
        if (unlikely(at > end || limit - at < LONG_MAX_BYTES))
            return false;
        switch (op->op) {
        case OP_LONG:
            values[op->slot] = (int64_t)long_at(&at);
            break;
        case OP_INT:
            values[op->slot] = (int32_t)long_at(&at);
            break;
        case OP_UNSIGNED:
            values[op->slot] = (uint32_t)long_at(&at);
            break;
        case OP_SHORT:
            values[op->slot] = (int16_t)long_at(&at);
            break;
        case OP_CHAR:
            values[op->slot] = (uint16_t)long_at(&at);
            break;
        case OP_BYTE:
            values[op->slot] = (int64_t)(int8_t)*at++;
            break;
        case OP_UNSIGNED_BYTE:
            values[op->slot] = *at++;
            break;
        case OP_BOOLEAN:
            values[op->slot] = *at++ != 0;
            break;
        case OP_SKIP_LONG:
            long_at(&at);
            break;
        case OP_SKIP:
            at += op->slot;
            break;
        default: {
            struct cursor c = cursor_of(at, (size_t)(end - at));
            chunk_skip_value(p->pub.chunk, &p->pub.type->fields[op->field], &c, 0);
            if (c.failed)
                return false;
            at = c.at;
        }
        }
    }
    return at <= end;
}

static int64_t start_ns(const struct rec_chunk *k, int64_t ticks)
{
    return (
        int64_t)((uint64_t)k->start_ns +
                 (uint64_t)ticks_to_ns(k, (int64_t)((uint64_t)ticks - (uint64_t)k->start_ticks)));
}

/*
 * Returns when an event begins, by its chunk's clock, or INT64_MIN (any time) if its type stores
 * that in another way.
 */
static int64_t start_ticks(const struct plan *p, const uint8_t *body, const uint8_t *limit)
{
    if (p->by_name)
        return INT64_MIN;
    if (likely(limit - body >= LONG_MAX_BYTES))
        return (int64_t)long_at(&body);
    struct cursor c = cursor_of(body, (size_t)(limit - body));
    int64_t ticks = read_long(p->pub.chunk, &c);
    return c.failed ? INT64_MIN : ticks;
}

/* Returns false when the row cannot be read ahead and its fields must be read by name. */
static bool row_read(const struct plan *p, const uint8_t *limit, struct rec_row *row)
{
    const uint8_t *at = row->body, *end = row->at + row->size;
    const struct rec_chunk *k = p->pub.chunk;
    if (p->by_name || limit - at < 2 * LONG_MAX_BYTES)
        return false;
    row->start_ns = start_ns(k, (int64_t)long_at(&at));
    row->duration_ns = ((const struct type *)(const void *)p->pub.type)->lasts
                           ? ticks_to_ns(k, (int64_t)long_at(&at))
                           : 0;
    return run_ops(p, at, end, limit, row->values);
}

/* Ends a part of the file. `least` is the earliest start of its events in ticks. */
static void end_part(struct batch *b, const uint8_t *at, int64_t least)
{
    uint64_t end = (uint64_t)(at - b->chunk->recording->data);
    bool no_time = least == INT64_MAX || least == INT64_MIN;
    b->parts[b->n_parts++] = (struct rec_part){end, no_time ? least : start_ns(b->chunk, least)};
}

/* What is known of an id, or NULL when it cannot be kept. */
#define FOLDED(of, id)                                                                \
    (likely((uint64_t)(id) < (of)->len) ||                                            \
             ((uint64_t)(id) < FOLD_IDS && vec_extend(of, (id) + 1 - (of)->len) >= 0) \
         ? &(of)->data[id]                                                            \
         : NULL)

/* Returns whether a row was counted with earlier ones. */
static bool fold(struct reader *from, const struct rec_row *row)
{
    const struct rec_plan *p = row->plan;
    const struct rec_fold *how = from->rows->fold;
    struct folding *f = &from->folding;
    uint32_t chunk = (uint32_t)from->chunk + 1;
    uint64_t id = (uint64_t)row->values[p->slot[how->by]],
             other = (uint64_t)row->values[p->slot[how->seen]];
    struct folded *seen = FOLDED(&f->seen, other), *by = FOLDED(&f->by, id);
    if (!seen || !by)
        return false;
    bool is_new = seen->chunk != chunk;
    seen->chunk = chunk;
    if (unlikely(by->chunk != chunk)) {
        if (vec_push(&f->firsts, *row) == 0)
            *by = (struct folded){chunk, 0};
        return false;
    }
    if (unlikely(is_new || by->events == UINT32_MAX))
        return false;
    by->events++;
    f->latest_ns = MAX(f->latest_ns, row->start_ns);
    return true;
}

/* Adds the rows of folded events to a batch. Returns whether the chunk has no more of them. */
static bool unfold(struct reader *from, struct batch *b)
{
    struct folding *f = &from->folding;
    for (; f->given < f->firsts.len && b->n < BATCH_ROWS; f->given++) {
        const struct rec_row *row = &f->firsts.data[f->given];
        uint32_t events = f->by.data[row->values[row->plan->slot[from->rows->fold->by]]].events;
        if (!events)
            continue;
        b->rows[b->n] = *row;
        b->rows[b->n].events = events;
        b->rows[b->n++].start_ns = f->latest_ns;
    }
    if (f->given < f->firsts.len)
        return false;
    vec_clear(&f->firsts);
    f->given = 0;
    f->latest_ns = INT64_MIN;
    return true;
}

/*
 * Fills a batch with the next rows of the chunk being read; b->last says whether they were the
 * last.
 */
static void fill(struct reader *from, struct batch *b)
{
    const struct rec_rows *rows = from->rows;
    struct rec_chunk *k = rows->r->chunks.data[from->chunk];
    const uint8_t *at = from->at ? from->at : k->start + CHUNK_HEAD,
                  *end = k->state == CHUNK_READY ? k->end : at;
    const uint8_t *part = at, *begin = at;
    b->n = b->n_parts = 0;
    b->chunk = k;
    b->damage = NULL;
    int64_t least = INT64_MAX; /* in ticks */
    while (at < end && b->n < BATCH_ROWS && (!rows->fold || at - begin < BATCH_BYTES)) {
        if (rows->what && at - part >= PART_BYTES) {
            end_part(b, at, least);
            part = at;
            least = INT64_MAX;
            if (b->n_parts == BATCH_PARTS)
                break;
        }
        uint32_t size;
        uint64_t id;
        const uint8_t *body = at;
        if (likely(k->compressed && end - at >= 2 * LONG_MAX_BYTES)) {
            size = (uint32_t)long_at(&body);
            id = long_at(&body);
        } else {
            struct cursor c = cursor_of(at, (size_t)(end - at));
            size = (uint32_t)read_int(k, &c);
            id = (uint64_t)read_long(k, &c);
            body = c.failed ? end + 1 : c.at;
        }
        if (unlikely(body > end || size < (size_t)(body - at) || size > (size_t)(end - at))) {
            b->damage = at;
            b->why = k->cut ? "the last event is not complete" : "an event's size is damaged";
            at = end;
            break;
        }
        const struct type *t = chunk_type(k, id);
        const struct plan *p = t ? t->plan : NULL;
        if (p && p->what & REC_TIME)
            least = MIN(least, start_ticks(p, body, end));
        if (p && p->what & REC_ROW) {
            struct rec_row *row = &b->rows[b->n];
            row->plan = &p->pub;
            row->at = at;
            row->body = body;
            row->size = size;
            row->damaged = false;
            row->events = 1;
            bool is_read = likely(row_read(p, end, row));
            if (!is_read)
                row_by_name(p, row);
            b->n += !(p->folds && is_read && fold(from, row));
        }
        at += size;
    }
    if (rows->what && b->n_parts < BATCH_PARTS)
        end_part(b, at, least);
    b->last = at >= end && unfold(from, b);
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

static void *read_ahead(void *arg)
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
        bool forgets = rows->forget;
        pthread_mutex_unlock(&rows->lock);
        fill(from, b);
        if (forgets)
            forget(rows, b);
        pthread_mutex_lock(&rows->lock);
        from->filled++;
        pthread_cond_broadcast(&rows->changed);
    }
    pthread_mutex_unlock(&rows->lock);
    return NULL;
}

/* ---- the caller's side ---- */

int recording_rows_open(struct rec_rows **ret, struct recording *r, const struct rec_wish *wishes,
                        size_t n)
{
    return recording_rows_first(ret, r, wishes, n, NULL);
}

static int reader_init(struct reader *from, struct rec_rows *rows, size_t number)
{
    from->rows = rows;
    from->chunk = number;
    from->folding.latest_ns = INT64_MIN;
    for (size_t i = 0; i < BATCHES; i++) {
        from->batches[i].rows = malloc(BATCH_ROWS * sizeof(struct rec_row));
        if (!from->batches[i].rows)
            return -ENOMEM;
    }
    from->threaded =
        rows->r->len >= ALONE_BYTES && pthread_create(&from->thread, NULL, read_ahead, from) == 0;
    return 0;
}

int recording_rows_first(struct rec_rows **ret, struct recording *r, const struct rec_wish *wishes,
                         size_t n, unsigned (*what)(int tag))
{
    struct rec_rows *rows = calloc(1, sizeof(*rows));
    if (!rows)
        return -ENOMEM;
    rows->r = r;
    rows->number = ++r->rows;
    rows->wishes = wishes;
    rows->what = what;
    rows->n_wishes = MIN(n, (size_t)REC_WISHES);
    pthread_mutex_init(&rows->lock, NULL);
    pthread_cond_init(&rows->changed, NULL);
    /* In the second pass the caller, which builds from the rows, is slower than a single reader. */
    rows->n_readers = what && r->chunks.len > 1 ? READERS : 1;
    int error = 0;
    for (size_t i = 0; error == 0 && i < rows->n_readers; i++)
        error = reader_init(&rows->readers[i], rows, i);
    if (error)
        recording_rows_close(rows);
    else
        *ret = rows;
    return error;
}

void recording_rows_close(struct rec_rows *rows)
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
        for (size_t k = 0; k < BATCHES; k++)
            free(from->batches[k].rows);
        vec_release(&from->folding.by);
        vec_release(&from->folding.seen);
        vec_release(&from->folding.firsts);
    }
    pthread_cond_destroy(&rows->changed);
    pthread_mutex_destroy(&rows->lock);
    vec_release(&rows->parts);
    free(rows);
}

void recording_rows_fold(struct rec_rows *rows, const struct rec_fold *fold)
{
    pthread_mutex_lock(&rows->lock);
    rows->fold = fold;
    pthread_mutex_unlock(&rows->lock);
}

uint64_t recording_rows_offset(const struct rec_rows *rows)
{
    return rows->current ? rows->current->end : 0;
}

void recording_rows_forget(struct rec_rows *rows)
{
    pthread_mutex_lock(&rows->lock);
    rows->forget = true;
    pthread_mutex_unlock(&rows->lock);
}

const struct rec_part *recording_rows_parts(const struct rec_rows *rows, size_t *ret_n)
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
        int error = chunk_prepare_ahead(k);
        if (!error)
            error = chunk_plan(rows, k);
        if (error == -ENOMEM)
            return error;
        pthread_mutex_lock(&rows->lock);
        rows->prepared = i + 1;
        pthread_cond_broadcast(&rows->changed);
        pthread_mutex_unlock(&rows->lock);
    }
    return 0;
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

int recording_rows_next(struct rec_rows *rows, const struct rec_row **ret, size_t *ret_n)
{
    struct recording *r = rows->r;
    recording_forget_strings(r);
    while (!rows->all_read) {
        const struct batch *before = rows->current;
        if (before && before->damage && !rows->what)
            recording_damage(r, before->damage, before->why);
        size_t chunk = before ? before->chunk->index + before->last : 0;
        if (before && before->last && chunk < r->chunks.len)
            chunk_leave(r, before->chunk);
        rows->all_read = chunk >= r->chunks.len;
        if (rows->all_read)
            break;
        int error = prepare_until(rows, chunk + 1 + rows->n_readers);
        if (error)
            return error;
        const struct batch *b = rows->current = take(rows, chunk);
        chunk_tell(b->chunk);
        for (size_t i = 0; i < b->n_parts; i++) {
            if (vec_push(&rows->parts, b->parts[i]) < 0)
                return -ENOMEM;
        }
        *ret = b->rows;
        *ret_n = b->n;
        if (b->n || rows->fold)
            return 1;
    }
    return 0;
}

static struct rec_object object_of(const struct rec_row *row)
{
    const struct rec_plan *p = row->plan;
    return (struct rec_object){p->chunk->recording, p->chunk, p->type, row->body,
                               row->at + row->size};
}

int64_t rec_row_long(const struct rec_row *row, unsigned wish, int64_t otherwise)
{
    int slot = row->plan->slot[wish];
    if (likely(slot >= 0 && !row->damaged))
        return row->values[slot];
    struct rec_object o = object_of(row);
    return slot == REC_ABSENT ? otherwise : rec_long(&o, row->plan->wishes[wish].name, otherwise);
}

int64_t rec_row_ns(const struct rec_row *row, unsigned wish, int64_t otherwise)
{
    int slot = row->plan->slot[wish];
    struct rec_object o = object_of(row);
    if (likely(slot >= 0 && !row->damaged))
        return rec_value_ns(
            &o, &(struct rec_value){.field = row->plan->field[wish], .number = row->values[slot]});
    return slot == REC_ABSENT ? otherwise : rec_ns(&o, row->plan->wishes[wish].name, otherwise);
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
