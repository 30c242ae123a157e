/* SPDX-License-Identifier: Apache-2.0 */
/* The native methods of the probe class. */
#include "agent/capture/requests/follow.h"

#include "agent/capture/requests/sql.h"
#include "agent/session/budget.h"
#include "agent/stacks/names.h"
#include "base/map.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- texts of children, by numbers that the probe keeps ---- */

static struct {
    pthread_mutex_t lock;
    struct map number; /* of a constant */
    uint64_t constant[1 << NAME_BITS];
    unsigned n;
} numbered = {.lock = PTHREAD_MUTEX_INITIALIZER};

static int text_number(uint64_t constant)
{
    pthread_mutex_lock(&numbered.lock);
    const uint64_t *known = map_get(&numbered.number, constant);
    unsigned n = known ? (unsigned)*known : 0;
    if (!known && numbered.n + 1 < ARRAY_SIZE(numbered.constant)) {
        n = numbered.n + 1;
        if (map_put(&numbered.number, constant, n) < 0)
            n = 0;
        else
            numbered.constant[numbered.n = n] = constant;
    }
    pthread_mutex_unlock(&numbered.lock);
    return (int)n;
}

static uint64_t text_constant(int number)
{
    return number > 0 && (size_t)number < ARRAY_SIZE(numbered.constant) ? numbered.constant[number]
                                                                        : 0;
}

void follow_texts_forget(void)
{
    pthread_mutex_lock(&numbered.lock);
    map_release(&numbered.number);
    if (numbered.n)
        memset(numbered.constant, 0, sizeof(numbered.constant));
    numbered.n = 0;
    pthread_mutex_unlock(&numbered.lock);
}

/* ---- the probe's native methods ---- */

#define NATIVE(type, name) EXPORT type JNICALL Java_java_lang_JvmscopeRequests_##name
NATIVE(jlong, constant)(JNIEnv *, jclass, jint);
NATIVE(void, findCarriers)(JNIEnv *, jclass);
NATIVE(jint, name)(JNIEnv *, jclass, jint, jstring, jstring, jlong);
NATIVE(jlong, begin)(JNIEnv *, jclass, jint, jint, jlong);
NATIVE(void, rename)(JNIEnv *, jclass, jlong, jint);
NATIVE(void, status)(JNIEnv *, jclass, jlong, jint);
NATIVE(void, bytes)(JNIEnv *, jclass, jlong, jlong);
NATIVE(void, route)(JNIEnv *, jclass, jlong, jstring, jlong);
NATIVE(jlong, taskBegin)(JNIEnv *, jclass, jobject, jlong, jlong);
NATIVE(void, taskEnd)(JNIEnv *, jclass, jlong, jclass);
NATIVE(void, trace)(JNIEnv *, jclass, jlong, jstring);
NATIVE(void, pause)(JNIEnv *, jclass, jlong, jlong);
NATIVE(void, end)(JNIEnv *, jclass, jlong, jlong, jint, jclass);
NATIVE(jlong, work)(JNIEnv *, jclass, jlong, jlong, jint, jlong, jlong);
NATIVE(void, workEnd)(JNIEnv *, jclass, jlong, jlong);
NATIVE(void, withdraw)(JNIEnv *, jclass, jlong, jlong, jlong, jlong);
NATIVE(void, leave)(JNIEnv *, jclass, jlong, jboolean);
NATIVE(jint, text)(JNIEnv *, jclass, jint, jstring, jlong);
NATIVE(jlong, childBegin)(JNIEnv *, jclass, jlong, jint, jint);
NATIVE(void, calls)(JNIEnv *, jclass, jlong, jstring);
NATIVE(void, childLater)
(JNIEnv *, jclass, jlong, jlong, jlong, jint, jstring, jclass);
NATIVE(void, childEnd)(JNIEnv *, jclass, jlong, jlong, jlong, jclass);

