/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/capture.h"

extern const struct capture capture_alloc_exact;
extern const struct capture capture_alloc_sampled;
extern const struct capture capture_budget;
extern const struct capture capture_control;
extern const struct capture capture_coverage;
extern const struct capture capture_cpu_samples;
extern const struct capture capture_cpu_times;
extern const struct capture capture_exceptions;
extern const struct capture capture_heap_dump;
extern const struct capture capture_logpoints;
extern const struct capture capture_method_trace;
extern const struct capture capture_monitors;
extern const struct capture capture_patterns;
extern const struct capture capture_requests;
extern const struct capture capture_threads;
extern const struct capture capture_vm;
extern const struct capture capture_triggers;
extern const struct capture capture_vm_events;

/* clang-format off */
const struct capture *const captures[] = {
    &capture_monitors,
    &capture_heap_dump,
    &capture_alloc_exact,
    &capture_alloc_sampled,
    &capture_cpu_samples,
    &capture_cpu_times,
    &capture_requests,
    &capture_threads,
    &capture_coverage,
    &capture_method_trace,
    &capture_exceptions,
    &capture_vm_events,
    &capture_vm,
    &capture_logpoints,
    &capture_control,
    &capture_patterns,
    &capture_triggers,
    &capture_budget,
};
/* clang-format on */
const int captures_count = ARRAY_SIZE(captures);
