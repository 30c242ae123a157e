/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log= and watch=: values at lines, reads and writes of fields. The probes write through the rings of hub.h; a record's
 * kind names the site. A logpoint's class is changed once it is loaded: a table of locals that lies makes code that the
 * verifier refuses, and then the class stays as it was.
 */
#include "agent/capture/trace/logpoints.h"

#include "agent/capture.h"
#include "agent/capture/trace/budget.h"
#include "agent/capture/trace/hub.h"
#include "agent/capture/trace/log_sites.h"
#include "agent/capture/trace/values.h"
#include "agent/session.h"
#include "base/clock.h"
#include "classfile/debug.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#define PROBE "java/lang/JvmscopeTrace"

enum { TEXT_MAX = 8 << 10, LINES_MAX = 64, MESSAGES_MAX = 32 };

static const struct jfr_type types[] = {
    {
        .name = "jvmscope.Log",
        .label = "Log Point",
        .category = "jvmscope|Trace",
        .description = "A line with a logpoint was reached",
        .kind = JFR_EVENT,
        .fields = JFR_FIELDS({"place", "Place", "java.lang.String"}, {"javaThreadId", "Java Thread Id", "long"},
                             {"thread", "Thread", "java.lang.String"}, {"text", "Text", "java.lang.String"}),
    },
    {
        .name = "jvmscope.FieldAccess",
        .label = "Field Access",
        .category = "jvmscope|Trace",
        .description = "A watched field was read or written",
        .kind = JFR_EVENT,
        .fields =
            JFR_FIELDS({"field", "Field", "java.lang.String"}, {"place", "Place", "java.lang.String"},
                       {"javaThreadId", "Java Thread Id", "long"}, {"thread", "Thread", "java.lang.String"},
                       {"object", "Object", "java.lang.String", .description = "Class@hash, null for a static field"},
                       {"write", "Write", "boolean"},
                       {"before", "Before", "java.lang.String", .description = "JSON: the value read, or the one overwritten"},
                       {"after", "After", "java.lang.String", .description = "JSON: the value written, null when read"}),
    },
};

static struct {
    pthread_mutex_t lock; /* said */
    struct log_spec *specs;
    uint32_t types[2];
    struct trace_budget budget;
    uint64_t dropped;
    _Atomic uint64_t points;
    unsigned said;
    bool log_on, watch_on;
} points = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* A line for the user in the recording. */
static void note(struct session *s, const char *place, const char *text)
{
    struct jfr_event e;
    if (!jfr_begin(s->out.jfr, points.types[0], strlen(place) + strlen(text) + 64, &e))
        return;
    jfr_put_time(&e, now_ns());
    jfr_put_string(&e, place);
    jfr_put_long(&e, 0);
    jfr_put_string(&e, NULL);
    jfr_put_string(&e, text);
    jfr_commit(&e);
}

/* The same in status too, while there is one; no more than a few of them. */
static void say(const char *place, const char *what, const char *why)
{
    struct session *s = session_now;
    char text[512];
    pthread_mutex_lock(&points.lock);
    bool room = s && points.said++ < MESSAGES_MAX;
    pthread_mutex_unlock(&points.lock);
    if (!room)
        return;
    snprintf(text, sizeof(text), "note: %s %s", what, why);
    if (s->running)
        session_message(s, "log %s: %s", place, text);
    note(s, place, text);
}

/* ---- probes ---- */

static char stack_type(char c)
{
    return strchr("ZBCSI", c) ? 'I' : strchr("JFD", c) ? c : 'A';
}

int log_value(struct edit *e, struct buf *code, char type)
{
    static const char *const descriptors[] = {"(JI)J", "(JJ)J", "(JF)J", "(JD)J", "(JLjava/lang/Object;)J"};
    const char *which = strchr("IJFDA", stack_type(type));
    int ref = rewrite_methodref(e->rewrite, PROBE, "arg", descriptors[which - "IJFDA"]);
    if (ref >= 0)
        code_invokestatic(code, ref);
    return MIN(ref, 0);
}

