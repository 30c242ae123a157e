/* SPDX-License-Identifier: Apache-2.0 */
#include "timeline/trcxml.h"

#include "base/vec.h"
#include "timeline/builder.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ATTRIBUTES_MAX = 16, NAME_MAX_ = 64, VALUE_MAX = 4096, FRAMES_MAX = 1024 };

struct element {
    char name[NAME_MAX_];
    unsigned n;

    struct {
        char name[NAME_MAX_];
        char *value;
    } attributes[ATTRIBUTES_MAX];

    bool end, empty; /* </name>; <name/> */
};

struct parser {
    const char *at, *end;
    unsigned line;
    struct buf values; /* the texts of one element's attributes */
    struct timeline_builder *b;
    VEC(struct tl_event) events;
    struct tl_event now; /* the open element */
    uint32_t object_id, class;
    bool has_object, any, unpark, existing, is_start;
    struct tl_frame frames[FRAMES_MAX];
    size_t n_frames;
    int error;
};

bool trcxml_is(const void *bytes, size_t len)
{
    const char *s = bytes, *end = s + len;
    while (s < end && (*s == ' ' || *s == '\n' || *s == '\r' || *s == '\t'))
        s++;
    return (end - s >= 5 && memcmp(s, "<?xml", 5) == 0) ||
           (end - s >= 6 && memcmp(s, "<TRACE", 6) == 0);
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static void spaces(struct parser *p)
{
    for (; p->at < p->end && is_space(*p->at); p->at++)
        p->line += *p->at == '\n';
}

static bool read_name(struct parser *p, char *to)
{
    size_t n = 0;
    while (p->at < p->end && !is_space(*p->at) && !strchr("=/>\"'<", *p->at)) {
        if (n + 1 >= NAME_MAX_)
            return false;
        to[n++] = *p->at++;
    }
    to[n] = 0;
    return n > 0;
}

/* Reads a character reference or a predefined entity after '&'. */
static bool read_reference(struct parser *p, struct buf *to)
{
    static const struct {
        const char *name;
        char c;
    } entities[] = {{"lt;", '<'}, {"gt;", '>'}, {"amp;", '&'}, {"quot;", '"'}, {"apos;", '\''}};

    for (size_t i = 0; i < ARRAY_SIZE(entities); i++) {
        size_t n = strlen(entities[i].name);
        if ((size_t)(p->end - p->at) >= n && memcmp(p->at, entities[i].name, n) == 0) {
            buf_u8(to, (uint8_t)entities[i].c);
            p->at += n;
            return true;
        }
    }
    unsigned code = 0, base = 10, digits = 0;
    if (p->at == p->end || *p->at++ != '#')
        return false;
    if (p->at < p->end && *p->at == 'x') {
        base = 16;
        p->at++;
    }
    for (; p->at < p->end && *p->at != ';' && digits < 7; p->at++, digits++) {
        char c = *p->at;
        unsigned d = c >= '0' && c <= '9'                 ? (unsigned)(c - '0')
                     : (c | 32) >= 'a' && (c | 32) <= 'f' ? (unsigned)((c | 32) - 'a') + 10
                                                          : 99;
        if (d >= base)
            return false;
        code = code * base + d;
    }
    if (p->at == p->end || *p->at++ != ';' || code == 0 || code > 0x10ffff || digits == 0)
        return false;
    if (code < 0x80) {
        buf_u8(to, (uint8_t)code);
    } else if (code < 0x800) {
        buf_u8(to, (uint8_t)(0xc0 | code >> 6));
        buf_u8(to, (uint8_t)(0x80 | (code & 63)));
    } else if (code < 0x10000) {
        buf_u8(to, (uint8_t)(0xe0 | code >> 12));
        buf_u8(to, (uint8_t)(0x80 | (code >> 6 & 63)));
        buf_u8(to, (uint8_t)(0x80 | (code & 63)));
    } else {
        buf_u8(to, (uint8_t)(0xf0 | code >> 18));
        buf_u8(to, (uint8_t)(0x80 | (code >> 12 & 63)));
        buf_u8(to, (uint8_t)(0x80 | (code >> 6 & 63)));
        buf_u8(to, (uint8_t)(0x80 | (code & 63)));
    }
    return true;
}

static bool read_value(struct parser *p, size_t *ret_offset)
{
    if (p->at == p->end || (*p->at != '"' && *p->at != '\''))
        return false;
    char quote = *p->at++;
    *ret_offset = p->values.len;
    while (p->at < p->end && *p->at != quote) {
        if (*p->at == '<' || p->values.len - *ret_offset > VALUE_MAX)
            return false;
        p->line += *p->at == '\n';
        char c = *p->at++;
        if (c != '&')
            buf_u8(&p->values, (uint8_t)c);
        else if (!read_reference(p, &p->values))
            return false;
    }
    buf_u8(&p->values, 0);
    return p->at < p->end && *p->at++ == quote;
}

/* Skips text, comments, declarations and instructions up to the next element. */
static bool to_element(struct parser *p)
{
    for (;;) {
        while (p->at < p->end && *p->at != '<')
            p->line += *p->at++ == '\n';
        if (p->end - p->at < 2)
            return false;
        const char *stop = p->at[1] == '?'                                        ? "?>"
                           : p->end - p->at >= 4 && memcmp(p->at, "<!--", 4) == 0 ? "-->"
                                                                                  : ">";
        if (p->at[1] != '?' && p->at[1] != '!')
            return true;
        const char *found = memmem(p->at, (size_t)(p->end - p->at), stop, strlen(stop));
        if (!found)
            return false;
        for (; p->at < found + strlen(stop); p->at++)
            p->line += *p->at == '\n';
    }
}

/* Returns 1 for an element, 0 at the end, or -EBADMSG. */
static int next_element(struct parser *p, struct element *e)
{
    size_t offsets[ATTRIBUTES_MAX] = {0};
    if (!to_element(p))
        return 0;
    buf_clear(&p->values);
    *e = (struct element){0};
    p->at++;
    if (p->at < p->end && *p->at == '/') {
        e->end = true;
        p->at++;
    }
    if (!read_name(p, e->name))
        return -EBADMSG;
    for (;;) {
        spaces(p);
        if (p->at == p->end)
            return -EBADMSG;
        if (*p->at == '/') {
            e->empty = true;
            p->at++;
            continue;
        }
        if (*p->at == '>')
            break;
        if (e->n == ATTRIBUTES_MAX || e->empty || !read_name(p, e->attributes[e->n].name))
            return -EBADMSG;
        spaces(p);
        if (p->at == p->end || *p->at++ != '=')
            return -EBADMSG;
        spaces(p);
        if (!read_value(p, &offsets[e->n]))
            return -EBADMSG;
        e->n++;
    }
    p->at++;
    if (buf_error(&p->values) < 0)
        return -ENOMEM;
    for (unsigned i = 0; i < e->n; i++)
        e->attributes[i].value = (char *)p->values.data + offsets[i];
    return 1;
}

static const char *attribute(const struct element *e, const char *name)
{
    for (unsigned i = 0; i < e->n; i++)
        if (strcmp(e->attributes[i].name, name) == 0)
            return e->attributes[i].value;
    return NULL;
}

static uint32_t string(struct parser *p, const char *s)
{
    int64_t n = timeline_string(p->b, s, strlen(s));
    if (n < 0)
        p->error = (int)n;
    return n < 0 ? TL_NONE : (uint32_t)n;
}

static uint32_t thread_number(struct parser *p, const char *id)
{
    if (!id || !*id)
        return TL_NONE;
    int64_t n = timeline_thread(p->b, strtoull(id, NULL, 10));
    if (n < 0) {
        p->error = (int)n;
        return TL_NONE;
    }
    struct tl_thread *t = timeline_thread_at(p->b, (uint32_t)n);
    if (t->name == TL_NONE) {
        char name[64];
        snprintf(name, sizeof(name), "thread %.40s", id);
        uint32_t text = string(p, name);
        timeline_thread_at(p->b, (uint32_t)n)->name = text;
    }
    return (uint32_t)n;
}

/* Converts "seconds.fraction" to ns. */
static uint64_t time_of(const char *text)
{
    char *end;
    uint64_t ns = strtoull(text ? text : "0", &end, 10) % 18000000000u * 1000000000u;
    if (*end != '.')
        return ns;
    uint64_t unit = 100000000;
    for (end++; *end >= '0' && *end <= '9' && unit; end++, unit /= 10)
        ns += (uint64_t)(*end - '0') * unit;
    return ns;
}

static const struct {
    const char *name;
    enum tl_event_kind kind;
} elements[] = {
    {"threadStart", TLE_THREAD_START},
    {"threadEnd", TLE_THREAD_END},
    {"monContendedEnter", TLE_CONTENDED_ENTER},
    {"monContendedEntered", TLE_CONTENDED_ENTERED},
    {"monWait", TLE_WAIT},
    {"monWaited", TLE_WAITED},
    {"callStart", TLE_CALL_START},
    {"threadStartCalled", TLE_CALL_START},
    {"callInterrupt", TLE_CALL_INTERRUPT},
    {"threadInterruptCalled", TLE_CALL_INTERRUPT},
    {"callNotify", TLE_NOTIFY},
    {"monNotifyCalled", TLE_NOTIFY},
    {"threadInterrupted", TLE_INTERRUPTED},
};

static void begin_thread(struct parser *p, const struct element *e)
{
    struct tl_thread *t;
    const char *name = attribute(e, "threadName"), *group = attribute(e, "groupName"),
               *parent = attribute(e, "parentName");
    uint32_t texts[] = {name ? string(p, name) : TL_NONE, group ? string(p, group) : TL_NONE,
                        parent ? string(p, parent) : TL_NONE};
    t = timeline_thread_at(p->b, p->now.thread);
    if (name)
        t->name = texts[0];
    t->group = texts[1];
    t->parent_group = texts[2];
    if ((group && strcmp(group, "system") == 0) || (name && strcmp(name, "DestroyJavaVM") == 0))
        t->flags |= TL_THREAD_SYSTEM;
}

static void begin_event(struct parser *p, const struct element *e, enum tl_event_kind kind)
{
    const char *thread = attribute(e, "threadIdRef"), *object = attribute(e, "objIdRef"),
               *timeout = attribute(e, "timeout");
    const char *timed_out = attribute(e, "isTimedOut"), *all = attribute(e, "isNotifyAll");
    if (!thread)
        thread = attribute(e, "threadId");
    if (!thread)
        thread = attribute(e, "transientThreadId");
    p->now = (struct tl_event){.time = time_of(attribute(e, "time")),
                               .thread = thread_number(p, thread),
                               .kind = (uint8_t)kind,
                               .object = TL_NONE,
                               .stack = TL_NONE,
                               .other = thread_number(p, attribute(e, "threadOwner"))};
    p->any = p->now.thread != TL_NONE;
    p->is_start = kind == TLE_THREAD_START;
    p->unpark = p->existing = false;
    p->n_frames = 0;
    p->has_object = object && *object && strcmp(object, "-1") != 0;
    p->object_id = p->has_object ? (uint32_t)strtoul(object, NULL, 10) : 0;
    p->class = string(p, "java.lang.Object");
    if (timeout)
        p->now.timeout_ms = (uint32_t)MIN(strtoull(timeout, NULL, 10), UINT32_MAX);
    if (timed_out && strcmp(timed_out, "1") == 0)
        p->now.flags |= TLE_TIMED_OUT;
    if (all && strcmp(all, "1") == 0)
        p->now.kind = TLE_NOTIFY_ALL;
    if (object && strcmp(object, "-1") == 0)
        p->now.kind = kind == TLE_WAIT ? TLE_SLEEP : kind == TLE_WAITED ? TLE_SLEPT : p->now.kind;
    if (p->any && p->is_start)
        begin_thread(p, e);
}

static void annotation(struct parser *p, const struct element *e)
{
    const char *name = attribute(e, "name"), *value = attribute(e, "value"),
               *line = attribute(e, "line");
    if (!p->any || !name || !value)
        return;
    if (strcmp(name, "class") == 0) {
        p->class = string(p, value);
    } else if (strcmp(name, "frame") == 0 && p->n_frames < FRAMES_MAX) {
        p->frames[p->n_frames++] =
            (struct tl_frame){string(p, value), line ? (uint32_t)strtoul(line, NULL, 10) : 0};
    } else if (strcmp(name, "kind") == 0) {
        p->unpark = strcmp(value, "unpark") == 0;
        p->existing = strstr(value, "existing") != NULL;
        if (strstr(value, "daemon"))
            timeline_thread_at(p->b, p->now.thread)->flags |= TL_THREAD_DAEMON;
        if (strcmp(value, "park") == 0)
            p->now.kind = p->now.kind == TLE_WAIT     ? TLE_PARK
                          : p->now.kind == TLE_WAITED ? TLE_PARKED
                                                      : p->now.kind;
    }
}

/* Completes an element, whose object is identified by class and id. */
static void end_event(struct parser *p)
{
    if (!p->any || p->error < 0)
        return;
    p->any = false;
    if (p->has_object) {
        int64_t o = timeline_object(p->b, p->object_id, p->class);
        p->error = o < 0 ? (int)o : 0;
        p->now.object = o < 0 ? TL_NONE : (uint32_t)o;
    }
    if (p->is_start && p->now.object != TL_NONE)
        timeline_thread_object(p->b, p->now.thread, p->now.object);
    if (p->existing)
        p->now.flags |= TLE_EXISTING;
    if (p->unpark) {
        /* the object is that of a thread; which one is known once all threads are */
        p->now.kind = TLE_UNPARK;
        p->now.spare = 1;
    }
    if (p->n_frames && p->error == 0) {
        int64_t s = timeline_stack(p->b, p->frames, p->n_frames);
        p->error = s < 0 ? (int)s : 0;
        p->now.stack = s < 0 ? TL_NONE : (uint32_t)s;
    }
    if (p->error == 0 && vec_push(&p->events, p->now) < 0)
        p->error = -ENOMEM;
}

static int read_elements(struct parser *p)
{
    struct element e;
    int r;
    while ((r = next_element(p, &e)) > 0 && p->error == 0) {
        if (strcmp(e.name, "annotation") == 0) {
            annotation(p, &e);
            continue;
        }
        if (e.end) {
            end_event(p);
            continue;
        }
        for (size_t i = 0; i < ARRAY_SIZE(elements); i++)
            if (strcmp(e.name, elements[i].name) == 0)
                begin_event(p, &e, elements[i].kind);
        if (e.empty)
            end_event(p);
    }
    return r < 0 ? r : p->error;
}

static int build(struct parser *p, struct timeline **ret)
{
    int r = tl_events_sort(p->events.data, p->events.len);
    uint64_t end = 0;
    for (size_t i = 0; r == 0 && i < p->events.len; i++) {
        struct tl_event *e = &p->events.data[i];
        if (e->spare && e->object != TL_NONE) {
            e->other = timeline_object_thread(p->b, e->object);
            e->object = TL_NONE;
            e->spare = 0;
        }
        end = e->time;
        r = timeline_add(p->b, e);
    }
    return r < 0 ? r : timeline_finish(p->b, end, ret);
}

int trcxml_read(struct timeline **ret, const void *bytes, size_t len, struct buf *why)
{
    struct parser *p = calloc(1, sizeof(*p));
    if (!p)
        return -ENOMEM;
    p->at = bytes;
    p->end = p->at + len;
    p->line = 1;
    p->values.limit = ATTRIBUTES_MAX * (VALUE_MAX + 8);
    int r = timeline_builder_new(&p->b);
    if (r == 0)
        r = read_elements(p);
    if (r == -EBADMSG)
        buf_printf(why, "line %u: this is not XML of the thread profiler", p->line);
    if (r == 0)
        r = build(p, ret);
    timeline_builder_free(p->b);
    buf_release(&p->values);
    vec_release(&p->events);
    free(p);
    return r;
}
