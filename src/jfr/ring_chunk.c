/* SPDX-License-Identifier: Apache-2.0 */
#include "base/cursor.h"
#include "base/file.h"
#include "jfr/ring_take.h"

#include <sys/syscall.h>
#include <unistd.h>

bool ring_read_checkpoint(const struct ring_taking *t, const uint8_t *at, const uint8_t *end,
                          struct ring_checkpoint *ret)
{
    if (!ring_read_event(t, at, end, &ret->e) || ret->e.type != 1)
        return false;
    struct cursor c = cursor_of(ret->e.body, (size_t)(ret->e.end - ret->e.body));
    ret->start = cursor_jfr_long(&c);
    ret->duration = cursor_jfr_long(&c);
    ret->delta = (int64_t)cursor_jfr_long(&c);
    ret->rest = c.at;
    ret->flags = cursor_u8(&c);
    return !c.failed;
}

/*
 * Reads what begins at an offset of the chunk, a checkpoint or the metadata, unless it is in
 * t->bytes already. Returns false when it is damaged.
 */
static bool fetch(struct ring_taking *t, const struct ring_chunk *s, uint64_t at,
                  struct ring_event *ret)
{
    uint64_t size = 0;
    for (uint64_t n = 64; at < s->size; n = size) {
        if (ring_read_at(t->fd, t->bytes + at, MIN(n, s->size - at),
                         ring_offset_of(t, s->index) + at))
            return false;
        if (size)
            break;
        const uint8_t *number = t->bytes + at;
        size = varint_jfr(&number);
        if (size > s->size - at)
            return false;
        if (size <= n)
            break;
    }
    return at < s->size && ring_read_event(t, t->bytes + at, t->bytes + s->size, ret);
}

/*
 * Appends a checkpoint to the chain whose last one is at *ret_last in the chunk (0: there is none),
 * and stores where it is.
 */
static int put_checkpoint(struct ring_taking *t, const struct ring_checkpoint *p,
                          uint64_t *ret_last)
{
    size_t at = t->out.len;
    uint64_t here = t->written + at;
    buf_add(&t->out, 4);
    buf_jfr_long(&t->out, 1);
    buf_jfr_long(&t->out, p->start);
    buf_jfr_long(&t->out, p->duration);
    buf_jfr_long(&t->out, *ret_last ? *ret_last - here : 0);
    buf_u8(&t->out, p->flags & ~JFR_OUTSIDE_CHAIN);
    buf_bytes(&t->out, p->rest + 1, (size_t)(p->e.end - p->rest) - 1);
    if (buf_error(&t->out))
        return buf_error(&t->out);
    uint32_t word = jfr_size_word((uint32_t)(t->out.len - at));
    memcpy(t->out.data + at, &word, sizeof(word));
    *ret_last = here;
    return 0;
}

/* Returns whether a checkpoint outside the chain has a thread. */
static bool has_thread(const struct ring_checkpoint *c)
{
    struct cursor rest = cursor_of(c->rest + 1, (size_t)(c->e.end - c->rest) - 1);
    cursor_jfr_long(&rest); /* the number of pools */
    return c->flags & JFR_OUTSIDE_CHAIN &&
           cursor_jfr_long(&rest) == JFR_POOL_THREAD + JFR_TYPE_BASE;
}

/*
 * Where a recorder was killed, begins the chain with the threads that are outside of it, because
 * other readers know no others.
 */
static int put_threads(struct ring_taking *t, const struct ring_chunk *s, uint64_t *ret_last)
{
    const uint8_t *end = t->bytes + s->size;
    struct ring_checkpoint c;
    struct ring_event e;
    int r = 0;
    for (const uint8_t *at = t->bytes + JFR_CHUNK_HEAD; r == 0 && ring_read_event(t, at, end, &e);
         at = e.end)
        if (e.type == 1 && ring_read_checkpoint(t, at, end, &c) && has_thread(&c))
            r = put_checkpoint(t, &c, ret_last);
    return r;
}

/* Copies the chain of constants, oldest first. *ret_last is the offset of the last one. */
static int put_chain(struct ring_taking *t, const struct ring_chunk *s, bool all_read,
                     uint64_t *ret_last)
{
    VEC(struct ring_checkpoint) chain = {0};
    uint64_t at = chunk_big_endian(t->bytes + HEAD_CONSTANTS);
    struct ring_checkpoint c;
    struct ring_event e;
    int r = 0;
    while (r == 0 && at >= JFR_CHUNK_HEAD && at < s->size && chain.len < s->size / 8 &&
           (all_read || fetch(t, s, at, &e)) &&
           ring_read_checkpoint(t, t->bytes + at, t->bytes + s->size, &c)) {
        r = vec_push(&chain, c);
        if (!c.delta)
            break;
        at += (uint64_t)c.delta;
    }
    for (size_t i = chain.len; r == 0 && i-- > 0;)
        r = put_checkpoint(t, &chain.data[i], ret_last);
    vec_release(&chain);
    return r ? r : buf_error(&t->out);
}

