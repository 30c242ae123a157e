/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/top_sample.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/parse.h"
#include "cli/json_view.h"
#include "hotspot/hsperf.h"
#include "options/control.h"
#include "proto/agent.h"
#include "proto/check.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void top_sample_release(struct top_sample *s)
{
    for (size_t i = 0; i < s->n_pools; i++)
        free(s->pools[i].name);
    for (size_t i = 0; i < s->n_collectors; i++)
        free(s->collectors[i].name);
    vec_release(&s->tasks);
    *s = (struct top_sample){0};
}

enum { TASK_NAME = 15 };

static int64_t number(const uint8_t *data, size_t len, const char *name)
{
    int64_t v = 0;
    return hsperf_number(data, len, name, &v) == 0 ? v : 0;
}

/*
 * Reads a stat file of /proc: the CPU time, the name and the time of the start. The name in
 * parentheses may contain anything.
 */
static struct top_task read_stat(const char *path)
{
    _cleanup_free_ uint8_t *data = NULL;
    struct top_task ret = {0};
    size_t len;
    unsigned long user = 0, system = 0;
    unsigned long long started = 0;
    if (file_read_path(path, 1 << 16, &data, &len) < 0)
        return ret;
    char *open = strchr((char *)data, '('), *end = strrchr((char *)data, ')');
    if (!open || !end ||
        sscanf(end + 1,
               " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu %*d %*d %*d %*d %*d %*d %llu",
               &user, &system, &started) != 3)
        return ret;
    *end = 0;
    snprintf(ret.name, sizeof(ret.name), "%s", open + 1);
    ret.is_cut = strlen(ret.name) >= TASK_NAME;
    ret.cpu_ns = (uint64_t)(user + system) * (NS_PER_SECOND / (uint64_t)sysconf(_SC_CLK_TCK));
    ret.started = started;
    return ret;
}

static void read_tasks(struct top_sample *s, pid_t pid)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/task", pid);
    DIR *dir = opendir(path);
    for (struct dirent *e; dir && (e = readdir(dir));) {
        pid_t tid = atoi(e->d_name);
        if (tid <= 0)
            continue;
        snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", pid, tid);
        struct top_task t = read_stat(path);
        t.tid = tid;
        if (vec_push(&s->tasks, t) < 0)
            break;
    }
    if (dir)
        closedir(dir);
}

static void read_pools(struct top_sample *s, const uint8_t *data, size_t len)
{
    char key[96];
    for (int g = 0; g < 3; g++) {
        for (int p = 0; p < 5 && s->n_pools < POOLS_MAX; p++) {
            snprintf(key, sizeof(key), "sun.gc.generation.%d.space.%d.name", g, p);
            char *name = hsperf_string(data, len, key);
            if (!name)
                break;
            if (g == 1 && strcmp(name, "space") == 0)
                snprintf(name, strlen(name) + 1, "old"); /* G1, Parallel and Serial name it so */
            s->pools[s->n_pools].name = name;
            snprintf(key, sizeof(key), "sun.gc.generation.%d.space.%d.used", g, p);
            s->pools[s->n_pools].used = number(data, len, key);
            snprintf(key, sizeof(key), "sun.gc.generation.%d.space.%d.capacity", g, p);
            s->pools[s->n_pools].capacity = number(data, len, key);
            /* G1 has no first survivor space, and publishes a capacity of one word for it. */
            if (s->pools[s->n_pools].capacity > 8)
                s->n_pools++;
            else
                free(name);
        }
    }
    char *metaspace = s->n_pools < POOLS_MAX ? strdup("metaspace") : NULL;
    if (metaspace) {
        s->pools[s->n_pools].name = metaspace;
        s->pools[s->n_pools].used = number(data, len, "sun.gc.metaspace.used");
        s->pools[s->n_pools++].capacity = number(data, len, "sun.gc.metaspace.capacity");
    }
}

/*
 * Shenandoah has two counters: a "partial" one that no version counts up, and a "full" one for
 * every phase of every collection, paused or not, although hardly a collection is a full one.
 */
static const char shenandoah_unused[] = "Shenandoah partial", shenandoah_all[] = "Shenandoah full",
                  shenandoah_phases[] = "Shenandoah phases, concurrent ones too";

