/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A machine of threads for tests. It runs scripts of sleeps, locks, waits, parks ... in virtual
 * time, without delays of its own, and records what the agent would have recorded.
 */
#pragma once

#include "timeline/builder.h"

#include "base/vec.h"

#include <stdlib.h>
#include <string.h>

enum op {
    END,
    SLEEP,     /* a: ms */
    WORK,      /* a: ms, running */
    LOCK,      /* a: monitor */
    UNLOCK,    /* a: monitor */
    WAIT,      /* a: monitor, b: timeout in ms or 0 */
    NOTIFY,    /* a: monitor */
    NOTIFYALL, /* a: monitor */
    START,     /* a: thread */
    JOIN,      /* a: thread */
    INTERRUPT, /* a: thread */
    ACQ,       /* a: synchronizer, b: permits */
    REL,       /* a: synchronizer, b: permits */
    BARRIER,   /* a: synchronizer, b: parties */
    IN,        /* a: the method (1 ..) that contains the following steps; 0: none */
    REPEAT,    /* a: number of steps back, b: how often in all */
};

struct step {
    enum op op;
    int a, b;
};

enum { M_THREADS = 104, M_OBJECTS = 8, M_REPEATS = 4 };

struct machine {
    struct timeline_builder *b;
    uint64_t now; /* us */

    struct one {
        const struct step *at, *script;
        bool started, dead, timed_out, interrupted, notified;
        uint64_t wake; /* us; UINT64_MAX while it waits for another thread */
        enum op waits;
        int object, permits, saved;
        int repeats[64];
        uint32_t stack;
    } threads[M_THREADS];

    int n_threads;
    int owner[M_OBJECTS]; /* monitors: thread + 1 */
    int permits[M_OBJECTS];
    int queue[M_OBJECTS][M_THREADS], n_queue[M_OBJECTS];
    int wait_set[M_OBJECTS][M_THREADS], n_wait[M_OBJECTS];
    uint32_t objects[M_OBJECTS], syncs[M_OBJECTS], thread_objects[M_THREADS], stacks[8];
    uint64_t finished_us[M_THREADS];
    size_t events;
};

static void m_event(struct machine *m, int thread, enum tl_event_kind kind, uint32_t object,
                    int other, int timeout, int flags)
{
    struct tl_event e = {.time = 1000000 + m->now * 1000,
                         .thread = (uint32_t)thread,
                         .kind = (uint8_t)kind,
                         .flags = (uint8_t)flags,
                         .object = object,
                         .stack = m->threads[thread].stack,
                         .other = other < 0 ? TL_NONE : (uint32_t)other,
                         .timeout_ms = (uint32_t)timeout};
    m->events++;
    assert_int_equal(timeline_add(m->b, &e), 0);
}

static void m_ready(struct machine *m, int thread)
{
    m->threads[thread].wake = m->now;
    m->threads[thread].waits = END;
}

static void m_drop(int *list, int *n, int thread)
{
    for (int i = 0; i < *n; i++) {
        if (list[i] == thread) {
            memmove(list + i, list + i + 1, (size_t)(*n - i - 1) * sizeof(*list));
            --*n;
            return;
        }
    }
}

/* Gives a free monitor to the first thread in its queue. */
static void m_grant(struct machine *m, int o)
{
    if (m->owner[o] || m->n_queue[o] == 0)
        return;
    int t = m->queue[o][0];
    m_drop(m->queue[o], &m->n_queue[o], t);
    m->owner[o] = t + 1;
    struct one *x = &m->threads[t];
    if (x->waits == WAIT)
        m_event(m, t, TLE_WAITED, m->objects[o], -1, 0, x->timed_out ? TLE_TIMED_OUT : 0);
    else
        m_event(m, t, TLE_CONTENDED_ENTERED, m->objects[o], -1, 0, 0);
    m_ready(m, t);
}

static void m_sync_grant(struct machine *m, int releaser, int o)
{
    while (m->n_queue[o] && m->threads[m->queue[o][0]].permits <= m->permits[o]) {
        int t = m->queue[o][0];
        m_drop(m->queue[o], &m->n_queue[o], t);
        m->permits[o] -= m->threads[t].permits;
        m_event(m, releaser, TLE_UNPARK, TL_NONE, t, 0, 0);
        m_event(m, t, TLE_PARKED, m->syncs[o], -1, 0, 0);
        m_ready(m, t);
    }
}

