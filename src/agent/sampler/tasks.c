/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/tasks.h"

#include "agent/sampler/slots.h"
#include "agent/vm/thread_table.h"
#include "base/clock.h"
#include "base/map.h"
#include "base/vec.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *const task_group_names[TASK_GROUPS] = {
    [TASK_COMPILER] = "compilers",    [TASK_COLLECTOR] = "collector",   [TASK_VM] = "VM",
    [TASK_NATIVE] = "native threads", [TASK_START] = "start of the VM", [TASK_AGENT] = "jvmscope",
    [TASK_JAVA] = "Java threads",     [TASK_PROCESS] = "process",
};

enum {
    KEPT_BYTES = 15, /* bytes of a name that the kernel keeps */
    NAME_BYTES = 64,
};

struct task {
    pid_t tid;
    uint64_t reported_ns; /* the CPU time up to which it was reported */
    uint32_t round;       /* when it last existed */
    bool java;
};

static struct {
    VEC(struct task) list;
    struct map by_tid; /* thread id -> index in the list */
    uint64_t process_ns;
    uint32_t round;
} tasks;

/*
 * The names that the VM gives to its threads, JDK 8 to 27, as far as the kernel keeps them: the
 * first 15 bytes; from JDK 27 on the first seven and the last six. Any other thread is a native
 * one.
 */
static const struct {
    const char *prefix;
    enum task_group group;
} prefixes[] = {
    {"C1 Comp", TASK_COMPILER},
    {"C2 Comp", TASK_COMPILER},
    {"JVMCI", TASK_COMPILER},
    {"GC ", TASK_COLLECTOR},
    {"G1 ", TASK_COLLECTOR},
    {"ParGC", TASK_COLLECTOR},
    {"Gang wo", TASK_COLLECTOR},
    {"Concurr", TASK_COLLECTOR},
    {"CMS", TASK_COLLECTOR},
    {"Surroga", TASK_COLLECTOR},
    {"Z", TASK_COLLECTOR},
    {"X", TASK_COLLECTOR},
    {"Runtime", TASK_COLLECTOR},
    {"Shenand", TASK_COLLECTOR},
    {"Epsilon", TASK_COLLECTOR},
    {"StringD", TASK_COLLECTOR},
    {"VM ", TASK_VM},
    {"Sweeper", TASK_VM},
    {"Service", TASK_VM},
    {"Monitor", TASK_VM},
    {"Signal ", TASK_VM},
    {"Attach ", TASK_VM},
    {"JFR ", TASK_VM},
    {"Notific", TASK_VM},
    {"AsyncLo", TASK_VM},
};

/*
 * Returns whether a name has a prefix. After "Z" and "X" a capital letter must follow, because
 * these alone would match too much; the threads of ZGC are ZDriver, ZWorker, ZStat and so on.
 */
static bool has_prefix(const char *name, const char *prefix)
{
    size_t n = strlen(prefix);
    return strncmp(name, prefix, n) == 0 && (n > 1 || (name[1] >= 'A' && name[1] <= 'Z'));
}

static enum task_group group_of(const char *name)
{
    for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++)
        if (has_prefix(name, prefixes[i].prefix))
            return prefixes[i].group;
    return TASK_NATIVE;
}

/* Names of the VM's threads that are longer than what the kernel keeps; a number may follow. */
static const char *const long_names[] = {
    "C1 CompilerThread",
    "C2 CompilerThread",
    "VM Periodic Task Thread",
    "Signal Dispatcher",
    "Monitor Deflation Thread",
    "Notification Thread",
    "G1 Concurrent Refinement Thread",
    "G1 Refinement Control",
    "G1 Refinement Workers#",
    "Concurrent Mark-Sweep GC Thread",
    "Surrogate Locker Thread (Concurrent GC)",
    "StringDedupThread",
    "StringDedupProcessor",
    "Shenandoah Control Thread",
    "Shenandoah Regulator Thread",
    "Shenandoah GC Threads#",
    "JFR Thread Sampler",
    "JFR Sampler Thread",
    "JFR Recorder Thread",
};

/*
 * Completes a name that was cut, if only one of the VM's names can be meant: "C2 CompilerThre", or
 * from JDK 27 on "C2 Comp..hread0". Such a number is kept.
 */
