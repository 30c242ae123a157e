/* SPDX-License-Identifier: Apache-2.0 */
#include "jfr/ring_read.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/cursor.h"
#include "base/file.h"
#include "base/map.h"
#include "base/vec.h"
#include "jfr/internal.h"
#include "jfr/reader.h"
#include "jfr/ring.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { TRIES = 5, KINDS = 16384, FEATURES = 67, COMPRESSED = 1, FINAL = 2 };

/* A chunk that began so much later than the part holds no event that ended before it. */
#define LATE_NS (10 * NS_PER_SECOND)

/* What an event type means for a part of a recording. */
enum what {
    UNKNOWN,
    MOMENT,     /* something that happened */
    STATE,      /* something that holds from then on; each chunk repeats it */
    WAITING,    /* a wait that goes on, unless its own event says that it ended */
    THREAD_END, /* ends what is known of a thread */
};

struct kind {
    uint8_t what;
    bool lasts, has_thread;
};

struct segment {
    uint32_t index;
    uint64_t number;      /* of the chunk */
    uint64_t size;        /* in bytes */
    uint64_t ticks, ends; /* when it began and ended */
    uint64_t start_ns;    /* when it began, since 1970 */
    bool final;
};

struct taking {
    int fd, to;
    const struct jfr_ring_cut *cut;
    struct jfr_ring_head head;
    VEC(struct segment) segments; /* by number */
    uint64_t damaged;
    uint64_t from, until; /* ticks */
    int64_t epoch_ns;     /* of tick 0 */
    uint8_t *bytes;       /* of one chunk */
    struct buf out;
    struct kind kinds[KINDS]; /* by type id; of one chunk */
    struct map states;        /* waits and threads: whether they ended before the part */
    struct jfr_ring_part part;
    bool first;
};

/* ---- the head ---- */

static int read_at(int fd, void *to, size_t n, uint64_t offset)
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
    return read_at(fd, magic, sizeof(magic), 0) == 0 &&
           memcmp(magic, JFR_RING_MAGIC, sizeof(magic)) == 0;
}

