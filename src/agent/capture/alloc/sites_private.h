/* SPDX-License-Identifier: Apache-2.0 */
/* What sites.c and sites_report.c share: the table itself. */
#pragma once

#include "agent/capture/alloc/sites.h"
#include "base/strpool.h"
#include "base/vec.h"

/* A key is this structure followed by frames. */
struct site_head {
    uint32_t class, thread;
};

/* An object that may still be alive. */
struct followed {
    jweak object;
    uint32_t site;
    float weight;
    uint64_t size : 63;
    bool sample : 1; /* sampled by the VM, in addition to exact counts */
};

struct site_table {
    pthread_mutex_t lock;
    bool on, exact, by_thread;
    bool all; /* every object is tracked */
    uint32_t depth;
    _Atomic uint32_t round;       /* see sites_round */
    struct strpool keys, classes; /* struct site_head and frames; JVM descriptors */
    VEC(struct site) sites;
    VEC(struct followed) live;
    uint64_t samples, lost, not_followed;
    uint64_t followed; /* how many objects have been followed so far */
    uint64_t began;    /* when the session began, in nanoseconds */
    /*
     * the VM's sampling interval in bytes, which is what an object that was found by samples alone
     * may stand for; 0: the VM does not sample
     */
    uint64_t interval;
    bool complete;         /* see sites_all_tracked */
    jweak garbage;         /* cleared by the next collection */
    bool counted;          /* the live figures are those of the end of the VM and are final */
    bool prepared;         /* the live figures are those of the dump that follows */
    bool collected;        /* a collection preceded the count of live objects */
    double heap;           /* the bytes in use when live objects were counted; 0: unknown */
    double variance_bytes; /* of all bytes sampled */
};

extern struct site_table site_table;

/* Limits stacks to `depth` frames from now on; not under the lock. */
void sites_set_depth(uint64_t depth);

/*
 * Drops dead objects and sums up the live ones by site. To be called after a collection. Under the
 * lock, which is released meanwhile if every object is tracked.
 */
void sites_count_live(JNIEnv *jni);
/*
 * Returns whether every object since the start of the session was tracked, so that live figures are
 * exact. Requires the lock.
 */
bool sites_all_tracked(void);
/*
 * Warns the user of what is missing from the counts, for outputs that cannot contain losses as a
 * recording does. Returns whether anything is missing.
 */
bool sites_warn_of_losses(struct session *s);
