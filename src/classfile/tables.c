/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies what follows the code, with adjusted pcs: the exception table and the attributes of Code
 * (JVMS 4.7.3, 4.7.12 to 14, 4.7.20).
 */
#include "classfile/private.h"

#define MAX_ANNOTATION_DEPTH 64

static uint16_t get16(const uint8_t *at)
{
    return (uint16_t)(at[0] << 8 | at[1]);
}

static void put16(uint8_t *at, uint32_t v)
{
    at[0] = (uint8_t)(v >> 8);
    at[1] = (uint8_t)v;
}

/* Moves the range (start_pc, length) at `at`. */
static int move_range(const struct edit *e, uint8_t *at)
{
    uint32_t start = get16(at), end = start + get16(at + 2);
    if (start > e->code_len || end > e->code_len)
        return -EBADMSG;
    uint32_t from = edit_label_of(e, start);
    put16(at, from);
    put16(at + 2, edit_label_of(e, end) - from);
    return 0;
}

static int move_point(const struct edit *e, uint8_t *at)
{
    uint32_t pc = get16(at);
    if (pc >= e->code_len)
        return -EBADMSG;
    put16(at, edit_label_of(e, pc));
    return 0;
}

static int move_instruction(const struct edit *e, uint8_t *at)
{
    uint32_t pc = get16(at);
    if (pc >= e->code_len)
        return -EBADMSG;
    put16(at, e->p->length.data[pc] ? e->p->moved.data[pc] : edit_label_of(e, pc));
    return 0;
}

/*
 * Moves a table of n entries of `size` bytes that each begin with a pc or a range, such as line
 * numbers or locals. `at` points to n.
 */
static int move_table(const struct edit *e, uint8_t *at, size_t len, size_t size,
                      int (*move)(const struct edit *, uint8_t *))
{
    if (len < 2 || len != 2 + size * (size_t)get16(at))
        return -EBADMSG;
    for (size_t i = 2; i < len; i += size) {
        int r = move(e, at + i);
        if (r < 0)
            return r;
    }
    return 0;
}

static int move_lines(const struct edit *e, uint8_t *at, size_t len)
{
    return move_table(e, at, len, 4, move_point);
}

static int move_locals(const struct edit *e, uint8_t *at, size_t len)
{
    return move_table(e, at, len, 10, move_range);
}

/* An entry of CharacterRangeTable, which javac -Xjcov writes, has a start and an inclusive end. */
static int move_characters_entry(const struct edit *e, uint8_t *at)
{
    uint32_t start = get16(at), end = (uint32_t)get16(at + 2) + 1;
    if (start >= e->code_len || end > e->code_len)
        return -EBADMSG;
    put16(at, edit_label_of(e, start));
    put16(at + 2, edit_label_of(e, end) - 1);
    return 0;
}

static int move_characters(const struct edit *e, uint8_t *at, size_t len)
{
    return move_table(e, at, len, 14, move_characters_entry);
}

static int skip_annotation(struct cursor *in, int depth);

static int skip_value(struct cursor *in, int depth)
{
    if (depth > MAX_ANNOTATION_DEPTH)
        return -EBADMSG;
    switch (cursor_u8(in)) {
    case 'e':
        cursor_skip(in, 4);
        break;
    case '@':
        return skip_annotation(in, depth + 1);
    case '[':
        for (unsigned n = cursor_be16(in); n && !in->failed; n--)
            if (skip_value(in, depth + 1) < 0)
                return -EBADMSG;
        break;
    default:
        cursor_skip(in, 2);
    }
    return in->failed ? -EBADMSG : 0;
}

static int skip_annotation(struct cursor *in, int depth)
{
    cursor_skip(in, 2);
    for (unsigned n = cursor_be16(in); n && !in->failed; n--) {
        cursor_skip(in, 2);
        if (skip_value(in, depth) < 0)
            return -EBADMSG;
    }
    return in->failed ? -EBADMSG : 0;
}

