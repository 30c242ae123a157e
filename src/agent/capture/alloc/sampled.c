/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Allocations found by the VM's own sampling (SampledObjectAlloc, JDK 11). An object of s bytes is
 * sampled with probability p = 1 - exp(-s / interval). Each sampled object represents 1 / p
 * objects, which makes counts and bytes unbiased; the sum of (1 - p) / p^2 is the variance of the
 * count. alloc=sampled reports these samples alone; together with exact counts they show what code
 * that cannot be instrumented has allocated. In a recording each sample becomes a
 * jdk.ObjectAllocationSample event at once, whose weight is the number of bytes that it represents.
 * In HPROF output, and where sites are requested, samples are summed by site. JDK 8 has no such
 * sampling, so exact.c counts there.
 *
 * A sample takes about 8 us. A program that allocates gigabytes per second would produce ten
 * thousand samples per second, so after the first few thousand the interval is adjusted to the
 * allocation rate, for a thousand samples per second. A thread that takes a sample draws the
 * distance to its next one with the current interval, so that interval determines the weight of the
 * next sample. Together with exact counts the interval is a fraction of the bytes allocated so far
 * (about 700 more samples each time they double), or the one that gives a thousand samples per
 * second, whichever is smaller.
 */
#include "agent/capture/alloc/alloc.h"
#include "agent/capture/alloc/sites_private.h"
#include "agent/capture/alloc/vm_sampler.h"
#include "agent/session/budget.h"
#include "agent/session/pace.h"
#include "agent/vm/shown_class.h"
#include "base/clock.h"
#include "jfr/writer.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum {
    FREE_SAMPLES = 4096, /* in a recording, before the first adjustment */
    ROUND = 64,          /* samples between two adjustments of the interval */
    ROUND_NS = 64 * 1000 * 1000,
    INTERVAL_MAX = 1 << 30,
    INTERVAL_LEAST = 4 << 10, /* with exact counts: the first interval, in bytes */
    INTERVAL_PART = 1 << 10,  /* with exact counts: this part of the bytes allocated so far */
};

/* Protected by the lock, except for `interval`. */
static struct {
    _Atomic uint32_t session, interval;
    /* the interval before the session, with which existing threads have drawn */
    uint32_t before;
    uint64_t in_round, round_began;
    double bytes; /* bytes allocated in the session, as estimated from the samples */
} pace = {.interval = SITES_INTERVAL};

/* The recording that receives samples as events; NULL: samples are summed by site. */
static struct jfr_writer *events_to;

static bool wanted(const struct options *o)
{
    /* live=exact follows each object from its allocation, so exact.c counts them all */
    return option_is(o, OPT_ALLOC, "sampled") && vm.version >= 11 && !o->v[OPT_LIVE].text;
}

/* This event is described in doc/format.md. */
static const struct jfr_type allocated_type = {
    .name = "jvmscope.AllocatedBytes",
    .label = "Allocated Bytes",
    .category = "jvmscope",
    .description = "The bytes that the program's threads have allocated since the recording began, "
                   "as the VM counts them",
    .kind = JFR_EVENT,
    .fields = JFR_FIELDS({"bytes", "Bytes", "long", JFR_BYTES}),
};
static uint32_t allocated;

static int load(struct session *s, struct buf *why)
{
    sites_begin(&s->options, false, false);
    events_to = option_is(&s->options, OPT_HEAP, "sites") || option_is(&s->options, OPT_HEAP, "all")
                    ? NULL
                    : s->out.jfr;
    alloc_samples_begin();
    if (events_to && (s->options.v[OPT_INCLUDE].given || s->options.v[OPT_EXCLUDE].given))
        session_message(s, "alloc=sampled: include and exclude do not choose among sampled "
                           "allocations, only among exact ones");
    return events_to ? jfr_declare(events_to, &allocated_type, 1, &allocated) : 0;
}

/* under the lock: the level of reduction; each level takes a fourth of the samples */
static unsigned reduced;

static void set_interval(uint64_t bytes)
{
    pace.interval = (uint32_t)bytes;
    site_table.interval = bytes;
    (*vm.ti)->SetHeapSamplingInterval(vm.ti, (jint)bytes);
}

void alloc_samples_begin(void)
{
    uint32_t first = site_table.exact ? INTERVAL_LEAST : SITES_INTERVAL;
    pace.session++;
    pace.before = vm.live ? pace.interval : first;
    pace.in_round = pace.round_began = 0;
    pace.bytes = 0;
    set_interval(first);
}

/*
 * The interval with which the calling thread drew its current sample. It has already drawn the next
 * one, with the current interval.
 */
static __thread uint32_t session, drawn;

static uint64_t interval_of_sample(void)
{
    uint32_t now = pace.interval;
    uint32_t then = session == pace.session ? drawn : pace.before;
    session = pace.session;
    drawn = now;
    return then;
}

