/* SPDX-License-Identifier: Apache-2.0 */
/* Answers what differs between two selections, and whether the differences exceed chance. */
#include "fleet/ask.h"
#include "fleet/compare.h"

#include <errno.h>
#include <string.h>
#include <time.h>

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

static bool is_same(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

static const char *label_value(const struct fleet_choice *c, const char *key)
{
    for (size_t i = 0; i < c->n_labels; i++)
        if (strcmp(c->labels[i].key, key) == 0)
            return c->labels[i].value;
    return NULL;
}

static void name_time(struct buf *to, const char *before, int64_t seconds)
{
    char text[32];
    struct tm tm;
    time_t t = (time_t)seconds;
    if (!seconds || !gmtime_r(&t, &tm))
        return;
    strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &tm);
    buf_printf(to, "%s%s %s", buf_str(to)[0] ? " " : "", before, text);
}

/* Names what distinguishes a side from the other one, such as "version 1.7, label region=eu". */
static void name_side(struct buf *to, const struct fleet_choice *c,
                      const struct fleet_choice *other)
{
    const struct {
        const char *key, *value, *others;
    } names[] = {{"service", c->service, other->service},
                 {"version", c->version, other->version},
                 {"host", c->host, other->host},
                 {"instance", c->instance, other->instance},
                 {"request", c->request, other->request}};
    const struct fleet_choice *sides[] = {c, other};
    const char *comma = "";

    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        if (is_same(names[i].value, names[i].others))
            continue;
        if (names[i].value)
            buf_printf(to, "%s%s %.100s", comma, names[i].key, names[i].value);
        else
            buf_printf(to, "%sany %s", comma, names[i].key);
        comma = ", ";
    }

    for (size_t side = 0; side < ARRAY_SIZE(sides); side++) {
        for (size_t i = 0; i < sides[side]->n_labels; i++) {
            const char *key = sides[side]->labels[i].key, *value = label_value(c, key),
                       *others = label_value(other, key);
            /* A label that both have is named when the labels of this side are. */
            if (is_same(value, others) || (side == 1 && value))
                continue;
            if (value)
                buf_printf(to, "%slabel %.100s=%.100s", comma, key, value);
            else
                buf_printf(to, "%sany label %.100s", comma, key);
            comma = ", ";
        }
    }

    if (c->from_s == other->from_s && c->to_s == other->to_s)
        return;
    buf_string(to, comma);
    if (!c->from_s && !c->to_s)
        buf_string(to, "any time");
    _cleanup_(buf_release) struct buf span = BUF(128);
    name_time(&span, "from", c->from_s);
    name_time(&span, "to", c->to_s);
    buf_string(to, buf_str(&span));
}

static void put_side(struct json *j, const char *key, const struct compare_side *s,
                     const struct fleet_choice *c, const struct fleet_choice *other)
{
    _cleanup_(buf_release) struct buf name = BUF(8192);
    name_side(&name, c, other);
    json_key_object(j, key);
    json_key_string(j, "selection", buf_str(&name));
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
    put_side(j, "base", &c->sides[0], &a->q->base, &a->q->choice);
    put_side(j, "new", &c->sides[1], &a->q->choice, &a->q->base);
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
