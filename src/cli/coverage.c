/* SPDX-License-Identifier: Apache-2.0 */
#include "export/coverage.h"
#include "answers/coverage.h"
#include "base/file.h"
#include "base/json.h"
#include "base/parse.h"
#include "cli/commands.h"
#include "cli/contents.h"
#include "cli/cover_classes.h"
#include "cli/losses.h"
#include "cli/replaced.h"
#include "cli/sources.h"
#include "options/signature.h"

#include <errno.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

struct cover_options {
    bool json, methods;
    const char *output, *sources, *classes;
};

static const struct arg coverage_args[] = {
    {"--output", 'o', ARG_TEXT, offsetof(struct cover_options, output), "FILE",
     "write the coverage to this file: .info is lcov's format, .xml is Cobertura's, .html is a "
     "page"},
    {"--sources", 's', ARG_LIST, offsetof(struct cover_options, sources), "DIR",
     "where source files are, for the files of -o"},
    {"--classes", 0, ARG_LIST, offsetof(struct cover_options, classes), "PATH",
     "also count the classes of this folder, jar or class file that were never loaded"},
    {"--methods", 0, ARG_FLAG, offsetof(struct cover_options, methods), NULL,
     "list methods too; JSON and the files of -o always have them"},
    {"--json", 0, ARG_FLAG, offsetof(struct cover_options, json), NULL, "print JSON"},
    {0},
};

static const struct arg_set coverage_set = {"What is shown", coverage_args};
static const struct arg_set *const coverage_sets[] = {&coverage_set, NULL};

/*
 * Adds what a recording contains, and reports what it lost. Returns 0, or the exit status after a
 * complaint.
 */
static int read_recording(struct coverage *c, const char *path, bool several,
                          struct coverage_found *ret)
{
    int status = 0;
    _cleanup_(losses_release) struct losses own = {0};
    const char *why = NULL;
    uint64_t damaged = ret->damaged;
    bool any = ret->any, asked = ret->asked;
    ret->any = ret->asked = false;
    int r = coverage_read(c, path, ret, &own, &why);
    if (r < 0)
        return why ? complain(path, "cannot read", why) : complain_errno(path, "cannot read", r);
    for (; damaged < ret->damaged; damaged++)
        complain(path, "note", "a coverage event that is damaged is left out");
    losses_report(path, &own, losses_of_coverage);
    r = losses_merge(&ret->losses, &own);
    if (r == 0 && !ret->any)
        status = complain(path, "holds no coverage",
                          !ret->asked ? "record it with --cover"
                          : ret->part ? CONTENTS_OF_A_PART
                                      : "no class that is covered was loaded before the recording "
                                        "ended or was cut");
    /*
     * A run in which no class was reached adds nothing to the others; any other file is a mistake.
     */
    status = ret->asked && several ? 0 : status;
    ret->any |= any;
    ret->asked |= asked;
    return status ? status : r < 0 ? complain_errno(path, "cannot read", r) : 0;
}

/* Adds classes that were never loaded. Returns 0, or the exit status after a complaint. */
static int add_classes(struct coverage *c, const char *path)
{
    size_t bad = 0;
    int r = cover_classes_add(c, path, &bad);
    if (r == -EBADMSG)
        return complain(path, "cannot read", "not a folder, jar or class file");
    if (r < 0)
        return complain_errno(path, "cannot read", r);
    if (bad)
        fprintf(stderr, "jvmscope: %s: note: left out %s that cannot be read\n", path,
                COUNT_TEXT(bad, "class files"));
    return 0;
}

static void print_sum(const char *name, const struct cover_sum *s)
{
    printf("%5.1f %%  %6llu/%-6llu  %5llu/%-5llu  %6llu/%-6llu  ",
           s->lines ? 100.0 * (double)s->lines_hit / (double)s->lines : 100,
           (unsigned long long)s->lines_hit, (unsigned long long)s->lines,
           (unsigned long long)s->methods_hit, (unsigned long long)s->methods,
           (unsigned long long)s->branches_hit, (unsigned long long)s->branches);
    print_text(stdout, (struct str){name, strlen(name)});
    putchar('\n');
}

static int print_body(const struct cover_body *b)
{
    struct cover_sum s = {0};
    int r = coverage_add_body_sum(b, &s);
    if (r < 0)
        return r;
    printf("%5.1f %%  %6llu/%-6llu  %11s  %6llu/%-6llu      ",
           s.lines ? 100.0 * (double)s.lines_hit / (double)s.lines : 100,
           (unsigned long long)s.lines_hit, (unsigned long long)s.lines, "",
           (unsigned long long)s.branches_hit, (unsigned long long)s.branches);
    _cleanup_(buf_release) struct buf method = BUF(1 << 18);
    signature_put(&method, b->name, b->descriptor);
    print_text(stdout, (struct str){buf_str(&method), method.len});
    putchar('\n');
    return 0;
}

