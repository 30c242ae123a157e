/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/perf.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    RING_PAGES = 1, /* pages for samples, after the page with the ring's metadata */
    /* lower numbers are left to the program, because select() is limited to 1,024 */
    FD_HIGH = 4096,
};

static atomic_uint used; /* the number of open descriptors */

static size_t page_size(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

static int open_event(pid_t tid, uint64_t period_ns)
{
    struct perf_event_attr a = {
        .type = PERF_TYPE_SOFTWARE,
        .size = sizeof(a),
        .config = PERF_COUNT_SW_CPU_CLOCK,
        .sample_period = period_ns,
        .sample_type = PERF_SAMPLE_CALLCHAIN,
        .disabled = 1,
        .exclude_hv = 1,
        .exclude_callchain_user = 1,
        .wakeup_events = 1,
        .sample_max_stack = PERF_KERNEL_FRAMES,
    };
    long fd = syscall(SYS_perf_event_open, &a, tid, -1, -1, PERF_FLAG_FD_CLOEXEC);
    return fd < 0 ? -errno : (int)fd;
}

int perf_clock_check(void)
{
    int fd = open_event(0, 1000000000);
    if (fd < 0)
        return fd;
    close(fd);
    return 0;
}

/* Gives a descriptor a high number. */
static int move_high(int fd)
{
    struct rlimit limit = {0};
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || atomic_load(&used) >= limit.rlim_cur / 2) {
        close(fd);
        return -EMFILE;
    }
    int high = fcntl(fd, F_DUPFD_CLOEXEC, (int)MIN(limit.rlim_cur / 2, (rlim_t)FD_HIGH));
    if (high < 0)
        high = -errno;
    close(fd);
    return high;
}

static int signal_thread(int fd, pid_t tid, int signal)
{
    struct f_owner_ex owner = {F_OWNER_TID, tid};
    if (fcntl(fd, F_SETOWN_EX, &owner) < 0 || fcntl(fd, F_SETSIG, signal) < 0 ||
        fcntl(fd, F_SETFL, O_ASYNC) < 0)
        return -errno;
    return 0;
}

int perf_clock_open(struct perf_clock *c, pid_t tid, int signal, uint64_t first_ns)
{
    int fd = open_event(tid, first_ns);
    if (fd < 0 || (fd = move_high(fd)) < 0)
        return fd;
    void *ring =
        mmap(NULL, (1 + RING_PAGES) * page_size(), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (ring == MAP_FAILED) {
        int r = -errno;
        close(fd);
        return r;
    }
    atomic_fetch_add(&used, 1);
    c->fd = fd;
    atomic_store(&c->ring, ring);
    int r = signal_thread(fd, tid, signal);
    if (r < 0)
        perf_clock_release(c);
    return r;
}

int perf_clock_start(const struct perf_clock *c)
{
    return ioctl(c->fd, PERF_EVENT_IOC_REFRESH, 1) < 0 ? -errno : 0;
}

void perf_clock_stop(struct perf_clock *c)
{
    if (!c->fd)
        return;
    close(c->fd);
    c->fd = 0;
    atomic_fetch_sub(&used, 1);
}

void perf_clock_release(struct perf_clock *c)
{
    perf_clock_stop(c);
    void *ring = atomic_exchange(&c->ring, NULL);
    if (ring)
        munmap(ring, (1 + RING_PAGES) * page_size());
}

/* The records of a ring that are not read yet. A record may wrap around its end. */
struct ring {
    const uint64_t *words;
    uint64_t count;
    uint64_t at; /* the position of the current record, in words */
};

static uint64_t word_of(const struct ring *r, uint64_t i)
{
    return r->words[(r->at + i) % r->count];
}

/*
 * Extracts the kernel's addresses of a sample { header, nr, ips[nr] }. Markers among the addresses
 * say whose addresses follow.
 */
static uint32_t kernel_part(const struct ring *r, uint64_t words, uint64_t *ips)
{
    uint64_t nr = words < 2 ? 0 : MIN(word_of(r, 1), words - 2);
    uint32_t n = 0;
    bool kernel = false;
    for (uint64_t i = 0; i < nr && n < PERF_KERNEL_FRAMES; i++) {
        uint64_t ip = word_of(r, 2 + i);
        if (ip >= PERF_CONTEXT_MAX)
            kernel = ip == PERF_CONTEXT_KERNEL;
        else if (kernel)
            ips[n++] = ip;
    }
    return n;
}

at_each_sample uint32_t perf_clock_take(struct perf_clock *c, uint64_t ips[PERF_KERNEL_FRAMES],
                                        uint32_t *ret_n)
{
    struct perf_event_mmap_page *page = atomic_load(&c->ring);
    uint32_t taken = 0;
    *ret_n = 0;
    if (!page)
        return 0;
    uint64_t head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE),
             bytes = RING_PAGES * page_size();
    struct ring r = {.words = (const uint64_t *)(const void *)((const char *)page + page_size()),
                     .count = bytes / 8};
    for (uint64_t at = page->data_tail; at < head && head - at <= bytes;) {
        r.at = at / 8;
        uint64_t first = word_of(&r, 0);
        struct perf_event_header header;
        memcpy(&header, &first, sizeof(header));
        if (header.size < sizeof(header) || header.size > head - at)
            break;
        if (header.type == PERF_RECORD_SAMPLE) {
            taken++;
            *ret_n = kernel_part(&r, header.size / 8, ips);
        } else if (header.type == PERF_RECORD_LOST) {
            taken += (uint32_t)word_of(&r, 2); /* a record { header, id, lost } */
        }
        at += header.size;
    }
    __atomic_store_n(&page->data_tail, head, __ATOMIC_RELEASE);
    return taken;
}

at_each_sample void perf_clock_period(const struct perf_clock *c, uint64_t interval_ns)
{
    if (c->fd && ioctl(c->fd, PERF_EVENT_IOC_PERIOD, &interval_ns) == 0)
        ioctl(c->fd, PERF_EVENT_IOC_ENABLE, 0);
}
