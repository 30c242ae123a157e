/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Instruments calls to other servers: statements, connections of pools and requests that are sent.
 */
#include "agent/capture/requests/points.h"

/*
 * Inserts the probes of a child: `first` at the entry, whose code leaves the child's number on the
 * stack, and the probes of its end at each exit.
 */
static int point_child(const struct instrument_class *c, struct edit *e, struct buf *first,
                       unsigned stack)
{
    struct str descriptor = class_utf8(c->file, e->method->descriptor);
    _cleanup_(buf_release) struct buf last = BUF(64);
    const char *result = memchr(descriptor.data, ')', descriptor.len);
    char type = result ? result[1] : 'V';
    bool counts = point_begins(class_utf8(c->file, e->method->name), "executeUpdate") ||
                  point_begins(class_utf8(c->file, e->method->name), "executeLargeUpdate");
    int local = edit_local(e, 'J'), r = MIN(local, 0);
    if (r < 0)
        return r;
    code_store(first, 'J', (unsigned)local);
    r = edit_insert(e, EDIT_ENTRY, 0, 0, first, stack);
    if (counts && (type == 'I' || type == 'J'))
        code_op(&last, type == 'I' ? OP_DUP : OP_DUP2);
    code_load(&last, 'J', (unsigned)local);
    r = r ? r
          : point_probe(e, &last, "done",
                        counts && type == 'I'   ? "(IJ)V"
                        : counts && type == 'J' ? "(JJ)V"
                                                : "(J)V");
    r = r ? r : point_returns(e, &last, 4);
    return r ? r : point_thrown(e, "broken", local);
}

/* Inserts the probes of a child whose name is always the same. */
static int point_child_named(const struct instrument_class *c, struct edit *e, const char *name,
                             enum request_child_kind kind)
{
    _cleanup_(buf_release) struct buf first = BUF(32);
    int text = rewrite_string(e->rewrite, name, strlen(name)), r = MIN(text, 0);
    if (r < 0)
        return r;
    code_ref(&first, OP_LDC_W, text);
    r = code_int(e->rewrite, &first, (int)kind);
    r = r ? r : point_probe(e, &first, "child", "(Ljava/lang/String;I)J");
    return r ? r : point_child(c, e, &first, 2);
}

int point_child_within(const struct instrument_class *c, struct edit *e, const struct point *p)
{
    _cleanup_(buf_release) struct buf first = BUF(256);
    int r = point_push_and_call(c, e, p, &first);
    return r ? MIN(r, 0) : point_child(c, e, &first, POINT_STACK);
}

/* Instruments getConnection of a pool; the child is named after the pool's class. */
int point_pool(const struct instrument_class *c, struct edit *e, const struct point *p)
{
    struct str descriptor = class_utf8(c->file, e->method->descriptor);
    const char *name = strrchr(p->class, '/') + 1;
    return memmem(descriptor.data, descriptor.len, ")Ljava/sql/Connection;", 22)
               ? point_child_named(c, e, name, CHILD_POOL)
               : 0;
}

int point_sent(const struct instrument_class *c, struct edit *e, const struct point *p)
{
    _cleanup_(buf_release) struct buf first = BUF(32), last = BUF(256);
    int local = edit_local(e, 'J'), r = MIN(local, 0);
    if (r < 0)
        return r;
    r = point_push(c, e, p, p->args, &last);
    code_load(&last, 'J', (unsigned)local);
    r = r ? r
          : point_probe(e, &last, "sent",
                        "(Ljava/lang/Object;Ljava/net/URI;Ljava/lang/Object;IJ)V");
    if (r)
        return MIN(r, 0);
    r = point_probe(e, &first, "sending", "()J");
    code_store(&first, 'J', (unsigned)local);
    r = r ? r : edit_insert(e, EDIT_ENTRY, 0, 0, &first, 2);
    return r ? r : point_returns(e, &last, POINT_STACK) ?: 1;
}

int point_answered(const struct instrument_class *c, struct edit *e, const struct point *p)
{
    _cleanup_(buf_release) struct buf first = BUF(256), last = BUF(32), left = BUF(32);
    int local = edit_local(e, 'A'), r = MIN(local, 0);
    r = r ? r : point_push_and_call(c, e, p, &first);
    if (r)
        return MIN(r, 0);
    code_store(&first, 'A', (unsigned)local);
    r = edit_insert(e, EDIT_ENTRY, 0, 0, &first, POINT_STACK);
    code_load(&last, 'A', (unsigned)local);
    r = r ? r : point_probe(e, &last, "arrived", "(Ljava/lang/Object;)V");
    r = r ? r : point_returns(e, &last, 2);
    code_op(&left, OP_DUP);
    code_load(&left, 'A', (unsigned)local);
    r = r ? r : point_probe(e, &left, "lost", "(Ljava/lang/Throwable;Ljava/lang/Object;)V");
    code_op(&left, OP_ATHROW);
    return r ? r : edit_catch_all(e, &left, 3) ?: 1;
}

/*
 * Returns whether the name can be that of a driver's class. Drivers choose these names freely, but
 * they contain the name of the interface that the class implements.
 */
bool point_is_sql(struct str name)
{
    return !point_begins(name, "java/") && (memmem(name.data, name.len, "Statement", 9) ||
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
        if (str_ends_in(descriptor, results[i]))
            return true;
    }
    return false;
}

/*
 * Instruments Statement.execute*, which has the SQL as its argument, or that of a prepared
 * statement.
 */
static int point_executes(const struct instrument_class *c, struct edit *e, struct str descriptor)
{
    _cleanup_(buf_release) struct buf first = BUF(32);
    bool prepared = point_begins(descriptor, "()");
    int r = 0;
    code_load(&first, 'A', !prepared);
    if (!prepared) {
        r = code_int(e->rewrite, &first, CHILD_JDBC);
        r = r ? r : point_probe(e, &first, "child", "(Ljava/lang/String;I)J");
    } else {
        r = point_probe(e, &first, "executes", "(Ljava/lang/Object;)J");
    }
    return r ? r : point_child(c, e, &first, 2);
}

/* Instruments Connection.prepareStatement and prepareCall. */
static int point_prepares(struct edit *e)
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
    r = r ? r : point_probe(e, &last, "prepared", "(Ljava/lang/Object;Ljava/lang/Object;)V");
    return r ? r : point_returns(e, &last, 2) ?: 1;
}

int point_sql(const struct instrument_class *c, struct edit *e, struct str name,
              struct str descriptor)
{
    bool executes =
        point_begins(name, "execute") && is_result(descriptor) &&
        (point_begins(descriptor, "()") || point_begins(descriptor, "(Ljava/lang/String;"));
    bool prepares = (str_is(name, "prepareStatement") || str_is(name, "prepareCall")) &&
                    point_begins(descriptor, "(Ljava/lang/String;");
    bool ends = (str_is(name, "commit") || str_is(name, "rollback")) && str_is(descriptor, "()V");
    if (e->method->access & ACC_STATIC || !(e->method->access & ACC_PUBLIC))
        return 0;
    if (executes &&
        (mentions(c, "java/sql/Statement") || mentions(c, "java/sql/PreparedStatement") ||
         mentions(c, "java/sql/CallableStatement")))
        return point_executes(c, e, descriptor);
    if ((prepares || ends) && mentions(c, "java/sql/Connection"))
        return prepares ? point_prepares(e)
                        : point_child_named(c, e, str_is(name, "commit") ? "COMMIT" : "ROLLBACK",
                                            CHILD_JDBC);
    return 0;
}
