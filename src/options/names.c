/* SPDX-License-Identifier: Apache-2.0 */
#include "options/names.h"

#include "options/value.h"

#include <errno.h>
#include <string.h>

void option_dot_methods(char *text)
{
    char *to = text;
    for (const char *at = text; *at; to++) {
        bool colons = at[0] == ':' && at[1] == ':';
        *to = colons ? '.' : *at;
        at += 1 + colons;
    }
    *to = 0;
}

bool option_is_field(const char *part, size_t len)
{
    const char *dot = memrchr(part, '.', len);
    return dot && dot > part && dot < part + len - 1 && !memchr(part, '*', len);
}

size_t option_method_length(const char *part, size_t len)
{
    static const char any[] = "(..)";
    if (len == 4 && memcmp(part, "auto", len) == 0)
        return 0;
    size_t n = sizeof(any) - 1;
    return len > n && memcmp(part + len - n, any, n) == 0 ? len - n : len;
}

/* Returns what is wrong with a part, or NULL. */
static const char *field_fault(const char *part, size_t len)
{
    return option_is_field(part, len) ? NULL : "names no field: pkg.Class.field";
}

static const char *method_fault(const char *part, size_t len)
{
    size_t n = option_method_length(part, len);
    const char *last = n ? memrchr(part, '.', n) : NULL;
    if (n && (memchr(part, '(', n) || memchr(part, ' ', n)))
        return "names a method as pkg.Class.method or pkg.Class.method(..)";
    if (n && (!last || last == part || last == part + n - 1))
        return "names no method: pkg.Class.method(..)";
    if (n > 5 && memcmp(part, "java.", 5) == 0)
        return "methods of the JDK's own packages are no requests";
    return NULL;
}

int option_names_check(enum option which, const char *list, struct buf *message)
{
    unsigned n = 0;
    if (which != OPT_WATCH && which != OPT_REQUESTS)
        return 0;
    for (const char *at = list; *at;) {
        size_t len = strcspn(at, ",:");
        const char *fault = which == OPT_WATCH ? field_fault(at, len) : method_fault(at, len);
        if (len && fault) {
            option_put_part(message, which, at, len);
            buf_printf(message, ": %s", fault);
            return -EINVAL;
        }
        n += len > 0;
        at += len;
        at += strspn(at, ",: ");
    }
    if (which == OPT_WATCH && n > WATCHES_MAX) {
        option_put(message, which, NULL);
        buf_printf(message, ": %u fields; at most %d can be watched", n, WATCHES_MAX);
        return -EINVAL;
    }
    return 0;
}