static int call(struct edit *e, struct buf *code, const char *name, const char *descriptor)
{
    int ref = rewrite_methodref(e->rewrite, PROBE, name, descriptor);
    if (ref >= 0)
        code_invokestatic(code, ref);
    return MIN(ref, 0);
}

/* A value of a logpoint as it was found: how it is loaded. */
struct found {
    char type;     /* 0: it cannot be had */
    unsigned slot; /* of a local */
    bool field, is_static;
    struct str name, descriptor;
};

static bool before_super(const struct edit *e, uint32_t pc)
{
    return e->constructor && pc < e->super_end;
}

static bool find_field(const struct edit *e, uint32_t pc, const char *name, struct found *f)
{
    uint16_t access;
    if (!class_find_field(e->rewrite->class, name, &f->descriptor, &access))
        return false;
    f->field = true;
    f->is_static = access & ACC_STATIC;
    f->name = (struct str){name, strlen(name)};
    if (!f->is_static && (e->method->access & ACC_STATIC || before_super(e, pc)))
        return false;
    f->type = f->descriptor.data[0];
    return true;
}

static struct found find_value(const struct edit *e, uint32_t pc, const struct log_part *p, const char **ret_why)
{
    struct found f = {0};
    struct class_local local;
    int r;
    *ret_why = "is neither a local that is live there nor a field of the class itself";
    switch (p->kind) {
    case LOG_THIS:
        f.type = e->method->access & ACC_STATIC || before_super(e, pc) ? 0 : 'L';
        *ret_why = "is not to be had there";
        break;
    case LOG_FIELD:
        (void)find_field(e, pc, p->text + 5, &f);
        *ret_why = "is no field of the class itself that can be read there";
        break;
    case LOG_SLOT:
        f.type = p->slot + (p->type == 'J' || p->type == 'D') < e->max_locals ? p->type : 0;
        f.slot = p->slot;
        *ret_why = "is no slot of the method";
        break;
    default:
        r = edit_find_local(e, pc, p->text, &local);
        if (r == 0) {
            f.type = local.descriptor.data[0];
            f.slot = local.slot;
        } else if (!find_field(e, pc, p->text, &f) && r == -ENODATA) {
            *ret_why = "is not known: the class has no table of locals (compile it with -g); name slots, as in {#1:I}";
        }
    }
    return f;
}

static int load_value(struct edit *e, struct buf *code, const struct found *f)
{
    char owner[512], name[512], descriptor[512];
    if (!f->field) {
        code_load(code, stack_type(f->type), f->slot);
        return log_value(e, code, f->type);
    }
    struct str class_name = class_name_at(e->rewrite->class, e->rewrite->class->this_class);
    if (class_name.len >= sizeof(owner) || f->name.len >= sizeof(name) || f->descriptor.len >= sizeof(descriptor))
        return -ENOTSUP;
    snprintf(owner, sizeof(owner), "%.*s", (int)class_name.len, class_name.data);
    snprintf(name, sizeof(name), "%.*s", (int)f->name.len, f->name.data);
    snprintf(descriptor, sizeof(descriptor), "%.*s", (int)f->descriptor.len, f->descriptor.data);
    int ref = rewrite_fieldref(e->rewrite, owner, name, descriptor);
    if (ref < 0)
        return ref;
    if (!f->is_static)
        code_load(code, 'A', 0);
    code_ref(code, f->is_static ? OP_GETSTATIC : OP_GETFIELD, ref);
    return log_value(e, code, f->type);
}

/* The site's text: literals as they are, a value as the byte 1; literals have no such byte. */
static void put_part(struct buf *text, const struct log_part *p, bool value)
{
    if (value)
        buf_u8(text, 1);
    else
        buf_printf(text, p->kind == LOG_TEXT ? "%s" : "{%s}", p->text);
}

