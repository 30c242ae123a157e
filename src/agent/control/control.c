/* SPDX-License-Identifier: Apache-2.0 */
/* The capture allow-control=y, the table of verbs, the list of halted threads, and the log. */
#include "agent/control/control.h"

#include "agent/session/capture.h"
#include "agent/session/session.h"
#include "agent/stacks/names.h"
#include "agent/vm/error_words.h"
#include "agent/vm/thread_table.h"
#include "base/clock.h"
#include "jfr/writer.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { STEP_WAIT_MS = 2000 };

static const struct verb {
    const char *name, *operands;
    int least, most;
    int (*run)(struct control_call *c);
    jvmtiCapabilities needs;
} verbs[] = {
    {"suspend", "THREAD", 1, 1, control_suspend, {.can_suspend = 1}},
    {"resume", "THREAD", 1, 1, control_resume, {.can_suspend = 1}},
    {"interrupt", "THREAD", 1, 1, control_interrupt, {.can_signal_thread = 1}},
    {"stop", "THREAD [EXCEPTION]", 1, 2, control_stop_thread, {.can_signal_thread = 1}},
    {"pop", "THREAD", 1, 1, control_pop, {.can_pop_frame = 1}},
    {"return", "THREAD [VALUE]", 1, 2, control_return, {.can_force_early_return = 1}},
    {"set", "THREAD DEPTH NAME VALUE", 4, 4, control_set, {.can_access_local_variables = 1}},
    {"break",
     "Class.method|Class:LINE",
     1,
     1,
     control_break,
     {.can_generate_breakpoint_events = 1, .can_suspend = 1}},
    {"clear",
     "Class.method|Class:LINE",
     1,
     1,
     control_clear,
     {.can_generate_breakpoint_events = 1}},
    {"step",
     "THREAD [into|over|out]",
     1,
     2,
     control_step,
     {.can_generate_single_step_events = 1, .can_generate_frame_pop_events = 1, .can_suspend = 1}},
    {"redefine", "FILE", 1, 1, control_redefine, {.can_redefine_classes = 1}},
    {"verbose", "gc|class|jni on|off", 2, 2, control_verbose, {0}},
    {"list", "", 0, 0, NULL, {0}},
};

static const struct jfr_type control_type = {
    .name = "jvmscope.Control",
    .label = "Control Command",
    .category = "jvmscope",
    .description =
        "A command of jvmscope control and its outcome, or a thread that stopped because of one",
    .kind = JFR_EVENT,
    .fields = JFR_FIELDS({"command", "Command", "java.lang.String"},
                         {"thread", "Thread", "java.lang.String"},
                         {"outcome", "Outcome", "java.lang.String"}),
};

/* protects everything below; not held during JVM TI calls that may wait */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct halted halted[HALTED_MAX];
static bool active;
static uint32_t type;
static __thread bool carrying_out;

void control_lock(void)
{
    pthread_mutex_lock(&lock);
}

void control_unlock(void)
{
    pthread_mutex_unlock(&lock);
}

struct halted *halted_find(JNIEnv *jni, jthread t)
{
    for (int i = 0; i < HALTED_MAX; i++)
        if (halted[i].thread && (*jni)->IsSameObject(jni, halted[i].thread, t))
            return &halted[i];
    return NULL;
}

struct halted *halted_add(JNIEnv *jni, jthread t, const char *name, const char *why)
{
    struct halted *h = halted_find(jni, t);
    for (int i = 0; i < HALTED_MAX && !h && active; i++)
        if (!halted[i].thread)
            h = &halted[i];
    if (!h)
        return NULL;
    if (!h->thread) {
        jthread global = (*jni)->NewGlobalRef(jni, t);
        if (!global)
            return NULL;
        *h = (struct halted){.thread = global, .name = strdup(name ? name : "?")};
    }
    h->why = why;
    return h;
}

static void halted_remove(JNIEnv *jni, struct halted *h)
{
    (*jni)->DeleteGlobalRef(jni, h->thread);
    free(h->name);
    *h = (struct halted){0};
}

