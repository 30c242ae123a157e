/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/heap.h"

#include "base/file.h"

#include <errno.h>
#include <string.h>

static const struct arg common_args[] = {
    {"--json", 0, ARG_FLAG, offsetof(struct heap_options, json), NULL, "print JSON"},
    {"--output", 'o', ARG_TEXT, offsetof(struct heap_options, output), "FILE", "write a page of HTML (.html) or JSON (.json)"},
    {"--limit", 'n', ARG_NUMBER, offsetof(struct heap_options, limit), "N", "rows of a table"},
    {"--dump", 0, ARG_NUMBER, offsetof(struct heap_options, dump), "N",
     "which dump of a file that holds several, from 1 (the last)"},
    {0},
};

const struct arg_set heap_common_set = {"What is shown", common_args};

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
    case -ENOSPC:
        return "unpacking it would fill the disk (TMPDIR names another place)";
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

void heap_note_damage(struct page *p, const struct heap_dump *d)
{
    if (d->cut)
        page_note(p, "PARTIAL: the dump is cut short or damaged at byte %llu of %llu; what could be read is shown.",
                  (unsigned long long)d->garbage_at, (unsigned long long)d->len);
    if (d->dumps > 1)
        page_note(p, "The file holds %u dumps; this is number %u (--dump N).", d->dumps, d->chosen + 1);
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
            error = write_all(out.fd, b.data, b.len);
        if (!error)
            error = out_file_commit(&out);
    } else if (!error && fwrite(b.data, 1, b.len, stdout) != b.len) {
        error = -EIO;
    }
    return error ? complain(o->output, "not written", strerror(-error)) : 0;
}