static int move_type_target(const struct edit *e, struct cursor *in)
{
    uint8_t kind = cursor_u8(in);
    uint8_t *at;
    switch (kind) {
    case 0x40: /* local variable, resource variable */
    case 0x41:
        for (unsigned n = cursor_be16(in); n; n--) {
            at = (uint8_t *)cursor_take(in, 6);
            if (!at || move_range(e, at) < 0)
                return -EBADMSG;
        }
        return 0;
    case 0x42: /* catch: an index into the exception table, which only grows at its end */
        cursor_skip(in, 2);
        return 0;
    case 0x43: /* instanceof, new, method references */
    case 0x44:
    case 0x45:
    case 0x46:
        at = (uint8_t *)cursor_take(in, 2);
        return at ? move_instruction(e, at) : -EBADMSG;
    case 0x47: /* casts, type arguments */
    case 0x48:
    case 0x49:
    case 0x4a:
    case 0x4b:
        at = (uint8_t *)cursor_take(in, 3);
        return at ? move_instruction(e, at) : -EBADMSG;
    default:
        return -EBADMSG;
    }
}

static int move_type_annotations(const struct edit *e, uint8_t *at, size_t len)
{
    struct cursor in = cursor_of(at, len);
    for (unsigned n = cursor_be16(&in); n && !in.failed; n--) {
        if (move_type_target(e, &in) < 0)
            return -EBADMSG;
        cursor_skip(&in, 2 * (size_t)cursor_u8(&in)); /* type path */
        if (skip_annotation(&in, 0) < 0)
            return -EBADMSG;
    }
    return in.failed || cursor_left(&in) ? -EBADMSG : 0;
}

/*
 * Attributes whose pcs are adjusted in place. An attribute with a NULL mover is dropped; HotSpot
 * never reads the old StackMap.
 */
static const struct mover {
    const char *name;
    int (*move)(const struct edit *, uint8_t *at, size_t len);
} movers[] = {
    {"LineNumberTable", move_lines},
    {"LocalVariableTable", move_locals},
    {"LocalVariableTypeTable", move_locals},
    {"RuntimeVisibleTypeAnnotations", move_type_annotations},
    {"RuntimeInvisibleTypeAnnotations", move_type_annotations},
    {"CharacterRangeTable", move_characters},
    {"StackMap", NULL},
};

/*
 * Returns the new start of a handler's range. Code inserted after a monitorenter lies in the range
 * that begins there, because the handler that releases the monitor must cover the first instruction
 * that holds it.
 */
static uint32_t range_start(const struct edit *e, uint32_t start)
{
    uint32_t before = start;
    while (before-- > 0)
        if (e->p->length.data[before])
            break;
    return start && e->code[before] == OP_MONITORENTER ? e->p->moved.data[before] + 1
                                                       : e->p->label.data[start];
}

static int write_exceptions(struct edit *e, struct cursor *in, struct buf *out)
{
    struct edit_private *p = e->p;
    unsigned n = cursor_be16(in), guards = 0;
    /*
     * Each guard has a start and an end in the original code and the number of the handler's copy.
     */
    uint32_t guard[2][3];
    if (p->catch_all && e->super_end < e->code_len)
        memcpy(guard[guards++], ((uint32_t[]){e->super_end, e->code_len, 0}), sizeof(guard[0]));
    if (edit_guard_early(e))
        memcpy(guard[guards++], ((uint32_t[]){0, e->super_pc, 1}), sizeof(guard[0]));
    if (n + guards > UINT16_MAX)
        return -E2BIG;
    buf_be16(out, (uint16_t)(n + guards));
    for (; n; n--) {
        uint32_t start = cursor_be16(in), end = cursor_be16(in), handler = cursor_be16(in);
        uint16_t type = cursor_be16(in);
        if (in->failed || start >= end || end > e->code_len || handler >= e->code_len ||
            !p->length.data[start] || !p->length.data[handler] ||
            (end < e->code_len && !p->length.data[end]))
            return -EBADMSG;
        buf_be16(out, (uint16_t)range_start(e, start));
        buf_be16(out, (uint16_t)p->label.data[end]);
        buf_be16(out, (uint16_t)p->label.data[handler]);
        buf_be16(out, type);
    }
    for (unsigned i = 0; i < guards; i++) {
        buf_be16(out, (uint16_t)p->label.data[guard[i][0]]);
        buf_be16(out, (uint16_t)p->label.data[guard[i][1]]);
        buf_be16(out, (uint16_t)p->catch_to[guard[i][2]]);
        buf_be16(out, 0);
    }
    return 0;
}

static int write_attribute(struct edit *e, uint16_t name_index, struct str name, struct cursor in,
                           struct buf *out, unsigned *n)
{
    const struct mover *m = NULL;
    for (size_t i = 0; i < ARRAY_SIZE(movers) && !m; i++)
        if (str_is(name, movers[i].name))
            m = &movers[i];
    if (m && !m->move)
        return 0;
    size_t len = cursor_left(&in);
    buf_be16(out, name_index);
    buf_be32(out, (uint32_t)len);
    uint8_t *at = buf_add(out, len);
    if (!at)
        return buf_error(out);
    if (len)
        memcpy(at, in.at, len);
    ++*n;
    return m ? m->move(e, at, len) : 0;
}

