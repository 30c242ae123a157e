/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Instruments the methods in which requests of servers begin and end, if inserting one call is not
 * enough.
 */
#include "agent/capture/requests/points.h"

#define COYOTE_REQUEST   "org/apache/coyote/Request"
#define COYOTE_RESPONSE  "org/apache/coyote/Response"
#define CATALINA_REQUEST "org/apache/catalina/connector/Request"

/*
 * Returns whether the class is the adapter of a known version. In other versions of Tomcat only
 * servlets are followed.
 */
static bool is_catalina(const struct instrument_class *c)
{
    return point_calls(c, COYOTE_REQUEST, "getNote", "(I)Ljava/lang/Object;") &&
           point_calls(c, CATALINA_REQUEST, "isAsync", "()Z");
}

/* Pushes Tomcat's other request object, which exists until the request has been answered. */
static int push_catalina(struct edit *e, struct buf *code)
{
    code_load(code, 'A', 1);
    int r = code_int(e->rewrite, code, 1); /* CoyoteAdapter.ADAPTER_NOTES */
    return r ? r : point_virtual(e, code, COYOTE_REQUEST, "getNote", "(I)Ljava/lang/Object;");
}

/*
 * Inserts the probes of both methods of the adapter. The code `first` leaves the request's token on
 * the stack.
 */
static int point_catalina(struct edit *e, struct buf *first, unsigned stack)
{
    _cleanup_(buf_release) struct buf last = BUF(64);
    int local = edit_local(e, 'J'), class = rewrite_class(e->rewrite, CATALINA_REQUEST),
        r = MIN(MIN(local, class), 0);
    if (r < 0)
        return r;
    code_store(first, 'J', (unsigned)local);
    r = edit_insert(e, EDIT_ENTRY, 0, 0, first, stack);
    code_load(&last, 'A', 2);
    r = r ? r : point_virtual(e, &last, COYOTE_RESPONSE, "getContentWritten", "()J");
    r = r ? r : point_probe(e, &last, "bytes", "(J)V");
    code_load(&last, 'J', (unsigned)local);
    code_load(&last, 'A', 2);
    r = r ? r : point_virtual(e, &last, COYOTE_RESPONSE, "getStatus", "()I");
    r = r ? r : push_catalina(e, &last);
    code_op(&last, OP_DUP);
    code_ref(&last, OP_CHECKCAST, class);
    r = r ? r : point_virtual(e, &last, CATALINA_REQUEST, "isAsync", "()Z");
    r = r ? r : point_probe(e, &last, "exit", "(JILjava/lang/Object;Z)V");
    r = r ? r : point_returns(e, &last, 6);
    return r ? r : point_thrown(e, "failed", local);
}

/* Instruments CoyoteAdapter.service(Request, Response), which does not know the path yet. */
int point_tomcat(const struct instrument_class *c, struct edit *e, const struct point *p)
{
    _cleanup_(buf_release) struct buf first = BUF(64);
    if (!is_catalina(c))
        return 0;
    int r = code_int(e->rewrite, &first, p->number);
    r = r ? r : point_probe(e, &first, "enter", "(I)J");
    return r ? r : point_catalina(e, &first, 2);
}

/* Instruments CoyoteAdapter.asyncDispatch(Request, Response, SocketEvent). */
int point_tomcat_async(const struct instrument_class *c, struct edit *e, const struct point *p)
{
    _cleanup_(buf_release) struct buf first = BUF(64);
    if (!is_catalina(c))
        return 0;
    int r = push_catalina(e, &first);
    r = r ? r : point_probe(e, &first, "resume", "(Ljava/lang/Object;)J");
    return r ? r : point_catalina(e, &first, 2);
}

/* Instruments ByteToMessageDecoder.channelRead, in which the program handles what was decoded. */
int point_netty_read(const struct instrument_class *c, struct edit *e, const struct point *p)
{
    _cleanup_(buf_release) struct buf last = BUF(32), left = BUF(32);
    int r = point_probe(e, &last, "read", "()V");
    buf_bytes(&left, last.data, last.len);
    code_op(&left, OP_ATHROW);
    r = r ? r : point_returns(e, &last, 0);
    return r ? r : edit_catch_all(e, &left, 1) ?: 1;
}

/*
 * Instruments a method in which a request begins or continues, and that may return before the
 * request has been answered. The code for p->args and the probe leave the request's token on the
 * stack. The probe `out` receives the token at the end, together with the object in local variable
 * 1 if `owned`.
 */
static int point_part(const struct instrument_class *c, struct edit *e, const struct point *p,
                      const char *out, bool owned)
{
    _cleanup_(buf_release) struct buf first = BUF(256), last = BUF(32), left = BUF(32);
    int local = edit_local(e, 'J');
    int owner = owned ? edit_local(e, 'A') : 0;
    int r = MIN(MIN(local, owner), 0);
    r = r ? r : point_push_and_call(c, e, p, &first);
    if (r)
        return MIN(r, 0);
    code_store(&first, 'J', (unsigned)local);
    code_load(&last, 'J', (unsigned)local);
    if (owned) {
        code_load(&first, 'A', 1);
        code_store(&first, 'A', (unsigned)owner);
        code_load(&last, 'A', (unsigned)owner);
    }
    r = edit_insert(e, EDIT_ENTRY, 0, 0, &first, POINT_STACK);
    r = r ? r : point_probe(e, &last, out, owned ? "(JLjava/lang/Object;)V" : "(J)V");
    r = r ? r : point_returns(e, &last, 3);
    buf_bytes(&left, last.data, last.len);
    code_op(&left, OP_ATHROW);
    return r ? r : edit_catch_all(e, &left, 4) ?: 1;
}

int point_suspended(const struct instrument_class *c, struct edit *e, const struct point *p)
{
    return point_part(c, e, p, "suspend", true);
}

int point_paused(const struct instrument_class *c, struct edit *e, const struct point *p)
{
    return point_part(c, e, p, "paused", false);
}

/*
 * Instruments the calls of MessageListener.onMessage(Message) within a method; each is a request.
 */
int point_listener(const struct instrument_class *c, struct edit *e, const struct point *p)
{
    _cleanup_(buf_release) struct buf none = BUF(16), before = BUF(32), after = BUF(32);
    int local = edit_local(e, 'J'), found = 0, r = MIN(local, 0);
    code_op(&none, OP_LCONST_0);
    code_store(&none, 'J', (unsigned)local);
    code_op(&before, OP_DUP);
    r = r ? r : code_int(e->rewrite, &before, p->number);
    r = r ? r : point_probe(e, &before, "message", "(Ljava/lang/Object;I)J");
    code_store(&before, 'J', (unsigned)local);
    code_load(&after, 'J', (unsigned)local);
    r = r ? r : point_probe(e, &after, "exit", "(J)V");
    buf_bytes(&after, none.data, none.len);
    for (struct insn i = {0}; r == 0 && edit_next(e, &i);) {
        struct class_member m;
        if (i.op != OP_INVOKEINTERFACE || !class_member(c->file, insn_constant(&i), &m) ||
            !str_is(m.name, "onMessage") ||
            !(str_is(m.owner, "javax/jms/MessageListener") ||
              str_is(m.owner, "jakarta/jms/MessageListener")))
            continue;
        r = edit_insert(e, EDIT_BEFORE, i.pc, 0, &before, 3);
        r = r ? r : edit_insert(e, EDIT_AFTER, i.pc, 0, &after, 2);
        found = 1;
    }
    if (r || !found)
        return r;
    r = edit_insert(e, EDIT_ENTRY, 0, 0, &none, 2);
    return r ? r : point_thrown(e, "failed", local);
}
