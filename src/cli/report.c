/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/report.h"

#include "base/json.h"
#include "base/parse.h"
#include "cli/commands.h"
#include "cli/losses.h"
#include "cli/reading.h"

#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <string.h>

enum { STACK_LINES = 24, TREE_DEPTH = 40, STACKS = 5 };

#define STACKS_UNSET UINT64_MAX

struct report {
    bool json, inverted, idle;
    uint64_t limit, stacks;
};

static const struct arg report_args[] = {
    {"--json", 0, ARG_FLAG, offsetof(struct report, json), NULL,
     "print JSON: every metric, every method"},
    {"--idle", 0, ARG_FLAG, offsetof(struct report, idle), NULL,
     "count wall-clock samples of idle threads too"},
    {"--inverted", 0, ARG_FLAG, offsetof(struct report, inverted), NULL,
     "show who calls the hottest methods instead of the hottest stacks"},
    {"--limit", 'n', ARG_COUNT, offsetof(struct report, limit), "N",
     "rows of each ranked table (20); JSON has all"},
    {"--stacks", 0, ARG_NUMBER, offsetof(struct report, stacks), "N",
     "show the N hottest stacks (5)"},
    {0},
};

static const struct arg_set report_set = {"What is shown", report_args};
static const struct arg_set *const report_sets[] = {&report_set, &selection_set, NULL};

static double percent(uint64_t part, uint64_t whole)
{
    return whole ? 100.0 * (double)part / (double)whole : 0;
}

/*
 * Returns whether the recording lacks the thread names by which idle threads of the VM are
 * recognized.
 */
static bool idle_lacks_names(const struct profile_view *v)
{
    return v->metric == PROFILE_WALL && v->filter.without_idle && v->weight &&
           !profile_view_threads(v);
}

static void print_head(const struct profile_view *v, const char *path)
{
    const struct profile_series *series = &v->profile->series[v->metric];
    char weight[24], time[24], interval[24];
    printf("%s: %s: %s", path, profile_metrics[v->metric].title,
           reading_format_weight(weight, v->metric, v->weight));
    if (series->interval_ns && profile_metrics[v->metric].unit == UNIT_SAMPLES)
        printf(", %s %s: %s", profile_kept(v) ? "each of" : "one every",
               format_duration(interval, series->interval_ns),
               format_duration(time, v->weight * series->interval_ns));
    uint64_t span = profile_span(v->profile, &v->filter);
    if (span)
        printf(", in %s", format_duration(time, span));
    /* The number of threads in a selection would mean little. */
    const struct profile *p = v->profile;
    const struct profile_filter *f = &v->filter;
    bool all = !f->thread && !f->class_name && !f->from_ns && !f->to_ns;
    size_t n = all ? profile_view_threads(v) : 0;
    if (n)
        printf(", from %zu thread%s", n, n == 1 ? "" : "s");
    putchar('\n');
    _cleanup_(buf_release) struct buf note = BUF(4096);
    profile_note(v, &note);
    if (note.len) {
        bool counts = v->metric == PROFILE_EXACT && p->calls.len && p->timed_by_readings;
        printf("  %s", counts ? "all calls are counted, and " : "");
        print_text(stdout, (struct str){buf_str(&note), note.len});
        putchar('\n');
    }
    if (series->listed_only)
        printf("  of the sites that the file lists: what those below its cutoff allocated is not "
               "in it\n");
    if (v->metric == PROFILE_LOCK && p->flight_recording)
        puts("  not in it: getting a lock back after Object.wait (`threads monitors` shows that)");
    if (v->unattributed)
        printf("  without a method: %s (%.2f %%)\n",
               reading_format_weight(weight, v->metric, v->unattributed),
               percent(v->unattributed, v->weight));
    if (v->own)
        printf("  of the profiler itself: %s (%.2f %%)\n",
               reading_format_weight(weight, v->metric, v->own), percent(v->own, v->weight));
    if (v->idle)
        printf("  left out: %s of threads with nothing to do (--idle)%s\n",
               reading_format_weight(weight, v->metric, v->idle),
               idle_lacks_names(v) ? "; the VM's own are among the samples, because the file names "
                                     "no threads"
                                   : "");
    if (v->truncated)
        printf("  truncated stacks: %s (%.2f %%)\n",
               reading_format_weight(weight, v->metric, v->truncated),
               percent(v->truncated, v->weight));
}

static bool has_sampler(const struct profile_view *v)
{
    return v->profile->sampler.known && (v->metric == PROFILE_CPU || v->metric == PROFILE_WALL);
}

