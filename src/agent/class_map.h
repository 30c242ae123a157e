/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A number for each class that was met. Classes are found by the identity hash of their mirrors and
 * told apart by the mirrors themselves: two classes may have the same hash, and with class data
 * sharing they often do, for the archive holds hashes that another VM drew from the same seed.
 */
#pragma once

#include "agent/vm.h"
#include "base/map.h"
#include "base/vec.h"

#include <pthread.h>

struct known_class {
    jweak mirror;
    uint64_t number;
    uint32_t next; /* the next one of this hash in `list`, + 1; 0: none */
};

struct class_map {
    pthread_mutex_t lock;
    struct map first; /* by hash: the first one in `list`, + 1 */
    VEC(struct known_class) list;
};

#define CLASS_MAP ((struct class_map){.lock = PTHREAD_MUTEX_INITIALIZER})

/*
 * The number of a class into *ret, false when it has none. Any thread may call this while another
 * one puts.
 */
bool class_map_get(struct class_map *m, JNIEnv *jni, jclass c, uint64_t *ret);
/* Gives a class its number, unless it has one. What does not fit into memory is not kept. */
void class_map_put(struct class_map *m, JNIEnv *jni, jclass c, uint64_t number);
/*
 * Forgets all classes; jni NULL: the VM has gone, and its references with it. Nobody else may use
 * the map meanwhile.
 */
void class_map_release(struct class_map *m, JNIEnv *jni);
