/* SPDX-License-Identifier: Apache-2.0 */
/* What sites.c and sites_report.c share: the table itself. */
#pragma once

#include "agent/capture/alloc/sites.h"
#include "base/strpool.h"
#include "base/vec.h"

/* A key: this, then frames. */
struct site_head {
    uint32_t class, thread;
};

/* An object that may still live. */
struct followed {
    jweak object;
    uint32_t site;
    float weight;
    uint64_t size;
};

struct site_table {
    pthread_mutex_t lock;
    bool on, exact, by_thread;
    bool all; /* every object is followed */
    uint32_t depth;
    struct strpool keys, classes; /* struct site_head and frames; JVM descriptors */
    VEC(struct site) sites;
    VEC(struct followed) live;
    uint64_t samples, lost, not_followed;
    uint64_t followed; /* so far */
    /*
     * in bytes, by which the VM samples: what an object that nobody saw may stand for; 0: it does
     * not
     */
    uint64_t interval;
    bool complete;         /* every object since the session's begin was followed */
    jweak garbage;         /* cleared by the next collection */
    bool counted;          /* the live figures are those of the VM's end, and stay */
    bool collected;        /* there was a collection before the live figures were counted */
    double variance_bytes; /* of all bytes sampled */
};

extern struct site_table site_table;

/* Drops what has died and sums up what lives, by site; under the lock, after a collection. */
void sites_count_live(JNIEnv *jni);
