/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/capture/alloc/known_sites.h"

#include "agent/stacks/own_stack.h"
#include "base/hash.h"

#include <pthread.h>
#include <stdlib.h>

/*
 * Each thread has a table. The key of a stack and the point where it left Java determine the set of
 * entries in which it may be stored; stacks that differ only in their callers share a set.
 */
enum { SETS_LOG2 = 6, SETS = 1 << SETS_LOG2, WAYS = 4 };

/* The bytes that the tables of all threads may take; a thread beyond them walks its stacks. */
enum { BYTES_MAX = 32 << 20 };

struct known_sites {
    uint32_t round;      /* of the recording whose stacks it has */
    uint32_t next[SETS]; /* index of the entry that is replaced next */
    struct known_site places[SETS][WAYS];
};

static __thread struct known_sites *mine;
static _Atomic int64_t bytes; /* what all tables take */

/* Its destructor frees the table of a thread that ends while nothing is recorded. */
static pthread_key_t at_end;

static void forget_stacks(struct known_sites *k)
{
    for (unsigned i = 0; i < SETS * WAYS; i++) {
        struct known_stack *stack = &k->places[i / WAYS][i % WAYS].stack;
        atomic_fetch_sub_explicit(&bytes, stack->room, memory_order_relaxed);
        known_stack_release(stack);
    }
}

/*
 * Clears `mine`, because the thread may run Java code again when another library's destructor
 * detaches it.
 */
static void release(void *known)
{
    struct known_sites *k = known;
    forget_stacks(k);
    free(k);
    atomic_fetch_sub_explicit(&bytes, (int64_t)sizeof(*k), memory_order_relaxed);
    mine = NULL;
}

static void make_key(void)
{
    (void)pthread_key_create(&at_end, release);
}

static bool make_table(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, make_key);
    if (atomic_load_explicit(&bytes, memory_order_relaxed) >= BYTES_MAX)
        return false;
    mine = calloc(1, sizeof(*mine));
    if (!mine)
        return false;
    atomic_fetch_add_explicit(&bytes, (int64_t)sizeof(*mine), memory_order_relaxed);
    return pthread_setspecific(at_end, mine) == 0;
}

struct site_lookup known_site(JNIEnv *jni, uint64_t key)
{
    struct site_lookup lookup = {.site = -1, .round = sites_round(), .key = key, .expected = -1};
    struct walk_start start;
    if (!own_stack_place(jni, &start) || (!mine && !make_table()))
        return lookup;
    if (unlikely(mine->round != lookup.round)) {
        forget_stacks(mine);
        mine->round = lookup.round;
    }
    unsigned set = hash_u64(key ^ hash_u64(start.sp)) >> (64 - SETS_LOG2);
    for (unsigned i = 0; i < WAYS; i++) {
        struct known_site *k = &mine->places[set][i];
        if (k->round != lookup.round || k->key != key || !own_stack_is(&k->stack, &start))
            continue;
        lookup.place = k;
        if (unlikely(own_stack_checks()))
            lookup.expected = k->site;
        else
            lookup.site = k->site;
        return lookup;
    }
    lookup.place = &mine->places[set][mine->next[set]++ % WAYS];
    return lookup;
}

void known_site_keep(const struct site_lookup *lookup, const struct walk_words *words, int64_t site)
{
    struct known_site *k = lookup->place;
    if (!k)
        return;
    if (lookup->expected >= 0 && site >= 0)
        own_stack_checked(lookup->expected == site);
    uint32_t room = k->stack.room;
    bool kept = site >= 0 &&
                (room || atomic_load_explicit(&bytes, memory_order_relaxed) < BYTES_MAX) &&
                known_stack_keep(&k->stack, words);
    atomic_fetch_add_explicit(&bytes, (int64_t)k->stack.room - room, memory_order_relaxed);
    k->round = kept ? lookup->round : 0;
    k->key = lookup->key;
    k->site = site;
}

void known_sites_release(void)
{
    if (!mine)
        return;
    (void)pthread_setspecific(at_end, NULL);
    release(mine);
}
