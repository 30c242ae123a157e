/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/report.h"

#include "base/json.h"
#include "base/parse.h"
#include "cli/builtin.h"
#include "cli/reading.h"

#include <inttypes.h>

enum { STACK_LINES = 24, TREE_DEPTH = 40 };

struct report {
    bool json, inverted;
    uint64_t limit, stacks;
};

static const struct arg report_args[] = {
    {"--json", 0, ARG_FLAG, offsetof(struct report, json), NULL, "print JSON: every metric, every method"},
    {"--inverted", 0, ARG_FLAG, offsetof(struct report, inverted), NULL,
     "show who calls the hottest methods instead of the hottest stacks"},
    {"--limit", 'n', ARG_NUMBER, offsetof(struct report, limit), "N", "rows of the ranked table (20)"},
    {"--stacks", 0, ARG_NUMBER, offsetof(struct report, stacks), "N", "how many of the hottest stacks (5)"},
    {0},
};

static const struct arg_set report_set = {"What is shown", report_args};
const struct arg_set *const report_sets[] = {&report_set, &selection_set, NULL};

static double percent(uint64_t part, uint64_t whole)
{
    return whole ? 100.0 * (double)part / (double)whole : 0;
}

/* Text of a recording on a terminal: control characters, which could move its cursor, become '?'. */
void print_text(FILE *to, struct str s)
{
    for (size_t i = 0; i < s.len; i++)
        fputc((unsigned char)s.data[i] < 0x20 || s.data[i] == 0x7f ? '?' : s.data[i], to);
}

static void print_head(const struct profile_view *v, const char *path)
{
    const struct profile_series *series = &v->profile->series[v->metric];
    char weight[24], time[24], interval[24];
    printf("%s: %s: %s", path, profile_metrics[v->metric].title, format_weight(weight, v->metric, v->weight));
    if (series->interval_ns && profile_metrics[v->metric].unit == UNIT_SAMPLES)
        printf(", one every %s: %s", format_duration(interval, series->interval_ns),
               format_duration(time, v->weight * series->interval_ns));
    if (v->profile->duration_ns)
        printf(", in %s", format_duration(time, v->profile->duration_ns));
    printf(", %zu threads\n", v->profile->threads.len);
    if (v->unattributed)
        printf("  without a method: %s (%.2f %%)\n", format_weight(weight, v->metric, v->unattributed),
               percent(v->unattributed, v->weight));
    if (v->truncated)
        printf("  truncated stacks: %s (%.2f %%)\n", format_weight(weight, v->metric, v->truncated),
               percent(v->truncated, v->weight));
}

static bool has_sampler(const struct profile_view *v)
{
    return v->profile->sampler.known && (v->metric == PROFILE_CPU || v->metric == PROFILE_WALL);
}

/* What the samples have cost, and what went wrong on the way without a sample being lost. */
static void print_sampler(const struct profile_view *v)
{
    const struct profile_sampler *s = &v->profile->sampler;
    char median[24], most[24];
    if (!has_sampler(v))
        return;
    printf("  a sample took %s, 99 of 100 at most %s", format_duration(median, s->handler_p50_ns),
           format_duration(most, s->handler_p99_ns));
    printf("; walks resumed %llu, faults survived %llu, lost %llu\n", (unsigned long long)s->resumed,
           (unsigned long long)s->faults, (unsigned long long)s->lost);
}

static void json_sampler(struct json *j, const struct profile_view *v)
{
    const struct profile_sampler *s = &v->profile->sampler;
    if (!has_sampler(v))
        return;

    const struct {
        const char *key;
        uint64_t value;
    } values[] = {
        {"handler_ns", s->handler_ns},
        {"handler_p50_ns", s->handler_p50_ns},
        {"handler_p99_ns", s->handler_p99_ns},
        {"later_ns", s->later_ns},
        {"walks_resumed", s->resumed},
        {"faults_survived", s->faults},
        {"lost", s->lost},
    };

    json_key(j, "sampler");
    json_object(j);
    for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
        json_key(j, values[i].key);
        json_u64(j, values[i].value);
    }
    json_object_end(j);
}

