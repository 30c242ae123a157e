/* SPDX-License-Identifier: Apache-2.0 */
#include "answers/heap/fields.h"

#include "base/json.h"
#include "heap/text.h"

const char *heap_class_name(const struct heap *h, uint64_t i)
{
    int32_t class = i < h->n ? heap_class_of(h, i) : HEAP_NO_CLASS;
    return class == HEAP_NO_CLASS ? (i == h->n ? "<GC roots>" : "?")
                                  : h->dump->classes.data[class].name;
}

bool heap_get(const struct heap *h, uint64_t i, const char *field, uint64_t *ret)
{
    struct hprof_item item;
    struct heap_field f;
    if (!heap_item(h, i, &item) || item.tag != HPROF_INSTANCE_DUMP ||
        !heap_field_named(h->dump, heap_class_of(h, i), field, &f) ||
        f.offset + hprof_type_size(f.type, h->dump->header.id_size) > item.body_len)
        return false;
    *ret = hprof_value_at(item.body + f.offset, f.type, h->dump->header.id_size);
    return true;
}

bool heap_get_object(const struct heap *h, uint64_t i, const char *field, uint64_t *ret)
{
    uint64_t id;
    if (!heap_get(h, i, field, &id) || !id)
        return false;
    id = heap_ids_find(&h->ids, id);
    if (id == HEAP_NONE)
        return false;
    *ret = id;
    return true;
}

void heap_put_character(struct buf *b, uint32_t c)
{
    if (c >= 0xd800 && c < 0xe000)
        c = 0xfffd; /* half of a pair */
    if (c < 0x80) {
        buf_u8(b, (uint8_t)c);
    } else if (c < 0x800) {
        buf_u8(b, (uint8_t)(0xc0 | c >> 6));
        buf_u8(b, (uint8_t)(0x80 | (c & 0x3f)));
    } else if (c < 0x10000) {
        buf_u8(b, (uint8_t)(0xe0 | c >> 12));
        buf_u8(b, (uint8_t)(0x80 | (c >> 6 & 0x3f)));
        buf_u8(b, (uint8_t)(0x80 | (c & 0x3f)));
    } else {
        buf_u8(b, (uint8_t)(0xf0 | c >> 18));
        buf_u8(b, (uint8_t)(0x80 | (c >> 12 & 0x3f)));
        buf_u8(b, (uint8_t)(0x80 | (c >> 6 & 0x3f)));
        buf_u8(b, (uint8_t)(0x80 | (c & 0x3f)));
    }
}

static void put_utf16(struct buf *b, const uint8_t *p, uint64_t units, bool big_endian,
                      size_t limit)
{
    for (uint64_t i = 0; i < units && b->len < limit; i++) {
        uint32_t c = big_endian ? (uint32_t)p[i * 2] << 8 | p[i * 2 + 1]
                                : (uint32_t)p[i * 2 + 1] << 8 | p[i * 2];
        if (c >= 0xd800 && c < 0xdc00 && i + 1 < units) {
            uint32_t low = big_endian ? (uint32_t)p[i * 2 + 2] << 8 | p[i * 2 + 3]
                                      : (uint32_t)p[i * 2 + 3] << 8 | p[i * 2 + 2];
            if (low >= 0xdc00 && low < 0xe000) {
                c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
                i++;
            }
        }
        heap_put_character(b, c);
    }
}

void heap_put_characters(const struct hprof_item *array, uint64_t count, bool wide, struct buf *b,
                         size_t limit)
{
    limit += b->len;
    if (array->type == HPROF_CHAR)
        put_utf16(b, array->body, MIN(count, (uint64_t)array->count), true, limit);
    else if (array->type == HPROF_BYTE && wide)
        put_utf16(b, array->body, MIN(count, (uint64_t)array->count / 2), false, limit);
    else if (array->type == HPROF_BYTE)
        for (uint64_t k = 0; k < MIN(count, (uint64_t)array->count) && b->len < limit; k++)
            heap_put_character(b, array->body[k]);
}

void heap_quote(struct buf *b, size_t from, bool cut)
{
    _cleanup_(buf_release) struct buf text = BUF(b->limit);
    if (buf_error(b))
        return;
    buf_bytes(&text, b->data + from, b->len - from);
    b->len = from;
    json_string_n(&(struct json){.out = b}, buf_str(&text), text.len);
    if (cut && !buf_error(b)) {
        b->len--;
        buf_string(b, "...\"");
    }
}

bool heap_string(const struct heap *h, uint64_t i, struct buf *b, size_t limit)
{
    struct heap_text t;
    if (!heap_text_of(h, i, &t))
        return false;
    limit += b->len;
    if (t.coder != HEAP_LATIN1)
        put_utf16(b, t.bytes, t.len, t.coder == HEAP_UTF16_BE, limit);
    else
        for (uint64_t k = 0; k < t.len && b->len < limit; k++)
            heap_put_character(b, t.bytes[k]);
    return true;
}
