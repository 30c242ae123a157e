/* SPDX-License-Identifier: Apache-2.0 */
#include "base/parse.h"

#include "base/clock.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

struct unit {
    const char *name;
    double factor;
};

static int parse_with_units(const char *text, const struct unit *units, size_t n, double plain,
                            double most, uint64_t *ret)
{
    if (!text || !((*text >= '0' && *text <= '9') || *text == '.'))
        return -EINVAL;
    char *rest;
    errno = 0;
    double v = strtod(text, &rest);
    if (rest == text || rest[-1] == 'x' || rest[-1] == 'X' || text[1] == 'x' || text[1] == 'X')
        return -EINVAL;
    if (!*rest && plain == 1 && v < 0x1p53 && v != (double)(uint64_t)v)
        return -EINVAL; /* a part of the smallest unit */
    double factor = *rest ? 0 : plain;
    for (size_t i = 0; *rest && i < n; i++) {
        if (strcasecmp(rest, units[i].name) == 0)
            factor = units[i].factor;
    }
    if (factor == 0)
        return -EINVAL;
    v *= factor;
    if (errno == ERANGE || !(v >= 0 && v <= most))
        return -ERANGE;
    *ret = (uint64_t)(v + 0.5);
    return 0;
}

int parse_duration(const char *text, uint64_t unit_ns, uint64_t *ret_ns)
{
    static const struct unit units[] = {
        {"ns", 1},   {"us", 1e3},   {"ms", 1e6},   {"s", 1e9},
        {"m", 6e10}, {"min", 6e10}, {"h", 3.6e12}, {"d", 8.64e13},
    };
    return parse_with_units(text, units, ARRAY_SIZE(units), (double)unit_ns,
                            (double)PARSE_TIME_MAX_NS, ret_ns);
}

int parse_size(const char *text, uint64_t *ret_bytes)
{
    static const struct unit units[] = {
        {"b", 1},        {"k", 0x1p10},   {"kb", 0x1p10},  {"kib", 0x1p10}, {"m", 0x1p20},
        {"mb", 0x1p20},  {"mib", 0x1p20}, {"g", 0x1p30},   {"gb", 0x1p30},  {"gib", 0x1p30},
        {"t", 0x1p40},   {"tb", 0x1p40},  {"tib", 0x1p40}, {"p", 0x1p50},   {"pb", 0x1p50},
        {"pib", 0x1p50}, {"e", 0x1p60},   {"eb", 0x1p60},  {"eib", 0x1p60},
    };
    return parse_with_units(text, units, ARRAY_SIZE(units), 1, (double)PARSE_SIZE_MAX, ret_bytes);
}

int parse_u64(const char *text, uint64_t min, uint64_t max, uint64_t *ret)
{
    if (!text || *text < '0' || *text > '9')
        return -EINVAL;
    char *rest;
    errno = 0;
    int base = text[0] == '0' && (text[1] == 'x' || text[1] == 'X') ? 16 : 10;
    uint64_t v = strtoull(text, &rest, base);
    if (*rest || rest == text)
        return -EINVAL;
    if (errno == ERANGE || v < min || v > max)
        return -ERANGE;
    *ret = v;
    return 0;
}

char *format_limit(char text[24], uint64_t ns)
{
    static const struct {
        const char *text;
        uint64_t ns;
    } units[] = {{"d", 86400 * NS_PER_SECOND}, {"h", 3600 * NS_PER_SECOND},
                 {"m", 60 * NS_PER_SECOND},    {"s", NS_PER_SECOND},
                 {"ms", NS_PER_SECOND / 1000}, {"us", 1000}};

    enum { SECONDS = 3 }; /* the unit of 0 */

    size_t i = ns ? 0 : SECONDS;
    while (i < ARRAY_SIZE(units) && ns % units[i].ns)
        i++;
    bool whole = i < ARRAY_SIZE(units);
    snprintf(text, 24, "%" PRIu64 "%s", whole ? ns / units[i].ns : ns,
             whole ? units[i].text : "ns");
    return text;
}

/* Formats a value with three digits, also after rounding up: 9.996 becomes 10.0. */
static char *format_scaled(char text[24], double v, const char *const *units, size_t n, double step)
{
    size_t i = 0;
    for (; v >= step - (i ? 0.5 : 0) && i + 1 < n; i++)
        v /= step;
    snprintf(text, 24,
             i == 0      ? "%.0f %s"
             : v < 9.995 ? "%.2f %s"
             : v < 99.95 ? "%.1f %s"
                         : "%.0f %s",
             v, units[i]);
    return text;
}

char *format_duration(char text[24], uint64_t ns)
{
    static const char *const units[] = {"ns", "us", "ms", "s"};
    return format_scaled(text, (double)ns, units, ARRAY_SIZE(units), 1000);
}

char *format_size(char text[24], uint64_t bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    return format_scaled(text, (double)bytes, units, ARRAY_SIZE(units), 1024);
}

char *format_numbers(char text[48], uint64_t least, uint64_t most, bool exceeds)
{
    if (most < INT64_MAX)
        snprintf(text, 48, "%" PRIu64 " to %" PRIu64, least, most);
    else if (exceeds)
        snprintf(text, 48, "less than 2^%d", most > INT64_MAX ? 64 : 63);
    else
        snprintf(text, 48, "%" PRIu64 " or more", least);
    return text;
}

/* Returns the length of a noun without its plural ending: 5 for "classes". */
static size_t singular(const char *noun, size_t len)
{
    size_t ending = len > 4 && memcmp(noun + len - 4, "sses", 4) == 0 ? 2
                    : len > 1 && noun[len - 1] == 's'                 ? 1
                                                                      : 0;
    return len - ending;
}

char *format_count(char text[64], uint64_t n, const char *nouns)
{
    const char *of = strstr(nouns, " of "), *joined = strstr(nouns, " and ");
    size_t len = of ? (size_t)(of - nouns) : strlen(nouns);
    size_t first = joined && joined < nouns + len ? (size_t)(joined - nouns) : len;
    if (n != 1)
        snprintf(text, 64, "%" PRIu64 " %s", n, nouns);
    else if (first < len)
        snprintf(text, 64, "1 %.*s or %.*s%s", (int)singular(nouns, first), nouns,
                 (int)singular(joined + 5, len - first - 5), joined + 5, nouns + len);
    else
        snprintf(text, 64, "1 %.*s%s", (int)singular(nouns, len), nouns, nouns + len);
    return text;
}

int expand_file_name(const char *pattern, long pid, char *ret, size_t size)
{
    size_t n = 0;
    for (const char *p = pattern; *p; p++) {
        char piece[32] = {*p};
        if (*p == '%') {
            p++;
            if (*p == 'p') {
                snprintf(piece, sizeof(piece), "%ld", pid);
            } else if (*p == 't') {
                time_t now = time(NULL);
                struct tm tm;
                strftime(piece, sizeof(piece), "%Y%m%d-%H%M%S", localtime_r(&now, &tm));
            } else if (*p != '%') {
                return -EINVAL;
            }
        }
        size_t len = strlen(piece);
        if (n + len + 1 > size)
            return -ENAMETOOLONG;
        memcpy(ret + n, piece, len);
        n += len;
    }
    if (n + 1 > size)
        return -ENAMETOOLONG;
    ret[n] = 0;
    return 0;
}
