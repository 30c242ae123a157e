/* SPDX-License-Identifier: Apache-2.0 */
#include "options/signature.h"

#include "base/class_name.h"
#include "base/dotted.h"
#include "base/pattern.h"

#include <string.h>

const char *signature_put_type(struct buf *b, const char *p, const char *end)
{
    size_t dimensions = 0;
    for (; p < end && *p == '['; p++)
        dimensions++;
    if (p == end || !*p)
        return NULL;
    const char *primitive = class_name_primitive(*p);
    const char *last = *p == 'L' ? memchr(p, ';', (size_t)(end - p)) : primitive ? p : NULL;
    if (!last)
        return NULL;
    if (primitive)
        buf_string(b, primitive);
    else
        dotted_append(b, p + 1, (size_t)(last - p - 1));
    for (; dimensions; dimensions--)
        buf_string(b, "[]");
    return last + 1;
}

/* Appends the types up to the closing parenthesis. Returns a pointer to it, or NULL. */
static const char *put_types(struct buf *b, const char *p, const char *end)
{
    if (p == end || *p++ != '(')
        return NULL;
    for (bool first = true; p && p < end && *p != ')'; first = false) {
        buf_string(b, first ? "" : ", ");
        p = *p == 'V' ? NULL : signature_put_type(b, p, end);
    }
    return p && p < end ? p : NULL;
}

/* ---- in patterns ---- */

static bool is_descriptor(const char *text, const char *end)
{
    _cleanup_(buf_release) struct buf unused = BUF(1 << 17);
    const char *close = put_types(&unused, text, end);
    /* Classes have slashes in their names, not dots. */
    return close && signature_put_type(&unused, close + 1, end) == end &&
           !memchr(text, '.', (size_t)(end - text));
}

static bool is_any(const char *type, size_t len)
{
    return len == 2 && memcmp(type, "..", 2) == 0;
}

static bool is_type(const char *type, size_t len)
{
    while (len > 2 && memcmp(type + len - 2, "[]", 2) == 0)
        len -= 2;
    for (size_t i = 0; i < len; i++)
        if (strchr(" /;[]()<>", type[i]) ||
            (type[i] == '.' && (i == 0 || i + 1 == len || type[i + 1] == '.')))
            return false;
    return len > 0;
}

/* Returns the length of the parameter at p: up to a comma, or to the end of the list. */
static size_t parameter_length(const char *p, const char *end)
{
    const char *comma = memchr(p, ',', (size_t)(end - p));
    return (size_t)((comma ? comma : end) - p);
}

const char *signature_fault(const char *text, size_t len)
{
    const char *end = text + len, *close = memchr(text, ')', len);
    if (!close)
        return "the parenthesis after the name is not closed";
    bool good = close + 1 == end;
    for (const char *p = text + 1; good && close > text + 1 && p <= close; p++) {
        size_t n = parameter_length(p, close);
        good = is_any(p, n) || is_type(p, n);
        p += n;
    }
    return good || is_descriptor(text, end)
               ? NULL
               : "parameters are types, as in (int, String[], ..), or a descriptor with the "
                 "result, as in (I[Ljava/lang/String;)V";
}

/*
 * Returns a character with '.' for '$': Java separates a nested class from its enclosing class by a
 * dot, and the VM by a dollar sign.
 */
static char joined(char c)
{
    return c == '$' ? '.' : c;
}

/* Compares a type of a pattern with a full name, "java.util.Map$Entry[]", or with its end. */
static bool is_same(const char *type, size_t len, const char *whole, size_t whole_len)
{
    char pattern[512];
    if (memchr(type, '*', len)) {
        const char *last = memrchr(whole, '.', whole_len);
        snprintf(pattern, sizeof(pattern), "%.*s", (int)len, type);
        return len < sizeof(pattern) &&
               (pattern_match_one(pattern, whole, whole_len) ||
                (last && pattern_match_one(pattern, last + 1, strlen(last + 1))));
    }
    size_t skip = whole_len - len;
    bool same = len <= whole_len && (!skip || joined(whole[skip - 1]) == '.');
    for (size_t i = 0; same && i < len; i++)
        same = joined(type[i]) == joined(whole[skip + i]);
    return same;
}

bool signature_is_type(const char *written, size_t len, struct str descriptor)
{
    _cleanup_(buf_release) struct buf type = BUF(1 << 17);
    const char *end = descriptor.data + descriptor.len;
    return len && descriptor.len && signature_put_type(&type, descriptor.data, end) == end &&
           is_same(written, len, buf_str(&type), type.len);
}

/* Compares the parameters from p on with the types of a descriptor from d on. */
static bool parameters_match(const char *p, const char *end, const char *d, const char *d_end)
{
    if (d == d_end || p > end)
        return d < d_end && *d == ')';
    size_t n = parameter_length(p, end);
    const char *next = p + n + 1;
    if (is_any(p, n)) {
        bool match = next > end;
        for (; !match && d && d < d_end; d = signature_put_type(&BUF(0), d, d_end))
            match = parameters_match(next, end, d, d_end);
        return match;
    }
    _cleanup_(buf_release) struct buf type = BUF(1 << 17);
    d = *d == ')' ? NULL : signature_put_type(&type, d, d_end);
    return d && is_same(p, n, buf_str(&type), type.len) && parameters_match(next, end, d, d_end);
}

bool signature_matches(const char *text, size_t len, struct str descriptor)
{
    const char *close = memchr(text, ')', len), *end = text + len;
    if (!close || close + 1 < end)
        return descriptor.len == len && memcmp(descriptor.data, text, len) == 0;
    if (close == text + 1)
        return descriptor.len > 1 && descriptor.data[1] == ')';
    return descriptor.len &&
           parameters_match(text + 1, close, descriptor.data + 1, descriptor.data + descriptor.len);
}

/* ---- for people ---- */

void signature_put_parameters(struct buf *b, const char *descriptor)
{
    _cleanup_(buf_release) struct buf types = BUF(1 << 17);
    bool whole = put_types(&types, descriptor, descriptor + strlen(descriptor)) != NULL;
    if (whole && !buf_error(&types))
        buf_printf(b, "(%s)", buf_str(&types));
    else
        buf_string(b, descriptor);
}

void signature_put(struct buf *b, const char *name, const char *descriptor)
{
    _cleanup_(buf_release) struct buf types = BUF(1 << 17), type = BUF(1 << 17);
    const char *p = descriptor, *end = p + strlen(p);
    bool method = *p == '(';
    if (method)
        p = put_types(&types, p, end);
    if (p)
        p = signature_put_type(&type, p + method, end);
    if (p != end || buf_error(&types) || buf_error(&type))
        buf_printf(b, "%s%s%s", name, *name ? " " : "", descriptor);
    else if (method)
        buf_printf(b, "%s %s(%s)", buf_str(&type), name, buf_str(&types));
    else
        buf_printf(b, *name ? "%s %s" : "%s", buf_str(&type), name);
}
