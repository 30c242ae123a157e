/* SPDX-License-Identifier: Apache-2.0 */
#include "hprof/text_reader.h"

#include "base/file_format.h"
#include "base/vec.h"

#include <errno.h>

struct reader {
    const char *at, *end; /* the rest of the text */
    struct str line;      /* the current line, without its newline */
    struct hprof_text_summary summary;
    VEC(struct hprof_item_frame) frames;
    struct hprof_text_item trace; /* the TRACE whose frames are being read */
    bool in_trace, in_sites, in_left_out, in_old, in_heap, in_ranked, in_monitors, wall;
    enum hprof_ranked ranked;
    uint64_t heap_objects, heap_bytes;
    int (*item)(void *ctx, const struct hprof_text_item *item);
    void *ctx;
};

static const char *const ranked_titles[] = {
    [HPROF_RANKED_SAMPLES] = "CPU SAMPLES",
    [HPROF_RANKED_TIMES] = "CPU TIME (ms)",
    [HPROF_RANKED_MONITORS] = "MONITOR TIME",
};

static struct str str_of(const char *data, const char *end)
{
    return (struct str){data, (size_t)(end - data)};
}

/* Skips a literal at the start. Returns false, and skips nothing, when it is not there. */
static bool skip(struct str *s, const char *literal)
{
    size_t n = strlen(literal);
    if (s->len < n || memcmp(s->data, literal, n) != 0)
        return false;
    *s = (struct str){s->data + n, s->len - n};
    return true;
}

/* Removes a literal from the end. */
static bool chop(struct str *s, const char *literal)
{
    bool ends = str_ends_in(*s, literal);
    s->len -= ends ? strlen(literal) : 0;
    return ends;
}

static void spaces(struct str *s)
{
    while (s->len && *s->data == ' ')
        *s = (struct str){s->data + 1, s->len - 1};
}

/* Parses a number in base 10 or 16 after spaces. Saturates; returns false when there is none. */
static bool number(struct str *s, unsigned base, uint64_t *ret)
{
    uint64_t v = 0;
    size_t n = 0;
    spaces(s);
    for (; n < s->len; n++) {
        unsigned char c = (unsigned char)s->data[n];
        unsigned digit = c - '0' < 10U ? c - '0' : (c | 32U) - 'a' < 6U ? (c | 32U) - 'a' + 10 : 99;
        if (digit >= base)
            break;
        v = v > (UINT64_MAX - digit) / base ? UINT64_MAX : v * base + digit;
    }
    if (!n)
        return false;
    *s = (struct str){s->data + n, s->len - n};
    *ret = v;
    return true;
}

static bool number32(struct str *s, uint32_t *ret)
{
    uint64_t v;
    if (!number(s, 10, &v))
        return false;
    *ret = v > UINT32_MAX ? UINT32_MAX : (uint32_t)v;
    return true;
}

/* Parses "12.34%" after spaces. */
static bool percent(struct str *s, double *ret)
{
    uint64_t whole, cents;
    struct str t = *s;
    if (!number(&t, 10, &whole) || !skip(&t, "."))
        return false;
    size_t before = t.len;
    if (!number(&t, 10, &cents) || before - t.len != 2 || !skip(&t, "%"))
        return false;
    *ret = (double)whole + (double)cents / 100;
    *s = t;
    return true;
}

/* Splits at the last occurrence of a literal. */
static bool split_last(struct str s, const char *literal, struct str *ret_before,
                       struct str *ret_rest)
{
    size_t n = strlen(literal);
    for (size_t i = s.len >= n ? s.len - n + 1 : 0; i-- > 0;) {
        if (memcmp(s.data + i, literal, n) == 0) {
            *ret_before = (struct str){s.data, i};
            *ret_rest = (struct str){s.data + i + n, s.len - i - n};
            return true;
        }
    }
    return false;
}

