/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/vm_time.h"

#include "base/macro.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { ROWS_MAX = 32 };

int profile_cpu_time(struct profile *p, uint64_t time_ns, const char *what, const char *name,
                     int64_t cpu_ns)
{
    int64_t kind = profile_string(p, what, strlen(what)),
            thread = profile_string(p, name, strlen(name));
    if (kind < 0 || thread < 0)
        return -ENOMEM;
    if (cpu_ns <= 0)
        return 0;
    return vec_push(&p->cpu_times, ((struct profile_cpu_time){time_ns, (uint64_t)cpu_ns,
                                                              (uint32_t)kind, (uint32_t)thread}));
}

static int by_time(const void *a, const void *b)
{
    const struct profile_cpu_time *x = a, *y = b;
    return (x->time_ns > y->time_ns) - (x->time_ns < y->time_ns);
}

void profile_cpu_times_sort(struct profile *p)
{
    vec_sort(&p->cpu_times, by_time);
}

static bool is(const struct profile *p, const struct profile_cpu_time *t, const char *what)
{
    return str_is(profile_text(p, t->what), what);
}

static int most_first(const void *a, const void *b)
{
    const struct vm_time_row *x = a, *y = b;
    return x->cpu_ns != y->cpu_ns ? (x->cpu_ns < y->cpu_ns ? 1 : -1)
                                  : (x->what > y->what) - (x->what < y->what);
}

/* Returns how much of cpu_ns was used from the beginning of its time to `at`, spread evenly. */
static uint64_t used_until(uint64_t cpu_ns, uint64_t before, uint64_t time_ns, uint64_t at)
{
    if (at >= time_ns)
        return cpu_ns;
    return at <= before
               ? 0
               : (uint64_t)((double)cpu_ns * (double)(at - before) / (double)(time_ns - before));
}

uint64_t vm_time_selected(uint64_t cpu_ns, uint64_t before, uint64_t time_ns,
                          const struct profile_filter *filter)
{
    uint64_t from = filter->from_ns;
    uint64_t to = filter->to_ns ? filter->to_ns : UINT64_MAX;
    if (time_ns <= before)
        return time_ns >= from && time_ns < to ? cpu_ns : 0;
    uint64_t until = used_until(cpu_ns, before, time_ns, to),
             earlier = used_until(cpu_ns, before, time_ns, from);
    return until - MIN(earlier, until);
}

int vm_time_sum(struct vm_time *ret, const struct profile *p, const struct profile_filter *filter)
{
    struct vm_time sum = {0};
    uint64_t others_ns = 0, before = 0;
    for (size_t i = 0; i < p->cpu_times.len; i++) {
        const struct profile_cpu_time *t = &p->cpu_times.data[i];
        uint64_t ns = vm_time_selected(t->cpu_ns, before, t->time_ns, filter);
        if (is(p, t, VM_TIME_PROCESS)) /* the last of the events that are written together */
            before = t->time_ns;
        if (is(p, t, VM_TIME_PROCESS) || is(p, t, VM_TIME_JAVA)) {
            *(is(p, t, VM_TIME_JAVA) ? &sum.java_ns : &sum.process_ns) += ns;
            continue;
        }
        if (!ns)
            continue;
        size_t n = 0; /* a file may contain anything */
        while (n < MIN(sum.rows.len, (size_t)ROWS_MAX - 1) && sum.rows.data[n].what != t->what)
            n++;
        if (n == sum.rows.len && vec_push(&sum.rows, ((struct vm_time_row){t->what, 0})) < 0) {
            vm_time_release(&sum);
            return -ENOMEM;
        }
        sum.rows.data[n].cpu_ns += ns;
        others_ns += ns;
    }
    if (!sum.java_ns)
        sum.java_ns = sum.process_ns - MIN(others_ns, sum.process_ns);
    sum.rest_ns = sum.process_ns - MIN(others_ns + sum.java_ns, sum.process_ns);
    if (sum.rows.len)
        qsort(sum.rows.data, sum.rows.len, sizeof(*sum.rows.data), most_first);
    *ret = sum;
    return 0;
}

void vm_time_release(struct vm_time *t)
{
    vec_release(&t->rows);
}

/* Returns the node of "[compilers]" or the like, with the thread's name below it. */
static int64_t node_of(struct profile *p, const struct profile_cpu_time *t)
{
    char text[64];
    struct str what = profile_text(p, t->what);
    snprintf(text, sizeof(text), "[%.*s]", (int)MIN(what.len, sizeof(text) - 3), what.data);
    int64_t name = profile_string(p, text, strlen(text));
    int64_t group = name < 0 ? name : profile_method(p, 0, (uint32_t)name, 0, 0);
    int64_t thread = profile_method(p, 0, t->name, 0, 0);
    int64_t outer = group < 0 ? group : profile_frame(p, (uint32_t)group, 0, FRAME_NATIVE);
    int64_t inner = thread < 0 ? thread : profile_frame(p, (uint32_t)thread, 0, FRAME_NATIVE);
    int64_t node = outer < 0 ? outer : profile_node(p, 0, (uint32_t)outer);
    return node < 0 || inner < 0 ? -ENOMEM : profile_node(p, (uint32_t)node, (uint32_t)inner);
}

/*
 * Adds the samples of the time since `before`. When it was used is unknown, so the samples are
 * placed at equal distances.
 */
static int spread(struct profile *p, const struct profile_sample *all, uint64_t before)
{
    enum { PARTS = 32 };

    uint64_t parts = MIN(all->weight, (uint64_t)PARTS);
    uint64_t span = all->time_ns > before ? all->time_ns - before : 0;
    int r = 0;
    for (uint64_t i = 0; i < parts && r == 0; i++) {
        struct profile_sample s = *all;
        s.time_ns = before + span / parts * i;
        s.weight = all->weight / parts + (i < all->weight % parts);
        r = vec_push(&p->vm.samples, s);
    }
    return r;
}

int vm_time_samples(struct profile *p)
{
    uint64_t interval = p->series[PROFILE_CPU].interval_ns;
    struct map remainders = {0}; /* by node: nanoseconds that do not make up an interval yet */
    uint64_t before = 0;
    int r = 0;
    if (!interval || p->vm.samples.len)
        return 0;
    for (size_t i = 0; i < p->cpu_times.len && r == 0; i++) {
        const struct profile_cpu_time t = p->cpu_times.data[i];
        if (is(p, &t, VM_TIME_JAVA))
            continue;
        if (is(p, &t, VM_TIME_PROCESS)) { /* the last of the events that are written together */
            before = MIN(t.time_ns, p->duration_ns);
            continue;
        }
        struct str name = profile_text(p, t.name);
        int64_t node = node_of(p, &t);
        int64_t thread = profile_thread(p, VM_TIME_THREAD | (uint64_t)t.what << 32 | t.name,
                                        name.data, name.len);
        uint64_t *rest =
            node < 0 || thread < 0 ? NULL : map_at(&remainders, (uint64_t)node, interval / 2, NULL);
        if (!rest) {
            r = -ENOMEM;
            break;
        }
        *rest += t.cpu_ns;
        r = spread(
            p,
            &(struct profile_sample){t.time_ns, *rest / interval, (uint32_t)thread, (uint32_t)node},
            before);
        *rest %= interval;
    }
    map_release(&remainders);
    return r;
}
