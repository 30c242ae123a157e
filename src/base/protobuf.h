/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Protocol Buffers' wire format (https://protobuf.dev/programming-guides/encoding/), written and
 * read a field at a time. A message within another one is written into a buffer of its own and then
 * appended with protobuf_put_bytes(). Text must be UTF-8 (base/json.h has json_put_utf8()).
 */
#pragma once

#include "base/buf.h"
#include "base/cursor.h"

enum protobuf_type {
    PROTOBUF_VARINT = 0,
    PROTOBUF_FIXED64 = 1,
    PROTOBUF_BYTES = 2,
    PROTOBUF_FIXED32 = 5
};

/* ---- writing ---- */

static inline void protobuf_put_number(struct buf *b, unsigned field, uint64_t value)
{
    buf_varint(b, (uint64_t)field << 3 | PROTOBUF_VARINT);
    buf_varint(b, value);
}

/* Leaves out a number that is 0, which is what a missing one reads as. */
static inline void protobuf_put_nonzero(struct buf *b, unsigned field, uint64_t value)
{
    if (value)
        protobuf_put_number(b, field, value);
}

/* Appends a number of eight bytes without its key, as in a packed field. */
static inline void protobuf_put_le64(struct buf *b, uint64_t value)
{
    value = htole64(value);
    buf_bytes(b, &value, sizeof(value));
}

static inline void protobuf_put_fixed64(struct buf *b, unsigned field, uint64_t value)
{
    buf_varint(b, (uint64_t)field << 3 | PROTOBUF_FIXED64);
    protobuf_put_le64(b, value);
}

static inline void protobuf_put_double(struct buf *b, unsigned field, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof(bits));
    protobuf_put_fixed64(b, field, bits);
}

/* Begins a field of n bytes, which the caller writes next. */
static inline void protobuf_put_head(struct buf *b, unsigned field, size_t n)
{
    buf_varint(b, (uint64_t)field << 3 | PROTOBUF_BYTES);
    buf_varint(b, n);
}

static inline void protobuf_put_bytes(struct buf *b, unsigned field, const void *bytes, size_t n)
{
    protobuf_put_head(b, field, n);
    buf_bytes(b, bytes, n);
}

/* Appends a message that was built in `part`, with its failure if it has one. Empties `part`. */
static inline void protobuf_put_part(struct buf *b, unsigned field, struct buf *part)
{
    protobuf_put_bytes(b, field, part->data, part->len);
    if (buf_error(part) && !buf_error(b))
        b->failed = buf_error(part);
    buf_clear(part);
}

/* ---- reading ---- */

enum { PROTOBUF_FIELD_MAX = (1 << 29) - 1 };

struct protobuf_field {
    unsigned number;
    enum protobuf_type type;
    uint64_t value;      /* of a number */
    struct cursor bytes; /* the contents of a field of type PROTOBUF_BYTES; otherwise empty */
};

/*
 * Reads the next field of a message. Returns false at the end of the message, and when the field is
 * damaged: then the cursor has failed.
 */
static inline bool protobuf_next(struct cursor *c, struct protobuf_field *ret)
{
    if (c->failed || !cursor_left(c))
        return false;
    uint64_t key = cursor_varint(c);
    *ret = (struct protobuf_field){.number = (unsigned)(key >> 3),
                                   .type = (enum protobuf_type)(key & 7),
                                   .bytes = {c->at, c->at, false}};
    if (!ret->number || key >> 3 > PROTOBUF_FIELD_MAX) {
        c->failed = true;
        return false;
    }
    switch (ret->type) {
    case PROTOBUF_VARINT:
        ret->value = cursor_varint(c);
        break;
    case PROTOBUF_FIXED64:
        ret->value = cursor_le64(c);
        break;
    case PROTOBUF_FIXED32:
        ret->value = cursor_le32(c);
        break;
    case PROTOBUF_BYTES:
        ret->bytes = cursor_sub(c, cursor_varint(c));
        break;
    default: /* a group, which is obsolete */
        c->failed = true;
    }
    return !c->failed;
}

/*
 * Stores the next number of a repeated field, which may be packed, from `at`: a copy of the field
 * that is used up. Returns false at its end; a packed field that is damaged has then failed in
 * at->bytes.
 */
static inline bool protobuf_next_number(struct protobuf_field *at, uint64_t *ret)
{
    if (at->type == PROTOBUF_BYTES) {
        if (at->bytes.failed || !cursor_left(&at->bytes))
            return false;
        *ret = cursor_varint(&at->bytes);
        return !at->bytes.failed;
    }
    if (!at->number)
        return false;
    *ret = at->value;
    at->number = 0;
    return true;
}

/* Reads the next value of a field of fixed64 or double, like protobuf_next_number. */
static inline bool protobuf_next_fixed64(struct protobuf_field *at, uint64_t *ret)
{
    if (at->type != PROTOBUF_BYTES)
        return protobuf_next_number(at, ret);
    if (at->bytes.failed || !cursor_left(&at->bytes))
        return false;
    *ret = cursor_le64(&at->bytes);
    return !at->bytes.failed;
}

/* Returns the contents of a field of type PROTOBUF_BYTES. */
static inline const char *protobuf_text(const struct protobuf_field *f)
{
    return (const char *)f->bytes.at;
}
