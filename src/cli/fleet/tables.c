/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints answers to queries about a fleet as tables. The answers are JSON, whether they come from a
 * store or a collector.
 */
#include "analysis/request_ledger.h"
#include "base/buf.h"
#include "base/parse.h"
#include "cli/commands.h"
#include "cli/fleet/fleet.h"
#include "cli/text.h"
#include "profile/load.h"
#include "profile/profile.h"

#include <json.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char *text_at(struct json_object *o, const char *key)
{
    struct json_object *v;
    return json_object_object_get_ex(o, key, &v) ? json_object_get_string(v) : "";
}

/* Returns the name of a version; profiles may have none. */
static const char *version_at(struct json_object *o, const char *key)
{
    const char *text = text_at(o, key);
    return *text ? text : "(no version)";
}

static uint64_t number_at(struct json_object *o, const char *key)
{
    struct json_object *v;
    return json_object_object_get_ex(o, key, &v) ? json_object_get_uint64(v) : 0;
}

static double real_at(struct json_object *o, const char *key)
{
    struct json_object *v;
    return json_object_object_get_ex(o, key, &v) ? json_object_get_double(v) : 0;
}

static struct json_object *at(struct json_object *o, const char *key)
{
    struct json_object *v;
    return json_object_object_get_ex(o, key, &v) ? v : NULL;
}

static size_t length(struct json_object *list)
{
    return list ? json_object_array_length(list) : 0;
}

static bool is_bytes(const char *metric)
{
    return strcmp(metric, "allocations") == 0 || strcmp(metric, "live") == 0;
}

static void print_time(uint64_t seconds)
{
    char text[32];
    time_t t = (time_t)seconds;
    struct tm tm;
    localtime_r(&t, &tm);
    strftime(text, sizeof(text), "%Y-%m-%d %H:%M", &tm);
    printf("  %s", text);
}

static void print_services(struct json_object *root, size_t limit)
{
    struct json_object *list = at(root, "services");
    printf(" hosts  instances  from              to                service, version\n");
    for (size_t i = 0; i < MIN(length(list), limit); i++) {
        struct json_object *s = json_object_array_get_idx(list, i);
        printf("%6llu  %9llu", (unsigned long long)number_at(s, "hosts"),
               (unsigned long long)number_at(s, "instances"));
        if (at(s, "to")) {
            print_time(number_at(s, "from"));
            print_time(number_at(s, "to"));
        } else { /* it sent recordings in which there is nothing */
            printf("  %-16s  %-16s", "-", "-");
        }
        printf("  %s %s\n", text_at(s, "service"), version_at(s, "version"));
    }
    print_left_out(length(list), limit, "services");
}

/* Reports how many samples are not included in sums of times. */
static void print_timeless(uint64_t n, const char *metric, bool cost)
{
    if (n)
        printf("\n%s %s missing from the %s column%s\n", COUNT_TEXT(n, "samples"),
               n == 1 ? "does not state the time that it represents and is"
                      : "do not state the time that they represent and are",
               metric, cost ? " and the costs" : "");
}

/* The column in front of the names; rows of samples without a time have no cost. */
static void print_cost(struct json_object *row)
{
    double cost = real_at(row, "cost");
    if (!at(row, "cost"))
        printf("%10s  ", "unknown");
    else if (cost > 0 && cost < 0.005)
        printf("%10s  ", "<0.01");
    else
        printf("%10.2f  ", cost);
}

static bool has_cost(const struct fleet_options *o)
{
    return o->price && strtod(o->price, NULL) > 0 && (!o->metric || strcmp(o->metric, "cpu") == 0);
}

