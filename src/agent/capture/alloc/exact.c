/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Exact allocation counts: each thread has its own counter at each place that allocates (edit.c),
 * and the VM's events report what the VM and JNI allocate (native.c). The counts and bytes of a
 * place are exact. Their division among stacks is estimated (strata.c); with depth=1, or where only
 * one path leads to a place, every row is exact.
 *
 * For tracked objects it is known which are alive after a collection. All objects are tracked until
 * a budget is spent (sites.h), and then one per stack sample, which represents its stratum.
 * live=exact and heap=all track all objects without a budget. What code that cannot be instrumented
 * has allocated is estimated from the VM's own samples (JDK 11 and later).
 */
#include "agent/capture/alloc/alloc.h"
#include "agent/capture/alloc/exact_probes.h"
#include "agent/capture/alloc/vm_sampler.h"
#include "agent/instrument/probe_class.h"
#include "agent/instrument/running.h"
#include "agent/session/session.h"
#include "agent/vm/collect.h"
#include "agent/vm/dump.h"

#include <errno.h>
#include <string.h>

#define PROBE "java/lang/JvmscopeSites"

enum alloc_follow alloc_follow;
static bool sampling; /* samples of the VM are taken as well */

static void JNICALL on_sample(jvmtiEnv *ti, JNIEnv *jni, jthread thread, jobject object,
                              jclass class, jlong size)
{
    if (alloc_exact.on)
        alloc_on_sample(ti, jni, thread, object, class, size);
}

static const struct vm_callbacks sample_events = {
    .ti = {.SampledObjectAlloc = on_sample, .GarbageCollectionStart = vm_sampler_collection}};

/* ---- the capture ---- */

static const struct instrument_client client = {
    .name = "alloc=exact", .edit = alloc_edit, .intrinsics = true, .seldom = true};

static bool wanted(const struct options *o)
{
    bool sites = option_is(o, OPT_HEAP, "sites") || option_is(o, OPT_HEAP, "all");
    bool sampled = option_is(o, OPT_ALLOC, "sampled");
    return option_is(o, OPT_ALLOC, "exact") || o->v[OPT_LIVE].text || (sites && !sampled) ||
           (sampled && vm.version < 11);
}

static int load(struct session *s, struct buf *why)
{
    jvmtiCapabilities samples = {.can_generate_sampled_object_alloc_events = 1,
                                 .can_generate_garbage_collection_events = 1},
                      missing = {0};
    if (option_is(&s->options, OPT_ALLOC, "sampled"))
        session_message(s, "alloc=sampled: %s, so all are counted instead",
                        vm.version < 11               ? "this VM does not sample allocations"
                        : s->options.v[OPT_LIVE].text ? "live=exact follows every object"
                                                      : "heap=all follows every object");
    alloc_follow = s->options.v[OPT_LIVE].text || option_is(&s->options, OPT_HEAP, "all")
                       ? FOLLOW_ALL
                       : FOLLOW_STACKS;
    sites_begin(&s->options, true, alloc_follow == FOLLOW_ALL);
    sampling = alloc_follow != FOLLOW_ALL && vm.version >= 11 && vm_need(&samples, &missing) == 0 &&
               vm_capabilities_empty(&missing);
    if (!sampling)
        return 0;
    alloc_samples_begin();
    /*
     * A VM that is starting must have the event enabled before its threads get their first
     * allocation buffers.
     */
    return vm.live ? 0 : vm_events_on(&sample_events);
}

/* Finds the offset of the JNIEnv in a JavaThread from the two addresses of the current thread. */
static int learn_offsets(JNIEnv *jni)
{
    alloc_exact.eetop = probe_field_offset(jni, "java/lang/Thread", "eetop", "J");
    if (alloc_exact.eetop <= 0 || sizeof(void *) != 8)
        return -ENOTSUP;
    uint64_t eetop = vm_thread_address(jni, NULL);
    alloc_exact.env_offset = (intptr_t)jni - (intptr_t)eetop;
    return eetop && alloc_exact.env_offset >= 0 && alloc_exact.env_offset < 65536 ? 0 : -ENOTSUP;
}

static int prepare(JNIEnv *jni, struct buf *why)
{
    (void)!vm_dump_prepare(jni); /* measures array sizes */
    int r = learn_offsets(jni);
    if (r < 0 || !vm_shapes()->alignment) {
        buf_printf(why, "exact allocation counts: only HotSpot on 64 bits");
        return -ENOTSUP;
    }
    r = alloc_points_init();
    if (r < 0)
        buf_printf(why, "exact allocation counts: no memory for counters");
    return r;
}

/* Updates the sites from all counters. Threads that have ended may still own some of these. */
static void settle(JNIEnv *jni)
{
    alloc_exact_release_ended(jni);
    alloc_settle(jni);
}

/*
 * Forgets all counts, and releases what ended threads own, because their pending objects refer to
 * sites of this session.
 */
static void forget_all(JNIEnv *jni)
{
    sites_lock();
    alloc_exact_release_ended(jni);
    alloc_forget_all();
    sites_unlock();
}

