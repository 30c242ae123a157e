/* SPDX-License-Identifier: Apache-2.0 */
/* jvmscope requests: which kinds of requests there were. Its verbs show some of them in detail. */
#include "cli/requests/requests.h"

#include "base/parse.h"
#include "cli/capture.h"
#include "cli/commands.h"
#include "cli/losses.h"
#include "cli/only_requests.h"
#include "cli/selected.h"
#include "cli/threads/threads.h"
#include "options/options.h"
#include "timeline/load.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define OPTION(field) offsetof(struct request_options, field)

/* clang-format off */
#define JSON   {"--json", 0, ARG_FLAG, OPTION(json), NULL, "print JSON"}
#define THREAD {"--thread", 0, ARG_LIST, OPTION(thread), "PATTERN", "only requests that began on a thread whose name matches"}
#define NAME   {"--name", 0, ARG_LIST, OPTION(name), "PATTERN", "only requests whose name matches (a part of it, * and ?, or =NAME)"}
#define FROM   {"--from", 0, ARG_DURATION, OPTION(from_ns), "TIME", "only those that began from this time on, counted from the start: 1.5s, 2m"}, \
               {"--to", 0, ARG_SPAN, OPTION(to_ns), "TIME", "only those that began before this time"}
#define SLOWEST {"--slowest", 0, ARG_SHARE, OPTION(slowest), "SHARE", "how many requests of a name count as slow: 1%, 0.1% (1%)"}
#define OVER {"--over", 0, ARG_SPAN, OPTION(over_ns), "TIME", "requests that took longer than this count as slow: 500ms"}
#define STACKS {"--stacks", 0, ARG_NUMBER, OPTION(stacks), "N", "show up to N frames of each stack (12), 0: no stacks; JSON has all"}
#define LIMIT(what) {"--limit", 'n', ARG_COUNT, OPTION(limit), "N", what}
/* clang-format on */

static const struct arg table_args[] = {
    JSON, NAME, THREAD, FROM, LIMIT("rows of the table (30); JSON has all"), {0}};
static const struct arg slow_args[] = {
    JSON,   SLOWEST, OVER,   NAME,
    THREAD, FROM,    STACKS, LIMIT("show up to N causes for each name (8); JSON has all"),
    {0}};
static const struct arg now_args[] = {JSON, SLOWEST, OVER, NAME, {0}};
static const struct arg show_args[] = {
    JSON, LIMIT("rows of the waterfall (60); JSON has all"), {0}};

#define SETS(verb)                                                           \
    static const struct arg_set verb##_set = {"What is shown", verb##_args}; \
    static const struct arg_set *const verb##_sets[] = {&verb##_set, NULL};
SETS(slow)
SETS(show)
#undef SETS

const struct arg_set request_now_set = {"What is shown", now_args};
static const struct arg_set table_set = {"What is shown", table_args};
static const struct arg_set *const requests_sets[] = {&table_set, NULL};

/* The thread on which a request began. */
static struct str thread_at(const void *context, size_t i)
{
    const struct requests *r = context;
    const char *s = requests_thread(r, r->list.data[i].thread);
    return (struct str){s, strlen(s)};
}

#define NO_THREAD "no request began on a thread of this name"

/* Checks that for each name of the list, the other options have left a request. */
static int check_names(const struct request_view *v)
{
    const struct request_options *o = v->options;
    bool by_time = o->from_ns || o->to_ns;
    int status = only_requests_check_names(&v->r, v->path, o->name, o->thread || by_time);
    return status
               ? status
               : selected_by_name(v->path,
                                  o->name || by_time
                                      ? "no request that is selected began on a thread of this name"
                                      : NO_THREAD,
                                  o->thread, thread_at, &v->r, v->r.list.len);
}

/*
 * Reports which option leaves no request: the first that alone leaves none, or all of them
 * together. Returns the exit status.
 */
