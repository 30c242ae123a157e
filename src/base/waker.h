/* SPDX-License-Identifier: Apache-2.0 */
/* A thread that waits until another one has work for it. libc only; waking is async-signal-safe. */
#pragma once

#include "base/macro.h"

#include <errno.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* One thread waits; any thread may wake it. A zeroed waker has not been called. */
struct waker {
    _Atomic uint32_t called;
};

/* Wakes the thread that waits or, if none does, makes the next wait end at once. Keeps errno. */
static inline void waker_wake(struct waker *w)
{
    int saved = errno;
    if (!atomic_exchange(&w->called, 1))
        syscall(SYS_futex, &w->called, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    errno = saved;
}

/*
 * Waits until the waker is woken, but at most ns nanoseconds; not at all if it was woken before the
 * call. Returns whether it was woken; false also when a signal ends the wait.
 */
static inline bool waker_wait(struct waker *w, uint64_t ns)
{
    struct timespec time = {(time_t)(ns / 1000000000), (long)(ns % 1000000000)};
    if (!atomic_load(&w->called))
        syscall(SYS_futex, &w->called, FUTEX_WAIT_PRIVATE, 0, &time, NULL, 0);
    return atomic_exchange(&w->called, 0) != 0;
}
