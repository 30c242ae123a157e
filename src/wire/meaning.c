/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What other programs' names of metrics mean: those of jvmscope, of Go's pprof, of async-profiler,
 * and of Pyroscope's and OpenTelemetry's agents.
 */
#include "wire/batch.h"

static const struct {
    const char *name;
    enum wire_metric metric;
} names[] = {
    {"cpu", WIRE_CPU},
    {"itimer", WIRE_CPU},
    {"wall", WIRE_WALL},
    {"elapsed", WIRE_WALL},
    {"alloc_space", WIRE_ALLOC_BYTES},
    {"allocations", WIRE_ALLOC_BYTES},
    {"alloc_sample_bytes", WIRE_ALLOC_BYTES},
    {"alloc_in_new_tlab_bytes", WIRE_ALLOC_BYTES},
    {"alloc_outside_tlab_bytes", WIRE_ALLOC_BYTES},
    {"alloc_objects", WIRE_ALLOC_OBJECTS},
    {"alloc_sample_objects", WIRE_ALLOC_OBJECTS},
    {"alloc_in_new_tlab_objects", WIRE_ALLOC_OBJECTS},
    {"alloc_outside_tlab_objects", WIRE_ALLOC_OBJECTS},
    {"inuse_space", WIRE_LIVE_BYTES},
    {"inuse_objects", WIRE_LIVE_OBJECTS},
    {"live", WIRE_LIVE_OBJECTS},
    {"delay", WIRE_LOCK_NS},
    {"locks", WIRE_LOCK_NS},
    {"contentions", WIRE_LOCK_COUNT},
    {"times", WIRE_EXACT_NS},
};

static const struct {
    const char *name;
    uint64_t ns;
} times[] = {
    {"nanoseconds", 1},        {"ns", 1},       {"microseconds", 1000},  {"us", 1000},
    {"milliseconds", 1000000}, {"ms", 1000000}, {"seconds", 1000000000}, {"s", 1000000000},
};

static uint64_t ns_of_unit(const struct wire_batch *b, uint32_t unit)
{
    for (size_t i = 0; i < ARRAY_SIZE(times); i++)
        if (str_is(wire_text(b, unit), times[i].name))
            return times[i].ns;
    return 0;
}

static enum wire_metric metric_of_name(const struct wire_batch *b, uint32_t name)
{
    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        if (str_is(wire_text(b, name), names[i].name))
            return names[i].metric;
    return WIRE_OTHER;
}

static bool is_time(enum wire_metric metric)
{
    return metric == WIRE_CPU || metric == WIRE_WALL;
}

/* Counts of samples. The period shows what is sampled; without a period it is CPU time. */
static enum wire_metric metric_of_samples(const struct wire_batch *b, const struct wire_profile *p)
{
    enum wire_metric metric = metric_of_name(b, p->period_type.name);
    return is_time(metric) ? metric : p->period_type.name ? WIRE_OTHER : WIRE_CPU;
}

static struct wire_meaning meaning_of(const struct wire_batch *b, const struct wire_profile *p,
                                      struct wire_type t)
{
    struct str name = wire_text(b, t.name);
    bool samples = str_is(name, "samples") || str_is(name, "sample");
    struct wire_meaning m = {.metric =
                                 samples ? metric_of_samples(b, p) : metric_of_name(b, t.name)};
    uint64_t unit = ns_of_unit(b, t.unit), period = ns_of_unit(b, p->period_type.unit);
    period = period && p->period <= UINT64_MAX / period ? period * p->period : 0;
    if (!is_time(m.metric))
        return m;
    m.ns = unit ? unit : period;
    m.count = unit ? period / unit : 1;
    return m;
}

struct wire_meaning wire_meaning(const struct wire_batch *b, const struct wire_profile *p,
                                 uint32_t type)
{
    struct wire_meaning m = meaning_of(b, p, p->types.data[type]);
    for (size_t i = 0; i < p->types.len && is_time(m.metric) && !m.repeated; i++) {
        struct wire_meaning other = meaning_of(b, p, p->types.data[i]);
        /*
         * Among types with the same times, an exact count is preferred, otherwise the first type.
         */
        m.repeated = other.metric == m.metric && i != type &&
                     ((other.count == 1 && m.count != 1) ||
                      ((other.count == 1) == (m.count == 1) && i < type));
    }
    return m;
}
