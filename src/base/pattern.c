/* SPDX-License-Identifier: Apache-2.0 */
#include "base/pattern.h"

#include <string.h>

bool pattern_match(const char *pattern, const char *text, size_t len)
{
    if (!pattern)
        return true;
    if (!pattern[strcspn(pattern, "*?")])
        return !*pattern || memmem(text, len, pattern, strlen(pattern)) != NULL;
    /* On a mismatch only the last star is taken again, one character longer. */
    const char *p = pattern, *star = NULL;
    size_t i = 0, again = 0;
    while (i < len) {
        if (*p == '*') {
            star = p++;
            again = i;
        } else if (*p && (*p == '?' || *p == text[i])) {
            p++;
            i++;
        } else if (star) {
            p = star + 1;
            i = ++again;
        } else {
            return false;
        }
    }
    while (*p == '*')
        p++;
    return !*p;
}
