/* SPDX-License-Identifier: Apache-2.0 */
#include "timeline/trcxml.h"

#include "base/vec.h"
#include "timeline/builder.h"

#include <errno.h>
#include <expat.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Expat takes the length of a piece as an int. */
enum { FRAMES_MAX = 1024, PIECE = 1 << 20 };

struct parser {
    XML_Parser xml;
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

/* Returns the value of an attribute, or NULL. attributes are Expat's: names and values in turn. */
static const char *attribute(const XML_Char **attributes, const char *name)
{
    for (; *attributes; attributes += 2) {
        if (strcmp(attributes[0], name) == 0)
            return attributes[1];
    }
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

static void begin_thread(struct parser *p, const XML_Char **e)
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

static void begin_event(struct parser *p, const XML_Char **e, enum tl_event_kind kind)
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
    if (p->now.kind == TLE_SLEPT && p->now.timeout_ms && timed_out && strcmp(timed_out, "0") == 0)
        p->now.flags |= TLE_EARLY;
    if (p->any && p->is_start)
        begin_thread(p, e);
}

static void annotation(struct parser *p, const XML_Char **e)
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
        bool left_out = p->is_start && strstr(value, "left-out");
        if (left_out || (p->is_start && strstr(value, "part")))
            timeline_part_of(p->b, TL_PART_OF_THREADS);
        p->any = !left_out;
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
        /* the object is that of a thread, which is known once all threads have been read */
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

static void element_begins(void *ctx, const XML_Char *name, const XML_Char **attributes)
{
    struct parser *p = ctx;
    if (strcmp(name, "annotation") == 0) {
        annotation(p, attributes);
    } else {
        for (size_t i = 0; i < ARRAY_SIZE(elements); i++) {
            if (strcmp(name, elements[i].name) == 0)
                begin_event(p, attributes, elements[i].kind);
        }
    }
    if (p->error < 0)
        XML_StopParser(p->xml, XML_FALSE);
}

static void element_ends(void *ctx, const XML_Char *name)
{
    struct parser *p = ctx;
    if (strcmp(name, "annotation") != 0)
        end_event(p);
    if (p->error < 0)
        XML_StopParser(p->xml, XML_FALSE);
}

/*
 * Parses the text. The file of a program that was killed ends inside an element, and the elements
 * before it are used; therefore Expat never learns that the text is complete.
 */
static int read_elements(struct parser *p, const char *at, size_t len)
{
    enum XML_Status status = XML_STATUS_OK;
    XML_SetUserData(p->xml, p);
    XML_SetElementHandler(p->xml, element_begins, element_ends);
    for (size_t n; len && status == XML_STATUS_OK; at += n, len -= n) {
        n = MIN(len, (size_t)PIECE);
        status = XML_Parse(p->xml, at, (int)n, XML_FALSE);
    }
    if (p->error < 0)
        return p->error;
    if (status == XML_STATUS_OK)
        return 0;
    return XML_GetErrorCode(p->xml) == XML_ERROR_NO_MEMORY ? -ENOMEM : -EBADMSG;
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
    p->xml = XML_ParserCreate(NULL);
    int r = p->xml ? timeline_builder_new(&p->b) : -ENOMEM;
    if (r == 0)
        r = read_elements(p, bytes, len);
    if (r == -EBADMSG)
        buf_printf(why, "line %lu: this is not XML of the thread profiler: %s",
                   (unsigned long)XML_GetCurrentLineNumber(p->xml),
                   XML_ErrorString(XML_GetErrorCode(p->xml)));
    if (r == 0)
        r = build(p, ret);
    timeline_builder_free(p->b);
    if (p->xml)
        XML_ParserFree(p->xml);
    vec_release(&p->events);
    free(p);
    return r;
}
