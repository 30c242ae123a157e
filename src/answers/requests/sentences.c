/* SPDX-License-Identifier: Apache-2.0 */
/* Describes causes, culprits and groups of requests in sentences. */
#include "answers/requests/requests.h"

#include "base/parse.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/*
 * A sentence mentions what a request waited for only if that took at least this time, or this share
 * of its cause.
 */
#define REPORTED_SHARE 0.05

/*
 * How much the number of slow requests may differ from the requested one without being mentioned.
 */
#define UNLIKE 0.1

void request_put_count(struct buf *b, uint64_t n)
{
    char digits[24];
    int len = snprintf(digits, sizeof(digits), "%" PRIu64, n);
    for (int i = 0; i < len; i++)
        buf_printf(b, "%s%c", i && (len - i) % 3 == 0 ? "," : "", digits[i]);
}

/* Appends "3.5 %", or "0.04 %" below one. */
static void request_put_share(struct buf *b, double share)
{
    double percent = 100 * share;
    buf_printf(b, "%.*f %%", percent >= 10 ? 0 : percent >= 1 ? 1 : 2, percent);
}

/* Appends "118 of 119 ms". */
static void request_put_part_of(struct buf *b, uint64_t part, uint64_t whole)
{
    char x[24], y[24];
    format_duration(x, MIN(part, whole));
    format_duration(y, whole);
    const char *unit = strchr(x, ' '), *other = strchr(y, ' ');
    if (unit && other && strcmp(unit, other) == 0)
        buf_printf(b, "%.*s of %s", (int)(unit - x), x, y);
    else
        buf_printf(b, "%s of %s", x, y);
}

/* Describes what a thread did while others waited for it, as in "which slept". */
static const char *activity(enum request_cause kind)
{
    static const char *const words[REQUEST_CAUSES] = {
        [CAUSE_CPU] = "ran",
        [CAUSE_RUNNABLE] = "waited for a processor",
        [CAUSE_THROTTLED] = "was held back because the container was out of CPU",
        [CAUSE_LOCK] = "waited for another monitor",
        [CAUSE_PARK] = "was parked",
        [CAUSE_POOL] = "waited for a connection",
        [CAUSE_IO] = "read or wrote",
        [CAUSE_FAULT] = "waited for pages of memory",
        [CAUSE_SLEEP] = "slept",
        [CAUSE_GC] = "was stopped by the collector",
        [CAUSE_SAFEPOINT] = "was stopped by the VM",
        [CAUSE_CLASS_LOAD] = "loaded classes",
    };
    return words[kind] ? words[kind] : "was there";
}

static bool has_culprit(const struct group_cause *c)
{
    return c->culprit.thread && c->culprit.ns >= REPORTED_SHARE * c->slow_ns;
}

static void put_thread(struct buf *b, const struct group_culprit *who)
{
    buf_printf(b, who->threads > 1 ? "threads %s" : "thread %s", who->thread);
    if (who->threads > 1)
        buf_printf(b, " and %" PRIu32 " other%s", who->threads - 1, who->threads > 2 ? "s" : "");
}

void request_put_culprit(struct buf *b, const struct group_cause *c)
{
    if (!has_culprit(c))
        return;
    if (c->cause == CAUSE_QUEUE) {
        buf_string(b, ": the executor's ");
        put_thread(b, &c->culprit);
        buf_string(b, c->culprit.threads > 1 ? " were busy" : " was busy");
        if (c->busy_with)
            buf_printf(b, " with %s", c->busy_with);
    } else if (c->cause == CAUSE_RUNNABLE) {
        buf_string(b, ": its carrier was taken by ");
        put_thread(b, &c->culprit);
    } else if (c->cause == CAUSE_SAFEPOINT) {
        buf_string(b, ": the VM waited for ");
        put_thread(b, &c->culprit);
    } else {
        buf_string(b, request_cause_is_lock(c) ? ": held by " : ": until ");
        put_thread(b, &c->culprit);
        if (!request_cause_is_lock(c))
            buf_string(b, c->culprit.threads > 1 ? " were done" : " was done");
    }
    request_put_in(b, c->culprit.method);
    if (c->culprit.kind != CAUSE_CPU && c->culprit.kind != CAUSE_UNKNOWN)
        buf_printf(b, ", which %s", activity(c->culprit.kind));
    buf_string(b, ", ");
    request_put_part_of(b, (uint64_t)c->culprit.ns, (uint64_t)c->slow_ns);
}

/* Appends "waited for the lock of class App in App.stock". */
static void put_did(struct buf *b, const struct group_cause *c, uint64_t requests)
{
    const char *be = requests == 1 ? "was" : "were";
    switch (c->cause) {
    case CAUSE_CPU:
        buf_string(b, "ran");
        request_put_in(b, c->own.method);
        return;
    case CAUSE_LOCK:
        buf_string(b, "waited for the ");
        break;
    case CAUSE_PARK:
        if (request_cause_is_lock(c))
            buf_string(b, "waited for the ");
        else
            buf_printf(b, "%s ", be);
        break;
    case CAUSE_POOL:
        buf_string(b, "waited for a connection of ");
        break;
    case CAUSE_QUEUE:
        buf_string(b, "waited in the ");
        break;
    case CAUSE_SLEEP:
        buf_string(b, "slept");
        request_put_in(b, c->own.method);
        return;
    case CAUSE_RUNNABLE:
    case CAUSE_THROTTLED:
    case CAUSE_SAFEPOINT:
        buf_printf(b, "%s ", be);
        break;
    case CAUSE_UNKNOWN:
        buf_string(b, "spent their time where the recording does not show it");
        return;
    default:
        buf_string(b, "waited for ");
        break;
    }
    request_put_cause(b, c);
}

