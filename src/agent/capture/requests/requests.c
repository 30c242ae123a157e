/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/capture/requests/requests.h"

#include "agent/instrument/running.h"
#include "agent/vm/virtual_threads.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/hex.h"
#include "base/map.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define CATEGORY "jvmscope|Requests"

/*
 * A save writes this many bytes at most, so that a thousand names alone do not fill a file.
 */
enum { SAVE_BYTES = 64 << 10, TEXT_MAX = 40 << 10 };

enum { TYPE_REQUEST, TYPE_WORK, TYPE_CHILD, TYPE_TOTALS, TYPES };

static const struct jfr_type request_types[TYPES] = {
    {.name = "jvmscope.Request",
     .label = "Request",
     .category = CATEGORY,
     .description = "A request that has ended",
     .kind = JFR_EVENT,
     .has = JFR_DURATION | JFR_HAS_THREAD,
     .fields = JFR_FIELDS(
         {"id", "Number", "long"}, {"parent", "Enclosing Request", "long"},
         {"name", "Name", "java.lang.String", .description = "Method and route",
          .contextual = true},
         {"kind", "Kind", "java.lang.String"}, {"status", "HTTP Status", "int"},
         {"exception", "Exception", "java.lang.String", .description = "Class of the exception"},
         {"bytes", "Bytes of the Response", "long", JFR_BYTES},
         {"traceId", "Trace ID", "java.lang.String"}, {"spanId", "Span ID", "java.lang.String"},
         {"endThread", "Thread on Which It Ended", "java.lang.Thread"},
         {"kept", "Why Its Details Were Kept", "java.lang.String"},
         {"oneOf", "Sampling Weight", "long"})},
    {.name = "jvmscope.RequestWork",
     .label = "Work for a Request",
     .category = CATEGORY,
     .description = "A thread worked for a request",
     .kind = JFR_EVENT,
     .has = JFR_DURATION | JFR_HAS_THREAD,
     .fields = JFR_FIELDS({"request", "Request", "long"},
                          {"handOver", "How the Thread Got the Work", "java.lang.String"},
                          {"queued", "Time in a Queue", "long", JFR_NANOS},
                          {"submitter", "Submitting Thread", "java.lang.Thread"})},
    {.name = "jvmscope.RequestChild",
     .label = "Call Within a Request",
     .category = CATEGORY,
     .description = "A call to a database, a connection pool or another server",
     .kind = JFR_EVENT,
     .has = JFR_DURATION | JFR_HAS_THREAD,
     .fields = JFR_FIELDS(
         {"request", "Request", "long"}, {"kind", "Kind", "java.lang.String"},
         {"name", "Name", "java.lang.String"}, {"peer", "Peer", "java.lang.String"},
         {"rows", "Rows", "long"}, {"exception", "Exception", "java.lang.String"},
         {"traceId", "Trace ID", "java.lang.String"}, {"spanId", "Span ID", "java.lang.String"})},
    {.name = "jvmscope.RequestTotals",
     .label = "Request Totals",
     .category = CATEGORY,
     .description = "All requests of a name, from the start of the recording to this event; only "
                    "the last event of a name counts",
     .kind = JFR_EVENT,
     .fields = JFR_FIELDS(
         {"name", "Name", "java.lang.String"}, {"kind", "Kind", "java.lang.String"},
         {"count", "Requests", "long"},
         {"errors", "Failed Requests (Exception or Status 500 to 599)", "long"},
         {"totalTime", "Sum of Latencies", "long", JFR_NANOS},
         {"maxTime", "Longest Latency", "long", JFR_NANOS},
         {"buckets", "Histogram", "java.lang.String",
          .description = "BUCKET:COUNT of each bucket that is not empty, separated by spaces"},
         {"example", "Path of One Request", "java.lang.String"})},
};

static const char *const kinds[REQUEST_KINDS] = {
    [REQUEST_SERVLET] = "servlet", [REQUEST_HTTP] = "http", [REQUEST_GRPC] = "grpc",
    [REQUEST_MESSAGE] = "message", [REQUEST_TASK] = "task", [REQUEST_METHOD] = "method",
};

static const char *const ways[REQUEST_WAYS] = {
    [WAY_ENTRY] = "entry",   [WAY_EXECUTOR] = "executor",   [WAY_FORK_JOIN] = "fork-join",
    [WAY_FUTURE] = "future", [WAY_THREAD] = "thread",       [WAY_TIMER] = "timer",
    [WAY_ASYNC] = "async",   [WAY_CANCELLED] = "cancelled",
};