static int start(struct session *s, JNIEnv *jni, struct buf *why)
{
    int r = prepare(jni, why);
    if (r == 0)
        r = probe_define(jni, PROBE, &alloc_exact.probe, why);
    if (r == 0 && (r = alloc_exact_learn_tables(jni)) < 0)
        buf_printf(why, "exact allocation counts: the probe class belongs to another agent");
    if (r == 0)
        r = threads_listen(&alloc_exact_threads);
    if (r == 0 && sampling) {
        vm_sampler_find(jni);
        r = threads_listen(&alloc_samples_threads);
    }
    if (r == 0)
        r = instrument_choose(s->options.v[OPT_INCLUDE].text, s->options.v[OPT_EXCLUDE].text);
    if (r < 0)
        return r;
    forget_all(jni);
    sites_lock();
    alloc_exact.stacks = alloc_no_room = alloc_exact.by_vm = 0;
    (void)alloc_no_size(true);
    r = alloc_exact_reserve();
    alloc_exact.on = r == 0;
    sites_unlock();
    if (r < 0)
        return r;
    r = instrument_on(&client, jni, why);
    if (r == 0 && vm.late && s->out.jfr)
        instrument_lose_running(s->out.jfr, jni, LOSS_ALLOC_RUNNING, NULL);
    if (r == 0)
        r = vm_events_on(&alloc_exact_events);
    if (r == 0 && sampling && vm.attached)
        r = vm_events_on(&sample_events);
    return r < 0 ? r : alloc_native_on(jni, why);
}

static int begin(struct session *s, JNIEnv *jni, struct buf *why)
{
    if (!vm.late)
        return 0;
    sites_lock();
    alloc_exact_release_ended(jni);
    alloc_start_again();
    alloc_exact.stacks = alloc_exact.by_vm = 0;
    sites_unlock();
    sites_drop_forgotten(jni);
    return 0;
}

/* If the lock stays held while the VM ends, stop is not called, so counting ends here. */
static bool reachable(void)
{
    bool is = sites_reachable();
    if (!is && vm.dying)
        alloc_exact.on = false;
    return is;
}

static void stop(struct session *s, JNIEnv *jni)
{
    sites_lock();
    alloc_exact.on = false;
    sites_unlock();
    alloc_native_off(jni);
    vm_events_off(&alloc_exact_events);
    if (sampling)
        vm_events_off(&sample_events);
    instrument_off(&client, jni);
    threads_unlisten(&alloc_exact_threads);
    threads_unlisten(&alloc_samples_threads);
    forget_all(jni);
}

static void release(struct session *s)
{
    sites_end();
}

static void flush(struct session *s, JNIEnv *jni)
{
    sites_flush(jni, s->out.jfr);
    jfr_lose_total(s->out.jfr, LOSS_ALLOC_SIZE, alloc_no_size(false));
}

static uint64_t save(struct session *s, JNIEnv *jni, bool *ret_all)
{
    alloc_busy = true;
    (void)alloc_settle_begun(jni, NULL);
    uint64_t written = sites_save(s, jni, settle, ret_all);
    alloc_busy = false;
    return written;
}

static void prepare_dump(struct session *s, JNIEnv *jni, enum dump_reason reason)
{
    alloc_busy = true;
    sites_prepare(jni, reason);
    alloc_busy = false;
}

static void dump(struct session *s, JNIEnv *jni, enum dump_reason reason)
{
    alloc_busy = true;
    (void)alloc_settle_begun(jni, NULL);
    sites_dump(s, jni, settle);
    alloc_busy = false;
}

static void ending(struct session *s, JNIEnv *jni)
{
    alloc_busy = true;
    sites_ending(jni);
    alloc_busy = false;
}

static void request(struct session *s, JNIEnv *jni, const struct hprof_request *r)
{
    alloc_busy = true;
    (void)alloc_settle_begun(jni, NULL);
    sites_request(s, jni, r, settle);
    alloc_busy = false;
    /* The request may have changed the depth of stacks, which makes all sites invalid. */
    if (r->command == HPROF_CMD_CONTROL)
        forget_all(jni);
}

static void status(struct session *s, struct buf *out)
{
    sites_status(out);
    sites_lock();
    buf_printf(out,
               "alloc.places %u\nalloc.stack_samples %llu\nalloc.by_vm %llu\nalloc.no_room "
               "%llu\nalloc.no_size %llu\nalloc.awaiting %u\n",
               alloc_points_count(), (unsigned long long)alloc_exact.stacks,
               (unsigned long long)alloc_exact.by_vm, (unsigned long long)alloc_no_room,
               (unsigned long long)alloc_no_size(false), alloc_exact_awaiting());
    sites_unlock();
}

const struct capture capture_alloc_exact = {
    .name = "alloc",
    .title = "allocation sites",
    .options = OPTION_BIT(OPT_HEAP) | OPTION_BIT(OPT_ALLOC) | OPTION_BIT(OPT_LIVE),
    .changes_classes = true,
    .needs = {.can_retransform_classes = 1, .can_generate_vm_object_alloc_events = 1},
    .own_stacks = true,
    .wanted = wanted,
    .load = load,
    .start = start,
    .begin = begin,
    .reachable = reachable,
    .unsaved = LOSS_ALLOC_UNSAVED,
    .stop = stop,
    .release = release,
    .flush = flush,
    .save = save,
    .counts = "alloc",
    .prepare = prepare_dump,
    .dump = dump,
    .ending = ending,
    .request = request,
    .status = status,
};
