/* SPDX-License-Identifier: Apache-2.0 */
#include "base/nearest.h"

#include "base/macro.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

static char lower(char c)
{
    return (char)tolower((unsigned char)c);
}

static unsigned distance(const char *a, size_t n, const char *b, size_t m)
{
    unsigned rows[3][NEAREST_MAX + 1];
    unsigned *older = rows[0], *old = rows[1], *now = rows[2];
    for (size_t k = 0; k <= m; k++)
        old[k] = (unsigned)k;
    for (size_t i = 1; i <= n; i++) {
        now[0] = (unsigned)i;
        for (size_t k = 1; k <= m; k++) {
            unsigned change = old[k - 1] + (lower(a[i - 1]) != lower(b[k - 1]));
            unsigned best = MIN(change, MIN(old[k], now[k - 1]) + 1);
            if (i > 1 && k > 1 && lower(a[i - 1]) == lower(b[k - 2]) &&
                lower(a[i - 2]) == lower(b[k - 1]))
                best = MIN(best, older[k - 2] + 1);
            now[k] = best;
        }
        unsigned *free_row = older;
        older = old;
        old = now;
        now = free_row;
    }
    return old[m];
}

bool nearest_try(struct nearest *n, const char *candidate)
{
    size_t length = strlen(n->word), other = strlen(candidate);
    if (!length || length > NEAREST_MAX || other > NEAREST_MAX)
        return false;
    unsigned letters = distance(n->word, length, candidate, other);
    bool begun = length - strspn(n->word, "-") > 1 && strncasecmp(candidate, n->word, length) == 0;
    unsigned d = begun ? MIN(letters, 1U) : letters; /* as near as one wrong letter */
    unsigned limit = length < 3 ? 0 : MAX((unsigned)length / 3, 1U);
    unsigned key = d * 2 * NEAREST_MAX + letters;
    bool nearer = (begun || d <= limit) && (!*n->best || key < n->distance);
    if (nearer) {
        memcpy(n->best, candidate, other + 1);
        n->distance = key;
    }
    return nearer;
}
