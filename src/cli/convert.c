/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/convert.h"
#include "base/file.h"
#include "base/parse.h"
#include "cli/commands.h"
#include "cli/contents.h"
#include "cli/losses.h"
#include "cli/push.h"
#include "cli/replaced.h"
#include "cli/sources.h"
#include "export/export.h"
#include "page/members.h"
#include "page/page.h"
#include "profile/vm_time.h"
#include "timeline/load.h"
#include "wire/resource.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

struct convert {
    const char *output, *sources, *format;
};

static const struct arg convert_args[] = {
    {"--output", 'o', ARG_TEXT, offsetof(struct convert, output), "OUT",
     "the file to write; its extension picks the format"},
    {"--format", 'f', ARG_TEXT, offsetof(struct convert, format), "FORMAT",
     "the format, if the extension of OUT does not give it: otlp, pb.gz, jfr ..."},
    {"--sources", 's', ARG_LIST, offsetof(struct convert, sources), "DIR",
     "where source files are, to show coverage in a page"},
    {0},
};

static const struct arg_set convert_set = {"Output", convert_args};
static const struct arg_set *const convert_sets[] = {&convert_set, &push_set, &selection_set, NULL};

void convert_complain_of_format(const char *path)
{
    char known[256] = "";
    for (const struct export_format *const *at = export_formats, *f; (f = *at); at++) {
        size_t n = strlen(known);
        snprintf(known + n, sizeof(known) - n, "%s%s", n ? ", " : "formats are ", f->extension);
    }
    const char *dot = strrchr(path, '.');
    if (dot && (strcasecmp(dot, ".info") == 0 || strcasecmp(dot, ".xml") == 0))
        complain(path, "only jvmscope coverage -o writes this format, from a recording", known);
    else
        complain(path, "no format has this extension", known);
}

static bool format_row(size_t i, struct operand_word *ret)
{
    const struct export_format *f = export_formats[i];
    if (f)
        *ret = (struct operand_word){f->extension, f->what};
    return f != NULL;
}

/* "otlp" means the format with the extension ".otlp". */
static const struct export_format *format_named(const char *name)
{
    for (const struct export_format *const *at = export_formats, *f; (f = *at); at++)
        if (strcasecmp(f->extension + 1, name + (*name == '.')) == 0)
            return f;
    return NULL;
}

/* What is read is a copy of what a VM has recorded, which the user has no name for. */
static bool is_copy;

/*
 * Returns whether a page has something to show of a recording, besides what page_members() writes.
 */
static bool shows_anything(const struct profile *p, const char *path)
{
    _cleanup_(buf_release) struct buf why = BUF(4096);
    _cleanup_(timeline_freep) struct timeline *t = NULL;
    return profile_has_samples(p) || p->sites.len ||
           (timeline_load(&t, path, &why) == 0 && page_has_threads(t));
}

/* Reports which kinds of samples the format has no place for, unless one kind was chosen. */
static void report_left_out(const struct export_format *format, const struct profile *p,
                            enum profile_metric metric, const char *to)
{
    for (int m = 0; format->one_metric && m < PROFILE_METRICS; m++) {
        char text[128];
        if (m == (int)metric || !p->series[m].samples.len)
            continue;
        snprintf(text, sizeof(text), "note: the output lacks %s (--metric %s)",
                 profile_metrics[m].title, profile_metrics[m].name);
        complain(to, text, NULL);
    }
}

/*
 * Reports how much CPU time of the selected part belongs to threads without samples, if the format
 * has a place for samples only. A filter by thread, class or request selects none of it.
 */
