/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/capture/alarms/alarms.h"
#include "agent/capture/vm/vm.h"

#include "agent/vm/counters.h"

#include <string.h>

static struct {
    const int64_t *count, *time, *sync, *threads;
    uint64_t number; /* of the last safepoint that was written */
    int64_t begun;   /* the VM's count when the log was opened */
    /* JDK 9 to 12: the operation of the safepoint that has begun */
    char operation[64];

    /* Without a log: what the counters were when a safepoint was last seen to be over. */
    struct safepoint_counters done;
    uint64_t done_ns;
    int64_t sync_seen; /* how much of the time to reach safepoints has been attributed */

    /* a collection whose safepoint is not known to be over */
    struct {
        bool is;
        uint64_t start_ns, sync_ns;
        char cause[64];
    } collection;

    struct safepoint_counters written;
} all;

struct safepoint_counters safepoints_now(void)
{
    /*
     * The VM updates the time last, so the time is read first: every safepoint included in it is
     * also included in the number.
     */
    struct safepoint_counters c = {.time_ns = counter_value(all.time)};
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    c.sync_ns = counter_value(all.sync);
    c.count = counter_value(all.count);
    return c;
}

/*
 * Returns how long threads have been stopped so far. JDK 13 and later count the time to reach
 * safepoints separately.
 */
static uint64_t stopped_ns(const struct safepoint_counters *c)
{
    return (uint64_t)(c->time_ns + (vm.version >= 13 ? c->sync_ns : 0));
}

void safepoints_reset(void)
{
    memset(&all, 0, sizeof(all));
    if (counters_count_ns()) {
        all.count = counter_number("sun.rt.safepoints");
        all.time = counter_number("sun.rt.safepointTime");
        all.sync = counter_number("sun.rt.safepointSyncTime");
        all.threads = counter_number("java.threads.live");
    }
    all.done = safepoints_now();
    all.done_ns = now_ns();
    all.sync_seen = all.done.sync_ns;
}

struct safepoint {
    uint64_t start_ns, sync_ns, cleanup_ns, at_ns, leaving_ns;
    int64_t threads;
    const char *operation; /* NULL: unknown */
};

static void put_safepoint(const struct safepoint *s)
{
    struct jfr_event e;
    struct jfr_writer *w = vm_activity.jfr;
    int64_t id = (int64_t)++all.number;
    uint64_t at = s->start_ns + s->sync_ns;
    alarm_safepoint(s->operation, s->start_ns,
                    s->sync_ns + s->cleanup_ns + s->at_ns + s->leaving_ns);
    if (jfr_begin(w, JFR_SAFEPOINT_BEGIN, 0, &e)) {
        jfr_put_time(&e, s->start_ns);
        jfr_put_long(&e, (int64_t)s->sync_ns);
        jfr_put_long(&e, 0);
        jfr_put_long(&e, id);
        jfr_put_int(&e, (int32_t)(s->threads < 0 ? counter_value(all.threads) : s->threads));
        jfr_put_int(&e, 0);
        jfr_commit(&e);
    }
    uint64_t operation = s->operation ? jfr_define_name(w, JFR_POOL_VM_OPERATION, s->operation) : 0;
    at += s->cleanup_ns;
    if (operation && jfr_begin(w, JFR_EXECUTE_VM_OPERATION, 0, &e)) {
        jfr_put_time(&e, at);
        jfr_put_long(&e, (int64_t)s->at_ns);
        jfr_put_long(&e, 0);
        jfr_put_long(&e, (int64_t)operation);
        jfr_put_byte(&e, 1);
        jfr_put_byte(&e, 0);
        jfr_put_long(&e, 0);
        jfr_put_long(&e, id);
        jfr_commit(&e);
    }
    if (jfr_begin(w, JFR_SAFEPOINT_END, 0, &e)) {
        jfr_put_time(&e, at + s->at_ns);
        jfr_put_long(&e, (int64_t)s->leaving_ns);
        jfr_put_long(&e, 0);
        jfr_put_long(&e, id);
        jfr_commit(&e);
    }
}

