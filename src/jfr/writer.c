/* SPDX-License-Identifier: Apache-2.0 */
/* Opens a recording, does the worker's rounds, rotates chunks, and closes the recording. */
#include "jfr/writer.h"

#include "jfr/internal.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>

/* Tick 0 is this long before the start, for events that began earlier. */
#define BEFORE_OPEN_NS (600 * NS_PER_SECOND)

/* The longest reading of the clocks, and the smallest change of the wall clock, that counts. */
enum { CLOCK_READ_NS = 100000, CLOCK_STEP_NS = 1000000 };

/* ---- chunks ---- */

void chunk_init(struct jfr_writer *w, struct chunk *c, struct region *r, unsigned lead,
                uint32_t number, uint64_t bytes)
{
    *c = (struct chunk){.region = r,
                        .header = r->blocks + lead,
                        .start = r->file_offset + lead,
                        .start_ns = MIN(now_ns(), w->ends_ns),
                        .number = number};
    uint8_t *h = c->header;
    static const uint8_t magic[8] = {'F', 'L', 'R', 0, 0, 2, 0, 1};
    uint8_t *first = h + JFR_CHUNK_HEAD;
    jfr_store_code(first, CODE_PAD);
    jfr_store_size(first, JFR_BLOCK - lead - JFR_CHUNK_HEAD);
    memcpy(h, magic, sizeof(magic));
    jfr_header_store(c, HEAD_SIZE, bytes);
    jfr_header_store(c, HEAD_CONSTANTS, 0);
    jfr_header_store(c, HEAD_METADATA, 0);
    jfr_header_store(c, HEAD_DURATION, 0);
    jfr_header_store(c, HEAD_START, (uint64_t)w->epoch_ns + (c->start_ns - w->base_ns));
    jfr_header_store(c, HEAD_TICKS, c->start_ns - w->base_ns);
    jfr_header_store(c, HEAD_HZ, NS_PER_SECOND);
    h[64] = h[65] = h[66] = 0; /* the chunk is complete */
    h[67] = 1;                 /* integers are compressed */
    c->own.at = first;
    c->own.end = r->blocks + JFR_BLOCK;
    c->own.span = &r->span[0];
    atomic_store(&r->span[0], 1);
    r->scanned[0] = lead + JFR_CHUNK_HEAD;
}

/*
 * The wall clock may have been set, or the machine may have slept. Everything in a ring is dated by
 * the clock as it is now, because who asks for the last minutes, or for those of a time of day,
 * goes by that. Two readings of the steady clock show whether this thread was held up in between.
 */
static void ring_set_clock(struct jfr_writer *w, struct chunk *c)
{
    uint64_t before = now_ns(), wall = clock_ns(CLOCK_REALTIME), after = now_ns();
    int64_t epoch_ns = (int64_t)(wall - (before - w->base_ns)), by = epoch_ns - w->epoch_ns;
    if (after - before > CLOCK_READ_NS || (by > -CLOCK_STEP_NS && by < CLOCK_STEP_NS))
        return;
    w->epoch_ns = epoch_ns;
    jfr_header_store(c, HEAD_START, (uint64_t)epoch_ns + (c->start_ns - w->base_ns));
}

void chunk_touch(struct jfr_writer *w, struct chunk *c)
{
    if (w->ring.head)
        ring_set_clock(w, c);
    uint64_t until = MIN(now_ns(), w->ends_ns);
    jfr_header_store(c, HEAD_DURATION, until - MIN(c->start_ns, until));
}

void jfr_writer_starts(struct jfr_writer *w, uint64_t ns)
{
    pthread_mutex_lock(&w->work);
    struct chunk *c = &w->chunk;
    if (c->number == 1 && !w->ring.head && ns > c->start_ns) {
        c->start_ns = ns;
        jfr_header_store(c, HEAD_DURATION, 0);
        jfr_header_store(c, HEAD_START, (uint64_t)w->epoch_ns + (ns - w->base_ns));
        jfr_header_store(c, HEAD_TICKS, ns - w->base_ns);
        chunk_touch(w, c);
    }
    pthread_mutex_unlock(&w->work);
}

