/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What recordings of cpu=times contain beyond weights: numbers of calls, raw times, errors.
 */
#include "base/map.h"
#include "base/parse.h"
#include "cli/reading.h"
#include "cli/report.h"
#include "profile/call_interval.h"
#include "profile/profile.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

/* A method, summed over all stacks that it occurs in. */
struct times_row {
    uint32_t label;
    uint32_t mark; /* the last row for which this method's total was counted, + 1 */
    uint64_t calls, slowest_ns;
    int64_t self_ns, total_ns;
    int64_t raw_ns; /* like self_ns, including the cost of counting */
    struct call_sum own, whole;
    int64_t open_ns;         /* part of self_ns in calls that had not returned at the end */
    bool known, total_known; /* timed at every call, or certainly more than nothing */
    bool small;              /* only counted; its time is part of its callers' */
};

struct times_table {
    VEC(struct times_row) rows;
    struct map index; /* label -> row */
    int64_t total_ns;
    struct call_sum sum;
    bool timed_by_readings;
};

static uint32_t label_of(const struct profile *p, uint32_t node)
{
    return p->methods.data[profile_node_frame(p, node)->method].label;
}

static struct times_row *row_of(struct times_table *t, uint32_t label)
{
    bool added;
    uint64_t *at = map_at(&t->index, label, t->rows.len, &added);
    if (!at || (added && vec_push(&t->rows, ((struct times_row){.label = label})) < 0))
        return NULL;
    return &t->rows.data[*at];
}

static int add_calls(struct times_table *t, const struct profile *p, uint32_t number)
{
    const struct profile_calls *c = &p->calls.data[number];
    for (uint32_t node = c->node; node; node = p->nodes.data[node].parent) {
        struct times_row *row = row_of(t, label_of(p, node));
        if (!row)
            return -ENOMEM;
        if (node == c->node) {
            row->calls += c->calls;
            row->self_ns += c->self_ns;
            row->raw_ns += c->raw_ns;
            call_sum_add(&row->own, c);
            row->open_ns += c->open_ns;
            row->slowest_ns = MAX(row->slowest_ns, c->slowest_ns);
        }
        /* A method counts once per stack, however often it occurs there. */
        if (row->mark != number + 1) {
            row->total_ns += c->self_ns;
            call_sum_add(&row->whole, c);
        }
        row->mark = number + 1;
    }
    call_sum_add(&t->sum, c);
    return 0;
}

/* Marks the rows of small methods, except those that share their name with one that was timed. */
static void mark_small(struct times_table *t, const struct profile *p)
{
    for (size_t i = 0; i < p->left.len; i++) {
        const struct profile_left *left = &p->left.data[i];
        const uint64_t *at = strcmp(profile_text(p, left->reason).data, "small") == 0
                                 ? map_get(&t->index, left->label)
                                 : NULL;
        struct times_row *row = at ? &t->rows.data[*at] : NULL;
        if (row)
            row->small = !row->raw_ns && !row->self_ns && !row->own.readings;
    }
}

/*
 * Sorts by the self time of calls that have returned, because a thread may wait in a call until the
 * recording ends. Methods that may have taken no time follow, sorted by calls.
 */
static int by_self(const void *a, const void *b)
{
    const struct times_row *x = a, *y = b;
    if (x->known != y->known)
        return x->known ? -1 : 1;
    int64_t x_ns = x->self_ns - x->open_ns, y_ns = y->self_ns - y->open_ns;
    if (x->known && x_ns != y_ns)
        return x_ns < y_ns ? 1 : -1;
    return x->calls != y->calls ? (x->calls < y->calls ? 1 : -1)
                                : (x->label > y->label) - (x->label < y->label);
}

/* Without a reading no time is known; the remainder is only the estimated cost of the probes. */
static bool has_time(const struct times_table *t, const struct call_sum *s)
{
    return !t->timed_by_readings || s->readings || s->exact_ns > 0;
}

static struct call_interval interval_of(const struct times_table *t, const struct call_sum *s)
{
    return call_interval(s, t->sum.exact_ns);
}

/* Returns whether there are enough readings to state a time. */
static bool is_enough(const struct times_table *t, const struct call_sum *s)
{
    return t->timed_by_readings && s->readings >= FEWEST_READINGS;
}

