/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/capture/trace/impossible.h"
#include "base/dotted.h"

#include "base/file.h"
#include "classfile/classfile.h"

#include <stdio.h>
#include <string.h>

enum { WHAT_MAX = 128 }; /* bytes of the second half of a message */

struct fit {
    const struct traced_method *method;
    const struct trace_classes *classes; /* NULL: not searched */
    struct buf *why;
};

/*
 * Returns the descriptor of argument nth, counted from 1, or an empty one when there are fewer.
 * Sets *ret_count to the number of arguments up to it.
 */
static struct str argument(const char *descriptor, unsigned nth, unsigned *ret_count)
{
    struct str d = {descriptor, strlen(descriptor)};
    unsigned slots;
    *ret_count = 0;
    for (size_t at = 1, len; (len = class_descriptor_next(d, at, &slots)); at += len)
        if (++*ret_count == nth)
            return (struct str){d.data + at, len};
    return (struct str){"", 0};
}

static const char *primitive(char type)
{
    switch (type) {
    case 'Z':
        return "a boolean";
    case 'B':
        return "a byte";
    case 'C':
        return "a char";
    case 'S':
        return "a short";
    case 'I':
        return "an int";
    case 'J':
        return "a long";
    case 'F':
        return "a float";
    case 'D':
        return "a double";
    default:
        return NULL;
    }
}

/* Returns the length of a text in UTF-16 units. */
static size_t utf16_length(const char *text)
{
    size_t n = 0;
    for (; *text; text++)
        n += ((uint8_t)*text & 0xc0) != 0x80 ? 1 + ((uint8_t)*text >= 0xf0) : 0;
    return n;
}

/* Writes what a test examines, such as "arg2 of com.shop.Cart.add". */
static bool explain(struct fit *f, const struct cond_test *t, const char *what)
{
    const char *end = f->method->descriptor;
    if (t->what == COND_ARG)
        buf_printf(f->why, "arg%u of %.*s %s", t->arg, (int)(end - f->method->text),
                   f->method->text, what);
    else
        buf_printf(f->why, "%s of %.*s %s", t->what == COND_THIS ? "this" : "return",
                   (int)(end - f->method->text), f->method->text, what);
    return true;
}

/*
 * Returns whether no value of an integral type passes the comparison. float and double have no
 * limits.
 */
static bool out_of_range(char type, const struct cond_test *t)
{
    static const struct {
        char type;
        int64_t low, high;
    } ranges[] = {{'Z', 0, 1},
                  {'B', INT8_MIN, INT8_MAX},
                  {'C', 0, UINT16_MAX},
                  {'S', INT16_MIN, INT16_MAX},
                  {'I', INT32_MIN, INT32_MAX},
                  {'J', INT64_MIN, INT64_MAX}};

    for (size_t i = 0; i < ARRAY_SIZE(ranges); i++)
        if (ranges[i].type == type)
            return number_excludes(t->op, &t->number, ranges[i].low, ranges[i].high);
    return false;
}

/* Returns the primitive type that a class wraps, such as byte for Byte, or 0 if it wraps none. */
static char boxed(struct str type)
{
    static const struct {
        const char *class;
        char type;
    } boxes[] = {{"Ljava/lang/Boolean;", 'Z'},   {"Ljava/lang/Byte;", 'B'},
                 {"Ljava/lang/Character;", 'C'}, {"Ljava/lang/Short;", 'S'},
                 {"Ljava/lang/Integer;", 'I'},   {"Ljava/lang/Long;", 'J'},
                 {"Ljava/lang/Float;", 'F'},     {"Ljava/lang/Double;", 'D'}};

    for (size_t i = 0; i < ARRAY_SIZE(boxes); i++)
        if (str_is(type, boxes[i].class))
            return boxes[i].type;
    return 0;
}

/*
 * Returns whether no value of a primitive type, or of its wrapper class, passes the test. A value
 * of a wrapper class can be null.
 */
static bool impossible_number(const struct cond_test *t, char type, bool nullable,
                              char what[WHAT_MAX])
{
    const char *number = primitive(type);
    if (t->length)
        snprintf(what, WHAT_MAX, "is %s, which has no length", number);
    else if (t->op == LOGIC_IS || (nullable && t->kind == COND_NULL))
        return false;
    else if (type == 'C' && t->kind == COND_TEXT && utf16_length(t->text) == 1)
        return false;
    else if (type == 'C' && t->op == LOGIC_EQ && t->kind == COND_TEXT)
        snprintf(what, WHAT_MAX, "is a char and never a text of another length");
    else if (t->op == LOGIC_EQ && t->kind != COND_NUMBER)
        snprintf(what, WHAT_MAX, "is %s and never %s", number,
                 t->kind == COND_NULL ? "null" : "a text");
    else if (t->op != LOGIC_NE && t->boolean && type != 'Z')
        snprintf(what, WHAT_MAX, "is %s and never true or false", number);
    else if (t->kind == COND_NUMBER && out_of_range(type, t))
        snprintf(what, WHAT_MAX, "is %s, none of which passes the comparison with %s", number,
                 t->text);
    else
        return false;
    return true;
}

