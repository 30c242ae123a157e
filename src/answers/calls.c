/* SPDX-License-Identifier: Apache-2.0 */
#include "answers/calls.h"

#include "answers/moments.h"
#include "base/json_check.h"
#include "base/map.h"
#include "base/pattern.h"
#include "base/vec.h"
#include "options/names.h"
#include "options/signature.h"

#include <ctype.h>
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

static void to_lower(char *s)
{
    for (; *s; s++)
        if (isascii((unsigned char)*s))
            *s = (char)tolower((unsigned char)*s);
}

bool call_name_matches(const char *typed, const char *method)
{
    if (!typed)
        return true;
    _cleanup_free_ char *pattern = strdup(typed);
    _cleanup_free_ char *name = strndup(method, strcspn(method, "("));
    if (!pattern || !name)
        return false;
    to_lower(pattern);
    to_lower(name);
    return pattern_match_one(pattern, name, strlen(name));
}

static bool wanted(const struct call *c, const struct call_filter *o)
{
    /* Matches with or without the parameters, as --trace does. */
    bool method = moment_text_matches(o->method, c->method) ||
                  pattern_match(o->method, c->method, strcspn(c->method, "(")) ||
                  has_parameters(o->method, c->method);
    bool thread = moment_text_matches(o->thread, c->thread) &&
                  (!o->thread_name || strcmp(o->thread_name, c->thread ? c->thread : "") == 0);
    return method && thread && call_name_matches(o->typed_name, c->method) &&
           c->ns >= (int64_t)o->min && (!o->threw || c->exception) && in_span(o, c->start_ns) &&
           in_requests(o, c->java_thread, c->start_ns);
}

/* A call that the JDK's recorder traced (JDK 25 and later), without values. */
static void read_traced(const struct rec_event *e, struct call *ret)
{
    const struct rec_object *o = &e->object;
    const struct rec_method *method = rec_method(o, "method");
    const struct rec_thread *thread = rec_thread(o, "eventThread");
    *ret = (struct call){
        .method = ret->text,
        .thread = moment_thread(o),
        .start_ns = e->start_ns,
        .ns = e->duration_ns,
        .depth = -1,
        .java_thread = thread ? thread->java_id : 0,
    };
    snprintf(ret->text, sizeof(ret->text), "%s%s", method ? method->full : "?",
             method && method->descriptor ? method->descriptor : "()");
}

void call_read(const struct rec_event *e, struct call *ret)
{
    const struct rec_object *o = &e->object;
    if (strcmp(o->type->name, "jdk.MethodTrace") == 0) {
        read_traced(e, ret);
        return;
    }
    *ret = (struct call){
        .method = rec_string(o, "method", "?"),
        .thread = moment_thread(o),
        .caller = rec_string(o, "caller", NULL),
        .arguments = rec_string(o, "arguments", "[]"),
        .returned = rec_string(o, "returned", NULL),
        .exception = rec_string(o, "exception", NULL),
        .message = rec_string(o, "message", NULL),
        .start_ns = e->start_ns,
        .ns = e->duration_ns - rec_long(o, "reading", 0),
        .reading_ns = rec_long(o, "reading", 0),
        .depth = rec_long(o, "depth", 0),
        .java_thread = rec_long(o, "javaThreadId", 0),
        .has_this = rec_long(o, "hasThis", 0) != 0,
    };
}

