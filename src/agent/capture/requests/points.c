/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where requests begin and end, and where work is handed from one thread to another: a table of
 * methods of the JDK and of servers, and the code that is inserted into each. All of it is a call
 * of the probe with what the method has at hand.
 */
#include "agent/capture/requests/requests.h"

#include "agent/instrument/choice.h"
#include "agent/instrument/instrument.h"
#include "agent/instrument/probe_class.h"
#include "classfile/debug.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PROBE "java/lang/JvmscopeRequests"
#define JUC   "java/util/concurrent/"

#define TOMCAT      "org/apache/catalina/"
#define TOMCAT_POOL "org/apache/tomcat/util/threads/ThreadPoolExecutor"
#define JETTY_POOL  "org/eclipse/jetty/util/thread/QueuedThreadPool"

#define NETTY_LOOP "io/netty/util/concurrent/SingleThreadEventExecutor"

#define HTTP_EXCHANGE "com/sun/net/httpserver/HttpExchange"
#define HEADERS       "com/sun/net/httpserver/Headers"

struct point {
    /* a star at the end of the class's name stands for the rest */
    const char *class, *method;
    const char *descriptor; /* what it begins with; NULL: any */
    int (*edit)(const struct instrument_class *c, struct edit *e, const struct point *p);
    const char *probe; /* method of the probe class */
    const char *type;  /* the parameter to pass; the owner of the call within the method */
    int number;        /* an enum request_way or request_kind */
};

/* The patterns of the option without "auto" and (..), separated by ':'; NULL: none. */
static char *methods;

static bool starts_with(struct str s, const char *with)
{
    size_t n = strlen(with);
    return s.len >= n && memcmp(s.data, with, n) == 0;
}

/* ---- pieces of code ---- */

static int call(struct edit *e, struct buf *code, const char *name, const char *descriptor)
{
    int ref = rewrite_methodref(e->rewrite, PROBE, name, descriptor);
    if (ref >= 0)
        code_invokestatic(code, ref);
    return MIN(ref, 0);
}

static int call_virtual(struct edit *e, struct buf *code, const char *owner, const char *name,
                        const char *descriptor)
{
    int ref = rewrite_methodref(e->rewrite, owner, name, descriptor);
    if (ref >= 0)
        code_ref(code, OP_INVOKEVIRTUAL, ref);
    return MIN(ref, 0);
}

/* A method of an interface without parameters. */
static int call_interface(struct edit *e, struct buf *code, const char *owner, const char *name,
                          const char *descriptor)
{
    int ref = rewrite_interface_methodref(e->rewrite, owner, name, descriptor);
    if (ref < 0)
        return ref;
    code_ref(code, OP_INVOKEINTERFACE, ref);
    buf_u8(code, 1);
    buf_u8(code, 0);
    return 0;
}

static int before_returns(struct edit *e, const struct buf *code, unsigned stack)
{
    int r = 0;
    for (struct insn i = {0}; r == 0 && edit_next(e, &i);)
        if (op_info[i.op] & OP_IS_RETURN)
            r = edit_insert(e, EDIT_BEFORE, i.pc, 0, code, stack);
    return r;
}

/* The slot of the first parameter of a type, "java/lang/Runnable"; -1: it has none. */
static int parameter(const struct edit *e, struct str descriptor, const char *type)
{
    int slot = !(e->method->access & ACC_STATIC);
    unsigned slots;
    size_t n;
    for (size_t at = 1; (n = descriptor_next(descriptor, at, &slots)); at += n, slot += (int)slots)
        if (n == strlen(type) + 2 && descriptor.data[at] == 'L' &&
            memcmp(descriptor.data + at + 1, type, n - 2) == 0)
            return slot;
    return -1;
}

static int slot_of(const struct instrument_class *c, const struct edit *e, const struct point *p)
{
    return p->type ? parameter(e, class_utf8(c->file, e->method->descriptor), p->type) : 0;
}

/* ---- hand-overs ---- */

/* At the beginning: the parameter of a type, or `this`, is handed over. */
static int edit_handed(const struct instrument_class *c, struct edit *e, const struct point *p)
{
    _cleanup_(buf_release) struct buf code = BUF(32);
    int slot = slot_of(c, e, p);
    if (slot < 0)
        return 0;
    code_load(&code, 'A', (unsigned)slot);
    int r = call(e, &code, p->probe, "(Ljava/lang/Object;)V");
    return r ? r : edit_insert(e, EDIT_ENTRY, 0, 0, &code, 1) ?: 1;
}

static int edit_starting(const struct instrument_class *c, struct edit *e, const struct point *p)
{
    _cleanup_(buf_release) struct buf code = BUF(32);
    code_load(&code, 'A', 0);
    int r = call(e, &code, "starting", "(Ljava/lang/Thread;)V");
    return r ? r : edit_insert(e, EDIT_ENTRY, 0, 0, &code, 1) ?: 1;
}

/* The same with the pool, which may be that of the virtual threads. */
static int edit_pushed(const struct instrument_class *c, struct edit *e, const struct point *p)
{
    _cleanup_(buf_release) struct buf code = BUF(32);
    int slot = slot_of(c, e, p);
    if (slot < 0 || e->method->access & ACC_STATIC)
        return 0;
    code_load(&code, 'A', 0);
    code_load(&code, 'A', (unsigned)slot);
    int r = call(e, &code, "pushed", "(Ljava/lang/Object;Ljava/lang/Object;)V");
    return r ? r : edit_insert(e, EDIT_ENTRY, 0, 0, &code, 2) ?: 1;
}

/* A pool's thread begins, or looks for a task. */
static int edit_first(struct edit *e, const char *probe)
{
    _cleanup_(buf_release) struct buf code = BUF(32);
    int r = call(e, &code, probe, "()V");
    return r ? r : edit_insert(e, EDIT_ENTRY, 0, 0, &code, 0) ?: 1;
}

static int edit_pooled(const struct instrument_class *c, struct edit *e, const struct point *p)
{
    return edit_first(e, "pooled");
}

static int edit_idle(const struct instrument_class *c, struct edit *e, const struct point *p)
{
    return edit_first(e, "idle");
}

/*
 * The method returns the next task of a pool's thread. When the recording begins, such threads are
 * in a loop whose old code they never leave, but they call this method anew for each task.
 */
