/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records figures of the process, the VM and the container, once per second. Nothing here calls the
 * VM.
 */
#include "agent/capture/vm/vm.h"

#include "agent/capture/vm/cgroup.h"
#include "agent/session/pace.h"
#include "agent/vm/counters.h"
#include "agent/vm/flags.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* ALWAYS_GENERATIONAL: since this JDK, ZGC has no other mode. */
enum { OLD_SPACES = 4, ALWAYS_GENERATIONAL = 24 };

/* In the order of the event's fields; the times of jdk.CompilerStatistics are in milliseconds. */
enum counter {
    THREADS_LIVE,
    THREADS_DAEMON,
    THREADS_STARTED,
    THREADS_PEAK,
    CLASSES_LOADED,
    CLASSES_SHARED,
    CLASSES_UNLOADED,
    CLASSES_SHARED_UNLOADED,
    CI_COMPILES,
    CI_BAILOUTS,
    CI_INVALIDATES,
    CI_OSR,
    CI_STANDARD,
    CI_OSR_BYTES,
    CI_STANDARD_BYTES,
    CI_SIZE,
    CI_CODE_SIZE,
    CI_TIME,
    COUNTERS
};

static const char *const counter_names[COUNTERS] = {
    "java.threads.live",        "java.threads.daemon",
    "java.threads.started",     "java.threads.livePeak",
    "java.cls.loadedClasses",   "java.cls.sharedLoadedClasses",
    "java.cls.unloadedClasses", "java.cls.sharedUnloadedClasses",
    "sun.ci.totalCompiles",     "sun.ci.totalBailouts",
    "sun.ci.totalInvalidates",  "sun.ci.osrCompiles",
    "sun.ci.standardCompiles",  "sun.ci.osrBytes",
    "sun.ci.standardBytes",     "sun.ci.nmethodSize",
    "sun.ci.nmethodCodeSize",   "java.ci.totalTime",
};

static struct {
    const int64_t *counters[COUNTERS], *old[OLD_SPACES];
    struct cgroup cgroup;
    struct pace pace; /* how often the CPU times of the process are read */
    uint64_t due_ns, read_ns;
    uint64_t not_counting_ns; /* when the compilers' counters were first missed, or 0 */
    uint64_t user_ticks, system_ticks, machine_ticks, busy_ticks;
    /*
     * The throttling of the container is read in each round, so that it is known when it happened.
     */
    bool has_quota, throttling_written;
    uint64_t throttling_ns;
    struct cgroup_figures throttling;
} all;

static void find_counters(enum counter from)
{
    for (enum counter c = from; c < COUNTERS; c++)
        all.counters[c] = counter_number(counter_names[c]);
}

/*
 * Returns whether the counters of generation 1 are those of an old generation. Collectors without
 * generations count the whole heap there, and so does Shenandoah with generations.
 */
static bool has_old_generation(void)
{
    if (vm_flag("UseShenandoahGC") || vm_flag("UseEpsilonGC"))
        return false;
    return !vm_flag("UseZGC") || vm.version >= ALWAYS_GENERATIONAL || vm_flag("ZGenerational");
}

void figures_reset(void)
{
    memset(&all, 0, sizeof(all));
    find_counters(0);
    for (int i = 0; i < OLD_SPACES && has_old_generation(); i++) {
        char name[64];
        snprintf(name, sizeof(name), "sun.gc.generation.1.space.%d.used", i);
        all.old[i] = counter_number(name);
    }
    cgroup_find(&all.cgroup, "/proc/self/cgroup", "/sys/fs/cgroup");
    figures_restate();
}

static int64_t value(enum counter c)
{
    return counter_value(all.counters[c]);
}

/* ---- the processors ---- */

struct ticks {
    uint64_t user, system; /* of the process */
    uint64_t busy, all, stolen;
};

static bool read_ticks(struct ticks *ret)
{
    char text[1024];
    unsigned long long u = 0, s = 0, v[8] = {0};
    *ret = (struct ticks){0};
    if (!cgroup_small_file("/proc/self/stat", text, sizeof(text)) || !strrchr(text, ')') ||
        sscanf(strrchr(text, ')') + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu", &u,
               &s) != 2)
        return false;
    ret->user = u;
    ret->system = s;
    /* user nice system idle iowait irq softirq steal */
    if (cgroup_small_file("/proc/stat", text, sizeof(text)) &&
        sscanf(text, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &v[0], &v[1], &v[2], &v[3],
               &v[4], &v[5], &v[6], &v[7]) >= 4) {
        for (int i = 0; i < 8; i++)
            ret->all += v[i];
        ret->busy = ret->all - v[3] - v[4];
        ret->stolen = v[7];
    }
    return true;
}

