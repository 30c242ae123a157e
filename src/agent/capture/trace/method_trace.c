/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trace=PATTERN: calls with their arguments and results. Threads write into rings (ring.h); ten times a second the
 * agent's thread pairs entries with exits, applies the condition, and writes each call as one jvmscope.Call event
 * (doc/format.md).
 */
#include "agent/capture/trace/method_trace.h"

#include "agent/capture/trace/budget.h"
#include "agent/capture/trace/condition.h"
#include "agent/capture/trace/hub.h"
#include "agent/capture/trace/methods.h"
#include "agent/capture/trace/natives.h"
#include "agent/capture/trace/types.h"
#include "agent/capture/trace/values.h"
#include "agent/instrument/choice.h"
#include "agent/instrument/instrument.h"
#include "agent/session.h"
#include "base/clock.h"
#include "base/json.h"
#include "jfr/writer.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { PENDING_MAX = 1 << 18, VALUES_MAX = 16 << 10 };

static const struct jfr_type call_type = {
    .name = "jvmscope.Call",
    .label = "Method Call",
    .category = "jvmscope|Trace",
    .description = "A traced call, from entry to exit",
    .kind = JFR_EVENT,
    .has = JFR_DURATION,
    .fields = JFR_FIELDS(
        {"method", "Method", "java.lang.String", .description = "package.Class.name(signature)"},
        {"javaThreadId", "Java Thread Id", "long"}, {"thread", "Thread", "java.lang.String"},
        {"depth", "Depth", "int", .description = "Traced calls of the thread that this one is inside of"},
        {"caller", "Caller", "java.lang.String", .description = "The innermost of these, null when there is none"},
        {"arguments", "Arguments", "java.lang.String", .description = "JSON array; `this` comes first where there is one"},
        {"hasThis", "Has This", "boolean"},
        {"returned", "Returned", "java.lang.String", .description = "JSON; null for void and when it threw"},
        {"exception", "Exception", "java.lang.String", .description = "Its class, null when it returned"}),
};

static const struct jfr_type unmatched_type = {
    .name = "jvmscope.TraceUnmatched",
    .label = "Trace Pattern without Methods",
    .category = "jvmscope|Trace",
    .description = "A pattern that no method has matched up to the end of the recording",
    .kind = JFR_EVENT,
    .fields = JFR_FIELDS({"pattern", "Pattern", "java.lang.String"}),
};

/* A call that has begun: its record, copied. */
struct pending {
    struct trace_record *entry;
    struct pending *parent; /* valid while parent_call is pending */
    uint64_t parent_call;
    unsigned depth;
};

static struct {
    pthread_mutex_t lock; /* what clients of the instrumentation and the agent's thread share */
    struct traced_methods methods;
    uint32_t type, unmatched_type;
    char *patterns, *classes; /* as given and added to; without descriptors */
    const char *exclude;
    struct trace_types types; /* of "implements" */
    bool typed;               /* typed_client is on */
    struct condition *condition;
    struct trace_budget budget;
    uint64_t without_entry, without_exit, dropped, false_condition;
    struct map pending; /* call -> struct pending * */
    struct map current; /* java thread id -> call */
} trace = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- calls ---- */

/* A call that has ended, for the condition. */
struct ended {
    const struct traced_method *method;
    const struct trace_record *entry, *exit;
    unsigned depth;
    char text[RING_TEXT_MAX * 3 + 1];
};

static char return_type(const struct traced_method *m)
{
    return strchr(m->descriptor, ')')[1];
}

static bool argument(const struct ended *c, unsigned nth, struct value *ret)
{
    const uint8_t *at = c->entry->values, *end = (const uint8_t *)c->entry + c->entry->size;
    struct str d = {c->method->descriptor, strlen(c->method->descriptor)};
    struct value v;
    unsigned slots;
    if (c->method->has_this && !value_take(&at, end, 'L', &v))
        return false;
    for (size_t p = 1, len; (len = descriptor_next(d, p, &slots)); p += len) {
        if (!value_take(&at, end, d.data[p], &v))
            return false;
        if (--nth == 0) {
            *ret = v;
            return true;
        }
    }
    return false;
}

