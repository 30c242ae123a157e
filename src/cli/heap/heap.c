/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/heap/heap.h"

#include "base/file.h"
#include "base/progress.h"
#include "cli/answer.h"
#include "cli/commands.h"
#include "cli/replaced.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* Returns a description of why a dump could not be read. */
static const char *heap_why(int error)
{
    switch (error) {
    case -EBADMSG:
        return "this is not a heap dump (it does not begin with JAVA PROFILE)";
    case -EINVAL:
        return "the HPROF version or the size of ids is invalid";
    case -ENOTSUP:
        return "HPROF's text format; the verbs of heap read binary dumps";
    case -ENOMSG:
        return "an HPROF file without a heap dump in it";
    case -ERANGE:
        return "the file has fewer dumps";
    case -EFBIG:
        return "it needs a larger working file than the limit allows (ulimit -f)";
    case -EMSGSIZE:
        return "it unpacks to more than 300 times its size or to more than a terabyte";
    case -ENOSPC:
        return "its working files would fill the disk (TMPDIR names another place)";
    default:
        return strerror(-error);
    }
}

/* Opens a dump and counts everything in it. Returns 0, or the exit status after a complaint. */
static int heap_open_dump(struct heap_dump **ret, const char *path, const struct heap_options *o)
{
    struct heap_dump *d;
    int error = heap_dump_open(&d, path, (int)o->dump - 1);
    if (error)
        return complain(path, "cannot read", heap_why(error));
    error = heap_dump_survey(d);
    if (error) {
        heap_dump_free(d);
        return complain(path, "cannot read", heap_why(error));
    }
    *ret = d;
    return 0;
}

struct steps {
    struct progress progress;
    bool started;
};

static void show_step(void *ctx, const char *what)
{
    struct steps *s = ctx;
    if (s->started)
        progress_end(&s->progress);
    progress_start(&s->progress, what);
    progress_update(&s->progress, 0, 0);
    s->started = true;
}

int heap_open_index(struct heap **ret, const char *path, const struct heap_options *o)
{
    struct steps steps = {0};
    const struct heap_settings settings = {.index = o->index,
                                           .rebuild = o->rebuild,
                                           .strong = o->strong,
                                           .memory = o->memory,
                                           .which = (int)o->dump - 1,
                                           .step = show_step,
                                           .ctx = &steps};
    int error = heap_open(ret, path, &settings);
    if (steps.started)
        progress_end(&steps.progress);
    if (error == -EEXIST) {
        _cleanup_(buf_release) struct buf name = BUF(1 << 16);
        buf_printf(&name, "%s%s", o->index ? o->index : path, o->index ? "" : ".heapidx");
        return complain(buf_str(&name), "the file exists and is not an index",
                        "--index names another file to keep the index in");
    }
    if (error == 0 && o->index && (*ret)->unkept)
        complain(o->index, "note: the index is not kept", "the file cannot be written");
    return error ? complain(path, "cannot analyse", heap_why(error)) : 0;
}

int heap_show(const struct answer *a, const struct heap_options *o)
{
    _cleanup_(buf_release) struct buf b = BUF((size_t)4 << 30);
    bool html = o->output && file_name_ends_in(o->output, ".html");
    if (o->output && !html && !file_name_ends_in(o->output, ".json")) {
        complain(o->output, "not written", "the name must end in .html or .json");
        return 2;
    }
    if (html && o->json) {
        complain("--json", "no effect on a page",
                 "name a file that ends in .json, or leave out -o");
        return 2;
    }
    if (a->error)
        return complain(NULL, "heap", strerror(-a->error));
    if (!o->json && !o->output) {
        answer_print(a, stdout);
        return 0;
    }
    int error = html ? answer_html(a, &b) : answer_json(a, &b);
    if (!error && o->output) {
        _cleanup_(out_file_release) struct out_file out = OUT_FILE;
        replaced_note(o->output);
        error = out_file_open(&out, o->output);
        if (!error)
            error = out_file_write(&out, b.data, b.len);
        if (!error)
            error = out_file_commit(&out);
        if (!error)
            replaced_announce(o->output);
    } else if (!error) {
        fputs(buf_str(&b), stdout);
        error = ferror(stdout) ? -EIO : 0;
    }
    return error ? complain(o->output, "not written", strerror(-error)) : 0;
}

static int run_verb(const struct command *self, const struct heap_options *o,
                    const struct operands *operands)
{
    const char *file = operands->list[0];
    const struct heap_settings settings = {.index = o->index};
    _cleanup_(heap_freep) struct heap *h = NULL;
    _cleanup_(heap_dump_freep) struct heap_dump *d = NULL;
    bool survey = self->heap_survey && !o->retained && !o->strong && !o->rebuild &&
                  !heap_index_exists(file, &settings);
    int status = survey ? heap_open_dump(&d, file, o) : heap_open_index(&h, file, o);
    if (status)
        return status;
    _cleanup_(answer_release) struct answer a = {.title = file};
    const struct heap_call call = {
        h, survey ? d : h->dump, o, operands->list + 1, operands->count - 1, &a};
    heap_note_damage(&a, call.dump);
    status = self->heap_answer(&call);
    if (a.refusal)
        complain(NULL, a.refusal, NULL);
    return status ? status : heap_show(&a, o);
}

/* Runs a verb whose row has `heap_answer`: opens the dump, asks, and shows the answer. */
static int answer_verb(const struct command *self, int argc, char **argv)
{
    struct heap_options o = {0};
    struct operands operands;
    int status;
    if (!args_parse(self, ARGS({NULL, &o}), argc, argv, &operands, &status))
        return status;
    const char *file = operands.list[0];
    if (operands.count > 1 && access(file, F_OK) < 0 && access(operands.list[1], F_OK) == 0) {
        complain(file, "no such file", "the heap dump comes first, then what is asked about");
        return 2;
    }
    if (o.strong && strcmp(self->name, "heap strings") == 0 && !o.find) {
        complain("--strong", "has no effect without --find",
                 "only the strings that --find lists have retained sizes");
        return 2;
    }
    if (o.output && complain_of_input(o.output, operands.list, 1))
        return 2;
    if (o.output && !replaced_check(o.output, NULL))
        return 2;
    return run_verb(self, &o, &operands);
}

/* `heap dump` needs a VM and `heap diff` needs two files, so the page offers neither. */
static const struct command *const verbs[] = {
    &heap_verb_dump,
#define VERB(name) &heap_verb_##name,
#include "answers/heap/verb_list.h"
#include "cli/replaced.h"
#undef VERB
    &heap_verb_diff,
    NULL,
};

const struct command command_heap = {
    .name = "heap",
    .verbs = verbs,
    .run_verb = answer_verb,
    .summary = "show what a heap dump contains, and what holds it in memory",
    .related = "inspect serve report",
    .description =
        "Use it to find out why memory fills up: what holds it, and since when. *heap dump* "
        "makes a dump of a running VM; the other verbs read dumps of any HotSpot, also those of"
        " *jmap* and of *-XX:+HeapDumpOnOutOfMemoryError*. The first one that reads a dump "
        "makes an index next to it.",
    .caveats =
        "Taking a dump stops the program, for a tenth to a quarter of a second for each million"
        " objects.",
};
