/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/reading.h"

#include "base/parse.h"
#include "base/pattern.h"
#include "base/progress.h"
#include "cli/contents.h"
#include "cli/losses.h"
#include "cli/selected.h"
#include "jfr/reader.h"
#include "wire/batch.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <string.h>

static const struct arg selection_args[] = {
    {"--thread", 0, ARG_LIST, offsetof(struct selection, filter.thread), "PATTERN",
     "only threads whose name matches (a part of it, * and ?, or =NAME)"},
    {"--class", 0, ARG_LIST, offsetof(struct selection, filter.class_name), "PATTERN",
     "only stacks with a frame of a class that matches"},
    {"--from", 0, ARG_DURATION, offsetof(struct selection, filter.from_ns), "TIME",
     "only from this time on, counted from the start: 1.5s, 2m"},
    {"--to", 0, ARG_SPAN, offsetof(struct selection, filter.to_ns), "TIME", "only up to this time"},
    ONLY_REQUESTS_ARGS(struct selection, requests),
    {"--metric", 0, ARG_TEXT, offsetof(struct selection, metric),
     "samples|wall|allocations|locks|times",
     "count this (by default the first of these that the file has)"},
    {0},
};

const struct arg_set selection_set = {"What counts", selection_args};

static void show_progress(void *context, uint64_t done, uint64_t total)
{
    progress_update(context, done, total);
}

int reading_open(struct profile **ret, const char *path, enum load_detail detail,
                 const struct selection *s, const char *const *captures, struct buf *ret_warning)
{
    struct profile_filter filter = s->filter;
    /* In recordings, requests select samples by thread and time once the samples have been read. */
    if (only_requests_given(&s->requests))
        detail = LOAD_SAMPLES;
    filter.request = s->requests.name;
    _cleanup_(buf_release) struct buf why = BUF(4096);
    struct progress progress;
    progress_start(&progress, "reading");
    int r = profile_load(ret, path, detail, &filter, &why, show_progress, &progress);
    progress_end(&progress);
    if (r < 0)
        return why.len ? complain(path, "cannot read", buf_str(&why))
                       : complain_errno(path, "cannot read", r);
    if (ret_warning)
        buf_bytes(ret_warning, why.data, why.len);
    losses_report_read(path, captures, (*ret)->lost_any, why.len ? buf_str(&why) : NULL);
    return 0;
}

/*
 * Matches one name of the pattern's kind. The name may contain a comma, and then the pattern may,
 * too.
 */
static void see_name(struct selected_names *s, const char *pattern, struct str name)
{
    if (pattern_match_one(pattern, name.data, name.len))
        s->missing.len = 0;
    else
        selected_names_see(s, name.data, name.len);
}

static void see_event(struct selected_names *s, const char *pattern, bool classes,
                      const struct rec_event *e)
{
    const struct rec_stack *stack = classes ? rec_stack(&e->object, "stackTrace") : NULL;
    for (uint32_t i = 0; stack && i < stack->n; i++) {
        const struct rec_class *c = stack->frames[i].method->class;
        if (c)
            see_name(s, pattern, (struct str){c->name, strlen(c->name)});
    }
    const struct rec_thread *t = classes ? NULL : rec_thread(&e->object, "eventThread");
    const char *name = classes ? NULL : t ? t->name : rec_string(&e->object, "thread", NULL);
    if (name)
        see_name(s, pattern, (struct str){name, strlen(name)});
}

/*
 * Collects the names in all events of a recording; other files have none. Returns 0 or a negative
 * errno.
 */
static int see_recording(struct selected_names *s, const char *pattern, bool classes,
                         const char *path)
{
    _cleanup_(recording_closep) struct recording *recording = NULL;
    const char *why = NULL;
    struct rec_event e;
    int r = 1;
    if (recording_open(&recording, path, &why) < 0)
        return 0;
    while (s->missing.len && (r = recording_next(recording, &e)) > 0)
        see_event(s, pattern, classes, &e);
    return r == -ENOMEM ? r : 0;
}

