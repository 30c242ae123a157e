/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/capture/vm/vm.h"

#include "agent/capture/vm/log.h"
#include "base/clock.h"

enum { LINE_MS = 100 }; /* how long to wait for the line of a safepoint that is over */

static const struct jfr_type types[] = {
    {
        .name = "jvmscope.SafepointTotals",
        .label = "Safepoint Totals",
        .category = "jvmscope|VM",
        .description = "The safepoints since the start of the VM, as the VM counts them",
        .kind = JFR_EVENT,
        .fields = JFR_FIELDS({"count", "Count", "long"}, {"time", "Time", "long", JFR_NANOS},
                             {"syncTime", "Time to Reach Safepoints", "long", JFR_NANOS}),
    },
    {
        .name = "jvmscope.Compiled",
        .label = "Compilation Started",
        .category = "jvmscope|VM",
        .description = "The compiler has started to compile a method",
        .kind = JFR_EVENT,
        .fields = JFR_FIELDS({"compileId", "Compilation Identifier", "int"},
                             {"method", "Method", "java.lang.String"},
                             {"compileLevel", "Compilation Level", "int", JFR_UNSIGNED},
                             {"isOsr", "On Stack Replacement", "boolean"},
                             {"bytecodes", "Size of the Method's Bytecode", "long", JFR_BYTES}),
    },
    {
        .name = "jvmscope.CodeDiscarded",
        .label = "Code Discarded",
        .category = "jvmscope|VM",
        .description = "The compiled code of a method was discarded: new calls do not enter it",
        .kind = JFR_EVENT,
        .fields = JFR_FIELDS({"compileId", "Compilation Identifier", "int"},
                             {"method", "Method", "java.lang.String"},
                             {"compileLevel", "Compilation Level", "int", JFR_UNSIGNED},
                             {"isOsr", "On Stack Replacement", "boolean"},
                             {"reason", "Reason", "java.lang.String"}),
    },
    {
        .name = "jvmscope.UncommonTrap",
        .label = "Uncommon Trap",
        .category = "jvmscope|VM",
        .description = "Compiled code reached a case for which it was not compiled, and the thread "
                       "continued in the interpreter",
        .kind = JFR_EVENT,
        .fields =
            JFR_FIELDS({"compileId", "Compilation Identifier", "int"},
                       {"method", "Method", "java.lang.String"},
                       {"compileLevel", "Compilation Level", "int", JFR_UNSIGNED},
                       {"bci", "Bytecode Index", "int"}, {"reason", "Reason", "java.lang.String"},
                       {"action", "Action", "java.lang.String"}, {"count", "Count", "long"}),
    },
    {
        .name = "jvmscope.ProcessFigures",
        .label = "Process Figures",
        .category = "jvmscope|VM",
        .description =
            "Open files of the process, stolen time, the time for which tasks of its container or "
            "machine were stalled for lack of resources, and the size of the old generation",
        .kind = JFR_EVENT,
        .fields = JFR_FIELDS({"openFiles", "Open Files", "long"},
                             {"openFilesLimit", "Limit of Open Files", "long"},
                             {"stolenTime", "Time Stolen by the Hypervisor", "long", JFR_NANOS},
                             {"cpuPressure", "CPU Pressure", "long", JFR_NANOS},
                             {"memoryPressure", "Memory Pressure", "long", JFR_NANOS},
                             {"ioPressure", "I/O Pressure", "long", JFR_NANOS},
                             {"oldGeneration", "Old Generation", "long", JFR_BYTES}),
    },
    {
        .name = "jvmscope.MemoryPool",
        .label = "Memory Pool",
        .category = "jvmscope|VM",
        .description = "The size of a part of the VM's heap, code cache or metaspace at a moment",
        .kind = JFR_EVENT,
        .fields = JFR_FIELDS(
            {"name", "Name", "java.lang.String"}, {"used", "Used", "long", JFR_BYTES},
            {"committed", "Committed", "long", JFR_BYTES}, {"max", "Limit", "long", JFR_BYTES}),
    },
    {
        .name = "jvmscope.ClassLoading",
        .label = "Class Loading",
        .category = "jvmscope|VM",
        .description = "Classes loaded and unloaded by all loaders of one class since the previous "
                       "event of that class",
        .kind = JFR_EVENT,
        .fields = JFR_FIELDS({"loader", "Class of the Loader", "java.lang.String"},
                             {"loaded", "Loaded", "long"}, {"unloaded", "Unloaded", "long"}),
    },
};

struct vm_activity vm_activity;
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
    else if (log_text_starts(line->tags, "jit"))
        compilers_line(line);
    else if (log_text_starts(line->tags, "deopt"))
        compilers_trap(line);
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
    vm_activity = (struct vm_activity){.jfr = s->out.jfr,
                                       .totals_type = ids[0],
                                       .compiled_type = ids[1],
                                       .discarded_type = ids[2],
                                       .trap_type = ids[3],
                                       .process_type = ids[4],
                                       .pool_type = ids[5],
                                       .loading_type = ids[6]};
    return 0;
}