struct call_arguments call_arguments(const struct call *c)
{
    struct call_arguments a = {{"", 0}, {"", 0}};
    const char *s = c->arguments ? c->arguments : "";
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

/* Writes the members of the open object. */
static void put_call(struct json *j, const struct call *c,
                     void (*put)(struct json *, const char *, const char *, size_t))
{
    json_key_string(j, "method", c->method);
    json_key_string(j, "thread", c->thread);
    json_key_i64(j, "start_ns", c->start_ns);
    json_key_i64(j, "ns", c->ns);
    if (c->reading_ns)
        json_key_i64(j, "reading_ns", c->reading_ns);
    if (c->depth >= 0)
        json_key_i64(j, "depth", c->depth);
    struct call_arguments args = call_arguments(c);
    if (args.self.len)
        put(j, "this", args.self.data, args.self.len);
    _cleanup_(buf_release) struct buf list = BUF(SIZE_MAX / 4);
    buf_u8(&list, '[');
    buf_bytes(&list, args.others.data, args.others.len);
    buf_u8(&list, ']');
    if (c->arguments)
        put(j, "args", (const char *)list.data, list.len);
    if (c->returned)
        put(j, "return", c->returned, strlen(c->returned));
    if (c->arguments)
        json_key_string(j, "exception", c->exception);
    if (c->message)
        json_key_string(j, "message", c->message);
    if (c->arguments)
        json_key_string(j, "caller", c->caller);
}

void call_json(const struct call *c, struct json *j)
{
    json_begin_object(j);
    put_call(j, c, put_value);
    json_end_object(j);
}

/* For events other than calls. */
static bool is_wanted(const struct call_filter *o, const struct rec_event *e)
{
    return !o->min && !o->threw && moment_wanted(e, o->thread, o->method) &&
           in_span(o, e->start_ns) &&
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

/* The calls of one method that the filter selects; its number is that of its name in `names`. */
struct method_sum {
    uint64_t calls, threw, total_ns, self_ns;
    int64_t max_ns;
};

/* A call whose callees may still follow. */
struct open_call {
    int64_t depth, end_ns;
    uint64_t self_ns; /* unsigned, like the sums, because times of a damaged file may overflow */
    size_t shown;     /* number among the calls that are written, or SIZE_MAX */
    int64_t method;   /* number, or -1 when the filter does not select the call */
    uint64_t callees; /* recorded calls directly below it */
};

struct call_thread {
    VEC(struct open_call) open;
};

/* The last call of a method on a thread that was not within another selected call of the method. */
struct outer_call {
    int64_t depth, end_ns;
};

/* A call that is written. */
struct shown_call {
    uint64_t offset, callees, self_ns;
};

/* What the page shows of all calls, although it contains only the first of them. */
struct page_calls {
    struct strpool names, thread_names;
    VEC(struct method_sum) methods; /* in the order of `names` */
    VEC(struct call_thread) threads;
    struct map threads_by_id; /* see thread_of() */
    VEC(struct outer_call) outer;
    struct map outer_of; /* by number of the thread << 32 | number of the method */
    VEC(struct shown_call) shown;
    uint64_t wanted;
};

static void page_calls_release(struct page_calls *p)
{
    for (size_t i = 0; i < p->threads.len; i++)
        vec_release(&p->threads.data[i].open);
    vec_release(&p->threads);
    map_release(&p->threads_by_id);
    vec_release(&p->outer);
    map_release(&p->outer_of);
    vec_release(&p->methods);
    vec_release(&p->shown);
    strpool_release(&p->names);
    strpool_release(&p->thread_names);
}

/* Reading the values for the recording took a part of the call that c->ns does not contain. */
static int64_t end_of(const struct call *c)
{
    return (int64_t)((uint64_t)c->start_ns + (uint64_t)c->ns + (uint64_t)c->reading_ns);
}

/* Adds the last open call of a thread to the sums, because no callee of it can follow. */
static void close_call(struct page_calls *p, struct call_thread *t)
{
    const struct open_call *c = &t->open.data[--t->open.len];
    if (c->method >= 0)
        p->methods.data[c->method].self_ns += c->self_ns;
    if (c->shown == SIZE_MAX)
        return;
    p->shown.data[c->shown].self_ns = c->self_ns;
    p->shown.data[c->shown].callees = c->callees;
}

/*
 * Returns the number of a call's thread, or -ENOMEM. Threads of the same name differ in their Java
 * number, which a damaged recording may lack.
 */
static int64_t thread_of(struct page_calls *p, const struct call *c)
{
    const char *name = c->thread ? c->thread : "";
    int64_t i = strpool_add(&p->thread_names, name, strlen(name));
    if (i < 0)
        return i;
    uint64_t id = c->java_thread > 0 ? (uint64_t)c->java_thread : UINT64_MAX - (uint64_t)i;
    bool added;
    uint64_t *number = map_at(&p->threads_by_id, id, p->threads.len, &added);
    if (!number || (added && vec_extend(&p->threads, 1) < 0))
        return -ENOMEM;
    return (int64_t)*number;
}

/*
 * Returns 1 for a call of a method within another selected call of the method on its thread, 0 for
 * one that is not, or -ENOMEM.
 */
static int is_within(struct page_calls *p, const struct call *c, int64_t thread, int64_t method)
{
    bool added;
    uint64_t *at =
        map_at(&p->outer_of, (uint64_t)thread << 32 | (uint64_t)method, p->outer.len, &added);
    if (!at || (added && vec_extend(&p->outer, 1) < 0))
        return -ENOMEM;
    struct outer_call *outer = &p->outer.data[*at];
    if (!added && c->depth > outer->depth && c->start_ns <= outer->end_ns)
        return 1;
    *outer = (struct outer_call){c->depth, end_of(c)};
    return 0;
}

/* Counts a selected call for its method. Returns the method's number or -ENOMEM. */
static int64_t count_call(struct page_calls *p, const struct call *c, int64_t thread)
{
    int64_t i = strpool_add(&p->names, c->method, strcspn(c->method, "("));
    if (i < 0 || ((size_t)i == p->methods.len && vec_extend(&p->methods, 1) < 0))
        return -ENOMEM;
    int within = is_within(p, c, thread, i);
    if (within < 0)
        return within;
    struct method_sum *m = &p->methods.data[i];
    m->calls++;
    m->threw += c->exception != NULL;
    m->total_ns += within ? 0 : (uint64_t)c->ns;
    m->max_ns = MAX(m->max_ns, c->ns);
    return i;
}

/*
 * Adds the next call in order of time. Its caller is the last call of its thread before it that is
 * less deep, if that still ran.
 */
static int add_call(struct page_calls *p, const struct call *c, const struct call_filter *o,
                    uint64_t offset)
{
    struct open_call new = {.depth = c->depth,
                            .end_ns = end_of(c),
                            .self_ns = (uint64_t)c->ns,
                            .shown = SIZE_MAX,
                            .method = -1};
    int64_t thread = thread_of(p, c);
    if (thread < 0)
        return -ENOMEM;
    struct call_thread *t = &p->threads.data[thread];
    while (t->open.len && t->open.data[t->open.len - 1].depth >= c->depth)
        close_call(p, t);
    struct open_call *caller = t->open.len ? &t->open.data[t->open.len - 1] : NULL;
    if (caller && caller->end_ns >= c->start_ns) {
        caller->self_ns -= (uint64_t)c->ns;
        caller->callees++;
    }
    if (wanted(c, o)) {
        new.method = count_call(p, c, thread);
        if (new.method < 0)
            return -ENOMEM;
        if (p->wanted++ < o->limit) {
            new.shown = p->shown.len;
            if (vec_push(&p->shown, ((struct shown_call){offset, 0, 0})) < 0)
                return -ENOMEM;
        }
    }
    return vec_push(&t->open, new);
}

static int sum_calls(struct page_calls *p, struct recording *r, const struct call_filter *o)
{
    _cleanup_free_ struct rec_mark *marks = NULL;
    size_t n = 0;
    int e = recording_by_time(r, &marks, &n);
    for (size_t i = 0; e >= 0 && i < n; i++) {
        struct rec_event event;
        e = recording_at(r, marks[i].offset, &event);
        if (e < 0)
            break;
        struct call c;
        call_read(&event, &c);
        e = add_call(p, &c, o, marks[i].offset);
    }
    for (size_t i = 0; i < p->threads.len; i++)
        while (p->threads.data[i].open.len)
            close_call(p, &p->threads.data[i]);
    return e < 0 ? e : 0;
}

static int put_shown(struct json *j, const struct page_calls *p, struct recording *r,
                     int64_t start_ns)
{
    int e = 0;
    json_key_array(j, "calls");
    for (size_t i = 0; e == 0 && i < p->shown.len; i++) {
        const struct shown_call *shown = &p->shown.data[i];
        struct rec_event event;
        struct call c;
        e = recording_at(r, shown->offset, &event);
        if (e < 0)
            break;
        call_read(&event, &c);
        c.start_ns -= start_ns;
        json_begin_object(j);
        /* Strings that contain JSON are not marked: readers detect them. */
        put_call(j, &c, json_key_string_n);
        json_key_i64(j, "self_ns", (int64_t)shown->self_ns);
        json_key_u64(j, "callees", shown->callees);
        json_key_i64(j, "java_thread", c.java_thread);
        json_end_object(j);
    }
    json_end_array(j);
    return e;
}

static void put_sums(struct json *j, const struct page_calls *p)
{
    json_key_u64(j, "total", p->wanted);
    json_key_array(j, "methods");
    for (size_t i = 0; i < p->methods.len; i++) {
        const struct method_sum *m = &p->methods.data[i];
        const struct str name = strpool_get(&p->names, i);
        json_begin_object(j);
        json_key_string_n(j, "name", name.data, name.len);
        json_key_u64(j, "calls", m->calls);
        json_key_i64(j, "total", (int64_t)m->total_ns);
        json_key_i64(j, "self", (int64_t)m->self_ns);
        json_key_i64(j, "max", m->max_ns);
        json_key_u64(j, "threw", m->threw);
        json_end_object(j);
    }
    json_end_array(j);
    json_key_array(j, "threads");
    for (size_t i = 0; i < p->thread_names.strings.len; i++) {
        const struct str name = strpool_get(&p->thread_names, i);
        json_string_n(j, name.data, name.len);
    }
    json_end_array(j);
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
    struct rec_info info;
    recording_info(r, &info);
    _cleanup_(page_calls_release) struct page_calls sums = {0};
    e = sum_calls(&sums, r, o);
    if (e < 0)
        return e;
    json_begin_object(j);
    e = put_shown(j, &sums, r, info.start_ns);
    put_sums(j, &sums);
    json_end_object(j);
    return e;
}
