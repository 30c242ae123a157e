/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which CPU samples of a recording count. From JDK 25 on the VM can sample by the CPU clocks of
 * threads (jdk.CPUTimeSample), in addition to sampling some threads at intervals
 * (jdk.ExecutionSample). A recording with both shows the same CPU time twice. Then only the samples
 * by CPU clocks count, wherever in the recording they are, and whether or not a filter selects any
 * of them.
 */
#pragma once

#include <stdbool.h>

enum cpu_sample_use {
    CPU_SAMPLE_SKIP,
    CPU_SAMPLE_TAKE,
    CPU_SAMPLE_TAKE_ALONE, /* and forget all samples that were taken before */
};

/*
 * Decides about a sample. *timed, which the caller sets to false before the first sample, becomes
 * true with the first sample by a CPU clock.
 */
static inline enum cpu_sample_use cpu_sample_use(bool *timed, bool by_cpu_clock)
{
    if (!by_cpu_clock)
        return *timed ? CPU_SAMPLE_SKIP : CPU_SAMPLE_TAKE;
    if (*timed)
        return CPU_SAMPLE_TAKE;
    *timed = true;
    return CPU_SAMPLE_TAKE_ALONE;
}
