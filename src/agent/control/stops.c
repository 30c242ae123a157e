/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The verbs break, clear and step. The callbacks run on the thread that stops: it enters itself
 * into the table and suspends itself. A step over or out of a call does not observe the callee; it
 * waits until the frame is popped.
 */
#include "agent/control/control.h"

#include "agent/instrument/named_class.h"
#include "agent/stacks/names.h"
#include "agent/vm/loaded_classes.h"
#include "agent/vm/shown_thread.h"
#include "classfile/classfile.h"
#include "options/names.h"
#include "options/signature.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Protected by control_lock. */
static struct breakpoint {
    jmethodID method;
    jlocation at;
    /* global reference that keeps the class, and thereby the method; NULL: unused entry */
    jclass class;
    char *text; /* as the user wrote it */
    uint64_t hits;
} breakpoints[BREAKPOINTS_MAX];

enum step { STEP_NONE, STEP_INTO, STEP_OVER, STEP_OUT };

static struct {
    jthread thread; /* global reference; only one thread steps at a time */
    enum step how;
    jmethodID method;
    uint32_t line;
    jint frames;
} step;

static uint32_t line_of(JNIEnv *jni, jmethodID m, jlocation at)
{
    unsigned hold = names_hold();
    const struct method *method = names_method(jni, m);
    uint32_t line = method ? names_method_line(method, (int32_t)at) : 0;
    names_unhold(hold);
    return line;
}

/* Requires the lock. */
static void end_step(jvmtiEnv *ti, JNIEnv *jni)
{
    if (!step.thread)
        return;
    (*ti)->SetEventNotificationMode(ti, JVMTI_DISABLE, JVMTI_EVENT_SINGLE_STEP, step.thread);
    (*ti)->SetEventNotificationMode(ti, JVMTI_DISABLE, JVMTI_EVENT_FRAME_POP, step.thread);
    (*jni)->DeleteGlobalRef(jni, step.thread);
    memset(&step, 0, sizeof(step));
}

static bool steps(JNIEnv *jni, jthread t)
{
    return step.thread && (*jni)->IsSameObject(jni, step.thread, t);
}

/* Suspends the calling thread. The caller holds the lock; this function releases it. */
static void halt(jvmtiEnv *ti, JNIEnv *jni, jthread t, jmethodID m, jlocation at, const char *why)
{
    _cleanup_free_ char *name = shown_thread_name(jni, t);
    char place[512];
    control_place(jni, m, at, place, sizeof(place));
    if (steps(jni, t))
        end_step(ti, jni);
    bool entered = halted_add(jni, t, name, why);
    if (entered)
        control_record(name, why, place);
    control_unlock();
    if (entered)
        (*ti)->SuspendThread(ti, t);
}

static void JNICALL on_breakpoint(jvmtiEnv *ti, JNIEnv *jni, jthread t, jmethodID m, jlocation at)
{
    if (control_is_ours(jni, t))
        return;
    control_lock();
    for (int k = 0; k < BREAKPOINTS_MAX; k++) {
        if (breakpoints[k].class && breakpoints[k].method == m && breakpoints[k].at == at) {
            breakpoints[k].hits++;
            halt(ti, jni, t, m, at, "breakpoint");
            return;
        }
    }
    control_unlock();
}

static void JNICALL on_step(jvmtiEnv *ti, JNIEnv *jni, jthread t, jmethodID m, jlocation at)
{
    jint frames = 0;
    if (control_is_ours(jni, t))
        return;
    control_lock();
    if (!steps(jni, t) || (*ti)->GetFrameCount(ti, t, &frames) != JVMTI_ERROR_NONE) {
        control_unlock();
        return;
    }
    bool other_line = m != step.method || line_of(jni, m, at) != step.line;
    bool reached = frames < step.frames ||
                   (step.how == STEP_INTO && (frames > step.frames || other_line)) ||
                   (step.how == STEP_OVER && frames == step.frames && other_line);
    if (reached) {
        halt(ti, jni, t, m, at, "step");
        return;
    }
    if (frames > step.frames && (*ti)->NotifyFramePop(ti, t, 0) == JVMTI_ERROR_NONE)
        (*ti)->SetEventNotificationMode(ti, JVMTI_DISABLE, JVMTI_EVENT_SINGLE_STEP, t);
    control_unlock();
}

static void JNICALL on_frame_pop(jvmtiEnv *ti, JNIEnv *jni, jthread t, jmethodID m, jboolean thrown)
{
    control_lock();
    if (steps(jni, t))
        (*ti)->SetEventNotificationMode(ti, JVMTI_ENABLE, JVMTI_EVENT_SINGLE_STEP, t);
    control_unlock();
}

const jvmtiEventCallbacks control_stop_events = {
    .Breakpoint = on_breakpoint,
    .SingleStep = on_step,
    .FramePop = on_frame_pop,
};

