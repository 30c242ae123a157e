/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log= records values at lines, and watch= records reads and writes of fields. The probes write
 * through the rings of drain.h; the kind of a record identifies the site. The class of a logpoint
 * is changed only after it has been loaded: if its table of locals is wrong, the verifier rejects
 * the changed code, and the class keeps its original code.
 */
#include "agent/capture/trace/logpoints.h"

#include "agent/capture/trace/explain.h"
#include "agent/capture/trace/log_code.h"
#include "agent/capture/trace/log_hidden.h"
#include "agent/capture/trace/log_records.h"
#include "agent/capture/trace/log_sites.h"
#include "agent/capture/trace/paths.h"
#include "agent/instrument/choice.h"
#include "agent/instrument/running.h"
#include "agent/session/capture.h"
#include "agent/stacks/names.h"
#include "classfile/debug.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum { LINES_MAX = 64 };

static struct {
    struct log_spec *specs;
    _Atomic uint64_t points;
    bool log_on, watch_on;
    bool live; /* the VM was already running when the recording began */
} points;

/* ---- choice of classes and lines ---- */

static bool is_class_of_method(const struct log_spec *s, struct str class_name)
{
    return s->class_of_method && choice_is_class(class_name, s->class_of_method);
}

/* Returns whether the place of a spec names a class, or a method of it. */
static bool is_in_class(const struct log_spec *s, struct str class_name)
{
    return choice_is_class(class_name, s->place) || is_class_of_method(s, class_name);
}

static bool log_wants(struct str name)
{
    for (const struct log_spec *s = points.specs; s; s = s->next)
        if (s->is_file ? !instrument_is_jdk(name) : is_in_class(s, name))
            return true;
    return false;
}

/*
 * Finds the lines of a class, in the class's own numbering, to which a spec refers. Returns their
 * number.
 */
static int lines_of(const struct log_spec *s, const struct instrument_class *c, struct str method,
                    unsigned *lines)
{
    if (!s->is_file) {
        lines[0] = s->line;
        return choice_is_class(c->name, s->place) ||
               (is_class_of_method(s, c->name) && str_is(method, strrchr(s->place, '.') + 1));
    }
    struct cursor map = class_attribute(c->file, c->file->attributes_start, "SourceDebugExtension");
    int n = 0;
    if (!map.failed)
        n = debug_smap_lines((struct str){(const char *)map.at, cursor_left(&map)}, s->place,
                             s->line, lines, LINES_MAX);
    if (n || !log_file_is(s->place, c->name, c->source))
        return n;
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
    if (drain_is_used(c->name))
        return 0;
    for (struct log_spec *s = points.specs; s; s = s->next) {
        unsigned lines[LINES_MAX];
        struct search found = {
            lines, lines_of(s, c, class_utf8(c->file, e->method->name), lines), {0}};
        memset(found.pc, 0xff, sizeof(found.pc));
        edit_lines(e, see_line, &found);
        for (int i = 0; i < found.n; i++) {
            int r = found.pc[i] == UINT32_MAX ? 0 : log_insert(c, e, s, found.pc[i]);
            if (r < 0)
                return r;
            atomic_fetch_add(&points.points, r);
            atomic_fetch_add(&s->found, r);
            done |= r;
        }
    }
    return done;
}

static void log_on_class(JNIEnv *jni, jclass class, struct str name)
{
    trace_paths_on_class(jni, class, name);
}

static void log_refused(struct str name)
{
    char text[256];
    snprintf(text, sizeof(text), "%.*s", (int)name.len, name.data);
    log_report(
        text, "the VM does not take the class with its logpoints:",
        "a slot is not of the type named, or its table of locals is wrong; it stays as it was");
}

static const struct instrument_client log_client = {.name = "log",
                                                    .edit = log_edit,
                                                    .wants = log_wants,
                                                    .on_class = log_on_class,
                                                    .loaded_only = true,
                                                    .refused = log_refused};

/* ---- the capture ---- */

static bool log_wanted(const struct options *o)
{
    return o->v[OPT_LOG].text || o->v[OPT_WATCH].text;
}

/* Requests the capability without which the VM discards source maps when it loads classes. */
static int need_source_maps(struct session *s)
{
    static const jvmtiCapabilities maps = {.can_get_source_debug_extension = 1};
    jvmtiCapabilities missing = {0};
    bool files = false;
    for (const struct log_spec *spec = points.specs; spec; spec = spec->next)
        files |= spec->is_file;
    int r = files ? vm_need(&maps, &missing) : 0;
    if (r == 0 && !vm_capabilities_empty(&missing))
        session_message(s, "log: the VM runs already, so files are found by the source files of "
                           "classes, not by source maps");
    return r;
}

static int log_load(struct session *s, struct buf *why)
{
    const char *log = s->options.v[OPT_LOG].text, *watch = s->options.v[OPT_WATCH].text;
    int r = log ? log_specs_parse(&points.specs, log, why) : 0;
    r = r == 0 && watch ? watches_set(watch) : r;
    if (r < 0)
        return r;
    points.points = 0;
    points.live = vm_is_live();
    r = need_source_maps(s);
    return r < 0 ? r : log_records_begin(s);
}

/*
 * Returns whether the place of a spec names a loaded class or, unless there is a class of a similar
 * name, a method of one.
 */
static bool place_is_loaded(JNIEnv *jni, const struct log_spec *spec)
{
    return trace_class_is_loaded(jni, spec->place) ||
           (spec->class_of_method && trace_class_is_loaded(jni, spec->class_of_method) &&
            !trace_class_has_similar(jni, spec->place));
}

