/* SPDX-License-Identifier: Apache-2.0 */
#include "options/trigger_condition.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/macro.h"
#include "base/parse.h"
#include "options/options.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What may follow the name of a measure. */
enum form {
    FORM_NAME = 1,     /* (NAME) */
    FORM_CLASS = 2,    /* a class's name */
    FORM_DURATION = 4, /* OP DURATION */
    FORM_SHARE = 8,    /* OP N% */
    FORM_SIZE = 16,    /* OP SIZE */
    FORM_NUMBER = 32,  /* OP N */
    /* N/UNIT; of bytes together with FORM_SIZE, with an operator together with FORM_NUMBER */
    FORM_RATE = 64,
    FORM_FOR = 128, /* for DURATION may follow */
    FORM_OPTIONAL = 256,
};

static const struct row {
    const char *word, *reason;
    enum measure measure;
    unsigned form;
    bool momentary;
} rows[] = {
    {"request", "request", MEASURE_REQUEST, FORM_NAME | FORM_DURATION, true},
    {"pause", "pause", MEASURE_PAUSE, FORM_DURATION, true},
    {"safepoint", "safepoint", MEASURE_SAFEPOINT, FORM_DURATION, true},
    {"cpu", "cpu", MEASURE_CPU, FORM_SHARE | FORM_FOR, false},
    {"rss grows", "rss-grows", MEASURE_GROWTH, FORM_RATE | FORM_SIZE, false},
    {"rss", "rss", MEASURE_RSS, FORM_SHARE | FORM_SIZE | FORM_FOR, false},
    {"threads", "threads", MEASURE_THREADS, FORM_NUMBER | FORM_FOR, false},
    {"fd", "fd", MEASURE_FD, FORM_SHARE | FORM_NUMBER | FORM_FOR, false},
    {"exception", "exception", MEASURE_EXCEPTION,
     FORM_CLASS | FORM_RATE | FORM_NUMBER | FORM_OPTIONAL, true},
    {"every", "every", MEASURE_EVERY, 0, true},
    {"deadlock", "deadlock", MEASURE_DEADLOCK, 0, true},
    {"oom", "oom", MEASURE_OOM, 0, true},
    {"p", "percentile", MEASURE_PERCENTILE, FORM_NAME | FORM_DURATION | FORM_FOR, false},
};

#define UNDERSTOOD                                                                             \
    "not a condition; examples: request > 500ms, p99(GET /cart) > 200ms, cpu > 90% for 30s, "  \
    "pause > 200ms, safepoint > 100ms, deadlock, oom, exception pkg.Class > 10/s, rss > 90%, " \
    "rss grows 100M/h, threads > 2000, fd > 90%, every 1h; && and || join conditions"

static const struct row *row_of(enum measure m)
{
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        if (rows[i].measure == m)
            return &rows[i];
    return &rows[0];
}

const char *measure_reason(enum measure m)
{
    return row_of(m)->reason;
}

/*
 * Returns whether the measure describes events, which happen at a moment and may repeat at once.
 * The other measures describe states, which last.
 */
static bool measure_is_momentary(enum measure m)
{
    return row_of(m)->momentary;
}

bool trigger_is_momentary(const struct trigger_test *t)
{
    return measure_is_momentary(t->measure) && !(t->measure == MEASURE_EXCEPTION && t->unit_ns);
}

/* Takes the number in "p99" or "p99.9". */
static bool take_percentile(struct logic_parser *p, struct trigger_test *t)
{
    const char *before = p->at;
    char *end;
    if (logic_take(p, "p") && *p->at >= '0' && *p->at <= '9') {
        t->percentile = strtod(p->at, &end);
        p->at = end;
        if (t->percentile > 0 && t->percentile < 100)
            return true;
    }
    p->at = before;
    return false;
}

static bool take_measure(struct logic_parser *p, const struct row *row, struct trigger_test *t)
{
    const char *before = p->at;
    if (row->measure == MEASURE_PERCENTILE)
        return take_percentile(p, t);
    if (row->measure == MEASURE_GROWTH) {
        if (logic_take_word(p, "rss") && logic_take_word(p, "grows"))
            return true;
        p->at = before;
        return false;
    }
    return logic_take_word(p, row->word);
}

