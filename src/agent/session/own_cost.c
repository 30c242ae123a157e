/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/session/own_cost.h"

#include "agent/capture/budget/budget.h"
#include "agent/sampler/sampler.h"
#include "agent/vm/thread_table.h"
#include "base/clock.h"
#include "base/mapped.h"

#include <time.h>

static uint64_t threads_before, process_before, callbacks_before[COST_CALLBACKS];

/* Returns the CPU time of the agent's live threads. */
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
    for (int i = 0; i < COST_CALLBACKS; i++)
        callbacks_before[i] = budget_costs[i];
}

/* The CPU time of the agent's threads since the start, including the walking of copied stacks. */
static uint64_t threads_so_far(void)
{
    uint64_t threads = threads_ns();
    /* A thread of an earlier recording may have ended since. */
    return threads - (threads < threads_before ? 0 : threads_before);
}

void own_cost_read(struct own_cost *ret)
{
    struct sampler_counters c;
    sampler_counters(&c);
    uint64_t threads = threads_so_far(), walking = MIN(c.later_ns, threads);
    *ret = (struct own_cost){
        .parts = {[OWN_THREADS] = threads - walking, [OWN_SAMPLES] = c.handler_ns + walking},
        .process_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - process_before};
    for (int i = 0; i < COST_CALLBACKS; i++)
        ret->parts[OWN_WAITS + i] = budget_costs[i] - callbacks_before[i];
}

void own_cost_status(struct buf *out)
{
    static const char *const names[COST_CALLBACKS] = {"waits", "allocations", "requests"};
    struct sampler_counters c;
    struct own_cost cost;
    sampler_counters(&c);
    own_cost_read(&cost);
    buf_printf(out, "cost.threads_ns %llu\ncost.handlers_ns %llu\ncost.process_ns %llu\n",
               (unsigned long long)threads_so_far(), (unsigned long long)c.handler_ns,
               (unsigned long long)cost.process_ns);
    buf_printf(out, "memory.tables_bytes %llu\n", (unsigned long long)mapped_resident());
    for (int i = 0; i < COST_CALLBACKS; i++)
        buf_printf(out, "cost.%s_ns %llu\n", names[i],
                   (unsigned long long)cost.parts[OWN_WAITS + i]);
}
