/* SPDX-License-Identifier: Apache-2.0 */
/* When virtual threads are unmounted, and how long they wait for a carrier. */
#pragma once

#include "agent/capture/threads/waiters.h"

/* Writes jvmscope.VirtualThreadUnmounted. ns: how long the thread was unmounted. */
void threads_put_unmounted(uint64_t thread, const struct wait *was, uint64_t ns);
/*
 * Shortens a wait of the calling thread by the time in which the thread only lacked a carrier, and
 * writes jvmscope.VirtualThreadReady for that time. timed_out: the wait ended by its timeout.
 */
void mounts_late(struct waiter *w, const struct wait *was, bool timed_out, uint64_t *ns);
/*
 * Returns the time since which an unmounted thread has been ready; 0: it is not ready, or has
 * become ready only just now.
 */
uint64_t mounts_ready_since(const struct waiter *w);

/* mounts_on begins to handle mounts and unmounts; it returns whether the VM has events of both. */
bool mounts_on(void);
void mounts_off(void);
