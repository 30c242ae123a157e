/* SPDX-License-Identifier: Apache-2.0 */
/*
 * StackMapTable (JVMS 4.7.4). Frames are decoded into complete states, moved, and extended by the
 * new locals; those of detours and handlers are added, and all are encoded again in the shortest
 * form. No state has to be computed: a detour has the state of its target, and a handler has only
 * the new locals and the exception.
 */
#include "classfile/private.h"

enum {
    T_TOP,
    T_INTEGER,
    T_FLOAT,
    T_DOUBLE,
    T_LONG,
    T_NULL,
    T_UNINITIALIZED_THIS,
    T_OBJECT,
    T_UNINITIALIZED,
    /*
     * An object whose class is a part of the method's descriptor; arg is its position << 16 |
     * length.
     */
    T_DESCRIPTOR,
};

enum {
    FRAME_SAME = 0,
    FRAME_SAME_1 = 64,
    FRAME_SAME_1_LONG = 247,
    FRAME_CHOP = 248, /* to 250 */
    FRAME_SAME_LONG = 251,
    FRAME_APPEND = 252, /* to 254 */
    FRAME_FULL = 255,
};

static int push_type(struct edit *e, uint8_t tag, uint32_t arg)
{
    return vec_push(&e->p->types, ((struct vtype){tag, arg}));
}

/* Builds the state in which the method starts. */
static int initial_frame(struct edit *e, struct frame *ret)
{
    const struct class_file *c = e->rewrite->class;
    struct frame f = {.locals = (uint32_t)e->p->types.len, .old = UINT32_MAX};
    int r = 0;
    if (!(e->method->access & ACC_STATIC)) {
        bool fresh = e->constructor && !str_is(class_name_at(c, c->this_class), "java/lang/Object");
        r = fresh ? push_type(e, T_UNINITIALIZED_THIS, 0) : push_type(e, T_OBJECT, c->this_class);
    }
    struct str d = class_utf8(c, e->method->descriptor);
    if (d.len == 0 || d.data[0] != '(')
        return -EBADMSG;
    unsigned slots;
    for (size_t at = 1, n; r == 0 && (n = class_descriptor_next(d, at, &slots)) > 0; at += n) {
        switch (d.data[at]) {
        case 'J':
            r = push_type(e, T_LONG, 0);
            break;
        case 'D':
            r = push_type(e, T_DOUBLE, 0);
            break;
        case 'F':
            r = push_type(e, T_FLOAT, 0);
            break;
        case 'L': /* without the L and the semicolon */
            r = push_type(e, T_DESCRIPTOR, (uint32_t)(at + 1) << 16 | (uint32_t)(n - 2));
            break;
        case '[':
            r = push_type(e, T_DESCRIPTOR, (uint32_t)at << 16 | (uint32_t)n);
            break;
        default:
            r = push_type(e, T_INTEGER, 0);
        }
    }
    f.nlocals = (uint32_t)e->p->types.len - f.locals;
    f.stack = f.locals;
    *ret = f;
    return r;
}

static int read_types(struct edit *e, struct cursor *in, unsigned n)
{
    for (; n; n--) {
        uint8_t tag = cursor_u8(in);
        uint32_t arg = 0;
        if (tag == T_OBJECT || tag == T_UNINITIALIZED)
            arg = cursor_be16(in);
        if (in->failed || tag > T_UNINITIALIZED)
            return -EBADMSG;
        if (tag == T_UNINITIALIZED) {
            if (arg >= e->code_len || e->code[arg] != OP_NEW || !e->p->length.data[arg])
                return -EBADMSG;
            arg = e->p->moved.data[arg];
        }
        int r = push_type(e, tag, arg);
        if (r < 0)
            return r;
    }
    return 0;
}

/* Appends a copy of a run of types. */
static int copy_types(struct edit *e, uint32_t from, uint32_t n)
{
    int r = vec_reserve(&e->p->types, e->p->types.len + n);
    if (r < 0)
        return r;
    if (n)
        memcpy(e->p->types.data + e->p->types.len, e->p->types.data + from,
               n * sizeof(struct vtype));
    e->p->types.len += n;
    return 0;
}

