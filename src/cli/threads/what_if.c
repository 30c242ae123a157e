/* SPDX-License-Identifier: Apache-2.0 */
/* jvmscope threads what-if */
#include "analysis/what_if.h"
#include "analysis/sections.h"
#include "base/parse.h"
#include "base/pattern.h"
#include "cli/losses.h"
#include "cli/selected.h"
#include "cli/threads/threads.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bool lock_selected(const struct timeline *t, uint32_t object, void *arg)
{
    const struct thread_view *v = arg;
    return v->objects[object];
}

static bool method_selected(const struct timeline *t, uint32_t method, void *arg)
{
    const struct thread_view *v = arg;
    const char *name = tl_string(t, method);
    return pattern_match(v->options->method, name, strlen(name));
}

static struct str method_of_frame(const void *context, size_t i)
{
    const struct timeline *t = context;
    const char *name = tl_string(t, t->frames[i].method);
    return (struct str){name, strlen(name)};
}

static void answer_json(const struct thread_view *v, struct json *j, const char *lock,
                        double factor, const struct what_if_answer *a,
                        const struct tl_unowned *unknown, bool inferred)
{
    json_begin_object(j);
    if (lock)
        json_key_string(j, "lock", lock);
    json_key_string(j, "end_thread", thread_view_end(v));
    json_key_double(j, "factor", factor);
    json_key_u64(j, "before_ns", a->before);
    json_key_u64(j, "after_ns", a->answer);
    json_key_u64(j, "after_low_ns", a->low);
    json_key_u64(j, "after_high_ns", a->high);
    json_key_u64(j, "possible_low_ns", a->least);
    json_key_u64(j, "possible_high_ns", a->most);
    json_key_bool(j, "on_path", what_if_on_path(factor, a));
    json_key_bool(j, "inferred", inferred);
    json_key_bool(j, "ends_inferred", a->ends_inferred);
    if (a->ends_inferred) {
        json_key_u64(j, "if_ended_at_once_ns", a->ends_ns[0]);
        json_key_u64(j, "if_ended_late_ns", a->ends_ns[1]);
    }
    json_key_u64(j, "spread_ns", a->spread);
    json_key_u64(j, "order_kept_ns", a->kept);
    json_key_u64(j, "order_arbitrated_ns", a->arbitrated);
    json_key_bool(j, "order_decided_anew", a->decided_anew);
    json_key_u64(j, "scaled_ns", a->scaled_ns);
    json_key_u64(j, "path_bound_ns", a->upper_bound);
    threads_json_unknown_owners(j, unknown);
    json_key_bool(j, "owner_matters", thread_view_is_unknown(v, unknown));
    losses_json_of_file(v->path, losses_of_threads, v->t->lost_any || v->t->cut_at, j);
    json_end_object(j);
}

/*
 * Reduces the table of unknown owners to the classes that --lock selects, all of which count as
 * locks, and returns their sum.
 */
static struct tl_unowned keep_selected(const struct thread_view *v, struct unknown_table *u)
{
    struct tl_unowned sum = {.lock = true};
    size_t n = 0;
    for (size_t i = 0; v->options->lock && i < u->rows.len; i++) {
        struct tl_unowned row = u->rows.data[i];
        const char *class = tl_string(v->t, row.class);
        if (!pattern_match(v->options->lock, class, strlen(class)))
            continue;
        row.lock = true;
        sum.unknown += row.unknown;
        sum.ns += row.ns;
        u->rows.data[n++] = row;
    }
    u->rows.len = n;
    return sum;
}

static bool class_selected(const void *pattern, const char *class)
{
    return pattern_match(pattern, class, strlen(class));
}

static bool lock_of_class(const struct timeline *t, uint32_t object, void *arg)
{
    return t->objects[object].class == *(const uint32_t *)arg;
}