/* Prints the cost of sampling, and what went wrong without losing a sample. */
static void print_sampler(const struct profile_view *v)
{
    const struct profile_sampler *s = &v->profile->sampler;
    char median[24], most[24];
    if (!has_sampler(v))
        return;
    printf("  a sample took %s, 99 of 100 at most %s", format_duration(median, s->handler_p50_ns),
           format_duration(most, s->handler_p99_ns));
    if (s->resumed)
        printf("; %s continued past an unreadable frame", COUNT_TEXT(s->resumed, "stacks"));
    if (s->faults)
        printf("; walks hit unreadable memory %s", COUNT_TEXT(s->faults, "times"));
    if (s->lost)
        printf("; %s lost", COUNT_TEXT(s->lost, "samples"));
    putchar('\n');
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

    json_key_object(j, "sampler");
    for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
        json_key_u64(j, values[i].key, values[i].value);
    }
    json_end_object(j);
}

static void print_methods(const struct profile_view *v, const struct profile_rank *ranks, size_t n,
                          size_t limit)
{
    char weight[24], self[26];
    size_t rough = 0;
    if (n == 0 && v->weight) {
        puts("\n  no method to show: the stacks contain none, as with a depth of 0");
        return;
    }
    printf("\n    self     total        self  method\n");
    for (size_t i = 0; i < MIN(n, limit); i++) {
        /* A note, or a line below the table, explains ~. */
        bool marked = ranks[i].self && (ranks[i].few || ranks[i].estimated);
        rough += v->metric != PROFILE_EXACT && ranks[i].self && ranks[i].few;
        snprintf(self, sizeof(self), "%s%s", marked ? "~" : "",
                 reading_format_weight(weight, v->metric, ranks[i].self));
        printf(" %6.2f %%  %6.2f %%  %10s  ", percent(ranks[i].self, v->weight),
               percent(ranks[i].total, v->weight), self);
        print_text(stdout, profile_text(v->profile, ranks[i].label));
        putchar('\n');
    }
    print_left_out(n, limit, "methods");
    if (rough)
        printf(" ~ rough: on average fewer than %d samples stand for it, %s\n", FEWEST_READINGS,
               reading_format_weight(weight, v->metric, profile_least_weight(v)));
}

/* One of the hottest stacks: a node of the merged tree. */
struct hot {
    uint64_t self;
    uint32_t node;
};

static int compare_hot(const void *a, const void *b)
{
    const struct hot *x = a, *y = b;
    return x->self != y->self ? (x->self < y->self ? 1 : -1)
                              : (x->node > y->node) - (x->node < y->node);
}

/* Stacks below this weight are left out: a time below it may be no time at all. */
static uint64_t least_shown(const struct profile_view *v)
{
    return v->metric == PROFILE_EXACT ? profile_least_weight(v) : 0;
}

static int print_stacks(const struct profile_view *v, const struct profile_tree *t, size_t limit)
{
    int r = 0;
    VEC(struct hot) hot = {0};
    size_t few = 0;
    uint64_t least = least_shown(v), rough = profile_least_weight(v);
    for (size_t i = 1; i < t->nodes.len && r == 0; i++) {
        if (v->open && profile_is_open(v->profile, t->nodes.data[i].label))
            continue;
        few += t->nodes.data[i].self && t->nodes.data[i].self < least;
        if (t->nodes.data[i].self && t->nodes.data[i].self >= least)
            r = vec_push(&hot, ((struct hot){t->nodes.data[i].self, (uint32_t)i}));
    }
    if (hot.len)
        qsort(hot.data, hot.len, sizeof(*hot.data), compare_hot);
    for (size_t i = 0; i < MIN(hot.len, limit); i++) {
        char self[24];
        printf(i ? "\n" : "\nHottest stacks\n");
        printf(" %6.2f %%  %s%s\n", percent(hot.data[i].self, v->weight),
               hot.data[i].self < rough ? "~" : "",
               reading_format_weight(self, v->metric, hot.data[i].self));
        int lines = 0;
        for (uint32_t n = hot.data[i].node; n; n = t->nodes.data[n].parent, lines++) {
            if (lines < STACK_LINES) {
                printf("    ");
                print_text(stdout, profile_text(v->profile, t->nodes.data[n].label));
                putchar('\n');
            }
        }
        if (lines > STACK_LINES)
            printf("    ... %s\n", COUNT_TEXT((uint64_t)(lines - STACK_LINES), "more frames"));
    }
    if (v->open && !v->profile->calls.len) { /* otherwise the table of calls has already shown it */
        char open[24];
        printf("\nIn calls that had not returned at the end, for which no stacks are shown: %s\n",
               reading_format_weight(open, v->metric, v->open));
    }
    if (few)
        printf("\n%s %s too few readings of the CPU clock and %s not ranked.\n",
               COUNT_TEXT(few, "stacks"), few == 1 ? "has" : "have", few == 1 ? "is" : "are");
    vec_release(&hot);
    return r;
}

