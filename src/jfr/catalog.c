/* SPDX-License-Identifier: Apache-2.0 */
#include "jfr/catalog.h"

#include "base/macro.h"

#include <string.h>

/* by name */
static const struct event_row rows[] = {
    {"jdk.ActiveRecording", SCOPE_STATE, 0, "recording", "events"},
    {"jdk.ActiveSetting", SCOPE_STATE, 0, "recording", "events"},
    {"jdk.CPUInformation", SCOPE_STATE, 0, "recording", "events"},
    {"jdk.CPUTimeSample", SCOPE_SELECTION, HOLDS_STACKS, "recording", "events"},
    {"jdk.CPUTimeStampCounter", SCOPE_STATE, 0, "recording", "events"},
    {"jdk.Compilation", SCOPE_VM, HOLDS_VM, "recording", "events"},
    {"jdk.ContainerCPUThrottling", SCOPE_VM, 0, "recording", "events"},
    {"jdk.ContainerCPUUsage", SCOPE_VM, 0, "recording", "events"},
    {"jdk.ContainerConfiguration", SCOPE_VM, 0, "recording", "events"},
    {"jdk.ContainerIOUsage", SCOPE_VM, 0, "recording", "events"},
    {"jdk.ContainerMemoryUsage", SCOPE_VM, 0, "recording", "events"},
    {"jdk.DirectBufferStatistics", SCOPE_VM, 0, "recording", "events"},
    {"jdk.ExceptionStatistics", SCOPE_VM, 0, "recording", "events"},
    {"jdk.ExecuteVMOperation", SCOPE_VM, 0, "recording", "events"},
    {"jdk.ExecutionSample", SCOPE_SELECTION, HOLDS_STACKS, "cpu", "samples"},
    {"jdk.FileForce", SCOPE_SELECTION, HOLDS_WAITS, "recording", "events"},
    {"jdk.FileRead", SCOPE_SELECTION, HOLDS_WAITS, "io", "waits"},
    {"jdk.FileWrite", SCOPE_SELECTION, HOLDS_WAITS, "io", "waits"},
    {"jdk.GCPhaseConcurrent", SCOPE_VM, 0, "recording", "events"},
    {"jdk.GCPhasePause", SCOPE_TIME, HOLDS_PAUSES, "recording", "events"},
    {"jdk.GCPhasePauseLevel1", SCOPE_VM, 0, "recording", "events"},
    {"jdk.GCPhasePauseLevel2", SCOPE_VM, 0, "recording", "events"},
    {"jdk.GCPhasePauseLevel3", SCOPE_VM, 0, "recording", "events"},
    {"jdk.GCPhasePauseLevel4", SCOPE_VM, 0, "recording", "events"},
    {"jdk.GarbageCollection", SCOPE_VM, HOLDS_VM, "events", "collections"},
    {"jdk.InitialEnvironmentVariable", SCOPE_STATE, 0, "recording", "events"},
    {"jdk.InitialSystemProperty", SCOPE_STATE, 0, "recording", "events"},
    {"jdk.JVMInformation", SCOPE_STATE, 0, "recording", "events"},
    {"jdk.JavaExceptionThrow", SCOPE_SELECTION, 0, "exceptions", "stacks"},
    {"jdk.JavaMonitorEnter", SCOPE_THREAD, HOLDS_WAITS, "monitors", "waits"},
    {"jdk.JavaMonitorWait", SCOPE_THREAD, HOLDS_WAITS, "monitors", "waits"},
    {"jdk.MethodTiming", SCOPE_SELECTION, HOLDS_TRACE, "recording", "events"},
    {"jdk.MethodTrace", SCOPE_SELECTION, HOLDS_TRACE, "recording", "events"},
    {"jdk.NativeMethodSample", SCOPE_SELECTION, HOLDS_STACKS, "recording", "events"},
    {"jdk.OSInformation", SCOPE_STATE, 0, "recording", "events"},
    {"jdk.ObjectAllocationSample", SCOPE_SELECTION, HOLDS_STACKS, "alloc", "samples"},
    {"jdk.SafepointBegin", SCOPE_VM, 0, "events", "safepoints"},
    {"jdk.SafepointEnd", SCOPE_VM, 0, "events", "safepoints"},
    {"jdk.SocketRead", SCOPE_SELECTION, HOLDS_WAITS, "io", "waits"},
    {"jdk.SocketWrite", SCOPE_SELECTION, HOLDS_WAITS, "io", "waits"},
    {"jdk.ThreadEnd", SCOPE_SELECTION, 0, "threads", "events"},
    {"jdk.ThreadPark", SCOPE_THREAD, HOLDS_WAITS, "threads", "events"},
    {"jdk.ThreadSleep", SCOPE_THREAD, HOLDS_WAITS, "threads", "events"},
    {"jdk.ThreadStart", SCOPE_SELECTION, 0, "threads", "events"},
    {"jvmscope.AllocationSite", SCOPE_SUM, HOLDS_STACKS, "alloc", "sites"},
    {"jvmscope.Budget", SCOPE_STATE, 0, "recording", "events"},
    {"jvmscope.Call", SCOPE_SELECTION, HOLDS_TRACE, "trace", "calls"},
    {"jvmscope.CallTimes", SCOPE_SUM, HOLDS_STACKS | HOLDS_CALLS, "times", "rows"},
    {"jvmscope.CallTimesLeft", SCOPE_SUM, 0, "times", "rows"},
    {"jvmscope.CallTimesTotal", SCOPE_SUM, 0, "times", "rows"},
    {"jvmscope.ClassLoading", SCOPE_VM, HOLDS_VM, "recording", "events"},
    {"jvmscope.CodeDiscarded", SCOPE_VM, 0, "recording", "events"},
    {"jvmscope.Compiled", SCOPE_VM, HOLDS_VM, "events", "compilations"},
    {"jvmscope.Counted", SCOPE_OF_SUMS, 0, "recording", "events"},
    {"jvmscope.Coverage", SCOPE_SUM, HOLDS_COVERAGE, "coverage", "methods"},
    {"jvmscope.CpuTime", SCOPE_SHARE, 0, "recording", "events"},
    {"jvmscope.Deadlock", SCOPE_SELECTION, 0, "threads", "events"},
    {"jvmscope.ExceptionCount", SCOPE_SUM, HOLDS_EXCEPTIONS, "exceptions", "counts"},
    {"jvmscope.ExceptionThrown", SCOPE_SELECTION, 0, "exceptions", "stacks"},
    {"jvmscope.FieldAccess", SCOPE_SELECTION, HOLDS_LOG, "log", "records"},
    {"jvmscope.Hold", SCOPE_THREAD, 0, "locks", "holds"},
    {"jvmscope.InterruptCall", SCOPE_SELECTION, 0, "threads", "events"},
    {"jvmscope.IoWait", SCOPE_THREAD, HOLDS_WAITS, "io", "waits"},
    {"jvmscope.LeftOut", SCOPE_STATE, 0, "recording", "events"},
    {"jvmscope.Log", SCOPE_SELECTION, HOLDS_LOG, "log", "records"},
    {"jvmscope.Lost", SCOPE_TIME, 0, "recording", "events"},
    {"jvmscope.MemoryPool", SCOPE_VM, 0, "recording", "events"},
    {"jvmscope.Missing", SCOPE_STATE, 0, "recording", "events"},
    {"jvmscope.Notify", SCOPE_SELECTION, 0, "threads", "events"},
    {"jvmscope.PageFaults", SCOPE_THREAD, 0, "threads", "events"},
    {"jvmscope.PatternUnmatched", SCOPE_STATE, 0, "recording", "events"},
    {"jvmscope.Preempted", SCOPE_THREAD, 0, "threads", "events"},
    {"jvmscope.ProcessFigures", SCOPE_VM, HOLDS_VM, "recording", "events"},
    {"jvmscope.Request", SCOPE_SELECTION, HOLDS_REQUESTS, "requests", "requests"},
    {"jvmscope.RequestChild", SCOPE_SELECTION, 0, "requests", "parts of requests"},
    {"jvmscope.RequestTotals", SCOPE_SUM, HOLDS_REQUESTS, "requests", "totals"},
    {"jvmscope.RequestWork", SCOPE_SELECTION, 0, "requests", "works"},
    {"jvmscope.SafepointTotals", SCOPE_VM, HOLDS_VM, "events", "events"},
    {"jvmscope.StartCall", SCOPE_SELECTION, 0, "threads", "events"},
    {"jvmscope.ThreadAnalysis", SCOPE_STATE, HOLDS_WAITS, "threads", "events"},
    {"jvmscope.ThreadObject", SCOPE_STATE, 0, "threads", "events"},
    {"jvmscope.TraceUnmatched", SCOPE_STATE, 0, "recording", "events"},
    {"jvmscope.UnattributedSample", SCOPE_SELECTION, HOLDS_STACKS, "cpu", "samples"},
    {"jvmscope.UncommonTrap", SCOPE_VM, 0, "events", "deoptimizations"},
    {"jvmscope.Unpark", SCOPE_SELECTION, 0, "threads", "events"},
    {"jvmscope.VirtualThreadReady", SCOPE_THREAD, 0, "threads", "events"},
    {"jvmscope.VirtualThreadUnmounted", SCOPE_THREAD, 0, "threads", "events"},
    {"jvmscope.VmEvent", SCOPE_SELECTION, 0, "events", "events"},
    {"jvmscope.Waiting", SCOPE_OPEN_WAIT, HOLDS_WAITS, "threads", "events"},
    {"jvmscope.WallSample", SCOPE_SELECTION, HOLDS_STACKS, "cpu", "samples"},
};

const struct event_row *catalog_find(const char *type)
{
    static const struct event_row other = {.capture = "recording", .what = "events"};

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        if (strcmp(rows[i].type, type) == 0)
            return &rows[i];
    return &other;
}

const struct event_row *catalog_rows(size_t *n)
{
    *n = ARRAY_SIZE(rows);
    return rows;
}