/* Decodes one entry of the table. f is the previous frame and becomes this one. */
static int read_frame(struct edit *e, struct cursor *in, struct frame *f)
{
    uint8_t kind = cursor_u8(in);
    uint32_t delta = kind < FRAME_SAME_1 ? kind
                     : kind < 128        ? kind - FRAME_SAME_1
                                         : cursor_be16(in);
    f->old = f->old == UINT32_MAX ? delta : f->old + delta + 1;
    f->nstack = 0;
    if (in->failed || f->old >= e->code_len || !e->p->length.data[f->old] ||
        (kind >= 128 && kind < FRAME_SAME_1_LONG))
        return -EBADMSG;
    f->at = e->p->label.data[f->old];
    int r = 0;
    if (kind < FRAME_SAME_1 || kind == FRAME_SAME_LONG)
        return 0;
    uint32_t here = (uint32_t)e->p->types.len;
    if (kind <= FRAME_SAME_1_LONG) {
        f->stack = here;
        f->nstack = 1;
        return read_types(e, in, 1);
    }
    if (kind < FRAME_SAME_LONG) {
        uint32_t gone = (uint32_t)FRAME_SAME_LONG - kind;
        if (f->nlocals < gone)
            return -EBADMSG;
        f->nlocals -= gone;
        return 0;
    }
    if (kind < FRAME_FULL) {
        unsigned more = kind - FRAME_SAME_LONG;
        if ((r = copy_types(e, f->locals, f->nlocals)) == 0)
            r = read_types(e, in, more);
        f->locals = here;
        f->nlocals += more;
        return r;
    }
    f->locals = here;
    f->nlocals = cursor_be16(in);
    if ((r = read_types(e, in, f->nlocals)) < 0)
        return r;
    f->stack = (uint32_t)e->p->types.len;
    f->nstack = cursor_be16(in);
    return read_types(e, in, f->nstack);
}

static const uint8_t tag_of_local[] = {
    ['I'] = T_INTEGER, ['J'] = T_LONG, ['F'] = T_FLOAT, ['D'] = T_DOUBLE, ['A'] = T_OBJECT};

/* Appends a frame's locals, padded to the index of the first new local, and then the new locals. */
static int extend_locals(struct edit *e, uint32_t from, uint32_t n)
{
    struct edit_private *p = e->p;
    unsigned slots = 0;
    for (uint32_t i = 0; i < n; i++)
        slots += p->types.data[from + i].tag == T_LONG || p->types.data[from + i].tag == T_DOUBLE
                     ? 2
                     : 1;
    if (slots > e->max_locals)
        return -EBADMSG;
    int r = copy_types(e, from, n);
    for (; r == 0 && slots < e->max_locals; slots++)
        r = push_type(e, T_TOP, 0);
    for (unsigned i = 0; r == 0 && i < p->local_count; i++) {
        uint8_t tag = tag_of_local[(uint8_t)p->locals[i]];
        int class = tag == T_OBJECT ? rewrite_class(e->rewrite, "java/lang/Object") : 0;
        r = class < 0 ? class : push_type(e, tag, (uint32_t) class);
    }
    return r;
}

/* Adds the new locals to every frame. Frames that shared their types still share them. */
static int extend_frames(struct edit *e)
{
    struct edit_private *p = e->p;
    uint32_t from = UINT32_MAX, n = 0, to = 0, to_n = 0;
    for (size_t i = 0; i < p->frames.len; i++) {
        struct frame *f = &p->frames.data[i];
        if (f->locals != from || f->nlocals != n) {
            from = f->locals;
            n = f->nlocals;
            to = (uint32_t)p->types.len;
            int r = extend_locals(e, from, n);
            if (r < 0)
                return r;
            to_n = (uint32_t)p->types.len - to;
        }
        f->locals = to;
        f->nlocals = to_n;
    }
    return 0;
}

