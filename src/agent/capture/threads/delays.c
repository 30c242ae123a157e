/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measures how long a thread was runnable without getting a processor. Linux counts that for each
 * thread in a file that takes seven microseconds to read; reading a thread's CPU time and context
 * switches takes a third of a microsecond. The latter are therefore read when a thread begins to
 * run, at most once per 2 ms of running. If the CPU time of a long run is shorter than the run, the
 * difference is the delay, unless the thread gave up its processor voluntarily more often than the
 * waits that were seen explain. The file is then used for such a thread for a while.
 */

#include "agent/capture/threads/delays.h"

#include "agent/capture/threads/threads.h"
#include "agent/capture/threads/waiters.h"
#include "base/clock.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

/* Shorter times are not examined, and shorter delays are not reported. */
#define RUN_LEAST   (2 * NS_PER_MS)
#define DELAY_LEAST (NS_PER_MS / 5)
/* A thread that waits for longer than this gives up its processor. */
#define SLEPT_LEAST (NS_PER_MS / 50)

/*
 * STALE: a new reading is taken when the previous one is older than this many times the cost of a
 * reading. WATCHED: the number of readings for which a thread is watched.
 */
enum { STALE = 5, WATCHED = 16 };

/*
 * Sets *ret to the calling thread's run delay since its start, in ns. Returns false if Linux does
 * not provide it.
 */
static bool run_delay(uint64_t *ret)
{
    char text[96];
    int fd = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, text, sizeof(text) - 1) : -1;
    if (fd >= 0)
        close(fd);
    if (n <= 0)
        return false;
    text[n] = 0;
    char *at;
    (void)strtoull(text, &at, 10); /* time spent on a processor */
    *ret = strtoull(at, NULL, 10);
    return true;
}

/*
 * Reads the CPU time of the calling thread in ns, and how often it gave up its processor
 * voluntarily.
 */
static void usage(uint64_t *ret_cpu, uint64_t *ret_switches)
{
    struct rusage u = {0};
    (void)getrusage(RUSAGE_THREAD, &u);
    *ret_cpu = (uint64_t)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * NS_PER_SECOND +
               (uint64_t)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1000;
    *ret_switches = (uint64_t)u.ru_nvcsw;
}

/* The calling thread's own entry if it is a carrier that has run a virtual thread. */
static __thread struct waiter *carrier;

/*
 * Returns the waiter whose processor time w uses when it runs on the calling thread: w itself or
 * its carrier. Returns NULL if that is unknown.
 */
static struct waiter *runner(struct waiter *w)
{
    return w->is_virtual ? carrier && carrier->id ? carrier : NULL : w;
}

void delays_mount(struct waiter *of_carrier, uint64_t was, uint64_t now)
{
    carrier = of_carrier;
    /*
     * On a carrier the VM itself gives up the processor without an event, so Linux's count is used.
     */
    carrier->run.watched = WATCHED;
    if (carrier->run.since)
        delays_run_ends(carrier, was, now);
    delays_run_begins(carrier, now, 0);
}

void delays_wait_begins(struct waiter *w, uint64_t now)
{
    struct waiter *r = runner(w);
    if (r && r->run.since)
        delays_run_ends(r, w->id, now);
}

void delays_wait_ends(struct waiter *w, uint64_t now, uint64_t waited)
{
    struct waiter *r = runner(w);
    if (r && !r->run.since)
        delays_run_begins(r, now, waited);
}

void delays_new_thread(struct waiter *w)
{
    w->run.watched = WATCHED;
}

static void read_now(struct running_time *r, uint64_t now)
{
    r->read = now;
    r->waited = 0;
    r->slept = 0;
}

void delays_run_begins(struct waiter *w, uint64_t now, uint64_t waited)
{
    struct running_time *r = &w->run;
    r->since = now;
    r->waited += waited;
    r->slept += waited >= SLEPT_LEAST;
    /*
     * A reading covers all runs since the one before, because CPU time and waits are running
     * totals. A new one is needed only if more than RUN_LEAST has passed outside of waits.
     */
    uint64_t unseen = now - r->read;
    if (!r->watched && !r->counted)
        unseen -= MIN(r->waited, unseen);
    if (unseen < RUN_LEAST)
        return;
    read_now(r, now);
    r->counted = r->watched && run_delay(&r->delay);
    if (r->watched)
        r->watched--;
    if (!r->counted)
        usage(&r->cpu, &r->switches);
}

/*
 * Computes the delay from Linux's count since the previous reading. Returns false if that reading
 * is too old.
 */
static bool counted_delay(struct running_time *r, uint64_t since, uint64_t ran, uint64_t *ret)
{
    uint64_t before = r->delay;
    if (ran < STALE * (since - r->read) || !run_delay(&r->delay))
        return false;
    *ret = r->delay - before;
    return true;
}

/*
 * Computes the delay by comparing the time since the previous reading with CPU time plus waits.
 * Returns false if the thread may have waited without an event.
 */
static bool missing_time(struct running_time *r, uint64_t *ret)
{
    uint64_t cpu = r->cpu, switches = r->switches;
    usage(&r->cpu, &r->switches);
    uint64_t known = r->cpu - cpu + r->waited, since = now_ns() - r->read;
    *ret = since > known ? since - known : 0;
    if (*ret < DELAY_LEAST || r->switches - switches <= r->slept)
        return true;
    r->watched = WATCHED;
    return false;
}

void delays_run_ends(struct waiter *w, uint64_t thread, uint64_t now)
{
    struct running_time *r = &w->run;
    uint64_t since = r->since, ran = now - since, delay = 0;
    r->since = 0;
    if (!since || ran < RUN_LEAST ||
        !(r->counted ? counted_delay(r, since, ran, &delay) : missing_time(r, &delay)))
        return;
    read_now(r, now);
    uint64_t late = now_ns() - now;
    /* the time without a processor between the end of the wait and this reading */
    if (late > DELAY_LEAST)
        delay -= MIN(delay, late);
    delay = MIN(delay, ran);
    if (delay < DELAY_LEAST)
        return;
    struct jfr_event e;
    if (!jfr_begin(thread_capture.jfr, thread_capture.types[TYPE_PREEMPTED], 0, &e))
        return;
    jfr_put_time(&e, since);
    jfr_put_long(&e, (int64_t)ran);
    jfr_put_long(&e, (int64_t)thread);
    jfr_put_long(&e, (int64_t)delay);
    jfr_commit(&e);
}
