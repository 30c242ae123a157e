/* SPDX-License-Identifier: Apache-2.0 */
#include "options/trace_request.h"

#include "base/macro.h"

#include <stdbool.h>
#include <string.h>

/* The end of the type of a descriptor that begins at p; NULL: it is not a type. */
static const char *type_end(const char *p)
{
    p += strspn(p, "[");
    if (*p == 'L') {
        size_t name = strcspn(p, ";[().");
        return name > 1 && p[name] == ';' ? p + name + 1 : NULL;
    }
    return *p && strchr("BCDFIJSZ", *p) ? p + 1 : NULL;
}

/* "(ILjava/lang/String;)V" */
static bool is_descriptor(const char *p)
{
    for (p++; p && *p != ')';)
        p = type_end(p);
    if (p)
        p = strcmp(p, ")V") == 0 ? p + 2 : type_end(p + 1);
    return p && !*p;
}

static const char *pattern_fault(const char *p)
{
    size_t name = strcspn(p, "(");
    if (!*p)
        return "a pattern is missing: package.Class.method";
    if (strchr(p, ':'))
        return "one pattern at a time, without colons";
    if (strcmp(p, "@") == 0)
        return "no annotation name after @";
    if (strncmp(p, "implements", 10) == 0 && !p[10 + strspn(p + 10, " ")])
        return "no type name after implements";
    if (memchr(p, '/', name))
        return "names are written with dots";
    if (strcspn(p, ");[\n\r\t") < name)
        return "no class or method has such a name";
    if (p[name] && strcmp(p + name, "(..)") != 0 && !is_descriptor(p + name))
        return "the text after the name is not a descriptor such as (ILjava/lang/String;)V";
    return NULL;
}

/* "PATTERN,PATTERN" or "PATTERN,PATTERN if CONDITION" */
static const char *add_fault(const char *text)
{
    const char *condition = strstr(text, " if ");
    _cleanup_free_ char *pattern =
        strndup(text, condition ? (size_t)(condition - text) : strlen(text));
    if (condition && !condition[strlen(" if ")])
        return "no condition after if";
    if (!pattern)
        return "no memory";
    const char *fault = *pattern ? NULL : pattern_fault(pattern);
    for (char *rest = pattern, *one; !fault && (one = strsep(&rest, ","));)
        fault = pattern_fault(one);
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
