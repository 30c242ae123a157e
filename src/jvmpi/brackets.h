/* SPDX-License-Identifier: Apache-2.0 */
/* Sends GC_START, what has ended, and GC_FINISH. */
#pragma once

#include "base/vec.h"
#include "jvmpi/layer.h"

typedef VEC(jlong) id_vec;

/*
 * What the delivering thread has taken from the queue. Classes wait for the objects that belonged
 * to them.
 */
struct taken {
    id_vec objects, classes;
    size_t certain; /* number of classes of which every tagged object was taken */
    size_t settled; /* number of these whose objects in weak_ids.c are queued too */
    bool asked;     /* a mark has been requested */
};

/*
 * Sends n brackets. All but the last one are those of collections for which no end was reported.
 */
void brackets_send(JNIEnv *env, const struct taken *t, uint64_t n);
/* Returns how many ends of objects have been sent. */
uint64_t brackets_frees(void);