/* Returns whether a text has the form in which classes are shown: java.lang.String.class. */
static bool is_class_text(const char *text)
{
    return file_name_ends_in(text, ".class");
}

/*
 * Returns whether no value of a type passes the test, which must not refer to its fields. The
 * object may be of a subclass.
 */
static bool impossible_value(const struct cond_test *t, struct str type, char what[WHAT_MAX])
{
    char held = boxed(type);
    if (held || primitive(type.data[0]))
        return impossible_number(t, held ? held : type.data[0], held, what);
    bool text = str_is(type, "Ljava/lang/String;"), array = type.data[0] == '[';
    if ((text || array) && !t->length && t->op != LOGIC_IS && t->op != LOGIC_NE &&
        t->kind == COND_NUMBER)
        snprintf(what, WHAT_MAX, "is %s and never a number", text ? "a text" : "an array");
    else if (array && !t->length && t->op == LOGIC_EQ && t->kind == COND_TEXT)
        snprintf(what, WHAT_MAX, "is an array and never a text");
    else if (str_is(type, "Ljava/lang/Class;") && !t->length && t->op == LOGIC_EQ &&
             t->kind == COND_TEXT && !is_class_text(t->text))
        snprintf(what, WHAT_MAX,
                 "is a class and compared as it is shown, as in 'java.lang.String.class'");
    else
        return false;
    return true;
}

bool trace_is_impossible_of_field(const struct cond_test *t, const char *name, struct str type,
                                  struct buf *why)
{
    char what[WHAT_MAX];
    bool is_impossible = impossible_value(t, type, what);
    if (is_impossible)
        buf_printf(why, "the field %s %s", name, what);
    return is_impossible;
}

static bool no_field(const struct fit *f, struct str type, const struct cond_test *t)
{
    return f->classes && f->classes->no_field(f->classes->context, type, t, f->why);
}

static bool no_constant(struct fit *f, const struct cond_test *t, struct str type)
{
    _cleanup_(buf_release) struct buf what = BUF(8192);
    return f->classes && f->classes->no_constant(f->classes->context, type, t, &what) &&
           explain(f, t, buf_str(&what));
}

/* Returns whether no value of a declared type passes the test. */
static bool impossible_type(struct fit *f, const struct cond_test *t, struct str type)
{
    const char *number = primitive(type.data[0]);
    char what[WHAT_MAX];
    if (t->path && type.data[0] == 'L')
        return no_field(f, type, t);
    if (t->path)
        snprintf(what, sizeof(what), "is %s, which has no fields", number ? number : "an array");
    else if (!impossible_value(t, type, what))
        return no_constant(f, t, type);
    return explain(f, t, what);
}

static bool impossible_this(struct fit *f, const struct cond_test *t)
{
    if (!t->path && t->op == LOGIC_EQ && t->kind == COND_NULL)
        return explain(f, t, "is never null");
    const char *end = f->method->descriptor;
    while (end > f->method->text && *end != '.')
        end--;
    _cleanup_(buf_release) struct buf type = BUF(1 << 17);
    buf_printf(&type, "L%.*s;", (int)(end - f->method->text), f->method->text);
    if (!buf_error(&type))
        dotted_undo((char *)type.data);
    return !buf_error(&type) &&
           impossible_type(f, t, (struct str){buf_str(&type), strlen(buf_str(&type))});
}

static bool is_impossible(void *context, const struct cond_test *t)
{
    struct fit *f = context;
    const char *descriptor = f->method->descriptor, *back = strchr(descriptor, ')');
    unsigned count = 0;
    struct str type;
    switch (t->what) {
    case COND_ARG:
        type = argument(descriptor, t->arg, &count);
        if (type.len)
            return impossible_type(f, t, type);
        buf_printf(f->why, "%.*s has %u argument%s and no arg%u",
                   (int)(descriptor - f->method->text), f->method->text, count,
                   count == 1 ? "" : "s", t->arg);
        return true;
    case COND_THIS:
        return f->method->has_this
                   ? impossible_this(f, t)
                   : explain(f, t, "is not there: the method is static, or a constructor");
    case COND_STATIC:
        return no_field(f, (struct str){"", 0}, t);
    case COND_RETURN:
        if (back && back[1] == 'V')
            return explain(f, t, "is not there: the method returns nothing");
        return back && impossible_type(f, t, (struct str){back + 1, strlen(back + 1)});
    default:
        return false;
    }
}

/* Returns whether a test can never pass. Only the first such test is explained. */
static bool test_is_unsatisfiable(void *context, const struct cond_test *t)
{
    struct fit *f = context;
    size_t before = f->why->len;
    bool r = is_impossible(context, t);
    if (before)
        f->why->len = before;
    return r;
}

bool trace_is_impossible(const struct condition *c, const struct traced_method *m,
                         const struct trace_classes *classes, struct buf *why)
{
    struct fit f = {m, classes, why};
    return condition_is_unsatisfiable(c, test_is_unsatisfiable, &f);
}
