/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions that are bound in front of native methods. Thunk number n calls native_thunk_enter,
 * then the function that this stored into `function` with the original arguments, then
 * native_thunk_exit, and returns the function's result. Knows no JVM. The two callbacks are defined
 * by the library that is linked: in native_calls.c for libhprof, in jvmpi/natives.c for libjvmpi.
 */
#pragma once

#include "base/macro.h"
#include "base/strpool.h"

#include <stdbool.h>
#include <stdint.h>

#if defined(__x86_64__)
enum { NATIVE_THUNKS = 4096, THUNK_INTEGERS = 6, THUNK_REALS = 8 };
#elif defined(__aarch64__)
enum { NATIVE_THUNKS = 4096, THUNK_INTEGERS = 8, THUNK_REALS = 8 };
#else
enum { NATIVE_THUNKS = 0, THUNK_INTEGERS = 1, THUNK_REALS = 1 };
#endif

enum { THUNK_CLIENTS = 3 };

/* What a thunk saves while its function runs. The assembly code uses these offsets. */
struct native_frame {
    uint64_t integers[8]; /* argument registers */
    double reals[8];
    uint64_t index;        /* 128: number of the thunk */
    const uint64_t *stack; /* 136: arguments that are not in registers */
    void *function;        /* 144: set by native_thunk_enter, like the next */
    uint64_t stack_words;  /* 152 */
    uint64_t integer;      /* 160: the result */
    double real;           /* 168 */
    uint64_t seen;         /* used by native_thunk_enter and _exit, like the next */
    uint64_t tokens[THUNK_CLIENTS];
};

_Static_assert(offsetof(struct native_frame, index) == 128 &&
                   offsetof(struct native_frame, function) == 144 &&
                   offsetof(struct native_frame, integer) == 160 &&
                   sizeof(struct native_frame) == 208,
               "as the assembly has it");

void *native_thunk(unsigned n); /* n < NATIVE_THUNKS */
bool native_is_thunk(const void *function);
/* Returns the number of words that a native method of this descriptor takes from the stack. */
unsigned native_stack_words(struct str descriptor);

/*
 * Report the start and the end of a call; the thunks call these. native_thunk_enter also sets
 * `function` and `stack_words`.
 */
void native_thunk_enter(struct native_frame *f);
void native_thunk_exit(struct native_frame *f);
