/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/common/fault.h"

#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static struct {
    char name[16];
    unsigned left; /* number of steps until one fails; 0: no failure is simulated */
} fault;

static __thread bool counted; /* the steps of this thread belong to fault.name */

void fault_set(const char *spec)
{
    const char *colon = spec ? strchr(spec, ':') : NULL;
    memset(&fault, 0, sizeof(fault));
    if (!colon || (size_t)(colon - spec) >= sizeof(fault.name))
        return;
    memcpy(fault.name, spec, (size_t)(colon - spec));
    fault.left = (unsigned)atoi(colon + 1);
}

bool fault_is_of(const char *name)
{
    return strcmp(fault.name, name) == 0;
}

void fault_steps_of(const char *name)
{
    counted = name && fault.left && fault_is_of(name);
}

bool fault_here(void)
{
    return counted && fault.left && --fault.left == 0;
}

void fault_stall(const char *name)
{
    if (fault_is_of(name))
        nanosleep(&(struct timespec){.tv_sec = fault.left / 1000,
                                     .tv_nsec = (long)(fault.left % 1000) * 1000000},
                  NULL);
}

static uint64_t cpu_ms(void)
{
    struct timespec t = {0};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

void fault_burn(const char *name)
{
    sigset_t all;
    if (!fault_is_of(name))
        return;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, NULL);
    for (uint64_t since = cpu_ms(); cpu_ms() < since + fault.left;)
        ;
}
