/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that is filled from its beginning, once. A page that is new costs more than filling it,
 * many times so in a virtual machine: of much memory a thread of its own meets the pages ahead of
 * who fills them.
 */
#pragma once

#include "base/macro.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ahead {
    uint8_t *map;  /* NULL: nothing was asked for */
    size_t mapped; /* bytes of addresses */
    size_t wanted; /* up to here its pages are to be there, for all that is known */
    size_t met;    /* up to here they are */
    bool threaded, stop;
    pthread_t thread;
    pthread_mutex_t lock; /* of wanted, met and stop */
    pthread_cond_t changed;
};

/*
 * Zeroed memory with addresses for so many bytes: what is not filled costs nothing. 0 or -ENOMEM.
 */
int ahead_init(struct ahead *a, size_t bytes) must_check;
/*
 * The same of a mapping that was made already, which is released with it; none of its pages is
 * wanted yet.
 */
void ahead_begin(struct ahead *a, void *map, size_t bytes);
/* It is filled up to here: what comes next is met. */
void ahead_filled(struct ahead *a, size_t bytes);
/* Up to here its pages are to be there, and no further. */
void ahead_want(struct ahead *a, size_t bytes);
/* No more is wanted. */
void ahead_end(struct ahead *a);
/* Zeroed is released. */
void ahead_release(struct ahead *a);
