/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exceptions=counts|stacks: how often each class is thrown at each place and where it is caught, by JVM TI's Exception event,
 * which knows implicit ones and the VM's own too. A throw costs one look into a table; the VM itself looks for the handler a
 * second time. With stacks each throw is an event of its own besides.
 */
#include "agent/capture.h"
#include "agent/names.h"
#include "agent/session.h"
#include "agent/thread_table.h"
#include "base/clock.h"
#include "base/map.h"
#include "jfr/writer.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum { ROWS_MAX = 1 << 14, DEPTH_MAX = 512, MESSAGE_MAX = 200 };

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

/* One class, place and handler. Rows never move. */
struct row {
    char *class_name;
    char *place, *caught; /* caught may be NULL */
    _Atomic uint64_t count;
    uint64_t written;
};

static struct {
    pthread_mutex_t lock; /* the table; rows' counts are free */
    struct map index;     /* of a row's key -> number */
    struct row rows[ROWS_MAX];
    _Atomic unsigned n_rows;
    _Atomic uint64_t without_row, stacks, over_limit, dropped;
    uint64_t limit;
    jint depth;
    bool with_stacks;
    jfieldID message;
    uint32_t types[2];
} thrown = {.lock = PTHREAD_MUTEX_INITIALIZER};

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

static char *class_text(jclass c)
{
    char *signature = NULL, name[512] = "?";
    if ((*vm.ti)->GetClassSignature(vm.ti, c, &signature, NULL) == JVMTI_ERROR_NONE && strlen(signature) > 2) {
        dotted_name(signature + 1, name, sizeof(name));
        name[strcspn(name, ";")] = 0;
    }
    vm_free(signature);
    return strdup(name);
}

static uint64_t mix(uint64_t h, uint64_t v)
{
    h = (h ^ v) * UINT64_C(0x9e3779b97f4a7c15);
    return h ^ h >> 29;
}

/* The row of a throw, made when it is new: its names are asked for while its classes are held. */
static struct row *find_row(JNIEnv *jni, jclass c, jmethodID m, jlocation at, jmethodID cm, jlocation cat)
{
    jint hash = 0;
    (*vm.ti)->GetObjectHashCode(vm.ti, c, &hash);
    uint64_t key = mix(mix(mix(mix((uint64_t)(uint32_t)hash, (uintptr_t)m), (uint64_t)at), (uintptr_t)cm), (uint64_t)cat) | 1;
    pthread_mutex_lock(&thrown.lock);
    const uint64_t *there = map_get(&thrown.index, key);
    struct row *row = there ? &thrown.rows[*there] : NULL;
    pthread_mutex_unlock(&thrown.lock);
    if (row)
        return row;
    char *class_name = class_text(c), *place = place_text(jni, m, at), *caught = place_text(jni, cm, cat);
    bool added = false;
    pthread_mutex_lock(&thrown.lock);
    unsigned n = thrown.n_rows;
    uint64_t *slot = class_name && place && n < ROWS_MAX ? map_at(&thrown.index, key, n, &added) : NULL;
    if (slot && added) {
        thrown.rows[n].class_name = class_name;
        thrown.rows[n].place = place;
        thrown.rows[n].caught = caught;
        thrown.n_rows = n + 1;
    }
    row = slot ? &thrown.rows[*slot] : NULL;
    pthread_mutex_unlock(&thrown.lock);
    if (!added) {
        free(class_name);
        free(place);
        free(caught);
    }
    return row;
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

static void write_stack(struct jfr_writer *w, JNIEnv *jni, struct thread *self, jobject e, const struct row *row, jmethodID cm)
{
    jvmtiFrameInfo frames[DEPTH_MAX];
    struct jfr_frame out[DEPTH_MAX];
    char message[3 * MESSAGE_MAX + 1];
    jint n = 0, unwound = -1;
    (*vm.ti)->GetStackTrace(vm.ti, NULL, 0, thrown.depth, frames, &n);
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
    struct row *row = find_row(jni, c, m, at, cm, cat);
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
    return jfr_declare(s->out.jfr, types, ARRAY_SIZE(types), thrown.types);
}

static int exceptions_start(struct session *s, JNIEnv *jni, struct buf *why)
{
    jclass c = (*jni)->FindClass(jni, "java/lang/Throwable");
    thrown.message = c ? (*jni)->GetFieldID(jni, c, "detailMessage", "Ljava/lang/String;") : NULL;
    vm_clear_exception(jni);
    if (c)
        (*jni)->DeleteLocalRef(jni, c);
    return 0;
}

static void exceptions_dump(struct session *s, JNIEnv *jni, enum dump_reason reason)
{
    for (unsigned i = 0; i < thrown.n_rows; i++) {
        struct row *row = &thrown.rows[i];
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
    for (unsigned i = 0; i < thrown.n_rows; i++) {
        free(thrown.rows[i].class_name);
        free(thrown.rows[i].place);
        free(thrown.rows[i].caught);
        memset(&thrown.rows[i], 0, sizeof(thrown.rows[i]));
    }
    thrown.n_rows = 0;
    map_release(&thrown.index);
}

static void exceptions_status(struct session *s, struct buf *out)
{
    buf_printf(out,
               "exceptions.rows %u\nexceptions.stacks %llu\nexceptions.over_limit %llu\nexceptions.lost_no_row %llu\n"
               "exceptions.lost_no_room %llu\n",
               thrown.n_rows, (unsigned long long)thrown.stacks, (unsigned long long)thrown.over_limit,
               (unsigned long long)thrown.without_row, (unsigned long long)thrown.dropped);
}

extern const struct capture capture_exceptions;
const struct capture capture_exceptions = {
    .name = "exceptions",
    .options = OPTION_BIT(OPT_EXCEPTIONS),
    .needs = {.can_generate_exception_events = 1},
    .events = &events,
    .wanted = exceptions_wanted,
    .load = exceptions_load,
    .start = exceptions_start,
    .release = exceptions_release,
    .dump = exceptions_dump,
    .status = exceptions_status,
};
