/* SPDX-License-Identifier: Apache-2.0 */
/* When virtual threads are unmounted, and how long they wait for a carrier. */
#pragma once

#include "agent/capture/threads/waiters.h"

/* jvmscope.VirtualThreadUnmounted. */
void threads_put_unmounted(uint64_t thread, const struct wait *was, uint64_t ns);
/*
 * Shortens a wait of the calling thread by the time in which it only lacked a carrier, for which
 * jvmscope.VirtualThreadReady is written. timed_out: the wait ended when its time was over.
 */
void mounts_late(struct waiter *w, const struct wait *was, bool timed_out, uint64_t *ns);
/* Since when a thread that is unmounted has been ready; 0: it is not, or not for long. */
uint64_t mounts_ready_since(const struct waiter *w);
void mounts_fields(JNIEnv *jni);

/* on returns whether the VM has events of mounting and unmounting. */
bool mounts_on(void);
void mounts_off(void);