static bool result(const struct ended *c, struct value *ret)
{
    const uint8_t *at = c->exit->values;
    char type = c->exit->kind == RECORD_THROWN ? 'L' : return_type(c->method);
    return type != 'V' && value_take(&at, (const uint8_t *)c->exit + c->exit->size, type, ret);
}

static void condition_value(void *context, const struct cond_test *t, struct cond_value *ret)
{
    struct ended *c = context;
    struct value v;
    ret->there = true;
    switch (t->what) {
    case COND_TIME:
        ret->number = (double)(c->exit->time_ns - c->entry->time_ns);
        return;
    case COND_DEPTH:
        ret->number = c->depth;
        return;
    case COND_THROWN:
        ret->number = c->exit->kind == RECORD_THROWN;
        return;
    case COND_RETURN:
        ret->there = c->exit->kind == RECORD_EXIT && result(c, &v);
        break;
    case COND_ARG:
        ret->there = argument(c, t->arg, &v);
        break;
    }
    if (!ret->there)
        return;
    ret->null = v.type == 'L' && v.class == 0;
    if (value_is_string(&v)) {
        struct buf b = BUF(sizeof(c->text) - 1);
        put_utf16(&b, v.chars, v.n_chars);
        snprintf(c->text, sizeof(c->text), "%s", buf_str(&b));
        buf_release(&b);
        ret->text = c->text;
    } else if (v.type == 'L') {
        ret->number = v.class != 0;
        ret->text = v.class ? "" : NULL;
    } else {
        ret->number = v.type == 'F' || v.type == 'D' ? v.real : (double)v.number;
    }
}

static void write_call(struct jfr_writer *w, const struct ended *c, const char *caller)
{
    _cleanup_(buf_release) struct buf args = BUF(VALUES_MAX), back = BUF(VALUES_MAX), thrown = BUF(4096);
    struct json j = {.out = &args};
    struct value v;
    const uint8_t *at = c->entry->values, *end = (const uint8_t *)c->entry + c->entry->size;
    struct str d = {c->method->descriptor, strlen(c->method->descriptor)};
    unsigned slots;
    json_array(&j);
    if (c->method->has_this && value_take(&at, end, 'L', &v))
        value_json(&j, &v);
    for (size_t p = 1, len; (len = descriptor_next(d, p, &slots)) && value_take(&at, end, d.data[p], &v); p += len)
        value_json(&j, &v);
    json_array_end(&j);
    if (result(c, &v) && c->exit->kind == RECORD_EXIT)
        value_json(&(struct json){.out = &back}, &v);
    else if (c->exit->kind == RECORD_THROWN && result(c, &v))
        put_class(&thrown, v.class);
    const char *name = hub_thread_name(c->entry->thread);
    size_t room = args.len + back.len + thrown.len + strlen(c->method->text) + (caller ? strlen(caller) : 0) +
                  (name ? strlen(name) : 0) + 256;
    struct jfr_event e;
    if (buf_error(&args) || room > VALUES_MAX * 2 || !jfr_begin(w, trace.type, room, &e)) {
        trace.dropped++;
        return;
    }
    jfr_put_time(&e, c->entry->time_ns);
    jfr_put_long(&e, (int64_t)(c->exit->time_ns - c->entry->time_ns));
    jfr_put_string(&e, c->method->text);
    jfr_put_long(&e, c->entry->thread);
    jfr_put_string(&e, name);
    jfr_put_int(&e, (int32_t)c->depth);
    jfr_put_string(&e, caller);
    jfr_put_string(&e, buf_str(&args));
    jfr_put_byte(&e, c->method->has_this);
    jfr_put_string(&e, back.len ? buf_str(&back) : NULL);
    jfr_put_string(&e, thrown.len ? buf_str(&thrown) : NULL);
    jfr_commit(&e);
    budget_spend(&trace.budget, room);
}

static struct pending *pending_of(uint64_t call)
{
    const uint64_t *at = map_get(&trace.pending, call);
    return at ? (struct pending *)(uintptr_t)*at : NULL;
}

