/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel's information about threads of this process. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * Returns true when the thread sleeps now and has slept since the previous call with the same
 * *last, which is 0 at first. Returns false where the kernel does not provide this.
 */
bool kernel_thread_slept(pid_t tid, uint64_t *last);
/*
 * Does what kernel_thread_slept does for the thread on which HotSpot, since JDK 16, reports the
 * tags of freed objects. One that is in the middle of its reports sleeps only while a safepoint or
 * a lock of the VM stops it, and runs when that ends.
 */
bool layer_service_thread_slept(uint64_t *last);
