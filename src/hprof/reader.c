/* SPDX-License-Identifier: Apache-2.0 */
#include "hprof/reader.h"

/*
 * Returns -EBADMSG when the file is not HPROF, -ENOTSUP when it is HPROF's text, and -EINVAL when
 * the id size is neither 4 nor 8 or the version is unknown.
 */
static int hprof_header_read(const void *bytes, uint64_t len, struct hprof_header *ret)
{
    static const char magic[] = "JAVA PROFILE 1.0.";

    enum { MAGIC = sizeof(magic) - 1, LEN = MAGIC + 2 + 12 };

    if (len < LEN || memcmp(bytes, magic, MAGIC) != 0)
        return -EBADMSG;
    struct cursor c = cursor_of(bytes, LEN);
    cursor_skip(&c, MAGIC);
    uint8_t version = cursor_u8(&c), nul = cursor_u8(&c);
    unsigned id_size = cursor_be32(&c);
    if (nul == ',')
        return -ENOTSUP;
    /* 1.0.3 is written by Android. */
    if (version < '0' || version > '3' || nul != 0 || (id_size != 4 && id_size != 8))
        return -EINVAL;
    ret->id_size = id_size;
    ret->time_ms = cursor_be64(&c);
    ret->segments = version >= '2';
    ret->len = LEN;
    return 0;
}

int hprof_reader_init(struct hprof_reader *r, const void *bytes, uint64_t len)
{
    struct hprof_header header;
    int error = hprof_header_read(bytes, len, &header);
    if (error)
        return error;
    *r = (struct hprof_reader){.data = bytes, .len = len, .at = header.len, .header = header};
    return 0;
}

bool hprof_tag_known(uint8_t tag)
{
    return (tag >= HPROF_UTF8 && tag <= HPROF_HEAP_SUMMARY) ||
           (tag >= HPROF_START_THREAD && tag <= HPROF_CONTROL_SETTINGS) ||
           tag == HPROF_HEAP_DUMP_SEGMENT || tag == HPROF_HEAP_DUMP_END;
}

/*
 * Returns whether records can begin at `at`: up to four records follow that have known tags and
 * lengths within the file, or the file ends there.
 */
static bool records_plausible(const struct hprof_reader *r, uint64_t at)
{
    for (int i = 0; i < 4 && at != r->len; i++) {
        if (at > r->len || r->len - at < HPROF_RECORD_HEADER)
            return false;
        struct cursor c = cursor_of(r->data + at, HPROF_RECORD_HEADER);
        uint8_t tag = cursor_u8(&c);
        cursor_skip(&c, 4);
        uint32_t len = cursor_be32(&c);
        at += HPROF_RECORD_HEADER;
        if (!hprof_tag_known(tag) || len > r->len - at)
            return false;
        at += len;
    }
    return true;
}

/*
 * Determines the length of a heap dump whose header has none, by reading up to the first byte that
 * does not begin a sub-record.
 */
static uint64_t measure_items(const struct hprof_reader *r, uint64_t start)
{
    struct hprof_items it = hprof_items_of(r->data + start, r->data + r->len, r->header.id_size);
    struct hprof_item item;
    while (hprof_item_next(&it, &item) > 0)
        ;
    return (uint64_t)(it.at - r->data) - start;
}

/*
 * Older VMs write everything in one HEAP DUMP record. Its 32-bit length wraps at 4 GiB, or is 0
 * where they could not seek back.
 */
static uint64_t true_dump_length(const struct hprof_reader *r, uint64_t start, uint32_t stated)
{
    uint64_t left = r->len - start;
    if (stated == 0)
        return records_plausible(r, start) ? 0 : measure_items(r, start);
    if (left <= UINT32_MAX || records_plausible(r, start + stated))
        return stated;
    for (uint64_t len = stated; len <= left; len += UINT64_C(1) << 32) {
        if (records_plausible(r, start + len))
            return len;
    }
    return left; /* the dump has been cut short, too */
}

/*
 * Extends TIME, which wraps at 2^32 microseconds. A time before that of the previous record has
 * wrapped, however long the gap. Two cases are not wraps: a small step back, from an adjusted
 * clock, and 0 after other times, which means that no time was stored.
 */
static uint64_t unroll(struct hprof_reader *r, uint32_t time_us)
{
    enum { STEP_BACK_US = 1000000 };

    uint64_t t = (r->time_us & ~(uint64_t)UINT32_MAX) + time_us;
    if (time_us == 0)
        return r->time_us;
    if (t + STEP_BACK_US < r->time_us)
        t += UINT64_C(1) << 32;
    r->time_us = MAX(r->time_us, t);
    return t;
}

bool hprof_next(struct hprof_reader *r, struct hprof_record *ret)
{
    uint64_t left = r->len - r->at;
    if (left < HPROF_RECORD_HEADER) {
        if (left)
            r->end = HPROF_END_CUT;
        return false;
    }
    struct cursor c = cursor_of(r->data + r->at, HPROF_RECORD_HEADER);
    uint8_t tag = cursor_u8(&c);
    uint32_t time_us = cursor_be32(&c);
    uint64_t stated = cursor_be32(&c), start = r->at + HPROF_RECORD_HEADER;
    if (tag == 0 || tag >= 0x80) {
        r->end = HPROF_END_GARBAGE;
        return false;
    }
    if (tag == HPROF_HEAP_DUMP)
        stated = true_dump_length(r, start, (uint32_t)stated);
    uint64_t len = MIN(stated, r->len - start);
    *ret =
        (struct hprof_record){tag, unroll(r, time_us), r->data + start, len, start, len < stated};
    r->at = start + len;
    if (ret->cut)
        r->end = HPROF_END_CUT;
    return true;
}

