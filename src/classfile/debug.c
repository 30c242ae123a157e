/* SPDX-License-Identifier: Apache-2.0 */
#include "classfile/debug.h"

#include <errno.h>
#include <stdio.h>

struct cursor class_attribute(const struct class_file *c, uint32_t at, const char *name)
{
    struct cursor in = cursor_of(c->bytes + at, c->len - at);
    for (unsigned n = cursor_be16(&in); n && !in.failed; n--) {
        struct str s = class_utf8(c, cursor_be16(&in));
        struct cursor contents = cursor_sub(&in, cursor_be32(&in));
        if (str_is(s, name))
            return contents;
    }
    return (struct cursor){c->bytes, c->bytes, true};
}

/* Returns whether a class has the name of a table of locals, so that a method of it has one. */
static bool has_locals(const struct class_file *c)
{
    for (size_t i = 1; i < c->pool.len; i++)
        if (str_is(class_utf8(c, (uint16_t)i), "LocalVariableTable"))
            return true;
    return false;
}

/*
 * Calls f with each local that is live at pc until f returns true. Returns 1 if it did, 0 if it
 * never did, or -ENODATA when no method of the class has a table of locals. A method without locals
 * has none, however the class was compiled.
 */
static int locals_each(const struct edit *e, uint32_t pc,
                       bool (*f)(void *context, const struct class_local *l), void *context)
{
    const struct class_file *c = e->rewrite->class;
    /* The exception table and the attributes follow the code (JVMS 4.7.3). */
    uint32_t at = e->method->code + 8 + e->code_len;
    struct cursor handlers = cursor_of(c->bytes + at, c->len - at);
    at += 2 + 8u * cursor_be16(&handlers);
    if (handlers.failed || at > e->method->code_end)
        return -ENODATA;
    struct cursor in = class_attribute(c, at, "LocalVariableTable");
    if (in.failed)
        return has_locals(c) ? 0 : -ENODATA;
    for (unsigned n = cursor_be16(&in); n && !in.failed; n--) {
        uint32_t start = cursor_be16(&in), len = cursor_be16(&in);
        struct class_local l = {.name = class_utf8(c, cursor_be16(&in))};
        l.descriptor = class_utf8(c, cursor_be16(&in));
        l.slot = cursor_be16(&in);
        if (!in.failed && pc >= start && pc < start + len && l.descriptor.len && f(context, &l))
            return 1;
    }
    return 0;
}

struct local_search {
    const char *name;
    struct class_local *ret;
};

static bool is_local(void *context, const struct class_local *l)
{
    struct local_search *s = context;
    bool is = str_is(l->name, s->name);
    if (is)
        *s->ret = *l;
    return is;
}

int debug_find_local(const struct edit *e, uint32_t pc, const char *name, struct class_local *ret)
{
    struct class_local found;
    struct local_search s = {name, &found};
    int r = locals_each(e, pc, is_local, &s);
    if (r < 0 || r == 0 || found.slot >= e->max_locals)
        return r < 0 ? r : -ENOENT;
    *ret = found;
    return 0;
}

/*
 * Calls f with each field that the class itself declares until f returns true. Returns whether it
 * did.
 */
static bool fields_each(const struct class_file *c,
                        bool (*f)(void *context, struct str name, struct str descriptor,
                                  uint16_t access),
                        void *context)
{
    /*
     * The pool is followed by access_flags, this_class and super_class, then the interfaces, then
     * the fields (JVMS 4.1).
     */
    struct cursor in = cursor_of(c->bytes + c->pool_end + 6, c->len - c->pool_end - 6);
    cursor_skip(&in, 2 * (size_t)cursor_be16(&in));
    for (unsigned n = cursor_be16(&in); n && !in.failed; n--) {
        uint16_t access = cursor_be16(&in);
        struct str field = class_utf8(c, cursor_be16(&in)),
                   descriptor = class_utf8(c, cursor_be16(&in));
        for (unsigned a = cursor_be16(&in); a && !in.failed; a--) {
            cursor_skip(&in, 2);
            cursor_skip(&in, cursor_be32(&in));
        }
        if (!in.failed && descriptor.len && f(context, field, descriptor, access))
            return true;
    }
    return false;
}

struct field_search {
    const char *name;
    struct str *ret_descriptor;
    uint16_t *ret_access;
};

static bool is_field(void *context, struct str name, struct str descriptor, uint16_t access)
{
    struct field_search *s = context;
    bool is = str_is(name, s->name);
    if (is) {
        *s->ret_descriptor = descriptor;
        *s->ret_access = access;
    }
    return is;
}

bool class_find_field(const struct class_file *c, const char *name, struct str *ret_descriptor,
                      uint16_t *ret_access)
{
    struct field_search s = {name, ret_descriptor, ret_access};
    return fields_each(c, is_field, &s);
}

/* ---- similar names ---- */

static void try_name(struct nearest *n, struct str name)
{
    char text[NEAREST_MAX + 1];
    if (name.len < sizeof(text) && snprintf(text, sizeof(text), "%.*s", (int)name.len, name.data))
        nearest_try(n, text);
}

static bool try_local(void *context, const struct class_local *l)
{
    try_name(context, l->name);
    return false;
}

struct try_fields {
    struct nearest *nearest;
    bool statics;
};

static bool try_field(void *context, struct str name, struct str descriptor, uint16_t access)
{
    struct try_fields *t = context;
    if (!t->statics || access & ACC_STATIC)
        try_name(t->nearest, name);
    return false;
}

