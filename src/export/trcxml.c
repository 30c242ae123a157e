/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes the thread profiler's XML (TPTP thread profiling, "Extension for TPTP (Profiler) events
 * set"; doc/trcxml.dtd). A sleep is written as a monWait on object -1. The format has no event for
 * a park, which is written as a monWait with an annotation that says so. Times are seconds since
 * 1970; ids of threads and objects are numbers from 1.
 */
#include "base/json.h"
#include "base/parse.h"
#include "export/export.h"
#include "export/thread_slices.h"
#include "timeline/load.h"

#include <errno.h>
#include <string.h>

struct trcxml {
    const struct timeline *t;
    FILE *out;
};

static void put_escaped(FILE *out, const char *s)
{
    struct buf text = BUF(1 << 20);
    json_put_utf8(&text, s, strlen(s));
    const char *at = buf_str(&text);
    for (; *at; at++) {
        unsigned char c = (unsigned char)*at;
        if (strchr("<>&\"'", c))
            fprintf(out, "&#%d;", c);
        else if (c == '\t' || c == '\n' || c == '\r')
            fprintf(out, "&#%d;", c);
        else
            fputc(c < 0x20 ? '?' : c, out); /* XML allows no other control characters */
    }
    buf_release(&text);
}

static void attribute(struct trcxml *x, const char *name, const char *value)
{
    fprintf(x->out, " %s=\"", name);
    put_escaped(x->out, value);
    fputc('"', x->out);
}

static void attribute_id(struct trcxml *x, const char *name, uint32_t index)
{
    if (index != TL_NONE)
        fprintf(x->out, " %s=\"%llu\"", name, (unsigned long long)index + 1);
}

static void attribute_time(struct trcxml *x, uint64_t ns)
{
    uint64_t at = x->t->origin_ns + ns;
    fprintf(x->out, " time=\"%llu.%09llu\"", (unsigned long long)(at / 1000000000),
            (unsigned long long)(at % 1000000000));
}

/*
 * Ends the element. What no attribute can express is written as annotations: the class of the
 * object, a kind, the stack.
 */
static void put_annotations(struct trcxml *x, const char *element, uint32_t object, uint32_t stack,
                            const char *kind)
{
    const struct timeline *t = x->t;
    if (object == TL_NONE && stack == TL_NONE && !kind) {
        fputs("/>\n", x->out);
        return;
    }
    fputs(">", x->out);
    if (kind) {
        fputs("<annotation name=\"kind\"", x->out);
        attribute(x, "value", kind);
        fputs("/>", x->out);
    }
    if (object != TL_NONE) {
        fputs("<annotation name=\"class\"", x->out);
        attribute(x, "value", tl_object_class(t, object));
        fputs("/>", x->out);
    }
    for (uint32_t k = 0; stack != TL_NONE && k < t->stacks[stack].len; k++) {
        const struct tl_frame *f = &t->frames[t->stacks[stack].first + k];
        fputs("<annotation name=\"frame\"", x->out);
        attribute(x, "value", tl_string(t, f->method));
        fprintf(x->out, " line=\"%u\"/>", f->line);
    }
    fprintf(x->out, "</%s>\n", element);
}

static void thread_start(struct trcxml *x, uint32_t n)
{
    uint32_t thread = tl_node(x->t, n).thread;
    const struct tl_thread *t = &x->t->threads[thread];
    fputs("<threadStart", x->out);
    attribute_id(x, "threadId", thread);
    attribute_time(x, tl_node(x->t, n).time);
    if (t->group != TL_NONE)
        attribute(x, "groupName", tl_string(x->t, t->group));
    if (t->parent_group != TL_NONE)
        attribute(x, "parentName", tl_string(x->t, t->parent_group));
    attribute_id(x, "objIdRef", t->object);
    attribute(x, "threadName", tl_string(x->t, t->name));
    attribute_id(x, "collationValue", thread);
    fputs(" traceIdRef=\"1\"", x->out);
    char kind[64];
    snprintf(kind, sizeof(kind), "%s%s%s", tl_node(x->t, n).flags & TL_FIRST ? " existing" : "",
             t->flags & TL_THREAD_DAEMON ? " daemon" : "",
             t->flags & TL_THREAD_LEFT_OUT ? " left-out"
             : x->t->part_of               ? " part"
                                           : "");
    put_annotations(x, "threadStart", t->object, TL_NONE, *kind ? kind + 1 : NULL);
}

static void begin_of(struct trcxml *x, const char *element, const char *id_name, uint32_t n)
{
    fprintf(x->out, "<%s", element);
    attribute_id(x, id_name, tl_node(x->t, n).thread);
    attribute_time(x, tl_node(x->t, n).time);
}

/* Writes monWait, or monWaited at the node that ends the wait. */
static void wait_event(struct trcxml *x, const char *element, uint32_t wait, uint32_t n, bool end)
{
    const struct tl_context *c = tl_context_of(x->t, wait);
    enum tl_kind kind = tl_node(x->t, wait).kind;
    begin_of(x, element, "threadIdRef", n);
    if (kind == TL_SLEEP)
        fputs(" objIdRef=\"-1\"", x->out);
    else
        attribute_id(x, "objIdRef", c->object);
    fprintf(x->out, " timeout=\"%u\"", c->timeout_ms);
    if (end)
        fprintf(x->out, " isTimedOut=\"%d\"", tl_node(x->t, n).edge == TL_BY_TIMER);
    put_annotations(x, element, kind == TL_SLEEP ? TL_NONE : c->object, end ? TL_NONE : c->stack,
                    kind == TL_PARK ? "park" : NULL);
}

