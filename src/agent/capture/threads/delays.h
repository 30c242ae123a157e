/* SPDX-License-Identifier: Apache-2.0 */
/* How platform threads use their processors. */
#pragma once

#include "agent/capture/threads/waiters.h"

/*
 * The calling thread, a platform thread: it is new, resumes running after a wait of ns, begins to
 * wait, or ends.
 */
void delays_new_thread(struct waiter *w);
void delays_run_begins(struct waiter *w, uint64_t now, uint64_t waited);
void delays_run_ends(struct waiter *w, uint64_t thread, uint64_t now);
/*
 * The calling thread begins to wait, or has waited. w is that thread's waiter, or that of a virtual
 * thread that runs on it.
 */
void delays_wait_begins(struct waiter *w, uint64_t now);
void delays_wait_ends(struct waiter *w, uint64_t now, uint64_t waited);
/*
 * The calling thread is a carrier that stops running the thread `was`, which may be the carrier
 * itself, and runs another one.
 */
void delays_mount(struct waiter *of_carrier, uint64_t was, uint64_t now);