static int edit_takes(const struct instrument_class *c, struct edit *e, const struct point *p)
{
    _cleanup_(buf_release) struct buf code = BUF(32);
    int r = edit_first(e, "idle");
    r = MIN(r, 0);
    code_op(&code, OP_DUP);
    r = r ? r : code_int(e->rewrite, &code, p->number);
    r = r ? r : call(e, &code, "taken", "(Ljava/lang/Object;I)V");
    return r ? r : before_returns(e, &code, 2) ?: 1;
}

/* java.util.TaskQueue.removeMin(), by which the timer's thread takes queue[1] */
static int edit_timer_takes(const struct instrument_class *c, struct edit *e, const struct point *p)
{
    _cleanup_(buf_release) struct buf code = BUF(32);
    int field =
        rewrite_fieldref(e->rewrite, "java/util/TaskQueue", "queue", "[Ljava/util/TimerTask;");
    int r = MIN(field, 0);
    if (r == 0 && !class_find_field(c->file, "queue", &(struct str){0}, &(uint16_t){0}))
        return 0;
    code_load(&code, 'A', 0);
    code_ref(&code, OP_GETFIELD, field);
    r = r ? r : code_int(e->rewrite, &code, 1);
    code_op(&code, OP_AALOAD);
    r = r ? r : code_int(e->rewrite, &code, p->number);
    r = r ? r : call(e, &code, "taken", "(Ljava/lang/Object;I)V");
    return r ? r : edit_insert(e, EDIT_ENTRY, 0, 0, &code, 2) ?: 1;
}

/* Timer.sched(TimerTask task, long time, long period) */
static int edit_timer(const struct instrument_class *c, struct edit *e, const struct point *p)
{
    _cleanup_(buf_release) struct buf code = BUF(32);
    code_load(&code, 'A', 1);
    code_load(&code, 'J', 2);
    code_load(&code, 'J', 4);
    int r = call(e, &code, "scheduled", "(Ljava/lang/Object;JJ)V");
    return r ? r : edit_insert(e, EDIT_ENTRY, 0, 0, &code, 5) ?: 1;
}

/* A constructor's object exists at its end. */
static int edit_made(const struct instrument_class *c, struct edit *e, const struct point *p)
{
    _cleanup_(buf_release) struct buf code = BUF(32);
    code_load(&code, 'A', 0);
    int r = call(e, &code, p->probe, "(Ljava/lang/Object;)V");
    return r ? r : before_returns(e, &code, 1) ?: 1;
}

/* A work's number; 0 outside of it. */
static int work_local(struct edit *e)
{
    _cleanup_(buf_release) struct buf code = BUF(16);
    int local = edit_local(e, 'J');
    if (local < 0)
        return local;
    code_op(&code, OP_LCONST_0);
    code_store(&code, 'J', (unsigned)local);
    int r = edit_insert(e, EDIT_ENTRY, 0, 0, &code, 2);
    return r < 0 ? r : local;
}

static int work_ends(struct edit *e, int local, struct buf *code)
{
    code_load(code, 'J', (unsigned)local);
    return call(e, code, "ended", "(J)V");
}

static int work_is_left(struct edit *e, int local)
{
    _cleanup_(buf_release) struct buf code = BUF(32);
    int r = work_ends(e, local, &code);
    code_op(&code, OP_ATHROW);
    return r ? r : edit_catch_all(e, &code, 2);
}

/*
 * The method is the loop of a pool's thread and calls run() of each task: around this call the
 * thread works for whoever submitted the task.
 */
static int edit_runs(const struct instrument_class *c, struct edit *e, const struct point *p)
{
    _cleanup_(buf_release) struct buf before = BUF(32), after = BUF(32);
    int r = edit_pooled(c, e, p), local = r < 0 ? r : work_local(e), found = 0;
    r = MIN(local, 0);
    if (r < 0)
        return r;
    code_op(&before, OP_DUP);
    r = code_int(e->rewrite, &before, p->number);
    r = r ? r : call(e, &before, "started", "(Ljava/lang/Object;I)J");
    code_store(&before, 'J', (unsigned)local);
    r = r ? r : work_ends(e, local, &after);
    code_op(&after, OP_LCONST_0);
    code_store(&after, 'J', (unsigned)local);
    for (struct insn i = {0}; r == 0 && edit_next(e, &i);) {
        struct class_member m;
        if ((i.op != OP_INVOKEVIRTUAL && i.op != OP_INVOKEINTERFACE) ||
            !class_member(c->file, insn_constant(&i), &m) || !str_is(m.name, "run") ||
            !str_is(m.descriptor, "()V") || !str_is(m.owner, p->type))
            continue;
        r = edit_insert(e, EDIT_BEFORE, i.pc, 0, &before, 2);
        r = r ? r : edit_insert(e, EDIT_AFTER, i.pc, 0, &after, 2);
        found = 1;
    }
    return r ? r : found ? work_is_left(e, local) ?: 1 : 1;
}

/* The method itself is the task's work: that of `this`, or of the parameter of a type. */
static int edit_is_run(const struct instrument_class *c, struct edit *e, const struct point *p)
{
    _cleanup_(buf_release) struct buf first = BUF(32), last = BUF(32);
    int local = edit_local(e, 'J'), slot = slot_of(c, e, p);
    if (local < 0 || slot < 0)
        return MIN(local, 0);
    code_load(&first, 'A', (unsigned)slot);
    int r = code_int(e->rewrite, &first, p->number);
    r = r ? r : call(e, &first, p->probe, "(Ljava/lang/Object;I)J");
    code_store(&first, 'J', (unsigned)local);
    r = r ? r : edit_insert(e, EDIT_ENTRY, 0, 0, &first, 2);
    r = r ? r : work_ends(e, local, &last);
    r = r ? r : before_returns(e, &last, 2);
    return r ? r : work_is_left(e, local) ?: 1;
}

/* ---- requests ---- */