static int report_vm_time(const struct export_format *format, const struct profile *p,
                          const struct selection *s, enum profile_metric metric, const char *to)
{
    char used[24], all[24];
    uint64_t others_ns = 0;
    if (!p || metric != PROFILE_CPU || format->holds & HOLDS_VM_TIME || s->filter.thread ||
        s->filter.class_name || only_requests_given(&s->requests))
        return 0;
    _cleanup_(vm_time_release) struct vm_time sum = {0};
    int r = vm_time_sum(&sum, p, &s->filter);
    if (r < 0)
        return r;
    for (size_t i = 0; i < sum.rows.len; i++)
        others_ns += sum.rows.data[i].cpu_ns;
    if (!others_ns)
        return 0;
    _cleanup_(buf_release) struct buf text = BUF(4096);
    buf_printf(
        &text,
        "note: the output lacks the CPU time of threads that run no Java code, %s of %s, which ",
        format_duration(used, others_ns), format_duration(all, sum.process_ns));
    (void)export_put_holders(&text, HOLDS_VM_TIME);
    buf_string(&text, " and jvmscope report shows");
    complain(to, buf_str(&text), NULL);
    return 0;
}

static bool selects_samples(const struct selection *s)
{
    return s->filter.thread || s->filter.class_name || s->filter.from_ns || s->filter.to_ns ||
           only_requests_given(&s->requests);
}

/* Appends a word as a shell reads it: in quotes if it has characters that a shell interprets. */
static void put_word(struct buf *to, const char *word)
{
    bool plain = *word && !word[strcspn(word, " \t\n\"'`\\$&|;()<>[]{}*?!#~^")];
    if (plain) {
        buf_string(to, word);
        return;
    }
    buf_u8(to, '\'');
    for (const char *at = word; *at; at++) {
        if (*at == '\'')
            buf_string(to, "'\\'");
        buf_u8(to, (uint8_t)*at);
    }
    buf_u8(to, '\'');
}

/* Writes the options of a selection so that they can be given again: exactly and quoted. */
static void put_selection(const struct selection *s, struct buf *to)
{
    const struct profile_filter *f = &s->filter;
    char text[24];

    const struct {
        const char *option, *value;
    } texts[] = {
        {"--thread", f->thread}, {"--class", f->class_name}, {"--request", s->requests.name}};

    for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
        if (texts[i].value) {
            buf_printf(to, "%s%s ", to->len ? " " : "", texts[i].option);
            put_word(to, texts[i].value);
        }
    if (s->requests.slowest > 0)
        buf_printf(to, "%s--slowest %.15g%%", to->len ? " " : "", s->requests.slowest * 100);
    if (f->from_ns)
        buf_printf(to, "%s--from %s", to->len ? " " : "", format_limit(text, f->from_ns));
    if (f->to_ns)
        buf_printf(to, "%s--to %s", to->len ? " " : "", format_limit(text, f->to_ns));
}

static void report_kind_left_out(void *context, const char *sentence)
{
    complain(context, "note", sentence);
}

bool convert_follows(const struct export_format *format, const struct selection *s, const char *to)
{
    const struct {
        const char *option;
        bool given;
        enum export_selection by;
    } options[] = {
        {"--thread", s->filter.thread, FOLLOWS_THREAD},
        {"--class", s->filter.class_name, FOLLOWS_CLASS},
        {"--from", s->filter.from_ns, FOLLOWS_TIME},
        {"--to", s->filter.to_ns, FOLLOWS_TIME},
        {"--request", s->requests.name, FOLLOWS_REQUEST},
        {"--slowest", s->requests.slowest > 0, FOLLOWS_REQUEST},
        {"--metric", s->metric, FOLLOWS_METRIC},
    };

    const char *refused = NULL, *followed[ARRAY_SIZE(options)];
    size_t n = 0;
    bool in_jfr = false; /* a part of a recording can be a recording */
    for (size_t i = 0; i < ARRAY_SIZE(options); i++) {
        bool is = format->follows & (unsigned)options[i].by;
        if (is)
            followed[n++] = options[i].option;
        if (refused || is || !options[i].given)
            continue;
        refused = options[i].option;
        in_jfr = export_format_jfr.follows & (unsigned)options[i].by;
    }
    if (!refused)
        return true;
    _cleanup_(buf_release) struct buf what = BUF(256), why = BUF(256);
    buf_printf(&what, "%s cannot select a part for this format", refused);
    buf_string(&why, n ? "it follows " : "it holds the whole recording");
    for (size_t i = 0; i < n; i++)
        buf_printf(&why, "%s%s", i == 0 ? "" : i + 1 == n ? " and " : ", ", followed[i]);
    if (in_jfr)
        buf_string(&why, "; convert it with -o part.jfr, and then that file");
    complain(to, buf_str(&what), buf_str(&why));
    return false;
}

