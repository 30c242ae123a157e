/* SPDX-License-Identifier: Apache-2.0 */
#include "jfr/ring_read.h"

#include "base/clock.h"
#include "jfr/ring_take.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TRIES = 5 };

/*
 * A chunk that began this much later than the part contains no event that ended before it. If the
 * part is all of a full ring, the search ends with the first chunk that has none, because a ring
 * that was filled in seconds would have to be read as a whole.
 */
#define LATE_NS (10 * NS_PER_SECOND)

int ring_read_at(int fd, void *to, size_t n, uint64_t offset)
{
    for (size_t done = 0; done < n;) {
        ssize_t r = pread(fd, (uint8_t *)to + done, n - done, (off_t)(offset + done));
        if (r < 0 && errno == EINTR)
            continue;
        if (r <= 0)
            return r < 0 ? -errno : -ENODATA;
        done += (size_t)r;
    }
    return 0;
}

bool jfr_is_ring(int fd)
{
    char magic[sizeof(JFR_RING_MAGIC) - 1];
    return ring_read_at(fd, magic, sizeof(magic), 0) == 0 &&
           memcmp(magic, JFR_RING_MAGIC, sizeof(magic)) == 0;
}

static int read_head(struct ring_taking *t, const char **ret_why)
{
    struct jfr_ring_head *h = &t->head;
    int r = ring_read_at(t->fd, h, sizeof(*h), 0);
    if (r && r != -ENODATA)
        return r;
    *ret_why = "the file is not a ring of jvmscope";
    if (r || memcmp(h->magic, JFR_RING_MAGIC, sizeof(h->magic)) != 0)
        return -EBADMSG;
    *ret_why = "the ring was written by another version of jvmscope";
    if (h->version != JFR_RING_VERSION)
        return -EBADMSG;
    *ret_why = "the head of the ring is damaged";
    h->segments = le32toh(h->segments);
    h->segment_bytes = le64toh(h->segment_bytes);
    return h->segments && h->segments <= JFR_RING_SEGMENTS && h->segment_bytes >= JFR_RING_HEAD &&
                   h->segment_bytes < UINT32_MAX / 2
               ? 0
               : -EBADMSG;
}

/* Reads a chunk's header. Returns false when the segment holds no chunk that can be read. */
static bool read_header(const struct ring_taking *t, struct ring_chunk *s)
{
    uint8_t h[JFR_CHUNK_HEAD];
    static const uint8_t magic[8] = {'F', 'L', 'R', 0, 0, 2, 0, 1};
    if (ring_read_at(t->fd, h, sizeof(h), ring_offset_of(t, s->index)) ||
        memcmp(h, magic, sizeof(magic)) != 0)
        return false;
    s->size = chunk_big_endian(h + HEAD_SIZE);
    s->start_ns = chunk_big_endian(h + HEAD_START);
    s->ticks = chunk_big_endian(h + HEAD_TICKS);
    s->ends = s->ticks + chunk_big_endian(h + HEAD_DURATION);
    s->final = h[HEAD_FEATURES] & JFR_FINAL;
    return s->size > JFR_CHUNK_HEAD && s->size <= t->head.segment_bytes &&
           chunk_big_endian(h + HEAD_HZ) == NS_PER_SECOND && h[HEAD_FEATURES] & JFR_COMPRESSED &&
           s->ends >= s->ticks && s->ends < INT64_MAX && s->start_ns < INT64_MAX;
}

static int by_number(const void *a, const void *b)
{
    const struct ring_chunk *x = a, *y = b;
    return (x->number > y->number) - (x->number < y->number);
}

static int find_segments(struct ring_taking *t)
{
    struct stat st;
    if (fstat(t->fd, &st) < 0)
        return -errno;
    vec_clear(&t->segments);
    t->damaged = 0;
    for (uint32_t i = 0; i < t->head.segments; i++) {
        struct ring_chunk s = {.index = i, .number = le64toh(t->head.chunk[i])};
        if (!s.number)
            continue;
        if ((uint64_t)st.st_size < ring_offset_of(t, i + 1) || !read_header(t, &s))
            t->damaged++;
        else if (vec_push(&t->segments, s))
            return -ENOMEM;
    }
    vec_sort(&t->segments, by_number);
    size_t kept = 0;
    for (size_t i = 0; i < t->segments.len; i++) {
        struct ring_chunk *s = &t->segments.data[i];
        /* Chunks with larger numbers are later. A damaged head may contradict this. */
        if (kept && (s->number == t->segments.data[kept - 1].number ||
                     s->ticks < t->segments.data[kept - 1].ticks)) {
            t->damaged++;
            continue;
        }
        t->segments.data[kept++] = *s;
    }
    t->segments.len = kept;
    /*
     * If a recorder was killed while it changed chunks, it has not stored when the old one ended.
     */
    for (size_t i = 0; i + 1 < kept; i++)
        t->segments.data[i].ends = MAX(t->segments.data[i].ends, t->segments.data[i + 1].ticks);
    return 0;
}

/* Returns whether the recorder has begun to overwrite the segment since its entry was read. */
static bool is_overwritten(const struct ring_taking *t, const struct ring_chunk *s)
{
    uint64_t number;
    atomic_thread_fence(memory_order_seq_cst);
    uint64_t at = offsetof(struct jfr_ring_head, chunk) + s->index * sizeof(number);
    return ring_read_at(t->fd, &number, sizeof(number), at) || le64toh(number) != s->number;
}

/*
 * Reads a chunk into t->bytes and its types into t->kinds. Returns -EBADMSG when it is not valid.
 */