/* The first figures read some files in /proc, and the start of the VM should not wait for that. */
static bool figures_are_due;

static void begin_figures(void)
{
    if (!figures_are_due)
        return;
    figures_are_due = false;
    figures_reset();
    figures_flush(now_ns(), true);
}

static void later(struct session *s, JNIEnv *jni)
{
    begin_figures();
}

static int start(struct session *s, JNIEnv *jni, struct buf *why)
{
    collections_reset();
    compilers_reset();
    pools_reset();
    loaders_reset();
    safepoints_reset();
    gc_reset(false);
    if (vm_log_open(jni) < 0)
        gc_reset(true);
    else
        collections_count();
    safepoints_begin();
    figures_are_due = true;
    recording_pauses = true;
    return 0;
}

static void flush_log(struct session *s, JNIEnv *jni)
{
    struct vm_log_lost lost;
    uint64_t counted = collections_counted();
    if (vm_log_read(jni, on_line, &lost) < 0) {
        session_message(s, "something in this process has closed the file in memory that the VM's "
                           "log was written to; collections are taken from JVM TI from now on");
        gc_reset(true);
    }
    jfr_lose_since(s->out.jfr, LOSS_VM_LOG, lost.skipped);
    jfr_lose_since(s->out.jfr, LOSS_VM_LINES, lost.unknown);
    jfr_lose_since(s->out.jfr, LOSS_VM_LOG_CUT, lost.cuts);
    collections_compare(s->out.jfr, counted, 1);
}

/*
 * Reads the last lines. A pause in progress is over, and its line is written, before the VM lets
 * this thread enter it. The line of its safepoint follows when the threads already run again, so
 * this waits for it.
 */
static void end_log(struct session *s, JNIEnv *jni)
{
    uint64_t counted = collections_counted();
    jstring text = (*jni)->NewStringUTF(jni, "");
    vm_clear_exception(jni);
    if (text)
        (*jni)->DeleteLocalRef(jni, text);
    flush_log(s, jni);
    for (int ms = 0; ms < LINE_MS && vm_log_is_open() && !safepoints_logged(); ms++) {
        nanosleep(&(struct timespec){.tv_nsec = NS_PER_MS}, NULL);
        flush_log(s, jni);
    }
    if (vm_log_is_open())
        collections_compare(s->out.jfr, counted, 0);
}

static void flush(struct session *s, JNIEnv *jni)
{
    static unsigned rounds;
    begin_figures();
    uint64_t now = now_ns();
    if (vm_log_is_open()) {
        flush_log(s, jni);
        collections_idle(now, false);
        compilers_flush();
    } else {
        gc_flush();
        safepoints_read(now);
    }
    if (rounds++ % 10 == 0) {
        safepoints_totals(false);
        loaders_flush(now);
    }
    figures_flush(now, false);
    if (!vm.dying)
        pools_flush(jni, now, false);
}

static void stop(struct session *s, JNIEnv *jni)
{
    recording_pauses = false;
    if (!vm_activity.jfr)
        return;
    flush(s, jni);
    safepoints_totals(true);
    if (vm_log_is_open())
        end_log(s, jni);
    collections_idle(now_ns(), true);
    figures_flush(now_ns(), true);
    loaders_flush(now_ns());
    if (!vm.dying)
        pools_flush(jni, now_ns(), true);
    vm_log_close(vm.dying ? NULL : jni);
    gc_reset(false);
}

static void restate(struct session *s, JNIEnv *jni)
{
    safepoints_totals(true);
    begin_figures();
    figures_restate();
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

const struct capture capture_vm = {
    .name = "vm",
    .options = OPTION_BIT(OPT_EVENTS),
    .jdk_events = "jdk.GarbageCollection jdk.GCPhasePause jdk.GCPhasePauseLevel1 "
                  "jdk.GCPhasePauseLevel2 jdk.GCPhasePauseLevel3 jdk.GCPhasePauseLevel4 "
                  "jdk.GCPhaseConcurrent jdk.GCHeapSummary jdk.SafepointBegin "
                  "jdk.SafepointEnd jdk.ExecuteVMOperation jdk.CPULoad "
                  "jdk.JavaThreadStatistics jdk.ClassLoadingStatistics "
                  "jdk.CompilerStatistics jdk.ResidentSetSize jdk.ContainerCPUThrottling "
                  "jdk.ContainerMemoryUsage jdk.ContainerConfiguration "
                  "jdk.Compilation jdk.Deoptimization jdk.CodeCacheStatistics "
                  "jdk.MetaspaceSummary jdk.ClassLoad jdk.ClassUnload ",
    .needs = {.can_generate_garbage_collection_events = 1},
    .events = &events,
    .records_only = true,
    .wanted = wanted,
    .load = load,
    .start = start,
    .later = later,
    .stop = stop,
    .flush = flush,
    .restate = restate,
};
