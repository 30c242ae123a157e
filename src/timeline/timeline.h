/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What each thread did, and what caused it: the TRCThread* model of the TPTP thread profiler
 * (design of 200320, "Extension for TPTP (Profiler) data model"), in some 8 bytes for each change
 * of state (node.h). Nodes lie in chronological order over all threads. A node is either the
 * beginning of a state of its thread, which lasts until the thread's next node, or an instant (an
 * interaction with another thread), after which the state continues. The node that ends a wait
 * names its cause: `waker` is the node of another thread at which the wait could end. A waker lies
 * before the node that it woke, in time and in the array, so the array is a topological order of
 * the graph. A timeline does not change once it is built. Its arrays are plain memory, which can be
 * written to an index file and mapped from it (index.h).
 */
#pragma once

#include "timeline/node.h"

enum tl_kind {
    /* States: the kind says what the thread does from this node on. */
    TL_RUN,         /* TRCThreadRunningEvent */
    TL_WAIT_OBJECT, /* TRCThreadWaitingForObjectEvent */
    TL_WAIT_LOCK,   /* TRCThreadWaitingForLockEvent; other: the owner */
    TL_SLEEP,       /* TRCThreadSleepingEvent */
    TL_WAIT_JOIN,   /* TRCThreadWaitingForJoinEvent; other: the thread joined */
    TL_DEADLOCK,    /* TRCThreadDeadLockEvent; other: the owner */
    TL_DEAD,        /* TRCThreadDeadEvent */
    TL_PARK,        /* parked; object: the blocker */
    TL_REACQUIRE,   /* notified, and waiting for the monitor */
    TL_IO,          /* in a blocking read or write */
    TL_PREEMPTED,   /* ready to run, without a processor */
    TL_UNMOUNTED,   /* a virtual thread that is ready, without a carrier */
    TL_CLASS_INIT,  /* waits while another thread initializes a class */
    TL_UNKNOWN,     /* what the thread did is not in this part of a recording */
    /* Instants: the thread's state continues. */
    TL_TIMEOUT,    /* TRCThreadWaitTimeoutExceedEvent */
    TL_STARTS,     /* TRCThreadStartsThreadEvent; other: the thread started */
    TL_HANDOFF,    /* TRCThreadHandoffLockEvent; other: the receiver */
    TL_INTERRUPTS, /* TRCThreadInterruptThreadEvent; other: the thread interrupted */
    TL_NOTIFY,     /* TRCThreadNotifyEvent; other: the thread woken */
    TL_NOTIFY_ALL, /* TRCThreadNotifyAllEvent */
    TL_DEAD_JOIN,  /* TRCThreadDeadAndNotifyJoinedEvent: follows TL_DEAD */
    TL_UNPARK,     /* other: the thread unparked */
    TL_ACQUIRE,    /* exact holds: a monitor was entered without contention, or a lock was taken */
    TL_RELEASE,    /* exact holds, and contended releases that were recorded */
    TL_KINDS
};

/* How a wait ended. */
enum tl_edge {
    TL_NO_EDGE, /* no wait ended here, or the cause is unknown */
    TL_BY_START,
    TL_BY_HANDOFF,
    TL_BY_NOTIFY,
    TL_BY_NOTIFY_ALL,
    TL_BY_UNPARK,
    TL_BY_JOIN,
    TL_BY_INTERRUPT,
    TL_BY_TIMER,
    TL_BY_IO,
    TL_EDGES
};

/* Flags of a node. */
#define TL_INFERRED 1 /* the cause was inferred by a rule, not recorded */
/* from this node to the thread's next one it waits for another thread, a timer or a device */
#define TL_BLOCKED 2
#define TL_FIRST   4 /* the thread's first node, and it existed before the recording began */

/* Attributes that nodes share, each combination stored once. All but the timeout may be TL_NONE. */
struct tl_context {
    uint32_t object, stack, other; /* indices of objects, stacks, threads */
    uint32_t timeout_ms;           /* 0: none; saturated */
};

#define TL_THREAD_VIRTUAL 1
#define TL_THREAD_DAEMON  2
#define TL_THREAD_SYSTEM  4 /* a thread of the VM itself: not part of the program */
/* a thread that `convert --thread` left out: only other threads' events name it */
#define TL_THREAD_LEFT_OUT 8

struct tl_thread {
    uint64_t id; /* java.lang.Thread's id */
    /* time of the first node; time of the end, or of the recording's end */
    uint64_t start_ns, end_ns;
    uint32_t name, group, parent; /* strings; parent is an index of threads or TL_NONE */
    uint32_t parent_group;        /* string: the parent of its group */
    uint32_t object;              /* its java.lang.Thread in objects, or TL_NONE */
    uint32_t first, last;         /* nodes, or TL_NONE */
    uint32_t nodes;
    uint32_t flags;
    uint32_t spare;
};