/*
 * Returns the number of bytes after the id in sub-records other than classes and objects, or -1 for
 * an unknown tag.
 */
static int other_extra(uint8_t tag, unsigned id_size)
{
    switch (tag) {
    case HPROF_ROOT_UNKNOWN:
    case HPROF_ROOT_STICKY_CLASS:
    case HPROF_ROOT_MONITOR_USED:
    case HPROF_ANDROID_INTERNED_STRING:
    case HPROF_ANDROID_FINALIZING:
    case HPROF_ANDROID_DEBUGGER:
    case HPROF_ANDROID_REFERENCE_CLEANUP:
    case HPROF_ANDROID_VM_INTERNAL:
    case HPROF_ANDROID_UNREACHABLE:
        return 0;
    case HPROF_ROOT_JNI_GLOBAL:
        return (int)id_size;
    case HPROF_ROOT_NATIVE_STACK:
    case HPROF_ROOT_THREAD_BLOCK:
        return 4;
    case HPROF_ROOT_JNI_LOCAL:
    case HPROF_ROOT_JAVA_FRAME:
    case HPROF_ROOT_THREAD_OBJECT:
    case HPROF_ANDROID_JNI_MONITOR:
        return 8;
    case HPROF_ANDROID_ARRAY_NODATA:
        return 9;
    default:
        return -1;
    }
}

/*
 * Skips entries of a class dump. Each consists of `name` bytes for its name, a type and, if
 * `values`, a value.
 */
static void skip_entries(struct cursor *c, unsigned entries, unsigned name, bool values,
                         unsigned id_size)
{
    while (entries-- && !c->failed) {
        cursor_skip(c, name);
        unsigned size = hprof_type_size(cursor_u8(c), id_size);
        if (!size)
            c->failed = true;
        else if (values)
            cursor_skip(c, size);
    }
}

static void parse_class(struct cursor *c, unsigned n, struct hprof_class *ret)
{
    cursor_skip(c, 1);
    ret->id = hprof_id(c, n);
    cursor_skip(c, 4);
    ret->super = hprof_id(c, n);
    ret->loader = hprof_id(c, n);
    ret->signers = hprof_id(c, n);
    ret->domain = hprof_id(c, n);
    cursor_skip(c, 2 * n);
    ret->instance_size = cursor_be32(c);
    ret->constants = cursor_be16(c);
    ret->constants_at = *c;
    skip_entries(c, ret->constants, 2, true, n);
    ret->statics = cursor_be16(c);
    ret->statics_at = *c;
    skip_entries(c, ret->statics, n, true, n);
    ret->fields = cursor_be16(c);
    ret->fields_at = *c;
    skip_entries(c, ret->fields, n, false, n);
}

int hprof_item_other(struct hprof_items *it, struct hprof_item *ret)
{
    struct cursor c = cursor_of(it->at, (size_t)(it->end - it->at));
    const unsigned n = it->id_size;
    uint8_t tag = *it->at;
    *ret = (struct hprof_item){.tag = tag, .start = it->at};
    if (tag == HPROF_CLASS_DUMP) {
        struct hprof_class class;
        parse_class(&c, n, &class);
        ret->id = class.id;
        ret->class_id = class.super;
        ret->body = it->at + 1 + n;
    } else if (tag == HPROF_ANDROID_HEAP_INFO) {
        cursor_skip(&c, 5 + n);
    } else {
        int extra = other_extra(tag, n);
        if (extra < 0)
            return -EBADMSG;
        cursor_skip(&c, 1);
        ret->id = hprof_id(&c, n);
        ret->body = c.at;
        cursor_skip(&c, (size_t)extra);
        if (!c.failed && tag == HPROF_ROOT_JNI_GLOBAL)
            ret->class_id = 0;
        else if (!c.failed && (extra == 4 || extra == 8)) {
            ret->thread = be32toh(*(const uint32_t *)memcpy(&(uint32_t){0}, ret->body, 4));
            if (extra == 8)
                ret->frame = be32toh(*(const uint32_t *)memcpy(&(uint32_t){0}, ret->body + 4, 4));
        }
    }
    if (c.failed)
        return -ENODATA;
    ret->body_len = ret->body ? (uint64_t)(c.at - ret->body) : 0;
    it->at = c.at;
    return 1;
}

int hprof_class_read(const struct hprof_item *item, unsigned id_size, struct hprof_class *ret)
{
    if (item->tag != HPROF_CLASS_DUMP)
        return -EBADMSG;
    struct cursor c = cursor_of(item->start, (size_t)(item->body + item->body_len - item->start));
    parse_class(&c, id_size, ret);
    return c.failed ? -EBADMSG : 0;
}

bool hprof_static_read(struct cursor *c, unsigned id_size, bool constant, struct hprof_static *ret)
{
    ret->name = constant ? cursor_be16(c) : hprof_id(c, id_size);
    ret->type = cursor_u8(c);
    unsigned size = hprof_type_size(ret->type, id_size);
    const uint8_t *p = size ? cursor_take(c, size) : NULL;
    if (!p)
        return false;
    ret->value = hprof_value_at(p, ret->type, id_size);
    return true;
}
