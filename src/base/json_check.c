/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json_check.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { DEPTH_MAX = 64 };

struct text {
    const char *at, *end;
    unsigned depth;
};

static bool value(struct text *t);

static bool take(struct text *t, char c)
{
    bool is = t->at < t->end && *t->at == c;
    t->at += is;
    return is;
}

static void skip_space(struct text *t)
{
    while (t->at < t->end && *t->at && strchr(" \t\r\n", *t->at))
        t->at++;
}

static bool take_word(struct text *t, const char *word)
{
    size_t n = strlen(word);
    bool is = (size_t)(t->end - t->at) >= n && memcmp(t->at, word, n) == 0;
    t->at += is ? n : 0;
    return is;
}

/* Accepts one non-ASCII character of well-formed UTF-8. */
static bool wide_character(struct text *t)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    uint8_t first = (uint8_t)*t->at;
    unsigned n = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
    uint32_t c = first & (0x7fu >> n);
    if (first < 0xc0 || first > 0xf4 || t->end - t->at < n)
        return false;
    for (unsigned i = 1; i < n; i++) {
        uint8_t next = (uint8_t)t->at[i];
        if ((next & 0xc0) != 0x80)
            return false;
        c = c << 6 | (next & 0x3fu);
    }
    t->at += n;
    return c >= least[n] && c <= 0x10ffff && (c < 0xd800 || c > 0xdfff);
}

static bool escape(struct text *t)
{
    if (t->at == t->end || !*t->at)
        return false;
    char c = *t->at++;
    if (c != 'u')
        return strchr("\"\\/bfnrt", c) != NULL;
    for (int i = 0; i < 4; i++, t->at++)
        if (t->at == t->end || !*t->at || !strchr("0123456789abcdefABCDEF", *t->at))
            return false;
    return true;
}

static bool string(struct text *t)
{
    if (!take(t, '"'))
        return false;
    while (t->at < t->end && *t->at != '"') {
        uint8_t c = (uint8_t)*t->at;
        if (c < 0x20 || (c >= 0x80 && !wide_character(t)))
            return false;
        if (c < 0x80)
            t->at++;
        if (c == '\\' && !escape(t))
            return false;
    }
    return take(t, '"');
}

static bool digits(struct text *t)
{
    const char *from = t->at;
    while (t->at < t->end && *t->at >= '0' && *t->at <= '9')
        t->at++;
    return t->at > from;
}

static bool number(struct text *t)
{
    take(t, '-');
    if (!take(t, '0') && !digits(t))
        return false;
    if (take(t, '.') && !digits(t))
        return false;
    if (!take(t, 'e') && !take(t, 'E'))
        return true;
    if (!take(t, '+'))
        take(t, '-');
    return digits(t);
}

/* Accepts the members of an array or object, including its closing bracket. */
static bool members(struct text *t, bool object)
{
    char end = object ? '}' : ']';
    skip_space(t);
    if (take(t, end))
        return true;
    do {
        skip_space(t);
        if (object) {
            if (!string(t))
                return false;
            skip_space(t);
            if (!take(t, ':'))
                return false;
            skip_space(t);
        }
        if (!value(t))
            return false;
        skip_space(t);
    } while (take(t, ','));
    return take(t, end);
}

static bool value(struct text *t)
{
    if (t->at == t->end)
        return false;
    bool object = *t->at == '{';
    if (object || *t->at == '[') {
        t->at++;
        if (t->depth++ == DEPTH_MAX)
            return false;
        bool is = members(t, object);
        t->depth--;
        return is;
    }
    if (*t->at == '"')
        return string(t);
    return take_word(t, "null") || take_word(t, "true") || take_word(t, "false") || number(t);
}

size_t json_value_len(const char *s, size_t len)
{
    struct text t = {.at = s, .end = s + len};
    return value(&t) ? (size_t)(t.at - s) : 0;
}
