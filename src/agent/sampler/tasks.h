/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reports the CPU time of the process and of its threads that run no Java code: compilers,
 * collectors, other threads of the VM, and native threads. They are not sampled; the kernel's
 * counters say how much time they have used. For a single caller outside signal handlers.
 */
#pragma once

#include "base/macro.h"

#include <stdbool.h>
#include <stdint.h>

enum task_group {
    TASK_COMPILER,
    TASK_COLLECTOR,
    TASK_VM,
    TASK_NATIVE,
    TASK_START,
    TASK_AGENT,
    TASK_JAVA, /* while they were sampled (slots.h); not counted here */
    TASK_PROCESS,
    TASK_GROUPS
};

extern const char *const task_group_names[TASK_GROUPS];

/* The CPU time that a thread or the process has used since it was last reported. */
struct task_time {
    enum task_group group;
    const char *name; /* as far as the kernel keeps it (tasks.c); "" for the process */
    uint64_t cpu_ns;
};

/*
 * Begins counting: with whole_process from the start of the process, and reports what its Java
 * threads have used so far; otherwise from now on, but for the process as a whole from when it had
 * used process_ns.
 */
void tasks_start(bool whole_process, uint64_t process_ns,
                 void (*report)(const struct task_time *t));
/*
 * Reports each thread that has used `least_ns` or more since it was last reported, and then the
 * process. report may be NULL.
 */
void tasks_report(uint64_t least_ns, void (*report)(const struct task_time *t));
/* Ends counting and forgets all threads. */
void tasks_release(void);