/* Leaves out of a page, with a note, what a selection cannot divide; it would be shown as zero. */
static void leave_out_whole(const struct profile_filter *f, struct profile *p, const char *path)
{
    reading_note_left_out(f, p, path);
    for (int m = 0; m < PROFILE_METRICS; m++)
        if (reading_whole_only(f, p, (enum profile_metric)m))
            p->series[m].samples.len = 0;
}

/* Returns whether another metric would have been chosen if the selection could divide it. */
static bool is_second_choice(const struct profile *p, enum profile_metric metric)
{
    for (int m = 0; m < (int)metric; m++)
        if (p->series[m].samples.len)
            return true;
    return false;
}

static int convert(const struct selection *selection, const char *from, const char *to,
                   const struct convert *options, const char *labels)
{
    const struct export_format *format =
        options->format ? format_named(options->format) : export_format_of(to);
    if (!format) {
        convert_complain_of_format(options->format ? options->format : to);
        return 2;
    }
    if (!convert_follows(format, selection, to))
        return 2;
    _cleanup_(profile_freep) struct profile *p = NULL;
    _cleanup_(request_fields_release) struct request_fields fields = {0};
    struct export_source source = {.path = from,
                                   .filter = selection->filter,
                                   .labels = labels,
                                   .all_metrics = !selection->metric};
    _cleanup_(buf_release) struct buf warning = BUF(4096), members = BUF(SIZE_MAX / 2),
                                      note = BUF(4096), whole = BUF(4096), part = BUF(1 << 16);
    /* Other formats contain more than a single view shows. */
    const char *const *captures = format->holds == HOLDS_STACKS ? losses_of_profile : NULL;
    enum load_detail detail = format == &export_format_html ? page_detail(from) : format->detail;
    int status =
        format->threads ? 0 : reading_open(&p, from, detail, selection, captures, &warning);
    if (status == 0 && p && !reading_check(selection, p, from, format == &export_format_jfr))
        status = 1;
    if (status == 0 && !format->threads &&
        (!format->any || profile_has_samples(p) || selection->metric))
        status = reading_metric(selection, p, from, &source.metric);
    if (status == 0 && p && selection->metric)
        status = reading_check_metric(selection, p, from, source.metric);
    if (status)
        return status;
    if (p && format == &export_format_html)
        leave_out_whole(&selection->filter, p, from);
    else if (source.all_metrics &&
             (format == &export_format_otlp || format == &export_format_pprof ||
              format == &export_format_jfr || (p && is_second_choice(p, source.metric))))
        reading_note_left_out(&selection->filter, p, from);
    if (format->threads)
        losses_report_file(from, losses_of_threads);
    int r = p && format->any ? vm_time_samples(p) : 0;
    if (r == 0 && format == &export_format_html)
        r = page_members(&members, from, p, options->sources, false, &fields);
    if (r == 0 && format == &export_format_html && p && !shows_anything(p, from)) {
        contents_report_patterns(from);
        complain(from, "holds nothing that a page shows",
                 is_copy
                     ? "what it holds so far is in a file that ends in .jfr, for trace, threads "
                       "or vm"
                     : "see it with trace, threads or vm");
        return 1;
    }
    if (r < 0)
        return complain_errno(from, "cannot read", r);
    /* A page's other views do not follow the selection. */
    unsigned others = HOLDS_WAITS | HOLDS_REQUESTS | HOLDS_TRACE | HOLDS_COVERAGE;
    if (format == &export_format_html && selects_samples(selection))
        export_kind_names(&whole, export_kinds_in(from, p, others));
    if (whole.len)
        buf_printf(
            &note,
            "only the samples are limited to the selection; these cover the whole recording: %s",
            buf_str(&whole));
    if (format == &export_format_html)
        put_selection(selection, &part);
    source.part = part.len ? buf_str(&part) : NULL;
    source.whole = whole.len ? buf_str(&whole) : NULL;
    source.profile = p;
    source.members = &members;
    source.fields = &fields;
    source.note = &note;
    source.warning = warning.len ? buf_str(&warning) : NULL;
    /* What was recorded only for this output is shown under the output's name. */
    const char *to_name = file_base(to), *from_name = file_base(from);
    size_t n = strlen(to_name);
    bool is_for_it = strncmp(from_name, to_name, n) == 0 && strcmp(from_name + n, ".jfr") == 0;
    if (is_for_it || strncmp(from, "/proc/self/fd/", 14) == 0)
        source.name = to_name;
    _cleanup_(out_file_release) struct out_file file = OUT_FILE;
    _cleanup_(buf_release) struct buf why = BUF(4096);
    r = out_file_open_like(&file, to, from);
    if (r < 0)
        return complain_errno(to, "cannot write", r);
    FILE *out = out_file_stream(&file);
    if (!out)
        return complain_errno(to, "cannot write", -ENOMEM);
    r = format->write(&source, out, &why);
    fclose(out);
    /* If the file could not be written, that is the reason for whatever failed afterwards. */
    if (file.error)
        buf_clear(&why);
    if (r == 0 || file.error)
        r = out_file_commit(&file);
    if (r < 0)
        return why.len ? complain(to, "cannot write", buf_str(&why))
                       : complain_errno(to, "cannot write", r);
    if (note.len)
        complain(to, "note", buf_str(&note));
    r = report_vm_time(format, p, selection, source.metric, to);
    if (r < 0)
        return complain_errno(from, "cannot read", r);
    if (options->output && p && !selection->metric)
        report_left_out(format, p, source.metric, to);
    if (!selection->metric)
        export_each_left_out(format, from, p, report_kind_left_out, (void *)to);
    return 0;
}