static int load_chunk(struct ring_taking *t, const struct ring_chunk *s)
{
    int r = ring_read_at(t->fd, t->bytes, s->size, ring_offset_of(t, s->index));
    /* Uses the size that was read first, because the recorder may have changed it since. */
    if (r == 0)
        chunk_put_big_endian(t->bytes + HEAD_SIZE, s->size);
    if (r == 0)
        r = ring_learn_kinds(t, s->size);
    return r == -ENODATA ? -EBADMSG : r;
}

/*
 * Sets the limits of the part, t->from and t->until, counted back from the end of the newest chunk
 * that can be read. Returns 0, or a negative errno with *ret_why.
 */
static int find_limits(struct ring_taking *t, const char **ret_why)
{
    const struct ring_chunk *newest = NULL;
    int r = -EBADMSG;
    while (t->segments.len && r == -EBADMSG) {
        newest = &t->segments.data[t->segments.len - 1];
        r = load_chunk(t, newest);
        if (r == -EBADMSG) {
            t->damaged++;
            t->segments.len--;
        }
    }
    if (r) {
        *ret_why = t->damaged ? "no chunk of the ring can be read" : "the ring is still empty";
        return r;
    }
    uint64_t end = newest->ends;
    if (!t->cut->flushed)
        end = MAX(end, ring_last_end(t, t->bytes, newest->size));
    /*
     * While the chunk is read again, the recorder may fill blocks after the position that is being
     * read, but none before it. Events that it writes from now on are left out, so that there is no
     * gap.
     */
    t->until = end;
    uint64_t oldest = t->segments.data[0].ticks;
    /*
     * If everything is requested, nothing is cut off. But once the ring has overwritten its first
     * chunk, the oldest one that is left also has some of the events that ended before it began,
     * because a capture may write them later. Only from the beginning of this chunk on are all
     * events there.
     */
    uint64_t all = t->segments.data[0].number == 1 ? 0 : oldest;
    if (t->cut->since_ticks)
        t->from = t->cut->since_ticks > oldest ? MIN(t->cut->since_ticks, end) : all;
    else
        t->from = t->cut->last_ns && end - oldest > t->cut->last_ns ? end - t->cut->last_ns : all;
    t->all = t->from == oldest;
    /* A clock may be set at any time; the newest time is the best one. */
    t->epoch_ns = (int64_t)newest->start_ns - (int64_t)newest->ticks;
    t->part = (struct jfr_ring_part){.start_ns = t->epoch_ns + (int64_t)MAX(t->from, oldest),
                                     .end_ns = t->epoch_ns + (int64_t)end,
                                     .since_ns = t->epoch_ns + (int64_t)oldest};
    return r;
}

static int take_segment(struct ring_taking *t, size_t i)
{
    const struct ring_chunk *s = &t->segments.data[i];
    bool last = i + 1 == t->segments.len, before = !last && s->ends < t->from;
    if (before && t->cut->flushed)
        return 0;
    if (!last && !before && (s->ticks >= t->from + LATE_NS || (t->all && t->caught_up)))
        return ring_copy_chunk(t, s);
    /* In a chunk that has ended, the chain has all constants. */
    if (before) {
        int r = ring_read_at(t->fd, t->bytes, JFR_CHUNK_HEAD, ring_offset_of(t, s->index));
        return r ? r : ring_put_chunk(t, s, false, false);
    }
    int r = load_chunk(t, s);
    if (r == 0 && s->ticks <= t->from)
        r = ring_learn_ends(t, t->bytes, s->size);
    uint64_t left_out = t->before;
    r = r ? r : ring_put_chunk(t, s, true, last);
    t->caught_up = s->ticks > t->from && t->before == left_out;
    return r;
}

static int take_all(struct ring_taking *t, const char **ret_why)
{
    int r = read_head(t, ret_why);
    if (r == 0)
        r = find_segments(t);
    if (r)
        return r;
    /* A number at the end of a chunk may be read beyond the end. */
    t->bytes = t->bytes ? t->bytes : calloc(1, t->head.segment_bytes + NUMBERS);
    if (!t->bytes)
        return -ENOMEM;
    t->out = t->out.limit ? t->out : BUF(2 * t->head.segment_bytes + (UINT32_C(1) << 20));
    t->first = true;
    t->caught_up = false;
    map_clear(&t->states);
    off_t start = lseek(t->to, 0, SEEK_CUR);
    r = start < 0 ? -errno : find_limits(t, ret_why);
    for (size_t i = 0; r == 0 && i < t->segments.len; i++) {
        off_t at = lseek(t->to, 0, SEEK_CUR);
        r = take_segment(t, i);
        if (is_overwritten(t, &t->segments.data[i])) {
            if (ftruncate(t->to, start) < 0 || lseek(t->to, start, SEEK_SET) < 0)
                return -errno;
            return -EAGAIN;
        }
        if (r == -EBADMSG) {
            t->damaged++;
            r = ftruncate(t->to, at) < 0 || lseek(t->to, at, SEEK_SET) < 0 ? -errno : 0;
        }
    }
    t->part.damaged = t->damaged;
    *ret_why = "no chunk of the ring can be read";
    return r == 0 && !t->part.chunks ? -EBADMSG : r;
}

int jfr_ring_take(int fd, const struct jfr_ring_cut *cut, int to, struct jfr_ring_part *ret,
                  const char **ret_why)
{
    struct ring_taking *t = calloc(1, sizeof(*t));
    if (!t)
        return -ENOMEM;
    t->fd = fd;
    t->to = to;
    t->cut = cut;
    int r = -EAGAIN;
    for (int i = 0; i < TRIES && r == -EAGAIN; i++)
        r = take_all(t, ret_why);
    if (r == 0)
        *ret = t->part;
    if (r != -EBADMSG)
        *ret_why = NULL;
    vec_release(&t->segments);
    map_release(&t->states);
    buf_release(&t->out);
    free(t->bytes);
    free(t);
    return r;
}
