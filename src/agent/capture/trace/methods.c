/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/capture/trace/methods.h"

#include "agent/capture/trace/annotations.h"
#include "agent/capture/trace/paths.h"
#include "agent/capture/trace/ring.h"
#include "agent/instrument/choice.h"
#include "base/dotted.h"
#include "base/hash.h"
#include "classfile/debug.h"
#include "options/signature.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool trace_has_annotations(const char *patterns)
{
    for (const char *p = patterns; p && *p; p += strcspn(p, ":"), p += *p == ':')
        if (*p == '@')
            return true;
    return false;
}

static bool is_annotation(const void *context, struct str type)
{
    const struct str *wanted = context;
    trace_annotation_add(type);
    return signature_is_type(wanted->data, wanted->len, type);
}

bool trace_annotated(const char *pattern, const struct class_file *c, const struct class_method *m)
{
    const struct str wanted = {pattern + 1, strcspn(pattern, ":") - 1};
    return *pattern == '@' && (class_annotated(c, m->start + 6, is_annotation, &wanted) ||
                               class_annotated(c, c->attributes_start, is_annotation, &wanted));
}

const char *trace_pattern_type(const char *pattern)
{
    static const char word[] = "implements ";
    return strncmp(pattern, word, strlen(word)) == 0 ? pattern + strlen(word) : NULL;
}

bool trace_is_named(const char *pattern)
{
    return *pattern != '@' && !trace_pattern_type(pattern);
}

bool trace_method_matches(const struct traced_method *m, const char *pattern)
{
    const char *dot = m->descriptor;
    while (dot > m->text && *dot != '.')
        dot--;
    struct str class_name = {m->text, (size_t)(dot - m->text)},
               name = {dot + 1, (size_t)(m->descriptor - dot) - 1};
    return choice_matches_first(pattern, class_name, name,
                                (struct str){m->descriptor, strlen(m->descriptor)});
}

bool trace_any_matches(const struct traced_methods *t, const char *pattern, unsigned patterns)
{
    bool named = trace_is_named(pattern);
    for (size_t i = 0; i < t->methods.len; i++) {
        const struct traced_method *m = &t->methods.data[i];
        if (m->rules && m->patterns == patterns && (!named || trace_method_matches(m, pattern)))
            return true;
    }
    return false;
}

int trace_method_add(struct traced_methods *t, struct str class_name, struct str name,
                     struct str descriptor, bool has_this)
{
    size_t len = class_name.len + 1 + name.len + descriptor.len;
    char *text = arena_alloc(&t->arena, len + 1);
    if (!text)
        return -ENOMEM;
    memcpy(text, class_name.data, class_name.len);
    dotted_in_place(text, class_name.len);
    text[class_name.len] = '.';
    memcpy(text + class_name.len + 1, name.data, name.len);
    memcpy(text + class_name.len + 1 + name.len, descriptor.data, descriptor.len);
    text[len] = 0;
    bool added;
    uint64_t *at = map_at(&t->index, hash_bytes(text, len), t->methods.len, &added);
    if (!at)
        return -ENOMEM;
    if (added &&
        vec_push(&t->methods, ((struct traced_method){.text = text,
                                                      .descriptor = text + len - descriptor.len,
                                                      .has_this = has_this})) < 0) {
        map_remove(&t->index, hash_bytes(text, len));
        return -ENOMEM;
    }
    return (int)*at;
}

/*
 * Returns the type on the JVM's stack for the first character of a descriptor: I J F D A, or V for
 * void.
 */
static char stack_type(char c)
{
    return strchr("ZBCSI", c) ? 'I' : strchr("JFDV", c) ? c : 'A';
}

static int probe(struct edit *e, struct buf *code, const char *name, const char *descriptor)
{
    return code_call_static(e->rewrite, code, TRACE_PROBE, name, descriptor);
}

static const char *with_type(char text[64], const char *before, char type, const char *after)
{
    char one[2] = {type};
    snprintf(text, 64, "%s%s%s", before, type == 'A' ? "Ljava/lang/Object;" : one, after);
    return text;
}

struct argument {
    char type;
    bool is_boolean;
    unsigned local;
};

/* Finds the types and locals of a method's arguments. Returns their number. */
static unsigned arguments(struct str descriptor, bool is_static, struct argument *ret)
{
    unsigned n = 0, local = !is_static, slots;
    for (size_t at = 1, len; n < 255 && (len = class_descriptor_next(descriptor, at, &slots));
         at += len, local += slots)
        ret[n++] =
            (struct argument){stack_type(descriptor.data[at]), descriptor.data[at] == 'Z', local};
    return n;
}

/* Returns the number with which the probe compares, as a long or as the bits of a double. */
static int64_t limit_of(char type, const struct cond_test *t, enum logic_op *op)
{
    double real = type == 'F' ? t->number.single : t->number.real;
    int64_t bits;
    if (type == 'I' || type == 'J')
        return number_limit(&t->number, op);
    memcpy(&bits, &real, sizeof(bits));
    return bits;
}

