/* SPDX-License-Identifier: Apache-2.0 */
#include "base/pattern.h"

#include "base/utf8.h"

#include <string.h>

bool pattern_match_part(const char *pattern, size_t n, const char *text, size_t len)
{
    const char *end = pattern + n;
    if (n && *pattern == '=')
        return len == n - 1 && memcmp(pattern + 1, text, len) == 0;
    if (strcspn(pattern, "*?") >= n)
        return !n || memmem(text, len, pattern, n) != NULL;
    /*
     * On a mismatch it is enough to go back to the last star and let it match one more character.
     */
    const char *p = pattern, *star = NULL;
    size_t i = 0, again = 0;
    while (i < len) {
        if (p < end && *p == '*') {
            star = p++;
            again = i;
        } else if (p < end && *p == '?') {
            uint32_t character;
            p++;
            i += utf8_next(text + i, len - i, &character);
        } else if (p < end && *p == text[i]) {
            p++;
            i++;
        } else if (star) {
            p = star + 1;
            i = ++again;
        } else {
            return false;
        }
    }
    while (p < end && *p == '*')
        p++;
    return p == end;
}

bool pattern_match_one(const char *pattern, const char *text, size_t len)
{
    return !pattern || pattern_match_part(pattern, strlen(pattern), text, len);
}

bool pattern_match(const char *pattern, const char *text, size_t len)
{
    if (!pattern || pattern_match_part(pattern, strlen(pattern), text, len))
        return true;
    const char *comma = strchr(pattern, ',');
    for (const char *at = pattern; comma; at = comma + 1, comma = strchr(at, ',')) {
        at += strspn(at, " ");
        if (comma > at && pattern_match_part(at, (size_t)(comma - at), text, len))
            return true;
    }
    const char *last = strrchr(pattern, ',');
    last = last ? last + 1 + strspn(last + 1, " ") : NULL;
    return last && *last && pattern_match_part(last, strlen(last), text, len);
}