static int insert_log(const struct instrument_class *c, struct edit *e, struct log_spec *spec, uint32_t pc)
{
    _cleanup_(buf_release) struct buf code = BUF(1 << 14), text = BUF(TEXT_MAX), load = BUF(1 << 14);
    char place[1024], value_types[LOG_PARTS_MAX + 1] = "", *type = value_types;
    const char *why;
    int r = 0;
    log_site_place(place, sizeof(place), c->name, class_utf8(c->file, e->method->name), edit_line(e, pc));
    for (unsigned i = 0; i < spec->n_parts && r == 0; i++) {
        const struct log_part *p = &spec->parts[i];
        struct found f = {0};
        if (p->kind != LOG_TEXT)
            f = find_value(e, pc, p, &why);
        if (p->kind != LOG_TEXT && !f.type)
            say(place, p->text, why);
        if (f.type) {
            *type++ = f.type == '[' ? 'L' : f.type;
            r = load_value(e, &load, &f);
        }
        put_part(&text, p, f.type);
    }
    *type = 0;
    const struct log_site site = {SITE_LOG, place, buf_str(&text), value_types, NULL, NULL, NULL};
    int number = r < 0 ? r : log_site_add(&site, pc);
    if (number < 0)
        return number;
    r = code_int(e->rewrite, &code, 1);
    if (r == 0)
        r = code_int(e->rewrite, &code, HUB_SITE + number);
    if (r == 0)
        r = call(e, &code, "enter", "(II)J");
    buf_bytes(&code, load.data, load.len);
    if (r == 0)
        r = call(e, &code, "entered", "(J)J");
    code_op(&code, OP_POP2);
    if (r == 0)
        r = edit_insert(e, EDIT_BEFORE, pc, 0, &code, 4);
    atomic_fetch_add(&points.points, r == 0);
    atomic_fetch_add(&spec->found, r == 0);
    return r < 0 ? r : 1;
}

/* ---- which classes and lines ---- */

static bool is_class(const struct log_spec *s, struct str name)
{
    size_t n = strlen(s->place);
    if (name.len != n)
        return false;
    for (size_t i = 0; i < n; i++)
        if ((name.data[i] == '/' ? '.' : name.data[i]) != s->place[i])
            return false;
    return true;
}

static bool log_wants(struct str name)
{
    for (const struct log_spec *s = points.specs; s; s = s->next)
        if (s->is_file ? !instrument_is_jdk(name) : is_class(s, name))
            return true;
    return false;
}

/* The lines, in the class's own numbering, that a spec means in a class. */
static int lines_of(const struct log_spec *s, const struct instrument_class *c, unsigned *lines)
{
    if (!s->is_file) {
        lines[0] = s->line;
        return is_class(s, c->name);
    }
    struct cursor map = class_attribute(c->file, c->file->attributes_start, "SourceDebugExtension");
    int n = 0;
    if (!map.failed)
        n = smap_lines((struct str){(const char *)map.at, cursor_left(&map)}, s->place, s->line, lines, LINES_MAX);
    const char *slash = strrchr(s->place, '/'), *base = slash ? slash + 1 : s->place;
    if (n || !str_is(c->source, base))
        return n;
    /* A path must end the package's folder: com/shop/Cart.java. */
    size_t folder = slash ? (size_t)(slash - s->place) : 0, package = c->name.len;
    while (package && c->name.data[package - 1] != '/')
        package--;
    if (folder && (package < folder + 1 || memcmp(c->name.data + package - 1 - folder, s->place, folder) != 0))
        return 0;
    lines[0] = s->line;
    return 1;
}

struct search {
    const unsigned *lines;
    int n;
    uint32_t pc[LINES_MAX]; /* the first of each line; UINT32_MAX: none */
};

static void see_line(void *data, uint32_t pc, unsigned line)
{
    struct search *s = data;
    for (int i = 0; i < s->n; i++)
        if (s->lines[i] == line && pc < s->pc[i])
            s->pc[i] = pc;
}

