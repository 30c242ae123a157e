/* SPDX-License-Identifier: Apache-2.0 */
/* jvmscope trace: calls of a recording, and switching tracing in a running VM. */
#include "answers/calls.h"
#include "base/json.h"
#include "base/json_check.h"
#include "base/parse.h"
#include "base/vec.h"
#include "classfile/classfile.h"
#include "cli/commands.h"
#include "cli/contents.h"
#include "cli/losses.h"
#include "cli/only_requests.h"
#include "cli/selected.h"
#include "cli/target.h"
#include "cli/trace/exceptions.h"
#include "cli/trace/moments.h"
#include "cli/trace/timings.h"
#include "jfr/reader.h"
#include "options/options.h"
#include "options/signature.h"
#include "options/trace_request.h"

#include <errno.h>
#include <string.h>

struct trace_options {
    bool json, exceptions;
    const char *condition; /* pattern, NULL: all */
    struct only_requests requests;
    struct call_filter calls;
};

static const struct arg trace_args[] = {
    {"--thread", 0, ARG_LIST, offsetof(struct trace_options, calls.thread), "PATTERN",
     "only calls, and the lines between them, of threads whose name matches"},
    {"--method", 0, ARG_LIST, offsetof(struct trace_options, calls.method), "PATTERN",
     "only calls of such methods (a part of the name, * and ?, or =NAME), and what --log, --watch "
     "and --exceptions recorded in them"},
    {"--min", 0, ARG_SPAN, offsetof(struct trace_options, calls.min), "TIME",
     "only calls that took at least this long, and no events between them"},
    {"--from", 0, ARG_DURATION, offsetof(struct trace_options, calls.from_ns), "TIME",
     "only what began from this time on, counted from the start: 1.5s, 2m"},
    {"--to", 0, ARG_SPAN, offsetof(struct trace_options, calls.to_ns), "TIME",
     "only what began before this time"},
    {"--limit", 'n', ARG_COUNT, offsetof(struct trace_options, calls.limit), "N",
     "lines to show: calls, and events between them (all)"},
    {"--exceptions", 0, ARG_FLAG, offsetof(struct trace_options, exceptions), NULL,
     "print a table of exceptions by class, place and handler"},
    {"--if", 0, ARG_TEXT, offsetof(struct trace_options, condition), "CONDITION",
     "with PID add PATTERN: record only calls that meet this condition, as in run"},
    ONLY_REQUESTS_ARGS(struct trace_options, requests),
    {"--json", 0, ARG_FLAG, offsetof(struct trace_options, json), NULL, "print JSON"},
    {0},
};

static const struct arg_set trace_set = {"What is shown", trace_args};
static const struct arg_set *const trace_sets[] = {&trace_set, NULL};

static void print_text_of(const char *s)
{
    print_text(stdout, (struct str){s, strlen(s)});
}

/* Prints the JSON string of a character as Java writes one. */
static void print_char(struct str json)
{
    struct str inner = {json.data + 1, json.len - 2};
    putchar('\'');
    if (inner.len == 1 && inner.data[0] == '\'')
        fputs("\\'", stdout);
    else if (inner.len == 2 && inner.data[1] == '"')
        putchar('"');
    else
        print_text(stdout, inner);
    putchar('\'');
}

static void print_typed(struct str json, char type)
{
    if (type == 'C' && json.len > 2 && json.data[0] == '"')
        print_char(json);
    else
        moment_print_value(json);
}

/* Prints the values of a JSON array. A method's descriptor gives their types. */
static void print_arguments(struct str values, const char *descriptor)
{
    struct str d = {descriptor, strlen(descriptor)};
    unsigned slots;
    size_t at = 1;
    while (values.len) {
        size_t len = json_value_len(values.data, values.len),
               n = class_descriptor_next(d, at, &slots);
        if (!len || !n) {
            moment_print_value(values);
            return;
        }
        print_typed((struct str){values.data, len}, d.data[at]);
        at += n;
        values = (struct str){values.data + len, values.len - len};
        if (values.len && values.data[0] == ',') {
            fputs(", ", stdout);
            values = (struct str){values.data + 1, values.len - 1};
        }
    }
}

