/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The trace and the span for which a thread works, as the program's tracer publishes them: OTEP
 * 4947, a thread-local pointer named otel_thread_ctx_v1 in any library of the process. It is NULL
 * or leads to a record of 16 bytes of trace id, 8 bytes of span id, and a byte that is 1 while both
 * are valid.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { TRACE_ID_BYTES = 16, SPAN_ID_BYTES = 8 };

struct trace_context {
    bool known;   /* a library publishes contexts */
    bool present; /* the thread has one */
    uint8_t trace[TRACE_ID_BYTES], span[SPAN_ID_BYTES];
};

/*
 * Looks for a library that publishes contexts, which stays loaded until trace_context_release. Call
 * it again from time to time; it does nothing unless a library was loaded meanwhile.
 */
void trace_context_find(void);
/* Lets the library be unloaded. Call it when no signal handler reads contexts any more. */
void trace_context_release(void);
/* Reads the calling thread's context. Async-signal-safe. */
void trace_context_read(struct trace_context *ret);
