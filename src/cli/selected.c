/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/selected.h"

#include "base/buf.h"
#include "base/parse.h"
#include "base/pattern.h"
#include "cli/commands.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int selected_names_init(struct selected_names *s, const char *pattern)
{
    *s = (struct selected_names){.copy = pattern ? strdup(pattern) : NULL};
    if (!s->copy)
        return pattern ? -ENOMEM : 0;
    char *rest = s->copy, *one;
    int r = 0;
    while (r == 0 && (one = strsep(&rest, ","))) {
        one += strspn(one, " ");
        if (*one)
            r = vec_push(&s->missing, one);
    }
    /* The pattern consists of commas alone. */
    if (r == 0 && !s->missing.len)
        r = vec_push(&s->missing, pattern);
    if (r < 0)
        selected_names_release(s);
    return r;
}

void selected_names_see(struct selected_names *s, const char *name, size_t len)
{
    size_t kept = 0;
    for (size_t i = 0; i < s->missing.len; i++)
        if (!pattern_match_one(s->missing.data[i], name, len))
            s->missing.data[kept++] = s->missing.data[i];
    s->missing.len = kept;
}

int selected_names_end(const struct selected_names *s, const char *path, const char *why)
{
    _cleanup_(buf_release) struct buf all = BUF(1 << 20);
    for (size_t i = 0; i < s->missing.len; i++)
        buf_printf(&all, "%s%s", i ? ", " : "", s->missing.data[i]);
    return s->missing.len ? complain(path, why, buf_str(&all)) : 0;
}

void selected_names_release(struct selected_names *s)
{
    free(s->copy);
    vec_release(&s->missing);
}

void selected_note_parts(const char *pattern, selected_name *name, const void *context, size_t n)
{
    _cleanup_free_ char *copy = pattern ? strdup(pattern) : NULL;
    for (char *rest = copy, *one; copy && (one = strsep(&rest, ","));) {
        struct str longer = {0};
        size_t others = 0;
        bool is_name = false;
        one += strspn(one, " ");
        size_t len = strlen(one);
        if (!len || *one == '=' || strpbrk(one, "*?"))
            continue;
        for (size_t i = 0; i < n; i++) {
            struct str s = name(context, i);
            bool same = s.len == len && memcmp(s.data, one, len) == 0;
            is_name |= same;
            if (same || !memmem(s.data, s.len, one, len))
                continue;
            /* Several threads may have one name. */
            others += !longer.data || s.len != longer.len || memcmp(s.data, longer.data, s.len);
            longer = longer.data ? longer : s;
        }
        if (!is_name || !others)
            continue;
        _cleanup_(buf_release) struct buf text = BUF(1 << 16);
        buf_printf(&text, "%s also selects %.*s%s; =%s selects this name alone", one,
                   (int)longer.len, longer.data,
                   others > 1 ? " and other names of which it is a part" : "", one);
        complain("note", buf_str(&text), NULL);
    }
}

int selected_by_name(const char *path, const char *why, const char *pattern, selected_name *name,
                     const void *context, size_t n)
{
    _cleanup_(selected_names_release) struct selected_names s;
    int r = selected_names_init(&s, pattern);
    for (size_t i = 0; r == 0 && s.missing.len && i < n; i++) {
        struct str one = name(context, i);
        /* A name may contain a comma. */
        if (pattern_match_one(pattern, one.data, one.len))
            s.missing.len = 0;
        else
            selected_names_see(&s, one.data, one.len);
    }
    if (r == 0 && !s.missing.len)
        selected_note_parts(pattern, name, context, n);
    return r < 0 ? complain_errno(path, "cannot read", r) : selected_names_end(&s, path, why);
}

int selected_by_time(const char *path, uint64_t from, uint64_t to, uint64_t end)
{
    char a[24], b[24], text[96];
    if (to && from >= to)
        snprintf(text, sizeof(text), "--from %s is not before --to %s", format_duration(a, from),
                 format_duration(b, to));
    else if (end && from >= end)
        snprintf(text, sizeof(text), "--from %s is not before the end of the recording at %s",
                 format_duration(a, from), format_duration(b, end));
    else
        return 0;
    return complain(path, text, NULL);
}
