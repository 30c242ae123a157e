/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Adds constants, generates code fragments, and assembles the new class file. Methods are edited in
 * edit.c.
 */
#include "classfile/rewrite.h"

#include "base/hash.h"
#include "classfile/private.h"

#include <endian.h>

/* constant_pool_count is one more than the highest index and must fit into 16 bits. */
#define MAX_CONSTANTS  65535
#define MAX_CLASS_SIZE (64u << 20)

static unsigned constant_count(const struct rewrite *w)
{
    return (unsigned)(w->class->pool.len + w->added.len);
}

static const uint8_t *constant_bytes(const struct rewrite *w, unsigned i)
{
    size_t own = w->class->pool.len;
    if (i >= own)
        return w->added.data[i - own] == UINT32_MAX ? NULL : w->pool.data + w->added.data[i - own];
    return w->class->pool.data[i] ? w->class->bytes + w->class->pool.data[i] : NULL;
}

static size_t constant_len(const uint8_t *at)
{
    switch (at[0]) {
    case CONSTANT_UTF8:
        return 3u + (size_t)(at[1] << 8 | at[2]);
    case CONSTANT_LONG:
    case CONSTANT_DOUBLE:
        return 9;
    case CONSTANT_METHOD_HANDLE:
        return 4;
    case CONSTANT_CLASS:
    case CONSTANT_STRING:
    case CONSTANT_METHOD_TYPE:
    case CONSTANT_MODULE:
    case CONSTANT_PACKAGE:
        return 3;
    default:
        return 5;
    }
}

static void index_add(struct rewrite *w, unsigned constant, const uint8_t *bytes, size_t len)
{
    size_t mask = w->index.len - 1;
    size_t i = hash_bytes(bytes, len) & mask;
    while (w->index.data[i])
        i = (i + 1) & mask;
    w->index.data[i] = constant + 1;
}

/* Builds the hash index of all constants, with room for as many again. */
static int index_build(struct rewrite *w)
{
    size_t cap = 64;
    while (cap < 4 * (size_t)constant_count(w))
        cap *= 2;
    vec_clear(&w->index);
    int r = vec_extend(&w->index, cap);
    if (r < 0)
        return r;
    for (unsigned i = 1; i < constant_count(w); i++) {
        const uint8_t *bytes = constant_bytes(w, i);
        if (bytes)
            index_add(w, i, bytes, constant_len(bytes));
    }
    return 0;
}

/* Returns the index of the constant with these bytes (tag and contents), adding it if necessary. */
static int constant(struct rewrite *w, const uint8_t *bytes, size_t len)
{
    if (w->index.len < 2 * (size_t)constant_count(w)) {
        int r = index_build(w);
        if (r < 0)
            return r;
    }
    size_t mask = w->index.len - 1;
    for (size_t i = hash_bytes(bytes, len) & mask; w->index.data[i]; i = (i + 1) & mask) {
        const uint8_t *existing = constant_bytes(w, w->index.data[i] - 1);
        if (constant_len(existing) == len && memcmp(existing, bytes, len) == 0)
            return (int)w->index.data[i] - 1;
    }
    bool wide = bytes[0] == CONSTANT_LONG || bytes[0] == CONSTANT_DOUBLE;
    unsigned n = constant_count(w);
    if (n + wide >= MAX_CONSTANTS)
        return -ENOSPC;
    int r = vec_reserve(&w->added, w->added.len + 2);
    if (r < 0)
        return r;
    uint32_t at = (uint32_t)w->pool.len;
    buf_bytes(&w->pool, bytes, len);
    if (buf_error(&w->pool))
        return buf_error(&w->pool);
    w->added.data[w->added.len++] = at;
    if (wide)
        w->added.data[w->added.len++] = UINT32_MAX;
    index_add(w, n, bytes, len);
    return (int)n;
}

int rewrite_utf8(struct rewrite *w, const char *s, size_t len)
{
    uint8_t small[256], *bytes = small;
    if (len > UINT16_MAX)
        return -E2BIG;
    if (len + 3 > sizeof(small) && !(bytes = malloc(len + 3)))
        return -ENOMEM;
    bytes[0] = CONSTANT_UTF8;
    bytes[1] = (uint8_t)(len >> 8);
    bytes[2] = (uint8_t)len;
    memcpy(bytes + 3, s, len);
    int r = constant(w, bytes, len + 3);
    if (bytes != small)
        free(bytes);
    return r;
}

/*
 * Adds a constant that consists of one or two indices. An index may be a negative errno, which is
 * passed on.
 */
static int reference(struct rewrite *w, uint8_t tag, int a, int b)
{
    if (a < 0 || b < 0)
        return a < 0 ? a : b;
    const uint8_t bytes[] = {tag, (uint8_t)(a >> 8), (uint8_t)a, (uint8_t)(b >> 8), (uint8_t)b};
    return constant(w, bytes, b ? 5 : 3);
}

int rewrite_class(struct rewrite *w, const char *name)
{
    return reference(w, CONSTANT_CLASS, rewrite_utf8(w, name, strlen(name)), 0);
}

int rewrite_class_named(struct rewrite *w, const char *name, size_t len)
{
    return reference(w, CONSTANT_CLASS, rewrite_utf8(w, name, len), 0);
}

int rewrite_string(struct rewrite *w, const char *s, size_t len)
{
    return reference(w, CONSTANT_STRING, rewrite_utf8(w, s, len), 0);
}

static int integer(struct rewrite *w, int32_t v)
{
    uint8_t bytes[5] = {CONSTANT_INTEGER};
    uint32_t be = htobe32((uint32_t)v);
    memcpy(bytes + 1, &be, sizeof(be));
    return constant(w, bytes, sizeof(bytes));
}