void jfr_writer_ends(struct jfr_writer *w, uint64_t ns)
{
    pthread_mutex_lock(&w->work);
    w->ends_ns = MIN(w->ends_ns, ns);
    pthread_mutex_unlock(&w->work);
}

static uint64_t window_bytes(const struct jfr_writer *w)
{
    return 2 * w->options.chunk_bytes + (UINT64_C(64) << 20);
}

static int first_chunk(struct jfr_writer *w)
{
    struct region *r;
    int ret = region_new(w, &r, 0, window_bytes(w));
    if (ret)
        return ret;
    w->chunk.region = r;
    /* region_grow keeps the size in the header up to date, so give it a scratch header for now. */
    uint64_t scratch[9] = {0};
    w->chunk.header = (uint8_t *)scratch;
    atomic_store(&r->bump, 1);
    ret = region_grow(w, 1);
    if (!ret) {
        chunk_init(w, &w->chunk, r, 0, 1, w->file_end);
        ret = w->types_held ? 0 : metadata_write(w, &w->chunk);
    }
    if (ret) {
        region_free(r);
        w->chunk.region = NULL;
        return ret;
    }
    constants_start(w, &w->chunk);
    chunk_touch(w, &w->chunk);
    atomic_store(&w->chunks, 1);
    atomic_store_explicit(&w->region, r, memory_order_release);
    return 0;
}

/* ---- open and release ---- */

static void writer_release(struct jfr_writer *w)
{
    region_free(w->chunk.region);
    ring_release(w);
    for (size_t i = 0; i < JFR_LOSSES; i++)
        free(atomic_load(&w->named_reasons[i]));
    traces_release(&w->traces);
    dictionary_release_types(w);
    metadata_release(&w->metadata);
    free(w->slots);
    writer_file_drop_replaced(w);
    free(w->unnamed);
    if (w->fd >= 0)
        close(w->fd);
    pthread_mutex_destroy(&w->work);
    pthread_mutex_destroy(&w->dict);
    free(w);
}

static int writer_init(struct jfr_writer *w, const struct jfr_writer_options *options)
{
    w->fd = w->replaced = -1;
    metadata_init(&w->metadata);
    w->options = *options;
    struct jfr_writer_options *o = &w->options;
    if (!o->chunk_bytes)
        o->chunk_bytes = UINT64_C(64) << 20;
    o->chunk_bytes = MIN(MAX(o->chunk_bytes, UINT64_C(1) << 20), UINT64_C(1) << 30);
    if (!o->chunk_ns)
        o->chunk_ns = 3600 * NS_PER_SECOND;
    if (!o->trace_bytes)
        o->trace_bytes = UINT64_C(256) << 20;
    long cpus = sysconf(_SC_NPROCESSORS_CONF);
    w->n_slots = o->slots ? o->slots : (unsigned)MIN(MAX(4 * cpus, 16), 256);
    uint64_t now = now_ns();
    w->base_ns = now > BEFORE_OPEN_NS ? now - BEFORE_OPEN_NS : 0;
    w->epoch_ns = (int64_t)(clock_ns(CLOCK_REALTIME) - (now - w->base_ns));
    w->opened_ns = w->reported_ns = now;
    w->ends_ns = UINT64_MAX;
    w->types_held = o->holds_types;
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutex_init(&w->work, &attributes);
    pthread_mutex_init(&w->dict, &attributes);
    pthread_mutexattr_destroy(&attributes);
    void *slots = NULL;
    if (posix_memalign(&slots, 64, w->n_slots * sizeof(*w->slots)))
        return -ENOMEM;
    w->slots = memset(slots, 0, w->n_slots * sizeof(*w->slots));
    int ret = traces_init(&w->traces, o->trace_bytes & ~UINT64_C(15), o->ring_bytes != 0);
    if (!ret)
        ret = dictionary_add_types(w, jfr_builtin_types, JFR_BUILTINS, NULL);
    return ret ? ret : dictionary_add_type_constants(w);
}

