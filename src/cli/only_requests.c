/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/only_requests.h"

#include "base/file.h"
#include "cli/contents.h"
#include "cli/selected.h"
#include "jfr/ring_read.h"
#include "options/options.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static struct str name_at(const void *context, size_t i)
{
    const struct requests *r = context;
    const char *s = requests_text(r, r->names.data[i].name);
    return (struct str){s, strlen(s)};
}

int only_requests_check_names(const struct requests *r, const char *path, const char *pattern,
                              bool part)
{
    return selected_by_name(
        path, part ? "no request that is selected has this name" : "no request has this name",
        pattern, name_at, r, r->names.len);
}

int only_requests_missing(const char *path)
{
    return contents_complain(path, (const char *const[]){option_table[OPT_REQUESTS].name, NULL},
                             "holds no requests", "record with --requests");
}

/* Other formats distinguish samples, but do not say when each request ran. */
static bool is_recording(const char *path)
{
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
    char magic[4];
    return fd < 0 || pread(fd, magic, sizeof(magic), 0) != sizeof(magic) ||
           memcmp(magic, "FLR", sizeof(magic)) == 0 || jfr_is_ring(fd);
}

/* Returns whether the recording, which can be read, has requests of any name. */
static bool has_requests(const char *path)
{
    _cleanup_(buf_release) struct buf why = BUF(4096);
    _cleanup_(requests_release) struct requests r = {0};
    return requests_load(&r, path, &(struct request_filter){0}, &why) == 0 && r.list.len;
}

int only_requests_times(const struct only_requests *o, const char *path, struct request_times *ret)
{
    _cleanup_(buf_release) struct buf why = BUF(4096);
    _cleanup_(requests_release) struct requests r = {0};
    struct group_options slow = {.share = o->slowest};
    int e = requests_load(&r, path, &(struct request_filter){.name = o->name}, &why);
    if (e < 0 && !is_recording(path))
        return complain(path, "--request and --slowest need a recording", "a .jfr with requests");
    if (e < 0)
        return why.len ? complain(path, "cannot read", buf_str(&why))
                       : complain_errno(path, "cannot read", e);
    if (!r.list.len)
        return o->name && has_requests(path) ? complain(path, "no request has this name", o->name)
                                             : only_requests_missing(path);
    if (only_requests_check_names(&r, path, o->name, false))
        return 1;
    e = request_times(&r, o->slowest > 0 ? &slow : NULL, ret);
    return e < 0 ? complain_errno(path, "cannot answer", e) : 0;
}

int only_requests_keep(const struct only_requests *o, const char *path, struct profile *p)
{
    _cleanup_(request_times_release) struct request_times times = {0};
    size_t all = 0;
    int status = only_requests_times(o, path, &times);
    if (status)
        return status;
    /* Which threads have samples is shown; it changes with the selection. */
    for (size_t i = 0; i < p->threads.len; i++)
        p->threads.data[i].metrics = 0;
    for (int m = 0; m < PROFILE_METRICS; m++) {
        struct profile_series *s = &p->series[m];
        size_t kept = 0;
        for (size_t i = 0; i < s->samples.len; i++) {
            const struct profile_sample *sample = &s->samples.data[i];
            struct profile_thread *thread = &p->threads.data[sample->thread];
            if (!request_times_hold(&times, thread->id,
                                    (int64_t)(p->start_epoch_ns + sample->time_ns)))
                continue;
            s->samples.data[kept++] = *sample;
            thread->metrics |= 1u << m;
        }
        s->samples.len = kept;
        all += kept;
    }
    /* Figures without a time of their own cannot be divided among requests. */
    p->calls.len = p->left.len = p->sites.len = p->cpu_times.len = p->vm.samples.len = 0;
    return all ? 0 : complain(path, "no sample lies in a selected request", NULL);
}
