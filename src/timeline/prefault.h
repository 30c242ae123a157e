/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that is filled once, from its beginning. The first access to a page costs more than
 * filling it, many times more in a virtual machine, so for large amounts a separate thread
 * prefaults the pages before the other thread fills them.
 */
#pragma once

#include "base/macro.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct prefault {
    uint8_t *map;      /* NULL: no memory was requested */
    size_t mapped;     /* bytes of address space */
    size_t wanted;     /* pages up to here should be prefaulted, as far as is known */
    size_t prefaulted; /* pages up to here have been prefaulted */
    bool threaded, stop;
    pthread_t thread;
    pthread_mutex_t lock; /* protects wanted, prefaulted and stop */
    pthread_cond_t changed;
};

/*
 * Reserves addresses for zeroed memory of this size; pages that are never filled take no memory.
 * Returns 0 or -ENOMEM.
 */
int prefault_init(struct prefault *a, size_t bytes) must_check;
/*
 * Reports that the first `bytes` bytes of the memory are filled, so that the pages after them are
 * prefaulted.
 */
void prefault_filled(struct prefault *a, size_t bytes);
/* Reports that no more pages are wanted, and waits until the other thread has ended. */
void prefault_end(struct prefault *a);
/* Ends the other thread and frees the memory. Accepts a zeroed struct. */
void prefault_release(struct prefault *a);