NATIVE(jlong, constant)(JNIEnv *jni, jclass probe, jint which)
{
    const int64_t values[] = {(int64_t)(uintptr_t)follow.slots,
                              (int64_t)(uintptr_t)follow.handed,
                              (int64_t)(uintptr_t)follow.tasks,
                              (int64_t)(uintptr_t)follow.named,
                              follow.tid_offset,
                              (int64_t)(uintptr_t)&follow.overwritten,
                              (int64_t)(uintptr_t)&follow.any,
                              (int64_t)(uintptr_t)follow.requests.records,
                              (int64_t)sizeof(struct request),
                              (int64_t)(uintptr_t)follow.prepared,
                              (int64_t)(uintptr_t)follow.hot,
                              (int64_t)(uintptr_t)follow.spilled,
                              (int64_t)(uintptr_t)&follow.choice,
                              (int64_t)(uintptr_t)follow.draws};
    return which >= 0 && which < (jint)ARRAY_SIZE(values) ? values[which] : 0;
}

NATIVE(void, findCarriers)(JNIEnv *jni, jclass probe)
{
    follow_find_carriers(jni, probe);
}

/* Copies the first characters of a string as modified UTF-8. */
static void copy_text(JNIEnv *jni, jstring s, char *to, jsize max)
{
    jsize n = s ? MIN((*jni)->GetStringLength(jni, s), max) : 0;
    *to = 0;
    if (n > 0)
        (*jni)->GetStringUTFRegion(jni, s, 0, n, to);
    to[3 * n] = 0;
    vm_clear_exception(jni);
}

/* Stores the number of a name or text by its hash, where the probe finds it. */
static void remember(jlong key, unsigned number)
{
    const uint64_t mask = ~UINT64_C(0) >> NAME_BITS;
    atomic_store(&follow.named[(uint64_t)key >> 48], ((uint64_t)key & mask) << NAME_BITS | number);
}

NATIVE(jint, name)(JNIEnv *jni, jclass probe, jint kind, jstring method, jstring path, jlong key)
{
    enum { METHOD = 32, PATH = 512, ROUTE = 0x100 };

    char method_text[3 * METHOD + 1] = "", path_text[3 * PATH + 1] = "", text[REQUEST_NAME_SIZE];
    uint64_t cost = budget_begin();
    if (!path || !inside_enter(&follow_inside))
        return 0;
    copy_text(jni, method, method_text, METHOD);
    copy_text(jni, path, path_text, PATH);
    if (kind & ROUTE)
        request_join(method_text, path_text, text);
    else
        request_fold(method_text, path_text, text);
    unsigned number = request_name_find(kind & ~ROUTE, text);
    if (!(kind & ROUTE))
        request_name_example(number, path_text);
    remember(key, number);
    inside_leave(&follow_inside);
    budget_end(COST_REQUESTS, cost);
    return (jint)number;
}

NATIVE(jlong, begin)(JNIEnv *jni, jclass probe, jint kind, jint name, jlong java_id)
{
    uint64_t token = 0;
    uint64_t cost = budget_begin();
    if (kind < 0 || !inside_enter(&follow_inside))
        return 0;
    token =
        follow_request_begin(jni, (enum request_kind)kind, (unsigned)name, (uint64_t)java_id, 0);
    inside_leave(&follow_inside);
    budget_end(COST_REQUESTS, cost);
    return (jlong)token;
}

NATIVE(void, end)

(JNIEnv *jni, jclass probe, jlong token, jlong java_id, jint status, jclass exception)
{
    uint64_t cost = budget_begin();
    if (!token || TOKEN_SESSION((uint64_t)token) != follow.session || !inside_enter(&follow_inside))
        return;
    uint64_t now = now_ns();
    follow_end_if((uint64_t)java_id, follow_is_entry, (uint64_t)token, now);
    struct request *r = follow_request((uint64_t)token);
    if (r)
        follow_request_end(jni, r, (uint64_t)token, status, exception, now, (uint64_t)java_id);
    inside_leave(&follow_inside);
    budget_end(COST_REQUESTS, cost);
}

NATIVE(void, rename)(JNIEnv *jni, jclass probe, jlong token, jint name)
{
    struct request *r;
    uint64_t cost = budget_begin();
    if (!token || !inside_enter(&follow_inside))
        return;
    if (TOKEN_SESSION((uint64_t)token) == follow.session && (r = follow_request((uint64_t)token)) &&
        r->kind != REQUEST_METHOD) {
        request_name_renamed(r->name, (unsigned)name);
        r->name = (unsigned)name;
    }
    inside_leave(&follow_inside);
    budget_end(COST_REQUESTS, cost);
}

