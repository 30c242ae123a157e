/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions that stand in front of native methods: thunk number n calls native_thunk_enter, what
 * that puts into `function` with the arguments as they came, native_thunk_exit, and returns what
 * the function returned. Knows no JVM. The two functions are those of the library that it is linked
 * into: libhprof's in native_calls.c, libjvmpi's in jvmpi/natives.c.
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

/* What a thunk keeps while its function runs; offsets are the assembly's. */
struct native_frame {
    uint64_t integers[8]; /* argument registers */
    double reals[8];
    uint64_t index;        /* 128: of the thunk */
    const uint64_t *stack; /* 136: arguments beyond the registers */
    void *function;        /* 144: set by native_thunk_enter, as the next */
    uint64_t stack_words;  /* 152 */
    uint64_t integer;      /* 160: what was returned */
    double real;           /* 168 */
    uint64_t seen;         /* for native_thunk_enter and _exit, as the next */
    uint64_t tokens[THUNK_CLIENTS];
};

_Static_assert(offsetof(struct native_frame, index) == 128 &&
                   offsetof(struct native_frame, function) == 144 &&
                   offsetof(struct native_frame, integer) == 160 &&
                   sizeof(struct native_frame) == 208,
               "as the assembly has it");

void *native_thunk(unsigned n); /* n < NATIVE_THUNKS */
bool native_is_thunk(const void *function);
/* Words of arguments that a native method of this descriptor takes from the stack. */
unsigned native_stack_words(struct str descriptor);

/* Called by thunks. */
void native_thunk_enter(struct native_frame *f);
void native_thunk_exit(struct native_frame *f);
