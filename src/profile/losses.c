/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/losses.h"
#include "base/parse.h"
#include "jfr/losses.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void losses_release(struct losses *l)
{
    for (size_t i = 0; i < l->rows.len; i++) {
        free(l->rows.data[i].capture);
        free(l->rows.data[i].what);
        free(l->rows.data[i].reason);
        free(l->rows.data[i].of);
    }
    vec_release(&l->rows);
    for (size_t i = 0; i < l->reduced.len; i++)
        free(l->reduced.data[i].what);
    vec_release(&l->reduced);
    for (size_t i = 0; i < l->counted.len; i++)
        free(l->counted.data[i].capture);
    vec_release(&l->counted);
    for (size_t i = 0; i < l->early.len; i++)
        free(l->early.data[i].capture);
    vec_release(&l->early);
    for (size_t i = 0; i < l->missing.len; i++) {
        free(l->missing.data[i].capture);
        free(l->missing.data[i].what);
        free(l->missing.data[i].reason);
    }
    vec_release(&l->missing);
    for (size_t i = 0; i < l->left_out.len; i++)
        free(l->left_out.data[i].type);
    vec_release(&l->left_out);
    *l = (struct losses){0};
}

static struct loss *find(const struct losses *l, const char *capture, const char *what,
                         const char *reason, const char *of)
{
    for (size_t i = 0; i < l->rows.len; i++) {
        struct loss *row = &l->rows.data[i];
        if (strcmp(row->capture, capture) == 0 && strcmp(row->what, what) == 0 &&
            strcmp(row->reason, reason) == 0 && strcmp(row->of, of) == 0)
            return row;
    }
    return NULL;
}

static struct loss *add_row(struct losses *l, const char *capture, const char *what,
                            const char *reason, const char *of)
{
    struct loss row = {.capture = strdup(capture),
                       .what = strdup(what),
                       .reason = strdup(reason),
                       .of = strdup(of),
                       .from_ns = INT64_MAX,
                       .to_ns = INT64_MIN};
    if (row.capture && row.what && row.reason && row.of && vec_push(&l->rows, row) == 0)
        return &l->rows.data[l->rows.len - 1];
    free(row.capture);
    free(row.what);
    free(row.reason);
    free(row.of);
    return NULL;
}

static int add(struct losses *l, const char *capture, const char *what, const char *reason,
               const char *of, uint64_t amount, int64_t from_ns, int64_t to_ns)
{
    struct loss *row = find(l, capture, what, reason, of);
    if (!row)
        row = add_row(l, capture, what, reason, of);
    if (!row)
        return -ENOMEM;
    row->amount += amount;
    row->from_ns = MIN(row->from_ns, from_ns);
    row->to_ns = MAX(row->to_ns, to_ns);
    return 0;
}

static struct reduced *reduced_at(struct losses *l, const char *what)
{
    for (size_t i = 0; i < l->reduced.len; i++)
        if (strcmp(l->reduced.data[i].what, what) == 0)
            return &l->reduced.data[i];
    struct reduced row = {.what = strdup(what),
                          .one_of = 1,
                          .from_ns = INT64_MAX,
                          .to_ns = INT64_MIN,
                          .last_ns = INT64_MIN};
    if (row.what && vec_push(&l->reduced, row) == 0)
        return &l->reduced.data[l->reduced.len - 1];
    free(row.what);
    return NULL;
}

static int add_early(struct losses *l, const char *capture, uint64_t ns)
{
    for (size_t i = 0; i < l->early.len; i++) {
        struct early *row = &l->early.data[i];
        if (strcmp(row->capture, capture) == 0) {
            row->ns = MAX(row->ns, ns);
            return 0;
        }
    }
    struct early row = {strdup(capture), ns};
    if (row.capture && vec_push(&l->early, row) == 0)
        return 0;
    free(row.capture);
    return -ENOMEM;
}

