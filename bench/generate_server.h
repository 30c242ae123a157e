/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the generators of recordings of a busy server: its worker threads, methods and locks.
 */
#pragma once

#include "jfr/writer.h"

#include <stdio.h>

enum { SERVER_LOCKS = 200, SERVER_STACKS = 500, SERVER_DEPTH = 16 };

/* jvmscope.ThreadAnalysis, which says how threads were recorded. */
#define SERVER_ANALYSIS                                                                         \
    {                                                                                           \
        .name = "jvmscope.ThreadAnalysis", .label = "Thread Analysis", .kind = JFR_EVENT,       \
        .fields =                                                                               \
            JFR_FIELDS({"contanalysis", "Notify, Start and Interrupt Are Recorded", "boolean"}, \
                       {"natives", "Native Methods Bound", "int"},                              \
                       {"owners", "Owners Are Read From the VM", "boolean"})                    \
    }

/* Threads 1 to n. */
static inline void server_define_workers(struct jfr_writer *w, uint64_t n)
{
    for (uint64_t i = 1; i <= n; i++) {
        char name[16];
        snprintf(name, sizeof(name), "worker-%llu", (unsigned long long)i);
        (void)!jfr_define_thread(
            w, i,
            &(struct jfr_thread){.os_name = name, .os_id = i, .java_name = name, .java_id = i});
    }
}

/* The resolver of the methods in the stacks below. */
static inline int server_method(void *context, uint64_t method, uint32_t type,
                                struct jfr_method *ret)
{
    static char name[32];
    snprintf(name, sizeof(name), "method%llu", (unsigned long long)method);
    *ret =
        (struct jfr_method){.class = {.name = "bench/Server"}, .name = name, .descriptor = "()V"};
    return 0;
}

static inline void server_define_stacks(struct jfr_writer *w, uint64_t stacks[SERVER_STACKS])
{
    for (uint64_t i = 0; i < SERVER_STACKS; i++) {
        struct jfr_frame frames[SERVER_DEPTH] = {0};
        for (uint64_t k = 0; k < SERVER_DEPTH; k++)
            frames[k] = (struct jfr_frame){1 + (i * 7 + k * 31) % 900, (int32_t)k, JFR_FRAME_JIT};
        stacks[i] = jfr_trace(w, frames, SERVER_DEPTH, false);
    }
}