NATIVE(void, status)(JNIEnv *jni, jclass probe, jlong token, jint status)
{
    struct request *r;
    uint64_t cost = budget_begin();
    if (!token || !inside_enter(&follow_inside))
        return;
    if (TOKEN_SESSION((uint64_t)token) == follow.session && (r = follow_request((uint64_t)token)))
        r->status = status;
    inside_leave(&follow_inside);
    budget_end(COST_REQUESTS, cost);
}

NATIVE(void, bytes)(JNIEnv *jni, jclass probe, jlong token, jlong n)
{
    struct request *r;
    uint64_t cost = budget_begin();
    if (!token || !inside_enter(&follow_inside))
        return;
    if (TOKEN_SESSION((uint64_t)token) == follow.session && (r = follow_request((uint64_t)token)))
        r->bytes = n;
    inside_leave(&follow_inside);
    budget_end(COST_REQUESTS, cost);
}

NATIVE(void, route)(JNIEnv *jni, jclass probe, jlong token, jstring route, jlong key)
{
    enum { ROUTE_LENGTH = 256 };

    char method[REQUEST_NAME_SIZE] = "", given[3 * ROUTE_LENGTH + 1], text[REQUEST_NAME_SIZE];
    struct request *r;
    uint64_t cost = budget_begin();
    if (!token || !route || !inside_enter(&follow_inside))
        return;
    if (TOKEN_SESSION((uint64_t)token) == follow.session && (r = follow_request((uint64_t)token)) &&
        r->kind != REQUEST_METHOD) {
        const struct request_name *now = request_name_at(r->name);
        if (now)
            snprintf(method, sizeof(method), "%.*s", (int)strcspn(now->text, " "), now->text);
        copy_text(jni, route, given, ROUTE_LENGTH);
        request_join(method, given, text);
        unsigned name_before = r->name;
        r->name = request_name_find(r->kind, text);
        request_name_renamed(name_before, r->name);
        remember(key, r->name);
    }
    inside_leave(&follow_inside);
    budget_end(COST_REQUESTS, cost);
}

/*
 * Finds the ids in a W3C traceparent, VERSION-TRACE-SPAN-FLAGS, whose ids are lower-case
 * hexadecimal. Returns where the trace id begins, or NULL if the ids are not in their places.
 * Version, flags and anything after them are not examined.
 */
static const char *read_traceparent(const char *text, const char **ret_span)
{
    enum { VERSION = 2, FLAGS = 2 };

    static const char digits[] = "0123456789abcdef";
    const char *trace = text + VERSION + 1, *span = trace + TRACE_ID + 1;
    if (strlen(text) < VERSION + 1 + TRACE_ID + 1 + SPAN_ID + 1 + FLAGS || text[VERSION] != '-' ||
        strspn(trace, digits) != TRACE_ID || trace[TRACE_ID] != '-' ||
        strspn(span, digits) != SPAN_ID || span[SPAN_ID] != '-')
        return NULL;
    *ret_span = span;
    return trace;
}

static uint8_t hex_digit(char c)
{
    return (uint8_t)(c <= '9' ? c - '0' : c - 'a' + 10);
}

static void read_hex(const char *text, size_t bytes, uint8_t *ret)
{
    for (size_t i = 0; i < bytes; i++)
        ret[i] = (uint8_t)(hex_digit(text[2 * i]) << 4 | hex_digit(text[2 * i + 1]));
}

enum { HEADER_LENGTH = 64 };

NATIVE(void, trace)(JNIEnv *jni, jclass probe, jlong token, jstring header)
{
    char text[3 * HEADER_LENGTH + 1] = "";
    struct request *r;
    uint64_t cost = budget_begin();
    if (!token || !header || !inside_enter(&follow_inside))
        return;
    copy_text(jni, header, text, HEADER_LENGTH);
    const char *span, *ids = read_traceparent(text, &span);
    if (ids && TOKEN_SESSION((uint64_t)token) == follow.session &&
        (r = follow_request((uint64_t)token))) {
        memcpy(r->trace, ids, TRACE_ID);
        memcpy(r->span, span, SPAN_ID);
        r->trace[TRACE_ID] = r->span[SPAN_ID] = 0;
    }
    inside_leave(&follow_inside);
    budget_end(COST_REQUESTS, cost);
}