int control_step(struct control_call *c)
{
    static const struct {
        const char *word;
        enum step how;
    } words[] = {{"into", STEP_INTO}, {"over", STEP_OVER}, {"out", STEP_OUT}};

    jvmtiEnv *ti = c->i->ti;
    JNIEnv *jni = c->i->jni;
    jthread t = control_halted_thread(c, c->operands[0]);
    enum step how = c->count < 2 ? STEP_OVER : STEP_NONE;
    for (size_t k = 0; c->count > 1 && k < ARRAY_SIZE(words); k++)
        if (strcmp(words[k].word, c->operands[1]) == 0)
            how = words[k].how;
    if (!t)
        return -ESRCH;
    if (how == STEP_NONE) {
        buf_printf(c->i->why, "%s: into, over or out", c->operands[1]);
        return -EINVAL;
    }
    jmethodID m = NULL;
    jlocation at = 0;
    jint frames = 0;
    int r = control_error(c, c->operands[0], (*ti)->GetFrameLocation(ti, t, 0, &m, &at));
    if (r == 0)
        r = control_error(c, c->operands[0], (*ti)->GetFrameCount(ti, t, &frames));
    if (r < 0)
        return r;
    control_lock();
    struct halted *h = halted_find(jni, t);
    end_step(ti, jni);
    step.thread = (*jni)->NewGlobalRef(jni, t);
    step.how = how;
    step.method = m;
    step.line = at >= 0 ? line_of(jni, m, at) : 0;
    step.frames = frames;
    jvmtiError e = (*ti)->SetEventNotificationMode(ti, JVMTI_ENABLE, JVMTI_EVENT_FRAME_POP, t);
    /*
     * Stepping out of a frame needs no single steps. A native method cannot notify its end, so the
     * first single step after it is reported instead.
     */
    if (e == JVMTI_ERROR_NONE &&
        (how != STEP_OUT || (*ti)->NotifyFramePop(ti, t, 0) != JVMTI_ERROR_NONE))
        e = (*ti)->SetEventNotificationMode(ti, JVMTI_ENABLE, JVMTI_EVENT_SINGLE_STEP, t);
    if (e != JVMTI_ERROR_NONE)
        end_step(ti, jni);
    else if (h)
        e = control_release(c->i, h);
    control_unlock();
    c->waits = e == JVMTI_ERROR_NONE ? t : NULL;
    return control_error(c, c->operands[0], e);
}

/* ---- breakpoints ---- */

/*
 * Parses "pkg.Class:12" or "pkg.Class.method(int)". Stores the class in `class`, and either the
 * line or the method's name and parameters.
 */
static bool split(const char *text, char *class, size_t size, uint32_t *ret_line,
                  const char **ret_method)
{
    const char *colon = strrchr(text, ':');
    const char *open = strchr(text, '(');
    const char *end = open ? open : text + strlen(text);
    const char *cut = end;
    if (colon && !open) {
        char *rest;
        unsigned long n = strtoul(colon + 1, &rest, 10);
        *ret_line = (uint32_t)n;
        cut = n && !*rest ? colon : text;
    } else {
        while (cut > text && *cut != '.')
            cut--;
        *ret_method = cut + 1;
    }
    if (cut == text || (size_t)(cut - text) >= size)
        return false;
    memcpy(class, text, (size_t)(cut - text));
    class[cut - text] = 0;
    return true;
}

/* Returns whether a method matches "name" or "name(parameters)". */
static bool is_method(const struct method *m, const char *wanted)
{
    size_t n = strcspn(wanted, "(");
    return strlen(m->name) == n && memcmp(m->name, wanted, n) == 0 &&
           (!wanted[n] || signature_matches(wanted + n, strlen(wanted + n),
                                            (struct str){m->descriptor, strlen(m->descriptor)}));
}

/* Returns the breakpoint at a location, or NULL. Requires the lock. */
static struct breakpoint *breakpoint_at(jmethodID m, jlocation at)
{
    for (int k = 0; k < BREAKPOINTS_MAX; k++)
        if (breakpoints[k].class && breakpoints[k].method == m && breakpoints[k].at == at)
            return &breakpoints[k];
    return NULL;
}

/*
 * Sets or clears the breakpoint at a location. Returns 1 if it was set, is set already, or was
 * cleared; 0 if there was nothing to clear, if the table is full, or, with *ret_error set, if the
 * VM refused.
 */
