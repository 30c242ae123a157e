/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/capture/alarms/trigger.h"

static struct {
    struct trigger *_Atomic of[TRIGGERS_AT_ONCE];
    _Atomic unsigned n;
    _Atomic unsigned readers;
} list;

struct trigger *trigger_at(unsigned i)
{
    return i < atomic_load(&list.n) ? atomic_load(&list.of[i]) : NULL;
}

void triggers_enter(void)
{
    atomic_fetch_add(&list.readers, 1);
}

void triggers_leave(void)
{
    atomic_fetch_sub(&list.readers, 1);
}

unsigned triggers_count(void)
{
    return atomic_load(&list.n);
}

struct trigger *trigger_put(unsigned i, struct trigger *t)
{
    struct trigger *before = atomic_exchange(&list.of[i], t);
    if (!before)
        atomic_store(&list.n, i + 1);
    return before;
}

bool triggers_are_read(void)
{
    return atomic_load(&list.readers) != 0;
}

void triggers_clear(void (*f)(struct trigger *t))
{
    unsigned n = atomic_exchange(&list.n, 0);
    for (unsigned i = 0; i < n && f; i++)
        f(atomic_exchange(&list.of[i], NULL));
}
