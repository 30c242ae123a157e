/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Allocation sites from the VM's own sampling (SampledObjectAlloc, JDK 11). An object of s bytes is seen with probability
 * p = 1 - exp(-s / interval); each seen one stands for 1 / p objects, which makes counts and bytes unbiased, and the sum of
 * (1 - p) / p^2 is the variance of the count. alloc=sampled reports these alone; beside exact counts they say what lives.
 *
 * A sample costs some 8 us. A program that allocates gigabytes a second would have ten thousand of them: after the first few
 * thousand the interval follows the rate, for a thousand a second. A thread draws the distance to its next sample when it has
 * one, so what it draws is by the interval of that time, and its next sample is weighted by that.
 */
#include "agent/capture/alloc/alloc.h"
#include "agent/capture/alloc/sites_private.h"
#include "base/clock.h"

#include <errno.h>
#include <pthread.h>

enum {
    FREE_SAMPLES = 4096, /* of a session, at the first interval */
    ROUND = 64,          /* samples from one look at the rate to the next */
    ROUND_NS = 64 * 1000 * 1000,
    INTERVAL_MAX = 1 << 30
};

/* Under the lock, `interval` apart. */
static struct {
    _Atomic uint32_t session, interval;
    uint64_t in_round, round_began;
} pace;

static bool wanted(const struct options *o)
{
    bool recording = option_is(o, OPT_FORMAT, "r");
    return option_is(o, OPT_ALLOC, "sampled") && (!recording || option_is(o, OPT_HEAP, "sites"));
}

static int load(struct session *s, struct buf *why)
{
    sites_begin(&s->options, false, false);
    alloc_samples_begin();
    return 0;
}

static void set_interval(uint64_t bytes)
{
    pace.interval = (uint32_t)bytes;
    (*vm.ti)->SetHeapSamplingInterval(vm.ti, (jint)bytes);
}

void alloc_samples_begin(void)
{
    pace.session++;
    pace.in_round = pace.round_began = 0;
    set_interval(SITES_INTERVAL);
}

/* The interval by which the calling thread has drawn its sample of now; the next one is drawn already, by the interval of now.
 */
static uint64_t interval_of_sample(void)
{
    static __thread uint32_t session, drawn;
    uint32_t now = pace.interval, then = session == pace.session ? drawn : now;
    session = pace.session;
    drawn = now;
    return then;
}

/* After so many samples: the interval at which they would have taken ROUND_NS. Small changes are not worth one. Under the lock.
 */
static void keep_pace(void)
{
    if (site_table.samples < FREE_SAMPLES || ++pace.in_round < ROUND)
        return;
    uint64_t now = now_ns(), interval = pace.interval, wanted = interval;
    if (pace.round_began) {
        uint64_t took = MAX(now - pace.round_began, UINT64_C(1000));
        while (took < ROUND_NS && wanted < INTERVAL_MAX)
            took *= 2, wanted *= 2;
        while (took > 4 * (uint64_t)ROUND_NS && wanted > SITES_INTERVAL)
            took /= 2, wanted /= 2;
    }
    pace.in_round = 0;
    pace.round_began = now;
    if (wanted != interval)
        set_interval(wanted);
}

/* Under the lock. */
static void count(JNIEnv *jni, int64_t number, jobject object, jlong size, uint64_t interval)
{
    double p = sites_chance(size, interval), weight = 1 / p;
    keep_pace();
    struct site *site = sites_at(number);
    site_table.samples++;
    if (!site) {
        site_table.lost++;
        return;
    }
    struct estimate *sum = site_table.exact ? &site->sampled : &site->allocated;
    sum->objects += weight;
    sum->bytes += weight * (double)size;
    site_table.variance_bytes += (1 - p) / (p * p) * (double)size * (double)size;
    sites_follow(jni, number, (*jni)->NewWeakGlobalRef(jni, object), weight, size);
}

void JNICALL alloc_on_sample(jvmtiEnv *ti, JNIEnv *jni, jthread thread, jobject object, jclass class, jlong size)
{
    struct site_frame frames[SITE_DEPTH_MAX];
    char *signature = NULL;
    uint64_t interval = interval_of_sample();
    struct thread *self = threads_self(jni);
    if (!self || self->own || alloc_busy || (*ti)->GetClassSignature(ti, class, &signature, NULL) != JVMTI_ERROR_NONE)
        return;
    uint32_t n = sites_stack(jni, frames, NULL);
    sites_lock();
    if (site_table.on)
        count(jni, sites_find(signature, self, frames, n), object, size, interval);
    sites_unlock();
    vm_free(signature);
}

static void flush(struct session *s, JNIEnv *jni)
{
    sites_flush(jni);
}

static void release(struct session *s)
{
    sites_end();
}

static void dump(struct session *s, JNIEnv *jni, enum dump_reason reason)
{
    sites_report(s, jni, 0, s->options.v[OPT_CUTOFF].fraction, NULL);
}

static void request(struct session *s, JNIEnv *jni, const struct hprof_request *r)
{
    sites_request(s, jni, r, NULL);
}

static void status(struct session *s, struct buf *out)
{
    sites_status(out);
}

static const struct vm_callbacks events = {.ti = {.SampledObjectAlloc = alloc_on_sample}};

const struct capture capture_alloc_sampled = {
    .name = "alloc",
    .title = "allocation sites",
    .options = OPTION_BIT(OPT_HEAP) | OPTION_BIT(OPT_ALLOC),
    .needs = {.can_generate_sampled_object_alloc_events = 1},
    .own_stacks = true,
    .events = &events,
    .wanted = wanted,
    .load = load,
    .release = release,
    .flush = flush,
    .dump = dump,
    .request = request,
    .status = status,
};