static void print_top_services(struct json_object *root, const char *metric, bool cost,
                               size_t limit)
{
    struct json_object *list = at(root, "services");
    char samples[64], weight[64], timeless[64], shown[24];
    uint64_t all_timeless = 0;
    bool bytes = is_bytes(metric);
    snprintf(samples, sizeof(samples), "%.40s_samples", metric);
    snprintf(weight, sizeof(weight), "%.40s_%s", metric, bytes ? "bytes" : "ns");
    snprintf(timeless, sizeof(timeless), "%.40s_samples_without_time", metric);
    printf("   samples  %10s  %sservice, version\n", metric, cost ? "      cost  " : "");
    for (size_t i = 0; i < MIN(length(list), limit); i++) {
        struct json_object *s = json_object_array_get_idx(list, i);
        uint64_t w = number_at(s, weight), n = number_at(s, timeless);
        all_timeless += n;
        printf("%10llu  %10s  ", (unsigned long long)number_at(s, samples),
               n && !w ? "unknown"
               : bytes ? format_size(shown, w)
                       : format_duration(shown, w));
        if (cost)
            print_cost(s);
        printf("%s %s\n", text_at(s, "service"), version_at(s, "version"));
    }
    print_left_out(length(list), limit, "services");
    print_timeless(all_timeless, metric, cost);
}

static uint64_t whole_of(struct json_object *root, const char *metric)
{
    char key[64];
    bool samples = strcmp(metric, "cpu") == 0 || strcmp(metric, "wall") == 0;
    snprintf(key, sizeof(key), "%.40s_%s", metric,
             samples            ? "samples"
             : is_bytes(metric) ? "bytes"
                                : "ns");
    return number_at(root, key);
}

/* Formats an amount of a metric in its unit. Other programs' metrics have no unit that is known. */
static const char *amount(char text[24], const char *metric, uint64_t n)
{
    if (is_bytes(metric))
        return format_size(text, n);
    if (strcmp(metric, "locks") == 0 || strcmp(metric, "times") == 0 ||
        strcmp(metric, "latency") == 0)
        return format_duration(text, n);
    snprintf(text, 24, "%llu", (unsigned long long)n);
    return text;
}

static double percent(uint64_t part, uint64_t whole)
{
    return whole ? 100.0 * (double)part / (double)whole : 0;
}

static void print_shares_head(bool cost)
{
    printf("%17s  %17s  %s", "self", "total", cost ? "      cost  " : "");
}

/* The columns "self" and "total" of a row. */
static void print_shares(struct json_object *row, const char *metric, uint64_t whole)
{
    static const char *const keys[] = {"self", "total"}, *const few[] = {"few_readings",
                                                                         "few_readings_of_total"};
    char text[24];
    for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
        uint64_t n = number_at(row, keys[i]);
        char shown[32];
        snprintf(shown, sizeof(shown), "%s%s", at(row, few[i]) ? "~" : "", amount(text, metric, n));
        printf("%9s %5.1f %%  ", shown, percent(n, whole));
    }
}

static void print_top_methods(struct json_object *root, const char *metric, bool cost, size_t limit)
{
    struct json_object *list = at(root, "methods");
    uint64_t whole = whole_of(root, metric);
    char text[24];
    print_shares_head(cost);
    printf("method (%s, of %s)\n", metric, amount(text, metric, whole));
    for (size_t i = 0; i < MIN(length(list), limit); i++) {
        struct json_object *m = json_object_array_get_idx(list, i);
        print_shares(m, metric, whole);
        if (cost)
            print_cost(m);
        printf("%s\n", text_at(m, "method"));
    }
    print_left_out(length(list), limit, "methods");
}

/* Returns whether a change of times rests on too few readings. */
static bool is_few(struct json_object *part)
{
    return strcmp(text_at(part, "verdict"), "too few readings") == 0;
}

static void print_diff_part(struct json_object *m, const char *key)
{
    struct json_object *p = at(m, key);
    char change[32];
    snprintf(change, sizeof(change), "%s%+.2f", is_few(p) ? "~" : "", 100 * real_at(p, "change"));
    printf(" %8s (%+.2f to %+.2f)", change, 100 * real_at(p, "low"), 100 * real_at(p, "high"));
}