static bool next_line(struct reader *r)
{
    if (r->at == r->end)
        return false;
    const char *stop = memchr(r->at, '\n', (size_t)(r->end - r->at));
    r->summary.cut = !stop;
    r->line = str_of(r->at, stop ? stop : r->end);
    r->at = stop ? stop + 1 : r->end;
    r->summary.lines++;
    return true;
}

/* Extends the current line by the next one, because names may contain newlines. */
static bool join_line(struct reader *r)
{
    const char *start = r->line.data;
    if (!next_line(r))
        return false;
    r->line = str_of(start, r->line.data + r->line.len);
    return true;
}

static int give(struct reader *r, const struct hprof_text_item *item)
{
    int e = r->item(r->ctx, item);
    return e < 0 ? e : 1;
}

static int end_trace(struct reader *r)
{
    if (!r->in_trace)
        return 1;
    r->in_trace = false;
    r->trace.frames = r->frames.data;
    r->trace.n_frames = r->frames.len;
    return give(r, &r->trace);
}

/*
 * Each read_ function handles one kind of line. It returns 1 when the line is of that kind, 0 when
 * it is not, and a negative value to stop.
 */
static int read_thread(struct reader *r)
{
    enum { LINES_OF_A_NAME = 64 };
    struct str s = r->line, rest;
    struct hprof_text_item i = {.kind = HPROF_ITEM_THREAD_START};
    if (skip(&s, "THREAD END (id = ")) {
        i.kind = HPROF_ITEM_THREAD_END;
        return number32(&s, &i.serial) && skip(&s, ")") ? give(r, &i) : 0;
    }
    if (!skip(&s, "THREAD START (obj=") || !number(&s, 16, &i.object) || !skip(&s, ", id = ") ||
        !number32(&s, &i.serial) || !skip(&s, ", name=\""))
        return 0;
    const char *name = s.data, *at = r->at;
    struct reader before = *r;
    for (int n = 0; n < LINES_OF_A_NAME; n++) {
        s = str_of(name, r->line.data + r->line.len);
        if (chop(&s, "\")") && split_last(s, "\", group=\"", &i.name, &rest)) {
            i.group = rest;
            return give(r, &i);
        }
        if (!join_line(r))
            break;
    }
    r->line = before.line;
    r->summary = before.summary;
    r->at = at;
    return 0;
}

static int read_trace(struct reader *r)
{
    struct str s = r->line;
    struct hprof_text_item i = {.kind = HPROF_ITEM_TRACE};
    if (!skip(&s, "TRACE ") || !number32(&s, &i.serial) || !skip(&s, ":"))
        return 0;
    if (skip(&s, " (thread="))
        (void)number32(&s, &i.thread);
    r->trace = i;
    r->in_trace = true;
    vec_clear(&r->frames);
    return 1;
}

static int read_frame(struct reader *r)
{
    struct str s = r->line, method, place, source, at;
    if (!r->in_trace || !skip(&s, "\t"))
        return 0;
    if (s.len == 7 && memcmp(s.data, "<empty>", 7) == 0)
        return 1;
    if (!chop(&s, ")") || !split_last(s, "(", &method, &place))
        return 0;
    struct hprof_item_frame f = {.method = method, .source = place, .line = HPROF_LINE_UNKNOWN};
    if (split_last(place, ":", &source, &at)) {
        uint64_t line;
        f.source = source;
        if (number(&at, 10, &line) && line && line <= INT32_MAX)
            f.line = (int32_t)line;
    }
    return vec_push(&r->frames, f) < 0 ? -ENOMEM : 1;
}