/* Moves a waiter from the wait set to the queue of the monitor. */
static void m_wake_waiter(struct machine *m, int t, bool timed_out)
{
    struct one *x = &m->threads[t];
    int o = x->object;
    x->timed_out = timed_out;
    x->wake = UINT64_MAX;
    m_drop(m->wait_set[o], &m->n_wait[o], t);
    m->queue[o][m->n_queue[o]++] = t;
    m_grant(m, o);
}

static void m_end(struct machine *m, int t)
{
    m->threads[t].dead = true;
    m->finished_us[t] = m->now;
    m_event(m, t, TLE_THREAD_END, TL_NONE, -1, 0, 0);
    for (int i = 0; i < m->n_threads; i++) {
        if (m->threads[i].waits == JOIN && m->threads[i].object == t) {
            m_event(m, i, TLE_WAITED, m->thread_objects[t], -1, 0, 0);
            m_ready(m, i);
        }
    }
}

static void m_interrupt(struct machine *m, int t, int target)
{
    struct one *x = &m->threads[target];
    m_event(m, t, TLE_CALL_INTERRUPT, m->thread_objects[target], target, 0, 0);
    if (x->waits == SLEEP) {
        m_event(m, target, TLE_SLEPT, TL_NONE, -1, 0, 0);
        m_ready(m, target);
    } else if (x->waits == WAIT) {
        m_wake_waiter(m, target, false);
    }
}

static void m_step(struct machine *m, int t)
{
    struct one *x = &m->threads[t];
    struct step s = *x->at++;
    switch (s.op) {
    case END:
        m_end(m, t);
        return;
    case SLEEP:
        m_event(m, t, TLE_SLEEP, TL_NONE, -1, s.a, 0);
        x->waits = SLEEP;
        x->wake = m->now + (uint64_t)s.a * 1000;
        return;
    case WORK:
        x->wake = m->now + (uint64_t)s.a * 1000;
        return;
    case LOCK:
        if (m->owner[s.a] == 0) {
            m->owner[s.a] = t + 1;
            return;
        }
        m_event(m, t, TLE_CONTENDED_ENTER, m->objects[s.a], m->owner[s.a] - 1, 0, 0);
        m->queue[s.a][m->n_queue[s.a]++] = t;
        x->waits = LOCK;
        x->wake = UINT64_MAX;
        return;
    case UNLOCK:
        m->owner[s.a] = 0;
        m_grant(m, s.a);
        return;
    case WAIT:
        m_event(m, t, TLE_WAIT, m->objects[s.a], -1, s.b, 0);
        m->wait_set[s.a][m->n_wait[s.a]++] = t;
        x->waits = WAIT;
        x->object = s.a;
        x->wake = s.b ? m->now + (uint64_t)s.b * 1000 : UINT64_MAX;
        m->owner[s.a] = 0;
        m_grant(m, s.a);
        return;
    case NOTIFY:
    case NOTIFYALL:
        m_event(m, t, s.op == NOTIFY ? TLE_NOTIFY : TLE_NOTIFY_ALL, m->objects[s.a], -1, 0, 0);
        while (m->n_wait[s.a]) {
            m_wake_waiter(m, m->wait_set[s.a][0], false);
            if (s.op == NOTIFY)
                break;
        }
        return;
    case START:
        m_event(m, t, TLE_CALL_START, m->thread_objects[s.a], s.a, 0, 0);
        m_event(m, s.a, TLE_THREAD_START, m->thread_objects[s.a], -1, 0, 0);
        m->threads[s.a].started = true;
        m_ready(m, s.a);
        return;
    case JOIN:
        if (m->threads[s.a].dead)
            return;
        m_event(m, t, TLE_WAIT, m->thread_objects[s.a], -1, 0, 0);
        x->waits = JOIN;
        x->object = s.a;
        x->wake = UINT64_MAX;
        return;
    case INTERRUPT:
        m_interrupt(m, t, s.a);
        return;
    case ACQ:
        x->permits = s.b;
        if (m->n_queue[s.a] == 0 && m->permits[s.a] >= s.b) {
            m->permits[s.a] -= s.b;
            return;
        }
        m_event(m, t, TLE_PARK, m->syncs[s.a], -1, 0, 0);
        m->queue[s.a][m->n_queue[s.a]++] = t;
        x->waits = ACQ;
        x->wake = UINT64_MAX;
        return;
    case REL:
        m->permits[s.a] += s.b;
        m_sync_grant(m, t, s.a);
        return;
    case BARRIER:
        if (m->n_queue[s.a] + 1 < s.b) {
            x->permits = 0;
            m_event(m, t, TLE_PARK, m->syncs[s.a], -1, 0, 0);
            m->queue[s.a][m->n_queue[s.a]++] = t;
            x->wake = UINT64_MAX;
        } else {
            m_sync_grant(m, t, s.a);
        }
        return;
    case IN:
        x->stack = s.a ? m->stacks[s.a] : TL_NONE;
        return;
    case REPEAT: {
        int *count = &x->repeats[x->at - x->script];
        if (++*count < s.b)
            x->at -= s.a + 1;
        else
            *count = 0;
        return;
    }
    }
}