static int nothing_selected(const struct request_options *o, const char *path, bool reported)
{
    const struct request_filter everything = {0};
    _cleanup_(requests_release) struct requests r = {0};
    _cleanup_(buf_release) struct buf why = BUF(4096);
    int e = requests_load(&r, path, &everything, &why);
    if (e < 0)
        return why.len ? complain(path, "cannot read", buf_str(&why))
                       : complain_errno(path, "cannot read", e);
    if (!r.names.len)
        return reported ? 1 : only_requests_missing(path);
    int status = selected_by_time(path, o->from_ns, o->to_ns,
                                  (uint64_t)MAX(r.end_ns - r.start_ns, INT64_C(0)));
    if (!status)
        status = only_requests_check_names(&r, path, o->name, false);
    if (!status)
        status = selected_by_name(path, NO_THREAD, o->thread, thread_at, &r, r.list.len);
    if (status)
        return status;
    const char *options[] = {o->name ? "--name" : NULL, o->thread ? "--thread" : NULL,
                             o->from_ns ? "--from" : NULL, o->to_ns ? "--to" : NULL};
    _cleanup_(buf_release) struct buf all = BUF(256);
    for (size_t i = 0; i < ARRAY_SIZE(options); i++)
        if (options[i])
            buf_printf(&all, "%s ", options[i]);
    buf_string(&all, "together");
    return complain(path, "no request matches", buf_str(&all));
}

int request_view_open(struct request_view *ret, const struct request_options *o, const char *path,
                      bool reported)
{
    _cleanup_(buf_release) struct buf why = BUF(4096);
    bool filtered = o->name || o->thread || o->from_ns || o->to_ns;
    int e = request_view_load(ret, o, path, &why);
    if (e == -ENODATA && !reported)
        losses_report_known(path, losses_of_requests, true); /* perhaps because it was cut */
    if (e == -ENODATA)
        return filtered   ? nothing_selected(o, path, reported)
               : reported ? 1
                          : only_requests_missing(path);
    if (e < 0)
        return why.len ? complain(path, "cannot read", buf_str(&why))
                       : complain_errno(path, "cannot read", e);
    int status = check_names(ret);
    if (status)
        request_view_free(ret);
    return status;
}

/* Ends a verb: reports what the recording lost and releases it. Returns the exit status. */
static int request_view_close(struct request_view *v, int status)
{
    uint64_t cut_at = v->t->cut_at;
    request_view_free(v);
    char where[64];
    snprintf(where, sizeof(where), "damaged (at byte %" PRIu64 ")", cut_at);
    if (status == 0)
        /*
         * All figures show whether they are estimates, and the table says from how many requests.
         */
        losses_report_others(v->path, losses_of_requests, REQUESTS_NOT_KEPT, cut_at ? where : NULL);
    else if (cut_at)
        complain(v->path, "only part of it could be read", where);
    return status;
}

void requests_print_frames(const struct request_view *v, const struct frames_ref *f, size_t limit,
                           int indent)
{
    for (uint32_t i = 0; i < MIN((size_t)f->n, limit); i++) {
        uint32_t line;
        const char *method = frames_ref_method(v->l, f, i, &line);
        printf("%*s%s", indent, "", method);
        if (line)
            printf(":%" PRIu32, line);
        putchar('\n');
    }
    if (f->n > limit)
        printf("%*s... and %s (--stacks)\n", indent, "", COUNT_TEXT(f->n - limit, "more frames"));
}

/* ---- the table ---- */

int requests_print_json(struct request_view *v, const char *key,
                        int (*put)(struct request_view *v, struct json *j))
{
    _cleanup_(buf_release) struct buf b = BUF(SIZE_MAX / 2);
    struct json j = {.out = &b};
    json_begin_object(&j);
    json_key(&j, key);
    int e = put(v, &j);
    if (e < 0)
        return complain_errno(v->path, "cannot answer", e);
    request_cpu_note_json(v, &j);
    losses_json_of_file(v->path, losses_of_requests, true, &j);
    json_end_object(&j);
    return threads_json_print(&b);
}

void requests_print_cpu_note(const struct request_view *v)
{
    if (request_cpu_note(v))
        printf(" CPU: %s\n", request_cpu_note(v));
}