static int place_one(struct control_call *c, jclass class, jmethodID m, jlocation at, bool set,
                     jvmtiError *ret_error)
{
    jvmtiEnv *ti = c->i->ti;
    JNIEnv *jni = c->i->jni;
    if (set && breakpoint_at(m, at))
        return 1;
    for (int k = 0; k < BREAKPOINTS_MAX; k++) {
        struct breakpoint *b = &breakpoints[k];
        if (set ? b->class != NULL : !b->class || b->method != m || b->at != at)
            continue;
        jvmtiError e = set ? (*ti)->SetBreakpoint(ti, m, at) : (*ti)->ClearBreakpoint(ti, m, at);
        if (e != JVMTI_ERROR_NONE) {
            *ret_error = e;
            return 0;
        }
        if (set) {
            *b = (struct breakpoint){m, at, (*jni)->NewGlobalRef(jni, class),
                                     strdup(c->operands[0]), 0};
        } else {
            (*jni)->DeleteGlobalRef(jni, b->class);
            free(b->text);
            *b = (struct breakpoint){0};
        }
        return 1;
    }
    return 0;
}

/* What a search for the place of a breakpoint found; it explains why none was set. */
struct seen {
    unsigned classes;
    bool abstract, native; /* a method of the wanted name has no code */
    bool lines;            /* a method of the class has line numbers */
    struct buf others;     /* methods of the wanted name with other parameters */
    struct nearest nearest;
    struct buf similar; /* otherwise, methods of the most similar name */
    char above[512];    /* the class, if the user wrote CLASS.METHOD:LINE */
    bool above_loaded;
    bool is_class;        /* the whole text is the name of a loaded class */
    struct buf inherited; /* the method that a class inherits under this name */
};

static void seen_release(struct seen *seen)
{
    buf_release(&seen->others);
    buf_release(&seen->similar);
    buf_release(&seen->inherited);
}

static void put_method(struct buf *list, const struct method *m)
{
    buf_printf(list, "%s%s", list->len ? ", " : "; there is ", m->name);
    signature_put_parameters(list, m->descriptor);
}

static void see_other(struct seen *seen, const struct method *m, const char *wanted)
{
    size_t n = strcspn(wanted, "(");
    if (strlen(m->name) == n && strncmp(m->name, wanted, n) == 0) {
        put_method(&seen->others, m);
        return;
    }
    if (nearest_try(&seen->nearest, m->name))
        buf_clear(&seen->similar);
    if (strcmp(m->name, seen->nearest.best) == 0)
        put_method(&seen->similar, m);
}

/* Sets or clears breakpoints at all matching locations in one class. Returns their number. */
static int place_in_class(struct control_call *c, jclass class, uint32_t line, const char *method,
                          bool set, struct seen *seen, jvmtiError *ret_error)
{
    jint n = 0;
    jmethodID *methods = NULL;
    int placed = 0;
    if ((*c->i->ti)->GetClassMethods(c->i->ti, class, &n, &methods) != JVMTI_ERROR_NONE)
        return 0;
    for (jint k = 0; k < n; k++) {
        const struct method *m = names_method(c->i->jni, methods[k]);
        if (!m)
            continue;
        bool abstract = m->modifiers & ACC_ABSTRACT, meant = method && is_method(m, method);
        seen->lines |= m->n_lines > 0;
        if (m->native || abstract) {
            seen->abstract |= meant && abstract;
            seen->native |= meant && m->native;
        } else if (meant) {
            placed += place_one(c, class, methods[k], 0, set, ret_error);
        } else if (method) {
            see_other(seen, m, method);
        }
        /*
         * Only the first instruction of a line, because a loop may return to its line several
         * times.
         */
        for (size_t l = 0; line && l < m->n_lines; l++) {
            if (m->lines[l].line == line) {
                placed += place_one(c, class, methods[k], m->lines[l].bci, set, ret_error);
                break;
            }
        }
    }
    vm_free(methods);
    return placed;
}

/* Writes why no breakpoint was set in the class that was wanted. */
static void explain(struct control_call *c, const struct seen *seen, const char *wanted,
                    uint32_t line)
{
    const struct buf *others = seen->others.len ? &seen->others : &seen->similar;
    const char *text = c->operands[0];
    struct buf *why = c->i->why;
    if (!seen->classes && seen->above_loaded)
        buf_printf(why, "%s: a line number follows the class, not a method: %s:%u", text,
                   seen->above, line);
    else if (!seen->classes && seen->is_class)
        buf_printf(why, "%s: this is a class; its method or line must follow, as in %s:12", text,
                   text);
    else if (!seen->classes)
        inspect_no_class(c->i, text, wanted, named_class_method(text));
    else if (line && !seen->lines)
        buf_printf(why, "%s: the class was compiled without line numbers", text);
    else if (line)
        buf_printf(why, "%s: the class has no code for this line", text);
    else if (seen->abstract)
        buf_printf(why, "%s: the method is abstract and has no code; name one that implements it",
                   text);
    else if (seen->native)
        buf_printf(why, "%s: the method is native and has no code where a thread could stop", text);
    else if (seen->inherited.len && !buf_error(&seen->inherited))
        buf_printf(why, "%s: the class has no such method, but inherits %s", text,
                   buf_str(&seen->inherited));
    else
        buf_printf(why, "%s: the class has no such method%s", text,
                   buf_error(others) ? "" : buf_str(others));
}

