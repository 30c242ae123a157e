/* SPDX-License-Identifier: Apache-2.0 */
/* Describes in words on what the figures of a view are based. */
#include "profile/profile.h"

#include "base/buf.h"
#include "base/parse.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

uint64_t profile_allocated(const struct profile_view *v)
{
    const struct profile_filter *f = &v->filter;
    bool all =
        v->metric == PROFILE_ALLOCATION && !f->thread && !f->class_name && !f->from_ns && !f->to_ns;
    return all && v->profile->series[v->metric].estimated ? v->profile->allocated : 0;
}

/*
 * Texts before the number of readings or samples. In formats that have neither calls nor single
 * samples, only this note has the number. Earlier versions wrote COUNTED_NOTE before it, even
 * without counts.
 */
#define READINGS_BEFORE "times rest on "
#define SAMPLES_BEFORE  "estimated from "
#define COUNTED_NOTE    "all calls are counted, and "

/* Returns a note of a file without the text that earlier versions wrote before it. */
static struct str without_counted(struct str note)
{
    static const struct str counted = {COUNTED_NOTE, sizeof(COUNTED_NOTE) - 1};
    if (note.len < counted.len || memcmp(note.data, counted.data, counted.len) != 0)
        return note;
    return (struct str){note.data + counted.len, note.len - counted.len};
}

static struct str own_note(const struct profile *p, enum profile_metric metric)
{
    return without_counted(profile_text(p, p->series[metric].note));
}

static uint64_t samples_of(const struct profile_series *series)
{
    uint64_t n = series->spread.len ? 0 : series->samples.len;
    for (size_t i = 0; i < series->spread.len; i++)
        n += series->spread.data[i].samples;
    return n;
}

uint64_t profile_readings(const struct profile *p, enum profile_metric metric)
{
    const struct profile_series *series = &p->series[metric];
    uint64_t readings = 0;
    if (metric != PROFILE_EXACT && metric != PROFILE_ALLOCATION)
        return 0;
    if (series->estimated)
        return samples_of(series);
    for (size_t i = 0; metric == PROFILE_EXACT && i < p->calls.len && p->timed_by_readings; i++)
        readings += p->calls.data[i].samples;
    return readings ?: profile_readings_noted(profile_text(p, series->note));
}

uint64_t profile_readings_noted(struct str text)
{
    static const char *const before[] = {READINGS_BEFORE, SAMPLES_BEFORE};
    struct str note = without_counted(text);
    size_t at = 0;
    uint64_t readings = 0;
    for (size_t i = 0; i < ARRAY_SIZE(before) && !at; i++)
        if (note.len > strlen(before[i]) && memcmp(note.data, before[i], strlen(before[i])) == 0)
            at = strlen(before[i]);
    for (; at && at < note.len && note.data[at] >= '0' && note.data[at] <= '9'; at++)
        readings = MIN(readings, UINT64_MAX / 100) * 10 + (uint64_t)(note.data[at] - '0');
    return readings;
}

uint64_t profile_series_weight(const struct profile_series *series)
{
    uint64_t weight = 0;
    for (size_t i = 0; i < series->samples.len; i++)
        weight += series->samples.data[i].weight;
    return weight;
}

uint64_t profile_kept(const struct profile_view *v)
{
    double n = v->profile->series[v->metric].kept_share * (double)v->weight;
    return n > 0 ? MAX((uint64_t)(n + 0.5), UINT64_C(1)) : 0;
}

uint64_t profile_least_weight(const struct profile_view *v)
{
    const struct profile_series *series = &v->profile->series[v->metric];
    if (series->kept_share > 0)
        return (uint64_t)(FEWEST_READINGS / series->kept_share);
    uint64_t readings = profile_readings(v->profile, v->metric);
    return readings ? profile_series_weight(series) / readings * FEWEST_READINGS : 0;
}

bool profile_may_share_places(const struct profile *p)
{
    /* All stacks of the first objects of a place are known (agent/capture/alloc/strata.c). */
    enum { ALL_KNOWN = 16 };

    for (size_t i = 0; i < p->sites.len && !p->every_stack; i++) {
        const struct profile_site *s = &p->sites.data[i];
        uint32_t caller = p->nodes.data[s->node].parent;
        if (!s->estimated && s->objects > ALL_KNOWN && caller &&
            profile_node_frame(p, caller)->kind != FRAME_MARK) /* depth=1 cuts all stacks there */
            return true;
    }
    return false;
}