NATIVE(void, pause)(JNIEnv *jni, jclass probe, jlong token, jlong java_id)
{
    uint64_t cost = budget_begin();
    if (!token || !inside_enter(&follow_inside))
        return;
    follow_end_if((uint64_t)java_id, follow_is_entry, (uint64_t)token, now_ns());
    inside_leave(&follow_inside);
    budget_end(COST_REQUESTS, cost);
}

NATIVE(jlong, work)

(JNIEnv *jni, jclass probe, jlong java_id, jlong token, jint way, jlong time, jlong by)
{
    uint64_t number = 0;
    uint64_t cost = budget_begin();
    if (!token || !inside_enter(&follow_inside))
        return 0;
    number = follow_hand(jni, (uint64_t)java_id, (uint64_t)token, (enum request_way)way,
                         (uint64_t)time, (uint64_t)by);
    inside_leave(&follow_inside);
    budget_end(COST_REQUESTS, cost);
    return (jlong)number;
}

NATIVE(void, workEnd)(JNIEnv *jni, jclass probe, jlong number, jlong java_id)
{
    uint64_t cost = budget_begin();
    if (!number || !inside_enter(&follow_inside))
        return;
    follow_work_end((uint64_t)java_id, (uint64_t)number);
    inside_leave(&follow_inside);
    budget_end(COST_REQUESTS, cost);
}

NATIVE(void, taskEnd)(JNIEnv *jni, jclass probe, jlong java_id, jclass exception)
{
    uint64_t cost = budget_begin();
    if (!java_id || !inside_enter(&follow_inside))
        return;
    follow_task_end(jni, (uint64_t)java_id, exception);
    inside_leave(&follow_inside);
    budget_end(COST_REQUESTS, cost);
}

NATIVE(jlong, taskBegin)(JNIEnv *jni, jclass probe, jobject task, jlong java_id, jlong due)
{
    uint64_t token = 0;
    uint64_t cost = budget_begin();
    if (!task || !inside_enter(&follow_inside))
        return 0;
    unsigned name;
    if (task_name(jni, task, &name))
        token =
            follow_request_begin(jni, REQUEST_TASK, name, (uint64_t)java_id, (uint64_t)MAX(due, 0));
    inside_leave(&follow_inside);
    budget_end(COST_REQUESTS, cost);
    return (jlong)token;
}

NATIVE(void, withdraw)

(JNIEnv *jni, jclass probe, jlong java_id, jlong token, jlong time, jlong by)
{
    uint64_t cost = budget_begin();
    if (!token || !inside_enter(&follow_inside))
        return;
    follow_cancel(jni, (uint64_t)java_id, (uint64_t)token, (uint64_t)time, (uint64_t)by);
    inside_leave(&follow_inside);
    budget_end(COST_REQUESTS, cost);
}

NATIVE(void, leave)(JNIEnv *jni, jclass probe, jlong java_id, jboolean drop)
{
    uint64_t cost = budget_begin();
    if (!java_id || !inside_enter(&follow_inside))
        return;
    follow_leave(jni, (uint64_t)java_id, drop);
    inside_leave(&follow_inside);
    budget_end(COST_REQUESTS, cost);
}

/* ---- calls to other servers ---- */

/* Returns the number of a statement's or peer's text, or 0 if there is none. */
NATIVE(jint, text)(JNIEnv *jni, jclass probe, jint kind, jstring text, jlong key)
{
    enum { LENGTH = 2000, SHOWN = 300 };

    char given[3 * LENGTH + 1] = "", folded[SHOWN];
    uint64_t cost = budget_begin();
    if (!text || !inside_enter(&follow_inside))
        return 0;
    copy_text(jni, text, given, LENGTH);
    if (kind == CHILD_JDBC)
        sql_fold(given, folded, sizeof(folded));
    else
        snprintf(folded, sizeof(folded), "%s", given);
    uint64_t constant = request_text(folded);
    int number = constant ? text_number(constant) : 0;
    remember(key, (unsigned)number);
    inside_leave(&follow_inside);
    budget_end(COST_REQUESTS, cost);
    return number;
}

