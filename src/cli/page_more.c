/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/page_more.h"

#include "cli/coverage.h"
#include "cli/trace.h"

#include <errno.h>
#include <string.h>

/* Puts the member in, when the file has what it is made of. */
static int member(struct json *j, const char *key, const struct export_source *s,
                  int (*put)(const struct export_source *s, struct json *j))
{
    _cleanup_(buf_release) struct buf part = BUF(SIZE_MAX / 4);
    int r = put(s, &(struct json){.out = &part});
    if (r < 0)
        return r == -ENOMEM ? r : 0;
    json_key(j, key);
    buf_bytes(j->out, part.data, part.len);
    j->comma = true;
    return buf_error(&part);
}

static int put_trace(const struct export_source *s, struct json *j)
{
    const struct trace_options all = {.limit = PAGE_CALLS};
    return trace_page_json(s->path, &all, j);
}

static int put_coverage(const struct export_source *s, struct json *j)
{
    return coverage_page_json(s->path, s->sources, j);
}

int page_more(const struct export_source *s, struct json *j)
{
    const char *extension = strrchr(s->path, '.');
    /* What a VM is still connected to through a descriptor is a recording as well. */
    if (extension && strcmp(extension, ".jfr") != 0 && strncmp(s->path, "/proc/", 6) != 0)
        return 0;
    int r = member(j, "trace", s, put_trace);
    return r < 0 ? r : member(j, "coverage", s, put_coverage);
}
