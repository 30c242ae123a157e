/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/capture/trace/log_code.h"

#include "agent/capture/trace/drain.h"
#include "agent/capture/trace/log_records.h"
#include "agent/capture/trace/log_sites.h"
#include "agent/capture/trace/logpoints.h"
#include "agent/capture/trace/paths.h"
#include "classfile/debug.h"

#include <stdio.h>
#include <string.h>

static char stack_type(char c)
{
    return strchr("ZBCSI", c) ? 'I' : strchr("JFD", c) ? c : 'A';
}

/*
 * Emits calls to probes that write the value on top of the stack. Below the value is the place in
 * the record, a long.
 */
static int log_value(struct edit *e, struct buf *code, char type)
{
    static const char *const descriptors[] = {"(JI)J", "(JJ)J", "(JF)J", "(JD)J",
                                              "(JLjava/lang/Object;)J"};
    const char *which = strchr("IJFDA", stack_type(type));
    return code_call_static(e->rewrite, code, TRACE_PROBE, "arg", descriptors[which - "IJFDA"]);
}

/* How a value of a logpoint is loaded. */
struct found {
    char type;     /* 0: the value is not available */
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
    int r = debug_find_local(e, pc, name, &local);
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

bool log_take_length(char *path)
{
    char *dot = strrchr(path, '.');
    bool is = strcmp(dot ? dot + 1 : path, "length") == 0;
    if (is)
        *(dot ? dot : path) = 0;
    return is;
}

/* Encodes what follows a value in its type. */
static void find_after(struct found *f, const char **ret_why)
{
    bool length = log_take_length(f->path);
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
        *ret_why = "is not available there";
        break;
    case LOG_FIELD:
        *ret_why = "is not a field that can be read there";
        find_own(e, pc, name, own, &f);
        break;
    case LOG_SLOT:
        f.type = p->slot + (p->type == 'J' || p->type == 'D') < e->max_locals ? p->type : 0;
        f.slot = p->slot;
        *ret_why = "is not a slot of the method";
        return f;
    default:
        find_name(e, pc, name, p->text, &f, ret_why);
    }
    f.name = (struct str){own, n};
    if (f.type && !*f.path && own[n])
        snprintf(f.path, sizeof(f.path), "%s", own + n + 1);
    if (f.type && *f.path)
        find_after(&f, ret_why);
    return f;
}

/* Reports a value that is not available, with a similar name that is. */
static void report_unavailable(const struct edit *e, uint32_t pc, const char *place,
                               const struct log_part *p, const char *why)
{
    char name[LOG_NAME_MAX], text[LOG_NAME_MAX + 256];
    bool field = p->kind == LOG_FIELD;
    const char *own = field ? p->text + strlen("this.") : p->text;
    struct nearest n = {.word = name};
    snprintf(name, sizeof(name), "%.*s", (int)strcspn(own, "."), own);
    if (field || p->kind == LOG_NAME)
        debug_nearest_name(e, pc, !field, &n);
    /* A name that is the same is not available for the reason that is given. */
    bool similar = *n.best && strcmp(n.best, name) != 0;
    snprintf(text, sizeof(text), "%s%s%s", why, similar ? "; there is " : "",
             similar ? n.best : "");
    log_report(place, p->text, text);
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

static void put_part(struct buf *text, const struct log_part *p, bool value)
{
    if (value)
        buf_printf(text, "%c%s%c", VALUE_BEGINS, p->text, VALUE_ENDS);
    else
        buf_printf(text, p->kind == LOG_TEXT ? "%s" : "{%s}", p->text);
}

int log_insert(const struct instrument_class *c, struct edit *e, const struct log_spec *spec,
               uint32_t pc)
{
    _cleanup_(buf_release) struct buf code = BUF(1 << 14), text = BUF(LOG_TEXT_MAX),
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
            report_unavailable(e, pc, place, p, why);
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
        r = code_int(e->rewrite, &code, RECORD_SITE + number);
    if (r == 0)
        r = code_call_static(e->rewrite, &code, TRACE_PROBE, "enter", "(II)J");
    buf_bytes(&code, load.data, load.len);
    if (r == 0)
        r = code_call_static(e->rewrite, &code, TRACE_PROBE, "entered", "(J)J");
    code_op(&code, OP_POP2);
    if (r == 0)
        r = edit_insert(e, EDIT_BEFORE, pc, 0, &code, 6);
    return r < 0 ? r : 1;
}
