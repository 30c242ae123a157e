/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/capture/trace/paths.h"
#include "agent/capture/trace/trace_state.h"
#include "agent/capture/trace/values.h"
#include "agent/instrument/probe_class.h"
#include "base/json.h"
#include "jfr/writer.h"
#include "options/trace_condition.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

const struct jfr_type trace_call_type = {
    .name = "jvmscope.Call",
    .label = "Method Call",
    .category = "jvmscope|Trace",
    .description = "A traced call, from entry to exit",
    .kind = JFR_EVENT,
    .has = JFR_DURATION,
    .fields = JFR_FIELDS(
        {"method", "Method", "java.lang.String", .description = "package.Class.name(signature)"},
        {"javaThreadId", "Java Thread Id", "long"}, {"thread", "Thread", "java.lang.String"},
        {"depth", "Depth", "int", .description = "Number of traced calls that enclose this one"},
        {"caller", "Caller", "java.lang.String",
         .description = "The innermost enclosing call, or null"},
        {"arguments", "Arguments", "java.lang.String",
         .description = "JSON array; `this` comes first where there is one"},
        {"hasThis", "Has This", "boolean"},
        {"returned", "Returned", "java.lang.String",
         .description = "JSON; null if the method is void or threw"},
        {"exception", "Exception", "java.lang.String",
         .description = "Class of the exception; null if the call returned"},
        {"message", "Message", "java.lang.String",
         .description = "Message of the exception, or null"},
        {"reading", "Reading", "long",
         .description = "ns of the duration in which values were read for the recording"}),
};

/* A finished call, as the condition sees it. */
struct ended {
    const struct traced_method *method;
    const struct trace_record *entry, *exit;
    unsigned depth;
    /* the part of its time in which values of this call and of calls within it were read */
    uint64_t reading_ns;
    char text[1024];
};

/* Returns how long a call took, in ns, including the time in which values were read. */
static int64_t duration(const struct ended *c)
{
    return (int64_t)(c->exit->time_ns - c->entry->time_ns);
}

static char return_type(const struct traced_method *m)
{
    return strchr(m->descriptor, ')')[1];
}

