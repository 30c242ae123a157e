/* SPDX-License-Identifier: Apache-2.0 */
/* Measures the values that the tests of triggers compare. */
#include "agent/capture/alarms/alarms.h"
#include "agent/capture/requests/names.h"
#include "agent/capture/requests/requests.h"
#include "agent/capture/threads/deadlocks.h"
#include "agent/capture/triggers/machine.h"
#include "agent/capture/triggers/triggers.h"
#include "agent/vm/counters.h"
#include "agent/vm/exhaustion.h"
#include "base/clock.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* RARELY: counting the entries of folders of /proc takes at most 1/RARELY of the time. */
enum { SEARCHES = 10, RARELY = 200, LATENCY_SLOTS = 5, LATENCY_LEAST = 10 };

#define EACH_SECOND  NS_PER_SECOND
#define LATENCY_SLOT (2 * NS_PER_SECOND)

struct latency_window {
    uint64_t next_ns;
    unsigned n, at;
    uint64_t counts[LATENCY_SLOTS][LATENCY_BUCKETS]; /* of all requests of the name so far */
    double last;                                     /* 0: there were too few */
};

/* ---- what callbacks report ---- */

static _Atomic uint64_t collection_began;

/* Runs in a safepoint, so it uses neither JNI nor a lock. */
static void JNICALL on_gc_start(jvmtiEnv *ti)
{
    collection_began = now_ns();
}

static void JNICALL on_gc_finish(jvmtiEnv *ti)
{
    uint64_t began = atomic_exchange(&collection_began, 0);
    if (began)
        alarm_pause(began, now_ns() - began);
}

static _Atomic uint64_t exhausted; /* how often memory was exhausted */

static void JNICALL on_exhausted(jvmtiEnv *ti, JNIEnv *jni, jint flags, const void *reserved,
                                 const char *description)
{
    exhausted++;
}

static const struct vm_callbacks pause_events = {
    .ti = {.GarbageCollectionStart = on_gc_start, .GarbageCollectionFinish = on_gc_finish}};
static const struct vm_callbacks oom_events = {.ti = {.ResourceExhausted = on_exhausted}};
static bool pauses_on, oom_on;

/* ---- the machine, once a second ---- */

static struct {
    uint64_t next_ns, cpu_at_ns, cpu_ns;
    double cpu; /* percent */
    uint64_t rss, memory, threads, descriptors, descriptor_limit;
    uint64_t descriptors_next_ns, limits_next_ns;
    double cpus;
    /* safepoints */
    const int64_t *stopped, *stops;
    int64_t stopped_before, stops_before;
    uint64_t stops_read_ns; /* when these were read */
    unsigned searches;
    bool wanted[MEASURES];
} machine;

static void want(const struct trigger_test *t, struct measured *m, void *context)
{
    *(bool *)context = true;
}

static void measure_cpu(uint64_t now)
{
    uint64_t used = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    if (machine.cpu_at_ns && now > machine.cpu_at_ns)
        machine.cpu = 100 * (double)(used - machine.cpu_ns) / (double)(now - machine.cpu_at_ns) /
                      machine.cpus;
    machine.cpu_at_ns = now;
    machine.cpu_ns = used;
}

static void measure_descriptors(uint64_t now)
{
    if (now < machine.descriptors_next_ns)
        return;
    machine.descriptors = machine_descriptors();
    machine.descriptor_limit = machine_descriptor_limit();
    uint64_t took = now_ns() - now;
    machine.descriptors_next_ns = now + MAX(EACH_SECOND - EACH_SECOND / 10, RARELY * took);
}

/* Looks for the counters a few times, because the VM publishes them while it starts. */
static void find_counters(struct session *s)
{
    machine.stopped = counter_number("sun.rt.safepointTime");
    machine.stops = counter_number("sun.rt.safepoints");
    if (machine.stopped && machine.stops && counters_count_ns()) {
        machine.stopped_before = counter_value(machine.stopped);
        machine.stops_before = counter_value(machine.stops);
    } else if (++machine.searches == SEARCHES) {
        session_message(s, "on=safepoint: never holds: this VM publishes no counters "
                           "(-XX:-UsePerfData)");
    }
}

