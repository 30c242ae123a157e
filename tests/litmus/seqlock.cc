/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks base/seqlock.h, the very source, under the memory model of C. relacy (package relacy-dev)
 * replaces <stdatomic.h> and tries what a processor with weak ordering may do. Prints "passed" and
 * exits with 0, or prints the execution that fails and exits with 1.
 *
 * Two writers and a reader share an entry of two words, which are always equal. With
 * -DWITHOUT_FENCE the writer's fence is missing, which the program must detect.
 */
#include <relacy/relacy.hpp>

#define _Atomic(T) rl::atomic<T>
#define atomic_load_explicit(p, order)         (p)->load(order)
#define atomic_store_explicit(p, value, order) (p)->store(value, order)
#define atomic_compare_exchange_strong(p, expected, value) \
    (p)->compare_exchange_strong(*(expected), value, memory_order_seq_cst)

using namespace rl;

#ifdef WITHOUT_FENCE
static void no_fence(memory_order order, debug_info_param info)
{
    if (order != mo_release)
        rl::atomic_thread_fence(order, info);
}

#define atomic_thread_fence(order) no_fence(order)
#endif

#define _STDATOMIC_H
#define __CLANG_STDATOMIC_H
#include "base/seqlock.h"

struct an_entry_is_whole : test_suite<an_entry_is_whole, 3> {
    atomic<uint32_t> version, a, b;

    void before()
    {
        version.store(0, memory_order_relaxed);
        a.store(0, memory_order_relaxed);
        b.store(0, memory_order_relaxed);
    }

    void write(uint32_t value)
    {
        if (!seqlock_begin(&version))
            return;
        a.store(value, memory_order_relaxed);
        b.store(value, memory_order_relaxed);
        seqlock_end(&version);
    }

    void thread(unsigned index)
    {
        if (index < 2)
            return write(index + 1);
        for (int i = 0; i < 2; i++) {
            uint32_t v = seqlock_read(&version);
            uint32_t x = a.load(memory_order_relaxed), y = b.load(memory_order_relaxed);
            if (v && seqlock_still(&version, v))
                RL_ASSERT(x == y && x != 0);
        }
    }
};

int main()
{
    test_params params;
    params.search_type = random_scheduler_type;
    params.iteration_count = 200000;
    bool passed = simulate<an_entry_is_whole>(params);
    std::cout << (passed ? "passed" : "failed") << std::endl;
    return passed ? 0 : 1;
}