/* `first` leaves the token of a request; `status` leaves it and pushes an int, or is empty. */
static int edit_request(struct edit *e, struct buf *first, unsigned stack, const struct buf *status)
{
    _cleanup_(buf_release) struct buf last = BUF(64), left = BUF(32);
    int local = edit_local(e, 'J'), r = MIN(local, 0);
    if (r < 0)
        return r;
    code_store(first, 'J', (unsigned)local);
    r = edit_insert(e, EDIT_ENTRY, 0, 0, first, stack);
    code_load(&last, 'J', (unsigned)local);
    if (status)
        buf_bytes(&last, status->data, status->len);
    r = r ? r : call(e, &last, "exit", status ? "(JI)V" : "(J)V");
    r = r ? r : before_returns(e, &last, 3);
    code_op(&left, OP_DUP);
    code_load(&left, 'J', (unsigned)local);
    r = r ? r : call(e, &left, "failed", "(Ljava/lang/Throwable;J)V");
    code_op(&left, OP_ATHROW);
    return r ? r : edit_catch_all(e, &left, 3) ?: 1;
}

#define TRACEPARENT "traceparent"
#define HEADER      "(Ljava/lang/String;)Ljava/lang/String;"

/* The object on the stack has the headers of the request in which the thread is now. */
static int called_by(struct edit *e, struct buf *code, const char *owner, const char *method)
{
    int text = rewrite_string(e->rewrite, TRACEPARENT, strlen(TRACEPARENT)), r = MIN(text, 0);
    code_ref(code, OP_LDC_W, text);
    r = r ? r : call_virtual(e, code, owner, method, HEADER);
    return r ? r : call(e, code, "called", "(Ljava/lang/String;)V");
}

/* Filter.Chain.doFilter(HttpExchange) of com.sun.net.httpserver, once for each filter */
static int edit_exchange(const struct instrument_class *c, struct edit *e, const struct point *p)
{
    _cleanup_(buf_release) struct buf first = BUF(64), status = BUF(32), headers = BUF(64);
    code_load(&first, 'A', 1);
    int r = call_virtual(e, &first, HTTP_EXCHANGE, "getRequestMethod", "()Ljava/lang/String;");
    code_load(&first, 'A', 1);
    r = r ? r : call_virtual(e, &first, HTTP_EXCHANGE, "getRequestURI", "()Ljava/net/URI;");
    r = r ? r : code_int(e->rewrite, &first, p->number);
    r = r ? r : call(e, &first, "enter", "(Ljava/lang/String;Ljava/net/URI;I)J");
    code_load(&status, 'A', 1);
    r = r ? r : call_virtual(e, &status, HTTP_EXCHANGE, "getResponseCode", "()I");
    r = r ? r : MIN(edit_request(e, &first, 3, &status), 0);
    code_load(&headers, 'A', 1);
    r = r ? r : call_virtual(e, &headers, HTTP_EXCHANGE, "getRequestHeaders", "()L" HEADERS ";");
    r = r ? r : called_by(e, &headers, HEADERS, "getFirst");
    return r ? r : edit_insert(e, EDIT_ENTRY, 0, 0, &headers, 2) ?: 1;
}

/* HttpServlet.service(HttpServletRequest, HttpServletResponse); type: the latter's package */
static int edit_servlet(const struct instrument_class *c, struct edit *e, const struct point *p)
{
    _cleanup_(buf_release) struct buf first = BUF(64);
    code_load(&first, 'A', 1);
    int r = call_interface(e, &first, p->type, "getMethod", "()Ljava/lang/String;");
    code_load(&first, 'A', 1);
    r = r ? r : call_interface(e, &first, p->type, "getRequestURI", "()Ljava/lang/String;");
    r = r ? r : code_int(e->rewrite, &first, p->number);
    r = r ? r : call(e, &first, "enter", "(Ljava/lang/String;Ljava/lang/String;I)J");
    return r ? r : edit_request(e, &first, 3, NULL);
}

/*
 * Whether the class itself calls a method: then it is there in this version of the server, and a
 * call of ours cannot fail.
 */
static bool calls(const struct instrument_class *c, const char *owner, const char *name,
                  const char *descriptor)
{
    struct class_member m;
    for (size_t i = 1; i < c->file->pool.len; i++)
        if (class_member(c->file, (uint16_t)i, &m) && str_is(m.owner, owner) &&
            str_is(m.name, name) && str_is(m.descriptor, descriptor))
            return true;
    return false;
}

#define COYOTE_REQUEST   "org/apache/coyote/Request"
#define COYOTE_RESPONSE  "org/apache/coyote/Response"
#define CATALINA_REQUEST "org/apache/catalina/connector/Request"
#define TO_STRING        "()Ljava/lang/String;"

/* Of the adapter; a version that has other methods has servlets alone. */
static bool is_catalina(const struct instrument_class *c)
{
    return calls(c, COYOTE_REQUEST, "getNote", "(I)Ljava/lang/Object;") &&
           calls(c, CATALINA_REQUEST, "isAsync", "()Z");
}

/* Tomcat's other request object, which stands for the request until it has been answered. */
static int push_catalina(struct edit *e, struct buf *code)
{
    code_load(code, 'A', 1);
    int r = code_int(e->rewrite, code, 1); /* CoyoteAdapter.ADAPTER_NOTES */
    return r ? r : call_virtual(e, code, COYOTE_REQUEST, "getNote", "(I)Ljava/lang/Object;");
}

/* The end of both methods of the adapter, of which `first` leaves the request's token. */
static int edit_catalina(struct edit *e, struct buf *first, unsigned stack)
{
    _cleanup_(buf_release) struct buf last = BUF(64), left = BUF(32);
    int local = edit_local(e, 'J'), class = rewrite_class(e->rewrite, CATALINA_REQUEST),
        r = MIN(MIN(local, class), 0);
    if (r < 0)
        return r;
    code_store(first, 'J', (unsigned)local);
    r = edit_insert(e, EDIT_ENTRY, 0, 0, first, stack);
    code_load(&last, 'J', (unsigned)local);
    code_load(&last, 'A', 2);
    r = r ? r : call_virtual(e, &last, COYOTE_RESPONSE, "getStatus", "()I");
    r = r ? r : push_catalina(e, &last);
    code_op(&last, OP_DUP);
    code_ref(&last, OP_CHECKCAST, class);
    r = r ? r : call_virtual(e, &last, CATALINA_REQUEST, "isAsync", "()Z");
    r = r ? r : call(e, &last, "exit", "(JILjava/lang/Object;Z)V");
    r = r ? r : before_returns(e, &last, 6);
    code_op(&left, OP_DUP);
    code_load(&left, 'J', (unsigned)local);
    r = r ? r : call(e, &left, "failed", "(Ljava/lang/Throwable;J)V");
    code_op(&left, OP_ATHROW);
    return r ? r : edit_catch_all(e, &left, 3) ?: 1;
}

