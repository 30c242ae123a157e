/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Provides room in the file: mapped parts whose blocks are allocated in advance, so that no store
 * can hit a full disk.
 */
#include "base/backed.h"
#include "base/pages.h"
#include "jfr/internal.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>

#define MIN_STEP 128u  /* in blocks: 1 MiB */
#define MAX_STEP 4096u /* 32 MiB */
#define AT_ONCE  32u   /* blocks whose pages are made present by one system call */
#define COVER    8192u /* the number of blocks in one pad, because an event's size has 28 bits */

int region_new(struct jfr_writer *w, struct region **ret, uint64_t file_offset, uint64_t bytes)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    uint64_t lead = file_offset % page;
    struct region *r = calloc(1, sizeof(*r));
    if (!r)
        return -ENOMEM;
    r->max_blocks = (uint32_t)(bytes / JFR_BLOCK);
    r->reserve = MIN(JFR_RESERVE, r->max_blocks / 8); /* a ring's segments may be small */
    r->file_offset = file_offset;
    r->map_len = lead + (uint64_t)r->max_blocks * JFR_BLOCK;
    r->span = calloc(r->max_blocks, sizeof(*r->span));
    r->scanned = calloc(r->max_blocks, sizeof(*r->scanned));
    int error = r->span && r->scanned ? 0 : ENOMEM;
    if (!error) {
        /*
         * The mapping extends beyond the end of the file; only what region_grow has allocated is
         * touched.
         */
        void *map = mmap(NULL, r->map_len, PROT_READ | PROT_WRITE, MAP_SHARED, w->fd,
                         (off_t)(file_offset - lead));
        if (map == MAP_FAILED)
            error = errno;
        else
            r->map = map;
        /*
         * The first page that is touched in each part of the file would otherwise have the kernel
         * read megabytes of the empty file ahead, which costs time and memory.
         */
        if (!error)
            (void)madvise(map, r->map_len, MADV_RANDOM);
        if (!error)
            error = -backed_add(map, r->map_len, &w->lost);
    }
    if (error) {
        region_free(r);
        return -error;
    }
    r->blocks = r->map + lead;
    *ret = r;
    return 0;
}

void region_free(struct region *r)
{
    if (!r)
        return;
    backed_remove(r->map);
    if (r->map)
        munmap(r->map, r->map_len);
    free(r->span);
    free(r->scanned);
    free(r);
}

static void put_pad(struct region *r, uint32_t block, uint32_t n)
{
    uint8_t *at = r->blocks + (uint64_t)block * JFR_BLOCK;
    jfr_store_code(at, CODE_PAD);
    jfr_store_size(at, n * JFR_BLOCK);
}

/*
 * Covers n new blocks with a few pads before they become part of the chunk, so that the chunk is
 * valid for readers.
 */
void region_cover(struct region *r, uint32_t n)
{
    for (uint32_t done = 0; done < n; done += COVER)
        put_pad(r, r->ready + done, MIN(n - done, COVER));
}

/*
 * Gives each block a pad of its own, the last block first, so that the pads that cover all of them
 * are split last.
 */
void region_format(struct region *r, uint32_t n)
{
    /*
     * One system call instead of a fault for each page. The program cannot map memory during the
     * call, so each is short.
     */
    for (uint32_t i = 0; i < n; i += AT_ONCE)
        pages_to_write(r->blocks + (uint64_t)(r->ready + i) * JFR_BLOCK,
                       (uint64_t)MIN(n - i, AT_ONCE) * JFR_BLOCK);
    for (uint32_t i = r->ready + n; i-- > r->ready;) {
        put_pad(r, i, 1);
        /*
         * Touch the second page as well; a page fault here is better than one in a signal handler.
         */
        *(volatile uint8_t *)(r->blocks + (uint64_t)i * JFR_BLOCK + JFR_BLOCK / 2) = 0;
    }
    r->ready += n;
}

static int allocate(struct jfr_writer *w, uint64_t end)
{
    struct rlimit limit;
    if (w->ring.head)
        return 0; /* the whole ring was allocated when it was opened */
    if (!getrlimit(RLIMIT_FSIZE, &limit) && end > limit.rlim_cur)
        return -EFBIG; /* the attempt would raise SIGXFSZ */
    if (w->options.max_bytes && end > w->options.max_bytes)
        return -EFBIG;
    /* The file keeps its size, if the file system can allocate beyond it (extend). */
    int r;
    do
        r = fallocate(w->fd, FALLOC_FL_KEEP_SIZE, (off_t)w->file_end, (off_t)(end - w->file_end));
    while (r < 0 && errno == EINTR);
    if (r == 0 || errno != EOPNOTSUPP)
        return r < 0 ? -errno : 0;
    do
        r = posix_fallocate(w->fd, (off_t)w->file_end, (off_t)(end - w->file_end));
    while (r == EINTR);
    return -r;
}

