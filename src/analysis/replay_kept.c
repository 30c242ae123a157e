/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The replays that keep the recorded order. Nodes lie in topological order, so one pass suffices
 * for all of them. It computes the same as replay_node, node by node, but a pass over a hundred
 * million nodes must not read earlier nodes again, so whatever is needed of a thread's earlier
 * nodes is remembered. A thread's own times do not depend on other threads, so a separate thread
 * computes them in advance.
 */
#include "analysis/graph.h"
#include "analysis/replay.h"
#include "base/pages.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* the least number of nodes that the first pass is ahead */
enum { LEAD_NODES = 1 << 14 };

static void report(struct replay_kept *k, size_t done, int error)
{
    if (done % LEAD_NODES != 0 && done != k->t->n_nodes && error == 0)
        return;
    pthread_mutex_lock(&k->lock);
    k->done = done;
    k->error = error;
    pthread_cond_broadcast(&k->more);
    pthread_mutex_unlock(&k->lock);
}

/*
 * Waits until there is room for the next own times. Times to which the replay may still refer are
 * not overwritten. Returns false when they are no longer needed.
 */
static bool have_room(struct replay_kept *k, size_t i)
{
    if (k->mask == SIZE_MAX)
        return true;
    pthread_mutex_lock(&k->lock);
    while (!k->stop && i + LEAD_NODES > k->replayed + (k->mask + 1 - k->back))
        pthread_cond_wait(&k->more, &k->lock);
    bool stop = k->stop;
    pthread_mutex_unlock(&k->lock);
    return !stop;
}

static void *own_times(void *arg)
{
    struct replay_kept *k = arg;
    const struct timeline *t = k->t;
    struct tl_reader nodes = {.t = t};
    size_t i = 0;
    /* per thread: the new time of its previous node */
    uint64_t *last = malloc((t->n_threads + 1) * sizeof(*last));
    int error = last ? 0 : -ENOMEM;
    for (size_t n = 0; error == 0 && n < t->n_threads; n++)
        last[n] = UINT64_MAX;
    for (; error == 0 && i < t->n_nodes; report(k, ++i, 0)) {
        const struct tl_node *at = tl_read(&nodes, (uint32_t)i);
        if (i % LEAD_NODES == 0 && !have_room(k, i))
            break;
        uint64_t *to = &k->times[(i & k->mask) * k->stride];
        to[k->n] = at->time;
        to[k->n + 1] = at->thread;
        if (!graph_caused(at, i)) {
            uint64_t own[HOLD_ENDS];
            replay_own(k->replays, at, (uint32_t)i, last[at->thread], own);
            for (size_t n = 0; n < k->n; n++)
                to[n] = own[k->replays[n].ends];
        }
        last[at->thread] = at->time;
    }
    free(last);
    if (error == 0 && k->replays->sections.failed)
        error = -ENOMEM;
    report(k, i, error);
    return NULL;
}

size_t replay_kept_times(const struct timeline *t)
{
    uint64_t most = 0; /* largest distance to a waker; its code is twice that or more */
    size_t n = KEPT_TIMES_LEAST;
    for (size_t i = 0; i < t->n_blocks; i++) {
        const struct tl_block *b = &t->blocks[i];
        most = MAX(most, (UINT64_C(1) << (b->begin[TL_WAKER + 1] - b->begin[TL_WAKER])) / 2);
    }
    while (n / 2 < most && n < KEPT_TIMES)
        n *= 2;
    return t->n_nodes < CONCURRENT_NODES ? t->n_nodes + 1 : MIN(n, t->n_nodes + 1);
}

int replay_kept_begin(struct replay_kept *ret, const struct timeline *t, struct replay *replays,
                      size_t n, uint64_t *times, size_t n_times, uint64_t from, uint64_t to)
{
    bool ring = n_times <= t->n_nodes && t->n_nodes >= CONCURRENT_NODES;
    *ret = (struct replay_kept){.t = t,
                                .replays = replays,
                                .n = n,
                                .times = times,
                                .stride = n + KEPT_MORE,
                                .mask = ring ? n_times - 1 : SIZE_MAX,
                                .back = ring ? n_times / 2 : SIZE_MAX};
    pthread_mutex_init(&ret->lock, NULL);
    pthread_cond_init(&ret->more, NULL);
    ret->moments[KEPT_FROM].time = from;
    ret->moments[KEPT_TO].time = to;
    ret->lanes = calloc(t->n_threads + 1, sizeof(*ret->lanes));
    for (int i = 0; i < KEPT_MOMENTS; i++)
        ret->moments[i].lanes = calloc(t->n_threads + 1, sizeof(*ret->lanes));
    if (!ret->lanes || !ret->moments[KEPT_FROM].lanes || !ret->moments[KEPT_TO].lanes)
        return -ENOMEM;
    pages_huge(times, MIN(n_times, t->n_nodes) * ret->stride * sizeof(*times));
    ret->threaded =
        t->n_nodes >= CONCURRENT_NODES && pthread_create(&ret->thread, NULL, own_times, ret) == 0;
    if (!ret->threaded && ring)
        return -ERANGE; /* without a second thread there must be room for all times */
    if (!ret->threaded)
        own_times(ret);
    return 0;
}

