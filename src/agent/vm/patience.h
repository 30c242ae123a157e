/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Locks that are held during calls of the VM. Their holder can be stopped in such a call for as
 * long as another thread wants: by SuspendThread of a debugger, and since JDK 16 by the heap walk
 * of any agent. Such a walk makes, on the walking thread, the objects that compiled code has done
 * without, and stops all other threads meanwhile; whoever handles the event of such an object must
 * therefore not wait for these locks without a limit.
 *
 * Between patience_begin and patience_end a thread waits for PATIENCE_NS at most, for all such
 * locks together, and not at all if it could not get one the last time. Sections are not nested.
 */
#pragma once

#include "base/clock.h"

#include <pthread.h>
#include <stdbool.h>

#define PATIENCE_NS (500 * NS_PER_MS)

void patience_begin(void);
/* Whether all locks of the section were acquired; if not, what needed them has to be given up. */
bool patience_end(void);
/* Whether a lock of the section was refused so far. */
bool patience_lost(void);
/* Acquires a lock. Returns false only within a section. */
bool patience_lock(pthread_mutex_t *lock);
