/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Assigns a number to each class. Classes are found by the identity hash of their mirrors and
 * distinguished by the mirrors themselves: two classes may have the same hash, and with class data
 * sharing this is common, because the archive contains hashes that another VM drew from the same
 * seed.
 */
#pragma once

#include "agent/vm/vm.h"
#include "base/map.h"
#include "base/vec.h"

#include <pthread.h>

struct known_class {
    jweak mirror;
    uint64_t number;
    uint32_t next; /* index of the next entry with this hash in `list`, + 1; 0: none */
};

struct class_map {
    pthread_mutex_t lock;
    struct map first; /* by hash: index of the first entry in `list`, + 1 */
    VEC(struct known_class) list;
};

/*
 * Stores the number of a class in *ret. Returns false when the class has none. Any thread may call
 * this while another one adds classes.
 */
bool class_map_get(struct class_map *m, JNIEnv *jni, jclass c, uint64_t *ret);
/* Assigns a number to a class, unless the class has one. Does nothing when memory is exhausted. */
void class_map_put(struct class_map *m, JNIEnv *jni, jclass c, uint64_t number);
/*
 * Removes all classes and frees the memory. jni NULL: the VM has ended, and its references are
 * gone.
 */
void class_map_release(struct class_map *m, JNIEnv *jni);