/* Marks a time whose error is 5 % or more. */
static const char *cpu_text(char text[25], const struct name_sums *s)
{
    text[0] = '~';
    format_duration(text + 1, request_each(s->cpu_ns, s));
    return s->cpu_error_ns * s->weight >= 0.05 * s->cpu_ns && s->cpu_error_ns > 0 ? text : text + 1;
}

/* Marks an amount whose error is 5 % or more. Without a sample it is the most that it can be. */
static const char *allocated_text(char text[26], const struct name_allocated *a,
                                  const struct name_sums *s)
{
    text[0] = a->samples ? '~' : '<';
    format_size(text + 1, request_each(a->samples ? a->bytes : a->error, s));
    return a->error >= 0.05 * a->bytes ? text : text + 1;
}

/* Returns an estimate with as many digits as it is worth. */
static uint64_t rounded(uint64_t n)
{
    uint64_t unit = 1;
    while (n / unit >= 1000)
        unit *= 10;
    return (n + unit / 2) / unit * unit;
}

void requests_print_not_kept(const struct request_view *v)
{
    _cleanup_(buf_release) struct buf text = BUF(256);
    if (!v->r.not_kept)
        return;
    request_put_count(&text, v->r.not_kept_estimated ? rounded(v->r.not_kept) : v->r.not_kept);
    printf(" counts and times are those of the requests whose details were kept; %s%s more "
           "ended in this time, of any name and thread\n",
           v->r.not_kept_estimated ? "about " : "", buf_str(&text));
}

struct name_counts {
    char count[24], rate[24], errors[24];
};

/* Returns the counts of a name; ">" marks those of only the requests whose details were kept. */
static struct name_counts count_texts(const struct request_view *v, const struct request_name *n)
{
    struct name_counts ret;
    const char *least = requests_are_some(&v->r, n) ? ">" : "";
    snprintf(ret.count, sizeof(ret.count), "%s%" PRIu64, least, n->all);
    snprintf(ret.rate, sizeof(ret.rate), "%s%.1f", least, request_rate(v, n));
    snprintf(ret.errors, sizeof(ret.errors), "%s%" PRIu64, n->errors ? least : "", n->errors);
    return ret;
}

/* Returns a percentile, marked if it rests on few requests. */
static const char *quantile_text(char text[25], const struct request_view *v,
                                 const struct request_name *n, double share)
{
    uint64_t ns = request_quantile(&v->r, n, share);
    if (request_quantile_is_bound(n, ns))
        return "< 1 us";
    text[0] = '~';
    format_duration(text + 1, ns);
    return request_quantile_is_uncertain(&v->r, n, share) ? text : text + 1;
}

/* Returns what took most of the time of a name, and its share. */
static const char *most_text(char text[64], const struct name_sums *s)
{
    enum request_cause worst = request_most(s);
    double of_all = 100 * request_part_of(s->ns[worst], s->latency_ns),
           error = 100 * request_part_of(s->error_ns[worst] * s->weight, s->latency_ns);
    if (!(s->latency_ns > 0))
        return "-";
    if (error >= 0.5)
        snprintf(text, 64, "%s %.0f+-%.0f %%", request_cause_text(worst), of_all, error);
    else
        snprintf(text, 64, "%s %.0f %%", request_cause_text(worst), of_all);
    return text;
}