int jfr_writer_open(struct jfr_writer **ret, const char *path,
                    const struct jfr_writer_options *options)
{
    static const struct jfr_writer_options defaults;
    struct jfr_writer *w = NULL;
    if (posix_memalign((void **)&w, 64, sizeof(*w)))
        return -ENOMEM;
    memset(w, 0, sizeof(*w));
    w->waker = options && options->waker ? options->waker : &w->own_waker;
    int error = writer_init(w, options ? options : &defaults);
    bool ring = w->options.ring_bytes != 0;
    if (!error) {
        w->fd = path ? writer_file_create(w, path) : ring ? writer_file_in_memory() : -EINVAL;
        error = w->fd < 0 ? w->fd : ring ? ring_create(w) : 0;
        if (!error)
            error = ring ? ring_begin(w) : first_chunk(w);
        if (error && path && w->fd >= 0 && !w->unnamed)
            unlink(path);
    }
    if (error) {
        writer_release(w);
        return error;
    }
    *ret = w;
    return 0;
}

/* ---- the worker's rounds ---- */

void chunk_update_fully(struct jfr_writer *w)
{
    while (!constants_update(w, &w->chunk)) {
        struct timespec nap = {0, 50000};
        nanosleep(&nap, NULL);
    }
}

static int rotate(struct jfr_writer *w);

/* Returns whether the file still has all that was allocated in it. */
static bool is_whole(const struct jfr_writer *w)
{
    struct stat st;
    return fstat(w->fd, &st) < 0 || (uint64_t)st.st_size >= atomic_load(&w->bytes);
}

bool jfr_writer_is_cut(const struct jfr_writer *w)
{
    return atomic_load(&w->lost);
}

static int do_work(struct jfr_writer *w)
{
    if (atomic_load(&w->closed))
        return -EBADF;
    writer_file_drop_replaced(w);
    if (!is_whole(w))
        atomic_store(&w->lost, true);
    if (atomic_load(&w->lost))
        return -ESTALE;
    int ret = region_grow(w, 4 * w->n_slots);
    region_prefault(w);
    atomic_store(&w->error, ret == -EAGAIN ? 0 : ret);
    if (atomic_load(&w->error))
        atomic_store(&w->failure, ret);
    constants_update(w, &w->chunk);
    losses_write(w, false);
    chunk_touch(w, &w->chunk);
    if (w->ring.head) {
        ret = ring_is_due(w) ? ring_rotate(w) : 0;
        if (ret)
            atomic_store(&w->failure, ret);
        return ret;
    }
    uint64_t used = (uint64_t)(uint32_t)atomic_load(&w->chunk.region->bump) * JFR_BLOCK;
    if (used >= w->options.chunk_bytes || now_ns() - w->chunk.start_ns >= w->options.chunk_ns) {
        int rotated = rotate(w);
        ret = ret ? ret : rotated;
    }
    return ret;
}

int jfr_writer_work(struct jfr_writer *w)
{
    pthread_mutex_lock(&w->work);
    traces_prefault(&w->traces);
    traces_work(&w->traces, now_ns());
    int ret = do_work(w);
    pthread_mutex_unlock(&w->work);
    return ret;
}

int jfr_writer_flush(struct jfr_writer *w)
{
    pthread_mutex_lock(&w->work);
    int ret = do_work(w);
    if (ret != -EBADF) {
        for (unsigned i = 0; i < w->n_slots; i++) {
            /* When we have the slot, its previous writer has committed. */
            jfr_slot_acquire(&w->slots[i]);
            jfr_slot_release(&w->slots[i]);
        }
        chunk_update_fully(w);
        chunk_touch(w, &w->chunk);
    }
    pthread_mutex_unlock(&w->work);
    return ret;
}