static int read_head(struct taking *t, const char **ret_why)
{
    struct jfr_ring_head *h = &t->head;
    int r = read_at(t->fd, h, sizeof(*h), 0);
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

static uint64_t offset_of(const struct taking *t, uint32_t segment)
{
    return JFR_RING_HEAD + segment * t->head.segment_bytes;
}

static uint64_t big_endian(const uint8_t *at)
{
    uint64_t v;
    memcpy(&v, at, sizeof(v));
    return be64toh(v);
}

static void put_big_endian(uint8_t *at, uint64_t v)
{
    v = htobe64(v);
    memcpy(at, &v, sizeof(v));
}

/* Reads a chunk's header. Returns false when the segment holds no chunk that could be read. */
static bool read_header(const struct taking *t, struct segment *s)
{
    uint8_t h[JFR_CHUNK_HEAD];
    static const uint8_t magic[8] = {'F', 'L', 'R', 0, 0, 2, 0, 1};
    if (read_at(t->fd, h, sizeof(h), offset_of(t, s->index)) ||
        memcmp(h, magic, sizeof(magic)) != 0)
        return false;
    s->size = big_endian(h + HEAD_SIZE);
    s->start_ns = big_endian(h + HEAD_START);
    s->ticks = big_endian(h + HEAD_TICKS);
    s->ends = s->ticks + big_endian(h + HEAD_DURATION);
    s->final = h[FEATURES] & FINAL;
    return s->size > JFR_CHUNK_HEAD && s->size <= t->head.segment_bytes &&
           big_endian(h + HEAD_HZ) == NS_PER_SECOND && h[FEATURES] & COMPRESSED &&
           s->ends >= s->ticks && s->ends < INT64_MAX && s->start_ns < INT64_MAX;
}

static int by_number(const void *a, const void *b)
{
    const struct segment *x = a, *y = b;
    return (x->number > y->number) - (x->number < y->number);
}

static int find_segments(struct taking *t)
{
    struct stat st;
    if (fstat(t->fd, &st) < 0)
        return -errno;
    vec_clear(&t->segments);
    t->damaged = 0;
    for (uint32_t i = 0; i < t->head.segments; i++) {
        struct segment s = {.index = i, .number = le64toh(t->head.chunk[i])};
        if (!s.number)
            continue;
        if ((uint64_t)st.st_size < offset_of(t, i + 1) || !read_header(t, &s))
            t->damaged++;
        else if (vec_push(&t->segments, s))
            return -ENOMEM;
    }
    vec_sort(&t->segments, by_number);
    size_t kept = 0;
    for (size_t i = 0; i < t->segments.len; i++) {
        struct segment *s = &t->segments.data[i];
        /* Times grow with numbers. A damaged head may say otherwise. */
        if (kept && (s->number == t->segments.data[kept - 1].number ||
                     s->ticks < t->segments.data[kept - 1].ticks)) {
            t->damaged++;
            continue;
        }
        t->segments.data[kept++] = *s;
    }
    t->segments.len = kept;
    /* A recorder that was killed at a change of chunks did not come to store when the old one
     * ended. */
    for (size_t i = 0; i + 1 < kept; i++)
        t->segments.data[i].ends = MAX(t->segments.data[i].ends, t->segments.data[i + 1].ticks);
    return 0;
}

/* Whether the recorder began to overwrite the segment since its entry was read. */
static bool is_overwritten(const struct taking *t, const struct segment *s)
{
    uint64_t number;
    atomic_thread_fence(memory_order_seq_cst);
    uint64_t at = offsetof(struct jfr_ring_head, chunk) + s->index * sizeof(number);
    return read_at(t->fd, &number, sizeof(number), at) || le64toh(number) != s->number;
}

/* ---- events ---- */

static enum what what_of(const char *name)
{
    static const char *const states[] = {"jdk.JVMInformation",    "jdk.OSInformation",
                                         "jdk.ActiveSetting",     "jvmscope.ThreadAnalysis",
                                         "jvmscope.ThreadObject", "jvmscope.PatternUnmatched"};
    for (size_t i = 0; i < ARRAY_SIZE(states); i++)
        if (strcmp(name, states[i]) == 0)
            return STATE;
    if (strcmp(name, "jvmscope.Waiting") == 0)
        return WAITING;
    return strcmp(name, "jdk.ThreadEnd") == 0 ? THREAD_END : MOMENT;
}

static bool field_is(const struct rec_type *type, uint32_t i, const char *name)
{
    return i < type->n_fields && strcmp(type->fields[i].name, name) == 0;
}

/* Learns the event types of the chunk in t->bytes. Returns 0 or a negative errno. */
static int learn_kinds(struct taking *t, size_t len)
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
            (struct kind){.what = (uint8_t)what_of(types[i].name),
                          .lasts = lasts,
                          .has_thread = field_is(&types[i], 1 + lasts, "eventThread")};
    }
    return 0;
}

struct event {
    const uint8_t *at, *body, *after_start, *end; /* body: behind size and type */
    uint64_t type;
    const struct kind *kind;
    uint64_t start, ends, thread; /* ticks */
};

static const struct kind unknown;

/* Nine bytes must be readable. */
static inline const uint8_t *read_number(const uint8_t *at, uint64_t *ret)
{
    uint64_t v = *at & 0x7f;
    for (unsigned shift = 7; *at++ & 0x80; shift += 7) {
        if (shift == 56) {
            v |= (uint64_t)*at++ << 56;
            break;
        }
        v |= (uint64_t)(*at & 0x7f) << shift;
    }
    *ret = v;
    return at;
}

/* The most bytes that read_event reads at once: six numbers. */
enum { NUMBERS = 6 * 9 };

/* t->bytes has NUMBERS bytes more than the chunk, so that an incomplete event is read safely. */
static inline bool read_event_here(const struct taking *t, const uint8_t *at, const uint8_t *end,
                                   struct event *ret)
{
    uint64_t size, number = 0;
    *ret = (struct event){.at = at, .kind = &unknown};
    ret->body = read_number(read_number(at, &size), &ret->type);
    if (size < (size_t)(ret->body - at) || size > (size_t)(end - at))
        return false;
    ret->end = at + size;
    if (ret->type < KINDS)
        ret->kind = &t->kinds[ret->type];
    if (ret->kind->what == UNKNOWN)
        return true;
    at = ret->after_start = read_number(ret->body, &ret->start);
    ret->ends = ret->start;
    ret->thread = 0;
    if (ret->kind->lasts) {
        at = read_number(at, &number);
        ret->ends += number;
    }
    if (ret->kind->has_thread)
        at = read_number(at, &ret->thread);
    if (ret->kind->what == THREAD_END)
        at = read_number(at, &ret->thread); /* the thread behind its carrier */
    if (at > ret->end)
        ret->kind = &unknown;
    return true;
}

