/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/capture/trace/log_records.h"

#include "agent/capture/trace/log_code.h"
#include "agent/capture/trace/log_sites.h"
#include "agent/capture/trace/paths.h"
#include "agent/capture/trace/trace_state.h"
#include "agent/capture/trace/values.h"
#include "base/clock.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct jfr_type types[] = {
    {
        .name = "jvmscope.Log",
        .label = "Logpoint Reached",
        .category = "jvmscope|Trace",
        .description = "A line with a logpoint was reached",
        .kind = JFR_EVENT,
        .fields = JFR_FIELDS(
            {"place", "Place", "java.lang.String"}, {"javaThreadId", "Java Thread Id", "long"},
            {"thread", "Thread", "java.lang.String"}, {"text", "Text", "java.lang.String"}),
    },
    {
        .name = "jvmscope.FieldAccess",
        .label = "Field Access",
        .category = "jvmscope|Trace",
        .description = "A watched field was read or written",
        .kind = JFR_EVENT,
        .fields = JFR_FIELDS(
            {"field", "Field", "java.lang.String"}, {"place", "Place", "java.lang.String"},
            {"javaThreadId", "Java Thread Id", "long"}, {"thread", "Thread", "java.lang.String"},
            {"object", "Object", "java.lang.String",
             .description = "Class@hash, null for a static field"},
            {"write", "Write", "boolean"},
            {"before", "Before", "java.lang.String",
             .description = "JSON: the value read, or the one overwritten"},
            {"after", "After", "java.lang.String",
             .description = "JSON: the value written, null when read"}),
    },
    {
        .name = "jvmscope.LogNote",
        .label = "Log Note",
        .category = "jvmscope|Trace",
        .description = "A part of log= or watch= that could not be recorded",
        .kind = JFR_EVENT,
        .fields = JFR_FIELDS({"place", "Place", "java.lang.String"},
                             {"text", "Text", "java.lang.String"}),
    },
};

/* A row of `types`. */
enum { TYPE_LOG, TYPE_ACCESS, TYPE_NOTE };

static uint32_t event_types[ARRAY_SIZE(types)];
struct trace_budget log_budget;

enum { MESSAGES_MAX = 32 };

static struct {
    pthread_mutex_t lock;
    unsigned count;
} said = {.lock = PTHREAD_MUTEX_INITIALIZER};

void log_note(struct session *s, const char *place, const char *text)
{
    struct jfr_event e;
    if (!jfr_begin(s->out.jfr, event_types[TYPE_NOTE], strlen(place) + strlen(text) + 64, &e))
        return;
    jfr_put_time(&e, now_ns());
    jfr_put_string(&e, place);
    jfr_put_string(&e, text);
    jfr_commit(&e);
}

void log_report(const char *place, const char *what, const char *why)
{
    struct session *s = session_now;
    char text[512];
    pthread_mutex_lock(&said.lock);
    bool room = s && said.count++ < MESSAGES_MAX;
    pthread_mutex_unlock(&said.lock);
    if (!room)
        return;
    snprintf(text, sizeof(text), "note: %s %s", what, why);
    if (s->running)
        session_report(s, "log %s: %s %s", place, what, why);
    log_note(s, place, text);
}

static void put_length(struct buf *text, const struct value *v)
{
    if (value_has_length(v))
        buf_printf(text, "%lld", (long long)v->length);
    else
        buf_string(text, v->type == 'L' && !v->class ? "null" : "(no length)");
}

/*
 * By site, one bit for each value in the order of the text. had: some record had the field to which
 * the path leads; had_not: some record lacked it; neither, if a reference on the way was null.
 * Classes differ in their fields, so only a field that no record had is likely to be misspelt.
 */
static struct {
    uint32_t had, had_not;
} fields_of[SITES_MAX];

_Static_assert(LOG_PARTS_MAX <= 32, "a bit for each value");

enum logged { LOGGED, LOGGED_NULL, LOGGED_NO_FIELD };