void safepoints_line(const struct log_line *line)
{
    struct log_safepoint s;
    struct log_text operation;
    uint64_t total, sync;
    if (log_safepoint_read(line->text, &s)) {
        char name[64];
        log_text_copy(name, sizeof(name), s.operation);
        uint64_t known = s.sync_ns + s.cleanup_ns + s.leaving_ns;
        put_safepoint(&(struct safepoint){
            .start_ns = line->ns - MIN(s.total_ns, line->ns),
            .sync_ns = s.sync_ns,
            .cleanup_ns = s.cleanup_ns,
            .at_ns = s.total_ns > known ? s.total_ns - known : 0,
            .leaving_ns = s.leaving_ns,
            .threads = s.threads,
            .operation = name,
        });
    } else if (log_safepoint_begin_read(line->text, &operation)) {
        log_text_copy(all.operation, sizeof(all.operation), operation);
    } else if (log_stopped_read(line->text, &total, &sync)) {
        put_safepoint(&(struct safepoint){
            .start_ns = line->ns - MIN(total, line->ns),
            .sync_ns = MIN(sync, total),
            .at_ns = total - MIN(sync, total),
            .threads = -1,
            .operation = all.operation[0] ? all.operation : NULL,
        });
        all.operation[0] = 0;
    }
}

/* ---- without a log ---- */

/*
 * Handles the safepoints that were over at time ns, as the counters show. If there was only one
 * since the last reading, it is written. Several are only included in the totals, because it is not
 * known when each was over.
 */
static void completed(uint64_t ns, const struct safepoint_counters *c)
{
    bool collection = all.collection.is;
    int64_t n = MAX(c->count - all.done.count, INT64_C(1));
    uint64_t total = stopped_ns(c) - stopped_ns(&all.done);
    uint64_t elapsed = ns - all.done_ns;
    uint64_t sync = collection ? all.collection.sync_ns : (uint64_t)(c->sync_ns - all.sync_seen);
    if (n == 1) {
        sync = MIN(sync, total);
        /* When it began is unknown; the middle of the interval is the best estimate. */
        uint64_t start = collection        ? all.collection.start_ns - sync
                         : total < elapsed ? ns - total - (elapsed - total) / 2
                                           : ns - total;
        put_safepoint(&(struct safepoint){
            .start_ns = start,
            .sync_ns = sync,
            .at_ns = total - sync,
            .threads = -1,
            .operation = collection && all.collection.cause[0] ? all.collection.cause : NULL,
        });
    } else {
        safepoints_totals(false);
    }
    all.done = *c;
    all.done_ns = ns;
    all.sync_seen = c->sync_ns;
    all.collection.is = false;
}

void safepoints_read(uint64_t now)
{
    struct safepoint_counters c = safepoints_now();
    /*
     * The VM's number includes a safepoint that is still in progress, but the time does not include
     * it yet.
     */
    if (c.time_ns > all.done.time_ns)
        completed(now, &c);
}

void safepoints_collection(uint64_t start_ns, const struct safepoint_counters *at,
                           const char *cause)
{
    struct safepoint_counters before = *at;
    bool others =
        false;      /* the time to reach it cannot be separated from that of other safepoints */
    before.count--; /* without the one that is in progress */
    if (at->time_ns > all.done.time_ns) {
        others = !all.collection.is || before.count - all.done.count != 1;
        before.sync_ns = all.sync_seen;
        completed(start_ns, &before);
    }
    all.collection.is = true;
    all.collection.start_ns = start_ns;
    all.collection.sync_ns = others ? 0 : (uint64_t)MAX(at->sync_ns - all.sync_seen, INT64_C(0));
    all.sync_seen = at->sync_ns;
    log_text_copy(all.collection.cause, sizeof(all.collection.cause),
                  (struct log_text){cause, strlen(cause)});
}

void safepoints_begin(void)
{
    safepoints_totals(true);
    all.begun = all.written.count;
}

bool safepoints_logged(void)
{
    return all.number >= (uint64_t)(all.written.count - all.begun);
}

void safepoints_totals(bool always)
{
    struct safepoint_counters c = safepoints_now();
    struct jfr_event e;
    if (!all.count || (!always && memcmp(&c, &all.written, sizeof(c)) == 0) ||
        !jfr_begin(vm_activity.jfr, vm_activity.totals_type, 0, &e))
        return;
    jfr_put_time(&e, now_ns());
    jfr_put_long(&e, c.count);
    jfr_put_long(&e, (int64_t)stopped_ns(&c));
    jfr_put_long(&e, c.sync_ns);
    jfr_commit(&e);
    all.written = c;
}
