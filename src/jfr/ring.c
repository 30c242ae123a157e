/* SPDX-License-Identifier: Apache-2.0 */
/* A ring of chunks in a file of a fixed size (ring.h). */
#include "jfr/ring.h"

#include "base/backed.h"
#include "jfr/internal.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

/*
 * A ring loses its oldest events a segment at a time, and each chunk repeats its dictionary. These
 * limits keep both small compared with the ring.
 */
#define SEGMENT_LEAST  (UINT64_C(1) << 20)
#define SEGMENTS_LEAST 4u
#define SEGMENTS_MOST  32u
#define CHUNK_NS_LEAST NS_PER_SECOND

_Static_assert(JFR_RING_HEAD % JFR_BLOCK == 0, "segments begin at a block");

/* The blocks that a new chunk gets immediately; metadata and constants must fit into them. */
#define FIRST_BLOCKS 64u

static uint64_t segment_offset(const struct ring *g, uint32_t i)
{
    return JFR_RING_HEAD + i * g->segment_bytes;
}

/* Stores the entry so that readers see it after everything that precedes it. */
static void set_entry(const struct ring *g, uint32_t i, uint64_t number)
{
    __atomic_store_n(&g->head->chunk[i], htole64(number), __ATOMIC_SEQ_CST);
    atomic_thread_fence(memory_order_seq_cst);
}

static int allocate(int fd, uint64_t bytes)
{
    struct rlimit limit;
    if (!getrlimit(RLIMIT_FSIZE, &limit) && bytes > limit.rlim_cur)
        return -EFBIG; /* the attempt would raise SIGXFSZ */
    int error;
    do
        error = posix_fallocate(fd, 0, (off_t)bytes);
    while (error == EINTR);
    return -error;
}

int ring_create(struct jfr_writer *w)
{
    struct ring *g = &w->ring;
    uint64_t bytes = w->options.ring_bytes;
    uint64_t n = MIN(MAX(bytes / SEGMENT_LEAST, (uint64_t)SEGMENTS_LEAST), (uint64_t)SEGMENTS_MOST);
    g->segments = (uint32_t)n;
    g->segment_bytes = bytes > JFR_RING_HEAD ? (bytes - JFR_RING_HEAD) / n : 0;
    g->segment_bytes -= g->segment_bytes % JFR_BLOCK;
    if (g->segment_bytes < SEGMENT_LEAST / 2 || g->segment_bytes >= UINT64_C(1) << 31)
        return -EINVAL;
    int r = allocate(w->fd, segment_offset(g, g->segments));
    if (r)
        return r;
    void *head = mmap(NULL, JFR_RING_HEAD, PROT_READ | PROT_WRITE, MAP_SHARED, w->fd, 0);
    if (head == MAP_FAILED)
        return -errno;
    g->head = head;
    int error = backed_add(head, JFR_RING_HEAD, &w->lost);
    if (error)
        return error;
    /* Without this the kernel reads megabytes of the file ahead when the head is touched. */
    (void)madvise(head, JFR_RING_HEAD, MADV_RANDOM);
    *g->head = (struct jfr_ring_head){.version = JFR_RING_VERSION,
                                      .segments = htole32(g->segments),
                                      .pid = htole32((uint32_t)getpid()),
                                      .segment_bytes = htole64(g->segment_bytes),
                                      .keep_ns = htole64(w->options.keep_ns),
                                      .created_ns = htole64(clock_ns(CLOCK_REALTIME))};
    memcpy(g->head->magic, JFR_RING_MAGIC, sizeof(g->head->magic));
    atomic_store(&w->bytes, segment_offset(g, g->segments));
    /* Each writer keeps a block of its own. Even a small segment must have room for all of them. */
    w->n_slots = MIN(w->n_slots, MAX((unsigned)(g->segment_bytes / JFR_BLOCK / 8), 4U));
    return 0;
}

void ring_release(struct jfr_writer *w)
{
    backed_remove(w->ring.head);
    if (w->ring.head)
        munmap(w->ring.head, JFR_RING_HEAD);
    w->ring.head = NULL;
}

/*
 * The duration of a chunk: an eighth of what is kept, so that discarding a chunk loses no more than
 * that.
 */
static uint64_t chunk_ns(const struct jfr_writer *w)
{
    return MIN(MAX(w->options.keep_ns / 8, CHUNK_NS_LEAST), 3600 * NS_PER_SECOND);
}

bool ring_is_due(const struct jfr_writer *w)
{
    const struct region *r = w->chunk.region;
    uint32_t next = (uint32_t)atomic_load((_Atomic uint64_t *)&r->bump);
    uint32_t margin = MIN(MAX(2 * w->pace, r->max_blocks / 16), r->max_blocks / 4);
    return next + r->reserve + margin >= r->max_blocks ||
           now_ns() - w->chunk.start_ns >= chunk_ns(w);
}

/*
 * Chooses the segment for the next chunk: one whose events are older than necessary, so that a
 * quiet program touches little of the file; otherwise one that was never used; otherwise the
 * oldest.
 */