static void call_began(const struct trace_record *r)
{
    struct pending *p = trace.pending.len < PENDING_MAX ? calloc(1, sizeof(*p)) : NULL;
    uint64_t *current = map_at(&trace.current, (uint64_t)r->thread, 0, NULL);
    if (p)
        p->entry = malloc(r->size);
    if (!p || !p->entry || !current || map_put(&trace.pending, r->call, (uintptr_t)p) < 0) {
        if (p)
            free(p->entry);
        free(p);
        trace.dropped++;
        return;
    }
    memcpy(p->entry, r, r->size);
    struct pending *parent = *current ? pending_of(*current) : NULL;
    p->parent_call = parent ? *current : 0;
    p->depth = parent ? parent->depth + 1 : 0;
    *current = r->call;
}

/* The method of a call. A copy: other threads add methods while classes are loaded, and the table moves as it grows. */
static struct traced_method method_of(const struct pending *p)
{
    pthread_mutex_lock(&trace.lock);
    struct traced_method m = trace.methods.methods.data[p->entry->kind];
    pthread_mutex_unlock(&trace.lock);
    return m;
}

/* Whether a call is inside another one, as far as is known. */
static bool is_inside(uint64_t inner, uint64_t outer)
{
    const struct pending *p;
    while (inner != outer && (p = pending_of(inner)))
        inner = p->parent_call;
    return inner == outer;
}

static bool call_ended(struct jfr_writer *w, const struct trace_record *r);

/*
 * Ends what is open inside a call that ends: a constructor that an exception left within this() or super(), where the verifier
 * allows no handler, threw (what, is not known); anything else lost its exit.
 */
static void end_inner(struct jfr_writer *w, const struct trace_record *r, int64_t thread)
{
    /* A record with null as what was thrown. */
    _Alignas(8) uint8_t bytes[sizeof(struct trace_record) + 8] = {0};
    struct trace_record *exit = (struct trace_record *)bytes;
    exit->size = sizeof(bytes);
    exit->kind = RECORD_THROWN;
    exit->time_ns = r->time_ns;
    exit->thread = thread;
    const uint64_t *current;
    while ((current = map_get(&trace.current, (uint64_t)thread)) && *current != r->call && is_inside(*current, r->call)) {
        struct pending *inner = pending_of(*current);
        exit->call = *current;
        if (strstr(method_of(inner).text, ".<init>(")) {
            (void)call_ended(w, exit);
            continue;
        }
        trace.without_exit++;
        map_remove(&trace.pending, exit->call);
        (void)!map_put(&trace.current, (uint64_t)thread, inner->parent_call);
        free(inner->entry);
        free(inner);
    }
}

static bool call_ended(struct jfr_writer *w, const struct trace_record *r)
{
    struct pending *p = pending_of(r->call);
    if (!p)
        return false;
    end_inner(w, r, p->entry->thread);
    map_remove(&trace.pending, r->call);
    uint64_t *current = map_get(&trace.current, (uint64_t)p->entry->thread);
    if (current)
        *current = p->parent_call;
    if (current && !*current)
        map_remove(&trace.current, (uint64_t)p->entry->thread);
    struct pending *parent = p->parent_call ? pending_of(p->parent_call) : NULL;
    struct traced_method method = method_of(p);
    struct ended c = {.method = &method, .entry = p->entry, .exit = r, .depth = p->depth};
    if (!condition_holds(trace.condition, condition_value, &c))
        trace.false_condition++;
    else if (budget_allows(&trace.budget, p->entry->time_ns))
        write_call(w, &c, parent ? method_of(parent).text : NULL);
    free(p->entry);
    free(p);
    return true;
}

/* One record of the rings. False: the exit of a call whose entry has not been seen. */
static bool read_record(struct jfr_writer *w, const struct trace_record *r)
{
    if (r->kind < 0)
        return call_ended(w, r);
    call_began(r);
    return true;
}

static void unmatched(void)
{
    trace.without_entry++;
}

static const struct hub_reader reader = {.record = read_record, .unmatched = unmatched};

/* ---- the capture ---- */

