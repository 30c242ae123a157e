/* SPDX-License-Identifier: Apache-2.0 */
#include "classfile/classfile.h"

#include "base/cursor.h"

#define MAX_DIMENSIONS 255

/*
 * The number of bytes after the tag of each constant. 0 means that the tag does not exist, or is
 * Utf8, which stores its own length.
 */
static const uint8_t constant_size[] = {
    [CONSTANT_INTEGER] = 4,       [CONSTANT_FLOAT] = 4,          [CONSTANT_LONG] = 8,
    [CONSTANT_DOUBLE] = 8,        [CONSTANT_CLASS] = 2,          [CONSTANT_STRING] = 2,
    [CONSTANT_FIELDREF] = 4,      [CONSTANT_METHODREF] = 4,      [CONSTANT_INTERFACE_METHODREF] = 4,
    [CONSTANT_NAME_AND_TYPE] = 4, [CONSTANT_METHOD_HANDLE] = 3,  [CONSTANT_METHOD_TYPE] = 2,
    [CONSTANT_DYNAMIC] = 4,       [CONSTANT_INVOKE_DYNAMIC] = 4, [CONSTANT_MODULE] = 2,
    [CONSTANT_PACKAGE] = 2,
};

static uint32_t offset(const struct class_file *c, const struct cursor *at)
{
    return (uint32_t)(at->at - c->bytes);
}

static int parse_pool(struct class_file *c, struct cursor *in)
{
    uint16_t count = cursor_be16(in);
    if (in->failed || count == 0)
        return -EBADMSG;
    int r = vec_extend(&c->pool, count);
    if (r < 0)
        return r;
    for (unsigned i = 1; i < count; i++) {
        c->pool.data[i] = offset(c, in);
        uint8_t tag = cursor_u8(in);
        if (tag == CONSTANT_UTF8)
            cursor_skip(in, cursor_be16(in));
        else if (tag < ARRAY_SIZE(constant_size) && constant_size[tag])
            cursor_skip(in, constant_size[tag]);
        else
            return -EBADMSG;
        if (in->failed)
            return -EBADMSG;
        if ((tag == CONSTANT_LONG || tag == CONSTANT_DOUBLE) && ++i == count)
            /*
             * A long or double takes two entries, and here the pool has no second one (JVMS 4.4.5).
             */
            return -EBADMSG;
    }
    c->pool_end = offset(c, in);
    return 0;
}

/* Skips attributes. Those of a method (m is not NULL) may include one Code. */
static int parse_attributes(const struct class_file *c, struct cursor *in, struct class_method *m)
{
    unsigned count = cursor_be16(in);
    while (count-- && !in->failed) {
        uint16_t name = cursor_be16(in);
        uint32_t size = cursor_be32(in);
        uint32_t at = offset(c, in);
        cursor_skip(in, size);
        if (in->failed || class_tag(c, name) != CONSTANT_UTF8)
            return -EBADMSG;
        if (m && str_is(class_utf8(c, name), "Code")) {
            if (m->code)
                return -EBADMSG;
            m->code = at;
            m->code_end = at + size;
        }
    }
    return in->failed ? -EBADMSG : 0;
}

static int parse_members(struct class_file *c, struct cursor *in, bool methods)
{
    unsigned count = cursor_be16(in);
    for (; count && !in->failed; count--) {
        struct class_method m = {.start = offset(c, in)};
        m.access = cursor_be16(in);
        m.name = cursor_be16(in);
        m.descriptor = cursor_be16(in);
        if (in->failed || class_tag(c, m.name) != CONSTANT_UTF8 ||
            class_tag(c, m.descriptor) != CONSTANT_UTF8)
            return -EBADMSG;
        int r = parse_attributes(c, in, methods ? &m : NULL);
        if (r < 0)
            return r;
        m.end = offset(c, in);
        if (methods && (r = vec_push(&c->methods, m)) < 0)
            return r;
    }
    return in->failed ? -EBADMSG : 0;
}