/*
 * Measures the safepoints of this round by the VM's counters, which give their number and total
 * time.
 */
static void measure_safepoints(uint64_t now)
{
    if (!machine.stopped || !machine.stops)
        return;
    int64_t stopped = counter_value(machine.stopped), stops = counter_value(machine.stops);
    int64_t n = stops - machine.stops_before, all = stopped - machine.stopped_before;
    /* The VM counts some safepoints at their beginning, but their time at their end. */
    if (all <= 0)
        return;
    uint64_t since = machine.stops_read_ns ? machine.stops_read_ns : now;
    /* Only the mean of several safepoints is known; the longest took at least that long. */
    uint64_t each = (uint64_t)(all / MAX(n, INT64_C(1)));
    alarm_stop(MEASURE_SAFEPOINT, since, now, each);
    machine.stopped_before = stopped;
    machine.stops_before = stops;
    machine.stops_read_ns = now;
}

void measures_read(struct session *s, uint64_t now)
{
    if (machine.wanted[MEASURE_SAFEPOINT])
        measure_safepoints(now);
    requests_report_running(now);
    if (now < machine.next_ns)
        return;
    machine.next_ns = now + EACH_SECOND - EACH_SECOND / 20;
    if (now >= machine.limits_next_ns) {
        /* Limits of a container may change while it runs. */
        machine.cpus = machine_cpus();
        machine.memory = machine.wanted[MEASURE_RSS] ? machine_memory() : 0;
        machine.limits_next_ns = now + 30 * NS_PER_SECOND;
    }
    if (machine.wanted[MEASURE_SAFEPOINT] && !(machine.stopped && machine.stops) &&
        machine.searches < SEARCHES)
        find_counters(s);
    if (machine.wanted[MEASURE_CPU])
        measure_cpu(now);
    if (machine.wanted[MEASURE_RSS] || machine.wanted[MEASURE_GROWTH])
        machine.rss = machine_rss();
    if (machine.wanted[MEASURE_THREADS])
        machine.threads = machine_threads();
    if (machine.wanted[MEASURE_FD])
        measure_descriptors(now);
}

/* ---- windows ---- */

/*
 * Returns how much a number has grown over the unit of time. If less time has passed, *ret_whole is
 * false and the result is the growth so far. Late readings that are older than the unit are
 * skipped, except for the last one.
 */
static double grown(struct window *w, double value, uint64_t unit_ns, uint64_t now, bool *ret_whole)
{
    const uint64_t longest = unit_ns + unit_ns / WINDOW_SLOTS;
    *ret_whole = w->n == WINDOW_SLOTS;
    unsigned first = *ret_whole ? w->at : 0;
    unsigned i = 0;
    while (i + 1 < w->n && now - w->read_ns[(first + i) % WINDOW_SLOTS] > longest)
        i++;
    double oldest = w->n ? w->value[(first + i) % WINDOW_SLOTS] : value;
    if (now >= w->next_ns) {
        w->value[w->at] = value;
        w->read_ns[w->at] = now;
        w->at = (w->at + 1) % WINDOW_SLOTS;
        w->n = MIN(w->n + 1, (unsigned)WINDOW_SLOTS);
        w->next_ns = MAX(w->next_ns + unit_ns / WINDOW_SLOTS, now);
    }
    return value - oldest;
}