static void read_collector(struct top_sample *s, const uint8_t *data, size_t len, int c, char *name,
                           double tick_ns)
{
    char key[96];
    snprintf(key, sizeof(key), "sun.gc.collector.%d.invocations", c);
    int64_t collections = number(data, len, key);
    bool unused = strcmp(name, shenandoah_unused) == 0 && collections <= 0;
    if (strcmp(name, shenandoah_all) == 0) {
        free(name);
        name = strdup(shenandoah_phases);
    }
    if (unused || !name) {
        free(name);
        return;
    }
    snprintf(key, sizeof(key), "sun.gc.collector.%d.time", c);
    s->collectors[s->n_collectors].name = name;
    s->collectors[s->n_collectors].collections = collections;
    s->collectors[s->n_collectors++].time_ns = (int64_t)((double)number(data, len, key) * tick_ns);
}

static void read_counters(struct top_sample *s, const uint8_t *data, size_t len)
{
    int64_t frequency = number(data, len, "sun.os.hrt.frequency");
    double tick_ns = frequency > 0 ? 1e9 / (double)frequency : 1;
    char key[96];
    read_pools(s, data, len);
    for (int c = 0; c < COLLECTORS_MAX; c++) {
        snprintf(key, sizeof(key), "sun.gc.collector.%d.name", c);
        char *name = hsperf_string(data, len, key);
        if (!name)
            break;
        read_collector(s, data, len, c, name, tick_ns);
    }
    s->threads = number(data, len, "java.threads.live");
    s->daemons = number(data, len, "java.threads.daemon");
    s->peak = number(data, len, "java.threads.livePeak");
    s->loaded = number(data, len, "java.cls.loadedClasses") +
                number(data, len, "java.cls.sharedLoadedClasses");
    s->unloaded = number(data, len, "java.cls.unloadedClasses") +
                  number(data, len, "java.cls.sharedUnloadedClasses");
    s->compile_ns = (int64_t)((double)number(data, len, "java.ci.totalTime") * tick_ns);
    s->safepoints = number(data, len, "sun.rt.safepoints");
    s->safepoint_ns = (int64_t)((double)number(data, len, "sun.rt.safepointTime") * tick_ns);
}

/*
 * Returns whether the kernel's 15 bytes come from this name: its beginning, or HotSpot's
 * abbreviation.
 */
static bool is_part_of(const char *part, const char *name)
{
    size_t n = strlen(part), len = strlen(name);
    const char *dots = strstr(part, "..");
    if (strncmp(name, part, n) == 0)
        return true;
    size_t head = dots ? (size_t)(dots - part) : 0;
    size_t tail = dots ? n - head - 2 : 0;
    return dots && len >= n && strncmp(name, part, head) == 0 &&
           strcmp(name + len - tail, dots + 2) == 0;
}

/*
 * Gives a task the name that the VM has for it, of which the kernel has only a part. JDK 8 leaves
 * threads with the process's name.
 */
static void name_task(struct top_sample *s, pid_t tid, const char *name)
{
    for (size_t i = 0; i < s->tasks.len; i++) {
        struct top_task *t = &s->tasks.data[i];
        if (t->tid != tid || !((t->is_cut && is_part_of(t->name, name)) || !*t->name ||
                               strcmp(t->name, s->process) == 0))
            continue;
        t->is_cut = strlen(name) >= sizeof(t->name);
        snprintf(t->name, sizeof(t->name), "%s", name);
    }
}

static void name_carried(struct top_sample *s, pid_t carrier, const char *name)
{
    for (size_t i = 0; i < s->tasks.len; i++)
        if (s->tasks.data[i].tid == carrier)
            snprintf(s->tasks.data[i].carries, sizeof(s->tasks.data[i].carries), "%s",
                     name && *name ? name : "a virtual thread without a name");
}

enum { STATE, TID, NAME, CARRIER };

static void see_thread(void *context, const char *const values[])
{
    struct top_sample *s = context;
    const char *name = values[STATE];
    size_t at = 0;
    uint64_t tid;
    if (values[NAME] && values[TID] && parse_u64(values[TID], 1, INT32_MAX, &tid) == 0)
        name_task(s, (pid_t)tid, values[NAME]);
    if (values[CARRIER] && parse_u64(values[CARRIER], 1, INT32_MAX, &tid) == 0)
        name_carried(s, (pid_t)tid, values[NAME]);
    if (!name)
        return;
    while (at < s->n_states && strcmp(s->states[at].name, name) != 0)
        at++;
    if (at == STATES_MAX)
        return;
    if (at == s->n_states)
        snprintf(s->states[s->n_states++].name, sizeof(s->states[at].name), "%s", name);
    s->states[at].count++;
}