/* Takes "(GET /cart)", up to the parenthesis that matches the first one. */
static int take_name(struct logic_parser *p, struct trigger_test *t)
{
    if (!logic_take(p, "("))
        return 0;
    size_t n = 0;
    int depth = 1;
    for (; p->at[n]; n++) {
        depth += (p->at[n] == '(') - (p->at[n] == ')');
        if (depth == 0)
            break;
    }
    if (depth || n >= sizeof(t->name))
        return logic_fail(p, depth ? ") is missing after the name of requests"
                                   : "the name of requests is too long");
    if (n == 0)
        return logic_fail(p, "the name of requests is missing");
    memcpy(t->name, p->at, n);
    t->name[n] = 0;
    p->at += n + 1;
    return 0;
}

static int take_class(struct logic_parser *p, struct trigger_test *t)
{
    const char *before = p->at;
    if (!logic_take_value(p, t->name, sizeof(t->name)))
        return logic_fail(p, "the name of a class is missing after exception");
    if (strpbrk(t->name, "/*;[,%") || (t->name[0] >= '0' && t->name[0] <= '9')) {
        p->at = before;
        return logic_fail(p,
                          "this is not the name of a class, as in exception com.shop.Lost > 10/s,");
    }
    return 0;
}

/* Removes "/s", "/min", "/m" or "/h" from the end of a value. */
static bool cut_unit(char *value, uint64_t *ret_ns)
{
    static const struct {
        const char *text;
        uint64_t seconds;
    } units[] = {{"/s", 1}, {"/min", 60}, {"/m", 60}, {"/h", 3600}};

    size_t n = strlen(value);
    for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
        size_t len = strlen(units[i].text);
        if (n > len && strcmp(value + n - len, units[i].text) == 0) {
            value[n - len] = 0;
            *ret_ns = units[i].seconds * NS_PER_SECOND;
            return true;
        }
    }
    return false;
}

static bool parse_number(const char *text, double *ret)
{
    char *end;
    *ret = strtod(text, &end);
    return *text >= '0' && *text <= '9' && !*end;
}

/* Describes what a value must look like, for a message. */
static const char *form_text(unsigned form)
{
    if (form & FORM_RATE)
        return form & FORM_SIZE ? "expected a size per second, minute or hour, as in 100M/h,"
                                : "expected a number per second, minute or hour, as in 10/s,";
    if (form & FORM_DURATION)
        return "expected a time with its unit, as in 500ms,";
    if (form & FORM_SHARE)
        return form & FORM_SIZE     ? "expected a share or a size, as in 90% or 2G,"
               : form & FORM_NUMBER ? "expected a share or a number, as in 90% or 5000,"
                                    : "expected a share, as in 90%,";
    return "expected a number, as in 2000,";
}

static bool has_unit(const char *value)
{
    return value[strspn(value, "0123456789.")] != 0;
}

/* Reads a value in one of the forms that its measure takes. */
static bool read_value(struct trigger_test *t, unsigned form, char *value)
{
    uint64_t n = 0;
    size_t len = strlen(value);
    if (form & FORM_RATE && !cut_unit(value, &t->unit_ns))
        return false;
    if (form & FORM_SHARE && value[len - 1] == '%') {
        value[len - 1] = 0;
        t->share = true;
        return parse_number(value, &t->limit);
    }
    bool is = form & FORM_DURATION ? has_unit(value) && parse_duration(value, 1, &n) == 0
              : form & FORM_SIZE   ? parse_size(value, &n) == 0
                                   : false;
    t->limit = (double)n;
    return is || (form & FORM_NUMBER && parse_number(value, &t->limit));
}

/* Returns the first number of a file of /proc, or 0 if it cannot be read. */
static double number_in(const char *path)
{
    _cleanup_free_ uint8_t *text = NULL;
    size_t len;
    return file_read_path(path, 256, &text, &len) == 0 ? strtod((const char *)text, NULL) : 0;
}

/*
 * Returns the highest value that a measure of a process can have on this machine, or 0 if there is
 * no limit.
 */