static int read_ranked(struct reader *r)
{
    struct hprof_text_item i = {.kind = HPROF_ITEM_RANKED_BEGIN};
    for (unsigned k = 0; k < ARRAY_SIZE(ranked_titles); k++) {
        struct str s = r->line;
        if (!skip(&s, ranked_titles[k]))
            continue;
        i.ranked = k == HPROF_RANKED_SAMPLES && r->wall ? HPROF_RANKED_WALL : k;
        if (skip(&s, " BEGIN (total = ") && number(&s, 10, &i.total)) {
            r->in_ranked = true;
            r->ranked = i.ranked;
            return give(r, &i);
        }
        if (skip(&s, " END")) {
            i.kind = HPROF_ITEM_RANKED_END;
            r->in_ranked = r->wall = false;
            return give(r, &i);
        }
    }
    if (!r->in_ranked) {
        struct str s = r->line;
        r->wall = skip(&s, HPROF_TEXT_WALL) && !s.len;
        return r->wall;
    }
    struct str s = r->line;
    i = (struct hprof_text_item){.kind = HPROF_ITEM_RANKED, .ranked = r->ranked};
    if (skip(&s, "rank "))
        return 1;
    if (!number32(&s, &i.rank) || !skip(&s, " ") || !percent(&s, &i.self) ||
        !percent(&s, &i.accumulated) || !number(&s, 10, &i.count) || !number32(&s, &i.trace) ||
        !skip(&s, " "))
        return 0;
    i.name = s;
    if (r->ranked == HPROF_RANKED_MONITORS)
        (void)chop(&i.name, " (Java)");
    return give(r, &i);
}

static int read_site(struct reader *r)
{
    struct str s = r->line;
    struct hprof_text_item i = {.kind = HPROF_ITEM_SITE};
    struct hprof_text_site *t = &i.site;
    if (skip(&s, "SITES BEGIN (ordered by ")) {
        const char *stop = memchr(s.data, ')', s.len);
        i.kind = HPROF_ITEM_SITES_BEGIN;
        i.name = str_of(s.data, stop ? stop : s.data + s.len);
        r->in_sites = true;
        return give(r, &i);
    }
    if (skip(&s, "LEFT OUT BEGIN ")) {
        r->in_left_out = true;
        return 1;
    }
    if (skip(&s, "LEFT OUT END"))
        return 1;
    if (r->in_left_out) {
        r->in_left_out = false;
        i.kind = HPROF_ITEM_LEFT_OUT;
        return number(&s, 10, &i.count) && (skip(&s, " sites: ") || skip(&s, " site: ")) &&
                       number(&s, 10, &i.total)
                   ? give(r, &i)
                   : 0;
    }
    if (!r->in_sites)
        return 0;
    if (skip(&s, "SITES END")) {
        i.kind = HPROF_ITEM_SITES_END;
        r->in_sites = false;
        return give(r, &i);
    }
    spaces(&s);
    if (skip(&s, "percent ") || skip(&s, "rank "))
        return 1;
    if (!number32(&s, &t->rank) || !skip(&s, " ") || !percent(&s, &t->self) ||
        !percent(&s, &t->accumulated) || !number(&s, 10, &t->live_bytes) ||
        !number(&s, 10, &t->live_objects) || !number(&s, 10, &t->alloc_bytes) ||
        !number(&s, 10, &t->alloc_objects) || !number32(&s, &t->trace) || !skip(&s, " "))
        return 0;
    i.name = s;
    return give(r, &i);
}

static int read_old(struct reader *r)
{
    struct str s = r->line, names, ms;
    struct hprof_text_item i = {.kind = HPROF_ITEM_OLD_BEGIN};
    if (skip(&s, "count callee caller time")) {
        r->in_old = true;
        return give(r, &i);
    }
    i.kind = HPROF_ITEM_OLD;
    if (!r->in_old || !number(&s, 10, &i.count) || !skip(&s, " ") ||
        !split_last(s, " ", &names, &ms) || !number(&ms, 10, &i.total))
        return 0;
    if (chop(&names, " <unknown caller>"))
        i.name = names;
    else if (!split_last(names, " ", &i.name, &i.caller))
        return 0;
    return give(r, &i);
}

