/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exceptions=counts|stacks: how often each class is thrown at each place and where it is caught. Counts come from probes in the
 * code (probes.h). With stacks each throw is an event of its own besides, and all comes by JVM TI's Exception event, for
 * which the VM leaves compiled code at each throw and looks for the handler twice.
 */
#include "agent/capture.h"
#include "agent/capture/exceptions/probes.h"
#include "agent/capture/exceptions/rows.h"
#include "agent/instrument/instrument.h"
#include "agent/names.h"
#include "agent/own_stack.h"
#include "agent/session.h"
#include "agent/thread_table.h"
#include "base/clock.h"
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
        .description =
            "Throws of one class at one place, from the start of the recording to its dump; the last event of a row counts",
        .kind = JFR_EVENT,
        .fields = JFR_FIELDS({"className", "Class", "java.lang.String"}, {"place", "Thrown At", "java.lang.String"},
                             {"caught", "Caught At", "java.lang.String", .description = "Null: in no Java code of the thread"},
                             {"count", "Count", "long"}),
    },
    {
        .name = "jvmscope.ExceptionThrown",
        .label = "Exception",
        .category = "jvmscope|Exceptions",
        .description = "An exception as it is thrown",
        .kind = JFR_EVENT,
        .has = JFR_HAS_THREAD | JFR_HAS_STACK,
        .fields = JFR_FIELDS({"thread", "Thread", "java.lang.String"}, {"className", "Class", "java.lang.String"},
                             {"message", "Message", "java.lang.String"}, {"place", "Thrown At", "java.lang.String"},
                             {"caught", "Caught At", "java.lang.String"},
                             {"unwound", "Unwound", "int", .description = "Frames that it leaves on its way to the handler"}),
    },
};

static struct {
    _Atomic uint64_t without_row, stacks, over_limit, dropped;
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
        dotted_name(method->class_name, class_name, sizeof(class_name));
    uint32_t line = method && at >= 0 ? method_line(method, (int32_t)at) : 0;
    if (line)
        snprintf(text, sizeof(text), "%s.%s:%u", class_name, method->name, line);
    else
        snprintf(text, sizeof(text), "%s.%s", class_name, method ? method->name : "?");
    return strdup(text);
}

/* The row of a throw, made when it is new: its names are asked for while its classes are held. */
static struct thrown_row *find_row(JNIEnv *jni, jclass c, jmethodID m, jlocation at, jmethodID cm, jlocation cat)
{
    jint hash = 0;
    (*vm.ti)->GetObjectHashCode(vm.ti, c, &hash);
    uint64_t key = thrown_mix(thrown_mix((uint64_t)(uint32_t)hash, (uintptr_t)m), (uint64_t)at);
    key = thrown_mix(thrown_mix(key, (uintptr_t)cm), (uint64_t)cat) | 1;
    struct thrown_row *row = thrown_row(key);
    return row ? row : thrown_row_add(key, names_class_text(c), place_text(jni, m, at), place_text(jni, cm, cat));
}

/* The message as its field has it: no code runs. */
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

static void write_stack(struct jfr_writer *w, JNIEnv *jni, struct thread *self, jobject e, const struct thrown_row *row,
                        jmethodID cm)
{
    jvmtiFrameInfo frames[DEPTH_MAX];
    struct jfr_frame out[DEPTH_MAX];
    char message[3 * MESSAGE_MAX + 1];
    jint n = 0, unwound = -1;
    n = own_stack(jni, frames, thrown.depth);
    for (jint i = 0; i < n; i++) {
        names_method(jni, frames[i].method);
        out[i] = (struct jfr_frame){(uint64_t)(uintptr_t)frames[i].method, (int32_t)frames[i].location, JFR_FRAME_JIT};
        if (unwound < 0 && cm && frames[i].method == cm)
            unwound = i;
    }
    read_message(jni, e, message);
    uint64_t stack = jfr_trace(w, out, (uint32_t)n, n == thrown.depth);
    struct jfr_event event;
    size_t room =
        strlen(row->class_name) + strlen(row->place) + (row->caught ? strlen(row->caught) : 0) + sizeof(message) + 512;
    if (!jfr_begin(w, thrown.types[1], room, &event)) {
        thrown.dropped++;
        return;
    }
    jfr_put_time(&event, now_ns());
    jfr_put_long(&event, self->serial);
    jfr_put_long(&event, (int64_t)stack);
    jfr_put_string(&event, self->name);
    jfr_put_string(&event, row->class_name);
    jfr_put_string(&event, message[0] ? message : NULL);
    jfr_put_string(&event, row->place);
    jfr_put_string(&event, row->caught);
    jfr_put_int(&event, cm ? unwound : n);
    jfr_commit(&event);
}