/* Reads a value of the record at *at. LOGGED_NULL: a reference on the way to a field was null. */
static enum logged put_logged(struct buf *text, const struct trace_record *r, const uint8_t **at,
                              char type)
{
    const uint8_t *end = (const uint8_t *)r + r->size;
    uint32_t tag[2]; /* id, type */
    struct value v;
    bool path = type == TYPE_PATH || type == TYPE_PATH_LENGTH;
    const char *name = drain_thread_name(r->thread);
    if (type == TYPE_THREAD) {
        buf_string(text, name ? name : "?");
        return LOGGED;
    }
    if (path && end - *at < (ptrdiff_t)sizeof(tag))
        return LOGGED;
    if (path) {
        memcpy(tag, *at, sizeof(tag));
        *at += sizeof(tag);
    }
    if (path && tag[1] <= PATH_NONE)
        buf_string(text, tag[1] == PATH_NULL ? "null" : "(no such field)");
    else if (!value_take(at, end, path ? (char)tag[1] : type == TYPE_LENGTH ? 'L' : type, &v))
        return LOGGED;
    else if (type == TYPE_LENGTH || type == TYPE_PATH_LENGTH)
        put_length(text, &v);
    else
        value_text(text, &v);
    return !path || tag[1] > PATH_NONE ? LOGGED
           : tag[1] == PATH_NULL       ? LOGGED_NULL
                                       : LOGGED_NO_FIELD;
}

/*
 * Reports that an object has no such field. This is done for the first object, and at the end if
 * none had it.
 */
static void report_missing_field(const struct log_site *site, unsigned number, uint32_t bit,
                                 struct str value)
{
    bool first = !((fields_of[number].had | fields_of[number].had_not) & bit);
    _cleanup_free_ char *similar = first ? trace_path_similar(value.data, value.len) : NULL;
    fields_of[number].had_not |= bit;
    if (first && session_now && session_now->running)
        session_report(
            session_now,
            "log %s: {%.*s}: so far no object and no class of that name has such a field%s%s",
            site->place, (int)value.len, value.data, similar ? "; there is " : "",
            similar ? similar : "");
}

static void write_log(struct jfr_writer *w, const struct trace_record *r,
                      const struct log_site *site)
{
    _cleanup_(buf_release) struct buf text = BUF(LOG_TEXT_MAX), utf8 = BUF(2 * LOG_TEXT_MAX);
    const uint8_t *at = r->values;
    const char *type = site->types;
    unsigned number = (unsigned)r->kind - RECORD_SITE;
    for (const char *p = site->text; *p; p++) {
        if (*p != VALUE_BEGINS) {
            buf_u8(&text, (uint8_t)*p);
            continue;
        }
        const char *value = p + 1;
        p += strcspn(p, (char[]){VALUE_ENDS, 0});
        if (!*type)
            continue;
        uint32_t bit = UINT32_C(1) << (type - site->types);
        enum logged logged = put_logged(&text, r, &at, *type++);
        if (logged == LOGGED)
            fields_of[number].had |= bit;
        else if (logged == LOGGED_NO_FIELD)
            report_missing_field(site, number, bit, (struct str){value, (size_t)(p - value)});
    }
    if (buf_error(&text)) {
        buf_clear(&text);
        buf_string(&text, "(too long)");
    }
    json_put_utf8(&utf8, (const char *)text.data, text.len);
    const char *name = drain_thread_written(r->thread);
    struct jfr_event e;
    size_t room = utf8.len + strlen(site->place) + (name ? strlen(name) : 0) + 128;
    if (!jfr_begin_growing(w, event_types[TYPE_LOG], room, &e)) {
        jfr_lose_event_at(w, event_types[TYPE_LOG], r->time_ns, r->time_ns);
        return;
    }
    jfr_put_time(&e, r->time_ns);
    jfr_put_string(&e, site->place);
    jfr_put_long(&e, r->thread);
    jfr_put_string(&e, name);
    jfr_put_string(&e, buf_str(&utf8));
    jfr_commit(&e);
    budget_spend(&log_budget, room);
}

/*
 * Writes a field's value as JSON. A char is written as in results, so that it does not look like a
 * String.
 */