static bool has_changed(struct json_object *m)
{
    static const char *const parts[] = {"self", "total"};
    bool changed = false;
    for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
        struct json_object *p = at(m, parts[i]);
        changed = changed || (strcmp(text_at(p, "verdict"), "no change") != 0 && !is_few(p));
    }
    return changed;
}

/* Prints what was compared, such as " version 1.7, 448 samples". */
static void print_side(struct json_object *side)
{
    const char *selection = text_at(side, "selection");
    printf(" %s%s%s", selection, *selection ? ", " : "",
           COUNT_TEXT(number_at(side, "samples"), "samples"));
}

static void print_diff(struct json_object *root, size_t limit)
{
    struct json_object *list = at(root, "methods"), *base = at(root, "base"),
                       *new = at(root, "new");
    const char *verdict = text_at(root, "verdict");
    size_t changed = 0;
    while (changed < length(list) && has_changed(json_object_array_get_idx(list, changed)))
        changed++;
    printf("%s: base", text_at(root, "metric"));
    print_side(base);
    printf("; new");
    print_side(new);
    printf(": ");
    if (strcmp(verdict, "changed") == 0)
        printf("%s changed\n\n", COUNT_TEXT(changed, "methods"));
    else
        printf("%s\n", verdict);
    if (changed)
        printf("  self: change in points (95 %% sure)  total: change in points        method\n");
    for (size_t i = 0; i < MIN(changed, limit); i++) {
        struct json_object *m = json_object_array_get_idx(list, i);
        print_diff_part(m, "self");
        print_diff_part(m, "total");
        printf("  %s\n", text_at(m, "method"));
    }
    print_left_out(changed, limit, "methods");
    size_t few = 0;
    for (size_t i = 0; i < length(list); i++)
        few += is_few(at(json_object_array_get_idx(list, i), "total"));
    if (few)
        printf("%s cannot be compared: fewer than %d %s on both sides\n",
               COUNT_TEXT(few, "methods"), FEWEST_READINGS,
               is_bytes(text_at(root, "metric")) ? "samples" : "readings of the clock");
}

/* The slowest requests whose recordings a collector kept, and how to ask it for them. */
static void print_slowest(struct json_object *list, size_t limit)
{
    char shown[24];
    if (length(list))
        printf("\n  duration  ended              service, request (id): recording\n");
    for (size_t i = 0; i < MIN(length(list), limit); i++) {
        struct json_object *s = json_object_array_get_idx(list, i);
        printf("%10s", format_duration(shown, number_at(s, "duration_ns")));
        print_time(number_at(s, "at"));
        printf("   %s %s (%s): ", text_at(s, "service"), text_at(s, "request"), text_at(s, "id"));
        if (at(s, "recording"))
            printf("/v1/recordings/%s\n", text_at(s, "recording"));
        else
            printf("its recording has been removed\n");
    }
}

/* Describes what most of the latency went into: "lock 61 %". */
static const char *most_text(char text[64], struct json_object *causes)
{
    struct json_object *most = length(causes) ? json_object_array_get_idx(causes, 0) : NULL;
    if (!most)
        return "-";
    snprintf(text, 64, "%s %.0f %%", request_cause_text_of(text_at(most, "cause")),
             100 * real_at(most, "share"));
    return text;
}

/* Describes what the slow requests have more of than the typical ones: "lock +61 ms". */
static const char *why_text(char text[64], struct json_object *why)
{
    char ns[24];
    if (!why)
        return "-";
    snprintf(text, 64, "%s +%s", request_cause_text_of(text_at(why, "cause")),
             format_duration(ns, number_at(why, "more_ns")));
    return text;
}

static bool is_listed(struct json_object *list, const char *text)
{
    for (size_t i = 0; i < length(list); i++)
        if (strcmp(json_object_get_string(json_object_array_get_idx(list, i)), text) == 0)
            return true;
    return false;
}