static const struct frame *frame_at(const struct edit *e, size_t n, uint32_t old)
{
    size_t low = 0, high = n;
    while (low < high) {
        size_t mid = (low + high) / 2;
        if (e->p->frames.data[mid].old < old)
            low = mid + 1;
        else
            high = mid;
    }
    return low < n && e->p->frames.data[low].old == old ? &e->p->frames.data[low] : NULL;
}

static int add_detour_frames(struct edit *e)
{
    struct edit_private *p = e->p;
    size_t n = p->frames.len;
    for (size_t i = 0; i < p->detours.len; i++) {
        const struct frame *target = frame_at(e, n, p->detours.data[i].target);
        if (!target)
            return -ENOTSUP;
        struct frame f = *target;
        f.at = p->detours.data[i].to;
        f.old = UINT32_MAX;
        int r = vec_push(&p->frames, f);
        if (r < 0)
            return r;
    }
    return 0;
}

static int add_handler_frame(struct edit *e, bool early)
{
    struct edit_private *p = e->p;
    int class = rewrite_class(e->rewrite, "java/lang/Throwable");
    if (class < 0)
        return class;
    struct frame f = {
        .at = p->catch_to[early], .old = UINT32_MAX, .stack = (uint32_t)p->types.len, .nstack = 1};
    int r = push_type(e, T_OBJECT, (uint32_t) class);
    f.locals = (uint32_t)p->types.len;
    if (early && r == 0) {
        r = push_type(e, T_UNINITIALIZED_THIS, 0);
        f.nlocals = 1;
    }
    return r < 0 ? r : vec_push(&p->frames, f);
}

/*
 * True for a constructor in which a frame contradicts the search for super(): `this` is initialized
 * before it, or not initialized after it. The guard cannot handle such code.
 */
static bool constructor_unclear(const struct edit *e)
{
    const struct class_file *c = e->rewrite->class;
    if (!e->p->catch_all || !e->constructor ||
        str_is(class_name_at(c, c->this_class), "java/lang/Object"))
        return false;
    for (size_t i = 0; i < e->p->frames.len; i++) {
        const struct frame *f = &e->p->frames.data[i];
        bool fresh = false;
        for (uint32_t k = 0; k < f->nlocals; k++)
            fresh |= e->p->types.data[f->locals + k].tag == T_UNINITIALIZED_THIS;
        if (f->old >= e->super_end ? fresh : !fresh)
            return true;
    }
    return false;
}

static int compare_frames(const void *a, const void *b)
{
    const struct frame *x = a, *y = b;
    return x->at < y->at ? -1 : x->at > y->at;
}

static int write_types(struct edit *e, uint32_t from, uint32_t n, struct buf *out)
{
    for (uint32_t i = 0; i < n; i++) {
        struct vtype t = e->p->types.data[from + i];
        if (t.tag == T_DESCRIPTOR) {
            struct str d = class_utf8(e->rewrite->class, e->method->descriptor);
            int class = rewrite_class_named(e->rewrite, d.data + (t.arg >> 16), t.arg & 0xffff);
            if (class < 0)
                return class;
            t = (struct vtype){T_OBJECT, (uint32_t) class};
        }
        buf_u8(out, t.tag);
        if (t.tag == T_OBJECT || t.tag == T_UNINITIALIZED)
            buf_be16(out, (uint16_t)t.arg);
    }
    return 0;
}

/* Returns the number of locals that two frames have in common from the first one on. */
static uint32_t common(const struct edit *e, const struct frame *a, const struct frame *b)
{
    uint32_t n = MIN(a->nlocals, b->nlocals), i = 0;
    if (a->locals == b->locals)
        return n;
    const struct vtype *x = e->p->types.data + a->locals, *y = e->p->types.data + b->locals;
    while (i < n && x[i].tag == y[i].tag && x[i].arg == y[i].arg)
        i++;
    return i;
}