/* CoyoteAdapter.service(Request, Response), which does not know the path yet */
static int edit_tomcat(const struct instrument_class *c, struct edit *e, const struct point *p)
{
    _cleanup_(buf_release) struct buf first = BUF(64);
    if (!is_catalina(c))
        return 0;
    int r = code_int(e->rewrite, &first, p->number);
    r = r ? r : call(e, &first, "enter", "(I)J");
    return r ? r : edit_catalina(e, &first, 2);
}

/* StandardEngineValve.invoke(Request, Response), which every request comes through */
static int edit_tomcat_name(const struct instrument_class *c, struct edit *e, const struct point *p)
{
    _cleanup_(buf_release) struct buf first = BUF(64);
    code_load(&first, 'A', 1);
    int r = call_virtual(e, &first, CATALINA_REQUEST, "getMethod", TO_STRING);
    code_load(&first, 'A', 1);
    r = r ? r : call_virtual(e, &first, CATALINA_REQUEST, "getRequestURI", TO_STRING);
    r = r ? r : code_int(e->rewrite, &first, p->number);
    r = r ? r : call(e, &first, "named", "(Ljava/lang/String;Ljava/lang/String;I)V");
    code_load(&first, 'A', 1);
    r = r ? r : called_by(e, &first, CATALINA_REQUEST, "getHeader");
    return r ? r : edit_insert(e, EDIT_ENTRY, 0, 0, &first, 3) ?: 1;
}

/* CoyoteAdapter.asyncDispatch(Request, Response, SocketEvent) */
static int edit_tomcat_async(const struct instrument_class *c, struct edit *e,
                             const struct point *p)
{
    _cleanup_(buf_release) struct buf first = BUF(64);
    if (!is_catalina(c))
        return 0;
    int r = push_catalina(e, &first);
    r = r ? r : call(e, &first, "resume", "(Ljava/lang/Object;)J");
    return r ? r : edit_catalina(e, &first, 2);
}

#define JETTY_CHANNEL  "org/eclipse/jetty/server/HttpChannel"
#define JETTY_REQUEST  "org/eclipse/jetty/server/Request"
#define JETTY_RESPONSE "org/eclipse/jetty/server/Response"

/* `first` leaves the token of the request of the channel that is the first parameter. */
static int edit_channel(struct edit *e, struct buf *first, unsigned stack)
{
    _cleanup_(buf_release) struct buf last = BUF(32), left = BUF(32);
    int local = edit_local(e, 'J'), channel = edit_local(e, 'A'), r = MIN(MIN(local, channel), 0);
    if (r < 0)
        return r;
    code_store(first, 'J', (unsigned)local);
    code_load(first, 'A', 1);
    code_store(first, 'A', (unsigned)channel);
    r = edit_insert(e, EDIT_ENTRY, 0, 0, first, stack);
    code_load(&last, 'J', (unsigned)local);
    code_load(&last, 'A', (unsigned)channel);
    r = r ? r : call(e, &last, "suspend", "(JLjava/lang/Object;)V");
    r = r ? r : before_returns(e, &last, 3);
    buf_bytes(&left, last.data, last.len);
    code_op(&left, OP_ATHROW);
    return r ? r : edit_catch_all(e, &left, 3) ?: 1;
}

/* Server.handle(HttpChannel) of Jetty 9 to 11; the request ends when the channel has completed it
 */
static int edit_jetty(const struct instrument_class *c, struct edit *e, const struct point *p)
{
    _cleanup_(buf_release) struct buf first = BUF(64), headers = BUF(64);
    if (!calls(c, JETTY_CHANNEL, "getRequest", "()L" JETTY_REQUEST ";") ||
        !calls(c, JETTY_REQUEST, "getMethod", TO_STRING))
        return 0;
    code_load(&first, 'A', 1);
    int r = call_virtual(e, &first, JETTY_CHANNEL, "getRequest", "()L" JETTY_REQUEST ";");
    r = r ? r : call_virtual(e, &first, JETTY_REQUEST, "getMethod", TO_STRING);
    code_load(&first, 'A', 1);
    r = r ? r : call_virtual(e, &first, JETTY_CHANNEL, "getRequest", "()L" JETTY_REQUEST ";");
    r = r ? r : call_virtual(e, &first, JETTY_REQUEST, "getRequestURI", TO_STRING);
    r = r ? r : code_int(e->rewrite, &first, p->number);
    r = r ? r : call(e, &first, "enter", "(Ljava/lang/String;Ljava/lang/String;I)J");
    r = r ? r : MIN(edit_channel(e, &first, 3), 0);
    code_load(&headers, 'A', 1);
    r = r ? r : call_virtual(e, &headers, JETTY_CHANNEL, "getRequest", "()L" JETTY_REQUEST ";");
    r = r ? r : called_by(e, &headers, JETTY_REQUEST, "getHeader");
    return r ? r : edit_insert(e, EDIT_ENTRY, 0, 0, &headers, 2) ?: 1;
}

static int edit_jetty_async(const struct instrument_class *c, struct edit *e, const struct point *p)
{
    _cleanup_(buf_release) struct buf first = BUF(32);
    code_load(&first, 'A', 1);
    int r = call(e, &first, "resume", "(Ljava/lang/Object;)J");
    return r ? r : edit_channel(e, &first, 2);
}

/* HttpChannel.onCompleted() */
static int edit_jetty_end(const struct instrument_class *c, struct edit *e, const struct point *p)
{
    _cleanup_(buf_release) struct buf first = BUF(32);
    int r = 0;
    code_load(&first, 'A', 0);
    if (calls(c, JETTY_RESPONSE, "getStatus", "()I")) {
        code_load(&first, 'A', 0);
        r = call_virtual(e, &first, JETTY_CHANNEL, "getResponse", "()L" JETTY_RESPONSE ";");
        r = r ? r : call_virtual(e, &first, JETTY_RESPONSE, "getStatus", "()I");
    } else {
        r = code_int(e->rewrite, &first, 0);
    }
    r = r ? r : call(e, &first, "finish", "(Ljava/lang/Object;I)V");
    return r ? r : edit_insert(e, EDIT_ENTRY, 0, 0, &first, 2) ?: 1;
}