static void print_requests(struct json_object *root, size_t limit)
{
    static const char *const keys[] = {"mean_ns", "p50_ns", "p99_ns", "max_ns"};
    struct json_object *list = at(root, "requests");
    uint64_t with = 0, without = 0;
    char shown[24], text[64];
    int most = 16, why = 18;
    for (size_t i = 0; i < MIN(length(list), limit); i++) {
        struct json_object *r = json_object_array_get_idx(list, i);
        most = text_wider(most, most_text(text, at(r, "causes")), (int)sizeof(text));
        why = text_wider(why, why_text(text, at(r, "why_slow")), (int)sizeof(text));
    }
    printf("     count   errors       mean        p50        p99        max  %-*s  %-*s  service, "
           "request\n",
           most, "most of it", why, "why slow");
    for (size_t i = 0; i < MIN(length(list), limit); i++) {
        struct json_object *r = json_object_array_get_idx(list, i);
        printf("%10llu  %7llu", (unsigned long long)number_at(r, "count"),
               (unsigned long long)number_at(r, "errors"));
        for (size_t k = 0; k < ARRAY_SIZE(keys); k++)
            printf("  %9s", is_listed(at(r, "upper_bounds"), keys[k])
                                ? "< 1 us"
                                : format_duration(shown, number_at(r, keys[k])));
        printf("  %-*s", most, most_text(text, at(r, "causes")));
        printf("  %-*s", why, why_text(text, at(r, "why_slow")));
        with += number_at(r, "with_causes");
        without += number_at(r, "without_causes");
        printf("  %s %s\n", text_at(r, "service"), text_at(r, "request"));
    }
    print_left_out(length(list), limit, "requests");
    if (without)
        printf("\nThe causes are estimated from the details of %s; those of %s were not kept, or "
               "were kept only because the request was slow\n",
               COUNT_TEXT(with, "requests"), COUNT_TEXT(without, "others"));
    if (length(list))
        printf("\n%s\n", text_at(root, "note"));
    print_slowest(at(root, "slowest"), limit);
}

/* A member of a figure: "412 MiB", or "-" where nothing was read. */
static void print_figure(struct json_object *row, const char *figure, const char *member, int width)
{
    struct json_object *f = at(row, figure);
    uint64_t n = number_at(f, member);
    char text[24];
    if (!f)
        snprintf(text, sizeof(text), "-");
    else if (strcmp(member, "p99_ns") == 0 && json_object_get_boolean(at(f, "p99_is_upper_bound")))
        snprintf(text, sizeof(text), "< 1 us");
    else if (strstr(member, "_ns"))
        format_duration(text, n);
    else if (strstr(member, "_bytes"))
        format_size(text, n);
    else
        snprintf(text, sizeof(text), "%llu", (unsigned long long)n);
    printf("%*s", width, text);
}

static void print_vm(struct json_object *root, size_t limit)
{
    static const struct {
        const char *head, *figure, *member;
    } columns[] = {
        {"pauses", "pauses", "count"},          {"paused", "pauses", "total_ns"},
        {"longest", "pauses", "most_ns"},       {"stopped", "safepoints", "total_ns"},
        {"throttled", "throttled", "total_ns"}, {"cpu", "cpu", "total_ns"},
        {"heap", "heap", "mean_bytes"},         {"most", "heap", "most_bytes"},
        {"rss", "rss", "mean_bytes"},           {"most", "rss", "most_bytes"},
        {"threads", "threads", "most"},
    };

    struct json_object *list = at(root, "services");
    for (size_t k = 0; k < ARRAY_SIZE(columns); k++)
        printf("%10s", columns[k].head);
    printf("  service, version\n");
    for (size_t i = 0; i < MIN(length(list), limit); i++) {
        struct json_object *s = json_object_array_get_idx(list, i);
        for (size_t k = 0; k < ARRAY_SIZE(columns); k++)
            print_figure(s, columns[k].figure, columns[k].member, 10);
        printf("  %s %s\n", text_at(s, "service"), version_at(s, "version"));
    }
    print_left_out(length(list), limit, "services");
}