static int compare_states(const void *a, const void *b)
{
    const struct top_state *x = a, *y = b;
    return x->count != y->count ? (x->count < y->count ? 1 : -1) : strcmp(x->name, y->name);
}

static void read_states(struct top_sample *s, const struct vm *vm)
{
    _cleanup_(buf_release) struct buf answer = BUF(CONTROL_ANSWER_MAX), why = BUF(4096);
    int r = agent_message(vm, "control=inspect,threads", true, &answer, &why);
    if (r < 0) {
        snprintf(s->states_unknown, sizeof(s->states_unknown), "%s",
                 why.len ? buf_str(&why) : strerror(-r));
        return;
    }
    _cleanup_free_ char *text = agent_answer_value(buf_str(&answer), "json", 0);
    static const char *const keys[] = {
        [STATE] = "state", [TID] = "tid", [NAME] = "name", [CARRIER] = "carrier_tid", NULL};
    if (!text || json_view_each(text, "threads", keys, see_thread, s) < 0)
        s->n_states = 0;
    if (s->n_states)
        qsort(s->states, s->n_states, sizeof(s->states[0]), compare_states);
}

static bool is_launcher(const char *base_name)
{
    return strcmp(base_name, "libjli.so") == 0;
}

static bool changes_classes(const char *base_name)
{
    return agent_is_library(base_name) || strcmp(base_name, "libinstrument.so") == 0;
}

static bool maps(const struct vm *vm, bool (*wanted)(const char *base_name))
{
    char **names = NULL;
    if (vm_mapped_files(vm, wanted, &names) < 0)
        return false;
    for (size_t i = 0; names[i]; i++)
        free(names[i]);
    free(names);
    return true;
}

/*
 * Names the thread that runs the program's main method, which keeps the name of the process. The
 * launcher starts it before all others, and waits for it in the first thread.
 */
static void name_main(struct top_sample *s, const struct vm *vm)
{
    struct top_task *first = NULL;
    for (size_t i = 0; i < s->tasks.len; i++) {
        struct top_task *t = &s->tasks.data[i];
        if (t->tid != vm->pid && (!first || t->started < first->started ||
                                  (t->started == first->started && t->tid < first->tid)))
            first = t;
    }
    if (first && strcmp(first->name, s->process) == 0 && maps(vm, is_launcher))
        snprintf(first->name, sizeof(first->name), "main");
}

int top_sample_take(struct top_sample *ret, const struct vm *vm, bool states)
{
    struct top_sample s = {.time_ns = now_ns()};
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/stat", vm->pid);
    if (access(path, R_OK) < 0)
        return -ESRCH;
    struct top_task process = read_stat(path);
    s.cpu_ns = process.cpu_ns;
    snprintf(s.process, sizeof(s.process), "%s", process.name);
    _cleanup_free_ uint8_t *statm = NULL, *data = NULL;
    size_t len;
    unsigned long pages = 0;
    snprintf(path, sizeof(path), "/proc/%d/statm", vm->pid);
    if (file_read_path(path, 4096, &statm, &len) == 0 &&
        sscanf((char *)statm, "%*u %lu", &pages) == 1)
        s.rss = pages * (uint64_t)sysconf(_SC_PAGESIZE);
    read_tasks(&s, vm->pid);
    if (vm_counters(vm, &data, &len) == 0)
        read_counters(&s, data, len);
    else
        s.counters_unknown = check_why_no_counters(vm);
    if (states)
        read_states(&s, vm);
    name_main(&s, vm);
    s.counts_changed = maps(vm, changes_classes);
    *ret = s;
    return 0;
}

bool top_pool_used_known(const struct top_sample *s, const struct top_pool *p)
{
    int64_t collections = 0;
    for (size_t i = 0; i < s->n_collectors; i++)
        collections += s->collectors[i].collections;
    return p->used || collections;
}
