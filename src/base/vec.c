/* SPDX-License-Identifier: Apache-2.0 */
#include "base/vec.h"

#include "base/pages.h"

int vec_grow_(void **data, size_t *cap, size_t need, size_t size)
{
    size_t n = *cap ? *cap + *cap / 2 : 8;
    if (n < need)
        n = need;
    size_t bytes;
    if (__builtin_mul_overflow(n, size, &bytes))
        return -ENOMEM;
    void *p = realloc(*data, bytes);
    if (!p)
        return -ENOMEM;
    pages_huge(p, bytes);
    *data = p;
    *cap = n;
    return 0;
}