static double most_on_machine(enum measure m)
{
    switch (m) {
    case MEASURE_RSS:
    case MEASURE_GROWTH:
        return (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
    case MEASURE_THREADS:
        return MIN(number_in("/proc/sys/kernel/threads-max"),
                   number_in("/proc/sys/kernel/pid_max"));
    case MEASURE_FD:
        return number_in("/proc/sys/fs/nr_open");
    default:
        return 0;
    }
}

/* Returns a sentence in `text` if the machine has less than the limit of a test, otherwise NULL. */
static const char *why_above(char text[128], const struct trigger_test *t)
{
    double most = t->share ? 0 : most_on_machine(t->measure);
    bool greater = t->op == LOGIC_GT || t->op == LOGIC_GE;
    char size[24];
    if (!greater || most <= 0 || (t->op == LOGIC_GT ? t->limit < most : t->limit <= most))
        return NULL;
    if (t->measure == MEASURE_RSS || t->measure == MEASURE_GROWTH)
        snprintf(text, 128, "this machine has %s of memory, so this can never hold,",
                 format_size(size, (uint64_t)most));
    else
        snprintf(text, 128, "this machine allows %.0f %s, so this can never hold,", most,
                 t->measure == MEASURE_FD ? "open files in a process" : "threads");
    return text;
}

/* Returns why a comparison with a limit can never change, or NULL if it can. */
static const char *why_constant(char text[128], const struct trigger_test *t)
{
    bool greater = t->op == LOGIC_GT, less = t->op == LOGIC_LT;
    bool always_some =
        t->measure == MEASURE_THREADS || t->measure == MEASURE_RSS || t->measure == MEASURE_FD;
    if (t->share && t->limit > 100)
        return t->measure == MEASURE_CPU
                   ? "expected a share from 0% to 100%, where 100% is all CPUs that the VM may use,"
                   : "expected a share from 0% to 100%,";
    if (t->share && greater && t->limit >= 100)
        return "no share is more than 100%, so this can never hold,";
    if (less && t->limit <= 0)
        return "nothing is less than 0, so this can never hold,";
    if (always_some &&
        ((t->op == LOGIC_LE && t->limit <= 0) || (less && t->limit <= 1 && !t->share)))
        return "a VM always has memory, threads and open files, so this can never hold,";
    return why_above(text, t);
}

static int take_limit(struct logic_parser *p, struct trigger_test *t, unsigned form)
{
    char value[64];
    if (!(form & FORM_RATE && form & FORM_SIZE)) {
        t->op = logic_take_op(p);
        if (t->op == LOGIC_IS && form & FORM_OPTIONAL)
            return 0;
        bool less = t->op == LOGIC_LT || t->op == LOGIC_LE;
        if (t->op == LOGIC_IS || t->op == LOGIC_EQ || t->op == LOGIC_NE ||
            (less && measure_is_momentary(t->measure)))
            return logic_fail(p, measure_is_momentary(t->measure)
                                     ? "expected a comparison, > or >=,"
                                     : "expected a comparison, > or >= or < or <=,");
    } else {
        t->op = LOGIC_GT;
    }
    logic_skip_blanks(p);
    const char *before = p->at;
    if (!logic_take_value(p, value, sizeof(value)) || !read_value(t, form, value)) {
        p->at = before;
        return logic_fail(p, form_text(form));
    }
    char text[128];
    const char *why = why_constant(text, t);
    if (why)
        p->at = before;
    return why ? logic_fail(p, why) : 0;
}

/* Takes a time without a comparison, as after `every` and `for`. */
static int take_time(struct logic_parser *p, uint64_t *ret)
{
    char value[64];
    logic_skip_blanks(p);
    const char *before = p->at;
    if (logic_take_value(p, value, sizeof(value)) && has_unit(value) &&
        parse_duration(value, 1, ret) == 0 && *ret >= NS_PER_SECOND)
        return 0;
    p->at = before;
    return logic_fail(p, "expected a time of a second or more, as in 30s,");
}

static int parse_test(struct logic_parser *p, int number)
{
    struct trigger_condition *c = p->context;
    struct trigger_test *t = &c->tests[number];
    const struct row *row = NULL;
    logic_skip_blanks(p);
    for (size_t i = 0; i < ARRAY_SIZE(rows) && !row; i++)
        row = take_measure(p, &rows[i], t) ? &rows[i] : NULL;
    if (!row)
        return logic_fail(p, UNDERSTOOD);
    t->measure = row->measure;
    int r = row->form & FORM_NAME ? take_name(p, t) : row->form & FORM_CLASS ? take_class(p, t) : 0;
    if (r == 0 && row->measure == MEASURE_EVERY) {
        r = take_time(p, &t->for_ns);
        t->limit = (double)t->for_ns;
        t->for_ns = 0;
    }
    unsigned limits = FORM_DURATION | FORM_SHARE | FORM_SIZE | FORM_NUMBER | FORM_RATE;
    if (r == 0 && row->form & limits)
        r = take_limit(p, t, row->form);
    if (r == 0 && logic_take_word(p, "for"))
        r = row->form & FORM_FOR
                ? take_time(p, &t->for_ns)
                : logic_fail(p,
                             "only cpu, rss, threads, fd and percentiles can be followed by for; "
                             "this is not one of them");
    return r;
}

static void put_fault(struct buf *message, const char *pattern, const char *fault)
{
    option_put(message, OPT_ON_FILE, pattern);
    buf_printf(message, ": %s", fault);
}

int trigger_file_check(const char *pattern, struct buf *message)
{
    bool time = false;
    if (!file_name_ends_in(pattern, ".jfr")) {
        put_fault(message, pattern, "must end with .jfr");
        return -EINVAL;
    }
    for (const char *p = pattern; (p = strchr(p, '%')); p += 2) {
        if (!p[1] || !strchr("%ptr", p[1])) {
            put_fault(message, pattern, "only %r, %t, %p and %% are understood");
            return -EINVAL;
        }
        time = time || p[1] == 't';
    }
    if (!time)
        put_fault(message, pattern, "lacks %t, which makes the names of the files differ");
    return time ? 0 : -EINVAL;
}

/* ---- what never holds, and what always does ---- */

/* The values that a measure can have. */
struct range {
    double low, high;
    bool none; /* there may be no value at a time, which makes each comparison false */
    bool whole;
};

static struct range range_of(const struct trigger_test *t)
{
    bool some =
        t->measure == MEASURE_RSS || t->measure == MEASURE_THREADS || t->measure == MEASURE_FD;
    double most = t->share ? 100 : t->measure == MEASURE_GROWTH ? 0 : most_on_machine(t->measure);
    return (struct range){
        .low = t->measure == MEASURE_GROWTH ? -INFINITY
               : !some                      ? 0
               : t->share                   ? DBL_MIN
                                            : 1,
        .high = most > 0 ? most : INFINITY,
        .none = trigger_is_momentary(t) || t->measure == MEASURE_PERCENTILE ||
                t->measure == MEASURE_GROWTH,
        .whole = !t->share && t->measure != MEASURE_EXCEPTION,
    };
}

static bool is_same_measure(const struct trigger_test *x, const struct trigger_test *y)
{
    return x->measure == y->measure && x->share == y->share && x->percentile == y->percentile &&
           x->unit_ns == y->unit_ns && strcmp(x->name, y->name) == 0;
}

/* Returns whether the test can have this truth value when the measure has this value. */
static bool agrees(const struct trigger_test *t, enum logic_truth truth, bool none, double value)
{
    bool holds = !none && (t->op == LOGIC_IS || logic_compare(t->op, value, t->limit));
    /* A test that has to hold for some time may be false although the comparison holds. */
    return truth == LOGIC_OPEN || (truth == LOGIC_TRUE ? holds : !holds || t->for_ns);
}

struct known {
    const struct trigger_condition *condition;
    struct range ranges[LOGIC_NODES];
};

static bool value_is_possible(const struct known *k, const enum logic_truth *of, int test,
                              bool none, double value)
{
    const struct trigger_condition *c = k->condition;
    const struct range *r = &k->ranges[test];
    if (none ? !r->none : value < r->low || value > r->high)
        return false;
    for (int i = 0; i < c->logic.count; i++)
        if (c->logic.nodes[i].kind == LOGIC_TEST &&
            is_same_measure(&c->tests[i], &c->tests[test]) &&
            !agrees(&c->tests[i], of[i], none, value))
            return false;
    return true;
}

/* Returns whether y holds whenever x does. Both are tests of the same measure. */
static bool implies(const struct trigger_test *x, const struct trigger_test *y)
{
    bool greater = x->op == LOGIC_GT || x->op == LOGIC_GE;
    if (greater != (y->op == LOGIC_GT || y->op == LOGIC_GE) || x->for_ns < y->for_ns)
        return false;
    bool closed = x->op == LOGIC_GE || x->op == LOGIC_LE,
         open = y->op == LOGIC_GT || y->op == LOGIC_LT;
    return x->limit == y->limit ? !(closed && open) : (x->limit > y->limit) == greater;
}

static bool durations_are_possible(const struct trigger_condition *c, const enum logic_truth *of,
                                   int test)
{
    const struct trigger_test *t = &c->tests[test];
    for (int i = 0; i < c->logic.count; i++) {
        const struct trigger_test *u = &c->tests[i];
        if (c->logic.nodes[i].kind != LOGIC_TEST || of[i] == LOGIC_OPEN || of[i] == of[test] ||
            !is_same_measure(t, u))
            continue;
        if (of[i] == LOGIC_TRUE ? implies(u, t) : implies(t, u))
            return false;
    }
    return true;
}

/*
 * Returns whether tests can have these results. Comparisons of a measure change only at their
 * limits, so the limits and the values next to them represent all values.
 */
static bool are_possible(const void *context, const enum logic_truth *of, int changed)
{
    const struct known *k = context;
    const struct trigger_condition *c = k->condition;
    const struct range *r = &k->ranges[changed];
    bool is = value_is_possible(k, of, changed, true, 0) ||
              value_is_possible(k, of, changed, false, r->low) ||
              value_is_possible(k, of, changed, false, r->high);
    for (int i = 0; i < c->logic.count && !is; i++) {
        double near[LOGIC_NEAR];
        if (c->logic.nodes[i].kind != LOGIC_TEST ||
            !is_same_measure(&c->tests[i], &c->tests[changed]))
            continue;
        logic_near(c->tests[i].limit, r->whole, near);
        for (size_t n = 0; n < LOGIC_NEAR && !is; n++)
            is = value_is_possible(k, of, changed, false, near[n]);
    }
    return is && durations_are_possible(c, of, changed);
}

static bool is_momentary(const void *context, int number)
{
    const struct known *k = context;
    return trigger_is_momentary(&k->condition->tests[number]);
}

static int check(struct logic_parser *p, const struct trigger_condition *c)
{
    struct known k = {.condition = c};
    for (int i = 0; i < c->logic.count; i++)
        if (c->logic.nodes[i].kind == LOGIC_TEST)
            k.ranges[i] = range_of(&c->tests[i]);
    return logic_check(p, &(struct logic_tests){are_possible, is_momentary, &k});
}

int trigger_condition_parse(struct trigger_condition **ret, const char *text, struct buf *why)
{
    struct trigger_condition *c = calloc(1, sizeof(*c));
    if (!c)
        return -ENOMEM;
    struct logic_parser p = {.logic = &c->logic, .why = why, .test = parse_test, .context = c};
    int r = logic_parse(&p, text);
    r = r < 0 ? r : check(&p, c);
    if (r < 0)
        free(c);
    else
        *ret = c;
    return r;
}

bool trigger_condition_has(const struct trigger_condition *c, enum measure m)
{
    for (int i = 0; i < c->logic.count; i++)
        if (c->logic.nodes[i].kind == LOGIC_TEST && c->tests[i].measure == m)
            return true;
    return false;
}

const char *trigger_measured(char text[64], const struct trigger_test *t, double value)
{
    char part[24];
    const char *unit = t->unit_ns <= NS_PER_SECOND        ? "s"
                       : t->unit_ns <= 60 * NS_PER_SECOND ? "min"
                                                          : "h";
    switch (t->measure) {
    case MEASURE_REQUEST:
    case MEASURE_PERCENTILE:
    case MEASURE_PAUSE:
    case MEASURE_SAFEPOINT:
    case MEASURE_EVERY:
        format_duration(part, (uint64_t)value);
        snprintf(text, 64, "%s", part);
        break;
    case MEASURE_GROWTH:
        snprintf(text, 64, "%s/%s", format_size(part, (uint64_t)MAX(value, 0.0)), unit);
        break;
    case MEASURE_RSS:
    case MEASURE_CPU:
    case MEASURE_FD:
    case MEASURE_THREADS:
        if (t->share)
            snprintf(text, 64, "%.1f %%", value);
        else if (t->measure == MEASURE_RSS)
            snprintf(text, 64, "%s", format_size(part, (uint64_t)value));
        else
            snprintf(text, 64, "%.0f", value);
        break;
    case MEASURE_EXCEPTION:
        snprintf(text, 64, "%.0f%s%s", value, t->unit_ns ? "/" : "", t->unit_ns ? unit : "");
        break;
    default:
        snprintf(text, 64, "%.0f", value);
        break;
    }
    return text;
}
