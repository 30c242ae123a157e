/* SPDX-License-Identifier: Apache-2.0 */
/* What the process used of its CPU time besides what was sampled. */
#include "cli/report.h"

#include "base/json.h"
#include "base/parse.h"
#include "base/strpool.h"
#include "profile/vm_time.h"

static double percent(uint64_t part, uint64_t whole)
{
    return whole ? 100.0 * (double)part / (double)whole : 0;
}

/*
 * Reads what the process used besides what was sampled. For a selection of threads or classes
 * nothing is known of this.
 */
static void read_times(const struct profile_view *v, struct vm_time *ret)
{
    *ret = (struct vm_time){0};
    if (v->metric != PROFILE_CPU || v->filter.thread || v->filter.class_name ||
        vm_time_sum(ret, v->profile, &v->filter) < 0)
        *ret = (struct vm_time){0};
}

/* Continues the line of CPU times, or begins another one below it. */
static void print_time(int *column, struct str what, uint64_t ns, uint64_t whole_ns,
                       const char *note)
{
    enum { WIDTH = 100, INDENT = 4 };

    char time[24], text[200];
    int n = snprintf(text, sizeof(text), "%.*s %s (%.1f %%%s)", (int)MIN(what.len, (size_t)80),
                     what.data, format_duration(time, ns), percent(ns, whole_ns), note);
    bool wraps = *column + 2 + n > WIDTH;
    if (wraps)
        printf(",\n    %s", text);
    else
        printf(", %s", text);
    *column = wraps ? INDENT + n : *column + 2 + n;
}

void report_process_print(const struct profile_view *v)
{
    _cleanup_(vm_time_release) struct vm_time t;
    char time[24];
    read_times(v, &t);
    if (!t.process_ns)
        return;
    int column = printf("  CPU time of the process %s: ", format_duration(time, t.process_ns));
    column += printf("Java threads %s", format_duration(time, t.java_ns));
    bool collector = false; /* with threads of its own, which the serial one has not */
    for (size_t i = 0; i < t.rows.len; i++)
        collector |= str_is(profile_text(v->profile, t.rows.data[i].what), "collector");
    for (size_t i = 0; i < t.rows.len; i++) {
        struct str what = profile_text(v->profile, t.rows.data[i].what);
        bool collects = !collector && str_is(what, "VM");
        print_time(&column, what, t.rows.data[i].cpu_ns, t.process_ns,
                   collects ? ", where the serial collector works" : "");
    }
    if (percent(t.rest_ns, t.process_ns) >= 0.05)
        print_time(&column, (struct str){"not sampled", 11}, t.rest_ns, t.process_ns, "");
    putchar('\n');
}

void report_process_json(struct json *j, const struct profile_view *v)
{
    _cleanup_(vm_time_release) struct vm_time t;
    read_times(v, &t);
    if (!t.process_ns)
        return;
    json_key_object(j, "cpu_time_ns");
    json_key_u64(j, VM_TIME_PROCESS, t.process_ns);
    json_key_u64(j, "java", t.java_ns);
    json_key_u64(j, "not sampled", t.rest_ns);
    for (size_t i = 0; i < t.rows.len; i++) {
        struct str what = profile_text(v->profile, t.rows.data[i].what);
        json_string_n(j, what.data, what.len);
        buf_u8(j->out, ':');
        j->comma = false;
        json_u64(j, t.rows.data[i].cpu_ns);
    }
    json_end_object(j);
}
