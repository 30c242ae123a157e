/* SPDX-License-Identifier: Apache-2.0 */
#include "export/coverage.h"
#include "base/file.h"
#include "base/json.h"
#include "cli/builtin.h"
#include "cli/coverage.h"
#include "cli/text.h"
#include "jfr/reader.h"

#include <errno.h>
#include <string.h>

struct cover_options {
    bool json, methods;
    const char *output, *sources;
};

static const struct arg coverage_args[] = {
    {"--output", 'o', ARG_TEXT, offsetof(struct cover_options, output), "FILE",
     "write it there: .info is lcov's form, .xml Cobertura's, .html a page"},
    {"--sources", 's', ARG_TEXT, offsetof(struct cover_options, sources), "DIR", "where source files are, for .html and .info"},
    {"--methods", 0, ARG_FLAG, offsetof(struct cover_options, methods), NULL, "list methods too"},
    {"--json", 0, ARG_FLAG, offsetof(struct cover_options, json), NULL, "print JSON"},
    {0},
};

static const struct arg_set coverage_set = {"What is shown", coverage_args};
const struct arg_set *const coverage_sets[] = {&coverage_set, NULL};

static int read_recording(struct coverage *c, const char *path, bool *ret_any)
{
    static const struct rec_select wanted[] = {{"jvmscope.Coverage", 1}, {0}};
    _cleanup_(recording_closep) struct recording *r = NULL;
    const char *why = NULL;
    int e = recording_open(&r, path, &why);
    if (e < 0)
        return complain(path, "cannot read", why);
    e = recording_select(r, wanted);
    struct rec_event event;
    while (e >= 0 && (e = recording_next(r, &event)) > 0) {
        const struct rec_object *o = &event.object;
        e = coverage_add(c, rec_string(o, "className", NULL), rec_string(o, "source", NULL), rec_string(o, "method", NULL),
                         rec_string(o, "descriptor", NULL), rec_string(o, "lines", NULL), rec_string(o, "branches", NULL));
        *ret_any = true;
        if (e == -EBADMSG) {
            complain(path, "note", "a coverage event that is damaged is left out");
            e = 0;
        }
    }
    return e < 0 ? complain_errno(path, "cannot read", e) : 0;
}

static void print_sum(const char *name, const struct cover_sum *s)
{
    printf("%5.1f %%  %6llu/%-6llu  %5llu/%-5llu  %6llu/%-6llu  ",
           s->lines ? 100.0 * (double)s->lines_hit / (double)s->lines : 100, (unsigned long long)s->lines_hit,
           (unsigned long long)s->lines, (unsigned long long)s->methods_hit, (unsigned long long)s->methods,
           (unsigned long long)s->branches_hit, (unsigned long long)s->branches);
    print_text(stdout, (struct str){name, strlen(name)});
    putchar('\n');
}

static void print_body(const struct cover_body *b)
{
    size_t hit = 0, taken = 0;
    for (size_t i = 0; i < b->starts.len; i++)
        hit += b->starts.data[i].hit;
    for (size_t i = 0; i < b->edges.len; i++)
        taken += b->edges.data[i].hit;
    printf("%5.1f %%  %6zu/%-6zu  %11s  %6zu/%-6zu      ", b->starts.len ? 100.0 * (double)hit / (double)b->starts.len : 100,
           hit, b->starts.len, "", taken, b->edges.len);
    print_text(stdout, (struct str){b->name, strlen(b->name)});
    print_text(stdout, (struct str){b->descriptor, strlen(b->descriptor)});
    putchar('\n');
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
        for (size_t k = 0; methods && k < class->bodies.len; k++)
            print_body(&c->bodies.data[class->bodies.data[k]]);
    }
    return r;
}

static void put_sum(struct json *j, const struct cover_sum *s)
{
    const struct {
        const char *key;
        uint64_t value;
    } members[] = {
        {"lines", s->lines},       {"lines_hit", s->lines_hit},       {"methods", s->methods}, {"methods_hit", s->methods_hit},
        {"branches", s->branches}, {"branches_hit", s->branches_hit}, {"classes", s->classes}, {"classes_hit", s->classes_hit}};

    for (size_t i = 0; i < ARRAY_SIZE(members); i++) {
        json_key(j, members[i].key);
        json_u64(j, members[i].value);
    }
}

static int put_class(struct json *j, const struct coverage *c, const struct cover_class *class)
{
    struct cover_sum s = {0};
    _cleanup_free_ struct cover_line *lines = NULL;
    size_t n = 0;
    int r = coverage_sum(c, class, &s);
    if (r == 0)
        r = coverage_lines(c, class, &lines, &n);
    if (r < 0)
        return r;
    json_object(j);
    json_key(j, "class");
    json_string(j, class->name);
    json_key(j, "source");
    json_string(j, class->source);
    put_sum(j, &s);
    json_key(j, "by_line");
    json_array(j);
    for (size_t i = 0; i < n; i++) {
        json_object(j);
        json_key(j, "line");
        json_u64(j, lines[i].line);
        json_key(j, "hit");
        json_bool(j, lines[i].hit > 0);
        if (lines[i].edges) {
            json_key(j, "branches");
            json_u64(j, lines[i].edges);
            json_key(j, "taken");
            json_u64(j, lines[i].taken);
        }
        json_object_end(j);
    }
    json_array_end(j);
    json_key(j, "by_method");
    json_array(j);
    for (size_t i = 0; i < class->bodies.len; i++) {
        const struct cover_body *b = &c->bodies.data[class->bodies.data[i]];
        json_object(j);
        json_key(j, "method");
        json_string(j, b->name);
        json_key(j, "descriptor");
        json_string(j, b->descriptor);
        json_key(j, "line");
        json_u64(j, cover_body_line(b));
        json_key(j, "hit");
        json_bool(j, cover_body_hit(b));
        json_object_end(j);
    }
    json_array_end(j);
    json_object_end(j);
    return 0;
}

