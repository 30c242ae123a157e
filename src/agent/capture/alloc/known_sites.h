/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sites of stacks that the calling thread had before. An object that is allocated in a loop
 * costs a comparison of its stack instead of a walk and a look-up in the table of sites.
 */
#pragma once

#include "agent/capture/alloc/sites.h"
#include "unwind/known.h"

struct known_site {
    uint64_t key;
    uint32_t round; /* sites_round(), when it was kept; 0: never */
    int64_t site;
    struct known_stack stack;
};

/* The result of looking up a stack. */
struct site_lookup {
    int64_t site; /* -1: not known */
    /* the round in which the site has this number; compare it with sites_round() under the lock */
    uint32_t round;
    /* where, and under which key, known_site_keep stores the site; NULL: nowhere */
    struct known_site *place;
    uint64_t key;
    int64_t expected; /* stacks=check: what is known of a stack that has to be walked; or -1 */
};

/*
 * Looks up the calling thread's stack at a point. The key also says for which purpose, because the
 * same stack may belong to several sites.
 */
struct site_lookup known_site(JNIEnv *jni, uint64_t key);
/* Stores the site that a walk has found; `words` are those of the walk. */
void known_site_keep(const struct site_lookup *lookup, const struct walk_words *words,
                     int64_t site);
/* Releases the calling thread's sites when it ends. */
void known_sites_release(void);