static int write_frames(struct edit *e, struct cursor old, bool has_old, struct buf *out,
                        unsigned *written)
{
    bool any = false;
    int r = edit_write_frames(e, old, has_old, out, &any);
    *written += any;
    return r;
}

int edit_write_tables(struct edit *e, struct buf *out)
{
    const struct class_file *c = e->rewrite->class;
    const uint8_t *start = e->code + e->code_len;
    struct cursor in = cursor_of(start, (size_t)(c->bytes + e->method->code_end - start));
    int r = write_exceptions(e, &in, out);
    if (r < 0)
        return r;
    size_t count_at = out->len;
    unsigned written = 0;
    buf_be16(out, 0);
    bool has_frames = false;
    for (unsigned n = cursor_be16(&in); n; n--) {
        uint16_t name_index = cursor_be16(&in);
        struct cursor contents = cursor_sub(&in, cursor_be32(&in));
        struct str name = class_utf8(c, name_index);
        if (in.failed || name.len == 0)
            return -EBADMSG;
        if (str_is(name, "StackMapTable")) {
            if (has_frames)
                return -EBADMSG;
            has_frames = true;
            r = write_frames(e, contents, true, out, &written);
        } else {
            r = write_attribute(e, name_index, name, contents, out, &written);
        }
        if (r < 0)
            return r;
    }
    if (in.failed || cursor_left(&in))
        return -EBADMSG;
    if (!has_frames && (r = write_frames(e, (struct cursor){0}, false, out, &written)) < 0)
        return r;
    if (buf_error(out))
        return buf_error(out);
    if (written > UINT16_MAX)
        return -E2BIG;
    put16(out->data + count_at, written);
    return 0;
}

/*
 * Finds an attribute of the original Code by name. Returns a failed, empty cursor when there is
 * none.
 */
static struct cursor find_attribute(const struct edit *e, const char *name)
{
    const struct class_file *c = e->rewrite->class;
    const uint8_t *start = e->code + e->code_len;
    struct cursor in = cursor_of(start, (size_t)(c->bytes + e->method->code_end - start));
    cursor_skip(&in, 8 * (size_t)cursor_be16(&in));
    for (unsigned n = cursor_be16(&in); n && !in.failed; n--) {
        struct str s = class_utf8(c, cursor_be16(&in));
        struct cursor contents = cursor_sub(&in, cursor_be32(&in));
        if (str_is(s, name))
            return contents;
    }
    return (struct cursor){start, start, true};
}

void edit_lines(const struct edit *e, void (*f)(void *data, uint32_t pc, unsigned line), void *data)
{
    struct cursor in = find_attribute(e, "LineNumberTable");
    for (unsigned n = cursor_be16(&in); n; n--) {
        uint32_t pc = cursor_be16(&in);
        unsigned line = cursor_be16(&in);
        if (in.failed)
            return;
        if (pc < e->code_len && e->p->length.data[pc])
            f(data, pc, line);
    }
}

struct line_search {
    uint32_t pc, best;
    unsigned line;
};

static void search_line(void *data, uint32_t pc, unsigned line)
{
    struct line_search *s = data;
    if (pc <= s->pc && (!s->line || pc >= s->best)) {
        s->best = pc;
        s->line = line;
    }
}

unsigned edit_line(const struct edit *e, uint32_t pc)
{
    struct line_search s = {.pc = pc};
    edit_lines(e, search_line, &s);
    return s.line;
}

void edit_handlers(const struct edit *e, void (*f)(void *data, uint32_t pc), void *data)
{
    const struct class_file *c = e->rewrite->class;
    const uint8_t *start = e->code + e->code_len;
    struct cursor in = cursor_of(start, (size_t)(c->bytes + e->method->code_end - start));
    unsigned n = cursor_be16(&in);
    const uint8_t *table = cursor_take(&in, 8 * (size_t)n);
    for (unsigned i = 0; table && i < n; i++) {
        uint32_t pc = get16(table + 8 * i + 4);
        bool again = false;
        for (unsigned k = 0; k < i && !again; k++)
            again = get16(table + 8 * k + 4) == pc;
        if (!again && pc < e->code_len && e->p->length.data[pc])
            f(data, pc);
    }
}