/* By name or annotation. With the lock. */
static bool is_matched(const struct instrument_class *c, const struct edit *e, struct str name, struct str descriptor)
{
    return !choice_matches(trace.exclude, c->name, name) &&
           (trace_matches(trace.patterns, c->name, name, descriptor) || trace_annotated(trace.patterns, c->file, e->method));
}

/* Puts the probes where patterns match, or where they do not: there a type did, and the others have their probes already. */
static int edit_where(const struct instrument_class *c, struct edit *e, bool matched)
{
    struct str name = class_utf8(c->file, e->method->name), descriptor = class_utf8(c->file, e->method->descriptor);
    bool has_this = !(e->method->access & ACC_STATIC) && !str_is(name, "<init>");
    pthread_mutex_lock(&trace.lock);
    bool wanted = !hub_is_used(c->name) && is_matched(c, e, name, descriptor) == matched;
    int number = wanted ? trace_method_add(&trace.methods, c->name, name, descriptor, has_this) : 0;
    pthread_mutex_unlock(&trace.lock);
    if (!wanted || number < 0)
        return wanted ? number : 0;
    return trace_insert(e, number, has_this, trace.condition);
}

static int trace_edit(const struct instrument_class *c, struct edit *e)
{
    return edit_where(c, e, true);
}

static bool is_excluded(struct str class_name)
{
    return choice_matches(trace.exclude, class_name, (struct str){"", 0});
}

static bool trace_wants(struct str class_name)
{
    pthread_mutex_lock(&trace.lock);
    bool wants = trace.classes && *trace.classes &&
                 (choice_may_match(trace.classes, class_name) ||
                  (trace_has_annotations(trace.classes) && !instrument_is_jdk(class_name)));
    pthread_mutex_unlock(&trace.lock);
    return wants && !is_excluded(class_name);
}

static const struct instrument_client client = {.name = "trace", .edit = trace_edit, .wants = trace_wants};

/* ---- "implements pkg.Type": decided when a class is loaded and its supertypes are known ---- */

static void typed_look(JNIEnv *jni, jclass class, struct str name)
{
    pthread_mutex_lock(&trace.lock);
    trace_types_look(&trace.types, jni, class, name);
    pthread_mutex_unlock(&trace.lock);
}

static bool typed_wants(struct str name)
{
    pthread_mutex_lock(&trace.lock);
    bool wants = trace_types_has(&trace.types, name);
    pthread_mutex_unlock(&trace.lock);
    return wants && !is_excluded(name);
}

static int typed_edit(const struct instrument_class *c, struct edit *e)
{
    return edit_where(c, e, false);
}

static const struct instrument_client typed_client = {
    .name = "trace implements", .edit = typed_edit, .wants = typed_wants, .look = typed_look, .loaded_only = true};

/* ---- native methods: by name alone ---- */

static bool native_wants_class(struct str class_name)
{
    pthread_mutex_lock(&trace.lock);
    bool wants = trace.classes && *trace.classes && choice_may_match(trace.classes, class_name);
    pthread_mutex_unlock(&trace.lock);
    return wants && !is_excluded(class_name) && !hub_is_used(class_name);
}

static int native_wants(const struct native_method *m)
{
    pthread_mutex_lock(&trace.lock);
    int number = trace_matches(trace.patterns, m->class_name, m->name, m->descriptor) &&
                         !choice_matches(trace.exclude, m->class_name, m->name)
                     ? trace_method_add(&trace.methods, m->class_name, m->name, m->descriptor, !m->is_static)
                     : -ENOENT;
    pthread_mutex_unlock(&trace.lock);
    return number;
}

static const struct native_client native_client = {.name = "trace",
                                                   .wants_class = native_wants_class,
                                                   .wants = native_wants,
                                                   .enter = trace_native_enter,
                                                   .exit = trace_native_exit};

static bool trace_wanted(const struct options *o)
{
    return o->v[OPT_TRACE].text != NULL;
}