/* with_metric: --metric chose what was compared */
static void print_findings(struct json_object *root, size_t limit, bool with_metric)
{
    struct json_object *list = at(root, "findings"), *compared = at(root, "compared");
    char shown[24];
    bool bytes = is_bytes(text_at(root, "metric"));
    for (size_t i = 0; i < MIN(length(list), limit); i++) {
        struct json_object *f = json_object_array_get_idx(list, i);
        if (i == 0)
            printf("     extra  self: change in points (99 %% sure)  total: change in points"
                   "         service, version, method\n");
        uint64_t extra = number_at(f, bytes ? "extra_bytes" : "extra_ns");
        printf("%10s", !extra  ? "unknown"
                       : bytes ? format_size(shown, extra)
                               : format_duration(shown, extra));
        print_diff_part(f, "self");
        print_diff_part(f, "total");
        printf("  %s %s (after %s) %s\n", text_at(f, "service"), version_at(f, "version"),
               version_at(f, "base"), text_at(f, "method"));
    }
    print_left_out(length(list), limit, "findings");
    if (!length(compared) && !length(list))
        puts("nothing was compared: no version of a service began after another one in this period "
             "(versions that began in the same interval have no order)");
    else if (!length(list))
        printf("nothing got slower: %s%s compared with the one before it\n",
               COUNT_TEXT(length(compared), "new versions"), length(compared) == 1 ? "" : ", each");
    list = at(root, "reported");
    if (length(list) && with_metric)
        printf("\nWhat recordings report of requests, whatever --metric says:");
    if (length(list))
        printf("\n     costs    count  VMs  what: service, version, where or why\n");
    for (size_t i = 0; i < MIN(length(list), limit); i++) {
        struct json_object *f = json_object_array_get_idx(list, i);
        uint64_t ns = number_at(f, "weight_ns");
        printf("%10s  %7llu  %3llu  %s: %s %s, %s\n", ns ? format_duration(shown, ns) : "unknown",
               (unsigned long long)number_at(f, "count"),
               (unsigned long long)number_at(f, "instances"), text_at(f, "kind"),
               text_at(f, "service"), version_at(f, "version"), text_at(f, "text"));
    }
    print_left_out(length(list), limit, "findings");
}

static void print_query_rows(struct json_object *list, const char *what, const char *metric,
                             uint64_t whole, size_t limit, bool cost, bool places)
{
    print_shares_head(cost);
    printf("%s\n", places ? "service, version: method" : "caller > method");
    for (size_t i = 0; i < MIN(length(list), limit); i++) {
        struct json_object *m = json_object_array_get_idx(list, i);
        print_shares(m, metric, whole);
        if (cost)
            print_cost(m);
        if (places)
            printf("%s %s: %s\n", text_at(m, "service"), version_at(m, "version"),
                   text_at(m, "method"));
        else
            printf("%s > %s\n", *text_at(m, "caller") ? text_at(m, "caller") : "(none)",
                   text_at(m, "method"));
    }
    print_left_out(length(list), limit, what);
}

static void print_query(struct json_object *root, const char *metric, bool cost, size_t limit)
{
    uint64_t whole = whole_of(root, metric);
    char text[24];
    printf("%s, %s in all that is chosen\n\n", metric, amount(text, metric, whole));
    print_query_rows(at(root, "services"), "rows", metric, whole, limit, cost, true);
    printf("\n");
    print_query_rows(at(root, "callers"), "callers", metric, whole, limit, cost, false);
}