jvmtiError control_release(struct inspection *i, struct halted *h)
{
    jvmtiError e = JVMTI_ERROR_THREAD_NOT_SUSPENDED;
    /*
     * A thread that stops at a breakpoint enters itself into the table shortly before it suspends
     * itself.
     */
    for (int tries = 0; tries < 1000 && e == JVMTI_ERROR_THREAD_NOT_SUSPENDED; tries++) {
        e = (*i->ti)->ResumeThread(i->ti, h->thread);
        if (e == JVMTI_ERROR_THREAD_NOT_SUSPENDED)
            nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    halted_remove(i->jni, h);
    return e;
}

bool control_is_ours(JNIEnv *jni, jthread t)
{
    const struct thread *entry = carrying_out ? NULL : threads_find(jni, t);
    return carrying_out || (entry && entry->own);
}

void control_place(JNIEnv *jni, jmethodID m, jlocation at, char *to, size_t size)
{
    unsigned hold = names_hold();
    const struct method *method = names_method(jni, m);
    char class_name[256] = "?";
    if (method)
        names_dotted(method->class_name, class_name, sizeof(class_name));
    uint32_t line = method && at >= 0 ? names_method_line(method, (int32_t)at) : 0;
    if (line)
        snprintf(to, size, "%s.%s:%u", class_name, method->name, line);
    else
        snprintf(to, size, "%s.%s", class_name, method ? method->name : "?");
    names_unhold(hold);
}

void control_where(struct inspection *i, jthread t, char *to, size_t size)
{
    jmethodID m;
    jlocation at;
    if ((*i->ti)->GetFrameLocation(i->ti, t, 0, &m, &at) == JVMTI_ERROR_NONE)
        control_place(i->jni, m, at, to, size);
    else
        snprintf(to, size, "no Java frame");
}

void control_record(const char *thread, const char *command, const char *outcome)
{
    struct jfr_event e;
    size_t room = strlen(command) + strlen(outcome) + (thread ? strlen(thread) : 0) + 64;
    if (!active || !session_now || !session_now->out.jfr ||
        !jfr_begin(session_now->out.jfr, type, room, &e))
        return;
    jfr_put_time(&e, now_ns());
    jfr_put_string(&e, command);
    jfr_put_string(&e, thread);
    jfr_put_string(&e, outcome);
    jfr_commit(&e);
}

int control_error(struct control_call *c, const char *what, jvmtiError e)
{
    if (e == JVMTI_ERROR_NONE)
        return 0;
    buf_printf(c->i->why, "%s: ", what);
    vm_put_error(c->i->why, e);
    if (e == JVMTI_ERROR_THREAD_SUSPENDED)
        buf_string(c->i->why, "; the verb resume lets it continue");
    return e == JVMTI_ERROR_THREAD_SUSPENDED ? -EBUSY : -ENOTSUP;
}

static void put_list(struct inspection *i)
{
    json_key_array(i->out, "held");
    for (int k = 0; k < HALTED_MAX; k++) {
        char place[512];
        if (!halted[k].thread)
            continue;
        control_where(i, halted[k].thread, place, sizeof(place));
        json_begin_object(i->out);
        json_key_string(i->out, "thread", halted[k].name);
        json_key_string(i->out, "why", halted[k].why);
        json_key_string(i->out, "at", place);
        json_end_object(i->out);
    }
    json_end_array(i->out);
    control_put_breakpoints(i);
}

static bool lacks(const jvmtiCapabilities *needs, const jvmtiCapabilities *have)
{
    uint64_t need[2], has[2];
    memcpy(need, needs, sizeof(need));
    memcpy(has, have, sizeof(has));
    return (need[0] & ~has[0]) | (need[1] & ~has[1]);
}

static const struct verb *find_verb(const char *name, struct buf *why)
{
    for (size_t v = 0; v < ARRAY_SIZE(verbs); v++)
        if (strcmp(verbs[v].name, name) == 0)
            return &verbs[v];
    buf_printf(why, "%s: not a verb; allowed:", name);
    for (size_t v = 0; v < ARRAY_SIZE(verbs); v++)
        buf_printf(why, " %s", verbs[v].name);
    return NULL;
}

/*
 * Waits until the thread of a step has stopped again, for at most STEP_WAIT_MS, and writes where it
 * is.
 */
static void wait_for(struct control_call *c)
{
    char place[512];
    bool stopped = false;
    for (int ms = 0; c->waits && !stopped && ms < STEP_WAIT_MS; ms++) {
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        control_lock();
        jint state = 0;
        stopped = halted_find(c->i->jni, c->waits) != NULL &&
                  (*c->i->ti)->GetThreadState(c->i->ti, c->waits, &state) == JVMTI_ERROR_NONE &&
                  state & JVMTI_THREAD_STATE_SUSPENDED;
        control_unlock();
    }
    if (stopped) {
        control_where(c->i, c->waits, place, sizeof(place));
        buf_printf(c->done, "now at %s", place);
    } else if (c->waits) {
        buf_string(c->done, "it runs; `list` shows it when it has stopped");
    }
}

static int run_verb(const struct verb *v, struct control_call *c, const char *command)
{
    _cleanup_free_ char *thread =
        c->operands[0] && strstr(v->operands, "THREAD") ? strdup(c->operands[0]) : NULL;
    if (!v->run) {
        control_lock();
        put_list(c->i);
        control_unlock();
        return 0;
    }
    if (lacks(&v->needs, &c->i->have)) {
        buf_printf(
            c->i->why,
            "%s: only a program that was started by jvmscope run --allow-control permits this verb",
            v->name);
        return -ENOTSUP;
    }
    int r = v->run(c);
    if (r == 0)
        wait_for(c);
    control_lock();
    control_record(thread, command, r == 0 ? buf_str(c->done) : buf_str(c->i->why));
    control_unlock();
    json_key_string(c->i->out, "done", buf_str(c->done));
    return r;
}

int control_execute(JNIEnv *jni, const char *text, struct buf *out, struct buf *why)
{
    _cleanup_free_ char *words = strdup(text), *command = strdup(text);
    _cleanup_(buf_release) struct buf done = BUF(4096);
    if (!words || !command)
        return -ENOMEM;
    for (char *p = command; (p = strchr(p, '\t'));)
        *p = ' ';
    if (!active) {
        buf_string(why, "no recording permits control; begin one with --allow-control");
        return -EPERM;
    }
    struct json j = {.out = out};
    struct inspection i = inspect_with(jni, &j, why);
    struct control_call c = {.i = &i, .done = &done};
    char *rest = words, *name = strsep(&rest, "\t"), *word;
    while (c.count < CONTROL_OPERANDS && (word = strsep(&rest, "\t")))
        c.operands[c.count++] = word;
    const struct verb *v = find_verb(name, why);
    if (!v)
        return -EINVAL;
    if (rest || c.count < v->least || c.count > v->most) {
        buf_printf(why, "%s: takes %s", name, *v->operands ? v->operands : "nothing");
        return -EINVAL;
    }
    if ((*jni)->PushLocalFrame(jni, 64) < 0) {
        vm_clear_exception(jni);
        return -ENOMEM;
    }
    carrying_out = true;
    unsigned hold = names_hold();
    json_begin_object(&j);
    int r = run_verb(v, &c, command);
    json_end_object(&j);
    names_unhold(hold);
    carrying_out = false;
    vm_clear_exception(jni);
    (*jni)->PopLocalFrame(jni, NULL);
    return r == 0 ? buf_error(out) : r;
}

/* ---- the capture ---- */

static bool control_wanted(const struct options *o)
{
    return option_on(o, OPT_ALLOW_CONTROL);
}

static int control_load(struct session *s, struct buf *why)
{
    static const jvmtiCapabilities more = {
        .can_suspend = 1,
        .can_signal_thread = 1,
        .can_pop_frame = 1,
        .can_force_early_return = 1,
        .can_access_local_variables = 1,
        .can_generate_breakpoint_events = 1,
        .can_generate_single_step_events = 1,
        .can_generate_frame_pop_events = 1,
        .can_redefine_classes = 1,
        .can_redefine_any_class = 1,
    };
    int r = inspect_open(&more, &control_stop_events, why);
    return r < 0 ? r : jfr_declare(s->out.jfr, &control_type, 1, &type);
}

static int control_start(struct session *s, JNIEnv *jni, struct buf *why)
{
    struct inspection i = inspect_with(jni, NULL, why);
    if (!i.have.can_generate_breakpoint_events)
        session_message(s,
                        "allow-control: this VM was not started with it, so only suspend, resume, "
                        "interrupt, stop, redefine, verbose and list work");
    control_lock();
    active = true;
    control_unlock();
    return 0;
}

static void control_stop(struct session *s, JNIEnv *jni)
{
    struct inspection i = inspect_with(jni, NULL, NULL);
    control_lock();
    active = false;
    control_unlock();
    control_stops_end(i.ti, jni);
    control_verbose_end(i.ti);
    control_lock();
    for (int k = 0; k < HALTED_MAX; k++)
        if (halted[k].thread)
            control_release(&i, &halted[k]);
    control_unlock();
}

static void control_status(struct session *s, struct buf *out)
{
    unsigned n = 0;
    control_lock();
    for (int k = 0; k < HALTED_MAX; k++)
        n += halted[k].thread != NULL;
    control_unlock();
    buf_printf(out, "control.held_threads %u\n", n);
}

const struct capture capture_control = {
    .name = "control",
    .options = OPTION_BIT(OPT_ALLOW_CONTROL),
    .records_only = true,
    .wanted = control_wanted,
    .load = control_load,
    .start = control_start,
    .stop = control_stop,
    .status = control_status,
};