/* A child inside another child is not recorded. */
NATIVE(jlong, childBegin)(JNIEnv *jni, jclass probe, jlong java_id, jint kind, jint text)
{
    uint64_t number = 0;
    uint64_t cost = budget_begin();
    if (kind < 0 || !inside_enter(&follow_inside))
        return 0;
    struct work_slot s = follow_slot((uint64_t)java_id);
    struct work *w = s.in ? follow_work(s.in->work[s.i]) : NULL;
    if (w && !w->child.start) {
        w->child = (struct request_child){.start = now_ns(),
                                          .thread = w->as.thread,
                                          .name = text_constant(text),
                                          .peer = kind == CHILD_HTTP ? text_constant(text) : 0,
                                          .rows = -1,
                                          .kind = (enum request_child_kind)kind};
        number = atomic_load(&w->number);
    }
    inside_leave(&follow_inside);
    budget_end(COST_REQUESTS, cost);
    return (jlong)number;
}

/* Stores the trace and span that a call passes to the other server in its header traceparent. */
static void name_trace(struct request_child *c, JNIEnv *jni, jstring header)
{
    char text[3 * HEADER_LENGTH + 1] = "";
    copy_text(jni, header, text, HEADER_LENGTH);
    const char *span, *ids = read_traceparent(text, &span);
    if (!ids)
        return;
    read_hex(ids, sizeof(c->trace), c->trace);
    read_hex(span, sizeof(c->span), c->span);
}

/* Returns the recording's constant of a class's name; 0 for NULL. */
static uint64_t exception_text(jclass exception)
{
    char *text = exception ? names_class_text(exception) : NULL;
    uint64_t constant = text ? request_text(text) : 0;
    free(text);
    return constant;
}

/*
 * Records a call that was made earlier and whose response has arrived now; the request may have
 * ended before.
 */
NATIVE(void, childLater)

(JNIEnv *jni, jclass probe, jlong token, jlong thread, jlong start, jint text, jstring header,
 jclass exception)
{
    uint64_t cost = budget_begin();
    if (!token || !inside_enter(&follow_inside))
        return;
    if (TOKEN_SESSION((uint64_t)token) == follow.session) {
        struct piece p = {.is_child = true,
                          .child = {.start = (uint64_t)start,
                                    .ns = now_ns() - (uint64_t)start,
                                    .thread = (uint64_t)thread,
                                    .name = text_constant(text),
                                    .peer = text_constant(text),
                                    .rows = -1,
                                    .kind = CHILD_HTTP}};
        name_trace(&p.child, jni, header);
        p.child.exception = exception_text(exception);
        follow_keep((uint64_t)token, &p);
    }
    inside_leave(&follow_inside);
    budget_end(COST_REQUESTS, cost);
}

/*
 * Records the header with which the call in progress passes its trace and span to the other server.
 */
NATIVE(void, calls)(JNIEnv *jni, jclass probe, jlong java_id, jstring header)
{
    uint64_t cost = budget_begin();
    if (!header || !inside_enter(&follow_inside))
        return;
    struct work_slot s = follow_slot((uint64_t)java_id);
    struct work *w = s.in ? follow_work(s.in->work[s.i]) : NULL;
    if (w && w->child.start && w->child.kind == CHILD_HTTP)
        name_trace(&w->child, jni, header);
    inside_leave(&follow_inside);
    budget_end(COST_REQUESTS, cost);
}

NATIVE(void, childEnd)

(JNIEnv *jni, jclass probe, jlong number, jlong java_id, jlong rows, jclass exception)
{
    uint64_t cost = budget_begin();
    if (!number || !inside_enter(&follow_inside))
        return;
    struct work *w =
        follow_find(follow_slot((uint64_t)java_id), follow_is_number, (uint64_t)number);
    if (w && w->child.start) {
        w->child.ns = now_ns() - w->child.start;
        w->child.rows = rows;
        w->child.exception = exception_text(exception);
        follow_keep(w->request, &(struct piece){.is_child = true, .child = w->child});
        w->child.start = 0;
    }
    inside_leave(&follow_inside);
    budget_end(COST_REQUESTS, cost);
}
