/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A growing array: `VEC(struct frame) frames = {0};`. A zeroed vector is empty and valid. The
 * elements are data[0] to data[len - 1]; pointers to them are valid until the next push. vec_push
 * and its like return 0 or -ENOMEM, and change nothing on failure.
 */
#pragma once

#include "base/macro.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define VEC(type)        \
    struct {             \
        type *data;      \
        size_t len, cap; \
    }

int vec_grow_(void **data, size_t *cap, size_t need, size_t size) must_check;

#define vec_reserve(v, n) \
    ((n) <= (v)->cap ? 0 : vec_grow_((void **)&(v)->data, &(v)->cap, (n), sizeof(*(v)->data)))

#define vec_push(v, value)                           \
    __extension__({                                  \
        int vec_r_ = vec_reserve((v), (v)->len + 1); \
        if (vec_r_ == 0)                             \
            (v)->data[(v)->len++] = (value);         \
        vec_r_;                                      \
    })

/* Appends n zeroed elements; the first one is then at data[len - n]. */
#define vec_extend(v, n)                                                  \
    __extension__({                                                       \
        size_t vec_n_ = (n);                                              \
        int vec_r_ = vec_reserve((v), (v)->len + vec_n_);                 \
        if (vec_r_ == 0 && vec_n_) {                                      \
            memset((v)->data + (v)->len, 0, vec_n_ * sizeof(*(v)->data)); \
            (v)->len += vec_n_;                                           \
        }                                                                 \
        vec_r_;                                                           \
    })

#define vec_clear(v) ((void)((v)->len = 0))

/*
 * Sorts the elements with a comparison function of qsort. An empty vector is skipped, because its
 * NULL pointer must not be passed to qsort.
 */
#define vec_sort(v, compare) \
    ((v)->len ? qsort((v)->data, (v)->len, sizeof(*(v)->data), (compare)) : (void)0)

/* Returns the address of element i, where i may be len, or NULL while the vector has no memory. */
#define vec_at(v, i) ((v)->data ? (v)->data + (i) : NULL)
#define vec_end(v)   vec_at((v), (v)->len)

#define vec_release(v)           \
    do {                         \
        free((v)->data);         \
        (v)->data = NULL;        \
        (v)->len = (v)->cap = 0; \
    } while (0)
