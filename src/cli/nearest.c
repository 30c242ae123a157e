/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/nearest.h"

#include "base/macro.h"

#include <string.h>

enum { LENGTH_MAX = 64 };

static unsigned distance(const char *a, size_t n, const char *b, size_t m)
{
    unsigned rows[3][LENGTH_MAX + 1];
    unsigned *older = rows[0], *old = rows[1], *now = rows[2];
    for (size_t k = 0; k <= m; k++)
        old[k] = (unsigned)k;
    for (size_t i = 1; i <= n; i++) {
        now[0] = (unsigned)i;
        for (size_t k = 1; k <= m; k++) {
            unsigned change = old[k - 1] + (a[i - 1] != b[k - 1]);
            unsigned best = MIN(change, MIN(old[k], now[k - 1]) + 1);
            if (i > 1 && k > 1 && a[i - 1] == b[k - 2] && a[i - 2] == b[k - 1])
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

void nearest_try(struct nearest *n, const char *candidate)
{
    size_t length = strlen(n->word), other = strlen(candidate);
    if (!length || length > LENGTH_MAX || other > LENGTH_MAX)
        return;
    unsigned d = distance(n->word, length, candidate, other);
    bool begun = length - strspn(n->word, "-") > 1 && strncmp(candidate, n->word, length) == 0;
    d = begun ? MIN(d, 1U) : d; /* as near as a word with one wrong letter */
    unsigned limit = length < 4 ? 1 : MAX((unsigned)length / 3, 2U);
    if (d <= limit && d < length && (!n->best || d < n->distance)) {
        n->best = candidate;
        n->distance = d;
    }
}
