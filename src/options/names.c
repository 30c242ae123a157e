/* SPDX-License-Identifier: Apache-2.0 */
#include "options/names.h"

#include "options/signature.h"
#include "options/value.h"

#include <errno.h>
#include <string.h>

/*
 * Returns whether a blank separates nothing: `open` is set inside parentheses, and clear before
 * them.
 */
static bool is_idle_blank(const char *list, const char *to, const char *at, bool open)
{
    at += strspn(at, " ");
    if (!open)
        return to == list || !*at || *at == '(';
    return to == list || strchr("(,.[", to[-1]) || (*at && strchr(",.[<)", *at));
}

void option_list_normalize(char *list, char separator)
{
    char *to = list;
    unsigned open = 0, arguments = 0; /* the parentheses and type arguments that enclose `at` */
    for (const char *at = list; *at; at++) {
        open += *at == '(';
        open -= *at == ')' && open;
        if (!open && at[0] == ':' && at[1] == ':') {
            *to++ = '.';
            at++;
        } else if (!open && (*at == ',' || *at == ';' || *at == separator)) {
            while (to > list && to[-1] == ' ')
                to--;
            if (to > list && to[-1] != separator)
                *to++ = separator;
            at += strspn(at + 1, " ");
        } else if (open && *at == '<') {
            arguments++;
        } else if (arguments) {
            arguments -= *at == '>';
        } else if (open && strncmp(at, "...", 3) == 0) {
            bool any = to[-1] == '(' || to[-1] == ',';
            *to++ = any ? '.' : '[';
            *to++ = any ? '.' : ']';
            at += 2;
        } else if (*at != ' ' || !is_idle_blank(list, to, at, open)) {
            *to++ = *at;
        }
    }
    if (!open && to > list && to[-1] == separator)
        to--;
    if (to == list && *list)
        /* a list that consists of separators keeps one, so that it is not empty */
        *to++ = separator;
    *to = 0;
}

bool option_is_field(const char *part, size_t len)
{
    const char *dot = memrchr(part, '.', len);
    return dot && dot > part && dot < part + len - 1 && !memchr(part, '*', len);
}

bool option_is_auto(const char *part, size_t len)
{
    return len == 4 && memcmp(part, "auto", len) == 0;
}

/* Returns whether this is a class and a method with a blank between them: "Cart add". */
static bool are_two_words(const char *part, size_t len)
{
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_$";
    size_t first = strspn(part, letters);
    if (!first || first + 1 >= len || part[first] != ' ')
        return false;
    return strspn(part + first + 1, letters) >= len - first - 1;
}

const char *option_pattern_fault(const char *part, size_t len)
{
    static const char type[] = "implements";
    const size_t n = sizeof(type) - 1;
    while (len && part[len - 1] == ' ')
        len--;
    const char *open = memchr(part, '(', len);
    size_t name = open ? (size_t)(open - part) : len;
    if (!len)
        return "a pattern is missing: package.Class.method";
    if (len == 1 && *part == '@')
        return "no annotation name after @";
    if (len == n && memcmp(part, type, n) == 0)
        return "no type name after implements";
    if (len > 8 && memcmp(part, "extends ", 8) == 0)
        return "the classes below a type are named by implements pkg.Type";
    bool is_type = len > n && memcmp(part, "implements ", n + 1) == 0;
    if (open && (*part == '@' || is_type))
        return "an annotation or a type has no parameters";
    const char *blank = open ? memrchr(part, ' ', name) : NULL;
    if (blank && memchr(blank, '.', (size_t)(open - blank)))
        return "a pattern begins with the class: the type of the result is left out";
    if (memchr(part, '/', name))
        return "names are written with dots";
    if (memchr(part, '#', name) || (!is_type && are_two_words(part, name)))
        return "a method is written Class.method or Class::method";
    if (!name || memchr(part, ')', name) || memchr(part, '\n', name) || memchr(part, '\r', name) ||
        memchr(part, '\t', name))
        return "this cannot be the name of a class or method";
    return open ? signature_fault(open, len - name) : NULL;
}

/* Returns what is wrong with a part, or NULL. */
static const char *field_fault(const char *part, size_t len)
{
    return option_is_field(part, len) ? NULL : "names no field: pkg.Class.field";
}

static const char *method_fault(const char *part, size_t len)
{
    const char *open = memchr(part, '(', len);
    size_t n = open ? (size_t)(open - part) : len;
    const char *last = memrchr(part, '.', n);
    if (option_is_auto(part, len))
        return NULL;
    if (*part == '@')
        return "names methods; annotations are for --trace";
    if (memchr(part, ' ', n))
        return "names a method as pkg.Class.method or pkg.Class.method(..)";
    if (!last || last == part || last == part + n - 1)
        return "names no method: pkg.Class.method(..)";
    if (n > 5 && memcmp(part, "java.", 5) == 0)
        return "methods of the JDK's own packages cannot be requests";
    return option_pattern_fault(part, len);
}

int option_names_check(enum option which, const char *list, struct buf *message)
{
    static const char *(*const faults[OPTION_COUNT])(const char *part, size_t len) = {
        [OPT_WATCH] = field_fault,
        [OPT_SHOW] = field_fault,
        [OPT_REQUESTS] = method_fault,
        [OPT_TRACE] = option_pattern_fault,
        [OPT_INCLUDE] = option_pattern_fault,
        [OPT_EXCLUDE] = option_pattern_fault};

    unsigned n = 0;
    for (const char *at = list; faults[which] && *at;) {
        char separator = option_table[which].separator;
        size_t len = strcspn(at, (char[]){separator, 0});
        const char *fault = len ? faults[which](at, len) : NULL;
        if (fault) {
            option_put_part(message, which, at, len);
            buf_printf(message, ": %s", fault);
            return -EINVAL;
        }
        n += len > 0;
        at += len;
        at += strspn(at, (char[]){separator, ' ', 0});
    }
    if (which == OPT_WATCH && n > WATCHES_MAX) {
        option_put(message, which, NULL);
        buf_printf(message, ": %u fields; at most %d can be watched", n, WATCHES_MAX);
        return -EINVAL;
    }
    return 0;
}
