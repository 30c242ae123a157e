/* SPDX-License-Identifier: Apache-2.0 */
/* Inserts the probes of cpu=times into methods. */
#include "agent/capture/times/methods.h"
#include "agent/capture/times/state.h"
#include "agent/instrument/shown_name.h"

/*
 * bytes of code of a small method; with a clock, the size that the JIT always inlines is used
 * instead:
 */
#define SMALL_METHOD       10
#define SMALL_METHOD_TIMED 35

struct editing {
    struct edit *e;
    struct buf code;
    int local, number, r;
    int enter, exit, caught;
};

/*
 * Returns whether this is straight-line code without calls, allocations or jumps, and no longer
 * than a few instructions: an accessor, or a method whose time a clock cannot distinguish from
 * nothing (doc/cpu-times.md).
 */
static bool is_small(const struct edit *e)
{
    if (e->code_len > (cpu_times.elapsed ? SMALL_METHOD_TIMED : SMALL_METHOD) ||
        (e->method->access & ACC_SYNCHRONIZED))
        return false;
    for (struct insn i = {0}; edit_next(e, &i);)
        if ((op_info[i.op] & (OP_IS_BRANCH | OP_IS_SWITCH)) ||
            (i.op >= OP_INVOKEVIRTUAL && i.op <= OP_ATHROW && i.op != OP_ARRAYLENGTH))
            return false;
    return true;
}

static void put_caught(void *data, uint32_t pc)
{
    struct editing *s = data;
    buf_clear(&s->code);
    code_load(&s->code, 'J', (unsigned)s->local);
    int r = code_int(s->e->rewrite, &s->code, s->number);
    code_invokestatic(&s->code, s->caught);
    if (r == 0)
        r = edit_insert(s->e, EDIT_BEFORE, pc, 0, &s->code, 3);
    s->r = s->r < 0 ? s->r : r;
}

static int put_probes(struct editing *s)
{
    int r = code_int(s->e->rewrite, &s->code, s->number);
    code_invokestatic(&s->code, s->enter);
    code_store(&s->code, 'J', (unsigned)s->local);
    if (r == 0)
        r = edit_insert(s->e, EDIT_ENTRY, 0, 0, &s->code, 2);
    buf_clear(&s->code);
    code_load(&s->code, 'J', (unsigned)s->local);
    code_invokestatic(&s->code, s->exit);
    for (struct insn i = {0}; edit_next(s->e, &i) && r == 0;)
        if (op_info[i.op] & OP_IS_RETURN)
            r = edit_insert(s->e, EDIT_BEFORE, i.pc, 0, &s->code, 2);
    code_op(&s->code, OP_ATHROW);
    if (r == 0)
        r = edit_catch_all(s->e, &s->code, 2);
    if (r == 0)
        edit_handlers(s->e, put_caught, s);
    return r < 0 ? r : s->r;
}

static int put_count(struct editing *s)
{
    struct rewrite *w = s->e->rewrite;
    int count = rewrite_methodref(w, TIMES_PROBE, "count", "(I)V");
    int r = count < 0 ? count : code_int(w, &s->code, s->number);
    if (r < 0)
        return r;
    code_invokestatic(&s->code, count);
    return edit_insert(s->e, EDIT_ENTRY, 0, 0, &s->code, 1);
}

static int edit_calls(struct editing *s)
{
    struct rewrite *w = s->e->rewrite;
    s->enter =
        rewrite_methodref(w, TIMES_PROBE, cpu_times.elapsed ? "enterTimed" : "enter", "(I)J");
    s->exit = rewrite_methodref(w, TIMES_PROBE, cpu_times.elapsed ? "exitTimed" : "exit", "(J)V");
    s->caught = rewrite_methodref(w, TIMES_PROBE, "caught", "(JI)V");
    s->local = edit_local(s->e, 'J');
    const int needed[] = {s->enter, s->exit, s->caught, s->local};
    for (size_t i = 0; i < ARRAY_SIZE(needed); i++)
        if (needed[i] < 0)
            return needed[i];
    return put_probes(s);
}

/* Instruments VirtualThread.mount and unmount, which show which virtual thread a carrier runs. */
static int edit_virtual_thread(struct editing *s)
{
    struct rewrite *w = s->e->rewrite;
    struct str name = class_utf8(w->class, s->e->method->name);
    bool mount = str_is(name, "mount");
    if (!mount && !str_is(name, "unmount"))
        return 0;
    int hook = rewrite_methodref(w, TIMES_PROBE, mount ? "mounted" : "unmounting", "()V");
    if (hook < 0)
        return hook;
    code_invokestatic(&s->code, hook);
    int r = mount ? 0 : edit_insert(s->e, EDIT_ENTRY, 0, 0, &s->code, 0);
    for (struct insn i = {0}; mount && edit_next(s->e, &i) && r == 0;)
        if (op_info[i.op] & OP_IS_RETURN)
            r = edit_insert(s->e, EDIT_BEFORE, i.pc, 0, &s->code, 0);
    return r < 0 ? r : 1;
}

static int64_t add_method(const struct instrument_class *c, const struct class_method *m)
{
    struct shown_name room;
    return times_method_add(instrument_shown_name(c, &room), class_utf8(c->file, m->name),
                            class_utf8(c->file, m->descriptor), c->source, m->access);
}

static int edit_method(const struct instrument_class *c, struct edit *e)
{
    struct editing s = {.e = e, .code = BUF(256)};
    int r;
    if (c->virtual_thread) {
        r = cpu_times.carrier ? edit_virtual_thread(&s) : 0;
    } else if (class_method_is_bridge(c->file, e->method)) {
        r = 0; /* its calls would count twice under one name */
    } else {
        int64_t number = add_method(c, e->method);
        bool small = is_small(e);
        s.number = (int)number;
        times_method_mark(number, small ? TIMES_SMALL : NULL);
        r = number < 0 ? (int)number : small ? put_count(&s) : edit_calls(&s);
        r = r < 0 ? r : 1;
    }
    buf_release(&s.code);
    return r;
}

static void left_method(const struct instrument_class *c, const struct class_method *m,
                        enum instrument_reason why)
{
    if (!c->virtual_thread && !class_method_is_bridge(c->file, m))
        times_method_mark(add_method(c, m), instrument_reasons[why]);
}

const struct instrument_client times_client = {
    .name = "cpu=times", .edit = edit_method, .virtual_threads = true, .left = left_method};