static int long_integer(struct rewrite *w, int64_t v)
{
    uint8_t bytes[9] = {CONSTANT_LONG};
    uint64_t be = htobe64((uint64_t)v);
    memcpy(bytes + 1, &be, sizeof(be));
    return constant(w, bytes, sizeof(bytes));
}

static int member(struct rewrite *w, uint8_t tag, const char *owner, const char *name,
                  const char *descriptor)
{
    int class = rewrite_class(w, owner);
    int pair = reference(w, CONSTANT_NAME_AND_TYPE, rewrite_utf8(w, name, strlen(name)),
                         rewrite_utf8(w, descriptor, strlen(descriptor)));
    return reference(w, tag, class, pair);
}

int rewrite_methodref(struct rewrite *w, const char *owner, const char *name,
                      const char *descriptor)
{
    return member(w, CONSTANT_METHODREF, owner, name, descriptor);
}

int code_call_static(struct rewrite *w, struct buf *s, const char *owner, const char *name,
                     const char *descriptor)
{
    int ref = rewrite_methodref(w, owner, name, descriptor);
    if (ref >= 0)
        code_invokestatic(s, ref);
    return MIN(ref, 0);
}

int rewrite_interface_methodref(struct rewrite *w, const char *owner, const char *name,
                                const char *descriptor)
{
    return member(w, CONSTANT_INTERFACE_METHODREF, owner, name, descriptor);
}

int rewrite_fieldref(struct rewrite *w, const char *owner, const char *name, const char *descriptor)
{
    return member(w, CONSTANT_FIELDREF, owner, name, descriptor);
}

int rewrite_begin(struct rewrite *w, const struct class_file *c)
{
    w->class = c;
    w->huge = REWRITE_HUGE;
    w->changed = false;
    w->pool.limit = w->codes.limit = MAX_CLASS_SIZE;
    buf_clear(&w->pool);
    buf_clear(&w->codes);
    vec_clear(&w->added);
    vec_clear(&w->index);
    vec_clear(&w->methods);
    return vec_extend(&w->methods, c->methods.len);
}

void rewrite_release(struct rewrite *w)
{
    buf_release(&w->pool);
    buf_release(&w->codes);
    vec_release(&w->added);
    vec_release(&w->index);
    vec_release(&w->methods);
    edit_free(w->edit);
    w->edit = NULL;
}

int rewrite_finish(struct rewrite *w, struct buf *out)
{
    const struct class_file *c = w->class;
    buf_bytes(out, c->bytes, 8);
    buf_be16(out, (uint16_t)constant_count(w));
    buf_bytes(out, c->bytes + 10, c->pool_end - 10);
    buf_bytes(out, w->pool.data, w->pool.len);
    uint32_t from = c->pool_end;
    for (size_t i = 0; i < c->methods.len; i++) {
        const struct rewritten *r = &w->methods.data[i];
        const struct class_method *m = &c->methods.data[i];
        if (!r->len)
            continue;
        buf_bytes(out, c->bytes + from, m->code - 4 - from);
        buf_be32(out, r->len);
        buf_bytes(out, w->codes.data + r->at, r->len);
        from = m->code_end;
    }
    buf_bytes(out, c->bytes + from, c->len - from);
    return buf_error(out);
}

/* Returns which of the five columns (types) of the load and store instructions to use. */
static unsigned column(char type)
{
    const char *at = strchr("IJFDA", type);
    return at && *at ? (unsigned)(at - "IJFDA") : 4;
}

static void local_access(struct buf *s, uint8_t general, uint8_t first_short, char type,
                         unsigned local)
{
    unsigned k = column(type);
    if (local < 4) {
        buf_u8(s, (uint8_t)(first_short + 4 * k + local));
    } else if (local < 256) {
        buf_u8(s, (uint8_t)(general + k));
        buf_u8(s, (uint8_t)local);
    } else {
        buf_u8(s, OP_WIDE);
        buf_u8(s, (uint8_t)(general + k));
        buf_be16(s, (uint16_t)local);
    }
}

void code_op(struct buf *s, enum opcode op)
{
    buf_u8(s, (uint8_t)op);
}

void code_ref(struct buf *s, enum opcode op, int index)
{
    buf_u8(s, (uint8_t)op);
    buf_be16(s, (uint16_t)index);
}

void code_load(struct buf *s, char type, unsigned local)
{
    local_access(s, OP_ILOAD, OP_ILOAD_0, type, local);
}

void code_store(struct buf *s, char type, unsigned local)
{
    local_access(s, OP_ISTORE, OP_ISTORE_0, type, local);
}

int code_int(struct rewrite *w, struct buf *s, int32_t v)
{
    if (v >= -1 && v <= 5) {
        buf_u8(s, (uint8_t)(OP_ICONST_0 + v));
    } else if (v == (int8_t)v) {
        buf_u8(s, OP_BIPUSH);
        buf_u8(s, (uint8_t)v);
    } else if (v == (int16_t)v) {
        buf_u8(s, OP_SIPUSH);
        buf_be16(s, (uint16_t)v);
    } else {
        int index = integer(w, v);
        if (index < 0)
            return index;
        if (index > UINT8_MAX) {
            code_ref(s, OP_LDC_W, index);
        } else {
            buf_u8(s, OP_LDC);
            buf_u8(s, (uint8_t)index);
        }
    }
    return buf_error(s);
}

int code_long(struct rewrite *w, struct buf *s, int64_t v)
{
    if (v == 0 || v == 1) {
        buf_u8(s, (uint8_t)(OP_LCONST_0 + v));
        return buf_error(s);
    }
    int index = long_integer(w, v);
    if (index < 0)
        return index;
    code_ref(s, OP_LDC2_W, index);
    return buf_error(s);
}
