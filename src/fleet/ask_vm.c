/* SPDX-License-Identifier: Apache-2.0 */
/* Answers what the VMs did apart from running the program, by service and version. */
#include "base/latency.h"
#include "fleet/ask.h"
#include "fleet/figures.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

struct figure_sum {
    uint64_t count, total, most;
    struct fleet_counts counts;
};

struct vm_sum {
    const char *service, *version;
    struct figure_sum figures[FLEET_FIGURES];
};

/* By service and version; the series of a view come sorted by both. */
struct vm_sums {
    VEC(struct vm_sum) list;
};

static void vm_sums_release(struct vm_sums *s)
{
    for (size_t i = 0; i < s->list.len; i++)
        for (int k = 0; k < FLEET_FIGURES; k++)
            vec_release(&s->list.data[i].figures[k].counts.list);
    vec_release(&s->list);
}

static struct vm_sum *sum_of(struct vm_sums *s, const struct store_series *series)
{
    for (size_t i = s->list.len; i-- > 0;) {
        struct vm_sum *one = &s->list.data[i];
        if (strcmp(one->service, series->service) == 0 &&
            strcmp(one->version, series->version) == 0)
            return one;
    }
    struct vm_sum one = {.service = series->service, .version = series->version};
    return vec_push(&s->list, one) < 0 ? NULL : &s->list.data[s->list.len - 1];
}

static int on_figure(void *context, const struct store_latency *l)
{
    int figure = 0;
    while (figure < FLEET_FIGURES && strcmp(fleet_figures[figure].name, l->request) != 0)
        figure++;
    if (figure == FLEET_FIGURES)
        return 0; /* the figure has a kind that only a later version knows */
    struct vm_sum *one = sum_of(context, l->series);
    if (!one)
        return -ENOMEM;
    struct figure_sum *f = &one->figures[figure];
    f->count += l->count;
    f->total += l->total_ns;
    f->most = MAX(f->most, l->max_ns);
    return fleet_counts_add(&f->counts, l->counts, l->n_counts);
}

static int by_name(const void *left, const void *right)
{
    const struct vm_sum *a = left, *b = right;
    int c = strcmp(a->service, b->service);
    return c ? c : strcmp(a->version, b->version);
}

/*
 * Writes the sum of a figure. For a size or a number it writes the mean instead, because only
 * durations add up.
 */
static void put_figure(struct json *j, int figure, const struct figure_sum *f)
{
    static const char *const units[] = {
        [FIGURE_NS] = "_ns", [FIGURE_BYTES] = "_bytes", [FIGURE_COUNT] = ""};
    enum figure_unit unit = fleet_figures[figure].unit;
    char key[32];
    json_key_object(j, fleet_figures[figure].name);
    json_key_u64(j, "count", f->count);
    if (unit == FIGURE_NS) {
        json_key_u64(j, "total_ns", f->total);
        uint64_t p99_ns = fleet_counts_quantile(&f->counts, 0.99, f->most);
        json_key_u64(j, "p99_ns", p99_ns);
        json_key_bool(j, "p99_is_upper_bound", f->count && latency_is_bound(p99_ns));
    }
    snprintf(key, sizeof(key), "mean%s", units[unit]);
    json_key_u64(j, key, f->count ? f->total / f->count : 0);
    snprintf(key, sizeof(key), "most%s", units[unit]);
    json_key_u64(j, key, f->most);
    json_end_object(j);
}

int ask_vm(struct asker *a)
{
    _cleanup_(vm_sums_release) struct vm_sums sums = {0};
    struct fleet_choice choice = a->q->choice;
    struct store_read *r = NULL;
    uint64_t limit = a->q->limit;
    if (choice.request) {
        buf_string(a->why, "request: figures of a VM do not belong to requests");
        return -EINVAL;
    }
    choice.names = FLEET_FIGURE;
    int e = store_begin(a->store, &choice, &r, a->why);
    if (e == 0)
        e = store_each_latency(a->store, r, on_figure, &sums);
    a->found = sums.list.len > 0;
    vec_sort(&sums.list, by_name);
    json_key_array(a->j, "services");
    for (size_t i = 0; e == 0 && i < sums.list.len && (!limit || i < limit); i++) {
        const struct vm_sum *s = &sums.list.data[i];
        json_begin_object(a->j);
        json_key_string(a->j, "service", s->service);
        json_key_string(a->j, "version", s->version);
        for (int k = 0; k < FLEET_FIGURES; k++)
            if (s->figures[k].count)
                put_figure(a->j, k, &s->figures[k]);
        json_end_object(a->j);
    }
    json_end_array(a->j);
    store_end(a->store, r);
    return e;
}
