/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/own_cost.h"

#include "agent/sampler/sampler.h"
#include "agent/thread_table.h"
#include "base/clock.h"

#include <time.h>

static uint64_t threads_before, process_before;

/* Of the threads that live. */
static uint64_t threads_ns(void)
{
    uint64_t sum = 0;
    for (struct thread *t = NULL; (t = threads_next(t));) {
        pid_t tid = t->own ? t->tid : 0;
        struct timespec used;
        /* The clock of a thread, as pthread_getcpuclockid makes it of a thread's id. */
        if (tid && clock_gettime((clockid_t)(~(unsigned)tid << 3 | 6), &used) == 0)
            sum += (uint64_t)used.tv_sec * NS_PER_SECOND + (uint64_t)used.tv_nsec;
    }
    return sum;
}

void own_cost_start(void)
{
    threads_before = threads_ns();
    process_before = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
}

void own_cost_status(struct buf *out)
{
    struct sampler_counters c;
    sampler_counters(&c);
    uint64_t threads = threads_ns(), process = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    /* A thread of an earlier recording may have ended since. */
    threads -= threads < threads_before ? 0 : threads_before;
    buf_printf(out, "cost.threads_ns %llu\ncost.handlers_ns %llu\ncost.process_ns %llu\n",
               (unsigned long long)threads, (unsigned long long)c.handler_ns,
               (unsigned long long)(process - process_before));
}
