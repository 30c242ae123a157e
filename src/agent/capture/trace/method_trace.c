/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trace=PATTERN: calls with their arguments and results. Threads write into rings (ring.h); ten
 * times a second the agent's thread pairs entries with exits, applies the condition, and writes
 * each call as one jvmscope.Call event (doc/format.md).
 */
#include "agent/capture/trace/method_trace.h"

#include "agent/capture/trace/budget.h"
#include "agent/capture/trace/condition.h"
#include "agent/capture/trace/hub.h"
#include "agent/capture/trace/methods.h"
#include "agent/capture/trace/natives.h"
#include "agent/capture/trace/never.h"
#include "agent/capture/trace/nothing.h"
#include "agent/capture/trace/open_calls.h"
#include "agent/capture/trace/paths.h"
#include "agent/capture/trace/rules.h"
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
#include <stdlib.h>
#include <string.h>

enum { VALUES_MAX = 32 << 10 };

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
        {"depth", "Depth", "int",
         .description = "Traced calls of the thread that this one is inside of"},
        {"caller", "Caller", "java.lang.String",
         .description = "The innermost of these, null when there is none"},
        {"arguments", "Arguments", "java.lang.String",
         .description = "JSON array; `this` comes first where there is one"},
        {"hasThis", "Has This", "boolean"},
        {"returned", "Returned", "java.lang.String",
         .description = "JSON; null for void and when it threw"},
        {"exception", "Exception", "java.lang.String",
         .description = "Its class, null when it returned"},
        {"message", "Message", "java.lang.String",
         .description = "The exception's, null when it has none"}),
};

static const struct jfr_type unmatched_type = {
    .name = "jvmscope.TraceUnmatched",
    .label = "Trace Pattern without Methods",
    .category = "jvmscope|Trace",
    .description = "A pattern that no method has matched up to the end of the recording",
    .kind = JFR_EVENT,
    .fields = JFR_FIELDS(
        {"pattern", "Pattern", "java.lang.String"},
        {"reason", "Reason", "java.lang.String", .description = "What is there instead"}),
};

/*
 * A session's copy of what it needs to know about a method, because the table moves when other
 * threads add to it, and the method's name in the recording.
 */
struct known_method {
    struct traced_method method;
    uint64_t name;    /* 0: not seen yet */
    unsigned changed; /* trace.methods_changed at the time of the copy */
};

static struct {
    /* protects what clients of the instrumentation share with the agent's thread */
    pthread_mutex_t lock;
    struct traced_methods methods;
    uint32_t type, unmatched_type;
    /* the patterns, as given at the start and added later, and their conditions */
    struct trace_rules rules;
    char *classes; /* the patterns without descriptors */
    const char *exclude;
    struct trace_types types; /* patterns with "implements" */
    bool typed;               /* typed_client is registered */
    /* the recording began in a VM that was already running and had loaded its classes */
    bool live;
    unsigned patterns_changed; /* number of changes */
    _Atomic unsigned methods_changed;
    struct trace_budget budget;
    uint64_t false_condition;
    struct open_threads open;
    VEC(struct known_method) known;
    /* path values of the call that is being written */
    struct buf arguments, returned, exception, message;
} trace = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- calls ---- */

/* A finished call, as the condition sees it. */
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

