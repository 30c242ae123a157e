/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/request_without.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define P99       0.99
#define CONFIDENT 1.96 /* standard deviations of a 95 % interval */

/*
 * The latency of a request with a cause and without it; the request stands for `weight` requests.
 */
struct row {
    uint64_t ns, with_ns;
    double weight;
};

static uint64_t latency(const struct requests *r, uint32_t i)
{
    return (uint64_t)(r->list.data[i].end_ns - r->list.data[i].start_ns);
}

static int by_ns(const void *a, const void *b)
{
    const struct row *x = a, *y = b;
    return (x->ns > y->ns) - (x->ns < y->ns);
}

/* Returns the quantile of rows that are sorted by ns. */
static uint64_t quantile(const struct row *rows, size_t n, double all, double share)
{
    double seen = 0;
    for (size_t i = 0; i < n; i++) {
        seen += rows[i].weight;
        if (seen >= share * all - 1e-6)
            return rows[i].ns;
    }
    return n ? rows[n - 1].ns : 0;
}

/* The rows are sorted by their latency with the cause. */
static struct request_without answer(struct row *rows, size_t n)
{
    double all = 0, squares = 0, seen = 0;
    uint64_t with_ns = 0;
    for (size_t i = 0; i < n; i++) {
        all += rows[i].weight;
        squares += rows[i].weight * rows[i].weight;
    }
    for (size_t i = 0; i < n && seen < P99 * all - 1e-6; i++) {
        seen += rows[i].weight;
        with_ns = rows[i].with_ns;
    }
    qsort(rows, n, sizeof(*rows), by_ns);
    double size = squares > 0 ? all * all / squares : 0;
    double off = size > 0 ? CONFIDENT * sqrt(P99 * (1 - P99) / size) : 1;
    return (struct request_without){.p99_ns = quantile(rows, n, all, P99),
                                    .low_ns = quantile(rows, n, all, fmax(P99 - off, 0)),
                                    .high_ns = quantile(rows, n, all, fmin(P99 + off, 1)),
                                    .with_ns = with_ns};
}

static bool is_of(const struct request_part *p, const struct group_cause *c)
{
    if (p->cause != c->cause)
        return false;
    if (request_cause_is_one(p->cause))
        return true;
    return p->object && c->object ? strcmp(p->object, c->object) == 0 : p->object == c->object;
}

int request_without(struct request_ledger *l, const struct requests *r,
                    const struct request_group *g, size_t n, struct request_without *ret)
{
    const struct request_name *name = &r->names.data[g->name];
    const uint32_t *list = vec_at(&r->by_name, name->first);
    size_t count = name->count;
    struct row *rows = malloc((count * n + 1) * sizeof(*rows));
    struct request_parts parts = {0};
    int e = rows ? 0 : -ENOMEM;
    for (size_t i = 0; e == 0 && i < count; i++) {
        const struct request *q = &r->list.data[list[i]];
        e = request_parts(l, q, &parts);
        for (size_t k = 0; e == 0 && k < n; k++) {
            uint64_t ns = latency(r, list[i]);
            for (size_t p = 0; p < parts.rows.len; p++)
                if (is_of(&parts.rows.data[p], &g->causes.data[k]))
                    ns -= parts.rows.data[p].end - parts.rows.data[p].start;
            rows[k * count + i] = (struct row){ns, latency(r, list[i]), (double)q->weight};
        }
    }
    for (size_t k = 0; e == 0 && k < n; k++)
        ret[k] = answer(rows + k * count, count);
    request_parts_release(&parts);
    free(rows);
    return e;
}
