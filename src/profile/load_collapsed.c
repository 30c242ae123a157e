/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Collapsed stacks, one "a.B.run;a.C.work 12" per line, outermost frame first, as flame graph tools
 * exchange them.
 */
#include "profile/load.h"

#include "base/parse.h"

#include <string.h>

/* Suffixes by which other profilers mark the kind of a frame. */
static const struct {
    const char suffix[5];
    enum frame_kind kind;
} suffixes[] = {{"_[j]", FRAME_COMPILED},
                {"_[i]", FRAME_INLINED},
                {"_[0]", FRAME_INTERPRETED},
                {"_[1]", FRAME_COMPILED},
                {"_[k]", FRAME_KERNEL}};

static int64_t add_frame(struct profile *p, const char *text, size_t len)
{
    enum frame_kind kind = FRAME_JAVA;
    for (size_t i = 0; i < ARRAY_SIZE(suffixes) && len > 4; i++) {
        if (memcmp(text + len - 4, suffixes[i].suffix, 4) == 0) {
            kind = suffixes[i].kind;
            len -= 4;
            break;
        }
    }
    const struct str none = {"", 0};
    return load_frame(p, (struct str){text, len}, none, none, 0, kind);
}

/*
 * Reads the line in which export/collapsed.c states what the numbers are. In other files they are
 * CPU samples.
 */
static bool read_metric(struct profile *p, const char *line, size_t len, enum profile_metric *ret)
{
    const size_t start = strlen(COLLAPSED_METRIC), end = strlen(" 0");
    if (len <= start + end || memcmp(line, COLLAPSED_METRIC, start) != 0)
        return false;
    for (int m = 0; m < PROFILE_METRICS; m++) {
        size_t n = strlen(profile_metrics[m].name);
        if (len == start + n + end && memcmp(line + start, profile_metrics[m].name, n) == 0)
            *ret = (enum profile_metric)m;
    }
    p->series[*ret].stated = true;
    return true;
}

/*
 * Reads a line that describes the accuracy of the numbers. Returns 1, or 0 if it is not such a
 * line, or -ENOMEM.
 */
static int read_note(struct profile *p, enum profile_metric metric, const char *line, size_t len)
{
    const size_t start = strlen(COLLAPSED_NOTE), end = strlen(" 0");
    if (len <= start + end || memcmp(line, COLLAPSED_NOTE, start) != 0)
        return 0;
    int64_t note = profile_string(p, line + start, len - start - end);
    if (note > 0)
        p->series[metric].note = (uint32_t)note;
    return note < 0 ? (int)note : 1;
}

static int add_line(struct load *l, enum profile_metric metric, const char *line, size_t len,
                    size_t number)
{
    const char *blank = memrchr(line, ' ', len);
    char digits[24] = "";
    size_t n = blank ? (size_t)(line + len - blank - 1) : 0;
    uint64_t weight;
    if (n && n < sizeof(digits))
        memcpy(digits, blank + 1, n);
    if (parse_u64(digits, 0, INT64_MAX, &weight) < 0) {
        buf_printf(l->why, "line %zu does not end in a number", number);
        return -EPROTO;
    }
    int64_t node = 0;
    for (const char *at = line; at < blank;) {
        const char *end = memchr(at, ';', (size_t)(blank - at));
        if (!end)
            end = blank;
        int64_t frame = add_frame(l->profile, at, (size_t)(end - at));
        node = frame < 0 ? frame : profile_node(l->profile, (uint32_t)node, (uint32_t)frame);
        if (node < 0)
            return (int)node;
        at = end + 1;
    }
    return profile_sample(l->profile, metric,
                          (struct profile_sample){.weight = weight, .node = (uint32_t)node});
}

int load_collapsed(struct load *l)
{
    enum profile_metric metric = PROFILE_CPU;
    int64_t thread = profile_thread(l->profile, 0, "", 0);
    int r = thread < 0 ? (int)thread : 0;
    const char *at = (const char *)l->data, *end = at + l->len;
    for (size_t number = 1; at < end && r == 0; number++) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        const char *next = stop ? stop + 1 : end;
        size_t len = (size_t)((stop ? stop : end) - at);
        if (len && at[len - 1] == '\r')
            len--;
        if (len && !read_metric(l->profile, at, len, &metric)) {
            r = read_note(l->profile, metric, at, len);
            r = r == 0 ? add_line(l, metric, at, len, number) : MIN(r, 0);
        }
        if (l->progress && number % 65536 == 0)
            l->progress(l->progress_context, (uint64_t)(next - (const char *)l->data), l->len);
        at = next;
    }
    return r;
}