static void print_call(const struct call *c, int64_t start)
{
    const char *descriptor = strchrnul(c->method, '('), *back = strrchr(c->method, ')');
    char text[24];
    printf("%12.6f  %10s  ", (double)(c->start_ns - start) / 1e9,
           format_duration(text, (uint64_t)MAX(c->ns, 0)));
    print_column(stdout, c->thread ? c->thread : "?", THREAD_COLUMNS, false);
    printf("  %*s", (int)MAX(MIN(c->depth, 60), 0) * 2, "");
    print_text(stdout, (struct str){c->method, strcspn(c->method, "(")});
    if (!c->arguments) {
        _cleanup_(buf_release) struct buf types = BUF(1 << 17);
        signature_put_parameters(&types, descriptor);
        print_text_of(buf_str(&types));
        putchar('\n');
        return;
    }
    putchar('(');
    struct call_arguments args = call_arguments(c);
    if (args.self.len) {
        fputs("this=", stdout);
        moment_print_value(args.self);
    }
    fputs(args.self.len && args.others.len ? ", " : "", stdout);
    print_arguments(args.others, descriptor);
    putchar(')');
    if (c->exception) {
        fputs(" threw ", stdout);
        print_text_of(c->exception);
        if (c->message) {
            fputs(": ", stdout);
            moment_print_quoted(c->message);
        }
    } else if (c->returned) {
        fputs(" = ", stdout);
        print_typed((struct str){c->returned, strlen(c->returned)}, back ? back[1] : 0);
    }
    putchar('\n');
}

/* Everything in the recording that is shown, in chronological order. */
static const struct rec_select shown[] = {
    {"jvmscope.Call", SHOWN_CALL},
    {"jdk.MethodTrace", SHOWN_CALL},
    {"jvmscope.Log", SHOWN_LOG},
    {"jvmscope.LogNote", SHOWN_NOTE},
    {"jvmscope.FieldAccess", SHOWN_ACCESS},
    {"jvmscope.ExceptionThrown", SHOWN_THROWN},
    {"jvmscope.VmEvent", SHOWN_VM},
    {0},
};

/*
 * Checks that each name of a list belongs to a call or event. It ignores the limit and the
 * other options. Returns 0, the exit status after a complaint, or a negative errno.
 */
static int check_names(struct recording *r, const char *path, const struct trace_options *o,
                       const struct rec_mark *marks, size_t n)
{
    _cleanup_(selected_names_release) struct selected_names threads = {0}, methods = {0};
    int e = selected_names_init(&threads, o->calls.thread);
    if (e == 0 && o->calls.method && !strchr(o->calls.method, '('))
        e = selected_names_init(&methods, o->calls.method);
    for (size_t i = 0; e >= 0 && i < n && (threads.missing.len || methods.missing.len); i++) {
        struct rec_event event;
        struct call c;
        e = recording_at(r, marks[i].offset, &event);
        if (e < 0)
            break;
        bool is_call = event.tag == SHOWN_CALL;
        call_read(&event, &c);
        size_t n_method = strcspn(c.method, "(");
        const char *method = is_call ? c.method : moment_place(&event.object, &n_method);
        if (c.thread)
            selected_names_see(&threads, c.thread, strlen(c.thread));
        if (method) {
            selected_names_see(&methods, method, strlen(method));
            selected_names_see(&methods, method, n_method);
        }
    }
    if (e < 0)
        return e;
    int status = selected_names_end(&methods, path, "no call matches --method");
    return status ? status : selected_names_end(&threads, path, "no call matches --thread");
}

static bool selects(const struct trace_options *o)
{
    return o->calls.thread || o->calls.method || o->calls.min || o->calls.from_ns ||
           o->calls.to_ns || o->calls.times;
}

struct shown_counts {
    uint64_t all;                /* what passes the filters, including what is beyond the limit */
    uint64_t shorter, unlasting; /* what --min leaves out: shorter calls, and events */
};

