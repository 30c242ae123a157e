/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/capture/alarms/alarms.h"

#include "agent/capture/alarms/trigger.h"
#include "base/clock.h"
#include "base/pattern.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

_Atomic uint64_t alarm_request_ns = UINT64_MAX;

/* Guards the names of the longest requests. */
static pthread_mutex_t names_lock = PTHREAD_MUTEX_INITIALIZER;

static void longest(struct measured *m, uint64_t ns)
{
    uint64_t before = atomic_load_explicit(&m->longest_ns, memory_order_relaxed);
    while (ns > before && !atomic_compare_exchange_weak(&m->longest_ns, &before, ns))
        ;
}

void alarm_each_test(enum measure measure,
                     void (*f)(const struct trigger_test *t, struct measured *m, void *context),
                     void *context)
{
    struct trigger *t;
    triggers_enter();
    for (unsigned i = 0; (t = trigger_at(i)); i++) {
        if (!atomic_load(&t->active))
            continue;
        for (int k = 0; k < t->condition->logic.count; k++)
            if (t->condition->logic.nodes[k].kind == LOGIC_TEST &&
                t->condition->tests[k].measure == measure)
                f(&t->condition->tests[k], &t->tests[k], context);
    }
    triggers_leave();
}

bool alarm_is_named(const struct trigger_test *t, const char *name)
{
    if (!t->name[0])
        return true;
    return strpbrk(t->name, "*?") ? pattern_match(t->name, name, strlen(name))
                                  : strcmp(t->name, name) == 0;
}

struct event {
    const char *name;
    uint64_t start_ns, end_ns; /* of a stop; 0: it is a request */
    uint64_t ns, reported_ns;
    bool ongoing;
};

/*
 * Returns whether a stop has already been taken. It may have been measured by two clocks, which
 * differ a little; another one begins after its end.
 */
static bool is_taken(struct measured *m, const struct event *r)
{
    uint64_t taken = atomic_load(&m->taken_until_ns);
    return r->end_ns && r->start_ns < taken && r->end_ns <= taken + NS_PER_MS + r->ns / 8;
}

static void see_end(struct measured *m, uint64_t end_ns)
{
    uint64_t before = atomic_load_explicit(&m->until_ns, memory_order_relaxed);
    while (end_ns > before && !atomic_compare_exchange_weak(&m->until_ns, &before, end_ns))
        ;
}

uint64_t alarm_take_longest(const struct trigger_test *t, struct measured *m)
{
    uint64_t ns = atomic_exchange(&m->longest_ns, 0);
    if (ns && logic_compare(t->op, (double)ns, t->limit))
        atomic_store(&m->taken_until_ns, atomic_load(&m->until_ns));
    return ns;
}

static void see_event(const struct trigger_test *t, struct measured *m, void *context)
{
    const struct event *r = context;
    if (!alarm_is_named(t, r->name) || is_taken(m, r))
        return;
    see_end(m, r->end_ns);
    if (r->ns <= atomic_load(&m->longest_ns))
        return;
    /* The request already satisfied the test when it was last reported. */
    if (r->reported_ns && logic_compare(t->op, (double)r->reported_ns, t->limit))
        return;
    pthread_mutex_lock(&names_lock);
    snprintf(m->name, sizeof(m->name), "%s%s", r->name, r->ongoing ? ", which goes on" : "");
    longest(m, r->ns);
    pthread_mutex_unlock(&names_lock);
}

void alarm_request(const char *name, uint64_t ns, uint64_t reported_ns, bool ongoing)
{
    alarm_each_test(
        MEASURE_REQUEST, see_event,
        &(struct event){.name = name, .ns = ns, .reported_ns = reported_ns, .ongoing = ongoing});
}

void alarm_safepoint(const char *operation, uint64_t start_ns, uint64_t ns)
{
    alarm_each_test(MEASURE_SAFEPOINT, see_event,
                    &(struct event){.name = operation ? operation : "",
                                    .start_ns = start_ns,
                                    .end_ns = start_ns + ns,
                                    .ns = ns});
}

static void see_stop(const struct trigger_test *t, struct measured *m, void *context)
{
    const struct event *r = context;
    if (is_taken(m, r))
        return;
    see_end(m, r->end_ns);
    longest(m, r->ns);
}

void alarm_stop(enum measure measure, uint64_t start_ns, uint64_t end_ns, uint64_t ns)
{
    alarm_each_test(measure, see_stop,
                    &(struct event){.start_ns = start_ns, .end_ns = end_ns, .ns = ns});
}

void alarm_pause(uint64_t start_ns, uint64_t ns)
{
    alarm_stop(MEASURE_PAUSE, start_ns, start_ns + ns, ns);
}

void alarm_take_name(struct measured *m, char ret[TRIGGER_NAME_SIZE])
{
    pthread_mutex_lock(&names_lock);
    snprintf(ret, TRIGGER_NAME_SIZE, "%s", m->name);
    m->name[0] = 0;
    pthread_mutex_unlock(&names_lock);
}