/* Inserts code that pushes 1, or 0 if a required test on a number fails. */
static int insert_tests(struct edit *e, struct buf *code, const struct argument *args, unsigned n,
                        const struct condition *c)
{
    const struct cond_test *t;
    char descriptor[64];
    int r = code_int(e->rewrite, code, 1);
    for (unsigned i = 0; r == 0 && (t = condition_required(c, i)); i++) {
        if (t->what != COND_ARG || t->length || t->path ||
            (t->kind != COND_NUMBER && t->op != LOGIC_IS) || t->arg > n ||
            args[t->arg - 1].type == 'A' || (t->boolean && !args[t->arg - 1].is_boolean))
            continue;
        char type = args[t->arg - 1].type;
        enum logic_op op = t->op;
        code_load(code, type, args[t->arg - 1].local);
        int64_t limit = limit_of(type, t, &op);
        r = code_int(e->rewrite, code, (int32_t)op);
        if (r == 0)
            r = code_long(e->rewrite, code, limit);
        if (r == 0)
            r = probe(e, code, "test", with_type(descriptor, "(I", type, "IJ)I"));
    }
    return r;
}

/*
 * Inserts code that records the values of a condition's paths; the place in the record is on the
 * stack.
 */
static int insert_paths(struct edit *e, struct buf *code, const struct argument *args, unsigned n,
                        bool has_this, const struct condition *c)
{
    const struct cond_test *t;
    int r = 0;
    for (unsigned i = 0; r == 0 && (t = condition_path(c, i)); i++) {
        bool arg = t->what == COND_ARG && t->arg <= n && args[t->arg - 1].type == 'A';
        if (t->what == COND_STATIC) {
            r = trace_path_static(e, code, t->path, t->id);
        } else if (arg || (t->what == COND_THIS && has_this)) {
            code_load(code, 'A', arg ? args[t->arg - 1].local : 0);
            r = trace_path(e, code, t->path, t->id);
        }
    }
    return r;
}

static int insert_entry(struct edit *e, int number, bool has_this, int call,
                        const struct trace_rules *rules, uint64_t set)
{
    _cleanup_(buf_release) struct buf code = BUF(1 << 14);
    struct argument args[256] = {{0}};
    char text[64];
    struct str descriptor = class_utf8(e->rewrite->class, e->method->descriptor);
    unsigned n = arguments(descriptor, e->method->access & ACC_STATIC, args);
    int r = insert_tests(e, &code, args, n, trace_rules_only(rules, set));
    if (r == 0)
        r = code_int(e->rewrite, &code, number);
    if (r == 0)
        r = probe(e, &code, "enter", "(II)J");
    if (r == 0 && has_this) {
        code_load(&code, 'A', 0);
        r = probe(e, &code, "arg", "(JLjava/lang/Object;)J");
    }
    for (unsigned i = 0; r == 0 && i < n; i++) {
        code_load(&code, args[i].type, args[i].local);
        r = probe(e, &code, "arg", with_type(text, "(J", args[i].type, ")J"));
    }
    for (unsigned i = 1; r == 0 && i < rules->n; i++)
        if (set >> i & 1)
            r = insert_paths(e, &code, args, n, has_this, rules->of[i].condition);
    if (r == 0)
        r = probe(e, &code, "entered", "(J)J");
    code_store(&code, 'J', (unsigned)call);
    return r < 0 ? r : edit_insert(e, EDIT_ENTRY, 0, 0, &code, 7);
}

static int insert_return(struct edit *e, const struct insn *i, int call, char type)
{
    _cleanup_(buf_release) struct buf code = BUF(64);
    char text[64];
    if (type != 'V')
        code_op(&code, type == 'J' || type == 'D' ? OP_DUP2 : OP_DUP);
    code_load(&code, 'J', (unsigned)call);
    int r = probe(e, &code, "exit", type == 'V' ? "(J)V" : with_type(text, "(", type, "J)V"));
    return r < 0 ? r : edit_insert(e, EDIT_BEFORE, i->pc, 0, &code, 4);
}

static int insert_handler(struct edit *e, int call)
{
    _cleanup_(buf_release) struct buf code = BUF(64);
    code_op(&code, OP_DUP);
    code_load(&code, 'J', (unsigned)call);
    int r = probe(e, &code, "thrown", "(Ljava/lang/Throwable;J)V");
    code_op(&code, OP_ATHROW);
    return r < 0 ? r : edit_catch_all(e, &code, 4);
}

int trace_insert(struct edit *e, int number, bool has_this, const struct trace_rules *rules,
                 uint64_t set)
{
    struct str descriptor = class_utf8(e->rewrite->class, e->method->descriptor);
    const char *close = memchr(descriptor.data, ')', descriptor.len);
    if (!close || close + 1 >= descriptor.data + descriptor.len)
        return -EBADMSG;
    int call = edit_local(e, 'J');
    int r = call < 0 ? call : insert_entry(e, number, has_this, call, rules, set);
    for (struct insn i = {0}; r == 0 && edit_next(e, &i);) {
        if (i.op >= OP_IRETURN && i.op <= OP_RETURN)
            r = insert_return(e, &i, call, stack_type(close[1]));
    }
    if (r == 0)
        r = insert_handler(e, call);
    return r < 0 ? r : 1;
}