static int add_missing(struct losses *l, const char *capture, const char *what, const char *reason)
{
    for (size_t i = 0; i < l->missing.len; i++) {
        const struct missing *row = &l->missing.data[i];
        if (strcmp(row->capture, capture) == 0 && strcmp(row->what, what) == 0 &&
            strcmp(row->reason, reason) == 0)
            return 0;
    }
    struct missing row = {strdup(capture), strdup(what), strdup(reason)};
    if (row.capture && row.what && row.reason && vec_push(&l->missing, row) == 0)
        return 0;
    free(row.capture);
    free(row.what);
    free(row.reason);
    return -ENOMEM;
}

static int add_left_out(struct losses *l, const char *type, uint64_t events)
{
    for (size_t i = 0; i < l->left_out.len; i++) {
        if (strcmp(l->left_out.data[i].type, type) == 0) {
            l->left_out.data[i].events += events;
            return 0;
        }
    }
    struct twice row = {strdup(type), events};
    if (row.type && vec_push(&l->left_out, row) == 0)
        return 0;
    free(row.type);
    return -ENOMEM;
}

/* Adds an event of a reduction by the budget. Events need not be in chronological order. */
static int add_reduced(struct losses *l, const struct rec_event *e)
{
    int64_t one_of = rec_long(&e->object, "oneOf", 1);
    struct reduced *row = reduced_at(l, rec_string(&e->object, "what", "events"));
    if (!row)
        return -ENOMEM;
    if (one_of > 1) {
        row->one_of = MAX(row->one_of, (uint64_t)one_of);
        row->from_ns = MIN(row->from_ns, e->start_ns);
    } else {
        row->to_ns = MAX(row->to_ns, e->start_ns);
    }
    if (e->start_ns >= row->last_ns) {
        row->last_ns = e->start_ns;
        row->ongoing = one_of > 1;
    }
    return 0;
}

/*
 * Returns the row of a capture. A new row gets the given moment. Returns NULL when out of memory.
 */
static struct counted *counted_at(struct losses *l, const char *capture, int64_t until_ns)
{
    for (size_t i = 0; i < l->counted.len; i++)
        if (strcmp(l->counted.data[i].capture, capture) == 0)
            return &l->counted.data[i];
    struct counted row = {strdup(capture), until_ns};
    if (row.capture && vec_push(&l->counted, row) == 0)
        return &l->counted.data[l->counted.len - 1];
    free(row.capture);
    return NULL;
}

static int add_counted(struct losses *l, const struct rec_event *e)
{
    struct counted *row = counted_at(l, rec_string(&e->object, "capture", "?"), e->start_ns);
    if (row)
        row->until_ns = MAX(row->until_ns, e->start_ns);
    return row ? 0 : -ENOMEM;
}

uint64_t losses_amount(const struct rec_event *e)
{
    return (uint64_t)MAX(rec_long(&e->object, "amount", rec_long(&e->object, "lostSamples", 0)),
                         INT64_C(0));
}

/* Adds one event of the types that are selected below. Returns 0 or -ENOMEM. */
static int add_event(struct losses *l, const struct rec_event *e)
{
    const struct rec_object *o = &e->object;
    if (strcmp(o->type->name, "jvmscope.Budget") == 0)
        return add_reduced(l, e);
    if (strcmp(o->type->name, "jvmscope.Counted") == 0)
        return add_counted(l, e);
    if (strcmp(o->type->name, "jvmscope.RecordedBefore") == 0)
        return add_early(l, rec_string(o, "capture", "?"), (uint64_t)MAX(e->duration_ns, 0));
    if (strcmp(o->type->name, "jvmscope.LeftOut") == 0)
        return add_left_out(l, rec_string(o, "type", "?"), (uint64_t)rec_long(o, "events", 0));
    if (strcmp(o->type->name, "jvmscope.Missing") == 0)
        return add_missing(l, rec_string(o, "capture", "?"), rec_string(o, "what", "?"),
                           rec_string(o, "reason", "?"));
    if (strcmp(o->type->name, "jdk.CPUTimeSamplesLost") == 0)
        return add(l, "cpu", "samples", "the VM's recorder could not take them", "",
                   losses_amount(e), e->start_ns, e->start_ns);
    /*
     * Recordings of the first release lack the capture and the kind of thing; jdk.DataLoss has only
     * an amount in bytes.
     */
    bool other = strcmp(o->type->name, "jdk.DataLoss") == 0;
    const char *capture = rec_string(o, "capture", "recording");
    const char *what = rec_string(o, "what", other ? "bytes" : "events");
    const char *reason =
        rec_string(o, "reason", other ? "the VM's recorder was too slow" : "not reported");
    return add(l, capture, what, reason, rec_string(o, "of", ""), losses_amount(e), e->start_ns,
               e->start_ns + e->duration_ns);
}

