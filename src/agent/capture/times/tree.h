/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The trees of calls that cpu=times fills: native memory that instrumented code
 * (probe/java/lang/JvmscopeTimes.java, which knows the offsets) reads and writes through Unsafe,
 * and that a signal handler reads. Knows no JVM.
 *
 * - A slot belongs to a platform thread, is found by hashing the address of its JavaThread, and
 *   points to the context that runs there.
 * - A context is one tree. One thread uses it at a time, which may be virtual, and gives it back
 *   after it has left all calls.
 * - A virtual thread that has a context is in a table, by its thread id, from where the probe at
 * its mounting takes the context. It reads its own entry only, which it has added itself.
 * - A node is one call path. It is exactly one cache line unless calls are timed, and has room for
 *   the entries of its first children.
 * - An entry is a child in a node's table: its method and its address in one word, so that finding
 *   it touches no other cache line.
 *
 * Rules that make this safe without locks: nodes of a context are written by the thread that runs
 * in it alone; the handler, which interrupts that same thread, writes `readings` only; a node is
 * complete before anything points to it, a larger table is complete before its mask is set, and a
 * node is in its chunk before the chunk counts it. Slots, contexts and readings are never unmapped.
 * Nodes of an ended tree stay readable until TIMES_ENDED others have ended, and then read as zeros:
 * a late probe sees context 0 and does nothing.
 */
#pragma once

#include "base/macro.h"
#include "base/vec.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    TIMES_SLOT_BITS = 16,
    TIMES_SLOTS = 1 << TIMES_SLOT_BITS,
    TIMES_FREE = 1, /* special keys, which are not addresses */
    TIMES_GONE = 2,
    TIMES_ROOT = -2,   /* of a context's root */
    TIMES_BEYOND = -3, /* of the node for calls for which there was no room */
    TIMES_UNREAD = -4, /* in reports: of CPU time that belongs to no node (readings.h) */
    TIMES_NODE = 64,   /* bytes */
    TIMES_NODE_TIMED = 128,
    TIMES_OWN_TABLE = 4,
    TIMES_METHOD_BITS = 22, /* in an entry: addresses of nodes have 42 bits more */
    TIMES_METHODS = (1 << TIMES_METHOD_BITS) - 1,
    TIMES_EMPTY = TIMES_METHODS, /* an entry without a method */
};

struct times_context;

struct times_node {
    int32_t method;
    _Atomic uint32_t mask;
    struct times_context *context;
    uint64_t count;
    uint64_t *_Atomic table; /* entries of children, open addressing */
    uint64_t own_table[TIMES_OWN_TABLE];
    /* The rest exists only in trees of timed calls. */
    uint64_t total_ns, started, slowest_ns;
    struct times_node *parent;
    uint64_t unused[4];
};

_Static_assert(sizeof(struct times_node) == TIMES_NODE_TIMED, "the probes know the layout");

/*
 * What readings of the CPU clock found for a node. It is separate, because few nodes have any.
 * Squares are sums of the squares of what the readings stand for, in us.
 */
struct times_reading {
    uint64_t samples, cpu_ns, squares;    /* written by the handler */
    uint64_t granted_ns, granted_squares; /* in addition, under the caller's lock (readings.h) */
};

struct times_chunk {
    struct times_chunk *next;
    uint32_t capacity;
    _Atomic uint32_t used;
    struct times_node *nodes;
};

struct times_context {
    struct times_node *_Atomic current;
    struct times_node *root;
    struct times_node *beyond;
    struct times_chunk *_Atomic chunks; /* list of chunks, newest first */
    char *spare, *spare_end;            /* for tables */
    struct times_context *next_free;
    uint32_t number;
    uint32_t thread; /* serial of the last thread that ran in it */
};

_Static_assert(sizeof(struct times_context) == 64, "a cache line");

struct times_slot {
    _Atomic uint64_t key;
    struct times_context *_Atomic context; /* the thread that runs here now */
    struct times_context *own;             /* of the platform thread */
    void *owner;                           /* pointer of the caller's */
};

_Static_assert(sizeof(struct times_slot) == 32, "the probes know the layout");

/* Which context a virtual thread has. */
struct times_virtual {
    _Atomic uint64_t thread; /* its id, 0 if no entry was ever here, or TIMES_LEFT */
    struct times_context *_Atomic context;
};

