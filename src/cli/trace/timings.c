/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/trace/timings.h"

#include "base/parse.h"
#include "cli/commands.h"
#include "options/signature.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

void timings_release(struct timings *t)
{
    vec_release(&t->rows);
}

/* Each event has the figures since the beginning, so the latest one of a method counts. */
static int add(void *context, const struct rec_event *e)
{
    struct timings *t = context;
    const struct rec_object *o = &e->object;
    struct timing row = {
        .method = rec_method(o, "method"),
        .at_ns = e->start_ns,
        .calls = rec_long(o, "invocations", 0),
        .least_ns = rec_ns(o, "minimum", -1),
        .average_ns = rec_ns(o, "average", -1),
        .most_ns = rec_ns(o, "maximum", -1),
    };
    if (!row.method || row.calls <= 0)
        return 0;
    for (size_t i = 0; i < t->rows.len; i++) {
        struct timing *at = &t->rows.data[i];
        if (at->method->number == row.method->number) {
            *at = row.at_ns >= at->at_ns ? row : *at;
            return 0;
        }
    }
    return vec_push(&t->rows, row);
}

static double total_of(const struct timing *t)
{
    return (double)t->calls * (double)MAX(t->average_ns, INT64_C(0));
}

static int most_first(const void *a, const void *b)
{
    double x = total_of(a), y = total_of(b);
    const struct rec_method *m = ((const struct timing *)a)->method;
    const struct rec_method *n = ((const struct timing *)b)->method;
    return x != y ? (x < y) - (x > y) : strcmp(m->full, n->full);
}

int timings_read(struct timings *ret, struct recording *r)
{
    static const struct rec_select wanted[] = {{"jdk.MethodTiming", 0}, {0}};
    recording_rewind(r);
    int e = recording_each(r, wanted, add, ret);
    if (e == 0 && ret->rows.len)
        qsort(ret->rows.data, ret->rows.len, sizeof(*ret->rows.data), most_first);
    return e;
}

static void put_method(struct buf *to, const struct rec_method *m)
{
    buf_string(to, m->full);
    if (m->descriptor)
        signature_put_parameters(to, m->descriptor);
}

static void print_time(int64_t ns)
{
    char text[24];
    printf("%10s  ", ns < 0 ? "-" : format_duration(text, (uint64_t)ns));
}

void timings_print(const struct timings *t)
{
    if (!t->rows.len)
        return;
    printf("methods that the JDK timed\n%10s  %10s  %10s  %10s  %s\n", "CALLS", "AVERAGE", "LEAST",
           "MOST", "METHOD");
    for (size_t i = 0; i < t->rows.len; i++) {
        const struct timing *row = &t->rows.data[i];
        _cleanup_(buf_release) struct buf method = BUF(1 << 18);
        put_method(&method, row->method);
        printf("%10" PRId64 "  ", row->calls);
        print_time(row->average_ns);
        print_time(row->least_ns);
        print_time(row->most_ns);
        print_text(stdout, (struct str){buf_str(&method), method.len});
        putchar('\n');
    }
}

static void json_time(struct json *j, const char *key, int64_t ns)
{
    if (ns >= 0)
        json_key_i64(j, key, ns);
}

void timings_json(const struct timings *t, struct json *j)
{
    json_key_array(j, "timings");
    for (size_t i = 0; i < t->rows.len; i++) {
        const struct timing *row = &t->rows.data[i];
        _cleanup_(buf_release) struct buf method = BUF(1 << 18);
        put_method(&method, row->method);
        json_begin_object(j);
        json_key_string(j, "method", buf_str(&method));
        json_key_i64(j, "calls", row->calls);
        json_time(j, "average_ns", row->average_ns);
        json_time(j, "least_ns", row->least_ns);
        json_time(j, "most_ns", row->most_ns);
        json_end_object(j);
    }
    json_end_array(j);
}
