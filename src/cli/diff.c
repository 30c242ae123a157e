/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compares two recordings by shares of the whole, so that runs of different lengths can be
 * compared.
 */
#include "base/json.h"
#include "base/parse.h"
#include "cli/commands.h"
#include "cli/losses.h"
#include "cli/reading.h"
#include "cli/report.h"

#include <math.h>
#include <string.h>

struct diff {
    bool json;
    uint64_t limit;
};

static const struct arg diff_args[] = {
    {"--json", 0, ARG_FLAG, offsetof(struct diff, json), NULL, "print JSON: every method"},
    {"--limit", 'n', ARG_COUNT, offsetof(struct diff, limit), "N",
     "rows of the table (30); JSON has all"},
    {0},
};

static const struct arg_set diff_set = {"What is shown", diff_args};
static const struct arg_set *const diff_sets[] = {&diff_set, &selection_set, NULL};

struct side {
    uint64_t self, total;
};

struct row {
    struct str label;
    struct side of[2]; /* base and new recording */
    double share[2];   /* the self share of each */
    double change;     /* change of the self share */
    bool known[2];     /* by side: self is certainly above zero, or certainly zero */
    bool few;          /* neither side is known, so the change is rough */
};

struct comparison {
    struct strpool labels;
    VEC(struct row) rows;
    uint64_t weight[2];
    /*
     * Figures below this share rest on too few readings or samples to be known; 0 where they rest
     * on none.
     */
    double least[2];
    const char *clock[2]; /* of exact times; NULL: unknown, or the metric is another one */
    enum profile_metric metric;
    bool any_change;
};

static double share(uint64_t part, uint64_t whole)
{
    return whole ? (double)part / (double)whole : 0;
}

/* Returns "cpu" or "elapsed", or NULL where the file does not show it. */
static const char *clock_of(const struct profile_view *v)
{
    const struct profile *p = v->profile;
    if (v->metric != PROFILE_EXACT)
        return NULL;
    if (p->timed_by_readings || profile_readings(p, v->metric))
        return "cpu";
    return p->calls.len && !p->times_rounded ? "elapsed" : NULL;
}

static int add_side(struct comparison *c, int side, const struct profile_view *v)
{
    _cleanup_free_ struct profile_rank *ranks = NULL;
    size_t n = 0;
    int r = profile_rank(v, &ranks, &n);
    c->weight[side] = v->weight;
    c->least[side] = share(profile_least_weight(v), v->weight);
    c->clock[side] = clock_of(v);
    for (size_t i = 0; i < n && r == 0; i++) {
        struct str label = profile_text(v->profile, ranks[i].label);
        int64_t at = strpool_add(&c->labels, label.data, label.len);
        if (at < 0)
            return (int)at;
        if ((size_t)at == c->rows.len) {
            r = vec_extend(&c->rows, 1);
            if (r < 0)
                return r;
            c->rows.data[at].label = strpool_get(&c->labels, (uint64_t)at);
        }
        c->rows.data[at].of[side] = (struct side){ranks[i].self, ranks[i].total};
        c->rows.data[at].known[side] = !ranks[i].few;
    }
    return r;
}

/*
 * Returns whether neither side of a row is known. If one side was counted in full, its share is
 * compared with the limit of the other side.
 */
static bool is_few(const struct comparison *c, const struct row *row)
{
    bool few = c->least[0] > 0 || c->least[1] > 0;
    for (int side = 0; side < 2; side++)
        few = few && !(c->least[side] > 0
                           ? row->known[side]
                           : share(row->of[side].self, c->weight[side]) >= c->least[1 - side]);
    return few;
}

static bool clocks_differ(const struct comparison *c)
{
    return c->clock[0] && c->clock[1] && strcmp(c->clock[0], c->clock[1]) != 0;
}

/* The larger of a row's two shares. */
static double larger(const struct row *row)
{
    return MAX(row->share[0], row->share[1]);
}

static int compare_rows(const void *a, const void *b)
{
    const struct row *x = a, *y = b;
    if (x->few != y->few)
        return x->few ? 1 : -1;
    double dx = fabs(x->change), dy = fabs(y->change);
    if (dx != dy)
        return dx < dy ? 1 : -1;
    dx = larger(x);
    dy = larger(y);
    if (dx != dy)
        return dx < dy ? 1 : -1;
    int c = memcmp(x->label.data, y->label.data, MIN(x->label.len, y->label.len));
    return c ? c : (x->label.len > y->label.len) - (x->label.len < y->label.len);
}

static const char *clock_text(const char *clock)
{
    return strcmp(clock, "cpu") == 0 ? "CPU time" : "elapsed time, waiting included";
}

static void print_table(const struct comparison *c, uint64_t limit)
{
    char base[24], new[24];
    bool any_few = false;
    printf("%s: base %s, new %s; shares of each, and their change in percentage points\n",
           profile_metrics[c->metric].title, reading_format_weight(base, c->metric, c->weight[0]),
           reading_format_weight(new, c->metric, c->weight[1]));
    if (clocks_differ(c))
        printf("  the clocks differ: base has %s, new has %s\n", clock_text(c->clock[0]),
               clock_text(c->clock[1]));
    if (!c->any_change)
        printf("  no difference: each method has the same share of both\n");
    printf("\n  points      base       new   total of both  method\n");
    for (size_t i = 0; i < MIN(c->rows.len, limit); i++) {
        const struct row *r = &c->rows.data[i];
        any_few = any_few || r->few;
        printf("%c%+7.2f  %6.2f %%  %6.2f %%  %5.1f / %5.1f %%  ", r->few ? '~' : ' ',
               100 * r->change, 100 * r->share[0], 100 * r->share[1],
               100 * share(r->of[0].total, c->weight[0]),
               100 * share(r->of[1].total, c->weight[1]));
        print_text(stdout, r->label);
        putchar('\n');
    }
    print_left_out(c->rows.len, limit, "methods");
    if (any_few)
        printf(c->metric == PROFILE_EXACT
                   ? " ~ rough: its times rest on fewer than %d readings of the CPU clock\n"
                   : " ~ rough: on average fewer than %d samples stand for it, in both\n",
               FEWEST_READINGS);
}

