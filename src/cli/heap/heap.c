/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/heap/heap.h"

#include "base/file.h"
#include "base/progress.h"

#include <errno.h>
#include <string.h>

static const struct arg common_args[] = {
    {"--json", 0, ARG_FLAG, offsetof(struct heap_options, json), NULL, "print JSON"},
    {"--output", 'o', ARG_TEXT, offsetof(struct heap_options, output), "FILE",
     "write a page of HTML (.html) or JSON (.json)"},
    {"--limit", 'n', ARG_COUNT, offsetof(struct heap_options, limit), "N",
     "rows of each table (as a rule 12 to 100 on a screen, and all in a file)"},
    {"--dump", 0, ARG_COUNT, offsetof(struct heap_options, dump), "N",
     "which dump of a file with several, counted from 1 (the last)"},
    {0},
};

const struct arg_set heap_common_set = {"What is shown", common_args};

static const struct arg index_args[] = {
    {"--index", 0, ARG_TEXT, offsetof(struct heap_options, index), "FILE",
     "where to keep the index (the dump's name with .heapidx)"},
    {"--rebuild", 0, ARG_FLAG, offsetof(struct heap_options, rebuild), NULL,
     "build the index anew"},
    {"--strong", 0, ARG_FLAG, offsetof(struct heap_options, strong), NULL,
     "soft, weak, final and phantom references retain nothing (they do in Eclipse MAT)"},
    {"--memory", 0, ARG_SIZE, offsetof(struct heap_options, memory), "SIZE",
     "anonymous memory for building the index; the rest goes to unlinked files in /var/tmp"},
    {0},
};

const struct arg_set heap_index_set = {"The index", index_args};

const char *heap_why(int error)
{
    switch (error) {
    case -EBADMSG:
        return "this is no heap dump (it does not begin with JAVA PROFILE)";
    case -EINVAL:
        return "an HPROF version or id size that does not exist";
    case -ENOMSG:
        return "an HPROF file without a heap dump in it";
    case -ERANGE:
        return "there are fewer dumps in it";
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

int heap_open_dump(struct heap_dump **ret, const char *path, const struct heap_options *o)
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
    return error ? complain(path, "cannot analyse", heap_why(error)) : 0;
}

uint64_t heap_rows(const struct heap_options *o, uint64_t on_screen, uint64_t in_file)
{
    return o->limit ? o->limit : o->json || o->output ? in_file : on_screen;
}

void heap_note_damage(struct page *p, const struct heap_dump *d)
{
    if (d->cut)
        page_note(p,
                  "PARTIAL: the dump is cut short or damaged at byte %llu of %llu; what could be "
                  "read is shown.",
                  (unsigned long long)d->garbage_at, (unsigned long long)d->len);
    if (d->dumps > 1)
        page_note(p, "The file holds %u dumps; this is number %u (--dump N).", d->dumps,
                  d->chosen + 1);
}

int heap_answer(const struct page *p, const struct heap_options *o)
{
    _cleanup_(buf_release) struct buf b = BUF((size_t)4 << 30);
    size_t n = o->output ? strlen(o->output) : 0;
    bool html = n > 5 && strcmp(o->output + n - 5, ".html") == 0;
    if (o->output && !html && !(n > 5 && strcmp(o->output + n - 5, ".json") == 0)) {
        complain(o->output, "not written", "the name must end in .html or .json");
        return 2;
    }
    if (p->error)
        return complain(NULL, "heap", strerror(-p->error));
    if (!o->json && !o->output) {
        page_print(p, stdout);
        return 0;
    }
    int error = html ? page_html(p, &b) : page_json(p, &b);
    if (!error && o->output) {
        _cleanup_(out_file_release) struct out_file out = OUT_FILE;
        error = out_file_open(&out, o->output);
        if (!error)
            error = out_file_write(&out, b.data, b.len);
        if (!error)
            error = out_file_commit(&out);
    } else if (!error) {
        fputs(buf_str(&b), stdout);
        error = ferror(stdout) ? -EIO : 0;
    }
    return error ? complain(o->output, "not written", strerror(-error)) : 0;
}