static void table_text(struct request_view *v, const struct request_rows *rows)
{
    size_t limit = v->options->limit ? v->options->limit : 30;
    uint64_t all = 0, kept = 0, typical = 0;
    bool exact = true;
    for (size_t i = 0; i < v->r.names.len; i++) {
        all += v->r.names.data[i].all;
        kept += v->r.names.data[i].count;
        typical += rows->sums[i].requests;
        exact = exact && v->r.names.data[i].exact;
    }
    _cleanup_(buf_release) struct buf text = BUF(256);
    request_put_count(&text, all);
    printf("%s: %s request%s of %zu name%s in %.1f s\n", v->path, buf_str(&text),
           all == 1 ? "" : "s", v->r.names.len, v->r.names.len == 1 ? "" : "s",
           request_seconds(v, exact));
    if (kept < all) {
        buf_clear(&text);
        request_put_count(&text, typical);
        printf(" counts and times include all requests; causes and CPU are estimated from %s%s "
               "whose details were kept,\n with their 95 %% error (~: 5 %% or more)\n",
               typical < kept ? "a random sample of " : "the ", buf_str(&text));
    } else if (!exact) {
        requests_print_not_kept(v);
    }
    bool few = false;
    int wide = kept < all ? 19 : 16; /* with room for errors */
    for (size_t i = 0; i < MIN(v->r.names.len, limit); i++) {
        char most[64];
        wide = text_wider(wide, most_text(most, &rows->sums[i]), (int)sizeof(most));
    }
    bool counted = v->r.allocations_counted, allocates = counted || v->r.allocations.len > 0;
    if (counted)
        printf(" alloc: " REQUEST_COUNTED_BY_SITE "\n");
    else if (allocates)
        printf(" alloc is estimated from samples (~: the error is 5 %% or more, <: no sample)\n");
    requests_print_cpu_note(v);
    printf("\n%9s %8s %6s %8s %8s %8s %8s %8s %8s %s %-*s %s\n", "count", "rate/s", "errors", "p50",
           "p90", "p99", "p99.9", "max", "CPU", allocates ? "    alloc " : "", wide,
           "most of the time", "name");
    for (size_t i = 0; i < MIN(v->r.names.len, limit); i++) {
        const struct request_name *n = &v->r.names.data[i];
        const struct name_sums *s = &rows->sums[i];
        char of[REQUEST_QUANTILES][25], max[24], cpu[25], share[64];
        char bytes[26], alloc[32] = "";
        if (allocates)
            snprintf(alloc, sizeof(alloc), "%9s ",
                     s->requests && !counted ? allocated_text(bytes, &rows->allocated[i], s) : "-");
        const char *p[REQUEST_QUANTILES];
        for (size_t k = 0; k < REQUEST_QUANTILES; k++) {
            p[k] = quantile_text(of[k], v, n, request_quantiles[k].share);
            few = few || *p[k] == '~';
        }
        struct name_counts c = count_texts(v, n);
        printf("%9s %8s %6s %8s %8s %8s %8s %8s %8s %s %-*s %s\n", c.count, c.rate, c.errors, p[0],
               p[1], p[2], p[3], format_duration(max, n->max_ns),
               s->requests ? cpu_text(cpu, s) : "-", alloc, wide, most_text(share, s),
               requests_text(&v->r, n->name));
    }
    print_left_out(v->r.names.len, limit, "names");
    if (few)
        puts(" ~ percentile: fewer than ten requests of the random sample are above it, so that it "
             "may be far from that of all requests");
}

static int requests_table(struct request_view *v)
{
    _cleanup_(request_rows_release) struct request_rows rows = {0};
    if (v->options->json)
        return requests_print_json(v, "requests", requests_names_json);
    int e = request_rows_of(v, &rows);
    if (e < 0)
        return complain_errno(v->path, "cannot answer", e);
    table_text(v, &rows);
    return 0;
}

/* ---- the verbs ---- */

bool request_options_check(const struct request_options *o, const char *command)
{
    if (o->slowest <= 0 || !o->over_ns)
        return true;
    complain(command, "--slowest or --over, not both", NULL);
    return false;
}

static int run_verb(const struct command *self, int argc, char **argv,
                    int (*show)(struct request_view *))
{
    struct request_options options = {.stacks = REQUEST_FRAMES};
    struct request_view v;
    struct operands operands;
    int status;
    if (!args_parse(self, ARGS({NULL, &options}), argc, argv, &operands, &status))
        return status;
    if (!request_options_check(&options, self->name))
        return 2;
    status = request_view_open(&v, &options, operands.list[0], false);
    return status ? status : request_view_close(&v, show(&v));
}

static int cmd_requests(const struct command *self, int argc, char **argv)
{
    return run_verb(self, argc, argv, requests_table);
}

static int slow_with_stacks(struct request_view *v)
{
    return requests_slow(v, false);
}

static int cmd_slow_requests(const struct command *self, int argc, char **argv)
{
    return run_verb(self, argc, argv, slow_with_stacks);
}

