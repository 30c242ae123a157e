/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Instruments the methods in which work is handed from one thread to another, if inserting one call
 * is not enough.
 */
#include "agent/capture/requests/points.h"

static int plain(struct edit *e, const char *probe)
{
    _cleanup_(buf_release) struct buf code = BUF(32);
    int r = point_probe(e, &code, probe, "()V");
    return r ? r : edit_insert(e, EDIT_ENTRY, 0, 0, &code, 0) ?: 1;
}

/*
 * Instruments a method that returns the next task of a pool's thread. When the recording begins,
 * such threads are in a loop whose old code they never leave, but they call this method for each
 * task.
 */
int point_takes(const struct instrument_class *c, struct edit *e, const struct point *p)
{
    _cleanup_(buf_release) struct buf code = BUF(32);
    int r = plain(e, "idle");
    r = MIN(r, 0);
    code_op(&code, OP_DUP);
    r = r ? r : code_int(e->rewrite, &code, p->number);
    r = r ? r : point_probe(e, &code, "taken", "(Ljava/lang/Object;I)V");
    return r ? r : point_returns(e, &code, 2) ?: 1;
}

/*
 * Instruments java.util.TaskQueue.removeMin() or rescheduleMin(), by which the timer's thread takes
 * queue[1] to run it, unless it was cancelled.
 */
int point_timer_takes(const struct instrument_class *c, struct edit *e, const struct point *p)
{
    _cleanup_(buf_release) struct buf code = BUF(64);
    int state = rewrite_fieldref(e->rewrite, "java/util/TimerTask", "state", "I"),
        due = rewrite_fieldref(e->rewrite, "java/util/TimerTask", "nextExecutionTime", "J"),
        local = edit_local(e, 'A'), r = MIN(MIN(state, due), MIN(local, 0));
    r = r ? r : point_push(c, e, p, "0 f:java/util/TaskQueue.queue:[Ljava/util/TimerTask;", &code);
    r = r ? r : code_int(e->rewrite, &code, 1);
    if (r)
        return MIN(r, 0);
    int task = rewrite_class(e->rewrite, "java/util/TimerTask");
    code_op(&code, OP_AALOAD);
    code_op(&code, OP_DUP);
    code_store(&code, 'A', (unsigned)local);
    r = code_int(e->rewrite, &code, p->number);
    r = r ? r : point_probe(e, &code, "taken", "(Ljava/lang/Object;I)V");
    code_load(&code, 'A', (unsigned)local);
    for (int i = 0; i < 2; i++) {
        code_load(&code, 'A', (unsigned)local);
        code_ref(&code, OP_CHECKCAST, task);
        code_ref(&code, OP_GETFIELD, i ? due : state);
    }
    r = r ? r : MIN(task, 0);
    r = r ? r : point_probe(e, &code, "timed", "(Ljava/lang/Object;IJ)V");
    return r ? r : edit_insert(e, EDIT_ENTRY, 0, 0, &code, POINT_STACK) ?: 1;
}

/* Creates a local variable for the number of a work; it is 0 outside of one. */
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
    return point_probe(e, code, "ended", "(J)V");
}

static int work_is_left(struct edit *e, int local)
{
    _cleanup_(buf_release) struct buf code = BUF(32);
    int r = work_ends(e, local, &code);
    code_op(&code, OP_ATHROW);
    return r ? r : edit_catch_all(e, &code, 2);
}

/*
 * Instruments the loop of a pool's thread, which calls run() of each task: during this call the
 * thread works for the request that submitted the task.
 */
int point_runs(const struct instrument_class *c, struct edit *e, const struct point *p)
{
    _cleanup_(buf_release) struct buf before = BUF(32), after = BUF(32);
    int r = plain(e, "pooled");
    int local = r < 0 ? r : work_local(e);
    int found = 0;
    r = MIN(local, 0);
    if (r < 0)
        return r;
    code_op(&before, OP_DUP);
    r = code_int(e->rewrite, &before, p->number);
    r = r ? r : point_probe(e, &before, "runs", "(Ljava/lang/Object;I)J");
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

/*
 * Instruments a method that is itself the work of a task: the task is `this`, or the parameter of a
 * given type.
 */
int point_is_run(const struct instrument_class *c, struct edit *e, const struct point *p)
{
    _cleanup_(buf_release) struct buf first = BUF(32), last = BUF(32);
    int local = edit_local(e, 'J'), slot = point_slot(c, e, p);
    if (local < 0 || slot < 0)
        return MIN(local, 0);
    code_load(&first, 'A', (unsigned)slot);
    int r = code_int(e->rewrite, &first, p->number);
    r = r ? r : point_probe(e, &first, p->probe, "(Ljava/lang/Object;I)J");
    code_store(&first, 'J', (unsigned)local);
    r = r ? r : edit_insert(e, EDIT_ENTRY, 0, 0, &first, 2);
    r = r ? r : work_ends(e, local, &last);
    r = r ? r : point_returns(e, &last, 2);
    return r ? r : work_is_left(e, local) ?: 1;
}
