/* SPDX-License-Identifier: Apache-2.0 */
#include "answers/calls.h"

#include "answers/moments.h"
#include "base/json_check.h"
#include "base/pattern.h"
#include "options/names.h"
#include "options/signature.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Returns whether a thread was working at this time for one of the requests that are shown. */
static bool in_requests(const struct call_filter *o, int64_t java_thread, int64_t time_ns)
{
    return !o->times || request_times_hold(o->times, (uint64_t)java_thread, time_ns);
}

static bool in_span(const struct call_filter *o, int64_t time_ns)
{
    int64_t at = time_ns - o->start_ns;
    return (!o->from_ns || at >= (int64_t)o->from_ns) && (!o->to_ns || at < (int64_t)o->to_ns);
}

/*
 * Returns whether an item of a list is a method's name, with or without its parameters as Java
 * writes them.
 */
static bool has_parameters(const char *list, const char *method)
{
    _cleanup_free_ char *copy = list && strchr(list, '(') ? strdup(list) : NULL;
    size_t name = strcspn(method, "(");
    const struct str descriptor = {method + name, strlen(method + name)};
    bool has = false;
    if (copy)
        option_list_normalize(copy, ':');
    for (char *part, *rest = copy; !has && (part = strsep(&rest, ":"));) {
        size_t n = strcspn(part, "("), len = strlen(part + n);
        has =
            len && !signature_fault(part + n, len) && signature_matches(part + n, len, descriptor);
        part[n] = 0;
        has = has && pattern_match_one(part, method, name);
    }
    return has;
}

static bool wanted(const struct call *c, const struct call_filter *o)
{
    /* Matches with or without the parameters, as --trace does. */
    bool method = moment_text_matches(o->method, c->method) ||
                  pattern_match(o->method, c->method, strcspn(c->method, "(")) ||
                  has_parameters(o->method, c->method);
    return method && moment_text_matches(o->thread, c->thread) && c->ns >= (int64_t)o->min &&
           in_span(o, c->start_ns) && in_requests(o, c->java_thread, c->start_ns);
}

void call_read(const struct rec_event *e, struct call *ret)
{
    const struct rec_object *o = &e->object;
    *ret = (struct call){
        .method = rec_string(o, "method", "?"),
        .thread = moment_thread(o),
        .caller = rec_string(o, "caller", NULL),
        .arguments = rec_string(o, "arguments", "[]"),
        .returned = rec_string(o, "returned", NULL),
        .exception = rec_string(o, "exception", NULL),
        .message = rec_string(o, "message", NULL),
        .start_ns = e->start_ns,
        .ns = e->duration_ns,
        .depth = rec_long(o, "depth", 0),
        .java_thread = rec_long(o, "javaThreadId", 0),
        .has_this = rec_long(o, "hasThis", 0) != 0,
    };
}

struct call_arguments call_arguments(const struct call *c)
{
    struct call_arguments a = {{"", 0}, {"", 0}};
    const char *s = c->arguments;
    size_t n = strlen(s);
    if (n < 2 || s[0] != '[')
        return a;
    a.others = (struct str){s + 1, n - 2};
    if (!c->has_this)
        return a;
    size_t len = json_value_len(s + 1, n - 2);
    a.self = (struct str){s + 1, len};
    if (len)
        a.others = (struct str){s + 1 + len, n - 2 - len};
    if (len && a.others.len) /* the comma */
        a.others = (struct str){a.others.data + 1, a.others.len - 1};
    return a;
}

/* Writes JSON text from the recording unchanged, or as a string when it is not valid JSON. */
static void put_value(struct json *j, const char *key, const char *text, size_t len)
{
    json_key(j, key);
    if (!len || json_value_len(text, len) != len) {
        json_string_n(j, text, len);
        return;
    }
    json_raw(j, text, len);
}

static void put_call(struct json *j, const struct call *c,
                     void (*put)(struct json *, const char *, const char *, size_t))
{
    json_begin_object(j);
    json_key_string(j, "method", c->method);
    json_key_string(j, "thread", c->thread);
    json_key_i64(j, "start_ns", c->start_ns);
    json_key_i64(j, "ns", c->ns);
    json_key_i64(j, "depth", c->depth);
    struct call_arguments args = call_arguments(c);
    if (args.self.len)
        put(j, "this", args.self.data, args.self.len);
    _cleanup_(buf_release) struct buf list = BUF(SIZE_MAX / 4);
    buf_u8(&list, '[');
    buf_bytes(&list, args.others.data, args.others.len);
    buf_u8(&list, ']');
    put(j, "args", (const char *)list.data, list.len);
    if (c->returned)
        put(j, "return", c->returned, strlen(c->returned));
    json_key_string(j, "exception", c->exception);
    if (c->message)
        json_key_string(j, "message", c->message);
    json_key_string(j, "caller", c->caller);
    json_end_object(j);
}

void call_json(const struct call *c, struct json *j)
{
    put_call(j, c, put_value);
}

/* For events other than calls. */
static bool is_wanted(const struct call_filter *o, const struct rec_event *e)
{
    return !o->min && moment_wanted(e, o->thread, o->method) && in_span(o, e->start_ns) &&
           in_requests(o, rec_long(&e->object, "javaThreadId", 0), e->start_ns);
}

bool call_filter_passes(const struct call_filter *o, const struct rec_event *event,
                        struct call *ret)
{
    if (event->tag != SHOWN_CALL)
        return is_wanted(o, event);
    call_read(event, ret);
    return wanted(ret, o);
}

static const struct rec_select calls[] = {{"jvmscope.Call", 1}, {0}};

/* Writes the members of the open object. Returns the number of calls that were wanted. */
static int page_calls(struct recording *r, const struct call_filter *o, int64_t start,
                      struct json *j, uint64_t *ret_wanted)
{
    struct rec_mark *marks;
    size_t n;
    int e = recording_by_time(r, &marks, &n);
    if (e < 0)
        return e;
    json_key_array(j, "calls");
    uint64_t wanted_n = 0;
    for (size_t i = 0; i < n; i++) {
        struct rec_event event;
        struct call c;
        e = recording_at(r, marks[i].offset, &event);
        if (e < 0)
            break;
        call_read(&event, &c);
        c.start_ns -= start;
        if (wanted(&c, o) && wanted_n++ < o->limit)
            /* A reader finds out by itself whether a string is JSON. */
            put_call(j, &c, json_key_string_n);
    }
    json_end_array(j);
    free(marks);
    *ret_wanted = wanted_n;
    return e < 0 ? e : 0;
}

int calls_page_json(const char *path, const struct call_filter *o, struct json *j)
{
    _cleanup_(recording_closep) struct recording *r = NULL;
    const char *why = NULL;
    struct rec_event first;
    int e = recording_open(&r, path, &why);
    if (e == 0)
        e = recording_select(r, calls);
    if (e == 0)
        e = recording_next(r, &first);
    if (e <= 0)
        return e < 0 ? e : -ENOENT;
    recording_rewind(r);
    uint64_t n = 0;
    struct rec_info info;
    recording_info(r, &info);
    json_begin_object(j);
    e = page_calls(r, o, info.start_ns, j, &n);
    json_key_u64(j, "total", n);
    json_end_object(j);
    return e;
}
