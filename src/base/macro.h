/* SPDX-License-Identifier: Apache-2.0 */
/* What every file may use. Its functions begin with free_ or close_. */
#pragma once

#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define likely(x)     __builtin_expect(!!(x), 1)
#define unlikely(x)   __builtin_expect(!!(x), 0)
/* Each evaluates its arguments once. They cannot be bit-fields. */
#define MIN(a, b)                MIN_MAX(a, b, <, __COUNTER__)
#define MAX(a, b)                MIN_MAX(a, b, >, __COUNTER__)
#define MIN_MAX(a, b, better, n) MIN_MAX_UNIQUE(a, b, better, n)
#define MIN_MAX_UNIQUE(a, b, better, n)                       \
    ({                                                        \
        __auto_type first_##n = (a);                          \
        __auto_type second_##n = (b);                         \
        first_##n better second_##n ? first_##n : second_##n; \
    })

#define must_check             __attribute__((warn_unused_result))
#define printf_like(fmt, args) __attribute__((format(printf, fmt, args)))
/*
 * Marks functions that run in the signal handler at each sample, so that the linker places them
 * together. After a sampling interval, the first use of a page of code costs 500 cycles, because
 * its address must be translated again; each further cache line of the same page costs 60.
 */
#define at_each_sample __attribute__((hot))
#define EXPORT         __attribute__((visibility("default")))

/*
 * Cleans up at the end of the scope: `_cleanup_(buf_release) struct buf b = {...};`. The function
 * gets the variable's address.
 */
#define _cleanup_(f) __attribute__((cleanup(f)))

/* Declares free_functionp(), the cleanup function for a pointer that free_function() frees. */
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

/* Returns the pointer and sets the variable to NULL, so that its cleanup does nothing. */
#define TAKE(variable)                            \
    __extension__({                               \
        __typeof__(variable) taken_ = (variable); \
        (variable) = NULL;                        \
        taken_;                                   \
    })

/* Like TAKE, for a descriptor, which becomes -1. */
#define TAKE_FD(variable)      \
    __extension__({            \
        int taken_ = variable; \
        (variable) = -1;       \
        taken_;                \
    })