#define NETTY         "io/netty/"
#define NETTY_HTTP    NETTY "handler/codec/http/"
#define NETTY_CONTEXT NETTY "channel/ChannelHandlerContext"
#define NETTY_STATUS  NETTY_HTTP "HttpResponseStatus"

/* Pushes the channel of the context that is the first parameter. */
static int push_channel(struct edit *e, struct buf *code)
{
    code_load(code, 'A', 1);
    return call_interface(e, code, NETTY_CONTEXT, "channel", "()L" NETTY "channel/Channel;");
}

/* HttpRequestDecoder.createMessage(String[] initialLine) */
static int edit_netty_line(const struct instrument_class *c, struct edit *e, const struct point *p)
{
    _cleanup_(buf_release) struct buf first = BUF(32);
    code_load(&first, 'A', 1);
    int r = code_int(e->rewrite, &first, p->number);
    r = r ? r : call(e, &first, "decoded", "([Ljava/lang/String;I)V");
    return r ? r : edit_insert(e, EDIT_ENTRY, 0, 0, &first, 2) ?: 1;
}

/* HttpObjectDecoder.decode(context, bytes, out), in which that happens */
static int edit_netty_decode(const struct instrument_class *c, struct edit *e,
                             const struct point *p)
{
    _cleanup_(buf_release) struct buf last = BUF(32);
    _cleanup_(buf_release) struct buf first = BUF(32);
    int r = push_channel(e, &first);
    r = r ? r : call(e, &first, "decoding", "(Ljava/lang/Object;)V");
    r = r ? r : edit_insert(e, EDIT_ENTRY, 0, 0, &first, 1);
    r = r ? r : push_channel(e, &last);
    r = r ? r : call(e, &last, "decodes", "(Ljava/lang/Object;)V");
    return r ? r : before_returns(e, &last, 1) ?: 1;
}

/* ByteToMessageDecoder.channelRead, in which the program handles what was decoded */
static int edit_netty_read(const struct instrument_class *c, struct edit *e, const struct point *p)
{
    _cleanup_(buf_release) struct buf last = BUF(32), left = BUF(32);
    int r = call(e, &last, "read", "()V");
    buf_bytes(&left, last.data, last.len);
    code_op(&left, OP_ATHROW);
    r = r ? r : before_returns(e, &last, 0);
    return r ? r : edit_catch_all(e, &left, 1) ?: 1;
}

/* ByteToMessageDecoder.channelInactive(context) */
static int edit_netty_closed(const struct instrument_class *c, struct edit *e,
                             const struct point *p)
{
    _cleanup_(buf_release) struct buf first = BUF(32);
    int r = push_channel(e, &first);
    r = r ? r : call(e, &first, "closed", "(Ljava/lang/Object;)V");
    return r ? r : edit_insert(e, EDIT_ENTRY, 0, 0, &first, 1) ?: 1;
}

/* HttpResponseEncoder.encodeInitialLine(ByteBuf, HttpResponse) */
static int edit_netty_status(const struct instrument_class *c, struct edit *e,
                             const struct point *p)
{
    _cleanup_(buf_release) struct buf first = BUF(32);
    if (!calls(c, NETTY_HTTP "HttpResponse", "status", "()L" NETTY_STATUS ";"))
        return 0;
    code_load(&first, 'A', 2);
    int r = call_interface(e, &first, NETTY_HTTP "HttpResponse", "status", "()L" NETTY_STATUS ";");
    r = r ? r : call_virtual(e, &first, NETTY_STATUS, "code", "()I");
    r = r ? r : call(e, &first, "encodes", "(I)V");
    return r ? r : edit_insert(e, EDIT_ENTRY, 0, 0, &first, 1) ?: 1;
}

/* HttpObjectEncoder.encode(context, message, out), whose field `state` is 0 between messages */
static int edit_netty_encode(const struct instrument_class *c, struct edit *e,
                             const struct point *p)
{
    _cleanup_(buf_release) struct buf last = BUF(32);
    struct str type = {0};
    uint16_t access;
    if (!class_find_field(c->file, "state", &type, &access) || !str_is(type, "I") ||
        access & ACC_STATIC)
        return 0;
    int field = rewrite_fieldref(e->rewrite, NETTY_HTTP "HttpObjectEncoder", "state", "I"),
        r = MIN(field, 0);
    code_load(&last, 'A', 0);
    code_ref(&last, OP_GETFIELD, field);
    r = r ? r : push_channel(e, &last);
    r = r ? r : call(e, &last, "encoded", "(ILjava/lang/Object;)V");
    return r ? r : before_returns(e, &last, 2) ?: 1;
}

/* A method that the option names. */
static int edit_named(const struct instrument_class *c, struct edit *e)
{
    _cleanup_(buf_release) struct buf first = BUF(32), text = BUF(2048);
    struct str method = class_utf8(c->file, e->method->name);
    for (size_t i = 0; i < c->name.len; i++)
        buf_u8(&text, (uint8_t)(c->name.data[i] == '/' ? '.' : c->name.data[i]));
    buf_printf(&text, ".%.*s", (int)method.len, method.data);
    unsigned name = request_name_find(REQUEST_METHOD, buf_str(&text));
    int r = code_int(e->rewrite, &first, REQUEST_METHOD);
    r = r ? r : code_int(e->rewrite, &first, (int32_t)name);
    r = r ? r : call(e, &first, "enter", "(II)J");
    return r ? r : edit_request(e, &first, 2, NULL);
}

/* ---- what a request does elsewhere ---- */