/* Argument number nth, from 1; 0 is `this`. */
static bool argument(const struct ended *c, unsigned nth, struct value *ret)
{
    const uint8_t *at = c->entry->values, *end = (const uint8_t *)c->entry + c->entry->size;
    struct str d = {c->method->descriptor, strlen(c->method->descriptor)};
    struct value v = {0};
    unsigned slots;
    if (c->method->has_this && !value_take(&at, end, 'L', &v))
        return false;
    *ret = v;
    if (nth == 0)
        return c->method->has_this;
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

/*
 * The value to which a path of a condition led when the call began. False: there was no such value.
 */
static bool path_value(const struct ended *c, unsigned id, struct value *ret)
{
    const uint8_t *at = c->entry->values, *end = (const uint8_t *)c->entry + c->entry->size;
    struct str d = {c->method->descriptor, strlen(c->method->descriptor)};
    unsigned slots;
    uint32_t tag[2]; /* id, type */
    bool there = !c->method->has_this || value_take(&at, end, 'L', ret);
    for (size_t p = 1, len; there && (len = descriptor_next(d, p, &slots)); p += len)
        there = value_take(&at, end, d.data[p], ret);
    while (there && end - at >= (ptrdiff_t)sizeof(tag)) {
        memcpy(tag, at, sizeof(tag));
        at += sizeof(tag);
        there = tag[1] <= PATH_NONE || value_take(&at, end, (char)tag[1], ret);
        if (tag[0] == id)
            return there && tag[1] > PATH_NONE;
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
    case COND_THREAD:
        ret->text = hub_thread_name(c->entry->thread);
        return;
    case COND_RETURN:
        ret->there = c->exit->kind == RECORD_EXIT && result(c, &v);
        break;
    case COND_THIS:
    case COND_ARG:
    case COND_STATIC:
        ret->there = t->path ? path_value(c, t->id, &v) : argument(c, t->arg, &v);
        break;
    }
    if (ret->there && t->length) {
        ret->there = value_has_length(&v);
        ret->number = (double)v.length;
    }
    if (t->length || !ret->there)
        return;
    ret->null = v.type == 'L' && v.class == 0;
    v = value_unboxed(&v);
    bool is_name = v.type == 'L' && v.shown && v.shown->style == STYLE_ENUM && v.chars;
    if (value_is_string(&v) || is_name) {
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

static const struct known_method *known_method(struct jfr_writer *w, int32_t number)
{
    size_t at = (size_t)number;
    if (at >= trace.known.len && vec_extend(&trace.known, at + 1 - trace.known.len) < 0)
        return NULL;
    struct known_method *k = &trace.known.data[at];
    unsigned changed = atomic_load(&trace.methods_changed);
    if (!k->name || k->changed != changed) {
        pthread_mutex_lock(&trace.lock);
        k->method = trace.methods.methods.data[at];
        pthread_mutex_unlock(&trace.lock);
        k->changed = changed;
    }
    if (!k->name)
        k->name = jfr_define_string(w, k->method.text);
    return k->name ? k : NULL;
}

static int put_values(const struct ended *c)
{
    struct json j = {.out = &trace.arguments};
    struct value v;
    const uint8_t *at = c->entry->values, *end = (const uint8_t *)c->entry + c->entry->size;
    struct str d = {c->method->descriptor, strlen(c->method->descriptor)};
    unsigned slots;
    buf_clear(&trace.arguments);
    buf_clear(&trace.returned);
    buf_clear(&trace.exception);
    buf_clear(&trace.message);
    json_begin_array(&j);
    if (c->method->has_this && value_take(&at, end, 'L', &v))
        value_json(&j, &v);
    for (size_t p = 1, len;
         (len = descriptor_next(d, p, &slots)) && value_take(&at, end, d.data[p], &v); p += len)
        value_json(&j, &v);
    json_end_array(&j);
    if (result(c, &v) && c->exit->kind == RECORD_EXIT)
        value_json(&(struct json){.out = &trace.returned}, &v);
    else if (c->exit->kind == RECORD_THROWN && result(c, &v)) {
        put_class(&trace.exception, v.class);
        if (v.shown && v.shown->kind == SHAPE_NAME && v.length > 0)
            put_text(&trace.message, &v);
    }
    return buf_error(&trace.arguments);
}

static void write_call(struct jfr_writer *w, const struct ended *c, uint64_t method,
                       uint64_t caller)
{
    int error = put_values(c);
    const char *name = hub_thread_name(c->entry->thread);
    const struct buf *args = &trace.arguments, *back = &trace.returned, *thrown = &trace.exception,
                     *message = &trace.message;
    size_t room =
        args->len + back->len + thrown->len + message->len + (name ? strlen(name) : 0) + 128;
    struct jfr_event e;
    if (error || room > VALUES_MAX * 2) {
        jfr_lose(w, LOSS_TRACE_TOO_LARGE, 1);
        return;
    }
    if (!jfr_begin_growing(w, trace.type, room, &e)) {
        jfr_lose_events(w, trace.type, 1);
        return;
    }
    jfr_put_time(&e, c->entry->time_ns);
    jfr_put_long(&e, (int64_t)(c->exit->time_ns - c->entry->time_ns));
    jfr_put_string_id(&e, method);
    jfr_put_long(&e, c->entry->thread);
    jfr_put_string(&e, name);
    jfr_put_int(&e, (int32_t)c->depth);
    jfr_put_string_id(&e, caller);
    jfr_put_string_n(&e, (const char *)args->data, args->len);
    jfr_put_byte(&e, c->method->has_this);
    jfr_put_string_n(&e, back->len ? (const char *)back->data : NULL, back->len);
    jfr_put_string_n(&e, thrown->len ? (const char *)thrown->data : NULL, thrown->len);
    jfr_put_string_n(&e, message->len ? (const char *)message->data : NULL, message->len);
    jfr_commit(&e);
    budget_spend(&trace.budget, room);
}

static void end_call(struct jfr_writer *w, struct open_calls *o, uint32_t at,
                     const struct trace_record *exit)
{
    struct open_call own = o->calls[at];
    const struct known_method *caller = at ? known_method(w, o->calls[at - 1].entry->kind) : NULL;
    uint64_t caller_name = caller ? caller->name : 0;
    const struct known_method *m = known_method(w, own.entry->kind);
    struct ended c = {
        .method = m ? &m->method : NULL, .entry = own.entry, .exit = exit, .depth = at};
    if (!m)
        jfr_lose(w, LOSS_TRACE_MEMORY, 1);
    else if (!trace_rules_hold(&trace.rules, m->method.rules, condition_value, &c))
        trace.false_condition++;
    else if (budget_allows(&trace.budget, own.entry->time_ns))
        write_call(w, &c, m->name, caller_name);
    open_calls_remove(&trace.open, o, at);
}

/*
 * Ends the innermost call, which is still open although the call around it has ended. A constructor
 * that an exception left inside this() or super(), where the verifier allows no handler, has thrown
 * an unknown exception. For any other call the exit was lost.
 */
static void end_without_exit(struct jfr_writer *w, struct open_calls *o, uint32_t at,
                             const struct trace_record *outer)
{
    /* A record of an exit that threw null, which stands for an unknown exception. */
    _Alignas(8) uint8_t bytes[sizeof(struct trace_record) + 8] = {0};
    struct trace_record *exit = (struct trace_record *)bytes;
    *exit = (struct trace_record){
        .size = sizeof(bytes), .kind = RECORD_THROWN, .time_ns = outer->time_ns};
    const struct known_method *m = known_method(w, o->calls[at].entry->kind);
    if (m && strstr(m->method.text, ".<init>(")) {
        end_call(w, o, at, exit);
        return;
    }
    jfr_lose(w, LOSS_TRACE_UNPAIRED, 1);
    open_calls_remove(&trace.open, o, at);
}

static bool call_ended(struct jfr_writer *w, const struct trace_record *r)
{
    struct open_calls *o = open_calls_of(&trace.open, r->thread);
    uint32_t at = o ? o->n : 0;
    while (at > 0 && o->calls[at - 1].entry->call != r->call)
        at--;
    if (at == 0)
        return false;
    /* Calls that began after this exit are not nested in it. */
    for (uint32_t inner = o->n; inner-- > at;)
        if (o->calls[inner].entry->time_ns <= r->time_ns)
            end_without_exit(w, o, inner, r);
    end_call(w, o, at - 1, r);
    return true;
}

/*
 * Handles one record of the rings. False: it is the exit of a call whose entry has not been read
 * yet.
 */
static bool read_record(struct jfr_writer *w, const struct trace_record *r)
{
    if (r->kind < 0)
        return call_ended(w, r);
    if (open_calls_add(&trace.open, r) < 0)
        jfr_lose(w, LOSS_TRACE_MEMORY, 1);
    return true;
}

static void unmatched(struct jfr_writer *w)
{
    jfr_lose(w, LOSS_TRACE_UNPAIRED, 1);
}

static const struct hub_reader reader = {.record = read_record, .unmatched = unmatched};

/* ---- the capture ---- */

/* The rules of the patterns that match a method by name or annotation, as a set. With the lock. */
static uint64_t matched_rules(const struct instrument_class *c, const struct edit *e,
                              struct str name, struct str descriptor)
{
    const struct trace_patterns *patterns = &trace.rules.patterns;
    const char *p = patterns->list;
    uint64_t rules = 0;
    if (choice_matches(trace.exclude, c->name, name))
        return 0;
    for (unsigned i = 0; i < patterns->n; i++, p += strcspn(p, ":"), p += *p == ':')
        if (trace_matches_first(p, c->name, name, descriptor) ||
            (e && trace_annotated(p, c->file, e->method)))
            rules |= UINT64_C(1) << patterns->rules[i];
    return rules;
}

/* Checks whether a method can meet the conditions of a set of rules. With the lock. */
static void fit(const struct traced_method *m, uint64_t set)
{
    for (unsigned i = 1; i < trace.rules.n; i++) {
        struct trace_rule *rule = &trace.rules.of[i];
        _cleanup_(buf_release) struct buf why = BUF(4096);
        if (!(set >> i & 1) || rule->fits)
            continue;
        rule->fits = !trace_never_holds(rule->condition, m, NULL, NULL, &why);
        if (!rule->fits && !rule->never)
            rule->never = strdup(buf_str(&why));
    }
}

/*
 * The number of a method that the patterns of these rules match; -ENOMEM. With the lock. Rules of
 * patterns that have been removed are dropped from the method.
 */
static int add_method(struct str class_name, struct str name, struct str descriptor, bool has_this,
                      uint64_t rules)
{
    int number = trace_method_add(&trace.methods, class_name, name, descriptor, has_this);
    if (number < 0)
        return number;
    struct traced_method *m = &trace.methods.methods.data[number];
    uint64_t before = m->patterns == trace.patterns_changed ? m->rules : 0;
    m->patterns = trace.patterns_changed;
    m->rules = before | rules;
    atomic_fetch_add(&trace.methods_changed, 1);
    fit(m, rules);
    return number;
}

/* A view of the loaded classes, for paths of conditions. */
struct classes {
    JNIEnv *jni;
    bool late; /* classes loaded later do not matter */
};

static bool no_field(void *context, struct str type, const char *path, struct buf *why)
{
    const struct classes *c = context;
    return trace_path_leads_nowhere(c->jni, c->late, type, path, why);
}

/*
 * Compares a condition with the loaded classes: finds paths of fields that none of them has.
 * Without the lock, because it searches all classes.
 */
static void fit_fields(JNIEnv *jni, unsigned i, bool late)
{
    struct trace_rule *rule = &trace.rules.of[i];
    struct classes classes = {jni, late};
    _cleanup_(buf_release) struct buf why = BUF(4096);
    bool fits = !rule->fits || !condition_path(rule->condition, 0);
    bool any = false;
    for (size_t n = 0; !fits; n++) {
        pthread_mutex_lock(&trace.lock);
        bool more = n < trace.methods.methods.len;
        struct traced_method m = more ? trace.methods.methods.data[n] : (struct traced_method){0};
        bool is = more && m.patterns == trace.patterns_changed && m.rules >> i & 1;
        pthread_mutex_unlock(&trace.lock);
        if (!more)
            break;
        any |= is;
        fits = is && !trace_never_holds(rule->condition, &m, no_field, &classes, &why);
    }
    if (fits || !any)
        return;
    char *never = strdup(buf_str(&why));
    pthread_mutex_lock(&trace.lock);
    free(rule->never);
    rule->never = never;
    rule->fits = !never;
    pthread_mutex_unlock(&trace.lock);
}

/*
 * Whether no call of any method found for rule i can meet the condition. Then *why explains it for
 * one of the methods.
 */
static bool never_fits(unsigned i, struct buf *why)
{
    pthread_mutex_lock(&trace.lock);
    const struct trace_rule *rule = &trace.rules.of[i];
    bool used = trace_rules_used(&trace.rules) >> i & 1, never = used && !rule->fits && rule->never;
    if (never)
        buf_printf(why, "the condition can never hold: %s", rule->never);
    pthread_mutex_unlock(&trace.lock);
    return never;
}

static bool any_never_fits(JNIEnv *jni, struct buf *why)
{
    bool never = false;
    for (unsigned i = 1; i < trace.rules.n && !never; i++) {
        fit_fields(jni, i, false);
        never = never_fits(i, why);
    }
    return never;
}

/*
 * Inserts probes where patterns match by name or, for a typed client, where only a type matches,
 * because the other methods already have probes.
 */
static int edit_where(const struct instrument_class *c, struct edit *e, bool by_type)
{
    struct str name = class_utf8(c->file, e->method->name),
               descriptor = class_utf8(c->file, e->method->descriptor);
    bool has_this = !(e->method->access & ACC_STATIC) && !str_is(name, "<init>");
    struct trace_rules known = {0};
    int number = 0;
    pthread_mutex_lock(&trace.lock);
    uint64_t matched = matched_rules(c, e, name, descriptor),
             rules = by_type ? trace_types_rules(&trace.types, c->name) : matched;
    if (hub_is_used(c->name) || choice_matches(trace.exclude, c->name, name))
        rules = 0;
    if (rules)
        number = add_method(c->name, name, descriptor, has_this, rules);
    /*
     * The class may later turn out to be below a type, and its calls are then recorded for that as
     * well.
     */
    uint64_t probed = by_type || !trace.types.n_names ? rules : trace_rules_used(&trace.rules) | 1;
    if (rules) /* these remain valid while others are added */
        known = trace.rules;
    pthread_mutex_unlock(&trace.lock);
    if (!rules || number < 0 || (by_type && matched))
        return MIN(number, 0);
    return trace_insert(e, number, has_this, &known, probed);
}

static int trace_edit(const struct instrument_class *c, struct edit *e)
{
    return edit_where(c, e, false);
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

/*
 * Remembers why a matching method was left alone; a pattern without any other method reports the
 * reason.
 */
static void trace_left(const struct instrument_class *c, const struct class_method *m,
                       enum instrument_reason why)
{
    struct str name = class_utf8(c->file, m->name), descriptor = class_utf8(c->file, m->descriptor);
    pthread_mutex_lock(&trace.lock);
    bool matched = trace_matches(trace.rules.patterns.list, c->name, name, descriptor);
    pthread_mutex_unlock(&trace.lock);
    if (matched)
        trace_left_add(c->name, name, why);
}

static const struct instrument_client client = {
    .name = "trace", .edit = trace_edit, .wants = trace_wants, .left = trace_left};

/*
 * ---- "implements pkg.Type": decided when a class has been loaded and its supertypes are known
 * ----
 */

static void typed_look(JNIEnv *jni, jclass class, struct str name)
{
    pthread_mutex_lock(&trace.lock);
    trace_types_look(&trace.types, jni, class, name);
    pthread_mutex_unlock(&trace.lock);
    trace_paths_look(jni, class, name);
}

static bool typed_wants(struct str name)
{
    pthread_mutex_lock(&trace.lock);
    bool wants = trace_types_rules(&trace.types, name) != 0;
    pthread_mutex_unlock(&trace.lock);
    return wants && !is_excluded(name);
}

static int typed_edit(const struct instrument_class *c, struct edit *e)
{
    return edit_where(c, e, true);
}

static const struct instrument_client typed_client = {.name = "trace implements",
                                                      .edit = typed_edit,
                                                      .wants = typed_wants,
                                                      .look = typed_look,
                                                      .loaded_only = true};

/* ---- native methods: chosen by name alone ---- */

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
    const struct instrument_class c = {.name = m->class_name};
    uint64_t rules = matched_rules(&c, NULL, m->name, m->descriptor);
    int number =
        rules ? add_method(m->class_name, m->name, m->descriptor, !m->is_static, rules) : -ENOENT;
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

static int trace_check(const struct options *o, struct buf *why)
{
    struct trace_rules rules;
    int r = trace_rules_set(&rules, o, why);
    if (r == 0)
        trace_rules_release(&rules);
    return r == -EINVAL ? -ENOTSUP : r;
}

static int trace_load(struct session *s, struct buf *why)
{
    int r = trace_rules_set(&trace.rules, &s->options, why);
    if (r < 0)
        return r;
    trace.budget = budget_of(&s->options);
    trace.false_condition = 0;
    trace.live = vm_is_live();
    trace.arguments = trace.returned = BUF(VALUES_MAX);
    trace.exception = trace.message = BUF(4096);
    trace.patterns_changed++;
    r = jfr_declare(s->out.jfr, &unmatched_type, 1, &trace.unmatched_type);
    return r < 0 ? r : jfr_declare(s->out.jfr, &call_type, 1, &trace.type);
}

/*
 * Requests the static fields of the conditions before any class is searched: returns 1 when there
 * are some, because their classes may be loaded later.
 */
static int name_statics(void)
{
    const struct cond_test *t;
    int r = 0;
    for (unsigned i = 1; i < trace.rules.n && r >= 0; i++)
        for (unsigned k = 0; r >= 0 && (t = condition_path(trace.rules.of[i].condition, k)); k++)
            if (t->what == COND_STATIC)
                r = MIN(trace_path_name_static(t->path), 0) ?: 1;
    return r;
}

/* Inserts probes into everything that the patterns match now. */
static int apply(JNIEnv *jni, struct buf *why)
{
    char *classes = trace_class_patterns(trace.rules.patterns.list);
    pthread_mutex_lock(&trace.lock);
    free(trace.classes);
    trace.classes = classes;
    pthread_mutex_unlock(&trace.lock);
    int statics = classes ? name_statics() : -ENOMEM;
    if (statics == -ENOTSUP)
        buf_string(why, "too many static fields in conditions");
    int r = statics < 0 ? statics : instrument_on(&client, jni, why);
    if (r < 0)
        return r;
    pthread_mutex_lock(&trace.lock);
    r = trace_types_set(&trace.types, &trace.rules.patterns, jni);
    pthread_mutex_unlock(&trace.lock);
    if (r >= 0)
        trace_paths_find(jni);
    if (r > 0 || (r == 0 && statics)) {
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

/*
 * Calls f with each pattern that has traced no method so far, and the reason. Without the lock,
 * because it searches all classes.
 */
static void each_unmatched(JNIEnv *jni,
                           void (*f)(void *context, const char *pattern, const char *why),
                           void *context)
{
    pthread_mutex_lock(&trace.lock);
    _cleanup_free_ char *patterns = strdup(trace.rules.patterns.list);
    pthread_mutex_unlock(&trace.lock);
    for (char *p = patterns, *end; p && *p; p = end) {
        _cleanup_(buf_release) struct buf why = BUF(4096);
        end = p + strcspn(p, ":");
        end += *end == ':' ? (*end = 0, 1) : 0;
        pthread_mutex_lock(&trace.lock);
        bool matched = !*p || trace_any_matches(&trace.methods, p);
        pthread_mutex_unlock(&trace.lock);
        if (matched)
            continue;
        trace_explain(jni, p, trace.exclude, &why);
        f(context, p, buf_str(&why));
    }
}

static void say_unmatched(void *context, const char *pattern, const char *why)
{
    session_message(context, "trace %s: traces nothing so far: %s", pattern, why);
}

static int trace_start(struct session *s, JNIEnv *jni, struct buf *why)
{
    trace.exclude = s->options.v[OPT_EXCLUDE].text;
    int r = hub_open(&reader, s, jni, why);
    if (r == 0)
        r = apply(jni, why);
    if (r >= 0 && trace.live && any_never_fits(jni, why))
        return -EINVAL;
    if (r >= 0 && trace.live)
        each_unmatched(jni, say_unmatched, s);
    return r;
}

static void put_unmatched(void *context, const char *pattern, const char *why)
{
    struct json *j = context;
    json_begin_object(j);
    json_key_string(j, "pattern", pattern);
    json_key_string(j, "why", why);
    json_end_object(j);
}

/* The patterns, each with its condition if it has one. With the lock. */
static void put_patterns(struct json *j, bool conditions)
{
    const struct trace_patterns *patterns = &trace.rules.patterns;
    const char *p = patterns->list;
    json_begin_array(j);
    for (unsigned i = 0; i < patterns->n; i++) {
        size_t n = strcspn(p, ":");
        if (!conditions) {
            json_string_n(j, p, n);
        } else if (patterns->rules[i]) {
            json_begin_object(j);
            json_key(j, "pattern");
            json_string_n(j, p, n);
            json_key_string(j, "if", trace.rules.of[patterns->rules[i]].text);
            json_end_object(j);
        }
        p += n + (p[n] == ':');
    }
    json_end_array(j);
}

static void put_state(JNIEnv *jni, struct buf *out)
{
    struct json j = {.out = out};
    pthread_mutex_lock(&trace.lock);
    json_begin_object(&j);
    json_key(&j, "patterns");
    put_patterns(&j, false);
    json_key(&j, "conditions");
    put_patterns(&j, true);
    json_key(&j, "methods");
    json_begin_array(&j);
    for (size_t i = 0; i < trace.methods.methods.len; i++)
        json_string(&j, trace.methods.methods.data[i].text);
    json_end_array(&j);
    pthread_mutex_unlock(&trace.lock);
    json_key(&j, "unmatched");
    json_begin_array(&j);
    each_unmatched(jni, put_unmatched, &j);
    json_end_array(&j);
    json_end_object(&j);
}

/* Removes the probes, replaces the patterns, and inserts the probes again. */
static int replace(JNIEnv *jni, struct trace_patterns patterns, struct trace_patterns *ret_before,
                   struct buf *why)
{
    take_back(jni);
    pthread_mutex_lock(&trace.lock);
    *ret_before = trace.rules.patterns;
    trace.rules.patterns = patterns;
    trace.patterns_changed++;
    pthread_mutex_unlock(&trace.lock);
    return patterns.n ? apply(jni, why) : 0;
}

/* Splits "PATTERN" or "PATTERN if CONDITION" in place. Names contain no blanks. */
static int add_pattern(JNIEnv *jni, char *pattern, struct buf *why)
{
    struct trace_patterns patterns, before;
    char *condition = strstr(pattern, " if ");
    if (condition) {
        *condition = 0;
        condition += strlen(" if ");
    }
    pthread_mutex_lock(&trace.lock);
    int rule = trace_rule_add(&trace.rules, condition, why);
    pthread_mutex_unlock(&trace.lock);
    int r = rule < 0
                ? rule
                : trace_patterns_with(&patterns, &trace.rules.patterns, pattern, (unsigned)rule);
    if (r < 0)
        return r;
    r = replace(jni, patterns, &before, why);
    if (r >= 0 && rule)
        fit_fields(jni, (unsigned)rule, false);
    if (r >= 0 && rule && never_fits((unsigned)rule, why)) {
        r = replace(jni, before, &before, why);
        r = MIN(r, 0) ?: -EINVAL;
    }
    trace_patterns_release(&before);
    return r;
}

static int remove_pattern(JNIEnv *jni, const char *pattern, struct buf *why)
{
    struct trace_patterns patterns, before;
    bool had;
    int r = trace_patterns_without(&patterns, &trace.rules.patterns, pattern, &had);
    if (r == 0 && !had) {
        buf_printf(why, "%s: not among the patterns", pattern);
        trace_patterns_release(&patterns);
        return -ESRCH;
    }
    if (r == 0) {
        r = replace(jni, patterns, &before, why);
        trace_patterns_release(&before);
    }
    return r;
}

int method_trace_switch(struct session *s, JNIEnv *jni, const char *request, struct buf *out,
                        struct buf *why)
{
    bool add = strncmp(request, "add ", 4) == 0, remove = strncmp(request, "remove ", 7) == 0;
    _cleanup_free_ char *pattern = strdup(add ? request + 4 : remove ? request + 7 : "");
    if (!trace.rules.patterns.list) {
        buf_string(why, "no calls are being traced; begin with --trace");
        return -ESRCH;
    }
    int r = !pattern ? -ENOMEM
            : add    ? add_pattern(jni, pattern, why)
            : remove ? remove_pattern(jni, pattern, why)
                     : 0;
    if (r >= 0)
        put_state(jni, out);
    return r;
}

static void trace_stop(struct session *s, JNIEnv *jni)
{
    hub_shut();
    take_back(jni);
    trace_types_release(&trace.types, jni);
    hub_close(&reader, s->out.jfr, jni);
    jfr_lose(s->out.jfr, LOSS_TRACE_OPEN, trace.open.n_open);
    open_calls_release(&trace.open);
}

static void trace_release(struct session *s)
{
    trace_rules_release(&trace.rules);
    trace_paths_forget();
    free(trace.classes);
    trace.classes = NULL;
    trace.exclude = NULL;
    vec_release(&trace.known);
    trace_left_clear();
    buf_release(&trace.arguments);
    buf_release(&trace.returned);
    buf_release(&trace.exception);
    buf_release(&trace.message);
}

static void trace_drain(struct session *s, JNIEnv *jni)
{
    hub_drain(s, jni);
    open_calls_forget_idle(&trace.open);
    jfr_lose_total(s->out.jfr, LOSS_TRACE_LIMIT, trace.budget.over_limit);
    jfr_lose_total(s->out.jfr, LOSS_TRACE_RATE, trace.budget.over_rate);
    jfr_lose_total(s->out.jfr, LOSS_TRACE_BYTES, trace.budget.over_bytes);
}

static void write_unmatched(void *context, const char *pattern, const char *why)
{
    struct jfr_writer *w = context;
    struct jfr_event e;
    if (!jfr_begin(w, trace.unmatched_type, strlen(pattern) + strlen(why) + 64, &e))
        return;
    jfr_put_time(&e, now_ns());
    jfr_put_string(&e, pattern);
    jfr_put_string(&e, why);
    jfr_commit(&e);
}

/* Reports the patterns of rule i, whose condition no method can meet. */
static void write_never(struct jfr_writer *w, unsigned i, const char *why)
{
    const struct trace_patterns *patterns = &trace.rules.patterns;
    _cleanup_(buf_release) struct buf of_rule = BUF(1 << 16);
    const char *p = patterns->list;
    for (unsigned n = 0; n < patterns->n; n++, p += strcspn(p, ":"), p += *p == ':')
        if (patterns->rules[n] == i)
            buf_printf(&of_rule, "%s%.*s", of_rule.len ? ":" : "", (int)strcspn(p, ":"), p);
    write_unmatched(w, buf_str(&of_rule), why);
}

static void trace_dump(struct session *s, JNIEnv *jni, enum dump_reason reason)
{
    if (reason == DUMP_REQUEST)
        return;
    _cleanup_(buf_release) struct buf why = BUF(4096);
    each_unmatched(jni, write_unmatched, s->out.jfr);
    for (unsigned i = 1; i < trace.rules.n; i++) {
        buf_clear(&why);
        fit_fields(jni, i, true);
        if (never_fits(i, &why))
            write_never(s->out.jfr, i, buf_str(&why));
    }
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
                {"open", trace.open.n_open}};

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        buf_printf(out, "trace.%s %llu\n", rows[i].name, (unsigned long long)rows[i].value);
    pthread_mutex_unlock(&trace.lock);
    budget_status(&trace.budget, "trace", out);
    native_calls_status(out);
}

extern const struct capture capture_method_trace;
const struct capture capture_method_trace = {
    .name = "trace",
    .options = OPTION_BIT(OPT_TRACE) | OPTION_BIT(OPT_IF),
    .needs = {.can_retransform_classes = 1},
    .records_only = true,
    .wanted = trace_wanted,
    .check = trace_check,
    .load = trace_load,
    .start = trace_start,
    .shut = hub_shut,
    .stop = trace_stop,
    .release = trace_release,
    .flush = trace_drain,
    .drain = trace_drain,
    .dump = trace_dump,
    .status = trace_status,
};