/* Stores the histogram of all requests of a name so far. Returns their number. */
static uint64_t sum_latencies(const struct trigger_test *t, uint64_t *counts)
{
    uint64_t all = 0;
    memset(counts, 0, LATENCY_BUCKETS * sizeof(*counts));
    for (unsigned i = 0; i < request_names_count(); i++) {
        struct request_name *n = request_name_at(i);
        if (!n || !alarm_is_named(t, n->text) || !atomic_load(&n->count))
            continue;
        uint32_t last = latency_bucket(atomic_load(&n->max_ns));
        for (uint32_t b = 0; b <= last; b++)
            counts[b] += atomic_load_explicit(&n->buckets[b], memory_order_relaxed);
    }
    for (uint32_t b = 0; b < LATENCY_BUCKETS; b++)
        all += counts[b];
    return all;
}

static double percentile(const uint64_t *counts, const uint64_t *before, double of)
{
    uint64_t all = 0, below = 0;
    for (uint32_t b = 0; b < LATENCY_BUCKETS; b++)
        all += counts[b] - before[b];
    if (all < LATENCY_LEAST)
        return 0;
    double rank = of / 100 * (double)all;
    for (uint32_t b = 0; b < LATENCY_BUCKETS; b++) {
        below += counts[b] - before[b];
        if ((double)below >= rank && below)
            return (double)latency_least_ns(b + 1);
    }
    return 0;
}

/* Returns the percentile of the last ten seconds, which is computed every two seconds. */
static double measure_latencies(const struct trigger_test *t, struct latency_window *w,
                                uint64_t now)
{
    static uint64_t counts[LATENCY_BUCKETS]; /* protected by the session's lock */
    if (now < w->next_ns)
        return w->last;
    w->next_ns = MAX(w->next_ns + LATENCY_SLOT, now + LATENCY_SLOT / 2);
    (void)sum_latencies(t, counts);
    if (w->n)
        w->last = percentile(counts, w->counts[w->n < LATENCY_SLOTS ? 0 : w->at], t->percentile);
    memcpy(w->counts[w->at], counts, sizeof(counts));
    w->at = (w->at + 1) % LATENCY_SLOTS;
    w->n = MIN(w->n + 1, (unsigned)LATENCY_SLOTS);
    return w->last;
}

/* ---- tests ---- */

static double share_of(const struct trigger_test *t, double value, double of)
{
    return !t->share ? value : of > 0 ? 100 * value / of : 0;
}

/* Returns whether a count has grown since the last round. */
static bool is_more(struct measured *m, uint64_t count)
{
    bool more = count > m->counted;
    m->value = (double)(count - m->counted);
    m->counted = count;
    return more;
}

static bool exceptions_hold(const struct trigger_test *t, struct measured *m, uint64_t now)
{
    bool whole;
    uint64_t count = exception_count(m->counter);
    if (t->op == LOGIC_IS)
        return is_more(m, count);
    m->value = grown(&m->window, (double)count, t->unit_ns, now, &whole);
    m->partial = !whole;
    /* If enough have occurred before a minute or an hour is over, the test holds at once. */
    return (whole || t->unit_ns > NS_PER_SECOND) && logic_compare(t->op, m->value, t->limit);
}

static bool measure(struct trigger *t, int number, uint64_t now)
{
    const struct trigger_test *test = &t->condition->tests[number];
    struct measured *m = &t->tests[number];
    bool whole = true;
    switch (test->measure) {
    case MEASURE_DEADLOCK:
        return is_more(m, deadlock_watch_found());
    case MEASURE_OOM:
        return is_more(m, atomic_load(&exhausted));
    case MEASURE_EXCEPTION:
        return exceptions_hold(test, m, now);
    case MEASURE_EVERY:
        m->value = (double)(now - t->started_ns);
        return m->value >= test->limit;
    case MEASURE_REQUEST:
    case MEASURE_PAUSE:
    case MEASURE_SAFEPOINT:
        m->value = (double)alarm_take_longest(test, m);
        break;
    case MEASURE_PERCENTILE:
        m->value = measure_latencies(test, m->latencies, now);
        whole = m->value > 0;
        break;
    case MEASURE_CPU:
        m->value = machine.cpu;
        break;
    case MEASURE_RSS:
        m->value = share_of(test, (double)machine.rss, (double)machine.memory);
        break;
    case MEASURE_GROWTH:
        m->value = grown(&m->window, (double)machine.rss, test->unit_ns, now, &whole);
        break;
    case MEASURE_THREADS:
        m->value = (double)machine.threads;
        break;
    case MEASURE_FD:
        m->value = share_of(test, (double)machine.descriptors, (double)machine.descriptor_limit);
        break;
    default:
        return false;
    }
    return whole && logic_compare(test->op, m->value, test->limit);
}

