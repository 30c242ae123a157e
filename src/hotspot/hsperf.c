/* SPDX-License-Identifier: Apache-2.0 */
#include "hotspot/hsperf.h"

#include "base/cursor.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { MAGIC = 0xcafec0c0, PROLOGUE = 32 };

struct entry {
    uint32_t length, name_offset, vector_length, data_offset;
    uint8_t type;
};

static uint32_t read_u32(struct cursor *c, bool little)
{
    return little ? cursor_le32(c) : cursor_be32(c);
}

/*
 * Reads the entry at the cursor and moves the cursor after it; *ret_body becomes a cursor over the
 * entry alone. Returns whether the entry is whole.
 */
static bool read_entry(struct cursor *c, bool little, struct entry *ret, struct cursor *ret_body)
{
    struct cursor start = *c;
    ret->length = read_u32(c, little);
    ret->name_offset = read_u32(c, little);
    ret->vector_length = read_u32(c, little);
    ret->type = cursor_u8(c);
    cursor_skip(c, 3); /* flags, unit, variability */
    ret->data_offset = read_u32(c, little);
    *c = start;
    *ret_body = cursor_sub(c, ret->length);
    return !ret_body->failed && ret->length >= 20;
}

/* Returns the NUL-terminated text at an offset of an entry. It has at most `max` bytes. */
static char *text_at(struct cursor body, uint32_t offset, uint32_t max)
{
    cursor_skip(&body, offset);
    size_t room = MIN(cursor_left(&body), max);
    return body.failed ? NULL
                       : strndup((const char *)body.at, strnlen((const char *)body.at, room));
}

/* Returns whether such a text is a given name. */
static bool text_is(struct cursor body, uint32_t offset, uint32_t max, const char *name)
{
    size_t len = strlen(name);
    cursor_skip(&body, offset);
    size_t room = MIN(cursor_left(&body), max);
    return !body.failed && room >= len && memcmp(body.at, name, len) == 0 &&
           (room == len || !body.at[len]);
}

/* Finds the entry with a name and returns a cursor over it. */
static bool find(const uint8_t *data, size_t len, const char *name, struct entry *ret,
                 struct cursor *ret_body, bool *ret_little)
{
    struct cursor c = cursor_of(data, len);
    if (cursor_be32(&c) != MAGIC)
        return false;
    bool little = cursor_u8(&c) == 1;
    cursor_skip(&c, PROLOGUE - 5 - 8);
    uint32_t offset = read_u32(&c, little), entries = read_u32(&c, little);
    c = cursor_of(data, len);
    cursor_skip(&c, offset);
    for (struct entry e; entries-- > 0;) {
        struct cursor body;
        if (!read_entry(&c, little, &e, &body))
            return false;
        if (text_is(body, e.name_offset, e.length, name)) {
            *ret = e;
            *ret_body = body;
            *ret_little = little;
            return true;
        }
    }
    return false;
}

char *hsperf_string(const uint8_t *data, size_t len, const char *name)
{
    struct entry e;
    struct cursor body;
    bool little;
    if (!find(data, len, name, &e, &body, &little) || e.type != 'B' || !e.vector_length)
        return NULL;
    return text_at(body, e.data_offset, e.vector_length);
}

static bool find_number(const uint8_t *data, size_t len, const char *name, struct cursor *ret_body,
                        bool *ret_little)
{
    struct entry e;
    if (!find(data, len, name, &e, ret_body, ret_little) || e.type != 'J' || e.vector_length)
        return false;
    cursor_skip(ret_body, e.data_offset);
    return cursor_left(ret_body) >= 8;
}

const uint8_t *hsperf_number_at(const uint8_t *data, size_t len, const char *name)
{
    struct cursor body;
    bool little;
    return find_number(data, len, name, &body, &little) &&
                   little == (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__)
               ? body.at
               : NULL;
}

int hsperf_number(const uint8_t *data, size_t len, const char *name, int64_t *ret)
{
    struct cursor body;
    bool little;
    if (!find_number(data, len, name, &body, &little))
        return -ENOENT;
    uint64_t v = little ? cursor_le64(&body) : cursor_be64(&body);
    *ret = (int64_t)v;
    return 0;
}