static void put_field(struct buf *b, const struct value *v)
{
    struct json j = {.out = b};
    _cleanup_(buf_release) struct buf text = BUF(64);
    if (v->type != 'C') {
        value_json(&j, v);
        return;
    }
    trace_put_part(&text, v);
    json_begin_object(&j);
    json_key_string_n(&j, "object", (const char *)text.data, text.len);
    json_end_object(&j);
}

static void write_access(struct jfr_writer *w, const struct trace_record *r,
                         const struct log_site *site)
{
    _cleanup_(buf_release) struct buf object = BUF(4096), before = BUF(LOG_TEXT_MAX),
                                      after = BUF(LOG_TEXT_MAX);
    const uint8_t *at = r->values, *end = (const uint8_t *)r + r->size;
    struct value v;
    char type = site->types[0];
    bool is_static = site->types[1] == 's';
    if (!value_take(&at, end, 'L', &v))
        return;
    if (!is_static && v.class)
        value_text(&object, &v);
    if (value_take(&at, end, type, &v))
        put_field(&before, &v);
    if (site->kind == SITE_WRITE && value_take(&at, end, type, &v))
        put_field(&after, &v);
    const char *name = drain_thread_written(r->thread);
    size_t room = object.len + before.len + after.len + strlen(site->place) + strlen(site->text) +
                  (name ? strlen(name) : 0) + 128;
    struct jfr_event e;
    if (!jfr_begin_growing(w, event_types[TYPE_ACCESS], room, &e)) {
        jfr_lose_event_at(w, event_types[TYPE_ACCESS], r->time_ns, r->time_ns);
        return;
    }
    jfr_put_time(&e, r->time_ns);
    jfr_put_string(&e, site->text);
    jfr_put_string(&e, site->place);
    jfr_put_long(&e, r->thread);
    jfr_put_string(&e, name);
    jfr_put_string(&e, object.len ? buf_str(&object) : NULL);
    jfr_put_byte(&e, site->kind == SITE_WRITE);
    jfr_put_string(&e, before.len ? buf_str(&before) : NULL);
    jfr_put_string(&e, after.len ? buf_str(&after) : NULL);
    jfr_commit(&e);
    budget_spend(&log_budget, room);
}

static bool read_site(struct jfr_writer *w, const struct trace_record *r)
{
    const struct log_site *site = log_site_at((unsigned)r->kind - RECORD_SITE);
    /* traced calls that enclose it do not count that time */
    open_calls_read(&method_trace.open, r);
    if (!drain_is_recorded(r->time_ns, r->time_ns) || !budget_allows(&log_budget, r->time_ns))
        return true;
    if (site && site->kind == SITE_LOG)
        write_log(w, r, site);
    else if (site)
        write_access(w, r, site);
    return true;
}

const struct drain_reader log_reader = {.sites = true, .record = read_site};

/* Reports a field to be logged that no object had; `missing` is as in fields_of. */
static void note_missing_fields(struct session *s, const struct log_site *site, uint32_t missing)
{
    unsigned i = 0;
    for (const char *p = site->text; missing && (p = strchr(p, VALUE_BEGINS)); i++) {
        char text[2 * LOG_NAME_MAX + 256];
        int n = (int)strcspn(++p, (char[]){VALUE_ENDS, 0});
        _cleanup_free_ char *similar = missing >> i & 1 ? trace_path_similar(p, (size_t)n) : NULL;
        snprintf(text, sizeof(text), "note: %.*s: there was no such field%s%s", n, p,
                 similar ? "; there is " : "", similar ? similar : "");
        if (missing >> i & 1)
            log_note(s, site->place, text);
    }
}

void log_note_missing_fields(struct session *s)
{
    for (unsigned i = 0; log_site_at(i); i++)
        note_missing_fields(s, log_site_at(i), fields_of[i].had_not & ~fields_of[i].had);
}

int log_records_begin(struct session *s)
{
    log_budget = budget_of(&s->options);
    said.count = 0;
    memset(fields_of, 0, sizeof(fields_of));
    return jfr_declare(s->out.jfr, types, ARRAY_SIZE(types), event_types);
}
