/* SPDX-License-Identifier: Apache-2.0 */
/* For LD_PRELOAD: prints at exit how often the process has read the CPU clock of a thread. */
#include <stdatomic.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static atomic_ulong readings;

__attribute__((visibility("default"))) int clock_gettime(clockid_t clock, struct timespec *t)
{
    if (clock == CLOCK_THREAD_CPUTIME_ID)
        atomic_fetch_add(&readings, 1);
    return (int)syscall(SYS_clock_gettime, clock, t);
}

__attribute__((destructor)) static void print_count(void)
{
    dprintf(STDERR_FILENO, "%lu readings of a thread's clock\n", atomic_load(&readings));
}
