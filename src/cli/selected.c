/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/selected.h"

#include "base/parse.h"
#include "base/pattern.h"
#include "cli/commands.h"

#include <stdlib.h>
#include <string.h>

static bool any_matches(const char *pattern, selected_name *name, const void *context, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct str s = name(context, i);
        if (pattern_match_one(pattern, s.data, s.len))
            return true;
    }
    return false;
}

int selected_by_name(const char *path, const char *why, const char *pattern, selected_name *name,
                     const void *context, size_t n)
{
    if (!pattern || any_matches(pattern, name, context, n))
        return 0;
    _cleanup_free_ char *copy = strdup(pattern);
    if (!copy)
        return complain_errno(path, "cannot read", -ENOMEM);
    char *rest = copy, *one;
    bool any = false;
    while ((one = strsep(&rest, ","))) {
        one += strspn(one, " ");
        if (!*one)
            continue;
        any = true;
        if (!any_matches(one, name, context, n))
            return complain(path, why, one);
    }
    return any ? 0 : complain(path, why, pattern);
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
