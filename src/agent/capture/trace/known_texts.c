/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/capture/trace/known_texts.h"
#include "agent/capture/trace/ring.h"

#include "agent/vm/vm.h"
#include "base/strpool.h"
#include "base/utf8.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { INTS_MAX = 32, DIGITS_MAX = 320 };

static bool is_null(const struct value *v)
{
    return v->type == 'L' && v->class == 0;
}

/* ---- numbers ---- */

void known_put_optional(struct buf *b, const struct value *v)
{
    struct value parts[SHOWN_FIELDS_MAX];
    if (value_parts(v, parts) < 2)
        return;
    if (!parts[0].number) {
        buf_string(b, ".empty");
        return;
    }
    buf_u8(b, '[');
    value_text(b, &parts[1]);
    buf_u8(b, ']');
}

/* Writes the decimal digits of a number of n ints, the most significant first. Clears the ints. */
static void decimal(uint32_t *mag, unsigned n, char digits[DIGITS_MAX])
{
    char *p = digits + DIGITS_MAX - 1;
    *p = 0;
    for (unsigned from = 0; from < n && p > digits + 9;) {
        uint64_t rest = 0;
        for (unsigned i = from; i < n; i++) {
            rest = rest << 32 | mag[i];
            mag[i] = (uint32_t)(rest / 1000000000);
            rest %= 1000000000;
        }
        for (int k = 0; k < 9; k++, rest /= 10)
            *--p = (char)('0' + rest % 10);
        while (from < n && mag[from] == 0)
            from++;
    }
    while (*p == '0' && p[1])
        p++;
    if (!*p)
        *--p = '0';
    memmove(digits, p, strlen(p) + 1);
}

/* Writes the digits of a BigInteger. Returns false when not all of them were read. */
static bool digits_of(const struct value *v, bool *ret_negative, char digits[DIGITS_MAX],
                      int64_t *ret_bits)
{
    struct value parts[SHOWN_FIELDS_MAX];
    uint32_t mag[INTS_MAX];
    if (value_parts(v, parts) < 2)
        return false;
    unsigned n = value_ints(&parts[1], mag, INTS_MAX);
    *ret_negative = parts[0].number < 0;
    *ret_bits = n && mag[0] ? 32 * parts[1].length - __builtin_clz(mag[0]) : 0;
    if (n < parts[1].length)
        return false;
    decimal(mag, n, digits);
    return true;
}

void known_put_big_integer(struct buf *b, const struct value *v)
{
    char digits[DIGITS_MAX];
    bool negative = false;
    int64_t bits = 0;
    bool all = digits_of(v, &negative, digits, &bits);
    buf_string(b, negative ? "-" : "");
    if (all)
        buf_string(b, digits);
    else
        buf_printf(b, "~2^%" PRId64, bits - 1);
}

/* Writes a number as BigDecimal.toString() does, with an exponent if there would be many zeros. */
static void put_scaled(struct buf *b, const char *digits, int64_t scale)
{
    int64_t n = (int64_t)strlen(digits), adjusted = n - 1 - scale;
    if (scale == 0) {
        buf_string(b, digits);
    } else if (scale > 0 && adjusted >= -6) {
        int64_t whole = n - scale;
        buf_printf(b, "%.*s", (int)MAX(whole, 0), digits);
        buf_string(b, whole <= 0 ? "0." : ".");
        for (; whole < 0; whole++)
            buf_u8(b, '0');
        buf_string(b, digits + MAX(n - scale, 0));
    } else {
        buf_u8(b, (uint8_t)digits[0]);
        buf_printf(b, "%s%s", n > 1 ? "." : "", digits + 1);
        if (adjusted)
            buf_printf(b, "E%+" PRId64, adjusted);
    }
}

void known_put_big_decimal(struct buf *b, const struct value *v)
{
    struct value parts[SHOWN_FIELDS_MAX];
    char digits[DIGITS_MAX];
    int64_t bits = 0;
    bool negative = false;
    if (value_parts(v, parts) < 3)
        return;
    if (parts[2].number != INT64_MIN) {
        negative = parts[2].number < 0;
        snprintf(digits, sizeof(digits), "%" PRId64, parts[2].number);
        memmove(digits, digits + negative, sizeof(digits) - 1);
    } else if (!digits_of(&parts[0], &negative, digits, &bits)) {
        value_text(b, &parts[0]);
        buf_printf(b, "E%" PRId64, -parts[1].number);
        return;
    }
    buf_string(b, negative ? "-" : "");
    put_scaled(b, digits, parts[1].number);
}

