/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Allocation sites from the VM's own sampling (SampledObjectAlloc, JDK 11). An object of s bytes is seen with probability
 * p = 1 - exp(-s / interval); each seen one stands for 1 / p objects, which makes counts and bytes unbiased, and the sum of
 * (1 - p) / p^2 is the variance of the count. alloc=sampled reports these alone; beside exact counts they say what lives.
 */
#include "agent/capture/alloc/alloc.h"
#include "agent/capture/alloc/sites_private.h"

#include <errno.h>
#include <pthread.h>

static bool wanted(const struct options *o)
{
    bool recording = option_is(o, OPT_FORMAT, "r");
    return option_is(o, OPT_ALLOC, "sampled") && (!recording || option_is(o, OPT_HEAP, "sites"));
}

static int load(struct session *s, struct buf *why)
{
    sites_begin(&s->options, false, false);
    (*vm.ti)->SetHeapSamplingInterval(vm.ti, SITES_INTERVAL);
    return 0;
}

/* Under the lock. */
static void count(JNIEnv *jni, int64_t number, jobject object, jlong size)
{
    double p = sites_chance(size), weight = 1 / p;
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
    struct thread *self = threads_self(jni);
    if (!self || self->own || alloc_busy || (*ti)->GetClassSignature(ti, class, &signature, NULL) != JVMTI_ERROR_NONE)
        return;
    uint32_t n = sites_stack(jni, frames, NULL);
    sites_lock();
    if (site_table.on)
        count(jni, sites_find(signature, self, frames, n), object, size);
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