static int trace_load(struct session *s, struct buf *why)
{
    if (!s->out.jfr) {
        buf_string(why, "trace goes into a recording: add format=r");
        return -ENOTSUP;
    }
    const char *condition = s->options.v[OPT_IF].text;
    int r = condition ? condition_parse(&trace.condition, condition, why) : 0;
    if (r < 0)
        return -ENOTSUP;
    trace.budget = budget_of(&s->options);
    trace.without_entry = trace.without_exit = trace.dropped = trace.false_condition = 0;
    trace.patterns = strdup(s->options.v[OPT_TRACE].text);
    if (!trace.patterns)
        return -ENOMEM;
    r = jfr_declare(s->out.jfr, &unmatched_type, 1, &trace.unmatched_type);
    return r < 0 ? r : jfr_declare(s->out.jfr, &call_type, 1, &trace.type);
}

/* The patterns without descriptors: what a class is chosen by. */
static char *class_patterns(const char *patterns)
{
    char *copy = strdup(patterns), *to = copy;
    bool inside = false;
    for (const char *p = patterns; copy && *p; p++) {
        inside = *p == '(' || (inside && *p != ':');
        if (!inside)
            *to++ = *p;
    }
    if (copy)
        *to = 0;
    return copy;
}

/* Puts the probes into what the patterns match now. */
static int apply(JNIEnv *jni, struct buf *why)
{
    char *classes = class_patterns(trace.patterns);
    pthread_mutex_lock(&trace.lock);
    free(trace.classes);
    trace.classes = classes;
    pthread_mutex_unlock(&trace.lock);
    int r = classes ? instrument_on(&client, jni, why) : -ENOMEM;
    if (r < 0)
        return r;
    pthread_mutex_lock(&trace.lock);
    r = trace_types_set(&trace.types, trace.patterns, jni);
    pthread_mutex_unlock(&trace.lock);
    if (r > 0) {
        trace.typed = true;
        r = instrument_on(&typed_client, jni, why);
    }
    if (r >= 0)
        r = trace_natives_open(jni, hub_probe());
    return r < 0 ? r : native_calls_on(&native_client, jni, why);
}

static void take_back(JNIEnv *jni)
{
    native_calls_off(&native_client, jni);
    instrument_off(&client, jni);
    if (trace.typed)
        instrument_off(&typed_client, jni);
    trace.typed = false;
}

static int trace_start(struct session *s, JNIEnv *jni, struct buf *why)
{
    trace.exclude = s->options.v[OPT_EXCLUDE].text;
    int r = hub_open(&reader, s, jni, why);
    return r < 0 ? r : apply(jni, why);
}

/* The patterns without `pattern`, malloc'ed; *ret_had tells whether it was among them. */
static char *without(const char *patterns, const char *pattern, bool *ret_had)
{
    _cleanup_(buf_release) struct buf b = BUF(1 << 16);
    *ret_had = false;
    for (const char *p = patterns; *p;) {
        size_t n = strcspn(p, ":");
        bool is = n == strlen(pattern) && strncmp(p, pattern, n) == 0;
        *ret_had |= is;
        if (!is)
            buf_printf(&b, "%s%.*s", b.len ? ":" : "", (int)n, p);
        p += n + (p[n] == ':');
    }
    return buf_error(&b) ? NULL : strdup(buf_str(&b));
}

static void put_state(struct buf *out)
{
    struct json j = {.out = out};
    json_object(&j);
    json_key(&j, "patterns");
    json_array(&j);
    for (const char *p = trace.patterns; *p;) {
        size_t n = strcspn(p, ":");
        json_string_n(&j, p, n);
        p += n + (p[n] == ':');
    }
    json_array_end(&j);
    json_key(&j, "methods");
    json_array(&j);
    for (size_t i = 0; i < trace.methods.methods.len; i++)
        json_string(&j, trace.methods.methods.data[i].text);
    json_array_end(&j);
    json_object_end(&j);
}

