/* SPDX-License-Identifier: Apache-2.0 */
#include "classfile/rename.h"

#include "classfile/classfile.h"

static void copy_constants(const struct class_file *c, const struct class_renaming *renamings,
                           struct buf *out)
{
    uint32_t from = 10; /* after constant_pool_count */
    for (size_t i = 1; i < c->pool.len; i++) {
        if (class_tag(c, (uint16_t)i) != CONSTANT_UTF8)
            continue;
        struct str s = class_utf8(c, (uint16_t)i);
        for (const struct class_renaming *r = renamings; r->from; r++) {
            if (!str_is(s, r->from))
                continue;
            buf_bytes(out, c->bytes + from, c->pool.data[i] + 1 - from);
            buf_be16(out, (uint16_t)strlen(r->to));
            buf_string(out, r->to);
            from = c->pool.data[i] + 3 + (uint32_t)s.len;
            break;
        }
    }
    buf_bytes(out, c->bytes + from, c->pool_end - from);
}

int class_rename(const void *bytes, size_t len, const struct class_renaming *renamings,
                 struct buf *out)
{
    struct class_file c = {0};
    int r = class_parse(&c, bytes, len);
    if (r == 0) {
        buf_bytes(out, bytes, 10);
        copy_constants(&c, renamings, out);
        buf_bytes(out, c.bytes + c.pool_end, c.len - c.pool_end);
        r = buf_error(out);
    }
    class_release(&c);
    return r;
}