static float share(uint64_t part, uint64_t whole)
{
    return whole ? (float)MIN((double)part / (double)whole, 1.0) : 0;
}

static void put_load(uint64_t now, const struct ticks *t)
{
    struct jfr_event e;
    long hertz = sysconf(_SC_CLK_TCK), processors = sysconf(_SC_NPROCESSORS_ONLN);
    uint64_t elapsed =
        (uint64_t)((double)(now - all.read_ns) / 1e9 * (double)hertz * (double)processors);
    if (all.read_ns && jfr_begin(vm_activity.jfr, JFR_CPU_LOAD, 0, &e)) {
        jfr_put_time(&e, now);
        jfr_put_float(&e, share(t->user - all.user_ticks, elapsed));
        jfr_put_float(&e, share(t->system - all.system_ticks, elapsed));
        jfr_put_float(&e, share(t->busy - all.busy_ticks, t->all - all.machine_ticks));
        jfr_commit(&e);
    }
    all.read_ns = now;
    all.user_ticks = t->user;
    all.system_ticks = t->system;
    all.busy_ticks = t->busy;
    all.machine_ticks = t->all;
}

/* ---- the VM ---- */

/* Writes the compilers' counters, or zeros for a time at which they did not exist yet. */
static void put_compilations(uint64_t ns, bool counting)
{
    struct jfr_event e;
    if (!jfr_begin(vm_activity.jfr, JFR_COMPILER_STATISTICS, 0, &e))
        return;
    jfr_put_time(&e, ns);
    for (enum counter c = CI_COMPILES; c <= CI_STANDARD; c++)
        jfr_put_int(&e, counting ? (int32_t)value(c) : 0);
    for (enum counter c = CI_OSR_BYTES; c <= CI_CODE_SIZE; c++)
        jfr_put_long(&e, counting ? value(c) : 0);
    jfr_put_long(&e, 0); /* the VM does not count the longest compilation */
    jfr_put_long(&e, counting ? value(CI_TIME) / (int64_t)NS_PER_MS : 0);
    jfr_commit(&e);
}

/*
 * Writes the compilers' counters. JDK 8 starts its compilers, and adds their counters, only after
 * it has reported to the agents that it is initialized. The counters are therefore searched for
 * again; they begin at 0.
 */
static void put_compilers(uint64_t now)
{
    if (!all.counters[CI_COMPILES]) {
        all.not_counting_ns = all.not_counting_ns ? all.not_counting_ns : now;
        find_counters(CI_COMPILES);
    }
    if (!all.counters[CI_COMPILES])
        return;
    if (all.not_counting_ns)
        put_compilations(all.not_counting_ns, false);
    all.not_counting_ns = 0;
    put_compilations(now, true);
}

static void put_counters(uint64_t now)
{
    struct jfr_event e;
    struct jfr_writer *w = vm_activity.jfr;
    if (all.counters[THREADS_LIVE] && jfr_begin(w, JFR_JAVA_THREAD_STATISTICS, 0, &e)) {
        jfr_put_time(&e, now);
        for (enum counter c = THREADS_LIVE; c <= THREADS_PEAK; c++)
            jfr_put_long(&e, value(c));
        jfr_commit(&e);
    }
    if (all.counters[CLASSES_LOADED] && jfr_begin(w, JFR_CLASS_LOADING_STATISTICS, 0, &e)) {
        jfr_put_time(&e, now);
        jfr_put_long(&e, value(CLASSES_LOADED) + value(CLASSES_SHARED));
        jfr_put_long(&e, value(CLASSES_UNLOADED) + value(CLASSES_SHARED_UNLOADED));
        jfr_commit(&e);
    }
    put_compilers(now);
}

/* ---- the process ---- */

static int64_t count_files(void)
{
    int64_t n = -1; /* "." and "..", and the folder itself */
    DIR *d = opendir("/proc/self/fd");
    if (!d)
        return -1;
    while (readdir(d))
        n++;
    closedir(d);
    return n - 2;
}

static void put_process(uint64_t now, const struct ticks *t)
{
    char text[4096];
    struct jfr_event e;
    struct rlimit limit;
    int64_t old = 0;
    if (cgroup_small_file("/proc/self/status", text, sizeof(text)) &&
        jfr_begin(vm_activity.jfr, JFR_RESIDENT_SET_SIZE, 0, &e)) {
        jfr_put_time(&e, now);
        jfr_put_long(&e, MAX(cgroup_line_number(text, "VmRSS"), INT64_C(0)) << 10);
        jfr_put_long(&e, MAX(cgroup_line_number(text, "VmHWM"), INT64_C(0)) << 10);
        jfr_commit(&e);
    }
    for (int i = 0; i < OLD_SPACES; i++)
        old += counter_value(all.old[i]);
    if (!jfr_begin(vm_activity.jfr, vm_activity.process_type, 0, &e))
        return;
    jfr_put_time(&e, now);
    jfr_put_long(&e, count_files());
    jfr_put_long(&e, getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur == RLIM_INFINITY
                         ? -1
                         : (int64_t)limit.rlim_cur);
    jfr_put_long(&e, (int64_t)(t->stolen * (NS_PER_SECOND / (uint64_t)sysconf(_SC_CLK_TCK))));
    jfr_put_long(&e, cgroup_pressure_ns(&all.cgroup, "cpu"));
    jfr_put_long(&e, cgroup_pressure_ns(&all.cgroup, "memory"));
    jfr_put_long(&e, cgroup_pressure_ns(&all.cgroup, "io"));
    jfr_put_long(&e, all.old[0] ? old : -1);
    jfr_commit(&e);
}

