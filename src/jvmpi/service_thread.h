/* SPDX-License-Identifier: Apache-2.0 */
/* The thread on which HotSpot, since JDK 16, reports the tags of freed objects. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/*
 * Returns true when the service thread sleeps now and has slept since the previous call with the
 * same *last, which is 0 at first. A thread that is in the middle of its reports sleeps only while
 * a safepoint or a lock of the VM stops it, and runs when that ends. Returns false where the kernel
 * does not say.
 */
bool service_thread_slept(uint64_t *last);