/*
 * Appends in how many of the slow requests a cause took most of the time, and returns the number.
 * If all requests that were kept count the same, it is counted among these; otherwise it is an
 * estimate for all.
 */
static uint64_t put_most(struct buf *b, const struct request_group *g, const struct group_cause *c)
{
    bool estimated = !g->equal && g->all > g->slow.len;
    if (!c->largest) { /* each spent more time on something that the typical ones did as well */
        buf_string(b, "; more than the typical ones, they ");
        return 0;
    }
    if (estimated) {
        double all = (double)g->all;
        uint64_t n = MAX((uint64_t)(c->most_of * all + 0.5), UINT64_C(1));
        buf_string(b, n == g->all ? "; all " : "; about ");
        request_put_count(b, n);
        buf_string(b, " of them (");
        if (c->most_error * all >= 0.5) {
            buf_string(b, "+-");
            request_put_count(b, (uint64_t)(c->most_error * all + 0.5));
            buf_string(b, ", ");
        }
        buf_string(b, "estimated from ");
        request_put_count(b, g->slow.len);
        buf_string(b, ") ");
        return n;
    }
    buf_string(b, g->all > g->slow.len ? "; of " : "; ");
    if (g->all > g->slow.len) {
        request_put_count(b, g->slow.len);
        buf_string(b, " whose details are known, ");
    }
    request_put_count(b, c->largest);
    buf_string(b, g->all > g->slow.len ? " " : " of them ");
    return c->largest;
}

void request_put_group(struct buf *b, const struct request_view *v, const struct request_group *g)
{
    const struct request_name *n = &v->r.names.data[g->name];
    char text[24];
    request_put_count(b, g->all);
    buf_string(b, " of ");
    request_put_count(b, n->all);
    if (v->options->over_ns)
        buf_printf(b, " requests took longer than %s", format_duration(text, v->options->over_ns));
    else
        buf_printf(b, " requests took %s or more", format_duration(text, g->limit_ns));
    if (g->wanted && fabs((double)g->all - (double)g->wanted) > UNLIKE * (double)g->wanted) {
        buf_string(b, " (");
        request_put_share(b, (double)g->all / (double)n->all);
        buf_string(b, " instead of ");
        request_put_share(b, (double)g->wanted / (double)n->all);
        buf_string(b, ": the histogram cannot distinguish their latencies)");
    }
    const struct group_cause *c = g->causes.len ? &g->causes.data[0] : NULL;
    if (!c || !(c->share > 0))
        return;
    if (c->uncertain) {
        buf_string(b, c->hidden ? "; waits that were left out may be what made them slow"
                                : "; too few of them are known to tell what made them slow");
        return;
    }
    put_did(b, c, put_most(b, g, c));
    if (has_culprit(c)) {
        request_put_culprit(b, c);
        return;
    }
    /*
     * The time is the mean over all slow requests, including those that waited for something else.
     */
    bool all = c->largest == g->slow.len;
    buf_printf(b, all ? " for %s" : ": %s", format_duration(text, (uint64_t)c->slow_ns));
    if (g->slow.len > 1)
        buf_string(b, " on average");
    if (!all && c->largest) {
        buf_string(b, " over the ");
        request_put_count(b, g->equal ? g->slow.len : g->all);
    }
}

bool request_put_hidden(struct buf *b, const struct request_group *g)
{
    char slow[24], typical[24];
    uint64_t slow_ns = (uint64_t)g->slow_hidden_ns, typical_ns = (uint64_t)g->typical_hidden_ns;
    if (!slow_ns && !typical_ns)
        return false;
    buf_printf(b,
               "waits of less than 1 ms were left out to stay within the budget: of what is shown "
               "as CPU, up to %s in a slow request",
               format_duration(slow, slow_ns));
    if (g->typical.len)
        buf_printf(b, " and %s in a typical one", format_duration(typical, typical_ns));
    buf_string(b, " can be waiting for a processor, lock, parked, connection pool or I/O");
    return true;
}

void request_frames_json(struct json *j, const struct request_view *v, const struct frames_ref *f)
{
    json_begin_array(j);
    for (uint32_t i = 0; i < f->n; i++) {
        char text[1200];
        uint32_t line;
        const char *method = frames_ref_method(v->l, f, i, &line);
        if (line)
            snprintf(text, sizeof(text), "%s:%" PRIu32, method, line);
        else
            snprintf(text, sizeof(text), "%s", method);
        json_string(j, text);
    }
    json_end_array(j);
}
