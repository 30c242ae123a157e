/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Locks that are held during calls of the VM. Their holder can be stopped in such a call for as
 * long as another thread wants: by SuspendThread of a debugger, and since JDK 16 by the heap walk
 * of any agent. Such a walk makes, on the walking thread, the objects that compiled code has done
 * without, and stops all other threads meanwhile. Threads of the program must therefore not wait
 * for these locks without a limit, neither in a probe nor in the handler of an event.
 */
#pragma once

#include "base/clock.h"
#include "base/macro.h"

#include <pthread.h>
#include <stdbool.h>

#define PATIENCE_NS (500 * NS_PER_MS)

/*
 * Acquires the lock within PATIENCE_NS, or at once if the thread could not get this lock the last
 * time. If it returns false, what needs the lock has to be given up and reported as lost.
 */
bool patience_lock(pthread_mutex_t *lock) must_check;
