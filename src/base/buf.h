/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A growing run of bytes with a limit. `struct buf b = BUF(limit);` is empty and valid. An append that fails (memory or limit)
 * sets `failed`, appends nothing, and so do all later ones: build a whole record, then ask once with buf_error().
 */
#pragma once

#include "base/macro.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf {
    uint8_t *data;
    size_t len, cap, limit;
    int failed; /* 0, -ENOMEM or -E2BIG */
};

#define BUF(max) ((struct buf){.limit = (max)})

/* 0, or why an append failed. */
static inline int buf_error(const struct buf *b)
{
    return b->failed;
}

/* Room for n bytes at the end, counted in and not cleared; NULL on failure. The address dies at the next append. */
uint8_t *buf_add(struct buf *b, size_t n);
void buf_bytes(struct buf *b, const void *bytes, size_t n);
void buf_string(struct buf *b, const char *s);
void buf_printf(struct buf *b, const char *format, ...) printf_like(2, 3);
void buf_vprintf(struct buf *b, const char *format, va_list args) printf_like(2, 0);
void buf_u8(struct buf *b, uint8_t v);
void buf_be16(struct buf *b, uint16_t v);
void buf_be32(struct buf *b, uint32_t v);
void buf_be64(struct buf *b, uint64_t v);
void buf_varint(struct buf *b, uint64_t v);   /* LEB128, up to ten bytes (protobuf) */
void buf_jfr_long(struct buf *b, uint64_t v); /* JFR's compressed long, up to nine bytes */
/* The contents as a C string: a NUL lies behind them, not counted in len. "" when empty or failed. */
const char *buf_str(struct buf *b);
void buf_clear(struct buf *b); /* empties it and forgets a failure */
void buf_release(struct buf *b);