/* Returns whether a time is that of the row without a method, which was not read but measured. */
static bool is_exact(const struct times_table *t, const struct call_sum *s)
{
    return t->timed_by_readings && !s->readings && s->exact_ns > 0;
}

static bool is_known(const struct times_table *t, const struct call_sum *s)
{
    return !t->timed_by_readings || call_time_is_known(s);
}

static int times_table(struct times_table *t, const struct profile *p,
                       const struct profile_filter *filter)
{
    struct profile_view v;
    int r = report_filter_init(&v, p, PROFILE_EXACT, filter);
    for (size_t i = 0; i < p->calls.len && r == 0; i++) {
        const struct profile_calls *c = &p->calls.data[i];
        if (!report_passes(&v, c->node, &c->thread))
            continue;
        r = add_calls(t, p, (uint32_t)i);
    }
    profile_view_release(&v);
    if (r < 0)
        return r;
    mark_small(t, p);
    t->timed_by_readings = p->timed_by_readings;
    for (size_t i = 0; i < t->rows.len; i++) {
        struct times_row *row = &t->rows.data[i];
        row->known = !row->small && is_known(t, &row->own);
        row->total_known = is_known(t, &row->whole);
        t->total_ns += row->self_ns;
    }
    if (t->rows.len)
        qsort(t->rows.data, t->rows.len, sizeof(*t->rows.data), by_self);
    return 0;
}

static void times_release(struct times_table *t)
{
    vec_release(&t->rows);
    map_release(&t->index);
}

static const char *signed_time(char to[32], int64_t ns)
{
    char text[24];
    snprintf(to, 32, "%s%s", ns < 0 ? "-" : "",
             format_duration(text, (uint64_t)(ns < 0 ? -ns : ns)));
    return to;
}

/*
 * Prints a time, with a mark if it rests on too few readings. Prints "-" if there is no reading of
 * the clock, or if the cost of counting exceeds what the few readings show.
 */
static const char *read_time(const struct times_table *t, char to[40], int64_t ns,
                             bool has_readings, bool known)
{
    bool mark = t->timed_by_readings && !known;
    to[0] = '~';
    signed_time(to + mark, ns);
    return t->timed_by_readings && (!has_readings || (mark && ns < 0)) ? "-" : to;
}

enum { OPEN_ROWS = 5 };

static int by_open(const void *a, const void *b)
{
    const struct times_row *x = *(const struct times_row *const *)a,
                           *y = *(const struct times_row *const *)b;
    return x->open_ns != y->open_ns ? (x->open_ns < y->open_ns ? 1 : -1)
                                    : (x->label > y->label) - (x->label < y->label);
}

/* Prints the times that the table includes but that its order ignores. */
static void print_open(const struct times_table *t, const struct profile *p)
{
    _cleanup_free_ const struct times_row **open = calloc(t->rows.len + 1, sizeof(*open));
    size_t n = 0;
    uint64_t sum = 0;
    char text[32];
    for (size_t i = 0; open && i < t->rows.len; i++)
        if (t->rows.data[i].open_ns > 0) {
            open[n++] = &t->rows.data[i];
            sum += (uint64_t)t->rows.data[i].open_ns;
        }
    if (!n)
        return;
    qsort(open, n, sizeof(*open), by_open);
    printf("\n Time in calls that had not returned at the end, not used for ranking: %s\n",
           format_duration(text, sum));
    for (size_t i = 0; i < MIN(n, (size_t)OPEN_ROWS); i++) {
        printf("              %10s  ", format_duration(text, (uint64_t)open[i]->open_ns));
        print_text(stdout, profile_text(p, open[i]->label));
        putchar('\n');
    }
    if (n > OPEN_ROWS)
        printf(" ... and %s (--json)\n", COUNT_TEXT(n - OPEN_ROWS, "more methods"));
}

