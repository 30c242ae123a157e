/* SPDX-License-Identifier: Apache-2.0 */
/* Generates parts of the inserted code. */
#include "agent/capture/requests/points.h"

#include "classfile/debug.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

int point_probe(struct edit *e, struct buf *code, const char *name, const char *descriptor)
{
    return code_call_static(e->rewrite, code, PROBE, name, descriptor);
}

int point_virtual(struct edit *e, struct buf *code, const char *owner, const char *name,
                  const char *descriptor)
{
    int ref = rewrite_methodref(e->rewrite, owner, name, descriptor);
    if (ref >= 0)
        code_ref(code, OP_INVOKEVIRTUAL, ref);
    return MIN(ref, 0);
}

static int point_interface(struct edit *e, struct buf *code, const char *owner, const char *name,
                           const char *descriptor)
{
    int ref = rewrite_interface_methodref(e->rewrite, owner, name, descriptor);
    if (ref < 0)
        return ref;
    code_ref(code, OP_INVOKEINTERFACE, ref);
    unsigned count = 1, slots;
    struct str d = {descriptor, strlen(descriptor)};
    size_t n;
    for (size_t at = 1; (n = class_descriptor_next(d, at, &slots)); at += n)
        count += slots;
    buf_u8(code, (uint8_t)count);
    buf_u8(code, 0);
    return 0;
}

int point_returns(struct edit *e, const struct buf *code, unsigned stack)
{
    int r = 0;
    for (struct insn i = {0}; r == 0 && edit_next(e, &i);)
        if (op_info[i.op] & OP_IS_RETURN)
            r = edit_insert(e, EDIT_BEFORE, i.pc, 0, code, stack);
    return r;
}

int point_thrown(struct edit *e, const char *probe, int local)
{
    _cleanup_(buf_release) struct buf code = BUF(32);
    code_op(&code, OP_DUP);
    code_load(&code, 'J', (unsigned)local);
    int r = point_probe(e, &code, probe, "(Ljava/lang/Throwable;J)V");
    code_op(&code, OP_ATHROW);
    return r ? r : edit_catch_all(e, &code, 4) ?: 1;
}

/* Returns the slot of the first parameter of a type, such as "java/lang/Runnable", or -1. */
static int parameter(const struct edit *e, struct str descriptor, const char *type)
{
    int slot = !(e->method->access & ACC_STATIC);
    unsigned slots;
    size_t n;
    for (size_t at = 1; (n = class_descriptor_next(descriptor, at, &slots));
         at += n, slot += (int)slots)
        if (n == strlen(type) + 2 && descriptor.data[at] == 'L' &&
            memcmp(descriptor.data + at + 1, type, n - 2) == 0)
            return slot;
    return -1;
}

int point_slot(const struct instrument_class *c, const struct edit *e, const struct point *p)
{
    return p->type ? parameter(e, class_utf8(c->file, e->method->descriptor), p->type) : 0;
}

bool point_calls(const struct instrument_class *c, const char *owner, const char *name,
                 const char *descriptor)
{
    struct class_member m;
    for (size_t i = 1; i < c->file->pool.len; i++)
        if (class_member(c->file, (uint16_t)i, &m) && str_is(m.owner, owner) &&
            str_is(m.name, name) && str_is(m.descriptor, descriptor))
            return true;
    return false;
}

int point_request(struct edit *e, struct buf *first, unsigned stack, const struct buf *status)
{
    _cleanup_(buf_release) struct buf last = BUF(64);
    int local = edit_local(e, 'J'), r = MIN(local, 0);
    if (r < 0)
        return r;
    code_store(first, 'J', (unsigned)local);
    r = edit_insert(e, EDIT_ENTRY, 0, 0, first, stack);
    code_load(&last, 'J', (unsigned)local);
    if (status)
        buf_bytes(&last, status->data, status->len);
    r = r ? r : point_probe(e, &last, "exit", status ? "(JI)V" : "(J)V");
    r = r ? r : point_returns(e, &last, 3);
    return r ? r : point_thrown(e, "failed", local);
}

/* ---- words ---- */

/* Splits "a/B.m(D)R" or "a/B.m:D" into three strings. */
struct member_word {
    char owner[160], name[64], descriptor[200];
};

static int read_member(const char *word, size_t n, char separator, struct member_word *ret)
{
    const char *end = memchr(word, separator, n);
    const char *dot = end ? memrchr(word, '.', (size_t)(end - word)) : NULL;
    if (!dot)
        return -EINVAL;
    const char *descriptor = separator == ':' ? end + 1 : end;
    snprintf(ret->owner, sizeof(ret->owner), "%.*s", (int)(dot - word), word);
    snprintf(ret->name, sizeof(ret->name), "%.*s", (int)(end - dot - 1), dot + 1);
    snprintf(ret->descriptor, sizeof(ret->descriptor), "%.*s", (int)(word + n - descriptor),
             descriptor);
    return 0;
}