static void print_methods(const struct profile_view *v, const struct profile_rank *ranks, size_t n, size_t limit)
{
    char self[24];
    printf("\n    self     total        self  method\n");
    for (size_t i = 0; i < MIN(n, limit); i++) {
        printf(" %6.2f %%  %6.2f %%  %10s  ", percent(ranks[i].self, v->weight), percent(ranks[i].total, v->weight),
               format_weight(self, v->metric, ranks[i].self));
        print_text(stdout, profile_text(v->profile, ranks[i].label));
        putchar('\n');
    }
    if (n > limit)
        printf(" ... and %zu methods more (--limit)\n", n - limit);
}

/* One of the hottest stacks: a node of the merged tree. */
struct hot {
    uint64_t self;
    uint32_t node;
};

static int compare_hot(const void *a, const void *b)
{
    const struct hot *x = a, *y = b;
    return x->self != y->self ? (x->self < y->self ? 1 : -1) : (x->node > y->node) - (x->node < y->node);
}

static int print_stacks(const struct profile_view *v, size_t limit)
{
    struct profile_tree t;
    int r = profile_tree_init(&t, v, false);
    if (r < 0)
        return r;
    VEC(struct hot) hot = {0};
    for (size_t i = 1; i < t.nodes.len && r == 0; i++) {
        if (t.nodes.data[i].self)
            r = vec_push(&hot, ((struct hot){t.nodes.data[i].self, (uint32_t)i}));
    }
    if (hot.len)
        qsort(hot.data, hot.len, sizeof(*hot.data), compare_hot);
    for (size_t i = 0; i < MIN(hot.len, limit); i++) {
        char self[24];
        printf("%s %6.2f %%  %s\n", i ? "\n" : "\nHottest stacks\n", percent(hot.data[i].self, v->weight),
               format_weight(self, v->metric, hot.data[i].self));
        int lines = 0;
        for (uint32_t n = hot.data[i].node; n; n = t.nodes.data[n].parent, lines++) {
            if (lines < STACK_LINES) {
                printf("    ");
                print_text(stdout, profile_text(v->profile, t.nodes.data[n].label));
                putchar('\n');
            }
        }
        if (lines > STACK_LINES)
            printf("    ... %d frames more\n", lines - STACK_LINES);
    }
    vec_release(&hot);
    profile_tree_release(&t);
    return r;
}

/* A node and its heavy descendants, indented: who calls the method above. Chains of single callers stay at one depth. */
static void print_branch(const struct profile_view *v, const struct profile_tree *t, uint32_t node, int depth)
{
    const struct profile_tree_node *n = &t->nodes.data[node];
    printf(" %6.2f %%  %*s", percent(n->total, v->weight), depth * 2, "");
    print_text(stdout, profile_text(v->profile, n->label));
    putchar('\n');
    for (uint32_t c = n->first_child; c && depth < TREE_DEPTH; c = t->nodes.data[c].next_sibling) {
        if (t->nodes.data[c].total * 200 >= v->weight)
            print_branch(v, t, c, depth + 1);
    }
}

static int print_callers(const struct profile_view *v, size_t limit)
{
    struct profile_tree t;
    int r = profile_tree_init(&t, v, true);
    if (r < 0)
        return r;
    printf("\nCallers of the hottest methods (from 0.5 %% on)\n");
    for (uint32_t c = t.nodes.data[0].first_child; c && limit; c = t.nodes.data[c].next_sibling, limit--)
        print_branch(v, &t, c, 0);
    profile_tree_release(&t);
    return 0;
}

/* Calls were counted, but so few or in so short a time that none has a weight. */
static bool counts_alone(const struct selection *s, const struct profile *p)
{
    for (int m = 0; m < PROFILE_METRICS; m++)
        if (p->series[m].samples.len)
            return false;
    return !s->metric && p->calls.len;
}

static int print_counts(const struct report *o, const struct selection *s, const struct profile *p, const char *path)
{
    printf("%s: calls were counted; none has a time\n", path);
    int r = report_exact_print(p, &s->filter, o->limit);
    return r < 0 ? complain_errno(path, "cannot rank", r) : 0;
}

