/* SPDX-License-Identifier: Apache-2.0 */
#include "page/members.h"

#include "answers/calls.h"
#include "answers/coverage.h"
#include "answers/requests/requests.h"

#include "page/heap.h"
#include "profile/losses.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

/* A file whose members are written. */
struct more {
    const char *path, *sources;
    bool served;
    struct request_fields *fields;
};

/* Writes the member if the file has data for it. Returns 1 if it has, 0 if not, or -ENOMEM. */
static int member(struct json *j, const char *key, const struct more *s,
                  int (*put)(const struct more *s, struct json *j))
{
    _cleanup_(buf_release) struct buf part = BUF(SIZE_MAX / 4);
    int r = put(s, &(struct json){.out = &part});
    if (r < 0)
        return r == -ENOMEM ? r : 0;
    json_key(j, key);
    json_raw(j, buf_str(&part), part.len);
    r = buf_error(&part);
    return r < 0 ? r : 1;
}

static int put_trace(const struct more *s, struct json *j)
{
    const struct call_filter all = {.limit = PAGE_CALLS};
    return calls_page_json(s->path, &all, j);
}

static int put_requests(const struct more *s, struct json *j)
{
    return requests_page_json(s->path, j, s->fields);
}

static int put_coverage(const struct more *s, struct json *j)
{
    return coverage_page_json(s->path, s->sources, j);
}

/*
 * A dump that cannot be analysed has no view of the heap, but a profile in the same file may have
 * one.
 */
static int put_heap(const struct more *s, struct json *j)
{
    const struct heap_settings settings = {.which = -1};
    _cleanup_(heap_freep) struct heap *h = NULL;
    int r = heap_open(&h, s->path, &settings);
    if (r < 0)
        return r;
    if (!s->served)
        return page_heap(h, j);
    json_begin_object(j); /* the page requests it from the server */
    json_end_object(j);
    return 0;
}

/* Each kind of data in a recording becomes a member of the page's JSON. */
static const struct {
    const char *key;
    int (*put)(const struct more *s, struct json *j);
} members[] = {
    {"trace", put_trace},
    {"requests", put_requests},
    {"coverage", put_coverage},
};

int page_members(struct buf *out, const char *path, const struct profile *profile,
                 const char *sources, bool served, struct request_fields *ret_fields)
{
    struct json j = {.out = out};
    const struct more s = {path, sources, served, ret_fields};
    const char *extension = strrchr(path, '.');
    if (extension && strcasecmp(extension, ".hprof") == 0)
        return member(&j, "heap", &s, put_heap);
    /* A file that a VM still has open through a descriptor may be a recording too. */
    if (extension && strcasecmp(extension, ".jfr") != 0 && strncmp(path, "/proc/", 6) != 0)
        return 0;
    losses_json_of_file(path, NULL, !profile || profile->lost_any, &j);
    if (profile && profile->only_samples)
        return 0;

    int shown = 0;
    for (size_t i = 0; i < ARRAY_SIZE(members); i++) {
        int r = member(&j, members[i].key, &s, members[i].put);
        if (r < 0)
            return r;
        shown |= r;
    }
    return shown;
}

enum load_detail page_detail(const char *path)
{
    enum { LARGE = 1 << 30 };

    struct stat st;
    return stat(path, &st) == 0 && st.st_size <= LARGE && requests_any(path) ? LOAD_SAMPLES
                                                                             : LOAD_CELLS;
}