static int parse(struct class_file *c)
{
    struct cursor in = cursor_of(c->bytes, c->len);
    if (cursor_be32(&in) != 0xcafebabe)
        return -EBADMSG;
    c->minor = cursor_be16(&in);
    c->major = cursor_be16(&in);
    if (in.failed || c->major < CLASS_MAJOR_MIN || c->major > CLASS_MAJOR_MAX)
        return -EBADMSG;
    int r = parse_pool(c, &in);
    if (r < 0)
        return r;
    c->access = cursor_be16(&in);
    c->this_class = cursor_be16(&in);
    c->super_class = cursor_be16(&in);
    cursor_skip(&in, 2 * (size_t)cursor_be16(&in)); /* interfaces */
    if (in.failed || class_name_at(c, c->this_class).len == 0)
        return -EBADMSG;
    if ((r = parse_members(c, &in, false)) < 0)
        return r;
    c->methods_start = offset(c, &in);
    if ((r = parse_members(c, &in, true)) < 0)
        return r;
    c->attributes_start = offset(c, &in);
    if ((r = parse_attributes(c, &in, NULL)) < 0)
        return r;
    return cursor_left(&in) ? -EBADMSG : 0;
}

int class_parse(struct class_file *c, const void *bytes, size_t len)
{
    vec_clear(&c->pool);
    vec_clear(&c->methods);
    c->bytes = bytes;
    c->len = len;
    int r = len > INT32_MAX ? -EBADMSG : parse(c);
    if (r < 0) {
        vec_clear(&c->pool);
        vec_clear(&c->methods);
    }
    return r;
}

void class_release(struct class_file *c)
{
    vec_release(&c->pool);
    vec_release(&c->methods);
}

struct str class_utf8(const struct class_file *c, uint16_t index)
{
    if (class_tag(c, index) != CONSTANT_UTF8)
        return (struct str){"", 0};
    uint32_t at = c->pool.data[index];
    return (struct str){(const char *)c->bytes + at + 3, class_be16(c, at + 1)};
}

struct str class_name_at(const struct class_file *c, uint16_t index)
{
    if (class_tag(c, index) != CONSTANT_CLASS)
        return (struct str){"", 0};
    return class_utf8(c, class_be16(c, c->pool.data[index] + 1));
}

bool class_member(const struct class_file *c, uint16_t index, struct class_member *ret)
{
    uint8_t tag = class_tag(c, index);
    bool has_owner = tag >= CONSTANT_FIELDREF && tag <= CONSTANT_INTERFACE_METHODREF;
    if (!has_owner && tag != CONSTANT_DYNAMIC && tag != CONSTANT_INVOKE_DYNAMIC)
        return false;
    uint32_t at = c->pool.data[index];
    uint16_t pair = class_be16(c, at + 3);
    if (class_tag(c, pair) != CONSTANT_NAME_AND_TYPE)
        return false;
    uint32_t pair_at = c->pool.data[pair];
    *ret = (struct class_member){
        .owner = has_owner ? class_name_at(c, class_be16(c, at + 1)) : (struct str){"", 0},
        .name = class_utf8(c, class_be16(c, pair_at + 1)),
        .descriptor = class_utf8(c, class_be16(c, pair_at + 3)),
    };
    return true;
}

size_t class_descriptor_next(struct str d, size_t at, unsigned *ret_slots)
{
    size_t i = at, dimensions = 0;
    while (i < d.len && d.data[i] == '[') {
        i++;
        dimensions++;
    }
    if (i >= d.len || dimensions > MAX_DIMENSIONS)
        return 0;
    char kind = d.data[i];
    if (kind == 'L') {
        const char *end = memchr(d.data + i, ';', d.len - i);
        if (!end)
            return 0;
        i = (size_t)(end - d.data);
    } else if (!strchr("BCDFIJSZ", kind) || !kind) {
        return 0;
    }
    *ret_slots = !dimensions && (kind == 'J' || kind == 'D') ? 2 : 1;
    return i + 1 - at;
}

static unsigned count_parameters(struct str descriptor)
{
    unsigned n = 0, slots;
    for (size_t at = 1, len; (len = class_descriptor_next(descriptor, at, &slots)); at += len)
        n++;
    return n;
}

bool class_method_is_bridge(const struct class_file *c, const struct class_method *m)
{
    if (!(m->access & ACC_BRIDGE) || !(m->access & ACC_SYNTHETIC))
        return false;
    struct str name = class_utf8(c, m->name);
    unsigned parameters = count_parameters(class_utf8(c, m->descriptor));
    for (size_t i = 0; i < c->methods.len; i++) {
        const struct class_method *other = &c->methods.data[i];
        struct str other_name = class_utf8(c, other->name);
        if (!(other->access & ACC_BRIDGE) && other_name.len == name.len &&
            memcmp(other_name.data, name.data, name.len) == 0 &&
            count_parameters(class_utf8(c, other->descriptor)) == parameters)
            return true;
    }
    return false;
}