/* Counts what --min alone leaves out. */
static void count_short(const struct trace_options *o, const struct rec_event *event,
                        struct shown_counts *count)
{
    struct call_filter all = o->calls;
    struct call c;
    all.min = 0;
    if (o->calls.min && call_filter_passes(&all, event, &c))
        (*(event->tag == SHOWN_CALL ? &count->shorter : &count->unlasting))++;
}

/*
 * Prints or writes the events of one kind, and adds to *count. The limit leaves out no notes among
 * the lines that it shows: they say why values are missing, and are no records.
 */
static int each(struct recording *r, const struct trace_options *o, const struct rec_mark *marks,
                size_t n, bool calls, bool moments, struct json *j, struct shown_counts *count)
{
    struct rec_info info;
    int e = 0;
    uint64_t notes = 0;
    recording_info(r, &info);
    for (size_t i = 0; e >= 0 && i < n; i++) {
        struct rec_event event;
        struct call c;
        if (o->calls.limit && count->all == o->calls.limit && calls && moments && !selects(o)) {
            count->all = n - notes; /* known without reading the rest */
            break;
        }
        e = recording_at(r, marks[i].offset, &event);
        if (e < 0)
            break;
        bool is_call = event.tag == SHOWN_CALL;
        if (is_call ? !calls : !moments)
            continue;
        if (!call_filter_passes(&o->calls, &event, &c)) {
            count_short(o, &event, count);
            continue;
        }
        if (!j && event.tag == SHOWN_NOTE && (!o->calls.limit || count->all < o->calls.limit)) {
            moment_print(&event, info.start_ns);
            notes++;
            continue;
        }
        if (++count->all > o->calls.limit && o->calls.limit)
            continue;
        if (!j) {
            if (is_call)
                print_call(&c, info.start_ns);
            else
                moment_print(&event, info.start_ns);
            continue;
        }
        if (is_call)
            call_json(&c, j);
        else
            moment_json(&event, j);
        e = buf_error(j->out);
        fputs(buf_str(j->out), stdout);
        buf_clear(j->out);
    }
    return e;
}

/* Complains about the options that together select nothing. */
static int nothing_left(const char *path, const struct trace_options *o)
{
    const char *given[] = {o->calls.times ? only_requests_option(&o->requests) : NULL,
                           o->calls.method ? "--method" : NULL,
                           o->calls.thread ? "--thread" : NULL,
                           o->calls.min ? "--min" : NULL,
                           o->calls.from_ns ? "--from" : NULL,
                           o->calls.to_ns ? "--to" : NULL};
    return complain_of_options(path, "no call is selected by", given, ARRAY_SIZE(given));
}

/* Returns 0, the exit status after a complaint, or a negative errno. Prints nothing else. */
static int check_selection(struct recording *r, const char *path, const struct trace_options *o,
                           const struct rec_mark *marks, size_t n)
{
    if (!selects(o))
        return 0;
    int e = check_names(r, path, o, marks, n);
    for (size_t i = 0; e == 0 && i < n; i++) {
        struct rec_event event;
        struct call c;
        e = recording_at(r, marks[i].offset, &event);
        if (e == 0 && call_filter_passes(&o->calls, &event, &c))
            return 0;
    }
    return e ? e : nothing_left(path, o);
}

/* Returns whether something that is not a note began before the recording did. */
static bool begins_early(struct recording *r, const struct rec_mark *marks, size_t n, int64_t start)
{
    bool early = false;
    for (size_t i = 0; i < n && marks[i].start_ns < start && !early; i++) {
        struct rec_event event;
        early = recording_at(r, marks[i].offset, &event) == 0 && event.tag != SHOWN_NOTE;
    }
    return early;
}

static int print_text_of_all(struct recording *r, const struct trace_options *o,
                             const struct rec_mark *marks, size_t n)
{
    struct shown_counts count = {0};
    printf("%12s  %10s  %-*s  %s\n", "START (s)", "TIME", THREAD_COLUMNS, "THREAD", "CALL");
    int e = each(r, o, marks, n, true, true, NULL, &count);
    if (e >= 0 && !o->calls.from_ns && begins_early(r, marks, n, o->calls.start_ns))
        puts(" A negative START is before the beginning of the recording.");
    if (e >= 0 && o->calls.limit)
        print_left_out(count.all, o->calls.limit, "lines");
    if (e >= 0) {
        print_shorter(count.shorter, "calls", o->calls.min);
        if (count.unlasting)
            printf(" %s between the calls %s left out (--min)\n",
                   COUNT_TEXT(count.unlasting, "events"), count.unlasting == 1 ? "is" : "are");
    }
    return e < 0 ? e : 0;
}