static void JNICALL on_exception(jvmtiEnv *ti, JNIEnv *jni, jthread thread, jmethodID m, jlocation at, jobject e, jmethodID cm,
                                 jlocation cat)
{
    struct thread *self = threads_self(jni);
    jclass c = self && !self->own ? (*jni)->GetObjectClass(jni, e) : NULL;
    if (!c)
        return;
    struct thrown_row *row = find_row(jni, c, m, at, cm, cat);
    if (row)
        atomic_fetch_add_explicit(&row->count, 1, memory_order_relaxed);
    else
        thrown.without_row++;
    if (row && thrown.with_stacks) {
        if (thrown.stacks++ < thrown.limit)
            write_stack(session_now->out.jfr, jni, self, e, row, cm);
        else
            thrown.over_limit++;
    }
    (*jni)->DeleteLocalRef(jni, c);
}

static const struct vm_callbacks events = {.ti = {.Exception = on_exception}};

static bool exceptions_wanted(const struct options *o)
{
    return o->v[OPT_EXCEPTIONS].text != NULL;
}

/* The event's capability, which the VM has only at start-up. */
static int need_events(struct buf *why)
{
    jvmtiCapabilities needs = {.can_generate_exception_events = 1}, missing = {0};
    int r = vm_need(&needs, &missing);
    if (r < 0 || vm_capabilities_empty(&missing))
        return r;
    buf_string(
        why, vm.attached
                 ? "exceptions=stacks: the VM cannot any more once it runs: no can_generate_exception_events; counts can be had"
                 : "exceptions=stacks: the VM cannot: no can_generate_exception_events");
    return -ENOTSUP;
}

static int exceptions_load(struct session *s, struct buf *why)
{
    if (!s->out.jfr) {
        buf_string(why, "exceptions go into a recording: add format=r");
        return -ENOTSUP;
    }
    thrown.with_stacks = option_is(&s->options, OPT_EXCEPTIONS, "stacks");
    thrown.limit = s->options.v[OPT_LIMIT].number;
    thrown.depth = (jint)MIN(s->options.v[OPT_DEPTH].number, DEPTH_MAX);
    thrown.without_row = thrown.stacks = thrown.over_limit = thrown.dropped = 0;
    int r = thrown.with_stacks ? need_events(why) : 0;
    return r < 0 ? r : jfr_declare(s->out.jfr, types, ARRAY_SIZE(types), thrown.types);
}

static int exceptions_start(struct session *s, JNIEnv *jni, struct buf *why)
{
    if (!thrown.with_stacks) {
        int r = instrument_choose(s->options.v[OPT_INCLUDE].text, s->options.v[OPT_EXCLUDE].text);
        return r < 0 ? r : thrown_probes_on(jni, why);
    }
    jclass c = (*jni)->FindClass(jni, "java/lang/Throwable");
    thrown.message = c ? (*jni)->GetFieldID(jni, c, "detailMessage", "Ljava/lang/String;") : NULL;
    vm_clear_exception(jni);
    if (c)
        (*jni)->DeleteLocalRef(jni, c);
    return vm_events_on(&events);
}

static void exceptions_stop(struct session *s, JNIEnv *jni)
{
    if (thrown.with_stacks)
        vm_events_off(&events);
    else
        thrown_probes_off(jni);
}

static void exceptions_dump(struct session *s, JNIEnv *jni, enum dump_reason reason)
{
    for (unsigned i = 0; i < thrown_rows(); i++) {
        struct thrown_row *row = thrown_row_at(i);
        struct jfr_event e;
        uint64_t count = atomic_load(&row->count);
        size_t room = strlen(row->class_name) + strlen(row->place) + (row->caught ? strlen(row->caught) : 0) + 128;
        if (count == row->written)
            continue;
        if (!jfr_begin(s->out.jfr, thrown.types[0], room, &e)) {
            thrown.dropped++;
            continue;
        }
        jfr_put_time(&e, now_ns());
        jfr_put_string(&e, row->class_name);
        jfr_put_string(&e, row->place);
        jfr_put_string(&e, row->caught);
        jfr_put_long(&e, (int64_t)count);
        jfr_commit(&e);
        row->written = count;
        if (i % 256 == 255)
            (void)jfr_writer_work(s->out.jfr);
    }
}

static void exceptions_release(struct session *s)
{
    thrown_rows_release();
}

static void exceptions_status(struct session *s, struct buf *out)
{
    buf_printf(out,
               "exceptions.rows %u\nexceptions.stacks %llu\nexceptions.over_limit %llu\nexceptions.lost_no_row %llu\n"
               "exceptions.lost_no_room %llu\nexceptions.no_probe %llu\n",
               thrown_rows(), (unsigned long long)thrown.stacks, (unsigned long long)thrown.over_limit,
               (unsigned long long)thrown.without_row + thrown_probes_lost(), (unsigned long long)thrown.dropped,
               (unsigned long long)thrown_probes_left());
    if (!thrown.with_stacks)
        instrument_status(out);
}

extern const struct capture capture_exceptions;
const struct capture capture_exceptions = {
    .name = "exceptions",
    .options = OPTION_BIT(OPT_EXCEPTIONS),
    .needs = {.can_retransform_classes = 1},
    .own_stacks = true,
    .wanted = exceptions_wanted,
    .load = exceptions_load,
    .start = exceptions_start,
    .stop = exceptions_stop,
    .release = exceptions_release,
    .dump = exceptions_dump,
    .status = exceptions_status,
};
