/* SPDX-License-Identifier: Apache-2.0 */
/* What the process uses of its machine or container. Reads /proc and the cgroup's files. */
#pragma once

#include <stdint.h>

/*
 * Returns the number of CPUs that the process may use, by its affinity and its container's quota.
 */
double machine_cpus(void);
/* Returns the resident memory in bytes; 0 when it cannot be read. */
uint64_t machine_rss(void);
/* Returns the container's limit of memory, or the machine's memory; 0 when unknown. */
uint64_t machine_memory(void);
/* Returns the number of threads of the process, those of the VM itself included; 0 when unknown. */
uint64_t machine_threads(void);
/* Returns the container's limit of threads and processes; 0 when there is none. */
uint64_t machine_thread_limit(void);
/* Return the number of open file descriptors and its limit; 0 when unknown. */
uint64_t machine_descriptors(void);
uint64_t machine_descriptor_limit(void);
/* Returns the limit to which the process may raise its own limit; 0 when unknown. */
uint64_t machine_descriptor_most(void);