/* Prints how many methods were left out for each reason, in the order of their first occurrence. */
static void print_left(const struct profile *p)
{
    struct {
        uint32_t reason;
        size_t n;
    } reasons[16];

    size_t n = 0;
    for (size_t i = 0; i < p->left.len; i++) {
        size_t k = 0;
        while (k < n && reasons[k].reason != p->left.data[i].reason)
            k++;
        if (k == n && n < ARRAY_SIZE(reasons)) {
            reasons[n].reason = p->left.data[i].reason;
            reasons[n++].n = 0;
        }
        if (k < n)
            reasons[k].n++;
    }
    for (size_t k = 0; k < n; k++) {
        struct str reason = profile_text(p, reasons[k].reason);
        printf(k ? ", " : "\n Not timed on their own, but as part of their callers: ");
        printf("%s (", COUNT_TEXT(reasons[k].n, "methods"));
        for (size_t i = 0; i < reason.len; i++)
            putchar(reason.data[i] == '_' ? ' ' : reason.data[i]);
        putchar(')');
    }
    if (n)
        printf("; --json names them\n");
}

/*
 * Prints what HPROF text contains: calls, and times, of which it rounds the smaller ones to zero.
 */
static void print_rounded_times(const struct times_table *t, const struct profile *p, size_t limit)
{
    puts("       calls        self       total  method");
    for (size_t i = 0; i < MIN(t->rows.len, limit); i++) {
        const struct times_row *row = &t->rows.data[i];
        char self[32], total[32];
        printf("%12" PRIu64 "  %10s  %10s  ", row->calls,
               row->self_ns ? signed_time(self, row->self_ns) : "-",
               row->total_ns ? signed_time(total, row->total_ns) : "-");
        print_text(stdout, profile_text(p, row->label));
        putchar('\n');
    }
    print_left_out(t->rows.len, limit, "methods");
    printf(" - too little, or too few readings of the clock, for the file to show a time\n");
}

static void print_times(const struct times_table *t, const struct profile *p, size_t limit)
{
    puts("\n Counted calls");
    if (p->times_rounded) {
        print_rounded_times(t, p, limit);
        return;
    }
    if (t->sum.readings) {
        struct call_interval sum = interval_of(t, &t->sum);
        char low[24], high[24], cost[24];
        printf("  the sum lies between %s and %s, without the cost of the probes: some %s, "
               "or between half and twice that\n",
               format_duration(low, (uint64_t)sum.low), format_duration(high, (uint64_t)sum.high),
               format_duration(cost, (uint64_t)t->sum.cost_ns));
        if (t->sum.exact_ns > 0)
            printf(
                "  %s of it is CPU time that no reading of the clock covers: any method may have "
                "some of it\n",
                format_duration(cost, (uint64_t)t->sum.exact_ns));
    }
    printf("       calls        self         raw       total    a call  %s method\n",
           t->timed_by_readings ? "   95 % interval   " : "   slowest");
    for (size_t i = 0; i < MIN(t->rows.len, limit); i++) {
        const struct times_row *row = &t->rows.data[i];
        char self[40], raw[40], total[40], each[40], low_text[24], high_text[24],
            error[64] = "too few readings";
        if (row->small)
            snprintf(error, sizeof(error), "not timed");
        else if (!t->timed_by_readings)
            format_duration(error, row->slowest_ns);
        else if (is_exact(t, &row->own))
            snprintf(error, sizeof(error), "measured");
        else if (is_enough(t, &row->own)) {
            struct call_interval in = interval_of(t, &row->own);
            snprintf(error, sizeof(error), "%s..%s", format_duration(low_text, (uint64_t)in.low),
                     format_duration(high_text, (uint64_t)in.high));
        }
        bool readings = !row->small && has_time(t, &row->own);
        printf("%12" PRIu64 "  %10s  %10s  %10s  %8s  %*s  ", row->calls,
               read_time(t, self, row->self_ns, readings, row->known),
               read_time(t, raw, row->raw_ns, readings,
                         is_enough(t, &row->own) || is_exact(t, &row->own)),
               read_time(t, total, row->total_ns, has_time(t, &row->whole), row->total_known),
               read_time(t, each, row->calls ? row->self_ns / (int64_t)row->calls : 0, readings,
                         row->known),
               t->timed_by_readings ? 18 : 9, error);
        print_text(stdout, profile_text(p, row->label));
        putchar('\n');
    }
    print_left_out(t->rows.len, limit, "methods");
    print_open(t, p);
    print_left(p);
}