void debug_nearest_name(const struct edit *e, uint32_t pc, bool locals, struct nearest *n)
{
    struct try_fields fields = {n, e->method->access & ACC_STATIC};
    if (locals)
        (void)locals_each(e, pc, try_local, n);
    fields_each(e->rewrite->class, try_field, &fields);
}

/* ---- annotations (JVMS 4.7.16) ---- */

enum { ANNOTATION_DEPTH = 16 };

static void skip_annotation(struct cursor *in, int depth);

static void skip_value(struct cursor *in, int depth)
{
    uint8_t tag = cursor_u8(in);
    if (depth > ANNOTATION_DEPTH)
        in->failed = true;
    if (in->failed)
        return;
    if (tag == '@') {
        skip_annotation(in, depth + 1);
    } else if (tag == '[') {
        for (unsigned n = cursor_be16(in); n && !in->failed; n--)
            skip_value(in, depth + 1);
    } else {
        cursor_skip(in, tag == 'e' ? 4 : 2);
    }
}

static void skip_annotation(struct cursor *in, int depth)
{
    cursor_skip(in, 2);
    for (unsigned n = cursor_be16(in); n && !in->failed; n--) {
        cursor_skip(in, 2);
        skip_value(in, depth);
    }
}

bool class_annotated(const struct class_file *c, uint32_t at,
                     bool (*is_wanted)(const void *context, struct str type), const void *context)
{
    static const char *const attributes[] = {"RuntimeVisibleAnnotations",
                                             "RuntimeInvisibleAnnotations"};
    for (size_t k = 0; k < ARRAY_SIZE(attributes); k++) {
        struct cursor in = class_attribute(c, at, attributes[k]);
        for (unsigned n = in.failed ? 0 : cursor_be16(&in); n && !in.failed; n--) {
            struct cursor head = in;
            if (is_wanted(context, class_utf8(c, cursor_be16(&head))))
                return true;
            skip_annotation(&in, 0);
        }
    }
    return false;
}

/* ---- source maps ---- */

static struct str next_line(struct str *rest)
{
    const char *end = rest->len ? memchr(rest->data, '\n', rest->len) : NULL;
    struct str line = {rest->data, end ? (size_t)(end - rest->data) : rest->len};
    size_t used = line.len + (end != NULL);
    *rest = (struct str){rest->data + used, rest->len - used};
    if (line.len && line.data[line.len - 1] == '\r')
        line.len--;
    return line;
}

static bool take_number(struct str *s, unsigned *ret)
{
    unsigned n = 0;
    size_t i = 0;
    for (; i < s->len && s->data[i] >= '0' && s->data[i] <= '9' && n < 100000000; i++)
        n = n * 10 + (unsigned)(s->data[i] - '0');
    *s = (struct str){s->data + i, s->len - i};
    *ret = n;
    return i > 0;
}

static bool take_char(struct str *s, char c)
{
    if (!s->len || s->data[0] != c)
        return false;
    *s = (struct str){s->data + 1, s->len - 1};
    return true;
}

/* A path "a/b/index.jsp" matches itself and "index.jsp". */
static bool is_file(struct str path, const char *file)
{
    size_t n = strlen(file);
    return path.len >= n && memcmp(path.data + path.len - n, file, n) == 0 &&
           (path.len == n || path.data[path.len - n - 1] == '/');
}

/*
 * Parses an entry of a *F section: "0 index.jsp", or "+ 0 index.jsp" with the path on the next
 * line. Returns true when it is the wanted file.
 */
static bool file_line(struct str line, struct str *rest, const char *file, unsigned *ret_id)
{
    bool path = take_char(&line, '+');
    while (take_char(&line, ' '))
        ;
    if (!take_number(&line, ret_id) || !take_char(&line, ' '))
        return false;
    return is_file(line, file) || (path && is_file(next_line(rest), file));
}

/*
 * Parses a line of a *L section: IN[#FILE][,COUNT]:OUT[,STEP]. Returns the output line for the
 * wanted line, or 0 when this entry does not include it.
 */
static unsigned map_line(struct str line, uint64_t files, unsigned *file, unsigned wanted)
{
    unsigned in, count = 1, out, step = 1;
    if (!take_number(&line, &in) || (take_char(&line, '#') && !take_number(&line, file)) ||
        (take_char(&line, ',') && !take_number(&line, &count)) || !take_char(&line, ':') ||
        !take_number(&line, &out) || (take_char(&line, ',') && !take_number(&line, &step)))
        return 0;
    if (*file >= 64 || !(files >> *file & 1) || wanted < in || wanted - in >= count)
        return 0;
    return out + (wanted - in) * step;
}

int debug_smap_lines(struct str smap, const char *file, unsigned line, unsigned *ret, int max)
{
    enum { NOTHING, FILES, LINES } section = NOTHING;

    uint64_t files = 0; /* the wanted file's ids in this stratum, a bit each */
    unsigned last_file = 0;
    int n = 0;
    while (smap.len && n < max) {
        struct str text = next_line(&smap);
        unsigned id;
        if (take_char(&text, '*')) {
            section = take_char(&text, 'F') ? FILES : take_char(&text, 'L') ? LINES : NOTHING;
            if (section == FILES)
                files = 0;
            if (section == LINES)
                last_file = 0;
        } else if (section == FILES && file_line(text, &smap, file, &id) && id < 64) {
            files |= UINT64_C(1) << id;
        } else if (section == LINES) {
            unsigned out = map_line(text, files, &last_file, line);
            if (out)
                ret[n++] = out;
        }
    }
    return n;
}