static int print_json_of_all(struct recording *r, const struct trace_options *o,
                             const struct losses *l, const struct timings *t,
                             const struct rec_mark *marks, size_t n)
{
    _cleanup_(buf_release) struct buf out = BUF(SIZE_MAX / 4);
    struct json j = {.out = &out};
    struct shown_counts calls_n = {0}, events_n = {0};
    json_begin_object(&j);
    json_key_array(&j, "calls");
    int e = each(r, o, marks, n, true, false, &j, &calls_n);
    json_end_array(&j);
    json_key_array(&j, "events");
    if (e >= 0)
        e = each(r, o, marks, n, false, true, &j, &events_n);
    json_end_array(&j);
    json_key_u64(&j, "calls_all", calls_n.all);
    json_key_u64(&j, "events_all", events_n.all);
    json_key_u64(&j, "shorter", calls_n.shorter);
    timings_json(t, &j);
    losses_json(l, losses_of_trace, &j);
    json_end_object(&j);
    puts(buf_str(j.out));
    return e < 0 ? e : 0;
}

/* Returns 0, the exit status after a complaint, or a negative errno. */
static int print_all(struct recording *r, const char *path, const struct trace_options *o,
                     const struct losses *l, const struct timings *t)
{
    struct rec_mark *marks;
    size_t n;
    int e = recording_by_time(r, &marks, &n);
    if (e < 0)
        return e;
    e = check_selection(r, path, o, marks, n);
    if (e == 0)
        e = o->json ? print_json_of_all(r, o, l, t, marks, n)
            : n     ? print_text_of_all(r, o, marks, n)
                    : 0;
    free(marks);
    if (e == 0 && !o->json && !selects(o))
        timings_print(t);
    return e;
}

/* The recording has nothing to show: says why, judging by its options. */
static int print_empty(const char *path)
{
    static const char *const options[] = {"trace", "log", "watch", NULL};
    bool events = contents_requested(path, OPT_EVENTS);
    return contents_complain(
        path, options,
        events ? "holds no calls and no events of threads or classes" : "holds no calls",
        events ? "jvmscope vm shows what else --events recorded"
               : "record them with --trace, --log, --watch, --events or --exceptions=stacks");
}

static int show_file(const char *path, struct trace_options *o)
{
    _cleanup_(recording_closep) struct recording *r = NULL;
    const char *why = NULL;
    int e = recording_open(&r, path, &why);
    if (e < 0)
        return complain(path, "cannot read", why);
    _cleanup_(losses_release) struct losses l = {0};
    e = losses_read(&l, r, true);
    if (e < 0)
        return complain_errno(path, "cannot read", e);
    losses_report(path, &l, losses_of_trace);
    struct rec_info info;
    recording_info(r, &info);
    o->calls.start_ns = info.start_ns;
    e = selected_by_time(path, o->calls.from_ns, o->calls.to_ns,
                         (uint64_t)MAX(info.end_ns - info.start_ns, INT64_C(0)));
    if (e)
        return e;
    recording_rewind(r);
    if (o->exceptions)
        return exception_table(r, path, o->json, o->calls.limit, &l);
    _cleanup_(timings_release) struct timings timings = {0};
    e = timings_read(&timings, r);
    if (e < 0)
        return complain_errno(path, "cannot read", e);
    recording_rewind(r);
    e = recording_select(r, shown);
    struct rec_event first;
    if (e == 0)
        e = recording_next(r, &first);
    if (e == 0 && !timings.rows.len)
        return print_empty(path);
    if (e >= 0) {
        recording_rewind(r);
        e = print_all(r, path, o, &l, &timings);
    }
    return e < 0 ? complain_errno(path, "cannot read", e) : e;
}