static int read_wait(struct reader *r)
{
    struct str s = r->line, before, rest;
    struct hprof_text_item i = {.kind = HPROF_ITEM_WAIT};
    const char *key = ", timeout=";
    if (skip(&s, "WAITED: MONITOR ")) {
        i.kind = HPROF_ITEM_WAITED;
        key = ", time_waited=";
    } else if (!skip(&s, "WAIT: MONITOR ")) {
        return 0;
    }
    if (!split_last(s, key, &before, &rest))
        return 0;
    bool negative = skip(&rest, "-");
    uint64_t ms;
    if (!number(&rest, 10, &ms) || !skip(&rest, ","))
        return 0;
    i.name = before;
    i.time_ms = ms > INT64_MAX ? INT64_MAX : (int64_t)ms;
    i.time_ms = negative ? -i.time_ms : i.time_ms;
    if (skip(&rest, " thread "))
        (void)number32(&rest, &i.thread);
    return give(r, &i);
}

/* The lines of the heap dump itself are only counted; use the binary format to read objects. */
static int read_heap(struct reader *r)
{
    struct str s = r->line;
    struct hprof_text_item i = {.kind = HPROF_ITEM_HEAP_BEGIN};
    if (skip(&s, "HEAP DUMP BEGIN (")) {
        if (!number(&s, 10, &i.count) || !skip(&s, " objects, ") || !number(&s, 10, &i.total))
            return 0;
        r->in_heap = true;
        r->heap_objects = r->heap_bytes = 0;
        return give(r, &i);
    }
    if (!r->in_heap)
        return 0;
    if (skip(&s, "HEAP DUMP END")) {
        r->in_heap = false;
        i = (struct hprof_text_item){
            .kind = HPROF_ITEM_HEAP_END, .count = r->heap_objects, .total = r->heap_bytes};
        return give(r, &i);
    }
    uint64_t id, size;
    if ((skip(&s, "OBJ ") || skip(&s, "ARR ")) && number(&s, 16, &id) && skip(&s, " (sz=") &&
        number(&s, 10, &size)) {
        r->heap_objects++;
        r->heap_bytes += size;
        return 1;
    }
    return skip(&s, "\t") || skip(&s, "ROOT ") || skip(&s, "CLS ");
}

static int read_monitor(struct reader *r)
{
    struct str s = r->line;
    if (skip(&s, "MONITOR DUMP BEGIN")) {
        r->in_monitors = true;
        return 1;
    }
    if (!r->in_monitors)
        return 0;
    if (skip(&s, "MONITOR DUMP END"))
        r->in_monitors = false;
    return 1;
}

static int read_line(struct reader *r)
{
    static int (*const kinds[])(struct reader *) = {read_heap,   read_trace,  read_thread,
                                                    read_ranked, read_site,   read_wait,
                                                    read_old,    read_monitor};
    int e = read_frame(r);
    if (e)
        return e;
    e = end_trace(r);
    for (size_t k = 0; e > 0 && k < ARRAY_SIZE(kinds); k++) {
        int taken = kinds[k](r);
        if (taken)
            return taken;
    }
    if (e > 0)
        r->summary.unknown += r->line.len > 0;
    return e;
}

int hprof_text_read(const void *text, size_t len,
                    int (*item)(void *ctx, const struct hprof_text_item *item), void *ctx,
                    struct hprof_text_summary *ret_summary)
{
    struct reader r = {.at = text, .end = (const char *)text + len, .item = item, .ctx = ctx};
    struct str first;
    int e = 1;
    if (!next_line(&r))
        return -EBADMSG;
    first = r.line;
    if (skip(&first, "JAVA PROFILE ")) {
        while (next_line(&r) && !(r.line.len == 8 && memcmp(r.line.data, "--------", 8) == 0))
            ;
    } else if (file_format_of(text, len) == FORMAT_HPROF_TEXT) {
        e = read_line(&r);
    } else {
        return -EBADMSG;
    }
    while (e > 0 && next_line(&r))
        e = read_line(&r);
    r.summary.cut |= r.in_sites || r.in_left_out || r.in_ranked || r.in_heap || r.in_monitors;
    if (e > 0)
        e = end_trace(&r);
    vec_release(&r.frames);
    if (e < 0)
        return e;
    *ret_summary = r.summary;
    return 0;
}