/* its holds were recorded, so none are inferred from contention */
#define TL_OBJECT_EXACT 2
/* an exclusive lock of java.util.concurrent (its Sync), which unpark hands over */
#define TL_OBJECT_LOCK 1

struct tl_object {
    /* the recorded identity, unique within its class as far as the recording knows */
    uint64_t id;
    uint32_t class;  /* string: java.lang.Object */
    uint32_t thread; /* the thread, if this is a java.lang.Thread, or TL_NONE */
    uint32_t flags;
    uint32_t label; /* string, or TL_NONE */
};

struct tl_frame {
    uint32_t method; /* string: package.Class.method */
    uint32_t line;   /* 0: unknown */
};

struct tl_stack {
    uint32_t first, len; /* frames, leaf first */
};

/* A time in which no Java thread runs. */
struct tl_pause {
    uint64_t start_ns, end_ns;
    uint32_t name; /* string */
    uint32_t spare;
};

/*
 * A time in which a thread ran without waiting, for how much of it the thread had no processor, and
 * for how much of the rest it waited for pages of memory. Sorted by thread, then by start.
 */
struct tl_delay {
    uint64_t start_ns, end_ns, ns, fault_ns;
    uint32_t thread;
    uint32_t throttled_us; /* of ns: the most that the container's CPU limit explains */
};

/*
 * How much of the whole program's critical path falls on a class's locks
 * (analysis/critical_path.h).
 */
struct tl_share {
    uint64_t ns; /* time on the path */
    /* sections on the path; all sections; sections on the path that had to wait */
    uint64_t holds_on_path, holds, contended;
    uint32_t class;  /* string */
    uint32_t object; /* one of them */
    /* 1: a part was inferred from contended events alone */
    uint32_t inferred;
    uint32_t exact; /* 1: its holds were recorded */
};

/* The waits for the locks of a class of which it is unknown who held them (unknown_owners.h). */
struct tl_unowned {
    uint32_t class; /* number of a string */
    /* 1: its objects are locks. A semaphore, a latch or a queue is not one: it has no owner. */
    uint32_t lock;
    uint64_t waits; /* all waits for its objects */
    /* the number of those without a known owner, and the time that these took */
    uint64_t unknown, ns;
};

#define TL_ARRAYS(X)                                 \
    X(uint8_t, packed)         /* the nodes' bits */ \
    X(struct tl_block, blocks) /* of these */        \
    X(uint16_t, shapes)        /* TL_SHAPES */       \
    X(struct tl_context, contexts)                   \
    X(struct tl_thread, threads)                     \
    X(struct tl_object, objects)                     \
    X(struct tl_stack, stacks)                       \
    X(struct tl_frame, frames)                       \
    X(struct tl_pause, pauses)                       \
    X(struct tl_delay, delays)                       \
    X(uint32_t, strings) /* offsets into text */     \
    X(char, text)

/*
 * By how much the time inside an object's sections can be below, and above, the likely time,
 * because ends of sections are inferred. The sums saturate.
 */
struct tl_unsure {
    uint64_t less_ns, more_ns;
};

/*
 * Results of analyses, NULL until they are requested. They are kept with the timeline, and in its
 * index when there is one.
 */
#define TL_KEPT(X)                                                                             \
    X(uint8_t, holds)           /* analysis/sections.h */                                      \
    X(uint64_t, hold_first)     /* per thread: where its holds begin; n_threads + 1 of them */ \
    X(struct tl_unsure, unsure) /* per object */                                               \
    X(struct tl_share, shares)                                                                 \
    X(struct tl_unowned, unowned)

enum { TL_SHAPES = 1 << TL_SHAPE_BITS };

/* Of what a recording is a part, apart from time. */
#define TL_PART_OF_THREADS 1 /* other threads have no states */
#define TL_PART_OF_CLASSES 2 /* what threads did between their waits is unknown */