int method_trace_switch(struct session *s, JNIEnv *jni, const char *request, struct buf *out, struct buf *why)
{
    bool add = strncmp(request, "add ", 4) == 0, remove = strncmp(request, "remove ", 7) == 0, had = false;
    const char *pattern = add ? request + 4 : remove ? request + 7 : "";
    if (!trace.patterns) {
        buf_string(why, "no calls are being traced; begin with --trace");
        return -ESRCH;
    }
    int r = 0;
    if (add || remove) {
        _cleanup_(buf_release) struct buf b = BUF(1 << 16);
        _cleanup_free_ char *rest = without(trace.patterns, pattern, &had);
        if (remove && !had) {
            buf_printf(why, "%s: not among the patterns", pattern);
            return -ESRCH;
        }
        if (rest)
            buf_printf(&b, "%s%s%s", rest, add && *rest ? ":" : "", add ? pattern : "");
        char *patterns = rest && !buf_error(&b) ? strdup(buf_str(&b)) : NULL;
        if (!patterns)
            return -ENOMEM;
        take_back(jni);
        pthread_mutex_lock(&trace.lock);
        free(trace.patterns);
        trace.patterns = patterns;
        pthread_mutex_unlock(&trace.lock);
        r = *patterns ? apply(jni, why) : 0;
    }
    pthread_mutex_lock(&trace.lock);
    put_state(out);
    pthread_mutex_unlock(&trace.lock);
    return r;
}

static void trace_stop(struct session *s, JNIEnv *jni)
{
    take_back(jni);
    trace_types_release(&trace.types, jni);
    hub_close(&reader, s->out.jfr, jni);
    uint64_t key, value;
    for (size_t i = 0; map_next(&trace.pending, &i, &key, &value);) {
        struct pending *p = (struct pending *)(uintptr_t)value;
        free(p->entry);
        free(p);
    }
    map_release(&trace.pending);
    map_release(&trace.current);
}

static void trace_release(struct session *s)
{
    condition_free(trace.condition);
    trace.condition = NULL;
    free(trace.patterns);
    free(trace.classes);
    trace.patterns = trace.classes = NULL;
    trace.exclude = NULL;
}

static void trace_flush(struct session *s, JNIEnv *jni)
{
    hub_drain(s, jni);
}

static void write_unmatched(struct jfr_writer *w, const char *pattern)
{
    _cleanup_free_ char *one = strndup(pattern, strcspn(pattern, ":"));
    struct jfr_event e;
    if (!one || !jfr_begin(w, trace.unmatched_type, strlen(one) + 64, &e))
        return;
    jfr_put_time(&e, now_ns());
    jfr_put_string(&e, one);
    jfr_commit(&e);
}

static void trace_dump(struct session *s, JNIEnv *jni, enum dump_reason reason)
{
    trace_flush(s, jni);
    pthread_mutex_lock(&trace.lock);
    for (const char *p = trace.patterns; reason != DUMP_REQUEST && *p; p += strcspn(p, ":"), p += *p == ':')
        if (*p != ':' && !trace_any_matches(&trace.methods, p))
            write_unmatched(s->out.jfr, p);
    pthread_mutex_unlock(&trace.lock);
}

static void trace_status(struct session *s, struct buf *out)
{
    pthread_mutex_lock(&trace.lock);

    const struct {
        const char *name;
        uint64_t value;
    } rows[] = {{"calls", trace.budget.written},
                {"methods", trace.methods.methods.len},
                {"condition_false", trace.false_condition},
                {"lost_no_entry", trace.without_entry},
                {"lost_no_exit", trace.without_exit},
                {"lost_no_room", trace.dropped},
                {"open", trace.pending.len}};

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        buf_printf(out, "trace.%s %llu\n", rows[i].name, (unsigned long long)rows[i].value);
    pthread_mutex_unlock(&trace.lock);
    budget_status(&trace.budget, "trace", out);
    hub_status("trace", out);
    instrument_status(out);
    native_calls_status(out);
}

extern const struct capture capture_method_trace;
const struct capture capture_method_trace = {
    .name = "trace",
    .options = OPTION_BIT(OPT_TRACE) | OPTION_BIT(OPT_IF),
    .needs = {.can_retransform_classes = 1},
    .wanted = trace_wanted,
    .load = trace_load,
    .start = trace_start,
    .stop = trace_stop,
    .release = trace_release,
    .flush = trace_flush,
    .dump = trace_dump,
    .status = trace_status,
};