/* Returns whether samples of a metric belong to threads: counts may be merged over all of them. */
static bool has_threads(const struct profile *p, enum profile_metric metric)
{
    const struct profile_samples *samples = &p->series[metric].samples;
    for (size_t i = 0; i < samples->len; i++) {
        const struct profile_thread *t = &p->threads.data[samples->data[i].thread];
        if (profile_text(p, t->name).len || (t->id && t->id != UINT64_MAX))
            return true;
    }
    return false;
}

/* Why --thread cannot apply to samples without threads: counts may be those of all threads. */
static const char *threads_why(const struct profile *p, enum profile_metric metric)
{
    return profile_is_counted(p, metric)
               ? "--thread cannot select a part of what is counted for all threads together"
               : "--thread cannot select a part of samples that name no thread";
}

/* Returns why --thread cannot apply to the file, because none of its samples has a thread. */
static const char *threadless_why(const struct profile *p)
{
    const char *why = NULL;
    for (int m = PROFILE_METRICS - 1; m >= 0; m--) {
        if (has_threads(p, (enum profile_metric)m))
            return NULL;
        if (p->series[m].samples.len)
            why = threads_why(p, (enum profile_metric)m);
    }
    return why;
}

static struct str thread_name(const void *context, size_t i)
{
    const struct profile *p = context;
    return profile_text(p, p->threads.data[i].name);
}

/*
 * Checks that samples have the names of threads or classes that a pattern selects, or, if
 * `of_events`, that any event has them. Returns 0 or the exit status after a complaint.
 */
static int check_names(const char *pattern, bool classes, const struct profile *p, const char *path,
                       bool of_events)
{
    _cleanup_(selected_names_release) struct selected_names s;
    int r = selected_names_init(&s, pattern);
    size_t n = classes ? p->methods.len : p->threads.len;
    const char *threadless = classes || of_events || !pattern ? NULL : threadless_why(p);
    if (r == 0 && threadless)
        return complain(path, threadless, "the file does not state which thread a sample is of");
    for (size_t i = 0; r == 0 && s.missing.len && i < n; i++) {
        uint32_t name = classes ? p->methods.data[i].class_name : p->threads.data[i].name;
        see_name(&s, pattern, profile_text(p, name));
    }
    if (r == 0 && !s.missing.len) {
        if (!classes)
            selected_note_parts(pattern, thread_name, p, n);
        return 0;
    }
    const char *without = r == 0 ? s.missing.data[0] : NULL;
    if (r == 0)
        r = see_recording(&s, pattern, classes, path);
    if (r < 0)
        return complain_errno(path, "cannot read", r);
    if (s.missing.len)
        return selected_names_end(
            &s, path, classes ? "no class of a stack has this name" : "no thread has this name");
    return of_events ? 0
                     : complain(path,
                                classes ? "no sample has this class in its stack"
                                        : "the thread has no samples",
                                without);
}

/* Returns 1 if a sample of a metric passes the filter, 0 if none does, or a negative errno. */
static int passes(const struct profile *p, enum profile_metric metric,
                  const struct profile_filter *f)
{
    _cleanup_(profile_view_release) struct profile_view v = {0};
    if (!p->series[metric].samples.len)
        return 0;
    int r = profile_view_init(&v, p, metric, f);
    return r < 0 ? r : v.samples > 0;
}

/*
 * Returns whether there are samples of a metric, but none that pass the filter, be they left out as
 * idle or not.
 */
static bool all_filtered(const struct profile *p, enum profile_metric metric,
                         const struct profile_filter *f)
{
    struct profile_filter all = *f;
    all.without_idle = false;
    return (f->thread || f->class_name || f->from_ns || f->to_ns) && passes(p, metric, &all) == 0;
}

/* Returns 1 if a sample of any metric passes the filter, 0 if none does, or a negative errno. */
static int any_passes(const struct profile *p, const struct profile_filter *f)
{
    int r = 0;
    for (int m = 0; r == 0 && m < PROFILE_METRICS; m++)
        r = passes(p, (enum profile_metric)m, f);
    return r;
}

