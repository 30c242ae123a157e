/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exceptions=counts|stacks records how often each class is thrown at each place, and where it is
 * caught. Counts come from probes in the code (thrown_probes.h). With stacks, each throw is an
 * event as well, and everything comes from JVM TI's Exception event, for which the VM deoptimizes
 * at each throw and searches for the handler twice.
 */
#include "agent/capture/exceptions/native_thrower.h"
#include "agent/capture/exceptions/thrown_hidden.h"
#include "agent/capture/exceptions/thrown_probes.h"
#include "agent/capture/exceptions/thrown_rows.h"
#include "agent/instrument/guards.h"
#include "agent/instrument/instrument.h"
#include "agent/instrument/probe_class.h"
#include "agent/session/capture.h"
#include "agent/session/session.h"
#include "agent/stacks/names.h"
#include "agent/stacks/own_stack.h"
#include "agent/vm/thread_table.h"
#include "base/clock.h"
#include "base/dotted.h"
#include "jfr/writer.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum { DEPTH_MAX = 512, MESSAGE_MAX = 200 };

static const struct jfr_type types[] = {
    {
        .name = "jvmscope.ExceptionCount",
        .label = "Exception Count",
        .category = "jvmscope|Exceptions",
        .description = "The exceptions of one class thrown at one place, from the start of the "
                       "recording to this event; only the last event of a row counts",
        .kind = JFR_EVENT,
        .fields = JFR_FIELDS(
            {"className", "Class", "java.lang.String"}, {"place", "Thrown At", "java.lang.String"},
            {"caught", "Caught At", "java.lang.String",
             .description = "Null if no Java code of the thread catches it; 'not known' if a "
                            "handler without a probe, or native code in between, may catch it"},
            {"count", "Count", "long"}),
    },
    {
        .name = "jvmscope.ExceptionThrown",
        .label = "Exception",
        .category = "jvmscope|Exceptions",
        .description = "An exception was thrown",
        .kind = JFR_EVENT,
        .has = JFR_HAS_THREAD | JFR_HAS_STACK,
        .fields = JFR_FIELDS(
            {"thread", "Thread", "java.lang.String"}, {"className", "Class", "java.lang.String"},
            {"message", "Message", "java.lang.String"}, {"place", "Thrown At", "java.lang.String"},
            {"caught", "Caught At", "java.lang.String"},
            {"unwound", "Unwound", "int",
             .description = "Number of frames between the throw and the handler"}),
    },
};

static struct {
    _Atomic uint64_t without_row, stacks, over_limit, over_limit_ns; /* ns: since when */
    uint64_t limit;
    jint depth;
    bool with_stacks;
    jfieldID message;
    uint32_t types[2];
} thrown;

static char *place_text(JNIEnv *jni, jmethodID m, jlocation at)
{
    char text[1024], class_name[512] = "?";
    const struct method *method = m ? names_method(jni, m) : NULL;
    if (!m)
        return NULL;
    if (method)
        names_dotted(method->class_name, class_name, sizeof(class_name));
    uint32_t line = method && at >= 0 ? names_method_line(method, (int32_t)at) : 0;
    if (line)
        snprintf(text, sizeof(text), "%s.%s:%u", class_name, method->name, line);
    else
        snprintf(text, sizeof(text), "%s.%s", class_name, method ? method->name : "?");
    return strdup(text);
}

/*
 * Returns the row of a throw, created if necessary. The names are read while the classes cannot be
 * unloaded. Rows are distinguished by what is displayed, so two throws on one line share a row. If
 * `known` is false, the handler is unknown.
 */
static struct thrown_row *find_row(JNIEnv *jni, jclass c, jmethodID m, jlocation at, jmethodID cm,
                                   jlocation cat, bool known)
{
    jint hash = 0;
    (*vm.ti)->GetObjectHashCode(vm.ti, c, &hash);
    uint64_t key = thrown_mix(thrown_mix((uint64_t)(uint32_t)hash, (uintptr_t)m), (uint64_t)at);
    key = known ? thrown_mix(thrown_mix(key, (uintptr_t)cm), (uint64_t)cat) : thrown_mix(key, 1);
    key &= ~UINT64_C(1);
    struct thrown_row *row = thrown_row(key);
    if (row)
        return row;
    row = thrown_row_of(names_class_text(c), place_text(jni, m, at),
                        known ? place_text(jni, cm, cat) : strdup(THROWN_NOT_KNOWN));
    if (row)
        thrown_row_also(row, key);
    return row;
}