static int print_table(const struct coverage *c, bool methods)
{
    struct cover_sum s;
    int r = coverage_sum(c, NULL, &s);
    printf("%7s  %13s  %11s  %13s  %s\n", "LINES", "LINES RUN", "METHODS", "BRANCHES", "CLASS");
    if (r == 0)
        print_sum("(all)", &s);
    for (size_t i = 0; r == 0 && i < c->classes.len; i++) {
        const struct cover_class *class = &c->classes.data[i];
        r = coverage_sum(c, class, &s);
        if (r < 0)
            break;
        print_sum(class->name, &s);
        for (size_t k = 0; methods && k < class->bodies.len && r == 0; k++)
            r = print_body(&c->bodies.data[class->bodies.data[k]]);
    }
    return r;
}

static int print_json(const struct coverage *c, const struct losses *l)
{
    _cleanup_(buf_release) struct buf out = BUF(SIZE_MAX / 4);
    struct json j = {.out = &out};
    json_begin_object(&j);
    int r = coverage_json(c, &j);
    losses_json(l, losses_of_coverage, &j);
    json_end_object(&j);
    r = r < 0 ? r : buf_error(&out);
    if (r == 0)
        puts(buf_str(&out));
    return r;
}

/* from: the recording, or the first of several. */
static int write_output(const struct coverage *c, const struct cover_options *o, const char *from)
{
    static const struct {
        const char *extension;
        int (*write)(const struct coverage *c, const char *sources, FILE *out);
    } formats[] = {
        {".info", export_lcov}, {".xml", export_cobertura}, {".html", export_cover_html}};

    const char *extension = strrchr(o->output, '.');
    for (size_t i = 0; extension && i < ARRAY_SIZE(formats); i++) {
        if (strcasecmp(extension, formats[i].extension) != 0)
            continue;
        _cleanup_(out_file_release) struct out_file file = OUT_FILE;
        replaced_note(o->output);
        int r = out_file_open_like(&file, o->output, from);
        FILE *out = r < 0 ? NULL : out_file_stream(&file);
        if (out) {
            r = formats[i].write(c, o->sources, out);
            fclose(out);
        } else if (r == 0) {
            r = -ENOMEM;
        }
        if (r == 0 || file.error)
            r = out_file_commit(&file);
        if (r < 0)
            return complain_errno(o->output, "cannot write", r);
        replaced_announce(o->output);
        return 0;
    }
    complain(o->output, "not a format of coverage", ".info, .xml and .html are");
    return 2;
}

/* Refuses options that have no effect together. */
static bool check_options(const char *command, const struct cover_options *o)
{
    if (o->sources && !o->output)
        complain(command, "--sources has no effect without -o FILE", NULL);
    else if (o->output && o->json)
        complain(command, "--json prints, and -o writes a file: give one of them", NULL);
    else
        return !o->sources || sources_check(o->sources);
    return false;
}

static int cmd_coverage(const struct command *self, int argc, char **argv)
{
    struct cover_options o = {0};
    struct operands operands;
    int status;
    if (!args_parse(self, ARGS({NULL, &o}), argc, argv, &operands, &status))
        return status;
    if (!check_options(self->name, &o) ||
        (o.output && (complain_of_input(o.output, operands.list, operands.count) ||
                      !replaced_check(o.output, NULL))))
        return 2;
    _cleanup_(coverage_release) struct coverage c = {0};
    _cleanup_(coverage_found_release) struct coverage_found found = {0};
    for (int i = 0; i < operands.count; i++) {
        status = read_recording(&c, operands.list[i], operands.count > 1, &found);
        if (status)
            return status;
    }
    if (!found.any)
        return 1;
    char classes[PATH_MAX];
    for (const char *rest = o.classes; rest && file_list_next(&rest, classes);) {
        status = add_classes(&c, classes);
        if (status)
            return status;
    }
    coverage_sort(&c);
    if (o.sources)
        sources_note_none(o.sources, &c);
    if (o.output)
        return write_output(&c, &o, operands.list[0]);
    int r = o.json ? print_json(&c, &found.losses) : print_table(&c, o.methods);
    return r < 0 ? complain_errno(operands.list[0], "coverage", r) : 0;
}

const struct command command_coverage = {
    .name = "coverage",
    .run = cmd_coverage,
    .operands = "FILE ...",
    .min_operands = 1,
    .max_operands = -1,
    .summary = "show which classes, methods, lines and branches ran",
    .related = "run attach convert",
    .description =
        "Use it to see which parts of a program its tests, or its users, reach.\n\n"
        "Reads recordings made with *--cover* and adds them up: a line ran when it ran in one of "
        "them. Prints a table, or writes a file for other tools; the extension of the output picks "
        "its format.",
    .caveats =
        "Classes that were never loaded do not count unless *--classes* names them. In a "
        "recording that began in a running VM, code that ran only before it counts as not run. "
        "Figures of lines and branches need classes that were compiled with line numbers.",
    .examples = "  jvmscope run --cover -o app.jfr -- java -jar app.jar\n"
                "  jvmscope coverage app.jfr                        a table of classes\n"
                "  jvmscope coverage --sources src -o app.html a.jfr b.jfr\n",
    .sets = coverage_sets,
};
