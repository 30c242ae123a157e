/* SPDX-License-Identifier: Apache-2.0 */
#include "jfr/append.h"

#include "base/clock.h"
#include "base/file.h"
#include "jfr/reader_internal.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    WRITE_BYTES = 1 << 20,
    SIZE_BYTES = 4,
    SIZE_BYTES_MOST = 5,
};

struct appending {
    int to;
    int64_t epoch_ns; /* the time of tick 0 of our clock */
    uint64_t done;    /* the bytes of the new chunk so far, including those in `out` */
    struct buf out, body;
    struct map moved; /* old -> new offset in the chunk, for events to which others refer */
};

static uint64_t our_ticks(const struct appending *a, const struct rec_chunk *k, int64_t ticks)
{
    int64_t since = rec_ticks_to_ns(k, (int64_t)((uint64_t)ticks - (uint64_t)k->start_ticks));
    int64_t ns = (int64_t)((uint64_t)k->start_ns - (uint64_t)a->epoch_ns + (uint64_t)since);
    return (uint64_t)MAX(ns, 0);
}

static int put(struct appending *a, const void *bytes, size_t len)
{
    int r = 0;
    buf_bytes(&a->out, bytes, len);
    a->done += len;
    if (a->out.len >= WRITE_BYTES && !buf_error(&a->out)) {
        r = file_write_all(a->to, a->out.data, a->out.len);
        buf_clear(&a->out);
    }
    return r < 0 ? r : buf_error(&a->out);
}

/* Writes an event whose bytes without the size are in a->body. */
static int put_body(struct appending *a)
{
    uint8_t size[SIZE_BYTES_MOST];
    size_t n = a->body.len + SIZE_BYTES < 1 << 7 * SIZE_BYTES ? SIZE_BYTES : SIZE_BYTES_MOST;
    uint64_t left = a->body.len + n;
    for (size_t i = 0; i < n; i++, left >>= 7)
        size[i] = (uint8_t)((left & 0x7f) | (i + 1 < n ? 0x80 : 0));
    int r = buf_error(&a->body);
    r = r ? r : put(a, size, n);
    return r ? r : put(a, a->body.data, a->body.len);
}

static bool is_ticks(const struct rec_field *f)
{
    return (f->unit == REC_TICKS_STAMP || f->unit == REC_TICKS) && f->type->kind == REC_LONG &&
           !f->array && !f->constant;
}

/*
 * Copies the fields of an event from c on, and converts ticks to our clock. Returns false if they
 * are damaged.
 */
static bool copy_fields(struct appending *a, const struct rec_chunk *k, const struct rec_type *t,
                        struct cursor *c)
{
    uint32_t n = t->n_fields;
    while (n && !is_ticks(&t->fields[n - 1]))
        n--; /* these bytes are copied unchanged */
    for (uint32_t i = 0; i < n; i++) {
        const struct rec_field *f = &t->fields[i];
        const uint8_t *from = c->at;
        if (!is_ticks(f)) {
            rec_chunk_skip_value(k, f, c, 0);
            buf_bytes(&a->body, from, c->failed ? 0 : (size_t)(c->at - from));
        } else if (f->unit == REC_TICKS_STAMP) {
            buf_jfr_long(&a->body, our_ticks(a, k, rec_read_long(k, c)));
        } else {
            buf_jfr_long(&a->body, (uint64_t)rec_ticks_to_ns(k, rec_read_long(k, c)));
        }
        if (c->failed)
            return false;
    }
    buf_bytes(&a->body, c->at, cursor_left(c));
    return true;
}

/* Copies a checkpoint, which contains the distance to the previous one. */
static bool copy_checkpoint(struct appending *a, const struct rec_chunk *k, uint64_t offset,
                            struct cursor *c)
{
    uint64_t start = our_ticks(a, k, rec_read_long(k, c)), duration = (uint64_t)rec_read_long(k, c);
    uint64_t delta = (uint64_t)rec_read_long(k, c);
    const uint64_t *to = delta ? map_get(&a->moved, offset + delta) : NULL;
    if (c->failed || (delta && !to))
        return false;
    buf_jfr_long(&a->body, start);
    buf_jfr_long(&a->body, duration);
    buf_jfr_long(&a->body, to ? *to - a->done : 0);
    buf_bytes(&a->body, c->at, cursor_left(c));
    return true;
}

