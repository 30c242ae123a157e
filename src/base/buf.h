/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A byte buffer that grows up to a limit. `struct buf b = BUF(limit);` is empty and valid. When an
 * append fails, for lack of memory or because of the limit, it appends nothing and sets `failed`,
 * and all later appends do nothing. A caller can therefore build a whole record and check
 * buf_error() once.
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
    int failed; /* 0, -ENOMEM, -E2BIG, or -EINVAL (vsnprintf) */
};

#define BUF(max) ((struct buf){.limit = (max)})

/* Returns 0, or the reason why an append failed. */
static inline int buf_error(const struct buf *b)
{
    return b->failed;
}

/*
 * Appends n bytes that the caller fills in, and returns their address, or NULL on failure. The
 * bytes are not cleared. The address is valid until the next append.
 */
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
/*
 * Returns the contents as a C string: stores a NUL after them, which `len` does not include.
 * Returns "" when the buffer is empty or an append failed. `data` is not terminated until this is
 * called.
 */
const char *buf_str(const struct buf *b);
void buf_clear(struct buf *b); /* empties the buffer and resets `failed` */
void buf_release(struct buf *b);
