/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define likely(x)     __builtin_expect(!!(x), 1)
#define unlikely(x)   __builtin_expect(!!(x), 0)
#define MIN(a, b)     ((a) < (b) ? (a) : (b))
#define MAX(a, b)     ((a) > (b) ? (a) : (b))

#define must_check             __attribute__((warn_unused_result))
#define printf_like(fmt, args) __attribute__((format(printf, fmt, args)))
/*
 * Runs in the signal handler at each sample. Such code lies together: a page of code that was not used for an interval costs
 * 500 cycles (its address translated anew), a line of a page that was 60.
 */
#define at_each_sample __attribute__((hot))
#define EXPORT         __attribute__((visibility("default")))

/* Clean-up at the end of scope: `_cleanup_(buf_release) struct buf b = {...};`. The function gets the variable's address. */
#define _cleanup_(f) __attribute__((cleanup(f)))

/* Declares x_freep(), the clean-up function of a pointer variable that x_free() owns. */
#define DEFINE_CLEANUP(type, free_function)             \
    static inline void free_function##p(type *variable) \
    {                                                   \
        if (*variable)                                  \
            free_function(*variable);                   \
    }

static inline void free_pointer(void *variable)
{
    free(*(void **)variable);
}

#define _cleanup_free_ _cleanup_(free_pointer)

static inline void close_descriptor(int *fd)
{
    if (*fd >= 0)
        close(*fd);
}

#define _cleanup_close_ _cleanup_(close_descriptor)

/* Gives the pointer away: the variable becomes NULL, so that its clean-up does nothing. */
#define TAKE(variable)                            \
    __extension__({                               \
        __typeof__(variable) taken_ = (variable); \
        (variable) = NULL;                        \
        taken_;                                   \
    })

/* The same for a descriptor, which becomes -1. */
#define TAKE_FD(variable)      \
    __extension__({            \
        int taken_ = variable; \
        (variable) = -1;       \
        taken_;                \
    })