static void why_not_found(JNIEnv *jni, const struct log_spec *spec, struct buf *why)
{
    if (spec->hidden)
        log_hidden_put(why, spec->hidden, "code for this line");
    else if (spec->is_file)
        buf_string(why, "no loaded class has code for this line");
    else if (place_is_loaded(jni, spec))
        buf_string(why, "the class is loaded and has no code for this line");
    else
        trace_explain_class(jni, spec->place, why);
}

/*
 * Reports specs that match nothing, or not all that they mean, in the classes loaded so far.
 * Classes that are loaded later may match.
 */
static void report_not_found(struct session *s, JNIEnv *jni)
{
    _cleanup_(buf_release) struct buf why = BUF(4096);
    char field[512];
    bool partly;
    for (const struct log_spec *spec = points.specs; spec; spec = spec->next) {
        if (spec->found && !spec->hidden)
            continue;
        buf_clear(&why);
        why_not_found(jni, spec, &why);
        session_message(s, "log %s:%u: %s: %s", spec->place, spec->line,
                        spec->found ? "not all is logged" : "nothing is logged so far",
                        buf_str(&why));
    }
    buf_clear(&why);
    for (unsigned i = 0; watches_not_found(jni, &i, field, sizeof(field), &partly, &why);
         buf_clear(&why))
        session_message(s, "watch %s: %s: %s", field,
                        partly ? "not all is watched" : "nothing is watched so far", buf_str(&why));
}

/*
 * Finds the static fields. Names with dots may be such fields, whose classes must be known before
 * any line is logged.
 */
static int find_statics(JNIEnv *jni, struct buf *why)
{
    int r = 0;
    for (const struct log_spec *spec = points.specs; spec; spec = spec->next)
        for (unsigned i = 0; r >= 0 && i < spec->n_parts; i++) {
            char path[LOG_NAME_MAX];
            snprintf(path, sizeof(path), "%s", spec->parts[i].text);
            log_take_length(path);
            if (spec->parts[i].kind == LOG_NAME && strchr(path, '.'))
                r = trace_path_name_static(path);
        }
    if (r < 0)
        buf_string(why, "log: too many static fields");
    trace_paths_find(jni);
    return MIN(r, 0);
}

static bool is_wanted(const struct method *m)
{
    struct str class_name = {m->class_name, strlen(m->class_name)};
    return (points.log_on && log_wants(class_name)) ||
           (points.watch_on && watch_client.wants(class_name));
}

static int log_start(struct session *s, JNIEnv *jni, struct buf *why)
{
    int r = drain_open(&log_reader, s, jni, why);
    if (r == 0)
        r = find_statics(jni, why);
    points.log_on = points.specs != NULL;
    points.watch_on = s->options.v[OPT_WATCH].text != NULL;
    if (r == 0 && points.log_on)
        r = instrument_on(&log_client, jni, why);
    if (r == 0 && points.watch_on)
        r = instrument_on(&watch_client, jni, why);
    if (r >= 0)
        r = log_hidden_on(jni, points.specs);
    if (r >= 0 && points.live) {
        report_not_found(s, jni);
        instrument_lose_running(s->out.jfr, jni, LOSS_LOG_RUNNING, is_wanted);
    }
    return r;
}

static int log_begin(struct session *s, JNIEnv *jni, struct buf *why)
{
    drain_begin();
    return 0;
}

static void log_stop(struct session *s, JNIEnv *jni)
{
    drain_shut(now_ns());
    if (points.log_on)
        instrument_off(&log_client, jni);
    if (points.watch_on)
        instrument_off(&watch_client, jni);
    points.log_on = points.watch_on = false;
    log_hidden_off();
    _cleanup_(buf_release) struct buf text = BUF(4096);
    for (const struct log_spec *spec = points.specs; spec; spec = spec->next) {
        char place[512];
        snprintf(place, sizeof(place), "%s:%u", spec->place, spec->line);
        if (spec->found && !spec->hidden)
            continue;
        buf_clear(&text);
        buf_string(&text,
                   spec->found ? "note: not all was logged: " : "note: nothing was logged: ");
        why_not_found(jni, spec, &text);
        log_note(s, place, buf_str(&text));
    }
    _cleanup_(buf_release) struct buf why = BUF(4096);
    char field[512];
    bool partly;
    for (unsigned i = 0; watches_not_found(jni, &i, field, sizeof(field), &partly, &why);
         buf_clear(&why)) {
        buf_clear(&text);
        buf_printf(&text, "note: %s was watched: %s", partly ? "not all" : "nothing",
                   buf_str(&why));
        log_note(s, field, buf_str(&text));
    }
    drain_close(&log_reader, s->out.jfr, jni);
    log_note_missing_fields(s);
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
    drain_round(s, jni);
    budget_lose(&log_budget, s->out.jfr, LOSS_LOG_LIMIT, LOSS_LOG_RATE, LOSS_LOG_BYTES);
}

static void log_dump(struct session *s, JNIEnv *jni, enum dump_reason reason)
{
    log_flush(s, jni);
}

static void log_status(struct session *s, struct buf *out)
{
    buf_printf(out, "log.points %llu\nlog.written %llu\nlog.watch_before_super %llu\n",
               (unsigned long long)atomic_load(&points.points),
               (unsigned long long)log_budget.written,
               (unsigned long long)watches_without_object());
    budget_status(&log_budget, "log", out);
}

const struct capture capture_logpoints = {
    .name = "log",
    .options = OPTION_BIT(OPT_LOG) | OPTION_BIT(OPT_WATCH),
    .changes_classes = true,
    .needs = {.can_retransform_classes = 1},
    .records_only = true,
    .wanted = log_wanted,
    .load = log_load,
    .start = log_start,
    .begin = log_begin,
    .shut = drain_shut,
    .overloaded = drain_is_overloaded,
    .stop = log_stop,
    .release = log_release,
    .flush = log_flush,
    .dump = log_dump,
    .status = log_status,
};
