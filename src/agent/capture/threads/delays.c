/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measures how long a thread was runnable without getting a processor, and how long it waited for
 * pages of memory that had to be read from a disk.
 *
 * Linux counts the former for each thread in a file that takes seven microseconds to read; reading
 * a thread's CPU time, context switches and major page faults takes a third of a microsecond. The
 * latter are therefore read when a thread begins to run, at most once per 2 ms of running. If the
 * CPU time of a long run is shorter than the run, the difference is the delay, unless the thread
 * had page faults or gave up its processor voluntarily more often than the waits that were seen
 * explain. The file then says how much of the difference is delay, and it is used for such a thread
 * for a while. If the thread had page faults, the rest of the difference is the time that they
 * took: Linux counts that time as well, but only where the administrator has switched that on, and
 * in units of 10 ms or for privileged programs.
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
 * When a run has to be examined with Linux's count, the reading before it, which may be older than
 * the run, is at most so old when the run begins: what the thread lost in between, at the ends of
 * its waits, would seem to be lost in the run.
 */
#define COUNT_OLD (10 * NS_PER_MS)

/* For how many readings a thread is watched, and for how long if it had page faults. */
enum { WATCHED = 16 };

#define WATCHED_FAULTS (10 * NS_PER_SECOND)

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

bool delays_counted(void)
{
    uint64_t ns;
    return run_delay(&ns);
}

/* Takes a reading of Linux's count. Returns false if there is none. */
static bool count(struct running_time *r, uint64_t now)
{
    if (!run_delay(&r->delay))
        return false;
    r->counted_at = now;
    return true;
}

/*
 * Reads what the calling thread has used so far: CPU time in ns, how often it gave up its processor
 * voluntarily, and how many of its page faults had to wait for a disk.
 */
static void read_usage(struct running_time *r)
{
    struct rusage u = {0};
    (void)getrusage(RUSAGE_THREAD, &u);
    r->cpu = (uint64_t)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * NS_PER_SECOND +
             (uint64_t)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1000;
    r->switches = (uint64_t)u.ru_nvcsw;
    r->faults = (uint64_t)u.ru_majflt;
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
    bool watched = r->watched || now < r->watched_until;
    if (!watched)
        unseen -= MIN(r->waited, unseen);
    if (unseen < RUN_LEAST)
        return;
    read_now(r, now);
    bool old = now - r->counted_at >= COUNT_OLD;
    r->counted = (watched || old) && count(r, now);
    if (r->watched)
        r->watched--;
    read_usage(r);
}

/* How a run that has ended lacks CPU time, in ns: for want of a processor, and for page faults. */
struct lack {
    uint64_t delay, fault, faults;
};

/*
 * Compares the time since the previous reading with CPU time plus waits. Returns zeros if the
 * thread ran for all of the rest, and if it is unknown why it did not.
 */
static struct lack lack_of(struct running_time *r, uint64_t now)
{
    struct running_time was = *r;
    struct lack lack = {0};
    read_usage(r);
    uint64_t known = r->cpu - was.cpu + r->waited, since = now_ns() - r->read;
    uint64_t missing = since > known ? since - known : 0;
    lack.faults = r->faults - was.faults;
    if (missing < DELAY_LEAST)
        return lack;
    bool waited = lack.faults || r->switches - was.switches > r->slept;
    if (waited)
        r->watched = WATCHED;
    if (lack.faults)
        r->watched_until = now + WATCHED_FAULTS;
    /* On a carrier the VM gives up the processor too. */
    bool knows = was.counted_at && (waited || was.counted) && count(r, now);
    lack.delay = knows ? MIN(missing, r->delay - was.delay) : waited ? 0 : missing;
    lack.fault = knows && lack.faults ? missing - lack.delay : 0;
    return lack;
}

static void put_lack(enum threads_type type, uint64_t since, uint64_t ran, uint64_t thread,
                     uint64_t ns, uint64_t faults)
{
    struct jfr_event e;
    if (ns < DELAY_LEAST || !jfr_begin(thread_capture.jfr, thread_capture.types[type], 0, &e))
        return;
    jfr_put_time(&e, since);
    jfr_put_long(&e, (int64_t)ran);
    jfr_put_long(&e, (int64_t)thread);
    jfr_put_long(&e, (int64_t)ns);
    if (type == TYPE_PAGE_FAULTS)
        jfr_put_long(&e, (int64_t)faults);
    jfr_commit(&e);
}

void delays_run_ends(struct waiter *w, uint64_t thread, uint64_t now)
{
    struct running_time *r = &w->run;
    uint64_t since = r->since, ran = now - since;
    r->since = 0;
    if (!since || ran < RUN_LEAST)
        return;
    struct lack lack = lack_of(r, now);
    read_now(r, now);
    uint64_t late = now_ns() - now;
    /* the time without a processor between the end of the wait and this reading */
    if (late > DELAY_LEAST)
        lack.delay -= MIN(lack.delay, late);
    lack.delay = MIN(lack.delay, ran);
    put_lack(TYPE_PREEMPTED, since, ran, thread, lack.delay, 0);
    put_lack(TYPE_PAGE_FAULTS, since, ran, thread, MIN(lack.fault, ran - lack.delay), lack.faults);
}
