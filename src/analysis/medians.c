/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/medians.h"

#include "base/nth.h"

#include <errno.h>
#include <stdlib.h>

struct median_kind {
    uint64_t key;
    size_t n, end; /* the sample of values, and the index at which the next value is stored */
};

struct median_number {
    size_t kind;
    uint64_t number;
};

int medians_add(struct medians *m, uint64_t key, uint64_t number)
{
    bool added = false;
    const uint64_t *kind = map_at(&m->kind_of, key, m->kinds.len, &added);
    int r = kind ? 0 : -ENOMEM;
    if (r == 0 && added)
        r = vec_push(&m->kinds, ((struct median_kind){.key = key}));
    if (r == 0)
        r = vec_push(&m->numbers, ((struct median_number){*kind, number}));
    if (r == 0)
        m->kinds.data[*kind].n++;
    return r;
}

int medians_find(const struct medians *m, struct map *ret)
{
    uint64_t *numbers = malloc((m->numbers.len + 1) * sizeof(*numbers)); /* by kind */
    size_t end = 0;
    int r = numbers ? 0 : -ENOMEM;
    for (size_t i = 0; i < m->kinds.len; end += m->kinds.data[i++].n)
        m->kinds.data[i].end = end;
    for (size_t i = 0; r == 0 && i < m->numbers.len; i++) {
        const struct median_number *one = &m->numbers.data[i];
        numbers[m->kinds.data[one->kind].end++] = one->number;
    }
    for (size_t i = 0; r == 0 && i < m->kinds.len; i++) {
        const struct median_kind *k = &m->kinds.data[i];
        r = map_put(ret, k->key, nth_number(numbers + (k->end - k->n), k->n, k->n / 2));
    }
    free(numbers);
    return r;
}

void medians_release(struct medians *m)
{
    vec_release(&m->kinds);
    vec_release(&m->numbers);
    map_release(&m->kind_of);
}