static void complete_name(char name[NAME_BYTES])
{
    enum { FIRST = 7, DOTS = 2 };

    const char *end = name + KEPT_BYTES, *tail = name + FIRST + DOTS;
    if (strlen(name) != KEPT_BYTES)
        return;
    bool middle = strncmp(name + FIRST, "..", DOTS) == 0;
    const char *number = end;
    while (middle && number > tail && number[-1] >= '0' && number[-1] <= '9')
        number--;
    for (size_t i = 0; i < ARRAY_SIZE(long_names); i++) {
        const char *full = long_names[i];
        size_t len = strlen(full), n = (size_t)(number - tail);
        bool is = middle ? strncmp(full, name, FIRST) == 0 && memcmp(full + len - n, tail, n) == 0
                         : strncmp(full, name, KEPT_BYTES) == 0;
        if (!is)
            continue;
        char digits[KEPT_BYTES + 1];
        snprintf(digits, sizeof(digits), "%.*s", middle ? (int)(end - number) : 0, number);
        snprintf(name, NAME_BYTES, "%s%s", full, digits);
        return;
    }
}

static void read_name(pid_t tid, char ret[NAME_BYTES])
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/self/task/%d/comm", tid);
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, ret, NAME_BYTES - 1) : 0;
    n = MAX(n, 0);
    ret[n] = 0;
    ret[strcspn(ret, "\n")] = 0;
    complete_name(ret);
}

/*
 * Returns the Java thread with this kernel id. A thread whose kernel id is not known yet gets it
 * with its first sample.
 */
static struct thread *java_thread(pid_t tid)
{
    for (struct thread *t = NULL; (t = threads_next(t));)
        if (atomic_load(&t->tid) == tid)
            return t;
    return NULL;
}

static struct task *task_of(pid_t tid)
{
    bool added;
    uint64_t *place = map_at(&tasks.by_tid, (uint64_t)tid, tasks.list.len, &added);
    if (!place || (added && vec_push(&tasks.list, ((struct task){.tid = tid})) < 0))
        return NULL;
    return &tasks.list.data[*place];
}

/* Removes threads that have ended, because their ids may be reused soon. */
static void forget_ended(void)
{
    size_t kept = 0;
    map_clear(&tasks.by_tid);
    for (size_t i = 0; i < tasks.list.len; i++) {
        struct task t = tasks.list.data[i];
        if (t.round != tasks.round)
            threads_forget_tid(t.tid);
        else if (map_put(&tasks.by_tid, (uint64_t)t.tid, kept) == 0)
            tasks.list.data[kept++] = t;
    }
    tasks.list.len = kept;
}

static void count_task(pid_t tid, uint64_t least_ns, void (*report)(const struct task_time *t))
{
    struct task *task = task_of(tid);
    if (!task)
        return;
    task->round = tasks.round;
    if (task->java)
        return;
    struct thread *java = java_thread(tid);
    task->java = java ? !java->own : threads_had_tid(tid);
    /*
     * A thread that may be a Java thread is not reported until that is known; only its starting
     * point is recorded.
     */
    if (task->java || (report && !java && slot_is_open(tid)))
        return;
    uint64_t cpu_ns = clock_ns(slot_clock(tid));
    char name[NAME_BYTES];
    if (cpu_ns < task->reported_ns + least_ns || cpu_ns == task->reported_ns)
        return;
    read_name(tid, name);
    enum task_group group = java ? TASK_AGENT : group_of(name);
    if (report)
        report(&(struct task_time){group, name, cpu_ns - task->reported_ns});
    task->reported_ns = cpu_ns;
}

void tasks_report(uint64_t least_ns, void (*report)(const struct task_time *t))
{
    DIR *folder = opendir("/proc/self/task");
    tasks.round++;
    for (struct dirent *e; folder && (e = readdir(folder));)
        if (atoi(e->d_name) > 0)
            count_task((pid_t)atoi(e->d_name), least_ns, report);
    if (folder)
        closedir(folder);
    forget_ended();
    uint64_t process_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    if (report)
        report(&(struct task_time){TASK_PROCESS, "", process_ns - tasks.process_ns});
    tasks.process_ns = process_ns;
}

/*
 * Reports what Java threads have used before they were sampled, including the process's first
 * thread, which starts the VM's main thread.
 */
static void report_start(void (*report)(const struct task_time *t))
{
    struct task *first = java_thread(getpid()) ? NULL : task_of(getpid());
    uint64_t cpu_ns = first ? clock_ns(slot_clock(getpid())) : 0;
    if (first)
        first->reported_ns = cpu_ns;
    for (struct thread *t = NULL; (t = threads_next(t));)
        if (!t->own && atomic_load(&t->tid))
            cpu_ns += clock_ns(slot_clock(atomic_load(&t->tid)));
    report(&(struct task_time){TASK_START, "threads not yet sampled", cpu_ns});
}

void tasks_start(bool whole_process, uint64_t process_ns, void (*report)(const struct task_time *t))
{
    tasks_release();
    if (whole_process) {
        report_start(report);
        return;
    }
    tasks_report(0, NULL);
    tasks.process_ns = process_ns;
}

void tasks_release(void)
{
    vec_release(&tasks.list);
    map_release(&tasks.by_tid);
    tasks.process_ns = 0;
}
