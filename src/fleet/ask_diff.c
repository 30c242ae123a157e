/* SPDX-License-Identifier: Apache-2.0 */
/* Answers what differs between two selections, and whether the differences exceed chance. */
#include "fleet/ask.h"
#include "fleet/compare.h"

#include <errno.h>

static const double confidence = 0.95;

void ask_put_double(struct json *j, const char *key, double v)
{
    json_key_double(j, key, v);
}

void ask_put_change(struct json *j, const struct comparison *c, const struct compared *m, int part)
{
    static const char *const names[] = {"self", "total"};
    const struct stat_change *x = &m->change[part];
    json_key_object(j, names[part]);
    json_key_u64(j, "base", (uint64_t)m->of[0][part].x);
    json_key_u64(j, "new", (uint64_t)m->of[1][part].x);
    ask_put_double(j, "base_share",
                   c->sides[0].blocks.n > 0 ? m->of[0][part].x / c->sides[0].blocks.n : 0);
    ask_put_double(j, "new_share",
                   c->sides[1].blocks.n > 0 ? m->of[1][part].x / c->sides[1].blocks.n : 0);
    ask_put_double(j, "change", x->change);
    ask_put_double(j, "low", x->low);
    ask_put_double(j, "high", x->high);
    json_key_string(j, "verdict", compare_verdict(m, part));
    json_end_object(j);
}

static void put_side(struct json *j, const char *key, const struct compare_side *s)
{
    json_key_object(j, key);
    json_key_u64(j, "samples", s->all.samples);
    json_key_u64(j, "weight", s->all.weight);
    json_key_u64(j, "clusters", (uint64_t)s->blocks.clusters);
    json_end_object(j);
}

static void put_answer(struct asker *a, struct comparison *c)
{
    struct json *j = a->j;
    bool enough = c->sides[0].all.samples && c->sides[1].all.samples, changed = false;
    a->found = enough;
    a->base_lacks = c->sides[1].all.samples && !enough;
    if (enough)
        compare_methods(c, confidence, 1);
    else
        c->methods.len = 0;
    for (size_t i = 0; i < c->methods.len; i++)
        changed = changed || compare_evidence(&c->methods.data[i], 0) > 0 ||
                  compare_evidence(&c->methods.data[i], 1) > 0;
    json_key_string(j, "metric", a->q->metric);
    put_side(j, "base", &c->sides[0]);
    put_side(j, "new", &c->sides[1]);
    json_key_string(j, "verdict", !enough ? "no data" : changed ? "changed" : "no change");
    ask_put_double(j, "confidence", confidence);
    json_key_array(j, "methods");
    for (size_t i = 0; i < c->methods.len; i++) {
        const struct compared *m = &c->methods.data[i];
        if (a->q->limit && i >= a->q->limit)
            break;
        json_begin_object(j);
        json_key_string(j, "method", m->label);
        ask_put_change(j, c, m, 0);
        ask_put_change(j, c, m, 1);
        json_end_object(j);
    }
    json_end_array(j);
}

int ask_diff(struct asker *a)
{
    _cleanup_(compare_release) struct comparison c = {
        .store = a->store, .why = a->why, .weights = ask_counts_weights(a->q->metric)};
    int e = compare_read(&c, 0, &a->q->base);
    if (e == 0)
        e = compare_read(&c, 1, &a->q->choice);
    if (e == 0)
        put_answer(a, &c);
    return e;
}