int convert_file(const struct selection *selection, const char *from, const char *to)
{
    return convert(selection, from, to, &(struct convert){0}, NULL);
}

int convert_copy(const char *copy, const char *output)
{
    complain_as(copy, output);
    is_copy = true;
    int status = convert_file(&(struct selection){0}, copy, output);
    is_copy = false;
    complain_as(NULL, NULL);
    return status;
}

/*
 * Checks that the labels, which name what was profiled, can be stored: in a file of a format that
 * has labels, or by a backend.
 */
static bool labels_have_a_place(const char *command, const struct convert *options,
                                const struct push_options *push)
{
    const struct export_format *format =
        options->format ? format_named(options->format) : export_format_of(options->output);
    if (push->token_file || (push->labels && (!format || format != &export_format_otlp))) {
        complain(command, push->token_file ? "--token-file" : "--label",
                 push->token_file ? "nothing is sent without --push"
                                  : "requires --push or a file that ends in .otlp");
        return false;
    }
    _cleanup_(wire_batch_release) struct wire_batch b = {0};
    _cleanup_(buf_release) struct buf why = BUF(4096);
    bool ok = !push->labels || wire_resource(&b, NULL, push->labels, &why) >= 0;
    if (!ok)
        complain(command, why.len ? buf_str(&why) : "out of memory", NULL);
    return ok;
}

static bool is_page(const struct convert *options)
{
    return options->output &&
           (options->format ? format_named(options->format) : export_format_of(options->output)) ==
               &export_format_html;
}