/* Reads the message from its field, so that no code of the program runs. */
static void read_message(JNIEnv *jni, jobject e, char *to)
{
    jstring s = thrown.message ? (*jni)->GetObjectField(jni, e, thrown.message) : NULL;
    to[0] = 0;
    if (!s)
        return;
    jsize n = (*jni)->GetStringLength(jni, s);
    (*jni)->GetStringUTFRegion(jni, s, 0, MIN(n, MESSAGE_MAX), to);
    if (vm_clear_exception(jni))
        to[0] = 0;
    (*jni)->DeleteLocalRef(jni, s);
}

/*
 * A throw as the VM reports it. Where the agent's own probes surround calls (traced and timed
 * methods, locks), their handler catches the program's exception and rethrows it, and the VM
 * reports each of these as a separate throw. They are combined into one throw, from the first place
 * to the program's first handler.
 */
struct throw
{
    jint object; /* its identity hash; 0: no exception is being thrown */
    jmethodID method;
    jlocation at;
    uint64_t time_ns, stack;
    jint frames, unwound; /* frames on the stack; frames unwound so far */
    bool native;          /* native code may catch it, so its handler is not known */
};

static __thread struct throw current_throw;

/*
 * Returns the number of frames, at most n, that are unwound to reach a handler in a method. Sets
 * *ret_native if native code called one of them: the VM names the next handler in Java code, but
 * native code may catch the exception before that, as the code of Method.invoke does. If the method
 * is on the stack several times, with calls at different places, each of them may have the handler,
 * so native code before any of them counts.
 */
static jint frames_to(const jvmtiFrameInfo *frames, jint n, jmethodID to, bool *ret_native)
{
    jint first = n;
    bool native = false;
    for (jint i = 0; to && i < n; i++) {
        /* If the exception began in a native method, that method only passes it to its caller. */
        native = native || (i > 0 && frames[i].location < 0);
        if (frames[i].method != to || (first < n && frames[i].location == frames[first].location))
            continue;
        first = MIN(first, i);
        *ret_native = *ret_native || native;
    }
    return first;
}

/*
 * Stores the stack of a throw, and how many of its frames are unwound to reach a method. `native`,
 * if not NULL, threw the exception and is no longer on the stack.
 */
static void take_stack(JNIEnv *jni, struct throw *t, jmethodID native, jmethodID to)
{
    jvmtiFrameInfo frames[DEPTH_MAX] = {{native, -1}};
    struct jfr_frame out[DEPTH_MAX];
    jint above = native != NULL;
    jint n = own_stack(jni, frames + above, DEPTH_MAX - above) + above;
    t->frames = MIN(n, thrown.depth);
    t->unwound = MIN(frames_to(frames, n, to, &t->native), t->frames);
    for (jint i = 0; i < t->frames; i++) {
        names_method(jni, frames[i].method);
        out[i] = (struct jfr_frame){(uint64_t)(uintptr_t)frames[i].method,
                                    (int32_t)frames[i].location, JFR_FRAME_JAVA};
    }
    t->stack = jfr_trace(session_now->out.jfr, out, (uint32_t)t->frames, t->frames == thrown.depth);
}

/* Returns the number of frames that are unwound on the way from here to a method. */
static jint unwind_to(JNIEnv *jni, struct throw *t, jmethodID to)
{
    jvmtiFrameInfo frames[DEPTH_MAX];
    jint n = own_stack(jni, frames, DEPTH_MAX);
    return MIN(frames_to(frames, n, to, &t->native), thrown.depth);
}

/* Writes the same throw as the JDK's own event, which the JDK's tools and JMC display. */
static void write_jdk_throw(struct jfr_writer *w, const struct throw *t, const struct thread *self,
                            const char *message, const struct thrown_row *row)
{
    struct jfr_event event;
    char name[1024];
    snprintf(name, sizeof(name), "%s", row->class_name);
    dotted_undo(name);
    uint64_t class = jfr_define_class(w, &(struct jfr_class){.name = name});
    if (!class || !jfr_begin(w, JFR_JAVA_EXCEPTION_THROW, strlen(message) + 128, &event))
        return;
    jfr_put_time(&event, t->time_ns);
    jfr_put_long(&event, 0); /* duration */
    jfr_put_long(&event, self->serial);
    jfr_put_long(&event, (int64_t)t->stack);
    jfr_put_string(&event, message[0] ? message : NULL);
    jfr_put_long(&event, (int64_t) class);
    jfr_commit(&event);
}