/* Reads the event at `at`. Returns false when there is no complete one. */
static inline bool read_event(const struct taking *t, const uint8_t *at, const uint8_t *end,
                              struct event *ret)
{
    return at < end && read_event_here(t, at, end, ret);
}

static uint64_t wait_key(const struct event *e)
{
    return (e->thread + 1) * UINT64_C(0x9e3779b97f4a7c15) ^ e->start;
}

static uint64_t thread_key(uint64_t thread)
{
    return (thread + 1) * UINT64_C(0xbf58476d1ce4e5b9);
}

enum { GOES_ON = 1, ENDED = 2 };

static void end_of(struct taking *t, uint64_t key)
{
    uint64_t *state = map_get(&t->states, key);
    if (state)
        *state = ENDED;
}

static bool has_ended(const struct taking *t, uint64_t key)
{
    const uint64_t *state = map_get(&t->states, key);
    return state && *state == ENDED;
}

/* Learns which waits and threads that the chunk tells of ended before the part. */
static int learn_ends(struct taking *t, const uint8_t *bytes, size_t len)
{
    struct event e;
    const uint8_t *at = bytes + JFR_CHUNK_HEAD;
    for (; read_event(t, at, bytes + len, &e); at = e.end) {
        int r = 0;
        if (e.kind->what == WAITING)
            r = map_put(&t->states, wait_key(&e), GOES_ON);
        else if (e.kind->what == STATE && e.kind->has_thread)
            r = map_put(&t->states, thread_key(e.thread), GOES_ON);
        if (r)
            return r;
    }
    for (at = bytes + JFR_CHUNK_HEAD; t->states.len && read_event(t, at, bytes + len, &e);
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

static uint64_t last_end(const struct taking *t, const uint8_t *bytes, size_t len)
{
    struct event e;
    uint64_t last = 0;
    for (const uint8_t *at = bytes + JFR_CHUNK_HEAD; read_event(t, at, bytes + len, &e); at = e.end)
        if (e.kind->what != UNKNOWN && e.kind->what != WAITING)
            last = MAX(last, e.ends);
    return last;
}

enum choice { DROP, KEEP, MOVE /* to the beginning of the part */ };

/* begins: the chunk began before the part. */
static inline enum choice choose(const struct taking *t, const struct event *e, bool begins)
{
    switch ((enum what)e->kind->what) {
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
     * The end of a wait that was told as going on must not be dropped from a chunk that learn_ends
     * did not read.
     */
    return (e->ends >= t->from || (!begins && e->kind->lasts && e->kind->has_thread)) &&
                   e->ends <= t->until
               ? KEEP
               : DROP;
}

/* ---- a chunk that is written anew ---- */

/* Appends an event with another start. */
static void put_moved(struct buf *out, const struct event *e, uint64_t start)
{
    size_t at = out->len;
    buf_add(out, 4);
    buf_jfr_long(out, e->type);
    buf_jfr_long(out, start);
    buf_bytes(out, e->after_start, (size_t)(e->end - e->after_start));
    if (buf_error(out))
        return;
    uint32_t word = size_word((uint32_t)(out->len - at));
    memcpy(out->data + at, &word, sizeof(word));
}

struct checkpoint {
    struct event e;
    uint64_t start, duration;
    int64_t delta;
    const uint8_t *rest;
    uint8_t flags;
};

static bool read_checkpoint(const struct taking *t, const uint8_t *at, const uint8_t *end,
                            struct checkpoint *ret)
{
    if (!read_event(t, at, end, &ret->e) || ret->e.type != 1)
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
 * Reads what begins at an offset of the chunk that is not in t->bytes yet: a checkpoint, or the
 * metadata. Returns false when it is damaged.
 */
static bool fetch(struct taking *t, const struct segment *s, uint64_t at, struct event *ret)
{
    uint64_t size = 0;
    for (uint64_t n = 64; at < s->size; n = size) {
        if (read_at(t->fd, t->bytes + at, MIN(n, s->size - at), offset_of(t, s->index) + at))
            return false;
        if (size)
            break;
        read_number(t->bytes + at, &size);
        if (size > s->size - at)
            return false;
        if (size <= n)
            break;
    }
    return at < s->size && read_event(t, t->bytes + at, t->bytes + s->size, ret);
}

/* Copies the chain of constants, oldest first. *ret_last is the offset of the last one. */
static int put_chain(struct taking *t, const struct segment *s, bool all_read, uint64_t *ret_last)
{
    VEC(struct checkpoint) chain = {0};
    uint64_t at = big_endian(t->bytes + HEAD_CONSTANTS), last = 0;
    struct checkpoint c;
    struct event e;
    int r = 0;
    while (r == 0 && at >= JFR_CHUNK_HEAD && at < s->size && chain.len < s->size / 8 &&
           (all_read || fetch(t, s, at, &e)) &&
           read_checkpoint(t, t->bytes + at, t->bytes + s->size, &c)) {
        r = vec_push(&chain, c);
        if (!c.delta)
            break;
        at += (uint64_t)c.delta;
    }
    for (size_t i = chain.len; r == 0 && i-- > 0;) {
        const struct checkpoint *p = &chain.data[i];
        uint64_t here = t->out.len;
        buf_add(&t->out, 4);
        buf_jfr_long(&t->out, 1);
        buf_jfr_long(&t->out, p->start);
        buf_jfr_long(&t->out, p->duration);
        buf_jfr_long(&t->out, last ? last - here : 0);
        buf_bytes(&t->out, p->rest, (size_t)(p->e.end - p->rest));
        if (buf_error(&t->out))
            break;
        uint32_t word = size_word((uint32_t)(t->out.len - here));
        memcpy(t->out.data + here, &word, sizeof(word));
        last = here;
    }
    vec_release(&chain);
    *ret_last = last;
    return r ? r : buf_error(&t->out);
}

static void fill_header(const struct taking *t, uint8_t *h, const struct segment *s, bool last)
{
    uint64_t start = MAX(s->ticks, t->from), ends = MIN(MAX(s->ends, start), MAX(t->until, start));
    put_big_endian(h + HEAD_START, (uint64_t)(t->epoch_ns + (int64_t)start));
    put_big_endian(h + HEAD_TICKS, start);
    put_big_endian(h + HEAD_DURATION, ends - start);
    bool final = last && (t->cut->flushed || s->final);
    h[FEATURES] = (uint8_t)(COMPRESSED | (final ? FINAL : 0) | (t->first ? JFR_PART_OF_RING : 0));
}

/* Appends the events of the chunk in t->bytes that belong to the part. */
static int put_events(struct taking *t, const struct segment *s)
{
    const uint8_t *end = t->bytes + s->size, *run = t->bytes + JFR_CHUNK_HEAD, *at = run;
    bool begins = s->ticks < t->from;
    struct event e;
    for (; read_event(t, at, end, &e) && !buf_error(&t->out); at = e.end) {
        enum choice choice;
        struct checkpoint raw;
        if (e.type == 1) {
            /* Stacks that are not in the chain yet. */
            choice = read_checkpoint(t, at, end, &raw) && raw.flags & JFR_RAW_TRACE ? KEEP : DROP;
        } else {
            choice = choose(t, &e, begins);
            t->part.events += choice != DROP;
        }
        if (choice == KEEP)
            continue;
        buf_bytes(&t->out, run, (size_t)(at - run)); /* what was kept up to here */
        run = e.end;
        if (choice == MOVE)
            put_moved(&t->out, &e, t->from);
    }
    buf_bytes(&t->out, run, (size_t)(at - run));
    return buf_error(&t->out);
}

/*
 * Writes a chunk anew. events: it is in t->bytes as a whole, and those of its events that belong to
 * the part come along; otherwise it is needed for its constants alone.
 */
static int put_chunk(struct taking *t, const struct segment *s, bool events, bool last)
{
    uint64_t constants = 0, metadata = big_endian(t->bytes + HEAD_METADATA);
    struct event e;
    buf_clear(&t->out);
    buf_bytes(&t->out, t->bytes, JFR_CHUNK_HEAD);
    if (metadata < JFR_CHUNK_HEAD || metadata >= s->size || !fetch(t, s, metadata, &e) ||
        e.type != 0)
        return -EBADMSG;
    buf_bytes(&t->out, e.at, (size_t)(e.end - e.at));
    int r = put_chain(t, s, events, &constants);
    if (r == 0 && events)
        r = put_events(t, s);
    if (r || buf_error(&t->out))
        return r ? r : buf_error(&t->out);
    put_big_endian(t->out.data + HEAD_SIZE, t->out.len);
    put_big_endian(t->out.data + HEAD_METADATA, JFR_CHUNK_HEAD);
    put_big_endian(t->out.data + HEAD_CONSTANTS, constants);
    fill_header(t, t->out.data, s, last);
    r = write_all(t->to, t->out.data, t->out.len);
    t->part.chunks += r == 0;
    t->first = false;
    return r;
}

/* ---- a chunk that belongs to the part as a whole ---- */

static int copy_bytes(struct taking *t, uint64_t from, size_t n)
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
            int error = read_at(t->fd, t->bytes, some, from);
            if (error == 0)
                error = write_all(t->to, t->bytes, some);
            if (error)
                return error;
            r = (ssize_t)some;
        }
        from += (uint64_t)r;
        n -= (size_t)r;
    }
    return 0;
}

static int copy_chunk(struct taking *t, const struct segment *s)
{
    uint8_t h[JFR_CHUNK_HEAD];
    int r = read_at(t->fd, h, sizeof(h), offset_of(t, s->index));
    if (r)
        return r;
    fill_header(t, h, s, false);
    put_big_endian(h + HEAD_SIZE, s->size);
    r = write_all(t->to, h, sizeof(h));
    if (r == 0)
        r = copy_bytes(t, offset_of(t, s->index) + sizeof(h), s->size - sizeof(h));
    t->part.chunks += r == 0;
    t->first = false;
    return r;
}

/* ---- the part ---- */

/*
 * Reads a chunk into t->bytes and its types into t->kinds. -EBADMSG when it cannot be understood.
 */
static int load_chunk(struct taking *t, const struct segment *s)
{
    int r = read_at(t->fd, t->bytes, s->size, offset_of(t, s->index));
    /* The header that was read first is the one that counts. */
    if (r == 0)
        put_big_endian(t->bytes + HEAD_SIZE, s->size);
    if (r == 0)
        r = learn_kinds(t, s->size);
    return r == -ENODATA ? -EBADMSG : r;
}

/* The end of the ring, and with it the beginning of the part. */
static int find_limits(struct taking *t, const char **ret_why)
{
    const struct segment *newest = NULL;
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
        end = MAX(end, last_end(t, t->bytes, newest->size));
    t->until = t->cut->flushed ? end : UINT64_MAX;
    uint64_t oldest = t->segments.data[0].ticks;
    /* Of all that there is nothing is cut off. */
    if (t->cut->since_ticks)
        t->from = t->cut->since_ticks > oldest ? MIN(t->cut->since_ticks, end) : 0;
    else
        t->from = t->cut->last_ns && end - oldest > t->cut->last_ns ? end - t->cut->last_ns : 0;
    /* Clocks are set now and then; the newest time is the best one. */
    t->epoch_ns = (int64_t)newest->start_ns - (int64_t)newest->ticks;
    t->part = (struct jfr_ring_part){.start_ns = t->epoch_ns + (int64_t)MAX(t->from, oldest),
                                     .end_ns = t->epoch_ns + (int64_t)end,
                                     .since_ns = t->epoch_ns + (int64_t)oldest};
    return r;
}

static int take_segment(struct taking *t, size_t i)
{
    const struct segment *s = &t->segments.data[i];
    bool last = i + 1 == t->segments.len, before = !last && s->ends < t->from;
    if (before && t->cut->flushed)
        return 0;
    if (!last && !before && s->ticks >= t->from + LATE_NS)
        return copy_chunk(t, s);
    /* Of what was ended there are all constants in the chain. */
    if (before) {
        int r = read_at(t->fd, t->bytes, JFR_CHUNK_HEAD, offset_of(t, s->index));
        return r ? r : put_chunk(t, s, false, false);
    }
    int r = load_chunk(t, s);
    if (r == 0 && s->ticks < t->from)
        r = learn_ends(t, t->bytes, s->size);
    return r ? r : put_chunk(t, s, true, last);
}

static int take_all(struct taking *t, const char **ret_why)
{
    int r = read_head(t, ret_why);
    if (r == 0)
        r = find_segments(t);
    if (r)
        return r;
    /* Numbers at the end of a chunk may be read beyond it. */
    t->bytes = t->bytes ? t->bytes : calloc(1, t->head.segment_bytes + NUMBERS);
    if (!t->bytes)
        return -ENOMEM;
    t->out = t->out.limit ? t->out : BUF(2 * t->head.segment_bytes + (UINT32_C(1) << 20));
    t->first = true;
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
    struct taking *t = calloc(1, sizeof(*t));
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
    vec_release(&t->segments);
    map_release(&t->states);
    buf_release(&t->out);
    free(t->bytes);
    free(t);
    return r;
}
