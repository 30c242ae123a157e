/* SPDX-License-Identifier: Apache-2.0 */
#include "hotspot/unified_log.h"

#include <string.h>

/* The rest of a line. A step that does not match leaves it unchanged. */
struct scan {
    const char *at, *end;
};

static struct scan scan_of(struct log_text t)
{
    return (struct scan){t.data, t.data + t.len};
}

static struct log_text text_between(const char *begin, const char *end)
{
    return (struct log_text){begin, (size_t)(end - begin)};
}

bool log_text_is(struct log_text t, const char *s)
{
    return t.len == strlen(s) && (!t.len || memcmp(t.data, s, t.len) == 0);
}

void log_text_copy(char *to, size_t size, struct log_text t)
{
    size_t n = MIN(t.len, size - 1);
    memcpy(to, t.data, n);
    to[n] = 0;
}

bool log_text_starts(struct log_text t, const char *s)
{
    size_t n = strlen(s);
    return t.len >= n && memcmp(t.data, s, n) == 0;
}

static bool skip(struct scan *s, const char *expected)
{
    if (!log_text_starts(text_between(s->at, s->end), expected))
        return false;
    s->at += strlen(expected);
    return true;
}

static void skip_blanks(struct scan *s)
{
    while (s->at < s->end && *s->at == ' ')
        s->at++;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool number(struct scan *s, uint64_t *ret)
{
    const char *p = s->at;
    uint64_t v = 0;
    for (; p < s->end && is_digit(*p) && v <= UINT64_MAX / 10 - 1; p++)
        v = v * 10 + (uint64_t)(*p - '0');
    if (p == s->at)
        return false;
    s->at = p;
    *ret = v;
    return true;
}

/* Reads a decimal number in units of `unit`: "9.366" with a unit of 1,000,000 is 9,366,000. */
static bool decimal(struct scan *s, uint64_t unit, uint64_t *ret)
{
    uint64_t whole, part = 0;
    struct scan c = *s;
    if (!number(&c, &whole) || whole > UINT64_MAX / 4 / unit)
        return false;
    if (c.at < c.end && (*c.at == '.' || *c.at == ',')) {
        uint64_t weight = unit;
        for (c.at++; c.at < c.end && is_digit(*c.at); c.at++) {
            weight /= 10;
            part += weight * (uint64_t)(*c.at - '0');
        }
    }
    *s = c;
    *ret = whole * unit + part;
    return true;
}

static struct log_text trimmed(struct log_text t)
{
    while (t.len && t.data[0] == ' ')
        t.data++, t.len--;
    while (t.len && t.data[t.len - 1] == ' ')
        t.len--;
    return t;
}

/* Takes the text up to a character, which is skipped. */
static bool until(struct scan *s, char stop, struct log_text *ret)
{
    const char *p = memchr(s->at, stop, (size_t)(s->end - s->at));
    if (!p)
        return false;
    *ret = text_between(s->at, p);
    s->at = p + 1;
    return true;
}

/*
 * Reads "[number unit", blanks, "]". The VM pads each decoration to the largest width that it has
 * written to the file, so a short thread number is padded after a longer one.
 */
static bool decoration(struct scan *s, const char *unit, uint64_t *ret)
{
    if (!skip(s, "[") || !number(s, ret) || !skip(s, unit))
        return false;
    skip_blanks(s);
    return skip(s, "]");
}

bool log_line_read(const char *data, size_t len, struct log_line *ret)
{
    struct scan s = {data, data + len};
    struct log_line line = {0};
    uint64_t tid;
    if (!decoration(&s, "ns", &line.ns) || !decoration(&s, "", &tid) || !skip(&s, "[") ||
        !until(&s, ']', &line.tags))
        return false;
    skip(&s, " ");
    line.tid = (uint32_t)tid;
    line.tags = trimmed(line.tags);
    line.text = text_between(s.at, s.end);
    *ret = line;
    return true;
}

/* ---- safepoints ---- */

bool log_safepoint_read(struct log_text text, struct log_safepoint *ret)
{
    struct log_safepoint r = {.threads = -1};

    const struct {
        const char *label;
        uint64_t *to;
    } parts[] = {
        {"Reaching safepoint: ", &r.sync_ns},
        {"Cleanup: ", &r.cleanup_ns},
        {"At safepoint: ", &r.at_ns},
        {"Leaving safepoint: ", &r.leaving_ns},
        {"Total: ", &r.total_ns},
    };
    struct scan s = scan_of(text);
    bool total = false;
    if (!skip(&s, "Safepoint \"") || !until(&s, '"', &r.operation))
        return false;
    while (skip(&s, ", ")) {
        struct log_text other;
        uint64_t runnable, all;
        bool known = false;
        for (size_t i = 0; !known && i < ARRAY_SIZE(parts); i++)
            if (skip(&s, parts[i].label)) {
                if (!number(&s, parts[i].to) || !skip(&s, " ns"))
                    return false;
                known = true;
                total = total || parts[i].to == &r.total_ns;
            }
        if (!known && skip(&s, "Threads: ")) {
            if (number(&s, &runnable) && skip(&s, " runnable, ") && number(&s, &all))
                r.threads = (int64_t)all;
            break;
        }
        if (!known) {
            const char *comma = memchr(s.at, ',', (size_t)(s.end - s.at));
            other = text_between(s.at, comma ? comma : s.end);
            s.at += other.len;
        }
    }
    if (total)
        *ret = r;
    return total;
}

bool log_safepoint_begin_read(struct log_text text, struct log_text *ret_operation)
{
    struct scan s = scan_of(text);
    if (!skip(&s, "Entering safepoint region: "))
        return false;
    *ret_operation = text_between(s.at, s.end);
    return true;
}

bool log_stopped_read(struct log_text text, uint64_t *ret_total_ns, uint64_t *ret_sync_ns)
{
    struct scan s = scan_of(text);
    uint64_t total, sync;
    if (!skip(&s, "Total time for which application threads were stopped: ") ||
        !decimal(&s, UINT64_C(1000000000), &total) ||
        !skip(&s, " seconds, Stopping threads took: ") || !decimal(&s, UINT64_C(1000000000), &sync))
        return false;
    *ret_total_ns = total;
    *ret_sync_ns = sync;
    return true;
}

/* ---- collections ---- */

/* Reads "9.366ms" or "0.029s"; nothing may follow. */
static bool is_duration(struct log_text t, uint64_t *ret_ns)
{
    struct scan s = scan_of(t), again = s;
    uint64_t v;
    if (decimal(&s, 1000000, &v) && skip(&s, "ms") && s.at == s.end) {
        *ret_ns = v;
        return true;
    }
    if (decimal(&again, UINT64_C(1000000000), &v) && skip(&again, "s") && again.at == again.end) {
        *ret_ns = v;
        return true;
    }
    return false;
}

/* Reads "15M" or "15M(7%)". */
static bool amount(struct scan *s, uint64_t *ret)
{
    static const char units[] = "BKMGT";
    struct scan c = *s;
    uint64_t v, percent;
    const char *unit;
    if (!number(&c, &v) || c.at == c.end || !*c.at || !(unit = strchr(units, *c.at)))
        return false;
    c.at++;
    *ret = v << 10 * (unit - units);
    *s = c;
    if (skip(&c, "(") && number(&c, &percent) && skip(&c, "%)"))
        *s = c;
    return true;
}

/* Reads "15M->14M(200M)" or "44M(22%)->52M(26%)"; nothing may follow. */
static bool is_heap(struct log_text t, struct log_gc *ret)
{
    struct scan s = scan_of(t);
    uint64_t before, after, capacity = 0;
    if (!amount(&s, &before) || !skip(&s, "->") || !amount(&s, &after))
        return false;
    if (skip(&s, "(") && (!amount(&s, &capacity) || !skip(&s, ")")))
        return false;
    if (s.at != s.end)
        return false;
    ret->before = before;
    ret->after = after;
    ret->capacity = capacity;
    ret->has_heap = true;
    return true;
}

/* Cuts off the last word. */
static struct log_text last_word(struct log_text t)
{
    const char *p = t.data + t.len;
    while (p > t.data && p[-1] != ' ')
        p--;
    return text_between(p, t.data + t.len);
}

static struct log_text without(struct log_text t, size_t at_end)
{
    t.len -= at_end;
    return trimmed(t);
}

/* "Pause Young (Normal) (G1 Evacuation Pause)": takes the last group if it is the cause. */
static void split_cause(struct log_gc *g)
{
    static const char *const with_cause[] = {
        "Pause Young",        "Pause Full",       "Pause Mixed",     "Pause Init",
        "Garbage Collection", "Minor Collection", "Major Collection"};
    bool has = false;
    for (size_t i = 0; i < ARRAY_SIZE(with_cause); i++)
        has = has || log_text_starts(g->name, with_cause[i]);
    if (!has || log_text_starts(g->name, "Pause Init Mark") || !g->name.len ||
        g->name.data[g->name.len - 1] != ')')
        return;
    size_t at = g->name.len - 1;
    for (int depth = 1; at > 0 && depth > 0;) {
        at--;
        depth += g->name.data[at] == ')' ? 1 : g->name.data[at] == '(' ? -1 : 0;
    }
    g->cause = text_between(g->name.data + at + 1, g->name.data + g->name.len - 1);
    g->name = without(g->name, g->name.len - at);
}

bool log_gc_read(struct log_text text, struct log_gc *ret)
{
    struct log_gc g = {0};
    struct scan s = scan_of(text);
    uint64_t id;
    if (!skip(&s, "GC(") || !number(&s, &id) || !skip(&s, ") "))
        return false;
    g.id = (uint32_t)id;
    g.name = trimmed(text_between(s.at, s.end));
    /*
     * JDK 21 and later: skips "Y: " and "O: " of ZGC's generations, and "y: " within a major
     * collection.
     */
    if (g.name.len > 3 && g.name.data[1] == ':' && g.name.data[2] == ' ')
        g.name = without((struct log_text){g.name.data + 3, g.name.len - 3}, 0);
    struct log_text word = last_word(g.name);
    g.has_duration = is_duration(word, &g.duration_ns);
    if (g.has_duration) {
        g.name = without(g.name, word.len);
        word = last_word(g.name);
    }
    if (is_heap(word, &g))
        g.name = without(g.name, word.len);
    if (g.name.len && g.name.data[g.name.len - 1] == ':')
        g.name = without(g.name, 1);
    split_cause(&g);
    *ret = g;
    return g.name.len > 0;
}

/* ---- the compilers ---- */

/* "   11 %     4       Deopt::run @ 4 (25 bytes)   made not entrant: uncommon trap" */
bool log_compile_read(struct log_text text, struct log_compile *ret)
{
    static const char discarded[] = "made not entrant";
    struct log_compile c = {0};
    struct scan s = scan_of(text);
    uint64_t id, level = 0;
    skip_blanks(&s);
    if (!number(&s, &id))
        return false;
    c.id = (uint32_t)id;
    for (; s.at < s.end && (*s.at == ' ' || strchr("%s!bn", *s.at)); s.at++) {
        c.osr = c.osr || *s.at == '%';
        c.native = c.native || *s.at == 'n';
    }
    if (number(&s, &level))
        c.level = (uint32_t)level;
    skip_blanks(&s);
    struct log_text rest = text_between(s.at, s.end);
    const char *blank = memchr(rest.data, ' ', rest.len);
    c.method = text_between(rest.data, blank ? blank : s.end);
    if (!blank || c.method.len < 4)
        return false;
    for (s.at = blank; s.at < s.end && *s.at != '(';)
        s.at++;
    if (skip(&s, "("))
        number(&s, &c.bytes);
    for (; (size_t)(s.end - s.at) >= sizeof(discarded) - 1; s.at++)
        if (skip(&s, discarded)) {
            c.not_entrant = true;
            if (skip(&s, ": "))
                c.why = trimmed(text_between(s.at, s.end));
            break;
        }
    *ret = c;
    return true;
}

static struct log_text next_word(struct scan *s)
{
    skip_blanks(s);
    const char *begin = s->at;
    while (s->at < s->end && *s->at != ' ')
        s->at++;
    return text_between(begin, s->at);
}

/*
 * "cid=  10 osr level=4 Deopt.run(LDeopt$S;I)I trap_bci=4 osr_bci=4 profile_predicate
 * maybe_recompile pc=0x00007f95a82c7bc8 relative_pc=0x00000000000000a8"
 */
bool log_trap_read(struct log_text text, struct log_trap *ret)
{
    struct log_trap t = {.bci = -1};
    struct scan s = scan_of(text);
    uint64_t v;
    if (!skip(&s, "cid="))
        return false;
    skip_blanks(&s);
    if (!number(&s, &v))
        return false;
    t.compile_id = (uint32_t)v;
    skip_blanks(&s);
    skip(&s, "osr");
    skip_blanks(&s);
    if (skip(&s, "level=") && number(&s, &v))
        t.level = (uint32_t)v;
    t.method = next_word(&s);
    for (struct log_text w; (w = next_word(&s)).len;) {
        struct scan inner = scan_of(w);
        if (skip(&inner, "trap_bci=")) {
            if (number(&inner, &v))
                t.bci = (int32_t)v;
        } else if (!memchr(w.data, '=', w.len)) {
            *(t.reason.len ? &t.action : &t.reason) = w;
        }
    }
    *ret = t;
    return t.method.len && t.reason.len;
}