static int switch_tracing(const struct operands *operands, const struct trace_options *o)
{
    _cleanup_(vm_release) struct vm vm = {.root_fd = -1};
    _cleanup_(buf_release) struct buf message = BUF(4096);
    size_t request = strlen("control=trace,");
    buf_printf(&message, "control=trace,%s%s%s", operands->count > 1 ? operands->list[1] : "list",
               operands->count > 2 ? " " : "", operands->count > 2 ? operands->list[2] : "");
    const char *verb = operands->count > 1 ? operands->list[1] : "list";
    bool add = operands->count == 3 && strcmp(verb, "add") == 0;
    bool bare = operands->count == 2 || (operands->count == 3 && !*operands->list[2]);
    if (bare && (strcmp(verb, "add") == 0 || strcmp(verb, "remove") == 0)) {
        complain(verb, "a pattern is missing", "trace PID add|remove package.Class.method");
        return 2;
    }
    if (o->condition && !add) {
        complain("--if", "belongs to `trace PID add PATTERN`", NULL);
        return 2;
    }
    const char *of_files = o->calls.thread    ? "--thread"
                           : o->calls.method  ? "--method"
                           : o->calls.min     ? "--min"
                           : o->calls.from_ns ? "--from"
                           : o->calls.to_ns   ? "--to"
                           : o->calls.limit   ? "--limit"
                           : o->exceptions    ? "--exceptions"
                                              : NULL;
    if (of_files) {
        complain(of_files, "chooses calls of a recording: trace [OPTION ...] FILE", NULL);
        return 2;
    }
    if (o->condition)
        buf_printf(&message, " if %s", o->condition);
    const char *what = "PATTERN", *fault = "too long";
    if (!buf_error(&message))
        fault = trace_request_fault(buf_str(&message) + request, &what);
    if (fault) {
        complain(what, fault, NULL);
        return 2;
    }
    int status = target_open(&vm, operands->list[0]);
    if (status)
        return status;
    /* The answer to a change is what it changed; `list` shows all that is traced. */
    static const char *const changed[] = {
        "added", "removed", "methods_added", "unmatched_added", "partly_traced_added", NULL};
    bool all = operands->count < 3;
    status = target_show(&vm, "trace", buf_str(&message), false, o->json, all ? NULL : changed);
    if (status == 0 && !all && !o->json)
        printf("jvmscope trace %s list shows all that is traced\n", operands->list[0]);
    return status;
}

static int cmd_trace(const struct command *self, int argc, char **argv)
{
    struct trace_options o = {0};
    struct operands operands;
    int status;
    if (!args_parse(self, ARGS({NULL, &o}), argc, argv, &operands, &status))
        return status;
    /* A number is a process id, anything else a file. */
    const char *what = operands.list[0];
    if (*what && !what[strspn(what, "0123456789")])
        return switch_tracing(&operands, &o);
    if (operands.count > 1 || o.condition) {
        complain(operands.count > 1 ? operands.list[1] : "--if",
                 operands.count > 1 ? "only one file can be given"
                                    : "belongs to `trace PID add PATTERN`",
                 NULL);
        return 2;
    }
    const char *of_calls = o.calls.thread   ? "--thread"
                           : o.calls.method ? "--method"
                           : o.calls.min    ? "--min"
                                            : NULL;
    if (o.exceptions && of_calls) {
        complain(of_calls, "chooses calls, and --exceptions counts all exceptions", NULL);
        return 2;
    }
    if (o.exceptions && (o.calls.from_ns || o.calls.to_ns)) {
        complain(self->name, "--exceptions counts the exceptions of the whole recording", NULL);
        return 2;
    }
    if (!only_requests_given(&o.requests))
        return show_file(what, &o);
    if (o.exceptions) {
        complain(self->name, "--exceptions counts the exceptions of all requests", NULL);
        return 2;
    }
    _cleanup_(request_times_release) struct request_times times = {0};
    status = only_requests_times(&o.requests, what, &times);
    o.calls.times =
        &times; /* cppcheck-suppress autoVariables ; it is used only until this returns */
    return status ? status : show_file(what, &o);
}

