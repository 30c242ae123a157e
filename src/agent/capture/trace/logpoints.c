/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log= and watch=: values at lines, and reads and writes of fields. The probes write through the
 * rings of hub.h; the kind of a record identifies the site. The class of a logpoint is changed only
 * after it was loaded: an incorrect table of locals leads to code that the verifier rejects, in
 * which case the class keeps its original code.
 */
#include "agent/capture/trace/logpoints.h"

#include "agent/capture.h"
#include "agent/capture/trace/budget.h"
#include "agent/capture/trace/hub.h"
#include "agent/capture/trace/log_sites.h"
#include "agent/capture/trace/nothing.h"
#include "agent/capture/trace/paths.h"
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
        .description = "What log= and watch= asked for and could not be had",
        .kind = JFR_EVENT,
        .fields = JFR_FIELDS({"place", "Place", "java.lang.String"},
                             {"text", "Text", "java.lang.String"}),
    },
};

/* A row of `types`. */
enum { TYPE_LOG, TYPE_ACCESS, TYPE_NOTE };

static struct {
    pthread_mutex_t lock; /* already reported */
    struct log_spec *specs;
    uint32_t types[ARRAY_SIZE(types)];
    struct trace_budget budget;
    _Atomic uint64_t points;
    unsigned said;
    bool log_on, watch_on;
    bool live; /* the recording began in a VM that was already running and had loaded its classes */
} points = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Writes a line for the user into the recording. */
static void note(struct session *s, const char *place, const char *text)
{
    struct jfr_event e;
    if (!jfr_begin(s->out.jfr, points.types[TYPE_NOTE], strlen(place) + strlen(text) + 64, &e))
        return;
    jfr_put_time(&e, now_ns());
    jfr_put_string(&e, place);
    jfr_put_string(&e, text);
    jfr_commit(&e);
}

/* The same, and to `status` while there is one, up to a limit. */
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
    static const char *const descriptors[] = {"(JI)J", "(JJ)J", "(JF)J", "(JD)J",
                                              "(JLjava/lang/Object;)J"};
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

/*
 * Types of a site's values besides those of descriptors: the thread's name, which is not in the
 * record; the length of an object; a field at the end of a path (paths.h), and the length of its
 * value.
 */
enum { TYPE_THREAD = 't', TYPE_LENGTH = 'n', TYPE_PATH = 'p', TYPE_PATH_LENGTH = 'q' };

/* How a value of a logpoint is loaded. */
struct found {
    char type;     /* 0: it is not available */
    unsigned slot; /* of a local */
    bool field, is_static;
    struct str name, descriptor;
    char path[LOG_NAME_MAX]; /* the fields that follow it, or the full name of a static field */
    bool path_is_static;
};

static bool before_super(const struct edit *e, uint32_t pc)
{
    return e->constructor && pc < e->super_end;
}

static bool find_field(const struct edit *e, uint32_t pc, struct found *f, const char *name)
{
    uint16_t access;
    if (!class_find_field(e->rewrite->class, name, &f->descriptor, &access))
        return false;
    f->field = true;
    f->is_static = access & ACC_STATIC;
    if (!f->is_static && (e->method->access & ACC_STATIC || before_super(e, pc)))
        return false;
    f->type = f->descriptor.data[0];
    return true;
}

static bool has_this(const struct edit *e, uint32_t pc)
{
    return !(e->method->access & ACC_STATIC) && !before_super(e, pc);
}

/* Resolves a field of the class itself or, when `path` follows `this`, an inherited one. */
static bool find_own(const struct edit *e, uint32_t pc, const char *name, const char *path,
                     struct found *f)
{
    if (find_field(e, pc, f, name))
        return true;
    *f = (struct found){.type = path && has_this(e, pc) ? 'L' : 0};
    if (f->type)
        snprintf(f->path, sizeof(f->path), "%s", path);
    return f->type;
}

/* Resolves a name without `this`: a local, a field, a static field or the thread. */
static void find_name(const struct edit *e, uint32_t pc, const char *name, const char *text,
                      struct found *f, const char **ret_why)
{
    struct class_local local;
    int r = edit_find_local(e, pc, name, &local);
    if (r == 0) {
        f->type = local.descriptor.data[0];
        f->slot = local.slot;
    } else if (find_field(e, pc, f, name)) {
        return;
    } else if (text[strlen(name)] == '.') {
        *f = (struct found){.type = TYPE_PATH, .path_is_static = true};
        snprintf(f->path, sizeof(f->path), "%s", text);
    } else if (strcmp(name, "thread") == 0) {
        *f = (struct found){.type = TYPE_THREAD};
    } else if (r == -ENODATA) {
        *ret_why = "is not known: the class has no table of locals (compile it with -g); name "
                   "slots, as in {#1:I}";
    }
}