/*
 * A note. Its first `head` bytes are a short form of what the rest explains; 0: there is no short
 * form.
 */
struct note {
    struct buf *to;
    size_t head;
};

/* Ends the short part, unless an explanation has already begun. */
static void note_explain(struct note *n)
{
    if (!n->head)
        n->head = n->to->len;
    buf_string(n->to, ": ");
}

/* States what the VM has counted, after an estimate of all that was allocated. */
static void note_allocated(const struct profile_view *v, struct note *n)
{
    uint64_t counted = profile_allocated(v);
    double off = (double)v->weight - (double)counted, error = profile_standard_error(v);
    char size[24];
    if (!counted)
        return;
    buf_printf(n->to, ", and the VM counted %s", format_size(size, counted));
    if (fabs(off) > ALLOWED_ERRORS * error + ALLOWED_SHARE * (double)counted) {
        note_explain(n);
        buf_string(n->to, "the error does not explain the difference");
    }
}

/*
 * Returns the estimated bytes of the sites that a view shows; sites do not distinguish threads and
 * times.
 */
static uint64_t estimated_bytes(const struct profile_view *v)
{
    const struct profile *p = v->profile;
    uint64_t bytes = 0;
    for (size_t i = 0; i < p->sites.len; i++) {
        const struct profile_site *s = &p->sites.data[i];
        if (s->estimated && v->self[s->node])
            bytes += s->bytes;
    }
    return MIN(bytes, v->weight);
}

/* States what exact counts of allocations leave to estimates, and what they leave out. */
static void note_sites(const struct profile_view *v, struct note *n)
{
    static const char uncounted[] = "what the VM itself and code that is not changed allocate";
    uint64_t estimated = estimated_bytes(v);
    bool shares = profile_may_share_places(v->profile), missing = v->profile->only_counted;
    char size[24];
    if (estimated && estimated == v->weight) {
        buf_string(n->to, "estimated from samples of the VM");
        return;
    }
    buf_string(n->to, "counted");
    if (estimated)
        buf_printf(n->to, ", except for an estimated %.1f %%",
                   100 * (double)estimated / (double)v->weight);
    note_explain(n);
    if (estimated)
        buf_printf(n->to, "%s, %s, is estimated from samples, and ", uncounted,
                   format_size(size, estimated));
    else if (missing)
        buf_printf(n->to, "%s, such as the stack traces of exceptions, is left out, but ",
                   uncounted);
    /* Probes make objects escape that the JIT would otherwise keep off the heap. */
    buf_string(n->to, "short-lived objects are included that the JIT does not allocate when "
                      "nothing counts them");
    if (shares)
        buf_printf(
            n->to,
            ". A place to which several stacks lead is counted, and its count is divided among "
            "them by an estimate, with a standard error of at most %s",
            PARTS_ERROR);
}

size_t profile_note(const struct profile_view *v, struct buf *to)
{
    const struct profile *p = v->profile;
    const struct profile_series *series = &p->series[v->metric];
    struct str note = own_note(p, v->metric);
    struct note n = {.to = to};
    if (note.len) {
        buf_bytes(to, note.data, note.len);
    } else if (v->metric == PROFILE_EXACT && p->timed_by_readings && p->calls.len) {
        buf_printf(to, PROFILE_READINGS_SHORT,
                   COUNT_TEXT(profile_readings(p, v->metric), "readings"));
        note_explain(&n);
        buf_printf(to, PROFILE_READINGS_ROUGH, FEWEST_READINGS);
    } else if (series->estimated && v->weight) {
        buf_printf(to, PROFILE_SAMPLES_NOTE ", standard error at most %.1f %%",
                   COUNT_TEXT(v->samples, "samples"),
                   100 * profile_standard_error(v) / (double)v->weight);
        if (v->metric == PROFILE_ALLOCATION && p->rests_count) {
            note_explain(&n);
            buf_string(to,
                       "before JDK 25 including unused ends of allocation buffers, which are many "
                       "where many threads allocate little");
        }
        note_allocated(v, &n);
    } else if (profile_kept(v)) {
        buf_printf(to, PROFILE_SAMPLES_NOTE ", standard error at most %.0f %%",
                   COUNT_TEXT(profile_kept(v), "samples"),
                   100 * profile_standard_error(v) / (double)v->weight);
        note_explain(&n);
        buf_string(to, "the others were left out to stay within the budget");
    } else if (v->metric == PROFILE_ALLOCATION && p->sites.len) {
        note_sites(v, &n);
    }
    return n.head ? n.head : to->len;
}