/* ---- the container ---- */

static void begin_row(struct jfr_event *e, uint64_t now)
{
    jfr_put_time(e, now);
    jfr_put_long(e, 0); /* duration, thread, stack */
    jfr_put_long(e, 0);
    jfr_put_long(e, 0);
}

static void put_throttling(uint64_t ns, const struct cgroup_figures *f)
{
    struct jfr_event e;
    if (!jfr_begin(vm_activity.jfr, JFR_CONTAINER_CPU_THROTTLING, 0, &e))
        return;
    begin_row(&e, ns);
    jfr_put_long(&e, f->slices);
    jfr_put_long(&e, f->throttled_slices);
    jfr_put_long(&e, f->throttled_ns);
    jfr_commit(&e);
}

/*
 * Called in each round. A reading is written when a second has passed since the last one was
 * written, or when the container was throttled since the previous reading. In the latter case the
 * previous reading is written too, so that the two show when the throttling happened.
 */
static void measure_throttling(uint64_t now, const struct cgroup_figures *f, bool due)
{
    bool more = all.throttling_ns && f->throttled_ns > all.throttling.throttled_ns;
    if (more && !all.throttling_written)
        put_throttling(all.throttling_ns, &all.throttling);
    all.throttling_written = more || due;
    all.throttling = *f;
    all.throttling_ns = now;
    if (all.throttling_written)
        put_throttling(now, f);
}

static void put_container(uint64_t now)
{
    struct jfr_event e;
    struct cgroup_figures f;
    cgroup_read(&all.cgroup, &f);
    all.has_quota = f.quota_us > 0 && f.throttled_ns >= 0;
    if (all.has_quota)
        measure_throttling(now, &f, true);
    if (f.memory_used >= 0 && jfr_begin(vm_activity.jfr, JFR_CONTAINER_MEMORY_USAGE, 0, &e)) {
        begin_row(&e, now);
        jfr_put_long(&e, f.memory_failures);
        jfr_put_long(&e, f.memory_used);
        jfr_put_long(&e, -1); /* swap */
        jfr_commit(&e);
    }
}

void figures_restate(void)
{
    struct jfr_event e;
    struct cgroup_figures f;
    cgroup_read(&all.cgroup, &f);
    if ((f.quota_us <= 0 && f.memory_limit <= 0) ||
        !jfr_begin(vm_activity.jfr, JFR_CONTAINER_CONFIGURATION, 0, &e))
        return;
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    int64_t allowed = f.quota_us > 0 && f.period_us > 0
                          ? (f.quota_us + f.period_us - 1) / f.period_us
                          : processors;
    begin_row(&e, now_ns());
    jfr_put_string(&e, all.cgroup.v2 ? "cgroupv2" : "cgroupv1");
    jfr_put_long(&e, f.period_us);
    jfr_put_long(&e, f.quota_us);
    jfr_put_long(&e, f.shares);
    jfr_put_long(&e, MIN(allowed, (int64_t)processors));
    jfr_put_long(&e, -1); /* version 1's soft limit and swap */
    jfr_put_long(&e, f.memory_limit);
    jfr_put_long(&e, -1);
    jfr_put_long(&e, (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE));
    jfr_commit(&e);
}

void figures_flush(uint64_t now, bool at_once)
{
    struct ticks t;
    if (now < all.due_ns && !at_once) {
        struct cgroup_figures f;
        if (all.has_quota && cgroup_read_throttling(&all.cgroup, &f))
            measure_throttling(now, &f, false);
        return;
    }
    all.due_ns = now + NS_PER_SECOND;
    put_counters(now);
    /*
     * This is done less often in large processes: for the CPU time of the process the kernel visits
     * each thread, and for the open files the agent visits each descriptor.
     */
    if (at_once || now >= all.pace.due_ns) {
        pace_begins(&all.pace);
        if (read_ticks(&t)) {
            put_load(now, &t);
            put_process(now, &t);
        }
        pace_ends(&all.pace);
    }
    put_container(now);
}
