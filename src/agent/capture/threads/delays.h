/* SPDX-License-Identifier: Apache-2.0 */
/* How platform threads use their processors. */
#pragma once

#include "agent/capture/threads/waiters.h"

/* Returns whether the system lets a thread read how long it had no processor. */
bool delays_counted(void);
/*
 * Called on a platform thread when it is new, when it resumes running after a wait of `waited` ns,
 * and when it begins to wait or ends.
 */
void delays_new_thread(struct waiter *w);
void delays_run_begins(struct waiter *w, uint64_t now, uint64_t waited);
void delays_run_ends(struct waiter *w, uint64_t thread, uint64_t now);
/*
 * End the platform thread's current run when the calling thread begins to wait, and begin a new one
 * when it has waited. w is that thread's waiter, or that of a virtual thread that runs on it.
 */
void delays_wait_begins(struct waiter *w, uint64_t now);
void delays_wait_ends(struct waiter *w, uint64_t now, uint64_t waited);
/*
 * Called on a carrier when it stops running the thread `was`, which may be the carrier itself, and
 * runs another one.
 */
void delays_mount(struct waiter *of_carrier, uint64_t was, uint64_t now);