static bool lacks_end(const struct losses *l)
{
    return l->unended || l->cut;
}

int losses_merge(struct losses *to, const struct losses *from)
{
    int r = 0;
    for (size_t i = 0; i < from->rows.len && r == 0; i++) {
        const struct loss *row = &from->rows.data[i];
        r = add(to, row->capture, row->what, row->reason, row->of, row->amount, row->from_ns,
                row->to_ns);
    }
    for (size_t i = 0; i < from->reduced.len && r == 0; i++) {
        const struct reduced *row = &from->reduced.data[i];
        struct reduced *at = reduced_at(to, row->what);
        r = at ? 0 : -ENOMEM;
        if (!at)
            break;
        at->one_of = MAX(at->one_of, row->one_of);
        at->from_ns = MIN(at->from_ns, row->from_ns);
        at->to_ns = MAX(at->to_ns, row->to_ns);
        at->ongoing = row->last_ns >= at->last_ns ? row->ongoing : at->ongoing;
        at->last_ns = MAX(at->last_ns, row->last_ns);
    }
    for (size_t i = 0; i < from->early.len && r == 0; i++)
        r = add_early(to, from->early.data[i].capture, from->early.data[i].ns);
    for (size_t i = 0; i < from->missing.len && r == 0; i++)
        r = add_missing(to, from->missing.data[i].capture, from->missing.data[i].what,
                        from->missing.data[i].reason);
    for (size_t i = 0; i < from->left_out.len && r == 0; i++)
        r = add_left_out(to, from->left_out.data[i].type, from->left_out.data[i].events);
    if (!to->damage[0])
        memcpy(to->damage, from->damage, sizeof(to->damage));
    /* The times matter only for recordings that lack their end. */
    for (size_t i = 0; i < from->counted.len && r == 0 && lacks_end(from); i++) {
        const struct counted *row = &from->counted.data[i];
        struct counted *at = counted_at(to, row->capture, row->until_ns);
        r = at ? 0 : -ENOMEM;
        if (at)
            at->until_ns = MIN(at->until_ns, row->until_ns);
    }
    to->start_ns = to->start_ns ? MIN(to->start_ns, from->start_ns) : from->start_ns;
    to->unended = to->unended || from->unended;
    to->cut = to->cut || from->cut;
    to->end_s = MAX(to->end_s, from->end_s);
    to->flushed_s = MAX(to->flushed_s, from->flushed_s);
    return r;
}

/*
 * Limits the times of losses to the recording. An agent that ends a recording may still lose events
 * until its captures have stopped, and reports them in the recording's last events.
 */
static void keep_within(struct losses *l, int64_t end_ns)
{
    if (end_ns <= l->start_ns)
        return; /* the length is unknown */
    for (size_t i = 0; i < l->rows.len; i++) {
        struct loss *row = &l->rows.data[i];
        row->from_ns = MIN(row->from_ns, end_ns);
        row->to_ns = MIN(row->to_ns, end_ns);
    }
    for (size_t i = 0; i < l->reduced.len; i++) {
        struct reduced *row = &l->reduced.data[i];
        if (row->from_ns != INT64_MAX)
            row->from_ns = MIN(row->from_ns, end_ns);
        row->to_ns = MIN(row->to_ns, end_ns);
    }
}