/* Finds argument number nth, counted from 1; 0 is `this`. */
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
    for (size_t p = 1, len; (len = class_descriptor_next(d, p, &slots)); p += len) {
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
 * Finds the value to which a path of a condition led when the call began. Returns false if there
 * was none.
 */
static bool path_value(const struct ended *c, unsigned id, struct value *ret)
{
    const uint8_t *at = c->entry->values, *end = (const uint8_t *)c->entry + c->entry->size;
    struct str d = {c->method->descriptor, strlen(c->method->descriptor)};
    unsigned slots;
    uint32_t tag[2]; /* id, type */
    bool present = !c->method->has_this || value_take(&at, end, 'L', ret);
    for (size_t p = 1, len; present && (len = class_descriptor_next(d, p, &slots)); p += len)
        present = value_take(&at, end, d.data[p], ret);
    while (present && end - at >= (ptrdiff_t)sizeof(tag)) {
        memcpy(tag, at, sizeof(tag));
        at += sizeof(tag);
        present = tag[1] <= PATH_NONE || value_take(&at, end, (char)tag[1], ret);
        if (tag[0] == id)
            return present && tag[1] > PATH_NONE;
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
    ret->present = true;
    switch (t->what) {
    case COND_TIME:
        ret->number = number_whole(duration(c) - (int64_t)c->reading_ns);
        return;
    case COND_DEPTH:
        ret->number = number_whole(c->depth);
        return;
    case COND_THROWN:
        ret->number = number_whole(c->exit->kind == RECORD_THROWN);
        ret->boolean = true;
        return;
    case COND_THREAD:
        ret->text = drain_thread_name(c->entry->thread);
        return;
    case COND_RETURN:
        ret->present = c->exit->kind == RECORD_EXIT && result(c, &v);
        break;
    case COND_THIS:
    case COND_ARG:
    case COND_STATIC:
        ret->present = t->path ? path_value(c, t->id, &v) : argument(c, t->arg, &v);
        break;
    }
    if (ret->present && t->length) {
        ret->present = value_has_length(&v);
        ret->number = number_whole(v.length);
    }
    if (t->length || !ret->present)
        return;
    ret->null = v.type == 'L' && v.class == 0;
    v = value_held(&v);
    if (v.type == 'L' && v.class == 0)
        ret->null = true;
    bool is_name = v.type == 'L' && v.shown && v.shown->style == STYLE_ENUM && v.chars;
    bool is_message = value_is_message(&v);
    bool is_class = v.type == 'L' && v.shown && v.shown->kind == SHAPE_CLASS;
    /*
     * An enum constant is compared with the name that results show, shop.Color.RED, if the
     * condition has that form.
     */
    if (is_class || (is_name && t->kind == COND_TEXT && strchr(t->text, '.'))) {
        struct buf b = BUF(16 << 10);
        value_text(&b, &v);
        snprintf(c->text, sizeof(c->text), "%s", buf_str(&b));
        buf_release(&b);
        for (size_t i = 0; is_name && c->text[i] && t->text[i]; i++)
            c->text[i] = t->text[i] == '.' && c->text[i] == '$' ? '.' : c->text[i];
        ret->number = number_whole(1);
        ret->text = c->text;
    } else if (value_is_string(&v) || is_name || is_message) {
        struct buf b = BUF(sizeof(c->text) - 1);
        trace_put_utf16(&b, v.chars, v.n_chars);
        snprintf(c->text, sizeof(c->text), "%s", buf_str(&b));
        buf_release(&b);
        ret->text = c->text;
    } else if (value_known(&v)) {
        struct buf b = BUF(16 << 10);
        v.shown->put(&b, &v);
        snprintf(c->text, sizeof(c->text), "%s", buf_str(&b));
        buf_release(&b);
        ret->number = v.shown->style == STYLE_NUMBER ? number_of_text(c->text) : number_whole(1);
        if (v.shown->style != STYLE_NUMBER || t->kind == COND_TEXT)
            ret->text = c->text;
    } else if (v.type == 'L') {
        ret->number = number_whole(v.class != 0);
        ret->object = v.class != 0;
    } else {
        bool is_real = v.type == 'F' || v.type == 'D';
        ret->boolean = v.type == 'Z';
        ret->number = is_real
                          ? (struct number){.kind = v.type == 'F' ? NUMBER_FLOAT : NUMBER_DOUBLE,
                                            .real = v.real}
                          : number_whole(v.number);
        if (v.type == 'C' && t->kind == COND_TEXT) {
            struct buf b = BUF(sizeof(c->text) - 1);
            value_text(&b, &v);
            snprintf(c->text, sizeof(c->text), "%s", buf_str(&b));
            buf_release(&b);
            ret->text = c->text;
        }
    }
}

static const struct method_copy *known_method(struct jfr_writer *w, int32_t number)
{
    size_t at = (size_t)number;
    if (at >= method_trace.known.len) {
        pthread_mutex_lock(&method_trace.lock);
        bool present = at < method_trace.methods.methods.len;
        pthread_mutex_unlock(&method_trace.lock);
        if (!present || vec_extend(&method_trace.known, at + 1 - method_trace.known.len) < 0)
            return NULL;
    }
    struct method_copy *k = &method_trace.known.data[at];
    unsigned changed = atomic_load(&method_trace.methods_changed);
    if (!k->name || k->changed != changed) {
        pthread_mutex_lock(&method_trace.lock);
        k->method = method_trace.methods.methods.data[at];
        pthread_mutex_unlock(&method_trace.lock);
        k->takes_class = strstr(k->method.descriptor, "Ljava/lang/Class;");
        k->changed = changed;
    }
    if (!k->name)
        k->name = jfr_define_string(w, k->method.text);
    return k->name ? k : NULL;
}

static int put_values(const struct ended *c)
{
    struct json j = {.out = &method_trace.arguments};
    struct value v;
    const uint8_t *at = c->entry->values, *end = (const uint8_t *)c->entry + c->entry->size;
    struct str d = {c->method->descriptor, strlen(c->method->descriptor)};
    unsigned slots;
    buf_clear(&method_trace.arguments);
    buf_clear(&method_trace.returned);
    buf_clear(&method_trace.exception);
    buf_clear(&method_trace.message);
    method_trace.has_message = false;
    json_begin_array(&j);
    if (c->method->has_this && value_take(&at, end, 'L', &v))
        value_json(&j, &v);
    for (size_t p = 1, len;
         (len = class_descriptor_next(d, p, &slots)) && value_take(&at, end, d.data[p], &v);
         p += len)
        value_json(&j, &v);
    json_end_array(&j);
    if (result(c, &v) && c->exit->kind == RECORD_EXIT)
        value_json(&(struct json){.out = &method_trace.returned}, &v);
    else if (c->exit->kind == RECORD_THROWN && result(c, &v)) {
        trace_put_class(&method_trace.exception, v.class);
        method_trace.has_message = value_is_message(&v);
        if (method_trace.has_message)
            trace_put_text(&method_trace.message, &v);
    }
    return buf_error(&method_trace.arguments);
}

static void write_call(struct jfr_writer *w, const struct ended *c, uint64_t method,
                       uint64_t caller)
{
    int error = put_values(c);
    const char *name = drain_thread_written(c->entry->thread);
    const struct buf *args = &method_trace.arguments, *back = &method_trace.returned,
                     *thrown = &method_trace.exception, *message = &method_trace.message;
    size_t room =
        args->len + back->len + thrown->len + message->len + (name ? strlen(name) : 0) + 136;
    struct jfr_event e;
    if (error || room > TRACE_VALUES_MAX * 2) {
        jfr_lose_at(w, LOSS_TRACE_TOO_LARGE, c->exit->time_ns);
        return;
    }
    if (!jfr_begin_growing(w, method_trace.type, room, &e)) {
        jfr_lose_event_at(w, method_trace.type, c->entry->time_ns, c->exit->time_ns);
        return;
    }
    jfr_put_time(&e, c->entry->time_ns);
    jfr_put_long(&e, duration(c));
    jfr_put_string_id(&e, method);
    jfr_put_long(&e, c->entry->thread);
    jfr_put_string(&e, name);
    jfr_put_int(&e, (int32_t)c->depth);
    jfr_put_string_id(&e, caller);
    jfr_put_string_n(&e, (const char *)args->data, args->len);
    jfr_put_byte(&e, c->method->has_this);
    jfr_put_string_n(&e, back->len ? (const char *)back->data : NULL, back->len);
    jfr_put_string_n(&e, thrown->len ? (const char *)thrown->data : NULL, thrown->len);
    jfr_put_string_n(&e, method_trace.has_message ? buf_str(&method_trace.message) : NULL,
                     message->len);
    jfr_put_long(&e, (int64_t)c->reading_ns);
    jfr_commit(&e);
    budget_spend(&method_trace.budget, room);
}

static void end_call(struct jfr_writer *w, struct open_calls *o, uint32_t at,
                     const struct trace_record *exit)
{
    struct open_call own = o->calls[at];
    const struct method_copy *caller = at ? known_method(w, o->calls[at - 1].entry->kind) : NULL;
    uint64_t caller_name = caller ? caller->name : 0;
    const struct method_copy *m = known_method(w, own.entry->kind);
    struct ended c = {.method = m ? &m->method : NULL,
                      .entry = own.entry,
                      .exit = exit,
                      .depth = at,
                      .reading_ns = open_calls_reading(o, at)};
    if (!drain_is_recorded(own.entry->time_ns, exit->time_ns) || open_calls_within_agent(o, at)) {
        open_calls_remove(&method_trace.open, o, at);
        return;
    }
    if (!m)
        jfr_lose_at(w, LOSS_TRACE_MEMORY, exit->time_ns);
    else if (!trace_rules_hold(&method_trace.rules, m->method.rules, condition_value, &c)) {
        method_trace.false_condition++;
        method_trace.unmet |= m->method.rules;
    } else if (budget_allows(&method_trace.budget, own.entry->time_ns))
        write_call(w, &c, m->name, caller_name);
    open_calls_remove(&method_trace.open, o, at);
}

/*
 * Ends the innermost call, which is still open although the call that encloses it has ended. If an
 * exception left a constructor inside this() or super(), where the verifier permits no handler, the
 * call has thrown an unknown exception. For any other call the exit was lost.
 */
static void end_without_exit(struct jfr_writer *w, struct open_calls *o, uint32_t at,
                             const struct trace_record *outer)
{
    /* Makes a record of an exit that threw null, which stands for an unknown exception. */
    _Alignas(8) uint8_t bytes[sizeof(struct trace_record) + 8] = {0};
    struct trace_record *exit = (struct trace_record *)bytes;
    *exit = (struct trace_record){
        .size = sizeof(bytes), .kind = RECORD_THROWN, .time_ns = outer->time_ns};
    const struct method_copy *m = known_method(w, o->calls[at].entry->kind);
    if (m && strstr(m->method.text, ".<init>(")) {
        end_call(w, o, at, exit);
        return;
    }
    if (drain_is_recorded(o->calls[at].entry->time_ns, outer->time_ns))
        jfr_lose_at(w, LOSS_TRACE_UNPAIRED, outer->time_ns);
    open_calls_remove(&method_trace.open, o, at);
}

static bool call_ended(struct jfr_writer *w, const struct trace_record *r)
{
    struct open_calls *o = open_calls_of(&method_trace.open, r->thread);
    uint32_t at = o ? o->n : 0;
    while (at > 0 && o->calls[at - 1].entry->call != r->call)
        at--;
    if (at == 0) {
        open_calls_read(&method_trace.open, r);
        return false;
    }
    for (uint32_t inner = o->n; inner-- > at;)
        end_without_exit(w, o, inner, r);
    end_call(w, o, at - 1, r);
    open_calls_read(&method_trace.open, r);
    return true;
}

/*
 * Returns whether one of the call's values has the name of a class or function of the agent: the VM
 * asks the loader of a class with probes for the class of the probes and for its native methods.
 * Calls that this causes do not count as calls of the program.
 */
static bool is_of_agent(const struct trace_record *r)
{
    static const uint16_t name[] = {'J', 'v', 'm', 's', 'c', 'o', 'p', 'e'};
    static const char before[] = "java?lang?";
    const size_t n = sizeof(before) - 1;
    const uint8_t *at = r->values, *end = (const uint8_t *)r + r->size;
    while ((at = memmem(at, (size_t)(end - at), name, sizeof(name)))) {
        bool is = (size_t)(at - r->values) >= 2 * n;
        for (size_t i = 0; i < n && is; i++) {
            const uint8_t *unit = at - 2 * (n - i);
            is = before[i] == '?' ? unit[0] == '.' || unit[0] == '_' || unit[0] == '/'
                                  : unit[0] == before[i] && unit[1] == 0;
        }
        if (is)
            return true;
        at += sizeof(name);
    }
    return false;
}

/*
 * Returns whether a parameter of the call is a class of the agent: the VM asks the loader of a
 * class with probes whether the class of the probes may be used.
 */
static bool has_class_of_agent(const struct traced_method *m, const struct trace_record *entry)
{
    const uint8_t *at = entry->values, *end = (const uint8_t *)entry + entry->size;
    struct str d = {m->descriptor, strlen(m->descriptor)};
    struct value v;
    unsigned slots;
    bool is = false, more = !m->has_this || value_take(&at, end, 'L', &v);
    for (size_t p = 1, len; more && !is && (len = class_descriptor_next(d, p, &slots)); p += len) {
        _cleanup_(buf_release) struct buf text = BUF(16 << 10);
        more = value_take(&at, end, d.data[p], &v);
        if (more && v.type == 'L' && v.shown && v.shown->kind == SHAPE_CLASS)
            value_text(&text, &v);
        is = probe_is_class(buf_str(&text));
    }
    return is;
}

/* Handles one record of the rings. Returns false for the exit of a call whose entry is missing. */
static bool read_record(struct jfr_writer *w, const struct trace_record *r)
{
    if (r->kind < 0)
        return call_ended(w, r);
    const struct method_copy *m = known_method(w, r->kind);
    bool of_agent = is_of_agent(r) || (m && m->takes_class && has_class_of_agent(&m->method, r));
    if (open_calls_add(&method_trace.open, r, of_agent) < 0)
        jfr_lose_at(w, LOSS_TRACE_MEMORY, r->time_ns);
    return true;
}

static void unmatched(struct jfr_writer *w)
{
    jfr_lose(w, LOSS_TRACE_UNPAIRED, 1);
}

const struct drain_reader trace_call_reader = {.record = read_record, .unmatched = unmatched};