static int cmd_show(const struct command *self, int argc, char **argv)
{
    struct request_options options = {.stacks = REQUEST_FRAMES};
    struct request_view v;
    struct operands operands;
    int status;
    if (!args_parse(self, ARGS({NULL, &options}), argc, argv, &operands, &status))
        return status;
    status = request_view_open(&v, &options, operands.list[1], false);
    return status ? status : request_view_close(&v, requests_show(&v, operands.list[0]));
}

static const struct command *const requests_verbs[] = {
    &(const struct command){
        .name = "requests slow",
        .run = cmd_slow_requests,
        .operands = "FILE",
        .min_operands = 1,
        .max_operands = 1,
        .summary = "explain why the slow requests are slow, compared with the typical ones",
        .description =
            "Compares the slow requests of each name with its typical ones. The slow ones are the "
            "slowest hundredth, or those that *--slowest* or *--over* select; the typical ones are "
            "the middle half. Each "
            "row is a cause: how many milliseconds of a slow and of a typical request it took on "
            "average, and its share of the difference between the two; the largest comes first. "
            "Each cause names what the requests waited for: the thread that held the lock, and "
            "what it did meanwhile. Causes of a tenth of the difference or more are shown with "
            "their stacks. The last line says what p99 would be if the first cause took no time, "
            "with its 95 % interval.\n\n"
            "Causes, with their names in JSON: CPU (*cpu*), waiting for a processor (*runnable*), "
            "container out of CPU (*throttled*), lock (*lock*: monitors), parked (*park*: "
            "java.util.concurrent), queue of an executor (*queue*), connection pool (*pool*: "
            "waiting for a connection), I/O (*io*: sockets and files), page faults (*fault*: pages "
            "of memory that were on a disk), sleep (*sleep*), garbage collection (*gc*), stopped "
            "by the VM (*safepoint*), class loading (*class-load*), *unknown*. They add up to the "
            "latency. Where a request's thread waits "
            "for another one that works for the same request, the other one's time counts.",
        .examples = "  jvmscope requests slow app.jfr\n"
                    "  jvmscope requests slow --over 500ms --name 'GET /cart*' app.jfr\n",
        .sets = slow_sets,
    },
    &(const struct command){
        .name = "requests show",
        .run = cmd_show,
        .operands = "ID FILE",
        .min_operands = 2,
        .max_operands = 2,
        .summary = "show the waterfall of one request",
        .description = "Shows what a request did from its beginning to its end: the parts of its "
                       "latency and the threads that worked for it, followed by what each thread "
                       "did for it and its calls to databases and other servers. *requests slow* "
                       "prints the numbers of the slowest requests.",
        .examples = "  jvmscope requests show 4711 app.jfr\n",
        .sets = show_sets,
    },
    NULL,
};

const struct command command_requests = {
    .name = "requests",
    .run = cmd_requests,
    .verbs = requests_verbs,
    .operands = "FILE",
    .min_operands = 1,
    .max_operands = 1,
    .summary = "show the requests of a server, how long they took, and why the slow ones are slow",
    .related = "slow threads report serve",
    .description =
        "Use it to find out which requests of a server are slow, and what makes them slow.\n\n"
        "Reads a recording made with *--requests* and prints a row for each request name, the one "
        "that took most time in total first: the number of requests, requests per second, "
        "failures, percentiles of the latency, CPU time per request, and what took most of the "
        "latency. Spans of async-profiler, Datadog's endpoint events, and events of any recorder "
        "with a field annotated as jdk.jfr.Contextual count as requests too.",
    .caveats = "Requests that were in progress when the recording began or ended are not in it. If "
               "there were too many to keep the details of each, numbers and latencies count all "
               "requests, while CPU times and causes are estimates from those that were kept, with "
               "their errors. What the recording does not show is *unknown*.",
    .examples = "  jvmscope run --requests -o app.jfr -- java -jar app.jar\n"
                "  jvmscope requests app.jfr                        a row for each name\n"
                "  jvmscope requests slow app.jfr                   why the slow ones are slow\n"
                "  jvmscope requests show 4711 app.jfr              one request\n",
    .sets = requests_sets,
};