/*
 * Prints a node and its heavy descendants, indented: the callers of the method above. Chains of
 * single callers keep their indentation.
 */
static void print_branch(const struct profile_view *v, const struct profile_tree *t, uint32_t node,
                         int depth)
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

static void print_callers(const struct profile_view *v, const struct profile_tree *t, size_t limit)
{
    uint64_t least = least_shown(v);
    printf("\nCallers of the hottest methods (from 0.5 %% on)\n");
    for (uint32_t c = t->nodes.data[0].first_child; c && limit;
         c = t->nodes.data[c].next_sibling, limit--)
        if (t->nodes.data[c].total >= least && !profile_is_open(v->profile, t->nodes.data[c].label))
            print_branch(v, t, c, 0);
}

/* The merged tree, which a thread builds while methods are ranked. */
struct tree_made {
    const struct profile_view *view;
    bool inverted, threaded;
    pthread_t thread;
    struct profile_tree tree;
    int error;
};

static void *make_tree(void *arg)
{
    struct tree_made *m = arg;
    m->error = profile_tree_init(&m->tree, m->view, m->inverted);
    return NULL;
}

static void tree_begin(struct tree_made *m)
{
    m->threaded = pthread_create(&m->thread, NULL, make_tree, m) == 0;
    if (!m->threaded)
        make_tree(m);
}

/* Waits for the tree. Returns 0 or -ENOMEM. */
static int tree_end(struct tree_made *m)
{
    if (m->threaded)
        pthread_join(m->thread, NULL);
    m->threaded = false;
    return m->error;
}

static void tree_release(struct tree_made *m)
{
    (void)tree_end(m);
    profile_tree_release(&m->tree);
}

static int print_report(const struct report *o, const struct selection *s, const struct profile *p,
                        const char *path)
{
    enum profile_metric metric;
    int status = reading_metric(s, p, path, &metric);
    if (status == 0)
        status = reading_check_metric(s, p, path, metric);
    if (status)
        return status;
    _cleanup_(profile_view_release) struct profile_view v = {0};
    int r = profile_view_init(&v, p, metric, &s->filter);
    if (r < 0)
        return complain_errno(path, "cannot rank", r);
    _cleanup_free_ struct profile_rank *ranks = NULL;
    size_t n = 0;
    _cleanup_(tree_release) struct tree_made made = {.view = &v, .inverted = o->inverted};
    tree_begin(&made);
    r = profile_rank(&v, &ranks, &n);
    if (r < 0)
        return complain_errno(path, "cannot rank", r);
    print_head(&v, path);
    report_process_print(&v);
    print_sampler(&v);
    for (int m = 0; m < PROFILE_METRICS; m++) {
        const char *whole_only = reading_whole_only(&s->filter, p, (enum profile_metric)m);
        if (whole_only)
            printf("  left out: %s: %s\n", profile_metrics[m].title, whole_only);
        else if (m != (int)metric && p->series[m].samples.len)
            printf("  also there: %s (--metric %s)\n", profile_metrics[m].title,
                   profile_metrics[m].name);
    }
    static const char *const traced[] = {"jdk.MethodTrace", "jdk.MethodTiming"};
    for (size_t i = 0; i < ARRAY_SIZE(traced); i++)
        if (strpool_find(&p->types, traced[i], strlen(traced[i])) >= 0)
            printf("  also there: %s (jvmscope trace)\n", traced[i]);
    /* If every call was counted, a table of calls ranks the methods. */
    if (metric != PROFILE_EXACT || !p->calls.len)
        print_methods(&v, ranks, n, o->limit);
    r = report_exact_print(p, &s->filter, s->metric ? (int)metric : -1, o->limit);
    if (r < 0)
        return complain_errno(path, "cannot rank", r);
    r = tree_end(&made);
    if (r == 0 && o->inverted)
        print_callers(&v, &made.tree, o->stacks);
    else if (r == 0)
        r = print_stacks(&v, &made.tree, o->stacks);
    return r < 0 ? complain_errno(path, "cannot show stacks", r) : 0;
}