/* Appends an event. Returns 0, -EBADMSG if the event is damaged, or another negative errno. */
static int append_event(struct appending *a, const struct rec_chunk *k, const uint8_t **at)
{
    const uint8_t *begin = *at;
    uint64_t offset = (uint64_t)(begin - k->start);
    struct cursor c = rec_chunk_cursor(k, begin);
    uint32_t size = (uint32_t)rec_read_int(k, &c);
    const uint8_t *after_size = c.at;
    uint64_t id = (uint64_t)rec_read_long(k, &c);
    if (c.failed || size < (size_t)(c.at - begin) || size > (size_t)(k->end - begin))
        return -EBADMSG;
    *at = c.end = begin + size;
    if ((id == TYPE_CHECKPOINT || id == TYPE_METADATA) && map_put(&a->moved, offset, a->done) < 0)
        return -ENOMEM;
    const struct type *t = id == TYPE_CHECKPOINT ? NULL : rec_chunk_type(k, id);
    if (t && t->pub.event && t->pub.tag >= 0)
        return 0; /* selected to be left out */
    if (id != TYPE_CHECKPOINT && (!t || !t->pub.event))
        return put(a, begin, size);
    buf_clear(&a->body);
    buf_bytes(&a->body, after_size, (size_t)(c.at - after_size));
    bool whole = t ? copy_fields(a, k, &t->pub, &c) : copy_checkpoint(a, k, offset, &c);
    return whole ? put_body(a) : -EBADMSG;
}

static int append_changed(struct appending *a, struct rec_chunk *k, off_t begin)
{
    uint8_t head[JFR_CHUNK_HEAD];
    int r = rec_chunk_prepare(k);
    if (r < 0)
        return r;
    if (!k->compressed || k->cut)
        return -EBADMSG;
    a->done = 0;
    map_clear(&a->moved);
    memcpy(head, k->start, sizeof(head));
    r = put(a, head, sizeof(head));
    for (const uint8_t *at = k->start + JFR_CHUNK_HEAD; at < k->end && r == 0;)
        r = append_event(a, k, &at);
    const uint64_t *constants = map_get(&a->moved, k->constants),
                   *metadata = map_get(&a->moved, k->metadata);
    if (r == 0 && (!constants || !metadata))
        r = -EBADMSG;
    if (r == 0)
        r = file_write_all(a->to, a->out.data, a->out.len);
    if (r < 0)
        return r;
    chunk_put_big_endian(head + HEAD_SIZE, a->done);
    chunk_put_big_endian(head + HEAD_CONSTANTS, *constants);
    chunk_put_big_endian(head + HEAD_METADATA, *metadata);
    chunk_put_big_endian(head + HEAD_TICKS, our_ticks(a, k, k->start_ticks));
    chunk_put_big_endian(head + HEAD_HZ, NS_PER_SECOND);
    ssize_t n = pwrite(a->to, head, sizeof(head), begin);
    return n == (ssize_t)sizeof(head) ? 0 : n < 0 ? -errno : -EIO;
}

static int append_chunk(struct appending *a, struct rec_chunk *k)
{
    off_t begin = lseek(a->to, 0, SEEK_END);
    if (begin < 0)
        return -errno;
    buf_clear(&a->out);
    int r = append_changed(a, k, begin);
    rec_chunk_leave(k->recording, k);
    if (r != -EBADMSG)
        return r;
    if (ftruncate(a->to, begin) < 0 || lseek(a->to, begin, SEEK_SET) < 0)
        return -errno;
    return file_write_all(a->to, k->start, (size_t)(k->end - k->start));
}

/* Reads the clock of a recording's first chunk, whose ticks are nanoseconds. */
static int read_clock(int fd, int64_t *ret_epoch_ns)
{
    uint8_t head[JFR_CHUNK_HEAD];
    ssize_t n = pread(fd, head, sizeof(head), 0);
    if (n != (ssize_t)sizeof(head))
        return n < 0 ? -errno : -EBADMSG;
    *ret_epoch_ns =
        (int64_t)(chunk_big_endian(head + HEAD_START) - chunk_big_endian(head + HEAD_TICKS));
    return 0;
}

int jfr_append(int to, int from, const struct rec_select *without)
{
    struct appending a = {.to = to, .out = BUF(SIZE_MAX / 4), .body = BUF(SIZE_MAX / 4)};
    struct recording *recording = NULL;
    _cleanup_(file_map_release) struct file_map map = {0};
    struct stat st;
    const char *why;
    if (fstat(to, &st) < 0)
        return -errno;
    int r = file_map_fd(&map, from);
    if (r == 0 && !map.len)
        r = -EBADMSG;
    if (r < 0)
        return r;
    r = read_clock(to, &a.epoch_ns);
    if (r == 0)
        r = recording_open_mapped(&recording, map.data, map.len, &why);
    if (r == 0)
        r = recording_select(recording, without);
    for (size_t i = 0; r == 0 && i < recording->chunks.len; i++)
        r = append_chunk(&a, recording->chunks.data[i]);
    if (r < 0)
        (void)!ftruncate(to, st.st_size);
    recording_close(recording);
    buf_release(&a.out);
    buf_release(&a.body);
    map_release(&a.moved);
    return r;
}