/* `first` leaves the child's number. */
static int edit_child(const struct instrument_class *c, struct edit *e, struct buf *first,
                      unsigned stack)
{
    struct str descriptor = class_utf8(c->file, e->method->descriptor);
    _cleanup_(buf_release) struct buf last = BUF(64), left = BUF(32);
    const char *result = memchr(descriptor.data, ')', descriptor.len);
    char type = result ? result[1] : 'V';
    bool counts = starts_with(class_utf8(c->file, e->method->name), "executeUpdate") ||
                  starts_with(class_utf8(c->file, e->method->name), "executeLargeUpdate");
    int local = edit_local(e, 'J'), r = MIN(local, 0);
    if (r < 0)
        return r;
    code_store(first, 'J', (unsigned)local);
    r = edit_insert(e, EDIT_ENTRY, 0, 0, first, stack);
    if (counts && (type == 'I' || type == 'J'))
        code_op(&last, type == 'I' ? OP_DUP : OP_DUP2);
    code_load(&last, 'J', (unsigned)local);
    r = r ? r
          : call(e, &last, "done",
                 counts && type == 'I'   ? "(IJ)V"
                 : counts && type == 'J' ? "(JJ)V"
                                         : "(J)V");
    r = r ? r : before_returns(e, &last, 4);
    code_op(&left, OP_DUP);
    code_load(&left, 'J', (unsigned)local);
    r = r ? r : call(e, &left, "broken", "(Ljava/lang/Throwable;J)V");
    code_op(&left, OP_ATHROW);
    return r ? r : edit_catch_all(e, &left, 3) ?: 1;
}

/* A child with a name that is always the same. */
static int edit_child_named(const struct instrument_class *c, struct edit *e, const char *name,
                            enum request_child_kind kind)
{
    _cleanup_(buf_release) struct buf first = BUF(32);
    int text = rewrite_string(e->rewrite, name, strlen(name)), r = MIN(text, 0);
    if (r < 0)
        return r;
    code_ref(&first, OP_LDC_W, text);
    r = code_int(e->rewrite, &first, (int)kind);
    r = r ? r : call(e, &first, "child", "(Ljava/lang/String;I)J");
    return r ? r : edit_child(c, e, &first, 2);
}

/* getConnection of a pool, which is named like its class */
static int edit_pool(const struct instrument_class *c, struct edit *e, const struct point *p)
{
    struct str descriptor = class_utf8(c->file, e->method->descriptor);
    const char *name = strrchr(p->class, '/') + 1;
    return memmem(descriptor.data, descriptor.len, ")Ljava/sql/Connection;", 22)
               ? edit_child_named(c, e, name, CHILD_POOL)
               : 0;
}

/* HttpURLConnection.getInputStream(), which sends the request and waits for the answer */
static int edit_url(const struct instrument_class *c, struct edit *e, const struct point *p)
{
    _cleanup_(buf_release) struct buf first = BUF(32);
    code_load(&first, 'A', 0);
    int r = call_virtual(e, &first, "java/net/URLConnection", "getURL", "()Ljava/net/URL;");
    r = r ? r : code_int(e->rewrite, &first, CHILD_HTTP);
    r = r ? r : call(e, &first, "child", "(Ljava/net/URL;I)J");
    return r ? r : edit_child(c, e, &first, 2);
}

/* HttpClientImpl.send(HttpRequest, BodyHandler) */
static int edit_client(const struct instrument_class *c, struct edit *e, const struct point *p)
{
    _cleanup_(buf_release) struct buf first = BUF(32);
    code_load(&first, 'A', 1);
    int r = call_virtual(e, &first, "java/net/http/HttpRequest", "uri", "()Ljava/net/URI;");
    r = r ? r : code_int(e->rewrite, &first, CHILD_HTTP);
    r = r ? r : call(e, &first, "child", "(Ljava/net/URI;I)J");
    return r ? r : edit_child(c, e, &first, 2);
}

/* Drivers name their classes as they like, but after what they implement. */
static bool is_sql_class(struct str name)
{
    return !starts_with(name, "java/") && (memmem(name.data, name.len, "Statement", 9) ||
                                           memmem(name.data, name.len, "Connection", 10));
}

static bool mentions(const struct instrument_class *c, const char *class)
{
    for (size_t i = 1; i < c->file->pool.len; i++)
        if (class_tag(c->file, (uint16_t)i) == CONSTANT_CLASS &&
            str_is(class_name_at(c->file, (uint16_t)i), class))
            return true;
    return false;
}

static bool is_result(struct str descriptor)
{
    static const char *const results[] = {")Z", ")I", ")J", ")[I", ")[J", ")Ljava/sql/ResultSet;"};
    for (size_t i = 0; i < ARRAY_SIZE(results); i++) {
        size_t n = strlen(results[i]);
        if (descriptor.len >= n && memcmp(descriptor.data + descriptor.len - n, results[i], n) == 0)
            return true;
    }
    return false;
}

/* Statement.execute*: with the SQL, or of what was prepared. */
static int edit_executes(const struct instrument_class *c, struct edit *e, struct str descriptor)
{
    _cleanup_(buf_release) struct buf first = BUF(32);
    bool prepared = starts_with(descriptor, "()");
    int r = 0;
    code_load(&first, 'A', !prepared);
    if (!prepared) {
        r = code_int(e->rewrite, &first, CHILD_JDBC);
        r = r ? r : call(e, &first, "child", "(Ljava/lang/String;I)J");
    } else {
        r = call(e, &first, "executes", "(Ljava/lang/Object;)J");
    }
    return r ? r : edit_child(c, e, &first, 2);
}

/* Connection.prepareStatement and prepareCall */
static int edit_prepares(struct edit *e)
{
    _cleanup_(buf_release) struct buf first = BUF(32), last = BUF(32);
    int local = edit_local(e, 'A'), r = MIN(local, 0);
    if (r < 0)
        return r;
    code_load(&first, 'A', 1);
    code_store(&first, 'A', (unsigned)local);
    r = edit_insert(e, EDIT_ENTRY, 0, 0, &first, 1);
    code_op(&last, OP_DUP);
    code_load(&last, 'A', (unsigned)local);
    r = r ? r : call(e, &last, "prepared", "(Ljava/lang/Object;Ljava/lang/Object;)V");
    return r ? r : before_returns(e, &last, 2) ?: 1;
}

