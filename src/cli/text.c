/* SPDX-License-Identifier: Apache-2.0 */
#define TEXT_PLAIN_STDIO
#include "cli/text.h"

#include "base/buf.h"
#include "base/parse.h"
#include "base/utf8.h"

#include <inttypes.h>
#include <locale.h>
#include <stdarg.h>
#include <string.h>
#include <wchar.h>

/*
 * The number of combining characters that are shown in one column, because a text may consist of
 * nothing else.
 */
enum { COMBINING_MAX = 8, ESCAPED_MAX = 12 };

/*
 * Returns the width of a character, as wcwidth in a Unicode locale, whatever the locale of the
 * process.
 */
static size_t width_of(uint32_t v)
{
    static locale_t unicode;
    if (v < 0x300)
        return 1;
    if (!unicode)
        unicode = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
    if (!unicode)
        return 1;
    locale_t before = uselocale(unicode);
    int width = wcwidth((wchar_t)v);
    uselocale(before);
    return width < 0 ? 1 : (size_t)width;
}

static size_t escaped_width(uint32_t v)
{
    return v == '\n' || v == '\t' || v == '\r' ? 2 : v < 0x10000 ? 6 : 12;
}

size_t text_put(struct buf *b, const char *s, size_t len, size_t columns)
{
    size_t used = 0, combining = 0;
    for (size_t n; len; s += n, len -= n) {
        uint32_t v;
        n = utf8_next(s, len, &v);
        bool control = utf8_is_control(v);
        size_t width = control ? escaped_width(v) : width_of(v);
        combining = width ? 0 : combining + 1;
        if (combining > COMBINING_MAX)
            continue;
        if (width > columns - used)
            break;
        used += width;
        if (b)
            control ? utf8_put_escaped(b, v) : utf8_put(b, v);
    }
    return used;
}

size_t text_width(const char *s, size_t len)
{
    return text_put(NULL, s, len, SIZE_MAX);
}

int text_wider(int width, const char *s, int most)
{
    return MAX(width, (int)MIN(text_width(s, strlen(s)), (size_t)most));
}

/*
 * Appends as much as fits into one row, followed by the number of columns that are missing. Returns
 * the columns.
 */
static size_t put_limited(struct buf *b, const char *s, size_t len)
{
    size_t used = text_put(b, s, len, TEXT_COLUMNS);
    size_t all = len > TEXT_COLUMNS ? text_width(s, len) : used;
    size_t at = b->len;
    if (all > used)
        buf_printf(b, "... (%zu more)", all - used);
    return used + b->len - at;
}

void print_text(FILE *to, struct str s)
{
    _cleanup_(buf_release) struct buf b = BUF(SIZE_MAX / 2);
    (void)put_limited(&b, s.data, s.len);
    (fwrite)(b.data, 1, b.len, to);
}

void print_column(FILE *to, const char *s, size_t columns, bool right)
{
    _cleanup_(buf_release) struct buf b = BUF(SIZE_MAX / 2);
    size_t len = strlen(s);
    bool cut = text_width(s, len) > columns;
    size_t used = text_put(&b, s, len, cut ? columns - MIN(columns, 3) : columns);
    (fprintf)(to, "%*s%s%s%*s", right ? (int)(columns - used) - 3 * cut : 0, "", buf_str(&b),
              cut ? "..." : "", right ? 0 : (int)(columns - used) - 3 * cut, "");
}

void print_own(FILE *to, const char *s)
{
    (fputs)(s, to);
}

int text_fputs(const char *s, FILE *to)
{
    _cleanup_(buf_release) struct buf b = BUF(SIZE_MAX / 2);
    size_t len = strlen(s), last = len && s[len - 1] == '\n';
    (void)text_put(&b, s, len - last, SIZE_MAX);
    if (last)
        buf_u8(&b, '\n');
    return buf_error(&b) || (fwrite)(b.data, 1, b.len, to) != b.len ? EOF : 0;
}

int text_fputc(int c, FILE *to)
{
    return (fputc)((unsigned char)c == '\n' || ((unsigned char)c >= ' ' && (unsigned char)c < 0x7f)
                       ? c
                       : '?',
                   to);
}

/* The parts of a directive between '%' and its letter. */
struct directive {
    char flags[8];
    char length[3]; /* "", "h", "hh", "l", "ll", "z", "j", "t" */
    char letter;
    int width, precision; /* -1: none */
    bool left, bytes;     /* bytes: the precision was an argument */
};

static const char *number(const char *f, int *ret)
{
    for (*ret = 0; *f >= '0' && *f <= '9'; f++)
        *ret = MIN(*ret * 10 + (*f - '0'), 1 << 20);
    return f;
}