/* Each method and reason once: overloads have the same name, and a single row. */
static void json_left(struct json *j, const struct profile *p)
{
    _cleanup_(map_release) struct map seen = {0};
    json_key_array(j, "left");
    for (size_t i = 0; i < p->left.len; i++) {
        uint64_t key = (uint64_t)p->left.data[i].label << 32 | p->left.data[i].reason;
        bool added = true;
        (void)!map_at(&seen, key, 0, &added);
        if (!added)
            continue;
        struct str label = profile_text(p, p->left.data[i].label),
                   reason = profile_text(p, p->left.data[i].reason);
        json_begin_object(j);
        json_key_string_n(j, "method", label.data, label.len);
        json_key_string_n(j, "reason", reason.data, reason.len);
        json_end_object(j);
    }
    json_end_array(j);
}

static void json_time(struct json *j, const char *key, bool known, int64_t ns)
{
    json_key(j, key);
    if (known)
        json_i64(j, ns);
    else
        json_null(j);
}

static void json_interval(struct json *j, const char *key, bool known, double low, double high)
{
    json_key(j, key);
    if (!known) {
        json_null(j);
        return;
    }
    json_begin_array(j);
    json_i64(j, (int64_t)low);
    json_i64(j, (int64_t)high);
    json_end_array(j);
}

static void json_times(struct json *j, const struct times_table *t, const struct profile *p)
{
    json_key_object(j, "times");
    json_key_i64(j, "total_ns", t->total_ns);
    if (p->times_rounded) {
        json_key_bool(j, "rounded", true);
    } else {
        json_key_string(j, "clock", t->timed_by_readings ? "cpu" : "elapsed");
    }
    if (t->timed_by_readings) {
        struct call_interval sum = interval_of(t, &t->sum);
        json_key_u64(j, "readings", t->sum.readings);
        json_interval(j, "total_ns_95", true, sum.low, sum.high);
        json_key_i64(j, "unread_ns", (int64_t)t->sum.exact_ns);
    }
    json_key_array(j, "methods");
    for (size_t i = 0; i < t->rows.len; i++) {
        const struct times_row *row = &t->rows.data[i];
        struct str label = profile_text(p, row->label);
        json_begin_object(j);
        json_key_string_n(j, "method", label.data, label.len);
        json_key_u64(j, "calls", row->calls);
        json_time(j, "self_ns", has_time(t, &row->own), row->self_ns);
        json_time(j, "total_ns", has_time(t, &row->whole), row->total_ns);
        if (!p->times_rounded) {
            json_key_i64(j, "raw_self_ns", row->raw_ns);
        }
        if (p->times_rounded) {
            /* The file contains nothing else. */
        } else if (t->timed_by_readings) {
            bool enough = (is_enough(t, &row->own) && !row->small) || is_exact(t, &row->own);
            struct call_interval in = interval_of(t, &row->own);
            json_key_u64(j, "readings", row->own.readings);
            json_interval(j, "raw_self_ns_95", enough, in.raw_low, in.raw_high);
            json_interval(j, "self_ns_95", enough, in.low, in.high);
        } else {
            json_key_u64(j, "slowest_ns", row->slowest_ns);
            json_key_i64(j, "open_ns", row->open_ns);
        }
        if (row->small) {
            json_key_bool(j, "timed", false);
        }
        json_end_object(j);
    }
    json_end_array(j);
    json_left(j, p);
    json_end_object(j);
}

int report_exact_print(const struct profile *p, const struct profile_filter *filter, int only,
                       size_t limit)
{
    int r = 0;
    bool calls = p->calls.len && !reading_whole_only(filter, p, PROFILE_EXACT);
    if (calls && (only < 0 || only == PROFILE_EXACT)) {
        struct times_table t = {0};
        r = times_table(&t, p, filter);
        if (r == 0)
            print_times(&t, p, limit);
        times_release(&t);
    }
    bool sites = p->sites.len && !reading_whole_only(filter, p, PROFILE_ALLOCATION) &&
                 (only < 0 || only == PROFILE_ALLOCATION);
    return r == 0 && sites ? report_sites_print(p, filter, limit) : r;
}

int report_times_json(struct json *j, const struct profile *p, const struct profile_filter *filter)
{
    struct times_table t = {0};
    int r = times_table(&t, p, filter);
    if (r == 0)
        json_times(j, &t, p);
    times_release(&t);
    return r;
}