/* Reads --factor. Returns 0, or 2 after a complaint. */
static int read_factor(const struct thread_options *o, double *ret)
{
    char *end;
    double factor = o->factor ? strtod(o->factor, &end) : 0;
    if (!o->factor)
        return 0;
    if (end == o->factor || *end || !(factor >= 0 && factor <= 1000)) {
        complain("threads what-if", "--factor takes a number from 0 to 1000", o->factor);
        return 2;
    }
    *ret = factor;
    return 0;
}

/* How long the run would take if the locks of one class were held for another time. */
struct gain {
    const char *lock;                 /* the class */
    const struct tl_unowned *unknown; /* or NULL */
    bool inferred; /* its share of the path is, or the answer depends on what is inferred */
    struct what_if_answer answer;
};

/* The largest gain first; among equals by name. */
static int by_gain(const void *a, const void *b)
{
    const struct gain *x = a, *y = b;
    if (x->answer.answer != y->answer.answer)
        return x->answer.answer < y->answer.answer ? -1 : 1;
    return strcmp(x->lock, y->lock);
}

/* Returns whether more is possible than what is expected. */
static bool more_possible(const struct what_if_answer *a)
{
    return a->least < a->low || a->most > a->high;
}

static void explain_possible(void)
{
    puts(" possible: when sections take another time, threads may have to wait for locks that were "
         "free in the recording,\n or for the end of threads that had ended. Of a section that no "
         "thread waited for, only the method is known,\n not where in it the section began and "
         "ended (`run --locks` records that)");
}

/* The two ends of what is possible as text. */
struct possible_text {
    char text[56];
};

static struct possible_text format_possible(const struct what_if_answer *a)
{
    struct possible_text ret;
    char least[24], most[24];
    snprintf(ret.text, sizeof(ret.text), "%s to %s", format_duration(least, a->least),
             format_duration(most, a->most));
    return ret;
}

static void print_change(const struct gain *gain, double factor)
{
    char after[24], change[24];
    const struct what_if_answer *a = &gain->answer;
    bool later = a->answer > a->before || (a->answer == a->before && factor > 1);
    printf(" %10s  %10s %s  %20s  %s%s\n", format_duration(after, a->answer),
           format_duration(change, later ? a->answer - a->before : a->before - a->answer),
           later ? "later " : "sooner", format_possible(a).text, gain->lock,
           gain->inferred ? " (inferred)" : "");
}

/* Returns by how much the answer differs, "25.9 ms sooner", or "". */
static const char *format_change(char to[40], const struct what_if_answer *a)
{
    char change[24];
    to[0] = 0;
    if (a->answer != a->before)
        snprintf(to, 40, "%s %s",
                 format_duration(change, a->answer > a->before ? a->answer - a->before
                                                               : a->before - a->answer),
                 a->answer > a->before ? "later" : "sooner");
    return to;
}

/* Prints the answer for the locks or the method that the user named. */
static void print_selected(const char *name, double factor, const struct what_if_answer *a)
{
    char before[24], after[24], low[24], high[24], change[40];
    const char *differs = format_change(change, a);
    printf("if %s took %.3g of its time: %s instead of %s%s%s, expected between %s and %s%s%s%s\n",
           name, factor, format_duration(after, a->answer), format_duration(before, a->before),
           *differs ? ", " : "", differs, format_duration(low, a->low),
           format_duration(high, a->high), more_possible(a) ? ", possible from " : "",
           more_possible(a) ? format_possible(a).text : "", a->decided_anew ? "" : " (order kept)");
}

/* Prints the range that inferred ends of sections allow. */
static void print_ends(const struct what_if_answer *a)
{
    char at_once[24], late[24];
    if (a->ends_inferred)
        printf(
            " some releases of locks, for which no thread waited, have no time in the recording: "
            "%s if each came at once, %s if as late as possible (`run --locks` records them)\n",
            format_duration(at_once, a->ends_ns[0]), format_duration(late, a->ends_ns[1]));
}