void measures_of(struct trigger *t, uint64_t now)
{
    for (int i = 0; i < t->condition->logic.count; i++) {
        struct measured *m = &t->tests[i];
        if (t->condition->logic.nodes[i].kind != LOGIC_TEST)
            continue;
        bool holds = measure(t, i, now);
        m->since_ns = !holds ? 0 : m->since_ns ? m->since_ns : now;
        m->holds = holds && now - m->since_ns >= t->condition->tests[i].for_ns;
    }
}

/* Writes the reason that a test gives. For a percentile it is its own name: "p99", "p99.9". */
static void put_reason(const struct trigger_test *t, char *to, size_t size)
{
    if (t->measure == MEASURE_PERCENTILE)
        snprintf(to, size, "p%g", t->percentile);
    else
        snprintf(to, size, "%s", measure_reason(t->measure));
}

void measures_report(struct trigger *t)
{
    const struct logic *l = &t->condition->logic;
    size_t n = 0;
    t->reason[0] = t->measured[0] = 0;
    for (int i = 0; i < l->count && n < sizeof(t->measured); i++) {
        const struct trigger_test *test = &t->condition->tests[i];
        struct measured *m = &t->tests[i];
        char text[64], name[TRIGGER_NAME_SIZE];
        if (l->nodes[i].kind != LOGIC_TEST || !m->holds)
            continue;
        if (!t->reason[0])
            put_reason(test, t->reason, sizeof(t->reason));
        alarm_take_name(m, name);
        if (!name[0])
            snprintf(name, sizeof(name), "%s", test->name);
        if (test->measure == MEASURE_DEADLOCK || test->measure == MEASURE_OOM)
            snprintf(text, sizeof(text), "%s", measure_reason(test->measure));
        else
            trigger_measured(text, test, m->value);
        n += (size_t)snprintf(t->measured + n, sizeof(t->measured) - n, "%s%s%s%s%s", n ? ", " : "",
                              m->partial ? "at least " : "", text, name[0] ? ": " : "", name);
    }
    if (!t->reason[0]) /* the condition is a negation, so no test holds that could be named */
        snprintf(t->reason, sizeof(t->reason), "condition");
}

/* ---- begin and end ---- */

/*
 * Finds the lowest limit of the tests of requests, so that most requests need not be compared with
 * them.
 */
static void least_limit(const struct trigger_test *t, struct measured *m, void *context)
{
    uint64_t *least = context;
    *least = MIN(*least, (uint64_t)t->limit);
}

static void set_request_limit(void)
{
    uint64_t least = UINT64_MAX;
    alarm_each_test(MEASURE_REQUEST, least_limit, &least);
    atomic_store(&alarm_request_ns, least == UINT64_MAX || !least ? least : least - 1);
}

/* Finds what the active triggers have to measure. */
static void find_wanted(void)
{
    memset(machine.wanted, 0, sizeof(machine.wanted));
    for (int i = 0; i < MEASURES; i++)
        alarm_each_test((enum measure)i, want, &machine.wanted[i]);
    set_request_limit();
}

static int not_reported(const struct trigger *t, struct buf *why)
{
    buf_printf(why, "on=%s: this VM does not report it", t->text);
    return -ENOTSUP;
}

static bool has_capabilities(const jvmtiCapabilities *wanted)
{
    jvmtiCapabilities missing = {0};
    return vm_need(wanted, &missing) == 0 && vm_capabilities_empty(&missing);
}

