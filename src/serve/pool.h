/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A few threads that take jobs from a queue. A job that needs what another one is busy with goes
 * back to the queue and is tried again when some job is done: it waits without holding a thread.
 */
#pragma once

#include "base/macro.h"

#include <stdbool.h>
#include <stdint.h>

struct pool;

/* Part of a job; the rest is the caller's. */
struct pool_job {
    struct pool_job *next;
    uint64_t after; /* not before so many jobs are done */
};

/*
 * True: done, the job may be gone. False: to be tried again later; there must be another job at
 * work then.
 */
typedef bool (*pool_run)(void *context, struct pool_job *job);

/* 0 or negative errno. */
int pool_start(struct pool **ret, unsigned threads, pool_run run, void *context) must_check;
/* False when the pool stops: the job is the caller's again. */
bool pool_add(struct pool *p, struct pool_job *job) must_check;
/*
 * Waits for the jobs at work; those that were not begun are a list that the caller gets. pool_free
 * comes after.
 */
struct pool_job *pool_stop(struct pool *p) must_check;
void pool_free(struct pool *p);
