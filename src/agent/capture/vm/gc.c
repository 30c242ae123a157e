/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records the collections of a VM that writes no log: JVM TI reports their pauses, and the VM's
 * counters give the cause, the length and the heap. JVM TI sends its events in a safepoint, so the
 * callbacks only fill a ring of records.
 */
#include "agent/capture/vm/vm.h"

#include "agent/vm/counters.h"
#include "hotspot/memory.h"

#include <stdio.h>
#include <string.h>

enum { RECORDS = 256, SPACES = 8, COLLECTORS = 3 };

#define LEFT_OUT_NS UINT64_C(250000)

struct record {
    uint64_t start_ns, end_ns;
    struct safepoint_counters safepoints;
    int64_t before, after, capacity;
    int64_t time[COLLECTORS]; /* time that the collectors have used, before the pause */
    int64_t time_after[COLLECTORS];
    char cause[64];
};

static struct {
    _Atomic bool active;
    const int64_t *used[SPACES], *capacity[SPACES], *time[COLLECTORS];
    char names[COLLECTORS][64];
    struct record records[RECORDS];
    _Atomic uint64_t begun, taken; /* one thread at a time writes; the agent's thread reads */
    struct record now;
    uint32_t number;
} all;

static void find_spaces(void)
{
    size_t n = 0;
    for (int generation = 0; generation < 2; generation++)
        for (int space = 0; space < 4 && n < SPACES; space++) {
            char name[64];
            snprintf(name, sizeof(name), "sun.gc.generation.%d.space.%d.used", generation, space);
            const int64_t *used = counter_number(name);
            if (!used)
                break;
            snprintf(name, sizeof(name), "sun.gc.generation.%d.space.%d.capacity", generation,
                     space);
            all.used[n] = used;
            all.capacity[n++] = counter_number(name);
        }
}

void gc_reset(bool active)
{
    memset(all.used, 0, sizeof(all.used));
    memset(all.capacity, 0, sizeof(all.capacity));
    memset(&all.now, 0, sizeof(all.now));
    all.taken = all.begun;
    all.number = 0;
    find_spaces();
    for (int i = 0; i < COLLECTORS; i++) {
        char name[64];
        snprintf(name, sizeof(name), "sun.gc.collector.%d.time", i);
        all.time[i] = counters_count_ns() ? counter_number(name) : NULL;
        snprintf(name, sizeof(name), "sun.gc.collector.%d.name", i);
        counter_text(name, all.names[i], sizeof(all.names[i]));
    }
    all.active = active;
}

const char *gc_name(bool old)
{
    static const struct {
        const char *counter, *young, *old;
    } names[] = {
        {"G1", "G1New", "G1Old"},
        {"PS", "ParallelScavenge", "ParallelOld"},
        {"Parallel", "ParallelScavenge", "ParallelOld"},
        {"PCopy", "ParNew", "ConcurrentMarkSweep"},
        {"ParNew", "ParNew", "ConcurrentMarkSweep"},
        {"CMS", "ParNew", "ConcurrentMarkSweep"},
        {"Shenandoah", "Shenandoah", "Shenandoah"},
        {"", "DefNew", "SerialOld"},
    };

    for (size_t i = 0;; i++)
        if (strncmp(all.names[0], names[i].counter, strlen(names[i].counter)) == 0)
            return old ? names[i].old : names[i].young;
}

static int64_t sum(const int64_t *const *places)
{
    int64_t v = 0;
    for (int i = 0; i < SPACES; i++)
        v += counter_value(places[i]);
    return v;
}

static void times(int64_t ret[COLLECTORS])
{
    for (int i = 0; i < COLLECTORS; i++)
        ret[i] = counter_value(all.time[i]);
}

/*
 * Finds the cause of a pause. G1 clears it after the event of the pause's end, the other collectors
 * before it. The pauses of a concurrent cycle have no cause, and no collector counts them.
 */
static void find_cause(struct record *r)
{
    bool counted = false;
    for (int i = 0; i < COLLECTORS; i++)
        counted = counted || r->time_after[i] > r->time[i];
    counter_text("sun.gc.cause", r->cause, sizeof(r->cause));
    if (strcmp(r->cause, "No GC") == 0) {
        r->cause[0] = 0;
        if (counted)
            counter_text("sun.gc.lastCause", r->cause, sizeof(r->cause));
    }
}

void gc_starts(void)
{
    struct record *r = &all.now;
    if (!all.active)
        return;
    r->safepoints = safepoints_now();
    r->before = sum(all.used);
    times(r->time);
    r->start_ns = now_ns();
}

void gc_ends(void)
{
    struct record *r = &all.now;
    if (!all.active || !r->start_ns)
        return;
    r->end_ns = now_ns();
    r->after = sum(all.used);
    r->capacity = sum(all.capacity);
    times(r->time_after);
    find_cause(r);
    uint64_t n = all.begun;
    if (n - all.taken < RECORDS) {
        all.records[n % RECORDS] = *r;
        all.begun = n + 1;
    } else {
        jfr_lose(vm_activity.jfr, LOSS_VM_COLLECTION, 1);
    }
    r->start_ns = 0;
}

static void write_pause(const struct record *r, uint64_t start, uint64_t pause, bool old)
{
    struct collection c = {
        .id = all.number++,
        .start_ns = start,
        .end_ns = start + pause,
        .pauses_ns = pause,
        .longest_ns = pause,
    };
    snprintf(c.name, sizeof(c.name), "%s", gc_name(old));
    snprintf(c.cause, sizeof(c.cause), "%s", r->cause);
    collection_put(&c);
    collection_put_phase(JFR_GC_PHASE_PAUSE, c.id, start, pause, "GC Pause", 8);
}

/*
 * Returns whether the times that collectors report account for the length of a pause. They lack
 * some tens of microseconds that JVM TI's events and the VM's log include. If they lack much more,
 * the collecting thread had no processor for that time, and all other threads waited for it.
 */
static bool accounted(uint64_t used, uint64_t length)
{
    return used + used / 100 + LEFT_OUT_NS >= length;
}

static void write_record(const struct record *r)
{
    uint64_t at = r->start_ns, left = r->end_ns - r->start_ns, used[COLLECTORS], all_used = 0;
    int last = -1;
    safepoints_collection(r->start_ns, &r->safepoints, r->cause);
    /* A full collection may follow one of the young generation between the same two events. */
    for (int i = 0; i < COLLECTORS; i++) {
        used[i] = (uint64_t)MAX(r->time_after[i] - r->time[i], INT64_C(0));
        all_used += used[i];
        last = used[i] ? i : last;
    }
    if (last >= 0 && !accounted(all_used, left))
        used[last] += left - all_used;
    for (int i = 0; i <= last; i++) {
        uint64_t pause = MIN(used[i], left);
        if (!used[i])
            continue;
        write_pause(r, at, pause, i > 0);
        at += pause;
        left -= pause;
    }
    if (last < 0)
        write_pause(r, at, left, !r->cause[0]);
    if (r->capacity) {
        uint64_t capacity = (uint64_t)r->capacity;
        collection_put_heap(all.number - 1, r->start_ns, "Before GC", (uint64_t)r->before,
                            capacity);
        collection_put_heap(all.number - 1, r->end_ns, "After GC", (uint64_t)r->after, capacity);
    }
}

void gc_flush(void)
{
    while (all.taken < all.begun) {
        write_record(&all.records[all.taken % RECORDS]);
        all.taken++;
    }
}
