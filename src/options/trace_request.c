/* SPDX-License-Identifier: Apache-2.0 */
#include "options/trace_request.h"

#include "base/macro.h"
#include "options/names.h"

#include <stdbool.h>
#include <string.h>

char *trace_request_split(char *patterns)
{
    char *condition = strstr(patterns, " if ");
    if (condition) {
        *condition = 0;
        condition += strlen(" if ");
    }
    option_list_normalize(patterns, ':');
    return condition;
}

/* Returns what is wrong with "PATTERN,PATTERN" or "PATTERN,PATTERN if CONDITION", or NULL. */
static const char *add_fault(const char *text)
{
    _cleanup_free_ char *patterns = strdup(text);
    if (!patterns)
        return "out of memory";
    const char *condition = trace_request_split(patterns), *fault = NULL;
    if (condition && !*condition)
        return "no condition after if";
    for (const char *p = patterns; !fault; p++) {
        size_t n = strcspn(p, ":");
        fault = option_pattern_fault(p, n);
        p += n;
        if (!*p)
            break;
    }
    return fault;
}

const char *trace_request_fault(const char *request, const char **ret_what)
{
    bool add = strncmp(request, "add ", 4) == 0, remove = strncmp(request, "remove ", 7) == 0;
    const char *pattern = strchrnul(request, ' ');
    pattern += *pattern == ' ';
    *ret_what = (add || remove) && *pattern ? pattern : request;
    if (add)
        return add_fault(pattern);
    if (remove && *pattern)
        return NULL;
    return strcmp(request, "list") == 0 ? NULL : "allowed: add PATTERN, remove PATTERN, list";
}
