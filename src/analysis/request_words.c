/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/request_words.h"

#include <string.h>

/* The object of a class, which static synchronized methods lock, has "class Store" as its name. */
static void put_lock(struct buf *b, const char *object)
{
    static const char of_class[] = "class ";

    if (!object)
        buf_string(b, "a monitor");
    else if (strncmp(object, of_class, strlen(of_class)) == 0)
        buf_printf(b, "class lock of %s", object + strlen(of_class));
    else
        buf_printf(b, "lock of class %s", object);
}

void request_put_in(struct buf *b, const char *method)
{
    if (method)
        buf_printf(b, " in %s", method);
}

bool request_cause_is_lock(const struct group_cause *c)
{
    return c->cause == CAUSE_LOCK || c->cause == CAUSE_POOL ||
           (c->cause == CAUSE_PARK && c->object && strstr(c->object, "Lock"));
}

/* Appends what is known about the thing that was waited for. */
static void put_thing(struct buf *b, const struct group_cause *c)
{
    const char *object = c->object;
    switch (c->cause) {
    case CAUSE_CPU:
        buf_string(b, request_cause_text(c->cause));
        break;
    case CAUSE_RUNNABLE:
        buf_string(b, request_cause_text(c->cause));
        break;
    case CAUSE_THROTTLED:
        buf_string(b, "ready to run, but the container was out of CPU");
        break;
    case CAUSE_LOCK:
        put_lock(b, object);
        break;
    case CAUSE_PARK:
        if (object && request_cause_is_lock(c))
            put_lock(b, object);
        else
            buf_printf(b, object ? "parked on %s" : "parked", object);
        break;
    case CAUSE_QUEUE:
        buf_string(b, request_cause_text(c->cause));
        break;
    case CAUSE_POOL:
        buf_printf(b, object && *object ? "connection pool %s" : "connection pool", object);
        break;
    case CAUSE_IO:
        buf_string(b, object ? object : "reading or writing");
        break;
    case CAUSE_FAULT:
        buf_string(b, "pages of memory that were not there (page faults)");
        break;
    case CAUSE_SLEEP:
        buf_string(b, request_cause_text(c->cause));
        break;
    case CAUSE_GC:
        buf_string(b, request_cause_text(c->cause));
        break;
    case CAUSE_SAFEPOINT:
        buf_string(b, request_cause_text(c->cause));
        if (object)
            buf_printf(b, " (%s)", object);
        break;
    case CAUSE_CLASS_LOAD:
        if (object)
            buf_printf(b, "loading class %s", object);
        else
            buf_string(b, "loading classes");
        break;
    default:
        buf_string(b, request_cause_text(c->cause));
        break;
    }
}

void request_put_cause(struct buf *b, const struct group_cause *c)
{
    put_thing(b, c);
    if (c->cause != CAUSE_GC && c->cause != CAUSE_UNKNOWN)
        request_put_in(b, c->own.method);
}