/* The list is passed by address, because arguments are taken from the caller's list. */
static const char *read_directive(const char *f, va_list *args, struct directive *d)
{
    size_t n = strspn(f, "-+ #0'");
    *d = (struct directive){.width = -1, .precision = -1};
    memcpy(d->flags, f, MIN(n, sizeof(d->flags) - 1));
    f += n;
    if (*f == '*') {
        d->width = va_arg(*args, int);
        f++;
    } else if (*f >= '0' && *f <= '9') {
        f = number(f, &d->width);
    }
    d->left = strchr(d->flags, '-') || d->width < -1;
    d->width = d->width < -1 ? -d->width : d->width;
    if (*f == '.' && f[1] == '*') {
        d->precision = va_arg(*args, int);
        d->bytes = d->precision >= 0;
        f += 2;
    } else if (*f == '.') {
        f = number(f + 1, &d->precision);
    }
    n = strspn(f, "hlzjt");
    memcpy(d->length, f, MIN(n, sizeof(d->length) - 1));
    f += n;
    d->letter = *f;
    return *f ? f + 1 : f;
}

static void put_spaces(struct buf *b, size_t n)
{
    if (n)
        buf_printf(b, "%*s", (int)n, "");
}

static void put_text(struct buf *b, const struct directive *d, const char *s)
{
    if (!s)
        s = "(null)";
    size_t len = d->bytes ? strnlen(s, (size_t)d->precision) : strlen(s);
    size_t at = b->len;
    size_t wanted = d->width > 0 ? (size_t)d->width : 0;
    size_t used = d->bytes || d->precision < 0 ? put_limited(b, s, len)
                                               : text_put(b, s, len, (size_t)d->precision);
    if (used >= wanted)
        return;
    put_spaces(b, wanted - used);
    if (!d->left && !buf_error(b)) {
        size_t text = b->len - at - (wanted - used);
        memmove(b->data + at + (wanted - used), b->data + at, text);
        memset(b->data + at, ' ', wanted - used);
    }
}

/* Formats one argument by a directive that is assembled from its parts. */
static void put_number(struct buf *b, const struct directive *d, va_list *args)
{
    char format[48];
    bool wide = strchr("eEfFgGaA", d->letter) == NULL;
    size_t n = (size_t)snprintf(format, sizeof(format), "%%%s", d->flags);
    if (d->width >= 0)
        n += (size_t)snprintf(format + n, sizeof(format) - n, "%d", d->width);
    if (d->precision >= 0)
        n += (size_t)snprintf(format + n, sizeof(format) - n, ".%d", d->precision);
    snprintf(format + n, sizeof(format) - n, "%s%c", d->letter == 'p' || !wide ? "" : "j",
             d->letter);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    if (!wide) {
        buf_printf(b, format, va_arg(*args, double));
    } else if (d->letter == 'p') {
        buf_printf(b, format, va_arg(*args, void *));
    } else if (strchr("di", d->letter)) {
        intmax_t v =
            d->length[0] == 'l' || d->length[0] == 'z' || d->length[0] == 't' || d->length[0] == 'j'
                ? va_arg(*args, long)
                : va_arg(*args, int);
        buf_printf(b, format, v);
    } else {
        uintmax_t v =
            d->length[0] == 'l' || d->length[0] == 'z' || d->length[0] == 't' || d->length[0] == 'j'
                ? va_arg(*args, unsigned long)
                : va_arg(*args, unsigned);
        buf_printf(b, format, v);
    }
#pragma GCC diagnostic pop
}

_Static_assert(sizeof(long) == sizeof(intmax_t) && sizeof(long) == sizeof(size_t) &&
                   sizeof(long) == sizeof(long long),
               "one type stands for l, ll, z, j and t");

static void put_directive(struct buf *b, const struct directive *d, va_list *args)
{
    char c[2] = "";
    switch (d->letter) {
    case '%':
        buf_u8(b, '%');
        break;
    case 's':
        put_text(b, d, va_arg(*args, const char *));
        break;
    case 'c':
        c[0] = (char)va_arg(*args, int);
        put_text(b, d, c);
        break;
    default:
        put_number(b, d, args);
    }
}

int text_fprintf(FILE *to, const char *format, ...)
{
    _cleanup_(buf_release) struct buf b = BUF(SIZE_MAX / 2);
    struct directive d;
    va_list args;
    va_start(args, format);
    for (const char *f = format; *f;) {
        size_t plain = strcspn(f, "%");
        buf_bytes(&b, f, plain);
        f += plain;
        if (!*f)
            break;
        f = read_directive(f + 1, &args, &d);
        put_directive(&b, &d, &args);
    }
    va_end(args);
    if (buf_error(&b))
        return -1;
    (fwrite)(b.data, 1, b.len, to);
    return (int)b.len;
}

void print_left_out(size_t n, size_t limit, const char *nouns)
{
    char more[48];
    if (n <= limit)
        return;
    snprintf(more, sizeof(more), "more %s", nouns);
    text_fprintf(stdout, " ... and %s (--limit)\n", COUNT_TEXT(n - limit, more));
}

void print_shorter(uint64_t n, const char *nouns, uint64_t min_ns)
{
    char limit[24];
    if (n)
        text_fprintf(stdout, " %s shorter than %s %s left out (--min)\n", COUNT_TEXT(n, nouns),
                     format_limit(limit, min_ns), n == 1 ? "is" : "are");
}