static int log_edit(const struct instrument_class *c, struct edit *e)
{
    int done = 0;
    if (hub_is_used(c->name))
        return 0;
    for (struct log_spec *s = points.specs; s; s = s->next) {
        unsigned lines[LINES_MAX];
        struct search found = {lines, lines_of(s, c, lines), {0}};
        memset(found.pc, 0xff, sizeof(found.pc));
        edit_lines(e, see_line, &found);
        for (int i = 0; i < found.n; i++) {
            int r = found.pc[i] == UINT32_MAX ? 0 : insert_log(c, e, s, found.pc[i]);
            if (r < 0)
                return r;
            done |= r;
        }
    }
    return done;
}

static void log_refused(struct str name)
{
    char text[256];
    snprintf(text, sizeof(text), "%.*s", (int)name.len, name.data);
    say(text, "the VM does not take the class with its logpoints:",
        "a slot is not of the type named, or its table of locals is wrong; it stays as it was");
}

static const struct instrument_client log_client = {
    .name = "log", .edit = log_edit, .wants = log_wants, .loaded_only = true, .refused = log_refused};

/* ---- records ---- */

static void write_log(struct jfr_writer *w, const struct trace_record *r, const struct log_site *site)
{
    _cleanup_(buf_release) struct buf text = BUF(TEXT_MAX), utf8 = BUF(2 * TEXT_MAX);
    const uint8_t *at = r->values, *end = (const uint8_t *)r + r->size;
    const char *type = site->types;
    struct value v;
    for (const char *p = site->text; *p; p++) {
        if (*p != 1)
            buf_u8(&text, (uint8_t)*p);
        else if (*type && value_take(&at, end, *type++, &v))
            value_text(&text, &v);
    }
    if (buf_error(&text)) {
        buf_clear(&text);
        buf_string(&text, "(too long)");
    }
    buf_utf8(&utf8, (const char *)text.data, text.len);
    const char *name = hub_thread_name(r->thread);
    struct jfr_event e;
    size_t room = utf8.len + strlen(site->place) + (name ? strlen(name) : 0) + 128;
    if (!jfr_begin(w, points.types[0], room, &e)) {
        points.dropped++;
        return;
    }
    jfr_put_time(&e, r->time_ns);
    jfr_put_string(&e, site->place);
    jfr_put_long(&e, r->thread);
    jfr_put_string(&e, name);
    jfr_put_string(&e, buf_str(&utf8));
    jfr_commit(&e);
    budget_spend(&points.budget, room);
}

