/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Native methods of tests/java/TracerContext.java: publishes a trace and a span as OTEP 4947 says.
 */
#include <jni.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

struct record {
    uint8_t trace[16], span[8], valid, reserved;
    uint16_t attributes;
};

__attribute__((visibility("default"))) __thread struct record *volatile otel_thread_ctx_v1;
static __thread struct record mine;

#define NATIVE(type, name, ...)                                                        \
    JNIEXPORT type JNICALL Java_TracerContext_##name(JNIEnv *, jclass, ##__VA_ARGS__); \
    JNIEXPORT type JNICALL Java_TracerContext_##name(JNIEnv *jni, jclass c, ##__VA_ARGS__)

/* Every byte of the trace is `trace`, every byte of the span `span`. */
NATIVE(void, enter, jint trace, jint span)
{
    otel_thread_ctx_v1 = NULL;
    atomic_signal_fence(memory_order_seq_cst);
    memset(mine.trace, trace, sizeof(mine.trace));
    memset(mine.span, span, sizeof(mine.span));
    mine.valid = 1;
    atomic_signal_fence(memory_order_seq_cst);
    otel_thread_ctx_v1 = &mine;
}

NATIVE(void, leave)
{
    otel_thread_ctx_v1 = NULL;
}

/* Imitates a broken tracer: the pointer leads nowhere. */
NATIVE(void, nowhere)
{
    otel_thread_ctx_v1 = (struct record *)(uintptr_t)0x1000;
}
