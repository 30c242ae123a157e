/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A few threads that execute jobs from a queue. A job that needs something another job is busy with
 * goes back to the queue and is tried again when some job has finished, so that it waits without
 * occupying a thread.
 */
#pragma once

#include "base/macro.h"

#include <stdbool.h>
#include <stdint.h>

struct pool;

/* The part of a job that the pool uses; the rest belongs to the caller. */
struct pool_job {
    struct pool_job *next;
    uint64_t after; /* the job is not tried before this many jobs have finished */
};

/*
 * Returns true when the job is done, after which it may no longer exist. Returns false when it
 * should be tried again later; another job must then be in progress.
 */
typedef bool (*pool_run)(void *context, struct pool_job *job);

/* Starts a pool of threads that run jobs with `run`. Returns 0 or a negative errno. */
int pool_start(struct pool **ret, unsigned threads, pool_run run, void *context) must_check;
/*
 * Queues a job. Returns false when the pool is stopping: the job then still belongs to the caller.
 */
bool pool_add(struct pool *p, struct pool_job *job) must_check;
/*
 * Waits for the jobs in progress; returns the list of jobs that were not begun, which the caller
 * owns. Call pool_free afterwards.
 */
struct pool_job *pool_stop(struct pool *p) must_check;
void pool_free(struct pool *p);