/* Reads the span and the end that the recording itself states. */
static void read_info(struct losses *l, struct recording *r)
{
    struct rec_info info;
    recording_info(r, &info);
    l->start_ns = info.start_ns;
    l->unended = info.unended;
    l->cut = info.cut;
    if (info.truncated && !info.cut)
        snprintf(l->damage, sizeof(l->damage), "%s (at byte %" PRIu64 ")", info.why, info.at);
    l->end_s = (double)(info.end_ns - info.start_ns) / 1e9;
    l->flushed_s = (double)(info.flushed_ns - info.start_ns) / 1e9;
    keep_within(l, info.end_ns);
}

int losses_read(struct losses *ret, struct recording *r, bool any)
{
    static const struct rec_select wanted[] = {LOSSES_SELECT(0), {"jvmscope.Counted", 0}, {0}};
    struct rec_event e;
    read_info(ret, r);
    if (!any && !lacks_end(ret))
        return 0;
    int n = recording_select(r, wanted);
    if (n < 0)
        return n;
    recording_rewind(r);
    while (n >= 0 && (n = recording_next(r, &e)) > 0)
        n = add_event(ret, &e);
    read_info(ret, r);
    return n;
}

const char *const losses_of_trace[] = {"trace", "log", "exceptions", "events", NULL};
const char *const losses_of_exceptions[] = {"exceptions", NULL};
const char *const losses_of_coverage[] = {"coverage", NULL};
const char *const losses_of_threads[] = {"threads", "locks", "monitors", "io", NULL};
const char *const losses_of_profile[] = {"cpu", "times", "alloc", "locks", "monitors", NULL};
const char *const losses_of_vm[] = {"events", "recording", NULL};
const char *const losses_of_requests[] = {"requests", "threads", "locks", "monitors",
                                          "io",       "cpu",     NULL};

bool losses_is_of(const char *const *captures, const char *capture)
{
    for (; captures && *captures; captures++)
        if (strcmp(*captures, capture) == 0)
            return true;
    return !captures;
}

static bool holds(const struct loss *loss, const struct loss *held)
{
    return strcmp(held->of, loss->what) == 0 && strcmp(held->capture, loss->capture) == 0 &&
           strcmp(held->reason, loss->reason) == 0;
}

bool loss_is_held(const struct losses *l, const struct loss *loss)
{
    for (size_t i = 0; i < l->rows.len && loss->of[0]; i++)
        if (!l->rows.data[i].of[0] && holds(&l->rows.data[i], loss))
            return true;
    return false;
}

uint64_t losses_sum(const struct losses *l, const char *const *captures)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < l->rows.len; i++)
        if (losses_concern(captures, l->rows.data[i].capture) && !loss_is_held(l, &l->rows.data[i]))
            sum += l->rows.data[i].amount;
    return sum;
}

static double seconds(const struct losses *l, int64_t ns)
{
    return (double)MAX(ns - l->start_ns, INT64_C(0)) / 1e9;
}

/*
 * For methods that were running when the recording began: returns what happens to them from their
 * next call on. Otherwise returns NULL.
 */
static const char *ran_before(const struct loss *loss)
{
    static const char begin[] = LOSS_RAN_BEFORE;
    bool is = strncmp(loss->reason, begin, sizeof(begin) - 1) == 0 &&
              strstr(loss->reason, LOSS_NEXT_CALL);
    return is ? loss->reason + sizeof(begin) - 1 : NULL;
}