_Static_assert(sizeof(struct times_virtual) == 16, "the probes know the layout");

#define TIMES_LEFT UINT64_MAX

/* TIMES_ENDED: ended trees whose nodes are kept; a recording may have two trees (times_begin). */
enum { TIMES_CONTEXTS = 1 << 16, TIMES_ENDED = 3 };

/* twice as many as there can be contexts; an entry is at most TIMES_PROBES places from its first */
enum { TIMES_VIRTUAL_BITS = 17, TIMES_VIRTUALS = 1 << TIMES_VIRTUAL_BITS, TIMES_PROBES = 64 };

struct times_tree {
    struct times_slot *slots;
    struct times_virtual *virtuals;
    /* trees take turns with these, because a late probe must not touch the next tree's */
    struct times_context *all_contexts, *contexts;
    _Atomic uint32_t n_contexts;
    struct times_slot
        lost; /* takes what is not recorded: the node of its context is its own child */
    struct times_context lost_context;
    struct times_node lost_node;
    struct times_reading *readings; /* one for each TIMES_NODE bytes of memory */
    char *memory;                   /* of nodes and tables, for this tree */
    size_t limit;                   /* in bytes; the same for all trees */
    _Atomic size_t used;

    struct times_ended {
        char *memory;
        size_t size;
    } ended[TIMES_ENDED]; /* nodes of the previous trees, newest first */

    uint64_t generation;
    bool timed, active;
    uint32_t node_size;
    struct times_context *free_contexts; /* under the caller's lock */
};

/*
 * Maps slots and contexts, once per process, and begins a tree with room for `limit` bytes of
 * nodes. If a tree is active, times_end comes first; otherwise nothing has changed after -ENOMEM.
 * Under the caller's lock.
 */
int times_begin(struct times_tree *t, size_t limit, bool timed) must_check;
/*
 * Ends the tree: no slot leads to a context any more. Call times_merge before. Under the caller's
 * lock.
 */
void times_end(struct times_tree *t);

/*
 * Returns a context with no call in progress, with `reuse` one that was given back if there is one;
 * NULL when there are none left. Under the caller's lock.
 */
struct times_context *times_context_take(struct times_tree *t, bool reuse);
void times_context_give(struct times_tree *t, struct times_context *c);
/* Registers a thread; NULL when the table is full. Under the caller's lock. */
struct times_slot *times_slot_add(struct times_tree *t, uint64_t key, struct times_context *own,
                                  void *owner);
void times_slot_remove(struct times_tree *t, struct times_slot *s);

/*
 * Gives a virtual thread a context, in place of one that it may have. Returns false if there is no
 * room. Under the caller's lock.
 */
bool times_virtual_add(struct times_tree *t, uint64_t thread, struct times_context *context);
/*
 * Removes a virtual thread if it has this context; returns whether it had. Under the caller's lock.
 */
bool times_virtual_remove(struct times_tree *t, uint64_t thread,
                          const struct times_context *context);

/*
 * Returns where the timer's readings of a node are stored; NULL when the node does not belong to
 * this session. Safe in signal handlers.
 */
struct times_reading *times_reading_of(const struct times_tree *t, const struct times_node *n);

/*
 * Returns the child of a node, which is added if necessary; called on the thread that runs in its
 * context, under the caller's lock. Never returns NULL: when there is no room it returns the node
 * for such calls.
 */
struct times_node *times_child(struct times_tree *t, struct times_node *parent, int32_t method);

/*
 * The contents of all contexts merged, so that equal paths are one. Element 0 is the root; parents
 * precede their children.
 */
struct times_path {
    int32_t method;
    uint32_t parent;
    uint32_t thread; /* 0 unless merged by thread */
    uint64_t samples, count, cpu_ns, squares, total_ns, slowest_ns;
    /* the part of total_ns in calls that are innermost in their threads and have not returned */
    uint64_t open_ns;
};

struct times_paths {
    VEC(struct times_path) all;
};

/*
 * Overwrites *ret with the merged paths, those of each thread separately if by_thread; the time of
 * calls that have not returned counts until `now`. While threads run, the figures are approximate.
 * Returns 0 or -ENOMEM.
 */
int times_merge(const struct times_tree *t, bool by_thread, uint64_t now,
                struct times_paths *ret) must_check;
void times_paths_release(struct times_paths *p);
