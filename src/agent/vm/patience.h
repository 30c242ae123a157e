/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Locks that are held during calls of the VM. Another thread can stop their holder in such a call
 * for any length of time: by SuspendThread of a debugger, and since JDK 16 by the heap walk of any
 * agent. Such a walk stops all other threads while the walking thread allocates the objects whose
 * allocation compiled code had eliminated. Threads of the program must therefore not wait for these
 * locks without a limit, neither in a probe nor in the handler of an event.
 */
#pragma once

#include "base/clock.h"
#include "base/macro.h"

#include <pthread.h>
#include <stdbool.h>

#define PATIENCE_NS (500 * NS_PER_MS)

/*
 * Tries to acquire the lock for PATIENCE_NS, on a busy machine up to four times as long; only once
 * if the calling thread failed to get this lock the last time. Returns whether the lock was
 * acquired. If not, the caller must give up what needs the lock and report it as lost.
 */
bool patience_lock(pthread_mutex_t *lock) must_check;

/*
 * Returns whether the lock can be acquired, and does not keep it. Waits for up to two seconds, but
 * not if the calling thread failed to get this lock the last time. For threads of the agent, before
 * they use the lock.
 */
bool patience_reachable(pthread_mutex_t *lock) must_check;