void loss_sentence(const struct losses *l, const struct loss *loss, struct buf *out)
{
    unsigned n = 0;
    const char *running = ran_before(loss);
    if (running) {
        bool one = loss->amount == 1;
        const char *names = strchrnul(running, ':');
        buf_printf(out, "%s: %s that ran when the recording began %s %.*s from %s next call on%s",
                   loss->capture, COUNT_TEXT(loss->amount, loss->what), one ? "is" : "are",
                   (int)strcspn(running, " "), running, one ? "its" : "their", names);
        return;
    }
    buf_printf(out, "%s: %s", loss->capture, COUNT_TEXT(loss->amount, loss->what));
    for (size_t i = 0; i < l->rows.len; i++)
        if (holds(loss, &l->rows.data[i]))
            buf_printf(out, "%s %s", n++ ? " and" : " with",
                       COUNT_TEXT(l->rows.data[i].amount, l->rows.data[i].what));
    buf_printf(out, " %s lost between %.2f s and %.2f s: %s", loss->amount == 1 ? "was" : "were",
               seconds(l, loss->from_ns), seconds(l, loss->to_ns), loss->reason);
}

void reduced_sentence(const struct losses *l, const struct reduced *r, struct buf *out)
{
    /* The beginning may be before the part of a ring that was extracted. */
    double from = r->from_ns == INT64_MAX ? 0 : seconds(l, r->from_ns);
    if (r->ongoing)
        buf_printf(out, "budget: from %.2f s on", from);
    else
        buf_printf(out, "budget: between %.2f s and %.2f s", from, seconds(l, r->to_ns));
    if (r->one_of > 1)
        buf_printf(out, " as few as one in %" PRIu64, r->one_of);
    else
        buf_string(out, " fewer");
    buf_printf(out, " %s were kept, to stay within the budget", r->what);
}

/*
 * Appends "; the counts of alloc and times are those of 7.50 s, of requests those of 6.02 s". If
 * the recording contains more requests than were counted, views show the recorded ones instead
 * (requests_order.c).
 */
static void counted_sentence(const struct losses *l, struct buf *out)
{
    bool requests = false;
    for (size_t i = 0; i < l->counted.len; i++) {
        requests = requests || strcmp(l->counted.data[i].capture, "requests") == 0;
        const char *text = i ? ", of " : "; the counts of ";
        int64_t until_ns = l->counted.data[i].until_ns;
        size_t left = 0, first = 0;
        while (l->counted.data[first].until_ns != until_ns)
            first++;
        if (first < i)
            continue; /* this row was written together with others of the same moment */
        for (size_t k = i; k < l->counted.len; k++)
            left += l->counted.data[k].until_ns == until_ns;
        for (size_t k = i; k < l->counted.len; k++) {
            if (l->counted.data[k].until_ns != until_ns)
                continue;
            buf_printf(out, "%s%s", text, l->counted.data[k].capture);
            text = --left == 1 ? " and " : ", ";
        }
        buf_printf(out, "%s those of %.2f s", i ? "" : " are", seconds(l, until_ns));
    }
    if (requests)
        buf_string(out, "; of a name with more requests than that in the recording, these count");
}

bool losses_unended_sentence(const struct losses *l, struct buf *out)
{
    if (l->unended) {
        buf_printf(out, "the recording was not ended: everything after %.2f s is missing",
                   l->end_s);
        if (l->end_s - l->flushed_s >= 0.005)
            buf_printf(out, ", and some of what happened after %.2f s", l->flushed_s);
    } else if (l->cut) /* its header has the length of the recording, not of what is left */
        buf_string(out, "the file is cut: the end of the recording is missing");
    if (lacks_end(l))
        counted_sentence(l, out);
    return lacks_end(l);
}

/* Writes the member "with": what the lost things contained. */
static void held_json(const struct losses *l, const struct loss *loss, struct json *j)
{
    bool any = false;
    for (size_t i = 0; i < l->rows.len; i++) {
        const struct loss *row = &l->rows.data[i];
        if (!holds(loss, row))
            continue;
        if (!any)
            json_key_array(j, "with");
        any = true;
        json_begin_object(j);
        json_key_string(j, "what", row->what);
        json_key_u64(j, "amount", row->amount);
        json_end_object(j);
    }
    if (any)
        json_end_array(j);
}