static const char *const child_kinds[CHILD_KINDS] = {[CHILD_JDBC] = "jdbc",
                                                     [CHILD_POOL] = "pool",
                                                     [CHILD_HTTP] = "http",
                                                     [CHILD_MESSAGE] = "message"};

static const char *const kepts[KEPT_WAYS] = {
    [KEPT_ALL] = "all", [KEPT_SAMPLE] = "sample", [KEPT_SLOW] = "slow"};

struct jfr_writer *requests_jfr;

static struct {
    uint32_t types[TYPES];
    /* constants */
    uint64_t kinds[REQUEST_KINDS], ways[REQUEST_WAYS], kepts[KEPT_WAYS], child_kinds[CHILD_KINDS];
    bool threads_on, virtual_on;
    bool forgets;     /* this capture describes ended virtual threads, because no other one does */
    unsigned save_at; /* the number of the name with which the next save continues */
} state;

/* ---- events ---- */

void requests_lose(enum jfr_loss loss, uint64_t n)
{
    jfr_lose(requests_jfr, loss, n);
}

void requests_put(const struct request_end *r)
{
    struct jfr_event e;
    size_t len = r->exception ? MIN(strlen(r->exception), (size_t)512) : 0;
    if (!jfr_begin(requests_jfr, state.types[TYPE_REQUEST], 200 + len, &e))
        return;
    jfr_put_time(&e, r->start);
    jfr_put_long(&e, (int64_t)r->ns);
    jfr_put_long(&e, (int64_t)r->thread);
    jfr_put_long(&e, (int64_t)r->id);
    jfr_put_long(&e, (int64_t)r->parent);
    jfr_put_string_id(&e, r->name->string);
    jfr_put_string_id(&e, state.kinds[r->kind]);
    jfr_put_int(&e, r->status);
    jfr_put_string_n(&e, r->exception, len);
    jfr_put_long(&e, r->bytes);
    jfr_put_string(&e, r->trace);
    jfr_put_string(&e, r->span);
    jfr_put_long(&e, r->end_thread == r->thread ? 0 : (int64_t)r->end_thread);
    jfr_put_string_id(&e, state.kepts[r->kept]);
    jfr_put_long(&e, (int64_t)r->one_of);
    jfr_commit(&e);
}

void requests_put_work(uint64_t request, const struct request_work *w)
{
    struct jfr_event e;
    if (!jfr_begin(requests_jfr, state.types[TYPE_WORK], 0, &e))
        return;
    jfr_put_time(&e, w->start);
    jfr_put_long(&e, (int64_t)w->ns);
    jfr_put_long(&e, (int64_t)w->thread);
    jfr_put_long(&e, (int64_t)request);
    jfr_put_string_id(&e, state.ways[w->way]);
    jfr_put_long(&e, (int64_t)w->queued_ns);
    jfr_put_long(&e, (int64_t)w->submitter);
    jfr_commit(&e);
}

/*
 * Writes an id in hexadecimal digits; text has room for two digits for each byte, and the NUL.
 * Returns NULL for the id 0, which means that there is none.
 */
static const char *id_text(const uint8_t *id, size_t bytes, char *text)
{
    bool any = false;
    for (size_t i = 0; i < bytes; i++)
        any = any || id[i];
    hex_write(id, bytes, text);
    text[2 * bytes] = 0;
    return any ? text : NULL;
}

void requests_put_child(uint64_t request, const struct request_child *c)
{
    char trace[2 * sizeof(c->trace) + 1], span[2 * sizeof(c->span) + 1];
    struct jfr_event e;
    if (!jfr_begin(requests_jfr, state.types[TYPE_CHILD], sizeof(trace) + sizeof(span) + 10, &e))
        return;
    jfr_put_time(&e, c->start);
    jfr_put_long(&e, (int64_t)c->ns);
    jfr_put_long(&e, (int64_t)c->thread);
    jfr_put_long(&e, (int64_t)request);
    jfr_put_string_id(&e, state.child_kinds[c->kind]);
    jfr_put_string_id(&e, c->name);
    jfr_put_string_id(&e, c->peer);
    jfr_put_long(&e, c->rows);
    jfr_put_string_id(&e, c->exception);
    jfr_put_string(&e, id_text(c->trace, sizeof(c->trace), trace));
    jfr_put_string(&e, id_text(c->span, sizeof(c->span), span));
    jfr_commit(&e);
}

/* The limit on the number of different texts of children; beyond it all others share one text. */
enum { TEXTS_MAX = 8000 };

static struct {
    pthread_mutex_t lock;
    struct map of; /* hash -> constant */
    uint64_t other;
} texts = {.lock = PTHREAD_MUTEX_INITIALIZER};