static int cmd_convert(const struct command *self, int argc, char **argv)
{
    struct convert options = {0};
    struct push_options push = {0};
    struct selection selection = {0};
    struct operands operands;
    int status;
    if (!args_parse(
            self, ARGS({&convert_set, &options}, {&push_set, &push}, {&selection_set, &selection}),
            argc, argv, &operands, &status))
        return status;
    if (!options.output && !push.url) {
        complain(self->name, "-o OUT is missing", "its extension picks the format; or --push URL");
        return 2;
    }
    if (options.format && !options.output) {
        complain("--format", "has no effect without -o OUT",
                 "the URL of --push decides in which format a profile is sent");
        return 2;
    }
    if (options.sources && !is_page(&options)) {
        complain("--sources", "has no effect", "only a page (-o FILE.html) shows source files");
        return 2;
    }
    if (options.sources && !sources_check(options.sources))
        return 2;
    if (push.url ? !push_check(self->name, &push)
                 : !labels_have_a_place(self->name, &options, &push))
        return 2;
    if (options.output && complain_of_input(options.output, operands.list, 1))
        return 2;
    _cleanup_(buf_release) struct buf named = BUF(256);
    if (options.format)
        buf_printf(&named, ".%s", options.format + (*options.format == '.'));
    const char *as = named.len ? buf_str(&named) : NULL;
    if (options.output &&
        (!replaced_check(options.output, as) || !replaced_check_dump(options.output)))
        return 2;
    if (options.sources)
        sources_note_without_effect(options.sources, operands.list, 1);
    if (options.output)
        replaced_note(options.output);
    status = options.output
                 ? convert(&selection, operands.list[0], options.output, &options, push.labels)
                 : 0;
    if (options.output && status == 0)
        replaced_announce(options.output);
    return status || !push.url ? status
                               : push_file(&push, &selection, operands.list[0], operands.list[0]);
}

const struct command command_convert = {
    .name = "convert",
    .run = cmd_convert,
    .operands = "FILE",
    .min_operands = 1,
    .max_operands = 1,
    .summary = "turn a recording, or a part of it, into another format",
    .related = "report serve run collect",
    .description =
        "Use it to open a recording in another tool, to pass on a part of it, or to send it to "
        "a profiling backend.\n\n"
        "Writes a recording, or the selected part of it, in another format. The extension of the "
        "output picks the format. With --push it is sent to a profiling backend: as OTLP over HTTP "
        "to a path that ends in "
        "/v1development/profiles, as a Pyroscope upload to one that ends in /ingest (as pprof "
        "with ?format=pprof, otherwise as JFR). otlp+http://HOST:PORT and "
        "pyroscope+http://HOST:PORT stand for these paths.",
    .caveats =
        "Only .jfr holds everything. .collapsed, .pb.gz and .hprof hold stacks and their "
        "weights, .hprof.txt also the counts of calls, .otlp also requests; .pftrace, .json and"
        " .trcxml hold the waits of threads, the first two also pauses for collections. A note "
        "names each kind of data that the output lacks, and the formats that hold it.",
    .examples = "  jvmscope convert app.jfr -o app.html             flame graph and table, one "
                "file, works offline\n"
                "  jvmscope convert app.jfr -o app.pb.gz            for pprof\n"
                "  jvmscope convert app.jfr -o app.otlp             for OpenTelemetry\n"
                "  OTEL_SERVICE_NAME=shop jvmscope convert --push "
                "http://localhost:4318/v1development/profiles app.jfr\n"
                "  jvmscope convert --thread main app.jfr -o main.collapsed\n"
                "  jvmscope convert app.jfr -o app.hprof.txt        HPROF's text; .hprof for its "
                "binary records\n"
                "  jvmscope convert --from 5s app.jfr -o part.jfr   a part of the recording\n"
                "  jvmscope convert app.jfr -o app.pftrace          threads for Perfetto; .json "
                "for chrome://tracing,\n"
                "                                                   .trcxml for the thread "
                "profiler of TPTP\n",
    .format = format_row,
    .sets = convert_sets,
};
