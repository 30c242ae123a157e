/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/session/own_cost.h"

#include "agent/sampler/sampler.h"
#include "agent/session/budget.h"
#include "agent/vm/thread_table.h"
#include "base/clock.h"
#include "base/mapped.h"

#include <signal.h>
#include <time.h>

static uint64_t threads_before, process_before, callbacks_before[COST_CALLBACKS];

/*
 * To read the CPU time of a process, Linux adds up the times of its threads, which takes
 * milliseconds when there are thousands. But it keeps the sum up to date for a process that has a
 * timer on this time. The timer never expires: no process uses 1,000,000,000 s of CPU time.
 */
static void keep_sum(void)
{
    enum { MANY = 1000, NEVER_S = 1000000000 };

    static timer_t timer;
    static bool tried;
    if (tried || threads_used() < MANY)
        return;
    tried = true;
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGURG};
    struct itimerspec distant = {.it_value.tv_sec = NEVER_S};
    if (timer_create(CLOCK_PROCESS_CPUTIME_ID, &event, &timer) == 0)
        (void)timer_settime(timer, 0, &distant, NULL);
}

/* Returns the CPU time of the agent's live threads. */
static uint64_t threads_ns(void)
{
    uint64_t sum = 0;
    for (struct thread *t = NULL; (t = threads_next(t));) {
        pid_t tid = t->own ? t->tid : 0;
        struct timespec used;
        /* The clock of a thread, computed from its id as in pthread_getcpuclockid. */
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

/* The CPU time of the agent's threads since the start, including the walks of copied stacks. */
static uint64_t threads_so_far(void)
{
    uint64_t threads = threads_ns();
    /* If a thread of an earlier recording has ended since, the sum may be lower than before. */
    return threads - (threads < threads_before ? 0 : threads_before);
}

void own_cost_read(struct own_cost *ret)
{
    uint64_t handlers, later;
    keep_sum();
    sampler_cost(&handlers, &later);
    uint64_t threads = threads_so_far(), walking = MIN(later, threads);
    *ret = (struct own_cost){
        .parts = {[OWN_THREADS] = threads - walking, [OWN_SAMPLES] = handlers + walking},
        .process_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - process_before};
    for (int i = 0; i < COST_CALLBACKS; i++)
        ret->parts[OWN_WAITS + i] = budget_costs[i] - callbacks_before[i];
}

void own_cost_status(struct buf *out)
{
    static const char *const names[COST_CALLBACKS] = {"waits", "allocations", "requests"};
    uint64_t handlers, later;
    struct own_cost cost;
    sampler_cost(&handlers, &later);
    own_cost_read(&cost);
    buf_printf(out, "cost.threads_ns %llu\ncost.handlers_ns %llu\ncost.process_ns %llu\n",
               (unsigned long long)threads_so_far(), (unsigned long long)handlers,
               (unsigned long long)cost.process_ns);
    buf_printf(out, "memory.tables_bytes %llu\n", (unsigned long long)mapped_resident());
    for (int i = 0; i < COST_CALLBACKS; i++)
        buf_printf(out, "cost.%s_ns %llu\n", names[i],
                   (unsigned long long)cost.parts[OWN_WAITS + i]);
}