/* Prints why nothing changes, and how much would where the program takes another course. */
static void print_off_path(const char *gained, uint64_t most)
{
    char text[24];
    printf(" nothing is %s, because none of these sections lies on the critical path (jvmscope "
           "threads critical-path)",
           gained);
    if (most)
        printf(": the range is what another run may take, where at most %s is %s",
               format_duration(text, most), gained);
    putchar('\n');
}

static void show_gains(const struct thread_view *v, double factor, const struct gain *gains,
                       size_t n, size_t left, const struct unknown_table *unknown, struct json *j)
{
    char before[24];
    const char *end = thread_view_end(v);
    if (n && !v->options->json)
        printf("%s%s%s; if the sections of one lock took %.3g of their time (for others: --lock, "
               "--method):\n    becomes             change              possible  lock\n",
               format_duration(before, gains[0].answer.before), end ? " up to the end of " : "",
               end ? end : "", factor);
    bool inferred = false, more = false;
    for (size_t i = 0; i < n; i++) {
        inferred |= gains[i].inferred;
        more |= more_possible(&gains[i].answer);
        answer_json(v, j, gains[i].lock, factor, &gains[i].answer, gains[i].unknown,
                    gains[i].inferred);
        if (!v->options->json)
            print_change(&gains[i], factor);
    }
    if (left && v->options->json)
        fprintf(stderr, "jvmscope: note: not listed: %s (--limit)\n",
                COUNT_TEXT(left, "more locks"));
    else
        print_left_out(left, 0, "locks");
    if (inferred && !v->options->json)
        puts(" (inferred): if no thread waited for the release of a lock, its time is inferred "
             "(--lock shows how much that matters, `run --locks` records it)");
    if (more && !v->options->json)
        explain_possible();
    if (!v->options->json)
        thread_view_print_unknown(v, unknown);
    if (!n && !v->options->json)
        puts("no thread holds a lock on the critical path: --method PATTERN answers for methods "
             "that wait");
}

/*
 * Without a lock or a method: evaluates the locks that take most of the path, each at half its time
 * or at --factor.
 */
static int what_if_of_locks(struct thread_view *v, double factor)
{
    size_t limit = v->options->limit ? v->options->limit : 5;
    struct critical_path p = {0};
    struct path_shares shares = {0};
    _cleanup_(buf_release) struct buf b = BUF(1 << 20);
    struct json j = {.out = &b};
    VEC(struct gain) gains = {0};
    size_t left = 0;
    struct unknown_table unknown = {0};
    int status = thread_view_unknown_owners(v, &unknown);
    if (status)
        return status;
    int r = critical_path(v->t, &v->range, &p);
    if (r == 0)
        r = path_shares_of(v->t, &v->range, &p, &shares);
    for (size_t i = 0; r == 0 && i < shares.rows.len; i++) {
        uint32_t class = shares.rows.data[i].class;
        struct what_if w = {
            .lock = lock_of_class, .lock_arg = &class, .factor = factor, .bounds = true};
        struct gain gain = {.lock = tl_string(v->t, class),
                            .unknown = unknown_owners_of(&unknown, class)};
        left += shares.rows.data[i].ns && gains.len >= limit;
        if (!shares.rows.data[i].ns || gains.len >= limit)
            continue;
        r = what_if(v->t, &v->range, &w, &gain.answer);
        gain.inferred = shares.rows.data[i].inferred || gain.answer.ends_inferred;
        if (r == 0)
            r = vec_push(&gains, gain);
    }
    if (gains.len)
        qsort(gains.data, gains.len, sizeof(gains.data[0]), by_gain);
    json_begin_array(&j);
    if (r == 0)
        show_gains(v, factor, gains.data, gains.len, left, &unknown, &j);
    if (r == 0 && !v->options->json)
        thread_view_print_unended(v, &p);
    json_end_array(&j);
    vec_release(&gains);
    vec_release(&unknown.rows);
    vec_release(&shares.rows);
    critical_path_release(&p);
    if (r == -EPROTO && v->unchecked)
        return r;
    if (r < 0)
        return thread_view_no_path(v, "cannot replay", r);
    return v->options->json ? threads_json_print(&b) : 0;
}