uint64_t request_text(const char *text)
{
    uint64_t key = hash_bytes(text, strlen(text));
    pthread_mutex_lock(&texts.lock);
    const uint64_t *known = map_get(&texts.of, key);
    uint64_t id = known ? *known : 0;
    if (!known && texts.of.len < TEXTS_MAX) {
        id = jfr_define_string(requests_jfr, text);
        if (map_put(&texts.of, key, id) < 0)
            id = 0;
    } else if (!known) {
        texts.other = texts.other ? texts.other : jfr_define_string(requests_jfr, "[others]");
        id = texts.other;
    }
    pthread_mutex_unlock(&texts.lock);
    return id;
}

static void texts_release(void)
{
    pthread_mutex_lock(&texts.lock);
    map_release(&texts.of);
    texts.other = 0;
    pthread_mutex_unlock(&texts.lock);
}

/*
 * Writes the totals of a name. Returns the number of bytes that were written, or 0 if the recording
 * cannot grow now.
 */
static size_t put_totals(struct request_name *n, uint64_t count)
{
    _cleanup_(buf_release) struct buf text = BUF(TEXT_MAX);
    struct jfr_event e;
    for (uint32_t i = 0; i < LATENCY_BUCKETS; i++) {
        uint64_t in = atomic_load_explicit(&n->buckets[i], memory_order_relaxed);
        if (in)
            buf_printf(&text, "%s%u:%llu", text.len ? " " : "", i, (unsigned long long)in);
    }
    const char *example = atomic_load(&n->has_example) && n->example[0] ? n->example : NULL;
    size_t room = text.len + 160 + (example ? strlen(example) : 0);
    if (!jfr_begin_growing(requests_jfr, state.types[TYPE_TOTALS], room, &e))
        return 0;
    jfr_put_time(&e, now_ns());
    jfr_put_string_id(&e, n->string);
    jfr_put_string_id(&e, state.kinds[n->kind]);
    jfr_put_long(&e, (int64_t)count);
    jfr_put_long(&e, (int64_t)atomic_load(&n->errors));
    jfr_put_long(&e, (int64_t)atomic_load(&n->total_ns));
    jfr_put_long(&e, (int64_t)atomic_load(&n->max_ns));
    jfr_put_string_n(&e, buf_str(&text), text.len);
    jfr_put_string(&e, example);
    jfr_commit(&e);
    return text.len + 64;
}

/* ---- threads ---- */

static void JNICALL on_thread_start(jvmtiEnv *ti, JNIEnv *jni, jthread thread)
{
    follow_thread_started(jni, thread);
}

static void JNICALL on_thread_end(jvmtiEnv *ti, JNIEnv *jni, jthread thread)
{
    follow_thread_ended(jni, thread);
}

static void JNICALL on_virtual_end(jvmtiEnv *ti, JNIEnv *jni, jthread thread)
{
    uint64_t id = follow_thread_ended(jni, thread);
    if (id && state.forgets)
        jfr_forget_thread(requests_jfr, THREAD_VIRTUAL | id);
}

static const struct vm_callbacks thread_events = {
    .ti = {.ThreadStart = on_thread_start, .ThreadEnd = on_thread_end}};
static const struct vm_callbacks virtual_events = {.VM_VIRTUAL_THREAD_START = on_thread_start,
                                                   .VM_VIRTUAL_THREAD_END = on_virtual_end};

static int watch_threads(void)
{
    jvmtiCapabilities want = {0}, missing = {0};
    int r = vm_events_on(&thread_events);
    state.threads_on = r == 0;
    if (r < 0 || vm.version < 21)
        return r;
    vm_capability_virtual_threads(&want);
    r = vm_need(&want, &missing);
    if (r == 0 && vm_capabilities_empty(&missing)) {
        r = vm_events_on(&virtual_events);
        state.virtual_on = r == 0;
    }
    return r;
}

/* ---- the capture ---- */

static bool requests_wanted(const struct options *o)
{
    return o->v[OPT_REQUESTS].text != NULL;
}

static uint64_t define_name(const char *text)
{
    return jfr_define_string(requests_jfr, text);
}

static int requests_load(struct session *s, struct buf *why)
{
    int r = jfr_declare(s->out.jfr, request_types, TYPES, state.types);
    if (r < 0)
        return r;
    requests_jfr = s->out.jfr;
    state.save_at = 0;
    state.threads_on = state.virtual_on = false;
    state.forgets = !option_on(&s->options, OPT_THREADS);
    for (int i = 0; i < REQUEST_KINDS; i++)
        state.kinds[i] = jfr_define_string(s->out.jfr, kinds[i]);
    for (int i = 0; i < REQUEST_WAYS; i++)
        state.ways[i] = jfr_define_string(s->out.jfr, ways[i]);
    for (int i = KEPT_ALL; i < KEPT_WAYS; i++)
        state.kepts[i] = jfr_define_string(s->out.jfr, kepts[i]);
    for (int i = 0; i < CHILD_KINDS; i++)
        state.child_kinds[i] = jfr_define_string(s->out.jfr, child_kinds[i]);
    request_names_define(define_name);
    return requests_load_follow();
}