static int push_call(const struct instrument_class *c, struct edit *e, const char *word, size_t n,
                     bool sure, struct buf *code)
{
    struct member_word m;
    int r = read_member(word + 2, n - 2, '(', &m);
    if (r < 0)
        return r;
    if (!sure && !point_calls(c, m.owner, m.name, m.descriptor))
        return 1;
    return word[0] == 'v'   ? point_virtual(e, code, m.owner, m.name, m.descriptor)
           : word[0] == 's' ? code_call_static(e->rewrite, code, m.owner, m.name, m.descriptor)
                            : point_interface(e, code, m.owner, m.name, m.descriptor);
}

static int push_field(const struct instrument_class *c, struct edit *e, const char *word, size_t n,
                      struct buf *code)
{
    struct member_word m;
    struct str type;
    uint16_t access;
    int r = read_member(word + 2, n - 2, ':', &m);
    if (r < 0)
        return r;
    if (!str_is(c->name, m.owner) || !class_find_field(c->file, m.name, &type, &access) ||
        access & ACC_STATIC || !str_is(type, m.descriptor))
        return 1;
    int ref = rewrite_fieldref(e->rewrite, m.owner, m.name, m.descriptor);
    code_ref(code, OP_GETFIELD, ref);
    return MIN(ref, 0);
}

static int push_static(struct edit *e, const char *word, size_t n, struct buf *code)
{
    struct member_word m;
    int r = read_member(word + 2, n - 2, ':', &m);
    if (r < 0)
        return r;
    int ref = rewrite_fieldref(e->rewrite, m.owner, m.name, m.descriptor);
    code_ref(code, OP_GETSTATIC, ref);
    return MIN(ref, 0);
}

static int push_cast(struct edit *e, const char *name, size_t n, struct buf *code)
{
    char class[200];
    snprintf(class, sizeof(class), "%.*s", (int)n, name);
    int ref = rewrite_class(e->rewrite, class);
    code_ref(code, OP_CHECKCAST, ref);
    return MIN(ref, 0);
}

static int push_word(const struct instrument_class *c, struct edit *e, const struct point *p,
                     const char *word, size_t n, struct buf *code)
{
    bool sure = word[0] != '?';
    int slot;
    word += !sure;
    n -= !sure;
    switch (word[0]) {
    case 'J':
        code_load(code, 'J', (unsigned)(word[1] - '0'));
        return 0;
    case 'I':
        code_load(code, 'I', (unsigned)(word[1] - '0'));
        return 0;
    case 'r':
        code_op(code, OP_DUP);
        return 0;
    case 'p':
        slot = point_slot(c, e, p);
        if (slot >= 0)
            code_load(code, 'A', (unsigned)slot);
        return slot < 0;
    case '#':
        return code_int(e->rewrite, code, p->number);
    case '=':
        slot = rewrite_string(e->rewrite, word + 1, n - 1);
        code_ref(code, OP_LDC_W, slot);
        return MIN(slot, 0);
    case 'f':
        return push_field(c, e, word, n, code);
    case 'c':
        return push_cast(e, word + 2, n - 2, code);
    case 'g':
        return push_static(e, word, n, code);
    case 'v':
    case 'i':
    case 's':
        return push_call(c, e, word, n, sure, code);
    default:
        code_load(code, 'A', (unsigned)(word[0] - '0'));
        return word[0] == '0' && e->method->access & ACC_STATIC;
    }
}

int point_push(const struct instrument_class *c, struct edit *e, const struct point *p,
               const char *words, struct buf *code)
{
    int r = 0;
    for (const char *w = words ? words : ""; r == 0 && *w;) {
        size_t n = strcspn(w, " ");
        r = push_word(c, e, p, w, n, code);
        w += n + (w[n] == ' ');
    }
    return r;
}

int point_push_and_call(const struct instrument_class *c, struct edit *e, const struct point *p,
                        struct buf *code)
{
    char name[64];
    const char *descriptor = strchr(p->probe, '(');
    snprintf(name, sizeof(name), "%.*s", (int)(descriptor - p->probe), p->probe);
    int r = point_push(c, e, p, p->args, code);
    return r ? r : point_probe(e, code, name, descriptor);
}

int point_entry(const struct instrument_class *c, struct edit *e, const struct point *p)
{
    _cleanup_(buf_release) struct buf code = BUF(256);
    int r = point_push_and_call(c, e, p, &code);
    return r ? MIN(r, 0) : edit_insert(e, EDIT_ENTRY, 0, 0, &code, POINT_STACK) ?: 1;
}

int point_exit(const struct instrument_class *c, struct edit *e, const struct point *p)
{
    _cleanup_(buf_release) struct buf code = BUF(256);
    int r = point_push_and_call(c, e, p, &code);
    return r ? MIN(r, 0) : point_returns(e, &code, POINT_STACK) ?: 1;
}

int point_within(const struct instrument_class *c, struct edit *e, const struct point *p)
{
    _cleanup_(buf_release) struct buf first = BUF(256), status = BUF(256);
    int r = point_push_and_call(c, e, p, &first);
    r = r ? r : point_push(c, e, p, p->leave, &status);
    return r ? MIN(r, 0) : point_request(e, &first, POINT_STACK, p->leave ? &status : NULL);
}