/* Writes a metric's total and its ranked methods as members of the object that is open. */
static int put_ranks(struct json *j, const struct profile_view *v)
{
    _cleanup_free_ struct profile_rank *ranks = NULL;
    size_t n = 0;
    int r = profile_rank(v, &ranks, &n);
    if (r < 0)
        return r;
    json_key_u64(j, "total", v->weight);
    json_key_u64(j, "unattributed", v->unattributed);
    json_key_u64(j, "profiler", v->own);
    json_key_u64(j, "truncated", v->truncated);
    if (v->metric == PROFILE_WALL)
        json_key_u64(j, "idle", v->idle);
    if (idle_lacks_names(v))
        json_key_bool(j, "threads_named", false);
    if (v->metric == PROFILE_EXACT)
        json_key_u64(j, "open_ns", v->open);
    json_key_u64(j, "interval_ns", v->profile->series[v->metric].interval_ns);
    if (v->profile->series[v->metric].listed_only) {
        json_key_bool(j, "listed_only", true);
    }
    uint64_t kept = profile_kept(v);
    if (kept || v->profile->series[v->metric].estimated) {
        json_key_u64(j, "samples", kept ? kept : v->samples);
        json_key_u64(j, "standard_error", (uint64_t)profile_standard_error(v));
        if (v->metric == PROFILE_ALLOCATION)
            json_key_bool(j, "unused_buffers_count", v->profile->rests_count);
        if (profile_allocated(v))
            json_key_u64(j, "counted_bytes", profile_allocated(v));
    }
    /* The member itself says what it estimates, and on how many readings times rest. */
    const struct profile_series *series = &v->profile->series[v->metric];
    _cleanup_(buf_release) struct buf note = BUF(4096);
    if (profile_text(v->profile, series->note).len ||
        (v->metric == PROFILE_ALLOCATION && !series->estimated))
        profile_note(v, &note);
    if (note.len) {
        json_key_string_n(j, "note", buf_str(&note), note.len);
    }
    json_sampler(j, v);
    report_process_json(j, v);
    json_key_array(j, "methods");
    for (size_t i = 0; i < n; i++) {
        struct str label = profile_text(v->profile, ranks[i].label);
        json_begin_object(j);
        json_key_string_n(j, "method", label.data, label.len);
        json_key_u64(j, "self", ranks[i].self);
        json_key_u64(j, "total", ranks[i].total);
        if (ranks[i].few && ranks[i].self) {
            json_key_bool(j, "few_readings", true);
        }
        if (ranks[i].estimated)
            json_key_bool(j, "estimated", true);
        json_end_object(j);
    }
    json_end_array(j);
    return 0;
}

/* Writes one metric as a member of the object that is open, unless the profile has none of it. */
static int put_metric(struct json *j, const struct profile *p, const struct profile_filter *filter,
                      enum profile_metric m)
{
    bool sites = m == PROFILE_ALLOCATION && p->sites.len;
    int r = 0;
    if (m == PROFILE_EXACT && p->calls.len)
        return report_times_json(j, p, filter);
    if (!p->series[m].samples.len && !sites)
        return 0;
    json_key_object(j, profile_metrics[m].name);
    if (p->series[m].samples.len) {
        _cleanup_(profile_view_release) struct profile_view v = {0};
        r = profile_view_init(&v, p, m, filter);
        if (r == 0)
            r = put_ranks(j, &v);
    }
    if (r == 0 && sites)
        r = report_sites_json(j, p, filter);
    json_end_object(j);
    return r;
}

/* Metrics that are left out because they count the whole recording. */
static void put_not_selected(struct json *j, const struct profile *p,
                             const struct profile_filter *filter)
{
    json_key_array(j, "not_selected");
    for (int m = 0; m < PROFILE_METRICS; m++)
        if (reading_whole_only(filter, p, (enum profile_metric)m))
            json_string(j, profile_metrics[m].name);
    json_end_array(j);
}

static int print_json(const struct selection *s, const struct profile *p, const char *path)
{
    enum profile_metric only = PROFILE_CPU;
    int status = reading_metric(s, p, path, &only);
    if (status == 0)
        status = reading_check_metric(s, p, path, only);
    if (status)
        return status;
    _cleanup_(buf_release) struct buf out = BUF(SIZE_MAX / 2);
    struct json j = {&out, false};
    uint64_t span = profile_span(p, &s->filter);
    json_begin_object(&j);
    if (span)
        json_key_u64(&j, "span_ns", span);
    int r = 0;
    for (int m = 0; m < PROFILE_METRICS && r == 0; m++)
        if ((!s->metric || m == (int)only) &&
            !reading_whole_only(&s->filter, p, (enum profile_metric)m))
            r = put_metric(&j, p, &s->filter, (enum profile_metric)m);
    put_not_selected(&j, p, &s->filter);
    if (r < 0)
        return complain_errno(path, "cannot rank", r);
    losses_json_of_file(path, losses_of_profile, p->lost_any, &j);
    json_end_object(&j);
    if (buf_error(&out))
        return complain_errno(path, "cannot print", buf_error(&out));
    puts(buf_str(&out));
    return 0;
}

