/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When the agent's thread works next. It flushes every 100 ms and drains every 50 ms, and sleeps
 * longer while the program is idle. Any thread.
 */
#pragma once

#include "base/waker.h"

#include <stdbool.h>

/* Wakes the agent's thread when the recording's file has to grow. */
extern struct waker rounds_waker;

/*
 * Notes that something waits for the next round. If the agent's thread sleeps longer because the
 * program is idle, it now resumes its usual rounds. Async-signal-safe.
 */
void rounds_due(void);
/* Requests a round: the agent's thread flushes and drains at once, instead of within 50 ms. */
void rounds_request(void);
/*
 * Makes rounds one_of times as long, to stay within the budget: a flush every 100 ms times one_of,
 * and a drain every 50 ms times one_of but at least every 200 ms, for which buffers have room. In a
 * recording that needs its rounds they become at most twice as long.
 */
void rounds_keep(unsigned one_of);
/* Returns how many times as long rounds are now. */
unsigned rounds_one_of(void);
/* Declares that the recording needs ten rounds a second even while the program is idle. */
void rounds_need(void);

/* Called by the agent's thread when a recording begins: withdraws rounds_need of the one before. */
void rounds_begin(void);
/* Returns whether rounds_need was called in this recording. */
bool rounds_needed(void);
/*
 * Returns whether rounds_request was called since the last call of this function, which the agent's
 * thread calls.
 */
bool rounds_at_once(void);
/*
 * Stores whether the agent's thread, which is the caller, sleeps longer now because the program is
 * idle.
 */
void rounds_rest(bool rest);