const struct command command_trace = {
    .name = "trace",
    .run = cmd_trace,
    .operands = "FILE | PID add|remove|list [PATTERN]",
    .min_operands = 1,
    .max_operands = 3,
    .summary = "list traced calls with arguments and results; switch tracing in a running VM",
    .related = "run attach report inspect",
    .description =
        "Use it to see with which arguments a method is called, what it returns, and which of "
        "its calls are slow.\n\n"
        "Given a recording made with *--trace*, prints its calls in order of time, nested calls"
        " indented, each with its arguments and what it returned or threw. For a recording made"
        " by the JDK's Flight Recorder (25 and later), it lists the calls that were traced "
        "there (jdk.MethodTrace), which have no values, and the methods that were timed "
        "(jdk.MethodTiming). Given the process id of a program that is being traced, *add* adds"
        " a pattern, *remove* removes one, and *list* lists them.\n\n"
        "A pattern is package.Class.method, where a star stands for any characters, or a prefix"
        " of it that ends at a dot. The types of its parameters choose one of several methods "
        "of a name: 'com.shop.Cart.add(int, String)', where a class needs no package and .. "
        "stands for any further parameters. @pkg.Annotation or @Annotation matches annotated "
        "methods and all methods of annotated classes, 'implements pkg.Type' those of the "
        "program's classes below a type. Commas separate patterns, and *--trace* may be given "
        "several times.\n\n"
        "Values are shown in readable form: boxes, enum constants, classes and optionals by "
        "their values, arrays, collections and maps with their sizes and first five elements, "
        "exceptions with their messages; all of this is read from memory and runs none of the "
        "program's code. Other objects are Class@hash, with what *--show* names of their "
        "fields; *--to-string* calls toString() on a thread of the agent, so a text that "
        "depends on the current thread can differ, and there is no text for an object whose "
        "lock the caller holds. The program waits at most 100 ms for a text; after that, "
        "toString() of this class is not called for a second, and for longer if it happens "
        "again. A value without text says why: (toString: longer than 100 ms), (toString: threw"
        " pkg.Exception), or (toString: not called).\n\n"
        "A condition of *--if* compares argN, return, this, their .length (of strings, arrays, "
        "collections and maps), time, depth (how many traced calls enclose it), thrown, thread "
        "(the name that the thread has when the call ends), and fields as they are when the "
        "call begins: this.f, arg1.f.g, or pkg.Class.f for a static one. If anything on the way"
        " to a field is null, the comparison is false. A condition belongs to the *--trace* "
        "before it, or with *PID add* to the pattern that is added. Boxes and optionals are "
        "compared by value, enum constants by name. A text is written in single or double "
        "quotes with Java's escapes, and can be compared with a char too. Times have a unit.\n\n"
        "What *--log* and *--watch* recorded is listed between the calls. A logpoint is a class"
        " or source file and a line, followed by a text with locals, fields, lengths and the "
        "thread in braces: 'com.shop.Cart:42 {total} of {this.user.name}, {items.length} in "
        "{thread}'; several are separated by a semicolon, or by a comma before the next place. "
        "{#1:I} is slot 1 as int, where the class was compiled without a table of locals. Files"
        " are found by source maps (JSR-45) too: 'cart.jsp:7'.",
    .caveats =
        "A watch sees the instructions that read and write a field, but not reflection, method "
        "handles, VarHandle, atomic field updaters, Unsafe and JNI. Tracing slows down the "
        "methods that are traced; when calls come faster than they can be written, some are "
        "left out, and their number is reported.",
    .examples = "  jvmscope run --trace 'com.shop.Cart.*' -o app.jfr -- java -jar app.jar\n"
                "  jvmscope run --trace com.shop.Db.query --if 'time > 5ms' -o app.jfr -- java "
                "-jar app.jar\n"
                "  jvmscope trace app.jfr\n"
                "  jvmscope trace 4711 add 'com.shop.Order.total()' --if 'return > 100'\n",
    .sets = trace_sets,
};