static void json_side(struct json *j, const char *key, struct side s)
{
    json_key_object(j, key);
    json_key_u64(j, "self", s.self);
    json_key_u64(j, "total", s.total);
    json_end_object(j);
}

/* paths: of the base and of the new recording. */
static int print_json(const struct comparison *c, char *const paths[2])
{
    _cleanup_(buf_release) struct buf out = BUF(SIZE_MAX / 2);
    struct json j = {&out, false};
    json_begin_object(&j);
    json_key_object(&j, profile_metrics[c->metric].name);
    json_key_u64(&j, "base_total", c->weight[0]);
    json_key_u64(&j, "new_total", c->weight[1]);
    if (c->clock[0])
        json_key_string(&j, "base_clock", c->clock[0]);
    if (c->clock[1])
        json_key_string(&j, "new_clock", c->clock[1]);
    json_key_array(&j, "methods");
    for (size_t i = 0; i < c->rows.len; i++) {
        const struct row *r = &c->rows.data[i];
        json_begin_object(&j);
        json_key_string_n(&j, "method", r->label.data, r->label.len);
        json_side(&j, "base", r->of[0]);
        json_side(&j, "new", r->of[1]);
        json_key_double(&j, "change", r->change);
        if (r->few) {
            json_key_bool(&j, "few_readings", true);
        }
        json_end_object(&j);
    }
    json_end_array(&j);
    json_end_object(&j);
    for (int side = 0; side < 2; side++) {
        json_key_object(&j, side ? "new" : "base");
        losses_json_of_file(paths[side], losses_of_profile, true, &j);
        json_end_object(&j);
    }
    json_end_object(&j);
    if (buf_error(&out))
        return complain_errno("diff", "cannot print", buf_error(&out));
    puts(buf_str(&out));
    return 0;
}

static int read_side(struct comparison *c, int side, struct selection *selection, const char *path)
{
    _cleanup_(profile_freep) struct profile *p = NULL;
    int status = reading_open(&p, path, LOAD_SUMS, selection, losses_of_profile, NULL);
    if (status == 0 && !reading_check(selection, p, path, false))
        status = 1;
    if (status == 0)
        status = reading_metric(selection, p, path, &c->metric);
    if (status)
        return status;
    /* The second recording is read for the metric that the first one provided. */
    selection->metric = profile_metrics[c->metric].name;
    _cleanup_(profile_view_release) struct profile_view v = {0};
    int r = profile_view_init(&v, p, c->metric, &selection->filter);
    bool counted = c->metric == PROFILE_EXACT && p->calls.len; /* calls without a time */
    if (r == 0 && !v.weight && !counted) {
        status = reading_check_metric(selection, p, path, c->metric);
        return status ? status
                      : complain(path, "nothing to compare: all is zero of the metric",
                                 selection->metric);
    }
    if (r == 0)
        r = add_side(c, side, &v);
    return r < 0 ? complain_errno(path, "cannot rank", r) : 0;
}

static int cmd_diff(const struct command *self, int argc, char **argv)
{
    struct diff options = {.limit = 30};
    struct selection selection = {0};
    struct operands operands;
    int status;
    if (!args_parse(self, ARGS({&diff_set, &options}, {&selection_set, &selection}), argc, argv,
                    &operands, &status))
        return status;
    struct comparison c = {0};
    status = read_side(&c, 0, &selection, operands.list[0]);
    if (status == 0)
        status = read_side(&c, 1, &selection, operands.list[1]);
    if (status == 0) {
        for (size_t i = 0; i < c.rows.len; i++) {
            struct row *row = &c.rows.data[i];
            for (int side = 0; side < 2; side++)
                row->share[side] = share(row->of[side].self, c.weight[side]);
            row->change = row->share[1] - row->share[0];
            row->few = is_few(&c, row);
            c.any_change = c.any_change || row->change != 0;
        }
        if (c.rows.len)
            qsort(c.rows.data, c.rows.len, sizeof(*c.rows.data), compare_rows);
        if (options.json)
            status = print_json(&c, operands.list);
        else
            print_table(&c, options.limit);
    }
    strpool_release(&c.labels);
    vec_release(&c.rows);
    return status;
}

const struct command command_diff = {
    .name = "diff",
    .run = cmd_diff,
    .operands = "BASE NEW",
    .min_operands = 2,
    .max_operands = 2,
    .summary = "compare the methods of two recordings",
    .related = "report fleet heap",
    .description =
        "Use it to see what a change of the program, its load or its VM did to its methods.\n\n"
        "Prints the methods whose share of the whole changed most from one recording to the "
        "other.",
    .caveats = "Both recordings should be of the same load: the shares of methods with few samples "
               "change by chance.",
    .examples = "  jvmscope diff before.jfr after.jfr\n",
    .sets = diff_sets,
};