static void on_thread_started(struct thread *t, JNIEnv *jni, jthread thread)
{
    if (atomic_load(&t->env) != jni)
        return; /* the object existed before the session */
    (void)interval_of_sample();
    vm_sampler_thread(t, jni, drawn, pace.before);
}

static void on_thread_ended(struct thread *t, JNIEnv *jni)
{
    vm_sampler_thread_ended(t, jni);
}

const struct thread_listener alloc_samples_threads = {.started = on_thread_started,
                                                      .ended = on_thread_ended};

/*
 * Called for each sample. After every ROUND samples it sets the interval with which they would have
 * taken ROUND_NS; small differences are ignored. Requires the lock.
 */
static void keep_pace(void)
{
    if ((site_table.samples < FREE_SAMPLES && !reduced) || ++pace.in_round < ROUND)
        return;
    uint64_t now = now_ns(), interval = pace.interval, wanted = interval,
             round_ns = (uint64_t)ROUND_NS << 2 * reduced;
    if (pace.round_began) {
        uint64_t took = MAX(now - pace.round_began, UINT64_C(1000));
        while (took < round_ns && wanted < INTERVAL_MAX)
            took *= 2, wanted *= 2;
        while (took > 4 * round_ns && wanted > SITES_INTERVAL)
            took /= 2, wanted /= 2;
    }
    pace.in_round = 0;
    pace.round_began = now;
    if (wanted != interval)
        set_interval(wanted);
}

void alloc_samples_reduce(unsigned level)
{
    sites_lock();
    if (site_table.on && !site_table.exact) {
        uint64_t interval = pace.interval;
        for (; reduced < level && interval < INTERVAL_MAX; reduced++)
            interval = MIN(interval * 4, (uint64_t)INTERVAL_MAX);
        for (; reduced > level && interval > SITES_INTERVAL; reduced--)
            interval = MAX(interval / 4, (uint64_t)SITES_INTERVAL);
        pace.in_round = pace.round_began = 0;
        if (interval != pace.interval)
            set_interval(interval);
    }
    reduced = level;
    sites_unlock();
}

/*
 * Sets the next interval when exact counts are recorded as well: only a part of what is allocated
 * is sampled. Requires the lock.
 */
static void keep_part(void)
{
    if (++pace.in_round < ROUND)
        return;
    uint64_t now = now_ns();
    double part = pace.bytes / INTERVAL_PART, wanted = part;
    if (pace.round_began) {
        double by_rate =
            (double)pace.interval * ROUND_NS / (double)MAX(now - pace.round_began, UINT64_C(1000));
        wanted = MIN(part, by_rate);
    }
    pace.in_round = 0;
    pace.round_began = now;
    set_interval((uint64_t)MIN(MAX(wanted, INTERVAL_LEAST), INTERVAL_MAX));
}

/*
 * Adds a sampled object to a site. p: its probability of being sampled. reported: the VM reports
 * the object as well, so it is counted where all are counted. Requires the lock.
 */
static void count(JNIEnv *jni, int64_t number, jobject object, jlong size, double p, bool reported)
{
    double weight = 1 / p;
    pace.bytes += weight * (double)size;
    if (site_table.exact)
        keep_part();
    else
        keep_pace();
    struct site *site = sites_at(number);
    site_table.samples++;
    if (site_table.exact && reported)
        return;
    if (!site) {
        site_table.lost++;
        return;
    }
    struct estimate *sum = site_table.exact ? &site->sampled : &site->allocated;
    sum->objects += weight;
    sum->bytes += weight * (double)size;
    site_table.variance_bytes += (1 - p) / (p * p) * (double)size * (double)size;
    jweak weak = (*jni)->NewWeakGlobalRef(jni, object);
    if (site_table.exact)
        sites_follow_sample(jni, number, weak, weight, size);
    else
        sites_follow(jni, number, weak, weight, size);
}

static void write_sample(struct jfr_writer *w, const char *signature, const struct thread *self,
                         const struct site_frame *frames, uint32_t n, double bytes)
{
    struct jfr_frame stack[SITE_DEPTH_MAX];
    struct jfr_event e;
    size_t len = strlen(signature);
    _cleanup_free_ char *name =
        signature[0] == 'L' ? strndup(signature + 1, len - 2) : strdup(signature);
    for (uint32_t i = 0; i < n; i++)
        stack[i] = (struct jfr_frame){
            .method = frames[i].method, .bci = (int32_t)frames[i].bci, .type = JFR_FRAME_JAVA};
    uint64_t trace = jfr_trace(w, stack, n, n == sites_depth());
    uint64_t class = name ? jfr_define_class(w, &(struct jfr_class){.name = name}) : 0;
    if (!jfr_begin(w, JFR_OBJECT_ALLOCATION_SAMPLE, 0, &e))
        return;
    jfr_put_time(&e, now_ns());
    jfr_put_long(&e, self->serial);
    jfr_put_long(&e, (int64_t)trace);
    jfr_put_long(&e, (int64_t) class);
    jfr_put_long(&e, (int64_t)(bytes + 0.5));
    jfr_commit(&e);
}