void replay_kept_release(struct replay_kept *k)
{
    if (!k->replays)
        return;
    pthread_mutex_destroy(&k->lock);
    pthread_cond_destroy(&k->more);
    free(k->lanes);
    for (int i = 0; i < KEPT_MOMENTS; i++)
        free(k->moments[i].lanes);
    *k = (struct replay_kept){0};
}

/* Waits for the next own times and returns how many there are. */
static size_t own_times_wait(struct replay_kept *k, size_t beyond)
{
    pthread_mutex_lock(&k->lock);
    k->replayed = beyond;
    pthread_cond_broadcast(&k->more);
    while (k->done <= beyond && k->error == 0)
        pthread_cond_wait(&k->more, &k->lock);
    size_t done = k->done;
    pthread_mutex_unlock(&k->lock);
    return done;
}

/* Marks the moments before a time as passed, and returns how many have passed in all. */
static int pass_moments(struct replay_kept *k, int passed, uint64_t time)
{
    for (; passed < KEPT_MOMENTS && k->moments[passed].time < time; passed++)
        memcpy(k->moments[passed].lanes, k->lanes, k->t->n_threads * sizeof(*k->lanes));
    return passed;
}

static bool is_carried(const struct timeline *t, const struct tl_node *at)
{
    if (at->edge != TL_BY_JOIN)
        return false;
    const struct tl_node waker = tl_node(t, at->waker);
    return graph_carried(t, at, &waker);
}

/*
 * Computes the new times of node i in all replays. Returns false when the times of its waker are no
 * longer available.
 */
static bool new_times(const struct replay_kept *k, size_t i, const struct tl_node *at,
                      struct lane *lane)
{
    const size_t n = k->n;
    uint64_t *times = &k->times[(i & k->mask) * k->stride];
    if (!graph_caused(at, i)) {
        for (size_t r = 0; r < n; r++)
            times[r] = lane->now[r] =
                lane->begun ? lane->now[r] + replay_left(&lane->saved[r], times[r]) : at->time;
        return true;
    }
    const uint64_t *woken = &k->times[(at->waker & k->mask) * k->stride];
    const uint64_t time = at->time, caused = woken[n];
    struct lane *waker = &k->lanes[woken[n + 1]];
    bool follows = !lane->begun || is_carried(k->t, at);
    bool waits = caused >= (lane->blocked ? lane->since : time);
    for (size_t r = 0; r < n; r++) {
        if (follows)
            lane->now[r] = woken[r] + (time - caused);
        else if (waits)
            lane->now[r] = replay_woken(&k->replays[r], at, caused, &waker->saved[r], lane->time,
                                        lane->now[r], woken[r]);
        else
            lane->now[r] = MAX(lane->now[r] + (time - lane->time), woken[r]);
        times[r] = lane->now[r];
    }
    return i - at->waker <= k->back;
}

static int replay_nodes(struct replay_kept *k)
{
    const struct timeline *t = k->t;
    struct tl_reader nodes = {.t = t};
    int passed = 0;
    for (size_t i = 0, done = 0; i < t->n_nodes; i++) {
        if (i == done && (done = own_times_wait(k, i)) <= i)
            return 0; /* the other thread reports the error */
        const struct tl_node *at = tl_read(&nodes, (uint32_t)i);
        struct lane *lane = &k->lanes[at->thread];
        if (unlikely(passed < KEPT_MOMENTS && k->moments[passed].time < at->time))
            passed = pass_moments(k, passed, at->time);
        if (unlikely(!new_times(k, i, at, lane)))
            return -ERANGE;
        lane->since = lane->blocked ? lane->since : at->time;
        lane->time = at->time;
        lane->begun = true;
        lane->blocked = at->flags & TL_BLOCKED;
    }
    pass_moments(k, passed, UINT64_MAX);
    return 0;
}

int replay_kept_end(struct replay_kept *k)
{
    int r = replay_nodes(k);
    pthread_mutex_lock(&k->lock);
    k->stop = true;
    pthread_cond_broadcast(&k->more);
    pthread_mutex_unlock(&k->lock);
    if (k->threaded)
        (void)pthread_join(k->thread, NULL);
    return r < 0 ? r : k->error;
}

uint64_t replay_kept_moment(const struct replay_kept *k, size_t replay, int which, uint32_t thread)
{
    uint64_t at = k->moments[which].time;
    const struct lane *lane = &k->moments[which].lanes[thread];
    return lane->begun ? lane->now[replay] + (at - lane->time) : at;
}

uint64_t replay_kept_last(const struct replay_kept *k, size_t replay, uint32_t thread)
{
    return k->lanes[thread].now[replay];
}
