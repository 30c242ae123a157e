/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the constants of a flight recording stand for in a profile: stacks are nodes, threads are
 * threads. Each id of a chunk is resolved once, and a stack that several chunks define is
 * recognized by its frames. Functions that return a number return -ENOMEM or -E2BIG on failure.
 */
#pragma once

#include "jfr/reader_rows.h"
#include "profile/load_sums.h"

struct name_lookup {
    uint32_t round, number; /* the answer is valid only if its round is that of the current chunk */
};

/*
 * The answers about the constants of one type in the current chunk. Ids of all recorders are small,
 * so they are an array, because a map would cause a cache miss for each event; other ids are in
 * `far`.
 */
struct answers {
    const struct rec_chunk *chunk;
    const struct rec_type *type;
    uint32_t round;
    VEC(struct name_lookup) of_id;
    struct map far;
};

struct name_method {
    uint32_t number; /* the number in the profile, + 1; 0: not seen yet */
    /*
     * no method but a mark; a method of the agent's probes; a function of the agent's library, or
     * of the VM's
     */
    bool is_mark, is_agents, is_library, is_vms;
};

/* A frame before it has a number. */
struct name_place {
    uint32_t method; /* its number in the profile */
    int32_t line;
    enum frame_kind kind;
};

struct names {
    struct profile *p;
    const struct profile_filter *filter; /* selects the threads that count; NULL: all */
    struct answers stacks, threads;
    struct map nodes;                /* hash of a stack's frames to a node */
    struct map by_key;               /* rec_stack_key to a node, for stacks of several chunks */
    const struct rec_chunk *chunk;   /* the chunk to which stack_nodes and methods belong */
    struct map stack_nodes;          /* id of a stack that was read by name, to its node */
    VEC(struct name_method) methods; /* indexed by rec_method.number */

    /*
     * Frame types by their texts, each of which a recording has once, and the frame kinds they
     * stand for.
     */
    struct frame_type {
        const char *text;
        enum frame_kind kind;
    } types[16];

    VEC(uint32_t) thread_numbers;     /* numbers in the profile, + 1, by rec_thread.number */
    VEC(struct sum_thread) of_thread; /* by the profile's number */
    uint32_t stand_ins[2];            /* numbers, + 1: of a thread, and of one of the VM's own */
    struct rec_stack_room room;
    VEC(struct name_place) places; /* of the stack being read, the outermost first */
    VEC(uint32_t) frames;          /* the numbers of these in the profile */
};

/*
 * Returns the node of the stack with this id in the chunk of an object, whose field f refers to it;
 * node 0 when the chunk has no such stack.
 */
int64_t names_stack(struct names *n, const struct rec_object *o, const struct rec_field *f,
                    uint64_t id);
/*
 * Returns the node of the stack in the object's field with this name; node 0 if the object has no
 * stack.
 */
int64_t names_stack_by_name(struct names *n, const struct rec_object *o, const char *name);
/*
 * Returns the number of the thread with this id in the chunk of an object, whose field f refers to
 * it.
 */
int64_t names_thread(struct names *n, const struct rec_object *o, const struct rec_field *f,
                     uint64_t id);
/* Returns the number of the thread of a decoded constant; NULL stands for an unknown thread. */
int64_t names_thread_of(struct names *n, const struct rec_thread *t);
void load_names_release(struct names *n);

/* Prefetches the answer about the stack with this id. */
static inline void names_prefetch_stack(const struct names *n, uint32_t id)
{
    if (id < n->stacks.of_id.len)
        __builtin_prefetch(&n->stacks.of_id.data[id]);
}

/* Returns whether the answer about an id is known, and stores the number in *ret if so. */
static inline bool answers_have(const struct answers *all, const struct rec_chunk *chunk,
                                const struct rec_type *type, uint64_t id, uint32_t *ret)
{
    if (unlikely(id >= all->of_id.len || all->chunk != chunk || all->type != type ||
                 all->of_id.data[id].round != all->round))
        return false;
    *ret = all->of_id.data[id].number;
    return true;
}