/* The kind of the stacks, for readers of collapsed stacks that keep it (doc/format.md). */
static void print_stacks_note(struct json_object *root, const char *metric)
{
    char readings[64], samples[64];
    snprintf(readings, sizeof(readings), "%.40s_readings", metric);
    snprintf(samples, sizeof(samples), "%.40s_samples", metric);
    uint64_t n = number_at(root, readings);
    if (n && n == number_at(root, samples) && is_bytes(metric))
        printf(COLLAPSED_METRIC "%s 0\n" COLLAPSED_NOTE PROFILE_SAMPLES_NOTE " 0\n", metric,
               COUNT_TEXT(n, "samples"));
    else if (n && n == number_at(root, samples))
        printf(COLLAPSED_METRIC "%s 0\n" COLLAPSED_NOTE PROFILE_READINGS_NOTE " 0\n", metric,
               COUNT_TEXT(n, "readings"), FEWEST_READINGS);
}

/*
 * Prints the stacks of a tree in collapsed form, at full depth, because a shortened stack would be
 * a different one.
 */
static void print_stacks(struct json_object *node, struct buf *path)
{
    struct json_object *children = at(node, "children");
    size_t len = path->len;
    uint64_t self = number_at(node, "self");
    if (self && path->len) {
        (fwrite)(path->data, 1, path->len, stdout);
        printf(" %llu\n", (unsigned long long)self);
    }
    for (size_t i = 0; i < length(children); i++) {
        struct json_object *child = json_object_array_get_idx(children, i);
        const char *name = text_at(child, "name");
        buf_string(path, len ? ";" : "");
        (void)text_put(path, name, strlen(name), SIZE_MAX);
        print_stacks(child, path);
        path->len = len;
    }
}

static void print_table(const char *verb, struct json_object *root, const struct fleet_options *o)
{
    const char *chosen = text_at(root, "metric"); /* unless one is named */
    const char *metric = o->metric ? o->metric : *chosen ? chosen : "cpu";
    bool cost = has_cost(o) && (!*chosen || strcmp(chosen, "cpu") == 0);
    _cleanup_(buf_release) struct buf path = BUF(1 << 26);
    if (strcmp(verb, "services") == 0)
        print_services(root, o->limit);
    else if (strcmp(verb, "requests") == 0)
        print_requests(root, o->limit);
    else if (strcmp(verb, "vm") == 0)
        print_vm(root, o->limit);
    else if (strcmp(verb, "diff") == 0)
        print_diff(root, o->limit);
    else if (strcmp(verb, "flame") == 0) {
        print_stacks_note(root, metric);
        print_stacks(at(root, "root"), &path);
    } else if (strcmp(verb, "findings") == 0)
        print_findings(root, o->limit, o->metric != NULL);
    else if (strcmp(verb, "query") == 0)
        print_query(root, metric, cost, o->limit);
    else if (at(root, "methods"))
        print_top_methods(root, metric, cost, o->limit);
    else
        print_top_services(root, metric, cost, o->limit);
}

enum { DEPTH_MAX = 10000 };

int fleet_print(const char *verb, const struct buf *out, const struct fleet_options *o)
{
    /* In a string of JSON the quotes would be escaped, so this can only be a key. */
    static const char nothing_key[] = ",\"nothing\":\"";
    if (o->json) {
        puts(buf_str(out));
        if (!memmem(out->data, out->len, nothing_key, strlen(nothing_key)))
            return 0;
    }
    struct json_tokener *t = json_tokener_new_ex(DEPTH_MAX);
    struct json_object *root =
        t ? json_tokener_parse_ex(t, (const char *)out->data, (int)out->len) : NULL;
    json_tokener_free(t);
    if (!root)
        return complain("fleet", "cannot read the answer", NULL);
    struct json_object *nothing = at(root, "nothing");
    int status = nothing ? complain("fleet", json_object_get_string(nothing), NULL) : 0;
    if (!nothing && !o->json)
        print_table(verb, root, o);
    json_object_put(root);
    return status;
}