static int write_frame(struct edit *e, const struct frame *before, const struct frame *f,
                       uint32_t delta, struct buf *out)
{
    uint32_t same = common(e, before, f);
    bool kept = same == before->nlocals, all = same == f->nlocals;
    if (f->nstack == 0 && kept && all) {
        buf_u8(out, (uint8_t)(delta < 64 ? FRAME_SAME + delta : FRAME_SAME_LONG));
        if (delta >= 64)
            buf_be16(out, (uint16_t)delta);
        return 0;
    }
    if (f->nstack == 1 && kept && all) {
        buf_u8(out, (uint8_t)(delta < 64 ? FRAME_SAME_1 + delta : FRAME_SAME_1_LONG));
        if (delta >= 64)
            buf_be16(out, (uint16_t)delta);
        return write_types(e, f->stack, 1, out);
    }
    if (f->nstack == 0 && all && before->nlocals - same <= 3) {
        buf_u8(out, (uint8_t)(FRAME_SAME_LONG - (before->nlocals - same)));
        buf_be16(out, (uint16_t)delta);
        return 0;
    }
    if (f->nstack == 0 && kept && f->nlocals - same <= 3) {
        buf_u8(out, (uint8_t)(FRAME_SAME_LONG + (f->nlocals - same)));
        buf_be16(out, (uint16_t)delta);
        return write_types(e, f->locals + same, f->nlocals - same, out);
    }
    buf_u8(out, FRAME_FULL);
    buf_be16(out, (uint16_t)delta);
    buf_be16(out, (uint16_t)f->nlocals);
    int r = write_types(e, f->locals, f->nlocals, out);
    if (r < 0)
        return r;
    buf_be16(out, (uint16_t)f->nstack);
    return write_types(e, f->stack, f->nstack, out);
}

static int collect(struct edit *e, struct cursor *table, bool has_table, struct frame *ret_initial)
{
    struct edit_private *p = e->p;
    int r = initial_frame(e, ret_initial);
    struct frame f = *ret_initial;
    for (unsigned n = has_table ? cursor_be16(table) : 0; r == 0 && n; n--)
        if ((r = read_frame(e, table, &f)) == 0)
            r = vec_push(&p->frames, f);
    if (r < 0)
        return r;
    if (has_table && (table->failed || cursor_left(table)))
        return -EBADMSG;
    if (constructor_unclear(e))
        return -ENOTSUP;
    r = add_detour_frames(e);
    if (r == 0 && p->catch_all)
        r = add_handler_frame(e, false);
    if (r == 0 && edit_guard_early(e))
        r = add_handler_frame(e, true);
    if (r == 0 && p->local_count)
        r = extend_frames(e);
    return r;
}

int edit_write_frames(struct edit *e, struct cursor table, bool has_table, struct buf *out,
                      bool *ret_written)
{
    struct edit_private *p = e->p;
    unsigned major = e->rewrite->class->major;
    *ret_written = false;
    /* In a version 50 class without frames the older verifier takes over, which needs none. */
    if (major < CLASS_MAJOR_STACK_MAPS ||
        (major == CLASS_MAJOR_STACK_MAPS && !has_table && p->has_branches))
        return 0;
    if (!has_table && !p->catch_all && !p->detours.len)
        return 0;
    struct frame before = {0};
    int r = collect(e, &table, has_table, &before);
    if (r < 0)
        return r;
    if (p->frames.len == 0)
        return 0;
    if (p->frames.len > UINT16_MAX)
        return -E2BIG;
    if (p->islands)
        qsort(p->frames.data, p->frames.len, sizeof(*p->frames.data), compare_frames);
    int name = rewrite_utf8(e->rewrite, "StackMapTable", 13);
    if (name < 0)
        return name;
    buf_be16(out, (uint16_t)name);
    size_t length_at = out->len;
    buf_be32(out, 0);
    buf_be16(out, (uint16_t)p->frames.len);
    for (size_t i = 0; i < p->frames.len; i++) {
        const struct frame *f = &p->frames.data[i];
        if ((r = write_frame(e, &before, f, i ? f->at - before.at - 1 : f->at, out)) < 0)
            return r;
        before = *f;
    }
    if (buf_error(out))
        return buf_error(out);
    uint32_t length = htobe32((uint32_t)(out->len - length_at - 4));
    memcpy(out->data + length_at, &length, sizeof(length));
    *ret_written = true;
    return 0;
}
