/* SPDX-License-Identifier: Apache-2.0 */
#include "fleet/rollup.h"

static int add_bucket(const struct batch *b, uint32_t type, size_t from, size_t to, bool traces,
                      struct fleet_entries *e)
{
    int r = 0;
    vec_clear(&e->list);
    for (size_t i = from; i < to && r == 0; i++) {
        const struct fleet_sample *s = &b->samples.data[i];
        if (s->type != type)
            continue;
        struct fleet_entry entry = {.stack = s->stack,
                                    .request = s->request,
                                    .trace = traces ? s->trace : 0,
                                    .count = s->count,
                                    .weight = s->weight};
        r = vec_push(&e->list, entry);
    }
    fleet_entries_settle(e);
    return r;
}

int rollup_batch(const struct batch *b, int64_t step_s, bool traces, rollup_visit *visit,
                 void *context)
{
    struct fleet_entries e = {0};
    const struct fleet_sample *list = b->samples.data; /* sorted by time */
    size_t n = b->samples.len;
    int r = 0;
    for (uint32_t type = 0; type < b->types.len; type++) {
        for (size_t i = 0, end; r == 0 && i < n; i = end) {
            int64_t start = fleet_floor(list[i].start_s, step_s);
            for (end = i; end < n && fleet_floor(list[end].start_s, step_s) == start;)
                end++;
            r = add_bucket(b, type, i, end, traces, &e);
            if (r == 0 && e.list.len)
                r = visit(context, type, start, &e);
        }
    }
    fleet_entries_release(&e);
    return r;
}