/* Complains that no sample is selected by the options that are given. Returns the exit status. */
static int complain_of_selection(const struct selection *s, const char *path, const char *what)
{
    const struct profile_filter *f = &s->filter;
    const char *options[] = {
        f->thread ? "--thread" : NULL,         f->class_name ? "--class" : NULL,
        f->from_ns ? "--from" : NULL,          f->to_ns ? "--to" : NULL,
        s->requests.name ? "--request" : NULL, s->requests.slowest > 0 ? "--slowest" : NULL};
    return complain_of_options(path, what, options, ARRAY_SIZE(options));
}

static bool any_untimed(const struct profile *p)
{
    for (int m = 0; m < PROFILE_METRICS; m++)
        if (p->series[m].samples.len && p->series[m].untimed)
            return true;
    return false;
}

/* Complains if no sample passes all options, each of which alone selects something. */
static int check_together(const struct profile *p, const struct selection *s, const char *path)
{
    const struct profile_filter *f = &s->filter;
    bool time = f->from_ns || f->to_ns;
    /* Counted calls and sites have no times, and no threads where these are merged. */
    if ((!f->thread && !f->class_name && !time) || !profile_has_samples(p) || p->calls.len ||
        p->sites.len || (time && any_untimed(p)))
        return 0;
    int r = any_passes(p, f);
    if (r < 0)
        return complain_errno(path, "cannot read", r);
    return r > 0 ? 0 : complain_of_selection(s, path, "no sample is selected by");
}

static struct str request_name(const void *context, size_t i)
{
    const struct profile *p = context;
    return profile_text(p, p->requests.data[i]);
}

/* What is known of requests in profiles that were sent: the samples of each name. */
static bool check_sent(const struct selection *s, const struct profile *p, const char *path)
{
    if (s->requests.slowest > 0)
        complain(path, "--slowest needs a recording", "it holds no times of requests");
    else if (!p->requests.len)
        complain(path, "holds no requests", "no sample has the label " WIRE_REQUEST);
    else
        return selected_by_name(path, "no request has this name", s->requests.name, request_name, p,
                                p->requests.len) == 0;
    return false;
}

bool reading_check(const struct selection *s, struct profile *p, const char *path, bool of_events)
{
    const struct profile_filter *f = &s->filter;
    if (selected_by_time(path, f->from_ns, f->to_ns, p->duration_ns) ||
        check_names(f->thread, false, p, path, of_events) ||
        check_names(f->class_name, true, p, path, of_events) ||
        (!of_events && check_together(p, s, path)))
        return false;
    if (p->is_sent && only_requests_given(&s->requests))
        return check_sent(s, p, path);
    if (!only_requests_given(&s->requests))
        return true;
    return only_requests_keep(&s->requests, path, p) == 0 &&
           (of_events || !check_together(p, s, path));
}

const char *reading_whole_only(const struct profile_filter *f, const struct profile *p,
                               enum profile_metric metric)
{
    bool counted = profile_is_counted(p, metric);
    if ((f->from_ns || f->to_ns) && !profile_is_timed(p, metric) && p->series[metric].samples.len)
        return counted ? "--from and --to cannot select a part of what is counted"
                       : "--from and --to cannot select a part of what has no times";
    return counted && f->thread && !has_threads(p, metric) ? threads_why(p, metric) : NULL;
}

void reading_note_left_out(const struct profile_filter *f, const struct profile *p,
                           const char *path)
{
    for (int m = 0; m < PROFILE_METRICS; m++) {
        const char *why = reading_whole_only(f, p, (enum profile_metric)m);
        if (why && p->series[m].samples.len)
            fprintf(stderr, "jvmscope: %s: note: the output lacks %s: %s\n", path,
                    profile_metrics[m].title, why);
    }
}