static void write_throw(JNIEnv *jni, const struct throw *t, const struct thread *self, jobject e,
                        const struct thrown_row *row)
{
    struct jfr_writer *w = session_now->out.jfr;
    char message[3 * MESSAGE_MAX + 1];
    struct jfr_event event;
    size_t room = strlen(row->class_name) + strlen(row->place) +
                  (row->caught ? strlen(row->caught) : 0) + (self->name ? strlen(self->name) : 0) +
                  sizeof(message) + 512;
    read_message(jni, e, message);
    if (!jfr_begin(w, thrown.types[1], room, &event))
        return;
    jfr_put_time(&event, t->time_ns);
    jfr_put_long(&event, self->serial);
    jfr_put_long(&event, (int64_t)t->stack);
    jfr_put_string(&event, self->name);
    jfr_put_string(&event, row->class_name);
    jfr_put_string(&event, message[0] ? message : NULL);
    jfr_put_string(&event, row->place);
    jfr_put_string(&event, row->caught);
    jfr_put_int(&event, row->caught ? t->unwound : t->frames);
    jfr_commit(&event);
    write_jdk_throw(w, t, self, message, row);
}

static bool is_of_agent(JNIEnv *jni, jmethodID m)
{
    const struct method *method = m ? names_method(jni, m) : NULL;
    return method && probe_is_class(method->class_name);
}

/* Returns whether a handler is the JDK's, for exceptions that end a virtual thread. */
static bool ends_virtual_thread(JNIEnv *jni, jmethodID handler)
{
    const struct method *method = vm.version >= 21 && handler ? names_method(jni, handler) : NULL;
    return method && strcmp(method->name, "run") == 0 &&
           strcmp(method->class_name, "java/lang/VirtualThread") == 0;
}

static void JNICALL on_exception(jvmtiEnv *ti, JNIEnv *jni, jthread thread, jmethodID m,
                                 jlocation at, jobject e, jmethodID cm, jlocation cat)
{
    struct thread *self = native_thrower_runs() ? NULL : threads_self(jni);
    jclass c = self && !self->own && !is_of_agent(jni, m) ? (*jni)->GetObjectClass(jni, e) : NULL;
    struct throw *t = &current_throw;
    jint object = 0;
    if (!c || (*ti)->GetObjectHashCode(ti, e, &object) != JVMTI_ERROR_NONE)
        return;
    if (ends_virtual_thread(jni, cm))
        cm = NULL;
    if (t->object != object || !guards_have(jni, m, at)) {
        jmethodID native = native_thrower(jni, e, m, at);
        *t = (struct throw){
            .method = native ? native : m, .at = native ? -1 : at, .time_ns = now_ns()};
        if (thrown.stacks++ < thrown.limit)
            take_stack(jni, t, native, cm);
        else {
            uint64_t none = 0;
            atomic_compare_exchange_strong(&thrown.over_limit_ns, &none, t->time_ns);
            thrown.over_limit++;
            (void)unwind_to(jni, t, cm);
        }
    } else {
        t->unwound += unwind_to(jni, t, cm);
    }
    t->object = guards_have(jni, cm, cat) ? object : 0;
    if (!t->object) {
        struct thrown_row *row = find_row(jni, c, t->method, t->at, cm, cat, !cm || !t->native);
        if (row)
            atomic_fetch_add_explicit(&row->count, 1, memory_order_relaxed);
        else
            thrown.without_row++;
        if (row && t->frames)
            write_throw(jni, t, self, e, row);
    }
    (*jni)->DeleteLocalRef(jni, c);
}

static const struct vm_callbacks events = {.ti = {.Exception = on_exception}};

static bool exceptions_wanted(const struct options *o)
{
    return o->v[OPT_EXCEPTIONS].text != NULL;
}

static const jvmtiCapabilities for_stacks = {.can_generate_exception_events = 1};

/* Checks the capability for the event, which the VM grants only at start-up. */
static int exceptions_check(const struct options *o, struct buf *why)
{
    jvmtiCapabilities missing = {0};
    int r = option_is(o, OPT_EXCEPTIONS, "stacks") ? vm_could(&for_stacks, &missing) : 0;
    if (r < 0 || vm_capabilities_empty(&missing))
        return r;
    buf_string(why,
               vm.attached
                   ? "exceptions=stacks: the VM shows each exception only to an agent that was "
                     "there when it started; exceptions=counts counts them now, and jvmscope "
                     "run with exceptions=stacks has the stacks from the start"
                   : "exceptions=stacks: this VM does not report exceptions");
    return -ENOTSUP;
}

static int exceptions_load(struct session *s, struct buf *why)
{
    thrown.with_stacks = option_is(&s->options, OPT_EXCEPTIONS, "stacks");
    thrown.limit = s->options.v[OPT_LIMIT].number;
    thrown.depth = (jint)MIN(s->options.v[OPT_DEPTH].number, DEPTH_MAX);
    thrown.without_row = thrown.stacks = thrown.over_limit = thrown.over_limit_ns = 0;
    int r = thrown.with_stacks ? vm_need(&for_stacks, NULL) : 0;
    return r < 0 ? r : jfr_declare(s->out.jfr, types, ARRAY_SIZE(types), thrown.types);
}

