/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/capture/requests/sql.h"

#include <stdbool.h>
#include <string.h>

#define CUT_OFF "..."

struct folded {
    char *text;
    size_t n, max;
    bool blank; /* white space comes before the next character */
};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_word(char c)
{
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$';
}

static void put(struct folded *f, char c)
{
    bool blank = f->blank && f->n;
    f->blank = false;
    if (blank && f->n < f->max)
        f->text[f->n++] = ' ';
    if (f->n < f->max)
        f->text[f->n++] = c > ' ' && c < 0x7f ? c : '?';
    else
        f->n = f->max + 1; /* the text is truncated */
}

static void put_value(struct folded *f)
{
    size_t at = f->n;
    /* "?, ?" becomes a single "?" */
    while (at && at <= f->max && (f->text[at - 1] == ' ' || f->text[at - 1] == ','))
        at--;
    bool list = at && at < f->n && f->n <= f->max && f->text[at - 1] == '?' &&
                memchr(f->text + at, ',', f->n - at);
    if (list)
        f->n = at;
    else
        put(f, '?');
    f->blank = false;
}

/* Returns the end of the quoted string or comment that begins at p. */
static const char *behind(const char *p, const char *end)
{
    const char *at = strstr(p, end);
    return at ? at + strlen(end) : p + strlen(p);
}

static const char *after_string(const char *p)
{
    for (p++; *p; p++) {
        if (*p == '\\' && p[1])
            p++;
        else if (*p == '\'' && p[1] == '\'')
            p++;
        else if (*p == '\'')
            return p + 1;
    }
    return p;
}

static const char *after_number(const char *p)
{
    while (is_word(*p) || *p == '.' ||
           ((*p == '+' || *p == '-') && (p[-1] == 'e' || p[-1] == 'E') && is_digit(p[1])))
        p++;
    return p;
}

void sql_fold(const char *sql, char *ret, size_t size)
{
    struct folded f = {.text = ret, .max = size - sizeof(CUT_OFF)};
    bool word = false; /* the last character belongs to a name */
    for (const char *p = sql; *p && f.n <= f.max;) {
        bool in_word = word;
        word = false;
        if ((unsigned char)*p <= ' ') {
            f.blank = true;
            p++;
        } else if (strncmp(p, "--", 2) == 0) {
            f.blank = true;
            p += strcspn(p, "\n");
        } else if (strncmp(p, "/*", 2) == 0) {
            f.blank = true;
            p = behind(p + 2, "*/");
        } else if (strncmp(p, "$$", 2) == 0 && !in_word) {
            put_value(&f);
            p = behind(p + 2, "$$");
        } else if (*p == '\'') {
            put_value(&f);
            p = after_string(p);
        } else if (is_digit(*p) && !in_word) {
            put_value(&f);
            p = after_number(p + 1);
        } else if (*p == '?') {
            put_value(&f);
            p++;
        } else {
            word = is_word(*p);
            put(&f, *p++);
        }
    }
    if (f.n > f.max) {
        memcpy(ret + f.max, CUT_OFF, strlen(CUT_OFF));
        f.n = f.max + strlen(CUT_OFF);
    }
    ret[f.n] = 0;
}
