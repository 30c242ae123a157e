/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CPU time of threads that run no Java code, in addition to the samples of those that do:
 * jvmscope.CpuTime (doc/format.md).
 */
#pragma once

#include "profile/profile.h"

#define VM_TIME_PROCESS "process"
#define VM_TIME_JAVA    "Java threads"
/*
 * The ids of threads that the profile adds for these times have this bit; no thread of a recording
 * has it.
 */
#define VM_TIME_THREAD (UINT64_C(1) << 63)

/* Adds the contents of an event, unless its time is 0. Returns 0 or -ENOMEM. */
int profile_cpu_time(struct profile *p, uint64_t time_ns, const char *what, const char *name,
                     int64_t cpu_ns) must_check;

/* Sorts p->cpu_times by time, because a recording's blocks are not in chronological order. */
void profile_cpu_times_sort(struct profile *p);

/*
 * Returns how much of the CPU time that was used between `before` and time_ns belongs to the part
 * that the filter selects. When it was used is unknown, so it is spread evenly. The shares of two
 * parts that meet add up to the whole.
 */
uint64_t vm_time_selected(uint64_t cpu_ns, uint64_t before, uint64_t time_ns,
                          const struct profile_filter *filter);

struct vm_time_row {
    uint32_t what; /* a text of the profile */
    uint64_t cpu_ns;
};

/*
 * Sums over a window of time. The process used process_ns, and Java threads used java_ns while they
 * were sampled; where a recording does not state java_ns, it is what remains after all other
 * threads. rest_ns belongs to none of these: it was used by Java threads before their sampling
 * began, and by threads that ended between two readings. A zeroed struct means none.
 */
struct vm_time {
    VEC(struct vm_time_row) rows;
    uint64_t process_ns, java_ns, rest_ns;
};

/*
 * Sums up the part of the profile's CPU times that the filter selects, the most used row first.
 * Returns 0 or -ENOMEM.
 */
int vm_time_sum(struct vm_time *ret, const struct profile *p,
                const struct profile_filter *filter) must_check;
void vm_time_release(struct vm_time *t);

/* Fills p->vm, once, for views with profile_filter.with_vm. Returns 0 or -ENOMEM. */
int vm_time_samples(struct profile *p) must_check;
