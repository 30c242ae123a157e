/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long a thread was ready to run and did not get a processor, as Linux counts it for each thread. Asked at the two ends of
 * the times in which it ran without a wait, when such a time was long: the file costs some microseconds.
 */
#include "agent/capture/threads/threads.h"

#include "base/clock.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

/* Shorter times are not looked at; less delay is not told; how many times longer than the reading before it is old. */
#define RUN_LEAST   (2 * NS_PER_MS)
#define DELAY_LEAST (NS_PER_MS / 5)

enum { STALE = 5 };

/* Of the calling thread, ns since it began; false where Linux does not tell. */
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
    (void)strtoull(text, &at, 10); /* time on a processor */
    *ret = strtoull(at, NULL, 10);
    return true;
}

void delays_run_begins(struct waiter *w, uint64_t now)
{
    w->runs_since = now;
    if (now - w->delay_read >= RUN_LEAST && run_delay(&w->delay))
        w->delay_read = now;
}

void delays_run_ends(struct waiter *w, uint64_t now)
{
    uint64_t since = w->runs_since, before = w->delay;
    w->runs_since = 0;
    if (!since || !w->delay_read || now - since < RUN_LEAST || now - since < STALE * (since - w->delay_read) ||
        !run_delay(&w->delay))
        return;
    w->delay_read = now;
    uint64_t delay = w->delay - before, late = now_ns() - now;
    if (late > DELAY_LEAST) /* without a processor after it had ended, before the file was read */
        delay -= MIN(delay, late);
    delay = MIN(delay, now - since);
    struct jfr_event e;
    if (delay < DELAY_LEAST || !jfr_begin(thread_capture.jfr, thread_capture.types[TYPE_PREEMPTED], 0, &e))
        return;
    jfr_put_time(&e, since);
    jfr_put_long(&e, (int64_t)(now - since));
    jfr_put_long(&e, (int64_t)w->id);
    jfr_put_long(&e, (int64_t)delay);
    jfr_commit(&e);
}
