/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/capture/vm/vm.h"

#include "agent/capture/vm/log.h"

static const struct jfr_type types[] = {
    {
        .name = "jvmscope.SafepointTotals",
        .label = "Safepoint Totals",
        .category = "jvmscope|VM",
        .description = "Safepoints since the VM began, as it counts them itself",
        .kind = JFR_EVENT,
        .fields = JFR_FIELDS({"count", "Count", "long"}, {"time", "Time", "long", JFR_NANOS},
                             {"syncTime", "Time To Safepoints", "long", JFR_NANOS}),
    },
};

struct vm_doings vm_doings;
static _Atomic bool recording_pauses;

bool vm_records_pauses(void)
{
    return recording_pauses;
}

static void on_line(const struct log_line *line)
{
    if (log_text_starts(line->tags, "safepoint"))
        safepoints_line(line);
    else if (log_text_starts(line->tags, "gc"))
        collections_line(line);
}

static bool wanted(const struct options *o)
{
    return option_on(o, OPT_EVENTS);
}

static int load(struct session *s, struct buf *why)
{
    uint32_t ids[ARRAY_SIZE(types)];
    int r = jfr_declare(s->out.jfr, types, ARRAY_SIZE(types), ids);
    if (r < 0)
        return r;
    vm_doings = (struct vm_doings){.jfr = s->out.jfr, .totals_type = ids[0]};
    return 0;
}

static int start(struct session *s, JNIEnv *jni, struct buf *why)
{
    collections_reset();
    safepoints_reset();
    gc_reset(false);
    if (vm_log_open(jni) < 0)
        gc_reset(true);
    recording_pauses = true;
    return 0;
}

static void flush(struct session *s, JNIEnv *jni)
{
    static unsigned rounds;
    uint64_t now = now_ns();
    if (vm_log_is_open()) {
        jfr_lose_since(s->out.jfr, LOSS_VM_LOG, vm_log_read(on_line));
        collections_idle(now, false);
    } else {
        gc_flush();
        safepoints_look(now);
    }
    if (rounds++ % 10 == 0)
        safepoints_totals(false);
}

static void stop(struct session *s, JNIEnv *jni)
{
    recording_pauses = false;
    if (!vm_doings.jfr)
        return;
    flush(s, jni);
    collections_idle(now_ns(), true);
    safepoints_totals(true);
    vm_log_close(vm.dying ? NULL : jni);
    gc_reset(false);
}

static void restate(struct session *s, JNIEnv *jni)
{
    safepoints_totals(true);
}

static void JNICALL on_gc_start(jvmtiEnv *ti)
{
    gc_starts();
}

static void JNICALL on_gc_finish(jvmtiEnv *ti)
{
    gc_ends();
}

static const struct vm_callbacks events = {
    .ti = {.GarbageCollectionStart = on_gc_start, .GarbageCollectionFinish = on_gc_finish}};

extern const struct capture capture_vm;
const struct capture capture_vm = {
    .name = "vm",
    .options = OPTION_BIT(OPT_EVENTS),
    .needs = {.can_generate_garbage_collection_events = 1},
    .events = &events,
    .records_only = true,
    .wanted = wanted,
    .load = load,
    .start = start,
    .stop = stop,
    .flush = flush,
    .restate = restate,
};