/* Removes .length from the end of a path, which may be the whole path. */
static bool take_length(char *path)
{
    char *dot = strrchr(path, '.');
    bool is = strcmp(dot ? dot + 1 : path, "length") == 0;
    if (is)
        *(dot ? dot : path) = 0;
    return is;
}

/* Encodes what follows a value in its type. */
static void find_behind(struct found *f, const char **ret_why)
{
    bool length = take_length(f->path);
    if (f->path_is_static) {
        f->type = length ? TYPE_PATH_LENGTH : TYPE_PATH;
        return;
    }
    if ((*f->path && f->type != 'L') || (length && f->type != 'L' && f->type != '[')) {
        *ret_why = "begins at a value that has no fields";
        f->type = 0;
    } else if (*f->path || length) {
        f->type = !*f->path ? TYPE_LENGTH : length ? TYPE_PATH_LENGTH : TYPE_PATH;
    }
}

static struct found find_value(const struct edit *e, uint32_t pc, const struct log_part *p,
                               const char **ret_why)
{
    struct found f = {0};
    const char *own = p->kind == LOG_FIELD ? p->text + strlen("this.") : p->text;
    char name[LOG_NAME_MAX];
    size_t n = strcspn(own, ".");
    snprintf(name, sizeof(name), "%.*s", (int)n, own);
    *ret_why = "is neither a local that is live there nor a field of the class itself";
    switch (p->kind) {
    case LOG_THIS:
        f.type = has_this(e, pc) ? 'L' : 0;
        *ret_why = "is not to be had there";
        break;
    case LOG_FIELD:
        *ret_why = "is no field that can be read there";
        find_own(e, pc, name, own, &f);
        break;
    case LOG_SLOT:
        f.type = p->slot + (p->type == 'J' || p->type == 'D') < e->max_locals ? p->type : 0;
        f.slot = p->slot;
        *ret_why = "is no slot of the method";
        return f;
    default:
        find_name(e, pc, name, p->text, &f, ret_why);
    }
    f.name = (struct str){own, n};
    if (f.type && !*f.path && own[n])
        snprintf(f.path, sizeof(f.path), "%s", own + n + 1);
    if (f.type && *f.path)
        find_behind(&f, ret_why);
    return f;
}

/* Pushes the value, without its path, onto the stack. */
static int load_base(struct edit *e, struct buf *code, const struct found *f, char type)
{
    char owner[512], name[512], descriptor[512];
    if (!f->field) {
        code_load(code, stack_type(type), f->slot);
        return 0;
    }
    struct str class_name = class_name_at(e->rewrite->class, e->rewrite->class->this_class);
    if (class_name.len >= sizeof(owner) || f->name.len >= sizeof(name) ||
        f->descriptor.len >= sizeof(descriptor))
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
    return 0;
}

static int load_value(struct edit *e, struct buf *code, const struct found *f)
{
    if (f->type == TYPE_THREAD)
        return 0;
    if (f->path_is_static)
        return trace_path_static(e, code, f->path, 0);
    bool path = f->type == TYPE_PATH || f->type == TYPE_PATH_LENGTH;
    char type = path || f->type == TYPE_LENGTH ? 'L' : f->type;
    int r = load_base(e, code, f, type);
    return r < 0 ? r : path ? trace_path(e, code, f->path, 0) : log_value(e, code, type);
}

/*
 * The site's text: literals are copied, and a value becomes its name between the bytes 1 and 2,
 * which literals cannot contain.
 */
enum { VALUE_BEGINS = 1, VALUE_ENDS };

static void put_part(struct buf *text, const struct log_part *p, bool value)
{
    if (value)
        buf_printf(text, "%c%s%c", VALUE_BEGINS, p->text, VALUE_ENDS);
    else
        buf_printf(text, p->kind == LOG_TEXT ? "%s" : "{%s}", p->text);
}

static int insert_log(const struct instrument_class *c, struct edit *e, struct log_spec *spec,
                      uint32_t pc)
{
    _cleanup_(buf_release) struct buf code = BUF(1 << 14), text = BUF(TEXT_MAX),
                                      load = BUF(1 << 14);
    char place[1024], value_types[LOG_PARTS_MAX + 1] = "", *type = value_types;
    const char *why;
    int r = 0;
    log_site_place(place, sizeof(place), c->name, class_utf8(c->file, e->method->name),
                   edit_line(e, pc));
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
        r = edit_insert(e, EDIT_BEFORE, pc, 0, &code, 6);
    atomic_fetch_add(&points.points, r == 0);
    atomic_fetch_add(&spec->found, r == 0);
    return r < 0 ? r : 1;
}

