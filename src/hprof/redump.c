/* SPDX-License-Identifier: Apache-2.0 */
#include "hprof/redump_private.h"

#include "base/class_name.h"

#include <errno.h>

struct str redump_string(const struct redump *r, uint64_t id)
{
    const uint64_t *at = map_get(&r->strings, id);
    if (!at)
        return (struct str){"", 0};
    const uint8_t *body = (const uint8_t *)(uintptr_t)*at; /* NOLINT: the map holds addresses */
    return (struct str){(const char *)body + ID, redump_u4_at(body - 4) - ID};
}

const char *redump_source_name(struct redump *r, struct str s)
{
    _cleanup_(buf_release) struct buf b = BUF(1 << 20);
    class_name_put(&b, s);
    buf_u8(&b, 0);
    const char *name = buf_error(&b) ? NULL : arena_copy(&r->arena, b.data, b.len);
    if (!name)
        redump_fail(r, -ENOMEM);
    return name ? name : "";
}

void redump_skip_typed(struct cursor *c, unsigned name_size)
{
    unsigned n = cursor_be16(c);
    while (n-- && !c->failed) {
        cursor_skip(c, name_size);
        unsigned size = hprof_type_size(cursor_u8(c), ID);
        c->failed |= !size;
        cursor_skip(c, size);
    }
}

/* Combines consecutive sub-records into pieces of about the same size. */
static void cut_piece(struct redump *r, const uint8_t *at, size_t n)
{
    enum { PIECE = 1 << 20 };

    if (r->pieces.len) {
        struct piece *last = &r->pieces.data[r->pieces.len - 1];
        if (last->at + last->len == at && last->len + n <= PIECE) {
            last->len += n;
            return;
        }
    }
    if (vec_push(&r->pieces, ((struct piece){at, n})) < 0)
        redump_fail(r, -ENOMEM);
}

/* The agent's classes, their instances and the roots that keep them are left out. */
static bool is_agents(struct redump *r, unsigned tag, const uint8_t *at)
{
    const struct class *c;
    switch (tag) {
    case HPROF_INSTANCE_DUMP:
        c = redump_class_of(r, redump_id_at(at + INSTANCE_CLASS));
        return c && c->agents;
    case HPROF_OBJECT_ARRAY_DUMP:
    case HPROF_PRIMITIVE_ARRAY_DUMP:
        return false;
    default:
        return redump_object(r, redump_id_at(at + 1)) == 0;
    }
}

void redump_visit_part(struct redump *r, struct cursor c, const struct visitor *v)
{
    static const uint8_t root_sizes[256] = {
        [HPROF_ROOT_UNKNOWN] = ID,           [HPROF_ROOT_JNI_GLOBAL] = 2 * ID,
        [HPROF_ROOT_JNI_LOCAL] = ID + 8,     [HPROF_ROOT_JAVA_FRAME] = ID + 8,
        [HPROF_ROOT_NATIVE_STACK] = ID + 4,  [HPROF_ROOT_STICKY_CLASS] = ID,
        [HPROF_ROOT_THREAD_BLOCK] = ID + 4,  [HPROF_ROOT_MONITOR_USED] = ID,
        [HPROF_ROOT_THREAD_OBJECT] = ID + 8,
    };
    while (cursor_left(&c) && !r->error) {
        const uint8_t *at = c.at;
        unsigned tag = cursor_u8(&c), type;
        const uint8_t *head;
        void (*visit)(struct redump *, const uint8_t *, size_t) = v->root;
        switch (tag) {
        case HPROF_INSTANCE_DUMP:
            head = cursor_take(&c, INSTANCE_BYTES - 1);
            cursor_skip(&c, head ? redump_u4_at(head + INSTANCE_BYTES - 5) : 0);
            visit = v->instance;
            break;
        case HPROF_OBJECT_ARRAY_DUMP:
            head = cursor_take(&c, ARRAY_CLASS + ID - 1);
            cursor_skip(&c, head ? (size_t)ID * redump_u4_at(head + ARRAY_LENGTH - 1) : 0);
            visit = v->object_array;
            break;
        case HPROF_PRIMITIVE_ARRAY_DUMP:
            head = cursor_take(&c, ARRAY_TYPE);
            type = head ? hprof_type_size(head[ARRAY_TYPE - 1], ID) : 0;
            c.failed |= !type;
            cursor_skip(&c, head ? (size_t)type * redump_u4_at(head + ARRAY_LENGTH - 1) : 0);
            visit = v->primitive_array;
            break;
        case HPROF_CLASS_DUMP:
            cursor_skip(&c, CLASS_FIXED - 1);
            redump_skip_typed(&c, 2);
            redump_skip_typed(&c, ID);
            cursor_skip(&c, (size_t)cursor_be16(&c) * (ID + 1));
            visit = v->class;
            break;
        default:
            c.failed |= !root_sizes[tag];
            cursor_skip(&c, root_sizes[tag]);
        }
        if (c.failed) {
            r->totals.cut = true;
            return;
        }
        if (is_agents(r, tag, at)) {
            if (tag == HPROF_INSTANCE_DUMP && v->pieces)
                redump_substitute(r, redump_id_at(at + 1), 0);
            continue;
        }
        if (v->pieces)
            cut_piece(r, at, (size_t)(c.at - at));
        visit(r, at, (size_t)(c.at - at));
    }
}

void redump_visit(struct redump *r, struct cursor c, const struct visitor *v,
                  void (*other)(struct redump *r, unsigned tag, struct cursor body))
{
    while (cursor_left(&c) >= HPROF_RECORD_HEADER && !r->error) {
        unsigned tag = cursor_u8(&c);
        cursor_skip(&c, 4);
        uint64_t len = cursor_be32(&c);
        bool heap = tag == HPROF_HEAP_DUMP || tag == HPROF_HEAP_DUMP_SEGMENT;
        if (len > cursor_left(&c)) {
            r->totals.cut = true;
            len = cursor_left(&c);
        }
        struct cursor body = cursor_sub(&c, len);
        if (heap && v)
            redump_visit_part(r, body, v);
        else if (!heap && other && !r->totals.cut)
            other(r, tag, body);
    }
}

static void release(struct redump *r)
{
    struct map *maps[] = {&r->strings,    &r->by_id,  &r->by_serial,      &r->serials,
                          &r->traces,     &r->frames, &r->thread_serials, &r->thread_instances,
                          &r->substitutes};
    for (size_t i = 0; i < ARRAY_SIZE(maps); i++)
        map_release(maps[i]);
    left_out_release(&r->left_out);
    vec_release(&r->classes);
    vec_release(&r->threads);
    vec_release(&r->early);
    vec_release(&r->pieces);
    arena_release(&r->arena);
}

int hprof_redump(const struct hprof_redump *how, const void *dump, size_t len,
                 struct hprof_redump_totals *ret)
{
    struct cursor file = cursor_of(dump, len);
    const void *nul = memchr(dump, 0, MIN(len, 64));
    if (!nul || len < 13 || memcmp(dump, "JAVA PROFILE ", 13) != 0)
        return -EBADMSG;
    cursor_skip(&file, (size_t)((const uint8_t *)nul - (const uint8_t *)dump) + 1);
    if (cursor_be32(&file) != ID || (cursor_skip(&file, 8), file.failed))
        return -EBADMSG;
    struct redump *r = calloc(1, sizeof(*r));
    if (!r)
        return -ENOMEM;
    r->how = how;
    redump_learn(r, file);
    if (!r->error)
        redump_emit(r, file);
    int e = r->error;
    *ret = r->totals;
    release(r);
    free(r);
    return e;
}