void losses_json(const struct losses *l, const char *const *captures, struct json *j)
{
    json_key_u64(j, "lost", losses_sum(l, NULL));
    if (captures)
        json_key_u64(j, "lost_here", losses_sum(l, captures));
    json_key_array(j, "losses");
    for (size_t i = 0; i < l->rows.len; i++) {
        const struct loss *row = &l->rows.data[i];
        if (loss_is_held(l, row))
            continue;
        json_begin_object(j);
        json_key_string(j, "capture", row->capture);
        json_key_string(j, "what", row->what);
        json_key_string(j, "reason", row->reason);
        json_key_u64(j, "amount", row->amount);
        held_json(l, row, j);
        _cleanup_(buf_release) struct buf sentence = BUF(1 << 16);
        loss_sentence(l, row, &sentence);
        json_key_string(j, "sentence", buf_str(&sentence));
        json_key_i64(j, "from_ns", MAX(row->from_ns - l->start_ns, INT64_C(0)));
        json_key_i64(j, "to_ns", MAX(row->to_ns - l->start_ns, INT64_C(0)));
        json_end_object(j);
    }
    json_end_array(j);
    json_key_array(j, "reduced");
    for (size_t i = 0; i < l->reduced.len; i++) {
        const struct reduced *row = &l->reduced.data[i];
        json_begin_object(j);
        json_key_string(j, "what", row->what);
        json_key_u64(j, "one_of", row->one_of);
        json_key_i64(j, "from_ns",
                     row->from_ns == INT64_MAX ? 0 : MAX(row->from_ns - l->start_ns, INT64_C(0)));
        if (!row->ongoing) {
            json_key_i64(j, "to_ns", MAX(row->to_ns - l->start_ns, INT64_C(0)));
        }
        json_end_object(j);
    }
    json_end_array(j);
    json_key_array(j, "missing");
    for (size_t i = 0; i < l->missing.len; i++) {
        json_begin_object(j);
        json_key_string(j, "capture", l->missing.data[i].capture);
        json_key_string(j, "what", l->missing.data[i].what);
        json_key_string(j, "reason", l->missing.data[i].reason);
        json_end_object(j);
    }
    json_end_array(j);
    json_key_array(j, "left_out");
    for (size_t i = 0; i < l->left_out.len; i++) {
        json_begin_object(j);
        json_key_string(j, "type", l->left_out.data[i].type);
        json_key_u64(j, "events", l->left_out.data[i].events);
        json_end_object(j);
    }
    json_end_array(j);
    json_key_array(j, "before");
    for (size_t i = 0; i < l->early.len; i++) {
        json_begin_object(j);
        json_key_string(j, "capture", l->early.data[i].capture);
        json_key_u64(j, "ns", l->early.data[i].ns);
        json_end_object(j);
    }
    json_end_array(j);
    json_key_bool(j, "unended", lacks_end(l));
    /* the words that follow "only part of it could be read" */
    json_key_string(j, "damage", l->damage[0] ? l->damage : NULL);
    json_key_array(j, "counted");
    for (size_t i = 0; i < l->counted.len && lacks_end(l); i++) {
        json_begin_object(j);
        json_key_string(j, "capture", l->counted.data[i].capture);
        json_key_i64(j, "until_ns", MAX(l->counted.data[i].until_ns - l->start_ns, INT64_C(0)));
        json_end_object(j);
    }
    json_end_array(j);
}

void losses_read_file(struct losses *ret, const char *path, bool any)
{
    _cleanup_(recording_closep) struct recording *r = NULL;
    const char *why = NULL;
    if (recording_open(&r, path, &why) < 0)
        return;
    if (losses_read(ret, r, any) < 0)
        losses_release(ret);
}

void losses_json_of_file(const char *path, const char *const *captures, bool any, struct json *j)
{
    _cleanup_(losses_release) struct losses l = {0};
    losses_read_file(&l, path, any);
    losses_json(&l, captures, j);
}