void JNICALL alloc_on_sample(jvmtiEnv *ti, JNIEnv *jni, jthread thread, jobject object,
                             jclass class, jlong size)
{
    struct site_frame frames[SITE_DEPTH_MAX];
    uint64_t cost = budget_begin();
    struct thread *self = threads_self(jni);
    uint64_t rest = self ? vm_sampler_rest(self, jni, (uint64_t)size) : 0;
    double p = sites_chance(size + (jlong)rest, interval_of_sample());
    vm_sampler_next(jni, drawn);
    _cleanup_free_ char *signature =
        !self || self->own || alloc_busy ? NULL : shown_class_signature(class);
    if (!signature) {
        budget_end(COST_ALLOCATIONS, cost);
        return;
    }
    enum site_top top;
    uint32_t n = sites_stack(jni, frames, &top);
    bool ours = sites_is_ours(jni, frames, n);
    struct jfr_writer *w = NULL;
    if (!ours && sites_lock_patiently((double)size / p)) {
        if (site_table.on && !site_table.exact)
            w = events_to;
        if (w) {
            site_table.samples++;
            keep_pace();
        } else if (site_table.on) {
            count(jni, sites_find(signature, self, frames, n), object, size, p,
                  top == SITE_TOP_NATIVE);
        }
        sites_unlock();
    }
    if (w)
        write_sample(w, signature, self, frames, n, (double)size / p);
    budget_end(COST_ALLOCATIONS, cost);
}

static void flush(struct session *s, JNIEnv *jni)
{
    sites_flush(jni, s->out.jfr);
}

static void release(struct session *s)
{
    sites_end();
}

static void dump(struct session *s, JNIEnv *jni, enum dump_reason reason)
{
    if (!events_to)
        sites_dump(s, jni, NULL);
}

/* Runs a collection, except when samples become events, because these do not show what is alive. */
static void ending(struct session *s, JNIEnv *jni)
{
    if (!events_to)
        sites_ending(jni);
}

static void request(struct session *s, JNIEnv *jni, const struct hprof_request *r)
{
    sites_request(s, jni, r, NULL);
}

static void status(struct session *s, struct buf *out)
{
    sites_status(out);
}

static const struct vm_callbacks events = {
    .ti = {.SampledObjectAlloc = alloc_on_sample, .GarbageCollectionStart = vm_sampler_collection}};

static uint64_t write_allocated(struct session *s, uint64_t bytes)
{
    struct jfr_event e;
    if (!events_to || !jfr_begin(events_to, allocated, 0, &e))
        return 0;
    jfr_put_time(&e, now_ns());
    jfr_put_long(&e, (int64_t)bytes);
    jfr_commit(&e);
    return 1;
}

static uint64_t save_now(struct session *s)
{
    uint64_t bytes;
    return vm_sampler_counted(&bytes) ? write_allocated(s, bytes) : 0;
}

static uint64_t save(struct session *s, JNIEnv *jni, bool *ret_all)
{
    static struct pace reading;
    if (!pace_begins(&reading))
        return 0;
    uint64_t written = save_now(s);
    pace_ends(&reading);
    return written;
}

static int start(struct session *s, JNIEnv *jni, struct buf *why)
{
    vm_sampler_find(jni);
    int r = threads_listen(&alloc_samples_threads);
    if (r < 0) {
        buf_printf(why, "allocations: too many captures watch threads");
        return r;
    }
    if (vm_sampler_count())
        (void)write_allocated(s, 0);
    return 0;
}

static void stop(struct session *s, JNIEnv *jni)
{
    (void)save_now(s);
    threads_unlisten(&alloc_samples_threads);
}

const struct capture capture_alloc_sampled = {
    .name = "alloc",
    .title = "allocation sites",
    .options = OPTION_BIT(OPT_HEAP) | OPTION_BIT(OPT_ALLOC),
    .needs = {.can_generate_sampled_object_alloc_events = 1},
    .likes = {.can_generate_garbage_collection_events = 1},
    .own_stacks = true,
    .jdk_events = "jdk.ObjectAllocationSample jdk.ObjectAllocationInNewTLAB "
                  "jdk.ObjectAllocationOutsideTLAB ",
    .events = &events,
    .wanted = wanted,
    .load = load,
    .start = start,
    .reachable = sites_reachable,
    .unsaved = LOSS_ALLOC_UNSAVED,
    .stop = stop,
    .release = release,
    .flush = flush,
    .save = save,
    .dump = dump,
    .ending = ending,
    .request = request,
    .status = status,
};
