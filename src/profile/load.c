/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/load.h"

#include "base/file.h"
#include "base/file_format.h"
#include "jfr/ring.h"
#include "wire/otlp.h"
#include "wire/unpack.h"

#include <errno.h>
#include <string.h>

/*
 * Recognizes a compressed file, OTLP, or an unpacked pprof profile, which begins with the type of
 * its values: a short message in field 1.
 */
static bool is_wire(const struct load *l)
{
    return unpack_is_packed(l->data, l->len) || otlp_is(l->data, l->len) ||
           (l->len > 6 && l->data[0] == 0x0a && l->data[1] <= 8 && l->data[2] == 0x08 &&
            l->data[4] == 0x10);
}

/* Recognizes collapsed stacks by the first line, which must end in a blank and a number. */
static bool is_collapsed(const struct load *l)
{
    const uint8_t *end = memchr(l->data, '\n', l->len);
    const uint8_t *p = end ? end : l->data + l->len;
    while (p > l->data && (p[-1] == '\r' || (p[-1] >= '0' && p[-1] <= '9')))
        p--;
    return p > l->data + 1 && p[-1] == ' ' && p != end &&
           !memchr(l->data, 0, (size_t)(p - l->data));
}

static const struct {
    enum file_format format;
    bool (*is)(const struct load *l); /* NULL: `format` decides */
    int (*load)(struct load *l);
    bool untimed; /* the samples have no times */
} formats[] = {
    {FORMAT_JFR, NULL, load_jfr, false},     {FORMAT_HPROF_TEXT, NULL, load_hprof_text, true},
    {FORMAT_HPROF, NULL, load_hprof, true},  {0, is_wire, load_wire, false},
    {0, is_collapsed, load_collapsed, true},
};

int64_t load_frame(struct profile *p, struct str label, struct str descriptor, struct str file,
                   int32_t line, enum frame_kind kind)
{
    if (label.len > 1 && label.data[0] == '[' && label.data[label.len - 1] == ']')
        kind = FRAME_MARK;
    const char *dot = kind == FRAME_MARK ? NULL : memrchr(label.data, '.', label.len);
    int64_t class_name = dot ? profile_class_name(p, label.data, (size_t)(dot - label.data)) : 0;
    const char *name = dot ? dot + 1 : label.data;
    int64_t method = class_name < 0
                         ? class_name
                         : profile_string(p, name, label.len - (size_t)(name - label.data));
    int64_t signature = profile_string(p, descriptor.data, descriptor.len),
            source = profile_string(p, file.data, file.len);
    if (method < 0 || signature < 0 || source < 0)
        return method < 0 ? method : MIN(signature, source);
    method = profile_method(p, (uint32_t)class_name, (uint32_t)method, (uint32_t)signature,
                            (uint32_t)source);
    return method < 0 ? method : profile_frame(p, (uint32_t)method, line, kind);
}

int64_t load_unlisted_node(struct profile *p)
{
    int64_t mark = profile_mark(p, "[in no row of the file]");
    return mark < 0 ? mark : profile_node(p, 0, (uint32_t)mark);
}

int load_unlisted(struct profile *p, enum profile_metric metric, uint64_t weight)
{
    if (!weight)
        return 0;
    int64_t node = load_unlisted_node(p);
    int64_t thread = node < 0 ? node : profile_thread(p, 0, "", 0);
    if (thread < 0)
        return (int)thread;
    struct profile_sample s = {
        .weight = weight, .thread = (uint32_t)thread, .node = (uint32_t)node};
    return profile_sample(p, metric, s);
}

/*
 * Adds a sample without weight if calls were counted but none of them has a time. It distinguishes
 * such a profile from one that was not recorded.
 */
static int show_calls(struct profile *p)
{
    const struct profile_series *s = &p->series[PROFILE_EXACT];
    if (s->samples.len || (!p->calls.len && !s->stated))
        return 0;
    int64_t thread = p->calls.len ? p->calls.data[0].thread : profile_thread(p, 0, "", 0);
    uint32_t node = p->calls.len ? p->calls.data[0].node : 0;
    return thread < 0
               ? (int)thread
               : profile_sample(p, PROFILE_EXACT,
                                (struct profile_sample){.thread = (uint32_t)thread, .node = node});
}

int profile_load(struct profile **ret, const char *path, enum load_detail detail,
                 const struct profile_filter *filter, struct buf *why, load_progress *progress,
                 void *context)
{
    struct file_map map = {0};
    int r = file_map_open(&map, path);
    if (r < 0)
        return r;
    struct load l = {profile_new(), map.data, true, map.len,  path,
                     detail,        filter,   why,  progress, context};
    enum file_format format = file_format_of(l.data, l.len);
    r = l.profile ? -ENOTSUP : -ENOMEM;
    if (l.profile && !l.len) {
        buf_string(why, "the file is empty");
        r = -EPROTO;
    }
    for (size_t i = 0; i < ARRAY_SIZE(formats) && r == -ENOTSUP; i++) {
        if (formats[i].is ? formats[i].is(&l) : formats[i].format == format) {
            r = formats[i].load(&l);
            for (int m = 0; m < PROFILE_METRICS && formats[i].untimed; m++)
                l.profile->series[m].untimed = true;
            break;
        }
    }
    if (r == -ENOTSUP && !why->len)
        buf_string(why, format == FORMAT_RING
                            ? JFR_RING_ADVICE
                            : "not a recording (JFR, HPROF, pprof, OTLP or collapsed stacks)");
    file_map_release(&map);
    if (r == 0)
        r = show_calls(l.profile);
    if (r < 0)
        profile_free(l.profile);
    else
        *ret = l.profile;
    return r;
}