static void call_event(struct trcxml *x, const char *element, uint32_t n)
{
    const struct tl_context *c = tl_context_of(x->t, n);
    enum tl_kind kind = tl_node(x->t, n).kind;
    bool notify = kind == TL_NOTIFY || kind == TL_NOTIFY_ALL;
    uint32_t object = notify                ? c->object
                      : c->other == TL_NONE ? TL_NONE
                                            : x->t->threads[c->other].object;
    begin_of(x, element, "threadId", n);
    attribute_id(x, "objIdRef", object);
    if (notify)
        fprintf(x->out, " isNotifyAll=\"%d\"", kind == TL_NOTIFY_ALL);
    put_annotations(x, element, object, c->stack, kind == TL_UNPARK ? "unpark" : NULL);
}

/* Returns the wait that a running node ends, or TL_NONE. */
static uint32_t wait_before(const struct timeline *t, uint32_t n)
{
    uint32_t p = tl_node(t, n).prev, wait = TL_NONE;
    for (; p != TL_NONE && tl_node(t, p).flags & TL_BLOCKED; p = tl_node(t, p).prev)
        wait = p;
    return wait;
}

static void running_event(struct trcxml *x, uint32_t n)
{
    uint32_t wait = wait_before(x->t, n);
    if (wait == TL_NONE)
        return;
    switch ((enum tl_kind)tl_node(x->t, wait).kind) {
    case TL_WAIT_LOCK:
        begin_of(x, "monContendedEntered", "threadIdRef", n);
        attribute_id(x, "objIdRef", tl_context_of(x->t, wait)->object);
        put_annotations(x, "monContendedEntered", tl_context_of(x->t, wait)->object, TL_NONE, NULL);
        break;
    case TL_WAIT_OBJECT:
    case TL_WAIT_JOIN:
    case TL_SLEEP:
    case TL_PARK:
        wait_event(x, "monWaited", wait, n, true);
        break;
    default:
        return;
    }
    if (tl_node(x->t, n).edge == TL_BY_INTERRUPT) {
        begin_of(x, "threadInterrupted", "threadId", n);
        fputs("/>\n", x->out);
    }
}

static void put_node(struct trcxml *x, uint32_t n)
{
    const struct tl_node node = tl_node(x->t, n);
    const struct tl_context *c = tl_context_of(x->t, n);
    if (node.prev == TL_NONE)
        thread_start(x, n);
    if (x->t->threads[node.thread].flags & TL_THREAD_LEFT_OUT)
        return;
    bool first = node.prev == TL_NONE || !(tl_node(x->t, node.prev).flags & TL_BLOCKED);
    switch ((enum tl_kind)node.kind) {
    case TL_RUN:
        running_event(x, n);
        break;
    case TL_WAIT_LOCK:
        begin_of(x, "monContendedEnter", "threadIdRef", n);
        attribute_id(x, "objIdRef", c->object);
        attribute_id(x, "threadOwner", c->other);
        put_annotations(x, "monContendedEnter", c->object, c->stack, NULL);
        break;
    case TL_WAIT_OBJECT:
    case TL_WAIT_JOIN:
    case TL_SLEEP:
    case TL_PARK:
        if (first)
            wait_event(x, "monWait", n, n, false);
        break;
    case TL_DEAD:
        begin_of(x, "threadEnd", "threadIdRef", n);
        attribute_id(x, "collationValue", node.thread);
        fputs(" traceIdRef=\"1\"/>\n", x->out);
        break;
    case TL_STARTS:
        call_event(x, "callStart", n);
        break;
    case TL_INTERRUPTS:
        call_event(x, "callInterrupt", n);
        break;
    case TL_NOTIFY:
    case TL_NOTIFY_ALL:
        call_event(x, "callNotify", n);
        break;
    case TL_UNPARK:
        /* The closest event of the TPTP format is a notification of the thread's own object. */
        call_event(x, "callNotify", n);
        break;
    default:
        break;
    }
}

static int export_trcxml(const struct export_source *s, FILE *out, struct buf *why)
{
    _cleanup_(timeline_freep) struct timeline *t = NULL;
    int r = thread_slices_load(&t, s->path, why);
    if (r < 0)
        return r;
    if (t->part_of & TL_PART_OF_CLASSES) {
        buf_string(why, "this part of a recording has only the events of some classes, and the "
                        "format has no place for what is unknown");
        return -ENODATA;
    }
    struct trcxml x = {t, out};
    struct tl_reader nodes = {.t = t};
    uint64_t n_io = 0;
    fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<TRACE>\n", out);
    for (size_t i = 0; i < t->n_nodes; i++) {
        put_node(&x, (uint32_t)i);
        n_io += tl_read(&nodes, (uint32_t)i)->kind == TL_IO;
    }
    fputs("</TRACE>\n", out);
    if (n_io && s->note)
        buf_printf(
            s->note,
            "the output lacks %s for I/O, for which the format has no element: the threads run "
            "meanwhile; .json and .pftrace hold them",
            COUNT_TEXT(n_io, "waits"));
    return 0;
}

const struct export_format export_format_trcxml = {
    .extension = ".trcxml",
    .what = "the thread profiler's XML (TPTP)",
    .holds = HOLDS_WAITS,
    .write = export_trcxml,
    .threads = true,
};