static int edit_sql(const struct instrument_class *c, struct edit *e, struct str name,
                    struct str descriptor)
{
    bool executes =
        starts_with(name, "execute") && is_result(descriptor) &&
        (starts_with(descriptor, "()") || starts_with(descriptor, "(Ljava/lang/String;"));
    bool prepares = (str_is(name, "prepareStatement") || str_is(name, "prepareCall")) &&
                    starts_with(descriptor, "(Ljava/lang/String;");
    bool ends = (str_is(name, "commit") || str_is(name, "rollback")) && str_is(descriptor, "()V");
    if (e->method->access & ACC_STATIC || !(e->method->access & ACC_PUBLIC))
        return 0;
    if (executes &&
        (mentions(c, "java/sql/Statement") || mentions(c, "java/sql/PreparedStatement") ||
         mentions(c, "java/sql/CallableStatement")))
        return edit_executes(c, e, descriptor);
    if ((prepares || ends) && mentions(c, "java/sql/Connection"))
        return prepares ? edit_prepares(e)
                        : edit_child_named(c, e, str_is(name, "commit") ? "COMMIT" : "ROLLBACK",
                                           CHILD_JDBC);
    return 0;
}

/* ---- the table ---- */

/* clang-format off */
static const struct point points[] = {
    {JUC "ThreadPoolExecutor", "execute", NULL, edit_handed, "handed", "java/lang/Runnable", 0},
    {JUC "ThreadPoolExecutor", "runWorker", NULL, edit_runs, "started", "java/lang/Runnable", WAY_EXECUTOR},
    {JUC "ThreadPoolExecutor", "getTask", "()", edit_takes, NULL, NULL, WAY_EXECUTOR},
    {JUC "ThreadPoolExecutor", "processWorkerExit", NULL, edit_idle, NULL, NULL, 0},
    {JUC "ScheduledThreadPoolExecutor", "delayedExecute", NULL, edit_handed, "scheduled", JUC "RunnableScheduledFuture", 0},
    {"java/util/Timer", "sched", "(Ljava/util/TimerTask;JJ)V", edit_timer, NULL, NULL, 0},
    {"java/util/TimerThread", "mainLoop", NULL, edit_pooled, NULL, NULL, 0},
    {"java/util/TaskQueue", "removeMin", "()", edit_timer_takes, NULL, NULL, WAY_TIMER},
    {"java/util/TaskQueue", "isEmpty", "()", edit_idle, NULL, NULL, 0},
    {JUC "ForkJoinTask", "fork", NULL, edit_handed, "forked", NULL, 0},
    {JUC "ForkJoinTask", "doExec", NULL, edit_is_run, "started", NULL, WAY_FORK_JOIN},
    {JUC "ForkJoinPool", "externalPush", NULL, edit_pushed, NULL, JUC "ForkJoinTask", 0},
    {JUC "ForkJoinPool", "externalSubmit", NULL, edit_pushed, NULL, JUC "ForkJoinTask", 0},
    {JUC "ForkJoinPool", "poolSubmit", NULL, edit_pushed, NULL, JUC "ForkJoinTask", 0},
    {JUC "CompletableFuture$UniCompletion", "<init>", NULL, edit_made, "depends", NULL, 0},
    {JUC "CompletableFuture$*", "tryFire", "(I)", edit_is_run, "tried", NULL, WAY_FUTURE},
    {JUC "ForkJoinPool", "runWorker", NULL, edit_pooled, NULL, NULL, 0},
    {"sun/net/www/http/KeepAliveCache", "run", "()V", edit_pooled, NULL, NULL, 0},
    {"jdk/internal/net/http/HttpClientImpl$SelectorManager", "run", "()V", edit_pooled, NULL, NULL, 0},
    {"java/lang/Thread", "start", NULL, edit_starting, NULL, NULL, 0},
    {"java/lang/VirtualThread", "start", "(Ljdk/internal/vm/ThreadContainer;)", edit_starting, NULL, NULL, 0},
    {TOMCAT_POOL, "executeInternal", NULL, edit_handed, "handed", "java/lang/Runnable", 0},
    {TOMCAT_POOL, "runWorker", NULL, edit_runs, "started", "java/lang/Runnable", WAY_EXECUTOR},
    {TOMCAT_POOL, "getTask", "()", edit_takes, NULL, NULL, WAY_EXECUTOR},
    {TOMCAT_POOL, "processWorkerExit", NULL, edit_idle, NULL, NULL, 0},
    {JETTY_POOL, "execute", NULL, edit_handed, "handed", "java/lang/Runnable", 0},
    {JETTY_POOL, "runJob", NULL, edit_is_run, "started", "java/lang/Runnable", WAY_EXECUTOR},
    {JETTY_POOL "$Runner", "run", "()", edit_pooled, NULL, NULL, 0},
    {NETTY_LOOP, "execute", "(Ljava/lang/Runnable;)V", edit_handed, "handed", "java/lang/Runnable", 0},
    {NETTY_LOOP, "takeTask", "()", edit_takes, NULL, NULL, WAY_EXECUTOR},
    {NETTY "util/concurrent/AbstractEventExecutor", "safeExecute", "(Ljava/lang/Runnable;)V", edit_is_run, "started", "java/lang/Runnable", WAY_EXECUTOR},
    {NETTY "channel/nio/NioEventLoop", "run", "()V", edit_pooled, NULL, NULL, 0},
    {NETTY "channel/epoll/EpollEventLoop", "run", "()V", edit_pooled, NULL, NULL, 0},

    {NETTY_HTTP "HttpRequestDecoder", "createMessage", "([Ljava/lang/String;)", edit_netty_line, NULL, NULL, REQUEST_HTTP},
    {NETTY_HTTP "HttpObjectDecoder", "decode", "(L" NETTY_CONTEXT ";", edit_netty_decode, NULL, NULL, 0},
    {NETTY_HTTP "HttpResponseEncoder", "encodeInitialLine", "(Lio/netty/buffer/ByteBuf;L" NETTY_HTTP "HttpResponse;)", edit_netty_status, NULL, NULL, 0},
    {NETTY_HTTP "HttpObjectEncoder", "encode", "(L" NETTY_CONTEXT ";Ljava/lang/Object;", edit_netty_encode, NULL, NULL, 0},
    {NETTY "handler/codec/ByteToMessageDecoder", "channelRead", "(L" NETTY_CONTEXT ";", edit_netty_read, NULL, NULL, 0},
    {NETTY "handler/codec/ByteToMessageDecoder", "channelInactive", "(L" NETTY_CONTEXT ";", edit_netty_closed, NULL, NULL, 0},
    {TOMCAT "connector/CoyoteAdapter", "service", NULL, edit_tomcat, NULL, NULL, REQUEST_SERVLET},
    {TOMCAT "connector/CoyoteAdapter", "asyncDispatch", NULL, edit_tomcat_async, NULL, NULL, 0},
    {TOMCAT "core/StandardEngineValve", "invoke", "(L" CATALINA_REQUEST ";", edit_tomcat_name, NULL, NULL, REQUEST_SERVLET},
    {"org/eclipse/jetty/server/Server", "handle", "(L" JETTY_CHANNEL ";)", edit_jetty, NULL, NULL, REQUEST_SERVLET},
    {"org/eclipse/jetty/server/Server", "handleAsync", "(L" JETTY_CHANNEL ";)", edit_jetty_async, NULL, NULL, 0},
    {JETTY_CHANNEL, "onCompleted", "()", edit_jetty_end, NULL, NULL, 0},
    {"com/zaxxer/hikari/HikariDataSource", "getConnection", NULL, edit_pool, NULL, NULL, 0},
    {"org/apache/commons/dbcp2/BasicDataSource", "getConnection", NULL, edit_pool, NULL, NULL, 0},
    {"org/apache/tomcat/dbcp/dbcp2/BasicDataSource", "getConnection", NULL, edit_pool, NULL, NULL, 0},
    {"org/apache/tomcat/jdbc/pool/DataSourceProxy", "getConnection", NULL, edit_pool, NULL, NULL, 0},
    {"sun/net/www/protocol/http/HttpURLConnection", "getInputStream", "()", edit_url, NULL, NULL, 0},
    {"jdk/internal/net/http/HttpClientImpl", "send", NULL, edit_client, NULL, NULL, 0},
    {"com/sun/net/httpserver/Filter$Chain", "doFilter", NULL, edit_exchange, NULL, NULL, REQUEST_HTTP},
    {"javax/servlet/http/HttpServlet", "service", "(Ljavax/servlet/http/HttpServletRequest;", edit_servlet, NULL, "javax/servlet/http/HttpServletRequest", REQUEST_SERVLET},
    {"jakarta/servlet/http/HttpServlet", "service", "(Ljakarta/servlet/http/HttpServletRequest;", edit_servlet, NULL, "jakarta/servlet/http/HttpServletRequest", REQUEST_SERVLET},
};