void known_put_uuid(struct buf *b, const struct value *v)
{
    struct value parts[SHOWN_FIELDS_MAX];
    if (value_parts(v, parts) < 2)
        return;
    uint64_t high = (uint64_t)parts[0].number, low = (uint64_t)parts[1].number;
    buf_printf(b, "%08" PRIx64 "-%04" PRIx64 "-%04" PRIx64 "-%04" PRIx64 "-%012" PRIx64, high >> 32,
               high >> 16 & 0xffff, high & 0xffff, low >> 48, low & UINT64_C(0xffffffffffff));
}

/* ---- times ---- */

static void put_year_of(struct buf *b, int64_t year)
{
    buf_printf(b, "%s%s%04" PRId64, year < 0 ? "-" : "", year > 9999 ? "+" : "",
               year < 0 ? -year : year);
}

/* Writes ".5": as few groups of `group` digits as hold all nonzero digits of the nanoseconds. */
static void put_fraction(struct buf *b, int64_t nanos, int group)
{
    char text[16];
    int n = snprintf(text, sizeof(text), "%09" PRId64, nanos);
    while (n > 0 && strspn(text + n - group, "0") >= (size_t)group) {
        n -= group;
        text[n] = 0;
    }
    if (n > 0)
        buf_printf(b, ".%s", text);
}

void known_put_date(struct buf *b, const struct value *v)
{
    struct value parts[SHOWN_FIELDS_MAX];
    unsigned n = value_parts(v, parts);
    for (unsigned i = 0; i < n; i++) {
        if (i == 0)
            put_year_of(b, parts[0].number);
        else
            buf_printf(b, "-%02" PRId64, parts[i].number);
    }
}

void known_put_month_day(struct buf *b, const struct value *v)
{
    struct value parts[SHOWN_FIELDS_MAX];
    if (value_parts(v, parts) >= 2)
        buf_printf(b, "--%02" PRId64 "-%02" PRId64, parts[0].number, parts[1].number);
}

void known_put_time(struct buf *b, const struct value *v)
{
    struct value parts[SHOWN_FIELDS_MAX];
    if (value_parts(v, parts) < 4)
        return;
    buf_printf(b, "%02" PRId64 ":%02" PRId64, parts[0].number, parts[1].number);
    if (parts[2].number || parts[3].number)
        buf_printf(b, ":%02" PRId64, parts[2].number);
    if (parts[3].number)
        put_fraction(b, parts[3].number, 3);
}

void known_put_date_time(struct buf *b, const struct value *v)
{
    struct value parts[SHOWN_FIELDS_MAX];
    if (value_parts(v, parts) < 2)
        return;
    value_text(b, &parts[0]);
    buf_u8(b, 'T');
    value_text(b, &parts[1]);
}

/* Writes seconds since 1970 in UTC in the Gregorian calendar: 400 years have 146,097 days. */
static void put_utc(struct buf *b, int64_t seconds, int64_t nanos)
{
    int64_t days = seconds / 86400, second = seconds % 86400;
    if (second < 0) {
        second += 86400;
        days--;
    }
    /* Days since 1 March of the year 0: the leap day is then the last day of its year. */
    days += 719468;
    int64_t era = (days < 0 ? days - 146096 : days) / 146097;
    int64_t day = days - era * 146097;
    int64_t year = (day - day / 1460 + day / 36524 - day / 146096) / 365;
    day -= 365 * year + year / 4 - year / 100;
    int64_t month = (5 * day + 2) / 153;
    day -= (153 * month + 2) / 5;
    month = month < 10 ? month + 3 : month - 9;
    put_year_of(b, era * 400 + year + (month <= 2));
    buf_printf(b, "-%02" PRId64 "-%02" PRId64 "T%02" PRId64 ":%02" PRId64 ":%02" PRId64, month,
               day + 1, second / 3600, second / 60 % 60, second % 60);
    if (nanos)
        put_fraction(b, nanos, 3);
    buf_u8(b, 'Z');
}

void known_put_instant(struct buf *b, const struct value *v)
{
    struct value parts[SHOWN_FIELDS_MAX];
    if (value_parts(v, parts) >= 2)
        put_utc(b, parts[0].number, parts[1].number);
}

void known_put_java_date(struct buf *b, const struct value *v)
{
    struct value parts[SHOWN_FIELDS_MAX];
    if (value_parts(v, parts) < 1)
        return;
    int64_t ms = parts[0].number, rest = ms % 1000;
    put_utc(b, ms / 1000 - (rest < 0), (rest < 0 ? rest + 1000 : rest) * 1000000);
}