static uint32_t choose(const struct jfr_writer *w)
{
    const struct ring *g = &w->ring;
    uint64_t now = now_ns();
    uint32_t oldest = g->segments, unused = g->segments;
    for (uint32_t i = 0; i < g->segments; i++) {
        const struct ring_segment *s = &g->segment[i];
        if (!s->start_ns)
            unused = MIN(unused, i);
        else if (i != g->current &&
                 (oldest == g->segments || s->start_ns < g->segment[oldest].start_ns))
            oldest = i;
    }
    bool old = oldest < g->segments && now - g->segment[oldest].end_ns > w->options.keep_ns;
    return old || unused == g->segments ? oldest : unused;
}

/*
 * Makes a chunk in a segment, with metadata and fixed constants. Nothing refers to it yet. On
 * failure the segment remains empty.
 */
static int make_chunk(struct jfr_writer *w, uint32_t segment, uint32_t number, struct chunk *ret)
{
    struct ring *g = &w->ring;
    struct region *r;
    int error = region_new(w, &r, segment_offset(g, segment), g->segment_bytes);
    if (error)
        return error;
    set_entry(g, segment, 0);
    g->segment[segment] = (struct ring_segment){0};
    uint32_t n =
        number == 1 && w->options.begins_small ? region_first(w) : FIRST_BLOCKS + r->reserve;
    n = MIN(n, r->max_blocks);
    region_cover(r, n);
    region_format(r, n);
    atomic_store(&r->bump, 1 | (uint64_t)region_limit(r) << 32);
    /*
     * The clock may have been set (chunk_touch). The reader that extracts events converts all
     * chunks to the newest clock.
     */
    w->epoch_ns = (int64_t)(clock_ns(CLOCK_REALTIME) - (now_ns() - w->base_ns));
    chunk_init(w, ret, r, 0, number, (uint64_t)n * JFR_BLOCK);
    error = w->types_held ? 0 : metadata_write(w, ret);
    if (error) {
        region_free(r);
        return error;
    }
    constants_start(w, ret);
    chunk_touch(w, ret);
    return 0;
}

/* Lets readers find the chunk from now on. */
static void publish(struct jfr_writer *w, uint32_t segment, const struct chunk *c)
{
    w->ring.segment[segment] = (struct ring_segment){.start_ns = c->start_ns};
    set_entry(&w->ring, segment, c->number);
    w->ring.current = segment;
    atomic_fetch_add(&w->chunks, 1);
}

int ring_begin(struct jfr_writer *w)
{
    int r = make_chunk(w, 0, 1, &w->chunk);
    if (r)
        return r;
    publish(w, 0, &w->chunk);
    atomic_store_explicit(&w->region, w->chunk.region, memory_order_release);
    return 0;
}

void ring_end(struct jfr_writer *w, uint64_t bytes)
{
    struct ring_segment *s = &w->ring.segment[w->ring.current];
    s->end_ns = now_ns();
    s->bytes = bytes;
    w->ring.done_bytes += bytes;
}

int ring_rotate(struct jfr_writer *w)
{
    struct chunk *old = &w->chunk, next = {0};
    struct region *r = old->region;
    /* Writes almost all of the dictionary now, and leaves room for what is added later. */
    constants_update(w, old);
    (void)!region_grow(w, r->reserve);
    uint32_t segment = choose(w);
    int error = make_chunk(w, segment, old->number + 1, &next);
    if (error)
        return error;
    uint32_t before = w->ring.current;
    publish(w, segment, &next);
    atomic_store_explicit(&w->region, next.region, memory_order_release);
    for (unsigned i = 0; i < w->n_slots; i++) {
        jfr_slot_acquire(&w->slots[i]);
        jfr_slot_retire(&w->slots[i]);
        jfr_slot_release(&w->slots[i]);
    }
    chunk_update_fully(w);
    jfr_slot_retire(&old->own);
    chunk_touch(w, old);
    uint64_t bytes = (uint64_t)(uint32_t)atomic_load(&r->bump) * JFR_BLOCK;
    jfr_header_store(old, HEAD_SIZE, bytes);
    w->ring.current = before;
    ring_end(w, bytes);
    w->ring.current = segment;
    uint64_t own_events = atomic_load(&old->own.events);
    *old = next;
    atomic_store(&old->own.events, own_events);
    region_free(r);
    dictionary_forget(w, old->number - 1);
    return 0;
}

bool jfr_writer_ring(struct jfr_writer *w, struct jfr_ring_state *ret)
{
    const struct ring *g = &w->ring;
    pthread_mutex_lock(&w->work);
    bool is_ring = g->head != NULL;
    uint64_t now_bytes = is_ring && !g->segment[g->current].end_ns
                             ? (uint64_t)(uint32_t)atomic_load(&w->chunk.region->bump) * JFR_BLOCK
                             : 0;
    *ret = (struct jfr_ring_state){.size = atomic_load(&w->bytes),
                                   .segment = g->segment_bytes,
                                   .used = now_bytes,
                                   .written = g->done_bytes + now_bytes,
                                   .since_ns = UINT64_MAX};
    for (uint32_t i = 0; is_ring && i < g->segments; i++) {
        const struct ring_segment *s = &g->segment[i];
        ret->chunks += s->start_ns != 0;
        ret->used += s->bytes;
        ret->since_ns = s->start_ns ? MIN(ret->since_ns, s->start_ns) : ret->since_ns;
    }
    dictionary_size(w, &ret->names, &ret->name_bytes);
    pthread_mutex_unlock(&w->work);
    return is_ring;
}