static int exceptions_start(struct session *s, JNIEnv *jni, struct buf *why)
{
    if (!thrown.with_stacks) {
        const char *include = s->options.v[OPT_INCLUDE].text,
                   *exclude = s->options.v[OPT_EXCLUDE].text;
        int r = instrument_choose(include, exclude);
        if (r == 0)
            r = thrown_probes_on(jni, include || exclude, why);
        return r < 0 ? r : thrown_hidden_on(jni);
    }
    native_thrower_start(jni);
    thrown.message = vm_field(jni, "java/lang/Throwable", "detailMessage", "Ljava/lang/String;");
    return vm_events_on(&events);
}

static int exceptions_begin(struct session *s, JNIEnv *jni, struct buf *why)
{
    thrown_probes_begin();
    return 0;
}

static void exceptions_stop(struct session *s, JNIEnv *jni)
{
    if (thrown.with_stacks) {
        vm_events_off(&events);
        return;
    }
    thrown_hidden_off();
    thrown_probes_off(jni);
}

static void exceptions_flush(struct session *s, JNIEnv *jni)
{
    jfr_lose_total(s->out.jfr, LOSS_EXCEPTION_ROW, thrown.without_row + thrown_probes_lost());
    jfr_lose_total_from(s->out.jfr, LOSS_EXCEPTION_LIMIT, thrown.over_limit, thrown.over_limit_ns);
    jfr_lose_total(s->out.jfr, LOSS_EXCEPTION_PLACE, thrown_probes_left());
}

/* Writes the rows that have changed since the last time. Each event has the total count. */
static uint64_t exceptions_save(struct session *s, JNIEnv *jni, bool *ret_all)
{
    uint64_t n = 0;
    for (unsigned i = 0; i < thrown_rows(); i++) {
        struct thrown_row *row = thrown_row_at(i);
        struct jfr_event e;
        uint64_t count = atomic_load(&row->count);
        size_t room = strlen(row->class_name) + strlen(row->place) +
                      (row->caught ? strlen(row->caught) : 0) + 128;
        if (count == row->written)
            continue;
        if (!jfr_begin_growing(s->out.jfr, thrown.types[0], room, &e)) {
            *ret_all = false;
            continue;
        }
        jfr_put_time(&e, now_ns());
        jfr_put_string(&e, row->class_name);
        jfr_put_string(&e, row->place);
        jfr_put_string(&e, row->caught);
        jfr_put_long(&e, (int64_t)count);
        jfr_commit(&e);
        row->written = count;
        if (++n % 256 == 0)
            session_drain(s, jni);
    }
    return n;
}

static void exceptions_dump(struct session *s, JNIEnv *jni, enum dump_reason reason)
{
    bool all = true; /* rows that are not written are counted as lost below */
    exceptions_save(s, jni, &all);
    exceptions_flush(s, jni);
    for (unsigned i = 0; i < thrown_rows(); i++) {
        struct thrown_row *row = thrown_row_at(i);
        uint64_t count = atomic_load(&row->count), reported = MAX(row->written, row->lost);
        if (count == reported)
            continue;
        jfr_lose_events(s->out.jfr, thrown.types[0], 1);
        jfr_lose_held(s->out.jfr, HELD_EXCEPTIONS, count - reported);
        row->lost = count;
    }
}

static void exceptions_release(struct session *s)
{
    thrown_rows_release();
    native_thrower_release(vm_jni());
}

static void exceptions_status(struct session *s, struct buf *out)
{
    buf_printf(out,
               "exceptions.rows %u\nexceptions.stacks %llu\nexceptions.over_limit "
               "%llu\nexceptions.lost_no_row %llu\n"
               "exceptions.no_probe %llu\n",
               thrown_rows(), (unsigned long long)thrown.stacks,
               (unsigned long long)thrown.over_limit,
               (unsigned long long)thrown.without_row + thrown_probes_lost(),
               (unsigned long long)thrown_probes_left());
}

const struct capture capture_exceptions = {
    .name = "exceptions",
    .options = OPTION_BIT(OPT_EXCEPTIONS),
    .jdk_events = "jdk.JavaExceptionThrow jdk.JavaErrorThrow ",
    .changes_classes = true,
    .needs = {.can_retransform_classes = 1},
    .own_stacks = true,
    .records_only = true,
    .wanted = exceptions_wanted,
    .check = exceptions_check,
    .load = exceptions_load,
    .start = exceptions_start,
    .begin = exceptions_begin,
    .stop = exceptions_stop,
    .release = exceptions_release,
    .flush = exceptions_flush,
    .save = exceptions_save,
    .counts = "exceptions",
    .dump = exceptions_dump,
    .status = exceptions_status,
};