void known_put_calendar(struct buf *b, const struct value *v)
{
    struct value parts[SHOWN_FIELDS_MAX];
    if (value_parts(v, parts) >= 2 && !parts[1].number)
        buf_string(b, "not computed");
    else
        known_put_java_date(b, v);
}

/* Writes a Timestamp, whose milliseconds are those of the whole second. */
void known_put_timestamp(struct buf *b, const struct value *v)
{
    struct value parts[SHOWN_FIELDS_MAX];
    if (value_parts(v, parts) < 2)
        return;
    int64_t ms = parts[0].number;
    put_utc(b, ms / 1000 - (ms % 1000 < 0), parts[1].number);
}

void known_put_duration(struct buf *b, const struct value *v)
{
    struct value parts[SHOWN_FIELDS_MAX];
    if (value_parts(v, parts) < 2)
        return;
    int64_t seconds = parts[0].number, nanos = parts[1].number;
    bool negative = seconds < 0 && nanos > 0;
    int64_t whole = seconds + negative;
    buf_string(b, "PT");
    if (whole / 3600)
        buf_printf(b, "%" PRId64 "H", whole / 3600);
    if (whole / 60 % 60)
        buf_printf(b, "%" PRId64 "M", whole / 60 % 60);
    if (whole % 60 == 0 && nanos == 0 && seconds)
        return;
    buf_printf(b, "%s%" PRId64, negative && whole % 60 == 0 ? "-" : "", whole % 60);
    if (nanos)
        put_fraction(b, negative ? 1000000000 - nanos : nanos, 1);
    buf_u8(b, 'S');
}

void known_put_period(struct buf *b, const struct value *v)
{
    struct value parts[SHOWN_FIELDS_MAX];
    unsigned n = value_parts(v, parts);
    bool any = false;
    buf_u8(b, 'P');
    for (unsigned i = 0; i < n && i < 3; i++) {
        if (parts[i].number)
            buf_printf(b, "%" PRId64 "%c", parts[i].number, "YMD"[i]);
        any |= parts[i].number != 0;
    }
    buf_string(b, any ? "" : "0D");
}

void known_put_zoned(struct buf *b, const struct value *v)
{
    struct value parts[SHOWN_FIELDS_MAX];
    if (value_parts(v, parts) < 3)
        return;
    value_text(b, &parts[0]);
    value_text(b, &parts[1]);
    if (parts[1].hash == parts[2].hash && parts[1].class == parts[2].class)
        return;
    buf_u8(b, '[');
    value_text(b, &parts[2]);
    buf_u8(b, ']');
}

/* ---- texts ---- */

void known_put_joined(struct buf *b, const struct value *v)
{
    struct value parts[SHOWN_FIELDS_MAX];
    unsigned n = value_parts(v, parts);
    for (unsigned i = 0; i < n; i++)
        if (!is_null(&parts[i]))
            value_text(b, &parts[i]);
}

/* Writes language, region, variant and script, followed by extensions if there are any. */
static void put_locale(struct buf *b, const struct value *base, const struct value *extensions)
{
    struct value p[SHOWN_FIELDS_MAX], id[SHOWN_FIELDS_MAX];
    if (value_parts(base, p) != 4)
        return;
    bool language = p[0].n_chars, region = p[1].n_chars, variant = p[2].n_chars,
         script = p[3].n_chars;
    bool extended = extensions && value_parts(extensions, id) == 1 && id[0].n_chars;
    value_text(b, &p[0]);
    if (region || (language && (variant || script || extended))) {
        buf_string(b, "_");
        if (region)
            value_text(b, &p[1]);
    }
    if (variant && (language || region)) {
        buf_string(b, "_");
        value_text(b, &p[2]);
    }
    if (script && (language || region)) {
        buf_string(b, "_#");
        value_text(b, &p[3]);
    }
    if (extended && (language || region)) {
        buf_string(b, script ? "_" : "_#");
        value_text(b, &id[0]);
    }
}

void known_put_base_locale(struct buf *b, const struct value *v)
{
    put_locale(b, v, NULL);
}

/* Writes a value as Locale.toString() does. */
void known_put_locale(struct buf *b, const struct value *v)
{
    struct value p[SHOWN_FIELDS_MAX];
    if (value_parts(v, p) == 2)
        put_locale(b, &p[0], is_null(&p[1]) ? NULL : &p[1]);
}

/* Writes "name/1.2.3.4" as InetAddress.toString() does, without the name if it is not known. */
void known_put_inet4(struct buf *b, const struct value *v)
{
    struct value p[SHOWN_FIELDS_MAX];
    if (value_parts(v, p) != 2)
        return;
    uint32_t a = (uint32_t)p[1].number;
    if (!is_null(&p[0]))
        value_text(b, &p[0]);
    buf_printf(b, "/%u.%u.%u.%u", a >> 24, a >> 16 & 255, a >> 8 & 255, a & 255);
}