/* Writes metadata with the types that the last one lacks. */
static int describe(struct jfr_writer *w)
{
    if (w->types_held || w->types.len <= w->described)
        return 0;
    int ret = metadata_write(w, &w->chunk);
    if (ret == -ENOSPC && region_grow(w, 4 * w->n_slots) == 0)
        ret = metadata_write(w, &w->chunk);
    return ret;
}

int jfr_declare(struct jfr_writer *w, const struct jfr_type *rows, size_t n, uint32_t *ret_ids)
{
    pthread_mutex_lock(&w->work);
    int ret = atomic_load(&w->closed) ? -EBADF : dictionary_add_types(w, rows, n, ret_ids);
    ret = ret ? ret : describe(w);
    pthread_mutex_unlock(&w->work);
    return ret;
}

void jfr_hold_types(struct jfr_writer *w)
{
    pthread_mutex_lock(&w->work);
    w->types_held = true;
    pthread_mutex_unlock(&w->work);
}

int jfr_release_types(struct jfr_writer *w)
{
    pthread_mutex_lock(&w->work);
    w->types_held = false;
    int ret = describe(w);
    pthread_mutex_unlock(&w->work);
    return ret;
}

/* ---- rotation ---- */

/*
 * The next chunk starts after the room that the current one keeps. For a reader both are one chunk
 * until the last step, which stores the current chunk's size; until then the next header lies
 * within a pad.
 */
static int rotate(struct jfr_writer *w)
{
    if (w->ring.head)
        return ring_rotate(w);
    struct chunk *old = &w->chunk, next = {0};
    struct region *r = old->region;
    /*
     * Write almost all of the dictionary now, while room for it can still grow. The room for the
     * rest is estimated from what is added meanwhile.
     */
    constants_update(w, old);
    uint64_t constants = w->constant_bytes;
    constants_update(w, old);
    constants = MIN(w->constant_bytes - constants, w->options.chunk_bytes);
    const uint32_t slack = 2 * w->n_slots + w->pace,
                   dictionary = JFR_RESERVE + (uint32_t)(4 * constants / JFR_BLOCK);
    int ret = region_grow(w, slack + dictionary + w->n_slots + 16);
    if (ret)
        return ret;
    uint64_t bump = atomic_load(&r->bump);
    uint32_t boundary = (uint32_t)bump + slack + dictionary;
    if (boundary + 16 > r->ready)
        return -EAGAIN; /* the writers were faster; try again in the next round */
    struct region *fresh;
    ret = region_new(w, &fresh, r->file_offset + (uint64_t)boundary * JFR_BLOCK, window_bytes(w));
    if (ret)
        return ret;
    uint32_t inherited = r->ready - boundary;
    /* From here on writers have only the slack in the old region. */
    do
        if ((uint32_t)bump > boundary - dictionary) {
            region_free(fresh);
            return -EAGAIN;
        }
    while (!atomic_compare_exchange_weak(&r->bump, &bump,
                                         (uint32_t)bump | (uint64_t)(boundary - dictionary) << 32));
    r->ready = boundary;
    /*
     * The blocks after the boundary are already formatted and unused; they now belong to the new
     * region.
     */
    fresh->ready = inherited;
    atomic_store(&fresh->bump, 1 | (uint64_t)(inherited > JFR_RESERVE ? inherited - JFR_RESERVE : 1)
                                       << 32);
    chunk_init(w, &next, fresh, JFR_MIN_PAD, old->number + 1,
               w->file_end - fresh->file_offset - JFR_MIN_PAD);
    atomic_store_explicit(&w->region, fresh, memory_order_release);
    for (unsigned i = 0; i < w->n_slots; i++) {
        jfr_slot_acquire(&w->slots[i]);
        jfr_slot_retire(&w->slots[i]);
        jfr_slot_release(&w->slots[i]);
    }
    ret = metadata_write(w, &next);
    constants_start(w, &next);
    chunk_update_fully(w);
    jfr_slot_retire(&old->own);
    chunk_touch(w, old);
    chunk_touch(w, &next);
    jfr_header_store(old, HEAD_SIZE, next.start - old->start);
    jfr_store_size(fresh->blocks, JFR_MIN_PAD);
    uint64_t own_events = atomic_load(&old->own.events);
    *old = next;
    atomic_store(&old->own.events, own_events);
    atomic_fetch_add(&w->chunks, 1);
    region_free(r);
    dictionary_forget(w, old->number - 1);
    return ret;
}