static int begin_pauses(const struct trigger *t, struct buf *why)
{
    static const jvmtiCapabilities wanted = {.can_generate_garbage_collection_events = 1};
    pauses_on = pauses_on || (has_capabilities(&wanted) && vm_events_on(&pause_events) == 0);
    return pauses_on ? 0 : not_reported(t, why);
}

static int begin_oom(const struct trigger *t, struct session *s, JNIEnv *jni, struct buf *why)
{
    static const jvmtiCapabilities wanted = {.can_generate_resource_exhaustion_heap_events = 1,
                                             .can_generate_resource_exhaustion_threads_events = 1};
    bool logged = false;
    oom_on = oom_on || (has_capabilities(&wanted) && exhaustion_on(&oom_events, jni, &logged) == 0);
    if (logged)
        session_message(s, "on=%s: " EXHAUSTION_LOGGED, t->text);
    return oom_on ? 0 : not_reported(t, why);
}

static int begin_test(struct trigger *t, int i, struct session *s, JNIEnv *jni, struct buf *why)
{
    const struct trigger_test *test = &t->condition->tests[i];
    struct measured *m = &t->tests[i];
    m->counter = -1;
    switch (test->measure) {
    case MEASURE_REQUEST:
    case MEASURE_PERCENTILE:
        if (!s->options.v[OPT_REQUESTS].text) {
            buf_printf(why, "on=%s: this recording has no requests: start it with --requests",
                       t->text);
            return -ENOTSUP;
        }
        m->latencies =
            test->measure == MEASURE_PERCENTILE ? calloc(1, sizeof(*m->latencies)) : NULL;
        return test->measure == MEASURE_PERCENTILE && !m->latencies ? -ENOMEM : 0;
    case MEASURE_PAUSE:
        return begin_pauses(t, why);
    case MEASURE_OOM:
        m->counted = atomic_load(&exhausted);
        return begin_oom(t, s, jni, why);
    case MEASURE_DEADLOCK:
        m->counted = deadlock_watch_found();
        /* deadlocks are searched for from the start of the recording */
        if (option_on(&s->options, OPT_DEADLOCK))
            return 0;
        if (option_on(&s->options, OPT_THREADS))
            return deadlock_watch_begin(jni, why);
        buf_printf(why, "on=%s: this recording has no waits: start it with --threads", t->text);
        return -ENOTSUP;
    case MEASURE_SAFEPOINT:
        machine.searches = 0;
        return 0; /* at VMInit the VM has not published all of its counters */
    case MEASURE_EXCEPTION:
        m->counter = exception_counter(jni, test->name, why);
        m->counted = m->counter < 0 ? 0 : exception_count(m->counter);
        return m->counter < 0 ? m->counter : 0;
    default:
        return 0;
    }
}

int measures_begin(struct trigger *t, struct session *s, JNIEnv *jni, struct buf *why)
{
    int r = 0;
    for (int i = 0; i < t->condition->logic.count && r == 0; i++)
        if (t->condition->logic.nodes[i].kind == LOGIC_TEST)
            r = begin_test(t, i, s, jni, why);
    if (r < 0) {
        measures_end(t, jni);
        return r;
    }
    atomic_store(&t->active, true);
    find_wanted();
    machine.limits_next_ns = machine.next_ns = 0;
    return 0;
}

void measures_end(struct trigger *t, JNIEnv *jni)
{
    atomic_store(&t->active, false);
    find_wanted();
}

void measures_stop(JNIEnv *jni)
{
    atomic_store(&alarm_request_ns, UINT64_MAX);
    if (pauses_on)
        vm_events_off(&pause_events);
    if (oom_on)
        exhaustion_off(&oom_events, jni);
    pauses_on = oom_on = false;
    exception_counters_stop(jni);
    memset(&machine, 0, sizeof(machine));
}