/* Says which option records a metric that the file lacks, and which metrics it has. */
static int complain_of_metric(const struct profile *p, const char *metric, const char *path)
{
    static const char *const options[][2] = {{"samples", "--cpu"},
                                             {"wall", "--cpu=wall"},
                                             {"allocations", "--alloc"},
                                             {"locks", "--monitors"},
                                             {"times", "--cpu=times"}};
    _cleanup_(buf_release) struct buf text = BUF(4096);
    buf_string(&text, metric);
    for (size_t i = 0; i < ARRAY_SIZE(options); i++)
        if (strcmp(options[i][0], metric) == 0)
            buf_printf(&text, ", which %s records", options[i][1]);
    size_t begin = text.len;
    for (int i = 0; i < PROFILE_METRICS; i++)
        if (p->series[i].samples.len)
            buf_printf(&text, "%s%s", text.len == begin ? "; it holds " : ", ",
                       profile_metrics[i].name);
    contents_report_patterns(path);
    return complain(path, "holds none of this metric", buf_str(&text));
}

static int complain_that_none_of(const struct selection *s, const char *path,
                                 enum profile_metric metric)
{
    char what[80];
    snprintf(what, sizeof(what), "no sample of the metric %s is selected by",
             profile_metrics[metric].name);
    return complain_of_selection(s, path, what);
}

int reading_check_metric(const struct selection *s, const struct profile *p, const char *path,
                         enum profile_metric metric)
{
    const struct profile_filter *f = &s->filter;
    if (!s->metric || (!f->thread && !f->class_name && !f->from_ns && !f->to_ns))
        return 0;
    int r = passes(p, metric, f);
    if (r < 0)
        return complain_errno(path, "cannot read", r);
    return r > 0 ? 0 : complain_that_none_of(s, path, metric);
}

int reading_metric(const struct selection *s, const struct profile *p, const char *path,
                   enum profile_metric *ret)
{
    /* First, without --metric, those of which the selection is a part. */
    for (int k = s->metric ? PROFILE_METRICS : 0; k < 2 * PROFILE_METRICS; k++) {
        int i = k % PROFILE_METRICS;
        bool wanted = !s->metric || strcmp(s->metric, profile_metrics[i].name) == 0;
        if (k < PROFILE_METRICS && (reading_whole_only(&s->filter, p, (enum profile_metric)i) ||
                                    all_filtered(p, (enum profile_metric)i, &s->filter)))
            continue;
        if (wanted && (p->series[i].samples.len || s->metric)) {
            *ret = (enum profile_metric)i;
            const char *whole_only = reading_whole_only(&s->filter, p, *ret);
            if (whole_only)
                return complain(path, whole_only,
                                profile_is_counted(p, *ret)
                                    ? "counts are those of the whole recording"
                                    : "the file states only the number of its samples");
            if (p->series[i].samples.len)
                return 0;
            return only_requests_given(&s->requests) ? complain_that_none_of(s, path, *ret)
                                                     : complain_of_metric(p, s->metric, path);
        }
    }
    if (contents_lacks_tables(path))
        return complain(path, "holds no samples",
                        "HPROF's tables are written when the recording ends, and this file has "
                        "none: the program was killed, or is still recording");
    const char *shown_by = contents_shown_by(path, NULL);
    _cleanup_(buf_release) struct buf next = BUF(2 * PATH_MAX);
    if (shown_by && strcmp(shown_by, "report") != 0 && !complain_renames(path))
        buf_printf(&next, "; see what it holds with: jvmscope %s %s", shown_by, path);
    _cleanup_(buf_release) struct buf what = BUF(3 * PATH_MAX);
    buf_printf(&what,
               "neither CPU samples nor allocations nor waits for locks (--cpu, --alloc, "
               "--monitors)%s",
               buf_str(&next));
    contents_report_patterns(path);
    return complain(path, "holds no samples", buf_str(&what));
}

char *reading_format_weight(char text[24], enum profile_metric metric, uint64_t weight)
{
    switch (profile_metrics[metric].unit) {
    case UNIT_BYTES:
        return format_size(text, weight);
    case UNIT_NS:
        return format_duration(text, weight);
    case UNIT_SAMPLES:
        break;
    }
    snprintf(text, 24, "%" PRIu64, weight);
    return text;
}
