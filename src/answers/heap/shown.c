/* SPDX-License-Identifier: Apache-2.0 */
#include "answers/heap/shown.h"

#include "answers/heap/fields.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

enum { SHOWN = 80, MAX_WORDS = 64 };

/* java.util.Date: milliseconds since 1970. */
static bool date(const struct heap *h, uint64_t i, struct buf *b)
{
    uint64_t bits;
    char text[64];
    struct tm tm;
    if (!heap_get(h, i, "fastTime", &bits))
        return false;
    int64_t ms = (int64_t)bits, part = ((ms % 1000) + 1000) % 1000;
    time_t seconds = (time_t)((ms - part) / 1000);
    if (!gmtime_r(&seconds, &tm) || !strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &tm))
        return false;
    buf_printf(b, "%s.%03d UTC", text, (int)part);
    return true;
}

/* StringBuilder and StringBuffer: the characters that they hold. */
static bool builder(const struct heap *h, uint64_t i, struct buf *b)
{
    uint64_t array, count, coder = 0;
    struct hprof_item item;
    if (!heap_get(h, i, "count", &count) || !heap_get_object(h, i, "value", &array) ||
        !heap_item(h, array, &item) || item.tag != HPROF_PRIMITIVE_ARRAY_DUMP)
        return false;
    bool wide = heap_get(h, i, "coder", &coder) && coder;
    size_t start = b->len;
    heap_put_characters(&item, count, wide, b, SHOWN);
    heap_quote(b, start, b->len - start >= SHOWN);
    return true;
}

/* BigInteger: sign and magnitude, with the most significant word first. */
static bool big_integer(const struct heap *h, uint64_t i, struct buf *b)
{
    uint64_t signum, array;
    struct hprof_item item;
    uint32_t words[MAX_WORDS];
    char digits[MAX_WORDS * 10 + 2];
    size_t at = sizeof(digits) - 1;
    if (!heap_get(h, i, "signum", &signum) || !heap_get_object(h, i, "mag", &array) ||
        !heap_item(h, array, &item) || item.tag != HPROF_PRIMITIVE_ARRAY_DUMP ||
        item.type != HPROF_INT)
        return false;
    if (item.count > MAX_WORDS) {
        buf_printf(b, "%sabout %" PRIu64 " bits", (int32_t)signum < 0 ? "-" : "",
                   (uint64_t)item.count * 32);
        return true;
    }
    for (uint32_t k = 0; k < item.count; k++)
        words[k] = (uint32_t)hprof_value_at(item.body + 4ull * k, HPROF_INT, 8);
    digits[at] = 0;
    for (bool more = true; more;) {
        uint64_t rest = 0;
        more = false;
        for (uint32_t k = 0; k < item.count; k++) {
            rest = rest << 32 | words[k];
            words[k] = (uint32_t)(rest / 10);
            rest %= 10;
            more = more || words[k];
        }
        digits[--at] = (char)('0' + rest);
    }
    buf_printf(b, "%s%s", (int32_t)signum < 0 ? "-" : "", digits + at);
    return true;
}

static bool part(const struct heap *h, uint64_t i, const char *field, const char *before,
                 struct buf *b)
{
    uint64_t string;
    size_t start = b->len;
    buf_string(b, before);
    if (heap_get_object(h, i, field, &string) && heap_string(h, string, b, SHOWN) &&
        b->len > start + strlen(before))
        return true;
    b->len = start;
    return false;
}

static bool url(const struct heap *h, uint64_t i, struct buf *b)
{
    uint64_t port;
    size_t start = b->len;
    if (!part(h, i, "protocol", "", b))
        return false;
    buf_u8(b, ':');
    if (part(h, i, "host", "//", b) && heap_get(h, i, "port", &port) && (int32_t)port > 0)
        buf_printf(b, ":%d", (int32_t)port);
    part(h, i, "file", "", b);
    heap_quote(b, start, false);
    return true;
}

/*
 * BigDecimal: an unscaled value that fits into a long, or a BigInteger; and the position of the
 * point.
 */
static bool big_decimal(const struct heap *h, uint64_t i, struct buf *b)
{
    uint64_t compact, scale, integer;
    if (!heap_get(h, i, "intCompact", &compact) || !heap_get(h, i, "scale", &scale))
        return false;
    if (compact != UINT64_C(1) << 63)
        buf_printf(b, "%" PRId64, (int64_t)compact);
    else if (!heap_get_object(h, i, "intVal", &integer) || !big_integer(h, integer, b))
        return false;
    if (scale)
        buf_printf(b, "E%d", -(int32_t)scale);
    return true;
}

static const struct {
    const char *class;
    bool (*show)(const struct heap *h, uint64_t i, struct buf *b);
} kinds[] = {{"java.util.Date", date},
             {"java.lang.AbstractStringBuilder", builder},
             {"java.math.BigInteger", big_integer},
             {"java.math.BigDecimal", big_decimal},
             {"java.net.URL", url}};

bool heap_shown(const struct heap *h, uint64_t i, struct buf *b)
{
    const struct heap_dump *d = h->dump;
    size_t start = b->len;
    for (int32_t class = heap_class_of(h, i); class != HEAP_NO_CLASS;
         class = d->classes.data[class].super) {
        if (strncmp(d->classes.data[class].name, "java.", 5) != 0)
            continue;
        for (size_t k = 0; k < ARRAY_SIZE(kinds); k++) {
            if (strcmp(d->classes.data[class].name, kinds[k].class) == 0) {
                bool shown = kinds[k].show(h, i, b);
                if (!shown)
                    b->len = start;
                return shown;
            }
        }
    }
    return false;
}
