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
 * Acquires the lock within PATIENCE_NS, on a busy machine within four times as long, or at once if
 * the thread could not get this lock the last time. If it returns false, the caller must give up
 * what needs the lock and report it as lost.
 */
bool patience_lock(pthread_mutex_t *lock) must_check;

/*
 * Returns whether the lock can be acquired within two seconds, or at once if it could not the last
 * time. For threads of the agent, before they use the lock.
 */
bool patience_reachable(pthread_mutex_t *lock) must_check;