static int place(struct control_call *c, bool set)
{
    char wanted[512];
    uint32_t line = 0;
    const char *method = NULL, *text = c->operands[0], *fault = NULL;
    _cleanup_(seen_release) struct seen seen = {
        .others = BUF(1024), .similar = BUF(1024), .inherited = BUF(1024)};
    _cleanup_free_ char *written = strdup(text);
    if (!written)
        return -ENOMEM;
    const char *close = strrchr(text, ')');
    /* not a descriptor: nothing follows the parentheses */
    if (!close || !close[1 + strspn(close + 1, " ")])
        option_list_normalize(written, ':');
    if (!split(written, wanted, sizeof(wanted), &line, &method)) {
        buf_printf(c->i->why,
                   "%s: not a place; pkg.Class.method, pkg.Class.method(int) or pkg.Class:12",
                   text);
        return -EINVAL;
    }
    const char *open = strchr(written, '(');
    if (open && (fault = signature_fault(open, strlen(open)))) {
        buf_printf(c->i->why, "%s: %s", text, fault);
        return -EINVAL;
    }
    _cleanup_(loaded_classes_release) struct loaded_classes all = {0};
    int placed = 0;
    jvmtiError e = JVMTI_ERROR_NONE;
    if (loaded_classes(c->i->ti, c->i->jni, &all) < 0)
        return -ENOTSUP;
    _cleanup_free_ char *word = method ? strndup(method, strcspn(method, "(")) : NULL;
    seen.nearest.word = word ? word : "";
    const char *dot = line ? strrchr(wanted, '.') : NULL;
    snprintf(seen.above, sizeof(seen.above), "%.*s", dot ? (int)(dot - wanted) : 0, wanted);
    control_lock();
    for (jint k = 0; k < all.n; k++) {
        _cleanup_free_ char *name = inspect_class_name(c->i, all.of[k]);
        if (name && strcmp(name, wanted) == 0) {
            seen.classes++;
            placed += place_in_class(c, all.of[k], line, method, set, &seen, &e);
            if (method && !placed && !seen.inherited.len)
                (void)named_class_inherits(c->i->jni, all.of[k], method, &seen.inherited);
        }
        seen.above_loaded |= name && strcmp(name, seen.above) == 0;
        seen.is_class |= name && strcmp(name, text) == 0;
    }
    if (placed && set)
        e = (*c->i->ti)->SetEventNotificationMode(c->i->ti, JVMTI_ENABLE, JVMTI_EVENT_BREAKPOINT,
                                                  NULL);
    control_unlock();
    if (placed) {
        buf_printf(c->done, "%s: %s %d place%s", text, set ? "stops at" : "cleared", placed,
                   placed > 1 ? "s" : "");
        return control_error(c, text, e);
    }
    if (e != JVMTI_ERROR_NONE)
        return control_error(c, text, e);
    if (set || !seen.classes)
        explain(c, &seen, wanted, line);
    else
        buf_printf(c->i->why, "%s: no breakpoint there", text);
    return -ESRCH;
}

int control_break(struct control_call *c)
{
    return place(c, true);
}

int control_clear(struct control_call *c)
{
    return place(c, false);
}

void control_put_breakpoints(struct inspection *i)
{
    json_key_array(i->out, "breakpoints");
    for (int k = 0; k < BREAKPOINTS_MAX; k++) {
        char where[512];
        if (!breakpoints[k].class)
            continue;
        control_place(i->jni, breakpoints[k].method, breakpoints[k].at, where, sizeof(where));
        json_begin_object(i->out);
        json_key_string(i->out, "asked", breakpoints[k].text);
        json_key_string(i->out, "at", where);
        json_key_u64(i->out, "hits", breakpoints[k].hits);
        json_end_object(i->out);
    }
    json_end_array(i->out);
}

void control_stops_end(jvmtiEnv *ti, JNIEnv *jni)
{
    control_lock();
    end_step(ti, jni);
    for (int k = 0; k < BREAKPOINTS_MAX; k++) {
        if (!breakpoints[k].class)
            continue;
        (*ti)->ClearBreakpoint(ti, breakpoints[k].method, breakpoints[k].at);
        (*jni)->DeleteGlobalRef(jni, breakpoints[k].class);
        free(breakpoints[k].text);
        breakpoints[k] = (struct breakpoint){0};
    }
    control_unlock();
    (*ti)->SetEventNotificationMode(ti, JVMTI_DISABLE, JVMTI_EVENT_BREAKPOINT, NULL);
}