static int requests_start(struct session *s, JNIEnv *jni, struct buf *why)
{
    int r = follow_start(jni, why);
    if (r == 0)
        r = watch_threads();
    return r < 0 ? r : points_on(s->options.v[OPT_REQUESTS].text, jni, why);
}

/*
 * A request that is already in progress is not part of the recording, because its beginning is not
 * known.
 */
static int requests_begin(struct session *s, JNIEnv *jni, struct buf *why)
{
    uint64_t running = vm.late ? instrument_running_threads(jni, points_is_request) : 0;
    jfr_lose(s->out.jfr, LOSS_REQUEST_RUNNING, running);
    follow_open_up();
    return 0;
}

static void requests_stop(struct session *s, JNIEnv *jni)
{
    points_off(jni);
    if (state.threads_on)
        vm_events_off(&thread_events);
    if (state.virtual_on)
        vm_events_off(&virtual_events);
    state.threads_on = state.virtual_on = false;
    follow_stop();
}

static void requests_release(struct session *s)
{
    request_names_release();
    texts_release();
    requests_jfr = NULL;
}

static void requests_flush(struct session *s, JNIEnv *jni)
{
    requests_budget_details(now_ns());
    follow_losses(s->out.jfr);
    if (follow_was_refused())
        session_warn(s, "requests: the VM refuses the probe class, so there are no requests");
}

/*
 * Writes the totals of names that have changed. With many names the rest follow in the next save,
 * unless this is the last one.
 */
static uint64_t save(bool all, bool *ret_all)
{
    unsigned names = request_names_count(), at = state.save_at;
    uint64_t written = 0;
    size_t bytes = 0;
    unsigned i = 0;
    for (; i < names && (all || bytes < SAVE_BYTES); i++, at++) {
        struct request_name *n = request_name_at(at % names);
        uint64_t count = n ? atomic_load(&n->count) : 0;
        if (!n || count == n->reported)
            continue;
        size_t more = put_totals(n, count);
        if (!more)
            break;
        n->reported = count;
        bytes += more;
        written++;
    }
    state.save_at = names ? at % names : 0;
    *ret_all = i == names;
    return written;
}

static uint64_t requests_save(struct session *s, JNIEnv *jni, bool *ret_all)
{
    return save(false, ret_all);
}

static void requests_dump(struct session *s, JNIEnv *jni, enum dump_reason reason)
{
    if (reason != DUMP_REQUEST)
        follow_stop(); /* a request that ended after the last save would be in no total */
    bool all;          /* totals that are not written are counted as lost below */
    save(true, &all);
    follow_losses(s->out.jfr);
    if (reason != DUMP_REQUEST)
        jfr_lose_total(s->out.jfr, LOSS_REQUEST_OPEN, follow_open());
    for (unsigned i = 0; i < request_names_count(); i++) {
        struct request_name *n = request_name_at(i);
        uint64_t count = n ? atomic_load(&n->count) : 0;
        uint64_t reported = n ? MAX(n->reported, n->lost) : 0;
        if (count == reported)
            continue;
        jfr_lose_events(s->out.jfr, state.types[TYPE_TOTALS], 1);
        jfr_lose_held(s->out.jfr, HELD_REQUESTS, count - reported);
        n->lost = count;
    }
}

static void requests_status(struct session *s, struct buf *out)
{
    buf_printf(out, "requests.begun %llu\nrequests.open %llu\nrequests.names %u\n",
               (unsigned long long)follow_begun(), (unsigned long long)follow_open(),
               request_names_count());
    if (follow_is_estimated())
        buf_string(out, "requests.estimated 1\n");
}

const struct capture capture_requests = {
    .name = "requests",
    .options = OPTION_BIT(OPT_REQUESTS),
    .changes_classes = true,
    .needs = {.can_retransform_classes = 1},
    .records_only = true,
    .wanted = requests_wanted,
    .load = requests_load,
    .start = requests_start,
    .begin = requests_begin,
    .stop = requests_stop,
    .release = requests_release,
    .is_idle = follow_is_idle,
    .flush = requests_flush,
    .save = requests_save,
    .counts = "requests",
    .dump = requests_dump,
    .status = requests_status,
};
