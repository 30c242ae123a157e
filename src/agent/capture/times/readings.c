/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/capture/times/readings.h"

/* The rest of a first reading is at most this many times what is missing of its tick. */
#define ENLARGED_MOST 2.0

/* Squares are of microseconds, so that their sum has room in 64 bits for years. */
static uint64_t square(uint64_t ns)
{
    return ns / 1000 * (ns / 1000);
}

void times_clock_begin(struct times_clock *c, uint64_t cpu_ns, uint64_t switches)
{
    *c = (struct times_clock){.switches = switches};
    atomic_store(&c->read_ns, cpu_ns);
}

void times_clock_read(struct times_clock *c, struct times_reading *seen, uint64_t cpu_ns,
                      uint64_t switches)
{
    uint64_t took = times_clock_rest(c, cpu_ns);
    atomic_store(&c->read_ns, cpu_ns);
    if (seen) {
        seen->samples++;
        seen->cpu_ns += took;
        seen->squares += square(took);
    } else {
        atomic_fetch_add(&c->lost_ns, took);
    }
    if (seen && !c->read) {
        c->first_ns = took;
        c->run_ns = took / (switches - MIN(c->switches, switches) + 1);
        atomic_store(&c->first, seen);
    }
    c->read = true;
}

uint64_t times_clock_rest(struct times_clock *c, uint64_t cpu_ns)
{
    uint64_t read_ns = atomic_load(&c->read_ns);
    return cpu_ns > read_ns ? cpu_ns - read_ns : 0;
}

/* Returns what the first reading of a thread stands for, beyond the time since its start. */
static uint64_t missing_of(const struct times_account *a, const struct times_first *f)
{
    return a->tick_ns - MIN(f->run_ns, a->tick_ns);
}

void times_account_begin(struct times_account *a, uint64_t tick_ns)
{
    vec_release(&a->firsts);
    *a = (struct times_account){.tick_ns = tick_ns};
}

int times_account_first(struct times_account *a, struct times_clock *c)
{
    struct times_reading *reading = atomic_exchange(&c->first, NULL);
    return reading ? vec_push(&a->firsts, ((struct times_first){reading, c->first_ns, c->run_ns}))
                   : 0;
}

int times_account_end(struct times_account *a, struct times_clock *c, uint64_t cpu_ns, bool timer)
{
    uint64_t rest = times_clock_rest(c, cpu_ns);
    a->lost_ns += atomic_load(&c->lost_ns) + (timer ? 0 : rest);
    a->rest_ns += timer ? rest : 0;
    return times_account_first(a, c);
}

uint64_t times_account_settle(struct times_account *a, uint64_t rest_ns, uint64_t lost_ns)
{
    uint64_t due = a->rest_ns + rest_ns, missing = 0;
    due -= MIN(due, a->granted_ns);
    for (size_t i = 0; i < a->firsts.len; i++)
        missing += missing_of(a, &a->firsts.data[i]);
    double factor = missing ? MIN((double)due / (double)missing, ENLARGED_MOST) : 0;
    for (size_t i = 0; i < a->firsts.len; i++) {
        const struct times_first *f = &a->firsts.data[i];
        uint64_t rest = (uint64_t)(factor * (double)missing_of(a, f));
        f->reading->granted_ns += rest;
        f->reading->granted_squares += square(f->ns + rest) - square(f->ns);
        a->granted_ns += rest;
        due -= MIN(due, rest);
    }
    vec_clear(&a->firsts);
    return due + a->lost_ns + lost_ns;
}