/* Writes eight groups and an optional scope, as Inet6Address.getHostAddress() does. */
void known_put_inet6_number(struct buf *b, const struct value *v)
{
    enum { ADDRESS, SCOPE_ID, SCOPE_IS_SET, INTERFACE, N };
    struct value p[SHOWN_FIELDS_MAX], name[SHOWN_FIELDS_MAX];
    uint32_t bytes[16];
    if (value_parts(v, p) != N || value_ints(&p[ADDRESS], bytes, 16) != 16)
        return;
    for (unsigned i = 0; i < 16; i += 2)
        buf_printf(b, "%s%x", i ? ":" : "", (bytes[i] & 255) << 8 | (bytes[i + 1] & 255));
    if (value_known(&p[INTERFACE]) && value_parts(&p[INTERFACE], name) == 1) {
        buf_string(b, "%");
        value_text(b, &name[0]);
    } else if (p[SCOPE_IS_SET].number) {
        buf_printf(b, "%%%" PRId64, p[SCOPE_ID].number);
    }
}

/* Writes what InetAddress.toString() does, from the holders of the name and of the address. */
void known_put_inet6(struct buf *b, const struct value *v)
{
    struct value p[SHOWN_FIELDS_MAX], named[SHOWN_FIELDS_MAX];
    if (value_parts(v, p) != 2)
        return;
    if (value_parts(&p[0], named) == 2 && !is_null(&named[0]))
        value_text(b, &named[0]);
    buf_string(b, "/");
    known_put_inet6_number(b, &p[1]);
}

/* Writes an address as InetSocketAddress.toString() does, which JDK 14 changed. */
void known_put_socket_address(struct buf *b, const struct value *v)
{
    enum { HOST, ADDRESS, PORT, N };
    struct value p[SHOWN_FIELDS_MAX];
    _cleanup_(buf_release) struct buf address = BUF(16 << 10);
    if (value_parts(v, p) != N)
        return;
    if (is_null(&p[ADDRESS])) {
        value_text(&address, &p[HOST]);
        if (vm.version >= 14)
            buf_string(&address, "/<unresolved>");
    } else if (value_known(&p[ADDRESS])) {
        p[ADDRESS].shown->put(&address, &p[ADDRESS]);
    } else {
        value_text(&address, &p[ADDRESS]);
    }
    const char *text = buf_str(&address), *slash = strrchr(text, '/');
    size_t before = slash ? (size_t)(slash + 1 - text) : 0;
    bool in_brackets = vm.version >= 14 && slash && strchr(slash, ':');
    buf_printf(b, "%.*s%s%s%s:%" PRId64, (int)before, text, in_brackets ? "[" : "", text + before,
               in_brackets ? "]" : "", p[PORT].number);
}

/* Writes a path. Its bytes are those of the file system, which are usually UTF-8. */
void known_put_path(struct buf *b, const struct value *v)
{
    char bytes[RING_TEXT_MAX];
    size_t n = MIN(v->n_chars, (uint32_t)RING_TEXT_MAX);
    bool cut = v->length > v->n_chars;
    for (size_t i = 0; i < n; i++)
        bytes[i] = (char)v->chars[i];
    /* Leaves out the beginning of a character that was cut off. */
    for (int k = 0; cut && k < 3 && n > 0 && ((uint8_t)bytes[n - 1] & 0xc0) == 0x80; k++)
        n--;
    if (cut && n > 0 && (uint8_t)bytes[n - 1] >= 0xc0)
        n--;
    uint32_t c;
    for (size_t i = 0; i < n;) {
        i += utf8_next(bytes + i, n - i, &c);
        utf8_put(b, c);
    }
    if (cut)
        buf_printf(b, "... (%lld)", (long long)v->length);
}

static void put_after(struct buf *b, const char *before, const struct value *v)
{
    if (is_null(v))
        return;
    buf_string(b, before);
    value_text(b, v);
}

/*
 * Joins the parts as URI.toString() does. For a parsed URI the result is the text that was parsed.
 */