static int print_report(const struct report *o, const struct selection *s, const struct profile *p, const char *path)
{
    if (counts_alone(s, p))
        return print_counts(o, s, p, path);
    enum profile_metric metric;
    int status = reading_metric(s, p, path, &metric);
    if (status)
        return status;
    _cleanup_(profile_view_release) struct profile_view v = {0};
    _cleanup_free_ struct profile_rank *ranks = NULL;
    size_t n = 0;
    int r = profile_view_init(&v, p, metric, &s->filter);
    if (r == 0)
        r = profile_rank(&v, &ranks, &n);
    if (r < 0)
        return complain_errno(path, "cannot rank", r);
    print_head(&v, path);
    print_sampler(&v);
    for (int m = 0; m < PROFILE_METRICS; m++) {
        if (m != (int)metric && p->series[m].samples.len)
            printf("  also there: %s (--metric %s)\n", profile_metrics[m].title, profile_metrics[m].name);
    }
    /* Where every call was counted its own table ranks the methods. */
    if (metric != PROFILE_EXACT || !p->calls.len)
        print_methods(&v, ranks, n, o->limit);
    r = report_exact_print(p, &s->filter, o->limit);
    if (r < 0)
        return complain_errno(path, "cannot rank", r);
    r = o->inverted ? print_callers(&v, o->stacks) : print_stacks(&v, o->stacks);
    return r < 0 ? complain_errno(path, "cannot show stacks", r) : 0;
}

int report_metric_json(struct json *j, const struct profile_view *v)
{
    _cleanup_free_ struct profile_rank *ranks = NULL;
    size_t n = 0;
    int r = profile_rank(v, &ranks, &n);
    if (r < 0)
        return r;
    json_key(j, profile_metrics[v->metric].name);
    json_object(j);
    json_key(j, "total");
    json_u64(j, v->weight);
    json_key(j, "unattributed");
    json_u64(j, v->unattributed);
    json_key(j, "truncated");
    json_u64(j, v->truncated);
    json_key(j, "interval_ns");
    json_u64(j, v->profile->series[v->metric].interval_ns);
    json_sampler(j, v);
    json_key(j, "methods");
    json_array(j);
    for (size_t i = 0; i < n; i++) {
        struct str label = profile_text(v->profile, ranks[i].label);
        json_object(j);
        json_key(j, "method");
        json_string_n(j, label.data, label.len);
        json_key(j, "self");
        json_u64(j, ranks[i].self);
        json_key(j, "total");
        json_u64(j, ranks[i].total);
        json_object_end(j);
    }
    json_array_end(j);
    json_object_end(j);
    return 0;
}

static int print_json(const struct selection *s, const struct profile *p, const char *path)
{
    enum profile_metric only = PROFILE_CPU;
    int status = counts_alone(s, p) ? 0 : reading_metric(s, p, path, &only);
    if (status)
        return status;
    _cleanup_(buf_release) struct buf out = BUF(SIZE_MAX / 2);
    struct json j = {&out, false};
    json_object(&j);
    for (int m = 0; m < PROFILE_METRICS; m++) {
        /* "times" comes from report_exact_json where every call was counted. */
        if (!p->series[m].samples.len || (s->metric && m != (int)only) || (m == PROFILE_EXACT && p->calls.len))
            continue;
        _cleanup_(profile_view_release) struct profile_view v = {0};
        int r = profile_view_init(&v, p, (enum profile_metric)m, &s->filter);
        if (r == 0)
            r = report_metric_json(&j, &v);
        if (r < 0)
            return complain_errno(path, "cannot rank", r);
    }
    int r = report_exact_json(&j, p, &s->filter);
    if (r < 0)
        return complain_errno(path, "cannot rank", r);
    json_object_end(&j);
    if (buf_error(&out))
        return complain_errno(path, "cannot print", buf_error(&out));
    fwrite(out.data, 1, out.len, stdout);
    putchar('\n');
    return 0;
}

int cmd_report(const struct command *self, int argc, char **argv)
{
    struct report options = {.limit = 20, .stacks = 5};
    struct selection selection = {0};
    struct operands operands;
    int status;
    if (!args_parse(self, (void *[]){&options, &selection}, argc, argv, &operands, &status))
        return status;
    _cleanup_(profile_freep) struct profile *p = NULL;
    status = reading_open(&p, operands.list[0]);
    if (status)
        return status;
    return options.json ? print_json(&selection, p, operands.list[0]) : print_report(&options, &selection, p, operands.list[0]);
}