int jfr_writer_rotate(struct jfr_writer *w)
{
    pthread_mutex_lock(&w->work);
    int ret = do_work(w);
    if (ret != -EBADF && ret != -ESTALE)
        for (int tries = 0; tries < 100 && (ret = rotate(w)) == -EAGAIN; tries++)
            ;
    pthread_mutex_unlock(&w->work);
    return ret;
}

/* ---- close ---- */

static int finish(struct jfr_writer *w)
{
    struct chunk *c = &w->chunk;
    int ret = do_work(w);
    atomic_store(&w->closed, true);
    for (unsigned i = 0; i < w->n_slots; i++) {
        jfr_slot_acquire(&w->slots[i]); /* for good */
        jfr_slot_retire(&w->slots[i]);
    }
    chunk_update_fully(w);
    losses_write(w, true);
    /* If the file could not grow, the reserve is used here. */
    chunk_update_fully(w);
    jfr_slot_retire(&c->own);
    chunk_touch(w, c);
    uint64_t end =
        c->region->file_offset + (uint64_t)(uint32_t)atomic_load(&c->region->bump) * JFR_BLOCK;
    jfr_header_store(c, HEAD_SIZE, end - c->start);
    c->header[67] = 3; /* this is the last chunk */
    if (w->ring.head) {
        ring_end(w, end - c->start);
        return ret;
    }
    if (ret != -ESTALE && ftruncate(w->fd, (off_t)end) && !ret)
        ret = -errno;
    atomic_store(&w->bytes, end);
    return ret;
}

int jfr_writer_close(struct jfr_writer *w)
{
    pthread_mutex_lock(&w->work);
    int ret = atomic_load(&w->closed) ? 0 : finish(w);
    pthread_mutex_unlock(&w->work);
    return ret;
}

void jfr_writer_free(struct jfr_writer *w)
{
    if (!w)
        return;
    (void)jfr_writer_close(w);
    writer_release(w);
}

int jfr_writer_descriptor(const struct jfr_writer *w)
{
    return w->fd;
}

uint64_t jfr_writer_ticks(const struct jfr_writer *w, uint64_t ns)
{
    return ns - MIN(w->base_ns, ns);
}

uint64_t jfr_writer_chunks(const struct jfr_writer *w)
{
    return atomic_load(&((struct jfr_writer *)w)->chunks);
}

void jfr_writer_counters(const struct jfr_writer *w, struct jfr_counters *ret)
{
    struct jfr_writer *v = (struct jfr_writer *)w; /* C17's atomic loads do not accept const */
    *ret = (struct jfr_counters){.events = atomic_load(&v->chunk.own.events),
                                 .bytes = atomic_load(&v->bytes),
                                 .chunks = atomic_load(&v->chunks),
                                 .lost_busy = losses_of_events(w, LOST_BUSY),
                                 .lost_room = losses_of_events(w, LOST_ROOM),
                                 .lost_size = losses_of_events(w, LOST_SIZE),
                                 .lost_shape = losses_of_events(w, LOST_SHAPE),
                                 .lost_closed = atomic_load(&v->lost_closed),
                                 .traces = atomic_load(&v->traces.count),
                                 .lost_traces = atomic_load(&v->traces.lost),
                                 .shortened_traces = atomic_load(&v->traces.shortened),
                                 .unresolved = atomic_load(&v->unresolved),
                                 .lost_constants = atomic_load(&v->lost_constants),
                                 .error = atomic_load(&v->failure)};
    for (unsigned i = 0; i < w->n_slots; i++)
        ret->events += atomic_load(&w->slots[i].events);
}