void known_put_uri(struct buf *b, const struct value *v)
{
    enum { SCHEME, SPECIFIC, USER, HOST, PORT, AUTHORITY, PATH, QUERY, FRAGMENT, N };
    struct value p[SHOWN_FIELDS_MAX];
    if (value_parts(v, p) < N)
        return;
    put_after(b, "", &p[SCHEME]);
    buf_string(b, is_null(&p[SCHEME]) ? "" : ":");
    if (is_null(&p[PATH])) {
        put_after(b, "", &p[SPECIFIC]);
    } else if (!is_null(&p[HOST])) {
        put_after(b, "//", &p[USER]);
        buf_string(b, is_null(&p[USER]) ? "//" : "@");
        value_text(b, &p[HOST]);
        if (p[PORT].number != -1)
            buf_printf(b, ":%" PRId64, p[PORT].number);
    } else {
        put_after(b, "//", &p[AUTHORITY]);
    }
    put_after(b, "", &p[PATH]);
    put_after(b, "?", &p[QUERY]);
    put_after(b, "#", &p[FRAGMENT]);
}

void known_put_url(struct buf *b, const struct value *v)
{
    enum { PROTOCOL, AUTHORITY, PATH, QUERY, REF, N };
    struct value p[SHOWN_FIELDS_MAX];
    if (value_parts(v, p) < N)
        return;
    put_after(b, "", &p[PROTOCOL]);
    buf_u8(b, ':');
    if (p[AUTHORITY].length > 0)
        put_after(b, "//", &p[AUTHORITY]);
    put_after(b, "", &p[PATH]);
    put_after(b, "?", &p[QUERY]);
    put_after(b, "#", &p[REF]);
}

/* Writes a method or field, given its class and its name. */
static void put_member(struct buf *b, const struct value *class, const char *name)
{
    static const char end[] = ".class";
    _cleanup_(buf_release) struct buf text = BUF(16 << 10);
    value_text(&text, class);
    bool cut = str_ends_in((struct str){(const char *)text.data, text.len}, end);
    buf_bytes(b, text.data, text.len - (cut ? strlen(end) : 0));
    buf_printf(b, ".%s", name);
}

void known_put_member(struct buf *b, const struct value *v)
{
    struct value p[SHOWN_FIELDS_MAX];
    _cleanup_(buf_release) struct buf name = BUF(16 << 10);
    if (value_parts(v, p) != 2)
        return;
    value_text(&name, &p[1]);
    put_member(b, &p[0], buf_str(&name));
}

void known_put_constructor(struct buf *b, const struct value *v)
{
    struct value p[SHOWN_FIELDS_MAX];
    if (value_parts(v, p) == 1)
        put_member(b, &p[0], "<init>");
}

void known_put_frame(struct buf *b, const struct value *v)
{
    struct value p[SHOWN_FIELDS_MAX];
    if (value_parts(v, p) != 3)
        return;
    value_text(b, &p[0]);
    buf_u8(b, '.');
    value_text(b, &p[1]);
    if (p[2].number > 0)
        buf_printf(b, ":%" PRId64, p[2].number);
}

/* Writes a parameter's name, or its number: compilers store the names only on request. */
void known_put_parameter(struct buf *b, const struct value *v)
{
    enum { NAME, EXECUTABLE, INDEX, N };
    struct value p[SHOWN_FIELDS_MAX];
    if (value_parts(v, p) < N)
        return;
    if (is_null(&p[NAME]) || p[NAME].length == 0)
        buf_printf(b, "arg%" PRId64, p[INDEX].number);
    else
        value_text(b, &p[NAME]);
    buf_string(b, " of ");
    if (value_known(&p[EXECUTABLE]))
        p[EXECUTABLE].shown->put(b, &p[EXECUTABLE]);
    else
        value_text(b, &p[EXECUTABLE]);
}

void known_put_buffer(struct buf *b, const struct value *v)
{
    struct value p[SHOWN_FIELDS_MAX];
    if (value_parts(v, p) == 3)
        buf_printf(b, "pos=%" PRId64 " lim=%" PRId64 " cap=%" PRId64, p[0].number, p[1].number,
                   p[2].number);
}

void known_put_future(struct buf *b, const struct value *v)
{
    struct value p[SHOWN_FIELDS_MAX];
    if (value_parts(v, p) != 1)
        return;
    if (is_null(&p[0]))
        buf_string(b, "not completed");
    else
        trace_put_parts(b, v);
}

/* Writes a task's state. Its numbers in FutureTask are the same in all JDKs. */
void known_put_task(struct buf *b, const struct value *v)
{
    enum { NORMAL = 2, EXCEPTIONAL, CANCELLED };
    struct value p[SHOWN_FIELDS_MAX];
    if (value_parts(v, p) != 2)
        return;
    if (p[0].number < NORMAL)
        buf_string(b, "not completed");
    else if (p[0].number >= CANCELLED)
        buf_string(b, "cancelled");
    else
        trace_put_part(b, &p[1]);
}