static void write_access(struct jfr_writer *w, const struct trace_record *r, const struct log_site *site)
{
    _cleanup_(buf_release) struct buf object = BUF(4096), before = BUF(TEXT_MAX), after = BUF(TEXT_MAX);
    const uint8_t *at = r->values, *end = (const uint8_t *)r + r->size;
    struct value v;
    char type = site->types[0];
    bool is_static = site->types[1] == 's';
    if (!value_take(&at, end, 'L', &v))
        return;
    if (!is_static && v.class)
        value_text(&object, &v);
    if (value_take(&at, end, type, &v))
        value_json(&(struct json){.out = &before}, &v);
    if (site->kind == SITE_WRITE && value_take(&at, end, type, &v))
        value_json(&(struct json){.out = &after}, &v);
    const char *name = hub_thread_name(r->thread);
    size_t room =
        object.len + before.len + after.len + strlen(site->place) + strlen(site->text) + (name ? strlen(name) : 0) + 128;
    struct jfr_event e;
    if (!jfr_begin(w, points.types[1], room, &e)) {
        points.dropped++;
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
    budget_spend(&points.budget, room);
}

static bool read_site(struct jfr_writer *w, const struct trace_record *r)
{
    const struct log_site *site = log_site_at((unsigned)r->kind - HUB_SITE);
    if (!budget_allows(&points.budget, r->time_ns))
        return true;
    if (site && site->kind == SITE_LOG)
        write_log(w, r, site);
    else if (site)
        write_access(w, r, site);
    return true;
}

static const struct hub_reader reader = {.sites = true, .record = read_site};

/* ---- the row ---- */

static bool log_wanted(const struct options *o)
{
    return o->v[OPT_LOG].text || o->v[OPT_WATCH].text;
}

/* Unless it is asked for this the VM forgets source maps as it loads classes. */
static int need_source_maps(struct session *s)
{
    static const jvmtiCapabilities maps = {.can_get_source_debug_extension = 1};
    jvmtiCapabilities missing = {0};
    bool files = false;
    for (const struct log_spec *spec = points.specs; spec; spec = spec->next)
        files |= spec->is_file;
    int r = files ? vm_need(&maps, &missing) : 0;
    if (r == 0 && !vm_capabilities_empty(&missing))
        session_message(s, "log: the VM runs already: files are found by their classes' own source files, not by source maps");
    return r;
}

static int log_load(struct session *s, struct buf *why)
{
    const char *log = s->options.v[OPT_LOG].text, *watch = s->options.v[OPT_WATCH].text;
    if (!s->out.jfr) {
        buf_string(why, "log and watch go into a recording: add format=r");
        return -ENOTSUP;
    }
    if ((log && log_specs_parse(&points.specs, log, why) < 0) || (watch && watches_set(watch, why) < 0))
        return -ENOTSUP;
    points.budget = budget_of(&s->options);
    points.dropped = 0;
    points.points = 0;
    points.said = 0;
    int r = need_source_maps(s);
    return r < 0 ? r : jfr_declare(s->out.jfr, types, ARRAY_SIZE(types), points.types);
}

static int log_start(struct session *s, JNIEnv *jni, struct buf *why)
{
    int r = hub_open(&reader, s, jni, why);
    points.log_on = points.specs != NULL;
    points.watch_on = s->options.v[OPT_WATCH].text != NULL;
    if (r == 0 && points.log_on)
        r = instrument_on(&log_client, jni, why);
    if (r == 0 && points.watch_on)
        r = instrument_on(&watch_client, jni, why);
    return r;
}

static void log_stop(struct session *s, JNIEnv *jni)
{
    if (points.log_on)
        instrument_off(&log_client, jni);
    if (points.watch_on)
        instrument_off(&watch_client, jni);
    points.log_on = points.watch_on = false;
    for (const struct log_spec *spec = points.specs; spec; spec = spec->next) {
        char place[512];
        snprintf(place, sizeof(place), "%s:%u", spec->place, spec->line);
        if (!spec->found)
            note(s, place, "note: no code of this line was loaded");
    }
    char field[512];
    for (unsigned i = 0; watches_not_found(&i, field, sizeof(field));)
        note(s, field, "note: no code that was loaded reads or writes this field");
    hub_close(&reader, s->out.jfr, jni);
}

static void log_release(struct session *s)
{
    log_specs_free(points.specs);
    points.specs = NULL;
    watches_clear();
}

static void log_flush(struct session *s, JNIEnv *jni)
{
    hub_drain(s, jni);
}

static void log_dump(struct session *s, JNIEnv *jni, enum dump_reason reason)
{
    log_flush(s, jni);
}

static void log_status(struct session *s, struct buf *out)
{
    buf_printf(out, "log.points %llu\nlog.written %llu\nlog.lost_no_room %llu\nlog.watch_before_super %llu\n",
               (unsigned long long)atomic_load(&points.points), (unsigned long long)points.budget.written,
               (unsigned long long)points.dropped, (unsigned long long)watches_without_object());
    budget_status(&points.budget, "log", out);
    hub_status("log", out);
    instrument_status(out);
}

extern const struct capture capture_logpoints;
const struct capture capture_logpoints = {
    .name = "log",
    .options = OPTION_BIT(OPT_LOG) | OPTION_BIT(OPT_WATCH),
    .needs = {.can_retransform_classes = 1},
    .wanted = log_wanted,
    .load = log_load,
    .start = log_start,
    .stop = log_stop,
    .release = log_release,
    .flush = log_flush,
    .dump = log_dump,
    .status = log_status,
};