/*
 * Refuses options that have no effect on what is shown. Those whose effect depends on the file are
 * noted once it is read (note_idle).
 */
static bool check_options(const char *command, const struct report *o, const struct selection *s)
{
    if (o->json && (o->inverted || o->stacks != STACKS_UNSET))
        complain(command,
                 o->inverted ? "--inverted has no effect with --json"
                             : "--stacks has no effect with --json",
                 "JSON has the methods, and no stacks");
    else if (o->idle && s->metric && strcmp(s->metric, profile_metrics[PROFILE_WALL].name) != 0)
        complain(command, "--idle has no effect with this --metric",
                 "it adds wall-clock samples, which --metric wall counts");
    else
        return true;
    return false;
}

/* Prints a note if --idle changes nothing, because no samples of idle threads could be shown. */
static void note_idle(const struct report *o, const struct selection *s, const struct profile *p,
                      const char *path)
{
    enum profile_metric shown = PROFILE_WALL;
    if (!p->series[PROFILE_WALL].samples.len)
        complain("--idle", "note", "has no effect, because the file has no wall-clock samples");
    else if (!o->json && !s->metric && reading_metric(s, p, path, &shown) == 0 &&
             shown != PROFILE_WALL)
        complain("--idle", "note",
                 "has no effect, because wall-clock samples are shown with --metric wall alone");
}

static int cmd_report(const struct command *self, int argc, char **argv)
{
    struct report options = {.limit = 20, .stacks = STACKS_UNSET};
    struct selection selection = {0};
    struct operands operands;
    int status;
    if (!args_parse(self, ARGS({&report_set, &options}, {&selection_set, &selection}), argc, argv,
                    &operands, &status))
        return status;
    if (!check_options(self->name, &options, &selection))
        return 2;
    options.stacks = options.stacks == STACKS_UNSET ? STACKS : options.stacks;
    _cleanup_(profile_freep) struct profile *p = NULL;
    status = reading_open(&p, operands.list[0], LOAD_SUMS, &selection, losses_of_profile, NULL);
    if (status == 0 && !reading_check(&selection, p, operands.list[0], false))
        status = 1;
    if (status)
        return status;
    if (options.idle)
        note_idle(&options, &selection, p, operands.list[0]);
    selection.filter.without_idle = !options.idle;
    return options.json ? print_json(&selection, p, operands.list[0])
                        : print_report(&options, &selection, p, operands.list[0]);
}

const struct command command_report = {
    .name = "report",
    .run = cmd_report,
    .operands = "FILE",
    .min_operands = 1,
    .max_operands = 1,
    .summary = "print the ranked methods and the hottest stacks of a recording",
    .related = "run attach diff convert serve",
    .description =
        "Use it to find the methods that use the CPU time, allocate the memory, or wait for "
        "locks.\n\n"
        "Reads a recording (JFR of any JDK, HPROF text or binary, pprof, collapsed stacks) and "
        "prints its methods, ranked by their own time (self), with the time of what they called "
        "(total; recursion counts once), and the hottest stacks, the running method first.\n\n"
        "For CPU samples, the head says how much CPU time the whole process used, and how much of "
        "it the compilers, the collector and other threads without Java code used. These are not "
        "sampled, and the shares of methods are of the Java threads' time alone. In the page's "
        "flame graph they stand next to the program.\n\n"
        "A name in a PATTERN selects all names of which it is a part, here and in all commands "
        "that read recordings: *worker-1* selects worker-10 too, *=worker-1* does not, and "
        "*'worker-?'* selects worker-0 to worker-9. Commas separate several.",
    .caveats = "Samples show how the time is distributed, not how often a method is called; "
               "*--cpu*=times counts calls. Shares of methods with few samples change by chance.",
    .examples = "  jvmscope report app.jfr                          the whole recording\n"
                "  jvmscope report --thread 'worker-*' app.jfr      only some threads\n"
                "  jvmscope report --from 10s --to 20s app.jfr      only ten seconds\n"
                "  jvmscope report --json app.jfr                   for a program\n",
    .sets = report_sets,
};