/*
 * Adds n allocated blocks to the file and to its last chunk. A program may be killed at any time,
 * and other tools refuse a file that is longer than its chunks. The size of the file, that of the
 * chunk, and the pad that covers the new blocks therefore change at once: the pad is in the last
 * block, if that is unused, and its page and the header's are made writable before. The blocks are
 * formatted only after that, because it takes a thousand times as long.
 */
static int extend(struct jfr_writer *w, uint64_t end, uint32_t n)
{
    struct region *r = w->chunk.region;
    uint8_t *last = r->blocks + (uint64_t)(r->ready - 1) * JFR_BLOCK;
    bool unused = !w->ring.head && r->ready > (uint32_t)atomic_load(&r->bump);
    if (unused) {
        chunk_touch(w, &w->chunk);
        jfr_store_size(last, JFR_BLOCK);
    } else if (w->ring.head) {
        region_cover(r, n); /* an earlier chunk precedes it */
    }
    if (!w->ring.head && ftruncate(w->fd, (off_t)end) < 0)
        return -errno;
    if (!unused && !w->ring.head)
        region_cover(r, n);
    jfr_header_store(&w->chunk, HEAD_SIZE, end - w->chunk.start);
    if (unused)
        jfr_store_size(last, (1 + n) * JFR_BLOCK);
    region_format(r, n);
    if (unused)
        jfr_store_size(last, JFR_BLOCK);
    return 0;
}

uint32_t region_first(const struct jfr_writer *w)
{
    enum { OTHERS = 24 }; /* metadata and the reserve among them */

    return w->options.begins_small ? MIN(w->n_slots + OTHERS, MIN_STEP) : MIN_STEP;
}

uint32_t region_limit(const struct region *r)
{
    return r->ready - MIN(r->reserve, r->ready / 3);
}

static void set_limit(struct region *r)
{
    uint64_t limit = region_limit(r);
    uint64_t bump = atomic_load(&r->bump);
    while (!atomic_compare_exchange_weak(&r->bump, &bump, (uint32_t)bump | limit << 32))
        ;
}

int region_grow(struct jfr_writer *w, uint32_t least)
{
    struct region *r = w->chunk.region;
    uint32_t next = (uint32_t)atomic_load(&r->bump);
    w->pace = MAX(next - r->next_at_last_growth, w->pace - w->pace / 4);
    uint32_t margin =
        atomic_load(&w->chunks) ? MIN(MAX(4 * w->pace, MIN_STEP), MAX_STEP) : region_first(w);
    uint32_t free_blocks = r->ready - MIN(next, r->ready);
    r->next_at_last_growth = next;
    if (free_blocks >= least + r->reserve && free_blocks >= margin / 2 + r->reserve)
        return 0;
    uint32_t step = MIN(MAX(margin, least + r->reserve), r->max_blocks - r->ready);
    if (!step)
        return -EAGAIN; /* it is possible again after the next rotation */
    uint64_t end;
    int ret;
    for (;; step /= 2) {
        end = r->file_offset + (uint64_t)(r->ready + step) * JFR_BLOCK;
        ret = allocate(w, end);
        if (!ret)
            break;
        if (step < 16)
            return ret;
    }
    ret = extend(w, end, step);
    if (ret)
        return ret;
    if (!w->ring.head) {
        w->file_end = end;
        atomic_store(&w->bytes, end);
    }
    set_limit(r);
    return 0;
}

void region_prefault(struct jfr_writer *w)
{
    enum { PREFAULT = 32 }; /* in blocks */

    struct region *r = w->chunk.region;
    uint32_t next = (uint32_t)atomic_load_explicit(&r->bump, memory_order_relaxed),
             end = MIN(next + PREFAULT, r->ready);
    /* Pages that are present need this again only after the system has written them to the disk. */
    uint64_t now = now_ns(), places = next;
    for (unsigned i = 0; i < w->n_slots; i++)
        places =
            places * 31 + (uintptr_t)__atomic_load_n(&w->slots[i].at, __ATOMIC_RELAXED) / JFR_BLOCK;
    if (places == r->prefaulted && now - r->prefaulted_ns < NS_PER_SECOND)
        return;
    r->prefaulted = places;
    r->prefaulted_ns = now;
    if (next < end)
        pages_to_write(r->blocks + (uint64_t)next * JFR_BLOCK, (uint64_t)(end - next) * JFR_BLOCK);
    for (unsigned i = 0; i < w->n_slots; i++) {
        /*
         * Other threads change `at` concurrently. The value read is a position in a block of this
         * region or of an earlier one.
         */
        const uint8_t *at = __atomic_load_n(&w->slots[i].at, __ATOMIC_RELAXED);
        uint64_t offset = at ? (uint64_t)(at - r->blocks) : 0;
        if (offset < (uint64_t)r->ready * JFR_BLOCK && offset % JFR_BLOCK)
            pages_to_write(at, JFR_BLOCK - offset % JFR_BLOCK);
    }
}