/* clang-format on */

static bool is_class(const struct point *p, struct str name)
{
    size_t n = strlen(p->class);
    if (p->class[n - 1] != '*')
        return name.len == n && memcmp(name.data, p->class, n) == 0;
    return name.len >= n && memcmp(name.data, p->class, n - 1) == 0;
}

/* The probes call methods of the JDK. */
static bool is_named(struct str class_name, struct str method)
{
    return methods && !starts_with(class_name, "java/") && !starts_with(class_name, "jdk/") &&
           !starts_with(class_name, "sun/") &&
           (method.len ? choice_matches(methods, class_name, method)
                       : choice_may_match(methods, class_name));
}

static bool wants(struct str class_name)
{
    for (size_t i = 0; i < ARRAY_SIZE(points); i++)
        if (is_class(&points[i], class_name))
            return true;
    return is_sql_class(class_name) || is_named(class_name, (struct str){"", 0});
}

static int edit(const struct instrument_class *c, struct edit *e)
{
    struct str name = class_utf8(c->file, e->method->name),
               descriptor = class_utf8(c->file, e->method->descriptor);
    for (size_t i = 0; i < ARRAY_SIZE(points); i++) {
        const struct point *p = &points[i];
        if (is_class(p, c->name) && str_is(name, p->method) &&
            (!p->descriptor || starts_with(descriptor, p->descriptor)))
            return p->edit(c, e, p);
    }
    if (is_named(c->name, name))
        return edit_named(c, e);
    return is_sql_class(c->name) ? edit_sql(c, e, name, descriptor) : 0;
}

static const struct instrument_client client = {.name = "requests",
                                                .edit = edit,
                                                .wants = wants,
                                                .thread = true,
                                                .virtual_threads = true,
                                                .seldom = true};

/* ---- the option ---- */

/* One pattern without its (..). Returns its length; 0 for "auto". */
static size_t method_of(const char *pattern, size_t n)
{
    static const char any[] = "(..)";
    if (n == 4 && memcmp(pattern, "auto", n) == 0)
        return 0;
    size_t m = sizeof(any) - 1;
    return n > m && memcmp(pattern + n - m, any, m) == 0 ? n - m : n;
}

static int check_one(const char *pattern, size_t n, struct buf *why)
{
    size_t m = method_of(pattern, n);
    const char *last = m ? memrchr(pattern, '.', m) : NULL;
    const char *what = NULL;
    if (m && (memchr(pattern, '(', m) || memchr(pattern, ' ', m)))
        what = "names a method as pkg.Class.method or pkg.Class.method(..)";
    else if (m && (!last || last == pattern || last == pattern + m - 1))
        what = "names no method: pkg.Class.method(..)";
    else if (m > 5 && memcmp(pattern, "java.", 5) == 0)
        what = "methods of the JDK's own packages are no requests";
    if (what)
        buf_printf(why, "requests=%.*s: %s", (int)n, pattern, what);
    return what ? -EINVAL : 0;
}

int points_check(const char *patterns, struct buf *why)
{
    int r = 0;
    for (const char *p = patterns; r == 0 && *p;) {
        size_t n = strcspn(p, ":");
        r = n ? check_one(p, n, why) : 0;
        p += n + (p[n] == ':');
    }
    return r;
}

static char *methods_of(const char *patterns)
{
    struct buf list = BUF(1 << 20);
    for (const char *p = patterns; *p;) {
        size_t n = strcspn(p, ":"), m = method_of(p, n);
        if (m)
            buf_printf(&list, "%s%.*s", list.len ? ":" : "", (int)m, p);
        p += n + (p[n] == ':');
    }
    char *text = list.len ? strdup(buf_str(&list)) : NULL;
    buf_release(&list);
    return text;
}

int points_on(const char *patterns, JNIEnv *jni, struct buf *why)
{
    free(methods);
    methods = methods_of(patterns);
    return instrument_on(&client, jni, why);
}

void points_off(JNIEnv *jni)
{
    instrument_off(&client, jni);
}