/* ---- choice of classes and lines ---- */

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

/* The lines of a class, in the class's own numbering, to which a spec refers. */
static int lines_of(const struct log_spec *s, const struct instrument_class *c, unsigned *lines)
{
    if (!s->is_file) {
        lines[0] = s->line;
        return is_class(s, c->name);
    }
    struct cursor map = class_attribute(c->file, c->file->attributes_start, "SourceDebugExtension");
    int n = 0;
    if (!map.failed)
        n = smap_lines((struct str){(const char *)map.at, cursor_left(&map)}, s->place, s->line,
                       lines, LINES_MAX);
    const char *slash = strrchr(s->place, '/'), *base = slash ? slash + 1 : s->place;
    if (n || !str_is(c->source, base))
        return n;
    /* The spec's path must end with the package's folder: com/shop/Cart.java. */
    size_t folder = slash ? (size_t)(slash - s->place) : 0, package = c->name.len;
    while (package && c->name.data[package - 1] != '/')
        package--;
    if (folder && (package < folder + 1 ||
                   memcmp(c->name.data + package - 1 - folder, s->place, folder) != 0))
        return 0;
    lines[0] = s->line;
    return 1;
}

struct search {
    const unsigned *lines;
    int n;
    uint32_t pc[LINES_MAX]; /* pc of the first instruction of each line; UINT32_MAX: none */
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

static void log_look(JNIEnv *jni, jclass class, struct str name)
{
    trace_paths_look(jni, class, name);
}

static void log_refused(struct str name)
{
    char text[256];
    snprintf(text, sizeof(text), "%.*s", (int)name.len, name.data);
    say(text, "the VM does not take the class with its logpoints:",
        "a slot is not of the type named, or its table of locals is wrong; it stays as it was");
}

static const struct instrument_client log_client = {.name = "log",
                                                    .edit = log_edit,
                                                    .wants = log_wants,
                                                    .look = log_look,
                                                    .loaded_only = true,
                                                    .refused = log_refused};

/* ---- records ---- */

static void put_length(struct buf *text, const struct value *v)
{
    if (value_has_length(v))
        buf_printf(text, "%lld", (long long)v->length);
    else
        buf_string(text, v->type == 'L' && !v->class ? "null" : "(no length)");
}

/*
 * By site, a bit for each value in the order of the text: whether a record had the field to which
 * the path leads, and whether one had not. Classes differ in their fields, so that only one that
 * was never there is likely to be misspelt.
 */
static struct {
    uint32_t had, had_not;
} fields_of[SITES_MAX];

_Static_assert(LOG_PARTS_MAX <= 32, "a bit for each value");

/* Reads a value of the record at *at. False: it has no such field. */
static bool put_logged(struct buf *text, const struct trace_record *r, const uint8_t **at,
                       char type)
{
    const uint8_t *end = (const uint8_t *)r + r->size;
    uint32_t tag[2]; /* id, type */
    struct value v;
    bool path = type == TYPE_PATH || type == TYPE_PATH_LENGTH;
    const char *name = hub_thread_name(r->thread);
    if (type == TYPE_THREAD) {
        buf_string(text, name ? name : "?");
        return true;
    }
    if (path && end - *at < (ptrdiff_t)sizeof(tag))
        return true;
    if (path) {
        memcpy(tag, *at, sizeof(tag));
        *at += sizeof(tag);
    }
    if (path && tag[1] <= PATH_NONE)
        buf_string(text, tag[1] == PATH_NULL ? "null" : "(no such field)");
    else if (!value_take(at, end, path ? (char)tag[1] : type == TYPE_LENGTH ? 'L' : type, &v))
        return true;
    else if (type == TYPE_LENGTH || type == TYPE_PATH_LENGTH)
        put_length(text, &v);
    else
        value_text(text, &v);
    return !path || tag[1] != PATH_NONE;
}

static void write_log(struct jfr_writer *w, const struct trace_record *r,
                      const struct log_site *site)
{
    _cleanup_(buf_release) struct buf text = BUF(TEXT_MAX), utf8 = BUF(2 * TEXT_MAX);
    const uint8_t *at = r->values;
    const char *type = site->types;
    unsigned number = (unsigned)r->kind - HUB_SITE;
    for (const char *p = site->text; *p; p++) {
        if (*p != VALUE_BEGINS) {
            buf_u8(&text, (uint8_t)*p);
            continue;
        }
        p += strcspn(p, (char[]){VALUE_ENDS, 0});
        if (!*type)
            continue;
        uint32_t bit = UINT32_C(1) << (type - site->types);
        if (put_logged(&text, r, &at, *type++))
            fields_of[number].had |= bit;
        else
            fields_of[number].had_not |= bit;
    }
    if (buf_error(&text)) {
        buf_clear(&text);
        buf_string(&text, "(too long)");
    }
    buf_utf8(&utf8, (const char *)text.data, text.len);
    const char *name = hub_thread_name(r->thread);
    struct jfr_event e;
    size_t room = utf8.len + strlen(site->place) + (name ? strlen(name) : 0) + 128;
    if (!jfr_begin_growing(w, points.types[TYPE_LOG], room, &e)) {
        jfr_lose_events(w, points.types[TYPE_LOG], 1);
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

static void write_access(struct jfr_writer *w, const struct trace_record *r,
                         const struct log_site *site)
{
    _cleanup_(buf_release) struct buf object = BUF(4096), before = BUF(TEXT_MAX),
                                      after = BUF(TEXT_MAX);
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
    size_t room = object.len + before.len + after.len + strlen(site->place) + strlen(site->text) +
                  (name ? strlen(name) : 0) + 128;
    struct jfr_event e;
    if (!jfr_begin_growing(w, points.types[TYPE_ACCESS], room, &e)) {
        jfr_lose_events(w, points.types[TYPE_ACCESS], 1);
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

/* ---- the capture ---- */

static bool log_wanted(const struct options *o)
{
    return o->v[OPT_LOG].text || o->v[OPT_WATCH].text;
}

/* Unless this is requested, the VM discards source maps when it loads classes. */
static int need_source_maps(struct session *s)
{
    static const jvmtiCapabilities maps = {.can_get_source_debug_extension = 1};
    jvmtiCapabilities missing = {0};
    bool files = false;
    for (const struct log_spec *spec = points.specs; spec; spec = spec->next)
        files |= spec->is_file;
    int r = files ? vm_need(&maps, &missing) : 0;
    if (r == 0 && !vm_capabilities_empty(&missing))
        session_message(s, "log: the VM runs already: files are found by their classes' own source "
                           "files, not by source maps");
    return r;
}

static int log_check(const struct options *o, struct buf *why)
{
    const char *log = o->v[OPT_LOG].text, *watch = o->v[OPT_WATCH].text;
    struct log_spec *specs = NULL;
    int r = log ? log_specs_parse(&specs, log, why) : 0;
    r = r == 0 && watch ? watches_set(watch, why) : r;
    log_specs_free(specs);
    watches_clear();
    return r == -EINVAL ? -ENOTSUP : r;
}

static int log_load(struct session *s, struct buf *why)
{
    const char *log = s->options.v[OPT_LOG].text, *watch = s->options.v[OPT_WATCH].text;
    int r = log ? log_specs_parse(&points.specs, log, why) : 0;
    r = r == 0 && watch ? watches_set(watch, why) : r;
    if (r < 0)
        return r;
    points.budget = budget_of(&s->options);
    points.points = 0;
    points.said = 0;
    memset(fields_of, 0, sizeof(fields_of));
    points.live = vm_is_live();
    r = need_source_maps(s);
    return r < 0 ? r : jfr_declare(s->out.jfr, types, ARRAY_SIZE(types), points.types);
}

static const char *why_not_found(JNIEnv *jni, const struct log_spec *spec)
{
    return spec->is_file ? "no loaded class has code of this line"
           : trace_class_is_loaded(jni, spec->place)
               ? "the class is loaded and has no code of this line"
               : "no class of this name is loaded";
}

/*
 * Reports specs that match nothing in the classes loaded so far. Classes that are loaded later may
 * match.
 */
static void say_not_found(struct session *s, JNIEnv *jni)
{
    for (const struct log_spec *spec = points.specs; spec; spec = spec->next)
        if (!spec->found)
            session_message(s, "log %s:%u: nothing is logged so far: %s", spec->place, spec->line,
                            why_not_found(jni, spec));
    char field[512];
    for (unsigned i = 0; watches_not_found(jni, &i, field, sizeof(field));)
        session_message(
            s, "watch %s: nothing is watched so far: no loaded code reads or writes this field",
            field);
}

/* Names with dots may be static fields, whose classes must be known before any line is logged. */
static int find_statics(JNIEnv *jni, struct buf *why)
{
    int r = 0;
    for (const struct log_spec *spec = points.specs; spec; spec = spec->next)
        for (unsigned i = 0; r >= 0 && i < spec->n_parts; i++) {
            char path[LOG_NAME_MAX];
            snprintf(path, sizeof(path), "%s", spec->parts[i].text);
            take_length(path);
            if (spec->parts[i].kind == LOG_NAME && strchr(path, '.'))
                r = trace_path_name_static(path);
        }
    if (r < 0)
        buf_string(why, "log: too many static fields");
    trace_paths_find(jni);
    return MIN(r, 0);
}

static int log_start(struct session *s, JNIEnv *jni, struct buf *why)
{
    int r = hub_open(&reader, s, jni, why);
    if (r == 0)
        r = find_statics(jni, why);
    points.log_on = points.specs != NULL;
    points.watch_on = s->options.v[OPT_WATCH].text != NULL;
    if (r == 0 && points.log_on)
        r = instrument_on(&log_client, jni, why);
    if (r == 0 && points.watch_on)
        r = instrument_on(&watch_client, jni, why);
    if (r >= 0 && points.live)
        say_not_found(s, jni);
    return r;
}

/* A field that no object had for which it was to be logged; `missing` as in fields_of. */
static void note_missing_fields(struct session *s, const struct log_site *site, uint32_t missing)
{
    unsigned i = 0;
    for (const char *p = site->text; missing && (p = strchr(p, VALUE_BEGINS)); i++) {
        char text[LOG_NAME_MAX + 64];
        int n = (int)strcspn(++p, (char[]){VALUE_ENDS, 0});
        snprintf(text, sizeof(text), "note: %.*s: there was no such field", n, p);
        if (missing >> i & 1)
            note(s, site->place, text);
    }
}

static void log_stop(struct session *s, JNIEnv *jni)
{
    hub_shut();
    if (points.log_on)
        instrument_off(&log_client, jni);
    if (points.watch_on)
        instrument_off(&watch_client, jni);
    points.log_on = points.watch_on = false;
    for (const struct log_spec *spec = points.specs; spec; spec = spec->next) {
        char place[512];
        snprintf(place, sizeof(place), "%s:%u", spec->place, spec->line);
        char text[128];
        snprintf(text, sizeof(text), "note: nothing was logged: %s", why_not_found(jni, spec));
        if (!spec->found)
            note(s, place, text);
    }
    char field[512];
    for (unsigned i = 0; watches_not_found(jni, &i, field, sizeof(field));)
        note(s, field, "note: no code that was loaded reads or writes this field");
    hub_close(&reader, s->out.jfr, jni);
    for (unsigned i = 0; log_site_at(i); i++)
        note_missing_fields(s, log_site_at(i), fields_of[i].had_not & ~fields_of[i].had);
}

static void log_release(struct session *s)
{
    log_specs_free(points.specs);
    points.specs = NULL;
    trace_paths_forget();
    watches_clear();
}

static void log_flush(struct session *s, JNIEnv *jni)
{
    hub_drain(s, jni);
    jfr_lose_total(s->out.jfr, LOSS_LOG_LIMIT, points.budget.over_limit);
    jfr_lose_total(s->out.jfr, LOSS_LOG_RATE, points.budget.over_rate);
    jfr_lose_total(s->out.jfr, LOSS_LOG_BYTES, points.budget.over_bytes);
}

static void log_dump(struct session *s, JNIEnv *jni, enum dump_reason reason)
{
    log_flush(s, jni);
}

static void log_status(struct session *s, struct buf *out)
{
    buf_printf(out, "log.points %llu\nlog.written %llu\nlog.watch_before_super %llu\n",
               (unsigned long long)atomic_load(&points.points),
               (unsigned long long)points.budget.written,
               (unsigned long long)watches_without_object());
    budget_status(&points.budget, "log", out);
}

extern const struct capture capture_logpoints;
const struct capture capture_logpoints = {
    .name = "log",
    .options = OPTION_BIT(OPT_LOG) | OPTION_BIT(OPT_WATCH),
    .needs = {.can_retransform_classes = 1},
    .records_only = true,
    .wanted = log_wanted,
    .check = log_check,
    .load = log_load,
    .start = log_start,
    .shut = hub_shut,
    .stop = log_stop,
    .release = log_release,
    .flush = log_flush,
    .dump = log_dump,
    .status = log_status,
};