static void m_init(struct machine *m, int n_threads, const struct step *const *scripts)
{
    memset(m, 0, sizeof(*m));
    assert_int_equal(timeline_builder_new(&m->b), 0);
    char name[40];
    for (int i = 0; i < n_threads; i++) {
        assert_int_equal(timeline_thread(m->b, (uint64_t)i + 100), i);
        int len = snprintf(name, sizeof(name), i ? "T%d" : "main", i);
        timeline_thread_at(m->b, (uint32_t)i)->name =
            (uint32_t)timeline_string(m->b, name, (size_t)len);
        uint32_t class = (uint32_t)timeline_string(m->b, "java.lang.Thread", 16);
        m->thread_objects[i] = (uint32_t)timeline_object(m->b, (uint64_t)i + 1, class);
        m->threads[i] = (struct one){
            .at = scripts[i], .script = scripts[i], .wake = UINT64_MAX, .stack = TL_NONE};
        timeline_thread_object(m->b, (uint32_t)i, m->thread_objects[i]);
    }
    for (int i = 0; i < M_OBJECTS; i++) {
        int len = snprintf(name, sizeof(name), "Lock%d", i);
        m->objects[i] = (uint32_t)timeline_object(
            m->b, (uint64_t)i, (uint32_t)timeline_string(m->b, name, (size_t)len));
        len = snprintf(name, sizeof(name), "a.b.ReentrantLock$Sync");
        m->syncs[i] = (uint32_t)timeline_object(m->b, (uint64_t)i,
                                                (uint32_t)timeline_string(m->b, name, (size_t)len));
        len = snprintf(name, sizeof(name), "m%d", i);
        struct tl_frame frame = {(uint32_t)timeline_string(m->b, name, (size_t)len), (uint32_t)i};
        m->stacks[i] = (uint32_t)timeline_stack(m->b, &frame, 1);
    }
    m->n_threads = n_threads;
    timeline_origin(m->b, 1000000, 0);
    m_event(m, 0, TLE_THREAD_START, m->thread_objects[0], -1, 0, 0);
    m->threads[0].started = true;
    m->threads[0].wake = 0;
}

/* Runs until no thread can run. Threads that still wait are deadlocked. */
static struct timeline *m_run(struct machine *m)
{
    for (;;) {
        int next = -1;
        for (int i = 0; i < m->n_threads; i++) {
            struct one *x = &m->threads[i];
            if (x->started && !x->dead && x->wake != UINT64_MAX &&
                (next < 0 || x->wake < m->threads[next].wake))
                next = i;
        }
        if (next < 0)
            break;
        struct one *x = &m->threads[next];
        m->now = x->wake;
        if (x->waits == SLEEP)
            m_event(m, next, TLE_SLEPT, TL_NONE, -1, 0, 0);
        if (x->waits == WAIT)
            m_wake_waiter(m, next, true);
        else
            m_ready(m, next);
        while (!x->dead && x->wake == m->now)
            m_step(m, next);
    }
    struct timeline *t;
    assert_int_equal(timeline_finish(m->b, 1000000 + m->now * 1000, &t), 0);
    timeline_builder_free(m->b);
    return t;
}