struct timeline {
    size_t n_nodes;
    uint64_t origin_ns;   /* the recording's clock at time 0 */
    uint64_t start_epoch; /* wall clock at time 0, ns since 1970 */
    uint64_t end_ns;      /* the recording's end, in ns since the origin */
    /*
     * how many of the events on which it is based (losses_of_threads) the recording reports as lost
     */
    uint64_t lost;
    uint64_t lost_any; /* not 0: it reports losses (profile/losses.h) */
    uint64_t wake_ns;  /* how long a thread takes to wake another one; 0: unknown */
    uint64_t unbound;  /* waits that ended without a known cause */
    /*
     * waits that began before the recording, of which it contains only the part from its beginning
     * on
     */
    uint64_t began_before;
    /* the offset in the recording from which it is truncated or damaged; 0: it is complete */
    uint64_t cut_at;
    uint32_t vm_version;   /* the version of the JDK, such as 21; 0: unknown */
    uint32_t instrumented; /* contanalysis: 1 yes, 0 no, TL_NONE not stated (plain JFR) */
    uint32_t deadlocks;    /* cycles found */
    /*
     * threads that wait at the end for a monitor whose owner is unknown, so that they may be in a
     * cycle
     */
    uint32_t owners_unknown;
    uint32_t unsampled; /* 1: the recording is known to have no CPU samples */
    /* 1: a part of a recording, after whose end threads that are not dead may have gone on */
    uint32_t part_of_time;
    /* 1: the system did not let the agent read how long threads had no processor */
    uint32_t uncounted;
    uint32_t part_of; /* TL_PART_OF_...; not 0: nothing can be traced from thread to thread */
#define TL_FIELD_(type, name) \
    const type *name;         \
    size_t n_##name;
    TL_ARRAYS(TL_FIELD_)
    TL_KEPT(TL_FIELD_)
#undef TL_FIELD_
    /* bits by enum tl_kept: which of them are not in `mapped` */
    uint32_t own_kept;
    struct tl_index *index; /* of a timeline that has a file, or is getting one */
    /* the file in which `packed` lies; NULL: it lies in memory of its own, or in `mapped` */
    struct tl_packed_file *packed_file;
    void *mapped; /* the index file, when the arrays lie in one */
    size_t mapped_len;
};

/* Returns the name of a kind as shown to users, such as "wait-lock". */
const char *tl_kind_name(enum tl_kind kind);
/* What people read in the place of the name. */
const char *tl_kind_text(enum tl_kind kind);
/* Returns the name of an edge as shown to users, such as "handoff". */
const char *tl_edge_name(enum tl_edge edge);
/* Returns the name of a kind in the TRC model, such as "TRCThreadRunningEvent". */
const char *tl_trc_name(enum tl_kind kind);

/* Returns the string with this number; "" for TL_NONE. */
const char *tl_string(const struct timeline *t, uint32_t number);
/* Returns the name of a thread; "" for TL_NONE. */
const char *tl_thread_name(const struct timeline *t, uint32_t thread);
/* Returns the name of the class of an object; NULL for TL_NONE. */
const char *tl_object_class(const struct timeline *t, uint32_t object);

/* Makes a node that was read from a file refer to a thread and a context that exist. */
tl_inline struct tl_node tl_node_within(struct tl_node n, size_t n_threads, size_t n_contexts)
{
    n.thread = n.thread < n_threads ? n.thread : 0;
    n.context = n.context < n_contexts ? n.context : 0;
    return n;
}

/* Returns the node with this number. */
tl_inline struct tl_node tl_node(const struct timeline *t, uint32_t node)
{
    const struct tl_block *b = &t->blocks[node >> TL_BLOCK_BITS];
    return tl_node_within(tl_node_unpack(t->packed + b->at, b, t->shapes, node, t->n_nodes),
                          t->n_threads, t->n_contexts);
}

/*
 * Reads nodes one after the other, unpacking a block at a time. Initialize it with {.t = t}. A node
 * that was read is valid until the reader reads one of another block.
 */
struct tl_reader {
    const struct timeline *t;
    size_t from, to; /* the nodes that are unpacked */
    struct tl_node nodes[TL_BLOCK_NODES];
};

/* Unpacks the block of a node. */
void tl_reader_fill(struct tl_reader *r, uint32_t node);

/* Returns the node with this number, unpacking its block if need be. */
static inline const struct tl_node *tl_read(struct tl_reader *r, uint32_t node)
{
    if (unlikely(node < r->from || node >= r->to))
        tl_reader_fill(r, node);
    return &r->nodes[node & (TL_BLOCK_NODES - 1)];
}

/* Returns the attributes of a node. */
static inline const struct tl_context *tl_context_of(const struct timeline *t, uint32_t node)
{
    return &t->contexts[tl_node(t, node).context];
}

/* Returns whether the kind is a state. */
static inline bool tl_is_state(enum tl_kind kind)
{
    return kind < TL_TIMEOUT;
}

void timeline_free(struct timeline *t);
DEFINE_CLEANUP(struct timeline *, timeline_free)
