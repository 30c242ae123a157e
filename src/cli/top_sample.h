/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `top` shows of a VM at one moment: the counters that HotSpot publishes, the threads' CPU
 * time from /proc, and, on request, the threads' states from the agent.
 */
#pragma once

#include "base/vec.h"
#include "proto/vm.h"

#include <stdbool.h>
#include <stdint.h>

enum { POOLS_MAX = 16, COLLECTORS_MAX = 4, STATES_MAX = 12 };

struct top_task {
    pid_t tid;
    char name[128];
    char carries[128]; /* the virtual thread that it carried when the VM was asked; "": none */
    bool is_cut;     /* the kernel keeps 15 bytes of a name, and the VM has not provided the rest */
    uint64_t cpu_ns; /* a total; in a table the difference from the last sample */
    uint64_t started; /* when, in the clock ticks of the kernel */
};

/* A state of threads, and how many are in it. */
struct top_state {
    char name[16];
    unsigned count;
};

struct top_sample {
    uint64_t time_ns, cpu_ns, rss;

    struct top_pool {
        char *name;
        int64_t used, capacity; /* as the VM published them last; 0 before that */
    } pools[POOLS_MAX];

    struct {
        char *name;
        int64_t collections, time_ns;
    } collectors[COLLECTORS_MAX];

    int64_t threads, daemons, peak, loaded, unloaded, compile_ns, safepoints, safepoint_ns;
    size_t n_pools, n_collectors;
    /*
     * An agent is in the VM that can change classes; the VM counts a class again each time that one
     * changes it
     */
    bool counts_changed;
    char process[128]; /* the process's name in the kernel */
    VEC(struct top_task) tasks;

    struct top_state states[STATES_MAX];

    size_t n_states;
    char states_unknown[200];     /* why the VM gave none; "" if it did give one */
    const char *counters_unknown; /* why there are none; NULL if there are */
};

/*
 * Fills *ret, which the caller releases. states: asks the VM for the states and whole names of its
 * threads, for which the agent is loaded. Returns 0, or -ESRCH when the program has ended.
 */
int top_sample_take(struct top_sample *ret, const struct vm *vm, bool states) must_check;
void top_sample_release(struct top_sample *s);

/* Returns whether a use of 0 is real. Before the first collection the VM has published none. */
bool top_pool_used_known(const struct top_sample *s, const struct top_pool *p);