/* The members of the object that is open. */
static int put_coverage(struct json *j, const struct coverage *c)
{
    struct cover_sum s;
    int r = coverage_sum(c, NULL, &s);
    if (r < 0)
        return r;
    json_key(j, "total");
    json_object(j);
    put_sum(j, &s);
    json_object_end(j);
    json_key(j, "classes");
    json_array(j);
    for (size_t i = 0; r == 0 && i < c->classes.len; i++)
        r = put_class(j, c, &c->classes.data[i]);
    json_array_end(j);
    return r;
}

static int print_json(const struct coverage *c)
{
    _cleanup_(buf_release) struct buf out = BUF(SIZE_MAX / 4);
    struct json j = {.out = &out};
    json_object(&j);
    int r = put_coverage(&j, c);
    json_object_end(&j);
    r = r < 0 ? r : buf_error(&out);
    if (r == 0)
        puts(buf_str(&out));
    return r;
}

/* The texts of the source files that are found, by the file's place below the folder. */
static void put_sources(struct json *j, const struct coverage *c, const char *folder)
{
    size_t room = COVERAGE_PAGE_SOURCES;
    _cleanup_free_ char *before = NULL;
    json_key(j, "texts");
    json_object(j);
    for (size_t i = 0; i < c->classes.len; i++) {
        _cleanup_free_ char *path = cover_source_path(folder, &c->classes.data[i]);
        char *name = cover_source_path(NULL, &c->classes.data[i]);
        struct file_map text;
        /* The classes of one file mostly stand together. */
        bool again = name && before && strcmp(name, before) == 0;
        free(before);
        before = name;
        if (!path || !name || again || file_map_open(&text, path) < 0)
            continue;
        if (text.len <= room) {
            room -= text.len;
            json_key(j, name);
            json_string_n(j, (const char *)text.data, text.len);
        }
        file_map_release(&text);
    }
    json_object_end(j);
}

int coverage_page_json(const char *path, const char *sources, struct json *j)
{
    _cleanup_(coverage_release) struct coverage c = {0};
    bool any = false;
    if (read_recording(&c, path, &any))
        return -EIO;
    if (!any)
        return -ENOENT;
    coverage_sort(&c);
    json_object(j);
    int r = put_coverage(j, &c);
    if (r == 0 && sources)
        put_sources(j, &c, sources);
    json_object_end(j);
    return r;
}

static int write_output(const struct coverage *c, const struct cover_options *o)
{
    static const struct {
        const char *extension;
        int (*write)(const struct coverage *c, const char *sources, FILE *out);
    } formats[] = {{".info", export_lcov}, {".xml", export_cobertura}, {".html", export_cover_html}};

    const char *extension = strrchr(o->output, '.');
    for (size_t i = 0; extension && i < ARRAY_SIZE(formats); i++) {
        if (strcmp(extension, formats[i].extension) != 0)
            continue;
        _cleanup_(out_file_release) struct out_file file = OUT_FILE;
        int r = out_file_open(&file, o->output);
        FILE *out = r < 0 ? NULL : fdopen(dup(file.fd), "w");
        if (r == 0 && !out)
            r = -errno;
        if (r == 0)
            r = formats[i].write(c, o->sources, out);
        if (out && (fflush(out) != 0 || ferror(out)) && r == 0)
            r = -errno;
        if (out)
            fclose(out);
        if (r == 0)
            r = out_file_commit(&file);
        return r < 0 ? complain_errno(o->output, "cannot write", r) : 0;
    }
    complain(o->output, "not a format of coverage", ".info, .xml and .html are");
    return 2;
}

int cmd_coverage(const struct command *self, int argc, char **argv)
{
    struct cover_options o = {0};
    struct operands operands;
    int status;
    if (!args_parse(self, (void *[]){&o}, argc, argv, &operands, &status))
        return status;
    _cleanup_(coverage_release) struct coverage c = {0};
    bool any = false;
    for (int i = 0; i < operands.count; i++) {
        status = read_recording(&c, operands.list[i], &any);
        if (status)
            return status;
    }
    if (!any)
        return complain(operands.list[0], "holds no coverage", "record it with --cover");
    coverage_sort(&c);
    if (o.output)
        return write_output(&c, &o);
    int r = o.json ? print_json(&c) : print_table(&c, o.methods);
    return r < 0 ? complain_errno(operands.list[0], "coverage", r) : 0;
}