int threads_what_if(struct thread_view *v)
{
    const struct thread_options *o = v->options;
    double factors[3] = {0.75, 0.5, 0};
    size_t n = o->factor ? 1 : 3;
    int status = read_factor(o, &factors[0]);
    if (status)
        return status;
    if (o->lock && o->method) {
        complain("threads what-if", "--lock or --method, not both", NULL);
        return 2;
    }
    if (o->limit && (o->lock || o->method)) {
        complain("threads what-if", "--limit has no effect with --lock or --method", NULL);
        return 2;
    }
    if (o->thread)
        thread_view_select_end(v);
    if (!o->lock && !o->method)
        return what_if_of_locks(v, o->factor ? factors[0] : 0.5);
    /* For a misspelt name the answer would be that nothing is gained. */
    if (selected_by_name(v->path, "no method matches on the stacks of waits", o->method,
                         method_of_frame, v->t, v->t->n_frames)) {
        fputs("jvmscope: note: what-if shortens locks and waits; `threads critical-path` ranks "
              "methods that run\n",
              stderr);
        return 1;
    }
    struct what_if w = {.lock = o->lock ? lock_selected : NULL,
                        .lock_arg = v,
                        .method = o->method ? method_selected : NULL,
                        .method_arg = v,
                        .bounds = true};
    _cleanup_(buf_release) struct buf b = BUF(1 << 20);
    struct json j = {.out = &b};
    struct unknown_table unknown = {0};
    status = thread_view_unknown_owners(v, &unknown);
    if (status)
        return status;
    struct tl_unowned all = keep_selected(v, &unknown);
    json_begin_array(&j);
    if (!o->json && thread_view_end(v))
        printf("up to the end of %s:\n", thread_view_end(v));
    uint64_t most = 0; /* that another course of the program would gain or lose */
    bool off_path = true, more = false, kept = false, inferred = false, ends = false;
    /* First, because it keeps the holds that it collects. */
    int r = o->lock ? path_share_inferred(v->t, &v->range, class_selected, o->lock, &inferred) : 0;
    if (r == 0)
        r = hold_list_keep(v->t, NULL);
    for (size_t i = 0; r == 0 && i < n; i++) {
        struct what_if_answer a = {0};
        w.factor = factors[i];
        r = what_if(v->t, &v->range, &w, &a);
        if (r < 0)
            break;
        answer_json(v, &j, NULL, factors[i], &a, &all, inferred || a.ends_inferred);
        if (!o->json)
            print_selected(o->lock ? o->lock : o->method, factors[i], &a);
        if (!o->json)
            print_ends(&a);
        kept |= !a.decided_anew;
        ends |= a.ends_inferred;
        more |= more_possible(&a);
        off_path = off_path && !what_if_on_path(w.factor, &a) && a.answer == a.before;
        most = MAX(most,
                   w.factor > 1 ? a.high - MIN(a.high, a.before) : a.before - MIN(a.low, a.before));
    }
    if (r == 0 && !o->json && kept)
        puts(" order kept: the replay keeps the recorded order of the locks, because it could not "
             "determine a new one, so the true result may be shorter");
    if (r == 0 && !o->json && inferred && !ends)
        puts(
            " if no thread waited for the release of the lock, its time is inferred (`run --locks` "
            "records it), and with it the lock's share of the critical path");
    if (r == 0 && !o->json && more)
        explain_possible();
    if (r == 0 && !o->json && off_path)
        print_off_path(factors[0] > 1 ? "lost" : "gained", most);
    if (r == 0 && !o->json)
        thread_view_print_unknown(v, &unknown);
    vec_release(&unknown.rows);
    json_end_array(&j);
    if (r == -EPROTO && v->unchecked)
        return r;
    if (r < 0)
        return thread_view_no_path(v, "cannot replay", r);
    return o->json ? threads_json_print(&b) : 0;
}