static void fill_header(const struct ring_taking *t, uint8_t *h, const struct ring_chunk *s,
                        bool last)
{
    uint64_t start = MAX(s->ticks, t->from), until = MAX(t->until, start);
    /* If the recorder was killed, the last events came after it last stored the chunk's end. */
    uint64_t ends = last ? until : MIN(MAX(s->ends, start), until);
    chunk_put_big_endian(h + HEAD_START, (uint64_t)(t->epoch_ns + (int64_t)start));
    chunk_put_big_endian(h + HEAD_TICKS, start);
    chunk_put_big_endian(h + HEAD_DURATION, ends - start);
    bool final = last && (t->cut->flushed || s->final);
    h[HEAD_FEATURES] =
        (uint8_t)(JFR_COMPRESSED | (final ? JFR_FINAL : 0) | (t->first ? JFR_PART_OF_RING : 0));
}

int ring_put_chunk(struct ring_taking *t, const struct ring_chunk *s, bool events, bool last)
{
    uint64_t constants = 0, metadata = chunk_big_endian(t->bytes + HEAD_METADATA);
    struct ring_event e;
    uint8_t head[JFR_CHUNK_HEAD];
    off_t start = lseek(t->to, 0, SEEK_CUR);
    if (start < 0)
        return -errno;
    memcpy(head, t->bytes, sizeof(head));
    t->written = 0;
    buf_clear(&t->out);
    buf_bytes(&t->out, head, sizeof(head)); /* written last, once the size is known */
    if (metadata < JFR_CHUNK_HEAD || metadata >= s->size || !fetch(t, s, metadata, &e) ||
        e.type != 0)
        return -EBADMSG;
    buf_bytes(&t->out, e.at, (size_t)(e.end - e.at));
    int r = last && events && !t->cut->flushed ? put_threads(t, s, &constants) : 0;
    if (r == 0)
        r = put_chain(t, s, events, &constants);
    if (r == 0 && events)
        r = ring_put_events(t, s);
    if (r || buf_error(&t->out))
        return r ? r : buf_error(&t->out);
    chunk_put_big_endian(head + HEAD_SIZE, t->written + t->out.len);
    chunk_put_big_endian(head + HEAD_METADATA, JFR_CHUNK_HEAD);
    chunk_put_big_endian(head + HEAD_CONSTANTS, constants);
    fill_header(t, head, s, last);
    r = file_write_all(t->to, t->out.data, t->out.len);
    if (r == 0 && pwrite(t->to, head, sizeof(head), start) < 0)
        r = -errno;
    t->part.chunks += r == 0;
    t->first = false;
    return r;
}

static int copy_bytes(struct ring_taking *t, uint64_t from, size_t n)
{
    while (n) {
        loff_t in = (loff_t)from;
        ssize_t r = syscall(SYS_copy_file_range, t->fd, &in, t->to, NULL, n, 0);
        if (r < 0 && errno == EINTR)
            continue;
        if (r < 0 && errno != EXDEV && errno != EINVAL && errno != ENOSYS && errno != EOPNOTSUPP &&
            errno != EPERM && errno != EBADF)
            return -errno;
        if (r <= 0) {
            size_t some = MIN(n, (size_t)t->head.segment_bytes);
            int error = ring_read_at(t->fd, t->bytes, some, from);
            if (error == 0)
                error = file_write_all(t->to, t->bytes, some);
            if (error)
                return error;
            r = (ssize_t)some;
        }
        from += (uint64_t)r;
        n -= (size_t)r;
    }
    return 0;
}

int ring_copy_chunk(struct ring_taking *t, const struct ring_chunk *s)
{
    uint8_t h[JFR_CHUNK_HEAD];
    int r = ring_read_at(t->fd, h, sizeof(h), ring_offset_of(t, s->index));
    if (r)
        return r;
    fill_header(t, h, s, false);
    chunk_put_big_endian(h + HEAD_SIZE, s->size);
    r = file_write_all(t->to, h, sizeof(h));
    if (r == 0)
        r = copy_bytes(t, ring_offset_of(t, s->index) + sizeof(h), s->size - sizeof(h));
    t->part.chunks += r == 0;
    t->first = false;
    return r;
}
